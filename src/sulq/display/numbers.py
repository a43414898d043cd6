"""Estimates as people read them: a value rounded by its own interval, in one style for a column (decision 0078).

An interval's half-width is shown to two significant figures, and its value to the same place. Ends are rounded
outwards, so the printed interval holds the one that was worked out, and the printed value lies in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import Final

FIGURES: Final = 2  # significant figures of an interval's half-width
PLAIN_FIGURES: Final = 6  # of a number that has no interval
MIN_SEPARATED: Final = 10_000  # a column has thousands apart once it holds such a number: years are never set apart
MIN_WHOLE: Final = 1_000  # a number that stands alone has nothing after its point from here on
MIN_POSITIONAL: Final = 1e-5  # a column whose numbers are all smaller is written in powers of ten
MAX_POSITIONAL: Final = 1e15  # and one of a number as large
MAX_SKEW: Final = 0.02  # of an interval's width: so much longer one side may be where "+-" is written
UNKNOWN: Final = "unknown"
EXACT: Final = Context(prec=1_500, Emax=10**6, Emin=-(10**6))  # no digit of a double is lost

Estimate = tuple[float | None, float | None, float | None]  # a value and the ends of its interval; None: not known


def decimal(number: float | Fraction) -> Decimal:
    """A number as Python writes it: what is rounded is what a frame shows, without the last bits of a double."""
    return Decimal(number) if isinstance(number, int) else Decimal(repr(float(number)))


def half_width(estimate: Estimate) -> float:
    """Half of an interval's width; where an end is not known, how far off the other is; infinite where neither is."""
    value, low, high = estimate
    known = [end for end in (low, high) if end is not None and math.isfinite(end)]
    if len(known) == 2:
        return (max(known) - min(known)) / 2
    return abs(known[0] - value) if known and value is not None else math.inf


def last_place(estimate: Estimate, *, whole: bool) -> int | None:
    """The power of ten that a value and its interval are rounded to; None where the value is exact."""
    value, half = estimate[0], half_width(estimate)
    if half == 0 or value is None:
        return None
    if math.isinf(half):
        half = abs(value)  # nothing is known of it: two figures of the value itself
    place = decimal(half).adjusted() + 1 - FIGURES if half else 0
    return max(place, 0) if whole else place


def is_skewed(estimate: Estimate, *, whole: bool) -> bool:
    """Whether "+-" would not do: the sides of the interval differ by more than is printed, or one has no end."""
    value, low, high = estimate
    if value is None:
        return False
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return True
    place = last_place(estimate, whole=whole)
    least = 0.0 if place is None else float(Decimal(1).scaleb(place))
    return abs((high - value) - (value - low)) > max(MAX_SKEW * (high - low), least)


def _is_whole(cell: Estimate) -> bool:
    return all(number is not None and float(number).is_integer() for number in cell)


@dataclass(frozen=True, slots=True)
class NumberStyle:
    """How the estimates of a column are written; one style for all its cells.

    `whole`: its values are whole numbers. `bracketed`: with the ends of each interval, and not `+-`. `separated`: with
    thousands apart. `scientific`: in powers of ten.
    """

    whole: bool = False
    bracketed: bool = False
    separated: bool = False
    scientific: bool = False

    @classmethod
    def of(cls, estimates: Iterable[Estimate]) -> NumberStyle:
        """The style of a column, from the cells of it that are shown."""
        known = [estimate for estimate in estimates if estimate[0] is not None]
        numbers = [abs(number) for cell in known for number in cell if number is not None and math.isfinite(number)]
        largest = max(numbers, default=0.0)
        whole = all(isinstance(cell[0], int) or _is_whole(cell) for cell in known)
        return cls(
            whole=whole,
            bracketed=any(is_skewed(cell, whole=whole) for cell in known),
            separated=largest >= MIN_SEPARATED,
            scientific=0 < largest < MIN_POSITIONAL or largest >= MAX_POSITIONAL,
        )

    def place(self, estimate: Estimate) -> int | None:
        """The power of ten that a value and its interval are rounded to; None where the value is exact."""
        return last_place(estimate, whole=self.whole)

    def value(self, estimate: Estimate) -> str:
        """The value, to the place that its interval bears."""
        value = estimate[0]
        if value is None:
            return UNKNOWN
        return self._written(value, self.place(estimate), ROUND_HALF_EVEN)

    def ends(self, estimate: Estimate) -> tuple[str, str]:
        """The ends of the interval, rounded outwards."""
        value, place = estimate[0], self.place(estimate)
        low, high = (math.nan if end is None else end for end in estimate[1:])
        if value is not None:
            low, high = (
                min(value, -math.inf if math.isnan(low) else low),
                max(value, math.inf if math.isnan(high) else high),
            )
        return self._written(low, place, ROUND_FLOOR), self._written(high, place, ROUND_CEILING)

    def away(self, estimate: Estimate) -> str:
        """How far the printed value may be off, rounded up."""
        value, low, high = estimate
        place = self.place(estimate)
        if value is None or low is None or high is None or place is None:
            return "0"
        at = _rounded(decimal(value), place, ROUND_HALF_EVEN)
        far = max(EXACT.subtract(decimal(high), at), EXACT.subtract(at, decimal(low)), Decimal(0))
        return self._set(_rounded(far, place, ROUND_CEILING), place)

    def text(self, estimate: Estimate) -> str:
        """A value with its interval."""
        if estimate[0] is None:
            return UNKNOWN
        if not self.bracketed:
            return f"{self.value(estimate)} +- {self.away(estimate)}"
        low, high = self.ends(estimate)
        return f"{self.value(estimate)} in [{low}, {high}]"

    def _written(self, number: float, place: int | None, rounding: str) -> str:
        if not math.isfinite(number):
            return f"{number:g}"
        if place is None:
            return plain(number, separated=self.separated)
        return self._set(_rounded(decimal(number), place, rounding), place)

    def _set(self, number: Decimal, place: int) -> str:
        if self.scientific and number:
            digits = max(number.adjusted() - place, 0)
            mantissa, _, power = f"{number:.{digits}e}".partition("e")
            return f"{mantissa}e{int(power)}"
        return f"{number:,f}" if self.separated else f"{number:f}"


def texts(estimates: Sequence[Estimate]) -> list[str]:
    """The estimates of a column in one style, each with its interval."""
    style = NumberStyle.of(estimates)
    return [style.text(estimate) for estimate in estimates]


def figure(number: float, *, figures: int = 3) -> str:
    """A number that stands alone, such as how far something may be off: to three figures, whole from 1,000 on."""
    if not math.isfinite(number):
        return "anything"
    exact = decimal(number)
    if abs(exact) >= MIN_WHOLE or exact == exact.to_integral_value():
        return plain(int(_rounded(exact, 0, ROUND_HALF_EVEN)), separated=abs(exact) >= MIN_SEPARATED)
    return plain(number, figures=figures)


def plain(number: float, *, separated: bool = False, figures: int = PLAIN_FIGURES) -> str:
    """A number without an interval: a whole one whole, any other to six figures and without noughts at its end."""
    if not math.isfinite(number):
        return f"{number:g}"
    exact = decimal(number)
    if isinstance(number, int) or (exact == exact.to_integral_value() and abs(exact) < MAX_POSITIONAL):
        whole = int(exact)
        return f"{whole:,}" if separated else str(whole)
    place = exact.adjusted() + 1 - figures
    found = _rounded(exact, place if abs(exact) < MIN_POSITIONAL else min(place, 0), ROUND_HALF_EVEN)
    if not MIN_POSITIONAL <= abs(exact) < MAX_POSITIONAL:
        mantissa, _, power = f"{found:.{figures - 1}e}".partition("e")
        mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
        return f"{mantissa}e{int(power)}"
    text = f"{found:,f}" if separated else f"{found:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _rounded(number: Decimal, place: int, rounding: str) -> Decimal:
    found = number.quantize(Decimal((0, (1,), place)), rounding=rounding, context=EXACT)
    return found or abs(found)  # no minus before a nought
