"""Reports of the local model against one call of OpenDP's randomised response each.

`python -m benchmarks.local` runs this part alone.
"""

from __future__ import annotations

import numpy as np
from opendp.measurements import make_randomized_response, make_randomized_response_bool
from opendp.mod import enable_features

from benchmarks.report import Line, Report
from benchmarks.timing import Timing, interleave
from sulq.local import METHODS, Collector, Respondent

REPORTS = 1_000_000
CALLS = 5_000  # of OpenDP; a million take two hundred times as long
CELLS = 64
EPSILON = 1.0
ROUNDS = 3
GROUP = f"1M randomised reports of {CELLS} values, against one OpenDP call each ({CALLS:,} calls, scaled)"


def reports(report: Report) -> None:
    """Randomise a million values by each method, and estimate from them."""
    enable_features("contrib")
    values = np.random.default_rng(1).integers(0, CELLS, REPORTS)
    kept = float(np.exp(EPSILON) / (np.exp(EPSILON) + CELLS - 1))
    theirs = make_randomized_response(list(range(CELLS)), prob=kept)
    few = values[:CALLS].tolist()
    truths = values % 2 == 1
    binary = Respondent(2, epsilon=EPSILON, method="krr")
    coin = make_randomized_response_bool(float(np.exp(EPSILON) / (np.exp(EPSILON) + 1)))
    some = truths[:CALLS].tolist()
    found = interleave(
        {"ours": lambda: binary.randomise(truths), "theirs": lambda: [coin(value) for value in some]}, ROUNDS
    )
    _told(report, "randomise, truth values", found)
    for method in METHODS:
        respondent = Respondent(CELLS, epsilon=EPSILON, method=method)
        found = interleave(
            {"ours": lambda r=respondent: r.randomise(values), "theirs": lambda: [theirs(value) for value in few]},
            ROUNDS,
        )
        _told(report, f"randomise, {method}", found)
        collector, given = Collector(CELLS, epsilon=EPSILON, method=method), respondent.randomise(values)
        seconds = interleave({"ours": lambda c=collector, g=given: c.frequencies(g)}, ROUNDS)["ours"]
        report.note(GROUP, f"Frequencies from 1M reports by {method}: {seconds}.")


def _told(report: Report, what: str, found: dict[str, Timing]) -> None:
    line = Line(what, found["ours"], _scaled(found["theirs"]), 0.1)
    report.add(GROUP, line)
    report.note(GROUP, f"{what}: {1 / line.ratio:,.0f} times faster.")


def _scaled(timing: Timing) -> Timing:
    times = REPORTS / CALLS
    return Timing(timing.median * times, timing.low * times, timing.high * times)


if __name__ == "__main__":
    reports(Report())
