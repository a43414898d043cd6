"""A query as the console shows it: its price and expected error before, cells with error bars, charts, files after."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Final, cast

from markupsafe import Markup

from sulq.display import moments
from sulq.display.axes import Timeline
from sulq.display.labels import label
from sulq.display.numbers import UNKNOWN, Estimate, NumberStyle
from sulq.language.privacy import Budget, Loss
from sulq.service.console.api import Refusal, Tree
from sulq.service.console.views import chart
from sulq.service.console.views.words import as_float, loss, number, off, signed

MAX_ROWS_SHOWN: Final = 200  # rows on a page; a download has all of them
MAX_DOWNLOAD_BYTES: Final = 8 * 2**20  # of the form by which an answer on a page comes back to be saved
REST_BYTES: Final = 2**10  # of its other fields
LEAST_CELL_BYTES: Final = 8  # of a cell and the two ends of its bar, each with a sign that is sent as three
SENT_AS_THEY_ARE: Final = (string.ascii_letters + string.digits + "-._*").encode()  # other signs as three, or as +
ANYTHING: Final = "anything"  # an end that is not known
DATE_LETTERS: Final = 10  # of a date's ISO text; a moment's is longer
Row = Sequence[object]


@dataclass(frozen=True, slots=True)
class AnswerCell:
    """One cell: what is shown, and the interval around it where it is an estimate."""

    text: str
    spread: str = ""
    ends: tuple[str, str] = ("", "")

    @property
    def between(self) -> str:
        """The interval in words; empty where there is none."""
        return " to ".join(self.ends) if any(self.ends) else ""


@dataclass(frozen=True, slots=True)
class AnswerTable:
    """Columns, rows and the ends of each cell's interval; ends are missing for what carries no noise."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    low: tuple[Row, ...]
    high: tuple[Row, ...]
    level: float = 0.95
    sampling: bool = False  # whether intervals are of a larger population
    noisy: tuple[bool, ...] = field(init=False)  # which columns are estimates: found once, as all rows are looked at

    def __post_init__(self) -> None:
        at = map(itemgetter, range(len(self.columns)))
        noisy = tuple(any(map(_noisy, *(map(j, grid) for grid in (self.rows, self.low, self.high)))) for j in at)
        object.__setattr__(self, "noisy", noisy)

    @classmethod
    def of(cls, tree: Mapping[str, object]) -> AnswerTable:
        """Read an answer of the API, or what a page of ours kept of one."""
        columns = tuple(str(name) for name in _list(tree.get("columns")))
        rows, low, high = (_grid(tree.get(name), len(columns)) for name in ("rows", "low", "high"))
        level = tree.get("level", 0.95)
        if not len(rows) == len(low) == len(high) or not isinstance(level, (int, float)):
            raise _unreadable()
        return cls(columns, rows, low, high, float(level), tree.get("sampling") is True)

    def kept(self) -> str | None:
        """The same as a text that a form can carry to the download; None where it is longer than a form may be."""
        if len(self.rows) * len(self.columns) > MAX_DOWNLOAD_BYTES // LEAST_CELL_BYTES:
            return None
        parts = {"columns": self.columns, "rows": self.rows, "low": self.low, "high": self.high, "level": self.level}
        text = json.dumps(parts, allow_nan=False, separators=(",", ":"))
        sent = len(text) + 2 * len(text.encode().translate(None, SENT_AS_THEY_ARE))
        return text if sent <= MAX_DOWNLOAD_BYTES - REST_BYTES else None

    @property
    def estimates(self) -> list[int]:
        """The numbers of these columns."""
        return [j for j, is_noisy in enumerate(self.noisy) if is_noisy]

    def cells(self) -> list[list[AnswerCell]]:
        """The rows that are shown."""
        shown = range(min(len(self.rows), MAX_ROWS_SHOWN))
        styles = [self._style(j) for j in range(len(self.columns))]
        return [[self._cell(i, j, styles[j]) for j in range(len(self.columns))] for i in shown]

    def _style(self, j: int) -> NumberStyle:
        """How the estimates of a column are written, from the rows that are shown."""
        some = itertools.islice(zip(self.rows, self.low, self.high, strict=True), MAX_ROWS_SHOWN)
        found = [_estimate(value[j], (low[j], high[j])) for value, low, high in some]
        return NumberStyle.of([one for one in found if one is not None])

    @property
    def more(self) -> int:
        """How many rows are not shown."""
        return max(len(self.rows) - MAX_ROWS_SHOWN, 0)

    def sentence(self) -> str:
        """How to read it, in a sentence."""
        noisy, sure = self.estimates, f"{self.level:.0%}"
        if not self.rows:
            return "No group was large enough to be shown, or none met the condition."
        if not noisy:
            return "Nothing here depends on private rows, so it carries no noise."
        if len(noisy) == 1 and len(self.rows) == 1:
            cell, what = self._cell(0, noisy[0], self._style(noisy[0])), self.columns[noisy[0]]
            low, high = cell.ends
            whose = f"{what} of the larger population" if self.sampling else f"true {what}"
            return f"With {sure} confidence the {whose} lies between {low} and {high}."
        each = "Each value of the larger population" if self.sampling else "Each true value"
        each += " lies within its own interval"
        return f"{each} with {sure} confidence: about one in {round(1 / max(1 - self.level, 1e-9)):,} may lie outside."

    @property
    def below(self) -> bool:
        """Whether a count or sum that cannot be negative may be shown below zero: noise knows no bounds."""
        columns = self.estimates
        both = zip(self.rows, self.high, strict=True)
        shown = ((as_float(row[j]), as_float(high[j])) for row, high in both for j in columns)
        return any(value is not None and value < 0 and (high is None or high >= 0) for value, high in shown)

    def charts(self) -> list[tuple[str, Markup]]:
        """A chart for each column of estimates, at most two: lines over time, else bars that other columns name."""
        named = [j for j, is_noisy in enumerate(self.noisy) if not is_noisy]
        keys = ", ".join(self.columns[j] for j in named)
        found = []
        for j in self.estimates[:2]:
            title = f"{self.columns[j]} by {keys}" if keys else self.columns[j]
            over = list(itertools.islice(self._bars(j), chart.MAX_POINTS)) if len(named) == 1 else []
            if over and (places := Timeline.of([bar.label for bar in over])) is not None:
                drawn = chart.lines(over, places, title=title, level=self.level, number_of_rows=len(self.rows))
            else:
                first = list(itertools.islice(self._bars(j), chart.MAX_BARS))  # more are not drawn
                drawn = chart.bars(first, title=title, level=self.level, number_of_rows=len(self.rows))
            found.append((title, drawn))
        return [(title, drawn) for title, drawn in found if drawn]

    def _bars(self, j: int) -> Iterator[chart.Bar]:
        """The bars of a column of estimates; of what is unknown none."""
        named = [i for i, is_noisy in enumerate(self.noisy) if not is_noisy]
        for i, row in enumerate(self.rows):
            value, ends = as_float(row[j]), self._bar(i, j)
            if value is None:
                continue
            low, high = (None, None) if ends is None else (as_float(ends[0]), as_float(ends[1]))
            name = " / ".join(_plain(row[at]) for at in named)
            label = row[named[0]] if len(named) == 1 else None
            yield chart.Bar(name or self.columns[j], value, low, high, label)

    def named(self) -> list[tuple[str, list[object]]]:
        """Every column, and `low_` and `high_` of those that are estimates."""
        made: list[tuple[str, list[object]]] = []
        for j, (name, is_noisy) in enumerate(zip(self.columns, self.noisy, strict=True)):
            made.append((name, [row[j] for row in self.rows]))
            if is_noisy:
                made.append((f"low_{name}", [row[j] for row in self.low]))
                made.append((f"high_{name}", [row[j] for row in self.high]))
        return made

    def _bar(self, i: int, j: int) -> tuple[object, object] | None:
        """The interval of a cell; one that stands for itself carries no noise."""
        value, low, high = self.rows[i][j], self.low[i][j], self.high[i][j]
        return (low, high) if _noisy(value, low, high) else None

    def _cell(self, i: int, j: int, style: NumberStyle) -> AnswerCell:
        value, ends = self.rows[i][j], self._bar(i, j)
        if ends is None:
            return AnswerCell(UNKNOWN if value is None and self.noisy[j] else _plain(value))
        unknown = value is None and as_float(ends[0]) is not None  # an estimate of a group that may have no rows
        estimate = (None, as_float(ends[0]), as_float(ends[1])) if unknown else _estimate(value, ends)
        if value is None and not unknown:
            return AnswerCell(UNKNOWN)
        if estimate is None:
            at, low, high = _moments(value, *ends)
            return AnswerCell(at, f"{low} to {high}", (low, high))
        low, high = (signed(end).replace("−inf", ANYTHING).replace("inf", ANYTHING) for end in style.ends(estimate))
        spread = f"{low} to {high}" if style.bracketed or unknown else f"± {signed(style.away(estimate))}"
        return AnswerCell(signed(style.value(estimate)), spread, (low, high))


def _noisy(value: object, low: object, high: object) -> bool:
    """Whether a cell is an estimate: there is an interval, and it is more than the value itself."""
    return (low is not None or high is not None) and not low == value == high


def to_csv(table: AnswerTable) -> bytes:
    """A CSV that no spreadsheet takes for formulas: a text that looks like one gets an apostrophe before it (T82)."""
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    made = table.named()
    writer.writerow([_tame(name) for name, _ in made])
    for i in range(len(table.rows)):
        writer.writerow(["" if cells[i] is None else _tame(cells[i]) for _, cells in made])
    return out.getvalue().encode()


def to_parquet(table: AnswerTable) -> bytes:
    """The same as Parquet, typed column by column."""
    import pyarrow as pa  # large, and needed by nobody who downloads nothing
    import pyarrow.parquet as pq

    made = table.named()
    arrays = [pa.array(_alike(cells)) for _, cells in made]
    out = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(arrays, names=[name for name, _ in made]), out)
    return out.getvalue()


def _tame(value: object) -> object:
    risky = isinstance(value, str) and value.lstrip(" ")[:1] in ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")
    return f"'{value}" if risky else value


def _alike(cells: list[object]) -> list[object]:
    """Cells of one type: whole and broken numbers together become doubles, anything else mixed becomes text."""
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds == {int, float}:
        return [None if cell is None else float(cast("float", cell)) for cell in cells]
    return [None if cell is None else str(cell) for cell in cells] if len(kinds) > 1 else cells


def _estimate(value: object, ends: tuple[object, object]) -> Estimate | None:
    """A cell as an estimate of a number; None where it is none, or carries no noise."""
    at, (low, high) = as_float(value), map(as_float, ends)
    return None if at is None or not _noisy(value, *ends) else (int(at) if isinstance(value, int) else at, low, high)


def _moments(value: object, low: object, high: object) -> tuple[str, str, str]:
    """A date or moment and the ends of its interval, as the API writes them."""
    given = [moments.read(one) for one in (value, low, high)]
    known = [one for one in given if one is not None]
    if len(known) < 3 or any(len(str(one)) <= DATE_LETTERS for one in (value, low, high)):
        start, stop = (ANYTHING if end is None else _plain(end) for end in (low, high))
        return _plain(value), start, stop
    return moments.estimate(*known)


def _plain(value: object) -> str:
    """A label, or a value that carries no noise."""
    if isinstance(value, bool):
        return "true" if value else "false"
    when = moments.read(value) if isinstance(value, str) and len(value) > DATE_LETTERS else None
    return label(value if when is None else when)


def _list(tree: object) -> list[Any]:
    if not isinstance(tree, list):
        raise _unreadable()
    return tree


def _grid(tree: object, width: int) -> tuple[Row, ...]:
    rows = _list(tree)
    plain = {str, int, float, bool, type(None)}
    alike = {list}.issuperset(map(type, rows)) and {width}.issuperset(map(len, rows))
    if not alike or not plain.issuperset(map(type, itertools.chain.from_iterable(rows))):
        raise _unreadable()
    return tuple(rows)


def _unreadable() -> Refusal:
    return Refusal(400, "bad-request", "The table could not be read.", "Go back to the answer and download it again.")


@dataclass(frozen=True, slots=True)
class Forecast:
    """A query before it is asked: its price, and how far off each column may be."""

    price: Loss | Budget | None
    columns: list[dict[str, object]]  # its name; how far it is off, or for each number of rows of a group
    level: float
    notes: list[str]
    text: str
    left: Loss | Budget | None  # after asking; None where it would be refused
    fits: bool
    buys: str | None

    @classmethod
    def of(cls, tree: Tree) -> Forecast:
        """Read what /explain says."""
        columns = [_forecast_column(item, tree["rows"]) for item in tree["columns"]]
        left = (loss(tree["left"]), tree["fits"], tree["buys"])
        return cls(loss(tree["price"]), columns, 1 - tree["beta"], tree["notes"], tree["text"], *left)


def _forecast_column(item: Tree, rows: list[int]) -> dict[str, object]:
    widths = [math.inf if width is None else width for width in item["widths"]]
    if not widths or item["sure"]:
        return {"name": item["name"], "off": f"± {off(max(widths))}" if widths else "not known beforehand"}
    cases = [(number(count), f"± {off(width)}") for count, width in zip(rows, widths, strict=False)]
    return {"name": item["name"], "off": "", "cases": cases}
