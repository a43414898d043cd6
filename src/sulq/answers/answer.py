"""Answer: a value, how far off it may be, what it cost, and the receipt."""

from __future__ import annotations

import datetime
import importlib
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from sulq.answers.readings.estimators import Chosen, FirstAbove, Placed, Plain
from sulq.answers.readings.joint import Correlation
from sulq.answers.readings.noise_sums import UNKNOWN, Counted, unknown
from sulq.answers.readings.sampling import AnyReading, Sampling, deviation_of, sampled, words
from sulq.answers.released import Released
from sulq.display import moments, tables
from sulq.display.columns import Kind, ShownColumn, as_arrow, as_pandas, as_whole, table_html, table_text, text_rows
from sulq.display.labels import interval, label
from sulq.display.numbers import plain
from sulq.display.plots import PlotSeries, draw
from sulq.errors import QuestionError, SetupError
from sulq.kernel.ledger.chain import Receipt
from sulq.language.kinds import Floats, Truths
from sulq.language.privacy import Event, Loss, Unit, probability

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from matplotlib.axes import Axes


__all__ = ["Answer", "Answers", "Receipt"]

Value = float | int | Floats | dict[object, object]
Clips = tuple[tuple[str, float | int, float | int], ...]


Dated = Callable[[float, str], datetime.date]
ENDS: Final[tuple[Dated, ...]] = (moments.moment, moments.first, moments.last)  # of a value, and of its interval's ends
WHOLE: Final = (Plain, Chosen, FirstAbove)  # readings whose values are whole numbers on a whole grid


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """The noisy answer to one question, with its error bars.

    `accuracy(beta)`: each cell is within that of the table's bounded statistic
    except with probability beta; of the first sum above a threshold, how far it or
    one before it may be on the wrong side; of a point of a space, how much farther
    off than the nearest point. A group that may have no rows has no mean, spread or
    quantile: None, its interval the whole range, its accuracy the range's width.
    `spent`, `total`, `remaining`: this ask's price, that of all answers up to it, and
    what is left. `unit`, `guarantee`: who is protected and in what sense (T93).
    """

    released: Released
    reading: AnyReading
    keys: tuple[tuple[str, tuple[object, ...]], ...]  # name and labels of each key
    columns: tuple[str, ...]
    spent: Loss
    remaining: Loss | None  # None: it was published, and of a budget nothing is said
    unit: Unit
    guarantee: str
    event: Event
    receipt: Receipt
    reused: bool = False
    notes: tuple[str, ...] = ()
    square: bool = field(default=False)  # the columns are the upper triangle of a matrix
    total: Loss | None = None
    pairs: bool = False  # the two keys have the same labels, and the cells are the pairs of different ones
    clips: Clips = field(default=(), metadata={"wire": "set"})  # of bounds="auto": a value's name, from where, to where
    # Which keys are counted in days or microseconds from 1970, and whether the values are: "date" or "timestamp".
    clocks: tuple[tuple[str, str], ...] = field(default=(), metadata={"wire": "set"})
    clock: str | None = field(default=None, metadata={"wire": "set"})
    sampling: float = field(
        default=0.0, metadata={"wire": "set"}
    )  # 0: intervals count noise alone; else `deviation_of`

    @property
    def bounds(self) -> dict[str, tuple[float | int, float | int]]:
        """To where each value was clipped that `bounds="auto"` searched for; empty for any other ask."""
        return {name: (low, high) for name, low, high in self.clips}

    def read(self, reading: AnyReading, columns: tuple[str, ...], *, square: bool = False) -> Answer:
        """The same release read as another statistic; free."""
        return replace(self, reading=reading, columns=columns, square=square)

    @property
    def value(self) -> Value:
        """A number; an array for a vector, a matrix for covariances, a mapping from keys for a partition."""
        return self._shape(self._values(), whole=self._integral)

    @property
    def _integral(self) -> bool:
        """Whether the values are whole numbers, which their reading and grid tell."""
        return isinstance(self.reading, WHOLE) and all(noise.step.denominator == 1 for noise in self.released.noise)

    def _values(self) -> Floats:
        """The cells; not a number where the statistic is unknown, decided from released numbers alone (SR18)."""
        found, nothing = self.reading.value(self.released), self._unknown()
        return np.where(nothing[:, None], np.nan, found) if nothing.any() else found

    def _unknown(self) -> Truths:
        """Which groups may have no rows, and so not the statistic."""
        return unknown(self.reading if self.keys else None, self.released)

    def with_sampling(self, sampling: Sampling = "people") -> Answer:
        """The same answer with intervals that count the sampling of a larger population beside the noise; free."""
        if sampling is False:
            return self
        factor = deviation_of(sampling, self.unit)
        sampled(self.reading, self.released, 0.05, factor=factor)  # or it is refused
        return replace(self, sampling=factor, notes=(*words([self.reading], sampling, self.unit), *self.notes))

    def accuracy(self, beta: float = 0.05, *, simultaneous: bool = False, sampling: Sampling = False) -> Value:
        """How far off: within this except with probability beta, for each cell or for all at once.

        `sampling`: off the statistic of a larger population, as `interval` has it.
        """
        if sampling is not False:
            return self.with_sampling(sampling).accuracy(beta, simultaneous=simultaneous)
        low, high = self._interval(beta, simultaneous=simultaneous)
        if isinstance(self.reading, (FirstAbove, Placed)):
            return self.reading.reach(self.released, beta)
        value = self._values()
        away = np.where(np.isnan(value), high - low, np.maximum(high - value, value - low))
        return self._shape(away, whole=False)

    def interval(
        self, level: float = 0.95, *, simultaneous: bool = False, sampling: Sampling = False
    ) -> tuple[Value, Value]:
        """From where to where, at a level of confidence.

        `sampling`: False: the statistic of the declared table, so noise alone. True: that of a larger population of
        which the people are an independent sample; "rows": of which the rows are.
        """
        if sampling is not False:
            return self.with_sampling(sampling).interval(level, simultaneous=simultaneous)
        low, high = self._interval(beta_beside(level), simultaneous=simultaneous)
        return self._shape(low, whole=False), self._shape(high, whole=False)

    def _interval(self, beta: float, *, simultaneous: bool) -> tuple[Floats, Floats]:
        beta = probability(beta)
        if simultaneous:
            # Noise is independent over cells and columns: (1 - b)^draws = 1 - beta.
            draws = self.released.draws if isinstance(self.reading, Plain) else self.released.cells * len(self.columns)
            exact = isinstance(self.reading, Plain) and not self.sampling
            beta = float(-np.expm1(np.log1p(-beta) / draws)) if exact else beta / draws
        if self.sampling:
            low, high = sampled(self.reading, self.released, beta, factor=self.sampling)
        else:
            low, high = self.reading.interval(self.released, beta)
        nothing = self._unknown()[:, None]
        if isinstance(self.reading, Counted) and nothing.any():
            least, most = self.reading.bounds()
            low, high = np.where(nothing, least, low), np.where(nothing, most, high)
        return low, high

    def _shape(self, cells: Floats, *, whole: bool) -> Value:
        def one(row: Floats) -> object:
            if self.square:
                return self._matrix(row)
            if len(self.columns) == 1:
                return int(row[0]) if whole else _known(float(row[0]))
            return row.astype(np.int64) if whole else row

        if not self.keys:
            return cast("Value", one(cells[0]))
        return {label: one(row) for label, row in zip(self._labels(), cells, strict=True)}

    def _matrix(self, row: Floats) -> Floats:
        size = int((np.sqrt(8 * len(row) + 1) - 1) / 2)
        full = np.zeros((size, size))
        upper = np.triu_indices(size)
        full[upper] = row
        full.T[upper] = row
        return full

    @property
    def matrix(self) -> Floats:
        """Of pairs of columns a symmetric matrix, 1 on the diagonal of correlations; of covariances theirs."""
        if self.square and not self.keys:
            return self._matrix(self._values()[0])
        if not self.pairs:
            raise QuestionError("bad-question", "This answer is no matrix.", "Its numbers are in .value.")
        size = len(self.keys[0][1])
        full = np.eye(size) if isinstance(self.reading, Correlation) else np.zeros((size, size))
        above = np.triu_indices(size, 1)
        full[above] = full.T[above] = self._values()[:, 0]
        return full

    def _labels(self) -> list[object]:
        if self.released.labels is not None:  # open keys: those that were found
            found = list(zip(*self.released.labels, strict=True))
        elif self.pairs:
            found = list(itertools.combinations(self.keys[0][1], 2))
        else:
            grids = np.indices([len(labels) for _, labels in self.keys]).reshape(len(self.keys), -1).T
            found = [tuple(self.keys[i][1][code] for i, code in enumerate(codes)) for codes in grids]
        if self.clocks:
            clocks = [dict(self.clocks).get(name) for name, _ in self.keys]
            found = [tuple(map(_dated, own, clocks)) for own in found]
        return [label[0] for label in found] if len(self.keys) == 1 else list(found)

    def to_dict(self, level: float = 0.95) -> dict[str, list[object]]:
        """Columns by name: keys, values, and `low`/`high` at the level."""
        low, high = self._interval(beta_beside(level), simultaneous=False)
        return self._table(self._values(), low, high)

    def _table(self, value: Floats, *ends: Floats) -> dict[str, list[object]]:
        table = dict(self._key_columns())
        for j in range(len(self.columns)):
            for name, numbers, end in zip(self._names(j), (value, *ends), ENDS, strict=False):
                table[name] = self._cells(numbers[:, j].tolist(), end)
        return table

    def _key_columns(self) -> list[tuple[str, list[object]]]:
        """Each key's labels, cell by cell; a bin is a text."""
        labels, found = self._labels() if self.keys else [], []
        for i, (name, known) in enumerate(self.keys):
            several = len(self.keys) > 1
            own = [cast("tuple[object, ...]", label)[i] if several else label for label in labels]
            last = next((label for label in reversed(known) if label is not None), None)
            last = _dated(last, dict(self.clocks).get(name))
            found.append((name, [interval(label, closed=label == last) for label in own]))
        return found

    def _cells(self, numbers: list[float], end: Dated = moments.moment) -> list[object]:
        """A column's numbers: counts whole, moments of time as such, ends of theirs outwards, unknown ones None."""
        known = list(map(_known, numbers))
        if self.clock is not None:
            return [None if number is None else end(number, self.clock) for number in known]
        return as_whole(known) if self._integral else list(known)

    def _shown(self) -> list[ShownColumn]:
        """The columns as people read them: keys, and each statistic with its interval at 95%."""
        value, some = self._values(), [True] * self.released.cells
        made = [ShownColumn(name, cells) for name, cells in self._key_columns()]
        ends = None if isinstance(self.reading, Placed) else self._interval(0.05, simultaneous=False)
        for j in range(len(self.columns)):
            low, high = (
                (None, None)
                if ends is None
                else (self._cells(end[:, j].tolist(), dated) for end, dated in zip(ends, ENDS[1:], strict=True))
            )
            made.append(ShownColumn(self._names(j)[0], self._cells(value[:, j].tolist()), low, high, some))
        return made

    def _names(self, j: int) -> tuple[str, str, str]:
        """What a column and the ends of its interval are called beside the keys, which keep their names."""
        single = len(self.columns) == 1
        column = "value" if single else self.columns[j]
        suffix = "" if single else f"_{self.columns[j]}"
        taken = {name for name, _ in self.keys}
        while taken & {column, f"low{suffix}", f"high{suffix}"}:
            column, suffix = f"{column}_", f"{suffix}_"
        return column, f"low{suffix}", f"high{suffix}"

    def to_pandas(self, level: float | None = None) -> pandas.DataFrame:
        """A pandas frame: key columns and `value`; with a level also `low` and `high`."""
        return as_pandas(list(self._columns(level).items()), extra("pandas", "pandas"), self._kinds())

    def to_arrow(self, level: float | None = None) -> pyarrow.Table:
        """An Arrow table: key columns and `value`; with a level also `low` and `high`."""
        return as_arrow(list(self._columns(level).items()), importlib.import_module("pyarrow"), self._kinds())

    def _kinds(self) -> dict[str, Kind]:
        """The kinds of statistics that may be unknown, whatever they are; counts and sums are always known (T29)."""
        if self._integral and self.clock is None:
            return {}
        clocks: dict[str | None, Kind] = {"date": "date", "timestamp": "moment"}
        found: Kind = clocks.get(self.clock, "number")
        return {name: found for j in range(len(self.columns)) for name in self._names(j)}

    def _columns(self, level: float | None) -> dict[str, list[object]]:
        return self._table(self._values()) if level is None else self.to_dict(level)

    def plot(self, level: float = 0.95, *, column: str | None = None) -> Axes:
        """Bars with error bars, or a line with a band where the key is time (needs the extra `plot`).

        Args:
            level: the level of confidence of the intervals.
            column: which of the answer's columns is drawn; the first if none is named.
        """
        j = 0 if column is None else column_at(self.columns, column)
        table, keys = self.to_dict(level), [name for name, _ in self.keys]
        drawn = [table[name] for name in self._names(j)]
        names = [
            " / ".join(label(table[key][i]) for key in keys) or self.columns[j] for i in range(self.released.cells)
        ]
        series = PlotSeries.of(self._labels() if len(keys) == 1 else names, names, drawn)
        title = f"{level:.0%} intervals; spent {self.spent}"
        return draw(new_axes(), series, title=title, name=self.columns[j], across=", ".join(keys))

    def __repr__(self) -> str:
        lines = self._lines(limit=20)
        tail = paid(self.spent, self.remaining, self.unit)
        if self.guarantee != "dp":
            tail += f"; guarantee {self.guarantee}"
        return "\n".join([*lines, tail, *self._notes()])

    def _notes(self) -> tuple[str, ...]:
        return (*self.notes, UNKNOWN) if self._unknown().any() else self.notes

    def _lines(self, limit: int) -> list[str]:
        if isinstance(self.reading, FirstAbove):
            sums, place = self.reading.sums(self.released), int(self.released.units[0, 0])
            found = f"sum {place}, from 0, is the first of {sums}" if place < sums else f"none of {sums} sums is"
            return [f"{found} at or above its threshold, give or take {plain(self.reading.reach(self.released, 0.05))}"]
        if isinstance(self.reading, Placed):
            point = ", ".join(map(plain, self.reading.value(self.released)[0].tolist()))
            return [f"{point if len(self.columns) == 1 else f'({point})'}, {self._near(self.reading)}"]
        shown = self._matrix_columns() if self.square and not self.keys else self._shown()
        if self.square or (self.keys and len(self.columns) > 1):
            return [table_text(shown, limit)]
        keys, numbers = shown[: len(self.keys)], shown[len(self.keys) :]
        labels = [" / ".join(own) for own in text_rows(keys, limit)] if keys else [column.name for column in numbers]
        labels = labels if keys or len(numbers) > 1 else [""]
        texts = [text for column in numbers for text in column.texts(limit)]
        width = max(map(len, labels), default=0)
        lines = [
            f"{name.ljust(width)}{tables.GAP if width else ''}{text}" for name, text in zip(labels, texts, strict=True)
        ]
        return [*lines, *filter(None, [tables.not_shown(self.released.cells - limit)])]

    def _matrix_columns(self) -> list[ShownColumn]:
        """A covariance matrix as columns, the first of them its rows' names."""
        upper, size = self._shown(), self._matrix(self._values()[0]).shape[0]
        first = [size * i - i * (i - 1) // 2 for i in range(size)]  # place of each diagonal entry among the upper ones
        names = [self.columns[at][: (len(self.columns[at]) - 1) // 2] for at in first]  # of a column "a*a"
        made = [ShownColumn("", names)]
        for j in range(size):
            own = [upper[first[min(i, j)] + abs(i - j)] for i in range(size)]
            value, low, high = (
                [cell for cells in entries for cell in cells or ()]
                for entries in zip(*((one.cells, one.low, one.high) for one in own), strict=True)
            )
            made.append(ShownColumn(names[j], value, low, high, [True] * size))
        return made

    def _near(self, reading: Placed) -> str:
        """What is claimed of a point; an interval would be the whole space."""
        return f"within {plain(reading.reach(self.released, 0.05))} of the nearest at 95%"

    def _repr_html_(self) -> str:
        near = f"{self._near(self.reading)}; " if isinstance(self.reading, Placed) else ""
        tail = f"{near}{paid(self.spent, self.remaining, self.unit)}; {' '.join(self._notes())}"
        shown = self._matrix_columns() if self.square and not self.keys else self._shown()
        return table_html(shown, tail)


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """Answers to questions asked together: one debit, one receipt."""

    answers: tuple[Answer, ...]

    def __iter__(self) -> Iterator[Answer]:
        return iter(self.answers)

    def __getitem__(self, index: int) -> Answer:
        return self.answers[index]

    def __len__(self) -> int:
        return len(self.answers)

    @property
    def spent(self) -> Loss:
        """What all of them cost together."""
        return self.answers[0].spent

    @property
    def receipt(self) -> Receipt:
        """The one receipt."""
        return self.answers[0].receipt

    def __repr__(self) -> str:
        return "\n\n".join(map(repr, self.answers))


def beta_beside(level: object) -> float:
    """The probability left out by a level of confidence."""
    return 1.0 - level if isinstance(level, float) else -1.0  # refused like any other that is none


def _known(value: float) -> float | None:
    """A number, or None for one that is unknown."""
    return None if math.isnan(value) else value


def paid(spent: Loss, remaining: Loss | None, unit: Unit) -> str:
    """What was spent, what is left where that is told, and whom it protects."""
    left = "" if remaining is None else f", left {remaining}"
    return f"spent {spent}{left}; protects {unit}"


def _dated(label: object, clock: str | None) -> object:
    """A key's label as a date or moment where its numbers are such; of a bin both of its edges."""
    if clock is None or label is None or isinstance(label, str):
        return label
    if isinstance(label, tuple):
        return tuple(_dated(edge, clock) for edge in label)
    return moments.moment(cast("float", label), clock)


def column_at(names: Sequence[str], name: str) -> int:
    """The place of a column by its name."""
    if name not in names:
        known = ", ".join(names)
        raise QuestionError("bad-question", f"The answer has no column {str(name)[:80]!r}.", f"Name one of: {known}.")
    return list(names).index(name)


def new_axes() -> Axes:
    """Axes to draw on (needs the extra `plot`)."""
    return cast("Axes", extra("matplotlib.pyplot", "plot").figure(layout="constrained").add_subplot())


def extra(module: str, name: str) -> ModuleType:
    """A library that only an extra of the package brings."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise SetupError("missing-extra", f"This needs the extra {name!r}.", f"pip install 'sulq[{name}]'") from None


__all__ = ["Receipt"]  # the kernel's, passed on
