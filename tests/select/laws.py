"""Probabilities of choices by definition, for tests that enumerate them."""

from __future__ import annotations

import itertools
import math

import numpy as np

from sulq.language.law import ExponentialLaw, FlipLaw


def exponential(scores: np.ndarray, scale: float) -> np.ndarray:
    """Proportional to exp(+score/scale)."""
    weights = np.exp((scores - scores.max()) / scale)
    return weights / weights.sum()


def flip(scores: np.ndarray, scale: float) -> np.ndarray:
    """Permute-and-flip: P(c) = h_c * integral over [0, 1] of the product over others of (1 - t h) dt.

    In a random order candidate c comes at a uniform time t; each other one has come before with probability t, and
    would have been taken if its coin, heads with probability h, had shown heads. Gauss-Legendre is exact for
    polynomials: of degree m - 1 here.
    """
    heads = np.exp((scores - scores.max()) / scale)
    nodes, weights = np.polynomial.legendre.leggauss(len(scores) // 2 + 1)
    times = (nodes + 1) / 2
    terms = 1 - times[:, None] * heads
    found = []
    for c, own in enumerate(heads):
        rest = np.prod(np.delete(terms, c, axis=1), axis=1)
        found.append(own * float(weights @ rest) / 2)
    return np.array(found)


def law_of(law: FlipLaw | ExponentialLaw, scores: object) -> np.ndarray:
    """The probability of each candidate under a law."""
    given = np.asarray(scores, dtype=float)
    return (flip if isinstance(law, FlipLaw) else exponential)(given, float(law.scale))


def by_orders(scores: tuple[int, ...], scale: float) -> np.ndarray:
    """Permute-and-flip over all orders, one by one."""
    heads = [math.exp((score - max(scores)) / scale) for score in scores]
    found = np.zeros(len(scores))
    for order in itertools.permutations(range(len(scores))):
        reached = 1.0
        for c in order:
            found[c] += reached * heads[c]
            reached *= 1 - heads[c]
    return found / math.factorial(len(scores))
