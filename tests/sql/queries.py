"""Random queries from a grammar over two linked private tables and a public one, with data that hits the corners."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pandas as pd

import sulq
from sulq import Int, Real, Unit

ROWS = 4  # kept rows of a person
KINDS = ["blood", "eye", "skin"]
COLUMNS = {
    "people": {
        "age": Int(0, 99), "income": Real(0, 512, grid=0.25), "sex": ["f", "m"], "educ": Int(1, 6),
        "married": sulq.Bool(), "born": sulq.Date("1950-01-01", "1952-12-31"), "region": Int(0, 5),
    },
    "visits": {"cost": Real(-64, 64, grid=0.5), "kind": KINDS, "minutes": Int(0, 60), "paid": sulq.Bool()},
    "regions": {"code": Int(0, 5), "zone": ["east", "west"], "size": Int(0, 40)},
}  # fmt: skip


def tables(rng: random.Random, people: int = 30) -> dict[str, pd.DataFrame]:
    """Rows within their bounds and on their grids: what is declared is what DuckDB sees. Some cells are missing."""

    def some(value: object) -> object:
        return None if rng.random() < 0.08 else value

    persons = [
        {
            "pid": i,
            "age": some(rng.choice((0, 20, 30, 40, 65, 99))),
            "income": some(rng.randrange(0, 2049) / 4),
            "sex": some(rng.choice("fm")),
            "educ": some(rng.randrange(1, 7)),
            "married": some(rng.random() < 0.5),
            "born": some(pd.Timestamp("1950-01-01") + pd.Timedelta(days=rng.randrange(0, 1096))),
            "region": some(rng.randrange(0, 6)),
        }
        for i in range(people)
    ]
    visits = [
        {
            "pid": i,
            "cost": some(rng.randrange(-128, 129) / 2),
            "kind": some(rng.choice(KINDS[:2])),
            "minutes": some(rng.randrange(0, 61)),
            "paid": some(rng.random() < 0.5),
        }
        for i in range(people + 3)  # some visitors are no registered people
        for _ in range(rng.randrange(0, ROWS + 1))
    ]
    regions = [{"code": i, "zone": "east" if i < 3 else "west", "size": rng.randrange(0, 41)} for i in range(5)]
    return {
        "people": _frame(persons, COLUMNS["people"]),
        "visits": _frame(visits, COLUMNS["visits"]),
        "regions": _frame(regions, COLUMNS["regions"], person=False),
    }


def _frame(rows: list[dict[str, object]], columns: dict[str, object], *, person: bool = True) -> pd.DataFrame:
    names = [*(["pid"] if person else []), *columns]
    frame = pd.DataFrame(rows, columns=names)
    for name in names:
        declared = columns.get(name)
        if name == "pid" or isinstance(declared, Int):
            frame[name] = frame[name].astype("Int64")
        elif isinstance(declared, sulq.Bool):
            frame[name] = frame[name].astype("boolean")
        elif isinstance(declared, Real):
            frame[name] = frame[name].astype("Float64")
        elif isinstance(declared, sulq.Date):
            frame[name] = pd.to_datetime(frame[name])
        else:
            frame[name] = frame[name].astype("string")
    return frame


def opened(data: dict[str, pd.DataFrame], **more: object) -> sulq.Database:
    """The tables as a synthetic database."""
    given = {
        "columns": COLUMNS, "unit": Unit("pid", rows=ROWS), "keys": {"people": "pid", "regions": "code"},
        "public": ["regions"], "budget": sulq.EpsilonDelta(900, 1e-2), "synthetic": True,
    }  # fmt: skip
    return sulq.connect(data, **(given | more))


@dataclass
class Source:
    """A FROM clause: its text, and the columns that may be named after it, by kind."""

    text: str
    numbers: list[str]
    keys: list[str]
    truths: list[str]
    person: str | None = None


PEOPLE = Source("people", ["age", "income", "educ"], ["sex", "educ", "married"], ["married"], "pid")
VISITS = Source("visits", ["cost", "minutes"], ["kind", "paid"], ["paid"], "pid")


class Grammar:
    """Draws queries; every one of them is answerable, and means the same in DuckDB."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def query(self) -> str:
        """One SELECT."""
        source = self.source()
        where = self._sometimes(0.5, lambda: f" WHERE {self.condition(source)}")
        keys = self.rng.sample(source.keys, min(self.rng.choice((0, 0, 1, 1, 2)), len(source.keys)))
        keys = [self.key(source, key) for key in keys]
        shown = [f"{key} AS k{i}" for i, key in enumerate(keys)]
        shown += [f"{self.value(source)} AS v{i}" for i in range(self.rng.randrange(1, 4))]
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        return f"SELECT {', '.join(shown)} FROM {source.text}{where}{group}"

    def _sometimes(self, chance: float, make: object) -> str:
        return make() if self.rng.random() < chance else ""

    def source(self) -> Source:
        """A table, a join, a subquery, a person's own rows put together."""
        pick = self.rng.randrange(8)
        if pick <= 1:
            return PEOPLE
        if pick == 2:
            return VISITS
        if pick == 3:
            how = self.rng.choice(("JOIN", "LEFT JOIN"))
            return Source(
                f"people p {how} visits v ON p.pid = v.pid", ["p.age", "v.cost", "v.minutes", "p.income"],
                ["p.sex", "v.kind", "p.married"], ["p.married", "v.paid"],
            )  # fmt: skip
        if pick == 4:
            how = self.rng.choice(("JOIN", "LEFT JOIN"))
            return Source(
                f"people {how} regions ON people.region = regions.code", ["age", "income", "size"],
                ["sex", "zone", "educ"], ["married"],
            )  # fmt: skip
        if pick == 5:
            key = self.rng.choice(("", ", kind"))
            inner = "COUNT(*) AS n, SUM(cost) AS total, MIN(minutes) AS least, MAX(minutes) AS most"
            where = self._sometimes(0.4, lambda: f" WHERE {self.condition(VISITS)}")
            return Source(
                f"(SELECT pid{key}, {inner} FROM visits{where} GROUP BY pid{key}) AS own",
                ["n", "total", "least", "most"], ["kind", "n"] if key else ["n"], [],
            )  # fmt: skip
        if pick == 6:
            return Source(
                "(SELECT age + 1 AS older, income / 2 AS half, sex, married FROM people "
                f"WHERE {self.condition(PEOPLE)}) AS t",
                ["older", "half"], ["sex", "married"], ["married"],
            )  # fmt: skip
        return Source(
            "(SELECT minutes, paid, kind FROM visits UNION ALL SELECT minutes, paid, kind FROM visits WHERE paid) AS u",
            ["minutes"], ["kind", "paid"], ["paid"],
        )  # fmt: skip

    def number(self, source: Source, depth: int = 2) -> str:
        """A bounded number."""
        if depth == 0 or self.rng.random() < 0.5:
            return self.rng.choice(source.numbers)
        a, b = self.number(source, depth - 1), self.number(source, depth - 1)
        forms = [
            f"({a} + {b})", f"({a} - {b})", f"({a} * {self.rng.randrange(-3, 4)})", f"ABS({a})",
            f"CASE WHEN {self.condition(source, 1)} THEN {a} ELSE {b} END",
            f"COALESCE({a}, {self.rng.randrange(0, 9)})", f"LEAST({a}, {b})", f"GREATEST({a}, {b})",
            f"FLOOR({a})", f"CEIL({a})", f"NULLIF({a}, {self.rng.randrange(0, 9)})",
        ]  # fmt: skip
        return self.rng.choice(forms)

    def condition(self, source: Source, depth: int = 2) -> str:
        """A condition, in three-valued logic."""
        number = self.rng.choice(source.numbers)
        edge = self.rng.choice((-20, 0, 1, 2.5, 3, 20, 30, 65, 200))
        forms = [
            f"{number} {self.rng.choice(('<', '<=', '=', '<>', '>', '>='))} {edge}",
            f"{number} BETWEEN {edge} AND {edge + 20}", f"{number} IN (1, 2, {edge})", f"{number} IS NOT NULL",
            f"{number} NOT IN (20, 30)", f"{number} IS NULL",
        ]  # fmt: skip
        forms += source.truths + [f"{truth} IS TRUE" for truth in source.truths]
        if depth > 0:
            a, b = self.condition(source, depth - 1), self.condition(source, depth - 1)
            forms += [f"({a} AND {b})", f"({a} OR {b})", f"(NOT {a})"]
        return self.rng.choice(forms)

    def key(self, source: Source, key: str) -> str:
        """A key: a column, or a public function of one."""
        if key.endswith(("sex", "kind", "zone")) and self.rng.random() < 0.3:
            return self.rng.choice((f"UPPER({key})", f"COALESCE({key}, 'none')"))
        if key.endswith("educ") and self.rng.random() < 0.4:
            return f"CASE WHEN {key} > 3 THEN 'high' ELSE 'low' END"
        return key

    def value(self, source: Source) -> str:
        """An aggregate, or arithmetic of aggregates."""
        x, y = self.number(source), self.number(source)
        forms = [
            "COUNT(*)", f"COUNT({x})", f"SUM({x})", f"AVG({x})", f"VAR_POP({x})", f"STDDEV_POP({x})",
            f"SUM({x}) FILTER (WHERE {self.condition(source)})", f"COUNT(*) FILTER (WHERE {self.condition(source)})",
            f"SUM(CASE WHEN {self.condition(source)} THEN 1 ELSE 0 END)",
            f"COUNT(DISTINCT {self.rng.choice(source.keys)})", f"SUM({x}) + 2 * COUNT(*)", f"AVG({x}) - AVG({y})",
            f"SUM(DISTINCT {self.rng.choice(source.numbers)})",
        ]  # fmt: skip
        if source.person:
            forms.append(f"COUNT(DISTINCT {source.person})")
        return self.rng.choice(forms)
