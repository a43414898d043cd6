"""PCA and k-means: wide bounds, columns left out, drowned clusters, and a second set of tables beside diffprivlib."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import warnings
from collections.abc import Iterator

import numpy as np
import pandas as pd

import sulq
from benchmarks.epsilon.bars import Bar, Section
from benchmarks.learning import ours, second_unsupervised, sets, tasks
from benchmarks.learning.judge import Scores
from benchmarks.versus.environments import ROOT, Missing, python
from sulq import Epsilon
from sulq.learn import PCA, KMeans

RUNS = 60  # of made-up rows: one in six of drowned clusters is far off
FEW_RUNS = 6  # of digits, and of the peer
REAL_RUNS = 24  # of the second set
SECONDS = 5.0  # of CPU time, after which a cell of the peer ends
LIMIT = 2.0  # standard errors of a difference
ROUNDING = 1e-9  # of a captured part: three directions of three columns hold everything
WIDE_BEFORE = ("before 0.656 ± 0.036", "before 122 ± 29")  # a third of the bounds where the spread is hidden, 0.1.0
DROWNED_BEFORE = "before 3.212 ± 0.303"
NOTE_ON_FIGURES = (
    "PCA: the part that is held of the variance of the best directions, three on tables. k-means: on tables inertia as "
    f"a multiple of scikit-learn's, three clusters. Lost or falling: by more than {LIMIT:g} standard errors."
)
NOTE_ON_TABLES = (
    "The second set (cps1988, flights-sample, acs-ma2019, insteval, planes, airports): rules and constants were chosen "
    "on generated rows and on iris, diabetes, nltcs, insurance, pums and titanic, and the set was looked at once. Of "
    "cps1988 and planes there are three columns: every PCA holds all of them, and a difference of rounding is none, "
    f"which was said after that look. {REAL_RUNS} runs of ours and {FEW_RUNS} of diffprivlib's, of the first 4,000 "
    "rows."
)
NOTE_ON_AIRPORTS = (
    "In that look k-means lost airports at epsilon 10 (1.55), because rows were shortened to two spreads, which draws "
    "the centre of the few high airports inwards. The rules of [decision 0053](decisions/0053-a-hidden-spread-is-small."
    "md) on when a closer look pays and how far k-means reaches were chosen on generated skewed rows after it, and the "
    f"set was measured again: of airports' k-means these are second looks, of {REAL_RUNS} runs, as {FEW_RUNS} at "
    "epsilon 1 had been within the limit once and past it once."
)


def told(scores: Scores) -> str:
    """Mean and standard error."""
    return f"{scores.mean:.3f} ± {scores.slack:.3f}"


def behind(ours: Scores, other: Scores) -> bool:
    """Whether the second is ahead by more than the limit; more is better."""
    return other.mean - ours.mean > LIMIT * float(np.hypot(ours.slack, other.slack)) + ROUNDING


def opened(points: np.ndarray, half: float) -> sulq.Database:
    """Made-up rows, with the same bounds for all columns."""
    names = [f"x{j}" for j in range(points.shape[1])]
    columns = {name: sulq.Real(-half, half) for name in names}
    return sulq.connect(pd.DataFrame(points, columns=names), columns=columns, budget=Epsilon(900), synthetic=True)


def clusters(rows: int, width: int, groups: int, apart: float) -> np.ndarray:
    """Round groups of deviation 1 about normal centres."""
    rng = np.random.default_rng(5)
    centres = apart * rng.normal(size=(groups, width))
    return centres[rng.integers(groups, size=rows)] + rng.normal(size=(rows, width))


def inertias(points: np.ndarray, half: float, k: int, spend: float) -> Scores:
    """Of k-means, as multiples of the inertia of the exact mean alone."""
    one = float(points.var(axis=0).sum())
    with opened(points, half) as db:
        names = [f"x{j}" for j in range(points.shape[1])]
        models = [KMeans(k).fit(db[names], spend=Epsilon(spend)) for _ in range(RUNS)]
    return Scores("sulq", tuple(tasks.inertia(model.cluster_centers_, points) / one for model in models))


def wide() -> Iterator[Bar]:
    """Bounds far wider than the rows."""
    rng = np.random.default_rng(4)
    points = rng.normal(size=(5000, 6)) * [3, 2, 1, 0.5, 0.5, 0.5]
    with opened(points, 28.0) as db:
        names = [f"x{j}" for j in range(6)]
        models = [PCA(2).fit(db[names], spend=Epsilon(1)) for _ in range(RUNS)]
    found = Scores("sulq", tuple(tasks.captured(model.components_, points) for model in models))
    what = "PCA, bounds 9 times the widest deviation: captured variance, epsilon 1"
    yield Bar(what, told(found), WIDE_BEFORE[0], "at least .94", found.mean >= 0.94)
    points = clusters(5000, 5, 3, 1.0)
    found = inertias(points, 1000.0, 3, 1.0)
    what = "k-means, bounds 1,000 times the deviation: inertia over one exact mean's, epsilon 1"
    yield Bar(what, told(found), WIDE_BEFORE[1], "at most 50", found.mean <= 50)


def digits() -> Iterator[Bar]:
    """Captured variance never falls with epsilon."""
    table = sets.load("digits")
    assert table is not None
    found = [Scores("", tuple(each)) for each in ours.scores(table, "PCA", FEW_RUNS, tasks.EPSILONS).values()]
    falls = any(behind(after, before) for before, after in itertools.pairwise(found))
    figures = ", ".join(map(told, found))
    yield Bar(
        "PCA, digits: captured variance, epsilon .1, 1, 10", figures, ".152, .122, .754", "never falls", not falls
    )


def drowned() -> Iterator[Bar]:
    """Clusters whose means are all noise."""
    points = clusters(300, 6, 4, 0.5)
    found, one = inertias(points, 6.0, 4, 0.1), inertias(points, 6.0, 1, 0.1)
    what = "k-means, 4 clusters of 300 rows at epsilon .1: inertia over one exact mean's"
    met = found.mean - one.mean <= LIMIT * float(np.hypot(found.slack, one.slack))
    yield Bar(
        what, told(found), f"one mean for the same spend {told(one)}; {DROWNED_BEFORE}", "at most one mean's", met
    )


def peers() -> dict[tuple[str, str, float], Scores]:
    """Diffprivlib's side of the second set."""
    command = [str(python("diffprivlib")), "-m", "benchmarks.learning.second_unsupervised", str(FEW_RUNS), str(SECONDS)]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    said = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT, env=environment).stdout
    lines = [json.loads(line) for line in said.splitlines()]
    return {(x["table"], x["task"], x["epsilon"]): Scores("", tuple(x["scores"])) for x in lines if x["scores"]}


def second() -> Iterator[Bar]:
    """The second set, each task of each table, beside diffprivlib."""
    try:
        theirs = peers()
    except Missing as missing:
        yield Bar("second set", "not run", f"diffprivlib: {missing}", "none lost", met=False)
        return
    for name in second_unsupervised.COLUMNS:
        table = second_unsupervised.load(name)
        for task in ("PCA", "k-means") if table else ():
            found = {e: Scores("", tuple(x)) for e, x in ours.scores(table, task, REAL_RUNS, tasks.EPSILONS).items()}
            yield compared(
                name, task, found, {e: theirs[name, task, e] for e in found if (name, task, e) in theirs}, table
            )


def compared(name: str, task: str, found: dict[float, Scores], peer: dict[float, Scores], table: sets.Labelled) -> Bar:
    """One table and task: whether a cell is lost to the peer, or falls with epsilon."""
    lost = any(behind(found[epsilon], peer[epsilon]) for epsilon in peer)
    falls = any(behind(found[b], found[a]) for a, b in itertools.pairwise(tasks.EPSILONS))
    level = ours.exact(table, task, FEW_RUNS)
    figures, others = (
        ", ".join(f"{each.mean / level:.4f} ± {each.slack / abs(level):.4f}" for each in side.values())
        for side in (found, peer)
    )
    met = not (lost or falls)
    return Bar(f"{name}, {task}: epsilon .1, 1, 10", figures, f"diffprivlib {others}", "none lost, none falls", met)


def run() -> Section:
    """All bars."""
    warnings.simplefilter("ignore")
    bars = [*wide(), *digits(), *drowned(), *second()]
    notes = (NOTE_ON_FIGURES, NOTE_ON_TABLES, NOTE_ON_AIRPORTS)
    return Section("PCA and k-means", bars, notes)
