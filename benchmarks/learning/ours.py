"""Our learners on the same tables, through databases opened as any user opens them; and scikit-learn, exact."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

import sulq
from benchmarks.learning import sets, tasks
from sulq import Epsilon, EpsilonDelta, Unit
from sulq.learn import ID3, PCA, AdditiveClassifier, KMeans, LinearRegression, LogisticRegression

Found = tuple[str, float, float]  # task, epsilon, score
BUDGET = Epsilon(900)
LABEL = "label"


def points(table: sets.Labelled, task: str, runs: int, epsilons: tuple[float, ...]) -> Iterator[Found]:
    """PCA and k-means, measured on the rows they learned from."""
    matrix, low, high = table.numbers()
    names = [f"x{j}" for j in range(matrix.shape[1])]
    columns = {name: sulq.Real(a, b) for name, a, b in zip(names, low.tolist(), high.tolist(), strict=True)}
    frame = pd.DataFrame(matrix, columns=names)
    with sulq.connect(frame, columns=columns, budget=BUDGET, unit=Unit(neighbors=tasks.RELATIONS[task])) as db:
        for epsilon in epsilons:
            for _ in range(runs):
                if task == "PCA":
                    model = PCA(tasks.COMPONENTS).fit(db[names], spend=Epsilon(epsilon))
                    yield task, epsilon, tasks.captured(model.components_, matrix)
                else:
                    model = KMeans(tasks.clusters(table)).fit(db[names], spend=Epsilon(epsilon))
                    yield task, epsilon, -tasks.inertia(model.cluster_centers_, matrix)


def opened(table: sets.Labelled, task: str, rows: np.ndarray, *, number: bool = False) -> sulq.Database:
    """A database over some rows of a table, its label declared."""
    columns: dict[str, object] = {
        name: sulq.Category(domain) if isinstance(domain, list) else sulq.Real(*domain)
        for name, domain in table.domains.items()
    }
    columns[LABEL] = sulq.Int(0, table.classes - 1) if number else sulq.Category(list(range(table.classes)))
    frame = table.frame.iloc[rows].assign(**{LABEL: table.y[rows]})
    unit = Unit(neighbors=tasks.RELATIONS.get(task, "add_remove"))
    budget = EpsilonDelta(900, 1e-3) if task == "additive" else BUDGET
    return sulq.connect(frame, columns=columns, budget=budget, unit=unit)


def labelled(table: sets.Labelled, task: str, runs: int, epsilons: tuple[float, ...]) -> Iterator[Found]:
    """Linear models and trees, measured on rows they did not learn from."""
    names = list(table.domains)
    number = task == "linear" and tasks.regression(table)
    for run in range(runs):
        train, test = table.split(run)
        held, truth = table.frame.iloc[test], table.y[test]
        with opened(table, task, train, number=number) as db:
            for epsilon in epsilons:
                model = LinearRegression() if number else LogisticRegression() if task == "linear" else None
                model = model or ID3(max_depth=tasks.DEPTH)
                said = model.fit(db[names], db[LABEL], spend=Epsilon(epsilon)).predict(held)
                yield task, epsilon, (tasks.explained if number else tasks.accuracy)(truth, said)


def additive(table: sets.Labelled, runs: int) -> list[float]:
    """The additive classifier at (1, 1e-6), the area under its curve on held rows."""
    found = []
    for run in range(runs):
        train, test = table.split(run)
        with opened(table, "additive", train) as db:
            model = AdditiveClassifier().fit(db[list(table.domains)], db[LABEL], spend=EpsilonDelta(1, 1e-6))
        found.append(tasks.area(table.y[test] == 1, np.ravel(model.decision_function(table.frame.iloc[test]))))
    return found


def scores(table: sets.Labelled, task: str, runs: int, epsilons: tuple[float, ...]) -> dict[float, list[float]]:
    """The scores of all runs of a task on a table, by epsilon."""
    found: dict[float, list[float]] = {epsilon: [] for epsilon in epsilons}
    for _, epsilon, score in (points if task in ("PCA", "k-means") else labelled)(table, task, runs, epsilons):
        found[epsilon].append(score)
    return found


def exact(table: sets.Labelled, task: str, runs: int) -> float:
    """The same without privacy, by scikit-learn: the mean of the same splits."""
    from sklearn import cluster, linear_model, tree

    if task == "PCA":
        return 1.0
    if task == "k-means":
        matrix, _, _ = table.numbers()
        best = cluster.KMeans(tasks.clusters(table), n_init=5, random_state=0).fit(matrix)
        return -tasks.inertia(best.cluster_centers_, matrix)
    number = task == "linear" and tasks.regression(table)
    matrix = table.indicators()
    found = []
    for run in range(runs):
        train, test = table.split(run)
        if task == "tree":
            model = tree.DecisionTreeClassifier(criterion="entropy", max_depth=tasks.DEPTH, random_state=0)
        else:
            model = linear_model.LinearRegression() if number else linear_model.LogisticRegression(max_iter=300)
        said = model.fit(matrix[train], table.y[train]).predict(matrix[test])
        found.append((tasks.explained if number else tasks.accuracy)(table.y[test], said))
    return float(np.mean(found))
