"""From kept lines to comparisons: ratios of medians of the same rounds, bars, and what was met."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.versus.cast import OURS, named

Line = dict[str, Any]
RIGHT = {"person groups": 0.3}  # how far from ours an answer may lie; who bounds nobody, farther
NEAR = 0.05
LIMIT = {  # sulq's time over that of who protects nobody
    ("A", "person groups"): 1.2,
    ("A", ""): 1.0,
    ("C", "covariance"): 2.0,
    ("C", "k-means round"): 1.3,
    ("I", "declared keys"): 3.0,
    ("I", "one sum of many columns"): 1.2,
    ("I", "a copy of CSV"): round(4 / 3, 2),
}
LARGE = 10_000_000  # rows; over fewer, what an ask costs whatever it reads is most of its time
FASTER = {("E", "OpenDP"): 10}  # instead of the contender's own bar
OPTIMAL = 1.02
WHY = {  # what a bar that was missed comes from, where that was looked into
    "k-means round": "Some 5 ms of it are the ask whatever it reads: plan, durable debit, noise; the round over more"
    " rows has no more of that. Two threads of ours also wait for each other between NumPy's calls.",
}


@dataclass(frozen=True)
class Verdict:
    """One comparison with a bar, or without one if None; `met` is None where there is nothing to compare."""

    what: str
    figure: str
    bar: str
    met: bool | None
    why: str = ""

    @property
    def word(self) -> str:
        """As a table shows it."""
        return {None: "", True: "met", False: "**missed**"}[self.met] if self.bar else "reported"


def seconds(times: Sequence[float]) -> str:
    """A median with its spread."""
    if not times:
        return "-"
    unit, name = (1.0, "s") if statistics.median(times) >= 1 else (1000.0, "ms")
    low, high = min(times) * unit, max(times) * unit
    return f"{statistics.median(times) * unit:.3g} {name} ({low:.3g}..{high:.3g})"


def of(lines: Sequence[Line], *key: object) -> list[Line]:
    """All lines whose key begins so."""
    return [line for line in lines if line["key"][: len(key)] == list(key)]


def ratio(line: Line) -> float:
    """Their seconds over ours, in the same rounds; at least that, if it did not finish."""
    if line["scores"] and line.get("ours"):
        return statistics.median(line["scores"]) / statistics.median(line["ours"])
    if line["outcome"] == "did not finish" and line.get("ours"):
        return float(line["why"].split()[-2]) / statistics.median(line["ours"])
    return math.nan


def shown(lines: Sequence[Line]) -> list[Line]:
    """All lines but those of queries over fewer rows than the most there are."""
    most = max((line["key"][2] for line in of(lines, "A")), default=0)
    return [line for line in lines if line["key"][0] != "A" or line["key"][2] == most]


def title(line: Line) -> str:
    """The question of a line, with threads and many rows where a part has them."""
    part, question, size, *more = line["key"][:-1]
    if part != "C":
        return str(question)
    return f"{question}, {size} thread{'s' if size > 1 else ''}" + "".join(f", {rows:,} rows" for rows in more)


def wrong(line: Line) -> bool:
    """Whether a contender's answers are not those of the question."""
    limit = RIGHT.get(line["key"][1], NEAR)
    return bool(line["scores"]) and line["key"][0] in "AGI" and not line.get("off", 0.0) <= limit


def compared(line: Line) -> Verdict:
    """Ours against one contender on one question."""
    part, question, who = line["key"][0], line["key"][1], line["key"][-1]
    what = f"{title(line)}, against {who}"
    found = ratio(line)
    if math.isnan(found) or wrong(line):
        outcome = "wrong answers" if wrong(line) else line["outcome"]
        return Verdict(what, f"{outcome}: {line['why']}" if line["why"] else outcome, "", None)
    if not named(who).private:
        small = part == "A" and line["key"][2] < LARGE
        limit = None if who == "raw Polars" or small else LIMIT.get((part, question), LIMIT.get((part, "")))
        bar = f"at most {limit:g}x" if limit else ""
        return Verdict(what, f"{1 / found:.2f}x", bar, 1 / found <= limit if limit else None, WHY.get(question, ""))
    least = FASTER.get((part, who), named(who).bar if part == "A" else None)
    pace = f"{found:.3g}x faster" if found >= 1 else f"{1 / found:.3g}x slower"
    more = "" if line["scores"] else "over "
    bar = {None: "", 1.0: "not slower"}.get(least, f"at least {least}x faster")
    return Verdict(what, more + pace, bar, found >= least if least else None)


def optimum(question: str, *, epsilon: float, rows: int, part: float, width: float = 200_000.0) -> float:
    """The least variance of the mechanism: discrete Laplace of a count, Laplace of a sum, two one-sided sums."""
    a = math.exp(-epsilon)
    if question in ("count", "histogram"):
        return 2 * a / (1 - a) ** 2
    if question == "sum":
        return 2 * (width / epsilon) ** 2
    return 2 * (width / (epsilon * rows)) ** 2 * ((1 - part) ** 2 + part**2)


def slope(lines: Sequence[Line], threads: int) -> float | None:
    """Of the logarithm of our time over that of rows, from 1e7 to 1e8, asked in turn."""
    found = [line for line in of(lines, "G", "growth") if line["key"][3] == threads and line["scores"]]
    return math.log10(ratio(found[0])) if found else None


def beyond(lines: Sequence[Line], threads: int) -> float | None:
    """The same slope of what is left of each time without that of 1e5 rows: what an ask costs whatever it reads."""
    grown = [line for line in of(lines, "G", "growth") if line["key"][3] == threads and line["scores"]]
    least = [line for line in of(lines, "G", "groups", 10**5, threads) if line.get("ours")]
    if not grown or not least:
        return None
    small, large = (
        statistics.median(grown[0][side]) - statistics.median(least[0]["ours"]) for side in ("ours", "scores")
    )
    return math.log10(large / small) if small > 0 else None


def lost(line: Line) -> bool:
    """Whether a private peer was faster than ours."""
    return line["key"][-1] != OURS.name and named(line["key"][-1]).private and ratio(line) < 1
