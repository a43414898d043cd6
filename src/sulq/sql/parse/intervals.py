"""INTERVAL constants: months, days and microseconds, and what a date becomes by one."""

from __future__ import annotations

import calendar
import datetime
import re
from typing import Final

from sulq.sql.parse.syntax import Interval

MAX_UNITS: Final = 10**6  # of any unit: beyond it no date is left
UNITS: Final[dict[str, tuple[int, int, int]]] = {
    "year": (12, 0, 0),
    "month": (1, 0, 0),
    "week": (0, 7, 0),
    "day": (0, 1, 0),
    "hour": (0, 0, 3_600_000_000),
    "minute": (0, 0, 60_000_000),
    "second": (0, 0, 1_000_000),
}
SHORT: Final = {"mon": "month", "min": "minute", "sec": "second", "yr": "year", "h": "hour", "d": "day"}
PIECE: Final = re.compile(r"\s*([+-]?\d{1,9})\s*([a-z]+)?\s*,?")


def interval(text: str, unit: str | None) -> Interval | None:
    """Read '90' with its unit beside, or '1 month 2 days'; None where it cannot be read."""
    months = days = micros = place = 0
    text = text.lower().strip()
    while place < len(text):
        found = PIECE.match(text, place)
        word = None if found is None else found.group(2) or (unit or "").lower()
        if found is None or not word:
            return None
        word = word[:-1] if word.endswith("s") and len(word) > 1 else word
        each = UNITS.get(SHORT.get(word, word))
        number = int(found.group(1))
        if each is None or abs(number) > MAX_UNITS:
            return None
        months, days, micros = months + number * each[0], days + number * each[1], micros + number * each[2]
        place = found.end()
    return Interval(months, days, micros) if text else None


def moved(moment: datetime.date, by: Interval) -> datetime.datetime | None:
    """A date or moment and an interval after it, as PostgreSQL adds them: months first, the day cut to the month's."""
    start = moment if isinstance(moment, datetime.datetime) else datetime.datetime.combine(moment, datetime.time())
    count = start.year * 12 + start.month - 1 + by.months
    year, month = divmod(count, 12)
    if not 1 <= year <= 9999:
        return None
    day = min(start.day, calendar.monthrange(year, month + 1)[1])
    try:
        return start.replace(year=year, month=month + 1, day=day) + datetime.timedelta(
            days=by.days, microseconds=by.microseconds
        )
    except OverflowError:
        return None
