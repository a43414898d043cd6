"""How many rows, repetitions and queries a tolerance takes: the papers' formulas, corrected, one function each.

Tolerances are deviations, never variances (E19, E20); the logarithm multiplies tau^-2 (trap 4);
sampling error and noise each take half of the tolerance and half of the failures (E50).
Proofs: docs/theory/statistical-queries.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence


def repetitions(variance: float, tau: float, rows: float, queries: float, beta: float) -> int:
    """T = ceil(2 R ln(q/beta) / (tau^2 n^2)): how often a noisy sum of variance R is asked and averaged [S0.20].

    Accuracy: the average over n has variance R/(t n^2) and a normal passes x deviations with probability
    at most exp(-x^2/2), so all of q answers are within tau but with probability beta. The printed
    R/(tau n^2) makes the *variance* tau (E19).
    Source: BDMN05, section 4.5.
    """
    return max(1, math.ceil(2.0 * variance * math.log(queries / beta) / (tau * rows) ** 2))


def emulation_rows(variance: float, taus: Sequence[float], asks: int, beta: float) -> int:
    """n^2 >= 2 R ln(q/beta)/(T - q) sum 1/tau_j^2: rows at which T noisy sums answer q queries [S0.21].

    Accuracy: sum of ceil(x_j) <= q + sum of x_j, and the right side is at most T; the printed
    chain has the inequality the other way round, 1/tau_j for 1/tau_j^2, and no factor 2 (E20).
    Source: BDMN05, Theorem 3.
    """
    queries = len(taus)
    squares = sum(tau**-2.0 for tau in taus)
    return math.ceil(math.sqrt(2.0 * variance * math.log(queries / beta) / (asks - queries) * squares))


def exact_emulation_rows(variance: float, taus: Sequence[float], asks: int, beta: float) -> int:
    """The least n at which the repetitions of all queries together are at most T; also for T = q."""
    queries = len(taus)
    return least(lambda n: sum(repetitions(variance, tau, n, queries, beta) for tau in taus) <= asks)


def sample_block(queries: float, tau: float, beta: float) -> int:
    """ceil(ln(2M/beta) / (2 tau^2)): fresh rows whose average is a query's mean to within tau [S2.11].

    Accuracy: Hoeffding's bound for one of M blocks.
    Source: SQNotes, Theorem 6.
    """
    return math.ceil(math.log(2.0 * queries / beta) / (2.0 * tau**2))


def sampling_error(rows: float, queries: int, beta: float) -> float:
    """How far q means over independent rows may be from their expectations, but for beta: Hoeffding."""
    log = math.log(2 * queries) - math.log(beta)  # of a whole number of any length
    return math.sqrt(log / (2.0 * rows)) if rows > 0 else math.inf


def least(fits: Callable[[int], bool], most: int = 10**18) -> int:
    """The least whole number that fits, where all above it do; `most` if none is found before."""
    high = 1
    while high < most and not fits(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return min(high, most)
