"""How far off a query's columns would be, at a spend, if its groups had so many rows; from public facts alone."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from sulq.answers.plan import Plan
from sulq.answers.released import Released, kept_rows
from sulq.errors import QuestionError
from sulq.language.facts import Facts
from sulq.language.privacy import Loss
from sulq.language.question import Question
from sulq.sql.compile import Compiled
from sulq.sql.explain import SUPPOSED_ROWS, Explanation, Foretold
from sulq.sql.released.cells import NoisyValue, interval
from sulq.sql.released.forecast import LEANS, supposed
from sulq.sql.released.program import TableProgram
from sulq.sql.released.render import prepare

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
        for _, _, leaf in asked.leaves():
            folds |= {cut.question: max(cut.fold, folds.get(cut.question, 1)) for cut in leaf.cuts}
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
