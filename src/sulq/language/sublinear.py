"""How much noise the SuLQ policy needs: R(epsilon, delta, T) in every reading of SPEC X3.

R is the noise variance of each of T noisy sums that one person moves by at most
one; all logarithms are natural (E10). T Gaussian sums together are a Gaussian
mechanism of parameter mu = sqrt(T/R), however adaptively they are chosen.
Proofs: docs/theory/sublinear.md.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from sulq.errors import SetupError
from sulq.language.law import LARGEST_COINS, BinomialLaw, round_up
from sulq.language.privacy import SubLinear, plain

Guarantee = Literal["posterior", "dp"]
Floats = npt.NDArray[np.float64]

_NORMAL: Final = NormalDist()
_GAUSS: Final = ((0.5 - math.sqrt(0.15), 5 / 18), (0.5, 8 / 18), (0.5 + math.sqrt(0.15), 5 / 18))
_MARGIN: Final = 1e-9  # every formula below is accurate to 1e-11; its result is moved against the asker


def conf(p: float) -> float:
    """Confidence ln(p/(1-p)): how sure a probability is, over the whole line [S0.2]."""
    if p in (0.0, 1.0):
        return math.inf if p else -math.inf
    return math.log(p) - math.log1p(-p)


def inv_conf(confidence: float) -> float:
    """Probability of a confidence: the inverse of `conf`; moves at most a quarter as fast [S0.2]."""
    if confidence >= 0.0:
        return 1.0 / (1.0 + math.exp(-confidence))
    odds = math.exp(confidence)
    return odds / (1.0 + odds)


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Delta of a Gaussian mechanism: Q(epsilon/mu - mu/2) - e^epsilon Q(epsilon/mu + mu/2) [X3].

    Privacy: a mu-Gaussian mechanism is (epsilon, delta)-private exactly for this delta [BW18, DRS22].
    """
    a, b = epsilon / mu - mu / 2.0, epsilon / mu + mu / 2.0
    density = math.exp(-0.5 * a * a) / math.sqrt(2.0 * math.pi)
    # e^epsilon times the density at b is the density at a, so nothing overflows;
    # the last two forms keep the digits a difference of near-equal tails would lose.
    if mu < 0.01:
        return density * mu * sum(w * (1.0 - x * _mills(x)) for x, w in ((a + mu * at, w) for at, w in _GAUSS))
    if a > 3.0:
        return density * (_mills(a) - _mills(b))
    return _upper(a) - density * _mills(b)


def variance_theorem1(epsilon: float, delta: float, queries: int) -> float:
    """R = 8 T ln^2(T/delta)/epsilon^2: the paper's Theorem 1 [S0.6].

    False as printed where ln(T/delta) is near zero (E03): `noise_for` takes the
    larger of this and `variance_posterior`.
    """
    return 8.0 * queries * math.log(queries / delta) ** 2 / epsilon**2


def variance_theorem4(epsilon: float, delta: float, queries: int, *, gamma: float, constant: float = 8.0) -> float:
    """R = 8 T ln(2/gamma) ln(T/delta)/epsilon^2 + (2 lam sqrt T + T)/epsilon, lam = sqrt(2 ln(2/gamma)) [S0.24].

    Fails with probability gamma + delta in all; the constant 4 suffices (X3).
    """
    lam = math.sqrt(2.0 * math.log(2.0 / gamma))
    leading = constant * queries * math.log(2.0 / gamma) * math.log(queries / delta) / epsilon**2
    return leading + (2.0 * lam * math.sqrt(queries) + queries) / epsilon


def azuma(lam: float, *, mean: float, bound: float, steps: int) -> tuple[float, float]:
    """Height lam (a + b) sqrt T + T a that a walk passes with probability at most exp(-lam^2/2) [S0.23].

    For T steps of conditional mean at most a = `mean` and size at most b =
    `bound`; one-sided, and the steps need not be independent (E06).
    """
    return lam * (mean + bound) * math.sqrt(steps) + steps * mean, math.exp(-lam * lam / 2.0)


def variance_nonadaptive(epsilon: float, delta: float, queries: int) -> float:
    """R = T/(sqrt(z^2 + 2 epsilon) - z)^2, z = Q^-1(delta): solves Q(epsilon/mu - mu/2) = delta.

    Exact for queries fixed in advance; an analyst who stops when ahead passes
    it (trap 3), so no calibration uses it.
    """
    z = -_NORMAL.inv_cdf(delta)
    root = math.sqrt(z * z + 2.0 * epsilon)
    mu = 2.0 * epsilon / (root + z) if z > 0 else root - z
    return queries / mu**2


def variance_adaptive(epsilon: float, delta: float, queries: int) -> float:
    """R that solves Q(epsilon/mu - mu/2) + e^epsilon Q(epsilon/mu + mu/2) = delta: stopping allowed [X3]."""

    def passed(mu: float) -> float:
        a, b = epsilon / mu - mu / 2.0, epsilon / mu + mu / 2.0
        return _upper(a) + math.exp(-0.5 * a * a) / math.sqrt(2.0 * math.pi) * _mills(b)

    return queries / _largest_mu(passed, delta) ** 2


def variance_posterior(epsilon: float, delta: float, queries: int, *, slack: float = 0.0) -> float:
    """R = T/mu^2 for the largest mu with min over e1 of d_G(e1, mu)/(1 - e^(e1 - epsilon)) <= delta.

    Privacy: over T adaptively chosen sums the log-odds of any fact about one
    person rise by more than epsilon with probability at most delta, for answers
    generated by a row of the fact's own side [S0.4, X3; DRS22].
    `slack` is the total variation, over all T answers, between the noise and a
    rounded normal: (1 + e^e1) slack is added to d_G(e1, mu) (SR8).
    """
    return queries / _mu("posterior", epsilon, delta, slack) ** 2


def variance_dp(epsilon: float, delta: float, queries: int, *, slack: float = 0.0) -> float:
    """R = T/mu^2 for the mu with d_G(epsilon, mu) = delta: (epsilon, delta)-privacy, a weaker reading [BW18, X3]."""
    return queries / _mu("dp", epsilon, delta, slack) ** 2


def variance_zcdp(epsilon: float, delta: float, queries: int) -> float:
    """R = T/(2 rho), rho = (sqrt(epsilon + ln(1/delta)) - sqrt(ln(1/delta)))^2 [X3]."""
    level = -math.log(delta)
    return queries / (2.0 * (epsilon / (math.sqrt(epsilon + level) + math.sqrt(level))) ** 2)


def laplace_scale(epsilon: Fraction, queries: int) -> Fraction:
    """Scale T/epsilon of Theorem 5: no answer can move the log-odds by more than epsilon/T [S0.26].

    The density is exp(-|x|/s)/(2s), of variance 2 s^2 (E07).
    """
    return queries / epsilon


def gaussian_total_variation_bound(units: float) -> float:
    """Upper bound of the total variation between a discrete Gaussian and a rounded normal of this scale.

    Accuracy: e^(-1/2)/(4 sqrt(2 pi) s^2) + sum over k of exp(-2 pi^2 s^2 k^2),
    for scale s in grid units (docs/theory/sublinear.md); the truth is near a third of it.
    """
    ripple = math.exp(-2.0 * (math.pi * units) ** 2)
    bound = math.exp(-0.5) / (4.0 * math.sqrt(2.0 * math.pi) * units**2) + ripple / (1.0 - ripple)
    return min(1.0, bound * (1.0 + _MARGIN))


def coins_paper(queries: int, delta: float, size: int) -> int:
    """R = (T/delta^2) ln^6 n fair coins, made even: the survey's own number; delta is its epsilon [S1.5]."""
    return _even(queries / delta**2 * math.log(size) ** 6)


@dataclass(frozen=True, slots=True)
class Perturbation:
    """What the survey's Theorem 1 promises for T = n^c queries at privacy n^-c' [S1.6]."""

    queries: int
    epsilon: float
    coins: int
    bound: float  # sqrt(R) ln^2 n
    failure: float  # 2 exp(-2 ln^4 n): how often the noise passes the bound
    below_sampling: bool  # whether sqrt(T)/epsilon < sqrt(n)


def perturbation(size: int, c: float, c_prime: float) -> Perturbation:
    """Check the exponents 0 < c < 1, 0 <= c' < c/2 of the survey's Theorem 1 and say what they give."""
    if size < 2 or not 0.0 < c < 1.0 or not 0.0 <= c_prime < c / 2.0:
        raise SetupError("bad-declaration", "The survey's theorem needs n >= 2, 0 < c < 1 and 0 <= c' < c/2.")
    queries, epsilon, log = math.ceil(size**c), size**-c_prime, math.log(size)
    coins = coins_paper(queries, epsilon, size)
    bound, failure = math.sqrt(coins) * log**2, 2.0 * math.exp(-2.0 * log**4)
    return Perturbation(queries, epsilon, coins, bound, failure, math.sqrt(queries) / epsilon < math.sqrt(size))


def coin_delta(
    coins: int, epsilon: float, queries: int, *, guarantee: Guarantee = "posterior", sensitivity: int = 1
) -> float:
    """Upper bound of the delta that T answers with this many coins each leave at epsilon.

    Privacy: one answer's loss is ln of C(R, k)/C(R, k + sensitivity), infinite
    where the neighbour cannot give it. Each loss is split between the two grid
    points around it so that both neighbours keep their mass: merging the two
    gives the loss back, so the split pair dominates and so do its adaptive
    compositions [ZDW22]. The T-fold sum is taken by an exponentially tilted
    FFT whose rounding and wrap-around are added to the result (SR8).
    """
    half = coins // 2
    if sensitivity > coins:  # no outcome is possible from both neighbours
        return 1.0
    ahead = BinomialLaw(coins).probabilities()
    pmf = np.concatenate((ahead[:0:-1], ahead))
    z = np.arange(1 - len(ahead), len(ahead), dtype=np.float64)
    # Outcomes the neighbour cannot give, and so few beside them that they do not matter, count as infinite losses.
    likely = gaussian_delta(epsilon, 2.0 * sensitivity * math.sqrt(queries / coins))
    beyond = np.cumsum(pmf[::-1])[::-1]
    open_end = (z > half - sensitivity) | (queries * beyond <= 1e-5 * likely)
    infinite = min(1.0, queries * (math.fsum(pmf[open_end]) + 1e-300))
    z, pmf = z[~open_end], pmf[~open_end]
    loss = np.zeros_like(z)
    for j in range(sensitivity):
        loss += np.log((half + z + 1.0 + j) / (half - z - j))
    # The target is read off the grid, so epsilon lies on it; one step is a 40th of an answer's spread of loss,
    # the same for numbers of coins that are near each other.
    h = epsilon / math.ceil(epsilon * 20.0 * math.sqrt(2.0 ** coins.bit_length()) / sensitivity)
    deltas, at = _composed(loss, pmf, epsilon, queries, h)
    total = (deltas + infinite) * (1.0 + _MARGIN + 1e-12 * queries)
    if guarantee == "posterior":
        below = at < epsilon - h / 2.0
        total = total[below] / -np.expm1(at[below] - epsilon)
    return float(min(1.0, total.min(initial=1.0)))


def coins_exact(
    epsilon: float, delta: float, queries: int, *, guarantee: Guarantee = "posterior", sensitivity: int = 1
) -> int:
    """Smallest even number of coins whose T answers meet the target, by exact search [S1.5, SR8].

    Privacy: `coin_delta` at the returned number is at most delta. Adding two
    coins is post-processing, so delta falls with the number and bisection finds it.
    """
    variance = (variance_posterior if guarantee == "posterior" else variance_dp)(epsilon, delta, queries)
    likely = max(2, 2 * sensitivity, _even(4.0 * variance * sensitivity**2))
    if likely > 1.5 * LARGEST_COINS:  # the search would only tell so more slowly
        raise _too_many_coins()

    @functools.cache
    def meets(coins: int) -> bool:
        return coin_delta(coins, epsilon, queries, guarantee=guarantee, sensitivity=sensitivity) <= delta

    low = high = min(likely, LARGEST_COINS)
    while not meets(high):
        if high == LARGEST_COINS:
            raise _too_many_coins()
        low, high = high, min(LARGEST_COINS, max(high + 2, _even(high * 1.02)))
    while low > 2 and meets(low):
        low, high = max(2, 2 * math.floor(low * 0.49)), low
    while high - low > 2:
        middle = 2 * ((low + high) // 4)
        low, high = (low, middle) if meets(middle) else (middle, high)
    return low if meets(low) else high


@dataclass(frozen=True, slots=True)
class SamplingReport:
    """Noise beside the sampling error a survey of this size has anyway [S0.28]."""

    size: int
    sampling: float  # sqrt(n)/2: the largest standard deviation of a count of n fair rows
    noise: tuple[tuple[str, float], ...]  # sqrt(R) by calibration
    capacity: tuple[tuple[str, int], ...]  # largest T with sqrt(R) < sqrt(n), by calibration

    def __str__(self) -> str:
        head = f"With {self.size} people a count has a sampling error of up to {self.sampling:.4g}."
        capacity = dict(self.capacity)
        lines = (
            f"{name}: noise {noise:.4g}; below sqrt(n) for up to {capacity[name]} queries" for name, noise in self.noise
        )
        return "\n".join((head, *lines))


def sampling_report(size: int, epsilon: float, delta: float, queries: int) -> SamplingReport:
    """Compare sqrt(R) with sqrt(n)/2 and find how many queries stay below sqrt(n), by calibration [S0.28]."""
    noise, capacity = [], []
    for name, variance in _VARIANCES.items():
        noise.append((name, math.sqrt(variance(epsilon, delta, queries))))
        low, high = 0, 1
        while high <= 10**12 and variance(epsilon, delta, high) < size:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if variance(epsilon, delta, middle) < size else (low, middle)
        capacity.append((name, low))
    return SamplingReport(size, math.sqrt(size) / 2.0, tuple(noise), tuple(capacity))


@dataclass(frozen=True, slots=True)
class Calibration:
    """The noise of one scalar sum under a SubLinear budget, for a person who moves it by one.

    A sum that a person moves by D takes D times the scale (coins: see
    `coins_exact`, since stretched coins would show the remainder of the sum).
    """

    kind: Literal["gaussian", "laplace", "binomial"]
    variance: float
    scale: Fraction  # gaussian: sqrt(R), laplace: T/epsilon, both rounded up to a double; binomial: the coins
    units: int  # the scale in grid units must be at least this
    guarantee: Guarantee
    report: str


@functools.lru_cache(maxsize=256)
def noise_for(budget: SubLinear, size: int | None = None, *, sensitivity: int = 1) -> Calibration:
    """The noise a SubLinear budget puts on each scalar sum, and what it promises (SR8).

    Privacy: `posterior` for theorem1, theorem4, posterior, laplace and binomial,
    `dp` for dp. theorem1 and theorem4 are never below `variance_posterior`
    (E03). The Gaussians are discrete, on a grid of at least `units` to a scale,
    and their variance makes up for the difference from a rounded normal.
    `sensitivity` counts for binomial alone.
    """
    epsilon, delta, queries = float(budget.exact), float(budget.exact_delta), budget.queries
    if delta >= 1.0:
        raise SetupError("bad-declaration", "delta must be below 1 for the noise to mean anything.")
    if budget.calibration == "laplace":
        scale = round_up(laplace_scale(budget.exact, queries))
        return _calibration(budget, "laplace", scale, 2.0 * float(scale) ** 2, size)
    if budget.calibration == "binomial":
        coins = coins_exact(epsilon, delta, queries, sensitivity=sensitivity)
        return _calibration(budget, "binomial", Fraction(coins), coins / 4.0, size)
    units = _units(epsilon, delta, queries)
    slack = queries * gaussian_total_variation_bound(units)
    variance = _VARIANCES[budget.calibration](epsilon, delta, queries)
    exact = (variance_dp if budget.calibration == "dp" else variance_posterior)(epsilon, delta, queries, slack=slack)
    scale = round_up(Fraction(math.sqrt(max(variance, exact)) * (1.0 + _MARGIN)))
    return _calibration(budget, "gaussian", scale, float(scale) ** 2, size, units=units)


def _calibration(
    budget: SubLinear,
    kind: Literal["gaussian", "laplace", "binomial"],
    scale: Fraction,
    variance: float,
    size: int | None,
    *,
    units: int = 1,
) -> Calibration:
    guarantee: Guarantee = "dp" if budget.calibration == "dp" else "posterior"
    noise = math.sqrt(variance)
    report = f"{budget}: noise of standard deviation {noise:.4g} on a sum that one person moves by one"
    if size is not None:
        sampling = math.sqrt(size) / 2.0
        word = "below" if noise < sampling else "above"
        report += f", {word} the sampling error of up to {sampling:.4g} of {size} people"
    bound, chance = plain(budget.exact), plain(budget.exact_delta)
    if guarantee == "dp":
        promise = f"all answers together are ({bound}, {chance})-differentially private"
    elif budget.calibration == "laplace":
        promise = f"the log-odds of a fact about one person never rise by more than {bound}"
    else:
        promise = f"the log-odds of a fact about one person rise by more than {bound} with probability at most {chance}"
    return Calibration(kind, variance, scale, units, guarantee, f"{report}; {promise} ({guarantee}).")


def _units(epsilon: float, delta: float, queries: int) -> int:
    """Fewest grid units to a scale, a power of two, that make the discrete Gaussian as good as a normal.

    R grows with T, so a grid finer by sqrt(T) leaves a term as short as for one query.
    """
    least = 2.0 * queries / -math.expm1(-epsilon)  # the slack's weight in the posterior target at e1 = 0
    weight = 10.0 * (1.0 + math.exp(min(epsilon, 50.0))) * least
    bits, most = 20, 20 + math.ceil(math.log2(queries) / 2.0)
    while bits < most and weight * gaussian_total_variation_bound(2.0**bits) > delta / 100.0:
        bits += 1
    while least * gaussian_total_variation_bound(2.0**bits) > delta / 100.0:
        bits += 1
        if bits > 50:
            raise SetupError(
                "bad-declaration",
                "This delta is too small for Gaussian noise on any grid.",
                "Allow a larger delta, or use calibration='laplace', which needs none.",
            )
    return 1 << bits


_VARIANCES: Final[dict[str, Callable[[float, float, int], float]]] = {
    "posterior": variance_posterior,
    "dp": variance_dp,
    "theorem1": lambda e, d, t: max(variance_theorem1(e, d, t), variance_posterior(e, d, t)),
    "theorem4": lambda e, d, t: max(variance_theorem4(e, d / 2, t, gamma=d / 2), variance_posterior(e, d, t)),
    "laplace": lambda e, d, t: 2.0 * (t / e) ** 2,  # noqa: ARG005  one signature for all
}


def _upper(x: float) -> float:
    return 0.5 * math.erfc(x / math.sqrt(2.0))


def _mills(x: float) -> float:
    """Upper normal tail over the density, Q(x)/phi(x)."""
    if x < 8.0:
        return math.sqrt(math.pi / 2.0) * math.erfc(x / math.sqrt(2.0)) * math.exp(0.5 * x * x)
    rest = x
    for k in range(40, 0, -1):  # Laplace's continued fraction, at its limit long before
        rest = x + k / rest
    return 1.0 / rest


def _largest_mu(delta_of: Callable[[float], float], delta: float) -> float:
    """Largest mu whose delta, moved up by the margin, stays within delta."""
    low = high = 1.0
    while delta_of(high) * (1.0 + _MARGIN) <= delta:
        low, high = high, 2.0 * high
    while delta_of(low) * (1.0 + _MARGIN) > delta:
        low, high = low / 2.0, low
        if low < 1e-200:
            raise SetupError("bad-declaration", "No amount of noise meets this epsilon and delta on its grid.")
    while high / low - 1.0 > 1e-13:
        middle = math.sqrt(low * high)
        if middle in (low, high):
            break
        low, high = (middle, high) if delta_of(middle) * (1.0 + _MARGIN) <= delta else (low, middle)
    return low


@functools.lru_cache(maxsize=1024)
def _mu(guarantee: Guarantee, epsilon: float, delta: float, slack: float) -> float:
    def bound(e1: float, mu: float) -> float:
        found = gaussian_delta(e1, mu) + (slack * (1.0 + math.exp(min(e1, 700.0))) if slack else 0.0)
        return found if guarantee == "dp" else found / -math.expm1(e1 - epsilon)

    def least(mu: float) -> float:
        if guarantee == "dp" and not slack:
            return bound(epsilon, mu)
        # Any e1 below epsilon gives a true bound, so the search may stop anywhere.
        low, high, golden = 0.0, epsilon * (1.0 - 1e-12), (math.sqrt(5.0) - 1.0) / 2.0
        left, right = high - golden * (high - low), low + golden * (high - low)
        at_left, at_right = bound(left, mu), bound(right, mu)
        for _ in range(40):
            if at_left < at_right:
                high, right, at_right = right, left, at_left
                left = high - golden * (high - low)
                at_left = bound(left, mu)
            else:
                low, left, at_left = left, right, at_right
                right = low + golden * (high - low)
                at_right = bound(right, mu)
        return min(at_left, at_right, bound(0.0, mu))

    return _largest_mu(least, delta)


def _composed(loss: Floats, pmf: Floats, epsilon: float, queries: int, h: float) -> tuple[Floats, Floats]:
    """Upper bounds of delta(e) of the T-fold sum at the grid points e, up to epsilon and including it."""
    lower = np.floor(loss / h)
    share = np.expm1(lower * h - loss) / math.expm1(-h)  # of the upper neighbour: keeps both masses
    first = int(lower[0])
    grid = np.zeros(int(lower[-1]) - first + 2)
    np.add.at(grid, (lower - first).astype(np.int64), pmf * (1.0 - share))
    np.add.at(grid, (lower - first + 1.0).astype(np.int64), pmf * share)
    at: Floats = (first + np.arange(len(grid), dtype=np.float64)) * h
    # Tilted by e^(tilt loss) the sum lives around epsilon, where its digits are needed.
    aim = min(epsilon / queries, 0.9 * float(at[-1]))  # a bounded loss may not reach epsilon at all
    low, high = 0.0, 1.0
    while high < 600.0 / epsilon and float(_tilted(at, grid, high)[1] @ at) < aim:
        low, high = high, 2.0 * high
    while high - low > 1e-2 * high:
        tilt = (low + high) / 2.0
        low, high = (tilt, high) if float(_tilted(at, grid, tilt)[1] @ at) < aim else (low, tilt)
    tilt = low
    log_mass, tilted = _tilted(at, grid, tilt)
    centre = queries * float(tilted @ at)
    width = math.sqrt(max(float(tilted @ (at - centre / queries) ** 2), h * h) * queries)
    window = 12.0 * width + 2.0 * h + max(0.0, epsilon - centre)
    start = max(queries * first, min(0, math.floor((centre - window) / h)))
    last = queries * (first + len(grid) - 1)
    end = min(last, math.ceil((centre + window) / h))
    size = 1 << max(end - start, len(grid)).bit_length()
    spectrum = np.fft.rfft(tilted, size)
    power = np.ones_like(spectrum)
    remaining = queries
    while remaining:  # by squaring: each product rounds once
        power = power * spectrum if remaining & 1 else power
        spectrum, remaining = spectrum * spectrum, remaining >> 1
    summed = np.maximum(np.roll(np.fft.irfft(power, size), -((start - queries * first) % size)), 0.0)
    sums: Floats = (start + np.arange(size, dtype=np.float64)) * h
    # Added: Wilkinson's bound for the transforms, in L1, Chernoff's for what wrapped around from above, and the
    # rounding of the running sums.
    rounding = 2.0**-50 * math.log2(size) * math.sqrt(size) * (queries * float(np.linalg.norm(tilted)) + 1.0)
    further = tilt + window / width**2
    beyond = math.exp(min(0.0, queries * _tilted(at, grid, further)[0] - further * (start + size) * h))
    beyond = 0.0 if start + size > last else beyond
    summed, sums = summed[sums > -h / 2.0], sums[sums > -h / 2.0]
    weight = summed * np.exp(queries * log_mass - tilt * sums)
    above = np.concatenate((np.cumsum(weight[::-1])[::-1][1:], [0.0]))
    neighbour = np.concatenate((np.cumsum((weight * np.exp(-sums))[::-1])[::-1][1:], [0.0]))
    kept = sums < epsilon + h / 2.0
    points = sums[kept]
    error = np.where(points < last * h, rounding * np.exp(queries * log_mass - tilt * points), 0.0) + beyond
    error += 2.0**-51 * size * above[kept]
    return np.maximum(above[kept] - np.exp(points) * neighbour[kept], 0.0) + error, points


def _tilted(at: Floats, grid: Floats, tilt: float) -> tuple[float, Floats]:
    """Logarithm of the mass of grid * e^(tilt at), and that law of mass one."""
    exponent = np.where(grid > 0.0, tilt * at + np.log(np.maximum(grid, 5e-324)), -np.inf)
    top = float(exponent.max())
    weighted = np.exp(exponent - top)
    mass = math.fsum(weighted)
    return top + math.log(mass), weighted / mass


def _even(coins: float) -> int:
    return 2 * math.ceil(coins / 2.0)


def _too_many_coins() -> SetupError:
    return SetupError(
        "bad-declaration",
        f"This budget needs more than {LARGEST_COINS} coins an answer.",
        "Allow fewer queries, a larger epsilon, or another calibration.",
    )
