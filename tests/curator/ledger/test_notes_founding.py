"""What a first entry says, and that a ledger is opened for nothing else."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable
from fractions import Fraction

import pytest

from sulq.curator.ledger.history import load, of
from sulq.curator.ledger.notes import KEY_BYTES, compare, genesis, read_founding, refuse_lowered
from sulq.curator.ledger.turns import SqliteFile
from sulq.errors import SetupError
from sulq.kernel.ledger.chain import ORIGIN, Row, link
from sulq.language.privacy import (
    BASIC_SHARE,
    KEY_SHARE,
    Epsilon,
    EpsilonDelta,
    Rho,
    SubLinear,
    Unit,
    basic_part,
    key_part,
)

FIRST = genesis(Unit("id", 3), Epsilon(1), open_keys=False, synthetic=False, time="t")


def test_a_ledger_is_opened_for_what_it_was_begun_for_T56() -> None:
    """T56: another unit, budget or kind of data than the first entry's is refused; saying nothing is not."""
    state = load(SqliteFile.in_memory([Row(1, FIRST, link(ORIGIN, 1, FIRST))]), ())
    own = of(state).founding
    compare(state, own, unit=Unit("id", 3), budget=Epsilon(1), synthetic=False)
    compare(state, own, unit=None, budget=None, synthetic=None)
    for told in ({"unit": Unit("id", 1)}, {"budget": Epsilon(2)}, {"synthetic": True}):
        with pytest.raises(SetupError) as refusal:
            compare(state, own, **({"unit": None, "budget": None, "synthetic": None} | told))
        assert refusal.value.code.endswith("-mismatch")


@pytest.mark.parametrize(
    ("name", "part_of", "usual"), [("basic", basic_part, BASIC_SHARE), ("keys", key_part, KEY_SHARE)]
)
def test_the_parts_of_delta_are_fixed_by_the_first_entry_SR26(name: str, part_of: Callable, usual: Fraction) -> None:
    """SR26: another part of delta is refused, and so is one of a budget without a division; saying nothing is not."""
    for told, own in ((None, usual), (Fraction(0), Fraction(0)), (Fraction(2, 5), Fraction(2, 5))):
        first = genesis(Unit(), EpsilonDelta(1, 1e-6), open_keys=True, synthetic=False, time="t", **{name: told})
        state = load(SqliteFile.in_memory([Row(1, first, link(ORIGIN, 1, first))]), ())
        nothing = {"unit": None, "budget": None, "synthetic": None}
        assert part_of(state.filter.split) == own
        for same in (None, own):
            compare(state, of(state).founding, **nothing, **{name: same})
        with pytest.raises(SetupError, match="is fixed when the ledger is begun") as refusal:
            compare(state, of(state).founding, **nothing, **{name: Fraction(3, 10)})
        assert refusal.value.code == "budget-mismatch"
    with pytest.raises(SetupError, match="has none to divide"):
        genesis(Unit(), Epsilon(1), open_keys=True, synthetic=False, time="t", **{name: Fraction(1, 10)})
    state = load(SqliteFile.in_memory([Row(1, FIRST, link(ORIGIN, 1, FIRST))]), ())
    with pytest.raises(SetupError, match="has none to divide"):
        compare(state, of(state).founding, unit=None, budget=None, synthetic=None, **{name: Fraction(0)})


def test_names_and_keys_read_back() -> None:
    """The name of the space and keys of full length are there; what is not as it is written is damage."""
    found = read_founding(json.loads(FIRST))
    assert {len(found.space), len(found.hash_key), len(found.receipt_key), len(found.signing_key)} == {32}
    keys = ({"hash_key": "zz"}, {"hash_key": None}, {"receipt_key": "zz"}, {"receipt_key": 7}, {"signing_key": "ab"})
    for change in (*keys, {"space": 7}):
        with pytest.raises(SetupError) as refusal:
            read_founding(json.loads(FIRST) | change)
        assert refusal.value.code == "ledger-damaged"


def test_an_old_ledger_has_a_key_that_follows_from_its_own() -> None:
    """The first ledgers of format 1 have no key to sign with: theirs is the same at every opening, and no other's."""
    body = json.loads(FIRST)
    drawn = read_founding(body)
    del body["signing_key"]
    follows = [read_founding(body | {"receipt_key": key * 32}).signing_key for key in ("ab", "ab", "cd")]
    assert follows[0] == follows[1] != follows[2]
    assert follows[0] == hmac.new(bytes.fromhex("ab" * 32), b"sulq: signing key", hashlib.sha256).digest()
    assert drawn.signing_key != read_founding(body).signing_key
    assert len(follows[0]) == KEY_BYTES


@pytest.mark.parametrize(
    ("own", "budget", "why"),
    [
        (Epsilon(1), Rho(1), "cannot become"),
        (Epsilon(2), Epsilon(1), "never lowered"),
        (EpsilonDelta(1, 1e-6), EpsilonDelta(2, 1e-7), "never lowered"),
        (SubLinear(1, 1e-6, 9), SubLinear(1, 1e-6, 20), "fixed by its number of queries"),
    ],
)
def test_a_budget_that_cannot_be_raised_says_why(own: object, budget: object, why: str) -> None:
    """Control: the same one, and a larger one, may be."""
    with pytest.raises(SetupError, match=why):
        refuse_lowered(own, budget)
    refuse_lowered(own, own)
    refuse_lowered(Epsilon(1), Epsilon(2))
