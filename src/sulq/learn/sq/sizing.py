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


def noise_rows(queries: float, tau: float, epsilon: float, beta: float) -> int:
    """(k/epsilon) ln(k/beta)/tau: rows at which k counts of Laplace noise k/epsilon are all within tau n [S3.27].

    Accuracy: fails with probability exactly 1 - (1 - beta/k)^k, the noise being independent.
    Source: Dwork08, section 5.1.
    """
    return math.ceil(queries / epsilon * math.log(queries / beta) / tau)


def joint_rows(queries: float, tau: float, epsilon: float, beta: float) -> int:
    """max((2M/(epsilon tau)) ln(2M/beta), (2/tau^2) ln(4M/beta)): all M queries on all rows [S2.12, S3.27].

    Accuracy: half of tau and of beta for the noise of scale M/epsilon, half for sampling (E50);
    for queries none of which is chosen after another's answer.
    Source: Dwork08, section 5.1.
    """
    return max(noise_rows(queries, tau / 2, epsilon, beta / 2), sample_block(queries, tau / 2, beta / 2))


def split_block(queries: float, tau: float, epsilon: float, beta: float) -> int:
    """max((2/tau^2) ln(4M/beta), (2/(epsilon tau)) ln(2M/beta)): rows of each of M disjoint blocks [S2.12].

    Accuracy: as `joint_rows`, with noise of scale 1/epsilon on each block: disjoint blocks compose in
    parallel, so no block's noise grows with M. The text adds noise of scale M/epsilon to each block and
    then leaves out the M (E26); what it calls a scale is a rate (E24).
    Source: SQNotes, Theorem 7.
    """
    noise = math.ceil(2.0 / (epsilon * tau) * math.log(2.0 * queries / beta))
    return max(noise, sample_block(queries, tau / 2, beta / 2))


def noisy_label_blocks(queries: float, tau: float, eta: float, beta: float) -> tuple[int, int]:
    """Rows for the part of a query that no label enters and for the part that flips with it [S2.14].

    Accuracy: 2 ln(4M/beta)/tau^2 and 2 ln(4M/beta)/(tau^2 (1 - 2 eta)^2): the second is divided by
    1 - 2 eta, so its tolerance is tau (1 - 2 eta)/2.
    Source: SQNotes, Theorem 8.
    """
    return sample_block(2 * queries, tau / 2, beta), sample_block(2 * queries, tau * (1 - 2 * eta) / 2, beta)


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
