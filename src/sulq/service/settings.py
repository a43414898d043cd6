"""What the server is told when it starts: itself, and each dataset as its owner declared it; all of it as JSON.

The processes are handed these through a pipe, never through a command line or
an environment that others could read. Everything here is the owner's; nothing
is read off the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Final, Literal, cast

from sulq.answers import wire
from sulq.data_files import Files, Pattern
from sulq.language.facts import TableFacts
from sulq.language.privacy import DELTA_SHARES, Budget, Unit

Tree = Mapping[str, object]
WORKERS: Final = 2
LIMIT_SECONDS: Final = 30.0
MEMORY_MIB: Final = 4096
JOBS: Final = 4
JOB_LIMIT_SECONDS: Final = 7200.0
JOB_MEMORY_MIB: Final = 2048


@dataclass(frozen=True, slots=True)
class Service:
    """The server's own settings; times in seconds, memory in MiB for each worker."""

    state: Path  # where the access store and what was registered over the console lie
    host: str = "127.0.0.1"
    port: int = 8765
    tls_cert: Path | None = None
    tls_key: Path | None = None
    data_root: Path | None = None
    workers: int = WORKERS
    limit: float = LIMIT_SECONDS
    memory: int = MEMORY_MIB
    web: int = 1
    share_answers: bool = False
    rate: int | None = None
    schedule: float | None = None
    hosts: tuple[str, ...] = ()  # further names the server goes by
    public_url: str | None = None  # where browsers find it, if a proxy speaks TLS for it: https://NAME[:PORT]
    insecure_public: bool = False  # it may listen on a public address without TLS
    ledgers: Path | None = None  # where those of datasets registered by calls lie; None: beside their data
    jobs: int = JOBS  # that run at a time
    job_limit: float = JOB_LIMIT_SECONDS
    job_memory: int = JOB_MEMORY_MIB  # MiB of each
    anchors: Path | None = None  # where those of datasets registered by calls may lie; None: nowhere
    traces: str | None = None  # the address of a collector of traces on this machine

    @property
    def tls(self) -> bool:
        """Whether browsers reach it by TLS."""
        return self.tls_cert is not None or self.public_url is not None

    @property
    def access(self) -> Path:
        """The access store."""
        return self.state / "access.db"

    def to_json(self) -> dict[str, object]:
        """As a tree of JSON."""
        return {name: _plain(getattr(self, name)) for name in self.__dataclass_fields__}

    @classmethod
    def from_json(cls, tree: Tree) -> Service:
        """Read it back."""
        told = dict(tree)
        for name in ("state", "tls_cert", "tls_key", "data_root", "ledgers", "anchors"):
            told[name] = None if told.get(name) is None else Path(str(told[name]))
        told["hosts"] = tuple(cast("list[str]", told.get("hosts") or ()))
        return cls(**told)  # type: ignore[arg-type]  # written by to_json above


@dataclass(frozen=True, slots=True)
class TableSettings:
    """One table: its data file, its files or the address of its database, its public facts, its declared size.

    `inside`: its name inside a file of several, or a database.
    """

    data: Path | Files | str
    facts: TableFacts
    size: int | None = None
    inside: str | None = None

    @property
    def files(self) -> tuple[Path, ...]:
        """Its data files; none of a table in a database."""
        return files_of(self.data)


@dataclass(frozen=True, slots=True)
class DatasetSettings:
    """One dataset. `ledger` is a file, or an address with `://`; `alone`: its one table is the whole dataset."""

    name: str
    tables: tuple[TableSettings, ...]
    unit: Unit
    budget: Budget
    ledger: str
    prepared: Path | Literal[False] | None = False  # False: no copy, each question reads the data; None: in a database
    alone: bool = True
    synthetic: bool = False
    shares: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # share and reserve of an analyst
    anchor: Path | None = None
    schedule: float | None = None
    renew: bool = False
    basic_share: Fraction | None = None  # the part of delta for basic composition; None: what the ledger has
    key_share: Fraction | None = None  # likewise for open keys

    def for_worker(self) -> DatasetSettings:
        """What a worker needs of it: not where the ledger lies, whose address may hold a password, nor of analysts.

        A worker whose tables lie in the database of the ledger could come to it all the same, by the tables' address.
        """
        return replace(self, ledger="", shares={}, anchor=None, schedule=None, basic_share=None, key_share=None)

    @property
    def certified(self) -> bool:
        """Whether its rows are held as the kernel certifies: in a prepared copy."""
        return self.prepared is not False

    @property
    def in_database(self) -> bool:
        """Whether its tables lie in a database."""
        return isinstance(self.tables[0].data, str)

    def again(self) -> DatasetSettings:
        """The same with the parts that its tables have now."""
        found = [replace(t, data=t.data.again()) if isinstance(t.data, Files) else t for t in self.tables]
        return replace(self, tables=tuple(found))

    def to_json(self) -> dict[str, object]:
        """As a tree of JSON."""
        tables = [
            {
                "data": t.data.to_json() if isinstance(t.data, Files) else str(t.data),
                "facts": wire.to_json(t.facts),
                "size": t.size,
                "inside": t.inside,
            }
            for t in self.tables
        ]
        plain = {
            name: _plain(getattr(self, name))
            for name in ("name", "ledger", "prepared", "alone", "synthetic", "anchor", "schedule", "renew")
        }
        shares = {name: list(pair) for name, pair in self.shares.items()}
        values = {name: wire.to_json(getattr(self, name)) for name in ("unit", "budget", *DELTA_SHARES)}
        return {**plain, **values, "tables": tables, "shares": shares}

    @classmethod
    def from_json(cls, tree: Tree) -> DatasetSettings:
        """Read it back."""
        told = dict(tree)
        told["tables"] = tuple(_table(tree) for tree in cast("list[dict[str, object]]", told["tables"]))
        told["unit"], told["budget"] = wire.from_json(told["unit"]), wire.from_json(told["budget"])
        told |= {name: wire.from_json(told.get(name)) for name in DELTA_SHARES}  # earlier versions do not name them
        told["shares"] = {name: tuple(pair) for name, pair in cast("dict[str, list[float]]", told["shares"]).items()}
        told["prepared"] = Path(str(told["prepared"])) if told["prepared"] else told["prepared"]
        told["anchor"] = None if told["anchor"] is None else Path(str(told["anchor"]))
        return cls(**told)  # type: ignore[arg-type]  # written by to_json above


def _table(tree: Mapping[str, object]) -> TableSettings:
    facts = cast("TableFacts", wire.from_json(tree["facts"]))
    size, inside = cast("tuple[int | None, str | None]", (tree["size"], tree["inside"]))
    return TableSettings(data_of(tree["data"]), facts, size, inside)


def data_of(tree: object) -> Path | Files | str:
    """Where a table's rows lie, read back."""
    if isinstance(tree, dict):
        return Files.from_json(tree)
    data = str(tree)
    return data if "://" in data else Path(data)


def files_of(data: Path | Files | str) -> tuple[Path, ...]:
    """The files of a table; none where it lies in a database."""
    return data.paths if isinstance(data, Files) else () if isinstance(data, str) else (data,)


def covered_of(data: Path | Files | str) -> tuple[Path | Pattern, ...]:
    """The same, and the folders and patterns that were named: what a ledger notes."""
    return data.covered if isinstance(data, Files) else files_of(data)


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, Path) else value
