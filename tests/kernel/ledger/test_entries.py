"""Entries are written one way and read back as they were, or not at all."""

from __future__ import annotations

import json

import pytest

from sulq.answers import wire
from sulq.curator.ledger import notes
from sulq.curator.ledger.history import load
from sulq.curator.ledger.turns import SqliteFile
from sulq.errors import SetupError
from sulq.kernel.ledger import entries
from sulq.kernel.ledger.chain import ORIGIN, Row, canonical, link
from sulq.language.estimator import Certificate, Estimator
from sulq.language.privacy import Epsilon, EpsilonDelta, Rho, SubLinear, Unit, divided
from tests.curator.ledger.cases import gaussian, pure, queries

BUDGETS = [Epsilon(0.1), Rho(2), EpsilonDelta(2, 1e-6), SubLinear(1, 1e-6, 9, "dp")]


def parsed(text: str) -> entries.Body:
    return entries.parse(Row(1, text, b""))


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_a_first_entry_reads_back(budget: object) -> None:
    """Unit, budget, its division and what kind of data are all there."""
    unit = Unit("id", rows=3, neighbors="replace_one")
    body = parsed(notes.genesis(unit, budget, open_keys=True, synthetic=True, time="t"))
    assert entries.read_genesis(body) == (unit, True)
    split = divided(budget, open_keys=True) if isinstance(budget, EpsilonDelta) else None
    assert entries.read_budget(body) == (budget, split)


@pytest.mark.parametrize("event", [pure("0.1"), gaussian("0.02", key_delta="1e-9"), queries(4)], ids=["l", "g", "q"])
def test_a_debit_reads_back(event: object) -> None:
    """The event is there whole, and its losses alone are the same losses."""
    text = entries.debit(event, question="q", question_digest="d", plan_digest="p", version=1, key=None, time="t")
    assert notes.read_event(parsed(text)) == event
    losses = entries.read_losses(parsed(text))
    assert (losses.epsilon, losses.rho) == (event.epsilon, event.rho)
    assert (losses.key_delta, losses.queries) == (event.key_delta, event.queries)


def test_a_raise_and_a_registration_read_back() -> None:
    """So do the other kinds of entry."""
    split = divided(EpsilonDelta(1, 1e-6), open_keys=False)
    budget = EpsilonDelta(3, 1e-6)
    assert entries.read_budget(parsed(notes.raised(budget, split, time="t"))) == (budget, split)
    for public in (False, True):
        data = notes.Registration("people", "d", 10, "s", public)
        assert notes.read_registration(parsed(notes.registered(data, time="t"))) == data
    body = parsed(notes.registered(data, time="t"))
    with pytest.raises(SetupError):
        notes.read_registration(body | {"public": "yes"})
    del body["public"]  # as it was first written
    assert not notes.read_registration(body).public


def test_the_owners_functions_read_back_and_may_be_absent_SR5() -> None:
    """With and without a certificate; entries from before they were kept have none; what is no function is refused."""
    own = (Estimator("a", "p:f"), Estimator("b", "p.q:g", Certificate(0.1, 0.25, 0.9, 0, 1, ("x", "y"))))
    body = parsed(notes.registered(notes.Registration("people", "d", None, "s", estimators=own), time="t"))
    assert notes.read_registration(body).estimators == own
    for wrong in (None, "p:f", [wire.to_json(Unit())], [{"kind": "Estimator", "name": "a", "function": "f"}]):
        with pytest.raises(SetupError) as refused:
            notes.read_registration(body | {"estimators": wrong})
        assert refused.value.code == "ledger-damaged"
    del body["estimators"]
    assert notes.read_registration(body).estimators == ()


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"format": 3}, "ledger-format"),
        ({"format": 0}, "ledger-format"),
        ({"format": "1"}, "ledger-damaged"),
        ({"format": True}, "ledger-damaged"),
        ({"kind": "debit"}, "ledger-damaged"),
        ({"unit": None}, "ledger-damaged"),
        ({"unit": {"kind": "Unit", "rows": 0}}, "ledger-damaged"),
        ({"budget": {"kind": "Epsilon", "epsilon": -1}}, "ledger-damaged"),
        ({"budget": 3}, "ledger-damaged"),
        ({"split": None}, "ledger-damaged"),
        ({"synthetic": "yes"}, "ledger-damaged"),
        ({"receipt_key": "zz"}, "ledger-damaged"),
        ({"receipt_key": 7}, "ledger-damaged"),
    ],
)
def test_a_first_entry_that_is_wrong_is_refused(change: dict[str, object], code: str) -> None:
    """Whatever is not as it is written is damage, but for a format of later days (T91)."""
    text = notes.genesis(Unit(), EpsilonDelta(1, 1e-6), open_keys=False, synthetic=False, time="t")
    body = canonical(json.loads(text) | change)
    with pytest.raises(SetupError) as refusal:
        load(SqliteFile.in_memory([Row(1, body, link(ORIGIN, 1, body))]), ())
    assert refusal.value.code == code


@pytest.mark.parametrize("text", ["", "{", "[]", '"a"', "1"])
def test_a_body_that_is_no_record_is_refused(text: str) -> None:
    """An entry is a JSON record."""
    with pytest.raises(SetupError) as refusal:
        parsed(text)
    assert refusal.value.code == "ledger-damaged"


@pytest.mark.parametrize("value", ["-1/2", "1/0", "x", "1", "", 3, None, "1/-2"])
def test_a_loss_that_is_no_number_is_refused(value: object) -> None:
    """A loss is a fraction of whole numbers, never negative."""
    body = json.loads(entries.debit(pure("0.1"), question="q", plan_digest="p", version=1, time="t"))
    body["event"]["rho"]["value"] = value
    with pytest.raises(SetupError) as refusal:
        entries.read_losses(body)
    assert refusal.value.code == "ledger-damaged"
