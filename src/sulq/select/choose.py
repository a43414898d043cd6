"""Private selection among public candidates, by a score of the closed list (S3.9, SR5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final, Literal

from sulq.answers.oracle import Oracle, Progress, SpendPlan
from sulq.errors import QuestionError
from sulq.forms.parameters import checked, whole
from sulq.kernel.scores import LARGEST_ENTRY
from sulq.language.attribute import Attribute
from sulq.language.domain import Bool, Category, Int, Schema, Text
from sulq.language.privacy import Loss
from sulq.language.question import Choose, Sums
from sulq.language.rowfn import Choice, IsMissing, Lit, RowFn
from sulq.language.rowfn.vectors import bounded, scalar_grid
from sulq.language.score import Diagonal
from sulq.select.selected import Selected, select

MOST: Final = 1024  # candidates by sums of their own
EVERY: Final = Choice(((IsMissing(Lit(1)), 0),), ("every row",), 0)  # a key of one cell
SIGNS: Final = {"most": 1, "least": -1, "zero": 1}
SAID: Final = {"most": "sum", "least": "smallness of the sum", "zero": "nearness of the sum to zero"}


def choose(
    db: Oracle,
    candidates: str | Mapping[str, RowFn] | Sequence[object],
    score: Literal["most", "least", "zero"] | Choose = "most",
    *,
    bins: int | None = None,
    spend: Loss | None = None,
    progress: Progress | None = None,
) -> Selected:
    """Draw the candidate whose score is high; nothing else is released.

    Privacy: the plan works out how far one person moves the scores apart, from the unit; nobody states a
    sensitivity (SR5). Sums that all rise with a row cost half of what others do [S3.9].
    Accuracy: the utility is within scale*(ln m + s) of the best but for e^-s, m candidates [S3.9].
    Source: S3.9 with the sign of a utility (E29); permute-and-flip for a pure spend, else exponential (SR4).

    Args:
        db: the database, or a far curator.
        candidates: a column, whose values, or intervals of them, are the candidates by how many rows have each; or
            from Python names with a row function each, a condition or a bounded number, whose sum is the score; or,
            with a question for a score, the names alone.
        score: the largest sum wins, the smallest, or the one nearest to zero; or from Python a Choose question
            with a score of the closed list.
        bins: How many intervals of equal width the candidates are, of a column of numbers; each value of a column of
            whole numbers without it, if it has 1,024 at most.
        spend: what the choice costs; its kind chooses the mechanism.
        progress: called with how many asks are done, and how many there are.

    Raises:
        QuestionError: `bad-parameter`, `too-large` (more values than candidates: give bins), or what is wrong with a
            candidate; nothing is spent.
    """
    spending = SpendPlan(db, spend, progress)
    schema = spending.facts.schema
    several = None if bins is None else whole(bins, "bins", 1, MOST)
    checked(bins is None or isinstance(candidates, str), "bins are of a column's values.")
    if isinstance(score, Choose):
        checked(not isinstance(candidates, (str, Mapping)), "With a question for a score, name its candidates.")
        one = len(score.counts.by) == 1
        checked(one, "A selection makes one choice: its counts have one key. Ask the question itself for several.")
        return select(spending, score, _names(candidates), Fraction(1), "score")
    checked(score in SIGNS, f"score is one of {', '.join(map(repr, SIGNS))}, or a Choose question.")
    if isinstance(candidates, str):
        names, counts = _cells(candidates, schema, several)
        factors, step = [1] * len(names), Fraction(1)
    else:
        checked(isinstance(candidates, Mapping), "Give every candidate a row function, or name a column.")
        sums = dict(candidates.items()) if isinstance(candidates, Mapping) else {}
        _few(len(sums))
        names = tuple(sums)
        factors, step = common(tuple(sums.values()), schema)
        counts = Sums(tuple(sums.values()), None, (EVERY,))
    question = Choose(counts, Diagonal(tuple(SIGNS[score] * factor for factor in factors), score == "zero"))
    return select(spending, question, names, step, SAID[score])


def common(values: Sequence[RowFn], schema: Schema) -> tuple[list[int], Fraction]:
    """Whole factors that bring sums on different grids to one unit, and that unit."""
    steps = []
    for fn in values:
        checked(isinstance(fn, RowFn), "A candidate is a row function: sulq.col(...).")
        low, high, number = bounded(fn, schema)
        steps.append(scalar_grid(low, high, number.step)[0])
    step = min(steps)
    factors = [found / step for found in steps]
    if any(factor.denominator != 1 or factor > LARGEST_ENTRY for factor in factors):
        raise QuestionError("bad-parameter", "The candidates' grids are too different to be compared exactly.")
    return [int(factor) for factor in factors], step


def _cells(name: str, schema: Schema, bins: int | None) -> tuple[tuple[object, ...], Sums]:
    """A column's values as candidates, or its intervals; never more intervals than somebody asked for."""
    column = schema.find(name)
    if column is None:
        raise QuestionError("unknown-column", f"No column {name[:80]!r} is declared.")
    listed = isinstance(column, (Bool, Category, Text))
    checked(bins is None or not listed, f"{name} is no number, and has no bins.")
    if bins is None and not listed and not (isinstance(column, Int) and column.high - column.low < MOST):
        raise QuestionError(
            "too-large",
            f"{name} has more values than the {MOST:,} candidates of a selection.",
            "Choose among intervals of equal width: bins=20. Or give a condition for each candidate.",
        )
    attribute = Attribute(name, column, bins or MOST)
    return attribute.labels, Sums((Lit(1),), None, (attribute.row,))


def _names(candidates: object) -> tuple[object, ...]:
    names = tuple(candidates) if isinstance(candidates, (list, tuple)) else ()
    checked(bool(names), "candidates is a list of names, one for each candidate of the score.")
    return names


def _few(count: int) -> None:
    if not 1 <= count <= MOST:
        raise QuestionError("too-large", f"A selection has 1 to {MOST:,} candidates; {count:,} are given.")
