"""The columns of an answer as every door shows them: texts for people, typed arrays for frames."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from sulq.display import labels, tables

if TYPE_CHECKING:
    import pandas
    import pyarrow

MAX_WHOLE: Final = 2**63  # of a number that 64 bits hold
Kind = Literal["whole", "number", "truth", "date", "moment", "other"]


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
    fits = all(
        cell is None or isinstance(cell, int) or (isinstance(cell, float) and cell.is_integer()) for cell in cells
    )
    return [int(cell) if isinstance(cell, float) else cell for cell in cells] if fits else list(cells)


def kind(cells: Sequence[object]) -> Kind:
    """What the cells of a column are, those that are missing aside."""
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds == {int} and all(abs(cell) < MAX_WHOLE for cell in cells if isinstance(cell, int)):
        return "whole"
    if kinds and kinds <= {int, float}:
        return "number"
    if kinds == {datetime.date}:
        return "date"
    return "truth" if kinds == {bool} else "moment" if kinds == {datetime.datetime} else "other"


PANDAS: Final[dict[Kind, tuple[str, str]]] = {  # without missing cells, and with some
    "whole": ("int64", "Int64"),
    "number": ("float64", "float64"),
    "truth": ("bool", "boolean"),
    "date": ("datetime64[s]", "datetime64[s]"),
    "moment": ("datetime64[us]", "datetime64[us]"),
}


def as_pandas(columns: Sequence[tuple[str, Sequence[object]]], package: ModuleType) -> pandas.DataFrame:
    """A frame of these columns: dates are datetime64, and whole numbers stay whole beside missing ones."""
    made: dict[int, Any] = {}
    for place, (_, cells) in enumerate(columns):
        dtypes = PANDAS.get(kind(cells))
        made[place] = list(cells) if dtypes is None else package.array(list(cells), dtype=dtypes[None in cells])
    frame = package.DataFrame(made)
    frame.columns = [name for name, _ in columns]
    return cast("pandas.DataFrame", frame)


def as_arrow(columns: Sequence[tuple[str, Sequence[object]]], package: ModuleType) -> pyarrow.Table:
    """An Arrow table of these columns; numbers of two types are doubles."""
    types = {
        "whole": package.int64(),
        "number": package.float64(),
        "date": package.date32(),
        "moment": package.timestamp("us"),
    }
    arrays = []
    for _, cells in columns:
        what = kind(cells)
        given = [None if cell is None else float(cast("float", cell)) for cell in cells] if what == "number" else cells
        arrays.append(package.array(list(given), types.get(what)))
    return cast("pyarrow.Table", package.Table.from_arrays(arrays, names=[name for name, _ in columns]))
