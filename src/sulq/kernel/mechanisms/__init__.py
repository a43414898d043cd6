"""Private value to noisy value: the mechanisms, each with its law, exact price and exact sampler."""

from __future__ import annotations

from sulq.kernel.mechanisms.above import SparseVector
from sulq.kernel.mechanisms.binomial import CentredBinomial
from sulq.kernel.mechanisms.choose import Exponential, PermuteAndFlip
from sulq.kernel.mechanisms.gaussian import DiscreteGaussian
from sulq.kernel.mechanisms.laplace import DiscreteLaplace
from sulq.kernel.mechanisms.metric import BitFlips, NearPoint
from sulq.kernel.mechanisms.open_keys import Thresholded, reveal
from sulq.kernel.mechanisms.table import MECHANISMS, Cost, Mechanism, Row, cost_of, mechanism, priced, release, versions

__all__ = [
    "MECHANISMS",
    "BitFlips",
    "CentredBinomial",
    "Cost",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Exponential",
    "Mechanism",
    "NearPoint",
    "PermuteAndFlip",
    "Row",
    "SparseVector",
    "Thresholded",
    "cost_of",
    "mechanism",
    "priced",
    "release",
    "reveal",
    "versions",
]
