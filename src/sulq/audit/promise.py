"""Checks of the promise itself: Pr[the log-odds of a fact rise by more than epsilon] <= delta, over T answers.

The papers' (epsilon, delta, T)-privacy [BDMN05, Def. 1; S0.4] and the survey's
(delta, T)-privacy [S1.3], where delta plays epsilon's part and the chance of failure is
"negligible": here it is always a number (E09). Stronger than (epsilon, delta)-differential
privacy, and not kept by noise that is right only for questions fixed in advance (trap 3).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from sulq.audit.beliefs import Holds, Tracker
from sulq.audit.interval import binomial_interval
from sulq.audit.pmf import Noise, Pmf, checked
from sulq.errors import QuestionError
from sulq.language.kinds import Floats

Adversary = Callable[[Sequence[int], float], Mapping[Hashable, int] | None]
ALPHA: Final = 1e-7  # how often a promise that is just kept may seem broken


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
    exceeded, trials = int((found > epsilon).sum()), int(found.size)
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
