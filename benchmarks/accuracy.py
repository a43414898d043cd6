"""How far off answers are at epsilon 1, ours beside OpenDP, SmartNoise SQL and diffprivlib on the same questions.

    python -m benchmarks.accuracy adult-train.csv [RUNS]

The same public bounds for everyone, one row a person, add or remove, n secret unless a peer cannot (SR23). The
error of a run is its root mean square over cells; of a quantile, how many rows it is off in rank. A peer that
is not installed in the environment named by $SULQ_PEERS is left out and said so.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from opendp import domains, measurements, measures, metrics, transformations
from opendp.mod import binary_search_chain, enable_features

import sulq
from benchmarks.peers import rank_error
from sulq import Epsilon, Int

PAGE = Path(__file__).resolve().parents[1] / "docs" / "accuracy.md"
BOUNDS = {"age": (17, 90), "hours_per_week": (1, 99), "capital_gain": (0, 99_999)}
QUANTILES = {
    "median age": ("age", 0.5),
    "90% quantile of age": ("age", 0.9),
    "95% quantile of capital gain": ("capital_gain", 0.95),
}
MEANS = ("mean age", "mean hours by sex")


@dataclass(frozen=True)
class Errors:
    """One contender's errors on one question."""

    who: str
    errors: np.ndarray
    note: str = ""

    @property
    def size(self) -> float:
        """Root mean square."""
        return float(np.sqrt(np.mean(np.square(self.errors))))

    @property
    def slack(self) -> float:
        """Standard error of the mean square, carried over to its root."""
        squares = np.square(self.errors)
        return float(squares.std(ddof=1) / np.sqrt(len(squares)) / (2 * max(self.size, 1e-12)))


def _root(gaps: object) -> float:
    return float(np.sqrt(np.mean(np.square(gaps))))


def ours(data: pd.DataFrame, runs: int) -> dict[str, Errors]:
    """What db.sql answers."""
    words = {name: sorted(data[name].unique()) for name in ("sex", "education", "race")}
    columns = {name: Int(*bounds) for name, bounds in BOUNDS.items()} | words
    hours = data.groupby("sex")["hours_per_week"].mean()
    counts = data.groupby(["education", "race"]).size()

    found: dict[str, list[float]] = {}
    asked: dict[str, tuple[str, Callable[[pd.DataFrame], float]]] = {
        "mean age": ("SELECT AVG(age) AS v FROM adult", lambda f: float(f["v"][0]) - data["age"].mean()),
        "mean hours by sex": (
            "SELECT sex, AVG(hours_per_week) AS v FROM adult GROUP BY sex",
            lambda f: _root([v - hours[k] for k, v in zip(f["sex"], f["v"], strict=True) if k in hours.index]),
        ),
        "counts by education and race": (
            "SELECT education, race, COUNT(*) AS v FROM adult GROUP BY education, race",
            lambda f: _root(
                [
                    row.v - counts.get((row.education, row.race), 0)
                    for row in f.itertuples()
                    if isinstance(row.education, str) and isinstance(row.race, str)
                ]
            ),
        ),
    }
    for name, (column, q) in QUANTILES.items():
        sql = f"SELECT PERCENTILE_DISC({q}) WITHIN GROUP (ORDER BY {column}) AS v FROM adult"
        values = data[column].to_numpy()
        asked[name] = (sql, lambda f, values=values, q=q: rank_error(values, float(f["v"][0]), q))
    for name, (sql, error) in asked.items():
        # A budget of 900 holds 900 asks at epsilon 1: a fresh database for each question.
        with sulq.connect(data, table="adult", columns=columns, budget=Epsilon(900)) as fresh:
            found[name] = [
                error(fresh.sql(sql, spend=Epsilon(1), fresh=True).to_pandas()) for _ in range(min(runs, 890))
            ]
    return {name: Errors("sulq", np.abs(errors)) for name, errors in found.items()}


def opendp(data: pd.DataFrame, runs: int) -> dict[str, Errors]:
    """A count and a clamped sum at half the epsilon each; the vector Laplace; its own quantile scores."""
    enable_features("contrib")
    space = domains.atom_domain(T="i64"), metrics.absolute_distance(T="i64")

    def laplace(scale: float) -> Callable[[int], int]:
        return measurements.make_laplace(*space, scale)

    def mean(values: np.ndarray, bounds: tuple[int, int]) -> Callable[[], float]:
        count, total = laplace(2.0), laplace(2.0 * bounds[1])
        n, s = len(values), int(values.sum())
        return lambda: float(np.clip(total(s) / max(count(n), 1), *bounds)) - values.mean()

    found: dict[str, Errors] = {}
    age = mean(data["age"].to_numpy(), BOUNDS["age"])
    found["mean age"] = Errors("OpenDP", np.abs([age() for _ in range(runs)]))
    groups = [mean(group.to_numpy(), BOUNDS["hours_per_week"]) for _, group in data.groupby("sex")["hours_per_week"]]
    found["mean hours by sex"] = Errors("OpenDP", np.array([_root([one() for one in groups]) for _ in range(runs)]))
    cells = (
        data.groupby(["education", "race"])
        .size()
        .reindex(
            pd.MultiIndex.from_product([sorted(data["education"].unique()), sorted(data["race"].unique())]),
            fill_value=0,
        )
    )
    noise = laplace(1.0)
    errors = [_root([noise(int(cell)) - cell for cell in cells]) for _ in range(max(runs // 10, 20))]
    found["counts by education and race"] = Errors("OpenDP", np.array(errors))
    for name, (column, q) in QUANTILES.items():
        values = data[column].to_numpy()
        candidates = list(range(BOUNDS[column][0], BOUNDS[column][1] + 1, 1 if column == "age" else 100))
        scores = transformations.make_quantile_score_candidates(
            domains.vector_domain(domains.atom_domain(T="i32")), metrics.symmetric_distance(), candidates, q
        )
        chosen = binary_search_chain(
            lambda scale, scores=scores: scores
            >> measurements.make_noisy_max(*scores.output_space, measures.max_divergence(), scale, negate=True),
            d_in=1, d_out=1.0, T=float,
        )  # fmt: skip
        given = values.astype(int).tolist()
        picked = [candidates[chosen(given)] for _ in range(max(runs // 10, 20))]
        found[name] = Errors("OpenDP", np.array([rank_error(values, value, q) for value in picked]))
    return found


def peers(path: Path, runs: int) -> list[tuple[str, Errors]]:
    """SmartNoise SQL and diffprivlib, in an environment of their own."""
    python = os.environ.get("SULQ_PEERS", "")
    if not python or not Path(python).exists():
        print("SmartNoise SQL and diffprivlib: not run ($SULQ_PEERS names no Python that has them)")
        return []
    script = str(Path(__file__).with_name("peers.py"))
    done = subprocess.run([python, script, str(path), str(runs)], check=True, capture_output=True, text=True)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return [(line["question"], Errors(line["peer"], np.array(line["errors"]), line["note"])) for line in lines]


def main() -> None:
    """Print the table and write docs/accuracy.md."""
    path = Path(sys.argv[1])
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 400
    data = pd.read_csv(path)[[*BOUNDS, "sex", "education", "race"]]
    mine = ours(data, runs)
    others = [*opendp(data, runs).items(), *peers(path, max(runs // 4, 25))]
    rows = ["| question | sulq | best peer | verdict | peers |", "|---|---:|---:|---|---|"]
    for name, own in mine.items():
        theirs = [errors for question, errors in others if question == name]
        best = min(theirs, key=lambda errors: errors.size)
        worse = own.size > best.size + 3 * (own.slack + best.slack)
        verdict = "worse" if worse else "better" if own.size < best.size else "not worse"
        listed = "; ".join(f"{e.who} {e.size:.4g}{f' ({e.note})' if e.note else ''}" for e in theirs)
        rows.append(
            f"| {name} | {own.size:.4g} +- {own.slack:.2g} | {best.size:.4g} +- {best.slack:.2g} "
            f"| {verdict} | {listed} |"
        )
    text = "\n".join(rows)
    print(text)
    intro = (
        "# Accuracy\n\nRoot mean square errors on adult-train at epsilon 1 (of a quantile: rows of rank), written by "
        "`python -m benchmarks.accuracy`. The same public bounds for everyone; add or remove one row.\n\n"
    )
    PAGE.write_text(f"{intro}{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
