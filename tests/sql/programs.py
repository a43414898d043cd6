"""Hand-made programs over a small table, their noise-free releases, and as many noisy ones as wanted."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Sequence

import numpy as np
import pandas as pd

import sulq
from sulq.answers.released import Released
from sulq.language.privacy import Loss
from sulq.language.relation import Table
from sulq.language.rowfn import RowFn
from sulq.sql.parse.syntax import Aggregate, Call, Constant, Literal, Node
from sulq.sql.released.program import GroupStatistics, KeyLabel, Stat, StatAt, TableProgram
from sulq.sql.released.render import PreparedQuery, prepare
from sulq.testing import exact
from tests.stub import noise

CITIES = ("Yafo", "Haifa", "Lod")


@functools.cache
def people() -> pd.DataFrame:
    """A few hundred rows, some values missing, nobody with more than five rows."""
    rng = np.random.default_rng(5)
    size = 700
    frame = pd.DataFrame(
        {
            "pid": np.arange(size) // 2,
            "age": pd.array(rng.integers(0, 121, size), dtype="Int64"),
            "income": np.floor(rng.gamma(2.0, 20_000.0, size).clip(0, 200_000) / 16) * 16,
            "city": rng.choice(CITIES, size, p=(0.1, 0.6, 0.3)),
            "smoker": rng.random(size) < 0.3,
            "visit": pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 366, size), unit="D"),
        }
    )
    frame.loc[rng.random(size) < 0.06, "age"] = pd.NA
    frame["visit"] = frame["visit"].dt.date
    return frame


@functools.cache
def database() -> sulq.Database:
    """The table, opened as synthetic."""
    return sulq.connect(
        people(),
        table="people",
        columns={
            "age": sulq.Int(0, 120),
            "income": sulq.Real(0, 200_000, grid=16),
            "city": sulq.Category(CITIES),
            "smoker": sulq.Bool(),
            "visit": sulq.Date("2020-01-01", "2020-12-31"),
        },
        unit=sulq.Unit("pid", rows=5),
        budget=sulq.EpsilonDelta(900, 1e-6),
        synthetic=True,
    )


def table(
    stats: Sequence[Stat],
    keys: Sequence[RowFn] = (),
    *,
    where: RowFn | None = None,
    sets: tuple[tuple[int, ...], ...] = (),
) -> TableProgram:
    """All keys and statistics of groups of the table, one column each."""
    groups = GroupStatistics(Table(), where, tuple(keys), sets, tuple(stats))
    columns: list[tuple[str, Node]] = [(f"k{i}", KeyLabel(i)) for i in range(len(keys))]
    columns += [(f"s{i}", StatAt(i)) for i in range(len(stats))]
    return TableProgram(groups, tuple(columns))


def const(value: Constant) -> Literal:
    """A constant of the type its value has."""
    names = {int: "int", float: "float", str: "text", bool: "bool", datetime.date: "date"}
    return Literal(value, names.get(type(value), "null"))


def aggregate(name: str, arg: Node | None = None, where: Node | None = None, **more: object) -> Aggregate:
    """An aggregate of released rows."""
    return Aggregate(name, () if arg is None else (arg,), where=where, **more)  # type: ignore[arg-type]


def apply(op: str, *args: Node) -> Call:
    """An operator of expressions."""
    return Call(op, args)


def truth(program: TableProgram, spend: Loss) -> tuple[PreparedQuery, list[Released]]:
    """A program's questions and their noise-free answers, with the laws the noisy ones would have."""
    asked = prepare(program, database().facts, spend)
    assert asked.question is not None
    answers = exact(database()).ask(asked.question, spend=spend)
    return asked, [answer.released for answer in answers]


def noisy(released: Sequence[Released], rng: np.random.Generator) -> list[Released]:
    """The same answers with noise from a seed."""
    found = []
    for one in released:
        laws = [part.law for part in one.noise for _ in range(part.width)]
        drawn = np.stack([noise(law, rng, (one.cells,)) for law in laws], axis=1)
        found.append(Released(one.units + drawn, one.noise, one.labels))
    return found
