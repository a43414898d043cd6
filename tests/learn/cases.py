"""Made-up databases for tests of learners: real plans, exact sums, noise or none."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sulq
import sulq.testing
from sulq.api.database import Database
from sulq.api.named_asks import NamedAsks
from sulq.language.privacy import Budget, Unit
from tests.data import need

COLUMNS = {
    "age": sulq.Int(0, 100),
    "income": sulq.Real(0, 1000),
    "city": ["Haifa", "Lod", "Yafo"],
    "smoker": sulq.Bool(),
    "visit": sulq.Date("2020-01-01", "2020-12-31"),
    "name": sulq.Text(),
}
DATA = {
    "age": [0, 50, 100, 30],
    "income": [0.0, 500.0, 1000.0, 250.0],
    "city": ["Lod", "Haifa", "Yafo", "Lod"],
    "smoker": [True, False, True, False],
    "visit": np.array(["2020-01-01", "2020-07-01", "2020-12-31", "2020-02-01"], dtype="datetime64[D]"),
    "name": ["a", "b", "c", "d"],
}
ALL = ["age", "income", "city", "smoker"]


def opened(
    columns: dict[str, object], data: dict[str, object], budget: Budget | None = None, **options: object
) -> Database:
    """A database over made-up columns, opened as synthetic; the ledger is in memory."""
    table = pa.table({name: pa.array(np.asarray(values)) for name, values in data.items()})
    return sulq.connect(
        table,
        columns=columns,
        budget=budget or sulq.Epsilon(900),
        synthetic=True,
        unit=options.pop("unit", Unit()),
        **options,
    )


def exact(database: Database) -> NamedAsks:
    """The same database without noise."""
    return sulq.testing.exact(database)


def refused(code: str, act: object, *args: object, **kwargs: object) -> None:
    """Assert that an act is refused with a code."""
    with pytest.raises(sulq.errors.SulqError) as refusal:
        act(*args, **kwargs)
    assert refusal.value.code == code


def adult() -> tuple[pd.DataFrame, dict[str, object]]:
    """The shared adult-train table and what is declared of it."""
    frame = pd.read_csv(need("tabular/adult-train.csv"), keep_default_na=False)
    schema = pd.read_json(need("tabular/adult-train.schema.json"))["columns"]
    columns = {}
    for name in frame.columns:
        given = schema[name]
        if "lower" in given:
            columns[name] = sulq.Int(given["lower"], given["upper"])
        else:  # the countries' list is not in the schema
            columns[name] = list(given.get("values") or sorted(frame[name].unique()))
    return frame, columns
