"""A small program for any learner: made-up people, and columns that its fit takes.

A learner that joins LEARNERS joins every suite that runs over it: the first choice of columns
below that it does not refuse is its program.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import sulq
import sulq.testing
from sulq.api.database import Database
from sulq.api.named_asks import NamedAsks
from sulq.errors import QuestionError
from sulq.learn.base import Learner

COLUMNS = {
    "age": sulq.Int(0, 120),
    "income": sulq.Real(0, 1000),
    "city": sulq.Category(["Haifa", "Lod", "Yafo"]),
    "smoker": sulq.Bool(),
    "active": sulq.Bool(),
    "ill": sulq.Bool(),
    "cost": sulq.Real(0, 500),
}
SPEND = sulq.Epsilon(2)
ROWS = 300
CHOICES = {
    "unsupervised": [
        (("age", "income", "cost"), None),
        (("age", "income", "city"), None),
        (("smoker", "active"), None),
    ],
    "classifier": [
        (("age", "income", "city", "smoker"), "ill"),
        (("age", "income"), "ill"),
        (("smoker", "active"), "ill"),
    ],
    "regressor": [(("age", "income", "smoker"), "cost"), (("age", "income"), "cost")],
}


def frame(rows: int = ROWS) -> pa.Table:
    """Made-up people, the same every time: the old and those who smoke are ill more often, and cost more."""
    rng = np.random.default_rng(5)
    age = rng.integers(18, 90, rows)
    smoker = rng.random(rows) < 0.3
    active = rng.random(rows) < 0.5
    ill = rng.random(rows) < np.clip((age - 30) / 80 + 0.4 * smoker - 0.2 * active, 0.02, 0.98)
    return pa.table(
        {
            "age": age,
            "income": np.round(rng.gamma(4, 60, rows), 1).clip(0, 1000),
            "city": np.array(["Haifa", "Lod", "Yafo"])[rng.integers(0, 3, rows)],
            "smoker": smoker,
            "active": active,
            "ill": ill,
            "cost": np.round((2 * age + 150 * ill + rng.normal(0, 20, rows)).clip(0, 500), 1),
        }
    )


def people(budget: object = None, **options: object) -> Database:
    """A database of them, in memory."""
    return sulq.connect(
        frame(),
        table="people",
        engine="memory",
        columns=COLUMNS,
        budget=budget or sulq.Epsilon(900),
        synthetic=True,
        **options,
    )


@dataclass(frozen=True)
class Program:
    """What a learner is asked to learn."""

    learner: type[Learner]
    x: tuple[str, ...]
    y: str | None

    def fit(self, asks: NamedAsks, **more: object) -> Learner:
        """Fit it on a asks, here or elsewhere."""
        label = None if self.y is None else asks[self.y]
        return self.learner().fit(asks[list(self.x)], label, **({"spend": SPEND} | more))

    def job(self) -> dict[str, object]:
        """The same as the body of a job."""
        named = {"x": list(self.x), "spend": {"epsilon": float(SPEND.epsilon)}}
        return {"kind": self.learner.__name__, "parameters": named | ({} if self.y is None else {"y": self.y})}


@functools.cache
def program(learner: type[Learner]) -> Program:
    """The program of a learner: the first columns that it takes."""
    with people() as db:
        refused = None
        for x, y in CHOICES[learner.kind]:
            found = Program(learner, x, y)
            try:
                found.fit(sulq.testing.exact(db))
            except QuestionError as error:
                refused = error
                continue
            return found
    raise AssertionError(f"{learner.__name__} takes none of the columns it is offered: {refused}")
