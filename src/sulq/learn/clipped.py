"""`bounds="auto"` for a fit: columns whose bounds are searched for, and an Oracle on which they are declared so.

A learner reads a column's bounds in its declaration and nowhere else. So the columns that were searched are declared
anew, within what was found, and every question is asked of the clipped column: no learner need know of it.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from sulq.answers.answer import Answer, Answers
from sulq.answers.auto_bounds import (
    Clip,
    SearchedValue,
    check_bounds,
    divided_spend,
    found_bounds,
    question_of,
    searched,
    total_spent,
)
from sulq.answers.oracle import ColumnChoice, Oracle, Progress, SpendPlan
from sulq.answers.plan import Plan
from sulq.language.domain import Column, Int, Real
from sulq.language.facts import Facts
from sulq.language.privacy import EpsilonDelta, Loss, Rho
from sulq.language.question import Question
from sulq.language.rowfn import Col
from sulq.learn.derived import DerivedOracle


class ReachedFirstAsk(Exception):
    """A rehearsed fit came to its first ask."""


class RehearsalOracle:
    """An Oracle that foresees and never asks: what a fit refuses before its first ask shows, and costs nothing."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle

    @property
    def facts(self) -> Facts:
        """Everything public."""
        return self._oracle.facts

    def ask(
        self, question: Question, *, spend: Loss | None = None, key: str | None = None, reuse: bool = False
    ) -> Answer | Answers:
        """End here."""
        raise ReachedFirstAsk

    def foresee(self, question: Question, *, spend: Loss | None = None) -> Plan:
        """Price, sensitivity, mechanism and accuracy; free."""
        return self._oracle.foresee(question, spend=spend)


class ClippedOracle(DerivedOracle):
    """An Oracle on which some columns are clipped: each question is asked of the clipped columns."""

    def __init__(self, oracle: Oracle, clips: Mapping[str, Clip]) -> None:
        schema = oracle.facts.schema
        columns = {name: schema.find(name) for name in clips}
        derived = {
            name: (Col(name).clip(*clips[name]), _within(column, clips[name]))
            for name, column in columns.items()
            if column is not None
        }
        super().__init__(oracle, derived)


def _within(column: Column, clip: Clip | None) -> Column:
    """A declared column within narrower bounds; what stands for a missing cell is clipped likewise."""
    if clip is None or not isinstance(column, (Int, Real)):
        return column
    lo, hi = clip
    ends: dict[str, Any] = {"lo": lo, "hi": hi}  # whole numbers where the column's are
    if column.default is not None:
        ends["default"] = min(max(cast("float | int", column.default), lo), hi)
    return dataclasses.replace(column, **ends)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class FitSearch:
    """The spend of a fit after the search: what is left of it, on the clipped columns; and what was found."""

    spending: SpendPlan
    bounds: dict[str, Clip]
    cost: Loss | None = None
    notes: tuple[str, ...] = ()  # what the clips cut, as far as noisy counts tell

    @property
    def spent(self) -> Loss:
        """What the search and the fit cost so far."""
        return self.spending.spent if self.cost is None else total_spent(self.cost, self.spending.spent)

    def columns(self, X: ColumnChoice) -> ColumnChoice:
        """The same columns, clipped."""
        return ColumnChoice(X.names, self.spending.oracle)


def search_columns(
    columns: Sequence[ColumnChoice],
    bounds: object,
    spend: Loss | None,
    progress: Progress | None,
    rehearse: Callable[[SpendPlan], None],
) -> FitSearch:
    """Buy one histogram a column, at one debit, once the whole spend fits what is left and a rehearsal is not refused.

    Only declared numbers with room between their bounds are searched; where there are none, nothing is bought.
    """
    oracle = columns[0].oracle
    whole = SpendPlan(oracle, spend, progress)
    check_bounds(bounds, whole.facts)
    values: dict[str, SearchedValue] = {}
    for name, column in ((name, column) for X in columns for name, column in zip(X.names, X.domain, strict=True)):
        value = searched(Col(name), whole.facts.schema) if type(column) in (Int, Real) else None
        if value is not None:
            values[name] = value
    if not values:
        return FitSearch(whole, {})
    if isinstance(spend, EpsilonDelta):  # divided as the rho it holds, as every fit divides it
        spend = Rho(whole.facts.counted(spend).rho)
    first, rest = divided_spend(spend)
    with contextlib.suppress(ReachedFirstAsk):
        rehearse(SpendPlan(RehearsalOracle(oracle), rest))
    answers = oracle.ask(question_of(list(values.values())), spend=first)
    assert isinstance(answers, Answers)  # noqa: S101 - for the type checker
    found = found_bounds(list(values.values()), answers)
    clips = dict(zip(values, found.clips, strict=True))
    notes = found.cuts(list(values))
    return FitSearch(SpendPlan(ClippedOracle(oracle, clips), rest, progress), clips, answers.spent, notes)
