"""Estimators: those that sulq brings; the owner's, found by their names and tried once before anything is asked (SR5).

Privacy: whatever one gives is cut off at the question's bounds, and a person is in one block (SR5, SR11), so no mistake
of sulq's own releases more (`sulq.kernel.whole.functions`). An owner's must be a function of its argument alone, or one
person would move more than one block (SR11): that is the owner's word, and a trial on made-up rows finds what is not
hidden on purpose. What else an owner declares of a function is proposed here as the kernel has it, and refused to who
asks for it otherwise.
Source: docs/theory/holistic.md.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Final, cast

import numpy as np

from sulq.compile.plan.properties import members
from sulq.errors import QuestionError, SetupError
from sulq.kernel.whole.functions import Function, Owned, Range, Word, given, hushed
from sulq.language.domain import Text, grid_for
from sulq.language.estimator import Certificate, Declaration, Estimator, Property, Stated, Utility
from sulq.language.facts import Catalogue, Facts, TableFacts
from sulq.language.kinds import Floats
from sulq.language.privacy import Unit
from sulq.language.question import Holistic
from sulq.language.space import Candidates
from sulq.language.statistic import ESTIMATORS, Aggregated, Certified, ToProperty


def _trimmed(rows: Floats) -> float:
    cut = len(rows) // 10
    return float(np.sort(rows[:, 0])[cut : len(rows) - cut].mean())


def _slope(rows: Floats) -> float:
    x = rows[:, 0] - rows[:, 0].mean()
    return float((x @ rows[:, 1]) / (x @ x))


OWN: Final[Mapping[str, tuple[int, Function]]] = {  # how many columns each reads
    "mean": (1, lambda rows: rows[:, 0].mean()),
    "median": (1, lambda rows: np.median(rows[:, 0])),
    "trimmed_mean": (1, _trimmed),
    "slope": (2, _slope),
    "correlation": (2, lambda rows: np.corrcoef(rows[:, 0], rows[:, 1])[0, 1]),
}
"""Of an empty or constant block some have nothing to say, and the middle is taken."""


COLUMNS: Final = (1, 2, 3)  # of the made-up rows on which an estimator is tried
BITS: Final = 22  # an estimate has this many units between zero and its farther bound, or more
FINE: Final = 1024  # units of what one person moves a declared function by, where there is room for as many
MOST_UNITS: Final = 2**39  # of a bound, so that widening it outwards stays within the kernel's 2^40


def load(tables: Sequence[TableFacts], unit: Unit) -> dict[str, Any]:
    """The owner's functions by name, and of properties the tables that have them.

    What cannot be found, or is a property that no table has, is the owner's to hear of, before anything is asked.
    """
    found: dict[str, Any] = {}
    for facts, item in [(table, item) for table in tables for item in table.estimators]:
        told = item.certificate
        if item.name in found or item.name in ESTIMATORS:
            raise SetupError("bad-declaration", f"There are two estimators {item.name!r}.")
        if isinstance(told, Utility) and told.sums:
            continue
        function = _found(item)
        if isinstance(told, Property):
            found[item.name] = members(item.name, told, function, facts, unit)
            continue
        columns = COLUMNS if told is None else (len(told.columns),)
        if not _steady(function, columns, numbers(told)):
            raise SetupError(
                "bad-declaration",
                f"The estimator {item.name!r} gave two values for the same rows: it must be a function of its argument "
                "alone, without memory and without chance.",
            )
        found[item.name] = function
    return found


def _found(item: Estimator) -> Function:
    """The function of an estimator, or an error that says what to do.

    Whatever a package raises as it is imported has one outcome; its text may hold lines of the source, so the error is
    raised anew, outside the handler.
    """
    package, _, name = item.function.partition(":")
    kind = ""
    try:
        function = getattr(importlib.import_module(package), name, None)
    except ModuleNotFoundError:
        function = None
    except Exception as error:  # noqa: BLE001 - see above
        function, kind = None, type(error).__name__
    if kind:
        raise SetupError(
            "bad-declaration",
            f"The package of the estimator {item.name!r} cannot be imported ({kind}): {item.function}.",
            "Import it in the Python that runs sulq, and mend what is told there.",
        )
    if not callable(function):
        raise SetupError(
            "bad-declaration",
            f"The estimator {item.name!r} was not found: {item.function}.",
            "Install its package where sulq is installed, or put its folder on PYTHONPATH.",
        )
    return cast("Function", function)


def numbers(told: Declaration | None) -> int:
    """How many numbers a function gives."""
    return told.width if isinstance(told, Stated) else len(told.candidates) if isinstance(told, Utility) else 1


def _steady(function: Function, columns: Sequence[int], width: int) -> bool:
    """Whether a function gives the same for the same made-up rows, whatever it was called with before.

    One that remembers or counts its calls would carry a person from one block into others (SR11). Memory can hide from
    any trial; this finds what is not hidden on purpose.
    """
    for many in columns:
        rows = (np.arange(60 * many, dtype=np.float64).reshape(-1, many) * 7919 % 101) / 4 - 5  # all over the place
        pieces = [rows[:0], rows[:1], rows[1:20], rows[20:24], rows[24:], rows * 1000, np.zeros((5, many))]
        with hushed():
            there = [given(function, piece, width) for piece in pieces]
            back = [given(function, piece, width) for piece in reversed(pieces)]
        if not np.array_equal(there, back[::-1], equal_nan=True):
            return False
    return True


def functions_of(own: Mapping[str, Any]) -> dict[str, Any]:
    """The functions of rows that may be asked for, by name: the owner's, and those of sulq."""
    return {**own, **{name: function for name, (_, function) in OWN.items()}}


def range_of(low: float, high: float, fine: Fraction | None = None) -> Range:
    """One unit of an estimate, and its bounds in units, widened outwards; where it can be, a unit at most as `fine`."""
    ends = Fraction(low), Fraction(high)
    step = grid_for(max(map(abs, ends)), BITS)
    while fine is not None and step > fine and 2 * max(map(abs, ends)) / step <= MOST_UNITS:
        step /= 2
    return Range(step, math.floor(ends[0] / step), math.ceil(ends[1] / step))


def word(told: Declaration | None, steps: tuple[Fraction, ...], *, placed: bool = True) -> Word:
    """What an owner declares, in exact numbers, of a function of columns of these units [S4.13, S4.27, S3.31].

    Privacy: a certificate is about rows that are a person each; what it says of a row is said of a person (Lemma 1).
    """
    if not isinstance(told, (Certificate, Stated, Utility)) or told.sensitivity is None:
        raise LookupError("a function has a sensitivity")
    moved = 2 * Fraction(told.within) if isinstance(told, Certificate) else Fraction(told.sensitivity)
    width = numbers(told)
    fine = moved / width / FINE  # rounding adds a unit for each number but one, and up to one to their move
    return Word(steps, range_of(told.low, told.high, fine), moved, width, isinstance(told, Utility), placed)


def owned(table: TableFacts, facts: Catalogue) -> dict[str, Owned]:
    """What the owner of a table declares of functions, each by the names of its columns."""
    found = {}
    for item in table.estimators:
        told = item.certificate
        if not isinstance(told, (Certificate, Stated, Utility)) or told.sensitivity is None:
            continue
        columns = [table.schema.find(name) for name in told.columns]
        steps = tuple(column.step for column in columns if column is not None and not isinstance(column, Text))
        if len(steps) == len(told.columns):
            said = word(told, steps, placed=facts.placed(table))
            found[item.name] = Owned(said, (table.schema.table,), told.columns)
    return found


def registered(asked: Holistic, table: TableFacts, facts: Facts) -> Declaration | None:
    """What the owner declares of what is asked for; refuses what is not the owner's, or not declared so (SR5).

    Privacy: a function's sensitivity is about all rows of the table and about the columns it names. So no condition,
    which would leave rows out. Lemma 1 is about tables of as many rows, each in its place: a certificate is refused
    where a person owns more rows than are kept, or rows are nobody's.
    """
    statistic = asked.statistic
    known = {item.name: item.certificate for item in table.estimators}
    if isinstance(statistic, Aggregated):
        _estimator(statistic, [name for name, told in known.items() if not isinstance(told, (Utility, Property))])
    chosen = isinstance(asked.space, Candidates)
    if not isinstance(statistic, (Certified, ToProperty)):
        if chosen:
            raise QuestionError("wrong-kind", "Candidates are those of a utility that the owner has declared.")
        return None
    found = known.get(statistic.name)
    kinds = (Property,) if isinstance(statistic, ToProperty) else (Utility,) if chosen else (Certificate, Stated)
    if not isinstance(found, kinds) or (isinstance(found, Utility) and found.sums):
        what = " or ".join(kind.__name__ for kind in kinds)
        raise QuestionError("not-certified", f"The owner has declared no {what} of that name.")
    if isinstance(statistic, ToProperty) and asked.space is not None:
        raise QuestionError("wrong-kind", "The distance from a property is a number; leave space= out.")
    columns = found.columns
    if isinstance(found, Property) and not columns and table.graph is not None:
        columns = (table.graph.u, table.graph.v)
    if statistic.columns != columns:
        raise QuestionError("not-certified", f"{statistic.name} is declared for {', '.join(columns)} alone.")
    if isinstance(statistic, Certified):
        if asked.where is not None:
            raise QuestionError("not-certified", "A declaration is about the whole table; leave the condition out.")
        there = facts.placed(table)
        if isinstance(found, Certificate) and not there:
            raise QuestionError("needs-position", "A certificate is about tables of as many rows, each one a person.")
        if statistic.placed != there:
            raise QuestionError("not-certified", f"Rows have {'' if there else 'no '}places here: placed={there}.")
    return found


def _estimator(statistic: Aggregated, known: Sequence[str]) -> None:
    if statistic.estimator not in {*ESTIMATORS, *known}:
        names = ", ".join([*ESTIMATORS, *known])
        raise QuestionError("not-certified", f"No estimator has that name; there are: {names}.")
    if statistic.estimator in OWN:
        wanted = OWN[statistic.estimator][0]
        if len(statistic.columns) != wanted:
            raise QuestionError("bad-question", f"{statistic.estimator} reads {wanted} columns.")
