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
file is not opened here. A key that is not known is refused with the nearest
one that is, since a mistyped `ledger` would start a budget anew.
"""

from __future__ import annotations

import datetime
import difflib
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, TypeVar, cast
from urllib.parse import unquote

from sulq.addresses.postgres import is_address
from sulq.api.declarations import lies_elsewhere
from sulq.errors import SetupError, SulqError
from sulq.language.domain import Bool, Category, Column, Date, Int, Real, Text, Timestamp, declare
from sulq.language.privacy import Budget, Epsilon, EpsilonDelta, Rho, SubLinear, Unit
from sulq.language.statistic import CERTIFIES, Certificate

SUFFIX: Final = ".sulq.toml"
CONFIG: Final = "sulq.toml"
STATE: Final = "sulq.state"
DATA_SUFFIXES: Final = (".csv.gz", ".parquet", ".csv", ".duckdb")
SECRETS: Final = frozenset({"password", "sslpassword", "oauth_client_secret"})  # words of a postgresql:// address

# Every setting and what it says: the readers below and the reference page go by this table.
SETTINGS: Final[Mapping[str, Mapping[str, str]]] = {
    "": {
        "dataset": "One table a data set; in NAME.sulq.toml the one table [dataset].",
        "server": "How `sulq serve` listens and works.",
    },
    "dataset": {
        "data": "The data file, relative to this file; a postgresql:// address without a password; a table of Spark "
        "(spark://HOST:PORT/TABLE); or a curator's URL.",
        "table": "The table's name in SQL; default: the data set's name.",
        "ledger": "The ledger, relative to this file, or a postgresql:// address; default: beside the data.",
        "prepared": "Where the prepared copy lies; false: none. Default: beside the ledger.",
        "unit": "Whom an answer hides: { column, rows, neighbors, fold }. Default: one row.",
        "budget": "{ epsilon }, { epsilon, delta }, { rho } or { epsilon, delta, queries, calibration }.",
        "columns": "One declaration a column; a column that is not declared cannot be asked about.",
        "tables": "Of a data set of several tables, one table each, in place of data and columns.",
        "size": "The declared public number of rows, if it may be known.",
        "synthetic": "true: made-up data that needs no protection; fixed for ever in the ledger.",
        "shares": "Parts of the budget by analyst: { alice = { share = 0.5, reserve = 0.1 } }; for who has none yet.",
        "anchor": "A file, best on another disk, that keeps an old copy of the ledger from being used.",
        "schedule": "For `sulq serve`: answers leave every so many seconds. Default: that of [server].",
        "graph": "Of a table whose rows are edges, the columns of both ends and of the weight: ['u', 'v', 'weight'].",
        "estimators": "Functions that analysts may choose by name: { NAME = 'package:function' }, or a table each.",
    },
    "estimator": {
        "function": "Where the function is: package:function.",
        **{name: f"Of a certificate: {what}." for name, what in CERTIFIES.items()},
    },
    "share": {
        "share": "The part of the budget this analyst may spend at most; a fraction of the total. Default: 1.",
        "reserve": "The part of the budget that is kept for this analyst alone. Default: 0.",
    },
    "table": {
        "data": "The table's data file, relative to this file, or a postgresql:// address without a password; a table "
        "of Spark stands alone in a data set, several are connected from Python.",
        "columns": "One declaration a column.",
        "key": "The column that differs from row to row; checked over all rows.",
        "public": "true: rows that need no protection.",
        "person": "The column that says whose row it is, where it is not the unit's.",
        "references": "{ column = table }: columns that name a row of another private table by its key; checked.",
        "size": "The declared public number of rows, if it may be known.",
    },
    "unit": {
        "column": "The column that says whose row it is.",
        "rows": "How many rows of a person are kept.",
        "neighbors": "add_remove, replace_one or zero_out.",
        "fold": "Which ids are one person beside equal ones: case or spelling. Default: none.",
    },
    "budget": {
        "epsilon": "The total of pure loss, or of approximate loss with delta.",
        "delta": "The probability with which epsilon may fail.",
        "rho": "The total of zero-concentrated loss.",
        "queries": "The number of noisy sums of a SubLinear budget.",
        "calibration": "How a SubLinear budget sets its noise.",
    },
    "column": {
        "int": "[lowest, highest] whole number; a bare pair of whole numbers is short for it.",
        "real": "[lowest, highest] number; a bare pair of numbers is short for it.",
        "grid": "With real: the step, lowered to a power of two.",
        "bool": "true.",
        "category": "The list of values; a bare list of texts is short for it.",
        "date": "[first, last] day.",
        "timestamp": "[first, last] moment, in UTC.",
        "text": "true.",
        "longest": "With text: how many characters of a cell are kept, at most 10,000, the default.",
        "missing": "false: no cell is missing, so there is no NULL to group by; default: true.",
        "default": "With missing = false: what a cell that is missing all the same counts as; default: the lowest.",
    },
    "server": {
        "host": "The address to listen on; default: 127.0.0.1, this machine alone.",
        "port": "The port to listen on; default: 8765.",
        "hosts": "Further names the server goes by, as requests name them; others are turned away.",
        "public_url": "https://NAME, where browsers find it behind a proxy with TLS: cookies are then for TLS alone.",
        "tls_cert": "The certificate's file (PEM), with its chain; a public address needs it.",
        "tls_key": "The certificate's private key (PEM).",
        "insecure_public": "true: listen on a public address without TLS, behind a proxy that has it.",
        "state": "The folder of the access store and of datasets registered over HTTP; default: sulq.state here.",
        "data_root": "The folder below which an owner may register data files over HTTP; default: none.",
        "ledgers": "The folder of the ledgers of datasets registered over HTTP; default: beside their data.",
        "workers": "Processes that hold each dataset's rows; default: 2.",
        "limit": "Seconds after which a question is stopped, charged; default: 30.",
        "memory": "MiB that a worker may take; default: 4096.",
        "web": "Processes that answer HTTP; default: 1.",
        "share_answers": "true: a stored answer is given again to every analyst of the dataset, not its asker alone.",
        "rate": "Calls a minute for each token; default: 1200.",
        "schedule": "Answers leave every so many seconds, so that their time tells nothing; default: at once.",
    },
}
_MORE: Final = {"grid": "real", "longest": "text"}
_KINDS: Final = ("int", "real", "bool", "category", "date", "timestamp", "text")
_BUDGETS: Final[Mapping[frozenset[str], type[Budget]]] = {
    frozenset({"epsilon"}): Epsilon,
    frozenset({"epsilon", "delta"}): EpsilonDelta,
    frozenset({"rho"}): Rho,
    frozenset({"epsilon", "delta", "queries"}): SubLinear,
    frozenset({"epsilon", "delta", "queries", "calibration"}): SubLinear,
}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TableConfig:
    """One of the tables of a data set of several."""

    data: Path | str  # a file, or a database's address as it was written
    columns: Mapping[str, Column]
    key: str | None
    public: bool
    person: str | None
    size: int | None
    references: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DatasetConfig:
    """One data set as its owner declared it; what is None is left to `sulq.connect`.

    `tables`: its parts, where there are several; `data` is then the first private one's.
    """

    name: str
    data: Path | str  # a file, or a URL or a database's address as it was written
    ledger: Path | str | None
    prepared: Path | Literal[False] | None
    unit: Unit
    budget: Budget
    columns: Mapping[str, Column]
    size: int | None
    synthetic: bool
    table: str
    tables: Mapping[str, TableConfig] = field(default_factory=dict)
    shares: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # share and reserve of each analyst
    anchor: Path | None = None
    schedule: float | None = None
    graph: tuple[str, ...] | None = None
    estimators: Mapping[str, object] | None = None

    @property
    def files(self) -> tuple[Path | str, ...]:
        """All its data files."""
        return tuple(part.data for part in self.tables.values()) or (self.data,)


@dataclass(frozen=True, slots=True)
class Server:
    """How `sulq serve` listens and works: for this machine alone, unless the owner says otherwise."""

    host: str = "127.0.0.1"
    port: int = 8765
    hosts: tuple[str, ...] = ()
    tls_cert: Path | None = None
    tls_key: Path | None = None
    insecure_public: bool = False
    state: Path = Path(STATE)
    data_root: Path | None = None
    workers: int = 2
    limit: float = 30.0
    memory: int = 4096
    web: int = 1
    share_answers: bool = False
    rate: int = 1200
    schedule: float | None = None
    public_url: str | None = None
    ledgers: Path | None = None


@dataclass(frozen=True, slots=True)
class Config:
    """A configuration file, read and checked."""

    path: Path
    datasets: Mapping[str, DatasetConfig]
    server: Server


def find(dataset: str, config: Path | None = None) -> DatasetConfig:
    """The data set a command names: a data file with its NAME.sulq.toml, that file, or a name in the configuration."""
    path = Path(dataset)
    if path.name.endswith(SUFFIX):
        return _only(read(path))
    beside = path.parent / (_stem(path) + SUFFIX)
    if path.name.lower().endswith(DATA_SUFFIXES):
        if not beside.is_file():
            raise SetupError("missing-file", f"{dataset} has no declarations: there is no {beside.name} beside it.")
        found = _only(read(beside))
        if path.resolve() not in [file.resolve() for file in found.files if isinstance(file, Path)]:
            raise SetupError("bad-config", f"{beside.name} declares {found.data}, not {dataset}.")
        return found
    known: Mapping[str, DatasetConfig] = {}
    if config is not None or Path(CONFIG).is_file():
        known = read(config or Path(CONFIG)).datasets
    if dataset in known:
        return known[dataset]
    if beside.is_file():
        return _only(read(beside))
    names = ", ".join(known) or "none"
    raise SetupError(
        "missing-file",
        f"No data set {dataset!r}: neither a data file, nor in {config or CONFIG} (which names: {names}).",
        f"Give a data file with its declarations beside it (NAME{SUFFIX}), or a data set of the configuration.",
    )


def read(path: Path) -> Config:
    """Read a configuration file, or refuse it naming the place."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise SetupError("missing-file", f"The configuration {path} cannot be read.") from None
    try:
        tree: Mapping[str, object] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _bad(str(path), f"is not TOML: {error}") from None
    _known(tree, "", str(path))
    tables = _table(tree.get("dataset", {}), f"{path}: [dataset]")
    if path.name.endswith(SUFFIX):
        tables = {path.name.removesuffix(SUFFIX): tables} if _is_one(tables) else tables
    datasets = {name: _dataset(name, tables[name], path) for name in tables}
    server = _server(_table(tree.get("server", {}), f"{path}: [server]"), path.parent, f"{path}: [server]")
    return Config(path, MappingProxyType(datasets), server)


def _is_one(tables: Mapping[str, object]) -> bool:
    """Whether [dataset] is the data set itself; a file that names its data set says [dataset.NAME]."""
    named = tables and all(isinstance(value, dict) for value in tables.values())
    return not named or any(key in SETTINGS["dataset"] for key in tables)


def _only(config: Config) -> DatasetConfig:
    if len(config.datasets) != 1:
        raise _bad(str(config.path), "must hold one data set")
    return next(iter(config.datasets.values()))


def _stem(path: Path) -> str:
    suffix = next((suffix for suffix in DATA_SUFFIXES if path.name.lower().endswith(suffix)), "")
    return path.name[: len(path.name) - len(suffix)]


def _dataset(name: str, value: object, path: Path) -> DatasetConfig:
    where = f"{path}: [dataset.{name}]"
    table = _table(value, where)
    _known(table, "dataset", where)
    several = "tables" in table
    _needed(table, ("budget",) if several else ("data", "budget", "columns"), "dataset", where)
    folder = path.parent
    tables = _tables(table["tables"], folder, where) if several else {}
    for alone in ("data", "columns", "table", "size", "graph", "estimators"):
        if several and alone in table:
            raise _bad(where, f"has several tables; {alone!r} belongs to each of them")
    first = next((part for part in tables.values() if not part.public), None)
    if several and first is None:
        raise _bad(where, "has no table that is not public: there is nobody to protect")
    return DatasetConfig(
        name=name,
        data=_source(table["data"], folder, f"{where} data") if first is None else first.data,
        ledger=_place(table["ledger"], folder, f"{where} ledger") if "ledger" in table else None,
        prepared=False if table.get("prepared") is False else _file(table.get("prepared"), folder, f"{where} prepared"),
        unit=_unit(table.get("unit", {}), f"{where} unit"),
        budget=_budget(table["budget"], f"{where} budget"),
        columns=_columns(table["columns"], where) if first is None else first.columns,
        size=_size(table.get("size"), f"{where} size"),
        synthetic=_of(bool, table.get("synthetic", False), f"{where} synthetic", "true or false"),
        table=_of(str, table.get("table", name), f"{where} table", "a name in quotes"),
        tables=MappingProxyType(tables),
        shares=MappingProxyType(_shares(table.get("shares", {}), f"{where} shares")),
        anchor=_file(table.get("anchor"), folder, f"{where} anchor"),
        schedule=_seconds(table.get("schedule"), f"{where} schedule"),
        graph=_graph(table.get("graph"), f"{where} graph"),
        estimators=_estimators(table.get("estimators"), f"{where} estimators"),
    )


def _graph(value: object, where: str) -> tuple[str, ...] | None:
    if value is None:
        return None
    names = _of(list, value, where, "a list of two or three columns")
    return tuple(_of(str, name, where, "a column's name in quotes") for name in names)


def _estimators(value: object, where: str) -> Mapping[str, object] | None:
    """The owner's functions by name: their place, or a table that certifies them too."""
    if value is None:
        return None
    found: dict[str, object] = {}
    for name, told in _table(value, where).items():
        if isinstance(told, str):
            found[name] = told
            continue
        own = f"{where}.{name}"
        table = _table(told, own)
        _known(table, "estimator", own)
        _needed(table, ("function", *CERTIFIES), "estimator", own)
        numbers = {key: _number(table[key], f"{own} {key}") for key in CERTIFIES if key != "columns"}
        columns = tuple(_of(list, table["columns"], f"{own} columns", "a list of columns"))
        try:
            found[name] = (
                _of(str, table["function"], own, "package:function"),
                Certificate(**numbers, columns=columns),
            )
        except SulqError as error:
            raise _bad(own, error.message) from None
    return MappingProxyType(found)


def _number(value: object, where: str) -> float:
    return float(_of(int, value, where, "a number") if isinstance(value, int) else _of(float, value, where, "a number"))


def _tables(value: object, folder: Path, where: str) -> dict[str, TableConfig]:
    tables = _table(value, f"{where} tables")
    if not tables:
        raise _bad(f"{where} tables", "must declare at least one table")
    return {name: _part(tables[name], folder, f"{where.removesuffix(']')}.tables.{name}]") for name in tables}


def _part(value: object, folder: Path, where: str) -> TableConfig:
    table = _table(value, where)
    _known(table, "table", where)
    _needed(table, ("data", "columns"), "table", where)
    data = _source(table["data"], folder, f"{where} data")
    if isinstance(data, str) and not lies_elsewhere(data):
        raise _bad(f"{where} data", "must be a file, a postgresql:// address, or a table of Spark")
    return TableConfig(
        data=data,
        columns=_columns(table["columns"], where),
        key=_name(table.get("key"), f"{where} key"),
        public=_of(bool, table.get("public", False), f"{where} public", "true or false"),
        person=_name(table.get("person"), f"{where} person"),
        size=_size(table.get("size"), f"{where} size"),
        references=_references(table.get("references", {}), f"{where} references"),
    )


def _references(value: object, where: str) -> Mapping[str, str]:
    table = _table(value, where)
    return MappingProxyType({name: _of(str, table[name], where, "a table's name in quotes") for name in table})


def _name(value: object, where: str) -> str | None:
    return None if value is None else _of(str, value, where, "a column's name in quotes")


def _needed(table: Mapping[str, object], settings: tuple[str, ...], place: str, where: str) -> None:
    for needed in settings:
        if needed not in table:
            raise _bad(where, f"needs {needed!r}: {SETTINGS[place][needed]}")


def _source(value: object, folder: Path, where: str) -> Path | str:
    """Where data lies; a password does not stand in a file that is read by everybody who may read it."""
    place = _place(value, folder, where)
    if is_address(place) and _tells_a_password(str(place)):
        raise _bad(where, "must not hold a password: put it into PGPASSWORD or a passfile")
    return place


def _tells_a_password(url: str) -> bool:
    """Whether an address holds a secret, as PostgreSQL's library reads it: it decodes names too, and trims them."""
    names = {unquote(word.partition("=")[0]).strip().lower() for word in re.split("[?&]", url)}
    return bool(re.search(r"://[^/]*:[^/]*@", url) or names & SECRETS)


def _place(value: object, folder: Path, where: str) -> Path | str:
    text = _of(str, value, where, "a path in quotes")
    return text if "://" in text else folder / text


def _file(value: object, folder: Path, where: str) -> Path | None:
    return None if value is None else folder / _of(str, value, where, "a path in quotes")


def _size(value: object, where: str) -> int | None:
    if value is None:
        return None
    size = _of(int, value, where, "a whole number")
    if size < 0:
        raise _bad(where, "must be zero or more")
    return size


def _unit(value: object, where: str) -> Unit:
    table = _table(value, where)
    _known(table, "unit", where)
    return _declared(where, lambda: Unit(**table))  # type: ignore[arg-type]  # Unit checks what it is given


def _budget(value: object, where: str) -> Budget:
    table = _table(value, where)
    _known(table, "budget", where)
    kind = _BUDGETS.get(frozenset(table))
    if kind is None:
        raise _bad(where, f"is one of {SETTINGS['dataset']['budget']}")
    return _declared(where, lambda: kind(**table))  # type: ignore[arg-type]  # each budget checks what it is given


def _columns(value: object, where: str) -> Mapping[str, Column]:
    table = _table(value, f"{where} columns")
    if not table:
        raise _bad(f"{where} columns", "must declare at least one column")
    return MappingProxyType({name: _column(table[name], name, f"{where} column {name!r}") for name in table})


def _column(value: object, name: str, where: str) -> Column:
    if isinstance(value, list):
        return _declared(where, lambda: _short(value, name))
    table = _table(value, where)
    _known(table, "column", where)
    kinds = [kind for kind in _KINDS if kind in table]
    if len(kinds) != 1 or any(more in table and kinds != [kind] for more, kind in _MORE.items()):
        raise _bad(where, f"needs exactly one of {', '.join(_KINDS)} (grid only with real, longest only with text)")
    kind, given = kinds[0], table[kinds[0]]
    found = _of_kind(kind, given, table.get("grid"), where)
    told = {key: table[key] for key in ("longest", "missing", "default") if key in table}
    told = {key: item.isoformat() if isinstance(item, datetime.date) else item for key, item in told.items()}
    return _declared(where, lambda: replace(found, **told))  # type: ignore[arg-type]  # the domain checks them


def _of_kind(kind: str, given: object, grid: object, where: str) -> Column:
    if kind in ("bool", "text"):
        if given is not True:
            raise _bad(where, f"is written {{ {kind} = true }}")
        return Bool() if kind == "bool" else Text()
    values = [value.isoformat() if isinstance(value, datetime.date) else value for value in _list(given, where)]
    if kind == "category":
        return _declared(where, lambda: Category(tuple(values)))  # type: ignore[arg-type]  # Category checks them
    if len(values) != 2:
        raise _bad(where, f"is written {{ {kind} = [lowest, highest] }}")
    return _declared(where, lambda: _bounded(kind, values, grid))


def _bounded(kind: str, bounds: list[object], grid: object) -> Column:
    """A column between two bounds; the domains check the bounds they are given."""
    low, high = bounds
    if kind == "real":
        return Real(low, high, grid)  # type: ignore[arg-type]
    domain: Callable[[object, object], Column] = {"int": Int, "date": Date, "timestamp": Timestamp}[kind]
    return domain(low, high)


def _short(values: list[object], name: str) -> Column:
    """A bare array: two numbers are bounds, texts are categories."""
    numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
    return declare(tuple(values) if numbers and len(values) == 2 else values, name)


def _server(table: Mapping[str, object], folder: Path, where: str) -> Server:
    _known(table, "server", where)
    usual = Server()

    def whole(name: str, low: int, high: int) -> int:
        number = _of(int, table.get(name, getattr(usual, name)), f"{where} {name}", "a whole number")
        if not low <= number <= high:
            raise _bad(f"{where} {name}", f"must lie between {low} and {high}")
        return number

    def truth(name: str) -> bool:
        return _of(bool, table.get(name, False), f"{where} {name}", "true or false")

    hosts = _list(table.get("hosts", []), f"{where} hosts")
    made = Server(
        host=_of(str, table.get("host", usual.host), f"{where} host", "an address in quotes"),
        port=whole("port", 0, 2**16 - 1),
        hosts=tuple(_of(str, name, f"{where} hosts", "names in quotes") for name in hosts),
        tls_cert=_file(table.get("tls_cert"), folder, f"{where} tls_cert"),
        tls_key=_file(table.get("tls_key"), folder, f"{where} tls_key"),
        insecure_public=truth("insecure_public"),
        state=_file(table.get("state", STATE), folder, f"{where} state") or folder,
        data_root=_file(table.get("data_root"), folder, f"{where} data_root"),
        ledgers=_file(table.get("ledgers"), folder, f"{where} ledgers"),
        workers=whole("workers", 1, 64),
        limit=_seconds(table.get("limit"), f"{where} limit") or usual.limit,
        memory=whole("memory", 256, 2**20),
        web=whole("web", 1, 64),
        share_answers=truth("share_answers"),
        rate=whole("rate", 1, 10**7),
        schedule=_seconds(table.get("schedule"), f"{where} schedule"),
        public_url=_public(table.get("public_url"), f"{where} public_url"),
    )
    if (made.tls_cert is None) != (made.tls_key is None):
        raise _bad(where, "needs tls_cert and tls_key together")
    return made


def _public(value: object, where: str) -> str | None:
    """Where browsers find the server: a scheme, a name and perhaps a port, as they name it."""
    if value is None:
        return None
    text = _of(str, value, where, "an address in quotes").lower().removesuffix("/")
    if not re.fullmatch(r"https://([a-z0-9.-]+|\[[0-9a-f:]+\])(:[0-9]{1,5})?", text):
        raise _bad(where, "must be https://NAME, without a path")
    return text.removesuffix(":443")


def _seconds(value: object, where: str) -> float | None:
    """A time; None where none is named."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.01 <= value <= 86400:
        raise _bad(where, "must be a number of seconds from 0.01 to 86400")
    return float(value)


def _shares(value: object, where: str) -> dict[str, tuple[float, float]]:
    """Share and reserve of each analyst; the ledger checks that reserves fit together."""
    found = {}
    for analyst, given in _table(value, where).items():
        place = f"{where} {analyst!r}"
        table = _table(given, place)
        _known(table, "share", place)
        pair = (table.get("share", 1.0), table.get("reserve", 0.0))
        for part in pair:
            if isinstance(part, bool) or not isinstance(part, (int, float)) or not 0 <= part <= 1:
                raise _bad(place, "must be fractions from 0 to 1")
        found[analyst] = (float(cast("float", pair[0])), float(cast("float", pair[1])))
    return found


def _known(table: Mapping[str, object], place: str, where: str) -> None:
    known = SETTINGS[place]
    for key in table:
        if key not in known:
            nearest = difflib.get_close_matches(key, known, n=1, cutoff=0.0)[0]
            raise _bad(where, f"does not know {key!r}; the nearest setting is {nearest!r}")


def _table(value: object, where: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise _bad(where, "must be a table: { key = value }")
    return value


def _list(value: object, where: str) -> list[object]:
    if not isinstance(value, list):
        raise _bad(where, "must be an array: [ ... ]")
    return value


def _of(kind: type[T], value: object, where: str, what: str) -> T:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise _bad(where, f"must be {what}")
    return value


def _declared(where: str, build: Callable[[], T]) -> T:
    """Build a declared value; a refusal keeps its code and gains the place in the file."""
    try:
        return build()
    except SulqError as error:
        raise SetupError(error.code, f"{where}: {error.message}", error.remedy) from None


def _bad(where: str, why: str) -> SetupError:
    return SetupError("bad-config", f"{where} {why}.")
