"""The price of an accuracy, and a total divided over several queries, by what public facts foretell (SR7).

Both need one thing of a query: how far off it would be at a spend, which falls as
the spend grows. Nothing here asks anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Final

from sulq.errors import QuestionError
from sulq.language.privacy import LARGEST, SMALLEST, Epsilon, EpsilonDelta, Rho

Priced = Epsilon | Rho
Off = Callable[[float], float]  # how far off, as a part of what is wished for, at a spend of so much

MAX_ROUNDS: Final = 60
INVERSE_STEPS: Final = 5  # as if the error were inverse; then the interval is halved
PRICE_TOLERANCE: Final = 1e-3  # how far from the best price, relatively, where the error is not inverse
SHARE_PARTS: Final = 10**9  # a total is divided in billionths of itself
MAX_TURNS: Final = 12
ERROR_TOLERANCE: Final = 1.005  # errors that are this near each other agree
MIN_SHARE: Final = 1e-4  # of a total, for each query of a workload


def price(off: Off, kind: type[Priced]) -> Priced:
    """The smallest spend at which a query is off by no more than is wished for.

    The error of a sum is inverse to epsilon, or to the root of rho: a step or two
    finds its price, to six digits. For other statistics the steps are kept between a
    spend that is too small and one that is enough, until these are a thousandth apart.

    Raises:
        QuestionError: `too-costly` where no spend that may be named is enough.
    """
    power = 1.0 if kind is Epsilon else 2.0
    low, high = math.log(float(SMALLEST)), math.log(float(LARGEST))
    place, enough = 0.0, math.inf
    for i in range(MAX_ROUNDS):
        error = off(math.exp(place))
        if error <= 1:
            enough = high = place
        else:
            low = place
        if enough - low < PRICE_TOLERANCE:
            break
        step = place + power * math.log(error) + 1e-9 if 0 < error < math.inf else math.nan
        # Widths of whole units move in steps: what is met exactly may be met for less, so a little less is tried.
        step = min(step, high - 1e-6)
        place = step if low < step and i < INVERSE_STEPS else (low + high) / 2
    if enough == math.inf:
        raise QuestionError("too-costly", "No spend that could be asked for is accurate enough.")
    grain = Fraction(10) ** (math.floor(enough / math.log(10)) - 5)
    found = max(math.ceil(Fraction(math.exp(enough)) / grain) * grain, SMALLEST)
    return kind(min(found, Fraction(LARGEST)))


def divided(offs: Sequence[Off], total: float, *, squared: bool) -> list[Fraction]:
    """Parts of a total for several queries, so that the one farthest off is as near as can be.

    Noise is inverse to epsilon, or to the root of rho, so a query twice as far off
    as another needs twice its epsilon, four times its rho. Where the error is not
    quite inverse (means of few rows) the step is repeated until the errors agree.
    """
    count = len(offs)
    parts = [1.0 / count] * count
    for _ in range(MAX_TURNS):
        errors = [off(total * part) for off, part in zip(offs, parts, strict=True)]
        finite = [error for error in errors if math.isfinite(error) and error > 0]
        if not finite or max(finite) <= min(finite) * ERROR_TOLERANCE:
            break
        most = 4 * max(finite)  # what is off by anything at all gets more, step by step
        wanted = [
            part * min(max(error, 1e-12), most) ** (2 if squared else 1)
            for part, error in zip(parts, errors, strict=True)
        ]
        whole = sum(wanted)
        parts = [max(part / whole, MIN_SHARE) for part in wanted]
        parts = [part / sum(parts) for part in parts]
    return [Fraction(max(math.floor(part * SHARE_PARTS), 1), SHARE_PARTS + count) for part in parts]


def amount(loss: Epsilon | Rho | EpsilonDelta) -> float:
    """What a spend is worth in the currency it is divided in: epsilon, or rho."""
    return float(loss.rho if isinstance(loss, EpsilonDelta) else loss.exact)
