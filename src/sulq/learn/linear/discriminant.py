"""From noisy sums of each class to linear scores: numbers as if normal with one covariance, keys as if independent.

A number's part of the scores is that of linear discriminant analysis, a key's that of naive Bayes. Both
are shrunk by what the noise explains, so that with little to go by the scores are the classes'
sizes and nothing else. Reads released numbers only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sulq.language.kinds import Floats
from sulq.learn.linear.shrinkage import apart, covariance
from sulq.learn.linear.windows import Design

PRIOR = 0.05  # of a number's variance: what class means are taken to differ by at least
FLOOR = 0.3  # deviations of noise that a frequency is never taken to be below
RIDGE = 0.7  # times sqrt(d) deviations of an entry, about what noise moves an eigenvalue by


@dataclass(frozen=True, slots=True, eq=False)
class ClassMoments:
    """What is known of the rows of each class.

    `counts`: their numbers, `total` together. `sums`: for each class and place of the design. `noise`: the
    deviation of a place's sums. `second`: the mean products of the numbers, where asked, and the
    deviation of an entry's noise. `level`: what a number's variance is taken for where it is not known.
    """

    counts: Floats
    total: float
    sums: Floats
    noise: Floats
    second: Floats | None
    second_noise: float
    level: float

    @property
    def means(self) -> Floats:
        """The mean of each place over all classes, where means can be."""
        found: Floats = np.clip(self.sums.sum(axis=0) / self.total, -1.0, 1.0)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Linear scores: a weight for each class and place, and an intercept for each class."""

    weights: Floats
    intercepts: Floats


def metric(moments: ClassMoments, design: Design) -> Floats:
    """The covariance of the places as far as it is known: of numbers, and of each label its frequency."""
    d = len(design.numbers)
    frequent = np.maximum(moments.means, (0.5 + 0.5 * moments.noise) / moments.total)
    found = np.diag(np.where(np.arange(design.size) < d, moments.level, frequent))
    if d and moments.second is not None:
        means = moments.means[:d]
        found[:d, :d] = covariance(moments.second - np.outer(means, means), moments.second_noise)
    return found


def discriminant(moments: ClassMoments, design: Design) -> Scores:
    """The scores that the sums speak for."""
    counts, d = moments.counts, len(design.numbers)
    weights = np.zeros((len(counts), design.size))
    intercepts = np.log(counts / counts.sum())
    means = moments.means
    gaps = moments.sums / counts[:, None] - means
    at = d
    if d:
        variances = (moments.noise[0] / counts) ** 2
        weights[:, :d], shift = _numbers(gaps[:, :d], variances, moments, metric(moments, design)[:d, :d])
        intercepts = intercepts + shift - weights[:, :d] @ means[:d]
    for key in design.keys:
        here = slice(at, at + key.size)
        weights[:, here] = _key(gaps[:, here], means[here], float(moments.noise[at]), moments)
        at += key.size
    return Scores(weights, intercepts)


def _numbers(gaps: Floats, variances: Floats, moments: ClassMoments, total: Floats) -> tuple[Floats, Floats]:
    """Fisher's discriminant: gaps of the means over the covariance within classes."""
    shares = moments.counts / moments.counts.sum()
    believed = apart(gaps, variances, shares, PRIOR * moments.level)
    gaps = gaps * believed[:, None]
    unsure = float((shares * believed * variances).sum())  # what the means themselves may be off by
    between = (shares[:, None] * gaps).T @ gaps
    d = len(total)
    if moments.second is None:
        level = max(moments.level - float(np.trace(between)) / d, 0.3 * moments.level) + unsure
        weights: Floats = gaps / level
    else:
        values, vectors = np.linalg.eigh(total - between)
        ridge = unsure + RIDGE * np.sqrt(d) * moments.second_noise
        weights = gaps @ (vectors / (np.maximum(values, 0.005 * moments.level) + ridge)) @ vectors.T
    return weights, -0.5 * np.einsum("kd,kd->k", weights, gaps)


def _key(gaps: Floats, frequency: Floats, noise: float, moments: ClassMoments) -> Floats:
    """Naive Bayes: how much likelier a label is in the class than among all rows, on a logarithmic scale."""
    counts, total = moments.counts, moments.total
    variances = (noise / counts) ** 2
    believed = apart(gaps, variances, counts / counts.sum(), 1e-6)
    frequency = np.maximum(frequency, (0.5 + 0.5 * noise) / total)  # of a label that is hardly there noise is all
    least = np.minimum(frequency, (FLOOR * believed * np.sqrt(variances) + 0.5 / counts)[:, None])
    found: Floats = np.log(np.maximum(frequency + believed[:, None] * gaps, least) / frequency)
    return found
