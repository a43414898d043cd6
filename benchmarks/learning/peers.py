"""diffprivlib and interpret on the same tables, run by the Python of an environment that has them.

    python -m benchmarks.learning.peers RUNS SECONDS [TABLE or TASK ...]

One JSON line a cell. A cell ends after SECONDS of CPU time, whatever else the machine does meanwhile, with the runs
it has; one that has none by then has no scores.
diffprivlib draws the directions of PCA one proposal at a time, for minutes; here it draws them in batches, by the
same law. Its k-means tells which clusters are empty without noise: it is measured as it is.
"""

from __future__ import annotations

import json
import signal
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np

from benchmarks.learning import sets, tasks

Fit = Callable[[int], float]
BATCH = 2000


def tell(task: str, table: str, epsilon: float, who: str, scores: list[float]) -> None:
    """One line for one cell."""
    line = {"task": task, "table": table, "epsilon": epsilon, "who": who, "scores": scores}
    print(json.dumps(line), flush=True)


def repeat(fit: Fit, runs: int, seconds: float) -> list[float]:
    """As many runs as are wished for and end within so many seconds of CPU time."""
    found: list[float] = []

    def stop(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        for run in range(runs):
            found.append(fit(run))  # noqa: PERF401 - what was found before the alarm stays
    except TimeoutError:
        pass
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return found


def batched(self: object, value: np.ndarray) -> np.ndarray:
    """A draw of diffprivlib's Bingham mechanism, its proposals many at a time."""
    self._check_all(value)
    width = len(value)
    if width == 1:
        return np.ones((1, 1))
    top = np.linalg.eigvalsh(value).max()
    form = self.epsilon * (top * np.eye(width) - value) / 4 / self.sensitivity
    eigenvalues, turn = np.linalg.eigh(form)
    eigenvalues = np.maximum(eigenvalues, 0.0)
    low, high = 1.0, float(width)
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if (1 / (middle + 2 * eigenvalues)).sum() > 1 else (low, middle)
    omega = 1 + 2 * eigenvalues / middle
    constant = -(width - middle) / 2 + width / 2 * np.log(width / middle)
    while True:
        drawn = self._rng.normal(size=(BATCH, width)) / np.sqrt(omega)
        drawn /= np.linalg.norm(drawn, axis=1)[:, None]
        squares = drawn**2
        chance = -squares @ eigenvalues - constant - width / 2 * np.log(squares @ omega)
        taken = np.flatnonzero(np.log(self._rng.random(BATCH)) <= chance)
        if len(taken):
            return turn @ drawn[taken[0]]


def projections(table: sets.Labelled, epsilon: float) -> dict[str, Fit]:
    """PCA about the middle of the bounds, rows within half their diagonal."""
    from diffprivlib.models import PCA

    points, low, high = table.numbers()
    half = (high - low) / 2
    centred = points - (low + high) / 2

    def fit(_: int) -> float:
        model = PCA(tasks.COMPONENTS, epsilon=epsilon, bounds=(-half, half), data_norm=float(np.linalg.norm(half)))
        return tasks.captured(model.fit(centred.copy()).components_, centred)

    return {"diffprivlib": fit}


def groups(table: sets.Labelled, epsilon: float) -> dict[str, Fit]:
    """k-means about the middle of the bounds."""
    from diffprivlib.models import KMeans

    points, low, high = table.numbers()
    half = (high - low) / 2
    centred = points - (low + high) / 2

    def fit(_: int) -> float:
        model = KMeans(tasks.clusters(table), epsilon=epsilon, bounds=(-half, half)).fit(centred)
        return -tasks.inertia(model.cluster_centers_, centred)

    return {"diffprivlib": fit}


def lines(table: sets.Labelled, epsilon: float) -> dict[str, Fit]:
    """Logistic regression, or linear regression where the label is a number.

    No row is longer than the full norm. At half of it longer rows are shortened and the noise is halved, which is
    better on some tables and worse on others; both contend.
    """
    from diffprivlib.models import LinearRegression, LogisticRegression

    points = table.indicators()
    norm = float(np.sqrt(len(table.domains)))  # each number adds at most one, each category exactly one

    def classified(run: int, norm: float) -> float:
        train, test = table.split(run)
        model = LogisticRegression(epsilon=epsilon, data_norm=norm).fit(points[train], table.y[train])
        return tasks.accuracy(table.y[test], model.predict(points[test]))

    def regressed(run: int) -> float:
        train, test = table.split(run)
        ones, half = np.ones(points.shape[1]), (table.classes - 1) / 2
        model = LinearRegression(epsilon=epsilon, bounds_X=(-ones, ones), bounds_y=(-half, half))
        model.fit(points[train].copy(), table.y[train] - half)
        return tasks.explained(table.y[test] - half, np.clip(model.predict(points[test]), -half, half))

    if tasks.regression(table):
        return {"diffprivlib": regressed}
    return {
        "diffprivlib full norm": lambda run: classified(run, norm),
        "diffprivlib half norm": lambda run: classified(run, norm / 2),
    }


def trees(table: sets.Labelled, epsilon: float) -> dict[str, Fit]:
    """A tree, and a forest of ten, of the same depth."""
    from diffprivlib.models import RandomForestClassifier
    from diffprivlib.models.forest import DecisionTreeClassifier

    points, low, high = table.codes()
    known = {
        "max_depth": tasks.DEPTH, "epsilon": epsilon, "bounds": (low, high), "classes": np.arange(table.classes),
    }  # fmt: skip

    def measured(model: object, run: int) -> float:
        train, test = table.split(run)
        return tasks.accuracy(table.y[test], model.fit(points[train], table.y[train]).predict(points[test]))

    return {
        "diffprivlib tree": lambda run: measured(DecisionTreeClassifier(**known), run),
        "diffprivlib forest": lambda run: measured(RandomForestClassifier(10, shuffle=True, **known), run),
    }


def boosted(table: sets.Labelled, runs: int, seconds: float) -> None:
    """Interpret's explainable boosting at (1, 1e-6)."""
    from interpret.privacy import DPExplainableBoostingClassifier

    bounds = {i: d for i, d in enumerate(table.domains.values()) if not isinstance(d, list)}
    kinds = ["continuous" if i in bounds else "nominal" for i in range(len(table.domains))]

    def fit(run: int) -> float:
        train, test = table.split(run)
        model = DPExplainableBoostingClassifier(
            epsilon=1.0, delta=1e-6, random_state=None, feature_types=kinds, privacy_bounds=bounds, n_jobs=1
        )
        model.fit(table.frame.iloc[train], table.y[train])
        return tasks.area(table.y[test] == 1, model.predict_proba(table.frame.iloc[test])[:, 1])

    tell("additive", table.name, 1.0, "interpret", repeat(fit, runs, seconds))


KINDS = {"PCA": projections, "k-means": groups, "linear": lines, "tree": trees}


def main() -> None:
    """Every cell of the tables and tasks named, or of all."""
    warnings.simplefilter("ignore")
    runs, seconds, words = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]
    names, wished = [word for word in words if word not in KINDS], [word for word in words if word in KINDS]
    from diffprivlib.mechanisms import Bingham

    Bingham.randomise = batched
    for name in names or (*sets.NAMES, sets.MIXTURE):
        table = sets.load(name)
        if table is None:
            continue
        started = time.monotonic()
        for task, contenders in KINDS.items():
            if wished and task not in wished:
                continue
            if name == sets.MIXTURE and task == "PCA":
                continue
            for epsilon in (1.0,) if name == sets.MIXTURE else tasks.EPSILONS:
                for who, fit in contenders(table, epsilon).items():
                    tell(task, name, epsilon, who, repeat(fit, runs, seconds))
        if name == "adult-train" and not wished:
            try:
                boosted(table, min(runs, 5), 10 * seconds)
            except ImportError:
                print("interpret is not installed", file=sys.stderr)
        print(f"{name}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
