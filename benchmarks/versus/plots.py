"""The plots of the page, as small SVG files."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.versus.cast import OTHERS
from benchmarks.versus.verdicts import Line, of, ratio, wrong

COLOURS = ("#4477aa", "#66ccee", "#228833", "#ccbb44", "#ee6677", "#aa3377", "#777777", "#222222")
QUESTIONS = ("filtered count", "sum and mean", "groups", "histogram", "person groups")


def draw(lines: Sequence[Line], folder: Path) -> None:
    """All that there are lines for."""
    import matplotlib as mpl

    mpl.use("agg")
    mpl.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "sulq", "font.size": 9}
    most = max((line["key"][2] for line in of(lines, "A")), default=0)
    if most:
        _save(_queries([line for line in of(lines, "A") if line["key"][2] == most], most), folder / "queries.svg")
    if of(lines, "G", "groups"):
        _save(_scaling(of(lines, "G", "groups")), folder / "scaling.svg")


def _save(figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})


def _queries(lines: Sequence[Line], rows: int) -> Any:
    """Bars: how many times as long as sulq each contender takes; below 1 it is faster."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 3.6), layout="constrained")
    axes = figure.subplots()
    names = [who.name for who in OTHERS if any(line["key"][-1] == who.name for line in lines)]
    for number, name in enumerate(names):
        own = {line["key"][1]: line for line in lines if line["key"][-1] == name}
        for place, question in enumerate(QUESTIONS):
            line = own.get(question)
            if line is None:
                continue
            found = math.nan if wrong(line) else ratio(line)
            where = place + (number - (len(names) - 1) / 2) * 0.8 / len(names)
            label = name if question == next(iter(own)) else None
            if math.isnan(found):
                axes.text(where, 1.0, "×", ha="center", va="center", color=COLOURS[number])
                axes.bar(where, 0, label=label, color=COLOURS[number])
                continue
            faint = {} if line["scores"] else {"hatch": "//", "alpha": 0.5}  # did not finish: at least that
            axes.bar(where, found - 1, 0.8 / len(names), bottom=1, label=label, color=COLOURS[number], **faint)
    axes.set_yscale("log")
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_xticks(range(len(QUESTIONS)), QUESTIONS)
    axes.set_ylabel("time over sulq's")
    axes.set_title(f"{rows:,} rows; hatched: did not finish, at least that; ×: no answer", fontsize=9)
    axes.legend(ncols=4, fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.1))
    return figure


def _scaling(lines: Sequence[Line]) -> Any:
    """Seconds over rows, both logarithmic."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.0, 3.4), layout="constrained")
    axes = figure.subplots()
    for threads, style in ((1, "o--"), (2, "o-")):
        own = sorted(
            (line for line in lines if line["key"][3] == threads and line["scores"]), key=lambda line: line["key"][2]
        )
        for name, part, colour in (("sulq", "ours", COLOURS[0]), ("raw DuckDB", "scores", COLOURS[4])):
            found = [(line["key"][2], statistics.median(line[part])) for line in own]
            if found:
                axes.plot(
                    *zip(*found, strict=True),
                    style,
                    color=colour,
                    label=f"{name}, {threads} thread{'s' * (threads > 1)}",
                )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("rows")
    axes.set_ylabel("seconds")
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend(fontsize=8, frameon=False)
    return figure
