"""Private value to noisy value: the mechanisms, each with its law, exact price and exact sampler."""

from __future__ import annotations

from sulq.mechanisms.binomial import CentredBinomial
from sulq.mechanisms.gaussian import DiscreteGaussian
from sulq.mechanisms.laplace import DiscreteLaplace
from sulq.mechanisms.table import MECHANISMS, Cost, Mechanism, Row, cost_of, mechanism, priced, release, versions

__all__ = [
    "MECHANISMS",
    "CentredBinomial",
    "Cost",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Mechanism",
    "Row",
    "cost_of",
    "mechanism",
    "priced",
    "release",
    "versions",
]
