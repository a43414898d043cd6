"""How an owner's declarations fit the owner's rows: exact counts, for the owner alone and never to be published.

Privacy: nothing here is noisy. It is called at the host, or for an owner who registers, by a process that ends with the
answer; no Oracle leads to it. It suggests no bound and no key: a declaration is public, and read off the rows it would
give them away. What is changed after looking is recorded as that (SR28).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self, cast

HEADS: Final = {
    "missing": "missing", "unread": "unreadable", "unmatched": "not listed", "below": "below", "above": "above",
    "cut": "cut",
}  # fmt: skip
"""The counts of a column, each with its words."""


@dataclass(frozen=True, slots=True)
class CheckedColumn:
    """One column's cells by how its declaration reads them.

    `missing`: empty cells. `unread`: no number, date or truth value, which count as missing. `unmatched`: values that
    are not on the list, likewise; `nearly` of them are on it but for case or blanks. `below`, `above`: clamped to the
    bounds. `cut`: texts longer than declared. `unused`: declared values that never occur, the first of `never`.
    """

    name: str
    kind: str
    missing: int = 0
    unread: int = 0
    unmatched: int = 0
    nearly: int = 0
    below: int = 0
    above: int = 0
    cut: int = 0
    unused: tuple[str, ...] = ()
    never: int = 0

    @property
    def fits(self) -> bool:
        """Whether every cell that is there is read as it stands."""
        return not (self.unread or self.unmatched or self.below or self.above or self.cut)


@dataclass(frozen=True, slots=True)
class CheckedTable:
    """One table's rows by whose they are; without persons each row is one, or the table is public.

    `nobody`: rows that name no person, which are dropped. `dropped`: rows past those that are kept of each person, of
    `heavy` persons. `kept`: how many of each are kept; None where all are, or the number is yet to be chosen.
    """

    name: str
    rows: int
    columns: tuple[CheckedColumn, ...]
    person: str | None = None
    persons: int = 0
    nobody: int = 0
    kept: int | None = None
    heavy: int = 0
    dropped: int = 0


@dataclass(frozen=True, slots=True, repr=False)
class RowCheck:
    """What `sulq check` found; for the owner alone."""

    tables: tuple[CheckedTable, ...]

    @property
    def fits(self) -> bool:
        """Whether no cell is altered and no row dropped."""
        return all(not (t.nobody or t.dropped) and all(c.fits for c in t.columns) for t in self.tables)

    def __str__(self) -> str:
        lines = ["Exact counts over the rows: for their owner alone, not to be published."]
        for table in self.tables:
            lines += ["", *_rows_in_words(table), *_grid(table), *_remarks(table)]
        return "\n".join(lines)

    __repr__ = __str__

    def to_json(self) -> dict[str, object]:
        """As a tree of JSON, from the process that read the rows to its owner."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, tree: Mapping[str, Any]) -> Self:
        """Read it back."""
        return cls(tuple(_table(each) for each in cast("Sequence[Mapping[str, Any]]", tree["tables"])))


def _table(tree: Mapping[str, Any]) -> CheckedTable:
    columns = tuple(CheckedColumn(**{**each, "unused": tuple(each.get("unused", ()))}) for each in tree["columns"])
    return CheckedTable(**{**tree, "columns": columns})


def _rows_in_words(table: CheckedTable) -> list[str]:
    """How many rows there are, and which of them are dropped."""
    said = f"{table.name}: {_number(table.rows, 'row')}"
    if table.person is None:
        return [f"{said}."]
    found = [f"{said} of {_number(table.persons, 'person')} ({table.person})."]
    if table.nobody:
        found.append(f"  Dropped, as they name nobody: {_number(table.nobody, 'row')}.")
    if table.dropped:
        kept = f"the {table.kept:,} that {'is' if table.kept == 1 else 'are'} kept of each"
        found.append(
            f"  Dropped, of {_number(table.heavy, 'person')} with more than {kept}: {_number(table.dropped, 'row')}."
        )
    return found


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _grid(table: CheckedTable) -> list[str]:
    """The counts of each column, in columns."""
    rows = [["column", "kind", *HEADS.values()]]
    rows += [[one.name, one.kind, *(f"{getattr(one, name):,}" for name in HEADS)] for one in table.columns]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  "
        + "  ".join(
            cell.ljust(n) if i < 2 else cell.rjust(n) for i, (cell, n) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _remarks(table: CheckedTable) -> list[str]:
    found = []
    for one in table.columns:
        if one.nearly:
            found.append(
                f"  {one.name}: {_number(one.nearly, 'cell')} equal to a declared value but for case or blanks."
            )
        if one.never:
            more = one.never - len(one.unused)
            named = ", ".join(map(repr, one.unused)) + (f" and {more:,} more" if more else "")
            found.append(f"  {one.name}: declared, but never there: {named}.")
    return found
