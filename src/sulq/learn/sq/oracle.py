"""The one seam of statistical-query learning: an expectation wished for, a tolerance, an answer [S2.8].

A learner written against it runs on every backend: on a known distribution, on one that
answers as badly as it may, on a sample, on a database's noise of either kind, on flipped labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

import numpy as np

from sulq.errors import QuestionError
from sulq.language.domain import Schema
from sulq.language.kinds import Floats, Truth
from sulq.language.rowfn import Case, Each, Logic, Not, RowFn, lit
from sulq.language.rowfn.base import number

Partitions = Sequence[Sequence[RowFn]]
ROUNDED: Final = 1e-12  # sums of doubles may leave [0, 1] by this


class StatOracle:
    """Answers each query to within its tolerance; several are asked one by one, where there is nothing better.

    An oracle has `stat` or `stats` of its own; each has a default that asks by the other.
    """

    tabled: bool = False  # whether a table of conditions costs as one query

    def stat(self, phi: RowFn, tau: float) -> float:
        """The mean of phi, a row function within [0, 1], to within tau."""
        return float(self.stats([phi], tau)[0])

    def stats(self, phis: Sequence[RowFn], tau: float) -> Floats:
        """Several means, none chosen after another's answer, each to within tau."""
        return np.array([self.stat(phi, tau) for phi in phis])

    def cells(self, partitions: Partitions, tau: float) -> list[Floats]:
        """For each list of conditions, how often each is the first of its list to hold, to within tau."""
        return divided(self.stats(_flat(partitions), tau), partitions)


class PricedOracle(StatOracle):
    """An oracle with a spend: it may be asked for the best tolerance that a part of it buys."""

    def best(self, phis: Sequence[RowFn], part: Fraction) -> tuple[Floats, float]:
        """Several means for a part of the spend, and the tolerance they have; 1 where they say nothing."""
        raise NotImplementedError

    def best_cells(self, partitions: Partitions, part: Fraction) -> tuple[list[Floats], float]:
        """Tables of conditions for a part of the spend, and the tolerance they have."""
        answers, tau = self.best(_flat(partitions), part)
        return divided(answers, partitions), tau

    def afford(self, phis: Sequence[RowFn], times: int, tau: float) -> None:
        """Refuse, before the first is asked, what the spend does not buy: so many lists of queries like these."""
        raise NotImplementedError

    def afford_cells(self, conditions: Sequence[RowFn], times: int, tau: float) -> None:
        """Refuse, before the first is asked, what the spend does not buy: so many tables like this one."""
        self.afford(first(conditions), times, tau)


def too_few_rows(tau: float, queries: int, needed: int, known: str) -> QuestionError:
    """The refusal of a tolerance that this many rows cannot give, with the number that could.

    Sizes in it are declared or released, never read off the rows (SR6).
    """
    asked = "A query" if queries == 1 else f"{queries:,} queries"
    return QuestionError("too-few-rows", f"{asked} of tolerance {tau:g} would need about {needed:,} rows; {known}.")


def too_many_queries(queries: int) -> QuestionError:
    """The refusal of a query past those the oracle was opened for."""
    return QuestionError(
        "too-large", f"This oracle was opened for {queries:,} queries.", "Open it with a larger queries=."
    )


def _flat(partitions: Partitions) -> list[RowFn]:
    return [condition for conditions in partitions for condition in first(conditions)]


def first(conditions: Sequence[RowFn]) -> list[RowFn]:
    """Conditions of which at most one holds: each, unless one before it does."""
    found: list[RowFn] = []
    for i, condition in enumerate(conditions):
        before = tuple(Not(_known(earlier)) for earlier in conditions[:i])
        found.append(Logic("and", (_known(condition), *before)) if before else _known(condition))
    return found


def _known(condition: RowFn) -> RowFn:
    """A condition that is false where it is unknown."""
    return condition.fill(value=False)


def divided(values: Floats, partitions: Partitions) -> list[Floats]:
    """Answers in a row, as one list for each list of conditions."""
    ends = np.cumsum([len(conditions) for conditions in partitions])[:-1]
    return [np.asarray(part) for part in np.split(values, ends)]


def numbered(conditions: Sequence[RowFn]) -> RowFn:
    """The number of the first condition that holds, as a key; the number of conditions where none does.

    A row has one number, so a table of such a key costs what one count does, however many conditions (X1).
    """
    branches = tuple((condition, lit(i)) for i, condition in enumerate(conditions))
    return Each(Case(branches, lit(len(conditions))))


def checked_query(phi: object, tau: float, schema: Schema) -> RowFn:
    """A query as it is asked: within [0, 1], zero where a row's cells are missing (S0.5)."""
    checked_tolerance(tau)
    if not isinstance(phi, RowFn):
        raise QuestionError("bad-question", "A query is built from columns: sulq.col(...).")
    kind = number(phi, schema)
    if kind.lo is None or kind.hi is None or kind.lo < -ROUNDED or kind.hi > 1 + ROUNDED:
        raise QuestionError(
            "bad-question", "A statistical query is a row function within [0, 1].", "Clip it to [0, 1]."
        )
    if kind.nullable:
        phi = phi.fill(value=False) if isinstance(phi.kind(schema), Truth) else phi.fill(0)
    return phi.clip(0, 1) if kind.lo < 0 or kind.hi > 1 else phi


def checked_tolerance(tau: object) -> float:
    """A tolerance: above 0, at most 1."""
    if isinstance(tau, bool) or not isinstance(tau, (int, float, np.floating)) or not 0 < tau <= 1:
        raise QuestionError("bad-parameter", "A tolerance tau lies above 0 and is at most 1.")
    return float(tau)
