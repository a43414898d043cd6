"""A small program for any release or selection: made-up people, and parameters that it takes.

One that joins RELEASES or SELECTIONS joins every suite that runs over them: its required parameters are
filled by their names, and a few others are made small.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import sulq
from sulq.api.database import Database
from sulq.api.named_asks import NamedAsks
from sulq.release.base import Release
from sulq.select.selected import Selected
from sulq.service.jobs.publication import ALL, Publishing, form
from tests.learn.programs import COLUMNS, frame

SPEND = sulq.Epsilon(2)
NAMED: dict[str, object] = {
    "questions": ["SELECT city, COUNT(*) FROM people GROUP BY city", "SELECT AVG(age) FROM people WHERE city <> 'Lod'"],
    "attributes": ["city", "smoker", "active"],
    "columns": ["smoker", "active", "ill"],
    "candidates": "city",
    "bids": "cost",
    "grid": [50, 100.5, 200],
    "hypotheses": ["smoker", "active"],
    "labels": "ill",
}
SMALL: dict[str, object] = {"rounds": 2, "rows": 3, "seed": 1, "ways": 2}  # where there is such a parameter
WRITTEN = {  # as they are typed in a form or on the command line
    "questions": "SELECT city, COUNT(*) FROM people GROUP BY city; SELECT AVG(age) FROM people WHERE city <> 'Lod'",
    "grid": "50, 100.5, 200",
}


def people(budget: object = None, **options: object) -> Database:
    """A database of people who are more than their rows, in memory."""
    table = frame()
    table = table.append_column("pid", pa.array(np.arange(table.num_rows)))
    options = {"unit": sulq.Unit("pid"), "synthetic": True} | options
    return sulq.connect(
        table, table="people", engine="memory", columns=COLUMNS | {"pid": sulq.Int(0, 10_000)},
        budget=budget or sulq.Epsilon(900), **options,
    )  # fmt: skip


WIDE = [f"x{i}" for i in range(40)]  # more attributes than a partition has keys


def wide_table() -> pa.Table:
    """Made-up answers, yes or no, to many questions, of people with an id."""
    answers = np.random.default_rng(40).random((60, len(WIDE))) < 0.4
    columns = {name: answers[:, i] for i, name in enumerate(WIDE)}
    return pa.table(columns | {"pid": np.arange(60)})


def wide_people() -> Database:
    """A database of them, in memory."""
    columns = {name: sulq.Bool() for name in WIDE} | {"pid": sulq.Int(0, 10_000)}
    return sulq.connect(
        wide_table(), table="people", engine="memory", columns=columns, budget=sulq.Epsilon(900), unit=sulq.Unit("pid"),
        synthetic=True,
    )  # fmt: skip


@dataclass(frozen=True)
class Program:
    """What a release is asked to publish."""

    release: Publishing
    named: dict[str, object]

    @property
    def name(self) -> str:
        return self.release.__name__

    def __call__(self, asks: NamedAsks, **more: object) -> Release | Selected:
        """Publish it from a asks, here or elsewhere."""
        return self.release(asks, **self.named, **({"spend": SPEND} | more))

    def job(self) -> dict[str, object]:
        """The same as the body of a job."""
        return {"kind": self.name, "parameters": self.named | {"spend": {"epsilon": float(SPEND.epsilon)}}}

    def typed(self) -> dict[str, str]:
        """Its parameters as texts."""
        return {
            name: WRITTEN.get(name) or (",".join(value) if isinstance(value, list) else str(value))
            for name, value in self.named.items()
        }


def program(release: Publishing) -> Program:
    """The program of a release."""
    fields = form(release).fields
    unknown = [field.name for field in fields if field.required and field.name not in NAMED]
    assert not unknown, f"{release.__name__} needs {unknown}: give an example in NAMED"
    needed = {field.name: NAMED[field.name] for field in fields if field.required}
    return Program(release, needed | {field.name: SMALL[field.name] for field in fields if field.name in SMALL})


PROGRAMS = {each.__name__: program(each) for each in ALL}
EACH = tuple(PROGRAMS.values())
