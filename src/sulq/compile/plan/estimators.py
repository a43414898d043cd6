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
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final, cast

import numpy as np

from sulq.compile.plan.properties import members
from sulq.errors import QuestionError, SetupError
from sulq.kernel.whole.functions import Function, Owned, Range, Word, given, hushed
from sulq.language.domain import Category, Numbered, Schema, Text, grid_for
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
MOST_TRIALS: Final = 2000  # until a function gives a number
BITS: Final = 22  # an estimate has this many units between zero and its farther bound, or more
FINE: Final = 2048  # units of what one person moves a declared function by, where there is room for as many
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
        _giving(item, function, facts.schema)
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
        pieces = _pieces(many)
        with hushed():
            there = [given(function, piece, width) for piece in pieces]
            back = [given(function, piece, width) for piece in reversed(pieces)]
        if not np.array_equal(there, back[::-1], equal_nan=True):
            return False
    return True


def _pieces(many: int) -> list[Floats]:
    """Made-up rows of so many columns, all over the place."""
    rows = (np.arange(60 * many, dtype=np.float64).reshape(-1, many) * 7919 % 101) / 4 - 5
    return [rows[:0], rows[:1], rows[1:20], rows[20:24], rows[24:], rows * 1000, np.zeros((5, many))]


def _giving(item: Estimator, function: Function, schema: Schema) -> None:
    """Refuse a function that gives nothing for any made-up rows: its answers would be the middle, as if they were near.

    Rows are within the bounds of its columns, and all over the place. Those of an estimator may be any of the table's;
    where these are too many to try, it is let through. No row is looked at.
    """
    width = numbers(item.certificate)
    with hushed():
        for i, rows in enumerate(_made_up(item.certificate, schema)):
            if i == MOST_TRIALS or not np.isnan(given(function, rows, width)).all():
                return
        kind = _outcome(function, next(_made_up(item.certificate, schema)))
    wanted = "one number" if width == 1 else f"{width} numbers"
    raise SetupError(
        "bad-declaration",
        f"The function {item.name!r} must give {wanted}, and {kind} for all made-up rows of its columns: "
        "every answer would be the middle of its bounds.",
        f"Call {item.function} with an array of floats, a row for each row and a column for each column, and mend it"
        f"{', or declare another width' if isinstance(item.certificate, Stated) else ''}.",
    )


def _made_up(told: Declaration | None, schema: Schema) -> Iterator[Floats]:
    """Made-up rows for a function of declared columns, or of any of a table's, side by side."""
    every = {name: column for name, column in schema.columns if not isinstance(column, (Category, Text))}
    names = list(every) if told is None else [name for name in told.columns if name in every]
    widths: Sequence[int] = range(1, max(len(names), *COLUMNS) + 1) if told is None else (len(told.columns),)
    for many in widths:
        for start in range(len(names) if told is None else 1):
            if names:
                yield _within([every[names[(start + i) % len(names)]] for i in range(many)])
        yield from reversed(_pieces(many))


def _within(columns: Sequence[Numbered]) -> Floats:
    """Sixty made-up rows within the bounds of columns."""
    spread = [[each.low + (each.high - each.low) * (i * (7 + 6 * j) % 60) // 59 for i in range(60)]
              for j, each in enumerate(columns)]  # fmt: skip
    return np.array(
        [[float(unit * each.step) for unit in units] for each, units in zip(columns, spread, strict=True)]
    ).T


def _outcome(function: Function, rows: Floats) -> str:
    """What comes of calling a function with made-up rows, in words."""
    try:
        found = np.asarray(function(rows.copy()), dtype=np.float64)
    except Exception as error:  # noqa: BLE001 - of made-up rows, so its kind may be told
        return f"raises {type(error).__name__}"
    except SystemExit:
        return "ends the process"
    return "gives none" if np.isnan(found).all() else f"gives {found.size}"


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
        _estimator(statistic, {name: it for name, it in known.items() if not isinstance(it, (Utility, Property))})
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


def _estimator(statistic: Aggregated, known: Mapping[str, Declaration | None]) -> None:
    """Refuse an estimator that nobody has, one of several numbers, and columns other than those it is declared for."""
    if statistic.estimator not in {*ESTIMATORS, *known}:
        names = ", ".join([*ESTIMATORS, *known])
        raise QuestionError("not-certified", f"No estimator has that name; there are: {names}.")
    if statistic.estimator in OWN:
        wanted = OWN[statistic.estimator][0]
        if len(statistic.columns) != wanted:
            raise QuestionError("bad-question", f"{statistic.estimator} reads {wanted} columns.")
    told = known.get(statistic.estimator)
    if told is not None and statistic.columns != told.columns:
        why = f"{statistic.estimator} is declared for {', '.join(told.columns)} alone."
        raise QuestionError("not-certified", why, "Ask for those, or for a function declared without columns.")
    if numbers(told) != 1:
        why = f"{statistic.estimator} gives {numbers(told)} numbers; an estimate of a block is one."
        raise QuestionError("wrong-kind", why, "Ask for it by db.statistic, or for a function of one number.")
