"""Exact coins: bias exp(-exponent), whatever floats do; bits used once; uniform numbers without bias."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, chi2

from sulq.kernel import coins, entropy

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
    """Give these words for random ones, short or long, in order; what is left is returned for a look."""
    left = list(given_words)

    def words(count: int) -> np.ndarray:
        return np.array([left.pop(0) for _ in range(count)], dtype=np.uint64)

    monkeypatch.setattr(coins, "words", words)
    monkeypatch.setattr(coins, "short_words", lambda count: words(count).astype(np.uint32))
    return left


@pytest.mark.parametrize("gap", [1, 2, 7, 40, 44, 45, 700, 2**62])
@pytest.mark.parametrize("scale", [Fraction(1), Fraction(3, 2), Fraction(1, 1024), Fraction(2**50), Fraction(10**6, 7)])
def test_the_word_decides_as_exact_arithmetic_does_T7(
    gap: int, scale: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words just below and above 2^32 exp(-gap/scale), and at random, fall as the exact comparison says (T7)."""
    low, high = coins.bounds(Fraction(gap) / scale, 60)
    edge = math.floor(low * 2**32)
    near = [edge + move for move in (-5000, -2, -1, 1, 2, 5000)]
    tried = [word for word in (*near, 0, 1, 2**31, 2**32 - 1) if 0 <= word < 2**32]
    decided = 0
    for word in tried:
        surely_heads = Fraction(word + 1, 2**32) <= low
        surely_tails = Fraction(word, 2**32) >= high
        if surely_heads or surely_tails:
            decided += 1
            wordly(monkeypatch, [word])
            assert coins.heads(np.array([gap]), scale).tolist() == [surely_heads]
    assert decided >= 3


def test_an_undecided_word_is_decided_by_more_bits_T7(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where 32 bits of U agree with exp(-1), the next 64 decide; where those agree too, the next."""
    low, _ = coins.bounds(Fraction(1), 100)
    digits = math.floor(low * 2**160)
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


def test_an_exponent_worked_out_roughly_changes_no_coin_T7(monkeypatch: pytest.MonkeyPatch) -> None:
    """Off by 2^-41 on either side, a given exponent decides as the exact one does, near its edge and far from it.

    Control: off by a thousandth, it does not.
    """
    exponent = Fraction(7, 3)
    edge = math.floor(coins.bounds(exponent, 60)[0] * 2**32)
    words = [edge + move for move in (-2, -1, 1, 2, 1000, -1000)]

    def found(off: float) -> list[bool]:
        wordly(monkeypatch, words)
        return coins.tossed(np.full(len(words), float(exponent) + off), lambda _: exponent).tolist()

    true = [word < edge for word in words]
    assert found(0) == found(2.0**-41) == found(-(2.0**-41)) == true
    assert found(1e-3) != true


def test_powers_above_a_number_are_counted_with_as_many_bits_as_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """U below exp(-2) and above exp(-3) has two powers of exp(-1) above it; beside exp(-2) more bits tell."""
    second = math.floor(coins.bounds(Fraction(2), 60)[0] * 2**96)
    for words, expected in (([], 2), ([second % 2**64 - 1], 2), ([second % 2**64 + 1], 1)):
        start = second >> 64 if words else 2**32 // 15
        left = wordly(monkeypatch, words)
        assert coins.powers_above(start, Fraction(1), bits=32) == expected
        assert left == []


def test_a_gap_of_zero_is_always_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    """exp(0) is 1: no word is tails."""
    wordly(monkeypatch, [2**32 - 1, 0])
    assert coins.heads(np.array([0, 0]), Fraction(1)).all()


@pytest.mark.parametrize(
    ("gap", "scale"), [(1, Fraction(1)), (3, Fraction(2)), (1, Fraction(1000)), (9, Fraction(3, 2))]
)
def test_heads_come_at_their_rate_T7(gap: int, scale: Fraction) -> None:
    """A binomial test at 1e-8 over 400,000 coins (T7). Control: a bias off by a tenth, a rare one by half."""
    n = 400_000
    rate = math.exp(-gap / float(scale))

    def off(count: int, p: float) -> bool:
        return min(binom.cdf(count, n, p), binom.sf(count - 1, n, p)) < ALARM / 2

    count = int(coins.heads(np.full(n, gap), scale).sum())
    assert not off(count, rate)
    assert off(count, rate * (0.9 if rate > 0.1 else 0.5))


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 64, 1000])
@pytest.mark.parametrize("many", [lambda n, bound: coins.below(np.full(n, bound)), coins.uniform], ids=["each", "one"])
def test_numbers_below_a_bound_are_uniform_T7(bound: int, many: Callable[[int, int], np.ndarray]) -> None:
    """Chi-square at 1e-8; numbers stay below their bound."""
    n = 20_000
    found = many(n, bound)
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


def test_a_short_word_past_the_last_multiple_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """2^32 is 1 modulo 3, as 2^64 is; of a bound that divides it no word is refused; wide bounds take long words."""
    left = wordly(monkeypatch, [2**32 - 1, 5])
    assert (coins.uniform(1, 3).tolist(), left) == ([2], [])
    left = wordly(monkeypatch, [2**32 - 1, 5])
    assert (coins.uniform(1, 2**16).tolist(), left) == ([2**16 - 1], [5])
    wordly(monkeypatch, [2**50 + 7])
    assert coins.uniform(1, 2**50).tolist() == [7]


def test_coins_draw_from_the_one_source_T66(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each coin takes four fresh bytes of the operating system's generator, and none twice (T66)."""
    asked: list[int] = []
    honest = entropy.random_bytes

    def counted(count: int) -> bytes:
        asked.append(count)
        return honest(count)

    monkeypatch.setattr(entropy, "random_bytes", counted)
    coins.heads(np.arange(1000), Fraction(10))
    assert asked[0] == 4000
    assert sum(asked) - 4000 in (0, 8, 16)
    assert Counter(coins.words(4096).tolist()).most_common(1)[0][1] == 1
