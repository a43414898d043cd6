"""Supervised learners on tables that no constant was chosen on: no fall as epsilon grows, no cell lost to a peer.

The peers run in the environment `interpret` of benchmarks/versus/environments, or by the Python that $SULQ_PEERS names.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

import sulq
from benchmarks.epsilon.bars import Bar, Section
from benchmarks.learning import second, sets, tasks
from benchmarks.learning.judge import Scores
from benchmarks.versus import environments
from sulq import Epsilon, EpsilonDelta, Unit, learn

RUNS: Final = 6
SECONDS: Final = 60.0  # of CPU time that a peer's cell may take
LIMIT: Final = 2.0  # standard errors
LABEL: Final = "label"
ROOT: Final = Path(__file__).resolve().parents[2]
Cells = dict[tuple[str, str, float], dict[str, tuple[float, ...]]]  # by learner, table, epsilon: of each contender


def run() -> Section:
    """Measure ours, let the peers measure theirs, and judge."""
    warnings.simplefilter("ignore")
    started = time.monotonic()
    cells: Cells = {}
    loaded = {name: second.load(name) for name in second.TABLES}
    missing = [name for name, found in loaded.items() if found is None]
    for split in range(RUNS):
        for name, found in loaded.items():
            for task, epsilon, score in ours(*found, split) if found else ():
                held = cells.setdefault((task, name, epsilon), {})
                held["sulq"] = (*held.get("sulq", ()), score)
        print(f"{split + 1} of {RUNS} splits", flush=True)
    looked_at = additive()
    said = peers(cells | looked_at)
    return section(cells, (time.monotonic() - started) / 60, missing, said, looked_at)


def additive() -> Cells:
    """Our additive models on the tables that they were looked at on, where these are there."""
    found: Cells = {}
    loaded = {name: second.load(name) for name in second.LOOKED_AT}
    for name, split in itertools.product((name for name in loaded if loaded[name]), range(RUNS)):
        for task, epsilon, score in ours(*loaded[name], split):
            if task == "additive":
                held = found.setdefault((task, name, epsilon), {})
                held["sulq"] = (*held.get("sulq", ()), score)
    return found


def section(
    cells: Cells, minutes: float, missing: Sequence[str] = (), said: str = "", looked_at: Cells | None = None
) -> Section:
    """The section of these cells."""
    notes = [
        (
            f"Tables: {', '.join(name for name in second.TABLES if name not in missing)}, of "
            "`benchmarks.learning.second`; no constant was chosen on them. A first run of 2 or 3 splits was looked at "
            "after all constants were fixed; no supervised learner was changed between it and this one. Two of the "
            "generated tables that constants were chosen on imitate the columns of diamonds and cps1988, so these two "
            "are less fresh than the other seven."
        ),
        (
            f"{fewest(cells)} splits or more of four fifths to learn from and a fifth to measure on, the same for "
            "everybody. Additive models at (epsilon, 1e-6), AUC or R²; logistic regression, naive Bayes, perceptron "
            "and trees at pure epsilon, accuracy; linear regression at pure epsilon, R². ± is one standard error. "
            f"All of it took {minutes:.0f} minutes. Cells without a peer's figure have none "
            f"such; a peer's cell ends after {SECONDS:g} seconds of CPU time."
        ),
        *([f"Left out, as they are not there: {', '.join(missing)}."] if missing else []),
        *([said] if said else []),
        table(cells),
    ]
    bars = [*monotone(cells), *unbeaten(cells), *level(looked_at or {})]
    return Section("Supervised learners", bars, notes)


def ours(held: sets.Labelled, bounds: sets.Domain, split: int) -> Iterator[tuple[str, float, float]]:
    """Our learners' scores on one split: learner, epsilon, score."""
    train, test = held.split(split)
    for relation in ("add_remove", "replace_one"):
        with opened(held, bounds, train, relation) as db:
            for task, (model, spend, judged) in contenders(held, relation).items():
                for epsilon in tasks.EPSILONS:
                    fit = model().fit(db[list(held.domains)], db[LABEL], spend=spend(epsilon))
                    yield task, epsilon, judged(fit, held.frame.iloc[test], held.y[test])


def opened(held: sets.Labelled, bounds: sets.Domain, rows: np.ndarray, relation: str) -> sulq.Database:
    """A database over some rows of a table, its label declared."""
    columns: dict[str, object] = {
        name: sulq.Category(domain) if isinstance(domain, list) else sulq.Real(*domain)
        for name, domain in held.domains.items()
    }
    number = held.name in second.NUMBERS
    columns[LABEL] = sulq.Real(*bounds) if number else sulq.Category(list(range(held.classes)))
    frame = held.frame.iloc[rows].assign(**{LABEL: held.y[rows]}).reset_index(drop=True)
    return sulq.connect(frame, columns=columns, budget=EpsilonDelta(900, 1e-3), unit=Unit(neighbors=relation))


Judge = Callable[[Any, Any, np.ndarray], float]


def contenders(held: sets.Labelled, relation: str) -> dict[str, tuple[Any, Any, Judge]]:
    """The learners that fit a table, under the relation that the peer's noise is right for."""

    def both(epsilon: float) -> EpsilonDelta:
        return EpsilonDelta(epsilon, second.DELTA)

    def explained(model: Any, frame: Any, truth: np.ndarray) -> float:
        return tasks.explained(truth, model.predict(frame))

    def named(model: Any, frame: Any, truth: np.ndarray) -> float:
        return tasks.accuracy(truth, model.predict(frame))

    def area(model: Any, frame: Any, truth: np.ndarray) -> float:
        return tasks.area(truth == 1, np.ravel(model.decision_function(frame)))

    if held.name in second.NUMBERS:
        if relation == "replace_one":
            return {"linear": (learn.LinearRegression, Epsilon, explained)}
        return {"additive": (learn.AdditiveRegressor, both, explained)}
    if relation == "replace_one":
        return {"logistic": (learn.LogisticRegression, Epsilon, named)}
    found = {"tree": (learn.ID3, Epsilon, named), "naive Bayes": (learn.NaiveBayes, Epsilon, named)}
    if held.classes == 2:
        found |= {"additive": (learn.AdditiveClassifier, both, area), "perceptron": (learn.Perceptron, Epsilon, named)}
    return found


def fewest(cells: Cells) -> int:
    """How many runs the cell has that has fewest."""
    return min((len(runs) for by in cells.values() for runs in by.values()), default=0)


def splits(cells: Cells) -> str:
    """How many runs our cells have, in words."""
    numbers = sorted({len(by["sulq"]) for by in cells.values()})
    return f"({' or '.join(map(str, numbers))} splits)"


def peers(cells: Cells) -> str:
    """The peers' scores into the cells of ours; gives what is to be said where they cannot run."""
    try:
        python = os.environ.get("SULQ_PEERS") or str(environments.python("interpret"))
    except environments.Missing as reason:
        return f"DP-EBM and diffprivlib: not run ({reason})."
    words = [python, "-m", "benchmarks.learning.second", str(RUNS), str(SECONDS)]
    made = subprocess.run(words, check=True, capture_output=True, text=True, cwd=ROOT, env=os.environ)
    for line in map(json.loads, made.stdout.splitlines()):
        key = line["task"], line["table"], float(line["epsilon"])
        if line["scores"] and key in cells:
            cells[key][line["who"]] = tuple(line["scores"])
    return ""


def monotone(cells: Cells) -> Iterator[Bar]:
    """Each learner's largest fall from one epsilon to a larger one, in standard errors of the difference."""
    for task in sorted({task for task, _, _ in cells}):
        worst, where = -np.inf, ""
        for name in second.TABLES:
            steps = [Scores("", cells[task, name, e]["sulq"]) for e in tasks.EPSILONS if (task, name, e) in cells]
            for low, high in itertools.pairwise(steps):
                fall = (low.mean - high.mean) / max(float(np.hypot(low.slack, high.slack)), 1e-9)
                if fall > worst:
                    worst, where = fall, name
        bar = f"at most {LIMIT:g} standard errors"
        told = f"{where} {splits(cells)}"
        yield Bar(f"{task}: largest fall as epsilon grows", f"{worst:.1f}", told, bar, worst <= LIMIT)


def unbeaten(cells: Cells) -> Iterator[Bar]:
    """Each learner's worst cell beside its best peer, and every other that is lost."""
    for task in sorted({task for (task, _, _), by in cells.items() if len(by) > 1}):
        behind = [(_errors(by), name, e) for (own, name, e), by in cells.items() if own == task and len(by) > 1]
        behind.sort(reverse=True)
        worst = behind[0][0]
        lost = max(sum(errors > LIMIT for errors, _, _ in behind), 1)
        told = [f"{name}, epsilon {e:g}: {errors:.1f}" for errors, name, e in behind[:lost]]
        told.append(f"{sum(b[0] <= 0 for b in behind)} of {len(behind)} cells ahead or level {splits(cells)}")
        bar = f"behind by at most {LIMIT:g} standard errors"
        yield Bar(f"{task}: worst cells beside a peer", f"{worst:.1f}", "; ".join(told), bar, worst <= LIMIT)


def level(cells: Cells) -> Iterator[Bar]:
    """The additive models beside DP-EBM on the tables that they were looked at on; not run without table or peer."""
    for name in second.LOOKED_AT:
        own = {e: by for (_, held, e), by in sorted(cells.items()) if held == name}
        figures = ", ".join(_told(Scores("", by["sulq"])) for by in own.values()) or "the table is not here"
        beside = {e: by for e, by in own.items() if len(by) > 1}
        theirs = ", ".join(_told(_best(by)) for by in beside.values()) or "not run"
        met = all(_errors(by) <= LIMIT for by in beside.values()) if beside else None
        bar = f"behind by at most {LIMIT:g} standard errors"
        epsilons = ", ".join(f"{e:g}" for e in tasks.EPSILONS)
        yield Bar(f"additive: {name}, epsilon {epsilons}", figures, f"DP-EBM {theirs}", bar, met)


def _told(scores: Scores) -> str:
    return f"{scores.mean:.3f} ± {scores.slack:.3f}"


def _best(by: dict[str, tuple[float, ...]]) -> Scores:
    return max((Scores(who, runs) for who, runs in by.items() if who != "sulq"), key=lambda found: found.mean)


def _errors(by: dict[str, tuple[float, ...]]) -> float:
    """How far the best peer is ahead, in standard errors of the difference."""
    own, peer = Scores("sulq", by["sulq"]), _best(by)
    return (peer.mean - own.mean) / max(float(np.hypot(own.slack, peer.slack)), 1e-9)


def table(cells: Cells) -> str:
    """Every cell."""
    rows = ["| learner | table | epsilon | sulq | best peer |", "|---|---|---|---|---|"]
    for (task, name, epsilon), by in sorted(cells.items()):
        own = Scores("sulq", by["sulq"])
        peer = _best(by) if len(by) > 1 else None
        theirs = f"{_told(peer)} ({peer.who})" if peer else ""
        rows.append(f"| {task} | {name} | {epsilon:g} | {_told(own)} | {theirs} |")
    return "\n".join(rows)
