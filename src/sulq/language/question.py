"""The whole language of asking.

`Sums` is the primitive of the SuLQ framework [S0.5, S1.1]; `OpenSums` is the same
over keys nobody listed; `Choose` picks a candidate by a score of exact sums [S3.9];
`Above` tells which of many sums is the first to reach a threshold; `Holistic` asks for a
statistic of the whole table that no sums give [S4.11-S4.16]; `Together` asks
several questions at one debit. Whatever else an analyst wants is made of what they
release and is free (S0.29).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, cast

from sulq.errors import QuestionError
from sulq.language.relation import RELATIONS, Relation, Table, functions
from sulq.language.rowfn import RowFn
from sulq.language.rowfn.base import figure
from sulq.language.score import SCORES, Score
from sulq.language.space import SPACES, Space
from sulq.language.statistic import STATISTICS, Statistic

WHOLE: Final = Table()
MIN_SHARE: Final = Fraction(1, 10**9)
MAX_VALUES: Final = 4096
MAX_NODES: Final = 50_000
MAX_DEPTH: Final = 64


def _measure(front: list[RowFn]) -> int:
    """Size of a question's expressions, without recursion: a bomb is refused, not followed (T74)."""
    size = depth = 0
    while front:
        depth += 1
        size += len(front)
        if size > MAX_NODES or depth > MAX_DEPTH:
            raise QuestionError("too-large", "The question is too large or nested too deeply.")
        front = [part for node in front for part in node.parts()]
    return size


def _shares(shares: tuple[Fraction, ...], parts: int, what: str) -> tuple[Fraction, ...]:
    """Check how a spend is divided: one positive number for each part, or none at all."""
    numbers = isinstance(shares, (tuple, list)) and all(
        isinstance(share, (int, float, Fraction)) and not isinstance(share, bool) for share in shares
    )
    if not numbers or not all(MIN_SHARE <= share <= 1 / MIN_SHARE for share in shares):
        raise QuestionError("bad-question", "A share is a positive number, from 1e-9 to 1e9.")
    if shares and len(shares) != parts:
        raise QuestionError("bad-question", f"Give one share for each {what}.")
    return tuple(Fraction(share) for share in shares)


@dataclass(frozen=True, slots=True, eq=False)
class _Grouped:
    """Values of rows, a condition, keys, how the spend is divided, and what all of it runs over."""

    values: tuple[RowFn, ...]
    where: RowFn | None = None
    by: tuple[RowFn, ...] = ()
    shares: tuple[Fraction, ...] = ()
    over: Relation = WHOLE

    def parts(self) -> list[RowFn]:
        """The row functions this is built from."""
        condition = () if self.where is None else (self.where,)
        return [*self.values, *condition, *self.by]

    def _check(self, *, fewest: int) -> None:
        if not isinstance(self.values, (tuple, list)) or not isinstance(self.by, (tuple, list)):
            raise QuestionError(
                "bad-question", "A question holds tuples of values and of keys.", "Write Sums((col(...),))."
            )
        if not fewest <= len(self.values) <= MAX_VALUES or len(self.by) > 32:
            raise QuestionError("too-large", f"A question holds {fewest} to {MAX_VALUES} values and at most 32 keys.")
        if not all(isinstance(fn, RowFn) for fn in self.parts()):
            raise QuestionError("bad-question", "A question is built from row functions: sulq.col(...).")
        if not isinstance(self.over, RELATIONS):
            raise QuestionError("bad-question", "Sums run over a table or what is derived from tables.")
        _measure(self.parts() + functions(self.over))


@dataclass(frozen=True, slots=True, eq=False)
class Sums(_Grouped):
    """Sums of bounded row functions over the kept rows, filtered and partitioned.

    `values`: each a number or a vector of integers on a grid. `where`: a
    condition; rows where it is false or unknown count nothing. `by`: keys; every
    combination of their labels is a cell of the answer, and a row lies in one
    cell or none. `shares`: how the spend is divided over the values (default evenly).

    Source: the SuLQ primitive [S0.5]; histograms and disjoint regions cost as one cell,
    or two where a row is replaced [S3.8, S4.6, S4.9; E46].
    """

    def __post_init__(self) -> None:
        self._check(fewest=1)
        object.__setattr__(self, "shares", _shares(self.shares, len(self.values), "value"))


@dataclass(frozen=True, slots=True, eq=False)
class OpenSums(_Grouped):
    """Sums by keys whose labels are not listed in advance: only groups of enough people are released (SR14).

    The answer's first column is the noisy number of people in each group, which
    decides whether the group is shown; the values follow. `by`: at least one key,
    of any kind; a missing key is a label, None. `shares`: how the spend is divided
    over the number of people and the values (default evenly). Needs a delta.
    """

    def __post_init__(self) -> None:
        self._check(fewest=0)
        if not self.by:
            raise QuestionError("bad-question", "Open sums are grouped by at least one key.")
        object.__setattr__(self, "shares", _shares(self.shares, len(self.values) + 1, "value, the people first"))


@dataclass(frozen=True, slots=True, eq=False)
class _OfCounts:
    """What is asked of exact sums that are not released themselves."""

    counts: Sums

    @property
    def over(self) -> Relation:
        """What the sums run over."""
        return self.counts.over

    def parts(self) -> list[RowFn]:
        """The row functions this is built from."""
        return self.counts.parts()


@dataclass(frozen=True, slots=True, eq=False)
class Choose(_OfCounts):
    """The candidate of a high score, drawn so that one person hardly alters the odds [S3.9, SR4].

    `counts`: exact sums whose last key divides the rows for the score; each cell of
    the keys before it makes a choice of its own, all for one price. `score`: one
    of a closed list (SR5). The answer is the number of the chosen candidate. `exponential`: by the exponential
    mechanism for a pure spend too, where permute-and-flip is nearer to the best: what a base measure needs [S3.31].
    """

    score: Score
    exponential: bool = field(default=False, metadata={"wire": "set"})

    def __post_init__(self) -> None:
        if type(self.exponential) is not bool:
            raise QuestionError("bad-question", "A choice is by the exponential mechanism, or by the better one.")
        if not isinstance(self.counts, Sums) or not self.counts.by:
            raise QuestionError("bad-question", "A choice is made by sums with at least one key.")
        if not isinstance(self.score, SCORES):
            raise QuestionError("bad-question", f"A score is one of {', '.join(kind.__name__ for kind in SCORES)}.")


@dataclass(frozen=True, slots=True, eq=False)
class Above(_OfCounts):
    """Which of many sums is the first to reach its threshold; nothing else is released (the sparse vector).

    `counts`: sums of one value, a number or a vector; its sums are looked at in the order
    they would be answered in, cell by cell, and within a cell coordinate by coordinate.
    `threshold`: one number for all of them, or one for each. The answer is the place of
    the first sum at or above its threshold, counted from 0; if there is none, the number
    of sums. For the first *below* a threshold negate value and threshold.
    """

    threshold: int | float | tuple[int | float, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.counts, Sums) or len(self.counts.values) != 1:
            raise QuestionError("bad-question", "A threshold is for sums of one value, a number or a vector.")
        given = self.threshold if isinstance(self.threshold, (tuple, list)) else (self.threshold,)
        if not 1 <= len(given) <= MAX_VALUES:
            raise QuestionError("too-large", f"Give one threshold, or one for each sum; at most {MAX_VALUES}.")
        object.__setattr__(self, "threshold", tuple(figure(level) for level in given))

    @property
    def levels(self) -> tuple[Fraction, ...]:
        """The thresholds as exact numbers."""
        return tuple(Fraction(level) for level in cast("tuple[int | float, ...]", self.threshold))


@dataclass(frozen=True, slots=True, eq=False)
class Holistic:
    """A statistic of the whole table whose sensitivity is proved: a minimum cut, a distance from a property, ...

    `statistic`: one of a closed list (SR5). `where`: a condition; other rows are as if they
    were not there. `space`: where the answer lies, if not among all whole units: a point near the
    exact value is drawn from it [S4.15]. Rows in which a value it reads is missing count nothing.
    """

    statistic: Statistic
    where: RowFn | None = None
    space: Space | None = None
    over: Table = WHOLE

    def __post_init__(self) -> None:
        if not isinstance(self.statistic, STATISTICS):
            kinds = ", ".join(kind.__name__ for kind in STATISTICS)
            raise QuestionError("bad-question", f"A statistic is one of {kinds}.")
        if self.space is not None and not isinstance(self.space, SPACES):
            raise QuestionError("bad-question", f"A space is one of {', '.join(kind.__name__ for kind in SPACES)}.")
        if self.where is not None and not isinstance(self.where, RowFn):
            raise QuestionError("bad-question", "A condition is built from row functions: sulq.col(...) > 0.")
        if not isinstance(self.over, Table):
            raise QuestionError("bad-question", "A statistic of the whole table is of a table, not of a derived one.")
        _measure(self.parts())

    def parts(self) -> list[RowFn]:
        """The row functions this is built from."""
        return [*self.statistic.row, *(() if self.where is None else (self.where,))]


@dataclass(frozen=True, slots=True, eq=False)
class Together:
    """Several questions at one debit, all or nothing; the answer is the tuple of theirs.

    `shares`: how the spend is divided over the questions (default evenly).

    Source: [S3.6]; questions asked together cost no more than one after the other.
    """

    questions: tuple[Sums | OpenSums | Choose | Above | Holistic, ...]
    shares: tuple[Fraction, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.questions, (tuple, list)) or not 1 <= len(self.questions) <= MAX_VALUES:
            raise QuestionError("too-large", "Ask 1 to 4096 questions together, in a tuple.")
        if not all(isinstance(question, (Sums, OpenSums, Choose, Above, Holistic)) for question in self.questions):
            raise QuestionError("bad-question", "Together takes questions.")
        _measure([fn for asked in self.questions for fn in asked.parts() + functions(asked.over)])
        object.__setattr__(self, "shares", _shares(self.shares, len(self.questions), "question"))


Single = Sums | OpenSums | Choose | Above | Holistic
Question = Single | Together
QUESTIONS: Final = (Sums, OpenSums, Choose, Above, Holistic, Together)
