"""A class of queries of one's own on a small domain: row functions that the cells of the domain determine [S3.32]."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Self

import numpy as np

from sulq.errors import QuestionError
from sulq.forms.parameters import checked
from sulq.language.attribute import Attribute
from sulq.language.domain import Category, Schema, Text
from sulq.language.kinds import Cells, Floats, Integers, Truth
from sulq.language.rowfn import Col, RowFn
from sulq.language.rowfn.base import evaluate, number, numbers, walk
from sulq.release.space import CellSpace, places, text

MAX_QUERIES: Final = 10_000
MAX_TRIED: Final = 2**20  # combinations of values that a query is worked out for
MAX_GRID: Final = 10_000  # a query's values are multiples of one over this or less
MAX_ROUNDING: Final = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class QueryClass:
    """Named queries and what each says of a row of each cell, in units of 1/grid."""

    names: tuple[str, ...]
    units: Integers  # a row a query, a column a cell
    grid: int

    @property
    def boolean(self) -> bool:
        """Whether every query is a condition."""
        return self.grid == 1

    @classmethod
    def of(cls, queries: Mapping[str, RowFn], space: CellSpace, schema: Schema) -> Self:
        """The class as its row functions are on the cells of a space.

        Raises:
            QuestionError: `bad-parameter`: no row function within [0, 1], of other columns than the space's, not the
                same over a whole cell, or on no grid; `too-large`: too many values to try. Nothing is asked.
        """
        checked(
            isinstance(queries, Mapping)
            and 0 < len(queries) <= MAX_QUERIES
            and all(isinstance(name, str) and name and isinstance(fn, RowFn) for name, fn in queries.items()),
            f"queries is a mapping of at most {MAX_QUERIES:,} names to row functions: {{'old': col('age') > 60}}.",
        )
        values = np.stack([_on_cells(name, fn, space, schema) for name, fn in queries.items()])
        grid = _grid(values)
        return cls(tuple(queries), np.rint(values * grid).astype(np.int64), grid)

    def fractions(self, cells: Integers) -> tuple[float, ...]:
        """The queries' means over rows of these cells."""
        return tuple(float(mean) for mean in self.units[:, cells].mean(axis=1) / self.grid)


class _Tried:
    """Rows of every combination of some columns' values: what a row function is worked out on."""

    def __init__(self, said: str, schema: Schema, columns: Mapping[str, Integers]) -> None:
        self.schema, self._said, self._columns = schema, said, columns
        self.size = len(next(iter(columns.values()))) if columns else 1
        self.seen: dict[int, Cells] = {}

    def codes(self, name: str) -> Cells:
        return Cells(self._columns[name], None)

    def person(self) -> Integers:
        raise QuestionError("bad-parameter", f"{self._said} looks at a row's place.")

    def position(self) -> Integers:
        raise QuestionError("bad-parameter", f"{self._said} looks at a row's place.")


def _on_cells(name: str, fn: RowFn, space: CellSpace, schema: Schema) -> Floats:
    """What a query says of a row of each cell; a refusal where that depends on more than the cell."""
    kind = number(fn, schema)
    said = f"The query {name!r}"
    inside = kind.lo is not None and kind.hi is not None and kind.lo >= -MAX_ROUNDING and kind.hi <= 1 + MAX_ROUNDING
    checked(isinstance(fn.kind(schema), Truth) or inside, f"{said} is no condition and no number within [0, 1].")
    mentioned = dict.fromkeys(part.name for part in walk(fn) if isinstance(part, Col))
    other = [column for column in mentioned if column not in space.names]
    checked(not other, f"{said} looks at {', '.join(other)}, not among the columns {', '.join(space.names)}.")
    where = places(list(mentioned), space.names) if mentioned else ()
    own = [space.attributes[place] for place in where]
    tried = _combinations(said, own)
    frame = _Tried(said, schema, tried)
    values, missing = numbers(fn, frame)
    values = np.broadcast_to(values if missing is None else np.where(missing, 0.0, values), (frame.size,))
    shape = tuple(attribute.size for attribute in own)
    cell = np.zeros(frame.size, dtype=np.int64)
    for attribute in own:
        cell = cell * attribute.size + evaluate(attribute.row, frame).values.astype(np.int64)
    low, high = np.full(math.prod(shape), np.inf), np.full(math.prod(shape), -np.inf)
    np.minimum.at(low, cell, values)
    np.maximum.at(high, cell, values)
    torn = np.flatnonzero(high > low)
    if torn.size:
        _torn(said, own, np.unravel_index(int(torn[0]), shape))
    table = np.where(np.isfinite(low), low, 0.0).reshape(shape)
    whole = np.indices(space.sizes).reshape(len(space.sizes), -1)
    return np.asarray(table[tuple(whole[place] for place in where)] if where else np.full(space.cells, float(table)))


def _combinations(said: str, own: Sequence[Attribute]) -> dict[str, Integers]:
    """Every combination of the values of some columns, in grid units."""
    ends = []
    for attribute in own:
        domain = attribute.domain
        if isinstance(domain, Text):  # no attribute
            raise AssertionError("a cell of free text")
        ends.append((0, attribute.size - 1) if isinstance(domain, Category) else (domain.low, domain.high))
    many = math.prod(high - low + 1 for low, high in ends)
    if many > MAX_TRIED:
        raise QuestionError(
            "too-large",
            f"{said} looks at columns of {many:,} combinations of values; at most {MAX_TRIED:,} are tried, to see "
            "that it is the same over every cell.",
            "Look at fewer columns, or declare a coarser grid: Int, Category, or Real(..., grid=...).",
        )
    grids = np.meshgrid(*(np.arange(low, high + 1) for low, high in ends), indexing="ij")
    return {attribute.name: grid.ravel() for attribute, grid in zip(own, grids, strict=True)}


def _torn(said: str, own: Sequence[Attribute], cell: Sequence[np.intp]) -> None:
    named = ", ".join(f"{a.name} {text(a.labels[int(i)])}" for a, i in zip(own, cell, strict=True))
    raise QuestionError(
        "bad-parameter",
        f"{said} is not the same over the whole cell {named}, so its cells do not determine it.",
        "Take more bins, or a condition that holds or fails for whole cells.",
    )


def _grid(values: Floats) -> int:
    """The least D of which all values are multiples of 1/D."""
    found = 1
    for value in np.unique(values).tolist():
        near = Fraction(value).limit_denominator(MAX_GRID)
        found = math.lcm(found, near.denominator)
        checked(
            abs(float(near) - value) <= MAX_ROUNDING and found <= MAX_GRID,
            f"Numbers of a query are multiples of one over {MAX_GRID:,} or less; round them: round(x, 2).",
        )
    return found


def conjunctions(space: CellSpace, asked: Sequence[Sequence[int]]) -> Integers:
    """For each conjunction, a cell of a marginal, in which cells of the whole domain it holds."""
    codes = np.indices(space.sizes).reshape(len(space.sizes), -1)
    found = []
    for own in asked:
        index = np.zeros(space.cells, dtype=np.int64)
        for place in own:
            index = index * space.sizes[place] + codes[place]
        found.append(np.arange(math.prod(space.sizes[place] for place in own))[:, None] == index)
    return np.concatenate(found).astype(np.int64)


def named_conjunctions(space: CellSpace, asked: Sequence[Sequence[int]]) -> tuple[str, ...]:
    """The conjunctions' names, in the same order."""
    found: list[str] = []
    for marginal in asked:
        own = [space.attributes[place] for place in marginal]
        several = itertools.product(*(attribute.labels for attribute in own))
        found += (
            " and ".join(f"{a.name} {text(label)}" for a, label in zip(own, cell, strict=True)) for cell in several
        )
    return tuple(found)
