"""Private value to noisy value: the mechanisms, each with its law, exact price and exact sampler."""

from __future__ import annotations

from sulq.mechanisms.above import SparseVector
from sulq.mechanisms.binomial import CentredBinomial
from sulq.mechanisms.choose import Exponential, PermuteAndFlip
from sulq.mechanisms.gaussian import DiscreteGaussian
from sulq.mechanisms.laplace import DiscreteLaplace
from sulq.mechanisms.metric import BitFlips, NearPoint
from sulq.mechanisms.open_keys import Thresholded, reveal
from sulq.mechanisms.table import MECHANISMS, Cost, Mechanism, Row, cost_of, mechanism, priced, release, versions

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
