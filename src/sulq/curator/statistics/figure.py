"""A statistic of the whole table before any row is read: its unit, its width, and how far one person moves it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from sulq.errors import QuestionError

EXACT: Final = 2**53  # below this a library's doubles hold every whole number, and every sum of them


@dataclass(frozen=True, slots=True)
class Move:
    """How far two exact values can be apart, in whole units, by each distance an answer may be hidden in."""

    l1: int
    l2_squared: int
    most: int  # the largest difference of one coordinate
    bits: int  # how many coordinates can differ

    @classmethod
    def of(cls, units: int) -> Move:
        """The move of a single number."""
        return cls(units, units**2, units, min(units, 1))


@dataclass(frozen=True, slots=True)
class Figure:
    """One unit of the statistic in its own measure, how many numbers it is, and how far one person moves it.

    `alone`: as up to k rows come or go, or are blanked. `swapped`: as up to k rows go and up to k others come.
    """

    step: Fraction
    width: int
    alone: Move
    swapped: Move


def monotone(step: Fraction, units: int) -> Figure:
    """Of a number that every further row moves the same way, by `units` at most for all of a person's rows together.

    Privacy: the rows that go move it one way by that, those that come back the other way: together no
    farther than either. So an exchange moves it no farther than a person's coming or going.
    """
    return Figure(step, 1, Move.of(units), Move.of(units))


def either_way(step: Fraction, units: int) -> Figure:
    """Of a number that rows move both ways: an exchange may move it twice as far as a person's coming or going."""
    return Figure(step, 1, Move.of(units), Move.of(2 * units))


def limit(size: int, most: int, what: str, remedy: str = "") -> None:
    """Refuse what would take too long or too much room, by public numbers alone, before anything is paid."""
    if size > most:
        raise QuestionError("too-large", f"{what} is worked out for at most {most:,}; here there are {size:,}.", remedy)
