"""Replaying entries: what they add up to, whoever else remembers them."""

from __future__ import annotations

import json

import pytest

from sulq.curator.ledger import notes
from sulq.curator.ledger.turns import SqliteFile
from sulq.errors import SetupError
from sulq.kernel.facts import Epsilon, Event, Rho, Unit
from sulq.kernel.ledger import entries
from sulq.kernel.ledger.chain import ORIGIN, Row, link
from sulq.kernel.ledger.entries import Body, State, load
from sulq.kernel.ledger.filter import Totals
from tests.curator.ledger.cases import pure


class Deaf:
    """A follower that remembers nothing and refuses nothing."""

    def follow(self, state: State, row: Row, body: Body, event: Event | None) -> None:
        """Hear it."""


def rows(*bodies: str) -> list[Row]:
    found: list[Row] = []
    for seq, body in enumerate(bodies, start=1):
        found.append(Row(seq, body, link(found[-1].hash if found else ORIGIN, seq, body)))
    return found


def debit(cost: str) -> str:
    return entries.debit(pure(cost), plan_digest="p")


def burn(amount: int) -> str:
    return notes.burnt({"ann": Totals(amount), "ben": Totals(1)}, name="n", settles="h", time="t")


def read(*bodies: str) -> State:
    return load(SqliteFile.in_memory(rows(*bodies)), State((), Deaf()))


FIRST = notes.genesis(Unit("id", 3), Epsilon(1), open_keys=False, synthetic=False, time="t")


def test_no_chain_passes_the_budget_whoever_follows_T47() -> None:
    """T47, T52: the kernel's own totals are enforced where nobody else looks; a raise makes room, a burn takes it."""
    twice = notes.raised(Epsilon(2), None, time="t")
    assert read(FIRST, debit("0.6"), debit("0.4")).totals.events == 2
    assert read(FIRST, debit("0.6"), twice, debit("0.5")).totals.events == 2
    assert read(FIRST, debit("0.6"), burn(10**18)).totals.epsilon == 16 * 10**17 + 1
    for bodies in (
        [debit("0.6"), debit("0.5")],
        [burn(10**18), debit("0.1")],
        [notes.raised(Rho(5), None, time="t")],
        [FIRST],
        [json.dumps({"kind": "refund", "of": 2})],
        [json.dumps(json.loads(debit("0.1")) | {"event": None})],
    ):
        with pytest.raises(SetupError) as refusal:
            read(FIRST, *bodies)
        assert refusal.value.code in {"ledger-damaged", "ledger-format"}


def test_a_state_is_not_moved_by_what_is_not_its_next_entry_T47() -> None:
    """T47: an entry left out, repeated, changed or of another chain is refused."""
    first, second, third = rows(FIRST, debit("0.1"), debit("0.2"))
    for wrong in (third, first, second._replace(body=debit("0.1")), second._replace(hash=third.hash)):
        state = State((), Deaf())
        state.follow(first)
        with pytest.raises(SetupError):
            state.follow(wrong)
    state = State((), Deaf())
    for row in (first, second, third):  # control
        state.follow(row)
    assert (state.seq, state.hash) == (3, third.hash)
