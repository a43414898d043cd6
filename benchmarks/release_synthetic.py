"""Synthetic data: how far all 2-way marginals are off, by AIM and MWEM of ours and by others at the same guarantee.

    SULQ_DATA=... [SULQ_PEERS=...] [SULQ_OPENDP=...] python -m benchmarks.release_synthetic [--runs 10]

What counts is the mean L1 distance of a marginal over the number of rows: of the published rows for ours and
SmartNoise, of the fitted model itself, which is nearer than rows drawn from it, for OpenDP and mbi. The public columns
and their values are the same for all, and so is rho; SmartNoise is given the (epsilon, delta). Each peer has 15 minutes
a cell: the runs that end by then count, and where none does it "did not finish". $SULQ_PEERS names a Python that has
smartnoise-synth, $SULQ_OPENDP one that has opendp[mbi,polars].
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

import sulq
from benchmarks.allowed import allowed
from benchmarks.kept import Kept
from benchmarks.release_peers import counts
from sulq import EpsilonDelta, release
from sulq.release.mwem import MAX_CELLS

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path(os.environ.get("SULQ_DATA") or ROOT.parent / "shared" / "data") / "tabular"
SETS = {
    "nltcs": None,  # 16 binary columns
    "adult-discrete": [
        "workclass", "education-num", "marital-status", "occupation", "relationship", "race", "sex", "income>50K",
    ],
}  # fmt: skip
EPSILONS = (1.0, 0.1)
DELTA = 1e-6
BINS = 16  # no column here has more values: each is a cell
OURS: dict[str, Callable[..., release.SyntheticData]] = {"aim": release.aim, "mwem": release.mwem}
PEERS = {"opendp": "OpenDP AIM", "smartnoise": "SmartNoise AIM", "mbi": "mbi, all 2-way"}
PYTHONS = {"opendp": "SULQ_OPENDP", "smartnoise": "SULQ_PEERS"}  # they need polars and mbi of their own versions
TIMES = 3.0  # standard errors by which ours may seem worse (SR23)
SECONDS = 900.0


@dataclass
class Cell:
    """What one contender did on one table at one guarantee."""

    table: str
    epsilon: float
    who: str
    errors: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    said: str = ""

    @property
    def mean(self) -> float:
        """The mean error of its runs; infinite where there is none."""
        return float(np.mean(self.errors)) if self.errors else float("inf")

    @property
    def spread(self) -> float:
        """The standard error of the mean."""
        return float(np.std(self.errors, ddof=1) / len(self.errors) ** 0.5) if len(self.errors) > 1 else 0.0

    def line(self) -> str:
        """A row of the table."""
        if not self.errors:
            return f"| {self.table} | {self.epsilon:g} | {self.who} | {self.said} | | | |"
        told = f"{self.mean:.5f} | {self.spread:.5f} | {len(self.errors)} | {np.mean(self.seconds):.0f}"
        return f"| {self.table} | {self.epsilon:g} | {self.who} | {told} |"


def loaded(name: str) -> tuple[pd.DataFrame, dict[str, int]]:
    """The rows as codes from 0, and the declared number of values of each column."""
    told = json.loads((FOLDER / f"{name}.schema.json").read_text(encoding="utf-8"))["columns"]
    frame = pd.read_csv(FOLDER / f"{name}.csv")
    names = SETS[name] or list(frame.columns)
    sizes = {c: len(told[c]["values"]) if "values" in told[c] else int(told[c]["upper"]) + 1 for c in names}
    return frame[names], sizes


def ours(table: str, epsilon: float, method: str, runs: int) -> Cell:
    """So many releases of ours, by their published rows."""
    cell = Cell(table, epsilon, f"**{method}**")
    frame, sizes = loaded(table)
    if method == "mwem" and np.prod(list(sizes.values())) > MAX_CELLS:
        cell.said = "refused: the domain is too large"
        return cell
    columns = {name: sulq.Int(0, size - 1) for name, size in sizes.items()}
    spend = EpsilonDelta(epsilon, DELTA)
    for _ in range(runs):
        start = time.monotonic()
        with sulq.connect(frame, columns=columns, budget=spend) as db:
            made = OURS[method](db, list(sizes), spend=spend, bins=BINS)
        cell.seconds.append(time.monotonic() - start)
        far = [
            np.abs(made.marginal(list(pair)).values - counts(frame, pair, sizes)).sum()  # noqa: PD011 - NumPy's
            for pair in itertools.combinations(sizes, 2)
        ]
        cell.errors.append(float(np.mean(far)) / len(frame))
    return cell


def peer(table: str, epsilon: float, name: str, runs: int, seconds: float) -> Cell:
    """So many runs of a peer, or as many as end in time."""
    cell = Cell(table, epsilon, PEERS[name])
    python = sys.executable if name not in PYTHONS else os.environ.get(PYTHONS[name], "")
    if not python or not Path(python).exists():
        cell.said = f"not run (${PYTHONS[name]} names no Python)"
        return cell
    frame, sizes = loaded(table)
    rho = float(EpsilonDelta(epsilon, DELTA).rho)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        frame.to_csv(path, index=False)
        words = [python, "-m", "benchmarks.release_peers", name, str(path), json.dumps(sizes)]
        ended = allowed([*words, repr(rho), repr(epsilon), repr(DELTA), str(runs)], seconds, ROOT)
    told = [line for line in ended.lines if "error" in line]
    cell.errors, cell.seconds = [line["error"] for line in told], [line["seconds"] for line in told]
    missing = "failed" if ended.lines else "not installed"
    cell.said = missing if ended.failed else f"did not finish in {seconds / 60:.0f} minutes"
    return cell


def verdict(cells: list[Cell], table: str, epsilon: float) -> str:
    """Whether AIM of ours is not worse than the best AIM that finished or, where none did, than mbi (SR23)."""
    own = {cell.who: cell for cell in cells if (cell.table, cell.epsilon) == (table, epsilon)}
    others = [own[name] for name in (PEERS["opendp"], PEERS["smartnoise"]) if name in own and own[name].errors]
    best = min(others, key=lambda cell: cell.mean, default=own.get(PEERS["mbi"]))
    aim = own.get("**aim**")
    if aim is None or best is None or not aim.errors or not best.errors:
        return f"- {table}, epsilon {epsilon:g}: nothing to compare with was measured."
    met = aim.mean <= best.mean + TIMES * (aim.spread**2 + best.spread**2) ** 0.5
    ratio = aim.mean / best.mean
    return f"- {table}, epsilon {epsilon:g}: {'met' if met else '**not met**'}: {ratio:.2f}x of {best.who}."


def measured(runs: int, seconds: float, only: str = "", keep: Path | None = None) -> list[Cell]:
    """Every cell whose name has these words, printed as it ends; what the file holds is not measured again."""
    warnings.simplefilter("ignore")
    cells, kept = [], Kept(keep)
    for table, epsilon in itertools.product(SETS, EPSILONS):
        if not (FOLDER / f"{table}.csv").exists():
            print(f"{table}: not in $SULQ_DATA or ../shared/data, left out")
            continue
        for who in (*OURS, *PEERS):
            if only and only not in f"{table} {epsilon:g} {who}":
                continue
            key = [table, epsilon, who]
            known = kept.of(key)
            if known is None:
                own = ours(table, epsilon, who, runs) if who in OURS else peer(table, epsilon, who, runs, seconds)
                known = kept.add(
                    {"key": key, "who": own.who, "scores": own.errors, "seconds": own.seconds, "said": own.said}
                )
            cells.append(Cell(table, epsilon, known["who"], known["scores"], known["seconds"], known["said"]))
            print(cells[-1].line(), flush=True)
    return cells


def report(runs: int = 10, seconds: float = SECONDS, only: str = "", keep: Path | None = None) -> list[str]:
    """The section of the page."""
    return lines(measured(runs, seconds, only, keep), seconds)


def lines(cells: list[Cell], seconds: float = SECONDS) -> list[str]:
    """What was measured, as Markdown."""
    columns = ", ".join(SETS["adult-discrete"] or [])
    where = dict.fromkeys((cell.table, cell.epsilon) for cell in cells)
    return [
        "## Synthetic data",
        "",
        "All 2-way marginals of nltcs (16 binary columns, 21,574 rows) and of eight columns of adult-discrete",
        f"({columns}; 48,842 rows), delta {DELTA:g}.",
        "Mean L1 distance of a marginal / n: of the published rows for ours and SmartNoise, of the fitted model itself",
        "for OpenDP and mbi. The same rho for all; SmartNoise takes n and the values as public.",
        f"Each peer has {seconds / 60:.0f} minutes a cell, by the clock and of computing; runs that end by then count.",
        "",
        "| table | epsilon | who | mean L1 / n | standard error | runs | seconds a run |",
        "|---|---|---|---|---|---|---|",
        *(cell.line() for cell in cells),
        "",
        "The bar: `aim` is not worse, by more than 3 standard errors, than the best AIM of others that finished or,",
        "where none did, than mbi on all 2-way marginals.",
        "",
        *(verdict(cells, *each) for each in where),
    ]


def main() -> None:
    """From the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10, help="runs of every cell")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="after which a peer's cell ends")
    parser.add_argument("--only", default="", help="part of `table epsilon who`")
    parser.add_argument("--keep", type=Path, help="a file of scores: what is in it is not measured again")
    given = parser.parse_args()
    print("\n".join(report(given.runs, given.seconds, given.only, given.keep)))


if __name__ == "__main__":
    main()
