"""Differencing and trackers: through a budget, and without noise."""

from __future__ import annotations

from dataclasses import replace

import pytest

import sulq.testing
from sulq import Epsilon, col
from sulq.audit.attacks import differencing, tracker
from tests.audit.people import SECRET, bits, people


def targets(secrets, number: int):
    return [(col("seat") == i, bool(secrets[i])) for i in range(number)]


@pytest.mark.parametrize("attack", [differencing, tracker])
def test_subtraction_tells_what_was_paid_for_and_all_without_noise_T62(attack) -> None:
    """T62: one target each of 60 databases, by two or four large counts at epsilon 1.

    Bar: right guesses within e^eps/(1 + e^eps). Control: with the noise off every target is found, which is past it.
    """
    more = {} if attack is differencing else {"padding": col("seat") < 20}
    total = None
    for seed in range(60):
        secrets = bits(40, seed)
        with people(secrets, Epsilon(1)) as db:
            found = attack(db, targets=targets(secrets, 1), secret=SECRET, spend=Epsilon(1), **more)
            total = found if total is None else total + found
            assert db.spent == Epsilon(1)
    assert total is not None
    assert total.within
    secrets = bits(120, 99)
    with people(secrets, Epsilon(1)) as db:
        control = attack(sulq.testing.exact(db), targets=targets(secrets, 120), secret=SECRET, spend=Epsilon(1), **more)
        assert control.right == 120
        assert control.succeeded
        assert not replace(control, allowed=total.allowed).within


def test_many_targets_share_one_price_T62() -> None:
    """T62: all 120 people at once for the same epsilon: each count is noisier, and the guarantee covers all.

    Control: the same without noise is past it.
    """
    secrets = bits(120, 5)
    settings = {"targets": targets(secrets, 120), "secret": SECRET, "spend": Epsilon(1)}
    with people(secrets, Epsilon(1)) as db:
        found, bare = differencing(db, **settings), differencing(sulq.testing.exact(db), **settings)
        assert found.within
        assert found.guesses == 120
        assert not replace(bare, allowed=found.allowed).within
