"""A private statistical database: ask about everyone, learn about no one.

import sulq
db = sulq.connect("survey.parquet", columns={"age": sulq.Int(0, 120)}, budget=sulq.Epsilon(1))
db.count(sulq.col("age") > 40, spend=sulq.Epsilon(0.1))
"""

from __future__ import annotations

import importlib
import logging
from types import ModuleType

from sulq import errors
from sulq.connect import connect
from sulq.terms.domain import Bool, Category, Date, Int, Real, Text, Timestamp
from sulq.terms.privacy import Epsilon, EpsilonDelta, Queries, Rho, SubLinear, Unit
from sulq.terms.question import Above, Choose, OpenSums, Sums, Together
from sulq.terms.rowfn import (
    bins,
    bucket,
    case,
    col,
    dot,
    each,
    lit,
    lookup,
    nearest,
    outer,
    position,
    route,
    scaled,
    vector,
    within_ball,
)
from sulq.terms.score import Contrast, Diagonal, Distance, Linear, NegAbs, NegL1, NegMaxAbs, Rank
from sulq.version import __version__

__all__ = [
    "Above",
    "Bool",
    "Category",
    "Choose",
    "Contrast",
    "Date",
    "Diagonal",
    "Distance",
    "Epsilon",
    "EpsilonDelta",
    "Int",
    "Linear",
    "NegAbs",
    "NegL1",
    "NegMaxAbs",
    "OpenSums",
    "Queries",
    "Rank",
    "Real",
    "Rho",
    "SubLinear",
    "Sums",
    "Text",
    "Timestamp",
    "Together",
    "Unit",
    "__version__",
    "bins",
    "bucket",
    "case",
    "col",
    "connect",
    "dot",
    "each",
    "errors",
    "lit",
    "lookup",
    "nearest",
    "outer",
    "position",
    "route",
    "scaled",
    "vector",
    "within_ball",
]


def __getattr__(name: str) -> ModuleType:
    """Load a part of the free half when it is first used: `sulq.learn.PCA`."""
    if name in ("learn", "release", "select", "testing"):
        return importlib.import_module(f"sulq.{name}")
    raise AttributeError(f"module 'sulq' has no attribute {name!r}")


logging.getLogger("sulq").addHandler(logging.NullHandler())
