"""Who is in the data: tracing through marginals, and canaries in one run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import sulq
import sulq.testing
from sulq import Epsilon, Int, Rho
from sulq.audit.attacks import canaries, membership, one_run_epsilon
from tests.counts import count


def traced(seed: int, budget, people: int = 80, attributes: int = 1_000):
    """A database of about half of some candidates, each a row of a public table of profiles."""
    random = np.random.default_rng(seed)
    common = random.uniform(0.2, 0.8, attributes)
    profiles = (random.random((people, attributes)) < common).astype(np.int64)
    inside = random.random(people) < 0.5
    table = pa.table({"profile": np.flatnonzero(inside)})
    db = sulq.connect(table, columns={"profile": Int(0, people - 1)}, budget=budget, synthetic=True)
    settings = {
        "attributes": sulq.lookup(sulq.each("profile"), profiles.tolist()),
        "candidates": profiles.astype(np.float64),
        "inside": inside,
        "frequencies": common,
    }
    return db, settings


@pytest.mark.parametrize("spend", [Epsilon(1), Rho(0.05)], ids=str)
def test_tracing_through_1000_marginals_stays_within_the_guarantee_T63(spend) -> None:
    """T63: likelihood-ratio tracing of 80 candidates on a release of 1,000 marginals.

    Bar: right guesses within what the spend allows. Control: with the noise off 95% or more, which is past that.
    """
    databases = count(f"databases traced at {spend}", short=2, long=40)
    total = None
    for seed in range(databases):
        db, settings = traced(seed, spend)
        with db:
            found = membership(db, spend=spend, **settings)
            total = found if total is None else total + found
            if not seed:
                control = membership(sulq.testing.exact(db), spend=spend, **settings)
                assert control.succeeded
                assert not replace(control, allowed=found.allowed).within
    assert total.within


def canary_database(seed: int, seats: int = 1_000):
    inside = np.random.default_rng(seed).random(seats) < 0.5
    table = pa.table({"seat": np.flatnonzero(inside)})
    return sulq.connect(table, columns={"seat": Int(0, seats - 1)}, budget=Epsilon(2), synthetic=True), inside


def test_canaries_in_one_run_show_no_more_epsilon_than_was_paid_for_T64() -> None:
    """T64: 1,000 canaries put in by fair coins, one histogram at epsilon 1, audited in a single run.

    Bar: the lower bound is at most 1, and above .1, so that it has power. Control: without noise it is above 3.
    """
    db, inside = canary_database(3)
    with db:
        found = canaries(db, person=sulq.col("seat"), inside=inside, spend=Epsilon(1))
        assert found.within
        assert 0.1 < one_run_epsilon(found.right, found.guesses) <= 1
        control = canaries(sulq.testing.exact(db), person=sulq.col("seat"), inside=inside, spend=Epsilon(1))
        assert control.succeeded
        assert one_run_epsilon(control.right, control.guesses) > 3


def test_a_coin_shows_nothing() -> None:
    """Half of the guesses right is no evidence at all."""
    assert one_run_epsilon(50, 100) == 0
    assert one_run_epsilon(0, 100) == 0
