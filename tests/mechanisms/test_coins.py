"""Exact coins: bias exp(-gap/scale), whatever floats do; bits used once; uniform numbers without bias."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, chi2

from sulq.mechanisms import coins, entropy

ALARM = 1e-8


@given(st.integers(1, 10**25), st.integers(1, 10**9), st.integers(10, 60))
@settings(deadline=None)
def test_the_bounds_of_an_exponential_hold_it(top: int, bottom: int, digits: int) -> None:
    """Decimal bounds enclose exp(-x) as mpmath gives it to twice the digits, and tighten with their number."""
    low, high = coins.bounds(Fraction(top, bottom), digits)
    assert 0 <= low < high <= 1
    with mpmath.workdps(2 * digits + 40):
        value = mpmath.exp(-mpmath.mpf(top) / bottom)
        if value > mpmath.mpf(10) ** -4900:
            assert mpmath.mpf(low.numerator) / low.denominator <= value <= mpmath.mpf(high.numerator) / high.denominator
            assert float((high - low) / high) < 10.0 ** (3 - digits) * max(1.0, top / bottom)
        else:
            assert high <= Fraction(1, 10**4000)


def wordly(monkeypatch: pytest.MonkeyPatch, given_words: list[int]) -> list[int]:
    """Give these words for random ones, in order; what is left is returned for a look."""
    left = list(given_words)

    def words(count: int) -> np.ndarray:
        return np.array([left.pop(0) for _ in range(count)], dtype=np.uint64)

    monkeypatch.setattr(coins, "words", words)
    return left


@pytest.mark.parametrize("gap", [1, 2, 7, 40, 44, 45, 700, 2**62])
@pytest.mark.parametrize("scale", [Fraction(1), Fraction(3, 2), Fraction(1, 1024), Fraction(2**50)])
def test_T7_the_word_decides_as_exact_arithmetic_does(
    gap: int, scale: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words just below and above 2^64 exp(-gap/scale), and at random, fall as the exact comparison says (T7)."""
    low, high = coins.bounds(Fraction(gap) / scale, 60)
    edge = math.floor(low * 2**64)
    near = [edge + move for move in (-5000, -2, -1, 1, 2, 5000)]
    tried = [word for word in (*near, 0, 1, 2**63, 2**64 - 1) if 0 <= word < 2**64]
    for word in tried:
        surely_heads = Fraction(word + 1, 2**64) <= low
        surely_tails = Fraction(word, 2**64) >= high
        if surely_heads or surely_tails:
            wordly(monkeypatch, [word])
            assert coins.heads(np.array([gap]), scale).tolist() == [surely_heads]


def test_T7_an_undecided_word_is_decided_by_more_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where 64 bits of U agree with exp(-1), the next 64 decide; where those agree too, the next."""
    low, _ = coins.bounds(Fraction(1), 100)
    digits = math.floor(low * 2**192)
    first, second, third = digits >> 128, digits >> 64 & (2**64 - 1), digits & (2**64 - 1)
    for words, expected, unused in (
        ([first, second - 1, 9], True, [9]),
        ([first, second + 1, 9], False, [9]),
        ([first, second, third - 1], True, []),
        ([first, second, third + 1], False, []),
    ):
        left = wordly(monkeypatch, words)
        assert coins.heads(np.array([1]), Fraction(1)).tolist() == [expected]
        assert left == unused


def test_a_gap_of_zero_is_always_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    """exp(0) is 1: no word is tails."""
    wordly(monkeypatch, [2**64 - 1, 0])
    assert coins.heads(np.array([0, 0]), Fraction(1)).all()


@pytest.mark.parametrize(
    ("gap", "scale"), [(1, Fraction(1)), (3, Fraction(2)), (1, Fraction(1000)), (9, Fraction(3, 2))]
)
def test_T7_heads_come_at_their_rate(gap: int, scale: Fraction) -> None:
    """A binomial test at 1e-8 over 400,000 coins (T7). Control: a bias off by a tenth, a rare one by half."""
    n = 400_000
    rate = math.exp(-gap / float(scale))

    def off(count: int, p: float) -> bool:
        return min(binom.cdf(count, n, p), binom.sf(count - 1, n, p)) < ALARM / 2

    count = int(coins.heads(np.full(n, gap), scale).sum())
    assert not off(count, rate)
    assert off(count, rate * (0.9 if rate > 0.1 else 0.5))


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 64, 1000])
def test_T7_numbers_below_a_bound_are_uniform(bound: int) -> None:
    """Chi-square at 1e-8; numbers stay below their bound."""
    n = 20_000
    found = coins.below(np.full(n, bound))
    counts = np.bincount(found, minlength=bound)
    assert len(counts) == bound
    if bound > 1:
        assert chi2.sf(((counts - n / bound) ** 2 / (n / bound)).sum(), bound - 1) > ALARM


def test_a_word_past_the_last_multiple_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """2^64 is 1 modulo 3: the one word too many is refused, the one before it is not."""
    left = wordly(monkeypatch, [2**64 - 1, 5])
    assert coins.below(np.array([3])).tolist() == [2]
    assert left == []
    left = wordly(monkeypatch, [2**64 - 2, 5])
    assert coins.below(np.array([3])).tolist() == [(2**64 - 2) % 3]
    assert left == [5]


def test_T66_coins_draw_from_the_one_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each coin takes eight fresh bytes of the operating system's generator, and none twice (T66)."""
    asked: list[int] = []
    honest = entropy.random_bytes

    def counted(count: int) -> bytes:
        asked.append(count)
        return honest(count)

    monkeypatch.setattr(entropy, "random_bytes", counted)
    coins.heads(np.arange(1000), Fraction(10))
    assert asked[0] == 8000
    assert sum(asked) - 8000 in (0, 8, 16)
    assert Counter(coins.words(4096).tolist()).most_common(1)[0][1] == 1
