"""R(epsilon, delta, T) in every reading: the reference values, the promises, and controls that break them."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm

from sulq.errors import SetupError
from sulq.language import sublinear as sub
from sulq.language.law import BinomialLaw, GaussianLaw
from sulq.language.privacy import CALIBRATIONS, SubLinear
from tests.counts import count
from tests.figures import figure
from tests.language import readings
from tests.language.exact import gaussian_upper

CASES = [(epsilon, delta) for epsilon in (0.1, 1.0, 3.0, 10.0) for delta in (0.3, 1e-3, 1e-6, 1e-9)]


def fails(seen: int, trials: int, rate: float) -> bool:
    """Whether so many exceedances refute a rate, wrongly once in ten million."""
    return seen > binom.ppf(1 - 1e-7, trials, rate)


def shifts(variance: float, queries: int, trials: int, seed: int) -> np.ndarray:
    """Log-odds after each of T worst-case answers: steps N(1/2R, 1/R) for a person who moves each sum by one."""
    steps = np.random.default_rng(seed).normal(0.5 / variance, variance**-0.5, (trials, queries))
    return np.cumsum(steps, axis=1)


# -- S0.2


def test_conf_and_its_inverse_are_a_round_trip_S0_2() -> None:
    """S0.2: inv_conf(conf(p)) = p to 1e-12 near both ends, and the ends map to the infinities."""
    for p in (1e-300, 1e-12, 0.01, 0.3, 0.5, 0.7, 0.999, 1 - 1e-12):
        assert sub.inv_conf(sub.conf(p)) == pytest.approx(p, rel=1e-12)
    for confidence in (-700.0, -30.0, -1.0, 0.0, 2.0, 15.0):
        assert sub.conf(sub.inv_conf(confidence)) == pytest.approx(confidence, rel=1e-9, abs=1e-12)
    assert sub.conf(0.0) == -math.inf
    assert sub.conf(1.0) == math.inf
    assert sub.inv_conf(-math.inf) == 0.0
    assert sub.inv_conf(math.inf) == 1.0


def test_a_probability_moves_a_quarter_as_fast_and_not_conversely_S0_2() -> None:
    """S0.2: |dp| <= |dconf|/4, attained at 1/2; a tiny change of p may be a large one of confidence."""
    grid = np.linspace(-20, 20, 4001)
    ps = np.array([sub.inv_conf(c) for c in grid])
    slopes = np.diff(ps) / np.diff(grid)
    assert slopes.max() <= 0.25
    assert slopes.max() == pytest.approx(0.25, abs=1e-5)
    assert sub.conf(1e-6) - sub.conf(1e-9) > 6.9


def test_confidence_is_in_natural_logarithms_E10() -> None:
    """E10: the survey's proof slips into log2, which would rescale epsilon by ln 2."""
    assert sub.conf(0.75) == pytest.approx(math.log(3))
    assert sub.conf(0.75) != pytest.approx(math.log2(3))


# -- X3: reference values


def test_reference_values_X3() -> None:
    """X3: every dagger value at epsilon 1, delta 1e-6."""
    known = {1: 1527, 10: 2.078e4, 100: 2.715e5, 1000: 3.436e6, 10_000: 4.242e7}
    for queries, value in known.items():
        assert sub.variance_theorem1(1, 1e-6, queries) == pytest.approx(value, rel=5e-4)
    tight = {
        readings.variance_nonadaptive: 23.58,
        readings.variance_adaptive: 24.88,
        sub.variance_posterior: 25.44,
        sub.variance_dp: 17.85,
        readings.variance_zcdp: 28.62,
    }
    for queries, (variance, value) in itertools.product((1, 7, 1000), tight.items()):
        assert variance(1, 1e-6, queries) / queries == pytest.approx(value, abs=5e-3)


def test_standard_deviations_beside_theorem_1_X3() -> None:
    """X3, section 10: theorem 1 has 7.7 (T = 1) to 12.9 (T = 1e4) times the noise; textbook against analytic 1.25."""
    for queries, ratio in ((1, 7.7), (10_000, 12.9)):
        found = math.sqrt(sub.variance_theorem1(1, 1e-6, queries) / sub.variance_posterior(1, 1e-6, queries))
        assert found == pytest.approx(ratio, abs=0.05)
    assert math.sqrt(sub.variance_dp(1, 1e-6, 1)) == pytest.approx(4.225, abs=1e-3)
    assert math.sqrt(2 * math.log(1.25e6)) == pytest.approx(5.299, abs=1e-3)


def test_laplace_beats_the_gaussian_up_to_eight_queries_X3() -> None:
    """X3: sqrt(2) T < sqrt(17.85 T) exactly for T <= 8."""
    wins = [t for t in range(1, 30) if 2 * float(sub.laplace_scale(Fraction(1), t)) ** 2 < sub.variance_dp(1, 1e-6, t)]
    assert wins == list(range(1, 9))


def test_theorem_1_fails_near_delta_one_and_the_guard_takes_over_E03() -> None:
    """E03: at T = 1, delta = .9 theorem 1 gives .0888, below the need .0983; also at delta .5, epsilon 10."""
    assert sub.variance_theorem1(1, 0.9, 1) == pytest.approx(0.0888, abs=1e-4)
    assert readings.variance_nonadaptive(1, 0.9, 1) == pytest.approx(0.0983, abs=1e-4)
    mu = sub.variance_theorem1(1, 0.9, 1) ** -0.5
    assert norm.sf(1 / mu - mu / 2) > 0.9
    for epsilon, delta in ((1, 0.9), (10, 0.5)):
        need = sub.variance_posterior(epsilon, delta, 1)
        assert sub.variance_theorem1(epsilon, delta, 1) < need
        assert sub.noise_for(SubLinear(epsilon, delta, 1, "theorem1")).variance >= need


@pytest.mark.parametrize(("epsilon", "delta"), CASES)
def test_each_variance_solves_its_equation_X3(epsilon: float, delta: float) -> None:
    """X3: the solved equations hold at the returned variance, by scipy's normal law; a little less breaks them."""

    def delta_of(name: str, mu: float) -> float:
        upper, lower = norm.sf(epsilon / mu - mu / 2), math.exp(epsilon) * norm.sf(epsilon / mu + mu / 2)
        if name == "nonadaptive":
            return upper
        if name == "posterior":
            e1 = np.linspace(0, epsilon * (1 - 1e-4), 4001)
            curve = norm.sf(e1 / mu - mu / 2) - np.exp(e1) * norm.sf(e1 / mu + mu / 2)
            return float((curve / -np.expm1(e1 - epsilon)).min())
        return upper + lower if name == "adaptive" else upper - lower

    for name in ("nonadaptive", "adaptive", "posterior", "dp"):
        module = readings if name in ("nonadaptive", "adaptive") else sub
        variance = getattr(module, f"variance_{name}")(epsilon, delta, 5)
        assert delta_of(name, math.sqrt(5 / variance)) <= delta * (1 + 1e-4)
        assert delta_of(name, math.sqrt(5 / (0.99 * variance))) > delta


@given(st.floats(1e-6, 40), st.floats(1e-6, 12))
def test_gaussian_delta_agrees_with_arbitrary_precision(epsilon: float, mu: float) -> None:
    """d_G(epsilon, mu) to 1e-10 relative, also where two tails nearly cancel."""
    with mpmath.workdps(60):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
        root = mpmath.sqrt(2)
        exact = (mpmath.erfc((e / m - m / 2) / root) - mpmath.exp(e) * mpmath.erfc((e / m + m / 2) / root)) / 2
    if exact > 1e-290:
        assert sub.gaussian_delta(epsilon, mu) == pytest.approx(float(exact), rel=1e-10)


def test_the_exact_binomial_losses_in_one_answer() -> None:
    """S1.5: at R = 400 a loss passes .3 with probability .00156 (normal approximation .00159); the end is infinite."""
    law = BinomialLaw(400)
    k = np.arange(0, 400)
    loss = np.log((400 - k) / (k + 1))
    tail = math.fsum(law.pmf(int(z)) for z in k[loss > 0.3] + 1 - 200)
    tail += law.pmf(-200)
    assert tail == pytest.approx(0.00156, abs=5e-6)
    mu = 2 / math.sqrt(400)
    assert norm.sf(0.3 / mu - mu / 2) == pytest.approx(0.00159, abs=5e-6)
    assert law.pmf(200) == pytest.approx(2.0**-400, rel=1e-12)
    assert law.pmf(201) == 0.0


# -- S0.4: the promise itself, and who breaks which calibration


def test_trap3_stopping_breaks_the_nonadaptive_variance_S0_4() -> None:
    """S0.4, trap 3: T = 50, epsilon 1, delta .05: R_nonadaptive holds for fixed asks; stopping when ahead passes it."""
    queries, delta = 50, 0.05
    trials = count("S0.4 transcripts", short=40_000, long=400_000)
    fixed = readings.variance_nonadaptive(1, delta, queries)
    assert fixed == pytest.approx(181.8, abs=0.1)
    walk = shifts(fixed, queries, trials, 2)
    assert not fails(int((walk[:, -1] > 1).sum()), trials, delta)
    stopped = int((walk.max(axis=1) > 1).sum())
    assert fails(stopped, trials, delta)
    assert stopped / trials == pytest.approx(0.077, abs=0.008)

    stopping = readings.variance_adaptive(1, delta, queries)
    assert stopping == pytest.approx(232.8, abs=0.1)
    stopped = int((shifts(stopping, queries, trials, 3).max(axis=1) > 1).sum())
    assert not fails(stopped, trials, delta)
    assert stopped / trials == pytest.approx(0.041, abs=0.006)

    posterior = sub.variance_posterior(1, delta, queries)
    assert posterior > stopping
    assert not fails(int((shifts(posterior, queries, trials, 4).max(axis=1) > 1).sum()), trials, delta)


def test_theorem_1_leaves_a_wide_margin_S0_4() -> None:
    """S0.4: with R_thm1 no transcript of 40,000 passes epsilon; the largest shift is about .20."""
    walk = shifts(sub.variance_theorem1(1, 0.05, 50), 50, 40_000, 5)
    assert (walk > 1).sum() == 0
    assert walk.max() == pytest.approx(0.2, abs=0.06)


def test_theorem_4_holds_for_a_stopping_adversary_S0_24() -> None:
    """S0.24: with constant 8 or 4 the exceedance is below gamma + delta; a hundredth of the variance is not enough."""
    queries, trials = 50, 40_000
    for constant in (8, 4):
        variance = sub.variance_theorem4(1, 0.025, queries, gamma=0.025, constant=constant)
        passed = int((shifts(variance, queries, trials, 6).max(axis=1) > 1).sum())
        assert not fails(passed, trials, 0.05)
        figure("S0.24", f"stopping walks past epsilon, constant {constant}, T = 50", passed / trials, "at most 0.05")
    variance = sub.variance_theorem4(1, 0.025, queries, gamma=0.025) / 100
    assert fails(int((shifts(variance, queries, trials, 7).max(axis=1) > 1).sum()), trials, 0.05)


def test_a_range_of_two_needs_four_times_the_variance_E47() -> None:
    """E47: unscaled, a tight calibration for delta .001 leaves .09; four times the variance restores it."""
    variance = readings.variance_nonadaptive(1, 0.001, 1)

    def exceeds(moved: float, r: float) -> float:
        mu = moved / math.sqrt(r)
        return float(norm.sf(1 / mu - mu / 2))

    assert exceeds(1, variance) == pytest.approx(0.001, rel=1e-9)
    assert exceeds(2, variance) == pytest.approx(0.094, abs=0.003)
    assert exceeds(2, 4 * variance) == pytest.approx(0.001, rel=1e-9)


def test_two_sided_shifts_cost_twice_the_failure_probability_E48() -> None:
    """E48, S1.2: |shift| > epsilon has about twice the one-sided probability, never more than twice."""
    mu = readings.variance_nonadaptive(0.2, 0.01, 1) ** -0.5
    up, down = norm.sf(0.2 / mu - mu / 2), norm.sf(0.2 / mu + mu / 2)
    assert up == pytest.approx(0.01)
    assert 0.015 < up + down <= 0.02


# -- S0.26, E07: Laplace


def test_theorem_5_bounds_every_transcript_S0_26() -> None:
    """S0.26: with scale T/epsilon no transcript shifts the log-odds by more than epsilon; equality is attained."""
    queries, epsilon = 20, Fraction(3, 2)
    scale = float(sub.laplace_scale(epsilon, queries))
    rng = np.random.default_rng(8)
    answers = rng.laplace(0, scale, (100_000, queries)) * rng.choice([1, 10], (100_000, 1))
    shift = ((np.abs(answers) - np.abs(answers - 1)) / scale).sum(axis=1)
    assert np.abs(shift).max() <= float(epsilon) + 1e-9
    figure("S0.26", "largest shift of 100,000 transcripts, T = 20, epsilon 1.5", np.abs(shift).max(), "at most 1.5")
    outside = np.full(queries, 1.5)
    assert ((np.abs(outside) - np.abs(outside - 1)) / scale).sum() == pytest.approx(float(epsilon))
    halved = scale / 2
    assert ((np.abs(outside) - np.abs(outside - 1)) / halved).sum() > float(epsilon)


def test_the_density_is_normalised_E07() -> None:
    """E07: exp(-|x|/s)/s integrates to 2; the law used has mass 1 and variance 2 s^2."""
    grid = np.linspace(-60, 60, 240_001)
    printed = np.trapezoid(np.exp(-np.abs(grid) / 2) / 2, grid)
    assert printed == pytest.approx(2, abs=1e-6)
    assert np.trapezoid(np.exp(-np.abs(grid) / 2) / 4, grid) == pytest.approx(1, abs=1e-6)
    calibration = sub.noise_for(SubLinear(1, 1e-6, 10, "laplace"))
    assert calibration.variance == 2 * float(calibration.scale) ** 2 == 200.0


# -- S1.5: coins


def exact_losses(coins: int, sensitivity: int) -> tuple[list[tuple[mpmath.mpf, mpmath.mpf]], mpmath.mpf]:
    """Pairs of loss and probability of one answer, and the probability of an infinite loss."""
    half = coins // 2
    ways = [math.comb(coins, k) for k in range(coins + 1)]
    total = mpmath.mpf(2) ** coins
    pairs = [
        (mpmath.log(mpmath.mpf(ways[k]) / ways[k + sensitivity]), ways[k] / total)
        for k in range(coins + 1 - sensitivity)
    ]
    infinite = mpmath.mpf(sum(ways[coins + 1 - sensitivity :])) / total
    assert half == len(ways) // 2
    return pairs, infinite


def exact_delta(coins: int, epsilon: float, queries: int, sensitivity: int, points: int) -> tuple[mpmath.mpf, ...]:
    """Exact delta(epsilon), the posterior target over e1 = 0, 1/points, ..., and Pr[loss > epsilon], for T <= 2."""
    pairs, infinite = exact_losses(coins, sensitivity)
    certain = 1 - (1 - infinite) ** queries
    if queries == 2:
        pairs = [(a + b, p * q) for a, p in pairs for b, q in pairs]

    def delta(e: mpmath.mpf) -> mpmath.mpf:
        return certain + mpmath.fsum(p * (1 - mpmath.exp(e - loss)) for loss, p in pairs if loss > e)

    e = mpmath.mpf(epsilon)
    grid = [e * i / points for i in range(points)]
    posterior = min(delta(e1) / (1 - mpmath.exp(e1 - e)) for e1 in grid)
    tail = certain + mpmath.fsum(p for loss, p in pairs if loss > e)
    return delta(e), posterior, tail


@pytest.mark.parametrize(
    ("coins", "epsilon", "queries", "sensitivity"),
    [
        (112, 1.0, 1, 1),
        (20, 1.0, 1, 1),
        (2, 1.0, 1, 1),
        (60, 3.0, 1, 3),
        (24, 0.5, 2, 1),
        (40, 5.0, 2, 2),
        (8, 2.0, 2, 1),
    ],
)
def test_the_composed_loss_is_bounded_from_above_and_tightly_SR8(
    coins: int, epsilon: float, queries: int, sensitivity: int
) -> None:
    """SR8: coin_delta is never below the exact delta or the exact posterior target, and close to both."""
    dp, posterior, tail = exact_delta(coins, epsilon, queries, sensitivity, 60)
    found = sub.coin_delta(coins, epsilon, queries, guarantee="dp", sensitivity=sensitivity)
    assert dp <= found <= float(dp) * 1.005
    found = sub.coin_delta(coins, epsilon, queries, sensitivity=sensitivity)
    assert tail <= found <= float(min(posterior, 1)) * 1.03


def test_the_composed_loss_agrees_with_an_accountant_SR8() -> None:
    """SR8: for T = 50 the delta of 5090 coins is within 0.5% of dp-accounting's, which rounds up as well."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    half = 2545
    law = BinomialLaw(2 * half)
    lower = {z: math.log(law.pmf(z)) for z in range(-half, half + 1) if law.pmf(z) > 1e-60}
    upper = {z - 1: value for z, value in lower.items()}
    one = pld.from_two_probability_mass_functions(lower, upper, value_discretization_interval=2e-6)
    reference = one.self_compose(50).get_delta_for_epsilon(1.0)
    found = sub.coin_delta(2 * half, 1.0, 50, guarantee="dp")
    assert found == pytest.approx(reference, rel=5e-3)
    assert sub.coin_delta(2 * half - 50, 1.0, 50, guarantee="dp") > 1.05 * found


def test_the_search_finds_about_four_times_the_posterior_variance_S1_5() -> None:
    """S1.5: coins ~ 4 R_posterior (or 4 R_dp), tighter as T grows; two fewer coins miss the target."""
    for queries, slack in ((10, 0.01), (100, 1e-3), (1000, 2e-4)):
        coins = sub.coins_exact(1, 1e-6, queries)
        assert coins == pytest.approx(4 * sub.variance_posterior(1, 1e-6, queries), rel=slack)
        assert sub.coin_delta(coins, 1, queries) <= 1e-6 < sub.coin_delta(coins - 2, 1, queries)
    coins = sub.coins_exact(1, 1e-6, 100, guarantee="dp")
    assert coins == pytest.approx(4 * sub.variance_dp(1, 1e-6, 100), rel=1e-3)
    assert sub.coins_exact(1, 1e-6, 10, sensitivity=5) == pytest.approx(
        4 * 25 * sub.variance_posterior(1, 1e-6, 10), rel=1e-3
    )


def test_coins_searched_by_the_tail_of_the_loss_break_under_stopping_SR8() -> None:
    """SR8, trap 3: coins that meet Pr[loss > epsilon] <= delta alone are fewer, and a stopping analyst passes delta."""
    epsilon = 1.0

    def tail_and_stopped(coins: int) -> tuple[float, float]:
        pairs, infinite = exact_losses(coins, 1)
        loss = np.array([float(value) for value, _ in pairs])
        p = np.array([float(chance) for _, chance in pairs])
        ended = float(infinite)
        both = 1 - (1 - ended) ** 2 + float((p[:, None] * p[None, :])[loss[:, None] + loss[None, :] > epsilon].sum())
        ahead = loss > epsilon
        later = loss[~ahead]
        second = (p[~ahead][:, None] * p[None, :])[later[:, None] + loss[None, :] > epsilon].sum()
        stopped = ended + float(p[ahead].sum()) + float(second) + float(p[~ahead].sum()) * ended
        return both, stopped

    by_tail = 40
    delta = tail_and_stopped(by_tail)[0]
    searched = sub.coins_exact(epsilon, delta, 2)
    assert by_tail < searched
    assert tail_and_stopped(by_tail)[1] > 1.02 * delta
    assert tail_and_stopped(searched)[1] <= delta


def test_binomial_budgets_past_the_sampler_are_refused() -> None:
    """A budget that needs more than 2^24 coins an answer is the owner's to change."""
    for epsilon, queries in ((1, 10**9), (1e-6, 1), (0.001, 10)):
        with pytest.raises(SetupError) as refusal:
            sub.coins_exact(epsilon, 1e-6, queries)
        assert refusal.value.code == "bad-declaration"


# -- SR8: discrete Gaussian noise


@pytest.mark.parametrize("scale", [1, 2, 8, 64, 1000])
def test_the_total_variation_bound_holds_SR8(scale: int) -> None:
    """SR8: the bound is above the exact total variation of the discrete Gaussian and the rounded normal, within 4x."""
    z = np.arange(-40 * scale, 40 * scale + 1)
    discrete = np.exp(-0.5 * (z / scale) ** 2)
    discrete /= discrete.sum()
    magnitude = np.abs(z)  # by the upper tail, where no digits are lost
    rounded = norm.sf((magnitude - 0.5) / scale) - norm.sf((magnitude + 0.5) / scale)
    exact = 0.5 * np.abs(discrete - rounded).sum()
    assert exact <= sub.gaussian_total_variation_bound(scale) <= 4 * exact
    assert exact > sub.gaussian_total_variation_bound(3 * scale)


def exact_gaussian_one(scale: Fraction, moved: int, epsilon: float) -> tuple[float, float]:
    """Pr[loss > epsilon] and delta(epsilon) of one answer with discrete Gaussian noise, exactly."""
    # loss = (2 z moved + moved^2)/(2 scale^2) for noise z under the person's presence
    square = scale * scale
    last = math.floor((2 * square * Fraction(epsilon) - moved**2) / (2 * moved))
    present = gaussian_upper(scale, last) if last >= 0 else 1 - gaussian_upper(scale, -last - 1)
    absent = gaussian_upper(scale, last + moved)
    return float(present), float(present - mpmath.exp(epsilon) * absent)


def exact_gaussian_two(scale: float, moved: int, epsilon: float) -> tuple[float, float, float]:
    """Pr[loss > epsilon] for two fixed answers and for a stopping analyst, and delta(epsilon) of the two."""
    reach = math.ceil(13 * scale)
    z = np.arange(-reach, reach + 1)
    p = np.exp(-0.5 * (z / scale) ** 2)
    p /= p.sum()
    loss = (2 * z * moved + moved**2) / (2 * scale**2)
    beyond = np.concatenate((np.cumsum(p[::-1])[::-1], [0.0]))  # beyond[i] = P(Z >= z[i])
    needed = np.searchsorted(loss, epsilon - loss, side="right")
    fixed = float((p * beyond[needed]).sum())
    ahead = loss > epsilon
    stopped = float(p[ahead].sum() + (p * beyond[needed])[~ahead].sum())
    absent = p * np.exp(-loss)
    absent_beyond = np.concatenate((np.cumsum(absent[::-1])[::-1], [0.0]))
    delta = fixed - math.exp(epsilon) * float((absent * absent_beyond[needed]).sum())
    return fixed, stopped, delta


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-4), (1.0, 1e-6), (3.0, 1e-3), (5.8, 0.05), (5.9, 0.02)])
def test_one_answer_meets_its_promise_exactly_on_the_fine_grid_SR8(epsilon: float, delta: float) -> None:
    """SR8: on the grid noise_for asks for, the exact pmf keeps the posterior and the dp promise."""
    for name in ("posterior", "dp"):
        found = sub.noise_for(SubLinear(epsilon, delta, 1, name))
        moved = 1
        while moved * found.scale < found.units:
            moved *= 2
        shifted, curve = exact_gaussian_one(moved * found.scale, moved, epsilon)
        assert (shifted if name == "posterior" else curve) <= delta
        assert (shifted if name == "posterior" else curve) > 0.3 * delta


def test_on_a_grid_of_one_the_promise_is_broken_SR8() -> None:
    """SR8 control: with one unit to a person the discrete Gaussian exceeds both promises (by up to 2.4 times here)."""
    scale = Fraction(math.sqrt(sub.variance_posterior(5.8, 0.05, 1)))
    assert exact_gaussian_one(scale, 1, 5.8)[0] > 1.2 * 0.05
    scale = Fraction(math.sqrt(sub.variance_dp(5.9, 0.02, 1)))
    assert exact_gaussian_one(scale, 1, 5.9)[1] > 1.2 * 0.02
    assert exact_gaussian_two(math.sqrt(sub.variance_dp(5.8, 0.02, 2)), 1, 5.8)[2] > 1.2 * 0.02


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-3), (3.0, 1e-3), (5.8, 0.02)])
def test_two_answers_meet_their_promise_exactly_stopping_included_SR8(epsilon: float, delta: float) -> None:
    """SR8: for T = 2 by the exact pmf, fixed and stopping analysts stay within delta once the grid is fine."""
    units = 2**10
    slack = 2 * sub.gaussian_total_variation_bound(units)
    for variance, at in ((sub.variance_posterior, (0, 1)), (sub.variance_dp, (2,))):
        root = math.sqrt(variance(epsilon, delta, 2, slack=slack))
        moved = math.ceil(units / root)
        found = exact_gaussian_two(moved * root, moved, epsilon)
        assert all(found[i] <= delta for i in at)
        assert max(found[i] for i in at) > 0.3 * delta


def test_the_slack_is_weighed_by_the_posterior_denominator_SR8() -> None:
    """SR8: at e1 the allowance is (1 + e^e1) slack/(1 - e^(e1-epsilon)); more slack, more noise; too much, none."""
    plain = sub.variance_posterior(1, 1e-6, 100)
    some = sub.variance_posterior(1, 1e-6, 100, slack=1e-9)
    mu = math.sqrt(100 / some)
    e1 = np.linspace(0, 1 - 1e-4, 20_001)
    curve = norm.sf(e1 / mu - mu / 2) - np.exp(e1) * norm.sf(e1 / mu + mu / 2) + (1 + np.exp(e1)) * 1e-9
    assert float((curve / -np.expm1(e1 - 1)).min()) == pytest.approx(1e-6, rel=1e-4)
    assert some > plain
    with pytest.raises(SetupError):
        sub.variance_posterior(1, 1e-6, 100, slack=1e-6)


# -- noise_for


@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_noise_for_names_its_guarantee_and_is_never_too_little(calibration: str) -> None:
    """SR8: each calibration gives at least the certified variance, its grid, its guarantee and a readable report."""
    budget = SubLinear(1, 1e-6, 20, calibration)
    found = sub.noise_for(budget, 10_000)
    certified = sub.variance_dp if calibration == "dp" else sub.variance_posterior
    assert found.variance >= certified(1, 1e-6, 20)
    assert found.guarantee == ("dp" if calibration == "dp" else "posterior")
    assert found.guarantee in found.report
    assert "10000 people" in found.report
    assert f"{math.sqrt(found.variance):.4g}" in found.report
    if found.kind == "gaussian":
        assert Fraction(float(found.scale)) == found.scale
        assert float(found.scale) ** 2 == found.variance
        assert found.units >= 2**20
    if calibration == "theorem4":
        assert found.variance == pytest.approx(sub.variance_theorem4(1, 5e-7, 20, gamma=5e-7))
    if calibration == "posterior":
        assert found.variance == pytest.approx(sub.variance_posterior(1, 1e-6, 20), rel=1e-4)
    if calibration == "binomial-paper":
        assert found.variance == sub.coins_paper(1, 20, 10_000) / 4
        return  # without a size there is none: test_the_surveys_coins_need_a_public_size_SR6_SR8
    assert "people" not in sub.noise_for(budget).report.partition(";")[0]


@settings(max_examples=count("SubLinear budgets calibrated", short=60, long=2000))
@given(
    st.floats(1e-4, 1000),
    st.floats(1e-290, 0.99),
    st.integers(1, 10**9),
    st.sampled_from(["posterior", "dp", "theorem1", "theorem4", "steps", "laplace"]),
)
def test_noise_for_answers_or_refuses_any_budget(epsilon: float, delta: float, queries: int, calibration: str) -> None:
    """Every budget that can be written is calibrated soundly or refused as a declaration; nothing overflows."""
    try:
        found = sub.noise_for(SubLinear(epsilon, delta, queries, calibration))
    except SetupError:  # too small a delta for any grid: the test below
        assert delta < 1e-15
        return
    if found.kind == "gaussian":
        slack = queries * sub.gaussian_total_variation_bound(found.units)
        mu = math.sqrt(queries) / float(found.scale)
        part = np.concatenate((np.linspace(0, 1, 400, endpoint=False), np.geomspace(1e-6, 1 - 1e-6, 400)))
        e1 = epsilon * (part if found.guarantee == "posterior" else np.append(part, 1.0))
        with np.errstate(over="ignore"):
            allowed = slack * (1 + np.exp(np.minimum(e1, 700)))
        curve = np.array([sub.gaussian_delta(e, mu) for e in e1]) + allowed
        if found.guarantee == "posterior":
            curve = curve / -np.expm1(e1 - epsilon)
        assert curve.min() <= delta * 1.1  # a coarser search over e1 than the one that calibrated


def test_a_delta_of_one_and_one_too_small_are_refused() -> None:
    """A delta of 1 promises nothing; one below any grid's reach is sent to the pure calibration."""
    with pytest.raises(SetupError):
        sub.noise_for(SubLinear(1, 1, 10))
    with pytest.raises(SetupError) as refusal:
        sub.noise_for(SubLinear(1, 1e-100, 10))
    assert "laplace" in refusal.value.remedy
    assert sub.noise_for(SubLinear(1, 1e-100, 10, "laplace")).scale == 10


def test_the_grid_follows_the_number_of_queries_S1_8() -> None:
    """S1.8, SR8: the Gaussian of any T is at least 2^20 units wide, finer where T answers add up the difference."""
    law_units = [sub.noise_for(SubLinear(1, 1e-6, queries)).units for queries in (1, 100, 10**4, 10**8)]
    assert law_units == sorted(law_units)
    assert law_units[0] == 2**20
    assert law_units[-1] > 2**20
    many = sub.noise_for(SubLinear(1, 1e-6, 10**6)).variance / sub.variance_posterior(1, 1e-6, 10**6)
    assert 1.0001 < many < 1.001
    assert GaussianLaw(Fraction(law_units[-1])).accuracy(0.05) > law_units[-1]
