"""Axes of charts: which labels are points in time, and ticks that read well, for numbers and for time."""

from __future__ import annotations

import datetime
import itertools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sulq.display import moments

FIRST_YEAR: Final = 1_000  # whole numbers from here on, in order, may be years
LAST_YEAR: Final = 2_999
MIN_POINTS: Final = 3  # of a line
MIN_WHOLE: Final = 13  # of labels that are whole numbers in order and no years: fewer are bars
YEAR: Final = re.compile(r"[12]\d{3}")
DAY: Final = 86_400.0
STEPS: Final = (
    1,
    5,
    15,
    30,
    60,
    300,
    900,
    1_800,
    3_600,
    7_200,
    10_800,
    21_600,
    43_200,
    DAY,
    2 * DAY,
    7 * DAY,
)  # seconds
MONTHS: Final = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1_200, 2_400, 6_000, 12_000)
MIN_STEP: Final = 1e-300  # between two ticks
MONTH: Final = 30.44 * DAY


@dataclass(frozen=True, slots=True)
class Timeline:
    """Labels that are points in time, or whole numbers in order: where each lies, and how ticks are written.

    `places`: of each label its number, or its seconds from 1970 where `dated`; None for one that has no place.
    """

    places: tuple[float | None, ...]
    dated: bool

    @classmethod
    def of(cls, labels: Sequence[object]) -> Timeline | None:
        """The places of labels, in order; None where they are not points in time. A missing label has no place.

        Dates, moments, their ISO texts, bins of these; years; and more than a dozen whole numbers, equally far apart.
        """
        starts = [label[0] if isinstance(label, tuple) and len(label) == 2 else label for label in labels]
        known = [start for start in starts if start is not None and start != "missing"]
        if len(known) < MIN_POINTS:
            return None
        when = [moments.read(start) for start in known]
        dated = None not in when
        places = [moments.seconds(one) for one in when if one is not None] if dated else _whole(known)
        if not places or places not in (sorted(set(places)), sorted(set(places), reverse=True)):
            return None
        left = iter(places)
        at = tuple(None if start is None or start == "missing" else next(left) for start in starts)
        return cls(at, dated)

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """Places and texts of ticks, of which there are about so many."""
        known = [place for place in self.places if place is not None]
        low, high = min(known), max(known)
        if self.dated:
            return time_ticks(low, high, most)
        step = next(step for step in _round_steps() if (high - low) / step <= most)
        return [(float(at * step), str(at * step)) for at in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _whole(known: Sequence[object]) -> list[float]:
    """The places of whole numbers that are years, or many and equally far apart; none of others."""
    texts = [str(label) for label in known] if all(isinstance(label, str) for label in known) else []
    if texts:
        return [float(text) for text in texts] if all(map(YEAR.fullmatch, texts)) else []
    if not all(isinstance(label, int) and not isinstance(label, bool) for label in known):
        return []
    found = [float(str(label)) for label in known]
    years = all(FIRST_YEAR <= number <= LAST_YEAR for number in found)
    even = len({b - a for a, b in itertools.pairwise(found)}) == 1
    return found if years or (even and len(found) >= MIN_WHOLE) else []


def _round_steps() -> Iterator[int]:
    power = 1
    while True:
        yield from (power, 2 * power, 5 * power)
        power *= 10


def number_ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers that cover a span: steps of 1, 2 or 5 times a power of ten."""
    rough = max((high - low) / most, 1e-9 * max(abs(low), abs(high)), MIN_STEP)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough * 0.999999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [float(f"{i * step:.12g}") for i in range(first, max(last, first + 1) + 1)]


def time_ticks(low: float, high: float, most: int) -> list[tuple[float, str]]:
    """Round moments within a span of seconds from 1970: of a day or less, or first days of months and years."""
    span = max(high - low, 1.0)
    step = next((step for step in STEPS if span / step <= most), None)
    if step is None:
        months = next((months for months in MONTHS if span / (months * MONTH) <= most), MONTHS[-1])
        return [(moments.seconds(when), _month_text(when, months)) for when in _months(low, high, months)]
    first = math.ceil(low / step)
    form = "%Y-%m-%d" if step >= DAY else "%m-%d %H:%M" if span > DAY else "%H:%M" if step >= 60 else "%H:%M:%S"
    return [(at * step, f"{moments.at(at * step):{form}}") for at in range(first, math.floor(high / step) + 1)]


def _month_text(when: datetime.datetime, months: int) -> str:
    return f"{when.year:04}" if months >= 12 else f"{when.year:04}-{when.month:02}"


def _months(low: float, high: float, step: int) -> Iterator[datetime.datetime]:
    """First days of months, so many months apart, within a span."""
    first, last = moments.at(low), moments.at(high)
    number = (first.year * 12 + first.month - 1) // step * step
    while number <= last.year * 12 + last.month - 1:
        if number >= 12:
            when = datetime.datetime(number // 12, number % 12 + 1, 1)  # noqa: DTZ001 - in UTC, without a zone
            if low <= moments.seconds(when) <= high:
                yield when
        number += step
