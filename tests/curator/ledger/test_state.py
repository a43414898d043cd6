"""Replaying entries."""

from __future__ import annotations

import json

import pytest

from sulq.curator.ledger import entries
from sulq.curator.ledger.chain import ORIGIN, Row, link
from sulq.curator.ledger.state import State, load
from sulq.curator.ledger.store import Store
from sulq.errors import SetupError
from sulq.terms.privacy import Epsilon, Rho, Unit
from tests.curator.ledger.cases import pure


def rows(*bodies: str) -> list[Row]:
    """Entries properly chained, whatever they say."""
    found: list[Row] = []
    for seq, body in enumerate(bodies, start=1):
        found.append(Row(seq, body, link(found[-1].hash if found else ORIGIN, seq, body)))
    return found


def debit(cost: str, key: str | None = None) -> str:
    return entries.debit(pure(cost), question="q", question_digest="d", plan_digest="p", version=0, key=key, time="t")


FIRST = entries.genesis(Unit(), Epsilon(1), open_keys=False, synthetic=False, time="t")


@pytest.mark.parametrize(
    "bodies",
    [
        [debit("0.1")],
        [FIRST, FIRST],
        [FIRST, debit("0.6"), debit("0.5")],
        [FIRST, debit("0.1", "k"), debit("0.1", "k")],
        [FIRST, entries.answer(2, "1", time="t")],
        [FIRST, debit("0.1"), entries.answer(2, "1", time="t"), entries.answer(2, "2", time="t")],
        [FIRST, entries.raised(Rho(5), None, time="t")],
        [FIRST, json.dumps(json.loads(debit("0.1")) | {"event": None})],
        [FIRST, json.dumps(json.loads(debit("0.1")) | {"version": -1})],
        [FIRST, json.dumps({"kind": "register", "name": 3})],
    ],
    ids=["no first", "two firsts", "past the budget", "key twice", "answer to nothing", "answered twice",
         "another kind", "no event", "no version", "no name"],
)  # fmt: skip
def test_T47_a_chain_that_makes_no_sense_is_refused(bodies: list[str]) -> None:
    """Properly chained or not, entries that cannot have been written are refused, an overspent prefix too (T47)."""
    store = Store.in_memory(rows(*bodies))
    with pytest.raises(SetupError) as refusal:
        load(store, ())
    assert refusal.value.code in {"ledger-damaged", "ledger-format"}


def test_T52_totals_are_what_the_entries_add_up_to() -> None:
    """Replayed from the file the totals are those of the entries, before and after a raise (T52)."""
    bodies = [FIRST, debit("0.6"), entries.raised(Epsilon(2), None, time="t"), debit("0.5"), debit("0.9")]
    for thorough in (False, True):
        state = load(Store.in_memory(rows(*bodies)), (), thorough=thorough)
        assert state.filter.spent(state.totals) == Epsilon(2)
        assert state.totals.events == 3


def test_catching_up_follows_what_others_wrote() -> None:
    """A state takes the entries it has not seen, and refuses a file that lost some it has."""
    written = rows(FIRST, debit("0.1"), debit("0.2"))
    store = Store.in_memory(written[:1])
    state = State(())
    state.catch_up(store)
    store.write(written[1:])
    state.catch_up(store)
    assert (state.seq, state.hash) == (3, written[-1].hash)
    store._db.execute("DELETE FROM entries WHERE seq = 3")
    store._db.execute("UPDATE head SET seq = 2, hash = (SELECT hash FROM entries WHERE seq = 2)")
    with pytest.raises(SetupError) as refusal:
        state.catch_up(store)
    assert refusal.value.code == "ledger-damaged"
