"""t tests: means of one group or two, by Welch, from three sums a group that cost no more than one.

A group's sums are those of Bernstein's terms of degree two, p, q, r: with t in [0, 1] its number of rows is
n = p + q + r, its mean (p + q/2)/n, its variance (p r - q^2/4)/n^2. A row lies in one group, so all of them are asked
at the price of one.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from sulq.answers.oracle import Oracle
from sulq.answers.released import Noise
from sulq.errors import QuestionError
from sulq.forms.parameters import number
from sulq.inference.error_law import ErrorLaw, noise_law
from sulq.inference.groups import groups_of, named_groups
from sulq.inference.purchase import InferenceTerms, Purchase
from sulq.inference.result import EstimateRow, EstimateTable, unknown
from sulq.inference.titles import title
from sulq.language.facts import Facts
from sulq.language.kinds import Floats, Truths
from sulq.language.question import Sums
from sulq.language.rowfn import Bernstein, RowFn, named

CLEAR: Final = 5.0  # deviations of its noise that a number of rows must have
HIDDEN: Final = "Noise hides how many rows a group has: its mean is unknown."


@dataclass(frozen=True, slots=True, eq=False)
class GroupMeans:
    """Means of values in [0, 1], one a group on the last axis; `weights`: how the noise of p, q, r enters each.

    `variance`: of a mean, by sampling, and `freedom`: the degrees of freedom it is estimated with.
    """

    size: Floats
    mean: Floats
    variance: Floats
    freedom: Floats
    weights: Floats
    clear: Truths


def group_means(sums: Floats, deviation: float, *, rows: int = 1) -> GroupMeans:
    """Read the sums p, q, r, on the last axis, of values in [0, 1]; `deviation`: of the noise in each."""
    p, q, r = (sums[..., i] for i in range(3))
    size = p + q + r
    clear = size > CLEAR * np.sqrt(3) * deviation
    n = np.where(clear, np.maximum(size, 2.0), 2.0)
    mean = np.clip((p + q / 2) / n, 0.0, 1.0)
    weights = (np.array([1.0, 0.5, 0.0]) - mean[..., None]) / n[..., None]
    slopes = np.stack([r / n**2, -q / (2 * n**2), p / n**2], axis=-1)
    spread = (p * r - q**2 / 4) / n**2
    slopes = slopes - 2 * spread[..., None] / n[..., None]
    blur = deviation * np.sqrt((slopes**2).sum(axis=-1))
    spread = np.clip(np.maximum(spread, blur / 4), 1e-300, 0.25)
    freedom = 2 / ((blur / spread) ** 2 + 2 / np.maximum(n - 1, 1.0))
    return GroupMeans(n, mean, rows * spread / np.maximum(n - 1, 1.0), freedom, weights, clear)


def mean_law(found: GroupMeans, noise: tuple[Noise, ...]) -> ErrorLaw:
    """The laws of the means' errors."""
    return ErrorLaw(found.variance, found.freedom, *noise_law(noise, found.weights))


def difference_law(found: GroupMeans, noise: tuple[Noise, ...]) -> ErrorLaw:
    """The law of the error of the first mean less the second: Welch's, with noise of its own in each group."""
    each = found.variance.sum(axis=-1)
    freedom = each**2 / (found.variance**2 / found.freedom).sum(axis=-1)
    gaussian, laplace = noise_law(noise, found.weights)
    return ErrorLaw(each, freedom, gaussian.sum(axis=-1), laplace.reshape(*each.shape, -1))


def t_test(
    oracle: Oracle,
    value: object,
    by: object,
    *,
    groups: object,
    paired: object,
    mean: float,
    terms: InferenceTerms,
) -> EstimateTable:
    """The mean of one group beside a number, or of two beside each other."""
    level, facts, fn = terms.level, oracle.facts, named(value)
    if by is not None and (paired is not None or number(mean) != 0):
        raise QuestionError("bad-question", "Two groups (by=) are not paired, nor beside a number (mean=).")
    name = title(fn)
    if paired is not None:
        fn = fn - named(paired)
        name = title(fn)
    lo, whole = _scale(facts, fn)
    width = float(whole)
    split = None if by is None else groups_of(facts, by, groups, most=2)
    question = Sums((Bernstein(fn, 2),), terms.where, () if split is None else (split.key,))
    pay = Purchase.of(oracle, question, terms=terms)
    pay.plan.plan(1, question)
    released = pay.ask(question, 1)
    cells = (0,) if split is None else split.cells
    sums = released.values()[list(cells)] / width**2
    noise = tuple(Noise(one.law, one.step / whole**2, one.width) for one in released.noise)
    found = group_means(sums, noise[0].deviation, rows=pay.rows)
    own = mean_law(found, noise)
    reaches, ps = own.reach(level), own.p_value(np.abs(lo + width * found.mean - number(mean)) / width)
    low, high = lo, lo + width
    names = (name,) if split is None else named_groups(split)
    table = [
        _estimate(one, lo + width * m, width * e, width * reach, p=p, ends=(low, high), known=known)
        for one, m, e, reach, p, known in zip(
            names, found.mean, np.sqrt(own.variance), reaches, ps, found.clear, strict=True
        )
    ]
    if split is not None:
        both, apart = difference_law(found, noise), float(found.mean[0] - found.mean[1])
        table.append(
            _estimate(
                "difference", width * apart, width * float(np.sqrt(both.variance)),
                width * float(both.reach(level)), p=float(both.p_value(np.abs(np.array(apart)))),
                ends=(-width, width), known=bool(found.clear.all()),
            )
        )  # fmt: skip
        table[:2] = [EstimateRow(one.term, one.coef, one.se, one.low, one.high, float("nan")) for one in table[:2]]
    heading = f"t test: {name}" if split is None else f"t test (Welch): {name} by {split.name}"
    beside = () if split is not None else (f"p: that the mean is {number(mean):g}.",)
    beside = ("difference: the first group less the second; p: that there is none.",) if split else beside
    hidden = () if found.clear.all() else (HIDDEN,)
    return EstimateTable(heading, tuple(table), level, float(found.size.sum()), pay.bill(), pay.notes(*beside, *hidden))


def _estimate(
    name: str, value: float, error: float, reach: float, *, p: float, ends: tuple[float, float], known: bool
) -> EstimateRow:
    """An estimate within what its bounds allow."""
    if not known:
        return unknown(name, *ends)
    low, high = max(value - reach, ends[0]), min(value + reach, ends[1])
    return EstimateRow(name, float(value), float(error), float(low), float(high), float(p))


def _scale(facts: Facts, fn: RowFn) -> tuple[float, Fraction]:
    """Where values begin, and how far they reach, on the grid of the terms."""
    step, low, high = Bernstein(fn, 2).span(facts.schema)
    if low == high:
        raise QuestionError("bad-question", f"{title(fn)} is constant by its bounds.")
    return float(low * step), (high - low) * step
