"""Reconstruction from subset sums: all secret bits at once, by least squares or a linear program.

Noise must grow with the number of questions: what is far below sqrt(n) on about n sums gives nearly all of n
bits away [DN03; S3.30, S4.26].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, cast

import highspy
import numpy as np

from sulq.answers.answer import Answer
from sulq.audit.door import Door
from sulq.audit.finding import Finding, allowed_by
from sulq.errors import QuestionError
from sulq.language.kinds import Floats, Truths
from sulq.language.privacy import Loss
from sulq.language.question import Sums
from sulq.language.rowfn import RowFn, lookup

Method = Literal["least squares", "linear program"]
METHODS: Final[tuple[Method, ...]] = ("least squares", "linear program")


def subsets(queries: int, people: int, random: np.random.Generator) -> Floats:
    """Random subsets of the people, a row of zeros and ones each."""
    return random.integers(0, 2, (queries, people)).astype(np.float64)


def least_squares(matrix: Floats, answers: Floats) -> Truths:
    """The bits nearest to the answers in the sum of squares, rounded."""
    # By the normal equations: of random zeros and ones they are well conditioned, and far smaller.
    found = np.linalg.lstsq(matrix.T @ matrix, matrix.T @ answers, rcond=1e-10)[0]
    return found > 0.5


def linear_program(matrix: Floats, answers: Floats) -> Truths:
    """The bits, from 0 to 1 each, whose subset sums are off by the least in all, rounded [DN03].

    Minimise the sum of the gaps u + v subject to matrix x + u - v = answers: robust where a few answers
    are far off, which heavy-tailed noise makes them.
    """
    queries, people = matrix.shape
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = people + 2 * queries, queries
    model.col_cost_ = np.concatenate([np.zeros(people), np.ones(2 * queries)])
    model.col_lower_ = np.zeros(people + 2 * queries)
    model.col_upper_ = np.concatenate([np.ones(people), np.full(2 * queries, highspy.kHighsInf)])
    model.row_lower_ = model.row_upper_ = answers
    column, place = np.nonzero(matrix.T)
    each = np.arange(queries)
    starts = np.concatenate([[0], np.cumsum(np.append(np.count_nonzero(matrix, axis=0), np.ones(2 * queries)))])
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_ = starts.astype(np.int32)
    model.a_matrix_.index_ = np.concatenate([place, each, each]).astype(np.int32)
    model.a_matrix_.value_ = np.concatenate([matrix.T[column, place], np.ones(queries), -np.ones(queries)])
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    for name, value in (("output_flag", False), ("threads", 1)):
        solver.setOptionValue(name, value)
    solver.passModel(model)
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        raise QuestionError("bad-parameter", "The linear program was not solved.")
    return np.array(solver.getSolution().col_value[:people]) > 0.5


def reconstruct(
    oracle: Door,
    *,
    person: RowFn,
    secret: RowFn,
    truth: Sequence[bool] | Truths,
    spend: Loss | None,
    queries: int,
    random: np.random.Generator,
    method: Method = "least squares",
) -> Finding:
    """Ask for the secret's count among many random subsets at once, and guess everybody's bit.

    Args:
        oracle: Whom to ask.
        person: A key that numbers the people from 0, which the attacker knows of everybody.
        secret: A condition, true of some; what is guessed.
        truth: Who has it: known to the auditor, who made the data.
        spend: What to pay in all; None under a SubLinear budget, where each subset is a query.
        queries: How many subsets.
        random: Draws the subsets.
        method: How the answers are solved.
    """
    bits = np.asarray(truth, dtype=np.bool_)
    matrix = subsets(queries, len(bits), random)
    table = [tuple(int(entry) for entry in column) for column in matrix.T]
    answer = cast("Answer", oracle.ask(Sums((lookup(person, table),), where=secret), spend=spend))
    answers = np.asarray(answer.released.values(), dtype=np.float64).ravel()
    solve = linear_program if method == "linear program" else least_squares
    right = int((solve(matrix, answers) == bits).sum())
    allowed = allowed_by(oracle.facts, presence=False)
    return Finding(f"reconstruction ({method})", right, len(bits), allowed, f"{queries} subsets of {len(bits)} people")
