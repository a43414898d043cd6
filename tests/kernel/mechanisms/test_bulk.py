"""Noise for one cell or many: the exact law at every scale, that of OpenDP, fresh bits, and no sum in reach of them."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2, chi2_contingency

from sulq.cli.audit import opendp
from sulq.errors import CuratorError
from sulq.kernel import coins, entropy
from sulq.kernel.mechanisms import bulk, release
from sulq.kernel.private import SATURATED as LIMIT
from sulq.kernel.private import Private
from sulq.language.law import LARGEST_SCALE, SMALLEST_SCALE, AboveLaw, GaussianLaw, LaplaceLaw, Law, round_up
from tests.counts import count
from tests.kernel.mechanisms.fit import LEVEL, SIGMAS, drawn, drawn_one_by_one, fit, moments_off

SCALES = [
    *(Fraction(n, d) for n, d in ((1, 4), (1, 2), (1, 1), (9, 8), (3, 2), (2, 1), (5, 1), (40, 1))),
    *(round_up(Fraction(n, d)) for n, d in ((1, 3), (10, 7), (1000, 3), (10**6, 7))),
    *(Fraction(2**k) for k in (16, 17, 33, 50)),
    *(Fraction(n, 3) for n in (1, 10, 2**51)),  # no doubles: the sampler takes any fraction
]


@pytest.mark.parametrize("family", [LaplaceLaw, GaussianLaw])
@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_noise_for_many_cells_follows_its_law_T7(family: type, scale: Fraction) -> None:
    """T7: pmf and moments at every scale, the ends of each branch included (1, 2^16, 2^50)."""
    law = family(scale)
    draw = bulk.laplace if family is LaplaceLaw else bulk.gaussian
    sample = draw(count("noise for many cells: draws at each scale", short=200_000, long=10_000_000), scale)
    assert fit(law, sample) > LEVEL
    assert moments_off(law, sample) < SIGMAS


@pytest.mark.parametrize("family", [LaplaceLaw, GaussianLaw])
@pytest.mark.parametrize("scale", [Fraction(3, 8), Fraction(1), Fraction(7, 2), Fraction(2**40)], ids=str)
def test_noise_for_one_cell_follows_its_law_T7(family: type, scale: Fraction) -> None:
    """T7: releases of one cell each fit the pmf. Control: they do not fit the law of a scale of a quarter more."""
    law = family(scale)
    sample = drawn_one_by_one(law, count("noise for one cell: draws at each scale", short=10_000, long=200_000))
    assert fit(law, sample) > LEVEL
    assert fit(family(scale * Fraction(5, 4)), sample) < LEVEL


@pytest.mark.parametrize("law", [LaplaceLaw(Fraction(7, 2)), GaussianLaw(Fraction(7, 2))], ids=["laplace", "gaussian"])
def test_the_law_is_that_of_opendp_T7(law: LaplaceLaw | GaussianLaw) -> None:
    """T7: a two-sample chi-square against OpenDP, for many cells and for one. Control: a scale of a fourteenth more."""
    theirs = opendp.drawn(law, 100_000)
    wide = drawn(type(law)(Fraction(15, 4)), 400_000)

    def alike(one: np.ndarray, other: np.ndarray) -> float:
        counts = [np.bincount(np.clip(sample, -12, 12) + 12, minlength=25) for sample in (one, other)]
        return float(chi2_contingency(counts).pvalue)

    assert alike(drawn(law, 400_000), theirs) > LEVEL
    assert alike(drawn_one_by_one(law, 10_000), theirs) > LEVEL
    assert alike(wide, theirs) < LEVEL


@pytest.mark.parametrize("exponent", [Fraction(1), Fraction(5, 4), Fraction(1, 3), Fraction(30), Fraction(1, 40)])
def test_powers_have_their_exact_tails_T7(exponent: Fraction) -> None:
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


def test_a_word_beside_an_edge_is_decided_by_more_bits_T7(monkeypatch: pytest.MonkeyPatch) -> None:
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


def decided(words: list[int], exponent: Fraction, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What the first 32 bits decide; -1 where more are asked for."""
    with monkeypatch.context() as patched:
        patched.setattr(coins, "short_words", lambda _: np.array(words, dtype=np.uint32))
        patched.setattr(coins, "powers_above", lambda *_, **__: -1)
        return bulk.powers(len(words), exponent).tolist()


def right(word: int, found: int, exponent: Fraction) -> bool:
    """Whether every real number that begins with these bits lies below so many powers, by decimal bounds."""
    least = coins.bounds(found * exponent, 60)[0] if found else Fraction(1)
    return Fraction(word + 1, 2**32) <= least and Fraction(word, 2**32) >= coins.bounds((found + 1) * exponent, 60)[1]


def beside(exponent: Fraction) -> list[int]:
    """Words at every power's first 32 bits, down to the first that vanishes, and up to three beside them; the ends."""
    powers = itertools.takewhile(
        bool, (math.floor(coins.bounds(v * exponent, 60)[0] * 2**32) for v in itertools.count(1))
    )
    near = {edge + off for edge in powers for off in range(-3, 4)}
    return sorted({0, 1, 2, 2**32 - 2, 2**32 - 1} | {word for word in near if 0 <= word < 2**32})


@pytest.mark.parametrize("exponent", [Fraction(1), Fraction(9, 8), Fraction(7, 1000), Fraction(1024)])
def test_a_word_is_decided_as_decimal_bounds_do_T7(exponent: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside every power what is decided is right, and what holds a power, or is zero, is left to more bits."""
    words = beside(exponent)
    found = dict(zip(words, decided(words, exponent, monkeypatch), strict=True))
    assert all(right(word, powers, exponent) for word, powers in found.items() if powers >= 0)
    edges = {word for word, powers in found.items() if powers < 0}
    assert 0 in edges
    assert all(math.floor(coins.bounds(v * exponent, 60)[0] * 2**32) in edges for v in range(1, 22))
    assert len(edges) < len(words) / 2


def test_a_logarithm_worked_out_roughly_changes_no_number_T7(monkeypatch: pytest.MonkeyPatch) -> None:
    """Off by 2^-42 all that is decided is right. Control: off by 2^-20 it is not."""
    exponent, log = Fraction(1, 100), np.log
    words = beside(exponent)

    def wrong(off: float) -> int:
        with monkeypatch.context() as patched:
            patched.setattr(np, "log", lambda x: log(x) * (1.0 + off))
            found = decided(words, exponent, monkeypatch)
        return sum(not right(word, powers, exponent) for word, powers in zip(words, found, strict=True) if powers >= 0)

    assert wrong(2.0**-42) == wrong(-(2.0**-42)) == 0
    assert wrong(2.0**-20) > 0


@pytest.mark.parametrize("cells", [1, 31, 1000])
@pytest.mark.parametrize("law", [LaplaceLaw(Fraction(3)), GaussianLaw(Fraction(3))], ids=["laplace", "gaussian"])
def test_the_noise_does_not_look_at_the_sums_T36(law: Law, cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bits give the same noise on any sums, and no other bits are asked for. Control: fresh bits do not."""
    bits: list[bytes] = []
    honest = entropy.random_bytes
    monkeypatch.setattr(entropy, "random_bytes", lambda size: bits.append(honest(size)) or bits[-1])
    noise = release(law, Private(np.zeros(cells, dtype=np.int64)))
    assert sum(map(len, bits)) >= 4 * cells
    for value in (5, LIMIT, -LIMIT):
        again = iter(bits)
        monkeypatch.setattr(entropy, "random_bytes", lambda _size, again=again: next(again))
        found = release(law, Private(np.full(cells, value, dtype=np.int64)))
        assert (found - value).tolist() == noise.tolist()
        assert next(again, None) is None
    monkeypatch.setattr(entropy, "random_bytes", honest)
    assert drawn(law, 1000).tolist() != drawn(law, 1000).tolist()


def test_the_smallest_noise_is_none_and_the_largest_is_wide_T8() -> None:
    """T8: at the smallest scale a unit of noise has probability e^-1024 and less; at the largest all cells differ."""
    for family in (LaplaceLaw, GaussianLaw):
        assert not drawn(family(SMALLEST_SCALE), 100_000).any()
        assert len(set(drawn(family(LARGEST_SCALE), 1000).tolist())) == 1000


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("family", [LaplaceLaw, GaussianLaw])
def test_the_widest_noise_on_the_largest_sum_stays_within_64_bits_T5(
    family: type, sign: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T5: with all coins at their extreme the release is the clamped sum plus the noise, as whole numbers add up.

    Control: with six times as many powers it would wrap. One power more than there may be is an error.
    """
    width = int(LARGEST_SCALE) + (family is GaussianLaw)

    def extreme(most: int) -> None:
        monkeypatch.setattr(bulk, "powers", lambda many, _: np.full(many, most - 1))
        monkeypatch.setattr(coins, "uniform", lambda many, bound: np.full(many, bound - 1))
        monkeypatch.setattr(coins, "heads", lambda gaps, _: np.ones(len(gaps), dtype=np.bool_))
        monkeypatch.setattr(coins, "tossed", lambda exponents, _: np.ones(len(exponents), dtype=np.bool_))
        monkeypatch.setattr(bulk, "_bits", lambda many: np.full(many, sign < 0))
        for draw in (bulk.laplace, bulk.gaussian):
            monkeypatch.setattr(draw, "__defaults__", (2**63 - 1,))  # else what wraps is drawn again, for ever

    def wrong(most: int) -> bool:
        noise = sign * (most * width - 1)
        ends = [2**63 - 1, -(2**63), LIMIT, -LIMIT, 0]
        found = release(family(LARGEST_SCALE), Private(np.array(ends, dtype=np.int64)))
        return found.tolist() != [max(-LIMIT, min(LIMIT, end)) + noise for end in ends]

    for most, wraps in ((bulk._MOST, False), (6 * bulk._MOST, True)):
        extreme(most)
        assert wrong(most) is wraps
    monkeypatch.undo()
    monkeypatch.setattr(coins, "short_words", lambda many: np.zeros(many, dtype=np.uint32))
    monkeypatch.setattr(coins, "powers_above", lambda *_, **__: bulk._MOST)
    with pytest.raises(CuratorError) as refused:
        release(family(LARGEST_SCALE), Private(np.zeros(1, dtype=np.int64)))
    assert refused.value.code == "noise-failed"


def test_the_widest_noise_wraps_no_threshold_T5(monkeypatch: pytest.MonkeyPatch) -> None:
    """T5: the largest sum passes and the smallest does not, whatever noise of the widest scale both get."""
    law = AboveLaw(LARGEST_SCALE, LARGEST_SCALE, 1)
    widest = bulk._MOST * int(LARGEST_SCALE)
    for noise in (widest, -widest):
        monkeypatch.setattr(bulk, "laplace", lambda many, _, noise=noise: np.full(many, noise))
        assert release(law, Private(np.array([[2**63 - 1], [-(2**63)]]))).tolist() == [[0], [1]]


def test_without_random_bytes_there_is_no_answer_T68(monkeypatch: pytest.MonkeyPatch) -> None:
    """A source that fails, or gives fewer bytes, ends in one constant error."""

    def dry(_: int) -> bytes:
        raise OSError("no entropy")

    monkeypatch.setattr(entropy, "random_bytes", dry)
    with pytest.raises(CuratorError) as refused:
        release(LaplaceLaw(Fraction(3)), Private(np.zeros(1000, dtype=np.int64)))
    assert refused.value.code == "noise-failed"


def test_no_two_draws_share_bits_T67() -> None:
    """T9, T66: of wide noise no two cells agree, nor do two releases."""
    law = GaussianLaw(Fraction(2**50))
    cells = np.concatenate([drawn(law, 5000), drawn(law, 5000)])
    assert len(np.unique(cells)) > 9990
