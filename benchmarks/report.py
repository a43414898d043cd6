"""The report: one line a comparison, with its bar and whether it was met."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.timing import Timing


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


@dataclass
class Report:
    """All comparisons of one run."""

    lines: dict[str, list[Line]] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)

    def add(self, group: str, line: Line) -> None:
        """Take a comparison in and print it."""
        self.lines.setdefault(group, []).append(line)
        verdict = "met" if line.met else "MISSED"
        figures = f"{line.ratio:7.2f}x (bar {line.bar}x, {verdict})   {line.ours}   {line.baseline}"
        print(f"{line.what:40s} {figures}", flush=True)

    def note(self, group: str, text: str) -> None:
        """Take in a sentence that decides nothing and print it."""
        self.notes.setdefault(group, []).append(text)
        print(text, flush=True)

    @property
    def missed(self) -> list[Line]:
        """Comparisons past their bar."""
        return [line for lines in self.lines.values() for line in lines if not line.met]

    def write(self, path: Path) -> None:
        """Write the report as Markdown."""
        packages = ("duckdb", "opendp", "numpy", "apsw")
        versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        head = ["| comparison | ratio | bar | | sulq | baseline |", "|---|---|---|---|---|---|"]
        rows = [
            "# Benchmarks",
            "",
            "`make bench` writes this page. Ratios against a baseline measured in the same run decide; seconds depend",
            "on the machine and decide nothing. Medians of interleaved rounds, lowest and highest in brackets.",
            "",
            f"{today}, {os.cpu_count()} cores, Python {platform.python_version()}, {versions}.",
        ]
        for group, lines in self.lines.items():
            rows += ["", f"## {group}", "", *head]
            for line in lines:
                verdict = "met" if line.met else "**missed**"
                figures = f"{line.ratio:.2f}x | {line.bar}x | {verdict} | {line.ours} | {line.baseline}"
                rows.append(f"| {line.what} | {figures} |")
            rows += [part for note in self.notes.get(group, ()) for part in ("", note)]
        path.write_text("\n".join(rows) + "\n", encoding="utf-8")
