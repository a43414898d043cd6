"""Private selection among public candidates, by a score of the closed list (S3.9, SR5).

`choose` draws a candidate by its sum, `price` a price by its revenue (S3.10), `agnostic` a hypothesis by its errors
(S3.28).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final, Literal, cast

import numpy as np

from sulq.answers.call import timed
from sulq.answers.oracle import Oracle, Progress, SpendPlan
from sulq.display.progress import shows_progress
from sulq.errors import QuestionError
from sulq.forms.parameters import between, checked, number, whole
from sulq.kernel.scores import LARGEST_ENTRY, MOST_ENTRIES
from sulq.language.attribute import Attribute
from sulq.language.domain import Bool, Category, Int, Real, Schema, Text
from sulq.language.estimator import DECLARED, MAX_CANDIDATES, Utility
from sulq.language.facts import Facts
from sulq.language.kinds import Truth, native
from sulq.language.privacy import Loss
from sulq.language.question import Choose, Holistic, Sums
from sulq.language.rowfn import Arith, Bins, Choice, Clip, Col, Compare, Fill, IsMissing, Lit, RowFn, named
from sulq.language.rowfn.vectors import bounded, scalar_grid
from sulq.language.score import Diagonal, Linear, NegAbs
from sulq.language.space import Candidates
from sulq.language.statistic import Certified
from sulq.select.selected import Selected, select
from sulq.sql.conditions import row_function

EVERY: Final = Choice(((IsMissing(Lit(1)), 0),), ("every row",), 0)  # a key of one cell
SIGNS: Final = {"most": 1, "least": -1, "zero": 1}
SAID: Final = {"most": "sum", "least": "smallness of the sum", "zero": "nearness of the sum to zero"}
MAX_PRICE_UNITS: Final = 2**20  # units of the largest price, where the prices have no common unit coarser than that
DOUBLE_ROUNDING: Final = Fraction(1, 2**48)  # of the largest value: more than a few operations on doubles round
MAX_NUMBER: Final = 10**15


@shows_progress
@timed
def choose(
    db: Oracle,
    candidates: str | Mapping[str, RowFn | str] | Sequence[object],
    score: Literal["most", "least", "zero"] | Choose = "most",
    *,
    bins: int | None = None,
    weights: list[int] | None = None,
    spend: Loss | None = None,
    progress: Progress | None = None,
    timeout: float | None = None,  # noqa: ARG001 - `timed` reads it
) -> Selected:
    """Draw the candidate whose score is high; nothing else is released.

    Privacy: the plan works out how far one person moves the scores apart, from the unit; nobody states a
    sensitivity (SR5), but the owner that of a declared utility. Sums that all rise with a row cost half of what others
    do [S3.9].
    Accuracy: the utility is within scale*(ln m + s) of the best but for e^-s, m candidates [S3.9]; of a base measure m
    is the sum of the weights.
    Source: S3.9 with the sign of a utility (E29), S3.31; permute-and-flip for a pure spend, else exponential (SR4).

    Args:
        db: the database, or a far curator.
        candidates: a column, whose values, or intervals of them, are the candidates by how many rows have each; or a
            utility that the owner has declared, by its name; or from Python names with a row function each, a
            condition or a bounded number, whose sum is the score; or, with a question for a score, the names alone.
        score: the largest sum wins, the smallest, or the one nearest to zero; or from Python a Choose question
            with a score of the closed list.
        bins: How many intervals of equal width the candidates are, of a column of numbers; each value of a column of
            whole numbers without it, if it has 1,024 at most.
        weights: a base measure, a positive whole number for each candidate; then the choice is exponential, whatever
            is spent. A declared utility has its own.
        spend: what the choice costs; its kind chooses the mechanism.
        progress: called with how many asks are done, and how many there are.
        timeout: for how many seconds it may go on; what was charged by then stays charged.

    Raises:
        QuestionError: `bad-parameter`, `too-large` (more values than candidates: give bins), or what is wrong with a
            candidate; nothing is spent.
    """
    spending = SpendPlan(db, spend, progress)
    schema = spending.facts.schema
    if isinstance(candidates, str) and schema.find(candidates) is None:
        alone = score == "most" and bins is None and weights is None
        return _by_utility(spending, candidates, alone=alone)
    several = None if bins is None else whole(bins, "bins", 1, MAX_CANDIDATES)
    checked(bins is None or isinstance(candidates, str), "bins are of a column's values.")
    if isinstance(score, Choose):
        checked(not isinstance(candidates, (str, Mapping)), "With a question for a score, name its candidates.")
        checked(weights is None, "A question for a score has its own candidates: give them no weights.")
        one = len(score.counts.by) == 1
        checked(one, "A selection makes one choice: its counts have one key. Ask the question itself for several.")
        return select(spending, score, _names(candidates), Fraction(1), "score")
    checked(score in SIGNS, f"score is one of {', '.join(map(repr, SIGNS))}, or a Choose question.")
    if isinstance(candidates, str):
        names, counts = _cells(candidates, schema, several)
        factors, step = [1] * len(names), Fraction(1)
    else:
        checked(isinstance(candidates, Mapping), "Give every candidate a row function, or name a column.")
        sums = _read(candidates, spending.facts) if isinstance(candidates, Mapping) else {}
        if not 1 <= len(sums) <= MAX_CANDIDATES:
            said = f"A selection has 1 to {MAX_CANDIDATES:,} candidates; {len(sums):,} are given."
            raise QuestionError("too-large", said)
        names = tuple(sums)
        factors, step = common(tuple(sums.values()), schema)
        counts = Sums(tuple(sums.values()), None, (EVERY,))
    question = Choose(counts, Diagonal(tuple(SIGNS[score] * factor for factor in factors), score == "zero"))
    if weights is None:
        return select(spending, question, names, step, SAID[score])
    weights = native(weights)
    measure = tuple(map(native, weights)) if isinstance(weights, (list, tuple)) else ()
    return select(spending, _weighted(question, measure), names, step, SAID[score], weights=measure)


def _by_utility(spending: SpendPlan, name: str, *, alone: bool) -> Selected:
    """A choice by what the owner has declared under a name that is no column's."""
    facts = spending.facts
    names = [item.name for table in facts.every for item in table.estimators if isinstance(item.certificate, Utility)]
    if name not in names:
        known = f" (utilities: {', '.join(names)})" if names else ""
        raise QuestionError("unknown-column", f"No column or utility {name[:80]!r} is declared{known}.")
    checked(alone, "A declared utility has its own candidates, score and weights; give its name alone.")
    table, told = facts.declared(name, Utility)
    said = f"utility {name} {DECLARED}"
    if not told.sums:
        columns = Certified(name, told.columns, placed=facts.placed(table))
        asked = Holistic(columns, space=Candidates())
        whole_of = spending.foresee(asked).parts[0].whole
        step = Fraction(1) if whole_of is None else whole_of.unit
        return select(spending, asked, told.candidates, step, said, weights=told.weights)
    factors, step = common(told.sums, facts.schema)
    question = Choose(Sums(told.sums, None, (EVERY,)), Diagonal(tuple(factors)))
    if told.weights:
        question = _weighted(question, told.weights)
    return select(spending, question, told.candidates, step, said, weights=told.weights)


def _weighted(question: Choose, weights: tuple[int, ...]) -> Choose:
    """The same choice, with each candidate as often among those to choose from as its weight says [S3.31].

    P(c) is then proportional to weight times exp(score/scale), in exact whole numbers.
    """
    score = question.score
    factors = score.factors if isinstance(score, Diagonal) else ()
    good = isinstance(weights, tuple) and all(type(each) is int and each >= 1 for each in weights)
    checked(good and len(weights) == len(factors), "weights are positive whole numbers, one a candidate.")
    if sum(weights) * len(factors) > MOST_ENTRIES:
        most = MOST_ENTRIES // len(factors)
        raise QuestionError("too-large", f"Weights of {len(factors)} candidates add up to {most:,} at most.")
    rows = [tuple(factor if i == c else 0 for i in range(len(factors))) for c, factor in enumerate(factors)]
    matrix = tuple(row for row, weight in zip(rows, weights, strict=True) for _ in range(weight))
    kind = NegAbs if isinstance(score, Diagonal) and score.folded else Linear
    return Choose(question.counts, kind(matrix), exponential=True)


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
    if bins is None and not listed and not (isinstance(column, Int) and column.high - column.low < MAX_CANDIDATES):
        raise QuestionError(
            "too-large",
            f"{name} has more values than the {MAX_CANDIDATES:,} candidates of a selection.",
            "Choose among intervals of equal width: bins=20. Or give a condition for each candidate.",
        )
    attribute = Attribute(name, column, bins or MAX_CANDIDATES)
    return attribute.labels, Sums((Lit(1),), None, (attribute.row,))


def _names(candidates: object) -> tuple[object, ...]:
    names = tuple(candidates) if isinstance(candidates, (list, tuple)) else ()
    checked(bool(names), "candidates is a list of names, one for each candidate of the score.")
    return names


@shows_progress
@timed
def price(
    db: Oracle,
    bids: str | RowFn,
    grid: list[float],
    *,
    spend: Loss | None = None,
    progress: Progress | None = None,
    timeout: float | None = None,  # noqa: ARG001 - `timed` reads it
) -> Selected:
    """Draw a price of the grid by its revenue y * #{bids >= y}; nothing else is released.

    Privacy: one bid moves no revenue by more than the largest price, and all of them the same way, so the span is
    that price and exp(epsilon*u/price) suffices under add_remove; the plan finds it (SR5). No bidder changes the
    odds of any price by more than e^epsilon, c of them together by no more than e^(c*epsilon): to bid otherwise
    than one's value earns next to nothing (approximate truthfulness).
    Accuracy: the revenue is within scale*(ln m + s) of the best price's but for e^-s, m prices [S3.9].
    Source: S3.10.

    Args:
        db: the database, or a far curator.
        bids: the column of the bids, or from Python a row function; bounds as declared.
        grid: the prices to choose from, within the declared bounds of the bids; bids are compared with them as
            exactly as the bids' own grid is.
        spend: what the choice costs; its kind chooses the mechanism.
        progress: called with how many asks are done, and how many there are.
        timeout: for how many seconds it may go on; what was charged by then stays charged.

    Raises:
        QuestionError: `bad-parameter`: a price outside the bounds, two that are one on the bids' grid, or no grid;
            nothing is spent.
    """
    spending = SpendPlan(db, spend, progress)
    fn = named(bids)
    schema = spending.facts.schema
    prices = _prices(fn, grid, schema)
    units, step = _units(prices)
    # Of a bid in bin j, between two prices, every price up to the j-th earns.
    matrix = tuple((0,) * i + (unit,) * (len(units) - i) for i, unit in enumerate(units))
    counts = Sums((Lit(1),), None, (Bins(fn, tuple(_edges(prices, fn, schema))),))
    return select(spending, Choose(counts, Linear(matrix)), tuple(prices), step, "revenue")


def _prices(fn: RowFn, grid: Sequence[float], schema: Schema) -> list[float]:
    """The prices in order."""
    low, high, kind = bounded(fn, schema)
    checked(not kind.clock, "Bids are numbers.")
    array = isinstance(grid, np.ndarray) and grid.ndim == 1
    given: list[object] = list(grid) if array or isinstance(grid, (list, tuple)) else []
    checked(bool(given), "grid is a list of prices.")
    if len(given) > MAX_CANDIDATES:
        raise QuestionError("too-large", f"A grid has at most {MAX_CANDIDATES:,} prices; {len(given):,} are given.")
    prices = sorted(y for y in map(number, given) if not math.isnan(y))
    checked(len(prices) == len(given), "A price is a finite number.")
    checked(len(set(prices)) == len(prices), "The prices of a grid differ.")
    least = Fraction(0) if low < 0 else low  # a price below nought is none
    inside = least <= Fraction(prices[0]) and Fraction(prices[-1]) <= high
    checked(inside, f"The prices lie within the declared bounds of the bids: {float(least):g} to {float(high):g}.")
    return prices


def _edges(prices: Sequence[float], fn: RowFn, schema: Schema) -> list[float]:
    """From where on a bid pays each price, and the end of the last bin: whoever bids the price, or more, pays it.

    The bids of a Real column lie on its grid, where a price may not: it is rounded as they are. What is reckoned from
    such bids carries their rounding: an edge is lower by as much.
    """
    column = schema.find(fn.name) if isinstance(fn, Col) else None
    if isinstance(column, Real):
        step = column.step
        edges = [float(math.floor(Fraction(y) / step + Fraction(1, 2)) * step) for y in prices]
        apart = all(a < b for a, b in itertools.pairwise(edges))
        checked(apart, f"Two prices of the grid are equal on the bids' own grid, whose step is {float(step):.6g}.")
    else:
        slack = rounding(fn, schema)
        edges = [math.nextafter(float(Fraction(y) - slack), -math.inf) if slack else y for y in prices]
        apart = all(a < b for a, b in itertools.pairwise(edges))
        checked(apart, f"Two prices of the grid are nearer to each other than bids are reckoned: {float(slack):.3g}.")
    high = float(bounded(fn, schema)[1])
    return [*edges, high if high > edges[-1] else edges[-1] + max(1.0, math.ulp(edges[-1]))]


def _units(prices: Sequence[float]) -> tuple[list[int], Fraction]:
    """Whole numbers that stand for the prices, and their unit: the common one of their decimals if it is not too fine.

    Else the largest price has 2^20 units: rounding then moves a revenue by less than a millionth of it.
    """
    exact = [Fraction(repr(y)) for y in prices]
    unit = Fraction(1, math.lcm(*(y.denominator for y in exact)))
    largest = max(exact)
    if largest / unit > MAX_PRICE_UNITS:
        unit = largest / MAX_PRICE_UNITS
    return [round(y / unit) for y in exact], unit


def rounding(fn: RowFn, schema: Schema) -> Fraction:
    """A bound for arithmetic on columns; for other functions, of which little is known, what their terms have."""
    if isinstance(fn, Col):
        column = schema.find(fn.name)
        return column.step / 2 if isinstance(column, Real) else Fraction(0)
    if isinstance(fn, (Clip, Fill)):
        return rounding(fn.item, schema)
    inner = [rounding(part, schema) for part in fn.parts()]
    if not isinstance(fn, Arith):
        return max(inner, default=Fraction(0))
    ends = [bounded(part, schema)[:2] for part in (fn.left, fn.right)]
    left, right = (max(map(abs, pair)) for pair in ends)
    if fn.op == "*":
        carried = left * inner[1] + right * inner[0] + inner[0] * inner[1]
    elif fn.op == "/":  # bounded, so the divisor is not zero; the grid has it no nearer to it than its bounds
        least = min(map(abs, ends[1]))
        carried = inner[0] / least + left * inner[1] / least**2
    else:
        carried = inner[0] + inner[1]
    low, high, _ = bounded(fn, schema)
    return carried + max(abs(low), abs(high)) * DOUBLE_ROUNDING


@shows_progress
@timed
def agnostic(
    db: Oracle,
    hypotheses: list[str] | Mapping[str, RowFn | str],
    labels: str | RowFn,
    *,
    spend: Loss | None = None,
    progress: Progress | None = None,
    timeout: float | None = None,  # noqa: ARG001 - `timed` reads it
) -> Selected:
    """Draw a hypothesis by the number of rows on which it errs; nothing else is released.

    A row on which a hypothesis says nothing counts as an error, and so does, for all of them, one without a label.
    Privacy: a row adds an error to some hypotheses and takes none from any: the span is one row under add_remove,
    two where one is exchanged for another; the plan finds it (SR5).
    Accuracy: with `agnostic_n` rows drawn independently the true error is within alpha of the best hypothesis's
    with probability 1 - beta; of the rows themselves, `within(beta)` errors more than the best [S3.28].
    Source: S3.28, Theorem 7 with the grouping of E39.

    Args:
        db: the database, or a far curator.
        hypotheses: columns of truth values; or from Python names with a condition each.
        labels: the column that is to be predicted, a truth value; or from Python a condition.
        spend: what the choice costs; its kind chooses the mechanism.
        progress: called with how many asks are done, and how many there are.
        timeout: for how many seconds it may go on; what was charged by then stays charged.

    Raises:
        QuestionError: `bad-parameter`, or `wrong-kind`: what is no truth value; nothing is spent.
    """
    spending = SpendPlan(db, spend, progress)
    schema = spending.facts.schema
    label = named(labels)
    told = _named(hypotheses, spending.facts)
    for fn in (label, *told.values()):
        if not isinstance(fn.kind(schema), Truth):
            raise QuestionError("wrong-kind", "Hypotheses and labels are truth values: Bool columns, conditions.")
    errors = tuple(Fill(Compare("!=", fn, label), value=True) for fn in told.values())
    question = Choose(Sums(errors, None, (EVERY,)), Diagonal((-1,) * len(errors)))
    return select(spending, question, tuple(told), Fraction(1), "number of rows told rightly")


def agnostic_n(hypotheses: int, alpha: float, beta: float, epsilon: float, rows: int = 1) -> int:
    """How many rows suffice: n >= max((8/alpha^2) ln(4|C|/beta), (4k/(epsilon alpha)) ln(2|C|/beta)).

    The first makes all empirical errors uniformly within alpha/4 of the true ones but for beta/2 (Hoeffding and a
    union bound); the second makes the chosen one's within alpha/2 of the best's but for beta/2 [S3.9], in every
    relation. ln|C| stands inside the product: n = O((ln|C| + ln(1/beta)) max{1/(epsilon alpha), 1/alpha^2}) (E39).

    Args:
        hypotheses: how many there are.
        alpha: how much more often than the best the chosen one may err.
        beta: the probability with which it may fail.
        epsilon: the spend.
        rows: how many rows a person has at most.
    """
    many, most = whole(hypotheses, "hypotheses", 1, MAX_NUMBER), whole(rows, "rows", 1, MAX_NUMBER)
    far, rate, spent = between(alpha, "alpha"), between(beta, "beta"), number(epsilon)
    checked(spent > 0, "epsilon is a positive number.")
    sampled = 8 / far**2 * math.log(4 * many / rate)
    private = 4 * most / (spent * far) * math.log(2 * many / rate)
    return math.ceil(max(sampled, private))


def _read(told: Mapping[str, object], facts: Facts) -> dict[str, RowFn]:
    """Row functions by their names; a condition may be a text."""
    return {name: cast("RowFn", row_function(value, facts)) for name, value in told.items()}


def _named(hypotheses: Sequence[str] | Mapping[str, RowFn | str], facts: Facts) -> dict[str, RowFn]:
    if isinstance(hypotheses, Mapping):
        told = _read(hypotheses, facts)
    else:
        given = list(hypotheses) if isinstance(hypotheses, (list, tuple)) else []
        checked(all(isinstance(name, str) for name in given), "hypotheses are columns, or names with a condition each.")
        told = {name: named(name) for name in given}
    checked(all(isinstance(fn, RowFn) for fn in told.values()), "A hypothesis is a row function: sulq.col(...) > 3.")
    if not 1 <= len(told) <= MAX_CANDIDATES:
        raise QuestionError("too-large", f"There are 1 to {MAX_CANDIDATES:,} hypotheses; {len(told):,} are given.")
    return told
