"""The whole language of asking.

`Sums` is the primitive of the SuLQ framework [S0.5, S1.1]; `Together` asks
several questions at one debit. Whatever else an analyst wants is made of
released sums and is free (S0.29).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from sulq.errors import QuestionError
from sulq.terms.relation import Relation, Table
from sulq.terms.rowfn.scalar import RowFn

WHOLE: Final = Table()
SMALLEST_SHARE: Final = Fraction(1, 10**9)
MOST_VALUES: Final = 4096
MOST_NODES: Final = 50_000
DEEPEST: Final = 64


def _measure(front: list[RowFn]) -> int:
    """Size of a question's expressions, without recursion: a bomb is refused, not followed (T74)."""
    size = depth = 0
    while front:
        depth += 1
        size += len(front)
        if size > MOST_NODES or depth > DEEPEST:
            raise QuestionError("too-large", "The question is too large or nested too deeply.")
        front = [part for node in front for part in node.parts()]
    return size


def _shares(shares: tuple[Fraction, ...], parts: int, what: str) -> tuple[Fraction, ...]:
    """Check how a spend is divided: one positive number for each part, or none at all."""
    numbers = all(isinstance(share, (int, float, Fraction)) and not isinstance(share, bool) for share in shares)
    if not numbers or not all(SMALLEST_SHARE <= share <= 1 / SMALLEST_SHARE for share in shares):
        raise QuestionError("bad-question", "A share is a positive number, from 1e-9 to 1e9.")
    if shares and len(shares) != parts:
        raise QuestionError("bad-question", f"Give one share for each {what}.")
    return tuple(Fraction(share) for share in shares)


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Sums of bounded row functions over the kept rows, filtered and partitioned.

    `values`: each a number or a vector of integers on a grid. `where`: a
    condition; rows where it is false or unknown count nothing. `by`: keys; every
    combination of their labels is a cell of the answer, and a row lies in one
    cell or none. `shares`: how the spend is divided over the values (default evenly).
    """

    values: tuple[RowFn, ...]
    where: RowFn | None = None
    by: tuple[RowFn, ...] = ()
    shares: tuple[Fraction, ...] = ()
    over: Relation = WHOLE

    def __post_init__(self) -> None:
        if not 1 <= len(self.values) <= MOST_VALUES or len(self.by) > 32:
            raise QuestionError("too-large", "A question holds 1 to 4096 values and at most 32 keys.")
        if not all(isinstance(fn, RowFn) for fn in self.parts()):
            raise QuestionError("bad-question", "A question is built from row functions: sulq.col(...).")
        _measure(self.parts())
        object.__setattr__(self, "shares", _shares(self.shares, len(self.values), "value"))

    def parts(self) -> list[RowFn]:
        """The row functions this is built from."""
        condition = () if self.where is None else (self.where,)
        return [*self.values, *condition, *self.by]


@dataclass(frozen=True, slots=True, eq=False)
class Together:
    """Several questions at one debit, all or nothing; the answer is the tuple of theirs.

    `shares`: how the spend is divided over the questions (default evenly).
    """

    questions: tuple[Sums, ...]
    shares: tuple[Fraction, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= len(self.questions) <= MOST_VALUES:
            raise QuestionError("too-large", "Ask 1 to 4096 questions together.")
        if not all(isinstance(question, Sums) for question in self.questions):
            raise QuestionError("bad-question", "Together takes questions.")
        _measure([fn for question in self.questions for fn in question.parts()])
        object.__setattr__(self, "shares", _shares(self.shares, len(self.questions), "question"))


Question = Sums | Together
QUESTIONS: Final = (Sums, Together)
