"""Joint regions: what weighted sums of independent noises leave possible for a variance, covariance or correlation.

At the truth each of these solves an equation that is linear in the exact sums, with the means (for a correlation also
the part of one variance in both) as further unknowns. In released sums the equation is off by a weighted sum of noises
alone, whose quantile is known. The further unknowns lie in ranges of their own, for a small part of beta; as the
equation is stationary in them, their ranges widen the result by their square only. A range is narrowed as long as
every value that satisfies the equation stays in it.

Accuracy: each range holds the table's statistic except with probability beta, whatever the rows are.
Source: docs/theory/intervals.md.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import Final

import numpy as np

from sulq.answers.readings.noise_sums import SLACK, AddedLaw
from sulq.answers.released import Noise
from sulq.language.kinds import Floats, Truths
from sulq.language.law import GaussianLaw, LaplaceLaw, Law

Range = tuple[Floats, Floats]
APART: Final = 1.01  # weights nearer than this are spread, upwards: more noise is never less
LEAST_PART: Final = 1e-6  # of the largest weight: less is raised to it
NUISANCE: Final = 1 / 20  # of beta, for the range of each further unknown
CURVED: Final = 1 / 12  # of beta, for either bound on a product of two of them, and for the ratio of variances
ROUNDS: Final = 6  # how often a range is narrowed
RATIO_ROUNDS: Final = 12  # by a divisor that is not far from its noise
SLICES: Final = 4  # of the range of k, each read for itself
NEWTON_STEPS: Final = 6  # each squares the error
COARSE: Final = 64.0  # a Gaussian scale from which a slack of one unit more is little
QUARTER: Final = 0.25  # added to a Gaussian's, so that the continuous law is the less peaked
_FINE: Final = np.linspace(0.0, 1.0, 17)


def combined_reach(noises: Sequence[Noise], weights: Sequence[Floats], beta: float) -> Floats:
    """What a sum of independent draws, each times a weight of at most this size, passes with probability beta at most.

    Accuracy: by the law of the sum for Laplace and for Gaussian draws, or each draw within its own bound, whichever is
    less; either rises in every weight (Birnbaum), so that weights may be bounded from above.
    """
    sizes = np.stack(np.broadcast_arrays(*(np.abs(weight) for weight in weights)), axis=-1)
    return np.minimum(*_reaches(noises, sizes, beta))


def _reaches(noises: Sequence[Noise], sizes: Floats, beta: float) -> tuple[Floats, Floats]:
    """Each draw within its own bound; and the law of the sum, where there is one."""
    steps = np.array([float(noise.step) for noise in noises])
    laws: list[Law | AddedLaw] = [noise.law for noise in noises]
    apart: Floats = sizes @ (steps * np.array([law.accuracy(beta / len(laws)) for law in laws]))
    made = [_continuous(law) for law in laws]
    if all(isinstance(law, AddedLaw) and isinstance(law.law, LaplaceLaw) for law in laws):
        return apart, _chernoff(sizes * steps, laws, beta)
    if len(laws) == 1 or len({kind for kind, _, _ in made}) > 1 or made[0][0] is None:
        return apart, np.full_like(apart, np.inf)
    spread, slack = sizes * (steps * np.array([scale for _, scale, _ in made])), np.array([part for *_, part in made])
    if made[0][0] is LaplaceLaw:
        together = laplace_reach(spread, beta)
    else:
        together = -NormalDist().inv_cdf(beta / 2) * np.sqrt((spread**2).sum(axis=-1))
    return apart, together + sizes @ (steps * slack)


@functools.lru_cache(maxsize=4096)
def _continuous(law: Law | AddedLaw) -> tuple[type | None, float, float]:
    """The kind and scale of a continuous law, and a slack a unit, that bound sums of draws of a law of integers.

    A draw and a uniform one of [-1/2, 1/2] together are more peaked than the continuous draw: proved for Laplace,
    checked here for each Gaussian scale below COARSE (docs/theory/intervals.md).
    """
    if isinstance(law, LaplaceLaw):
        return LaplaceLaw, 0.5 / math.tanh(0.5 / float(law.scale)), 0.5
    if not isinstance(law, GaussianLaw):
        return None, 0.0, 0.0
    scale = float(law.scale)
    wider = math.sqrt(scale**2 + QUARTER)
    return (GaussianLaw, wider, 0.5) if scale < COARSE and _more_peaked(law, wider) else (GaussianLaw, scale, SLACK)


def _more_peaked(law: GaussianLaw, wider: float) -> bool:
    """Whether a draw plus a uniform one passes every t at most as often as a normal of this deviation.

    What is passed is linear between half integers; the normal's tail is convex, so a tangent of it that is above both
    ends of a piece shows it.
    """
    mass = np.array([law.pmf(z) for z in range(math.ceil(36 * float(law.scale)) + 3)])
    passed = 2 * np.cumsum(mass[:0:-1])[::-1]  # P(|Z| >= j) for j = 1, 2, ...
    nodes = np.concatenate([[0.0], np.arange(len(passed)) + 0.5])
    ends = np.concatenate([[1.0], passed])
    ends, nodes = ends[ends > 1e-290], nodes[ends > 1e-290]
    if len(ends) < 2:
        return True
    at = nodes[:-1, None] + np.diff(nodes)[:, None] * _FINE
    tail = np.array([[math.erfc(t / (wider * math.sqrt(2))) for t in row] for row in at])
    slope = -math.sqrt(2 / math.pi) / wider * np.exp(-0.5 * (at / wider) ** 2)
    left, right = (tail + slope * (node[:, None] - at) for node in (nodes[:-1], nodes[1:]))
    most = 1 + 1e-9  # of rounding in the sums
    return bool(((left * most >= ends[:-1, None]) & (right * most >= ends[1:, None])).any(axis=1).all())


def laplace_reach(scales: Floats, beta: float) -> Floats:
    """The t that |sum of w_i X_i| passes with probability at most beta, X_i Laplace of scale 1, a row of weights each.

    P = sum of a_i e^(-t/w_i), a_i the product over j of w_i^2/(w_i^2 - w_j^2), for different weights; near ones are
    raised a little, which only spreads the sum. The logarithm of P is concave, so Newton's steps never end below t.
    """
    rising = np.ascontiguousarray(np.moveaxis(np.sort(scales, axis=-1), -1, 0))  # a weight of every row side by side
    top = np.maximum(rising[-1], 1e-300)
    rising = np.maximum(rising / top, LEAST_PART)
    for i in range(1, len(rising)):
        rising[i] = np.maximum(rising[i], APART * rising[i - 1])
    squares, parts = rising**2, np.ones_like(rising)
    for i, j in itertools.permutations(range(len(rising)), 2):
        parts[i] *= squares[i] / (squares[i] - squares[j])
    rates = 1 / rising

    def passed(t: Floats) -> tuple[Floats, Floats]:
        waves = parts * np.exp(-t * rates)
        return waves.sum(axis=0) + 1e-14 * np.abs(waves).sum(axis=0), (waves * rates).sum(axis=0)

    surely = rising.sum(axis=0) * math.log(len(rising) / beta)  # each draw within its own bound
    found = rising[-1] * math.log(1 / beta)
    with np.errstate(all="ignore"):
        for _ in range(NEWTON_STEPS):
            tail, slope = passed(found)
            moved = found + tail * np.log(tail / beta) / slope
            found = np.where(np.isfinite(moved) & (moved < surely), moved, surely)
        found = found * (1 + 1e-7)
        reached: Floats = np.where(passed(found)[0] <= beta, found, surely) * top
    return reached


def _chernoff(scales: Floats, laws: Sequence[Law | AddedLaw], beta: float) -> Floats:
    """As `laplace_reach`, for weights of sums of several draws each: exponential moments bound the tail."""
    sums = [law for law in laws if isinstance(law, AddedLaw)]
    made = [_continuous(law.law) for law in sums]
    number = np.array([law.number for law in sums])
    spread = scales * np.array([scale for _, scale, _ in made])
    top = np.maximum(spread.max(axis=-1), 1e-300)
    share = (spread / top[..., None])[..., None, :] * np.geomspace(0.01, 0.99, 40)[:, None]
    bound = (math.log(2 / beta) - (number * np.log1p(-(share**2))).sum(axis=-1)) / np.geomspace(0.01, 0.99, 40)
    slack = scales @ (number * np.array([part for *_, part in made]))
    found: Floats = bound.min(axis=-1) * top + slack
    return found


def contracted(start: Range, narrowed: Callable[[Range], Range], rounds: int = ROUNDS) -> Range:
    """A range, narrowed again and again to what its own bounds allow; never empty."""
    low, high = start
    for _ in range(rounds):
        a, b = narrowed((low, high))
        low, high = np.clip(a, low, high), np.clip(b, low, high)
    return low, high


def over(low: Floats, high: Floats, least: Floats, most: Floats) -> Range:
    """The quotients of a range and a range of positive numbers; anything where the divisor may not be positive."""
    with np.errstate(all="ignore"):
        a, b = np.where(low < 0, low / least, low / most), np.where(high > 0, high / least, high / most)
    return np.where(least > 0, a, -np.inf), np.where(least > 0, b, np.inf)


def largest(low: Floats, high: Floats) -> Floats:
    """The largest size in a range."""
    return np.maximum(np.abs(low), np.abs(high))


def squared(low: Floats, high: Floats) -> Range:
    """The squares of a range."""
    least = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
    return least**2, largest(low, high) ** 2


def times(a: Range, b: Range) -> Range:
    """The products of two ranges."""
    corners = np.stack([x * y for x in a for y in b])
    return corners.min(axis=0), corners.max(axis=0)


def less(a: Range, b: Range) -> Range:
    """The differences of two ranges."""
    return a[0] - b[1], a[1] - b[0]


def positive(n: Floats) -> Floats:
    """A divisor: where it is not positive some number that is, as nothing is claimed there."""
    return np.where(n > 0, n, 1.0)


def bernstein_mean(terms: Floats, noise: Noise, beta: float) -> Range:
    """The means of values in [0, 1] that their terms p, q, r of degree two allow: (1-m)p + (1/2-m)q - m r = 0."""
    p, q, r = terms.T
    n, one = p + q + r, p + q / 2

    def narrowed(m: Range) -> Range:
        reach = combined_reach([noise] * 3, [1 - m[0], largest(0.5 - m[0], 0.5 - m[1]), m[1]], beta)
        return over(one - reach, one + reach, n, n)

    return contracted((np.zeros_like(n), np.ones_like(n)), narrowed)


def bernstein_spread(terms: Floats, noise: Noise, ddof: int, beta: float) -> Range:
    """The variances of values in [0, 1] that their terms p, q, r of degree two allow.

    With m the mean: (1-m)^2 p - m(1-m) q + m^2 r = v (p + q + r - ddof), and the left side is least at the mean.
    """
    p, q, r = terms.T
    n = p + q + r
    m = bernstein_mean(terms, noise, NUISANCE * beta)
    off = squared(*(end - (p + q / 2) / positive(n) for end in m))
    centred = (p * r - q * q / 4) / positive(n)
    middle = np.clip(0.5, *m)
    steep = middle * (1 - middle)

    def narrowed(v: Range) -> Range:
        weights = [
            largest(*less(((1 - m[1]) ** 2, (1 - m[0]) ** 2), v)), steep + v[1], largest(*less(squared(*m), v)),
        ]  # fmt: skip
        reach = combined_reach([noise] * 3, weights, (1 - NUISANCE) * beta)
        return over(centred + n * off[0] - reach, centred + n * off[1] + reach, n - ddof, n - ddof)

    return contracted(
        (np.zeros_like(n), np.full_like(n, 0.25 * (1 + ddof))), narrowed
    )  # n/(n - 1) is at most 2, for two values


def mean_range(n: Floats, sums: Floats, noises: tuple[Noise | None, Noise], beta: float) -> Range:
    """The means of values in [-1, 1] that a count and a sum allow: s - m n = 0; without noise in a public count."""
    count, noise = noises

    def narrowed(m: Range) -> Range:
        reach = _with_count(count, largest(*m), [(noise, np.ones_like(sums))], beta)
        return over(sums - reach, sums + reach, n, n)

    return contracted((-np.ones_like(sums), np.ones_like(sums)), narrowed)


Places = Sequence[int] | np.ndarray[tuple[int], np.dtype[np.intp]]
Noises = tuple[Noise | None, Noise, Noise]  # of a count (None: a public one), of sums, of products


def _with_count(count: Noise | None, size: Floats, used: list[tuple[Noise, Floats]], beta: float) -> Floats:
    """The reach of noises with their weights, and that of a count's where it has any."""
    noises, weights = zip(*used, *([] if count is None else [(count, size)]), strict=True)
    return combined_reach(noises, weights, beta)


def covariances(
    n: Floats, sums: Floats, products: Floats, noises: Noises, beta: float, *, pairs: tuple[Places, Places], ddof: int
) -> Range:
    """Covariances of pairs of different values in [-1, 1], each from a count, two sums and a product.

    With a and b the means: P - b s_x - a s_y + a b n = c (n - ddof), and the left side is stationary at the means. How
    far off it is there, D_x D_y/n with D_x = s_x - a n, lies between -(D_x - D_y)^2/4n and (D_x + D_y)^2/4n.
    """
    count, single, double = noises
    n, (rows, columns) = n[:, None], pairs
    mean = mean_range(n, sums, (count, single), NUISANCE * beta)
    x, y = ((mean[0][:, place], mean[1][:, place]) for place in (rows, columns))
    one, found = np.ones_like(products), sums / positive(n)
    about, centred = times(x, y), products - n * found[:, rows] * found[:, columns]
    box = times(less(x, (found[:, rows],) * 2), less(y, (found[:, columns],) * 2))
    apart, together = (
        _with_count(count, largest(*ends), [(single, one), (single, one)], CURVED * beta) ** 2 / (4 * positive(n))
        for ends in (less(x, y), (x[0] + y[0], x[1] + y[1]))
    )
    low, high = centred + np.maximum(n * box[0], -apart), centred + np.minimum(n * box[1], together)

    def narrowed(c: Range) -> Range:
        used = [(single, largest(*y)), (single, largest(*x)), (double, one)]
        reach = _with_count(count, largest(*less(about, c)), used, (1 - 2 * NUISANCE - 2 * CURVED) * beta)
        return over(low - reach, high + reach, n - ddof, n - ddof)

    return contracted((-one * (1 + ddof), one * (1 + ddof)), narrowed)  # n/(n - 1) is at most 2, for two values


def variances(n: Floats, sums: Floats, squares: Floats, noises: Noises, beta: float) -> Range:
    """Variances of values in [-1, 1], each from a count, a sum and a sum of squares.

    With m the mean: Q - 2m s + m^2 n = v n, of which the left side is least at the mean, so that noise in m raises it
    alone. Where |s| is small the upper end comes from Q - m^2 n = v n, whose left side is at most Q; each end leaves
    half of beta out.
    """
    count, single, double = noises
    n, one = n[:, None], np.ones_like(sums)
    x, near = mean_range(n, sums, (count, single), NUISANCE * beta), combined_reach([single], [one], NUISANCE * beta)
    found, size = sums / positive(n), squared(*x)
    off = squared(*less(x, (found, found)))
    large, small = np.abs(sums) + near > 2 * near, np.abs(sums) - near <= 2 * near
    first, most = [squares - n * found**2 + n * end for end in off], squares - n * size[0]

    def narrowed(v: Range) -> Range:
        level = (1 - 2 * NUISANCE) * beta
        a = _with_count(count, largest(*less(size, v)), [(single, 2 * largest(*x)), (double, one)], level)
        b = _with_count(count, size[1] + v[1], [(double, one)], level)
        high = np.maximum(np.where(large, first[1] + a, -np.inf), np.where(small, most + b, -np.inf))
        return over(first[0] - a, high, n, n)

    return contracted((0 * one, one), narrowed)


def correlations(
    n: Floats, sums: Floats, products: Floats, noises: tuple[Noise, Noise, Noise], beta: float, *, slip: float
) -> Range:
    """The correlations of two values in [-1, 1]; moving values to the grid moves a covariance by `slip` at most.

    With k^2 = C_xx/C_yy: C_xy = r (k C_yy + C_xx/k)/2, and the right side is stationary in k, as C_xy is in the means.
    """
    count, single, double = noises
    own, rest = NUISANCE * beta, (1 - 3 * NUISANCE - CURVED) * beta
    low, high = mean_range(n[:, None], sums, (count, single), own)
    (x, y), found = ((low[:, i], high[:, i]) for i in (0, 1)), sums / positive(n)[:, None]
    xx, yy = squared(*x), squared(*y)
    dx, dy = ((low[:, i] - found[:, i], high[:, i] - found[:, i]) for i in (0, 1))
    xy, off = times(x, y), (squared(*dx), times(dx, dy), squared(*dy))
    slips = slip * (n + combined_reach([count], [np.ones_like(n)], own))
    # The centred sums at the means, as they are released.
    first, both, second = (
        tuple(products[:, place] - n * found[:, i] * found[:, j] + n * end for end in off[place])
        for place, (i, j) in enumerate(((0, 0), (0, 1), (1, 1)))
    )

    def part(u: Range) -> Range:  # u C_xx = (1 - u) C_yy
        v = 1 - u[1], 1 - u[0]
        weights = [
            largest(*less(times(u, xx), times(v, yy))), 2 * u[1] * largest(*x), 2 * v[1] * largest(*y), u[1], v[1],
        ]  # fmt: skip
        reach = combined_reach([count, single, single, double, double], weights, CURVED * beta) + slips
        return over(second[0] - reach, second[1] + reach, first[0] + second[0], first[1] + second[1])

    u = contracted((np.zeros_like(n), np.ones_like(n)), part)
    least = np.sqrt(np.maximum(first[0], 0.0) * np.maximum(second[0], 0.0)) * ((u[0] > 0) & (u[1] < 1))
    u = np.where(least > 0, u[0], 0.5), np.where(least > 0, u[1], 0.5)
    ends = np.geomspace(np.sqrt(1 / u[1] - 1), np.sqrt(1 / u[0] - 1), SLICES + 1)

    def at(k: Range, start: Range) -> Range:
        inverse = 1 / k[1], 1 / k[0]
        most = np.max([end * second[1] + first[1] / end for end in k], axis=0) / 2
        low = np.clip(np.sqrt(np.maximum(first[0], 0.0) / positive(second[0])), *k)
        some = np.where(least > 0, (low * second[0] + first[0] / positive(low)) / 2, 0.0)

        def narrowed(r: Range) -> Range:
            far, (a, b) = largest(*r), (times(r, k), times(r, inverse))
            mixed = [0.5 * (s + t) for s, t in zip(times(a, yy), times(b, xx), strict=True)]
            weights = [
                largest(*less(xy, (mixed[0], mixed[1]))),
                largest(*less(y, times(b, x))),
                largest(*less(x, times(a, y))),
                *(far * inverse[1] / 2, far * k[1] / 2, np.ones_like(n)),
            ]
            reach = combined_reach([count, single, single, double, double, double], weights, rest)
            reach = reach + slips * (1 + far * (k[1] + inverse[1]) / 2)
            return over(both[0] - reach, both[1] + reach, some, most)

        return contracted(start, narrowed)

    with np.errstate(all="ignore"):
        middle = np.where(least > 0, np.clip(both[0] / least, -1.0, 1.0), 0.0)
    halves = (-np.ones_like(n), middle), (middle, np.ones_like(n))
    slices = [at((ends[i], ends[i + 1]), half) for i in range(SLICES) for half in halves]
    return np.min([low for low, _ in slices], axis=0), np.max([high for _, high in slices], axis=0)


def ratios(
    above: Floats,
    below: Floats,
    weights: Floats,
    noises: Sequence[Noise],
    beta: float,
    *,
    bounds: tuple[float, float] | None,
) -> tuple[Floats, Floats, Truths]:
    """The quotients of two weighted sums, the two rows of `weights`, of the same noisy numbers; and which may be none.

    A - r B = 0 at the true ratio r. Every number that the noise leaves is within `bounds` where those are known.
    """
    a, b = np.where(below < 0, -above, above), np.abs(below)
    # Either reach of a sum of weights is at most the sum of theirs, but for what near weights are spread by.
    far, wider = np.full_like(b, np.inf), (1.0, APART ** len(noises) + 1e-3)
    for of_above, of_below, more in zip(
        *(_reaches(noises, np.abs(side), beta) for side in weights), wider, strict=True
    ):
        least = b - more * of_below
        far = np.minimum(far, np.where(least > 0, (np.abs(a) + more * of_above) / positive(least), np.inf))
    ends = (-far, far) if bounds is None else (np.clip(-far, *bounds), np.clip(far, *bounds))
    known = np.isfinite(ends[0]) & np.isfinite(ends[1])
    low, high = (np.where(known, end, 0.0) for end in ends)
    middle = np.clip(a / positive(b), low, high)

    def narrowed(r: Range) -> Range:
        sizes = [largest(one - r[0] * other, one - r[1] * other) for one, other in weights.T]
        reach = combined_reach(noises, sizes, beta)
        return over(a - reach, a + reach, b, b)

    low, _ = contracted((low, middle), narrowed, RATIO_ROUNDS)
    _, high = contracted((middle, high), narrowed, RATIO_ROUNDS)
    reach = combined_reach(noises, [np.full_like(b, size) for size in weights[1]], beta)
    return np.where(known, low, -np.inf), np.where(known, high, np.inf), b <= reach
