"""The report: one line a comparison, with its bar and whether it was met."""

from __future__ import annotations

import datetime
import importlib.metadata
import math
import os
import platform
import statistics
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.timing import Timing

HEAD = """# Benchmarks

`make bench` writes this page, `python -m benchmarks PART ...` a part of it. Ratios against a baseline measured
in the same run decide; seconds depend on the machine and decide nothing. Medians of interleaved rounds, lowest and
highest in brackets.
"""
GROWTH = "Growth: seconds as a power of the size, by least squares of logarithms at the last three"


def put(page: str, title: str, section: str) -> str:
    """The page with this section in place of the one of its title, or behind all others."""
    head, *others = page.split("\n## ")
    sections = {other.split("\n", 1)[0]: f"## {other.rstrip()}\n" for other in others}
    sections[title] = section
    return "\n".join([head.rstrip() + "\n", *sections.values()])


@dataclass(frozen=True)
class Line:
    """One comparison of ours against a baseline."""

    what: str
    ours: Timing
    baseline: Timing
    bar: float

    @property
    def ratio(self) -> float:
        """How many times the baseline we take."""
        return self.ours.median / self.baseline.median

    @property
    def met(self) -> bool:
        """Whether the ratio is within its bar."""
        return self.ratio <= self.bar

    def row(self) -> str:
        """A row of the page."""
        verdict = "met" if self.met else "**missed**"
        return (
            f"| {self.what} | {self.ratio:.2f}x | {round(self.bar, 2)}x | {verdict} | {self.ours} | {self.baseline} |"
        )


@dataclass(frozen=True)
class Law:
    """How seconds grow with a size, where the fixed part of them is small: at its last three sizes."""

    what: str
    seconds: dict[int, float]
    bar: float

    @property
    def slope(self) -> float:
        """The power of the size that seconds grow with, by least squares of the logarithms."""
        last = sorted(self.seconds)[-3:]
        pairs = [math.log(size) for size in last], [math.log(self.seconds[size]) for size in last]
        return statistics.linear_regression(*pairs).slope if len(last) > 1 else math.nan

    @property
    def met(self) -> bool:
        """Whether it grows no faster than its bar; one size alone says nothing."""
        return not self.slope > self.bar

    def row(self) -> str:
        """A row of the page."""
        verdict = "met" if self.met else "**missed**"
        return f"| {self.what} | {self.slope:.2f} | {self.bar} | {verdict} | {self} |"

    def __str__(self) -> str:
        return ", ".join(f"{size:,}: {seconds:.3f} s" for size, seconds in sorted(self.seconds.items()))


@dataclass
class Report:
    """All comparisons of one run."""

    lines: dict[str, list[Line]] = field(default_factory=dict)
    laws: list[Law] = field(default_factory=list)
    notes: dict[str, list[str]] = field(default_factory=dict)

    def add(self, group: str, line: Line) -> None:
        """Take a comparison in and print it."""
        self.lines.setdefault(group, []).append(line)
        verdict = "met" if line.met else "MISSED"
        figures = f"{line.ratio:7.2f}x (bar {line.bar}x, {verdict})   {line.ours}   {line.baseline}"
        print(f"{line.what:40s} {figures}", flush=True)

    def law(self, law: Law) -> None:
        """Take a law of growth in and print it."""
        self.laws.append(law)
        print(f"{law.what}: slope {law.slope:.2f} (bar {law.bar}, {'met' if law.met else 'MISSED'}); {law}", flush=True)

    def note(self, group: str, text: str) -> None:
        """Take in a sentence that decides nothing and print it."""
        self.notes.setdefault(group, []).append(text)
        print(text, flush=True)

    @property
    def missed(self) -> list[Line | Law]:
        """Comparisons and laws past their bar."""
        found: list[Line | Law] = [line for lines in self.lines.values() for line in lines]
        return [one for one in (*found, *self.laws) if not one.met]

    def write(self, path: Path, *, keep: bool = False) -> None:
        """Write the report as Markdown, a section a group; with `keep` the page's other sections stay as they are."""
        page = path.read_text(encoding="utf-8") if keep else HEAD
        for group in {**self.lines, **self.notes}:
            page = put(page, group, self._section(group))
        if self.laws:
            page = put(page, GROWTH, self._growth(page))
        path.write_text(page, encoding="utf-8")

    def _section(self, group: str) -> str:
        packages = ("duckdb", "opendp", "numpy", "apsw")
        versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        rows = [f"## {group}", "", f"{today}, {os.cpu_count()} cores, Python {platform.python_version()}, {versions}."]
        if lines := self.lines.get(group):
            rows += ["", "| comparison | ratio | bar | | sulq | baseline |", "|---|---|---|---|---|---|"]
            rows += [line.row() for line in lines]
        return "\n".join([*rows, *(part for note in self.notes.get(group, ()) for part in ("", note)), ""])

    def _growth(self, page: str) -> str:
        """The laws of the page that were not measured anew, and those that were."""
        kept = page.partition(f"## {GROWTH}\n")[2].partition("\n## ")[0].splitlines()
        rows = {line.split(" | ")[0]: line for line in kept if line.startswith("| ")}
        rows = {first: line for first, line in rows.items() if first != "| law"}
        rows |= {f"| {law.what}": law.row() for law in self.laws}
        return "\n".join(
            [f"## {GROWTH}", "", "| law | slope | bar | | seconds |", "|---|---|---|---|---|", *rows.values(), ""]
        )
