"""AIM from the first question to the last fit: ours beside the same algorithm with mbi for its model.

    SULQ_DATA=... python -m benchmarks.release_aim [--runs 5] [--seconds 300]

All 2-way marginals of adult-train, numbers in eight equal parts of their declared bounds, epsilon 1, delta 1e-6. Both
have the same columns, workload, rounds and room; each run of mbi is a process of its own, on one thread as ours is.
Time and error are decided with few columns, where mbi ends; with all 15 it does not, and only its time is told.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import numpy as np
import pandas as pd

import sulq
from benchmarks.allowed import allowed
from benchmarks.release_peers import counts
from benchmarks.release_synthetic import DELTA, FOLDER, ROOT
from sulq import EpsilonDelta, release

TABLE = "adult-train"
EPSILON = 1.0
PARTS = 8
FEW = ("workclass", "education_num", "marital_status", "occupation", "relationship", "race")
RUNS = 5
SECONDS = 300.0
BAR = 2.0
TIMES = 3.0  # standard errors by which ours may seem worse (SR23)


def loaded(names: Sequence[str] | None = None) -> tuple[pd.DataFrame, dict[str, int]]:
    """The rows as codes from 0, and the number of values of each column, which is taken to be public; all, or some."""
    told = json.loads((FOLDER / f"{TABLE}.schema.json").read_text(encoding="utf-8"))["columns"]
    frame, codes, sizes = pd.read_csv(FOLDER / f"{TABLE}.csv"), {}, {}
    for name, column in told.items():
        if names is not None and name not in names:
            continue
        if column["type"] == "string":
            values = column.get("values") or sorted(frame[name].unique())
            codes[name], sizes[name] = frame[name].map({value: i for i, value in enumerate(values)}), len(values)
        else:
            width = column["upper"] - column["lower"] + 1
            sizes[name] = width if width <= 2 * PARTS else PARTS
            codes[name] = ((frame[name] - column["lower"]) * sizes[name] // width).clip(0, sizes[name] - 1)
    return pd.DataFrame(codes).astype(int), sizes


def ours(frame: pd.DataFrame, sizes: dict[str, int]) -> dict[str, float]:
    """One release, by its published rows."""
    columns = {name: sulq.Int(0, size - 1) for name, size in sizes.items()}
    spend = EpsilonDelta(EPSILON, DELTA)
    start, clock = time.process_time(), time.monotonic()
    asks: list[int] = []
    with sulq.connect(frame, columns=columns, budget=spend) as db:
        told = lambda done, _: asks.append(done)  # noqa: E731
        made = release.aim(db, list(sizes), spend=spend, bins=max(sizes.values()), progress=told)
    took, passed = time.process_time() - start, time.monotonic() - clock
    rounds = (max(asks) - 2) // 2  # after the number of rows and the columns by themselves, a choice and a sum each
    pairs = list(itertools.combinations(sizes, 2))
    far = [np.abs(made.marginal(list(pair)).values - counts(frame, pair, sizes)).sum() for pair in pairs]  # noqa: PD011
    return {"error": float(np.mean(far)) / len(frame), "computing": took, "seconds": passed, "rounds": rounds}


def _unfinished(rounds: list[dict[str, float]], seconds: float) -> list[str]:
    """The cells of a run that did not end: how far it came, and its last rounds."""
    if len(rounds) < 2:
        return ["did not finish", f"over {seconds:g}", str(len(rounds)), ""]
    last = rounds[-10:]
    a_round = (last[-1]["computing"] - last[0]["computing"]) / (len(last) - 1)
    spent = f"{len(rounds)}, for {rounds[-1]['spent']:.0%} of the spend"
    return ["did not finish", f"over {seconds:g}", spent, f"{a_round:.3g} (the last {len(last) - 1})"]


def report(runs: int = RUNS, seconds: float = SECONDS) -> list[str]:
    """The section of the page."""
    if not (FOLDER / f"{TABLE}.csv").exists():
        return ["### AIM beside mbi", "", f"{TABLE}: not in $SULQ_DATA or ../shared/data, left out."]
    few, many = compared(FEW, runs, seconds), compared(None, 1, seconds)
    return [*few, "", *many]


def compared(names: Sequence[str] | None, runs: int, seconds: float) -> list[str]:
    """The table of so many runs of each over these columns, and the verdict."""
    frame, sizes = loaded(names)
    found = [ours(frame, sizes) for _ in range(runs)]
    rho = float(EpsilonDelta(EPSILON, DELTA).rho)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        frame.to_csv(path, index=False)
        words = [sys.executable, "-m", "benchmarks.release_peers", "mbi-aim", str(path), json.dumps(sizes)]
        ended = allowed([*words, repr(rho), repr(EPSILON), repr(DELTA), str(runs)], seconds, ROOT)
    peer, rounds = [line for line in ended.lines if "error" in line], [line for line in ended.lines if "round" in line]
    lines = [f"### AIM with {len(sizes)} columns beside mbi", ""]
    lines += [
        "| who | runs | mean L1 / n | processor seconds a run | rounds | seconds a round |",
        "|---|---|---|---|---|---|",
    ]
    for who, several in (("**aim**", found), ("AIM with mbi", peer)):
        mean = {key: np.mean([run[key] for run in several]) for key in several[0]} if several else {}
        a_round = mean["computing"] / max(mean["rounds"], 1) if mean else 0.0
        told = [f"{value:.4g}" for value in (mean["error"], mean["computing"], mean["rounds"], a_round)] if mean else []
        lines.append(f"| {who} | {len(several)} | {' | '.join(told or _unfinished(rounds, seconds))} |")
    return [*lines, "", verdict(found, peer, seconds)]


def verdict(found: Sequence[dict[str, float]], peer: Sequence[dict[str, float]], seconds: float) -> str:
    """Whether ours takes at most twice mbi's time at an error that is not larger; of a run that never ended, less."""
    took = np.mean([run["computing"] for run in found])
    if not peer:
        told = f"Processor time less than {took / seconds:.2f}x of mbi's, which was not done after {seconds:g} s"
        return f"{told}: {_word(met=took <= BAR * seconds)} in time, and nothing is said of the error."
    ratio = took / np.mean([run["computing"] for run in peer])
    mine, theirs = ([run["error"] for run in each] for each in (found, peer))
    more, slack = np.mean(mine) - np.mean(theirs), TIMES * np.hypot(_error(mine), _error(theirs))
    return (
        f"Processor time {ratio:.2f}x of mbi's (bar {BAR:g}x): {_word(met=ratio <= BAR)}. Error {np.mean(mine):.4g} "
        f"against {np.mean(theirs):.4g} (not larger by more than {TIMES:g} standard errors, which are {slack:.2g}): "
        f"{_word(met=more <= slack)}."
    )


def _error(values: Sequence[float]) -> float:
    """The standard error of their mean; a single run is granted none."""
    return float(np.std(values, ddof=1) / len(values) ** 0.5) if len(values) > 1 else 0.0


def _word(*, met: bool) -> str:
    return "met" if met else "**missed**"


def main() -> None:
    """From the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=RUNS, help="runs of each with few columns")
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help="after which mbi's runs over either number of columns end"
    )
    given = parser.parse_args()
    print("\n".join(report(given.runs, given.seconds)))


if __name__ == "__main__":
    main()
