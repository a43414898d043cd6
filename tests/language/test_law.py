"""Noise laws against arbitrary-precision arithmetic: probabilities, tails, accuracy, variance."""

from __future__ import annotations

import math
import time
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sulq.errors import QuestionError
from sulq.language.law import AboveLaw, BinomialLaw, GaussianLaw, LaplaceLaw, round_up
from tests.language.exact import binomial_tail, gaussian_mass, gaussian_tail, laplace_tail

SCALES = [Fraction(n, d) for n, d in ((1, 1024), (1, 10), (1, 3), (1, 1), (7, 2), (20, 1), (64, 1))]
WIDE = [Fraction(65), Fraction(100), Fraction(200), Fraction(1000), Fraction(2**20), Fraction(2**50)]
BETAS = [0.5, 0.05, 1e-3, 1e-9, 1e-40, 1e-200]
COINS = [2, 4, 10, 64, 400, 2048, 2050, 10_000]


def reaches(scale: Fraction) -> list[int]:
    widths = (0.0, 0.1, 0.5, 0.9, 1.0, 1.1, 1.7, 2.3, 2.4, 3.3, 3.35, 5.0, 8.0, 20.0, 36.0)
    return sorted({int(u * scale) for u in widths})


def closeness(law: LaplaceLaw | GaussianLaw | BinomialLaw, t: int, exact: mpmath.mpf) -> mpmath.mpf:
    return mpmath.mpf(law.tail(t)) / exact - 1


@pytest.mark.parametrize("scale", SCALES + WIDE, ids=str)
def test_the_laplace_tail_is_rounded_up_and_tight_X2(scale: Fraction) -> None:
    """tail() is never below 2a^(t+1)/(1+a) and at most 1e-9 above it (X2)."""
    law = LaplaceLaw(scale)
    for t in reaches(scale):
        exact = laplace_tail(scale, t)
        if exact > 1e-290:
            assert 0 <= closeness(law, t, exact) < 1e-9


@pytest.mark.parametrize("scale", SCALES + WIDE, ids=str)
def test_the_gaussian_tail_is_rounded_up_and_tight_X2(scale: Fraction) -> None:
    """tail() is never below the sum of the pmf and at most 1e-6 above it, on either side of the table's end."""
    law = GaussianLaw(scale)
    for t in reaches(scale):
        exact = gaussian_tail(scale, t)
        if exact > 1e-290:
            assert 0 <= closeness(law, t, exact) < 1e-6


@pytest.mark.parametrize("coins", COINS)
def test_the_binomial_tail_is_rounded_up_and_tight_X2(coins: int) -> None:
    """tail() is never below the exact sum of binomial coefficients and at most 1e-9 above it."""
    law = BinomialLaw(coins)
    for t in sorted({int(u * math.sqrt(coins) / 2) for u in (0.0, 0.3, 1.0, 2.0, 4.0, 9.0, 30.0)}):
        if t < coins // 2:
            exact = binomial_tail(coins, t)
            if exact > 1e-290:
                assert 0 <= closeness(law, t, exact) < 1e-9
    assert law.tail(coins // 2) == 0.0


def test_a_tail_taken_one_unit_short_is_noticed() -> None:
    """Control: the tail from t + 1 fails the same comparison (an off-by-one in the threshold, T25's kind of slip)."""
    assert closeness(LaplaceLaw(Fraction(20)), 41, laplace_tail(Fraction(20), 40)) < 0
    assert closeness(GaussianLaw(Fraction(100)), 201, gaussian_tail(Fraction(100), 200)) < 0


@pytest.mark.parametrize("scale", [Fraction(1, 4), Fraction(1), Fraction(7, 2), Fraction(20)], ids=str)
def test_probabilities_sum_to_one_and_give_the_variance_X2(scale: Fraction) -> None:
    """The pmf sums to 1 and its second moment is variance(), for both laws (X2, trap 1)."""
    for law in (LaplaceLaw(scale), GaussianLaw(scale)):
        reach = math.ceil(45 * scale) + 2
        mass = math.fsum(law.pmf(z) for z in range(-reach, reach + 1))
        moment = math.fsum(z * z * law.pmf(z) for z in range(-reach, reach + 1))
        assert mass == pytest.approx(1.0, abs=1e-12)
        assert moment == pytest.approx(law.variance(), rel=1e-11)


def test_the_variance_of_laplace_noise_is_twice_the_squared_scale_E01() -> None:
    """E01, S4.2: the standard deviation of Lap(l) is sqrt(2) l, not l."""
    scale = Fraction(3 * 2**20)
    assert math.sqrt(LaplaceLaw(scale).variance()) / 2**20 == pytest.approx(math.sqrt(2) * 3, rel=1e-9)
    assert math.sqrt(LaplaceLaw(scale).variance()) / 2**20 != pytest.approx(3, rel=0.1)


def test_the_variance_of_binomial_noise_is_a_quarter_of_the_coins_E08() -> None:
    """E08: the standard deviation is sqrt(R)/2 (10 at R = 400), not sqrt(R); checked from the pmf."""
    law = BinomialLaw(400)
    moment = math.fsum(z * z * law.pmf(z) for z in range(-200, 201))
    assert math.sqrt(moment) == pytest.approx(10.0, rel=1e-12)
    assert law.variance() == 100.0


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("scale", SCALES + WIDE, ids=str)
def test_accuracy_is_the_smallest_t_within_beta(scale: Fraction, beta: float) -> None:
    """accuracy(beta) holds, by the exact tail, and one unit less does not (but for the rounding-up of 1e-6)."""
    for law, exact in ((LaplaceLaw(scale), laplace_tail), (GaussianLaw(scale), gaussian_tail)):
        t = law.accuracy(beta)
        assert exact(scale, t) <= beta
        if t:
            # At huge scales neighbouring tails differ by less than the margin of 1e-10.
            back = 1 if scale < 2**20 else 2 + int(scale * 1e-9)
            assert exact(scale, max(t - back, 0)) * (1 + 1e-6) > beta


@given(st.integers(1, 2**12), st.floats(1e-250, 0.999))
def test_binomial_accuracy_is_the_smallest_t_within_beta(half: int, beta: float) -> None:
    """accuracy(beta) is the first t whose tail is within beta."""
    law = BinomialLaw(2 * half)
    t = law.accuracy(beta)
    assert law.tail(t) <= beta
    assert t == 0 or law.tail(t - 1) > beta


@given(st.fractions(Fraction(1, 1024), 2**50), st.floats(1e-290, 0.999))
def test_accuracy_never_grows_with_beta(scale: Fraction, beta: float) -> None:
    """A less certain promise is never wider, and the promise holds by the law's own tail."""
    for law in (LaplaceLaw(scale), GaussianLaw(scale)):
        t = law.accuracy(beta)
        assert law.tail(t) <= beta
        assert law.accuracy(math.sqrt(beta)) <= t


def test_accuracy_is_fast_at_every_scale() -> None:
    """Answers print their accuracy: 2,000 calls take well under a second (they need some 20 ms)."""
    laws = [law(scale) for scale in SCALES + WIDE for law in (LaplaceLaw, GaussianLaw)]
    start = time.process_time()
    for _ in range(80):
        for law in laws:
            law.accuracy(0.05)
    assert time.process_time() - start < 1.0


def test_the_gaussian_normaliser_is_exact_by_either_series() -> None:
    """The direct sum and Poisson's agree with arbitrary precision where they meet."""
    for scale in (Fraction(1, 4), Fraction(999, 1000), Fraction(1), Fraction(1001, 1000), Fraction(3)):
        assert GaussianLaw(scale).pmf(0) == pytest.approx(float(1 / gaussian_mass(scale)), rel=1e-14)


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1), Fraction(1, 2000), Fraction(2**51), Fraction(1, 10**320)])
def test_degenerate_scales_have_no_law_T8(scale: Fraction) -> None:
    """T8: a scale that would give the exact answer, or saturate, is refused before anything is paid."""
    for law in (LaplaceLaw, GaussianLaw):
        with pytest.raises(QuestionError) as refusal:
            law(scale)
        assert refusal.value.code == "too-little-noise"


@pytest.mark.parametrize("coins", [0, -2, 3, 2**24 + 2, True])
def test_odd_and_extreme_coin_counts_have_no_law_S1_5(coins: int) -> None:
    """S1.5: an odd number of coins gives half units; more than 2^24 are not drawn."""
    with pytest.raises(QuestionError) as refusal:
        BinomialLaw(coins)
    assert refusal.value.code == "too-little-noise"


@pytest.mark.parametrize("beta", [0.0, -0.1, 1.0, 1.5, math.nan, math.inf, 1e-310, True, "0.05"])
def test_a_beta_that_is_no_probability_is_refused(beta: float) -> None:
    """The beta of accuracy is a probability and nothing else."""
    for law in (LaplaceLaw(Fraction(1)), GaussianLaw(Fraction(1)), BinomialLaw(4)):
        with pytest.raises(QuestionError):
            law.accuracy(beta)


@given(st.fractions(Fraction(1, 2**40), 2**50))
def test_round_up_gives_the_next_double(number: Fraction) -> None:
    """round_up is a double, not below the number, and the double before it is."""
    found = round_up(number)
    assert Fraction(float(found)) == found >= number
    assert Fraction(math.nextafter(float(found), 0.0)) < number


def beyond(scale: Fraction, threshold_scale: Fraction, t: int) -> mpmath.mpf:
    """P(Z1 - Z2 > t) of two discrete Laplace draws: over all z2 in fifty digits, the rest of it a geometric sum."""
    with mpmath.workdps(50):
        b, c = (mpmath.mpf(s.numerator) / s.denominator for s in (scale, threshold_scale))
        a, e = mpmath.exp(-1 / b), mpmath.exp(-1 / c)

        def above(n: int) -> mpmath.mpf:
            return a ** (n + 1) / (1 + a) if n >= 0 else 1 - a ** (-n) / (1 + a)

        reach = int(150 * max(b, c)) + t
        return (1 - e) / (1 + e) * mpmath.fsum(e ** abs(z) * above(t + z) for z in range(-reach, reach + 1))


@pytest.mark.parametrize("scale", [Fraction(1, 10), Fraction(1), Fraction(7, 2)], ids=str)
@pytest.mark.parametrize("ratio", [Fraction(1), Fraction(13, 16), Fraction(2), Fraction(100_001, 100_000)], ids=str)
def test_the_tail_of_a_threshold_is_rounded_up_and_tight(scale: Fraction, ratio: Fraction) -> None:
    """tail() of one sum is never below P(W > t) and at most 1e-9 above it, also where the scales nearly agree."""
    law = AboveLaw(scale, ratio * scale, 1)
    loose = 1e-2 if 1 < ratio < 2 else 1e-9  # scales this near are taken as equal
    for t in (0, 1, int(2 * scale), int(9 * scale)):
        exact = beyond(scale, ratio * scale, t)
        assert 0 <= mpmath.mpf(law.tail(t)) / exact - 1 < loose
        assert law.pmf(t + 1) == pytest.approx(float(exact), rel=loose)
        assert law.pmf(t + 1) + law.pmf(-t) == 1.0
        assert AboveLaw(scale, ratio * scale, 7).tail(t) == pytest.approx(min(1.0, 7 * law.tail(t)), rel=1e-9)


@pytest.mark.parametrize("scale", [Fraction(1, 1024), Fraction(3), Fraction(2**50)], ids=str)
def test_the_accuracy_of_a_threshold_is_the_smallest_reach(scale: Fraction) -> None:
    """`accuracy` inverts `tail` at every scale and number of sums; without noise on the threshold it is Laplace's."""
    for level, sums, beta in ((Fraction(0), 1, 0.05), (scale, 1, 1e-9), (scale, 2**22, 0.05), (2 * scale, 5, 1e-200)):
        if level > 2**50:
            continue
        law = AboveLaw(scale, level, sums)
        t = law.accuracy(beta)
        assert law.tail(t) <= beta
        assert t == 0 or law.tail(t - 1) > beta
        assert law.tail(-1) == 1.0
    alone = AboveLaw(scale, Fraction(0), 2)
    assert alone.accuracy(0.05) == LaplaceLaw(scale).accuracy(0.05)
    assert alone.variance() == LaplaceLaw(scale).variance()
    assert AboveLaw(scale, scale, 2).variance() == 2 * LaplaceLaw(scale).variance()


def test_a_threshold_has_sums_and_noise() -> None:
    """No law without a sum, without noise on the sums, or with too little on the threshold."""
    for bad in ((Fraction(1), Fraction(0), 0), (Fraction(0), Fraction(1), 1), (Fraction(1), Fraction(1, 10**6), 1)):
        with pytest.raises(QuestionError):
            AboveLaw(*bad)
