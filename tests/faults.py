"""Deliberately bad engines and mechanisms: what record and replay, and the tests, must notice.

Each fault is one some system really had. `Plain` without a fault is an honest
engine of a few lines, so that a control shows the fault and not the stand-in.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, cast

import numpy as np

from sulq.curator.run import Release
from sulq.kernel.laws import AboveLaw, GaussianLaw, LaplaceLaw, Law
from sulq.kernel.private import Private
from sulq.language.domain import Bool, Category, Column, Schema, Text, days, microseconds
from sulq.language.kinds import Cells, Floats, Integers, Truths
from sulq.language.privacy import Unit
from sulq.language.rowfn.base import evaluate, numbers, truths
from sulq.language.tally import Block, Tally
from sulq.testing.neighbours import Row, canonical

FAULTS: Final = ("nan", "unclipped", "row number", "raise", "shape", "doubled", "all rows")


@dataclass(slots=True)
class PlainFrame:
    """Rows as columns, for the row functions' own meaning."""

    schema: Schema
    rows: Sequence[Row]
    places: Sequence[int]
    unit: Unit
    fault: str
    size: int
    seen: dict[int, Cells] = field(default_factory=dict)

    def codes(self, name: str) -> Cells:
        """A column's cells in grid units."""
        column = self.schema.find(name)
        if column is None:
            raise LookupError(name)
        raw = [one[name] for one in self.rows]
        if isinstance(column, Text):
            missing = np.array([value is None for value in raw], dtype=np.bool_)
            return Cells(np.array(["" if value is None else value for value in raw], dtype=object), missing)
        grid = (column.step, column.low, column.high)
        units = [_units(value, column, grid, self.fault) for value in raw]
        missing = np.array([unit is None for unit in units], dtype=np.bool_)
        return Cells(np.array([0 if unit is None else unit for unit in units]), missing)

    def person(self) -> Integers:
        """A hash of each row's person."""
        names = (
            self.places
            if self.unit.column is None
            else [canonical(one[self.unit.column], self.unit.fold) for one in self.rows]
        )
        return np.array([_hash(str(name)) >> 4 for name in names], dtype=np.int64)

    def position(self) -> Integers:
        """Each row's place in the source."""
        return np.array(self.places, dtype=np.int64)


class Plain:
    """An engine on a list of rows, honest unless a fault of `FAULTS` is named."""

    def __init__(self, rows: Sequence[Row], schema: Schema, unit: Unit, fault: str = "") -> None:
        if fault and fault not in FAULTS:
            raise ValueError(fault)
        self._rows, self._schema, self._unit, self._fault = rows, schema, unit, fault
        self._kept = self._choose()

    def ready(self) -> None:
        """Nothing to prepare."""

    def close(self) -> None:
        """Nothing to let go of."""

    def sums(self, tally: Tally) -> Private[Integers]:
        """Exact sums, up to the fault."""
        rows = [self._rows[i] for i in self._kept]
        frame = PlainFrame(self._schema, rows, self._kept, self._unit, self._fault, len(rows))
        if self._fault == "raise":
            for one in rows:
                if one["city"] == "Jaffa":  # a cell nobody declared
                    raise ValueError(f"could not convert {one['city']}")
        cell, here = self._cells(tally, frame)
        total = np.zeros((tally.cells, tally.width), dtype=np.int64)
        start = 0
        for block in tally.blocks:
            units, missing = self._block(block, frame)
            counted = here if missing is None else here & ~missing
            for j in range(block.width):
                np.add.at(total[:, start + j], cell[counted], units[counted, j])
            start += block.width
        if self._fault == "doubled":
            total *= 2
        if self._fault == "shape":
            total = total[np.unique(cell[here])]
        return Private(total)

    def _choose(self) -> list[int]:
        """The places of the rows that are kept: the smallest hashes of a person's rows, never their places (SR2)."""
        column = self._unit.column
        present = list(range(len(self._rows)))
        if self._unit.neighbors == "zero_out":  # a blanked row is no row, but keeps its place
            present = [i for i in present if any(self._rows[i][name] is not None for name in self._schema.names)]
        if column is None:
            return present
        owned: dict[object, list[int]] = {}
        for i in present:
            if self._rows[i][column] is not None:
                owned.setdefault(canonical(self._rows[i][column], self._unit.fold), []).append(i)
        if self._fault == "all rows":
            return sorted(i for places in owned.values() for i in places)

        def rank(i: int) -> int:
            place = i if self._fault == "row number" else ""
            cells = [repr(self._rows[i][name]) for name in self._schema.names]
            return _hash(repr((place, canonical(self._rows[i][column], self._unit.fold), cells)))

        return sorted(i for places in owned.values() for i in sorted(places, key=rank)[: self._unit.rows])

    def _cells(self, tally: Tally, frame: PlainFrame) -> tuple[Integers, Truths]:
        """The cell each row lies in, and whether it lies in one at all."""
        cell = np.zeros(frame.size, dtype=np.int64)
        here = np.ones(frame.size, dtype=np.bool_)
        if tally.where is not None:
            value, missing = truths(tally.where, frame)
            here &= value if missing is None else value & ~missing
        for key in tally.by:
            found = evaluate(key.fn, frame)
            cell = cell * len(key.labels) + cast("Integers", found.values)
            here &= True if found.missing is None else ~found.missing
        return cell, here

    def _block(self, block: Block, frame: PlainFrame) -> tuple[Integers, Truths | None]:
        """One value of each row in whole units, clamped directly under the sum."""
        if block.vector:
            found = evaluate(block.fn, frame)
            return cast("Integers", found.values), found.missing
        values, missing = numbers(block.fn, frame)
        with np.errstate(all="ignore"):
            units: Floats = np.floor(values * float(1 / block.step) + 0.5)
            if self._fault != "unclipped":
                units = np.clip(units, block.low[0], block.high[0])
            return units.astype(np.int64)[:, None], missing


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def _units(value: object, column: Column, grid: tuple[Fraction, int, int], fault: str) -> float | int | None:
    """A raw cell in grid units; None where it is missing."""
    if value is None or isinstance(column, Text):
        return None
    if isinstance(column, Bool):
        return int(bool(value))
    if isinstance(column, Category):
        return column.values.index(value) if value in column.values else None
    if isinstance(value, float) and math.isnan(value):
        return math.nan if fault == "nan" else None
    number = value if isinstance(value, (float, int)) else _clock(value)
    step, low, high = grid
    if number <= low * step or number >= high * step:
        end = low if number <= low * step else high
        return end if fault != "unclipped" or math.isinf(number) else math.floor(Fraction(number) / step)
    return math.floor(Fraction(number) / step + Fraction(1, 2))


def _clock(value: object) -> int:
    try:
        return microseconds(value)
    except Exception:  # noqa: BLE001 - a date, then
        return days(value)


def nosy(release: Release) -> Release:
    """Takes noise whose width depends on the rows."""

    def wide(law: Law, exact: Private[Integers]) -> Integers:
        if isinstance(law, (LaplaceLaw, GaussianLaw)):
            law = type(law)(law.scale * (1 + abs(int(exact.open().sum())) % 7))
        return release(law, exact)

    return wide


def bare(release: Release) -> Release:
    """Compares sums without noise of their own with the noisy threshold, as published sparse vectors have done."""

    def compared(law: Law, exact: Private[Integers]) -> Integers:
        if not isinstance(law, AboveLaw):
            return release(law, exact)
        level = release(LaplaceLaw(law.scale), exact.map(lambda _sums: np.zeros((1, 1), dtype=np.int64)))
        first: Integers = np.where(exact.open() >= level, np.arange(law.sums), law.sums).min(axis=1, keepdims=True)
        return first

    return compared
