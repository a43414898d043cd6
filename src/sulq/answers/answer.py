"""Answer: a value, how far off it may be, what it cost, and the receipt."""

from __future__ import annotations

import html
import importlib
import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from sulq.answers.estimators import Chosen, FirstAbove, Placed, Plain
from sulq.answers.joint import Correlation
from sulq.answers.noise_sums import UNKNOWN, Counted, unknown
from sulq.answers.released import Released
from sulq.answers.sampling import AnyReading, Sampling, deviation_of, sampled, words
from sulq.errors import QuestionError, SetupError
from sulq.kernel.ledger.chain import Receipt
from sulq.language.kinds import Floats, Truths
from sulq.language.privacy import Event, Loss, Unit, probability

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from matplotlib.axes import Axes


Value = float | int | Floats | dict[object, object]
Clips = tuple[tuple[str, float | int, float | int], ...]


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
        whole = isinstance(self.reading, (Plain, Chosen, FirstAbove))
        return self._shape(self._values(), whole=whole)

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
        integral = whole and all(noise.step.denominator == 1 for noise in self.released.noise)

        def one(row: Floats) -> object:
            if self.square:
                return self._matrix(row)
            if len(self.columns) == 1:
                return int(row[0]) if integral else _known(float(row[0]))
            return row.astype(np.int64) if integral else row

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
        return [label[0] for label in found] if len(self.keys) == 1 else list(found)

    def to_dict(self, level: float = 0.95) -> dict[str, list[object]]:
        """Columns by name: keys, values, and `low`/`high` at the level."""
        low, high = self._interval(beta_beside(level), simultaneous=False)
        return self._table(self._values(), low, high)

    def _table(self, value: Floats, *ends: Floats) -> dict[str, list[object]]:
        table: dict[str, list[object]] = {}
        labels = self._labels() if self.keys else []
        for i, (name, known) in enumerate(self.keys):
            several = len(self.keys) > 1
            own = [cast("tuple[object, ...]", label)[i] if several else label for label in labels]
            last = next((label for label in reversed(known) if label is not None), None)
            table[name] = [_text(label, last=label is last) for label in own]
        for j in range(len(self.columns)):
            for name, numbers in zip(self._names(j), (value, *ends), strict=False):
                table[name] = [_known(number) for number in numbers[:, j].tolist()]
        return table

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
        frame = extra("pandas", "pandas").DataFrame(self._columns(level))
        return cast("pandas.DataFrame", frame.astype(dict.fromkeys(self._numbers(level), "float64")))

    def to_arrow(self, level: float | None = None) -> pyarrow.Table:
        """An Arrow table: key columns and `value`; with a level also `low` and `high`."""
        arrow, numbers = importlib.import_module("pyarrow"), self._numbers(level)
        columns = self._columns(level).items()
        made = {name: arrow.array(cells, arrow.float64() if name in numbers else None) for name, cells in columns}
        return cast("pyarrow.Table", arrow.table(made))

    def _columns(self, level: float | None) -> dict[str, list[object]]:
        return self._table(self._values()) if level is None else self.to_dict(level)

    def _numbers(self, level: float | None) -> list[str]:
        """The columns that hold numbers, the unknown ones among them missing."""
        return [name for j in range(len(self.columns)) for name in self._names(j)[: 1 if level is None else 3]]

    def plot(self, level: float = 0.95) -> Axes:
        """Bars with error bars (needs the extra `plot`)."""
        table = self.to_dict(level)
        value, low, high = (np.array(table[name], dtype=float) for name in self._names(0))
        known = np.flatnonzero(~np.isnan(value))  # an unknown group has no bar
        names = [" / ".join(str(table[key][i]) for key, _ in self.keys) or self.columns[0] for i in known]
        title = f"{level:.0%} intervals; spent {self.spent}"
        axes = bar_chart(names, value[known], low[known], high[known], title=title)
        axes.set_ylabel(self.columns[0])
        axes.set_xlabel(", ".join(name for name, _ in self.keys))
        return axes

    def __repr__(self) -> str:
        lines = self._lines(limit=20)
        tail = paid(self.spent, self.remaining, self.unit)
        if self.guarantee != "dp":
            tail += f"; guarantee {self.guarantee}"
        return "\n".join([*lines, tail, *self._notes()])

    def _notes(self) -> tuple[str, ...]:
        return (*self.notes, UNKNOWN) if self._unknown().any() else self.notes

    def _lines(self, limit: int) -> list[str]:
        if self.square:
            return [f"{len(self.columns)} entries of a covariance matrix; .value has the matrix"]
        if isinstance(self.reading, FirstAbove):
            sums, place = self.reading.sums(self.released), int(self.released.units[0, 0])
            found = f"sum {place}, from 0, is the first of {sums}" if place < sums else f"none of {sums} sums is"
            return [f"{found} at or above its threshold, give or take {self.accuracy(0.05):,.6g}"]
        if isinstance(self.reading, Placed):
            point = ", ".join(f"{number:,.6g}" for number in self.reading.value(self.released)[0])
            return [f"{point if len(self.columns) == 1 else f'({point})'}, {self._near(self.reading)}"]
        table = self.to_dict()
        names = [self._names(j) for j in range(len(self.columns))]
        shown = []
        for i in range(self.released.cells):
            keys = [str(table[key][i]) for key, _ in self.keys]
            for column, (value, low, high) in zip(self.columns, names, strict=True):
                label = " / ".join([*keys, column] if len(self.columns) > 1 else keys)
                shown.append((label, table[value][i], table[low][i], table[high][i]))
        width = max((len(label) for label, *_ in shown[:limit]), default=0)
        lines = [_line(label.ljust(width), v, a, b) for label, v, a, b in shown[:limit]]
        if len(shown) > limit:
            lines.append(f"... {len(shown) - limit} more")
        return lines

    def _near(self, reading: Placed) -> str:
        """What is claimed of a point; an interval would be the whole space."""
        return f"within {reading.reach(self.released, 0.05):,.6g} of the nearest at 95%"

    def _repr_html_(self) -> str:
        table = self._columns(None) if isinstance(self.reading, Placed) else self.to_dict()
        near = f"{self._near(self.reading)}; " if isinstance(self.reading, Placed) else ""
        tail = f"{near}{paid(self.spent, self.remaining, self.unit)}; {' '.join(self._notes())}"
        if self.square:
            return f"<p>{len(self.columns)} entries of a covariance matrix</p><p>{html.escape(tail)}</p>"
        rows = zip(*table.values(), strict=True)
        body = [[_shown(cell, key=i < len(self.keys)) for i, cell in enumerate(row)] for row in rows]
        return html_table(table, body, tail)


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


def _line(label: str, value: object, low: object, high: object) -> str:
    return f"{label}  unknown" if value is None else bar(label, *(cast("float", end) for end in (value, low, high)))


def paid(spent: Loss, remaining: Loss | None, unit: Unit) -> str:
    """What was spent, what is left where that is told, and whom it protects."""
    left = "" if remaining is None else f", left {remaining}"
    return f"spent {spent}{left}; protects {unit}"


def bar(label: str, value: float, low: float, high: float) -> str:
    """A number with its error bar, in as many figures as that bears out."""
    away, under = high - value, value - low
    lead = f"{label}  " if label.strip() else ""
    whole = value.is_integer() and low.is_integer() and high.is_integer()
    places = 0 if whole else _places(max(away, under))
    if abs(away - under) <= 1e-9 * max(1.0, abs(away)):
        return f"{lead}{value:,.{places}f} +- {away:,.{places}f}"
    return f"{lead}{value:,.{places}f} in [{low:,.{places}f}, {high:,.{places}f}]"


def _places(radius: float) -> int:
    """Decimals worth showing beside an error bar: two of its figures, none for whole numbers."""
    return 0 if radius >= 10 or radius <= 0 else min(12, 1 - math.floor(math.log10(radius)))


def _text(label: object, *, last: bool) -> object:
    """A bin as an interval: half open, the last one closed; any other label as it is."""
    if not isinstance(label, tuple) or len(label) != 2:
        return label
    return f"[{label[0]}, {label[1]}{']' if last else ')'}"


def _shown(cell: object, *, key: bool = False) -> str:
    return f"{cell:,.6g}" if isinstance(cell, float) else str(cell) if key or cell is not None else "unknown"


def html_table(head: Iterable[str], body: Iterable[Iterable[str]], tail: str) -> str:
    """A table in HTML with a line below it."""
    top = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    rows = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in line) + "</tr>" for line in body)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{rows}</tbody></table><p>{html.escape(tail)}</p>"


def bar_chart(names: list[str], value: Floats, low: Floats, high: Floats, *, title: str) -> Axes:
    """Bars with error bars (needs the extra `plot`); an end that is not finite is not drawn."""
    axes = cast("Axes", extra("matplotlib.pyplot", "plot").figure(layout="constrained").add_subplot())
    away = np.nan_to_num(np.maximum([value - low, high - value], 0), posinf=0.0)
    axes.bar(names, value, yerr=away, capsize=3, color="#4a7fb5")
    axes.set_title(title, fontsize="medium")
    if len(names) > 6:
        axes.tick_params(axis="x", labelrotation=60)
    return axes


def extra(module: str, name: str) -> ModuleType:
    """A library that only an extra of the package brings."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise SetupError("missing-extra", f"This needs the extra {name!r}.", f"pip install 'sulq[{name}]'") from None


MAX_TEXT_ROWS: Final = 40  # rows of a table in a text
Cell = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table: its name, the names of its columns, its rows; `more` rows are not shown."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    more: int = 0

    def to_json(self) -> dict[str, object]:
        """As a door shows it."""
        found: dict[str, object] = {
            "title": self.title, "columns": list(self.columns), "rows": [list(row) for row in self.rows],
        }  # fmt: skip
        return found | ({"more": self.more} if self.more else {})

    def text(self) -> str:
        """As a text whose columns stand below each other."""
        lines = [self.columns, *(tuple(_said(cell) for cell in row) for row in self.rows[:MAX_TEXT_ROWS])]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.columns))]
        said = [
            "  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths, strict=True)))
            for line in lines
        ]
        left = max(len(self.rows) - MAX_TEXT_ROWS, 0) + self.more
        more = [f"... {left} more rows"] if left else []
        return "\n".join([self.title, *(line.rstrip() for line in said), *more])


def cell(value: object) -> Cell:
    """A value as a cell; a number that is none (nan, infinite) is its name, as JSON has no other word for it."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _said(value: Cell) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


__all__ = ["Receipt"]  # the kernel's, passed on
