"""The columns of an answer as every door shows them: texts for people, typed arrays for frames."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import numpy as np

from sulq.display import labels, tables

if TYPE_CHECKING:
    import pandas
    import pyarrow

MAX_WHOLE: Final = 2**63  # of a number that 64 bits hold
MAX_EXACT: Final = 2.0**53  # of a double that is a whole number exactly
FLOATING: Final = ("large", "number")  # what Arrow holds as doubles
Kind = Literal["whole", "large", "number", "truth", "date", "moment", "other"]


@dataclass(frozen=True, slots=True)
class ShownColumn:
    """A column: its cells, the ends of their intervals, and which of them rest on noise.

    `low` and `high` are None where no cell has an interval; `noisy` is None where no cell rests on noise. `missing`
    is the word for a label that is missing.
    """

    name: str
    cells: Sequence[object]
    low: Sequence[object] | None = None
    high: Sequence[object] | None = None
    noisy: Sequence[bool] | None = None
    missing: str = labels.MISSING

    def texts(self, limit: int | None = None) -> list[str]:
        """The first cells as people read them."""
        some = self.cells[:limit]
        none: list[object] = [None] * len(some)
        low, high = (none if ends is None else ends[:limit] for ends in (self.low, self.high))
        noisy = [False] * len(some) if self.noisy is None else self.noisy[:limit]
        return labels.column(zip(some, low, high, strict=True), noisy=noisy, missing=self.missing)


def text_rows(columns: Sequence[ShownColumn], limit: int | None = None) -> list[tuple[str, ...]]:
    """The first rows as texts."""
    return list(zip(*(column.texts(limit) for column in columns), strict=True))


def table_text(columns: Sequence[ShownColumn], limit: int = tables.MAX_ROWS) -> str:
    """A table whose columns stand below each other, with how many rows are not shown."""
    more = max((len(columns[0].cells) if columns else 0) - limit, 0)
    return tables.text([column.name for column in columns], text_rows(columns, limit), more=more)


def table_html(columns: Sequence[ShownColumn], tail: str, limit: int = tables.MAX_ROWS) -> str:
    """The same table in HTML, with a line below it."""
    more = max((len(columns[0].cells) if columns else 0) - limit, 0)
    return tables.as_html([column.name for column in columns], text_rows(columns, limit), tail, more=more)


def as_whole(cells: Sequence[object]) -> list[object]:
    """Numbers that are all whole as such, without a point and a nought; any others as they are."""
    if set(map(type, cells)) == {float}:  # as most columns of answers are: NumPy looks at all of them at once
        numbers = np.array(cells, dtype=np.float64)
        if not (np.abs(numbers) < MAX_EXACT).all() or not (np.rint(numbers) == numbers).all():
            return list(cells)
        return cast("list[object]", numbers.astype(np.int64).tolist())
    fits = all(
        cell is None or isinstance(cell, int) or (isinstance(cell, float) and cell.is_integer()) for cell in cells
    )
    return [int(cell) if isinstance(cell, float) else cell for cell in cells] if fits else list(cells)


def kind(cells: Sequence[object]) -> Kind:
    """What the cells of a column are, those that are missing aside."""
    kinds = set(map(type, cells)) - {type(None)}
    if kinds == {int}:
        some = cells if None not in cells else [cell for cell in cells if cell is not None]
        ends = cast("int", min(some)), cast("int", max(some))  # type: ignore[type-var]
        return "whole" if max(map(abs, ends)) < MAX_WHOLE else "large"
    if kinds and kinds <= {int, float}:
        return "number"
    if kinds == {datetime.date}:
        return "date"
    return "truth" if kinds == {bool} else "moment" if kinds == {datetime.datetime} else "other"


NONE: Final[Mapping[str, Kind]] = MappingProxyType({})
PANDAS: Final[dict[Kind, tuple[str, str]]] = {  # without missing cells, and with some
    "whole": ("int64", "Int64"),
    "number": ("float64", "float64"),
    "truth": ("bool", "boolean"),
    "date": ("datetime64[s]", "datetime64[s]"),
    "moment": ("datetime64[us]", "datetime64[us]"),
}


def as_pandas(
    columns: Sequence[tuple[str, Sequence[object]]], package: ModuleType, kinds: Mapping[str, Kind] = NONE
) -> pandas.DataFrame:
    """A frame of these columns: dates are datetime64, and whole numbers stay whole beside missing ones.

    `kinds`: of columns, by name, whose kind is known whatever their cells are.
    """
    made: dict[int, Any] = {}
    for place, (name, cells) in enumerate(columns):
        what, missing = kinds.get(name) or kind(cells), None in cells
        if what in ("whole", "number") and not missing:  # NumPy reads them four times as fast
            made[place] = np.array(cells, dtype=PANDAS[what][0])
        else:
            made[place] = package.array(list(cells), dtype=PANDAS[what][missing]) if what in PANDAS else list(cells)
    frame = package.DataFrame(made)
    frame.columns = [name for name, _ in columns]
    return cast("pandas.DataFrame", frame)


def as_arrow(
    columns: Sequence[tuple[str, Sequence[object]]], package: ModuleType, kinds: Mapping[str, Kind] = NONE
) -> pyarrow.Table:
    """An Arrow table of these columns, of kinds that are known or that their cells have."""
    types = {
        "whole": package.int64(),
        "number": package.float64(),
        "large": package.float64(),
        "date": package.date32(),
        "moment": package.timestamp("us"),
    }
    arrays = []
    for name, cells in columns:
        what = kinds.get(name) or kind(cells)
        given = [None if cell is None else float(cast("float", cell)) for cell in cells] if what in FLOATING else cells
        arrays.append(package.array(list(given), types.get(what)))
    return cast("pyarrow.Table", package.Table.from_arrays(arrays, names=[name for name, _ in columns]))
