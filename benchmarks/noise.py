"""Noise on a million cells, ours against OpenDP's, each through the same door: exact integers in, noisy ones out."""

from __future__ import annotations

from fractions import Fraction
from typing import get_args

import numpy as np

from benchmarks.report import Line, Report
from benchmarks.timing import interleave
from sulq.mechanisms import _opendp, bulk

GROUP = "Noise on 1M cells, against OpenDP's sampler"
CELLS = 1_000_000
SCALE = Fraction(1000)
BAR = 0.1
ROUNDS = 1  # OpenDP takes ten seconds and more


def many(report: Report) -> None:
    """Both laws."""
    sums = np.arange(CELLS, dtype=np.int64)
    for kind in get_args(_opendp.Kind):
        ours, theirs = bulk.sampler(kind, SCALE), _opendp.sampler(kind, SCALE)
        found = interleave(
            {"ours": lambda add=ours: add(sums), "opendp": lambda add=theirs: add(sums)},
            ROUNDS,
        )
        report.add(GROUP, Line(f"discrete {kind}, scale {SCALE}", found["ours"], found["opendp"], BAR))
