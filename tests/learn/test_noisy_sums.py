"""The noise to come is told from the plan, and a spend is divided so that it hurts least."""

from __future__ import annotations

import numpy as np
import pytest

import sulq
from sulq import Epsilon, Rho, Sums
from sulq.language.question import Together
from sulq.language.rowfn import Col, Lit, Vector
from sulq.learn.noisy_sums import deviations, divided
from tests.learn.sq.noisy import Arrays

COLUMNS = {"a": sulq.Real(-1, 1), "b": sulq.Real(-1, 1)}


@pytest.mark.parametrize("spend", [Epsilon(1), Rho(0.5)])
def test_the_deviations_are_those_of_the_answer(spend: object) -> None:
    """Before the question as after it, each column its own; Laplace and Gaussian alike."""
    oracle = Arrays(COLUMNS, {"a": [0.5], "b": [0.1]}, seed=1, budget=Rho(1) if isinstance(spend, Rho) else None)
    both = Together((Sums((Lit(1), Vector((Col("a"), Col("b")), 14))), Sums((Col("a"),))))
    found = deviations(oracle.foresee(both, spend=spend))
    answers = oracle.ask(both, spend=spend).answers
    assert [len(part) for part in found] == [3, 1]
    for part, answer in zip(found, answers, strict=True):
        assert part == pytest.approx(answer.released.deviations())
    half = deviations(oracle.foresee(both, spend=type(spend)(spend.exact / 4)))
    assert half[0] == pytest.approx(found[0] * (4 if isinstance(spend, Epsilon) else 2), rel=0.01)


def cost(shares: np.ndarray, widths: np.ndarray, reaches: np.ndarray, *, pure: bool) -> float:
    """The sum of all coordinates' variances, up to a constant."""
    return float((widths * (reaches / shares) ** 2 if pure else widths * reaches**2 / shares).sum())


@pytest.mark.parametrize("pure", [True, False])
def test_no_other_division_has_less_noise(*, pure: bool) -> None:
    """The shares sum to one and are the least of the sum of variances: every other one is worse."""
    rng = np.random.default_rng(2)
    widths, reaches = np.array([1.0, 7.0, 30.0]), np.array([1.0, 3.0, 0.5])
    found = divided([1, 7, 30], reaches.tolist(), pure=pure)
    assert float(sum(found)) == pytest.approx(1)
    best = np.array([float(share) for share in found])
    least = cost(best, widths, reaches, pure=pure)
    for other in rng.dirichlet(best * 50, 200):
        assert cost(other, widths, reaches, pure=pure) >= least * (1 - 1e-12)
    assert cost(np.full(3, 1 / 3), widths, reaches, pure=pure) > least * 1.02  # control: equal shares
