"""Replaying entries."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from sulq.answers import wire
from sulq.curator.ledger import notes
from sulq.curator.ledger.history import History, load, of
from sulq.curator.ledger.shares import Share, spent_of
from sulq.curator.ledger.turns import SqliteFile
from sulq.errors import SetupError
from sulq.kernel.ledger import entries
from sulq.kernel.ledger.chain import ORIGIN, Row, link
from sulq.kernel.ledger.entries import State
from sulq.kernel.ledger.filter import Totals
from sulq.language.privacy import Epsilon, Rho, Unit
from tests.curator.ledger.cases import pure


def rows(*bodies: str) -> list[Row]:
    """Entries properly chained, whatever they say."""
    found: list[Row] = []
    for seq, body in enumerate(bodies, start=1):
        found.append(Row(seq, body, link(found[-1].hash if found else ORIGIN, seq, body)))
    return found


def debit(cost: str, key: str | None = None, analyst: str = "") -> str:
    return entries.debit(
        pure(cost), question="q", question_digest="d", plan_digest="p", version=0, key=key, time="t", analyst=analyst
    )


def share(analyst: str, part: str, reserve: str = "0") -> str:
    return notes.shared(analyst, Share.of(part, reserve), time="t")


def burn(**losses: Totals) -> str:
    return notes.burnt(losses, name="n", settles="h", time="t")


FIRST = notes.genesis(Unit(), Epsilon(1), open_keys=False, synthetic=False, time="t")


@pytest.mark.parametrize(
    "bodies",
    [
        [debit("0.1")],
        [FIRST, FIRST],
        [FIRST, debit("0.6"), debit("0.5")],
        [FIRST, debit("0.1", "k"), debit("0.1", "k")],
        [FIRST, notes.answer(2, "1", time="t")],
        [FIRST, debit("0.1"), notes.answer(2, "1", time="t"), notes.answer(2, "2", time="t")],
        [FIRST, notes.raised(Rho(5), None, time="t")],
        [FIRST, json.dumps(json.loads(debit("0.1")) | {"event": None})],
        [FIRST, json.dumps(json.loads(debit("0.1")) | {"version": -1})],
        [FIRST, json.dumps({"kind": "register", "name": 3})],
        [FIRST, share("ann", "0.5"), debit("0.6", analyst="ann")],
        [FIRST, share("ann", "1", "0.5"), debit("0.6", analyst="ben")],
        [FIRST, share("ann", "1", "0.6"), share("ben", "1", "0.5")],
        [FIRST, debit("0.6"), share("ann", "1", "0.5")],
        [FIRST, json.dumps(json.loads(share("ann", "1")) | {"analyst": ""})],
        [FIRST, json.dumps(json.loads(share("ann", "1")) | {"share": 1})],
        [FIRST, json.dumps(json.loads(share("ann", "1")) | {"share": wire.to_json(Fraction(3, 2))})],
        [FIRST, json.dumps({"kind": "anchor", "name": None})],
        [FIRST, json.dumps(json.loads(burn()) | {"losses": []})],
        [FIRST, json.dumps(json.loads(burn(ann=Totals(1))) | {"losses": {"ann": {}}})],
        [FIRST, burn(ann=Totals(-1))],
        [FIRST, burn(ann=Totals(pure=1))],
        [FIRST, debit("0.1", "k", "ann"), debit("0.1", "k", "ann")],
    ],
    ids=["no first", "two firsts", "past the budget", "key twice", "answer to nothing", "answered twice",
         "another kind", "no event", "no version", "no name", "past a share", "into a reserve", "reserves past 1",
         "a reserve past what is left", "nobody's share", "share of no kind", "share past 1", "no anchor",
         "burns nothing", "burns no totals", "burns less than nothing", "burns no truth", "an analyst's key twice"],
)  # fmt: skip
def test_a_chain_that_makes_no_sense_is_refused_T47(bodies: list[str]) -> None:
    """Properly chained or not, entries that cannot have been written are refused, an overspent prefix too (T47)."""
    store = SqliteFile.in_memory(rows(*bodies))
    with pytest.raises(SetupError) as refusal:
        load(store, ())
    assert refusal.value.code in {"ledger-damaged", "ledger-format"}


def test_totals_are_what_the_entries_add_up_to_T52() -> None:
    """Replayed from the file the totals are those of the entries, before and after a raise (T52)."""
    bodies = [FIRST, debit("0.6"), notes.raised(Epsilon(2), None, time="t"), debit("0.5"), debit("0.9")]
    for thorough in (False, True):
        state = load(SqliteFile.in_memory(rows(*bodies)), (), thorough=thorough)
        assert spent_of(state.filter, state.totals) == Epsilon(2)
        assert state.totals.events == 3


def test_each_analysts_totals_are_what_its_entries_add_up_to_T54() -> None:
    """Replayed from the file, charges and burns stand by analyst, and the shares as last set (T52, T54)."""
    bodies = [
        FIRST, share("ann", "0.5"), debit("0.3", "k", "ann"), debit("0.1", "k", "ben"), share("ann", "0.2", "0.1"),
        burn(ann=Totals(10**18), cat=Totals(1)), notes.anchored("m", time="t"),
    ]  # fmt: skip
    for thorough in (False, True):
        state = load(SqliteFile.in_memory(rows(*bodies)), (), thorough=thorough)
        spent = {name: Fraction(totals.epsilon, 10**18) for name, totals in of(state).accounts.spent.items()}
        assert spent == {"ann": Fraction("1.3"), "ben": Fraction("0.1"), "cat": Fraction(1, 10**18)}
        assert state.totals.epsilon == sum(totals.epsilon for totals in of(state).accounts.spent.values())
        assert of(state).accounts.shares == {"ann": Share.of("0.2", "0.1")}
        assert (of(state).anchor, of(state).settled) == ("m", {"h"})
        assert of(state).mark == (7, state.hash, of(state).accounts)


def test_every_flipped_bit_of_a_share_an_anchor_or_a_burn_is_found_T47() -> None:
    """No bit of such an entry, or of its hash, can change unnoticed (T47)."""
    bodies = [
        FIRST,
        share("ann", "0.5", "0.1"),
        notes.anchored("m", time="t"),
        burn(ann=Totals(10**17)),
        debit("0.1"),
    ]
    written = rows(*bodies)
    load(SqliteFile.in_memory(written), ())
    for place in (1, 2, 3):
        row = written[place]
        for bit in range(8 * (len(row.body) + len(row.hash))):
            image = bytearray(row.body.encode() + row.hash)
            image[bit // 8] ^= 1 << bit % 8
            body, digest = bytes(image[: len(row.body)]), bytes(image[len(row.body) :])
            state = State((), History())
            for before in written[:place]:
                state.follow(before)
            with pytest.raises(SetupError):
                state.follow(Row(row.seq, body.decode("latin-1"), digest))


def test_entries_without_an_analyst_open_as_before_T91() -> None:
    """Debits written before there were analysts are those of whoever opened the ledger."""
    body = json.loads(debit("0.25"))
    del body["analyst"]
    state = load(SqliteFile.in_memory(rows(FIRST, json.dumps(body))), ())
    assert [*of(state).accounts.spent] == [""]


def test_catching_up_follows_what_others_wrote() -> None:
    """A state takes the entries it has not seen, and refuses a file that lost some it has."""
    written = rows(FIRST, debit("0.1"), debit("0.2"))
    store = SqliteFile.in_memory(written[:1])
    state = State((), History())
    state.catch_up(store)
    store.begin()
    store.append(written[1:])
    store.commit()
    state.catch_up(store)
    assert (state.seq, state.hash) == (3, written[-1].hash)
    store._db.execute("DELETE FROM entries WHERE seq = 3")
    store._db.execute("UPDATE head SET seq = 2, hash = (SELECT hash FROM entries WHERE seq = 2)")
    with pytest.raises(SetupError) as refusal:
        state.catch_up(store)
    assert refusal.value.code == "ledger-damaged"
