"""Losses and units by the vocabulary's name: the kernel's own, defined once."""

from __future__ import annotations

import sulq
from sulq.kernel import losses
from sulq.terms import privacy


def test_losses_and_units_are_defined_once() -> None:
    """What the vocabulary, the root and the kernel call by one name is one thing."""
    assert [name for name in privacy.__all__ if getattr(privacy, name) is not getattr(losses, name)] == []
    public = {"Epsilon", "EpsilonDelta", "Queries", "Rho", "SubLinear", "Unit"} & set(sulq.__all__)
    assert public
    assert [name for name in public if getattr(sulq, name) is not getattr(losses, name)] == []
