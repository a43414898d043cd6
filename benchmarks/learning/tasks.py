"""What is compared: tasks, the relation each is compared under, and how a model is measured. More is better."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.learning.sets import NUMBERS, Labelled

EPSILONS = (0.1, 1.0, 10.0)
DEPTH = 5
COMPONENTS = 3
# The relation diffprivlib's own noise is right for: its means, covariances and objective are those of replacing a
# row, n public; its counts and the labels of its trees those of adding or removing one.
RELATIONS = {"PCA": "replace_one", "k-means": "add_remove", "linear": "replace_one", "tree": "add_remove"}


def clusters(table: Labelled) -> int:
    """How many clusters are looked for: one a class that is there, three at least."""
    return max(3, len(np.unique(table.y)))


def regression(table: Labelled) -> bool:
    """Whether the linear task predicts a number."""
    return table.name in NUMBERS


def captured(components: np.ndarray, points: np.ndarray) -> float:
    """The part of the variance that the best projection to as many dimensions holds, held by this one."""
    matrix = np.cov(points.T, bias=True)
    frame = np.linalg.qr(components.T)[0]
    best = np.linalg.eigvalsh(matrix)[::-1][: len(components)].sum()
    return float(np.trace(frame.T @ matrix @ frame) / best)


def inertia(centres: np.ndarray, points: np.ndarray) -> float:
    """The mean squared distance to the nearest centre."""
    squares = (points**2).sum(axis=1)[:, None] - 2 * points @ centres.T + (centres**2).sum(axis=1)
    return float(np.maximum(squares.min(axis=1), 0).mean())


def explained(truth: np.ndarray, said: np.ndarray) -> float:
    """R^2 on the held rows, no worse than -1: from there on a model is only wrong."""
    return max(1 - float(((truth - said) ** 2).mean() / truth.var()), -1.0)


def accuracy(truth: np.ndarray, said: np.ndarray) -> float:
    """The part of the held rows that is named rightly."""
    return float(np.mean(truth == said))


def area(truth: np.ndarray, score: np.ndarray) -> float:
    """The area under the ROC curve."""
    order = pd.Series(score).rank().to_numpy()
    positive = int(truth.sum())
    return float((order[truth].sum() - positive * (positive + 1) / 2) / (positive * (len(truth) - positive)))
