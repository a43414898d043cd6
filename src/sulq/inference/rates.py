"""Proportions of groups, their differences and lifts: an A/B test from one count a row.

A row is a success or a failure of one group, so that all counts together cost as one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from sulq.answers.oracle import Oracle
from sulq.answers.released import Noise
from sulq.errors import QuestionError
from sulq.inference.error_law import ErrorLaw, noise_law
from sulq.inference.groups import groups_of, named_groups
from sulq.inference.purchase import InferenceTerms, Purchase
from sulq.inference.result import EstimateRow, EstimateTable, unknown
from sulq.inference.titles import title
from sulq.language.kinds import Floats, Truth, Truths
from sulq.language.question import Sums
from sulq.language.rowfn import Bernstein, named

CLEAR: Final = 5.0  # deviations of its noise that a number of rows, and of successes for a lift, must have
HIDDEN: Final = "Noise hides how many rows a group has, or its successes: what is unknown says so."


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """Proportions, one a group on the last axis; `weights`: how the noise of successes and failures enters each."""

    size: Floats
    rate: Floats
    variance: Floats
    weights: Floats
    clear: Truths
    positive: Truths


def rates_of(sums: Floats, deviation: float, *, rows: int = 1) -> Rates:
    """Read the numbers of successes and failures on the last axis; `deviation`: of the noise in each."""
    size = sums.sum(axis=-1)
    clear = size > CLEAR * np.sqrt(2) * deviation
    n = np.where(clear, np.maximum(size, 2.0), 2.0)
    rate = np.clip(sums[..., 0] / n, 0.0, 1.0)
    weights = np.stack([1 - rate, -rate], axis=-1) / n[..., None]
    inner = (rate * n + 1) / (n + 2)  # not nothing where all rows are alike
    positive = clear & (sums[..., 0] > CLEAR * np.maximum(deviation, np.sqrt(np.maximum(sums[..., 0], 1.0)) / 2))
    return Rates(n, rate, rows * inner * (1 - inner) / n, weights, clear, positive)


def rate_law(found: Rates, noise: tuple[Noise, ...]) -> ErrorLaw:
    """The laws of the proportions' errors."""
    return ErrorLaw(found.variance, _freedom(found.size), *noise_law(noise, found.weights))


def contrast_law(found: Rates, noise: tuple[Noise, ...], slopes: Floats) -> ErrorLaw:
    """The law of a function of the rates, of these derivatives by each of them."""
    gaussian, laplace = noise_law(noise, found.weights * slopes[..., None])
    sampling = (slopes**2 * found.variance).sum(axis=-1)
    freedom = _freedom(found.size.min(axis=-1))
    return ErrorLaw(sampling, freedom, gaussian.sum(axis=-1), laplace.reshape(*sampling.shape, -1))


def _freedom(size: Floats) -> Floats:
    return np.maximum(size - 1, 3.0)


def proportions(
    oracle: Oracle,
    success: object,
    by: object,
    *,
    groups: object,
    terms: InferenceTerms,
) -> EstimateTable:
    """The proportion of successes in each group, and how the others differ from the first."""
    level, facts, fn = terms.level, oracle.facts, named(success)
    if not isinstance(fn.kind(facts.schema), Truth):
        raise QuestionError(
            "wrong-kind", f"{title(fn)} is neither true nor false.", 'Give a condition: col("plan") == "paid".'
        )
    split = None if by is None else groups_of(facts, by, groups)
    question = Sums((Bernstein(fn),), terms.where, () if split is None else (split.key,))
    pay = Purchase.of(oracle, question, terms=terms)
    pay.plan.plan(1, question)
    released = pay.ask(question, 1)
    sums = released.values()[list((0,) if split is None else split.cells)]
    found = rates_of(sums, released.noise[0].deviation, rows=pay.rows)
    names = [title(fn)] if split is None else named_groups(split)
    own = rate_law(found, released.noise)
    table = [
        _row(name, float(p), float(e), float(reach), known=bool(known))
        for name, p, e, reach, known in zip(
            names, found.rate, np.sqrt(own.variance), own.reach(level), found.clear, strict=True
        )
    ]
    for i in range(1, len(names)):
        table += _compared(found, released.noise, i, level, of=f" {names[i]}" if len(names) > 2 else "")
    hidden = () if all(np.isfinite(one.se) for one in table) else (HIDDEN,)
    beside = (
        f"difference, lift: the rate beside that of {names[0]}; p: that both are alike.",
        "The interval of a lift is that of the logarithm of the ratio.",
    )
    heading = f"Proportions: {title(fn)}" + ("" if split is None else f" by {split.name}")
    notes = pay.notes(*(() if split is None else beside), *hidden)
    return EstimateTable(heading, tuple(table), level, float(found.size.sum()), pay.bill(), notes)


def _row(name: str, value: float, error: float, reach: float, *, known: bool) -> EstimateRow:
    if not known:
        return unknown(name, 0.0, 1.0)
    return EstimateRow(name, value, error, max(value - reach, 0.0), min(value + reach, 1.0), float("nan"))


def _compared(found: Rates, noise: tuple[Noise, ...], i: int, level: float, *, of: str) -> list[EstimateRow]:
    """The difference and the lift of a group beside the first."""
    pair = [0, i]
    two = Rates(*(getattr(found, name)[pair] for name in Rates.__slots__))
    apart = float(two.rate[1] - two.rate[0])
    plain = contrast_law(two, noise, np.array([-1.0, 1.0]))
    rows = [unknown(f"difference{of}", -1.0, 1.0), unknown(f"lift{of}", -1.0)]
    if two.clear.all():
        reach, p = float(plain.reach(level)), float(plain.p_value(np.array(abs(apart))))
        rows[0] = EstimateRow(
            f"difference{of}",
            apart,
            float(np.sqrt(plain.variance)),
            max(apart - reach, -1.0),
            min(apart + reach, 1.0),
            p,
        )
    if two.positive.all():
        logs = contrast_law(two, noise, np.array([-1.0, 1.0]) / two.rate)
        ratio, reach = float(two.rate[1] / two.rate[0]), float(logs.reach(level))
        p = float(logs.p_value(np.array(abs(np.log(ratio)))))
        rows[1] = EstimateRow(
            f"lift{of}", ratio - 1, ratio * float(np.sqrt(logs.variance)),
            ratio * float(np.exp(-reach)) - 1, ratio * float(np.exp(reach)) - 1, p,
        )  # fmt: skip
    return rows
