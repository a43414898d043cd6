"""Logistic regression as it is asked: three questions, then the table of coefficients."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from sulq.answers.oracle import Oracle
from sulq.errors import QuestionError
from sulq.inference import logit
from sulq.inference.design import Regressors, regressors
from sulq.inference.purchase import InferenceTerms, Purchase
from sulq.inference.regression import UNKNOWN
from sulq.inference.result import EstimateTable, estimates_of
from sulq.inference.titles import title
from sulq.language.kinds import Floats, Truth
from sulq.language.question import Sums
from sulq.language.rowfn import Dot, Outer, RowFn, Scaled, Vector, named
from sulq.language.rowfn.vectors import MAX_BITS
from sulq.learn.linear.scores import curve_table

OUTER_BITS = 10  # of numbers in products that are multiplied once more
WEIGHT_BITS = 10
SCORE_BITS = 20
BY_MODEL = "The sampling variance is that of the logistic model (Fisher's information)."


class LogitQuestions:
    """The questions of one fit."""

    def __init__(self, design: Regressors, y: RowFn, where: RowFn | None) -> None:
        self.vector, self.coarse = design.vector(), Vector(design.vector().items, OUTER_BITS)
        self.y, self.where = y, where

    def moments(self) -> Sums:
        """Products of the terms two by two, and with y."""
        share = Fraction(logit.MOMENT_SHARE)
        return Sums((Outer(self.vector), Scaled(self.vector, self.y - 0.5)), self.where, shares=(share, 1 - share))

    def gradient(self, scores: Floats, size: float) -> Sums:
        """The sum of (y - p)(1, x)."""
        chance = self._curve(scores, size, lambda x: 1 / (1 + np.exp(-x)))
        return Sums((Scaled(self.vector, self.y - chance, MAX_BITS - 1),), self.where)

    def last(self, scores: Floats, size: float) -> Sums:
        """The gradient, with the sum of p(1 - p)(1, x)(1, x)'."""
        weight = self._curve(scores, size, lambda x: 1 / (2 + np.exp(x) + np.exp(-x)))
        known = self.y.is_missing()
        bent = Scaled(Outer(self.coarse), weight, WEIGHT_BITS)
        share = Fraction(logit.GRADIENT_SHARE)
        where = ~known if self.where is None else self.where & ~known
        return Sums((*self.gradient(scores, size).values, bent), where, shares=(share, 1 - share))

    def _curve(self, scores: Floats, size: float, curve: object) -> RowFn:
        return curve_table(Dot(self.vector, tuple(scores.tolist()), SCORE_BITS), curve, logit.cells(size))  # type: ignore[arg-type]


def logistic_regression(
    oracle: Oracle,
    y: object,
    x: object,
    *,
    terms: InferenceTerms,
) -> EstimateTable:
    """Logistic regression of a truth value on columns, with standard errors.

    Privacy: three questions at most, each certified and debited; later ones follow from what earlier ones released.
    Accuracy: asymptotic (docs/theory/standard-errors.md), measured in tests/inference/test_logit_coverage.py.
    """
    level, facts, outcome = terms.level, oracle.facts, named(y)
    if not isinstance(outcome.kind(facts.schema), Truth):
        raise QuestionError(
            "wrong-kind", f"{title(outcome)} is neither true nor false.", 'Give a condition: col("plan") == "paid".'
        )
    design = regressors(facts, x)
    if title(outcome) in design.names:
        raise QuestionError("bad-question", f"{title(outcome)} cannot explain itself.")
    units, _ = design.units(0.0, 1.0)
    asked = LogitQuestions(design, outcome, terms.where)
    first, m = asked.moments(), len(units)
    pay = Purchase.of(oracle, first, terms=terms, part=logit.PARTS[0])
    later = asked.gradient(np.zeros(m), 1.0), asked.last(np.zeros(m), 1.0)
    for question, part in zip(later, logit.PARTS[1:], strict=True):
        pay.plan.foresee(question, part)  # refused now, or not at all
    pay.plan.plan(3, first, *later)
    released = pay.ask(first, logit.PARTS[0])
    values = released.values()[0]
    start = logit.started(values[:-m], values[-m:], released.noise)
    heading, size = f"Logistic regression: {title(outcome)} on {', '.join(design.names[1:])}", float(start.size)
    if not start.clear:
        empty = np.zeros(m)
        table = estimates_of(design.names, empty, empty, reach=empty, p=empty, known=False)
        return EstimateTable(heading, table, level, size, pay.bill(), pay.notes(UNKNOWN))
    second = pay.ask(asked.gradient(start.scores, size), logit.PARTS[1])
    scores = logit.step(start, second.values()[0])
    third = pay.ask(asked.last(scores, size), logit.PARTS[2])
    sums = third.values()[0]
    coefficients, errors = logit.finish(scores, start, (sums[:m], sums[m:]), third.noise, units=units, rows=pay.rows)
    table = estimates_of(
        design.names, coefficients, np.sqrt(errors.variance),
        reach=errors.reach(level), p=errors.p_value(np.abs(coefficients)),
    )  # fmt: skip
    return EstimateTable(heading, table, level, size, pay.bill(), pay.notes(BY_MODEL))
