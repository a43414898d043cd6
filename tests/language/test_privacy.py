"""Losses and units by the vocabulary's name: the kernel's own, defined once."""

from __future__ import annotations

import sulq
from sulq.kernel import facts as losses
from sulq.language import privacy


def test_losses_and_units_are_defined_once() -> None:
    """What the vocabulary, the root and the kernel call by one name is one thing."""
    shared = [name for name in privacy.__all__ if hasattr(losses, name)]
    assert set(privacy.__all__) - set(shared) == {
        "Loss",
        "Queries",
        "divided",
        "epsilon_of",
        "probability",
    }  # which no price and no ledger reads
    assert [name for name in shared if getattr(privacy, name) is not getattr(losses, name)] == []
    public = {"Epsilon", "EpsilonDelta", "Queries", "Rho", "SubLinear", "Unit"} & set(sulq.__all__)
    assert public
    assert [name for name in public if getattr(sulq, name) is not getattr(privacy, name)] == []


def test_queries_say_nothing_of_groups() -> None:
    """The posterior reading has no group form here."""
    assert not hasattr(privacy.Queries(3), "group")
