"""Columns that were decoded, as the few kinds of cells that the rules of reading know; for the engine `memory`."""

from __future__ import annotations

import csv
import datetime
import gzip
import itertools
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa

from sulq.sources import cell_grammar, cell_reading
from sulq.sources.cell_grammar import Cell
from sulq.sources.decode import csv_file


def plain(kind: str, column: pa.ChunkedArray, name: str) -> tuple[Cell, pa.ChunkedArray]:
    """What a column of a DuckDB type holds, and the same as a plain one: `cell_reading.plain` in Python."""
    cell, _ = cell_reading.plain(kind, "", name)
    if cell == "number":
        digits = pa.types.is_decimal(column.type)  # one rounding, from the digits
        return cell, (column.cast(pa.string()) if digits else column).cast(pa.float64())
    if cell == "date":
        days = column.cast(pa.int32()).fill_null(0).to_numpy().astype(np.int64)
        return cell, _saturated(days, days, (cell_grammar.FIRST_DAY, cell_grammar.LAST_DAY), column)
    if cell == "moment":
        units = column.cast(pa.int64()).fill_null(0).to_numpy()
        if column.type.unit == "ns":
            first, last = cell_grammar.NANOSECOND_YEARS
            return cell, _saturated(units, units // 1000, (first * 1000, last * 1000), column)
        return cell, _saturated(units, units, (cell_grammar.FIRST_MOMENT, cell_grammar.LAST_MOMENT), column)
    return cell, column


def csv_table(path: Path, places: Iterable[int]) -> pa.Table:
    """The needed columns of a checked file as text by Python's reader, a row a record; an empty cell is missing."""
    csv_file.check(path)
    csv.field_size_limit(sys.maxsize)
    opened, taken = gzip.open if path.suffix.lower() == ".gz" else open, list(places)
    with opened(path, "rt", encoding="utf-8-sig", newline="") as lines:
        records = itertools.islice(csv.reader(lines), 1, None)
        rows = [[record[place] or None for place in taken] for record in records]
    columns = zip(*rows, strict=True) if rows else [()] * len(taken)
    names = [f"s{i}" for i in range(len(taken))]
    return pa.table([pa.array(cells, pa.large_string()) for cells in columns], names=names)


def _saturated(units: np.ndarray, found: np.ndarray, ends: tuple[int, int], column: pa.ChunkedArray) -> pa.ChunkedArray:
    first, last = ends
    found = np.where(units < first, -cell_grammar.BEYOND, np.where(units > last, cell_grammar.BEYOND, found))
    return pa.chunked_array([pa.array(found, pa.int64(), mask=column.is_null().to_numpy())])


def day_text(day: int) -> str | None:
    """A day counted from 1970 in ISO form, within the years 1 to 9999."""
    if not cell_grammar.FIRST_DAY <= day <= cell_grammar.LAST_DAY:
        return None
    return (datetime.date(1970, 1, 1) + datetime.timedelta(day)).isoformat()


def moment_text(moment: int) -> str | None:
    """A moment in microseconds from 1970 in ISO form with a space, within the years 1 to 9999."""
    if not cell_grammar.FIRST_MOMENT <= moment <= cell_grammar.LAST_MOMENT:
        return None
    day, rest = divmod(moment, cell_grammar.DAY)
    seconds, fraction = divmod(rest, 1_000_000)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{day_text(day)} {clock}" + (f".{fraction:06}".rstrip("0") if fraction else "")
