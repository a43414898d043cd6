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
from sulq.answers.call import timeout
from sulq.api.connect import check, connect, connect_async
from sulq.language.domain import Bool, Category, Date, Int, Real, Text, Timestamp
from sulq.language.estimator import Certificate, Property, Stated, Utility, sensitivity_from_sampler
from sulq.language.privacy import Epsilon, EpsilonDelta, Queries, Rho, SubLinear
from sulq.language.question import Above, Choose, Holistic, OpenSums, Sums, Together
from sulq.language.rowfn import (
    bins,
    bucket,
    by_row,
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
    within_l1,
)
from sulq.language.rows_choice import DeclaredUnit as Unit
from sulq.language.score import Contrast, Diagonal, Distance, Linear, NegAbs, NegL1, NegMaxAbs, Rank
from sulq.language.space import Box, Candidates, Cube, Points
from sulq.language.statistic import (
    Aggregated,
    Certified,
    Degrees,
    Edges,
    Graph,
    MinCut,
    Occurring,
    SpanningTree,
    ToBoundedDegree,
    ToConnected,
    ToProperty,
    ToSorted,
    ToUnique,
    Triangles,
)
from sulq.version import __version__

__all__ = [
    "Above",
    "Aggregated",
    "Bool",
    "Box",
    "Candidates",
    "Category",
    "Certificate",
    "Certified",
    "Choose",
    "Contrast",
    "Cube",
    "Date",
    "Degrees",
    "Diagonal",
    "Distance",
    "Edges",
    "Epsilon",
    "EpsilonDelta",
    "Graph",
    "Holistic",
    "Int",
    "Linear",
    "MinCut",
    "NegAbs",
    "NegL1",
    "NegMaxAbs",
    "Occurring",
    "OpenSums",
    "Points",
    "Property",
    "Queries",
    "Rank",
    "Real",
    "Rho",
    "SpanningTree",
    "Stated",
    "SubLinear",
    "Sums",
    "Text",
    "Timestamp",
    "ToBoundedDegree",
    "ToConnected",
    "ToProperty",
    "ToSorted",
    "ToUnique",
    "Together",
    "Triangles",
    "Unit",
    "Utility",
    "__version__",
    "bins",
    "bucket",
    "by_row",
    "case",
    "check",
    "col",
    "connect",
    "connect_async",
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
    "sensitivity_from_sampler",
    "timeout",
    "vector",
    "within_ball",
    "within_l1",
]


def __getattr__(name: str) -> ModuleType:
    """Load a part of the free half when it is first used: `sulq.learn.PCA`."""
    if name in ("audit", "learn", "local", "release", "select", "testing"):
        return importlib.import_module(f"sulq.{name}")
    raise AttributeError(f"module 'sulq' has no attribute {name!r}")


logging.getLogger("sulq").addHandler(logging.NullHandler())
