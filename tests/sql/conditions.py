"""Random numbers and conditions over rows, in words that mean the same to us and to DuckDB."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Source:
    """A FROM clause: its text, the columns that may be named after it, by kind, and WITH queries it needs before it.

    `owner`: the person's column with its table's name, where rows are one person's.
    """

    text: str
    numbers: list[str]
    keys: list[str]
    truths: list[str] = field(default_factory=list)
    wholes: list[str] = field(default_factory=list)
    dates: list[str] = field(default_factory=list)
    moments: list[str] = field(default_factory=list)
    towns: list[str] = field(default_factory=list)
    owner: str | None = None
    before: str = ""


PEOPLE = Source(
    "people", ["age", "income", "educ"], ["sex", "educ", "married"], ["married"], ["age", "educ", "region"], ["born"],
    towns=["town"], owner="people.pid",
)  # fmt: skip
VISITS = Source(
    "visits", ["cost", "minutes"], ["kind", "paid"], ["paid"], ["minutes"], moments=["seen"], owner="visits.pid"
)
INNER = replace(VISITS, text="visits AS w", owner=None)  # a subquery's rows


class Conditions:
    """Draws numbers and conditions over a source."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def _sometimes(self, chance: float, make: Callable[[], str]) -> str:
        return make() if self.rng.random() < chance else ""

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
            f"({a} / {self.rng.choice((2, -4, 8))})",
        ]  # fmt: skip
        forms += [f"({whole} % {self.rng.choice((3, 7, -5))})" for whole in source.wholes[:1]]
        forms += [f"({whole} / {self.rng.choice((3, 7, -5))})" for whole in source.wholes[:1]]
        forms += [self.part(source)] if source.dates or source.moments else []
        forms += [f"({date} - DATE '1951-02-28')" for date in source.dates]
        return self.rng.choice(forms)

    def part(self, source: Source) -> str:
        """A part of a date or a moment."""
        parts = [(part, date) for date in source.dates for part in ("YEAR", "QUARTER", "MONTH", "DAY", "DOW", "DOY")]
        parts += [(part, moment) for moment in source.moments for part in ("MONTH", "WEEK", "ISODOW", "HOUR", "MINUTE")]
        part, item = self.rng.choice(parts)
        return f"CAST(EXTRACT({part} FROM {item}) AS INT)"  # DuckDB's is a whole number, PostgreSQL's is not

    def condition(self, source: Source, depth: int = 2) -> str:
        """A condition, in three-valued logic."""
        number = self.rng.choice(source.numbers)
        edge = self.rng.choice((-20, 0, 1, 2.5, 3, 20, 30, 65, 200))
        sign = self.rng.choice(("<", "<=", "=", "<>", ">", ">="))
        forms = [
            f"{number} {sign} {edge}",
            f"{number} BETWEEN {edge} AND {edge + 20}", f"{number} IN (1, 2, {edge})", f"{number} IS NOT NULL",
            f"{number} NOT IN (20, 30)", f"{number} IS NULL",
        ]  # fmt: skip
        forms += source.truths + [f"{truth} IS TRUE" for truth in source.truths]
        forms += [f"{date} {sign} DATE '1951-0{self.rng.randrange(1, 10)}-28'" for date in source.dates]
        forms += [f"{date} + {self.rng.choice((-40, 31))} < DATE '1951-07-01'" for date in source.dates]
        forms += [f"{moment} {sign} TIMESTAMP '2020-02-2{edge % 9:.0f} 12:30:00'" for moment in source.moments]
        forms += [f"{town} {self.rng.choice(('=', '<>'))} 'Lod'" for town in source.towns]
        forms += [f"{town} LIKE '{self.rng.choice(('%a%', 'L_d', '%o', ''))}'" for town in source.towns]
        if source.dates or source.moments:
            forms.append(f"{self.part(source)} IN (1, 2, 3, 5, 10, 1951)")
        if depth > 0:
            a, b = self.condition(source, depth - 1), self.condition(source, depth - 1)
            forms += [f"({a} AND {b})", f"({a} OR {b})", f"(NOT {a})"]
        return self.rng.choice(forms)

    def where(self, source: Source, depth: int = 2) -> str:
        """A condition in which subqueries may stand."""
        pick = self.rng.random()
        if pick < 0.55 or (source.owner is None and not source.wholes):
            return self.condition(source)
        if pick < 0.8 or depth == 0:
            return self.subquery(source)
        a, b = self.where(source, depth - 1), self.where(source, depth - 1)
        return self.rng.choice((f"({a} AND {b})", f"({a} OR {b})", f"NOT ({a})", f"({a}) IS NOT TRUE"))

    def subquery(self, source: Source) -> str:
        """IN, NOT IN, EXISTS of rows of the same person, or of public ones."""
        maybe = self.rng.choice(("", "NOT "))
        inside = self._sometimes(0.6, lambda: f" AND {self.condition(INNER, 1)}")
        forms = []
        if source.owner is not None:
            forms += [
                f"{source.owner} {maybe}IN (SELECT pid FROM visits AS w WHERE minutes > 5{inside})",
                f"{source.owner} {maybe}IN (SELECT pid FROM visits GROUP BY pid HAVING COUNT(*) > 2)",
                f"{maybe}EXISTS (SELECT 1 FROM visits AS w WHERE w.pid = {source.owner}{inside})",
            ]
        for item in source.wholes:
            code = self.rng.choice(("code", "size", "NULLIF(code, 2)", "CASE WHEN size > 20 THEN code END"))
            some = self.rng.choice(("", " WHERE size > 20", " WHERE zone = 'east'", " WHERE code > 99"))
            forms += [
                f"{item} {maybe}IN (SELECT {code} FROM regions{some})",
                f"{maybe}EXISTS (SELECT 1 FROM regions AS g WHERE g.code = {item})",
            ]
            if source.owner is not None:
                forms.append(f"{item} {maybe}IN (SELECT minutes FROM visits AS w WHERE w.pid = {source.owner}{inside})")
        return self.rng.choice(forms)
