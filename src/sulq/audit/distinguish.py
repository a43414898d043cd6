"""A statistical lower bound of epsilon of any Door, as a black box: can answers on neighbours be told apart?

Protocol: draw answers on two neighbouring data sets; on one half of them look for the event
that tells them apart best, on the other half test that event alone, by exact intervals
(Clopper and Pearson). So the search costs no confidence. It can only ever refute: no bound
found is no proof, which is what exact pmfs and record-replay are for.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, cast

import numpy as np

from sulq.answers.answer import Answer
from sulq.audit.meaning import Door
from sulq.audit.statistics import binomial_interval
from sulq.errors import QuestionError
from sulq.language.kinds import Floats
from sulq.language.privacy import Epsilon
from sulq.language.question import Sums
from sulq.language.rowfn import RowFn, vector

ALPHA: Final = 1e-6
MAX_QUESTION_COORDINATES: Final = 4096  # coordinates of one question
SHRUNK_DEVIATIONS: Final = 5.0  # by which frequencies are drawn towards each other when events are compared

Open = Callable[[], contextlib.AbstractContextManager[Door]]


@dataclass(frozen=True, slots=True)
class Bound:
    """A lower bound of epsilon, the event that shows it, and what was claimed."""

    epsilon: float
    event: str
    hits: tuple[int, int]
    trials: int
    claimed: float

    @property
    def holds(self) -> bool:
        """False if more was lost than was claimed, but for alpha."""
        return self.epsilon <= self.claimed

    def __str__(self) -> str:
        word = "within" if self.holds else "ABOVE"
        return (
            f"epsilon is at least {self.epsilon:.4g}, {word} the claimed {self.claimed:.4g}: {self.event} in "
            f"{self.hits[0]} and {self.hits[1]} of {self.trials}"
        )


def answers(opened: Open, value: RowFn, *, each: Epsilon, trials: int) -> Floats:
    """Many answers to one sum, each paid for with `each`, through the public door of an Oracle.

    One question asks the sum many times over, as a vector: one person moves all its coordinates alike, so its price
    is shared evenly and each has the noise of an ask of its own. When a budget is used up the next database is opened.
    """
    found: list[Floats] = []
    missing = trials
    while missing > 0:
        with opened() as oracle:
            for size in _portions(oracle, each, missing):
                question = Sums((vector((value,) * size),))
                answer = cast("Answer", oracle.ask(question, spend=Epsilon(each.exact * size)))
                found.append(np.asarray(answer.released.values(), dtype=np.float64).ravel())
                missing -= size
    return np.concatenate(found)


def _portions(oracle: Door, each: Epsilon, missing: int) -> Iterator[int]:
    """How many answers each ask of one database brings, until its budget or the wish is used up."""
    left = oracle.facts.remaining
    if not isinstance(oracle.facts.budget, Epsilon) or not isinstance(left, Epsilon) or left.amount < each.exact:
        raise QuestionError("bad-parameter", "The audit needs databases with a pure budget of at least one answer.")
    room = min(int(left.amount / each.exact), missing)
    while room > 0:
        size = min(room, MAX_QUESTION_COORDINATES)
        room -= size
        yield size


def lower_bound(first: Floats, second: Floats, *, claimed: float, alpha: float = ALPHA, delta: float = 0.0) -> Bound:
    """The best lower bound of epsilon two samples of answers give, each of both laws against the other.

    Accuracy: the event is chosen on one half; on the other half there are four ends, two for each way round, and
    each is wrong with chance alpha/4: all of them hold but for alpha.
    """
    half = min(len(first), len(second)) // 2
    if half < 10:
        raise QuestionError("too-few-rows", "An audit needs twenty answers or more on each side.")
    event = _event(first[:half], second[:half], delta)
    hits = tuple(int(event.seen(sample[half : 2 * half]).sum()) for sample in (first, second))
    best = 0.0
    for one, other in (hits, hits[::-1]):
        low, _ = binomial_interval(one, half, alpha / 4.0)
        _, high = binomial_interval(other, half, alpha / 4.0)
        if low > delta:
            best = max(best, math.log(low - delta) - math.log(high))
    return Bound(best, str(event), (hits[0], hits[1]), half, claimed)


@dataclass(frozen=True, slots=True)
class _Threshold:
    """Answers at or above, or at or below, a number."""

    level: float
    above: bool

    def seen(self, sample: Floats) -> np.ndarray:
        return sample >= self.level if self.above else sample <= self.level

    def __str__(self) -> str:
        return f"answers {'>=' if self.above else '<='} {self.level:g}"


def _event(first: Floats, second: Floats, delta: float) -> _Threshold:
    """The threshold that promises the largest bound: nearly what exact intervals would give on this half."""
    levels = np.unique(np.concatenate([first, second]))
    size = len(first)
    best, chosen = -math.inf, _Threshold(float(levels[0]), above=True)
    for above in (True, False):
        side: Literal["left", "right"] = "left" if above else "right"
        below = [np.searchsorted(np.sort(sample), levels, side=side) / size for sample in (first, second)]
        one, other = [1.0 - part for part in below] if above else below
        for p, q in ((one, other), (other, one)):
            low = p - SHRUNK_DEVIATIONS * np.sqrt(p * (1.0 - p) / size) - delta
            high = q + SHRUNK_DEVIATIONS * np.sqrt(q * (1.0 - q) / size) + SHRUNK_DEVIATIONS**2 / size
            with np.errstate(divide="ignore", invalid="ignore"):
                scores = np.where(low > 0.0, np.log(low) - np.log(high), -np.inf)
            place = int(scores.argmax())
            if scores[place] > best:
                best, chosen = float(scores[place]), _Threshold(float(levels[place]), above)
    return chosen


def distinguish(first: Open, second: Open, value: RowFn, *, each: Epsilon, trials: int, alpha: float = ALPHA) -> Bound:
    """Audit an Oracle by opening it on two neighbouring data sets; more than `each` found is a broken promise."""
    samples = [answers(opened, value, each=each, trials=trials) for opened in (first, second)]
    return lower_bound(samples[0], samples[1], claimed=float(each.exact), alpha=alpha)
