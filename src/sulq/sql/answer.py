"""SqlAnswer: the rows of a SELECT, each cell with its error bar, and what they cost."""

# ruff: noqa: PD011 - values here are a column's cells, not a frame's

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from sulq.answers.answer import Answers, Clips, Receipt, beta_beside, column_at, extra, new_axes, paid
from sulq.answers.readings.sampling import Sampling
from sulq.display.columns import ShownColumn, as_arrow, as_pandas, as_whole, kind, table_html, table_text
from sulq.display.labels import label
from sulq.display.plots import PlotSeries, draw
from sulq.errors import QuestionError
from sulq.language.privacy import Loss, Unit
from sulq.sql.released.functions import number
from sulq.sql.released.tables import Ends, SqlTable, TableColumn

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from matplotlib.axes import Axes

Cell = object
Cells = tuple[tuple[Cell, ...], ...]
Bars = tuple[Ends | None, ...]  # of each column, where it has error bars
NULL: Final = "NULL"  # as SQL calls a label that is missing


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
    clips: Clips = ()
    sampled: bool = False  # whether intervals count the sampling of a larger population
    again: Callable[[Sampling], tuple[SqlTable, tuple[str, ...]]] | None = None  # read with sampling, and words for it
    _bars: dict[float, Bars] = field(default_factory=dict)

    @property
    def bounds(self) -> dict[str, tuple[float | int, float | int]]:
        """To where each value was clipped that `bounds="auto"` searched for; empty for any other query."""
        return {name: (low, high) for name, low, high in self.clips}

    @property
    def columns(self) -> tuple[str, ...]:
        """The SELECT's columns."""
        return self.table.names

    @property
    def value(self) -> Cell | Cells:
        """The only cell, or all rows."""
        return self._whole([column.values for column in self.table.columns])

    def with_sampling(self, sampling: Sampling = "people") -> SqlAnswer:
        """The same answer with intervals that count the sampling of a larger population beside the noise; free."""
        if sampling is False or self.answers is None:  # what is public does not vary
            return self
        if self.again is None:
            raise QuestionError(
                "bad-question", "Of this answer the interval of the noise alone is known.", "Ask it by db.sql."
            )
        table, notes = self.again(sampling)
        return replace(self, table=table, notes=(*notes, *self.notes), sampled=True, _bars={})

    def accuracy(self, beta: float = 0.05, *, simultaneous: bool = False, sampling: Sampling = False) -> Cell | Cells:
        """How far off: within this except with probability beta, for each cell or for all at once."""
        if sampling is not False:
            return self.with_sampling(sampling).accuracy(beta, simultaneous=simultaneous)
        bars = self._intervals(beta, simultaneous=simultaneous)
        return self._whole([list(map(_radius, *column)) for column in self._beside(bars)])

    def interval(
        self, level: float = 0.95, *, simultaneous: bool = False, sampling: Sampling = False
    ) -> tuple[Cell | Cells, Cell | Cells]:
        """From where to where, at a level of confidence; a cell without error bar stands for itself.

        `sampling`: False: of the declared table, so noise alone. True: of a larger population of which the people are
        an independent sample; "rows": of which the rows are.
        """
        if sampling is not False:
            return self.with_sampling(sampling).interval(level, simultaneous=simultaneous)
        found = list(self._beside(self._intervals(beta_beside(level), simultaneous=simultaneous)))
        low = [_ends(values, low) for values, low, _ in found]
        return self._whole(low), self._whole([_ends(values, high) for values, _, high in found])

    def bars(self, beta: float) -> Iterator[tuple[object, object, object]]:
        """Each cell of the columns that have error bars, with the ends of its own."""
        ends = self._intervals(beta)
        beside = zip(ends, self._beside(ends), strict=True)
        return itertools.chain.from_iterable(zip(*each, strict=True) for found, each in beside if found is not None)

    def _beside(self, bars: Bars) -> Iterator[tuple[list[object], list[object], list[object]]]:
        """The cells of each column and the ends of their error bars; None for those of cells that have none."""
        for column, ends in zip(self.table.columns, bars, strict=True):
            none: list[object] = [None] * len(column.values)
            yield column.values, *(ends or (none, none))

    def _whole(self, columns: list[list[object]]) -> Cell | Cells:
        cells = tuple(zip(*columns, strict=True))
        return cells[0][0] if len(columns) == 1 and len(cells) == 1 else cells

    def _intervals(self, beta: float, *, simultaneous: bool = False) -> Bars:
        if isinstance(beta, bool) or not isinstance(beta, (int, float)) or not 0 < beta < 1:
            raise QuestionError("bad-literal", "A probability lies strictly between 0 and 1.")
        many = sum(sum(column.noisy) for column in self.table.columns) if simultaneous else 1
        beta /= max(many, self.table.tries)
        if beta not in self._bars:
            released = [answer.released for answer in self.answers or ()]
            self._bars[beta] = tuple(column.ends(released, beta) for column in self.table.columns)
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
        bars = (None,) * len(self.columns) if level is None else self._intervals(beta_beside(level))
        made: list[tuple[str, list[object]]] = []
        for name, column, ends in zip(self.columns, self.table.columns, bars, strict=True):
            made.append((name, list(column.values)))
            if ends is not None:
                made += [
                    (f"{side}_{name}", own) for side, own in zip(("low", "high"), _alike(column, ends), strict=True)
                ]
        return made

    def to_pandas(self, level: float | None = None) -> pandas.DataFrame:
        """A pandas frame of the SELECT's columns; with a level also `low_` and `high_` columns."""
        return as_pandas(self._columns(level), extra("pandas", "pandas"))

    def to_arrow(self, level: float | None = None) -> pyarrow.Table:
        """An Arrow table of the SELECT's columns; with a level also `low_` and `high_` columns."""
        return as_arrow(self._columns(level), importlib.import_module("pyarrow"))

    def plot(self, level: float = 0.95, *, column: str | None = None) -> Axes:
        """Bars with error bars, or a line with a band where the rows are in order of time (needs the extra `plot`).

        Args:
            level: the level of confidence of the intervals.
            column: which column is drawn; the first that has error bars if none is named.
        """
        bars = self._intervals(beta_beside(level))
        noisy = [j for j, ends in enumerate(bars) if ends is not None]
        if column is not None:
            noisy = [j for j in (column_at(self.columns, column),) if bars[j] is not None]
        if not noisy:
            what = "No column of this answer" if column is None else f"The column {column[:80]!r}"
            raise QuestionError("bad-question", f"{what} has error bars to plot.")
        j, names = noisy[0], self._labels()
        keys = [k for k, own in enumerate(self.table.columns) if not any(own.noisy)]
        labels = self.table.columns[keys[0]].values if len(keys) == 1 else names
        series = PlotSeries.of(labels, names, list(self._beside(bars))[j])
        title = f"{level:.0%} intervals; spent {self.spent}"
        across = ", ".join(self.columns[k] for k in keys)
        return draw(new_axes(), series, title=title, name=self.columns[j], across=across)

    def _labels(self) -> list[str]:
        """What names each row: its cells that rest on no noise, else its number."""
        columns = [zip(column.values, column.noisy, strict=True) for column in self.table.columns]
        rows = ([label(value, missing=NULL) for value, noisy in row if not noisy] for row in zip(*columns, strict=True))
        return [" / ".join(known) or str(i + 1) for i, known in enumerate(rows)]

    def shown(self, level: float = 0.95, missing: str = NULL) -> list[ShownColumn]:
        """The columns as people read them, with intervals at a level, and a word for a missing label."""
        pairs = zip(self.columns, self.table.columns, self._intervals(beta_beside(level)), strict=True)
        made = []
        for name, column, ends in pairs:
            low, high = (None, None) if ends is None else ends
            made.append(ShownColumn(name, column.values, low, high, column.noisy, missing))
        return made

    def __repr__(self) -> str:
        return "\n".join([table_text(self.shown()), self._tail(), *self.notes])

    def _tail(self) -> str:
        tail = paid(self.spent, self.remaining, self.unit)
        if self.reused:
            tail = f"reused: {tail}"
        return tail if self.guarantee == "dp" else f"{tail}; guarantee {self.guarantee}"

    def _repr_html_(self) -> str:
        return table_html(self.shown(), " ".join([self._tail(), *self.notes]))


def _ends(values: list[object], ends: list[object]) -> list[object]:
    """Ends of intervals, a value in the place of one that there is none of."""
    return [value if end is None else end for value, end in zip(values, ends, strict=True)]


def _radius(value: object, low: object, high: object) -> object:
    if low is None:
        return None
    if value is None:  # unknown: no farther off than its whole range
        return number(high) - number(low)
    return max(number(high) - number(value), number(value) - number(low), 0.0)


def _alike(column: TableColumn, ends: Ends) -> Ends:
    """The ends of intervals as their values are: of whole numbers whole, where they are so."""
    low, high = (as_whole(end) for end in ends) if kind(column.values) == "whole" else map(list, ends)
    return low, high
