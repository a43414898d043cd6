"""Probabilities of many coins by Stirling's series, against exact coefficients."""

from __future__ import annotations

import mpmath

from sulq.language.law import BinomialLaw


def test_many_coins_agree_with_exact_coefficients_X2() -> None:
    """At 2^24 coins the probabilities agree with exact binomial coefficients to 1e-10."""
    coins = 2**24
    law = BinomialLaw(coins)
    with mpmath.workdps(40):
        for z in (0, 1, 2048, 10_000, 60_000):
            exact = mpmath.binomial(coins, coins // 2 + z) / mpmath.mpf(2) ** coins
            assert abs(mpmath.mpf(law.pmf(z)) / exact - 1) < 1e-10
