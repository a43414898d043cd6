"""The tables of other projects' queries with rows in them: real ones where there are any, generated ones else."""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass

import pandas as pd

import sulq
from sulq import Int, Unit
from sulq.language.domain import Category, Real, Text
from sulq.language.domain import Int as Whole
from sulq.language.facts import Facts
from tests.data import need
from tests.sql import suites

ROWS = 5


@dataclass(frozen=True, eq=False)
class Dataset:
    """An open database, its rows for the judge, and the same database without anybody's rows."""

    database: sulq.Database
    frames: dict[str, pd.DataFrame]
    empty: sulq.Database


def census() -> Dataset:
    """Adult, with the domains its documentation gives."""
    frame = pd.read_csv(need("tabular/adult-train.csv"))
    facts = json.loads(need("tabular/adult-train.schema.json").read_text())["columns"]
    columns = {}
    for name, fact in facts.items():
        values = fact.get("values") or sorted(frame[name].unique())
        columns[name] = Int(fact["lower"], fact["upper"]) if "lower" in fact else Category(tuple(sorted(values)))
    columns["capital_loss"] = Int(0, 4356)  # its largest known value
    frame["id"] = range(len(frame))
    return _open({"census": frame}, {"census": columns}, Unit("id"), keys={"census": "id"})


def pums(*, bounded: bool) -> Dataset:
    """A thousand people of the PUMS; without bounds an income is only a text."""
    frame = pd.read_csv(need("tabular/pums_pid.csv"))
    frame["income"] = frame["income"].astype(int)
    columns = {
        "age": Int(0, 100), "sex": [0, 1], "educ": list(range(1, 17)), "race": list(range(1, 7)), "married": [0, 1],
        "income": Int(0, 500_000) if bounded else Text(),
    }  # fmt: skip
    if not bounded:
        frame["income"] = frame["income"].astype(str)
    return _open({"PUMS": frame}, {"PUMS": columns}, Unit("pid"), keys={"PUMS": "pid"})


def generated(facts: Facts, seed: int) -> Dataset:
    """Rows drawn from the declared domains: few enough of each person that all are kept."""
    rng = random.Random(seed)
    frames, columns, keys, public, persons = {}, {}, {}, [], {}
    for table in facts.tables:
        name, person = table.schema.table, facts.person_of(table)
        columns[name] = dict(table.schema.columns)
        rows = []
        for i in range(60):
            for _ in range(
                1
                if table.key in (person, *([None] if table.public else [])) or table.public
                else rng.randrange(0, ROWS - 1)
            ):
                row = {column: _cell(rng, domain) for column, domain in table.schema.columns}
                if not table.public:
                    row[str(person)] = i + 1
                if table.key is not None and table.key != person:
                    row[table.key] = len(rows) + 1
                rows.append(row)
        frames[name] = pd.DataFrame(rows)
        if table.key is not None:
            keys[name] = table.key
        if table.public:
            public.append(name)
        elif table.person is not None:
            persons[name] = table.person
    unit = Unit(facts.unit.column, rows=ROWS)
    return _open(frames, columns, unit, keys=keys, public=public, persons=persons)


def _cell(rng: random.Random, domain: object) -> object:
    if isinstance(domain, Category):
        return rng.choice(domain.values)
    if isinstance(domain, Whole):
        return rng.randrange(domain.lo, min(domain.hi, domain.lo + 60) + 1)
    if isinstance(domain, Real):
        return rng.randrange(domain.low, domain.high + 1) * float(domain.step)
    if isinstance(domain, sulq.Bool):
        return rng.random() < 0.5
    if isinstance(domain, Text):
        return rng.choice(("amber", "blue", "coral"))
    return pd.Timestamp(domain.lo) + (pd.Timestamp(domain.hi) - pd.Timestamp(domain.lo)) * rng.random()


def _open(
    frames: dict[str, pd.DataFrame], columns: dict[str, dict[str, object]], unit: Unit, **more: object
) -> Dataset:
    def connected(data: dict[str, pd.DataFrame]) -> sulq.Database:
        return sulq.connect(
            data, columns=columns, unit=unit, budget=sulq.EpsilonDelta(900, 1e-2), synthetic=True, **more
        )

    public = more.get("public", [])
    nobody = {name: frame if name in public else frame.head(0) for name, frame in frames.items()}  # type: ignore[operator]
    return Dataset(connected(frames), frames, connected({name: typed(frame) for name, frame in nobody.items()}))


def typed(frame: pd.DataFrame) -> pd.DataFrame:
    """Texts said to be texts: where there are no rows nothing else tells."""
    texts = [name for name in frame if frame[name].dtype == object]
    return frame.astype(dict.fromkeys(texts, "string"))


def dataset(name: str) -> Dataset:
    """By the name of the facts a query was put to."""
    made = {
        "census": census, "PUMS": lambda: pums(bounded=True), "PUMS without bounds": lambda: pums(bounded=False),
        "Crashes": lambda: generated(suites.devices(), 1), "orders": lambda: generated(suites.shop(), 2),
    }  # fmt: skip
    return made[name]()


def judged(sql: str) -> str:
    """A query as DuckDB writes it: LIMIT for TOP, its own names of functions."""
    top = re.search(r"\bTOP (\d+)\b", sql)
    sql = re.sub(r"\bTOP \d+\b", "", sql) + (f" LIMIT {top[1]}" if top else "")
    sql = re.sub(r"\bVAR\(", "VAR_SAMP(", sql)
    return re.sub(r"\bRAND\(\)", "RANDOM()", sql)
