"""Which data lies under which ledger: nobody's rows have two budgets, and no table's name stands for two tables.

Sequential composition adds up what one ledger charged. Rows that two ledgers
protect could be asked about up to the sum of their budgets, which neither owner
nor analyst was told (T56).
"""

from __future__ import annotations

from pathlib import Path

from sulq.addresses.postgres import TableAddress
from sulq.errors import SetupError
from sulq.service.settings import DatasetSettings, TableSettings
from sulq.service.worker import database


class Holdings:
    """The datasets this server has, by what they are read from; the caller sees to it that one thread writes."""

    def __init__(self) -> None:
        self._taken: dict[str, DatasetSettings] = {}

    def take(self, declared: DatasetSettings) -> None:
        """Take a dataset in.

        Raises:
            SetupError: `bad-declaration`: its rows are under another ledger, or its ledger has another such table.
        """
        for other in self._taken.values():
            if other.ledger == declared.ledger:
                _differs(declared, other)
            else:
                _second(declared, other)
        self._taken[declared.name] = declared

    def release(self, name: str) -> bool:
        """Let a dataset go; whether no other one has its ledger."""
        gone = self._taken.pop(name, None)
        return gone is not None and all(other.ledger != gone.ledger for other in self._taken.values())


def _differs(declared: DatasetSettings, other: DatasetSettings) -> None:
    """Refuse a table's name that stands for something else in the same ledger: each would undo the other's entry."""
    known = {table.facts.schema.table: table for table in other.tables}
    for table in declared.tables:
        name = table.facts.schema.table
        if name in known and known[name] != table:
            raise SetupError(
                "bad-declaration",
                f"The ledger has a table {name!r} of dataset {other.name!r}, from another file or declared otherwise.",
                "Give this table another name (table = ...), or declare both alike.",
            )


def _second(declared: DatasetSettings, other: DatasetSettings) -> None:
    for table in declared.tables:
        for known in other.tables:
            if not table.facts.public and not known.facts.public and _same(table, known):
                raise SetupError(
                    "bad-declaration",
                    f"The rows of {_named(table)} are dataset {other.name!r}'s, under another ledger: "
                    "they would have a second budget.",
                    "Ask that dataset, or declare this one in sulq.toml with the same ledger.",
                )


def _same(table: TableSettings, other: TableSettings) -> bool:
    """Whether two tables are the same rows: one file or database, and not two tables inside it."""
    if isinstance(table.data, str) or isinstance(other.data, str):
        return isinstance(table.data, str) and isinstance(other.data, str) and _one_table(table, other)
    apart = None not in (table.inside, other.inside) and table.inside != other.inside
    return not apart and _one_file(table.data, other.data)


def _named(table: TableSettings) -> str:
    return f"table {table.facts.schema.table!r}" if isinstance(table.data, str) else table.data.name


def _one_table(table: TableSettings, other: TableSettings) -> bool:
    """Whether tables of a database are one: by a host, the database's name, and their own; not by who reads, and how.

    Of several hosts one in common is enough: all of an address have the same rows.
    """
    return _inside(table) == _inside(other) and not _hosts(str(table.data)).isdisjoint(_hosts(str(other.data)))


def _inside(table: TableSettings) -> object:
    url = str(table.data)
    return database.base(url), TableAddress.of(url).inside(table.inside or table.facts.schema.table)


def _hosts(url: str) -> set[tuple[str, int]]:
    """By name and by number, where an address has both."""
    ways, names = database.ways(url), database.names(url)
    both = [(name, way.port) for name, way in zip(names, ways, strict=False)] + [(way.far, way.port) for way in ways]
    return {(host.lower(), port) for host, port in both}


def _one_file(path: Path, other: Path) -> bool:
    if path.resolve() == other.resolve():
        return True
    try:
        return path.samefile(other)  # another name for it
    except OSError:
        return False
