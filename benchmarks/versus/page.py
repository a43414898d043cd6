"""The page: tables of every workload from kept lines, what was met, what was missed, what was lost and why."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Sequence
from pathlib import Path

from benchmarks.versus import plots
from benchmarks.versus.cast import OTHERS
from benchmarks.versus.sections import SECTIONS, prose
from benchmarks.versus.verdicts import Line, Verdict, lost, ratio, shown, title

UNEXPLAINED = "Not explained yet."
DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "benchmarks-peers.md"
REASONS = {
    "diffprivlib": "its rows are NumPy arrays in memory before it is asked, in the process of whoever asks: no file,"
    " no SQL, no durable debit, no person with several rows; its noise is in floating point. Ours plans, writes the"
    " debit to disk and only then reads the prepared copy: what an ask costs whatever it reads is in benchmarks.md.",
    "SmartNoise SQL": "its rows lie in DuckDB's memory, it draws its noise without a durable debit, and takes the"
    " keys it finds in the rows for public.",
}


def page(lines: Sequence[Line]) -> tuple[str, list[Verdict]]:
    """The text, and every verdict in it."""
    verdicts: list[Verdict] = []
    body: list[str] = []
    lines = shown(lines)
    for part in SECTIONS:
        rows, found = part(lines)
        body += ["", *rows]
        verdicts += found
    return "\n".join(
        [*head(lines), *summary(verdicts), *losses(lines), *doubts(lines), *absent(lines), *body]
    ) + "\n", verdicts


def head(lines: Sequence[Line]) -> list[str]:
    """What this is, and what the machine was."""
    versions = {line["key"][-1]: line["version"] for line in lines if line.get("version")}
    loads = [line["load"] for line in lines] or [0.0]
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return [
        "# Beside every peer",
        "",
        *prose(
            "`python -m benchmarks.versus`, a part of `make bench FULL=1`, writes this page. Each contender runs"
            " in its own process and environment (benchmarks/versus/environments), in turn with sulq, round"
            " after round; a ratio is that of the medians of the same rounds, with the lowest and highest in"
            " brackets. A contender has 90 seconds a workload. The guarantee is the same for all: epsilon 1 for"
            " the whole of an answer, one row added or removed (where persons are bounded, one person with at"
            " most 5 rows), the same public bounds and keys, n secret; the notes tell who cannot. Memory is the"
            " most that a process and its children ever held. Answers were compared with ours, and one that is"
            " not near is called wrong."
        ),
        "",
        *prose(
            f"{today}, {os.cpu_count()} cores, {memory:.0f} GB, Python {platform.python_version()}, load of the"
            " machine"
            f" while measuring {min(loads):g} to {max(loads):g} (the contenders' own included). "
            + ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
            + "."
        ),
        "",
    ]


def summary(verdicts: Sequence[Verdict]) -> list[str]:
    """How many bars were met, and each one that was not."""
    barred = [each for each in verdicts if each.bar]
    missed = [each for each in barred if not each.met]
    return [
        "## In short",
        "",
        f"{len(barred) - len(missed)} of {len(barred)} bars met.",
        *(f"- Missed: {each.what}: {each.figure} (bar: {each.bar}). {each.why or UNEXPLAINED}" for each in missed),
        "",
    ]


def losses(lines: Sequence[Line]) -> list[str]:
    """Where a private peer was faster, and why."""
    found = [line for line in lines if lost(line)]
    if not found:
        return ["No private peer was faster than sulq where both were timed."]
    rows = ["Where a private peer was faster:", ""]
    for who in dict.fromkeys(line["key"][-1] for line in found):
        own = ", ".join(f"{title(each)} ({1 / ratio(each):.2g}x)" for each in found if each["key"][-1] == who)
        rows.append(f"- {who}: {own}: {REASONS.get(who, UNEXPLAINED)}")
    return rows


def absent(lines: Sequence[Line]) -> list[str]:
    """Who takes part in a workload and has no line for some of its questions: nobody is left out in silence."""
    rows = []
    for part in "ABCDEH":
        asked = {tuple(line["key"][:-1]) for line in lines if line["key"][0] == part}
        told = {tuple(line["key"]) for line in lines}
        gone = [who.name for who in OTHERS if part in who.parts and any((*key, who.name) not in told for key in asked)]
        if gone:
            rows.append(f"- {part}, all or some of it: {', '.join(gone)}.")
    return ["", "Not measured in this run:", "", *rows] if rows else []


def doubts(lines: Sequence[Line]) -> list[str]:
    """Whose guarantee is known not to hold to the letter, of those that took part."""
    took = {line["key"][-1] for line in lines}
    found = [f"- {who.name}: {who.doubt}." for who in OTHERS if who.doubt and who.name in took]
    return ["", "Whose guarantee is known not to hold to the letter:", "", *found] if found else []


def write(lines: Sequence[Line], path: Path = PAGE) -> None:
    """The page and its plots."""
    text, verdicts = page(lines)
    path.write_text(text, encoding="utf-8")
    plots.draw(shown(lines), path.with_suffix(""))
    missed = [each for each in verdicts if each.bar and not each.met]
    print(f"{len(missed)} bars missed; wrote {path.name}", flush=True)
