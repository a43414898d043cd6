"""The respondent's coins: exact biases, rounded towards privacy, from fresh bits alone."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from sulq.kernel import coins as exact
from sulq.kernel import entropy
from sulq.local import coins

EPSILONS = [Fraction(1, 10**6), Fraction(1, 10), Fraction(1), Fraction(5, 2), Fraction(20), Fraction(1000)]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("others", [1, 3, 63, 2**16 - 1])
def test_a_bias_is_the_next_below_the_ideal_one(epsilon: Fraction, others: int) -> None:
    """t/2^64 <= 1/(1 + others e^-epsilon) < (t + 1)/2^64, against mpmath; one more, the control, would leak."""
    mpmath.mp.dps = 500
    ideal = 1 / (1 + others * mpmath.exp(-mpmath.mpf(epsilon.numerator) / epsilon.denominator)) * 2**64
    kept = coins.keep(others, epsilon)
    assert kept <= ideal
    assert kept + 1 > ideal or kept == 2**64 - 1
    assert kept / (2**64 - kept) <= float(mpmath.exp(float(epsilon)) / others) * (1 + 1e-9)


def test_a_lie_is_the_rest_of_a_kept_bit() -> None:
    """Rounded up where the other is rounded down."""
    for epsilon in EPSILONS:
        assert coins.lie(epsilon) + coins.keep(1, epsilon) == 2**64
        assert Fraction(coins.lie(epsilon), 2**64) >= 1 / (1 + 1 / exact.bounds(epsilon, 80)[0])


@pytest.mark.parametrize("threshold", [0, 1, 2**56, 2**56 + 5, 77 * 2**56 + 123456789, 2**63, 2**64 - 1])
def test_a_coin_is_the_comparison_of_sixty_four_bits(threshold: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A first byte and, where it is close, 56 bits more: the same as one number of 64 bits, whatever the bits are."""
    rng = np.random.default_rng(5)
    first = np.r_[rng.integers(0, 256, 500), np.full(500, threshold >> 56), np.full(20, 255)].astype(np.uint8)
    more: list[int] = []

    def words(count: int) -> np.ndarray:
        near = [(threshold + off) % 2**56 << 8 | 7 for off in (-1, 0, 1)]
        drawn = np.array([near[i % 3] for i in range(count)], dtype=np.uint64)
        more.extend(int(word) >> 8 for word in drawn)
        return drawn

    monkeypatch.setattr(entropy, "random_bytes", lambda count: first[:count].tobytes())
    monkeypatch.setattr(exact, "words", words)
    found = coins.heads(first.size, threshold)
    rest = iter(more)
    whole = [(int(byte) << 56) + (next(rest) if byte == threshold >> 56 else 0) for byte in first]
    assert found.tolist() == [number < threshold for number in whole]


def test_coins_fall_as_often_as_they_should() -> None:
    """A million coins at three biases within 6 standard errors (false alarm 2e-9 each); a bias .007 off is not."""
    n = 1_000_000
    for bias in (0.01, 0.27, 0.5):
        found = coins.heads(n, int(bias * 2**64)).mean()
        error = (bias * (1 - bias) / n) ** 0.5
        assert abs(found - bias) < 6 * error
        assert abs(found - (bias + 0.007)) > 6 * error


def test_every_number_is_equally_likely() -> None:
    """Chi-square of a million draws below 7, whose mean is 6 and which passes 60 once in 2e10 times; of 8 it fails."""
    counts = np.bincount(coins.uniform(1_000_000, 7), minlength=8)
    assert ((counts[:7] - 1e6 / 7) ** 2 / (1e6 / 7)).sum() < 60
    assert ((counts - 1e6 / 8) ** 2 / (1e6 / 8)).sum() > 60


def test_a_bias_of_one_is_refused() -> None:
    """A report that is never randomised is none."""
    with pytest.raises(ValueError, match="bias"):
        coins.heads(3, 2**64)
