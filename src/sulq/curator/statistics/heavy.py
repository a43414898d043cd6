"""Persons of whom more rows are in the source than are kept, and the others: two counts of persons.

Privacy: a person with any row is in exactly one of the two counts, by their own rows alone. So coming, going or being
blanked moves one count by 1, whatever the number of rows; an exchange takes 1 from one count and adds 1 to one.
Source: docs/theory/holistic.md.
"""

from __future__ import annotations

from fractions import Fraction

from sulq.curator.statistics.figure import Figure, Move


def figure() -> Figure:
    """One person moves one count by 1; an exchange moves both, or one, by 1."""
    return Figure(Fraction(1), 2, Move(1, 1, 1, 1), Move(2, 2, 1, 2))
