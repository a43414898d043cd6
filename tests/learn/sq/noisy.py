"""An Oracle over plain arrays with seeded noise, and made-up concepts: for tests of statistical queries."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import sulq
from sulq.language.privacy import Budget, Queries, Unit
from sulq.learn.sq.oracles import PublicTable
from tests.stub import Stub


class Arrays(Stub):
    """Real plans, exact sums of arrays, noise from a seed (or none); under a SubLinear budget queries are counted."""

    def __init__(
        self,
        columns: dict[str, object],
        data: dict[str, object],
        *,
        seed: int | None = None,
        unit: Unit | None = None,
        budget: Budget | None = None,
        size: int | None = None,
    ) -> None:
        table = PublicTable(columns, data)
        rng = None if seed is None else np.random.default_rng(seed)
        super().__init__(table.schema, [], unit=unit, budget=budget, size=size, rng=rng)
        self.frame = table

    def ask(self, question: object, *, spend: object = None, key: str | None = None, reuse: bool = False) -> object:
        answer = super().ask(question, spend=spend)
        self.frame.seen.clear()
        if isinstance(answer.spent, Queries):
            left = Queries(self._facts.remaining.queries - answer.spent.queries)
            self._facts = replace(self._facts, remaining=left)
        return answer


def boolean(columns: int) -> dict[str, object]:
    """Truth values x0, x1, ... and a label y."""
    return {**{f"x{i}": sulq.Bool() for i in range(columns)}, "y": sulq.Bool()}


def rows(X: np.ndarray, y: np.ndarray) -> dict[str, object]:
    """The same as arrays by name."""
    return {**{f"x{i}": X[:, i] for i in range(X.shape[1])}, "y": y}


def correlated(rng: np.random.Generator, size: int, columns: int) -> np.ndarray:
    """Rows of truth values that hang together: thresholds of a few common causes, some columns nearly constant."""
    causes = rng.normal(size=(size, 2)) @ rng.normal(size=(2, columns))
    noise = rng.normal(size=(size, columns)) * rng.choice([0.1, 1.0])
    return causes + noise > rng.choice([-1.5, 0.0, 1.5], columns)


def listed(X: np.ndarray, rng: np.random.Generator, length: int) -> np.ndarray:
    """The labels of a random decision list."""
    order = rng.permutation(X.shape[1])[:length]
    y = np.full(len(X), rng.random() < 0.5)
    for i in order:
        y[X[:, i] == (rng.random() < 0.5)] = rng.random() < 0.5
    return y


# Facts of the data that are no errors (SR6): no rows, one class and constant columns, cells that are missing.
ODD: tuple[dict[str, np.ndarray], ...] = (
    {"x0": np.zeros(0, bool), "x1": np.zeros(0, bool), "y": np.zeros(0, bool)},
    {"x0": np.ones(50, bool), "x1": np.zeros(50, bool), "y": np.ones(50, bool)},
    {"x0": np.array([None] * 50), "x1": np.array([None, True] * 25), "y": np.array([True, None] * 25)},
)


def rcn(labels: np.ndarray, eta: float, rng: np.random.Generator) -> np.ndarray:
    """Truth values, each flipped with probability eta: random classification noise [S2.13]."""
    return labels ^ (rng.random(labels.shape) < eta)
