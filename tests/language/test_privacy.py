"""Losses and units by the vocabulary's name: the kernel's own, defined once."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import sulq
from sulq import Epsilon, EpsilonDelta, Rho, SubLinear
from sulq.errors import SetupError
from sulq.kernel import facts as losses
from sulq.language import privacy
from sulq.language.privacy import BASIC_SHARE, DELTA_SHARES, KEY_SHARE, basic_part, delta_share_of, divided, key_part


def test_losses_and_units_are_defined_once() -> None:
    """What the vocabulary, the root and the kernel call by one name is one thing."""
    shared = [name for name in privacy.__all__ if hasattr(losses, name)]
    assert set(privacy.__all__) - set(shared) == {
        "EpsilonKeys",
        "Loss",
        "Queries",
        "basic_part",
        "delta_share_of",
        "divided",
        "epsilon_of",
        "key_part",
        "normal_epsilon",
        "normal_rho",
        "probability",
    }  # which no price and no ledger reads
    assert [name for name in shared if getattr(privacy, name) is not getattr(losses, name)] == []
    public = {"Epsilon", "EpsilonDelta", "Queries", "Rho", "SubLinear"} & set(sulq.__all__)
    assert public
    assert [name for name in public if getattr(sulq, name) is not getattr(privacy, name)] == []
    assert type(sulq.Unit("pid", 3)) is privacy.Unit  # rows="auto" makes another, which no ledger keeps


def test_queries_say_nothing_of_groups() -> None:
    """The posterior reading has no group form here."""
    assert not hasattr(privacy.Queries(3), "group")


@pytest.mark.parametrize(
    ("told", "part"),
    [
        (0.1, Fraction(1, 10)),
        (np.float64(0.3), Fraction(3, 10)),
        (Decimal("0.25"), Fraction(1, 4)),
        (Fraction(1, 3), Fraction(1, 3)),
        (0, Fraction(0)),
        (-0.0, Fraction(0)),
        (0.9, Fraction(9, 10)),
        (1e-9, Fraction(1, 10**9)),
        (None, None),
    ],
    ids=repr,
)
def test_a_part_of_delta_is_read_as_it_was_written(told: object, part: Fraction | None) -> None:
    """0.1 is one tenth, and the division has exactly that part: for open keys of delta, for pairs of the rest.

    One that is named holds whether or not a table has open keys; one that is not is the default.
    """
    budget = EpsilonDelta(1, 1e-6)
    for name in DELTA_SHARES:
        assert delta_share_of(name, told, budget) == delta_share_of(name, told) == part
    for open_keys in (False, True):
        usual = KEY_SHARE if open_keys else Fraction(0)
        for basic, keys in ((part, None), (None, part), (part, part)):
            split = divided(budget, open_keys=open_keys, basic=basic, keys=keys)
            assert basic_part(split) == (BASIC_SHARE if basic is None else basic)
            assert key_part(split) == (usual if keys is None else keys)
            assert split.delta + split.basic_delta + split.key_delta == budget.exact_delta


@pytest.mark.parametrize("name", DELTA_SHARES)
@pytest.mark.parametrize(
    "told",
    [0.91, 1, -0.1, True, "0.1", float("nan"), float("inf"), Decimal("1e-500"), 1e-10, Fraction(1, 10**9 + 7), [0]],
)
def test_what_is_no_part_of_delta_is_refused_T51(told: object, name: str) -> None:
    """Too much, too little to be counted, and what is no number (T51)."""
    with pytest.raises(SetupError, match=rf"{name} is a number from 0 to 0\.9") as refusal:
        delta_share_of(name, told, EpsilonDelta(1, 1e-6))
    assert refusal.value.code == "bad-declaration"


@pytest.mark.parametrize("name", DELTA_SHARES)
@pytest.mark.parametrize("budget", [Epsilon(1), Rho(1), SubLinear(1, 1e-6, 9)], ids=str)
def test_a_budget_that_is_not_divided_has_no_part_of_delta(budget: object, name: str) -> None:
    """A setting is refused and says why. Control: no setting is none to refuse."""
    with pytest.raises(SetupError, match=f"{name} divides .* has none to divide") as refusal:
        delta_share_of(name, 0.1, budget)
    assert refusal.value.code == "bad-declaration"
    assert delta_share_of(name, None, budget) is None
