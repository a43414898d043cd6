"""The databases a split table lies in: what each is asked, and what each is paid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from sulq.answers.oracle import GRAIN, ColumnChoice, Oracle, Progress, SpendPlan, affordable, queries
from sulq.errors import BudgetExceeded, QuestionError
from sulq.language.domain import Column
from sulq.language.kinds import Floats
from sulq.language.privacy import Epsilon, EpsilonDelta, Loss, Queries, Rho, SubLinear
from sulq.language.question import Question, Sums, Together
from sulq.language.rowfn import Outer, Power, Vector, bucket
from sulq.learn.base import HANDLES
from sulq.learn.features import Features
from sulq.learn.unsupervised.space import BITS, ColumnSpace, present, with_count

MOMENTS: Final = (Fraction(1), Fraction(4), Fraction(10))  # number, sums, products
TOGETHER: Final = 4000  # sums in one question


@dataclass(frozen=True, slots=True)
class Holder:
    """One database's part of the columns."""

    space: ColumnSpace
    spending: SpendPlan
    places: slice  # of its coordinates among all

    @property
    def unknown(self) -> int:
        """How many values ask for its number of rows: one, none where that is public."""
        return int(self.spending.facts.size is None)

    @property
    def low(self) -> Floats:
        """The lower ends of the bounds, from which the papers count."""
        found: Floats = self.space.middle - self.space.half
        return found

    @property
    def unit(self) -> Floats:
        """The units its sums over groups are asked in."""
        return self.space.even(pure=self.spending.pure)

    def moments(self) -> Sums:
        """Its number of rows, sums, and the products of its own columns, about the middle of the bounds."""
        vector = self.space.vector(self.space.middle)
        return with_count(self.spending, MOMENTS, vector, Outer(vector), counted=vector)

    def groups(self, number: int, salt: int) -> Sums:
        """Its sums over random groups of people."""
        return Sums((self.space.vector(self.space.middle, self.unit),), by=(bucket(number, salt),))

    def totals(self) -> Together:
        """Its sums and squares over all people, as the papers ask for them: two queries a column [S0.12]."""
        rows = self.space.rows(self.low)
        vector = Vector(rows, BITS)
        squares = Vector(tuple(Power(row, 2) for row in rows), BITS)
        return Together((Sums((vector,)), Sums((squares,)), *(Sums((present(vector),)),) * self.unknown))

    def halves(self, number: int, salt: int) -> list[Together]:
        """Its sums over random halves of the people: a query a column and half."""
        vector = self.space.vector(self.low)
        sums = [Sums((vector,), bucket(2, salt + i) == 0) for i in range(number)]
        return [Together(tuple(sums[i : i + TOGETHER])) for i in range(0, number, TOGETHER)]


def open_all(
    X: object, spend: Loss | None, progress: Progress | None, *, scale: bool
) -> tuple[list[Holder], list[tuple[str, Column]]]:
    """The databases with their columns and their parts of the spend, by columns; refused where one cannot pay.

    Databases of one ledger are one person space: it must hold all their parts (SR20).
    """
    columns = _columns(X)
    oracles: list[Oracle] = []
    pairs: list[list[tuple[str, Column]]] = []
    for handle in columns:
        if not any(oracle is handle.oracle for oracle in oracles):
            oracles.append(handle.oracle)
            pairs.append([])
        place = next(i for i, oracle in enumerate(oracles) if oracle is handle.oracle)
        pairs[place] += zip(handle.names, handle.domain, strict=True)
    named = [pair for found in pairs for pair in found]
    if len({name for name, _ in named}) != len(named):
        raise QuestionError("bad-question", "Two of the columns have one name; a model could not tell them apart.")
    spaces = [ColumnSpace(Features(found), scale=scale) for found in pairs]
    width = sum(len(space) for space in spaces)
    shares = [_share(oracle, spend, Fraction(len(s), width)) for oracle, s in zip(oracles, spaces, strict=True)]
    if len({type(share) for share in shares}) > 1:
        raise QuestionError("spend-kind", "The databases' budgets are of kinds that do not add up.")
    _afford(oracles, shares)
    holders: list[Holder] = []
    for oracle, space, share in zip(oracles, spaces, shares, strict=True):
        at = holders[-1].places.stop if holders else 0
        holders.append(Holder(space, SpendPlan(oracle, share, progress), slice(at, at + len(space))))
    return holders, named


def afford(holders: Sequence[Holder], asked: Sequence[Sequence[Question]]) -> None:
    """Refuse, before the first ask, queries that a ledger does not hold for all of its databases together (SR20)."""
    needed: dict[object, int] = {}
    for holder, questions in zip(holders, asked, strict=True):
        facts = holder.spending.facts
        if not isinstance(facts.remaining, Queries):
            return
        space = facts.public_key or id(holder.spending.oracle)
        needed[space] = needed.get(space, 0) + sum(queries(holder.spending.oracle, question) for question in questions)
        if needed[space] > facts.remaining.queries:
            raise BudgetExceeded(
                "budget-exceeded", f"This fit would ask {needed[space]:,} queries; {facts.remaining} is left."
            )


def spent(holders: list[Holder]) -> Loss:
    """What a person lost in all databases together."""
    losses = [holder.spending.spent for holder in holders]
    if isinstance(losses[0], Queries):
        return Queries(sum(loss.queries for loss in losses if isinstance(loss, Queries)))
    kind = Rho if isinstance(losses[0], Rho) else Epsilon
    return kind.total(sum((loss.exact for loss in losses if isinstance(loss, (Epsilon, Rho))), start=Fraction(0)))


def _columns(X: object) -> list[ColumnChoice]:
    listed = list(X) if isinstance(X, (list, tuple)) else [X]
    if not listed or not all(isinstance(item, ColumnChoice) for item in listed):
        raise QuestionError("bad-question", "Give a list of private columns, some of each database.", HANDLES)
    return [item for item in listed if isinstance(item, ColumnChoice)]


def _share(oracle: Oracle, spend: Loss | None, part: Fraction) -> Epsilon | Rho | None:
    """A database's part of the spend; none under a SubLinear budget."""
    if isinstance(oracle.facts.budget, SubLinear):
        return None
    whole = Rho(spend.rho) if isinstance(spend, EpsilonDelta) else spend
    if not isinstance(whole, (Epsilon, Rho)):
        return SpendPlan(oracle, spend).share(part)  # refused, with the reason
    return type(whole)(Fraction(math.floor(whole.exact * part * GRAIN), GRAIN))


def _afford(oracles: list[Oracle], shares: list[Epsilon | Rho | None]) -> None:
    """Refuse before the first ask what a ledger that several databases share cannot hold."""
    spaces: dict[object, list[tuple[Oracle, Epsilon | Rho]]] = {}
    for oracle, share in zip(oracles, shares, strict=True):
        if share is not None:
            spaces.setdefault(oracle.facts.public_key or id(oracle), []).append((oracle, share))
    for parts in spaces.values():
        total = sum((Fraction(share.exact) for _, share in parts), start=Fraction(0))
        affordable(type(parts[0][1])(total), parts[0][0].facts)
