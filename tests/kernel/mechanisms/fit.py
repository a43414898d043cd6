"""Goodness of fit, moments and independence of samples against a law's exact probabilities."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import chi2

from sulq.kernel.mechanisms import release
from sulq.kernel.private import Private
from sulq.language.law import BinomialLaw, GaussianLaw, LaplaceLaw, Law

LEVEL = 1e-8  # p-values below this fail: wrongly once in a hundred million
SIGMAS = 6.0
FIRST = np.concatenate((np.linspace(0.97, 0.03, 20), [0.01, 0.003, 0.001, 3e-4]))


def drawn(law: Law, cells: int) -> np.ndarray:
    """One release of so many zeros: the noise itself."""
    return release(law, Private(np.zeros(cells, dtype=np.int64)))


def drawn_one_by_one(law: Law, releases: int) -> np.ndarray:
    """So many releases of one cell each."""
    return np.concatenate([drawn(law, 1) for _ in range(releases)])


def fit(law: Law, sample: np.ndarray) -> float:
    """The chi-square p-value over cells of sign and size that the exact tails divide evenly."""
    edges = [0, *sorted({law.accuracy(float(beta)) for beta in FIRST} - {0})]
    tails = [law.tail(t) for t in edges] + [0.0]
    size = np.searchsorted(edges, np.abs(sample))  # 0: zero itself; i: beyond edges[i-1], up to edges[i]
    expected, observed = [1.0 - tails[0]], [float((sample == 0).sum())]
    for i in range(1, len(edges) + 1):
        for sign in (-1, 1):
            expected.append((tails[i - 1] - tails[i]) / 2.0)
            observed.append(float(((size == i) & (np.sign(sample) == sign)).sum()))
    expected_counts = np.array(expected) * len(sample)
    counts = np.array(observed)
    assert counts.sum() == len(sample)
    kept = expected_counts >= 20.0
    rest = expected_counts[~kept].sum()
    statistic = float((((counts - expected_counts) ** 2)[kept] / expected_counts[kept]).sum())
    degrees = int(kept.sum()) - 1
    if rest > 0.0 and (~kept).any():  # all thin cells together
        statistic += float((counts[~kept].sum() - rest) ** 2 / max(rest, 5.0))
        degrees += 1
    return float(chi2.sf(statistic, degrees))


def kurtosis(law: Law) -> float:
    """Fourth moment over squared variance."""
    if isinstance(law, BinomialLaw):
        return 3.0 - 2.0 / law.coins
    if law.scale > 100:
        return 6.0 if isinstance(law, LaplaceLaw) else 3.0
    z = range(1, math.ceil(60 * law.scale) + 2)
    return 2.0 * math.fsum(k**4 * law.pmf(k) for k in z) / law.variance() ** 2


def moments_off(law: Law, sample: np.ndarray) -> float:
    """The worse of how many standard errors the mean and the variance are off."""
    n, variance = len(sample), law.variance()
    values = sample.astype(np.float64)
    mean = abs(values.mean()) / math.sqrt(variance / n)
    spread = abs((values**2).mean() / variance - 1.0) / math.sqrt((kurtosis(law) - 1.0) / n)
    return max(mean, spread)


def exceedance_off(law: Law, sample: np.ndarray, t: int) -> float:
    """How many standard errors the share of |noise| > t is off its exact probability."""
    p = law.tail(t)
    share = float((np.abs(sample) > t).mean())
    return abs(share - p) / math.sqrt(p * (1.0 - p) / len(sample))


def correlation_off(first: np.ndarray, second: np.ndarray) -> float:
    """How many standard errors a correlation is from zero."""
    return abs(float(np.corrcoef(first, second)[0, 1])) * math.sqrt(len(first))


def ties_off(law: Law, first: np.ndarray, second: np.ndarray) -> float:
    """How many standard errors the share of equal pairs is off the sum of squared probabilities."""
    reach = range(min(law.accuracy(1e-12), 100_000) + 1)
    p = law.pmf(0) ** 2 + 2.0 * math.fsum(law.pmf(z) ** 2 for z in reach if z)
    share = float((first == second).mean())
    return abs(share - p) / math.sqrt(p * (1.0 - p) / len(first))


def wrongly_scaled(law: LaplaceLaw | GaussianLaw, factor: float, size: int, seed: int) -> np.ndarray:
    """A plain generator's noise of the law's family, its scale off by a factor."""
    rng = np.random.default_rng(seed)
    scale = float(law.scale) * factor
    if isinstance(law, LaplaceLaw):
        success = -math.expm1(-1.0 / scale)
        return rng.geometric(success, size) - rng.geometric(success, size)
    z = np.arange(-math.ceil(12 * scale), math.ceil(12 * scale) + 1)
    weights = np.exp(-0.5 * (z / scale) ** 2)
    return rng.choice(z, size, p=weights / weights.sum())
