"""The error of a query before it is asked, and the price of an accuracy; from public facts alone (SR7).

The interval of a sum does not depend on what was released; that of a mean or a
variance does. To foretell it, rows are made up, spread evenly over the declared
bounds of every column, as many in each group as one cares to suppose. A price is
the smallest spend at which the foretold error is small enough. Nothing here has seen a
row, and nothing that is asked or paid follows from it but a price named beforehand.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Final

import numpy as np

from sulq.answers.estimators import Reading
from sulq.answers.law_choice import BETA, LawName, nearest
from sulq.answers.oracle import Oracle
from sulq.answers.plan import Part, Plan
from sulq.answers.released import Released, kept_rows
from sulq.errors import QuestionError
from sulq.language.domain import Schema, Text
from sulq.language.facts import Facts
from sulq.language.kinds import Cells, Integers
from sulq.language.privacy import LARGEST, SMALLEST, Epsilon, EpsilonDelta, Loss, Rho
from sulq.language.question import Question, Sums
from sulq.language.relation import Table
from sulq.language.rowfn.base import evaluate, numbers, walk
from sulq.language.rowfn.vectors import to_grid
from sulq.language.shape import shape
from sulq.sql.compile import Compiled
from sulq.sql.explain import SUPPOSED_ROWS, Explanation, Foretold
from sulq.sql.released.cells import NoisyValue, interval
from sulq.sql.released.program import TableProgram
from sulq.sql.released.render import prepare
from sulq.sql.rows.values import TrialRows

POINTS: Final = 61  # a prime, so that every column is spread over all its values in an order of its own
LIMIT: Final = 2**62
LEANS: Final = ("spread", "low", "high")


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


def reading_widths(oracle: Oracle, question: Sums, reading: Reading, spend: Loss | None) -> list[float]:
    """How far off what is read of a question's sums would be for a spend, for as many rows as are declared."""
    plan, facts = oracle.foresee(question, spend=spend), oracle.facts
    (released,) = supposed(plan, facts, facts.size or UNDECLARED_SIZE_ROWS, whole=True)
    low, high = reading.interval(released, BETA)
    return [float(width) / 2 for width in np.ravel(high - low)]


def _part(part: Part, facts: Facts, rows: int, lean: str, fold: int) -> Released:
    tally = part.tally
    if part.score is not None:
        candidates = len(tally.by[-1].labels)
        place = {"low": 0, "high": candidates - 1}.get(lean, candidates // 2)
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
    label = tuple(None for _ in tally.by)
    return Released(np.array([[people, *sums[0].tolist()]], dtype=np.int64), part.noise, (label,))


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
Foresee = Callable[[Question, Loss | None], Plan]


@dataclass(frozen=True, slots=True, eq=False)
class ErrorForecast:
    """A query whose accuracy can be asked for before it is: `foresee` is the Oracle's, which reads no row.

    `other`: there is to be a row for the groups not shown. It is paid for and left out
    of the accuracies, as its own depends on how many groups there will be.
    """

    compiled: Compiled
    facts: Facts
    foresee: Foresee
    other: str | None = None

    @property
    def program(self) -> TableProgram:
        """What is done with the released values."""
        return self.compiled.program

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the answer."""
        return tuple(name for name, _ in self.program.columns)

    def plan(self, spend: Loss | None) -> Plan | None:
        """What would be asked; None where nothing private is."""
        question = prepare(self.program, self.facts, spend, self.other).question
        return None if question is None else self.foresee(question, spend)

    def widths(
        self, plan: Plan | None, *, rows: int, beta: float, leans: Sequence[str] = ("spread",), whole: bool = False
    ) -> tuple[float, ...]:
        """How far each column may be off, the worst of its rows; infinite where nothing is known, 0 where it is exact.

        `rows`: how many each group has; with `whole`, all groups together. `leans`: where
        in their bounds values are supposed to lie.
        """
        worst = [0.0] * len(self.names)
        for lean in leans:
            released, table = self._supposed(plan, rows, lean, whole=whole)
            for cells in table:
                worst = [max(a, _off(cell, released, beta)) for a, cell in zip(worst, cells, strict=True)]
        return tuple(worst)

    def scales(self, plan: Plan | None, *, rows: int) -> tuple[float, ...]:
        """What each column's error is measured by: the range its value can have by declared bounds, at so many rows."""
        found: list[list[float]] = [[] for _ in self.names]
        for lean in LEANS:
            _, table = self._supposed(plan, rows, lean, whole=True)
            for i in range(len(found)):
                values = [_number(cells[i].value) for cells in table]
                found[i].append(max(values, key=abs, default=0.0))
        return tuple(max(abs(high - low), abs(spread)) or 1.0 for spread, low, high in found)

    def explained(self, spend: Loss | None, beta: float, notes: tuple[str, ...] = ()) -> Explanation:
        """The query in words: what it asks, why it costs that, how accurate it would be."""
        plan = self.plan(spend)
        rows = SUPPOSED_ROWS
        table = [self.widths(plan, rows=number, beta=beta) for number in rows] if plan is not None else []
        noisy = self._noisy(plan)
        columns = tuple(
            Foretold(name, tuple(widths[i] for widths in table)) for i, name in enumerate(self.names) if i in noisy
        )
        about = () if plan is None else kept_rows(plan.question, self.facts)
        return Explanation(self.compiled.text, plan, self.facts, columns, rows, beta, (*about, *notes))

    def nearest(self, spend: Loss | None, law: LawName | None, beta: float) -> Loss | None:
        """The spend that buys the named law of noise, or the one of least error of the query's columns."""
        rows = self.facts.size or UNDECLARED_SIZE_ROWS

        def widths(one: Loss | None) -> tuple[float, ...]:
            return self.widths(self.plan(one), rows=rows, beta=beta, whole=True)

        return nearest(spend, law, lambda: self.facts.budget, widths)

    def sure(self, plan: Plan | None, column: int, beta: float) -> bool:
        """Whether a column's accuracy is the same however many rows there are."""
        widths = tuple(
            self.widths(plan, rows=rows, beta=beta)[column] for rows in (SUPPOSED_ROWS[0], SUPPOSED_ROWS[-1])
        )
        return Foretold("", widths).sure

    def _noisy(self, plan: Plan | None) -> set[int]:
        """The columns that rest on noise."""
        if plan is None:
            return set()
        _, table = self._supposed(plan, UNDECLARED_SIZE_ROWS, "spread", whole=False)
        return {i for cells in table for i, cell in enumerate(cells) if cell.origin is not None}

    def _supposed(
        self, plan: Plan | None, rows: int, lean: str, *, whole: bool
    ) -> tuple[tuple[Released, ...], tuple[tuple[NoisyValue, ...], ...]]:
        # A program remembers what it read: a new one for each made-up release.
        asked = prepare(self.program, self.facts, None if plan is None else plan.spend, self.other)
        asked.other = None
        folds: dict[int, int] = {}
        for _, _, column in asked.columns():
            folds |= {part.question: max(part.fold, folds.get(part.question, 1)) for part in column.slices}
        released = () if plan is None else supposed(plan, self.facts, rows, lean, whole=whole, folds=folds)
        return released, asked.read(released).rows


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


def _off(figure: NoisyValue, released: Sequence[Released], beta: float) -> float:
    if figure.origin is None:
        return 0.0
    ends = interval(figure, released, beta)
    if ends is None:
        return math.inf
    low, high = map(_number, ends)
    if figure.value is None:  # unknown
        return high - low
    value = _number(figure.value)
    return max(high - value, value - low)


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
INVERSE_STEPS: Final = 5  # as if the error were inverse; then the interval is halved
PRICE_TOLERANCE: Final = 1e-3  # how far from the best price, relatively, where the error is not inverse
SHARE_PARTS: Final = 10**9  # a total is divided in billionths of itself
MAX_TURNS: Final = 12
ERROR_TOLERANCE: Final = 1.005  # errors that are this near each other agree
MIN_SHARE: Final = 1e-4  # of a total, for each query of a workload


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
        step = min(step, high - 1e-6)
        place = step if low < step and i < INVERSE_STEPS else (low + high) / 2
    if enough == math.inf:
        raise QuestionError("too-costly", "No spend that could be asked for is accurate enough.")
    grain = Fraction(10) ** (math.floor(enough / math.log(10)) - 5)
    found = max(math.ceil(Fraction(math.exp(enough)) / grain) * grain, SMALLEST)
    return kind(min(found, Fraction(LARGEST)))


def error_at(
    forecast: ErrorForecast,
    kind: type[Epsilon | Rho],
    units: Mapping[int, float],
    beta: float,
    rows: Rows,
    *,
    priced: bool,
) -> Off:
    """How far off a query would be at a spend: its worst column, in units of what is wished for.

    `priced`: every group has `rows` and values lie anywhere in their bounds; else all groups together have `rows`.
    """

    def off(spend: float) -> float:
        try:
            plan = forecast.plan(kind(spend))
        except QuestionError as error:
            if error.code != "too-little-noise":
                raise
            return 0.0 if priced and spend >= 1 else math.inf
        if plan is None:
            return 0.0
        leans = LEANS if priced else LEANS[:1]
        widths = forecast.widths(plan, rows=rows(plan), beta=beta, leans=leans, whole=not priced)
        return max((widths[column] / unit for column, unit in units.items()), default=0.0)

    return off


def divided(offs: Sequence[Off], total: float, *, squared: bool) -> list[Fraction]:
    """Parts of a total for several queries, so that the one farthest off is as near as can be.

    Noise is inverse to epsilon, or to the root of rho, so a query twice as far off
    as another needs twice its epsilon, four times its rho. Where the error is not
    quite inverse (means of few rows) the step is repeated until the errors agree.
    """
    count = len(offs)
    parts = [1.0 / count] * count
    for _ in range(MAX_TURNS):
        errors = [off(total * part) for off, part in zip(offs, parts, strict=True)]
        finite = [error for error in errors if math.isfinite(error) and error > 0]
        if not finite or max(finite) <= min(finite) * ERROR_TOLERANCE:
            break
        most = 4 * max(finite)  # what is off by anything at all gets more, step by step
        wanted = [
            part * min(max(error, 1e-12), most) ** (2 if squared else 1)
            for part, error in zip(parts, errors, strict=True)
        ]
        whole = sum(wanted)
        parts = [max(part / whole, MIN_SHARE) for part in wanted]
        parts = [part / sum(parts) for part in parts]
    return [Fraction(max(math.floor(part * SHARE_PARTS), 1), SHARE_PARTS + count) for part in parts]


def amount(loss: Epsilon | Rho | EpsilonDelta) -> float:
    """What a spend is worth in the currency it is divided in: epsilon, or rho."""
    return float(loss.rho if isinstance(loss, EpsilonDelta) else loss.exact)
