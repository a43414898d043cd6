"""Checks of the promise itself: Pr[the log-odds of a fact rise by more than epsilon] <= delta, over T answers.

The papers' (epsilon, delta, T)-privacy [BDMN05, Def. 1; S0.4] and the survey's (delta, T)-privacy [S1.3], where delta
plays epsilon's part and the chance of failure is "negligible": here it is always a number (E09). It is stronger than
(epsilon, delta)-differential privacy, and not kept by noise that is right only for questions fixed in advance
(trap 3). The proof walks the confidence: how large a step is on average, at most, and where the walk can end
[S0.23-S0.25], for answers of variance R about a row that moves the sum by at most 1. Logarithms are natural.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from sulq.audit.beliefs import Holds, Tracker
from sulq.audit.pmf import Noise, Pmf, checked
from sulq.audit.statistics import binomial_interval
from sulq.errors import QuestionError
from sulq.language.kinds import Floats
from sulq.language.theorems import azuma

Adversary = Callable[[Sequence[int], float], Mapping[Hashable, int] | None]
ALPHA: Final = 1e-7  # how often a promise that is just kept may seem broken
ROUNDING: Final = 1e-9  # by which log-odds that are worked out in doubles may be too large


def divergence(first: float, second: float, variance: float) -> float:
    """Kullback-Leibler divergence of normals of one variance: (difference of means)^2/(2R), at most 1/(2R) [S0.25]."""
    return (first - second) ** 2 / (2.0 * variance)


def expected_step(generating: float, means: Sequence[float], weights: Sequence[float], variance: float) -> float:
    """How far the confidence rises on average, at most, when the answer comes of one value [S0.25, Lemma 4].

    The sum over the values of the other side of weight times divergence: by convexity
    of the divergence at least the mean of ln(p/mixture).
    """
    if len(means) != len(weights) or not math.isclose(math.fsum(weights), 1.0, abs_tol=1e-9):
        raise QuestionError("bad-parameter", "Give a weight for each mean; together they are 1.")
    return math.fsum(w * divergence(generating, mean, variance) for mean, w in zip(means, weights, strict=True))


def largest_step(variance: float, queries: int, delta: float) -> float:
    """sqrt(2 ln(T/delta)/R) + 1/(2R): no step of T is larger, but with probability delta [S0.25, Lemma 6]."""
    return math.sqrt(2.0 * math.log(queries / delta) / variance) + 0.5 / variance


def theorem4_terms(variance: float, queries: int, delta: float, gamma: float) -> tuple[float, float, float]:
    """The three parts of Theorem 4's height; their sum must be within epsilon [S0.24].

    That the later two are the smaller ones "when R >= 4" is false (E05).
    """
    lam = math.sqrt(2.0 * math.log(2.0 / gamma))
    first = lam * math.sqrt(2.0 * queries * math.log(queries / delta) / variance)
    return first, lam * math.sqrt(queries) / variance, queries / (2.0 * variance)


def walk_bound(variance: float, queries: int, delta: float, gamma: float) -> tuple[float, float]:
    """How high the confidence can climb in T answers, and the chance gamma/2 + delta that it climbs higher [S0.24].

    Azuma's inequality for steps of mean at most 1/(2R) and size at most `largest_step`; one-sided,
    and the steps may depend on all before them (E06).
    """
    lam = math.sqrt(2.0 * math.log(2.0 / gamma))
    height, chance = azuma(lam, mean=0.5 / variance, bound=largest_step(variance, queries, delta), steps=queries)
    return height, chance + delta


@dataclass(frozen=True, slots=True)
class Rate:
    """How often a shift passed epsilon, and between what ends its chance lies but for alpha on either side."""

    exceeded: int
    trials: int
    epsilon: float
    delta: float
    low: float
    high: float
    largest: float

    @property
    def rate(self) -> float:
        """The part of the trials that passed."""
        return self.exceeded / self.trials

    @property
    def holds(self) -> bool:
        """False if the chance of passing epsilon is above delta for certain."""
        return self.low <= self.delta

    def __str__(self) -> str:
        word = "kept" if self.holds else "BROKEN"
        return (
            f"{word}: the log-odds rose by more than {self.epsilon:g} in {self.exceeded} of {self.trials} "
            f"({self.rate:.3g}; promised {self.delta:g}), at most by {self.largest:.3g}"
        )


def shift_chance(epsilon: float, *, variance: float, queries: int, move: float = 1.0, two_sided: bool = False) -> float:
    """Exact chance that T normal answers, fixed in advance, shift a two-point prior by more than epsilon.

    Accuracy: the increment is N(m, 2m) with m = T move^2/(2 variance), whatever the prior's odds [S0.4].
    Two-sided it is the chance that they rise or fall by that much, the row being of the fact's own side.
    """
    mean = queries * move * move / (2.0 * variance)
    deviation = math.sqrt(2.0 * mean)
    ends = [(epsilon - mean) / deviation, (epsilon + mean) / deviation]
    return math.fsum(0.5 * math.erfc(end / math.sqrt(2.0)) for end in (ends if two_sided else ends[:1]))


def gaussian_walks(variance: float, queries: int, trials: int, random: np.random.Generator) -> Floats:
    """Confidences of a two-point prior after each of T normal answers of largest move, a row a trial."""
    steps = random.normal(0.5 / variance, math.sqrt(1.0 / variance), (trials, queries))
    return np.cumsum(steps, axis=1, out=steps)


def rate(shifts: Sequence[float] | Floats, epsilon: float, delta: float, *, two_sided: bool = False) -> Rate:
    """Compare the shifts of many trials with a promise; `two_sided`: |shift|, which may fail twice as often (E48)."""
    found = np.asarray(shifts, dtype=np.float64)
    found = np.abs(found) if two_sided else found
    exceeded, trials = int((found > epsilon + ROUNDING).sum()), int(found.size)
    low, high = binomial_interval(exceeded, trials, ALPHA)
    allowed = min(1.0, 2.0 * delta) if two_sided else delta
    return Rate(exceeded, trials, epsilon, allowed, low, high, float(found.max()))


def verify(
    prior: Pmf,
    noise: Noise,
    adversary: Adversary,
    holds: Holds,
    *,
    epsilon: float,
    delta: float,
    queries: int,
    trials: int,
    random: np.random.Generator,
    two_sided: bool = False,
) -> Rate:
    """Play an adversary against the noise many times, and see how often it came to know too much [S0.4].

    The adversary knows all rows but one. It is given the answers so far (the known rows'
    part taken off) and its shift so far, and names what each value of the row counts, from 0
    to the sensitivity the noise was made for; or nothing, to stop. The row is drawn from the
    fact's own side of the prior. For a small domain and exact noise; no row of anybody's is read.
    """
    belief = checked(prior)
    side = [value for value, p in belief.items() if p and holds(value)]
    if not side or len(side) == sum(1 for p in belief.values() if p):
        raise QuestionError("bad-parameter", "The property must hold for some values of the prior and not for all.")
    weights = np.array([float(belief[value]) for value in side])
    reach = noise.accuracy(1e-12)
    support = np.arange(-reach, reach + 1)
    table = np.cumsum([noise.pmf(int(z)) for z in support])
    shifts = np.empty(trials)
    for trial in range(trials):
        value = side[int(random.choice(len(side), p=weights / weights.sum()))]
        tracker, answers = Tracker(belief, holds), list[int]()
        shifted = 0.0
        for _ in range(queries):
            counts = adversary(answers, shifted)
            if counts is None:
                break
            drawn = int(support[min(int(np.searchsorted(table, random.random())), len(support) - 1)])
            answers.append(counts[value] + drawn)
            shifted += tracker.hear_sum(counts, noise, answers[-1])
        shifts[trial] = shifted
    return rate(shifts, epsilon, delta, two_sided=two_sided)
