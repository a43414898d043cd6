"""Answers as plain columns that every file format holds, and as bars of a page."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from typing import Final, cast

import pyarrow as pa

from sulq.answers.answer import Answer, Answers
from sulq.release.payment import Chart
from sulq.sql.answer import SqlAnswer

LEVEL: Final = 0.95  # of the intervals

Found = SqlAnswer | Answer | Answers


def columns_of(found: Found) -> dict[str, list[object]]:
    """An answer as columns, with the ends of its intervals; of several together, one after the other."""
    if not isinstance(found, Answers):
        return found.to_dict(LEVEL)
    several = [answer.to_dict(LEVEL) for answer in found]
    return {f"{i + 1}. {name}": cells for i, one in enumerate(several) for name, cells in _padded(one, several)}


def _padded(one: dict[str, list[object]], several: list[dict[str, list[object]]]) -> list[tuple[str, list[object]]]:
    most = max(len(cells) for columns in several for cells in columns.values())
    return [(name, cells + [None] * (most - len(cells))) for name, cells in one.items()]


def plain(columns: Mapping[str, list[object]]) -> dict[str, pa.Array]:
    """Columns of one kind each that every file format holds: whole numbers, numbers, truths, else texts."""
    made = {}
    for name, cells in columns.items():
        kinds = {type(cell) for cell in cells if cell is not None}
        if kinds == {bool}:
            made[name] = pa.array(cells, pa.bool_())
        elif kinds == {int} and all(abs(cast("int", cell)) < 2**63 for cell in cells if cell is not None):
            made[name] = pa.array(cells, pa.int64())
        elif kinds and kinds <= {int, float}:
            made[name] = pa.array(
                [None if cell is None else float(cast("float", cell)) for cell in cells], pa.float64()
            )
        else:
            made[name] = pa.array([None if cell is None else _word(cell) for cell in cells], pa.string())
    return made


def _word(cell: object) -> str:
    return cell.isoformat() if isinstance(cell, datetime.date) else str(cell)


def chart_of(title: str, columns: Mapping[str, list[object]]) -> Chart | None:
    """Bars of the first column with intervals, named by the columns before it."""
    for name, cells in columns.items():
        tail = "" if name == "value" else f"_{name}"
        low, high = columns.get(f"low{tail}"), columns.get(f"high{tail}")
        if low is None or high is None:
            continue
        before = list(columns)[: list(columns).index(name)]
        keys = [
            column for column in before if f"low_{column}" not in columns and not column.startswith(("low", "high"))
        ]
        rows = [
            (" / ".join(str(columns[key][i]) for key in keys) or name, float(value), float(a), float(b))
            for i, (value, a, b) in enumerate(zip(cells, low, high, strict=True))
            if isinstance(value, (int, float)) and isinstance(a, (int, float)) and isinstance(b, (int, float))
        ]
        rows = [row for row in rows if all(map(math.isfinite, row[1:]))]
        if rows:
            names, values, lows, highs = zip(*rows, strict=True)
            error = tuple(max(b - v, v - a) for v, a, b in zip(values, lows, highs, strict=True))
            return Chart(title, names, values, error, f"{name}, with {LEVEL:.0%} intervals")
    return None
