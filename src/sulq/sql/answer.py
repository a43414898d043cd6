"""SqlAnswer: the rows of a SELECT, each cell with its error bar, and what they cost."""

from __future__ import annotations

import datetime
import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np

from sulq.answers.answer import Answers, Receipt, bar, bar_chart, beta_beside, extra, html_table, paid
from sulq.errors import QuestionError
from sulq.language.privacy import Loss, Unit
from sulq.sql.released.cells import NoisyValue, interval
from sulq.sql.released.functions import number
from sulq.sql.released.render import SqlTable

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from matplotlib.axes import Axes

Ends = tuple[object, object] | None  # of a cell's interval, where it has one
T = TypeVar("T")
Cell = object
Cells = tuple[tuple[Cell, ...], ...]
Bars = tuple[tuple[Ends, ...], ...]
MAX_SHOWN_ROWS = 20


@dataclass(frozen=True, slots=True, eq=False)
class SqlAnswer:
    """The noisy answer to a query, with the error bars of its cells.

    `accuracy(beta)`: each number is within that of the same expression of the
    table's bounded statistics except with probability beta; None for keys, texts and
    truth values, which have no error bar, and for what no bar can be given. Which
    rows are shown (HAVING, LIMIT) and in which order follows from the noisy values;
    error bars then hold for all the rows they were chosen from at once.
    """

    table: SqlTable
    answers: Answers | None  # None: nothing was asked of the rows
    spent: Loss
    remaining: Loss | None  # None: of a published answer
    unit: Unit
    guarantee: str
    receipt: Receipt | None = None
    reused: bool = False
    notes: tuple[str, ...] = ()
    _bars: dict[float, Bars] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """The SELECT's columns."""
        return self.table.names

    @property
    def value(self) -> Cell | Cells:
        """The only cell, or all rows."""
        return self._whole(tuple(tuple(figure.value for figure in row) for row in self.table.shown()))

    def accuracy(self, beta: float = 0.05, *, simultaneous: bool = False) -> Cell | Cells:
        """How far off: within this except with probability beta, for each cell or for all at once."""
        bars = self._intervals(beta, simultaneous=simultaneous)
        return self._whole(self._beside(bars, _radius))

    def interval(self, level: float = 0.95, *, simultaneous: bool = False) -> tuple[Cell | Cells, Cell | Cells]:
        """From where to where, at a level of confidence; a cell without error bar stands for itself."""
        bars = self._intervals(beta_beside(level), simultaneous=simultaneous)
        low = self._beside(bars, lambda figure, ends: figure.value if ends is None else ends[0])
        high = self._beside(bars, lambda figure, ends: figure.value if ends is None else ends[1])
        return self._whole(low), self._whole(high)

    def _beside(self, bars: Bars, make: Callable[[NoisyValue, Ends], T]) -> tuple[tuple[T, ...], ...]:
        """What is made of each cell and its error bar, as far as there are bars."""
        return tuple(tuple(map(make, row, ends)) for row, ends in zip(self.table.shown(), bars, strict=False))

    def _whole(self, cells: Cells) -> Cell | Cells:
        return cells[0][0] if len(self.columns) == 1 and len(cells) == 1 else cells

    def _intervals(self, beta: float, *, simultaneous: bool = False) -> Bars:
        if isinstance(beta, bool) or not isinstance(beta, (int, float)) or not 0 < beta < 1:
            raise QuestionError("bad-literal", "A probability lies strictly between 0 and 1.")
        rows = self.table.shown()
        many = sum(figure.origin is not None for row in rows for figure in row) if simultaneous else 1
        beta /= max(many, self.table.tries)
        if beta not in self._bars:
            released = [answer.released for answer in self.answers or ()]
            self._bars[beta] = tuple(tuple(interval(figure, released, beta) for figure in row) for row in rows)
        return self._bars[beta]

    def to_dict(self, level: float | None = 0.95) -> dict[str, list[object]]:
        """Columns by name, with `low_` and `high_` of each that has error bars at the level."""
        found: dict[str, list[object]] = {}
        for name, cells in self._columns(level):
            fresh = name
            while fresh in found:
                fresh = f"{fresh}_"
            found[fresh] = cells
        return found

    def _columns(self, level: float | None) -> list[tuple[str, list[object]]]:
        rows = self.table.shown()
        bars = None if level is None else self._intervals(beta_beside(level))
        made: list[tuple[str, list[object]]] = []
        for j, name in enumerate(self.columns):
            made.append((name, [row[j].value for row in rows]))
            if bars is not None and any(line[j] is not None for line in bars):
                ends = [line[j] or (None, None) for line in bars]
                made += [(f"low_{name}", [low for low, _ in ends]), (f"high_{name}", [high for _, high in ends])]
        return made

    def to_pandas(self, level: float | None = None) -> pandas.DataFrame:
        """A pandas frame of the SELECT's columns; with a level also `low_` and `high_` columns."""
        made = self._columns(level)
        pandas_ = extra("pandas", "pandas")
        frame = pandas_.DataFrame({i: cells for i, (_, cells) in enumerate(made)})
        frame.columns = [name for name, _ in made]
        return cast("pandas.DataFrame", frame)

    def to_arrow(self, level: float | None = None) -> pyarrow.Table:
        """An Arrow table of the SELECT's columns; with a level also `low_` and `high_` columns."""
        arrow = importlib.import_module("pyarrow")
        made = self._columns(level)
        arrays = [arrow.array(_alike(cells)) for _, cells in made]
        return cast("pyarrow.Table", arrow.Table.from_arrays(arrays, names=[name for name, _ in made]))

    def plot(self, level: float = 0.95) -> Axes:
        """Bars of the first column that has error bars (needs the extra `plot`)."""
        bars = self._intervals(beta_beside(level))
        noisy = [j for j in range(len(self.columns)) if any(line[j] is not None for line in bars)]
        if not noisy:
            raise QuestionError("bad-question", "No column of this answer has error bars to plot.")
        j, rows = noisy[0], self.table.shown()
        drawn = [(_label(row, i), row[j].value, bars[i][j]) for i, row in enumerate(rows)]
        found = [(name, (value, *ends)) for name, value, ends in drawn if value is not None and ends is not None]
        numbers = np.array([[number(end) for end in ends] for _, ends in found]).reshape(-1, 3)
        title = f"{level:.0%} intervals; spent {self.spent}"
        axes = bar_chart([name for name, _ in found], *numbers.T, title=title)
        axes.set_ylabel(self.columns[j])
        return axes

    def _lines(self) -> list[tuple[str, ...]]:
        return [self.columns, *self._beside(self._intervals(0.05)[:MAX_SHOWN_ROWS], _shown)]

    def __repr__(self) -> str:
        lines = self._lines()
        widths = [max(len(line[j]) for line in lines) for j in range(len(self.columns))]
        text = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
        ]
        more = len(self.table.shown()) - MAX_SHOWN_ROWS
        if more > 0:
            text.append(f"... {more} more")
        return "\n".join([*text, self._tail(), *self.notes])

    def _tail(self) -> str:
        tail = paid(self.spent, self.remaining, self.unit)
        if self.reused:
            tail = f"reused: {tail}"
        return tail if self.guarantee == "dp" else f"{tail}; guarantee {self.guarantee}"

    def _repr_html_(self) -> str:
        head, *body = self._lines()
        return html_table(head, body, " ".join([self._tail(), *self.notes]))


def _radius(figure: NoisyValue, ends: Ends) -> object:
    if ends is None:
        return None
    if figure.value is None:  # unknown: no farther off than its whole range
        return number(ends[1]) - number(ends[0])
    value, low, high = number(figure.value), number(ends[0]), number(ends[1])
    return max(high - value, value - low, 0.0)


def _shown(figure: NoisyValue, ends: Ends) -> str:
    if figure.value is None:
        return "NULL" if figure.origin is None else "unknown"
    if ends is None or isinstance(figure.value, datetime.date):
        text = f"{figure.value:,.6g}" if isinstance(figure.value, float) else str(figure.value)
        return text if ends is None else f"{text} in [{ends[0]}, {ends[1]}]"
    value, low, high = number(figure.value), number(ends[0]), number(ends[1])
    if math.isinf(low) or math.isinf(high):
        return f"{value:,.6g} in [{low:,.6g}, {high:,.6g}]"
    return bar("", value, low, high)


def _label(row: tuple[NoisyValue, ...], i: int) -> str:
    known = [str(figure.value) for figure in row if figure.origin is None]
    return " / ".join(known) or str(i + 1)


def _alike(cells: list[object]) -> list[object]:
    """Cells of one type, as an Arrow column needs them: numbers together become doubles."""
    kinds = {type(cell) for cell in cells if cell is not None}
    return [None if cell is None else float(number(cell)) for cell in cells] if kinds == {int, float} else cells
