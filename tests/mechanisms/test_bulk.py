"""Noise for many cells: the exact law at every scale, the same as OpenDP's, fresh bits, and no sum in reach of them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2, chi2_contingency

from sulq.errors import CuratorError
from sulq.mechanisms import _opendp, bulk, coins, entropy, release
from sulq.terms.law import GaussianLaw, LaplaceLaw, Law, round_up
from sulq.terms.private import Private
from tests.counts import count
from tests.mechanisms.fit import LEVEL, SIGMAS, drawn, drawn_by_few, fit, moments_off

SCALES = [
    *(Fraction(n, d) for n, d in ((1, 4), (1, 2), (1, 1), (9, 8), (3, 2), (2, 1), (5, 1), (40, 1))),
    *(round_up(Fraction(n, d)) for n, d in ((1, 3), (10, 7), (1000, 3), (10**6, 7))),
    *(Fraction(2**k) for k in (16, 17, 33, 50)),
]


@pytest.mark.parametrize("family", [LaplaceLaw, GaussianLaw])
@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_T7_noise_for_many_cells_follows_its_law(family: type, scale: Fraction) -> None:
    """T7: pmf and moments at every scale, the ends of each branch included (1, 2^16, 2^50)."""
    law = family(scale)
    draw = bulk.laplace if family is LaplaceLaw else bulk.gaussian
    sample = draw(count("noise for many cells: draws at each scale", short=200_000, long=10_000_000), scale)
    assert fit(law, sample) > LEVEL
    assert moments_off(law, sample) < SIGMAS


@pytest.mark.parametrize("law", [LaplaceLaw(Fraction(7, 2)), GaussianLaw(Fraction(7, 2))], ids=["laplace", "gaussian"])
def test_T7_both_samplers_have_the_same_law(law: Law) -> None:
    """A two-sample chi-square against OpenDP; its control, a scale of a fourteenth more, is told apart."""
    many, few = drawn(law, 400_000), drawn_by_few(law, 100_000)
    wide = drawn(type(law)(Fraction(15, 4)), 400_000)

    def alike(one: np.ndarray, other: np.ndarray) -> float:
        counts = [np.bincount(np.clip(sample, -12, 12) + 12, minlength=25) for sample in (one, other)]
        return float(chi2_contingency(counts).pvalue)

    assert alike(many, few) > LEVEL
    assert alike(wide, few) < LEVEL


@pytest.mark.parametrize("exponent", [Fraction(1), Fraction(5, 4), Fraction(1, 3), Fraction(30), Fraction(1, 40)])
def test_T7_powers_have_their_exact_tails(exponent: Fraction) -> None:
    """P(V >= v) = exp(-v exponent): a chi-square over the values that occur."""
    n = 200_000
    found = bulk.powers(n, exponent)
    assert found.min() >= 0
    tails = np.exp(-float(exponent) * np.arange(1000))
    kept = int((n * (tails[:-1] - tails[1:]) >= 20).sum())
    expected = n * np.append(tails[:kept] - tails[1 : kept + 1], tails[kept])
    observed = np.bincount(np.minimum(found, kept), minlength=kept + 1)
    if expected[-1] < 20:
        expected, observed = (np.append(a[:-2], a[-2:].sum()) for a in (expected, observed))
    assert chi2.sf(((observed - expected) ** 2 / expected).sum(), max(len(expected) - 1, 1)) > LEVEL


def test_T7_a_word_beside_an_edge_is_decided_by_more_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first 32 bits of exp(-2) themselves decide nothing; those above and below do, and no more are drawn."""
    edge = math.floor(coins.bounds(Fraction(2), 60)[0] * 2**32)
    more: list[int] = []

    def words(count: int) -> np.ndarray:
        return np.array([more.pop() for _ in range(count)], dtype=np.uint64)

    monkeypatch.setattr(coins, "words", words)
    monkeypatch.setattr(coins, "short_words", lambda _: np.array([edge - 1, edge, edge, edge + 1], dtype=np.uint32))
    more[:] = [0, 2**64 - 1]  # the last first
    assert bulk.powers(4, Fraction(1)).tolist() == [2, 1, 2, 1]
    assert more == []


def test_T7_a_table_of_edges_is_the_exponential_rounded_down() -> None:
    """Every edge holds 2^32 exp(-v exponent) to the last bit, down to the first that vanishes."""
    for exponent in (Fraction(1), Fraction(9, 8), Fraction(7, 1000)):
        edges = bulk._edges(exponent)[::-1].tolist()
        assert all(edge == bulk._first_bits((v + 1) * exponent) > 0 for v, edge in enumerate(edges))
        assert all(
            Fraction(edge, 2**32) <= coins.bounds((v + 1) * exponent, 60)[1] < Fraction(edge + 1, 2**32)
            for v, edge in enumerate(edges)
        )
        assert math.exp(-float(exponent) * (len(edges) + 1)) < 2.0**-32


@pytest.mark.parametrize("law", [LaplaceLaw(Fraction(3)), GaussianLaw(Fraction(3))], ids=["laplace", "gaussian"])
def test_who_draws_is_told_by_the_number_of_cells_alone(law: Law, monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenDP draws below MANY cells; from there on bits are ours, and the noise does not look at the sums."""
    asked: list[int] = []
    honest = entropy.random_bytes
    monkeypatch.setattr(entropy, "random_bytes", lambda size: asked.append(size) or honest(size))
    release(law, Private(np.zeros(bulk.MANY - 1, dtype=np.int64)))
    assert asked == []
    for value in (0, 2**62, -(2**62)):
        found = release(law, Private(np.full(bulk.MANY, value, dtype=np.int64)))
        assert np.abs(found - value).max() < 1000
    assert sum(asked) > 3 * bulk.MANY


def test_T68_without_random_bytes_there_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A source that fails, or gives fewer bytes, ends in one constant error."""

    def dry(_: int) -> bytes:
        raise OSError("no entropy")

    monkeypatch.setattr(entropy, "random_bytes", dry)
    with pytest.raises(CuratorError) as refused:
        release(LaplaceLaw(Fraction(3)), Private(np.zeros(1000, dtype=np.int64)))
    assert refused.value.code == "noise-failed"


def test_T67_no_two_draws_share_bits() -> None:
    """T9, T66: of wide noise no two cells agree, nor do two releases."""
    law = GaussianLaw(Fraction(2**50))
    cells = np.concatenate([drawn(law, 5000), drawn(law, 5000)])
    assert len(np.unique(cells)) > 9990


def test_opendp_itself_is_still_what_prices() -> None:
    """Both samplers have one price: OpenDP's map of the law, held against the exact one (SR22)."""
    assert bulk.sampler("laplace", Fraction(2))(np.zeros(5, dtype=np.int64)).shape == (5,)
    assert _opendp.mapped("laplace", Fraction(2), Fraction(1)) >= 0.5
