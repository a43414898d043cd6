"""The public names, pinned."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import sulq


def test_the_public_names() -> None:
    """What `sulq` offers changes only on purpose."""
    assert sorted(sulq.__all__) == [
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


def test_every_public_name_is_there() -> None:
    """Each name of `__all__` can be had from the package."""
    assert all(hasattr(sulq, name) for name in sulq.__all__)


def test_parts_of_the_free_half_come_when_used() -> None:
    """`sulq.learn.PCA` needs no import of its own, and `import sulq` does not load it."""
    code = (
        "import sys, sulq; assert 'sulq.learn' not in sys.modules; assert sulq.learn.LEARNERS; sulq.testing.exact;"
        "assert 'sulq.audit' not in sys.modules; assert sulq.audit.exact_epsilon"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    with pytest.raises(AttributeError, match="nothing"):
        _ = sulq.nothing


def test_the_version_is_semantic() -> None:
    """Three numbers, said once (src/sulq/version.py)."""
    assert re.fullmatch(r"\d+\.\d+\.\d+", sulq.__version__)
