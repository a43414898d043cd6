"""Dates and times as people read them: days, or moments in UTC, rounded by their own interval."""

from __future__ import annotations

import datetime
import math
from typing import Final

EPOCH: Final = datetime.date(1970, 1, 1)
START: Final = datetime.datetime(1970, 1, 1)  # noqa: DTZ001 - moments here are in UTC, without a zone
DAY_SECONDS: Final = 86_400
MICROSECOND: Final = datetime.timedelta(microseconds=1)
# What a moment may be rounded to, in microseconds: parts of a second, of a minute, of an hour, of a day.
STEPS: Final = tuple(
    [10**power for power in range(6)] + [seconds * 10**6 for seconds in (1, 10, 60, 600, 3_600, DAY_SECONDS)]
)


def place(when: datetime.date) -> float:
    """Days from 1970 of a date, microseconds of a moment."""
    if isinstance(when, datetime.datetime):
        return float((when - START) // MICROSECOND)
    return float((when - EPOCH).days)


def moment(number: float, clock: str) -> datetime.date:
    """The date or moment at a place; the nearest one there is."""
    if clock == "date":
        first, last = datetime.date.min.toordinal(), datetime.date.max.toordinal()
        days = min(max(number + EPOCH.toordinal(), float(first)), float(last))
        return datetime.date.fromordinal(round(days))
    lowest, highest = place(datetime.datetime.min), place(datetime.datetime.max)  # noqa: DTZ901
    return START + datetime.timedelta(microseconds=round(min(max(number, lowest), highest)))


def first(number: float, clock: str) -> datetime.date:
    """The last date or moment that is not after a place: where an interval begins."""
    return moment(number if math.isinf(number) else math.floor(number), clock)


def last(number: float, clock: str) -> datetime.date:
    """The first date or moment that is not before a place: where an interval ends."""
    return moment(number if math.isinf(number) else math.ceil(number), clock)


def text(when: datetime.date) -> str:
    """A date, or a moment to the part of a second that it has."""
    return when.isoformat(" ") if isinstance(when, datetime.datetime) else when.isoformat()


def estimate(value: datetime.date, low: datetime.date, high: datetime.date) -> tuple[str, str, str]:
    """A value and the ends of its interval, rounded to what the interval bears: a tenth of its half-width at most.

    Ends are rounded outwards, so the printed interval holds the one that was worked out.
    """
    if not all(isinstance(when, datetime.datetime) for when in (value, low, high)):
        return text(value), text(low), text(high)
    at, start, end = (int(place(when)) for when in (value, min(low, value), max(high, value)))
    step = max((step for step in STEPS if step <= (end - start) / 20), default=1)
    return (
        _text((at + step // 2) // step * step, step),
        _text(start // step * step, step),
        _text(-(-end // step) * step, step),
    )


def _text(microseconds: int, step: int) -> str:
    """A moment, down to the part that its step has."""
    when = moment(float(microseconds), "timestamp")
    if not isinstance(when, datetime.datetime) or step >= STEPS[-1]:
        return when.isoformat()[:10]
    if step >= 60 * 10**6:
        return when.isoformat(" ", "minutes")
    if step >= 10**6:
        return when.isoformat(" ", "seconds")
    return when.isoformat(" ", "microseconds")[: 26 - (len(str(step)) - 1)]


def bracketed(value: datetime.date, low: datetime.date, high: datetime.date) -> str:
    """A value with its interval."""
    at, start, end = estimate(value, low, high)
    return f"{at} in [{start}, {end}]"


def read(label: object) -> datetime.datetime | None:
    """A date or moment, or its ISO text, as a moment in UTC; None for anything else."""
    if isinstance(label, str):
        if not (len(label) >= 10 and label[4:5] == "-" and label[7:8] == "-"):
            return None
        try:
            label = datetime.datetime.fromisoformat(label)
        except ValueError:
            return None
    if isinstance(label, datetime.datetime):
        return label if label.tzinfo is None else label.astimezone(datetime.UTC).replace(tzinfo=None)
    return datetime.datetime.combine(label, datetime.time()) if isinstance(label, datetime.date) else None


def seconds(when: datetime.datetime) -> float:
    """Seconds from 1970, for a place on an axis."""
    return (when - START) / datetime.timedelta(seconds=1)


def at(number: float) -> datetime.datetime:
    """The moment so many seconds from 1970; the nearest there is."""
    return START + datetime.timedelta(seconds=min(max(math.floor(number), -6e10), 2.5e11))
