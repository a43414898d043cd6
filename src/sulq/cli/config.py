"""The owner's declarations as a file: `NAME.sulq.toml` beside the data, or `sulq.toml` for several.

    [dataset.survey]                 # in NAME.sulq.toml simply [dataset]
    data = "survey.parquet"
    ledger = "survey.ledger"
    unit = { column = "respondent_id", rows = 5, neighbors = "add_remove" }
    budget = { epsilon = 2.0, delta = 1e-6 }
    [dataset.survey.columns]
    age = { int = [0, 120] }

A data set of several tables says so in place of `data` and `columns`:

    [dataset.clinic.tables.people]
    data = "people.parquet"
    key = "pid"
    columns = { age = { int = [0, 120] } }
    [dataset.clinic.tables.regions]
    data = "regions.csv"
    key = "code"
    public = true
    columns = { code = { int = [0, 99] } }

A column that names a row of another private table of the same person's by its key
says so: references = { order = "orders" }.

Everything in it is a public fact; nothing is read off the data, and the data
file is not opened here.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, cast

from sulq.cli.settings import SETTINGS, ConfigPlace, TableConfig, section
from sulq.cli.setup.config_lines import at_line, unfilled
from sulq.data_files import Pattern, find_files
from sulq.errors import SetupError, SulqError
from sulq.language.domain import Column
from sulq.language.privacy import DELTA_SHARES, Budget, Unit, delta_share_of
from sulq.service.settings import Service

SUFFIX: Final = ".sulq.toml"
CONFIG: Final = "sulq.toml"
STATE: Final = "sulq.state"
DATA_SUFFIXES: Final = (".csv.gz", ".parquet", ".csv", ".duckdb")


@dataclass(frozen=True, slots=True)
class DatasetConfig:
    """One data set as its owner declared it; what is None is left to `sulq.connect`.

    `tables`: its parts, where there are several; `data` is then the first private one's.
    """

    name: str
    data: Path | str | tuple[Path, ...]  # a file, several, or a URL or a database's address as it was written
    budget: Budget
    columns: Mapping[str, Column]
    table: str
    ledger: Path | str | None = None
    prepared: Path | Literal[False] | None = None
    unit: Unit = field(default_factory=Unit)
    size: int | None = None
    synthetic: bool = False
    tables: Mapping[str, TableConfig] = field(default_factory=dict)
    shares: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # share and reserve of each analyst
    anchor: Path | None = None
    schedule: float | None = None
    graph: tuple[str, ...] | None = None
    estimators: Mapping[str, object] | None = None
    basic_share: Fraction | None = None
    key_share: Fraction | None = None

    @property
    def files(self) -> tuple[Path | str, ...]:
        """All its data files."""
        told = [part.data for part in self.tables.values()] or [self.data]
        return tuple(each for data in told for each in files_of(data))

    def words(self) -> dict[str, Any]:
        """Its declarations, as `sulq.connect` and a server take them by name."""
        told: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("data", "columns", "budget", "unit", "table", "size", "synthetic", "anchor", *DELTA_SHARES)
        }
        if not self.tables:
            return told | {"graph": self.graph, "estimators": self.estimators}

        def each(name: str) -> dict[str, Any]:
            found = {table: getattr(part, name) for table, part in self.tables.items()}
            return {table: value for table, value in found.items() if value is not None}

        parts = {"data": each("data"), "columns": each("columns"), "size": each("size") or None, "table": None}
        parts |= {"keys": each("key"), "persons": each("person")}
        references = {table: found for table, found in each("references").items() if found}
        public = tuple(table for table, is_public in each("public").items() if is_public)
        return told | parts | {"references": references, "public": public}


@dataclass(frozen=True, slots=True)
class Config:
    """A configuration file, read and checked."""

    path: Path
    datasets: Mapping[str, DatasetConfig]
    server: Service


def files_of(data: Path | str | tuple[Path, ...]) -> tuple[Path | str, ...]:
    """The files of a list, a pattern or a folder; one file or address by itself, whether it is there or not."""
    several = find_files(data)
    return cast("tuple[Path | str, ...]", (data,)) if several is None else several.paths


def covered(data: Path | str | tuple[Path, ...]) -> tuple[Path | Pattern | str, ...]:
    """The same, and the folders and patterns that were named: what a ledger notes."""
    several = find_files(data)
    return files_of(data) if several is None else several.covered


def is_file(path: Path) -> bool:
    """Whether there is a file; a name longer than any file's has none."""
    try:
        return path.is_file()
    except OSError:
        return False


def find(dataset: str, config: Path | None = None) -> DatasetConfig:
    """The data set a command names: a data file with its NAME.sulq.toml, that file, or a name in the configuration."""
    path = Path(dataset)
    if path.name.endswith(SUFFIX):
        return _only(read(path))
    beside = path.parent / (_stem(path) + SUFFIX)
    if path.name.lower().endswith(DATA_SUFFIXES):
        if not is_file(beside):
            why = f"{dataset} has no declarations: there is no {beside.name} beside it."
            raise SetupError("missing-file", why, f"Write one: sulq init {dataset}")
        found = _only(read(beside))
        if path.resolve() not in [file.resolve() for file in found.files if isinstance(file, Path)]:
            raise SetupError("bad-config", f"{beside.name} declares {found.data}, not {dataset}.")
        return found
    known: Mapping[str, DatasetConfig] = {}
    if config is not None or Path(CONFIG).is_file():
        known = read(config or Path(CONFIG)).datasets
    if dataset in known:
        return known[dataset]
    if is_file(beside):
        return _only(read(beside))
    names = ", ".join(known) or "none"
    raise SetupError(
        "missing-file",
        f"No data set {dataset!r}: neither a data file, nor in {config or CONFIG} (which names: {names}).",
        f"Give a data file with its declarations beside it (NAME{SUFFIX}), or a data set of the configuration.",
    )


def read(path: Path) -> Config:
    """Read a configuration file, or refuse it naming the place."""
    place = ConfigPlace(str(path), path.parent)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise SetupError("missing-file", f"The configuration {path} cannot be read.") from None
    try:
        tree: Mapping[str, object] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise unfilled(text, path) or place.bad(f"is not TOML: {error}") from None
    try:
        return _read(tree, path)
    except SulqError as error:
        raise at_line(error, text, path) from None


def _read(tree: Mapping[str, object], path: Path) -> Config:
    ConfigPlace(str(path), path.parent).table(tree, "")
    tables = ConfigPlace(f"{path}: [dataset]", path.parent).table(tree.get("dataset", {}))
    if path.name.endswith(SUFFIX):
        tables = {path.name.removesuffix(SUFFIX): tables} if _is_one(tables) else tables
    datasets = {name: _dataset(name, tables[name], path) for name in tables}
    return Config(path, MappingProxyType(datasets), _server(tree.get("server", {}), path))


def _is_one(tables: Mapping[str, object]) -> bool:
    """Whether [dataset] is the data set itself; a file that names its data set says [dataset.NAME]."""
    named = tables and all(isinstance(value, dict) for value in tables.values())
    return not named or any(key in SETTINGS["dataset"] for key in tables)


def _only(config: Config) -> DatasetConfig:
    if len(config.datasets) != 1:
        raise ConfigPlace(str(config.path), config.path.parent).bad("must hold one data set")
    return next(iter(config.datasets.values()))


def _stem(path: Path) -> str:
    suffix = next((suffix for suffix in DATA_SUFFIXES if path.name.lower().endswith(suffix)), "")
    return path.name[: len(path.name) - len(suffix)]


def _dataset(name: str, value: object, path: Path) -> DatasetConfig:
    place = ConfigPlace(f"{path}: [dataset.{name}]", path.parent)
    several = "tables" in place.table(value)
    table = place.table(value, "dataset", ("budget",) if several else ("data", "budget", "columns"))
    for alone in ("data", "columns", "table", "size", "graph", "estimators"):
        if several and alone in table:
            raise place.bad(f"has several tables; {alone!r} belongs to each of them")
    found = {"name": name, "table": name} | section("dataset", table, place)
    for share in DELTA_SHARES:
        read = partial(delta_share_of, share, table.get(share), found["budget"])
        found |= {share: place.at(share).declared(read)}
    if several:
        first = next((part for part in found["tables"].values() if not part.public), None)
        if first is None:
            raise place.bad("has no table that is not public: there is nobody to protect")
        found |= {"data": first.data, "columns": first.columns}
    return DatasetConfig(**found)


def _server(value: object, path: Path) -> Service:
    place = ConfigPlace(f"{path}: [server]", path.parent)
    found = section("server", place.table(value, "server"), place)
    if ("tls_cert" in found) != ("tls_key" in found):
        raise place.bad("needs tls_cert and tls_key together")
    return Service(**({"state": path.parent / STATE} | found))
