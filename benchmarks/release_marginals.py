"""Marginals of contingency tables: how far off all pairs and triples are, by every method of ours and by mbi 2.0.

    SULQ_DATA=... python -m benchmarks.release_marginals [--runs 10] [--seconds 300] [--sets nltcs k10] [--keep FILE]

Pure epsilon, neighbours that add or remove one row, the same public columns and cells for all; nobody is told the
number of rows. What counts is the mean L1 distance of a marginal from the truth over the number of rows. mbi is fitted,
with its defaults, to noisy marginals measured with an even share of epsilon each; it runs in a process of its own.
"""

# ruff: noqa: PD011 - values here are NumPy's, not a frame's

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "2")

import argparse
import functools
import itertools
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

import sulq
from benchmarks import mbi_oracle
from benchmarks.allowed import allowed
from benchmarks.kept import Kept
from sulq import Epsilon, release
from sulq.errors import QuestionError
from sulq.release.tables.methods import METHODS

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path(os.environ.get("SULQ_DATA") or ROOT.parent / "shared" / "data") / "tabular"
ADULT = ("workclass", "education-num", "marital-status", "occupation", "relationship", "race", "sex", "income>50K")
SETS = ("k10", "k16", "nltcs", "adult-discrete")
WAYS = (2, 3)
EPSILONS = (1.0, 0.1)
ROWS = 50_000  # of the generated tables
BAR = 1.05
OFTENER = {"k10": 10}  # times as many runs: short ones, in which chance is larger than the bar
PEERS = {"independent": 1, "mbi, pairs": 2, "mbi, triples": 3}
Table = npt.NDArray[np.float64]
Places = tuple[int, ...]


def generated(k: int, rows: int) -> npt.NDArray[np.int64]:
    """Rows of yes or no: four kinds of people, each answer turned round with probability 1/5."""
    rng = np.random.default_rng(0)
    kinds = rng.random((4, k)) < 0.5
    return (kinds[rng.integers(0, 4, rows)] ^ (rng.random((rows, k)) < 0.2)).astype(np.int64)


def loaded(name: str) -> tuple[pd.DataFrame, tuple[int, ...]] | None:
    """The rows as codes from 0, and the declared number of values of each column; None where the file is not there."""
    if name.startswith("k"):
        codes = generated(int(name[1:]), ROWS)
        return pd.DataFrame(codes, columns=[f"x{i}" for i in range(codes.shape[1])]), (2,) * codes.shape[1]
    path = FOLDER / f"{name}.csv"
    if not path.exists():
        return None
    told = json.loads(path.with_suffix("").with_suffix(".schema.json").read_text(encoding="utf-8"))["columns"]
    frame = pd.read_csv(path)
    frame = frame[list(ADULT)] if name == "adult-discrete" else frame
    values = [told[c]["values"] if "values" in told[c] else range(int(told[c]["upper"]) + 1) for c in frame.columns]
    return frame.astype(np.int64), tuple(map(len, values))


def counts(frame: pd.DataFrame, places: Places, sizes: tuple[int, ...]) -> Table:
    """A true marginal."""
    own = tuple(sizes[place] for place in places)
    codes = np.ravel_multi_index(tuple(frame.iloc[:, place].to_numpy() for place in places), own)
    return np.bincount(codes, minlength=int(np.prod(own))).reshape(own).astype(np.float64)


def marginals(frame: pd.DataFrame, sizes: tuple[int, ...], ways: int) -> dict[Places, Table]:
    """All true marginals of so many attributes."""
    return {places: counts(frame, places, sizes) for places in itertools.combinations(range(len(sizes)), ways)}


def off(found: Callable[[Places], Table], truth: dict[Places, Table], rows: int) -> float:
    """The mean L1 distance of the marginals over the number of rows."""
    return float(np.mean([np.abs(found(places) - own).sum() for places, own in truth.items()])) / rows


@dataclass(frozen=True)
class Cell:
    """The distances of every contender in one setting, and which method auto took."""

    name: str
    ways: int
    epsilon: float
    scores: dict[str, list[float]]
    took: str

    def mean(self, who: str) -> float:
        """The mean of a contender's runs."""
        return float(np.mean(self.scores[who]))

    def error(self, who: str) -> float:
        """Its standard error; none is granted to a single run."""
        found = self.scores[who]
        return float(np.std(found, ddof=1)) / len(found) ** 0.5 if len(found) > 1 else 0.0

    @property
    def best(self) -> str:
        """The best of all others."""
        return min((who for who, runs in self.scores.items() if who != "auto" and runs), key=self.mean)

    @property
    def ratio(self) -> float:
        """How many times the best's distance auto's is."""
        return self.mean("auto") / self.mean(self.best)

    @property
    def verdict(self) -> str:
        """Whether auto is within the bar; past it by less than two standard errors of the two, more runs are wanted."""
        over = self.mean("auto") - BAR * self.mean(self.best)
        if over <= 0:
            return "met"
        unclear = over <= 2 * np.hypot(self.error("auto"), self.error(self.best))
        return "**missed**, by less than two standard errors" if unclear else "**missed**"


def ours(
    frame: pd.DataFrame, sizes: tuple[int, ...], ways: int, epsilon: float, method: str, *, runs: int, seconds: float
) -> tuple[list[float], str]:
    """Distances of a method of ours, by real asks with real noise, and what it took."""
    names = list(frame.columns)
    columns = {name: sulq.Int(0, size - 1) for name, size in zip(names, sizes, strict=True)}
    truth = marginals(frame, sizes, ways)
    scores: list[float] = []
    took = method
    started = time.monotonic()
    with sulq.connect(frame, columns=columns, budget=Epsilon(900)) as db:
        db.prepare()
        for _ in range(runs):
            try:
                made = release.contingency(db, names, method=method, ways=ways, bins=max(sizes), spend=Epsilon(epsilon))
            except QuestionError as refusal:
                return [], refusal.code
            took = made.method + (
                f" of {made.contents.measured} {made.contents.order}" if made.method == "model" else ""
            )
            found = lambda places, made=made: made.marginal([names[place] for place in places]).values  # noqa: E731
            scores.append(off(found, truth, len(frame)))
            if time.monotonic() - started > seconds:
                break
    return scores, took


def fits(name: str, measured: int, epsilon: float, runs: int) -> Iterator[dict[int, float]]:
    """Distances of mbi's fits to all marginals of so many attributes, of pairs and of triples, run by run."""
    warnings.simplefilter("ignore")
    import jax

    jax.config.update("jax_enable_x64", True)
    import mbi

    found = loaded(name)
    assert found is not None
    frame, sizes = found
    names = [str(place) for place in range(len(sizes))]
    truth = {
        ways: {p: counts(frame, p, sizes) for p in itertools.combinations(range(len(sizes)), ways)} for ways in WAYS
    }
    asked = list(itertools.combinations(range(len(sizes)), measured))
    rng = np.random.default_rng()
    scale = len(asked) / epsilon
    oracle = mbi_oracle.oracle(sizes, measured)
    for _ in range(runs):
        told = []
        for places in asked:
            exact = counts(frame, places, sizes).ravel()
            noisy = exact + rng.laplace(0, scale, exact.size)
            told.append(mbi.LinearMeasurement(noisy, tuple(names[place] for place in places), stddev=scale * 2**0.5))
        model = mbi.estimation.MirrorDescent(marginal_oracle=oracle).estimate(mbi.Domain(names, sizes), told)
        whole = mbi_oracle.table(model)
        others = {p: tuple(i for i in range(len(sizes)) if i not in p) for own in truth.values() for p in own}
        project = lambda p, whole=whole, others=others: whole.sum(axis=others[p])  # noqa: E731
        yield {ways: off(project, own, len(frame)) for ways, own in truth.items()}


def independent(name: str, epsilon: float, runs: int) -> list[dict[str, float]]:
    """Distances of independent columns: products of noisy counts by single attributes, none negative."""
    found = loaded(name)
    assert found is not None
    frame, sizes = found
    truth = {ways: marginals(frame, sizes, ways) for ways in WAYS}
    rng = np.random.default_rng()
    scores = []
    for _ in range(runs):
        noisy = [
            counts(frame, (i,), sizes) + rng.laplace(0, len(sizes) / epsilon, size) for i, size in enumerate(sizes)
        ]
        total = max(float(np.mean([own.sum() for own in noisy])), 1.0)
        shares = [np.maximum(own, 0) / max(float(np.maximum(own, 0).sum()), 1.0) for own in noisy]

        def table(places: Places, total: float = total, shares: list[Table] = shares) -> Table:
            return total * functools.reduce(np.multiply.outer, [shares[place] for place in places])

        scores.append({str(ways): off(table, own, len(frame)) for ways, own in truth.items()})
    return scores


def peer(name: str, measured: int, epsilon: float, *, runs: int, seconds: float) -> list[dict[str, float]]:
    """The same in a process of its own, which has so many seconds."""
    if measured == 1:
        return independent(name, epsilon, runs)
    words = [sys.executable, "-m", "benchmarks.release_marginals", "--peer", name, str(measured), str(epsilon)]
    return allowed([*words, "--runs", str(runs)], seconds, ROOT).lines


def measured(names: tuple[str, ...], runs: int, seconds: float, kept: Kept) -> tuple[list[Cell], list[str]]:
    """All cells, and what is missing."""
    cells, missing = [], []
    for name in names:
        found = loaded(name)
        if found is None:
            missing.append(f"{name}: not in $SULQ_DATA or ../shared/data, left out.")
            continue
        frame, sizes = found
        most = runs * OFTENER.get(name, 1)
        for epsilon in EPSILONS:
            peers = {}
            for who, order in PEERS.items():
                line = kept.of([name, epsilon, who])
                if line is None:
                    scores = peer(name, order, epsilon, runs=most, seconds=seconds)
                    line = kept.add({"key": [name, epsilon, who], "scores": [list(each.values()) for each in scores]})
                peers[who] = {ways: [each[i] for each in line["scores"]] for i, ways in enumerate(WAYS)}
            for ways in WAYS:
                scores = {who: own[ways] for who, own in peers.items() if PEERS[who] <= ways}
                took = ""
                for method in ("auto", *METHODS):
                    line = kept.of([name, epsilon, method, ways])
                    if line is None:
                        own, how = ours(frame, sizes, ways, epsilon, method, runs=most, seconds=seconds)
                        line = kept.add({"key": [name, epsilon, method, ways], "scores": own, "took": how})
                    scores[method] = line["scores"]
                    took = line["took"] if method == "auto" else took
                cells.append(Cell(name, ways, epsilon, scores, took))
    return cells, missing


def page(cells: list[Cell], runs: int, seconds: float) -> list[str]:
    """The table of cells and its verdict."""
    contenders = ("auto", *METHODS, *PEERS)
    rows = [
        "## Marginals",
        "",
        "The mean L1 distance of a marginal from the truth over the number of rows. Pure epsilon, one row added or",
        "removed, and the same public columns for all; nobody is told the number of rows (`auto` pays for its count).",
        "Naive are `cells`, `marginals` and independent columns (noisy counts by single attributes, nothing else). mbi",
        "is fitted with its defaults to noisy marginals of all pairs, or all triples, an even share of epsilon each;",
        "the triples of its fit to pairs compete too (benchmarks/mbi_oracle.py gives it the same",
        "marginals of binary tables in less time). k10 and k16 are generated: 50,000 rows of four kinds of people,",
        f"each yes or no turned round with probability 1/5. adult-discrete: {', '.join(ADULT)}.",
        f"{runs} runs a cell (of k10 {runs * OFTENER['k10']}), or those that {seconds:.0f} seconds held (their number",
        "after the figure); a dash where there is none in that time, or the table is too large for the method.",
        "Constants of `model` (LEFT_OUT, POOL) were chosen with these tables in sight; on a table nobody has looked at",
        "it may do less well.",
        "",
        f"Bar: `auto` at most {BAR}x of the best of all others. Missed by less than two standard errors of the two",
        "means, it wants more runs before it says anything of the method.",
        "",
        f"| table | ways | epsilon | {' | '.join(contenders)} | auto took | auto / best | |",
        f"|---|---|---|{'---:|' * len(contenders)}---|---:|---|",
    ]
    for cell in cells:
        figures = []
        for who in contenders:
            own = cell.scores.get(who) or []
            few = f" ({len(own)})" if len(own) < runs else ""
            figures.append(f"{cell.mean(who):.4f}{few}" if own else "-")
        last = f"{cell.took} | {cell.ratio:.2f} | {cell.verdict}"
        rows.append(f"| {cell.name} | {cell.ways} | {cell.epsilon:g} | {' | '.join(figures)} | {last} |")
    past = [cell for cell in cells if cell.verdict != "met"]
    rows += ["", f"- `auto` within {BAR}x of the best in {len(cells) - len(past)} of {len(cells)} cells."]
    rows += [
        f"- {cell.name}, {cell.ways}-way, epsilon {cell.epsilon:g}: {cell.mean('auto'):.5f} ± {cell.error('auto'):.5f} "
        f"against {cell.mean(cell.best):.5f} ± {cell.error(cell.best):.5f} ({cell.best}): {cell.verdict}."
        for cell in past
    ]
    return rows


def report(
    runs: int = 10, seconds: float = 300.0, names: tuple[str, ...] = SETS, keep: Path | None = None
) -> list[str]:
    """Measure everything; gives the lines of the page."""
    cells, missing = measured(names, runs, seconds, Kept(keep))
    return [*page(cells, runs, seconds), *(f"- {line}" for line in missing)]


def main() -> None:
    """From the command line; with --peer the lines of one peer's runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10, help="runs of every cell")
    parser.add_argument("--seconds", type=float, default=300.0, help="after which a contender's cell ends")
    parser.add_argument("--sets", nargs="*", default=list(SETS), help="some of the tables")
    parser.add_argument("--keep", type=Path, help="a file of scores: what is in it is not measured again")
    parser.add_argument("--peer", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.peer:
        name, order, epsilon = given.peer
        for scores in fits(name, int(order), float(epsilon), given.runs):
            print(json.dumps(scores), flush=True)
        return
    print("\n".join(report(given.runs, given.seconds, tuple(given.sets), given.keep)))


if __name__ == "__main__":
    main()
