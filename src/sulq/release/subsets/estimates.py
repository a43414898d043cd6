"""How often two things hold together, from how their counts vary together over random subsets of the people.

Two designs. `halves`: t subsets, each person in each with probability 1/2, as in the paper. `groups`: one division
of the people into g groups. Counts of a and b over the same subset are both high where the people are who have both;
the noise in them is independent, so that it adds to the spread of the products and not to their mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from sulq.answers.noise_sums import covariance, covariance_errors
from sulq.errors import QuestionError
from sulq.language.kinds import Floats

MOST: Final = 2**14  # subsets
PEOPLE: Final = 10  # in a group, where their number is left open


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number and its standard error: of the noise and of the random subsets, not of the people's own sampling."""

    value: float
    standard_error: float

    def __str__(self) -> str:
        return f"{self.value:.6g} ± {self.standard_error:.3g}"


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """Noisy counts of some disjoint conditions over each subset, and over all people.

    `counts`: a row a subset, a column a condition. `sizes`: noisy numbers of people in the subsets, from the same
    histogram. `chances`: each condition's noisy share of all people. `noise`, `share_noise`: the variance of the noise
    in a count over a subset, and in a share. `rest`: the variance of the noise in the people of a subset of whom
    the condition does not hold.
    """

    counts: Floats
    sizes: Floats
    chances: Floats
    noise: Floats
    rest: Floats
    share_noise: Floats

    @property
    def excess(self) -> Floats:
        """Counts beyond what subsets of these sizes would have by chance, about their mean."""
        away = self.counts - self.sizes[:, None] * self.chances
        found: Floats = away - away.mean(axis=0)
        return found

    @property
    def excess_noise(self) -> Floats:
        """The variance of the noise in an excess: what is counted weighs 1 - p, the rest of the histogram -p."""
        found: Floats = self.noise * (1.0 - self.chances) ** 2 + self.rest * self.chances**2
        return found

    @property
    def spread(self) -> Floats:
        """p(1 - p), the variance of a condition over the people."""
        p = np.clip(self.chances, 0.0, 1.0)
        found: Floats = p * (1.0 - p)
        return found


def from_halves(a: Series, b: Series, n: float) -> tuple[Floats, Floats]:
    """Pr[a and b] = 4/(n(t - 1)) sum over subsets of (a_s - mean)(b_s - mean), with standard errors [S3.11, S0.12].

    A random half's counts have a covariance of a quarter of the number of people who have both. The standard error
    is sqrt((p_a + 4R/n)(p_b + 4R/n) + p_ab^2)/sqrt(t - 1), R the variance of the noise.
    """
    found: Floats = covariance(a.counts, b.counts) * (4.0 / n)
    own_a, own_b = (np.maximum(x.chances, 0.0) + 4.0 * x.noise / n for x in (a, b))
    return found, covariance_errors(own_a, own_b, found, len(a.counts))


def from_groups(a: Series, b: Series, n: float) -> tuple[Floats, Floats]:
    """Pr[a and b] = p_a p_b + (1/n) g/(g - 1) sum over groups of the products of excesses, with standard errors.

    The excess of a group is the sum over its people of a(x) - p_a, so that the products' sum has an expectation of
    n(1 - 1/g) times the covariance. Standard error: sqrt((v_a + gR_a/n)(v_b + gR_b/n) + c^2)/sqrt(g - 1), v = p(1 - p)
    and R the variance of the noise in an excess; that of p_a p_b is added.
    """
    g = len(a.counts)
    together: Floats = covariance(a.excess, b.excess) * (g / n)
    errors = covariance_errors(a.spread + g * a.excess_noise / n, b.spread + g * b.excess_noise / n, together, g)
    p, q = np.clip(a.chances, 0.0, 1.0), np.clip(b.chances, 0.0, 1.0)
    own = np.outer(a.share_noise, q**2) + np.outer(p**2, b.share_noise)
    found: Floats = together + np.outer(a.chances, b.chances)
    return found, np.sqrt(errors**2 + own)


@dataclass(frozen=True, slots=True)
class Implication:
    """Whether a implies b in probability: Pr[b | a] > Pr[b] [S3.12].

    `effect`: Pr[b | a] - Pr[b], with its standard error. `slope`: the effect/(1 - Pr[a]) = Pr[b | a] - Pr[b | not a],
    by which the excess of b grows with that of a. `heavy`: how many subsets the estimate rests on.
    """

    effect: Estimate
    slope: Estimate
    chance: float  # Pr[b]
    heavy: int

    @property
    def conditional(self) -> Estimate:
        """Pr[b | a]; the noise in Pr[b] itself is far smaller, and left out of its standard error."""
        return Estimate(self.chance + self.effect.value, self.effect.standard_error)

    @property
    def implies(self) -> bool:
        """Whether the effect is positive."""
        return self.effect.value > 0


def by_regression(a: Series, b: Series, n: float, part: float) -> Implication:
    """The slope of b's excess on a's, with the noise's share taken off a's sum of squares (errors in variables).

    `part`: the variance that a subset's excess has for each of the n people and unit of p(1 - p): 1/4 for halves,
    (1 - 1/g)/g for groups. With V the variance of a's own excess, X = V + R_a, Y = W + R_b and c the covariance, the
    slope c/V has a variance of ((XY + c^2) - 4 X c^2/V + 2 X^2 c^2/V^2)/(t V^2).
    """
    x, y = a.excess[:, 0], b.excess[:, 0]
    t = len(x)
    noise_x, noise_y = float(a.excess_noise[0]), float(b.excess_noise[0])
    expected = n * part * float(a.spread[0])
    # Where noise hides the spread of a's excess its size is what the share says: never zero, never negative.
    own = max(float(x @ x) / (t - 1) - noise_x, expected / 2, 1e-12)
    c = float(x @ y) / (t - 1)
    whole_x, whole_y = own + noise_x, n * part * float(b.spread[0]) + noise_y
    slope = c / own
    variance = (whole_x * whole_y + c * c - 4 * whole_x * slope * c + 2 * (whole_x * slope) ** 2) / (t * own * own)
    return _implication(slope, math.sqrt(max(variance, 0.0)), a, b, t)


def by_heavy(a: Series, b: Series, n: float, part: float) -> Implication:
    """The mean excess of b on subsets that are heavy for a: a standard deviation or more beyond expectation [S3.12].

    Of the excess x that a noisy count shows, V/(V + R) is the people's own in expectation: the slope is the mean of
    b's excess over that of a's own. No heavy subset: nothing is known, and the standard error is infinite.
    """
    x, y = a.excess[:, 0], b.excess[:, 0]
    own = max(n * part * float(a.spread[0]), 1e-12)
    whole = own + float(a.excess_noise[0])
    heavy = x >= math.sqrt(whole)
    number = int(heavy.sum())
    if not number:
        return _implication(0.0, math.inf, a, b, 0)
    above = float(x[heavy].mean()) * own / whole
    slope = float(y[heavy].mean()) / above
    spread = n * part * float(b.spread[0]) + float(b.excess_noise[0])
    # What is left of b's excess when a's noisy excess is known: c^2/(V + R) of its variance is explained.
    left = max(spread - slope**2 * own * own / whole, 0.0)
    return _implication(slope, math.sqrt(left / number) / above, a, b, number)


def _implication(slope: float, error: float, a: Series, b: Series, heavy: int) -> Implication:
    without = 1.0 - min(max(float(a.chances[0]), 0.0), 1.0)
    effect = Estimate(slope * without, error * without)
    return Implication(effect, Estimate(slope, error), float(b.chances[0]), heavy)


def best_groups(people: float, share: float, noise: float) -> int:
    """How many groups make the standard error (v + gR/n)/sqrt(g) smallest, v = p(1 - p): nv/R.

    But no fewer than ten people a group: counts of fewer are far from normal, and the heavy groups' own excess is
    then not the part V/(V + R) of what is seen (docs/theory/inference.md).
    """
    wish = people * share * (1 - share) / max(noise, 1e-300)
    return int(max(min(wish, people / PEOPLE, MOST), 2))


def infer_t(minterms: int, eta: float, beta: float = 0.05, spread: float = 2.0) -> int:
    """How many random halves give every product of two minterms within eta/m^2, all at once but for probability beta.

    t = 2 s^2 m^4 ln(2 m^2/beta)/eta^2 [S3.11]: an average of t products of variance s^2 is within eta/m^2 but for
    2 exp(-t eta^2/(2 s^2 m^4)), by the normal law; of that the m^2 pairs may have beta/m^2 each.

    Args:
        minterms: m, the number of conjunctions of l literals: C(k, l) 2^l for k truth values.
        eta: The accuracy times m^2.
        beta: The probability with which some minterm may be further off.
        spread: s^2 = (p_a + 4R/n)(p_b + 4R/n) + p_ab^2, at most 2 where the noise is small.

    Raises:
        QuestionError: `bad-parameter`: a number out of range.
    """
    whole = isinstance(minterms, int) and minterms >= 1
    if not whole or not eta > 0 or not 0 < beta < 1 or not 0 < spread < math.inf:
        raise QuestionError("bad-parameter", "minterms is at least 1, eta and spread positive, beta between 0 and 1.")
    return math.ceil(2 * spread * minterms**4 * math.log(2 * minterms**2 / beta) / eta**2)


def proper(values: Floats) -> Floats:
    """Estimates as a table of probabilities: none negative, the sum one."""
    kept = np.maximum(values, 0.0)
    whole = float(kept.sum())
    found: Floats = kept / whole if whole > 0 else np.full(kept.shape, 1.0 / max(kept.size, 1))
    return found


def merged(estimates: Sequence[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    """The mean of several estimates of one table; they rest on the same subsets, so their errors may all agree."""
    values: Floats = np.mean([value for value, _ in estimates], axis=0)
    errors: Floats = np.mean([error for _, error in estimates], axis=0)
    return values, errors
