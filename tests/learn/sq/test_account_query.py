"""One query as a database is asked it: the pair's quotient, its price and its width."""

from __future__ import annotations

import numpy as np
import pytest

from sulq import Epsilon, Rho, Sums, Unit, col, lit
from sulq.answers.oracle import SpendPlan
from sulq.language.law import LaplaceLaw
from sulq.learn.sq.account import Account, Size, StatQuery
from tests.learn.sq.noisy import Arrays, boolean

ROWS = 200


def paired(kind: type, neighbors: str) -> tuple[Account, StatQuery]:
    database = Arrays(boolean(1), {"x0": [True], "y": [True]}, unit=Unit(neighbors=neighbors), budget=kind(900))
    account = Account(SpendPlan(database, kind(900)), 1, 0.1, sampling=False, family=None)
    return account, StatQuery.of(col("x0").fill(value=False), account, paired=True)


def off(law: object, rows: int, true: int, tau: float) -> float:
    """The exact probability that A'/(A' + B') is farther than tau from the mean, by enumeration."""
    reach = int((14 if isinstance(law, LaplaceLaw) else 9) * float(law.scale)) + 1
    z = np.arange(-reach, reach + 1)
    mass = np.array([law.pmf(int(value)) for value in z])
    above, below = true + z[:, None], rows - true + z[None, :]
    total = above + below
    with np.errstate(all="ignore"):
        mean = np.where(total > 0, np.clip(above / total, 0, 1), 0.5)
    return float(mass @ (np.abs(mean - true / rows) > tau + 1e-12) @ mass)


@pytest.mark.parametrize("kind", [Epsilon, Rho])
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize("tau", [0.03, 0.06])
def test_the_quotient_of_a_pair_is_within_its_price_exactly(kind: type, neighbors: str, tau: float) -> None:
    """Enumerated: off by more than tau with probability at most beta; at an eighth of the price more often."""
    account, query = paired(kind, neighbors)
    question, size = Sums((query.value,)), Size(ROWS, ROWS, kind(1))
    price = query.price(query.foreseen(account, account.probe), account, tau, size)
    worst = {}
    for spend in (price, price / 8):
        law = account.spending.oracle.foresee(question, spend=kind(spend)).parts[0].laws[0]
        worst[spend] = max(off(law, ROWS, true, tau) for true in (0, 20, 100, 200))
    assert worst[price] <= account.each
    assert worst[price / 8] > account.each


@pytest.mark.parametrize("kind", [Epsilon, Rho])
def test_a_spend_buys_the_width_that_costs_it(kind: type) -> None:
    """The tolerance told for a spend is the one whose price it is."""
    account, query = paired(kind, "add_remove")
    size = Size(ROWS, ROWS, kind(1))
    price = query.price(query.foreseen(account, account.probe), account, 0.05, size)
    assert query.reach(query.foreseen(account, kind(price)), account, size) == pytest.approx(0.05, rel=1e-2)


def test_what_is_read_lies_within_the_bounds() -> None:
    """Whatever the noise: a mass of nothing gives the middle, a constant itself."""
    account, query = paired(Epsilon, "add_remove")
    size = Size(ROWS, ROWS, Epsilon(1))
    assert query.read(np.array([-3.0, 2.0]), size) == 0.5
    assert query.read(np.array([-3.0, 20.0]), size) == 0.0
    assert query.read(np.array([30.0, -2.0]), size) == 1.0
    assert query.read(np.array([1.0, 3.0]), size) == 0.25
    plain = StatQuery.of(col("x0").fill(value=False), account, paired=False)
    assert plain.read(np.array([1e6]), size) == 1.0
    assert plain.read(np.array([5.0]), Size(0, 0)) == 0.5
    half = StatQuery.of(lit(0.5), account, paired=True)
    assert half.constant
    assert half.read(np.zeros(0), size) == 0.5
