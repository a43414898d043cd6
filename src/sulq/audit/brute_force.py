"""The sensitivity of a function on a small domain, by brute force over all tables and all persons (S3.4).

It can refute a sensitivity that somebody declares, and show how far a proved one is from being reached. What it finds
on a small domain proves nothing of larger ones: no declared sensitivity is ever lowered by it.
Source: docs/theory/holistic.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from sulq.errors import QuestionError
from sulq.forms.parameters import checked, whole
from sulq.language.kinds import Floats, native
from sulq.language.privacy import Unit

MAX_TABLES: Final = 200_000  # of which the function is asked, each once
MAX_PAIRS: Final = 20_000_000
Row = tuple[float, ...]
Rows = tuple[int, ...]  # places in the domain; -1 for a row that is blanked
Norm = Literal["l1", "l2", "linf"]
ORDERS: Final[dict[str, float]] = {"l1": 1.0, "l2": 2.0, "linf": math.inf}


@dataclass(frozen=True, slots=True)
class LargestMove:
    """How far one person moves a function at most, over all tables of a domain, and two tables that reach it."""

    value: float
    first: tuple[Row, ...]
    second: tuple[Row, ...]
    tables: int

    def __str__(self) -> str:
        return f"{self.value:g}, over {self.tables:,} tables: from {list(self.first)} to {list(self.second)}"


def sensitivity(
    f: Callable[[Floats], object],
    domain: Iterable[object],
    n: int,
    unit: Unit | None = None,
    *,
    norm: Norm = "l1",
) -> LargestMove:
    """The largest move of a function between any two tables that differ in one person.

    Tables are handed to the function as a declared one gets them (`sulq.Stated`): an array with a row for each row and
    a column for each number, NaN for None. Where places are public and each row is a person, tables are all of n rows
    in every order; elsewhere all of up to n persons with up to `unit.rows` rows each, rows sorted. A person comes or
    goes (add_remove), is blanked (zero_out), or is exchanged for another (replace_one).

    Source: S3.4, S4.5, S4.27.

    Args:
        f: the function; it gives a number, or as many for every table.
        domain: the values that a row may have: numbers, or tuples of numbers, or an array; None is a missing cell.
        n: how many persons there are at most; exactly, where places are public.
        unit: whom an answer hides, and the relation; default: the row, add_remove.
        norm: of several numbers: all moves together ("l1"), as a length ("l2"), or the largest ("linf").

    Raises:
        QuestionError: `too-large`: there are more tables than are looked at; `bad-parameter`: no domain, or a function
            that fails or gives no finite number for some table, which is told.
    """
    known = Unit() if unit is None else unit
    checked(isinstance(known, Unit), 'unit is a Unit: sulq.Unit("pid", rows=2, neighbors="replace_one").')
    checked(isinstance(norm, str) and norm in ORDERS, f"norm is one of {', '.join(ORDERS)}.")
    checked(callable(f), "f is a function of an array.")
    values, persons = _values(domain), whole(n, "n", 1, 10**6)
    table = _Table(f, values)
    in_place = known.positions_are_public and known.column is None
    groups = _in_place(len(values), persons, known) if in_place else _in_no_order(len(values), persons, known)
    found = LargestMove(0.0, (), (), 0)
    for alike in groups:
        moved = _farthest(table, alike, norm, star=known.neighbors != "replace_one")
        if moved.value > found.value or not found.tables:
            found = moved
    return LargestMove(found.value, found.first, found.second, len(table.known))


class _Table:
    """The function's numbers of each table, asked once."""

    def __init__(self, f: Callable[[Floats], object], values: list[Row]) -> None:
        self._f, self._values, self._width = f, np.array([*values, (math.nan,) * len(values[0])]), 0
        self.known: dict[Rows, Floats] = {}

    def rows(self, rows: Rows) -> tuple[Row, ...]:
        return tuple(tuple(row) for row in self._values[list(rows)].tolist())

    def at(self, rows: Rows) -> Floats:
        if rows not in self.known:
            self.known[rows] = self._asked(rows)
        return self.known[rows]

    def _asked(self, rows: Rows) -> Floats:
        kind = "no finite numbers"
        try:
            given = self._f(self._values[list(rows)].copy())
            found = np.atleast_1d(np.asarray(given, dtype=np.float64)).ravel()
        except Exception as error:  # noqa: BLE001 - whatever it is, the caller hears for which table
            found, kind = np.full(1, math.nan), type(error).__name__
        if not np.isfinite(found).all() or not len(found) or self._width not in (0, len(found)):
            kind = kind if not np.isfinite(found).all() else "another number of numbers than before"
            raise QuestionError("bad-parameter", f"f gives {kind} for the table {list(self.rows(rows))[:20]}.")
        self._width = len(found)
        return found


def _values(domain: Iterable[object]) -> list[Row]:
    """The rows there can be, in order: that of tables in which they are sorted, missing cells first."""
    items = native(domain)
    checked(isinstance(items, Iterable) and not isinstance(items, str), "domain is a list of numbers, or of tuples.")
    rows = [item if isinstance(item, (tuple, list)) else (item,) for item in map(native, items)]
    checked(bool(rows), "A domain has at least one row: domain=(0, 1).")
    checked(len({len(row) for row in rows}) == 1 and bool(rows[0]), "Rows of a domain are of one length.")
    cells = [[native(cell) for cell in row] for row in rows]
    kinds = {type(cell) for row in cells for cell in row}
    checked(kinds <= {int, float, bool, type(None)}, "A cell of a domain is a number, or None.")
    found = [tuple(math.nan if cell is None else float(cell) for cell in row) for row in cells]
    checked(len({str(row) for row in found}) == len(found), "The rows of a domain are different ones.")
    return sorted(found, key=lambda row: [(not math.isnan(cell), 0.0 if math.isnan(cell) else cell) for cell in row])


def _small(tables: int, pairs: int) -> None:
    if tables > MAX_TABLES or pairs > MAX_PAIRS:
        many = f"{tables:,}" if tables < 10**15 else "more than 10^15"
        raise QuestionError(
            "too-large",
            f"There are {many} tables; at most {MAX_TABLES:,}, and {MAX_PAIRS:,} pairs of neighbours, are looked at.",
            "Take a smaller domain, or fewer persons.",
        )


def _in_place(size: int, n: int, unit: Unit) -> Iterator[list[Rows]]:
    """Tables of n rows in order, in groups that differ in one row; under zero_out the one without it first."""
    blanked = unit.neighbors == "zero_out"
    cells = (-1, *range(size)) if blanked else tuple(range(size))
    tables = len(cells) ** min(n, 64)
    _small(tables, tables * n * (1 if blanked else len(cells)))
    for i, others in itertools.product(range(n), itertools.product(cells, repeat=n - 1)):
        yield [(*others[:i], cell, *others[i:]) for cell in cells]


def _in_no_order(size: int, n: int, unit: Unit) -> Iterator[list[Rows]]:
    """Tables of up to n persons, in groups that differ in the rows of one of them; the one without any first."""
    rows = 1 if unit.column is None else unit.rows
    tables, own = math.comb(size + n * rows, n * rows), math.comb(size + rows, rows)
    _small(
        tables, math.comb(size + (n - 1) * rows, (n - 1) * rows) * own * (own if unit.neighbors == "replace_one" else 1)
    )
    theirs = [held for many in range(rows + 1) for held in itertools.combinations_with_replacement(range(size), many)]
    for many in range((n - 1) * rows + 1):
        for common in itertools.combinations_with_replacement(range(size), many):
            yield [tuple(sorted((*common, *held))) for held in theirs]


def _farthest(table: _Table, alike: Sequence[Rows], norm: Norm, *, star: bool) -> LargestMove:
    """The largest move among tables that differ in one person; with `star`, from the first of them alone."""
    numbers = np.array([table.at(rows) for rows in alike])
    best = LargestMove(-1.0, (), (), 1)
    for i in range(1 if star else len(alike)):
        apart = np.linalg.norm(numbers - numbers[i], ord=ORDERS[norm], axis=1)
        j = int(apart.argmax())
        if apart[j] > best.value:
            best = LargestMove(float(apart[j]), table.rows(alike[i]), table.rows(alike[j]), 1)
    return best
