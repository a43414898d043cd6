"""The black-box lower bound: it holds for what we promise, finds what is broken, and has power."""

from __future__ import annotations

import contextlib
import importlib
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import sulq
import sulq.testing
from sulq import Epsilon, Rho, Unit, col
from sulq.audit.distinguish import answers, distinguish, lower_bound
from sulq.audit.statistics import binomial_interval
from sulq.errors import QuestionError
from sulq.testing import neighbours
from tests.audit.people import ones
from tests.counts import count
from tests.privacy.cases import ENGINES, engine, replayed, run


def laplace(epsilon: float, at: int, trials: int, seed: int) -> np.ndarray:
    """Discrete Laplace noise from a seed: a stub, for the bound's own test."""
    random, p = np.random.default_rng(seed), -np.expm1(-epsilon)
    return at + random.geometric(p, trials) - random.geometric(p, trials)


def test_the_bound_holds_and_comes_near() -> None:
    """On a mechanism known to be tight at 1 the bound is at most 1 and at least .9 with N = 200,000 (power)."""
    trials = count("audited draws", short=200_000, long=1_000_000)
    found = lower_bound(laplace(1, 0, trials, 1), laplace(1, 1, trials, 2), claimed=1.0)
    assert found.holds
    assert found.epsilon > 0.9
    assert found.trials == trials // 2


def test_controls_fail() -> None:
    """Half the noise, no noise, and noise that depends on the data: each is found to lose more than claimed."""
    trials = 50_000
    halved = lower_bound(laplace(2, 0, trials, 3), laplace(2, 1, trials, 4), claimed=1.0)
    assert not halved.holds
    assert "ABOVE" in str(halved)
    silent = lower_bound(np.zeros(trials), np.ones(trials), claimed=1.0)
    assert silent.epsilon > 5
    nosy = lower_bound(laplace(1, 0, trials, 5), 3.0 * laplace(1, 0, trials, 6), claimed=0.5)
    assert not nosy.holds


def test_selection_and_test_are_on_different_halves() -> None:
    """Equal laws are never told apart: 200 audits of 2,000 draws of one law at alpha 1e-6 find no epsilon."""
    bounds = [
        lower_bound(laplace(0.1, 0, 2_000, 2 * i), laplace(0.1, 0, 2_000, 2 * i + 1), claimed=0.0).epsilon
        for i in range(200)
    ]
    assert max(bounds) == 0.0


def test_four_ends_share_alpha(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways round are looked at and the better one is told: each of the four ends has a quarter of alpha."""
    asked = []

    def listening(hits: int, trials: int, alpha: float) -> tuple[float, float]:
        asked.append(alpha)
        return binomial_interval(hits, trials, alpha)

    monkeypatch.setattr(importlib.import_module("sulq.audit.distinguish"), "binomial_interval", listening)
    lower_bound(laplace(1, 0, 400, 1), laplace(1, 1, 400, 2), claimed=1.0, alpha=0.02)
    assert asked == [0.005] * 4


def test_through_the_public_door() -> None:
    """A count on neighbours, drawn through the API: within its price; the same without noise is found at once."""
    trials = count("draws through the public door", short=12_000, long=200_000)
    each = Epsilon(Fraction(1, 2))
    found = distinguish(ones(3), ones(4), sulq.lit(1), each=each, trials=trials)
    assert found.holds
    assert found.epsilon > 0.2
    bare = distinguish(ones(3, sulq.testing.exact), ones(4, sulq.testing.exact), sulq.lit(1), each=each, trials=400)
    assert not bare.holds
    drawn = answers(ones(3), sulq.lit(1), each=each, trials=1_000)
    assert drawn.std() == pytest.approx(np.sqrt(2 * 4), rel=0.3)  # scale 2: the noise of an ask of its own


def test_too_few_answers_and_other_budgets_are_refused() -> None:
    """An audit needs answers, and databases that can pay for them in epsilon."""
    with pytest.raises(QuestionError):
        lower_bound(np.zeros(5), np.zeros(5), claimed=1.0)

    @contextlib.contextmanager
    def in_rho():
        with sulq.connect(pa.table({"x": [1]}), columns={"x": sulq.Int(0, 1)}, budget=Rho(1)) as db:
            yield db

    with pytest.raises(QuestionError) as refused:
        answers(in_rho, sulq.lit(1), each=Epsilon(1), trials=5)
    assert refused.value.code == "bad-parameter"


@pytest.mark.parametrize("kind", ENGINES)
def test_whoever_writes_and_orders_all_rows_but_one_tells_no_more_T65(kind: str) -> None:
    """T65: poisoned rows of bad cells in any order around one honest person.

    Bar: replay finds nothing, and no order moves an exact sum. Control: kept rows picked by place let the order show.
    """
    random, unit = np.random.default_rng(65), Unit("pid", 2)
    poison = [row for i in range(4) for row in neighbours.someone(random, f"attacker{i}", 2)]
    poison += [neighbours.row(random, f"attacker{i}", special=1.0) for i in range(4)]
    honest = [neighbours.row(random, "victim", special=0.0) for _ in range(3)]
    programs = [
        lambda asks: asks.sum("gain", by="city", spend=Epsilon(1)),
        lambda asks: asks.count(col("flag"), spend=Epsilon(1)),
        lambda asks: asks.mean("debt", spend=Epsilon(1)),
    ]
    orders = [poison, poison[::-1], [poison[i] for i in random.permutation(len(poison))]]
    for order in orders:
        assert replayed(kind, order, order[:3] + honest + order[3:], programs, unit) == []
    assert len({summed(kind, [*order, *honest], programs, unit) for order in orders}) == 1
    assert len({summed("plain:row number", [*order, *honest], programs, unit) for order in orders}) > 1


def summed(kind: str, rows: list, programs: list, unit: Unit) -> str:
    """The exact sums that meet the noise."""
    with engine(kind, rows, unit) as source:
        return repr([call.given.tolist() for call in run(source, programs, unit, Epsilon(100)).calls])
