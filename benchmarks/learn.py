"""How good learned models are: gains over the paper's constants, and ours beside diffprivlib, interpret, scikit-learn.

    python -m benchmarks.learn [--runs 20] [--quick] [--seconds 15] [--tables wine car ...] [--tasks tree ...]
        [--keep FILE] [--over] [--no-page]

Writes docs/benchmarks-learn.md. The peers run in the environment whose Python $SULQ_PEERS names, at the same time as
ours; without it, and without a table of $SULQ_DATA, the cells are left out and it is said so (SR23).
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy: the peers have the other core

import argparse
import json
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.learning import gains, ours, sets, tasks
from benchmarks.learning.page import EXACT, OURS, Findings, page
from benchmarks.learning.taken_over import with_cells

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "benchmarks-learn.md"
ALL_TASKS = (*tasks.RELATIONS, "additive")


@dataclass
class Kept:
    """Lines of scores, in a file where one is named: what is there is not measured again."""

    path: Path | None = None
    lines: list[dict[str, object]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.path and self.path.exists():
            self.lines = [json.loads(line) for line in self.path.read_text(encoding="utf-8").splitlines()]

    def add(self, line: dict[str, object]) -> None:
        """One cell's scores of one contender."""
        self.lines.append(line)
        if self.path:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")

    def of(self, whose: Callable[[str], bool], table: str) -> list[dict[str, object]]:
        """What is known of some contenders on a table."""
        return [line for line in self.lines if line["table"] == table and whose(str(line["who"]))]


@dataclass
class Peers:
    """The peers' own process."""

    runs: int
    seconds: float
    tables: list[str]  # and tasks, where not all are wished for
    said: str = ""
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Let them begin, if there is something to do."""
        python = os.environ.get("SULQ_PEERS", "")
        if not python or not Path(python).exists():
            self.said = "diffprivlib and interpret: not run ($SULQ_PEERS names no Python that has them)."
            print(self.said)
        elif self.tables:
            self.out = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - open while they run
            words = [python, "-m", "benchmarks.learning.peers", str(self.runs), str(self.seconds), *self.tables]
            environment = os.environ | {"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
            self.process = subprocess.Popen(words, stdout=self.out, cwd=ROOT, env=environment)

    def end(self, kept: Kept) -> None:
        """Wait for them and read."""
        if self.process is None:
            return
        if self.process.wait():
            raise SystemExit("the peers' process failed")
        self.out.seek(0)
        for line in self.out:
            kept.add(json.loads(line))


def measure(runs: int, tables: tuple[str, ...], kept: Kept, chosen: tuple[str, ...] = ALL_TASKS) -> list[str]:
    """Our side of every cell of some tasks, and scikit-learn's; the tables that are not there."""
    missing = []
    for name in tables:
        table = sets.load(name)
        if table is None:
            missing.append(name)
            print(f"{name}: not in $SULQ_DATA or ../shared/data, left out")
            continue
        mixed = name == sets.MIXTURE
        few = min(runs, 5) if mixed else runs
        done = {line["task"] for line in kept.of(OURS.__eq__, name)}
        for task in tasks.RELATIONS:
            if (mixed and task == "PCA") or task in done or task not in chosen:
                continue
            started = time.monotonic()
            kept.add(
                {"task": task, "table": name, "epsilon": 0, "who": EXACT, "scores": [ours.exact(table, task, few)]}
            )
            for epsilon, scores in ours.scores(table, task, few, (1.0,) if mixed else tasks.EPSILONS).items():
                kept.add({"task": task, "table": name, "epsilon": epsilon, "who": OURS, "scores": scores})
            print(f"{name}, {task}: {time.monotonic() - started:.0f} s", flush=True)
        if name == "adult-train" and "additive" not in done and "additive" in chosen:
            scores = ours.additive(table, min(runs, 5))
            kept.add({"task": "additive", "table": name, "epsilon": 1.0, "who": OURS, "scores": scores})
    return missing


def run(
    runs: int = 20,
    seconds: float = 15.0,
    tables: tuple[str, ...] = (),
    keep: Path | None = None,
    chosen: tuple[str, ...] = ALL_TASKS,
) -> str:
    """Measure everything, or some tables or tasks; gives the page."""
    warnings.simplefilter("ignore")
    started = time.monotonic()
    tables = tables or (*sets.NAMES, sets.MIXTURE)
    kept = Kept(keep)
    whole = not kept.lines
    others = [name for name in tables if not kept.of(lambda who: who not in (OURS, EXACT), name)]
    peers = Peers(runs, seconds, [*others, *(() if chosen == ALL_TASKS else chosen)] if others else [])
    peers.start()
    missing = measure(runs, tables, kept, chosen)
    won = gains.gains(min(runs, 20))
    peers.end(kept)
    parts = "" if whole else "Put together from several measurements (`--keep`): cells of fewer runs say so."
    notes = [parts, peers.said, *(f"{name} is not there: left out." for name in missing)]
    found = Findings(runs, seconds, won, kept.lines, notes)
    return page(found, (time.monotonic() - started) / 60 if whole else None)


def main() -> None:
    """From the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20, help="runs of every cell")
    parser.add_argument("--quick", action="store_true", help="three runs, five seconds of CPU time a peer's cell")
    parser.add_argument("--seconds", type=float, default=15.0, help="of CPU time, after which a peer's cell ends")
    parser.add_argument("--tables", nargs="*", default=[], help="some of the tables")
    parser.add_argument("--keep", type=Path, help="a file of scores: what is in it is not measured again")
    parser.add_argument("--no-page", action="store_true", help="print only")
    parser.add_argument("--tasks", nargs="*", default=[], choices=ALL_TASKS, help="some of the tasks")
    parser.add_argument("--over", action="store_true", help="take all other cells over from the page, peers' too")
    given = parser.parse_args()
    runs, seconds = (3, 5.0) if given.quick else (given.runs, given.seconds)
    chosen = tuple(given.tasks) or ALL_TASKS
    if given.over:
        kept = Kept(given.keep)
        measure(runs, tuple(given.tables) or sets.NAMES, kept, chosen)
        text = with_cells(PAGE.read_text(encoding="utf-8"), kept.lines, runs)
    else:
        text = run(runs, seconds, tuple(given.tables), given.keep, chosen)
    print(text)
    if not given.no_page:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
