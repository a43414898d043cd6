"""A dataset's registration: what it declares, the ledger it is charged to, who shares its rows, where it is stored.

Registered datasets are one file each below the server's state, there after a restart. Beside them a note of the ledger
that each table's rows were put under stays when a dataset is taken away: who registers the rows again finds what was
spent (T56).
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, cast

from sulq.addresses import TableAddress, copy_of, is_address
from sulq.api.declarations import SUFFIXES, in_spark, single_facts, table_facts
from sulq.curator.ledger.ledger import Ledger
from sulq.curator.ledger.opening import covers_at, covers_in
from sulq.curator.ledger.sources import LedgerCover, Likeness, Source, agree, noted
from sulq.curator.ledger.turns import sync_directory
from sulq.data_files import Files, find_files
from sulq.errors import SetupError, SulqError
from sulq.language.domain import Schema
from sulq.language.facts import Tables
from sulq.language.privacy import Budget, Unit, delta_share_of
from sulq.language.rows_choice import check_auto
from sulq.service.clerk.ledger_places import beside_tables, rows_of
from sulq.service.settings import DatasetSettings, TableSettings
from sulq.service.worker import database

Told = Path | Files | str | tuple[Path, ...]


def declare(
    name: str,
    data: Told | Mapping[str, Told],
    columns: Mapping[str, object],
    *,
    budget: Budget,
    unit: Unit | None = None,
    table: str | None = None,
    size: int | Mapping[str, int] | None = None,
    synthetic: bool = False,
    ledger: str | Path | None = None,
    prepared: Path | Literal[False] | None = None,
    keys: Mapping[str, str] | None = None,
    public: tuple[str, ...] = (),
    persons: Mapping[str, str] | None = None,
    references: Mapping[str, Mapping[str, str]] | None = None,
    shares: Mapping[str, tuple[float, float]] | None = None,
    anchor: Path | None = None,
    schedule: float | None = None,
    renew: bool = False,
    graph: tuple[str, ...] | None = None,
    estimators: Mapping[str, object] | None = None,
    basic_share: object = None,
    key_share: object = None,
) -> DatasetSettings:
    """A dataset from the same words as `sulq.connect`; a server reads files and tables in PostgreSQL, never frames."""
    whole = Unit() if unit is None else unit
    if isinstance(data, Mapping):
        facts = table_facts(
            data, columns, whole, keys=keys or {}, public=public, persons=persons or {}, references=references or {}
        )
        sizes = dict(size) if isinstance(size, Mapping) else {}
        tables = tuple(
            TableSettings(
                _source(data[item.schema.table], name), item, sizes.get(item.schema.table),
                item.schema.table if _several(data[item.schema.table]) else None,
            )
            for item in facts
        )  # fmt: skip
    else:
        alone = single_facts(Schema.of(table or name, columns), whole, graph, estimators)
        number = size if isinstance(size, int) else None
        tables = (TableSettings(_source(data, name), alone, number, table if _several(data) else None),)
    of_tables = Tables(whole, tuple(item.facts for item in tables))
    check_auto(whole, budget, sum(of_tables.kept_of(item) is not None for item in of_tables.tables))
    place = str(ledger) if ledger is not None else beside_tables(tables)
    return DatasetSettings(
        name=name,
        tables=tables,
        unit=whole,
        budget=budget,
        ledger=place if "://" in place else str(Path(place).resolve()),
        prepared=_prepared(tables, prepared, place, name),
        alone=not isinstance(data, Mapping),
        synthetic=synthetic,
        shares=dict(shares or {}),
        anchor=anchor,
        schedule=schedule,
        renew=renew,
        basic_share=delta_share_of("basic_share", basic_share, budget),
        key_share=delta_share_of("key_share", key_share, budget),
    )


def _source(data: Told, name: str) -> Path | Files | str:
    """A data file, several, or the address of a database whose host is known; other addresses no worker reaches."""
    if is_address(data):
        database.ways(str(data))
        return str(data)
    if in_spark(data):
        raise SetupError(
            "engine-not-available",
            f"The data set {name[:80]!r} lies on Spark, which a server does not hold: Spark's driver starts programs "
            "and is connected to by the cluster, and a process that sees rows may do neither here.",
            "Ask it by `sulq query` or from Python, or serve an export of it (docs/operate/spark.md).",
        )
    if isinstance(data, str):
        raise SetupError(
            "bad-config",
            f"The data set {name[:80]!r} names an address; a server reads files and tables in PostgreSQL.",
            "Take it out of the file that is served: another curator's data is asked there.",
        )
    several = find_files(data)
    if several is not None or not isinstance(data, Path):
        return cast("Files", several)
    if not data.name.lower().endswith(SUFFIXES):
        raise SetupError("unreadable-data", f"{data.name!r} is none of {', '.join(SUFFIXES)}.")
    return data.resolve()


def _prepared(
    tables: tuple[TableSettings, ...], told: Path | Literal[False] | None, ledger: str, name: str
) -> Path | Literal[False] | None:
    """Where the prepared copy lies: as told, or beside the ledger; that of tables in a database lies there."""
    homes = {isinstance(table.data, str) for table in tables}
    if len(homes) > 1 or (True in homes and told is not None):
        raise SetupError(
            "bad-declaration",
            "Tables in PostgreSQL are prepared and asked there, all of them, and nothing else is.",
            "Leave prepared out, and name tables of one place.",
        )
    if not tables[0].files or told is not None:
        return told
    return copy_of(tables[0].files[0] if "://" in ledger else Path(ledger), name)


def _several(data: Told) -> bool:
    return is_address(data) or (isinstance(data, Path) and data.name.lower().endswith(".duckdb"))


def check_chosen(declared: DatasetSettings, ledger: Ledger) -> None:
    """Refuse, before a worker prepares rows in a database, a number of them that is yet to be chosen."""
    if declared.in_database and ledger.histogram_share is not None:
        why = "How many rows are kept is not chosen yet, and a server makes no second copy in a database."
        raise SetupError("bad-declaration", why, "Run `sulq prepare` once, where the ledger is.")


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
    return not apart and not identities(table).isdisjoint(identities(other))


def _named(table: TableSettings) -> str:
    return table.data.name if isinstance(table.data, Path) else f"table {table.facts.schema.table!r}"


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


def identities(table: TableSettings) -> set[object]:
    """By what each of a table's files is known: where it lies, and what lies there under another name too."""
    found: set[object] = set()
    for path in table.files:
        found.add(path.resolve())
        with contextlib.suppress(OSError):
            stat = path.stat()
            found.add((stat.st_dev, stat.st_ino))
    return found


def _again(declared: DatasetSettings) -> DatasetSettings | SulqError:
    """A dataset with the parts that there are now: one that came or went is data that changed, as its worker says."""
    try:
        return declared.again()
    except SulqError as error:
        return error


def refuse_covered(
    sources: Sequence[Source],
    own: LedgerCover,
    books: Sequence[LedgerCover],
    *,
    ledger: str,
    ledgers: Path | None,
    store: RegisteredStore,
) -> None:
    """Refuse rows that another ledger covers: an open one, one in a folder of ledgers, or one that rows were under.

    Privacy: a dataset that was taken away leaves its ledger behind; a copy of its file, wherever it lies, has no second
    budget (T98). Nobody hears of it but the owner who registers: it is the dataset's problem.

    Args:
        sources: What a worker says that it reads; it alone may read bytes.
        own: The ledger of the dataset.
        books: Those that are open.
        ledger: Where its own lies.
        ledgers: The server's folder of ledgers.
        store: What was ever registered.

    Raises:
        SetupError: `covered-source`, or a ledger cannot be read.
    """
    folders = [ledgers, None if "://" in ledger else Path(ledger).parent]
    others = [*books, *covers_in(folder for folder in folders if folder is not None)]
    if any(noted(source, own) is not Likeness.SAME for source in sources):
        others += covers_at(store.noted())
    agree(sources, own, others)


LEDGERS: Final = ".ledgers"  # no dataset's name begins so

_log = logging.getLogger(__name__)


class RegisteredStore:
    """A folder of declarations; what is put there is durable on return."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def names(self) -> list[str]:
        """The datasets there are, readable or not."""
        return sorted(path.stem for path in self._folder.glob("*.json"))

    @property
    def ledgers(self) -> dict[str, str]:
        """Under which ledger each table's rows were ever registered.

        Raises:
            SetupError: `bad-declaration`; the note cannot be read, and nobody can say what has been spent.
        """
        place = self._folder / LEDGERS
        try:
            found = json.loads(place.read_text(encoding="utf-8")) if place.exists() else {}
            if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
                raise ValueError("not a note of ledgers")
        except (OSError, ValueError) as error:
            raise SetupError(
                "bad-declaration", "The server's note of ledgers cannot be read.", f"Restore {place} from a copy."
            ) from error
        return cast("dict[str, str]", found)

    def noted(self) -> set[Path]:
        """The files of ledgers that rows were ever registered under, those of datasets that were taken away too."""
        with contextlib.suppress(SetupError):  # whoever registers hears of a note that cannot be read
            return {Path(place) for place in self.ledgers.values() if "://" not in place}
        return set()

    def put(self, declared: DatasetSettings) -> None:
        """Write a dataset down, and first the ledger of its rows."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        noted = self.ledgers
        self._write(self._folder / LEDGERS, noted | dict.fromkeys(rows_of(declared), declared.ledger))
        self._write(self._path(declared.name), declared.to_json())

    def _write(self, path: Path, tree: object) -> None:
        """Durable on return: synced under another name, renamed, and the folder synced too."""
        draft = path.with_name(f".{path.name}.new")
        with draft.open("w", encoding="utf-8") as file:
            json.dump(tree, file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        sync_directory(self._folder)

    def remove(self, name: str) -> None:
        """Take a dataset away; its data and its ledger stay where they are."""
        self._path(name).unlink(missing_ok=True)
        if self._folder.is_dir():
            sync_directory(self._folder)

    def read(self) -> Iterator[tuple[str, DatasetSettings | SulqError]]:
        """Each dataset by its name, or why its file cannot be read: one that is damaged stops no other."""
        for name in self.names:
            try:
                found = DatasetSettings.from_json(json.loads(self._path(name).read_text(encoding="utf-8")))
                if found.name != name:
                    raise ValueError("the file bears another name")
            except (OSError, ValueError, TypeError, LookupError, AttributeError, SulqError) as error:
                _log.error("a dataset's file cannot be read", extra={"dataset": name, "error": type(error).__name__})
                yield (
                    name,
                    SetupError(
                        "bad-declaration",
                        f"What was registered as {name!r} cannot be read.",
                        "Take the dataset away (DELETE /v1/datasets/NAME) and register it again; its ledger stays.",
                    ),
                )
            else:
                yield name, _again(found)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.json"
