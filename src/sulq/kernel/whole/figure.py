"""How far one person moves a statistic of the whole table, and how many numbers it is.

Each statistic has `columns`, how many numbers it reads of a row, `figure`, how far one person who alters so many rows
moves it, and `exact`, its value in whole units, of rows that lack nothing (and a function, if it is of one).
Source: docs/theory/holistic.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from sulq.kernel.facts import Refused


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

    @classmethod
    def of_bits(cls, bits: int) -> Move:
        """The move of so many bits."""
        return cls(bits, bits, min(bits, 1), bits)


@dataclass(frozen=True, slots=True)
class Figure:
    """How many numbers a statistic is, and how far one person moves it."""

    width: int
    alone: Move  # as up to k rows come or go, or are blanked
    swapped: Move  # as up to k rows go and up to k others come


def monotone(units: int) -> Figure:
    """Of a number that every further row moves the same way, by `units` at most for all of a person's rows together.

    Privacy: rows that go move it one way, those that come back the other: an exchange moves it no farther than either.
    """
    return Figure(1, Move.of(units), Move.of(units))


def of_bits(size: int, rows: int) -> Figure:
    """Of bits of which each row alone decides about one: k rows move k of them, an exchange 2k."""
    return Figure(max(size, 1), Move.of_bits(min(rows, size)), Move.of_bits(min(2 * rows, size)))


def whole(number: object, low: int, high: int) -> None:
    """Refuse what is no whole number within bounds: nothing else is reckoned with exactly."""
    if type(number) is not int or not low <= number <= high:
        raise Refused("a number that no statistic of the whole table has")
