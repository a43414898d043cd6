"""Properties that an owner has named: all small tables, and which of them have one; no row is looked at.

The distance of a table from a property is worked out exactly, from the nearest table that has it (`kernel/whole`). So
there must be few of them: what is more is refused, by public facts, when the data is opened.
Source: docs/theory/holistic.md [S4.28].
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Final

import numpy as np

from sulq.errors import SetupError
from sulq.language.domain import Category, Column, Text, Vertices
from sulq.language.estimator import Property
from sulq.language.facts import TableFacts
from sulq.language.kinds import Integers
from sulq.language.privacy import Unit

MAX_TABLES: Final = 2**16  # of which the owner's function is asked
MAX_TABLE_NUMBERS: Final = 2**23  # of all of them together
Predicate = Callable[..., object]


def members(name: str, told: Property, function: Predicate, table: TableFacts, unit: Unit) -> Integers:
    """The tables that have a property, a row each: the edges of a graph, or how many rows each combination has.

    Raises:
        SetupError: there are too many tables, the function fails for one of them, or none has the property.
    """
    kept: list[Integers] = []
    for numbers, shown in _graphs(name, table) if not told.columns else _tables(name, told, table, unit):
        try:
            has = bool(function(shown))
        except Exception as error:  # noqa: BLE001 - of made-up tables, so its kind may be told
            kind = type(error).__name__
        else:
            kept += [numbers] if has else []
            continue
        raise SetupError("bad-declaration", f"The property {name!r} failed for a made-up table ({kind}).")
    if not kept:
        raise SetupError("bad-declaration", f"No table of that size has the property {name!r}: there is no distance.")
    return np.array(kept, dtype=np.int64)


def _few(name: str, tables: int, numbers: int, what: str) -> None:
    if tables > MAX_TABLES or tables * numbers > MAX_TABLE_NUMBERS:
        why = f"The property {name!r} would be looked for in {tables:,} {what}; at most {MAX_TABLES:,} are."
        raise SetupError("bad-declaration", why, "Declare fewer vertices, fewer values, or fewer rows.")


def _graphs(name: str, table: TableFacts) -> Iterator[tuple[Integers, np.ndarray]]:
    """Every graph of the declared vertices: a bit for each pair, and which vertices are joined."""
    if table.graph is None:
        raise SetupError("bad-declaration", f"The property {name!r} names no columns, and no graph is declared.")
    ends = table.schema.find(table.graph.u)
    size = ends.high - ends.low + 1 if isinstance(ends, (Category, Vertices)) else 0
    pairs = size * (size - 1) // 2
    _few(name, 2 ** min(pairs, 64), max(pairs, 1), "graphs")
    low, high = np.triu_indices(size, 1)
    for code in range(2**pairs):
        bits = code >> np.arange(max(pairs, 1)) & 1
        joined = np.zeros((size, size), dtype=np.bool_)
        joined[low, high] = joined[high, low] = bits[:pairs] == 1
        yield bits, joined


def _tables(name: str, told: Property, table: TableFacts, unit: Unit) -> Iterator[tuple[Integers, np.ndarray]]:
    """Every table of few enough rows: how many have each combination of values, the last column's fastest; the rows."""
    declared = [_column(name, each, table.schema.find(each)) for each in told.columns]
    columns = [units for units, _ in declared]
    cells = math.prod(len(each) for each in columns)
    exactly = unit.neighbors == "replace_one"
    many = math.comb(told.rows + cells - (1 if exactly else 0), told.rows) if cells <= MAX_TABLES else cells
    _few(name, many, cells, "tables")
    steps = np.array([float(step) for _, step in declared])
    rows = np.array(list(itertools.product(*columns)), dtype=np.float64) * steps
    for size in (told.rows,) if exactly else range(told.rows + 1):
        for held in itertools.combinations_with_replacement(range(cells), size):
            yield np.bincount(np.array(held, dtype=np.int64), minlength=cells), rows[list(held)]


def _column(name: str, told: str, column: Column | None) -> tuple[range, Fraction]:
    """The values of a column, in units, and a unit."""
    if column is None or isinstance(column, Text):
        raise SetupError("bad-declaration", f"The property {name!r} names {told[:80]!r}, no declared column of values.")
    return range(column.low, column.high + 1), column.step
