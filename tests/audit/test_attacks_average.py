"""Asking the same again: paid for each time, or the same answer again."""

from __future__ import annotations

from dataclasses import replace

import sulq.testing
from sulq import Epsilon, col
from sulq.audit.attacks import averaging, rewording
from tests.audit.people import SECRET, bits, people


def test_averages_cost_what_they_tell_T62() -> None:
    """T62: 4 repeats at a quarter of epsilon 1 each, on 60 databases, all of them charged.

    Bar: right guesses within e^eps/(1 + e^eps). Control: with the noise off always right, which is past that bar:
    e^eps/(1 + e^eps) to the power of 60 is below 1e-8.
    """
    total = control = None
    for seed in range(60):
        secrets = bits(20, seed)
        settings = {"target": col("seat") == 3, "secret": SECRET, "has": bool(secrets[3]), "spend": Epsilon(1)}
        with people(secrets, Epsilon(1)) as db:
            exact = averaging(sulq.testing.exact(db), **settings, repeats=2)
            found = averaging(db, **settings, repeats=4)
            assert db.spent.epsilon > 0.999
        total = found if total is None else total + found
        control = exact if control is None else control + exact
    assert total.within
    assert control.rate == 1
    assert not replace(control, allowed=total.allowed).within


def test_other_words_bring_the_stored_answer_at_no_price_T10_T62() -> None:
    """T62: the same question in other words, 16 times at full price each: charged once, one number, nothing gained."""
    secrets = bits(20, 1)
    with people(secrets, Epsilon(1)) as db:
        oracle = db["seat"].oracle
        found = rewording(oracle, target=col("seat") == 3, secret=SECRET, has=bool(secrets[3]), spend=Epsilon(1))
        assert "1 of them different" in found.told
        assert db.spent == Epsilon(1)
