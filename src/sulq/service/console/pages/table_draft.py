"""Tables and columns of a registration as its form has them: names, types and what their owner said of each.

Kinds are suggested by the API's look, from types, and in CSV files, which have none, from the header's names. Bounds
are asked for, since a bound read off the data would give its extremes away (T21).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from sulq.errors import SulqError
from sulq.language.domain import Bool, Category, Column, Date, Int, Real, Text, Timestamp
from sulq.service.console.api import Tree
from sulq.service.console.guard import Fields

T = TypeVar("T")

KINDS: Final = {
    "": "choose what it holds",
    "skip": "leave out: nobody can ask about it",
    "int": "whole number",
    "real": "number",
    "bool": "true or false",
    "category": "one of a list",
    "date": "date",
    "timestamp": "date and time",
    "text": "text",
}
COUNTS_AS: Final = "What a missing cell counts as"
_WHOLE: Final = ("int", "long", "short")  # in names of types that hold whole numbers
_LETTERS: Final = {"t": "type", "a": "low", "b": "high", "d": "default", "l": "longest"}  # of a column's plain fields
_TABLE: Final = {"T": "name", "F": "file", "P": "public", "K": "key", "W": "person", "R": "references"}  # of a table's


@dataclass(slots=True)
class ColumnDraft:
    """One column of the file as the form has it."""

    name: str
    type: str
    kind: str
    low: str = ""
    high: str = ""
    values: str = ""
    never: bool = False  # missing
    default: str = ""
    problem: str = ""
    longest: str = ""  # of a text
    table: int = 0  # of several: whose column it is

    @classmethod
    def of(cls, fields: Fields, i: int) -> ColumnDraft:
        """The i-th column of a form."""
        texts = {name: fields.text(f"{letter}{i}") for letter, name in _LETTERS.items()}
        values = fields.get(f"v{i}", "").replace("\r\n", "\n")
        kind, never, table = fields.text(f"k{i}"), fields.text(f"m{i}") == "never", fields.text(f"g{i}")
        place = int(table) if table.isdecimal() and len(table) < 5 else 0
        return cls(fields.get(f"n{i}", ""), kind=kind, values=values, never=never, table=place, **texts)

    def hidden(self, i: int, step: str) -> list[tuple[str, str]]:
        """What was said of the i-th column, for the form of a step to carry."""
        found = [("n", self.name), ("t", self.type)] + ([("g", str(self.table))] if self.table else [])
        if step != "columns":
            found += [("k", self.kind), ("a", self.low), ("b", self.high), ("v", self.values)]
            found += [("m", "never" if self.never else ""), ("d", self.default)]
            found += [("l", self.longest)] if self.longest else []
        return [(f"{letter}{i}", value) for letter, value in found]

    def column(self) -> Column | None:
        """The declaration, or None where it is left out or not yet right (`problem` says why)."""
        self.problem = ""
        make = _MAKE.get(self.kind)
        if make is None:
            self.problem = "" if self.kind else "Choose what it holds, or leave it out: its name does not say."
            return None
        try:
            made = make(self)
            default = _DEFAULT[self.kind](self.default, COUNTS_AS) if self.default else None
            if isinstance(made, Category) and isinstance(made.values[0], int) and default is not None:
                default = whole(self.default, COUNTS_AS)
            return replace(made, missing=not self.never, default=default)
        except (SulqError, ValueError) as error:
            self.problem = message(error)
        return None


@dataclass(slots=True)
class TableDraft:
    """One of several tables: where it lies, and how it hangs together with the others."""

    name: str
    file: str
    public: str = ""  # "yes" or ""
    key: str = ""
    person: str = ""  # "": the unit's column
    references: str = ""  # COLUMN = TABLE, one on each line

    @classmethod
    def of(cls, fields: Fields, j: int) -> TableDraft:
        """The j-th table of a form."""
        return cls(**{name: fields.get(f"{letter}{j}", "") for letter, name in _TABLE.items()})

    def hidden(self, j: int) -> list[tuple[str, str]]:
        """What was said of the j-th table, for the form of a step to carry."""
        return [(f"{letter}{j}", getattr(self, name)) for letter, name in _TABLE.items()]

    @property
    def inside(self) -> bool:
        """Whether it is called as it is in a file of several."""
        return self.file.lower().endswith(".duckdb")

    def body(self, columns: Mapping[str, object]) -> Tree:
        """The table as the API takes it."""
        found: dict[str, object] = {"file": self.file, "columns": columns, "public": self.public == "yes"}
        found |= {name: told for name in ("key", "person") if (told := getattr(self, name))}
        pairs = [line.partition("=") for line in self.references.splitlines() if line.strip()]
        if pairs:
            found["references"] = {column.strip(): table.strip() for column, _, table in pairs}
        return found


def looked(tree: Tree, table: int = 0) -> list[ColumnDraft]:
    """Columns as the API's look at a file names them: names, types and the kinds that these suggest, no value."""
    return [ColumnDraft(item["name"], item["type"], item["suggests"], table=table) for item in tree["columns"]]


def looked_tables(looks: Sequence[tuple[str, Tree]]) -> tuple[list[TableDraft], list[ColumnDraft]]:
    """The tables of several files, each file looked at, and all their columns."""
    found = [(file, tree) for file, look in looks for tree in look.get("tables") or [look]]
    tables = [TableDraft(str(tree.get("table", "")), file) for file, tree in found]
    return tables, [column for j, (_, tree) in enumerate(found) for column in looked(tree, j)]


def message(error: Exception) -> str:
    """What an error says."""
    return error.message if isinstance(error, SulqError) else str(error)


def whole(text: str, what: str) -> int:
    """A whole number as people write it."""
    plain = text.replace(",", "").replace("_", "").replace(" ", "")
    if not plain.lstrip("-").isdecimal() or len(plain) > 18:
        raise ValueError(f"{what} is a whole number.")
    return int(plain)


def number(text: str, what: str) -> float:
    """A number as people write it."""
    try:
        return float(text.replace(",", "").replace("_", ""))
    except ValueError:
        raise ValueError(f"{what} is a number, such as 1.5.") from None


def _truth(text: str, what: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(f"{what} is true or false.")
    return text.lower() == "true"


def _text(text: str, _: str) -> str:
    return text


def _ends(one: ColumnDraft, read: Callable[[str, str], T]) -> tuple[T, T]:
    if not one.low or not one.high:
        raise ValueError("Give the lowest and the highest value it may have; cells outside are clamped.")
    return read(one.low, "The lowest"), read(one.high, "The highest")


def _category(one: ColumnDraft) -> Column:
    values = [line.strip() for line in one.values.split("\n") if line.strip()]
    if not values:
        raise ValueError("List the values it may have, one on each line; others count as missing.")
    numbers = any(word in one.type.lower() for word in _WHOLE) and all(v.lstrip("-").isdecimal() for v in values)
    return Category(tuple(int(value) for value in values) if numbers else tuple(values))


_DEFAULT: Final[dict[str, Callable[[str, str], int | float | bool | str]]] = {
    "int": whole,
    "real": number,
    "bool": _truth,
} | dict.fromkeys(("category", "date", "timestamp", "text"), _text)
_MAKE: Final[dict[str, Callable[[ColumnDraft], Column]]] = {
    "int": lambda one: Int(*_ends(one, whole)),
    "real": lambda one: Real(*_ends(one, number)),
    "bool": lambda _: Bool(),
    "category": _category,
    "date": lambda one: Date(*_ends(one, _text)),
    "timestamp": lambda one: Timestamp(*_ends(one, _text)),
    "text": lambda one: Text(whole(one.longest, "The longest")) if one.longest else Text(),
}
