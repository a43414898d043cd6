"""Random queries from a grammar over two linked private tables and two public ones, with data that hits the corners."""

from __future__ import annotations

import datetime
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import pandas as pd

import sulq
from sulq import Int, Real, Unit
from tests.sql.conditions import Source
from tests.sql.sources import Sources

MARKED = re.compile("⟦(.*?)¦(.*?)⟧", re.DOTALL)  # an aggregate and what stands for it over no rows
ROWS = 4  # kept rows of a person
KINDS = ["blood", "eye", "skin"]
TOWNS = ["Lod", "Yafo", "lod", "", "Tel Aviv"]
COLUMNS = {
    "people": {
        "age": Int(0, 99), "income": Real(0, 512, grid=0.25), "sex": ["f", "m"], "educ": Int(1, 6),
        "married": sulq.Bool(), "born": sulq.Date("1950-01-01", "1952-12-31"), "region": Int(0, 5),
        "town": sulq.Text(),
    },
    "visits": {
        "cost": Real(-64, 64, grid=0.5), "kind": KINDS, "minutes": Int(0, 60), "paid": sulq.Bool(),
        "seen": sulq.Timestamp("2020-01-01", "2020-03-31"),
    },
    "regions": {"code": Int(0, 5), "zone": ["east", "west"], "size": Int(0, 40)},
    "zones": {"name": ["east", "west"], "sea": sulq.Bool()},
}  # fmt: skip
KEYS = {"people": "pid", "regions": "code", "zones": "name"}
PUBLIC = ["regions", "zones"]


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
            "born": some(datetime.date(1950, 1, 1) + datetime.timedelta(rng.randrange(0, 1096))),
            "region": some(rng.randrange(0, 6)),
            "town": some(rng.choice(TOWNS)),
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
            "seen": some(pd.Timestamp("2020-01-01") + pd.Timedelta(minutes=rng.randrange(0, 90 * 24 * 60))),
        }
        for i in range(people + 3)  # some visitors are no registered people
        for _ in range(rng.randrange(0, ROWS + 1))
    ]
    regions = [
        {"code": i, "zone": some("east" if i < 3 else "west"), "size": rng.randrange(0, 41)}
        for i in range(5)  # and one of the regions people live in is not there
    ]
    zones = [{"name": "east", "sea": False}, {"name": "west", "sea": True}]
    made = {"people": persons, "visits": visits, "regions": regions, "zones": zones}
    return {name: _frame(rows, COLUMNS[name], person=name not in PUBLIC) for name, rows in made.items()}


def _frame(rows: list[dict[str, object]], columns: dict[str, object], *, person: bool) -> pd.DataFrame:
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
        elif isinstance(declared, sulq.Timestamp):
            frame[name] = pd.to_datetime(frame[name])
        elif not isinstance(declared, sulq.Date):
            frame[name] = frame[name].astype("string")
    return frame


def opened(data: dict[str, pd.DataFrame], **more: object) -> sulq.Database:
    """The tables as a synthetic database."""
    given = {
        "columns": COLUMNS, "unit": Unit("pid", rows=ROWS), "keys": KEYS, "public": PUBLIC,
        "budget": sulq.EpsilonDelta(900, 1e-2), "synthetic": True,
    }  # fmt: skip
    return sulq.connect(data, **(given | more))


@dataclass(frozen=True)
class Query:
    """A query, and how DuckDB is to judge it.

    `judged`: the same in DuckDB, with what we document for a value over nothing written
    into it: 0 for a sum, and of the whole table 0 for a spread and for a mean `{e0}`,
    `{e1}`, ..., what `nothing` gives; in a group both are missing (SR18). `empty`: what a
    group without rows shows, as far as HAVING lets it through.
    """

    text: str
    judged: str
    empty: str
    nothing: str | None
    keys: int
    ordered: bool = False
    once: bool = True  # whether a group's keys stand for it alone
    away: Mapping[str, float] = field(default_factory=dict)  # how far these values may lie from their like


class Grammar(Sources):
    """Draws queries; every one of them is answerable, and means the same in DuckDB."""

    def query(self) -> str:
        """One SELECT with at most a WHERE and a GROUP BY of listed keys."""
        source = self.source()
        while source.before:
            source = self.source()
        return self._made(source, self._keys(source, towns=False)).text

    def asked(self) -> Query:
        """One SELECT of any form."""
        source = self.source()
        keys = self._keys(source, towns=True)
        form = self.rng.random()
        if keys and form < 0.15:
            return self._made(source, keys, sets=True)
        if form < 0.35:
            return self._made(source, keys, order=True)
        return self._made(source, keys, having=form < 0.5)

    def _made(
        self, source: Source, keys: list[str], *, sets: bool = False, order: bool = False, having: bool = False
    ) -> Query:
        where = self._sometimes(0.6, lambda: f" WHERE {self.where(source)}")
        found = any(town in key for town in source.towns for key in keys)  # groups found in the data have no DISTINCT
        values = [self.value(source, distinct=not found) for _ in range(self.rng.randrange(1, 4))]
        shown = [f"{key} AS k{i}" for i, key in enumerate(keys)]
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        if sets:
            group = f" GROUP BY {self._sets(keys)}"
            grouping = self.rng.sample(range(len(keys)), self.rng.randrange(0, len(keys) + 1))
            shown += [f"GROUPING({keys[i]}) AS k{len(keys) + j}" for j, i in enumerate(grouping)]
        condition = ("", "")
        if having:
            condition = self.over(source)
        rest = ""
        if order:
            condition, rest = ("COUNT(*) > 0",) * 2 if keys else ("", ""), self._order(len(keys))
        over = [f" HAVING {text}" if text else "" for text in condition]
        texts = []
        for i in (0, 1):
            listed = ", ".join([*shown, *(f"{pair[i]} AS v{j}" for j, pair in enumerate(values))])
            whole = self._whole(keys, sets=sets)
            text = f"{source.before}SELECT {listed} FROM {source.text}{where}{group}{over[i]}{rest}"
            texts.append(MARKED.sub(whole, text))
        judged = ", ".join(f"{pair[1]} AS v{j}" for j, pair in enumerate(values))
        empty = f"{source.before}SELECT {judged} FROM {source.text} WHERE FALSE{over[1]}"
        empty = MARKED.sub(self._whole(keys, sets=False), empty)
        text, told = self._numbered([*texts[1:], empty])
        nothing = None
        if told:
            means = ", ".join(f"AVG({item}) AS e{i}" for i, item in enumerate(told))
            nothing = f"{source.before}SELECT {means} FROM {source.text} WHERE FALSE"
        # The root of a variance of nearly 0 is as far off as the root of a rounding error.
        away = {f"v{j}": 1e-4 for j, pair in enumerate(values) if "STDDEV" in pair[0]}
        return Query(texts[0], text[0], text[1], nothing, len(shown), order, not sets, away)

    @staticmethod
    def _whole(keys: list[str], *, sets: bool) -> str:
        """How a mean or a spread is written: what stands for one over nothing is of the whole table alone (SR18)."""
        if not keys:
            return r"COALESCE(\1, \2)"
        grouping = " + ".join(f"GROUPING({key})" for key in keys)
        return rf"CASE WHEN {grouping} = {len(keys)} THEN COALESCE(\1, \2) ELSE \1 END" if sets else r"\1"

    @staticmethod
    def _numbered(texts: list[str]) -> tuple[list[str], list[str]]:
        """Texts whose means over nothing, between marks, are numbered, and of what those are means."""
        told: list[str] = []
        made = []
        for text in texts:
            first, *others = text.split("<<")
            for other in others:
                item, _, rest = other.partition(">>")
                if item not in told:
                    told.append(item)
                first += f"{{e{told.index(item)}}}{rest}"
            made.append(first)
        return made, told

    def _keys(self, source: Source, *, towns: bool) -> list[str]:
        offered = [*source.keys, *self.rng.sample(source.dates + source.moments, min(1, len(source.dates)))]
        if towns and source.towns and self.rng.random() < 0.3:
            found = [*source.towns, *self.rng.choice(([], source.keys[:1]))]
            return [self.key(source, key) for key in found]
        keys = self.rng.sample(offered, min(self.rng.choice((0, 0, 1, 1, 2)), len(offered)))
        return [self.key(source, key) for key in keys]

    def key(self, source: Source, key: str) -> str:
        """A key: a column, or a public function of one."""
        if key in source.dates + source.moments:
            part = self.rng.choice(("year", "quarter", "month"))
            return self.rng.choice((f"DATE_TRUNC('{part}', {key})", f"EXTRACT({part.upper()} FROM {key})"))
        if key in source.towns:
            return self.rng.choice((key, key, f"UPPER({key})", f"COALESCE({key}, 'nowhere')"))
        if key.endswith(("sex", "kind", "zone")) and self.rng.random() < 0.3:
            return self.rng.choice((f"UPPER({key})", f"COALESCE({key}, 'none')"))
        if key.endswith("educ") and self.rng.random() < 0.4:
            return f"CASE WHEN {key} > 3 THEN 'high' ELSE 'low' END"
        return key

    def _sets(self, keys: list[str]) -> str:
        listed = ", ".join(keys)
        forms = [f"ROLLUP ({listed})", f"CUBE ({listed})", f"GROUPING SETS (({listed}), ({keys[-1]}))"]
        return self.rng.choice([*forms, f"GROUPING SETS (({listed}), ())"])

    def _order(self, keys: int) -> str:
        """A total order, and sometimes a part of it."""
        named = [f"k{i}" for i in range(keys)]
        self.rng.shuffle(named)
        ways = ("", " DESC", " NULLS FIRST", " DESC NULLS LAST", " ASC NULLS LAST", " DESC NULLS FIRST")
        listed = [f"{name}{self.rng.choice(ways)}" for name in named]
        if self.rng.random() < 0.4 or not listed:
            listed.insert(0, f"COUNT(*){self.rng.choice(ways)}")
        cut = self.rng.choice(("", " LIMIT 1", " LIMIT 2", " LIMIT 3 OFFSET 1", " OFFSET 1", " LIMIT 0"))
        return f" ORDER BY {', '.join(listed)}{cut}"

    def aggregate(self, source: Source, *names: str) -> tuple[str, str]:
        """An aggregate as we and as DuckDB write it."""
        name = self.rng.choice(names)
        x = self.number(source)
        only = self._sometimes(0.2, lambda: f" FILTER (WHERE {self.condition(source)})")
        text = f"{name}({x}){only}"
        if name == "COUNT":
            return (text, text)
        if name == "SUM":
            return text, f"COALESCE({text}, 0)"
        return text, f"⟦{text}¦{f'<<{x}>>' if name == 'AVG' else '0'}⟧"

    def over(self, source: Source) -> tuple[str, str]:
        """A condition on groups, as we and as DuckDB write it; no value lies on its edge but that of a whole number."""
        edge = self.rng.choice((-3, 0, 1, 2, 5, 40))
        sign = self.rng.choice(("<", ">=", ">"))
        a, b = self.aggregate(source, "SUM", "AVG")
        forms = [
            (f"COUNT(*) {sign} {abs(edge)}",) * 2,
            (f"{a} {sign} {edge}.0137", f"{b} {sign} {edge}.0137"),
            (f"COUNT(*) > 1 AND {a} {sign} {edge}.0137", f"COUNT(*) > 1 AND {b} {sign} {edge}.0137"),
            (f"NOT COUNT(*) {sign} {abs(edge)}",) * 2,
        ]
        return self.rng.choice(forms)

    def value(self, source: Source, *, distinct: bool = True) -> tuple[str, str]:
        """An aggregate, or arithmetic of aggregates, as we and as DuckDB write it."""
        if self.rng.random() < 0.5:
            return self.aggregate(source, "COUNT", "SUM", "SUM", "AVG", "AVG", "VAR_POP", "STDDEV_POP")
        (a, b), (c, d) = self.aggregate(source, "SUM", "AVG"), self.aggregate(source, "AVG")
        key, number = self.rng.choice(source.keys), self.rng.choice(source.numbers)
        forms = [
            ("COUNT(*)",) * 2,
            (f"COUNT(*) FILTER (WHERE {self.condition(source)})",) * 2,
            (f"{a} + 2 * COUNT(*)", f"{b} + 2 * COUNT(*)"),
            (f"{a} - {c}", f"{b} - {d}"),
            (f"{a} * 1.0 / NULLIF(COUNT(*), 0)", f"{b} * 1.0 / NULLIF(COUNT(*), 0)"),
            ("COUNT(*) % 3", "COUNT(*) % 3"),
            (f"CASE WHEN COUNT(*) > 2 THEN {a} ELSE -1 END", f"CASE WHEN COUNT(*) > 2 THEN {b} ELSE -1 END"),
        ]
        if distinct:
            forms.append((f"COUNT(DISTINCT {key})",) * 2)
            forms.append((f"SUM(DISTINCT {number})", f"COALESCE(SUM(DISTINCT {number}), 0)"))
        case = f"SUM(CASE WHEN {self.condition(source)} THEN 1 ELSE 0 END)"
        forms.append((case, f"COALESCE({case}, 0)"))
        if source.owner:
            forms.append((f"COUNT(DISTINCT {source.owner})",) * 2)
        return self.rng.choice(forms)
