"""Statements over kept rows: keys of partitions, sums, and the texts that are bound in them.

Row functions write themselves (language/rowfn). Only functions that the kernel's certifier knows may occur; each is
total, row-wise and deterministic (T18, T30).
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import ClassVar, Final, NamedTuple

from sulq.kernel.request import Scan
from sulq.language.domain import Category, Numbered
from sulq.language.rowfn import Bins, Col, Each, OrMissing, RowFn
from sulq.language.rowfn.edges import divided, limited, places
from sulq.language.rowfn.keys import MAX_BINS, code
from sulq.language.rowfn.piece import Piece, clamped, double, joined, whole
from sulq.language.rowfn.writer import SqlWriter
from sulq.language.tally import Block

EXACT: Final = 2**53
MAX_GROUPED_VALUES: Final = 512  # so many values of a column are grouped by as they are, and then put into bins


class Keyed(NamedTuple):
    """A key of a partition: what its codes are counted from; where they are only looked up by them, the codes.

    `missing` is the code of the rows that lack it; None: they are in no cell.
    """

    piece: Piece
    shift: int = 0
    places: tuple[int, ...] | None = None
    missing: int | None = None


class Emitter(SqlWriter):
    """Writes the row functions of one tally over the kept rows, its keys and its sums."""

    bound: ClassVar[re.Pattern[str]] = re.compile(r"\$(text[0-9]+)\b")  # and the place of a bound text

    grouping = "grouping_id"  # which grouping set a group is of: a bit for each key that is not in it
    grouped_keys = 32  # so many keys it tells of

    def key(self, fn: RowFn, *, alone: bool = False) -> Keyed:
        """A row function used as a key of the partition.

        A key that is alone may be a text of digits, or a column whose few values are put into bins afterwards.
        """
        column = self.schema.find(fn.name) if isinstance(fn, Col) else None
        if isinstance(column, Category) and isinstance(fn, Col):
            stored = self.rows.names[fn.name]
            if alone and stored in self.rows.spelled:
                return Keyed(Piece(self.rows.spelled[stored], atom=True))
            return Keyed(self.column(fn.name), self.rows.shifts.get(stored, 0))
        if isinstance(fn, OrMissing):  # the database groups by what it stores, and NULL is one group
            found, last = self.key(fn.item, alone=alone), code(fn.item, self.schema).size
            if found.missing is not None:  # nothing lacks a key that has a label for what does
                return found
            places = None if found.places is None else tuple(last if i < 0 else i for i in found.places)
            return found._replace(places=places, missing=last)
        if alone and isinstance(fn, Bins):
            binned = self._bins_alone(fn, self.stored(fn.item))
            if binned is not None:
                return binned
        if isinstance(fn, Each):
            column = self.stored(fn.item)
            if isinstance(column, Category):
                return self.key(fn.item, alone=alone)
            if column is not None and column.step == 1:
                return Keyed(self.any_kind(fn.item), column.low)
        return Keyed(self.code(fn))

    def _bins_alone(self, fn: Bins, column: Numbered | None) -> Keyed | None:
        """Bins of a column, some of them found in parts that are added afterwards: less is worked out for each row."""
        if column is None or isinstance(column, Category):
            return None
        edges = fn.fitted(self.schema)
        exact, limits, top = limited(edges, column.step, column.low, column.high)
        if column.high - column.low < MAX_GROUPED_VALUES:
            return Keyed(self.any_kind(fn.item), column.low, places(exact, column.low, column.high))
        within = (column.low, column.high)
        division = None if len(edges) > MAX_BINS else divided(exact, limits, top, within=within, beyond=True)
        if division is None:
            return None
        return Keyed(joined(division, self.any_kind(fn.item)), 0, (*range(len(edges) - 1), len(edges) - 2))

    def scan(self, statement: str) -> Scan:
        """A statement with the texts it names, numbered anew: those of parts left to the batch path are not there."""
        number = {name: f"text{i}" for i, name in enumerate(dict.fromkeys(self.bound.findall(statement)))}
        sql = self.bound.sub(lambda found: found[0].replace(found[1], number[found[1]]), statement)
        return Scan(sql, tuple(str(self.parameters[name]) for name in number))

    def units(self, block: Block) -> tuple[Piece, bool]:
        """A number on its block's grid, clamped; and whether it is an SQL integer (else a whole double)."""
        fn = block.fn
        column = self.stored(fn)
        if column is not None and not isinstance(column, Category) and isinstance(fn, Col):
            inside = block.low[0] <= column.low and column.high <= block.high[0]
            if inside and column.step == block.step:
                stored = self.rows.names[fn.name]
                return Piece(stored, atom=True), stored not in self.rows.doubles
        return self.on_grid(self.number(fn), block.step, block.low[0], block.high[0]), False

    def total(self, piece: Piece, most: int, *, integer: bool) -> str:
        """An exact SUM: whole doubles are added as such where no total can leave the exact ones, else as integers."""
        if not integer and most > EXACT:
            return f"sum(TRY_CAST({piece.sql} AS BIGINT))"
        return f"sum({piece.sql})"

    def narrow(self, sql: str) -> str:
        """A total that is known to fit 64 bits."""
        return f"TRY_CAST({sql} AS BIGINT)"

    def above(self, piece: Piece, low: int, high: int) -> tuple[Piece, bool]:
        """How far whole units lie above their least, as what may be squared and added exactly; whether as an integer.

        They are cast once, to integers that hold their square: faster than to cast their sums' terms.
        """
        kind = "INTEGER" if max(abs(low), abs(high)) < 2**31 and (high - low) ** 2 < 2**31 else "BIGINT"
        return Piece(f"(TRY_CAST({piece.sql} AS {kind}) - {whole(low)})", piece.layer), True

    def on_grid(self, item: Piece, step: Fraction, low: int, high: int) -> Piece:
        """floor(x/step + 1/2), clamped directly under the sum (T11): a whole double."""
        scale = f" * {double(float(1 / step))}" if step != 1 else ""
        units = self.named(joined(f"floor({{0}}{scale} + 0.5e0)", item))
        return clamped(units, float(low), float(high))
