"""Who is in the data: tracing people through many marginals, and an audit by canaries in one run (T63, T64)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, cast

import numpy as np

from sulq.answers.answer import Answer
from sulq.audit.door import Door
from sulq.audit.finding import Finding, allowed_by
from sulq.audit.interval import binomial_interval
from sulq.language.kinds import Floats, Truths
from sulq.language.privacy import Loss
from sulq.language.question import Sums
from sulq.language.rowfn import Each, Lit, RowFn

SURE: Final = 1e-7


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
    answer = cast("Answer", oracle.ask(Sums((attributes,)), spend=spend))
    counts = np.asarray(answer.released.values(), dtype=np.float64).ravel()
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
    answer = cast("Answer", oracle.ask(Sums((Lit(1),), by=(Each(person),)), spend=spend))
    counts = np.asarray(answer.released.values(), dtype=np.float64).ravel()[: len(inside)]
    right = int(((counts > 0.5) == np.asarray(inside, dtype=np.bool_)).sum())
    allowed = allowed_by(oracle.facts, presence=True)
    return Finding(
        "canaries", right, len(inside), allowed, f"epsilon at least {one_run_epsilon(right, len(inside)):.3g}"
    )


def one_run_epsilon(right: int, guesses: int, alpha: float = SURE) -> float:
    """A lower bound of pure epsilon from right guesses about independent fair bits, wrong with chance alpha [SNJ23].

    The number of right guesses is at most a binomial one of chance e^epsilon/(1 + e^epsilon): so is its lower end.
    """
    low, _ = binomial_interval(right, guesses, alpha)
    return max(0.0, math.log(low) - math.log1p(-low)) if low > 0.0 else 0.0
