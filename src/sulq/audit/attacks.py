"""Attacks that must fail: reconstruction, differencing, the tracker, averaging, tracing people, canaries.

Each asks as any analyst may and reports a `Finding`: what it guessed rightly, beside what the guarantee allows.
Source: reconstruction from subset sums [DN03; S3.30, S4.26]: noise far below sqrt(n) on about n sums gives nearly all
of n bits away. Denning, Denning and Schwartz, "The tracker" [DDS79; T62]. Averaging (T10, T62). Tracing people
through many marginals, and an audit by canaries in one run (T63, T64).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal, cast

import highspy
import numpy as np

from sulq.answers.answer import Answer, Answers
from sulq.answers.oracle import Oracle
from sulq.audit.meaning import Door, Finding, allowed_by
from sulq.audit.statistics import binomial_interval
from sulq.errors import QuestionError
from sulq.language.kinds import Floats, Truths
from sulq.language.privacy import Epsilon, Loss, Rho
from sulq.language.question import Sums, Together
from sulq.language.rowfn import Each, Lit, RowFn, lookup

Method = Literal["least squares", "linear program"]
METHODS: Final[tuple[Method, ...]] = ("least squares", "linear program")
MAX_LUCK: Final = 1e-7
Targets = Sequence[tuple[RowFn, bool]]  # a condition that singles a person out, and whether they have the secret


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
    answers = _numbers(oracle.ask(Sums((lookup(person, table),), where=secret), spend=spend))
    solve = linear_program if method == "linear program" else least_squares
    right = int((solve(matrix, answers) == bits).sum())
    allowed = allowed_by(oracle.facts, presence=False)
    return Finding(f"reconstruction ({method})", right, len(bits), allowed, f"{queries} subsets of {len(bits)} people")


def differencing(oracle: Door, *, targets: Targets, secret: RowFn, spend: Loss | None) -> Finding:
    """Count the secret among all, and among all but the target; the difference is the target's own bit.

    Args:
        oracle: Whom to ask.
        targets: For each person a condition that singles them out, and whether they have the secret.
        secret: A condition, true of some.
        spend: What to pay in all.
    """
    counts = _counts(oracle, [secret, *(secret & ~target for target, _ in targets)], spend)
    guesses = [counts[0] - count > 0.5 for count in counts[1:]]
    return _bit_guesses("differencing", oracle, guesses, targets, "two counts a person")


def tracker(oracle: Door, *, targets: Targets, secret: RowFn, padding: RowFn, spend: Loss | None) -> Finding:
    """Four large counts a person: #(C or T) + #(not C or T) - #C - #(not C) is the count of T alone.

    `padding` is the condition C, true of about half of the rows, so that no group asked about is small.
    """
    asked = [padding, ~padding]
    for target, _ in targets:
        asked += [padding | (target & secret), ~padding | (target & secret)]
    counts = _counts(oracle, asked, spend)
    whole, pairs = counts[0] + counts[1], zip(counts[2::2], counts[3::2], strict=True)
    guesses = [one + other - whole > 0.5 for one, other in pairs]
    return _bit_guesses("tracker", oracle, guesses, targets, "four counts a person")


def averaging(
    oracle: Door, *, target: RowFn, secret: RowFn, has: bool, spend: Epsilon | Rho, repeats: int = 16
) -> Finding:
    """Count one person's bit many times, each time for its part of the spend, and guess from the mean.

    The best an attacker can do with a budget is one ask: the mean of k answers at a kth of the price each is
    noisier by sqrt(k), for Laplace noise, and as noisy for Gaussian.

    Args:
        oracle: Whom to ask.
        target: A condition that singles the person out.
        secret: A condition, true of some.
        has: Whether the person has the secret: known to the auditor.
        spend: What to pay in all.
        repeats: How often to ask.
    """
    question = Sums((Lit(1),), where=target & secret)
    share = spend.share(1 / repeats)
    return _mean_guess(oracle, [_number(oracle.ask(question, spend=share)) for _ in range(repeats)], has=has)


def rewording(
    oracle: Oracle, *, target: RowFn, secret: RowFn, has: bool, spend: Epsilon | Rho, repeats: int = 16
) -> Finding:
    """Ask the same in other words each time, at the full price, where stored answers are given again (SR12).

    The curator sees that they mean the same: the first is charged, the others are its number again and tell
    nothing more.
    """
    words = (target & secret, secret & target)
    asked = [_number(oracle.ask(Sums((Lit(1),), where=words[i % 2]), spend=spend, reuse=True)) for i in range(repeats)]
    return _mean_guess(oracle, asked, has=has)


def membership(
    oracle: Door,
    *,
    attributes: RowFn,
    candidates: Floats,
    inside: Sequence[bool] | Truths,
    frequencies: Floats,
    spend: Loss | None,
) -> Finding:
    """Release how many people have each of many attributes, and tell who is among them [DSSUV15].

    A candidate's score is the inner product of their attributes and the released counts, both less what
    the population would give. Those in the data pull the counts towards themselves.

    Args:
        oracle: Whom to ask.
        attributes: A vector of zeros and ones a row.
        candidates: The attributes of each candidate, a row each; about half of them in the data.
        inside: Which of them are in it: known to the auditor.
        frequencies: How common each attribute is in the population.
        spend: What to pay.
    """
    counts = _numbers(oracle.ask(Sums((attributes,)), spend=spend))
    among = np.asarray(inside, dtype=np.bool_)
    away = candidates - frequencies
    weights = away / (frequencies * (1.0 - frequencies))
    scores = weights @ (counts - counts.sum() / frequencies.sum() * frequencies)
    pull = (weights * away).sum(axis=1)  # what a candidate in the data adds to their own score
    right = int(((scores > pull / 2.0) == among).sum())
    told = f"{candidates.shape[1]} marginals, {len(among)} candidates"
    return Finding("membership", right, len(among), allowed_by(oracle.facts, presence=True), told)


def canaries(oracle: Door, *, person: RowFn, inside: Sequence[bool] | Truths, spend: Loss | None) -> Finding:
    """Tell which canaries are in the data from one histogram: many people audited in a single run [SNJ23; T64].

    Each canary was put in or left out by a fair coin of its own and is alone in its cell of `person`.
    """
    counts = _numbers(oracle.ask(Sums((Lit(1),), by=(Each(person),)), spend=spend))[: len(inside)]
    right = int(((counts > 0.5) == np.asarray(inside, dtype=np.bool_)).sum())
    allowed = allowed_by(oracle.facts, presence=True)
    return Finding(
        "canaries", right, len(inside), allowed, f"epsilon at least {one_run_epsilon(right, len(inside)):.3g}"
    )


def one_run_epsilon(right: int, guesses: int, alpha: float = MAX_LUCK) -> float:
    """A lower bound of pure epsilon from right guesses about independent fair bits, wrong with chance alpha [SNJ23].

    The number of right guesses is at most a binomial one of chance e^epsilon/(1 + e^epsilon): so is its lower end.
    """
    low, _ = binomial_interval(right, guesses, alpha)
    return max(0.0, math.log(low) - math.log1p(-low)) if low > 0.0 else 0.0


def _numbers(answer: object) -> Floats:
    """The released numbers of one answer."""
    return np.asarray(cast("Answer", answer).released.values(), dtype=np.float64).ravel()


def _number(answer: object) -> float:
    return float(_numbers(answer)[0])


def _counts(oracle: Door, conditions: Sequence[RowFn], spend: Loss | None) -> list[float]:
    """Counts by conditions, asked together at one price."""
    asked = Together(tuple(Sums((Lit(1),), where=condition) for condition in conditions))
    return [_number(answer) for answer in cast("Answers", oracle.ask(asked, spend=spend))]


def _bit_guesses(name: str, oracle: Door, guesses: Sequence[bool], targets: Targets, told: str) -> Finding:
    right = sum(guess == has for guess, (_, has) in zip(guesses, targets, strict=True))
    return Finding(name, right, len(targets), allowed_by(oracle.facts, presence=False), told)


def _mean_guess(oracle: Door, answers: list[float], *, has: bool) -> Finding:
    guess = math.fsum(answers) / len(answers) > 0.5
    told = f"{len(answers)} answers, {len(set(answers))} of them different"
    return Finding("averaging", int(guess == has), 1, allowed_by(oracle.facts, presence=False), told)
