"""The error of a query before it is asked, and the price of an accuracy; from public facts alone (SR7).

The interval of a sum does not depend on what was released; that of a mean or a variance does. To foretell it, rows are
made up, spread evenly over the declared bounds of every column, as many in each group as one cares to suppose. A price
is the smallest spend at which the foretold error is small enough. Nothing here has seen a row, and nothing that is
asked or paid follows from it but a price named beforehand.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Final

import numpy as np

from sulq.answers.law_choice import BETA, Foreseen, LawName, foreseen_of, nearest
from sulq.answers.oracle import Oracle
from sulq.answers.plan import Part, Plan
from sulq.answers.readings.rank_choice import rank_within, value_reach
from sulq.answers.readings.sampling import AnyReading
from sulq.answers.released import Released, kept_rows
from sulq.errors import QuestionError
from sulq.kernel.scores import Rank
from sulq.language.domain import Schema, Text
from sulq.language.facts import Facts
from sulq.language.kinds import Cells, Integers
from sulq.language.privacy import LARGEST, SMALLEST, Epsilon, Loss, Rho
from sulq.language.question import Sums
from sulq.language.relation import Table
from sulq.language.rowfn import RowFn
from sulq.language.rowfn.base import evaluate, numbers, walk
from sulq.language.rowfn.vectors import to_grid
from sulq.language.shape import shape
from sulq.sql.compile import Compiled
from sulq.sql.explain import SUPPOSED_ROWS, Explanation, Foretold
from sulq.sql.released.cells import readings
from sulq.sql.released.columns import Foresee
from sulq.sql.released.program import TableProgram
from sulq.sql.released.render import PreparedQuery, prepare
from sulq.sql.released.tables import TableColumn
from sulq.sql.rows.values import TrialRows

POINTS: Final = 61  # a prime, so that every column is spread over all its values in an order of its own
LIMIT: Final = 2**62
LEANS: Final = ("spread", "low", "high")
SMALLEST_BETA: Final = 1e-9  # at which an interval is as wide as what it is of can be, or nearly


def made_up_rows(schema: Schema, lean: str) -> TrialRows:
    """Rows with every column spread evenly over its declared bounds, or all at one end of them."""

    def codes(name: str) -> Cells:
        """A column's cells."""
        column = schema.find(name)
        if column is None or isinstance(column, Text):
            return Cells(np.full(POINTS, "x", dtype=object), None)
        step = 1 + 7 * schema.names.index(name) % (POINTS - 1)
        places = np.arange(POINTS) * step % POINTS
        if lean != "spread":
            places = np.full(POINTS, 0 if lean == "low" else POINTS - 1)
        width = column.high - column.low
        return Cells(np.array([column.low + width * int(place) // (POINTS - 1) for place in places], np.int64), None)

    return TrialRows(schema, POINTS, codes)


def supposed(
    plan: Plan,
    facts: Facts,
    rows: int,
    lean: str = "spread",
    *,
    whole: bool = False,
    folds: Mapping[int, int] = MappingProxyType({}),
) -> tuple[Released, ...]:
    """What the plan's questions would release, but for the noise, if every group had so many made-up rows.

    Args:
        plan: what would be asked.
        facts: the declarations.
        rows: how many rows each group has; with `whole`, all groups together.
        lean: where in their bounds values lie.
        whole: whether `rows` are divided evenly over all groups.
        folds: by the place of a question, how many of its cells make one group (bins of
            a tree, rows with and without a value): there each row falls where it would.
    """
    found = []
    for i, part in enumerate(plan.parts):
        fold = folds.get(i, 1)
        groups = max(part.cells // fold, 1)
        found.append(_part(part, facts, max(rows // groups, 1) if whole else rows, lean, fold))
    return tuple(found)


def reading_widths(oracle: Oracle, question: Sums, reading: AnyReading, spend: Loss | None) -> list[float]:
    """How far off what is read of a question's sums would be for a spend, for as many rows as are declared."""
    plan, facts = oracle.foresee(question, spend=spend), oracle.facts
    (released,) = supposed(plan, facts, facts.size or UNDECLARED_SIZE_ROWS, whole=True)
    low, high = reading.interval(released, BETA)
    return [float(width) / 2 for width in np.ravel(high - low)]


def _part(part: Part, facts: Facts, rows: int, lean: str, fold: int) -> Released:
    tally = part.tally
    if part.score is not None:
        place = _candidate(part.score, len(tally.by[-1].labels), rows, lean)
        return Released(np.full((part.cells, 1), place, dtype=np.int64), part.noise)
    frame = made_up_rows(shape(tally.over, facts).schema, lean)
    cells = _cells(part, frame, fold)
    columns = [np.zeros((frame.size, 0), dtype=object)]  # of open keys there may be nothing but the people
    for block, bits in zip(tally.blocks, part.refine, strict=True):
        found = evaluate(block.fn, frame)
        units = found.values
        if not block.vector:
            units = to_grid(numbers(block.fn, frame)[0], block.step, block.low[0], block.high[0])[:, None]
        if found.missing is not None:
            units = np.where(found.missing[:, None], 0, units)
        columns.append(units.astype(object) << bits)
    terms = np.concatenate(columns, axis=1)
    sums = np.zeros((fold, terms.shape[1]), dtype=object)
    np.add.at(sums, cells[cells >= 0], terms[cells >= 0])
    sums = np.clip(sums * np.array(_rows(part, facts, rows), dtype=object) // POINTS, -LIMIT, LIMIT).astype(np.int64)
    if part.people is None:
        return Released(np.tile(sums, (part.cells // fold, 1)), part.noise)
    people = max(rows, part.people.threshold + 1)
    labels = tuple((None,) for _ in tally.by)
    return Released(np.array([[people, *sums[0].tolist()]], dtype=np.int64), part.noise, labels)


def _candidate(score: object, candidates: int, rows: int, lean: str) -> int:
    """The candidate that would be chosen: of a rank the cell where it lies among rows spread evenly over the cells."""
    past = Fraction(1, 2)
    if isinstance(score, Rank):
        past = (score.numerator + Fraction(score.shift, max(rows, 1))) / score.denominator
    if 0 < past < 1:
        past = {"low": Fraction(0), "high": Fraction(1)}.get(lean, past)
    return min(max(math.floor(past * candidates), 0), candidates - 1)


def _rows(part: Part, facts: Facts, rows: int) -> list[int]:
    """How many rows each column sums: as supposed, but all of a table of public size where no row lacks the value."""
    tally = part.tally
    table = isinstance(tally.over, Table) and tally.over.name in ("", facts.table)
    known = facts.fixed_size if table and tally.where is None and not tally.by else None
    found = []
    for block in tally.blocks:
        kept = known is not None and not block.vector
        kept = kept and not any(fn.kind(facts.schema).nullable for fn in walk(block.fn))
        found += [known if known is not None and kept else rows] * block.width
    return found


def _cells(part: Part, frame: TrialRows, fold: int) -> Integers:
    """In which of its group's cells each row falls, by the last keys; -1: in none."""
    cells = np.zeros(frame.size, dtype=np.int64)
    keys = []
    for key in reversed(part.tally.by):
        if fold > 1:
            keys.append(key)
            fold //= max(len(key.labels), 1)
    for key in reversed(keys):
        found = evaluate(key.fn, frame)
        codes = cells * len(key.labels) + found.values.astype(np.int64)
        there = cells >= 0 if found.missing is None else (cells >= 0) & ~found.missing
        cells = np.where(there, codes, -1)
    return cells


MAX_WIDTH: Final = 10**60  # a width that is wished for
UNDECLARED_SIZE_ROWS: Final = 10_000  # rows a table is supposed to have where its size is not declared


@dataclass(frozen=True, slots=True, eq=False)
class ErrorForecast:
    """A query whose accuracy can be asked for before it is: `foresee` is the Oracle's, which reads no row.

    `other`: there is to be a row for the groups not shown, paid for and in no accuracy, as its own depends on how many
    there will be. `interval`: whether intervals of chosen quantiles are bought. `counted`: none is chosen.
    `keys`: those of bins, shared by the forecasts of one request: what is remembered here is nobody else's (T39).
    """

    compiled: Compiled
    facts: Facts
    foresee: Foresee
    other: str | None = None
    interval: bool = True
    counted: bool = False
    keys: dict[object, RowFn] = field(default_factory=dict)
    _prepared: dict[Loss | None, PreparedQuery] = field(default_factory=dict, init=False)
    _plans: dict[Loss | None, Plan | None] = field(default_factory=dict, init=False)

    @property
    def program(self) -> TableProgram:
        """What is done with the released values."""
        return self.compiled.program

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the answer."""
        return tuple(name for name, _ in self.program.columns)

    def prepared(self, spend: Loss | None) -> PreparedQuery:
        """The program with its questions for a spend, laid out once."""
        if spend not in self._prepared:
            self._prepared[spend] = prepare(
                self.program, self.facts, spend, self.other,
                foresee=self.foresee, interval=self.interval, counted=self.counted, keys=self.keys,
            )  # fmt: skip
        return replace(self._prepared[spend])

    def plan(self, spend: Loss | None) -> Plan | None:
        """What would be asked; None where nothing private is."""
        if spend not in self._plans:
            question = self.prepared(spend).question
            self._plans[spend] = None if question is None else self.foresee(question, spend)
        return self._plans[spend]

    def widths(
        self, plan: Plan | None, *, rows: int, beta: float, leans: Sequence[str] = ("spread",), whole: bool = False,
        values: bool = False,
    ) -> tuple[float, ...]:  # fmt: skip
        """How far each column may be off, the worst of its rows; infinite where nothing is known, 0 where it is exact.

        `rows`: how many each group has; with `whole`, all groups together. `leans`: where
        in their bounds values are supposed to lie. `values`: a chosen quantile is nearer than its interval tells.
        """
        worst = [0.0] * len(self.names)
        for lean in leans:
            released, table = self._supposed(plan, rows, lean, whole=whole)
            each = rows // max(len(table[0].values) if table else 1, 1) if whole else rows
            for i, column in enumerate(table):
                chosen = [cell for cell in column.examples() if values and cell.origin is not None]
                near = max((value_reach(readings(cell, released), each, beta) for cell in chosen), default=math.inf)
                worst[i] = max(worst[i], min(max(_offs(column, released, beta), default=0.0), near))
        return tuple(worst)

    def scales(self, plan: Plan | None, *, rows: int) -> tuple[float, ...]:
        """What each column's error is measured by: how large a typical answer is, as far as declarations tell.

        Of so many rows that lie anywhere in their bounds. What has no size of its own is measured by the range it can
        have: all of it for a date, a quarter of it for a number of either sign; of a count that no made-up row is
        in, by one part in as many as there are. The extremes of made-up rows are their bounds, wherever rows lie: of
        these the range is that of an interval at nearly every level.
        """
        found: list[list[float]] = [[] for _ in self.names]
        dates, reaches = [False] * len(found), [0.0] * len(found)
        for lean in LEANS:
            released, table = self._supposed(plan, rows, lean, whole=True)
            for i in range(len(found)):
                values = table[i].values
                dates[i] |= any(isinstance(value, datetime.date) for value in values)
                found[i].append(max(map(_number, values), key=abs, default=0.0))
                if lean == LEANS[-1] and len(set(found[i])) == 1:
                    offs = _offs(table[i], released, SMALLEST_BETA)
                    reaches[i] = max((off for off in offs if math.isfinite(off)), default=0.0)
        return tuple(_size(ends, reaches[i], date=dates[i]) for i, ends in enumerate(found))

    def explained(self, spend: Loss | None, beta: float, notes: tuple[str, ...] = ()) -> Explanation:
        """The query in words: what it asks, why it costs that, how accurate it would be."""
        plan = self.plan(spend)
        table = [self.widths(plan, rows=number, beta=beta) for number in SUPPOSED_ROWS] if plan is not None else []
        noisy = self._noisy(plan)
        columns = tuple(
            Foretold(name, tuple(widths[i] for widths in table), noisy[i])
            for i, name in enumerate(self.names)
            if i in noisy
        )
        about = () if plan is None else kept_rows(plan.question, self.facts)
        return Explanation(self.compiled.text, plan, self.facts, columns, SUPPOSED_ROWS, beta, (*about, *notes))

    def nearest(self, spend: Loss | None, law: LawName | None, beta: float) -> Loss | None:
        """The spend that buys the named law of noise, or the one of least error of the query's columns."""
        rows = self.facts.size or UNDECLARED_SIZE_ROWS

        def widths(one: Loss | None) -> tuple[float, ...] | Foreseen:
            plan = self.plan(one)
            found = self.widths(plan, rows=rows, beta=beta, whole=True)
            return found if plan is None else foreseen_of(plan, found)

        return nearest(spend, law, lambda: self.facts.budget, widths)

    def sure(self, plan: Plan | None, column: int, beta: float) -> bool:
        """Whether a column's accuracy is the same however many rows there are."""
        widths = tuple(
            self.widths(plan, rows=rows, beta=beta)[column] for rows in (SUPPOSED_ROWS[0], SUPPOSED_ROWS[-1])
        )
        return Foretold("", widths).sure

    def _noisy(self, plan: Plan | None) -> dict[int, str]:
        """The columns that rest on noise, each with how near in rank it is where no interval is bought."""
        if plan is None:
            return {}
        released, table = self._supposed(plan, UNDECLARED_SIZE_ROWS, "spread", whole=False)
        found: dict[int, str] = {}
        for i, column in enumerate(table):
            for cell in column.examples() if any(column.noisy) else ():
                if cell.origin is not None:
                    found[i] = found.get(i) or rank_within(readings(cell, released))
        return found

    def _supposed(
        self, plan: Plan | None, rows: int, lean: str, *, whole: bool
    ) -> tuple[tuple[Released, ...], tuple[TableColumn, ...]]:
        spend = None if plan is None else plan.spend
        if plan is not None and plan.event.epsilon is not None:  # also where a delta is spent, on open keys
            spend = Epsilon(plan.event.epsilon)
        asked = replace(self.prepared(spend), other=None)
        folds: dict[int, int] = {}
        for _, _, column in asked.columns():
            folds |= {part.question: max(part.fold, folds.get(part.question, 1)) for part in column.slices}
        released = () if plan is None else supposed(plan, self.facts, rows, lean, whole=whole, folds=folds)
        return released, asked.read(released).every()


def _size(ends: Sequence[float], reach: float, *, date: bool) -> float:
    spread, low, high = ends
    reach = abs(high - low) or reach
    if date:
        return reach or 1.0
    return max(abs(spread), reach / 4 if min(low, high) < 0 < max(low, high) else reach / POINTS) or 1.0


def slip(plan: Plan, beta: float) -> int:
    """How many rows' worth of mass the noise may take from any sum: below that a quotient says nothing."""
    found = 0.0
    for part in plan.parts:
        if part.score is not None:
            continue
        for block, law, step in zip(part.tally.blocks, part.laws, part.steps, strict=True):
            spans = [(high - low) * block.step for low, high in zip(block.low, block.high, strict=True)]
            span = max(spans) or Fraction(1)
            found = max(found, float(2 * law.accuracy(beta / 2) * step / span))
    return math.ceil(found)


def _offs(column: TableColumn, released: Sequence[Released], beta: float) -> list[float]:
    """How far off each cell may be; infinite where a noisy one has no interval, 0 where it is exact."""
    low, high = column.ends(released, beta) or ([None] * len(column.values),) * 2
    cells = zip(column.values, column.noisy, low, high, strict=True)
    return [_off(value, ends) if noisy else 0.0 for value, noisy, *ends in cells]


def _off(value: object, ends: Sequence[object]) -> float:
    if None in ends:
        return math.inf
    low, high = map(_number, ends)
    if value is None:  # unknown
        return high - low
    return max(high - _number(value), _number(value) - low)


def _number(value: object) -> float:
    """A value on a line: of a moment its days."""
    if isinstance(value, datetime.datetime):
        return value.timestamp() / 86_400
    if isinstance(value, datetime.date):
        return float(value.toordinal())
    return float(value) if isinstance(value, (int, float, Fraction)) else 0.0


def wished(within: object, names: Sequence[str]) -> dict[int, float]:
    """The width wished for, by the place of its column: one for all, or a mapping by name."""
    if not isinstance(within, dict):
        return dict.fromkeys(range(len(names)), _width(within))
    unknown = [str(name) for name in within if name not in names]
    if unknown or not within:
        known = ", ".join(names)
        raise QuestionError(
            "bad-question",
            f"within names no column {unknown[0][:80]!r}." if unknown else "within names no column.",
            f"The columns are: {known}.",
        )
    return {i: _width(within[name]) for i, name in enumerate(names) if name in within}


def _width(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, Fraction)) or not 0 < value <= MAX_WIDTH:
        raise QuestionError("bad-loss", "within is a positive number, or one for each column by its name.")
    return float(value)


Priced = Epsilon | Rho
Rows = Callable[[Plan], int]  # how many rows a group may be taken to have
Off = Callable[[float], float]  # how far off, as a part of what is wished for, at a spend of so much

MAX_ROUNDS: Final = 60
FAR: Final = 2.0  # times as far off as is wished: too far to be worth another look
INVERSE_STEPS: Final = 6  # as if the error were inverse; then the interval is halved
PRICE_TOLERANCE: Final = 1e-3  # how far from the best price, relatively, where the error is not inverse


def price(off: Off, kind: type[Priced]) -> Priced:
    """The smallest spend at which a query is off by no more than is wished for.

    The error of a sum is inverse to epsilon, or to the root of rho: a step or two
    finds its price, to six digits. For other statistics the steps are kept between a
    spend that is too small and one that is enough, until these are a thousandth apart.

    Raises:
        QuestionError: `too-costly` where no spend that may be named is enough.
    """
    power = 1.0 if kind is Epsilon else 2.0
    low, high = math.log(float(SMALLEST)), math.log(float(LARGEST))
    place, enough = 0.0, math.inf
    for i in range(MAX_ROUNDS):
        error = off(math.exp(place))
        if error <= 1:
            enough = high = place
        else:
            low = place
        if enough - low < PRICE_TOLERANCE:
            break
        step = place + power * math.log(error) + 1e-9 if 0 < error < math.inf else math.nan
        # Widths of whole units move in steps: what is met exactly may be met for less, so a little less is tried.
        step = min(step, high - 1e-6) if error <= 1 else step
        place = step if low < step < high and i < INVERSE_STEPS else (low + high) / 2
    if enough == math.inf:
        raise QuestionError("too-costly", "No spend that could be asked for is accurate enough.")
    grain = Fraction(10) ** (math.floor(enough / math.log(10)) - 5)
    found = max(math.ceil(Fraction(math.exp(enough)) / grain) * grain, SMALLEST)
    return kind(min(found, Fraction(LARGEST)))


def error_at(
    forecast: ErrorForecast, kind: type[Epsilon | Rho], units: Mapping[int, float], beta: float, rows: Rows
) -> Off:
    """How far off a query would be at a spend, wherever in their bounds values lie: its worst column, by its unit."""

    def off(spend: float) -> float:
        try:
            plan = forecast.plan(kind(spend))
        except QuestionError as error:
            if error.code != "too-little-noise":
                raise
            return 0.0 if spend >= 1 else math.inf
        if plan is None:
            return 0.0
        found = 0.0
        for lean in LEANS:
            if found <= FAR:  # else the others could only say so, too
                widths = forecast.widths(plan, rows=rows(plan), beta=beta, leans=(lean,))
                found = max([found, *(widths[column] / unit for column, unit in units.items())])
        return found

    return off
