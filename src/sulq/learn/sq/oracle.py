"""The one seam of statistical-query learning: an expectation wished for, a tolerance, an answer [S2.8].

A learner written against it runs on every backend: on a known distribution, on one that
answers as badly as it may, on a sample, on a database's noise of either kind, on flipped labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final, Protocol

import numpy as np

from sulq.errors import QuestionError
from sulq.language.domain import Schema
from sulq.language.kinds import Floats, Truth
from sulq.language.rowfn import Case, Each, Logic, Not, RowFn, lit
from sulq.language.rowfn.scalar import number

ROUNDED: Final = 1e-12  # sums of doubles may leave [0, 1] by this


class StatOracle(Protocol):
    """Answers each query to within its tolerance."""

    def stat(self, phi: RowFn, tau: float) -> float:
        """The mean of phi, a row function within [0, 1], to within tau."""
        ...

    def stats(self, phis: Sequence[RowFn], tau: float) -> Floats:
        """Several means, none chosen after another's answer, each to within tau."""
        ...

    def cells(self, partitions: Sequence[Sequence[RowFn]], tau: float) -> list[Floats]:
        """For each list of conditions, how often each is the first of its list to hold, to within tau."""
        ...


class PricedOracle(StatOracle, Protocol):
    """An oracle with a spend: it may be asked for the best tolerance that a part of it buys."""

    def best(self, phis: Sequence[RowFn], part: Fraction) -> tuple[Floats, float]:
        """Several means for a part of the spend, and the tolerance they have."""
        ...

    def best_cells(self, partitions: Sequence[Sequence[RowFn]], part: Fraction) -> tuple[list[Floats], float]:
        """Tables of conditions for a part of the spend, and the tolerance they have."""
        ...

    def afford(self, phis: Sequence[RowFn], times: int, tau: float) -> None:
        """Refuse, before the first is asked, what the spend does not buy: so many lists of queries like these."""
        ...

    def afford_cells(self, conditions: Sequence[RowFn], times: int, tau: float) -> None:
        """Refuse, before the first is asked, what the spend does not buy: so many tables like this one."""
        ...


class Backend:
    """What backends share: several queries are queries one by one, where there is nothing better."""

    tabled: bool = False  # whether a table of conditions costs as one query

    def stat(self, phi: RowFn, tau: float) -> float:
        """The mean of phi, a row function within [0, 1], to within tau."""
        return float(self.stats([phi], tau)[0])

    def stats(self, phis: Sequence[RowFn], tau: float) -> Floats:
        """Several means, none chosen after another's answer, each to within tau."""
        return np.array([self.stat(phi, tau) for phi in phis])

    def cells(self, partitions: Sequence[Sequence[RowFn]], tau: float) -> list[Floats]:
        """For each list of conditions, how often each is the first of its list to hold, to within tau."""
        firsts = [first(conditions) for conditions in partitions]
        answers = self.stats([condition for conditions in firsts for condition in conditions], tau)
        return divided(answers, partitions)


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


def divided(values: Floats, partitions: Sequence[Sequence[RowFn]]) -> list[Floats]:
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
