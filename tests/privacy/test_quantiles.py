"""A chosen quantile and its interval tell neighbouring tables apart by no more than is paid, by their exact laws."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import sulq
from benchmarks.epsilon.quantiles import pmf
from sulq.answers.readings.rank_choice import CountedFirst, gap_of, rank_of
from sulq.compile.plan import draw
from sulq.kernel.scores import Rank, scores
from sulq.language.domain import Int, Schema
from sulq.language.law import ExponentialLaw, FlipLaw, Law
from sulq.language.privacy import Epsilon, Loss, Rho, Unit
from sulq.language.question import Choose, Sums, Together
from sulq.language.rowfn import Col, Each, Lit
from tests.counts import count
from tests.stub import facts

BINS = 12
SHARES = (Fraction(3, 4), Fraction(1, 8), Fraction(1, 8))
NODES, WEIGHTS = np.polynomial.legendre.leggauss(12)


def laid_out(how: str, q: Fraction, unit: Unit, spend: Loss) -> list[tuple[Rank, Law]]:
    """A quantile and its two ends, shifted as their laws need, with the laws that the plan gives them."""
    known = facts(Schema("t", (("x", Int(0, BINS - 1)),)), unit, Rho(9) if isinstance(spend, Rho) else None)
    counts = Sums((Lit(1),), None, (Each(Col("x")),))

    def asked(gap: int) -> Together:
        ranks = (rank_of(how, q), rank_of(how, q, -gap), rank_of(how, q, gap))
        return Together(tuple(Choose(counts, rank) for rank in ranks), SHARES)

    first = draw(asked(1), known, spend)
    question = asked(gap_of(first.parts[1].laws[0], 1, 2))
    parts = draw(question, known, spend).parts
    return [(choice.score, part.laws[0]) for choice, part in zip(question.questions, parts, strict=True)]


def logs(law: Law, found: np.ndarray) -> np.ndarray:
    """The logarithm of each candidate's probability, a row a table: of 12 candidates the integral is exact."""
    gaps = (found.max(axis=1, keepdims=True) - found) / float(law.scale)
    if isinstance(law, ExponentialLaw):
        return -gaps - np.log(np.exp(-gaps).sum(axis=1, keepdims=True))
    heads, total = np.exp(-gaps), np.zeros(gaps.shape)
    for node, weight in zip((NODES + 1) / 2, WEIGHTS / 2, strict=True):
        others = np.log1p(-node * heads)
        total += weight * np.exp(others.sum(axis=1, keepdims=True) - others)
    return -gaps + np.log(total)


def neighbours(rng: np.random.Generator, pairs: int, *, exchanged: bool) -> tuple[np.ndarray, np.ndarray]:
    """Small tables of counts, many of them with hardly a row, beside the same with one row more or another row."""
    tables = rng.poisson(rng.choice([0.0, 0.2, 2.0, 9.0], (pairs, 1)), (pairs, BINS)) * rng.integers(
        0, 2, (pairs, BINS)
    )
    one, other = (np.zeros((pairs, BINS), dtype=np.int64) for _ in range(2))
    one[np.arange(pairs), rng.integers(BINS, size=pairs)] = 1
    if exchanged:
        other[np.arange(pairs), rng.integers(BINS, size=pairs)] = 1
    return tables + one, tables + other


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize("spend", [Epsilon(1), Rho(Fraction(1, 10))], ids=str)
def test_a_quantile_and_its_ends_lose_what_is_paid_SR4_SR5(neighbors, spend):
    """Pairs of neighbours: the losses of the three choices add up to the spend at most (S3.9, SR4).

    Pure: the largest log-ratios add up to epsilon. Else the squares of their ranges, over eight, to rho.
    Control: with half the noise the spend is passed.
    """
    pairs = count("pairs of tables with a quantile and its ends", short=400, long=20_000) // 4
    rng = np.random.default_rng(4)
    worst = 0.0
    for how, q in (("disc", "1/2"), ("cont", "9/10"), ("disc", "99/100"), ("cont", "1/7")):
        lost = np.zeros(pairs)
        tables = neighbours(rng, pairs, exchanged=neighbors == "replace_one")
        for rank, law in laid_out(how, Fraction(q), Unit(neighbors=neighbors), spend):
            before, after = (logs(law, scores(rank, one[..., None])) for one in tables)
            ratios = before - after
            if isinstance(law, FlipLaw):
                lost += np.abs(ratios).max(axis=1)
            else:
                lost += (ratios.max(axis=1) - ratios.min(axis=1)) ** 2 / 8
        paid = float(spend.exact)
        assert lost.max() <= paid * (1 + 1e-9)
        worst = max(worst, lost.max() / paid)
    assert worst > 0.5  # half the noise doubles a pure loss, and takes four times the rho


def test_a_database_draws_by_the_law_that_is_foreseen():
    """Many groups with the same rows, in one ask: the chosen values follow the exact law. Control: twice the scale."""
    groups, values = count("groups whose chosen quantile is drawn", short=2_000, long=20_000), [3, 4, 9, 9, 15, 28]
    frame = pd.DataFrame([(g, x) for g in range(groups) for x in values], columns=["g", "x"])
    columns = {"g": Int(0, groups - 1, missing=False), "x": Int(0, 31, missing=False)}
    db = sulq.connect(frame, table="t", columns=columns, unit=sulq.Unit(), budget=Epsilon(9), synthetic=True)
    answer = db.quantile("x", 0.25, by="g", spend=Epsilon(1), interval=False)
    assert isinstance(answer.reading, CountedFirst)
    seen = np.bincount(answer.released.units[:, 1], minlength=32)
    law = answer.released.noise[1].law
    exact = scores(rank_of("cont", Fraction(1, 4)), np.bincount(values, minlength=32).reshape(1, -1, 1))[0]

    def off(scale: float) -> float:
        expected = pmf(exact, scale) * groups
        return float(((seen - expected) ** 2 / expected).sum())

    assert off(float(law.scale)) < 31 + 2 * np.sqrt(31 * 18) + 2 * 18  # chi-square of 31, passed once in e^18
    assert off(2 * float(law.scale)) > 31 + 2 * np.sqrt(31 * 18) + 2 * 18
