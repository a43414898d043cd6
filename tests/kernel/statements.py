"""Random statements in and around what the kernel reads, written without any of the code that proposes statements."""

from __future__ import annotations

import random
import re

from sulq.kernel.facts import OWNER, Column, Facts

Columns = dict[str, str]  # name: "number", "text" or "owner"


class Writer:
    """Writes one statement."""

    def __init__(self, facts: Facts, draw: random.Random) -> None:
        self.facts, self.draw = facts, draw

    def statement(self) -> str:
        """Sums by keys over a relation."""
        source, columns = self.relation(self.draw.randint(0, 3))
        keys = [self.expression(columns, 1) for _ in range(self.draw.randint(0, 2))]
        items = [f"{key} AS k{i}" for i, key in enumerate(keys)]
        items += [f"{self.aggregate(columns)} AS s{i}" for i in range(self.draw.randint(1, 3))]
        where = f" WHERE {self.condition(columns)}" if self.draw.random() < 0.4 else ""
        by = f" GROUP BY {', '.join(f'k{i}' for i in range(len(keys)))}" if keys else ""
        return f"SELECT {', '.join(items)} FROM {source}{where}{by}"

    def aggregate(self, columns: Columns) -> str:
        """One sum."""
        owned = [name for name, kind in columns.items() if kind == "owner"]
        choice = self.draw.random()
        if choice < 0.2:
            return "count(*)"
        if choice < 0.3 and owned:
            return f"count(DISTINCT {owned[0]})"
        if choice < 0.45:
            return f"count({self.expression(columns, 1)})"
        inner = self.number(columns, 2)
        if self.draw.random() < 0.8:
            low = self.draw.randint(-9, 9)
            inner = self.clamped(f"floor({inner} + 0.5e0)", low, low + self.draw.randint(0, 9))
        return f"TRY_CAST(sum({inner}) AS BIGINT)"

    def clamped(self, item: str, low: int, high: int) -> str:
        """An expression held within two numbers, written out twice as a CASE, or without an end by mistake."""
        if self.draw.random() < 0.1:
            return item
        return (
            f"least(greatest({item}, {low}e0), {high}e0)"
            if self.draw.random() < 0.3
            else (f"CASE WHEN {item} < {low}e0 THEN {low}e0 WHEN {item} > {high}e0 THEN {high}e0 ELSE {item} END")
        )

    def relation(self, depth: int) -> tuple[str, Columns]:
        """A table or rows derived from some."""
        if depth == 0:
            table = self.draw.choice(self.facts.tables)
            columns = {name: "text" if column.type == "VARCHAR" else "number" for name, column in table.columns}
            return ".".join(table.name), columns | ({OWNER: "owner"} if table.owned else {})
        source, columns = self.relation(depth - 1)
        ways = (
            self._select,
            self._select,
            self._where,
            self._join,
            self._join,
            self._person,
            self._distinct,
            self._union,
        )
        return self.draw.choice(ways)(source, columns, depth)

    def _owner(self, columns: Columns) -> list[str]:
        return [OWNER] if OWNER in columns and self.draw.random() < 0.9 else []

    def _select(self, source: str, columns: Columns, _: int) -> tuple[str, Columns]:
        if self.draw.random() < 0.3:
            new = f"t{self.draw.randint(0, 99)}"
            return f"(SELECT *, {self.number(columns, 2)} AS {new} FROM {source})", columns | {new: "number"}
        found: Columns = {}
        items = []
        for i in range(self.draw.randint(1, 3)):
            name = self.draw.choice([name for name in columns if name != OWNER] or ["c0"])
            plain = self.draw.random() < 0.5
            items.append(f"{name if plain else self.number(columns, 1)} AS c{i}")
            found[f"c{i}"] = columns.get(name, "number") if plain else "number"
        for name in self._owner(columns):
            items.append(name)
            found[name] = "owner"
        return f"(SELECT {', '.join(items)} FROM {source})", found

    def _where(self, source: str, columns: Columns, _: int) -> tuple[str, Columns]:
        return f"(SELECT * FROM {source} WHERE {self.condition(columns)})", columns

    def _join(self, source: str, columns: Columns, depth: int) -> tuple[str, Columns]:
        other, theirs = self.relation(self.draw.randint(0, depth - 1))
        on = []
        if OWNER in columns and OWNER in theirs and self.draw.random() < 0.9:
            on.append(f"l.{OWNER} = r.{OWNER}")
        shared = [(a, b) for a in columns for b in theirs if columns[a] == theirs[b] != "owner"]
        if shared and self.draw.random() < 0.7:
            on += [f"l.{a} = r.{b}" for a, b in self.draw.sample(shared, 1)]
        items, found = [], {}
        for side, names in (("l", columns), ("r", theirs)):
            for name, kind in names.items():
                if kind != "owner":
                    items.append(f"{side}.{name} AS c{len(found)}")
                    found[f"c{len(found)}"] = kind
        side = "l" if OWNER in columns else "r" if OWNER in theirs else ""
        if side and self.draw.random() < 0.9:
            items.append(f"{side}.{OWNER}")
            found[OWNER] = "owner"
        how = self.draw.choice(("JOIN", "JOIN", "LEFT JOIN"))
        sides = f"(SELECT * FROM {source}) AS l {how} (SELECT * FROM {other}) AS r"
        return f"(SELECT {', '.join(items)} FROM {sides} ON {' AND '.join(on) or 'TRUE'})", found

    def _person(self, source: str, columns: Columns, _: int) -> tuple[str, Columns]:
        others = [name for name in columns if name != OWNER]
        keys = self.draw.sample(others, min(self.draw.randint(0, 1), len(others)))
        items = [OWNER, *(f"{key} AS k{i}" for i, key in enumerate(keys) if self.draw.random() < 0.8)]
        found: Columns = {OWNER: "owner"} | {f"k{i}": columns[key] for i, key in enumerate(keys)}
        number, any_ = self.number(columns, 1), self.expression(columns, 1)
        inner = self.draw.choice(("count(*)", f"count({any_})", f"min({number})", f"sum({number})", f"max({number})"))
        items.append(f"{inner} AS s0")
        found["s0"] = "number"
        by = ", ".join([OWNER, *(f"k{i}" for i in range(len(keys)))])
        return f"(SELECT {', '.join(items)} FROM {source} GROUP BY {by})", found

    def _distinct(self, source: str, columns: Columns, _: int) -> tuple[str, Columns]:
        names = self.draw.sample(list(columns), self.draw.randint(1, len(columns)))
        return f"(SELECT DISTINCT {', '.join(names)} FROM {source})", {name: columns[name] for name in names}

    def _union(self, source: str, columns: Columns, depth: int) -> tuple[str, Columns]:
        names = ", ".join(columns)
        where = f" WHERE {self.condition(columns)}" if self.draw.random() < 0.5 else ""
        return f"(SELECT {names} FROM {source} UNION ALL SELECT {names} FROM {source}{where})", columns

    def expression(self, columns: Columns, depth: int) -> str:
        """Any expression."""
        texts = [name for name, kind in columns.items() if kind == "text"]
        if texts and self.draw.random() < 0.3:
            return self.draw.choice((f"lower({self.draw.choice(texts)})", self.draw.choice(texts)))
        return self.number(columns, depth)

    def number(self, columns: Columns, depth: int) -> str:
        """A number."""
        names = [name for name, kind in columns.items() if kind == "number"]
        if depth == 0 or self.draw.random() < 0.25:
            if names and self.draw.random() < 0.8:
                name = self.draw.choice(names)
                return name if self.draw.random() < 0.4 else f"CAST({name} AS DOUBLE)"
            return f"{self.draw.randint(-5, 5)}" if self.draw.random() < 0.3 else f"{self.draw.randint(-9, 9) / 2}e0"
        a, b = self.number(columns, depth - 1), self.number(columns, depth - 1)
        c = self.draw.randint(1, 4)
        return self.draw.choice((
            f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} / {c}e0)", f"({a} % {c}e0)", f"abs({a})",
            f"floor({a})", f"round({a})", f"coalesce({a}, {c}e0)", f"least({a}, {b})", f"TRY_CAST({a} AS TINYINT)",
            f"CASE WHEN {self.condition(columns)} THEN {a} ELSE {b} END", f"CASE WHEN {a} > {c}e0 THEN {b} END",
            f"(CASE WHEN {a} < {c}e0 THEN {a} ELSE {c}e0 END)", f"sqrt(CASE WHEN {a} >= 0e0 THEN {a} END)",
            f"CASE WHEN isfinite({a}) THEN {a} END", f"CAST({a} AS BIGINT)", f"({a} // {c})",
        ))  # fmt: skip

    def condition(self, columns: Columns) -> str:
        """A condition."""
        a = self.number(columns, 1)
        texts = [name for name, kind in columns.items() if kind == "text"]
        found = [f"({a} {self.draw.choice(('<', '<=', '=', '<>', '>', '>='))} {self.draw.randint(-4, 4)}e0)",
                 f"({a} IS NULL)", f"(NOT ({a} > 0e0))", f"({a} IN (1e0, 2e0))"]  # fmt: skip
        found += [f"({self.draw.choice(texts)} = 'a')", f"contains({self.draw.choice(texts)}, 'a')"] if texts else []
        if self.draw.random() < 0.2:
            return f"({self.draw.choice(found)} {self.draw.choice(('AND', 'OR'))} {self.draw.choice(found)})"
        return self.draw.choice(found)


TOKEN = re.compile(r"[a-z_][a-z0-9_.]*|[A-Z]+|[0-9.]+e0|[0-9]+|<=|>=|<>|[-+*/%<>=(),]")
SWAPS = {
    "<": ("<=", ">"), ">": (">=", "<"), "<=": ("<", ">="), ">=": (">", "<="), "=": ("<>", "<"), "+": ("-", "*"),
    "-": ("+",), "*": ("+",), "JOIN": ("LEFT JOIN",), "LEFT": ("",), "AND": ("OR",), "OR": ("AND",), "DISTINCT": ("",),
    "WHERE": ("WHERE NOT",), "count": ("sum", "max"), "sum": ("count", "avg", "max"), "floor": ("abs", "sqrt", "ln"),
    "TRY_CAST": ("CAST",), "least": ("greatest",), "greatest": ("least",), "BIGINT": ("TINYINT", "DOUBLE", "VARCHAR"),
    "DOUBLE": ("BIGINT",), "l": ("r",), "r": ("l",), "ALL": ("",), "ELSE": ("WHEN TRUE THEN",),
}  # fmt: skip


def mutated(sql: str, columns: list[tuple[str, Column]], draw: random.Random) -> str:
    """A statement with a few of its tokens changed."""
    for _ in range(draw.randint(1, 3)):
        tokens = list(TOKEN.finditer(sql))
        token = draw.choice(tokens)
        word = token.group()
        if word in SWAPS:
            new = draw.choice(SWAPS[word])
        elif re.fullmatch(r"[0-9.]+e0", word):
            new = f"{draw.choice((0, 1, -1, 7, 1000, 0.5, 2**60))}e0"
        elif word.isdigit():
            new = str(draw.choice((0, 1, 2, 100, 2**31, 2**62)))
        elif re.fullmatch(r"[cktso][0-9]*|[lr]\.[a-z0-9]+", word):
            new = draw.choice(
                (*(name for name, _ in columns), OWNER, "k0", "t0", "s0", f"l.{OWNER}", f"r.{OWNER}", "NULL")
            )
        else:
            continue
        sql = sql[: token.start()] + new + sql[token.end() :]
    return sql
