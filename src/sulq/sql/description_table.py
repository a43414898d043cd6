"""What a description shows: a row for each column with its error bars, small charts, and how the spend was divided."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import NoneType
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from sulq.answers.answer import Answers, Receipt, beta_beside, extra, paid
from sulq.answers.plan import Plan
from sulq.answers.readings.sampling import Sampling, words
from sulq.answers.released import Released
from sulq.display import labels
from sulq.errors import QuestionError
from sulq.language.privacy import Loss, Unit, probability
from sulq.sql.description import DescribedColumn, DescriptionRequest
from sulq.sql.released.columns import StatColumn
from sulq.sql.released.functions import number
from sulq.sql.released.tables import GroupedColumn

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STATS: Final[tuple[str, ...]] = ("count", "missing", "mean", "std", "q25", "median", "q75")
MAX_TOP: Final = 5  # categories that are named
MAX_TEXT_COLUMNS: Final = 40
MAX_BARS: Final = 24
BAR_WIDTH: Final = 8
CHART_HEIGHT: Final = 28
Estimate = tuple[object, object, object]  # a value and the ends of its interval


@dataclass(frozen=True, slots=True)
class ColumnSummary:
    """What is told of one column at a level: its statistics by name, and the counts of its categories or bins."""

    name: str
    kind: str
    stats: dict[str, Estimate]
    counts: tuple[tuple[object, Estimate], ...]
    ordered: bool

    @property
    def top(self) -> tuple[tuple[object, Estimate], ...]:
        """The most frequent categories, missing cells not among them; none of a number."""
        known = [(label, found) for label, found in self.counts if label is not None]
        return () if self.ordered else tuple(sorted(known, key=lambda one: -number(one[1][0]))[:MAX_TOP])


@dataclass(frozen=True, slots=True, eq=False)
class Description:
    """The columns of a table in numbers, each with an error bar, at one debit.

    Counts, missing cells, mean, standard deviation and quartiles of numbers, the most frequent categories of
    categories, and the parts of the spend that bought them (`shares`).
    """

    request: DescriptionRequest
    answers: Answers
    notes: tuple[str, ...] = ()

    @property
    def released(self) -> tuple[Released, ...]:
        """The released numbers, question by question."""
        return self.request.released(self.answers)

    @property
    def spent(self) -> Loss:
        """What all of it cost together."""
        return self.answers.spent

    @property
    def remaining(self) -> Loss | None:
        """What was left of the budget after it."""
        return self.answers[0].remaining

    @property
    def unit(self) -> Unit:
        """Who is protected."""
        return self.answers[0].unit

    @property
    def receipt(self) -> Receipt:
        """The one receipt."""
        return self.answers.receipt

    @property
    def reused(self) -> bool:
        """Whether a stored answer was given again, free."""
        return self.answers[0].reused

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are described."""
        return tuple(one.name for one in self.request.columns)

    @property
    def shares(self) -> tuple[tuple[str, str, float], ...]:
        """What each part of the spend bought: a column, what of it, and the part."""
        return self.request.parts

    @property
    def value(self) -> dict[str, dict[str, object]]:
        """Each column's statistics by name."""
        return {one.name: {name: found[0] for name, found in one.stats.items()} for one in self.summaries()}

    def interval(
        self, level: float = 0.95, *, sampling: Sampling = False
    ) -> dict[str, dict[str, tuple[object, object]]]:
        """From where to where each lies, at a level of confidence; `sampling`: of a larger population."""
        if sampling is not False:
            return self.with_sampling(sampling).interval(level)
        return {one.name: {name: found[1:] for name, found in one.stats.items()} for one in self.summaries(level)}

    def with_sampling(self, sampling: Sampling = "people") -> Description:
        """The same description with intervals that count the sampling of a larger population; free."""
        if sampling is False:
            return self

        def counted(one: DescribedColumn) -> DescribedColumn:
            stats = {name: column.with_sampling(sampling) for name, column in one.stats.items()}
            return replace(one, stats=stats, counts=None if one.counts is None else one.counts.with_sampling(sampling))

        every, columns = self.request.rows.with_sampling(sampling), tuple(map(counted, self.request.columns))
        readings = [column.reading for one in columns for column in one.stats.values()]
        said = (*words(list(readings), sampling, self.unit), *self.notes)
        return replace(self, request=replace(self.request, rows=every, columns=columns), notes=said)

    def rows(self, level: float = 0.95) -> Estimate:
        """The number of rows, and its interval."""
        return _estimates(self.request.rows, self.released, beta_beside(level))[0]

    def summaries(self, level: float = 0.95) -> tuple[ColumnSummary, ...]:
        """What is told of each column."""
        beta = probability(beta_beside(level))
        return tuple(self._summary(one, beta) for one in self.request.columns)

    def _summary(self, one: DescribedColumn, beta: float) -> ColumnSummary:
        stats = {name: _estimates(one.stats[name], self.released, beta)[0] for name in STATS if name in one.stats}
        counts = () if one.counts is None else zip(one.labels, _estimates(one.counts, self.released, beta), strict=True)
        return ColumnSummary(one.name, one.kind, stats, tuple(counts), one.ordered)

    def counts(self, column: str, level: float = 0.95) -> dict[object, Estimate]:
        """The count of each category of a column, or of each bin of its chart, with the ends of its interval."""
        found = [one for one in self.summaries(level) if one.name == column]
        if not found:
            raise QuestionError("unknown-column", f"No column {str(column)[:80]!r} is described here.")
        return dict(found[0].counts)

    def to_dict(self, level: float | None = None) -> dict[str, list[object]]:
        """A row a column: its statistics, None for those it has not; with a level `low_` and `high_` of each."""
        summaries = self.summaries(0.95 if level is None else level)
        table: dict[str, list[object]] = {
            "column": [one.name for one in summaries], "kind": [one.kind for one in summaries],
        }  # fmt: skip
        for name in STATS:
            ends = [one.stats.get(name, (None, None, None)) for one in summaries]
            heads = (name,) if level is None else (name, f"low_{name}", f"high_{name}")
            table |= {head: [end[i] for end in ends] for i, head in enumerate(heads)}
        return table | {"top": [", ".join(str(label) for label, _ in one.top) or None for one in summaries]}

    def to_pandas(self, level: float | None = None) -> pandas.DataFrame:
        """A pandas frame with a row for each column; with a level also `low_` and `high_` columns."""
        table = self.to_dict(level)
        frame = extra("pandas", "pandas").DataFrame(table)
        numbers = [name for name, cells in table.items() if all(isinstance(c, (int, float, NoneType)) for c in cells)]
        return cast("pandas.DataFrame", frame.astype(dict.fromkeys(numbers, "float64")))

    def __repr__(self) -> str:
        summaries = self.summaries()
        names = [name for name in STATS if any(name in one.stats for one in summaries)]
        lines = [("column", "kind", *names, "top")]
        for one in summaries[:MAX_TEXT_COLUMNS]:
            cells = (_shown(one.stats.get(name)) for name in names)
            lines.append((one.name, one.kind, *cells, _top(one)))
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = ["  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines]
        more = len(summaries) - MAX_TEXT_COLUMNS
        text += [f"... {more} more columns: to_pandas() has all"] if more > 0 else []
        return "\n".join([f"{_shown(self.rows())} rows", *text, *self._tail()])

    def _tail(self) -> Iterator[str]:
        tail = paid(self.spent, self.remaining, self.unit)
        yield f"reused: {tail}" if self.reused else tail
        yield from [divided(self.shares)] if self.shares else []
        yield from (*self.request.notes, *self.notes)

    def _repr_html_(self) -> str:
        summaries = self.summaries()
        names = [name for name in STATS if any(name in one.stats for one in summaries)]
        head = "".join(f"<th>{html.escape(name)}</th>" for name in ("column", "kind", *names, "values"))
        body = "".join(_html_row(one, names) for one in summaries)
        tail = "".join(f"<div>{html.escape(line)}</div>" for line in self._tail())
        return (
            f"<p>{html.escape(_shown(self.rows()))} rows</p>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{tail}"
        )

    def plot(self) -> Figure:
        """A small chart for each column that has one: its histogram, or its most frequent categories (extra `plot`)."""
        drawn = [one for one in self.summaries() if one.counts]
        if not drawn:
            raise QuestionError("bad-question", "No column here has counts to draw.", "Leave charts= out.")
        wide = min(len(drawn), 3)
        tall = -(-len(drawn) // wide)
        figure = extra("matplotlib.pyplot", "plot").figure(figsize=(4 * wide, 2.4 * tall), layout="constrained")
        for i, one in enumerate(drawn):
            _draw(figure.add_subplot(tall, wide, i + 1), one)
        return cast("Figure", figure)


@dataclass(frozen=True, slots=True, eq=False)
class DescriptionPlan:
    """What a description would ask and cost, and how the spend would be divided; free, from public facts alone."""

    request: DescriptionRequest
    plan: Plan

    @property
    def question(self) -> object:
        """The question: `db.ask(question, spend=...)` asks it, at one debit."""
        return self.request.question

    @property
    def shares(self) -> tuple[tuple[str, str, float], ...]:
        """What each part of the spend would buy."""
        return self.request.parts

    def __repr__(self) -> str:
        lines = [f"{name}: {what}, {part:.2%} of the spend" for name, what, part in self.shares[:MAX_TEXT_COLUMNS]]
        more = len(self.shares) - MAX_TEXT_COLUMNS
        lines += [f"... {more} more parts"] if more > 0 else []
        price = f"price {self.plan.spend}, one debit; protects {self.plan.unit}"
        return "\n".join([price, *lines, *self.request.notes])


def divided(parts: Sequence[tuple[str, str, float]]) -> str:
    """How a spend is divided, in one line: the parts by what they buy, over all columns."""
    total: dict[str, float] = {}
    for _, what, part in parts:
        total[what] = total.get(what, 0.0) + part
    return "of the spend " + ", ".join(f"{part:.0%} {what}" for what, part in total.items())


def _estimates(column: StatColumn, released: Sequence[Released], beta: float) -> list[Estimate]:
    cells = column.released(released).cells
    shown = GroupedColumn(column, np.arange(cells), 0, released)
    low, high = shown.ends(released, beta) or ([None] * cells, [None] * cells)
    return list(zip(shown.values, low, high, strict=True))


def _shown(found: Estimate | None) -> str:
    return "" if found is None else labels.column([found])[0]


def _html_row(one: ColumnSummary, names: Sequence[str]) -> str:
    cells = [one.name, one.kind, *(_shown(one.stats.get(name)) for name in names)]
    made = "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)
    return f"<tr>{made}<td>{_bars(one)}<div>{html.escape(_top(one))}</div></td></tr>"


def _top(one: ColumnSummary) -> str:
    """The most frequent categories with their counts."""
    return ", ".join(f"{label} {number(found[0]):,.0f}" for label, found in one.top)


def _bars(one: ColumnSummary) -> str:
    """Counts as small bars, in the order of bins, or of frequency."""
    drawn = list(one.counts) if one.ordered else list(one.top)
    values = [max(number(found[0]), 0.0) for _, found in drawn[:MAX_BARS]]
    if not values:
        return ""
    most = max(values) or 1.0
    bars = "".join(
        _rect(i, value / most, _title(label, found))
        for i, (value, (label, found)) in enumerate(zip(values, drawn, strict=False))
    )
    size = f'width="{BAR_WIDTH * len(values)}" height="{CHART_HEIGHT}"'
    return f'<svg {size} role="img" aria-label="counts of {html.escape(one.name, quote=True)}">{bars}</svg>'


def _rect(place: int, part: float, title: str) -> str:
    """One bar of a small chart."""
    top, tall = CHART_HEIGHT * (1 - part), CHART_HEIGHT * part
    where = f'x="{BAR_WIDTH * place}" y="{top:.1f}" width="{BAR_WIDTH - 1}" height="{tall:.1f}"'
    return f'<rect {where} fill="#4a7fb5"><title>{html.escape(title)}</title></rect>'


def _title(label: object, found: Estimate) -> str:
    return f"{_label(label)}: {_shown(found)}"


def _label(label: object) -> str:
    return f"{label[0]:g} to {label[1]:g}" if isinstance(label, tuple) else str(label)


def _draw(axes: Axes, one: ColumnSummary) -> None:
    """One column's counts with error bars."""
    drawn = list(one.counts) if one.ordered else list(one.top)
    ends = np.array([[number(end) for end in found] for _, found in drawn])
    away = np.nan_to_num(np.maximum([ends[:, 0] - ends[:, 1], ends[:, 2] - ends[:, 0]], 0.0), posinf=0.0)
    names = [f"{label[0]:g}" if isinstance(label, tuple) else str(label) for label, _ in drawn]
    places = np.arange(len(drawn))
    axes.bar(places, ends[:, 0], yerr=away, capsize=2, color="#4a7fb5")
    axes.set_xticks(places, names, rotation=45, fontsize="x-small")
    axes.set_title(one.name, fontsize="medium")
