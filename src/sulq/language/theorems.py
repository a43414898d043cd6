"""The papers' own amounts of noise for T noisy sums, in closed form: R(epsilon, delta, T) and what their proofs use.

R is the noise variance of each of T sums that one person moves by at most one, or a number of fair coins; all
logarithms are natural (E10). What is certified, and what makes up for where a paper's formula is false, is
`sublinear.noise_for`. Proofs: docs/theory/sublinear.md.
"""

from __future__ import annotations

import math
from fractions import Fraction


def variance_theorem1(epsilon: float, delta: float, queries: int) -> float:
    """R = 8 T ln^2(T/delta)/epsilon^2: the paper's Theorem 1 [S0.6].

    False as printed where ln(T/delta) is near zero (E03): `noise_for` takes the
    larger of this and `variance_posterior`.
    """
    return 8.0 * queries * math.log(queries / delta) ** 2 / epsilon**2


def variance_theorem4(epsilon: float, delta: float, queries: int, *, gamma: float, constant: float = 8.0) -> float:
    """R = 8 T ln(2/gamma) ln(T/delta)/epsilon^2 + (2 lam sqrt T + T)/epsilon, lam = sqrt(2 ln(2/gamma)) [S0.24].

    Fails with probability gamma + delta in all; the constant 4 suffices (X3).
    """
    lam = math.sqrt(2.0 * math.log(2.0 / gamma))
    leading = constant * queries * math.log(2.0 / gamma) * math.log(queries / delta) / epsilon**2
    return leading + (2.0 * lam * math.sqrt(queries) + queries) / epsilon


def variance_steps(epsilon: float, delta: float, queries: int) -> float:
    """R with T (sqrt(2 ln(T/delta)/R) + 1/(2R)) = epsilon: Lemma 6's largest step, taken T times [S0.30].

    No martingale: but for probability delta no step is larger, so no T of them pass epsilon, stopping included.
    R grows as T^2, yet is below theorem 1's while T is below about 4 ln(T/delta). Near delta = 1 it is too little
    (E03): `noise_for` takes the larger of this and `variance_posterior`.
    """
    reach = math.sqrt(2.0 * math.log(queries / delta))
    return (queries / (2.0 * epsilon) * (reach + math.sqrt(reach**2 + 2.0 * epsilon / queries))) ** 2


def azuma(lam: float, *, mean: float, bound: float, steps: int) -> tuple[float, float]:
    """Height lam (a + b) sqrt T + T a that a walk passes with probability at most exp(-lam^2/2) [S0.23].

    For T steps of conditional mean at most a = `mean` and size at most b =
    `bound`; one-sided, and the steps need not be independent (E06).
    """
    return lam * (mean + bound) * math.sqrt(steps) + steps * mean, math.exp(-lam * lam / 2.0)


def laplace_scale(epsilon: Fraction, queries: int) -> Fraction:
    """Scale T/epsilon of Theorem 5: no answer can move the log-odds by more than epsilon/T [S0.26].

    The density is exp(-|x|/s)/(2s), of variance 2 s^2 (E07).
    """
    return queries / epsilon


def coins_paper(epsilon: float, queries: int, size: int) -> int:
    """R = (T/epsilon^2) ln^6 n fair coins, made even: the survey's own number, which it calls delta's [S1.5]."""
    return 2 * math.ceil(queries / epsilon**2 * math.log(size) ** 6 / 2.0)
