"""Exact tails in arbitrary precision, by formulas that share nothing with sulq.language.law."""

from __future__ import annotations

import functools
import math
from fractions import Fraction

import mpmath

DIGITS = 40


def real(number: Fraction) -> mpmath.mpf:
    return mpmath.mpf(number.numerator) / number.denominator


def laplace_tail(scale: Fraction, t: int) -> mpmath.mpf:
    """P(|Z| > t), the geometric sum."""
    with mpmath.workdps(DIGITS):
        a = mpmath.exp(-1 / real(scale))
        return 2 * a ** (t + 1) / (1 + a)


@functools.cache
def gaussian_mass(scale: Fraction) -> mpmath.mpf:
    """Sum of exp(-z^2/(2 scale^2)) over the integers: a theta function, summed directly or by Poisson's formula."""
    with mpmath.workdps(DIGITS):
        s = real(scale)
        if scale <= 4:
            return 1 + 2 * mpmath.fsum(mpmath.exp(-((z / s) ** 2) / 2) for z in range(1, 60))
        ripple = mpmath.exp(-2 * (mpmath.pi * s) ** 2)
        return s * mpmath.sqrt(2 * mpmath.pi) * (1 + 2 * ripple)


def gaussian_upper(scale: Fraction, t: int) -> mpmath.mpf:
    """P(Z > t) for t >= 0: direct sum for small scales, else the Euler-Maclaurin series to eight terms."""
    with mpmath.workdps(DIGITS):
        s = real(scale)
        if scale <= 100:
            last = t + 2 + math.ceil(16 * scale)  # relative to the first term, exp(-128) and less
            return mpmath.fsum(mpmath.exp(-((z / s) ** 2) / 2) for z in range(t + 1, last)) / gaussian_mass(scale)
        u = (mpmath.mpf(t) + mpmath.mpf(1) / 2) / s
        f = mpmath.exp(-(u**2) / 2)
        total = s * mpmath.sqrt(mpmath.pi / 2) * mpmath.erfc(u / mpmath.sqrt(2))
        hermite = [mpmath.mpf(1), u]
        for n in range(1, 16):
            hermite.append(u * hermite[n] - n * hermite[n - 1])
        for j in range(1, 9):
            derivative = -hermite[2 * j - 1] * f / s ** (2 * j - 1)
            total -= mpmath.bernpoly(2 * j, mpmath.mpf(1) / 2) / mpmath.factorial(2 * j) * derivative
        return total / gaussian_mass(scale)


def gaussian_tail(scale: Fraction, t: int) -> mpmath.mpf:
    """P(|Z| > t)."""
    return 2 * gaussian_upper(scale, t)


def binomial_tail(coins: int, t: int) -> mpmath.mpf:
    """P(|Z| > t), from integer binomial coefficients."""
    half = coins // 2
    ways, term = 0, math.comb(coins, half + t + 1)
    for z in range(t + 1, half + 1):
        ways += term
        term = term * (half - z) // (half + z + 1)
        if term << 140 < ways:
            ways += term  # what is left is beyond 40 digits
            break
    with mpmath.workdps(DIGITS):
        return mpmath.mpf(2 * ways) / mpmath.mpf(2) ** coins
