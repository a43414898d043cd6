"""Centred binomial noise: its exact target, its sampler, and why it is for whole sums alone."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from sulq.errors import CuratorError
from sulq.kernel import entropy
from sulq.kernel.mechanisms import priced, release
from sulq.kernel.mechanisms.bulk import heads
from sulq.kernel.private import Private
from sulq.language.law import BinomialLaw
from sulq.language.sublinear import coins_exact
from tests.counts import count
from tests.kernel.mechanisms.fit import (
    LEVEL,
    SIGMAS,
    correlation_off,
    drawn,
    exceedance_off,
    fit,
    moments_off,
    ties_off,
)

COINS = [2, 30, 64, 400, 10_180, *(4, 10, 62, 66, 126, 128, 130, 1000, 1022, 4096), *(2**k + 2 for k in range(13, 19))]


def exact_promises(coins: int, epsilon: Fraction, queries: int) -> tuple[Fraction, float]:
    """Pr[loss > epsilon] and delta(epsilon) over one or two answers, from exact binomial coefficients."""
    ways = [math.comb(coins, k) for k in range(coins + 1)]
    chances = [Fraction(way, 2**coins) for way in ways]
    losses = [math.log(ways[k]) - math.log(ways[k + 1]) if k < coins else math.inf for k in range(coins + 1)]
    pairs = list(zip(losses, chances, strict=True))
    if queries == 2:
        pairs = [(a + b, p * q) for a, p in pairs for b, q in pairs]
    above = [(loss, p) for loss, p in pairs if loss > float(epsilon) - 1e-12]
    return sum((p for _, p in above), Fraction(0)), math.fsum(
        float(p) * max(0.0, -math.expm1(float(epsilon) - loss)) for loss, p in above
    )


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-6), (1, 0.05), (3, 1e-3), (0.5, 0.01)])
@pytest.mark.parametrize("queries", [1, 2])
def test_searched_coins_meet_the_exact_target_T20(epsilon: float, delta: float, queries: int) -> None:
    """T20, SR8: by exact coefficients the searched coins keep both promises; half as many break them."""
    level = Fraction(epsilon)
    coins = coins_exact(epsilon, delta, queries)
    assert exact_promises(coins, level, queries)[0] <= delta
    assert exact_promises(coins // 4 * 2, level, queries)[0] > delta
    coins = coins_exact(epsilon, delta, queries, guarantee="dp")
    assert exact_promises(coins, level, queries)[1] <= delta
    assert exact_promises(coins // 4 * 2, level, queries)[1] > delta


def test_neither_epsilon_nor_rho_exists_T20() -> None:
    """T20, S1.5: the outermost outcome comes from one neighbour alone (mass 2^-R), so only queries price it."""
    law = BinomialLaw(64)
    assert law.pmf(32) == 2.0**-64
    assert law.pmf(33) == 0.0
    assert law.epsilon(Fraction(1)) is None
    assert law.rho(Fraction(1)) is None
    with pytest.raises(ValueError, match="price"):
        priced(law, Fraction(1))


@pytest.mark.parametrize("coins", COINS[: count("centred binomial: numbers of coins", short=5, long=21)])
def test_the_sampler_follows_its_law_T7(coins: int) -> None:
    """T7, T9, E08, S1.5, trap 1: a large release fits the exact pmf; variance R/4, not R; cells are independent."""
    law = BinomialLaw(coins)
    most = count("centred binomial: draws at each number", short=200_000, long=1_000_000)
    sample = drawn(law, max(20_000, min(most, 2 * 10**9 // coins)))
    assert sample.dtype == np.int64
    assert np.abs(sample).max() <= coins // 2
    assert fit(law, sample) > LEVEL
    assert moments_off(law, sample) < SIGMAS
    assert exceedance_off(law, sample, max(law.accuracy(0.05) - 1, 0)) < SIGMAS
    assert correlation_off(sample[:-1], sample[1:]) < SIGMAS
    assert ties_off(law, sample[:-1:2], sample[1::2]) < SIGMAS


def test_the_variance_is_not_the_number_of_coins_E08() -> None:
    """E08 control: at R = 400 the deviation is 10 (+-1%), and 20 (the printed sqrt R) is refuted."""
    deviation = math.sqrt((drawn(BinomialLaw(400), 100_000).astype(float) ** 2).mean())
    assert deviation == pytest.approx(10, rel=0.015)
    assert deviation != pytest.approx(20, rel=0.3)


def test_wrong_samplers_are_found_T7() -> None:
    """T7 control: two coins too few, coins of bias .502, and bits used twice all fail; a plain right sample passes."""
    rng = np.random.default_rng(1)
    law = BinomialLaw(64)
    right = rng.binomial(64, 0.5, 400_000) - 32
    assert fit(law, right) > LEVEL
    assert fit(law, rng.binomial(62, 0.5, 400_000) - 31) < LEVEL
    assert fit(law, rng.binomial(64, 0.502, 400_000) - 32) < LEVEL
    assert fit(law, 2 * (rng.binomial(32, 0.5, 400_000) - 16)) < LEVEL


def test_the_largest_number_of_coins_is_drawn_in_pieces() -> None:
    """S1.5: 2^24 coins an answer, more than one batch of bits at a time, within six deviations of the law."""
    law = BinomialLaw(2**24)
    sample = drawn(law, 40)
    assert np.abs(sample).max() < 7 * 2048
    assert np.abs(sample).max() > 0
    assert moments_off(law, sample) < SIGMAS


def test_every_bit_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bits map to coins one to one: all ones give all heads, a single one gives one head or falls among the spare."""
    monkeypatch.setattr(entropy, "random_bytes", lambda size: b"\xff" * size)
    for coins in (2, 62, 64, 66, 100, 2**20 + 2):
        assert heads(3, coins).tolist() == [coins] * 3
    found = 0
    for bit in range(128):
        monkeypatch.setattr(entropy, "random_bytes", lambda size, bit=bit: (1 << bit).to_bytes(size, "little"))
        found += int(heads(1, 100)[0])
    assert found == 100


def test_too_few_random_bytes_give_no_answer_T68(monkeypatch: pytest.MonkeyPatch) -> None:
    """T68: a source that fails or runs short ends in the constant error, and no number leaves."""

    def broken(size: int) -> bytes:
        raise OSError(f"cannot read {size} bytes; the exact sum is 4711")

    for source in (broken, lambda size: b"\x00" * (size - 1)):
        monkeypatch.setattr(entropy, "random_bytes", source)
        with pytest.raises(CuratorError) as failure:
            release(BinomialLaw(64), Private(np.array([4711], dtype=np.int64)))
        assert failure.value.code == "noise-failed"
        assert "4711" not in str(failure.value)


def test_trap8_on_a_real_sum_the_fraction_would_show() -> None:
    """Trap 8, S1.5: noise in whole units leaves a sum's fraction, and stretched coins its remainder, as they were."""
    exact = np.array([1037] * 200, dtype=np.int64)
    stretched = exact + 5 * drawn(BinomialLaw(400), 200)
    assert set((stretched % 5).tolist()) == {1037 % 5}  # what scaling the coins by a person's five rows would leak
    whole = release(BinomialLaw(400), Private(exact))
    assert len(set((whole % 5).tolist())) == 5


def test_sums_at_the_ends_of_64_bits_do_not_wrap_T5() -> None:
    """T5: the clamp to 2^62 leaves room for all coins."""
    ends = np.array([2**63 - 1, -(2**63)], dtype=np.int64)
    noisy = release(BinomialLaw(2**20), Private(ends))
    assert abs(int(noisy[0]) - 2**62) <= 2**19
    assert abs(int(noisy[1]) + 2**62) <= 2**19
