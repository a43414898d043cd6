"""Row functions as steps of a kernel program: their own NumPy meaning, worked out on stand-ins for columns.

`Trace` is a frame whose columns are `Traced` steps. A row function that is evaluated in it leaves in the program the
very steps that its meaning takes, so the sums are the same to the bit. What has no such steps (texts, calendars,
logarithms) is a column that the statement works out. Each step stands in the program once.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final, NoReturn, cast

import numpy as np
import numpy.typing as npt
from numpy.lib.mixins import NDArrayOperatorsMixin

from sulq.compile.statements.emitter import Emitter
from sulq.compile.statements.kept_table import PERSON, PLACE
from sulq.kernel.programs import STEPS, Stack, Step, Unit
from sulq.language.domain import Category, Schema, Text
from sulq.language.kinds import Cells, Integers, Truths
from sulq.language.rowfn import Dot, Lookup, RowFn, Vector
from sulq.language.rowfn.keys import MAX_LIST_ENTRIES
from sulq.language.rowfn.piece import NotInSql, Piece, double, joined, whole
from sulq.language.rowfn.vectors import grid_vector
from sulq.language.rowfn.writer import MODES, KeptRows, Mode

MAX_STEPS: Final = 4096  # so many coordinates of another vector, or items of a list, are taken one by one
LOGICAL: Final = {"bitwise_and": "logical_and", "bitwise_or": "logical_or", "invert": "logical_not"}  # of truths
TRUTHS: Final = frozenset({
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "isfinite",
    "logical_and", "logical_or", "logical_not",
})  # fmt: skip
TRUTH, NARROW, WHOLE, DOUBLE = (np.dtype(kind) for kind in (np.bool_, np.int16, np.int64, np.float64))


class Traced(NDArrayOperatorsMixin):
    """A step that stands for a column: what NumPy's functions make of it are further steps.

    `dtype`: bool, float64, int64, or int16 for a stored column's integers of any width.
    """

    __slots__ = ("dtype", "place", "trace")

    def __init__(self, trace: Trace, place: int, dtype: np.dtype[Any]) -> None:
        self.trace = trace
        self.place = place
        self.dtype = dtype

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *of: object, **_: object) -> Traced:
        name = ufunc.__name__
        if self.dtype == TRUTH:
            name = LOGICAL.get(name, name)
        if method != "__call__" or name not in STEPS:
            raise NotInSql(name)
        if name in ("logical_and", "logical_or") and of[0] is not of[1] and self._same(*of):
            return self
        return self._step(name, *of)

    @staticmethod
    def _same(one: object, other: object) -> bool:
        return isinstance(one, Traced) and isinstance(other, Traced) and one.place == other.place

    def __array_function__(self, function: object, _: object, of: tuple[Any, ...], how: dict[str, Any]) -> Traced:
        if function is np.where:
            return self._step("where", *of)
        if function is np.searchsorted and how == {"side": "right"}:
            return Traced(self.trace, self.trace.put(Step("search", (self.place,), tuple(of[0].tolist()))), WHOLE)
        raise NotInSql(getattr(function, "__name__", "a function"))

    def _step(self, name: str, *of: object) -> Traced:
        if name in TRUTHS:
            dtype = TRUTH
        else:
            given = [each.dtype if hasattr(each, "dtype") else np.dtype(type(each)) for each in of[name == "where" :]]
            real = name in ("divide", "sqrt") or DOUBLE in given
            dtype = DOUBLE if real else TRUTH if name == "where" and set(given) == {TRUTH} else WHOLE
        place = self.trace.put(Step(name, tuple(map(self.trace.place, of))))
        return Traced(self.trace, place, dtype)

    def astype(self, dtype: npt.DTypeLike, *, copy: bool = True) -> Traced:
        """The same numbers as doubles or integers."""
        name = {DOUBLE: "float", WHOLE: "whole"}.get(np.dtype(dtype))
        if np.dtype(dtype) == self.dtype:
            return self
        if name is None:
            raise NotInSql(str(dtype))
        return Traced(self.trace, self.trace.put(Step(name, (self.place,))), np.dtype(dtype))

    def entry_of(self, table: npt.NDArray[np.generic]) -> Traced:
        """The entry of a public table at each number."""
        place = self.trace.put(Step("take", (self.place,), tuple(table.tolist())))
        return Traced(self.trace, place, table.dtype)

    def on_grid(self, step: Fraction, low: int, high: int) -> Integers:
        """The numbers in whole units of a grid, clamped."""
        stack = self.trace.put(Stack((Unit(self.place, low, high, float(1 / step)),)))
        return self.trace.least(stack, (1, 0))

    def _no_such(self, *_: object, **__: object) -> NoReturn:
        """What looks at the rows themselves has no step."""
        raise NotInSql("rows")

    __array__ = __iter__ = __len__ = __bool__ = __getitem__ = __index__ = view = _no_such


class Beside(Emitter):
    """Writes what stands about an inner product or a table, where the program has no step for it."""

    def _written(self, mode: Mode, fn: RowFn) -> Piece:
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
        return super()._written(mode, fn)


class Trace:
    """The steps and columns of one program over one relation's rows: a frame of one row whose cells are steps."""

    size = 1  # constants of the row functions are arrays of it

    def __init__(self, schema: Schema, rows: KeptRows) -> None:
        self.schema = schema
        self.rows = rows
        self.emitter = Beside(schema, rows)
        self.seen: dict[int, Cells] = {}
        self.listed: list[Step | Stack] = []
        self.columns: dict[str, tuple[str, bool]] = {}  # what is selected, as it stands or worked out
        self._places: dict[object, int] = {}

    def put(self, step: Step | Stack) -> int:
        """The place of a step, each once."""
        # A text tells 1 from 1.0 and from True, as equality does not.
        said = repr(step) if isinstance(step, Stack) or step.given else (step.name, step.of)
        if said not in self._places:
            self._places[said] = len(self.listed)
            self.listed.append(step)
        return self._places[said]

    def place(self, value: object) -> int:
        """The place of what was traced, or of a constant."""
        if isinstance(value, Traced):
            return value.place
        if isinstance(value, np.ndarray) and (value.size != 1 or value.dtype.kind not in "bif"):
            raise NotInSql("a constant")
        return self.put(
            Step("constant", given=(value.item() if isinstance(value, (np.ndarray, np.generic)) else value,))
        )

    def least(self, stack: int, *scores: tuple[int, ...]) -> Integers:
        """The least inner product of a vector with whole weights, of which the last is for 1."""
        return cast("Integers", Traced(self, self.put(Step("least", (stack,), scores)), WHOLE))

    def _column(self, name: str, sql: str, *, as_is: bool, missing: bool, dtype: np.dtype[Any]) -> Cells:
        self.columns.setdefault(name, (sql, as_is))
        place = list(self.columns).index(name)
        none = Traced(self, self.put(Step("missing", given=(place,))), TRUTH) if missing else None
        found = Traced(self, self.put(Step("column", given=(place,))), dtype)
        return Cells(cast("Any", found), cast("Truths | None", none))

    def codes(self, name: str) -> Cells:
        """A declared column's whole numbers, codes counted from 0."""
        held, column = self.rows.names[name], self.schema.find(name)
        if column is None or isinstance(column, Text):
            raise NotInSql(name)
        shift = self.rows.shifts.get(held, 0)
        sql = f"({held} - {whole(shift)})" if shift else held
        found = self._column(held, sql, as_is=not shift, missing=column.missing, dtype=NARROW)
        return Cells(found.values.astype(WHOLE), found.missing) if isinstance(column, Category) else found

    def person(self) -> Integers:
        """A 60-bit public hash of each row's person."""
        return cast("Integers", self._column(PERSON, PERSON, as_is=True, missing=False, dtype=WHOLE).values)

    def position(self) -> Integers:
        """Each row's place in the source, from 0."""
        return cast("Integers", self._column(PLACE, PLACE, as_is=True, missing=False, dtype=WHOLE).values)

    def work_out(self, fn: RowFn) -> Cells:
        """What a row function means here: by steps, else by a column that the statement works out."""
        try:
            found = self.traced(fn)
        except NotInSql:
            kind = fn.kind(self.schema)
            mode = MODES.get(type(kind))
            if mode is None or mode == "words":
                raise
            piece, dtype = self.emitter.write(mode, fn), {"truth": TRUTH, "number": DOUBLE}.get(mode, NARROW)
            return self._column(piece.sql, f"({piece.sql})", as_is=False, missing=kind.nullable, dtype=dtype)
        nowhere = found.missing is not None and not fn.kind(self.schema).nullable
        return Cells(found.values, None) if nowhere else found

    def traced(self, fn: RowFn) -> Cells:
        """The meaning of a row function that gives one value a row, in steps."""
        return fn.cells(self)

    def filled(self, cells: Cells, constant: int) -> Integers:
        """Whole numbers, with a constant where they are missing."""
        values = cast("Integers", cells.values)
        return values if cells.missing is None else np.where(cells.missing, constant, values)
