"""What noise of a known size says, told from what it adds: means of groups, counts, matrices.

Each is a linear shrinkage towards something safer, by as much as the noise explains of what is
seen (empirical Bayes, as James and Stein do it). It reads released numbers and public noise alone.
"""

from __future__ import annotations

import numpy as np

from sulq.language.kinds import Floats


def sizes(counts: Floats, deviation: float) -> tuple[Floats, float]:
    """Sizes of groups from noisy counts, all positive, and their sum.

    Where the counts differ by no more than noise they are taken for equal; a total that
    noise alone could be is no less than the noise, so that nothing is divided by chance.
    """
    groups = len(counts)
    total = max(float(counts.sum()), deviation * np.sqrt(groups), 1.0)
    equal = total / groups
    signal = max(float(counts.var(ddof=1)) - deviation**2 if groups > 1 else 0.0, (equal / 8) ** 2)
    kept = signal / (signal + deviation**2)
    found = np.maximum(equal + kept * (counts - counts.mean()), min(deviation / 2 + 0.5, equal / 2))
    return found * (total / found.sum()), total


def apart(gaps: Floats, variances: Floats, weights: Floats, least: float) -> Floats:
    """How much of each group's gaps from the common mean to believe, from 0 to 1.

    `gaps`: a row a group. `variances`: of the noise in each group's gaps. `least`: a variance that true
    gaps have at least, as far as anybody can say beforehand.
    """
    signal = max(float(np.average((gaps**2).mean(axis=1) - variances, weights=weights)), least)
    return signal / (signal + variances)


def covariance(matrix: Floats, deviation: float) -> Floats:
    """A noisy covariance matrix moved towards a multiple of the identity, by the part of its spread that is noise."""
    d = len(matrix)
    level = max(float(np.trace(matrix)) / d, 1e-6)
    round_ = level * np.eye(d)
    spread = float(((matrix - round_) ** 2).sum())
    kept = 1 - min(1.0, deviation**2 * d**2 / max(spread, 1e-12))
    values, vectors = np.linalg.eigh(kept * matrix + (1 - kept) * round_)
    found: Floats = (vectors * np.maximum(values, 0.02 * level)) @ vectors.T
    return found
