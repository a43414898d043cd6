"""The walk of a confidence: how large a step is on average, at most, and where the walk can end [S0.23-S0.25].

One answer of variance R about a row that moves the sum by at most 1. Logarithms are natural.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from sulq.errors import QuestionError
from sulq.language.sublinear import azuma

__all__ = ["azuma", "divergence", "expected_step", "largest_step", "theorem4_terms", "walk_bound"]


def divergence(first: float, second: float, variance: float) -> float:
    """Kullback-Leibler divergence of normals of one variance: (difference of means)^2/(2R), at most 1/(2R) [S0.25]."""
    return (first - second) ** 2 / (2.0 * variance)


def expected_step(generating: float, means: Sequence[float], weights: Sequence[float], variance: float) -> float:
    """How far the confidence rises on average, at most, when the answer comes of one value [S0.25, Lemma 4].

    The sum over the values of the other side of weight times divergence: by convexity
    of the divergence at least the mean of ln(p/mixture).
    """
    if len(means) != len(weights) or not math.isclose(math.fsum(weights), 1.0, abs_tol=1e-9):
        raise QuestionError("bad-parameter", "Give a weight for each mean; together they are 1.")
    return math.fsum(w * divergence(generating, mean, variance) for mean, w in zip(means, weights, strict=True))


def largest_step(variance: float, queries: int, delta: float) -> float:
    """sqrt(2 ln(T/delta)/R) + 1/(2R): no step of T is larger, but with probability delta [S0.25, Lemma 6]."""
    return math.sqrt(2.0 * math.log(queries / delta) / variance) + 0.5 / variance


def theorem4_terms(variance: float, queries: int, delta: float, gamma: float) -> tuple[float, float, float]:
    """The three parts of Theorem 4's height; their sum must be within epsilon [S0.24].

    That the later two are the smaller ones "when R >= 4" is false (E05).
    """
    lam = math.sqrt(2.0 * math.log(2.0 / gamma))
    first = lam * math.sqrt(2.0 * queries * math.log(queries / delta) / variance)
    return first, lam * math.sqrt(queries) / variance, queries / (2.0 * variance)


def walk_bound(variance: float, queries: int, delta: float, gamma: float) -> tuple[float, float]:
    """How high the confidence can climb in T answers, and the chance gamma/2 + delta that it climbs higher [S0.24].

    Azuma's inequality for steps of mean at most 1/(2R) and size at most `largest_step`; one-sided,
    and the steps may depend on all before them (E06).
    """
    lam = math.sqrt(2.0 * math.log(2.0 / gamma))
    height, chance = azuma(lam, mean=0.5 / variance, bound=largest_step(variance, queries, delta), steps=queries)
    return height, chance + delta
