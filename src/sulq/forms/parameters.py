"""Parameters of a learner or a release: refused before anything is asked, or paid for."""

from __future__ import annotations

import math
from numbers import Integral, Real

from sulq.errors import QuestionError


def checked(condition: bool, message: str) -> None:  # noqa: FBT001 - reads as a sentence
    """Refuse a parameter, before anything is asked."""
    if not condition:
        raise QuestionError("bad-parameter", message)


def whole(value: object, name: str, low: int, high: int) -> int:
    """A parameter that is a whole number from `low` to `high`, of Python or of NumPy."""
    checked(
        isinstance(value, Integral) and not isinstance(value, bool) and low <= int(value) <= high,
        f"{name} is a whole number from {low:,} to {high:,}.",
    )
    return int(value)  # type: ignore[call-overload, no-any-return]


def number(value: object) -> float:
    """A finite number of Python or of NumPy as a float; what is none, a truth value among it, as NaN."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return math.nan
    try:
        found = float(value)
    except OverflowError:
        return math.nan
    return found if math.isfinite(found) else math.nan


def between(value: object, name: str, low: float = 0.0, high: float = 1.0) -> float:
    """A parameter that is a number strictly between `low` and `high`, of Python or of NumPy."""
    found = number(value)
    checked(low < found < high, f"{name} lies strictly between {low:g} and {high:g}.")
    return found
