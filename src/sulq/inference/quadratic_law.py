"""The law of a chi-squared statistic of noisy counts: a quadratic form in sampling errors and noise.

A Laplace draw is a normal one of variance v W, W exponential. Given the W of all cells the statistic is a weighted sum
of chi-squared variables, whose first three cumulants a shifted gamma law shares (Liu, Tang and Zhang 2009); over W it
is averaged at public points spread evenly over the cube. Where there is no noise this is the chi-squared law itself.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from sulq.language.kinds import Floats

POINTS: Final = 256  # at which Laplace noise is averaged
TERMS: Final = 500  # of the series and of the continued fraction, at most
EXACT: Final = 1e-12
TINY: Final = 1e-300


def tail(statistic: float, form: Floats, *, sampling: Floats, noise: float, pure: bool) -> float:
    """The probability that x' form x is larger, for errors x of independent cells.

    `sampling`: the variance of each cell's count, `noise`: that of its noise, Laplace where `pure`.
    """
    spread = exponentials(len(form), POINTS) if pure and noise > 0 else np.ones((1, len(form)))
    weighted = form[None] * (sampling + noise * spread)[:, None, :]
    square = weighted @ weighted
    first = np.einsum("pii->p", weighted)
    second = np.einsum("pii->p", square)
    third = np.einsum("pij,pji->p", square, weighted)
    scale = third / np.maximum(second, TINY)
    freedom = second**3 / np.maximum(third**2, TINY)
    shift = first - scale * freedom
    return float(gamma_tail(freedom / 2, np.maximum(statistic - shift, 0.0) / (2 * np.maximum(scale, TINY))).mean())


def exponentials(width: int, points: int) -> Floats:
    """Points that are spread as independent exponential variables are: an additive recurrence in each coordinate."""
    root = 2.0
    for _ in range(60):
        root = (1 + root) ** (1 / (width + 1))
    steps = root ** -np.arange(1.0, width + 1)
    places = (0.5 + np.arange(1, points + 1)[:, None] * steps) % 1.0
    found: Floats = -np.log1p(-np.minimum(places, 1 - EXACT))
    return np.asarray(found / found.mean(axis=0))


def gamma_tail(shape: Floats, x: Floats) -> Floats:
    """The probability that a gamma variable of this shape is larger than x: by its series, or a continued fraction."""
    shape, x = np.broadcast_arrays(np.maximum(shape, 1e-6), x)
    logs = np.array([math.lgamma(one) for one in shape.ravel().tolist()]).reshape(shape.shape)
    with np.errstate(all="ignore"):
        front = np.where(x > 0, np.exp(shape * np.log(np.maximum(x, TINY)) - x - logs), 0.0)
        return np.asarray(np.where(x < shape + 1, 1 - front * _series(shape, x), front * _fraction(shape, x)))


def _series(shape: Floats, x: Floats) -> Floats:
    x = np.minimum(x, shape + 1)
    term = 1 / shape
    total = term.copy()
    for i in range(1, TERMS):
        term = term * x / (shape + i)
        total = total + term
        if (term <= EXACT * total).all():
            break
    return np.asarray(total)


def _fraction(shape: Floats, x: Floats) -> Floats:
    """Lentz's way of evaluating the continued fraction."""
    x = np.maximum(x, shape + 1)
    b = x + 1 - shape
    c, d = np.full_like(b, 1 / TINY), 1 / b
    total = d.copy()
    for i in range(1, TERMS):
        a = -i * (i - shape)
        b = b + 2
        d = 1 / np.where(np.abs(a * d + b) < TINY, TINY, a * d + b)
        c = np.where(np.abs(b + a / c) < TINY, TINY, b + a / c)
        total = total * d * c
        if (np.abs(d * c - 1) < EXACT).all():
            break
    return np.asarray(total)
