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

from sulq.language.privacy import Budget, Loss
from sulq.service.console.api import Refusal, Tree
from sulq.service.console.views import chart
from sulq.service.console.views.words import as_float, loss, number, off

MAX_ROWS_SHOWN: Final = 200  # rows on a page; a download has all of them
MAX_DOWNLOAD_BYTES: Final = 8 * 2**20  # of the form by which an answer on a page comes back to be saved
REST_BYTES: Final = 2**10  # of its other fields
LEAST_CELL_BYTES: Final = 8  # of a cell and the two ends of its bar, each with a sign that is sent as three
SENT_AS_THEY_ARE: Final = (string.ascii_letters + string.digits + "-._*").encode()  # other signs as three, or as +
Row = Sequence[object]


@dataclass(frozen=True, slots=True)
class AnswerCell:
    """One cell: what is shown, and the interval around it where it is an estimate."""

    text: str
    spread: str = ""
    between: str = ""


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
        return [[self._cell(i, j, noisy=is_noisy) for j, is_noisy in enumerate(self.noisy)] for i in shown]

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
            return "Nothing here depends on a person, so it carries no noise."
        if len(noisy) == 1 and len(self.rows) == 1:
            low, high = cast("tuple[object, object]", self._bar(0, noisy[0]))
            what = self.columns[noisy[0]]
            whose = f"{what} of the larger population" if self.sampling else f"true {what}"
            return f"With {sure} confidence the {whose} lies between {_end(low)} and {_end(high)}."
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
        """A chart for each column of estimates, at most two; the other columns name the bars."""
        keys = ", ".join(name for name, is_noisy in zip(self.columns, self.noisy, strict=True) if not is_noisy)
        found = []
        for j in self.estimates[:2]:
            title = f"{self.columns[j]} by {keys}" if keys else self.columns[j]
            first = list(itertools.islice(self._bars(j), chart.MAX_BARS))  # more are not drawn
            found.append((title, chart.bars(first, title=title, level=self.level, number_of_rows=len(self.rows))))
        return [(title, drawn) for title, drawn in found if drawn]

    def _bars(self, j: int) -> Iterator[chart.Bar]:
        """The bars of a column of estimates; of what is unknown none."""
        named = [i for i, is_noisy in enumerate(self.noisy) if not is_noisy]
        for i, row in enumerate(self.rows):
            value, ends = as_float(row[j]), self._bar(i, j)
            if value is None:
                continue
            low, high = (None, None) if ends is None else (as_float(ends[0]), as_float(ends[1]))
            name = " / ".join("missing" if row[at] is None else _plain(row[at]) for at in named)
            yield chart.Bar(name or self.columns[j], value, low, high)

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

    def _cell(self, i: int, j: int, *, noisy: bool) -> AnswerCell:
        value, ends = self.rows[i][j], self._bar(i, j)
        nothing = "unknown" if noisy else "missing"  # an estimate of a group that may have no rows
        text = nothing if value is None else _shown(value, ends)
        if ends is None:
            return AnswerCell(text)
        at, low, high = as_float(value), as_float(ends[0]), as_float(ends[1])
        between = f"{_end(ends[0])} to {_end(ends[1])}"
        if at is None or low is None or high is None:
            return AnswerCell(text, between, between)
        alike = abs((high - at) - (at - low)) <= 0.02 * (high - low) + 1e-9
        return AnswerCell(text, f"± {off(max(high - at, at - low))}" if alike else between, between)


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


def _shown(value: object, ends: tuple[object, object] | None) -> str:
    """A value with no more digits than its interval allows."""
    if isinstance(value, bool) or not isinstance(value, float) or ends is None:
        return number(value) if isinstance(value, (int, float)) and ends is not None else _plain(value)
    low, high = as_float(ends[0]), as_float(ends[1])
    if low is None or high is None or not 0 < high - low < math.inf:
        return number(value)
    digits = min(max(1 - math.floor(math.log10((high - low) / 2)), 0), 6)
    return f"{value:,.{digits}f}".replace("-", "−")


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:,.6g}" if isinstance(value, float) else str(value)


def _end(value: object) -> str:
    return "anything" if value is None else number(value)


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
