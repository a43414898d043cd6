"""Linear regression as it is asked: the questions in turn, then the table of coefficients."""

from __future__ import annotations

import numpy as np

from sulq.answers.oracle import Oracle
from sulq.errors import QuestionError
from sulq.inference import ols
from sulq.inference.design import regressors, term
from sulq.inference.purchase import InferenceTerms, Purchase
from sulq.inference.result import EstimateTable, estimates_of
from sulq.inference.titles import title
from sulq.language.question import Sums
from sulq.language.rowfn import Outer, named

UNKNOWN: str = "Noise hides how the columns vary: the coefficients are unknown. Spend more, or take fewer columns."


def least_squares(
    oracle: Oracle,
    y: object,
    x: object,
    *,
    terms: InferenceTerms,
) -> EstimateTable:
    """Least squares of y on columns, with standard errors.

    Privacy: two questions at most, each certified and debited; the second follows from what the first released.
    Accuracy: asymptotic (docs/theory/standard-errors.md), measured in tests/inference/test_ols_coverage.py.
    """
    level, facts = terms.level, oracle.facts
    design, explained = regressors(facts, x), term(facts, named(y))
    if explained.name in design.names:
        raise QuestionError("bad-question", f"{explained.name} cannot explain itself.")
    vector = design.vector(explained.row)
    products = Sums((Outer(vector),), terms.where)
    pay = Purchase.of(oracle, products, terms=terms, part=1 - ols.SQUARES_PART)
    trial = ols.trial_squares(vector, terms.where)
    pay.plan.foresee(trial, ols.SQUARES_PART)  # refused now, or not at all
    pay.plan.plan(2, products, trial)
    released = pay.ask(products, 1 - ols.SQUARES_PART)
    units, constant = design.units(explained.middle, explained.half)
    public = pay.size if terms.where is None and not vector.kind(facts.schema).nullable else None
    found = ols.moments_of(released.values()[0], released.noise, units=units, size=public)
    heading = f"Least squares: {title(named(y))} on {', '.join(design.names[1:])}"
    if not found.solution.clear:
        empty = np.zeros(len(units))
        table = estimates_of(design.names, empty, empty, reach=empty, p=empty, known=False)
        return EstimateTable(heading, table, level, float(found.size), pay.bill(), pay.notes(UNKNOWN))
    clip = float(ols.clip_of(found.size, pay.deviation(trial, ols.SQUARES_PART)))
    second = pay.ask(ols.squares(vector, found, clip, terms.where), ols.SQUARES_PART)
    law_ = ols.error_law(found, second.values()[0], second.deviations(), rows=pay.rows)
    coefficients = units @ found.solution.coefficients + constant
    table = estimates_of(
        design.names, coefficients, np.sqrt(law_.variance),
        reach=law_.reach(level), p=law_.p_value(np.abs(coefficients)),
    )  # fmt: skip
    return EstimateTable(heading, table, level, float(found.size), pay.bill(), pay.notes())
