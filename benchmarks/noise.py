"""Noise on one cell and on a million, ours against OpenDP's: exact integers in, noisy ones out."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from benchmarks.report import Line, Report
from benchmarks.timing import interleave
from sulq.cli.audit import opendp as check
from sulq.kernel.mechanisms import bulk
from sulq.language.law import GaussianLaw, LaplaceLaw

GROUP = "Noise on one cell and on 1M cells, against OpenDP's sampler"
SCALE = Fraction(1000)
SIZES = {1: (1000, 5, 1.5), 1_000_000: (1, 1, 0.1)}  # cells: how often in a round, rounds (OpenDP is slow), the bar


def many(report: Report) -> None:
    """Both laws."""
    for law, draw in ((LaplaceLaw(SCALE), bulk.laplace), (GaussianLaw(SCALE), bulk.gaussian)):
        theirs = check.load()(law)
        for cells, (times, rounds, bar) in SIZES.items():
            sums = np.arange(cells, dtype=np.int64)

            def ours(sums=sums, draw=draw, times=times):
                return [sums + draw(sums.size, SCALE) for _ in range(times)]

            def opendp(sums=sums, add=theirs, times=times):
                return [np.array(add(sums.tolist()), dtype=np.int64) for _ in range(times)]

            found = interleave({"ours": ours, "opendp": opendp}, rounds)
            name = f"discrete {law.kind}, scale {SCALE}, {cells:,} cells, {times:,} times"
            report.add(GROUP, Line(name, found["ours"], found["opendp"], bar))
