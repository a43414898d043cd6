"""Steps of a kernel program: columns, constants, and what is made of cells whatever row function they are of.

A cell is a value and where it is missing. Each step stands in the program once.
"""

from __future__ import annotations

from collections.abc import Sequence

from sulq.compile.emit.emitter import Emitter, NotInSql
from sulq.compile.emit.labels import MAX_LIST_ENTRIES
from sulq.compile.emit.literals import double, whole
from sulq.compile.emit.piece import Piece, joined
from sulq.compile.statements.kept_table import KeptRows
from sulq.kernel.programs import (
    Stack,
    Step,
)
from sulq.language.domain import Schema, Text
from sulq.language.rowfn import RowFn
from sulq.language.rowfn.vectors import (
    Dot,
    Lookup,
    Vector,
    grid_vector,
)

Cell = tuple[int, int | None]
"""The step of a value, and the step that says where it is missing; None: nowhere."""


class Beside(Emitter):
    """Writes what stands about an inner product or a table, where the program has no step for it."""

    def _number(self, fn: RowFn) -> Piece:
        if isinstance(fn, Dot) and isinstance(fn.vector, Vector):
            kind, (weights, step) = grid_vector(fn.vector, self.schema), fn.units()
            units = [
                self.on_grid(self.number(item), kind.step, kind.low[i], kind.high[i])
                for i, item in enumerate(fn.vector.items)
            ]
            terms = " + ".join(f"{double(float(weight))} * ({{{i}}})" for i, weight in enumerate(weights))
            return joined(f"(({terms}) * {double(float(kind.step * step))})", *units)
        if isinstance(fn, Lookup) and len(fn.table) <= MAX_LIST_ENTRIES:
            (units_, step), (sizes, _) = fn.units(), fn.sizes(self.schema)
            index = joined("CAST({0} AS BIGINT)", self.code(fn.keys[0]))
            for key, size in zip(fn.keys[1:], sizes[1:], strict=True):
                index = joined(f"({{0}} * {size} + {{1}})", index, self.code(key))
            entries = ", ".join(double(float(unit) * float(step)) for unit in units_[:, 0].tolist())
            return joined(f"CAST(list_extract(list_value({entries}), {{0}} + 1) AS DOUBLE)", index)
        return super()._number(fn)


class Steps:
    """The steps and columns of one program over one relation's rows."""

    def __init__(self, schema: Schema, rows: KeptRows) -> None:
        self.schema = schema
        self.rows = rows
        self.emitter = Beside(schema, rows)
        self.steps: dict[str, int] = {}
        self._listed: list[Step | Stack] = []
        self._columns: dict[str, tuple[str, bool]] = {}  # what is selected, as it stands or worked out
        self._known: dict[tuple[str, int], tuple[Cell, RowFn]] = {}

    def put(self, step: Step | Stack) -> int:
        """The place of a step, each once."""
        said = repr(step)
        if said not in self.steps:
            self.steps[said] = len(self._listed)
            self._listed.append(step)
        return self.steps[said]

    def constant(self, value: float) -> int:
        """A public number."""
        return self.put(Step("constant", given=(value,)))

    def apply(self, name: str, *of: int) -> int:
        """A function of steps."""
        return self.put(Step(name, of))

    def take(self, of: int, entries: tuple[float | int, ...]) -> int:
        """The entry of a public table at a step's number."""
        return self.put(Step("take", (of,), entries))

    def dot(self, stack: int, weights: tuple[int, ...]) -> int:
        """The inner product of a vector with whole weights."""
        return self.put(Step("least", (stack,), ((*weights, 0),)))

    def either(self, *missing: int | None) -> int | None:
        """Where any of these is missing."""
        found: int | None = None
        for each in missing:
            if each is not None and each != found:
                found = each if found is None else self.apply("logical_or", found, each)
        return found

    def _column(self, name: str, sql: str, *, as_is: bool, missing: bool) -> Cell:
        self._columns.setdefault(name, (sql, as_is))
        place = list(self._columns).index(name)
        none = self.put(Step("missing", given=(place,))) if missing else None
        return self.put(Step("column", given=(place,))), none

    def raw(self, name: str) -> Cell:
        """A declared column's whole numbers, codes counted from 0."""
        held, column = self.rows.names[name], self.schema.find(name)
        if column is None or isinstance(column, Text):
            raise NotInSql(name)
        shift = self.rows.shifts.get(held, 0)
        sql = f"({held} - {whole(shift)})" if shift else held
        return self._column(held, sql, as_is=not shift, missing=column.missing)

    def _worked_out(self, piece: Piece, fn: RowFn) -> Cell:
        """A column that the statement works out."""
        kind = fn.kind(self.schema)
        return self._column(piece.sql, f"({piece.sql})", as_is=False, missing=kind.nullable)

    def _times(self, value: int, unit: float) -> int:
        return self.apply("multiply", value, self.constant(unit))

    def _holds(self, cell: Cell) -> int:
        value, missing = cell
        return value if missing is None else self.apply("logical_and", value, self.apply("logical_not", missing))

    def _filled(self, cell: Cell, value: float) -> int:
        return cell[0] if cell[1] is None else self.apply("where", cell[1], self.constant(value), cell[0])

    def _first(self, cells: Sequence[Cell]) -> Cell:
        value, missing = cells[0]
        for more, none in cells[1:]:
            if missing is None:
                break
            value = self.apply("where", missing, more, value)
            missing = None if none is None else self.apply("logical_and", missing, none)
        return value, missing

    def _finite(self, value: int, missing: int | None) -> Cell:
        finite = self.apply("isfinite", value)
        value = self.apply("where", finite, value, self.constant(0.0))
        return value, self.either(missing, self.apply("logical_not", finite))

    def _root(self, value: int, missing: int | None) -> Cell:
        none = self.apply("logical_not", self.apply("greater_equal", value, self.constant(0.0)))
        return self.apply("sqrt", self.apply("where", none, self.constant(0.0), value)), self.either(missing, none)
