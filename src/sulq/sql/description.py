"""What describes the columns of a table: counts, moments, quartiles, categories and small histograms, as one question.

All at one debit. Which sums, choices and shares of the spend follows from the declared columns alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, cast

from sulq.answers.answer import Answers
from sulq.answers.oracle import ColumnChoice
from sulq.answers.readings.estimators import Spread
from sulq.answers.readings.joint import SpreadMean, WeightedSum
from sulq.answers.readings.sampling import RowSum
from sulq.answers.released import Released
from sulq.errors import QuestionError
from sulq.language import rowfn
from sulq.language.domain import Bool, Category, Column, Schema, Text
from sulq.language.facts import Facts
from sulq.language.kinds import Scalar
from sulq.language.privacy import Loss, SubLinear
from sulq.language.question import WHOLE, Together
from sulq.language.rowfn import Col, RowFn
from sulq.language.rowfn.vectors import bounded, rounding
from sulq.language.shape import shape
from sulq.sql.released.columns import Foresee, RowGroups, StatColumn, SumCollector, collect, exact, labels, slice_at
from sulq.sql.released.order_statistics import order_statistics

QUARTILES: Final = (("q25", Fraction(1, 4)), ("median", Fraction(1, 2)), ("q75", Fraction(3, 4)))
MAX_CATEGORIES: Final = 10_000  # of a column whose categories are counted
CHART_BINS: Final = 10
MAX_BOUGHT_COLUMNS: Final = 50  # numbers whose quartiles and charts are bought where nobody says
MOMENTS: Final = 2  # parts of the spend, a count having 1; quartiles have up to 6
CATEGORIES: Final = 2
COUNTS_ALONE: Final = "quartiles and charts are left out, as each of their numbers would be a query"


@dataclass(slots=True, eq=False)
class DescribedColumn:
    """One column: its statistics by name, and its categories or bins with the column of their counts."""

    name: str
    kind: str
    stats: dict[str, StatColumn] = field(default_factory=dict)
    labels: tuple[object, ...] = ()
    counts: StatColumn | None = None
    ordered: bool = False  # the labels are bins of a number, and not categories


@dataclass(slots=True, eq=False)
class DescriptionRequest:
    """What is asked to describe some columns, and where each answer is."""

    question: Together
    rows: StatColumn
    columns: tuple[DescribedColumn, ...]
    parts: tuple[tuple[str, str, float], ...]  # column, what of it, and its part of the spend
    notes: tuple[str, ...] = ()
    _kept: tuple[Answers, tuple[Released, ...]] | None = None

    def released(self, answers: Answers) -> tuple[Released, ...]:
        """The released numbers of answers; the same object each time, so that columns work each out once."""
        if self._kept is None or self._kept[0] is not answers:
            self._kept = answers, tuple(answer.released for answer in answers)
        return self._kept[1]


@dataclass(frozen=True, slots=True)
class DescriptionWish:
    """Which columns are described, of which rows, and what of them."""

    columns: tuple[str, ...]
    where: RowFn | None = None
    interval: bool | None = None
    charts: bool | None = None

    def few(self, facts: Facts) -> bool:
        """Whether there are so few numbers that their quartiles and charts are bought where nobody says."""
        declared = map(facts.schema.find, self.columns)
        return sum(not isinstance(one, (Category, Bool, Text)) for one in declared) <= MAX_BOUGHT_COLUMNS


def wished_columns(facts: Facts, columns: Sequence[str] | None) -> tuple[str, ...]:
    """The columns named, or all that are declared but the person's."""
    if columns is None:
        return tuple(name for name in facts.schema.names if name != facts.unit.column)
    several = tuple(columns) if isinstance(columns, (list, tuple)) else ()
    listed = (columns,) if isinstance(columns, (str, Col)) else several
    plain = (item.as_row() if isinstance(item, ColumnChoice) else item for item in listed)
    names = tuple(cast("str", item.name if isinstance(item, Col) else item) for item in plain)
    if not names or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise QuestionError("bad-question", 'columns is a list of different names: columns=["age", "city"].')
    return names


def description(facts: Facts, wish: DescriptionWish, spend: Loss | None, foresee: Foresee | None) -> DescriptionRequest:
    """The question that describes these columns for a spend, and where each part of its answer is."""
    counts_alone = isinstance(facts.budget, SubLinear)  # each number of a tree or chart would be a query of its own
    few = wish.few(facts)
    interval, charts = (few if told is None else told for told in (wish.interval, wish.charts))
    quartiles = not counts_alone and (few or wish.interval is not None)

    def ask(asking: SumCollector) -> tuple[StatColumn, tuple[DescribedColumn, ...], list[tuple[str, str, Fraction]]]:
        rows = RowGroups(WHOLE, wish.where, ())
        made = _Description(asking, rows, charts, [])
        every = made.counted("all columns", "number of rows", rowfn.Lit(1))
        found = tuple(made.column(name, quartiles=quartiles) for name in wish.columns)
        return every, found, made.spent

    question, (every, columns, spent) = collect(facts, spend, ask, foresee, interval=interval)
    if question is None:  # pragma: no cover - the number of rows is always asked for
        raise QuestionError("bad-question", "Nothing is asked.")
    whole = sum((part for _, _, part in spent), Fraction(0))
    parts = tuple((name, what, float(part / whole)) for name, what, part in spent)
    if counts_alone:
        return DescriptionRequest(question, every, columns, (), (COUNTS_ALONE,))
    notes = []
    if not few and wish.interval is None:
        notes.append(f"no quartiles are bought of more than {MAX_BOUGHT_COLUMNS} numbers: say interval=False, or True")
    if not few and wish.charts is None:
        notes.append(f"no charts are bought of more than {MAX_BOUGHT_COLUMNS} numbers: say charts=True")
    return DescriptionRequest(question, every, columns, parts, tuple(notes))


@dataclass(slots=True, eq=False)
class _Description:
    """A description in the making: what is asked of each column, and for which part of the spend."""

    asking: SumCollector
    rows: RowGroups
    charts: bool
    spent: list[tuple[str, str, Fraction]]

    def counted(self, name: str, what: str, fn: RowFn) -> StatColumn:
        """A count of rows."""
        self.spent.append((name, what, Fraction(1)))
        return self._stat(StatColumn((slice_at(self.asking.put(self.rows, fn)),), RowSum(), whole=True))

    def _stat(self, column: StatColumn) -> StatColumn:
        column.rows_each = shape(self.rows.over, self.asking.facts).rows
        return column

    def column(self, name: str, *, quartiles: bool) -> DescribedColumn:
        """What one column is described by, as its kind has it."""
        schema = self.asking.schema(self.rows)
        declared, fn = schema.find(name), Col(name)
        if declared is None:
            raise QuestionError("unknown-column", f"No column {name[:80]!r} is declared.")
        found = DescribedColumn(name, _word(declared))
        if isinstance(declared, (Category, Bool)):
            self._categories(found, fn, schema)
            return found
        kind = fn.kind(schema)
        if not isinstance(kind, Scalar) or kind.clock is not None:
            self._present(found, fn, nullable=bool(getattr(kind, "nullable", True)))
        else:
            self._moments(found, fn, schema)
        if isinstance(kind, Scalar) and kind.lo != kind.hi and quartiles:
            self._quartiles(found, fn)
            if self.charts and kind.clock is None:
                self._chart(found, fn, schema)
        return found

    def _present(self, found: DescribedColumn, fn: RowFn, *, nullable: bool) -> None:
        """How many cells are there and how many are missing: both at the price of one count."""
        if not nullable:
            found.stats["count"] = self.counted(found.name, "present and missing", rowfn.Lit(1))
            return
        place = self.asking.put(self.rows, rowfn.Bernstein(rowfn.IsMissing(fn)))
        self.spent.append((found.name, "present and missing", Fraction(1)))
        for name, at in (("count", 1), ("missing", 0)):
            found.stats[name] = self._stat(StatColumn((slice_at(place, picked=(at,)),), RowSum(), whole=True))

    def _moments(self, found: DescribedColumn, fn: RowFn, schema: Schema) -> None:
        """Count, missing, mean and deviation from the terms of degree two: all for the price of one sum."""
        lo, hi, kind = bounded(fn, schema)
        if lo == hi:
            self._present(found, fn, nullable=kind.nullable)
            return
        terms = rowfn.Bernstein(fn, 2, missing=kind.nullable)
        step, low, high = terms.span(schema)
        a, b = low * step, high * step
        place, one, away = self.asking.put(self.rows, terms, MOMENTS), 1 / (b - a) ** 2, rounding(kind.step, step)
        self.spent.append((found.name, "counts and moments", Fraction(MOMENTS)))
        part = slice_at(place, picked=(0, 1, 2))
        count = WeightedSum((one,) * 3, (one,) * 3)
        found.stats["count"] = self._stat(StatColumn((part,), count, whole=True))
        if kind.nullable:
            missing = WeightedSum((one,), (one,))
            found.stats["missing"] = self._stat(StatColumn((slice_at(place, picked=(3,)),), missing, whole=True))
        found.stats["mean"] = self._stat(StatColumn((part,), SpreadMean(a, b, away)))
        spread = Spread(b - a, root=True, ddof=1, rounding=away)
        found.stats["std"] = self._stat(StatColumn((part,), spread))

    def _quartiles(self, found: DescribedColumn, fn: RowFn) -> None:
        before = self.asking.weight
        columns = order_statistics(self.asking, self.rows, fn, [("quantile_cont", q) for _, q in QUARTILES])
        self.spent.append((found.name, "quartiles", self.asking.weight - before))
        found.stats |= {name: self._stat(column) for (name, _), column in zip(QUARTILES, columns, strict=True)}

    def _chart(self, found: DescribedColumn, fn: RowFn, schema: Schema) -> None:
        """A histogram of ten equal bins."""
        lo, hi, _ = bounded(fn, schema)
        edges = sorted({exact(lo + (hi - lo) * i / CHART_BINS) for i in range(CHART_BINS + 1)})
        found.ordered, found.labels = True, tuple(itertools.pairwise(edges))
        key = self.asking.once(("chart", found.name), lambda: rowfn.Bins(fn, tuple(edges)))
        self._by(found, key, "charts", Fraction(1))

    def _categories(self, found: DescribedColumn, fn: RowFn, schema: Schema) -> None:
        """The count of each category and, where a cell may be missing, of those: all for the price of one count."""
        kind = fn.kind(schema)
        nullable = bool(getattr(kind, "nullable", True))
        key, known, _ = labels(rowfn.OrMissing(labels(fn, schema)[0]) if nullable else fn, schema)
        if len(known) > MAX_CATEGORIES:
            self._present(found, fn, nullable=nullable)
            return
        found.labels = known
        self._by(found, key, "categories", Fraction(CATEGORIES))
        place = found.counts
        if place is None:  # pragma: no cover - it was just made
            return
        (part,) = place.slices
        for name, missing in (("count", False), ("missing", True)):
            picked = tuple(i for i, label in enumerate(known) if (label is None) is missing)
            if picked:
                weights = (Fraction(1),) * len(picked)
                own = slice_at((part.question, part.blocks[0]), fold=len(known), picked=picked)
                found.stats[name] = self._stat(StatColumn((own,), WeightedSum(weights, weights), whole=True))

    def _by(self, found: DescribedColumn, key: RowFn, what: str, weight: Fraction) -> None:
        """The count of each label of a key."""
        groups = RowGroups(self.rows.over, self.rows.where, (key,))
        place = self.asking.put(groups, rowfn.Lit(1), weight)
        self.spent.append((found.name, what, weight))
        found.counts = self._stat(StatColumn((slice_at(place),), RowSum(), whole=True))


def _word(column: Column) -> str:
    return type(column).__name__.lower()
