"""Made-up rows as an engine shows them and as an ordinary table, and models to judge on them."""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd

import sulq
from sulq import Epsilon
from sulq.errors import QuestionError
from sulq.language.domain import Bool, Category, Schema
from sulq.learn.base import Learner
from tests.frames import Frame
from tests.learn.programs import CHOICES, COLUMNS, people

SCHEMA = Schema.of("people", COLUMNS)


def table(rows: int, seed: int, *, missing: float = 0.1) -> tuple[pd.DataFrame, Frame]:
    """Rows of any values that are declared, some cells missing: as a frame of pandas and as a batch."""
    rng = np.random.default_rng(seed)
    codes, cells = {}, {}
    for name in SCHEMA.names:
        domain = SCHEMA.find(name)
        assert domain is not None
        code = rng.integers(domain.low, domain.high + 1, rows)
        gone = rng.random(rows) < missing
        values = [_value(domain, int(each)) for each in code]
        cells[name] = pd.Series(
            [None if none else value for value, none in zip(values, gone, strict=True)], dtype=object
        )
        codes[name] = [None if none else int(each) for each, none in zip(code, gone, strict=True)]
    batch = [dict(zip(codes, row, strict=True)) for row in zip(*codes.values(), strict=True)]
    return pd.DataFrame(cells), Frame(SCHEMA, batch)


def _value(domain: object, code: int) -> object:
    if isinstance(domain, Category):
        labels: tuple[object, ...] = domain.values  # noqa: PD011 - a declared list, and no frame
        return labels[code]
    return bool(code) if isinstance(domain, Bool) else float(code * domain.step)


@functools.lru_cache(maxsize=32)
def fitted(learner: type[Learner], turn: int = 0) -> tuple[Learner, tuple[str, ...], str | None]:
    """A model learned with noise from the first columns that it takes, with their names; another for another turn."""
    with people() as db:
        for names, label in CHOICES[learner.kind]:
            try:
                model = learner().fit(db[list(names)], None if label is None else db[label], spend=Epsilon(3 + turn))
            except QuestionError:
                continue
            return model, names, label
    raise AssertionError(learner.__name__)


def rows_of(unit: sulq.Unit, rows: int = 2000, seed: int = 0) -> tuple[pd.DataFrame, dict[str, object], sulq.Unit]:
    """People with two rows each whose label and number follow from the others, with noise."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": rng.random(rows), "b": rng.random(rows), "c": rng.choice(["x", "y", "z"], rows)})
    odds = 4 * frame["a"] + (frame["c"] == "x") - 2
    frame["yes"] = rng.random(rows) < 1 / (1 + np.exp(-2 * odds))
    frame["kind"] = np.where(frame["a"] > 0.7, "high", np.where(rng.random(rows) < 0.5, "low", "middle"))
    frame["n"] = np.clip(2 * frame["a"] + frame["b"] + rng.normal(0, 0.3, rows), 0, 4)
    frame["pid"] = np.arange(rows) // max(unit.rows, 1)
    declared = {
        "a": sulq.Real(0, 1), "b": sulq.Real(0, 1), "c": ["x", "y", "z"], "yes": sulq.Bool(),
        "kind": ["low", "middle", "high"], "n": sulq.Real(0, 4),
    }  # fmt: skip
    return frame, declared, unit
