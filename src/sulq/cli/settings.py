"""The settings of a configuration file: what each says, how it is read, and how a wrong one is refused.

A key that is not known is refused with the nearest one that is, since a mistyped `ledger` would start a budget anew.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar, cast

from sulq.addresses import is_address, tells_a_password
from sulq.api.declarations import is_curator
from sulq.cli.category_file import read_values
from sulq.cli.column_values import declared_by_array, plain
from sulq.data_files import not_fetched
from sulq.errors import SetupError, SulqError
from sulq.language.domain import Bool, Category, Column, Date, Int, Real, Text, Timestamp
from sulq.language.estimator import BOUNDS, CERTIFIES, Certificate, Declaration, Property, Stated, Utility
from sulq.language.privacy import Budget, Epsilon, EpsilonDelta, Rho, SubLinear, Unit
from sulq.language.rows_choice import DeclaredUnit

BUDGETS: Final[Mapping[frozenset[str], type[Budget]]] = {
    frozenset({"epsilon"}): Epsilon,
    frozenset({"epsilon", "delta"}): EpsilonDelta,
    frozenset({"rho"}): Rho,
    frozenset({"epsilon", "delta", "queries"}): SubLinear,
    frozenset({"epsilon", "delta", "queries", "calibration"}): SubLinear,
}
BOUNDED: Final[Mapping[str, Callable[..., Column]]] = {"int": Int, "real": Real, "date": Date, "timestamp": Timestamp}
KINDS: Final = ("int", "real", "bool", "category", "category_file", "date", "timestamp", "text")
T = TypeVar("T")


class ConfigPlace(NamedTuple):
    """Where in a file something stands, as a refusal names it, and the folder that its paths are relative to."""

    where: str
    folder: Path

    def at(self, key: str) -> ConfigPlace:
        """The place of a key of this section."""
        return ConfigPlace(f"{self.where} {key}", self.folder)

    def bad(self, why: str) -> SetupError:
        """The refusal of what stands here."""
        return SetupError("bad-config", f"{self.where} {why}.")

    def of(self, kind: type[T], value: object, what: str) -> T:
        """A value that is of a kind."""
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.bad(f"must be {what}")
        return value

    def table(self, value: object, section: str | None = None, needed: tuple[str, ...] = ()) -> Mapping[str, Any]:
        """A table, whose keys a section knows; those that are needed are there."""
        found: Mapping[str, Any] = self.of(dict, value, "a table: { key = value }")
        known = SETTINGS.get(section or "", {})
        for key in found if section is not None else ():
            if key not in known:
                nearest = difflib.get_close_matches(key, known, n=1, cutoff=0.0)[0]
                raise self.bad(f"does not know {key!r}; the nearest setting is {nearest!r}")
        for key in needed:
            if key not in found:
                raise self.bad(f"needs {key!r}: {known[key][1]}")
        return found

    def declared(self, build: Callable[[], T]) -> T:
        """A declared value; a refusal keeps its code and gains the place in the file."""
        try:
            return build()
        except SulqError as error:
            raise SetupError(error.code, f"{self.where}: {error.message}", error.remedy) from None


Reader = Callable[[object, ConfigPlace], Any]


def section(name: str, table: Mapping[str, object], place: ConfigPlace) -> dict[str, Any]:
    """The settings that a section's table names, each read."""
    known = {key: read for key, (read, _) in SETTINGS[name].items() if read is not None}
    return {key: read(table[key], place.at(key)) for key, read in known.items() if key in table}


@dataclass(frozen=True, slots=True)
class TableConfig:
    """One of the tables of a data set of several."""

    data: Path | str | tuple[Path, ...]  # a file, several, or a database's address as it was written
    columns: Mapping[str, Column]
    key: str | None = None
    public: bool = False
    person: str | None = None
    size: int | None = None
    references: Mapping[str, str] = field(default_factory=dict)


def _text(what: str) -> Reader:
    return lambda value, place: place.of(str, value, what)


def _texts(what: str, each: str) -> Reader:
    return lambda value, place: tuple(place.of(str, text, each) for text in place.of(list, value, what))


_name = _text("a column's name in quotes")
_hosts = _texts("an array: [ ... ]", "names in quotes")
_graph = _texts("a list of two or three columns", "a column's name in quotes")


def _whole(low: int, high: int) -> Reader:
    def read(value: object, place: ConfigPlace) -> int:
        number = place.of(int, value, "a whole number")
        if not low <= number <= high:
            raise place.bad(f"must lie between {low} and {high}")
        return number

    return read


def _truth(value: object, place: ConfigPlace) -> bool:
    return place.of(bool, value, "true or false")


def _file(value: object, place: ConfigPlace) -> Path:
    return place.folder / _path(value, place)


def _path(value: object, place: ConfigPlace) -> str:
    """A path as it is written; an empty one would be the folder of the configuration, and all that lies in it."""
    text = place.of(str, value, "a path in quotes")
    if not text or "\0" in text:
        raise place.bad("must be a path in quotes, which is not empty and holds no NUL")
    return text


def _address(value: object, place: ConfigPlace) -> Path | str:
    text = _path(value, place)
    return text if "://" in text else place.folder / text


def _prepared(value: object, place: ConfigPlace) -> Path | bool:
    return False if value is False else _file(value, place)


def _source(value: object, place: ConfigPlace) -> Path | str | tuple[Path, ...]:
    """Where data lies; a password does not stand in a file that is read by everybody who may read it."""
    if isinstance(value, list):  # several files as one table
        if any("://" in each for each in value if isinstance(each, str)):
            raise not_fetched()
        return tuple(_file(each, place) for each in value)
    found = _address(value, place)
    place.declared(lambda: is_curator(found))
    if is_address(found) and tells_a_password(str(found)):
        raise place.bad("must not hold a password: put it into PGPASSWORD or a passfile")
    return found


def _table_source(value: object, place: ConfigPlace) -> Path | str | tuple[Path, ...]:
    found = _source(value, place)
    if is_curator(found):
        raise place.bad("must be a file, a postgresql:// address, or a table of Spark")
    return found


def _size(value: object, place: ConfigPlace) -> int:
    if place.of(int, value, "a whole number") < 0:
        raise place.bad("must be zero or more")
    return cast("int", value)


def _seconds(value: object, place: ConfigPlace) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.01 <= value <= 86400:
        raise place.bad("must be a number of seconds from 0.01 to 86400")
    return float(value)


def _form_of(pattern: str, wanted: str) -> Reader:
    """An address of a certain form, as the server and browsers name it."""

    def read(value: object, place: ConfigPlace) -> str:
        text = place.of(str, value, "an address in quotes").lower().removesuffix("/")
        if not re.fullmatch(pattern, text):
            raise place.bad(wanted)
        return text.removesuffix(":443")

    return read


def _references(value: object, place: ConfigPlace) -> Mapping[str, str]:
    table = place.table(value)
    return MappingProxyType({name: place.of(str, table[name], "a table's name in quotes") for name in table})


def _shares(value: object, place: ConfigPlace) -> Mapping[str, tuple[float, float]]:
    """Share and reserve of each analyst; the ledger checks that reserves fit together."""
    found = {}
    for analyst, given in place.table(value).items():
        own = place.at(repr(analyst))
        table = own.table(given, "share")
        pair = (table.get("share", 1.0), table.get("reserve", 0.0))
        for part in pair:
            if isinstance(part, bool) or not isinstance(part, (int, float)) or not 0 <= part <= 1:
                raise own.bad("must be fractions from 0 to 1")
        found[analyst] = (float(pair[0]), float(pair[1]))
    return MappingProxyType(found)


def _estimators(value: object, place: ConfigPlace) -> Mapping[str, object]:
    """The owner's functions by name: their place, or a table that declares more of them."""
    found: dict[str, object] = {}
    for name, told in place.table(value).items():
        if isinstance(told, str):
            found[name] = told
            continue
        own = ConfigPlace(f"{place.where}.{name}", place.folder)
        known = own.table(told, "estimator")
        kind = next((kind for key, kind in TOLD_BY.items() if key in known), Certificate)
        needed, more = DECLARED_BY[kind]
        given = own.table(told, "estimator", ("function", *needed))
        for key in given:
            if key not in ("function", *needed, *more):
                raise own.bad(f"has {key!r}, which a {kind.__name__} does not say")
        words: dict[str, Any] = {key: given[key] for key in given if key not in ("function", "property")}
        try:
            found[name] = (own.of(str, given["function"], "package:function"), kind(**words))
        except SulqError as error:
            raise own.bad(error.message) from None
    return MappingProxyType(found)


def _tables(value: object, place: ConfigPlace) -> Mapping[str, TableConfig]:
    tables = place.table(value)
    if not tables:
        raise place.bad("must declare at least one table")
    found = {}
    for name, given in tables.items():
        own = ConfigPlace(f"{place.where.removesuffix('] tables')}.tables.{name}]", place.folder)
        found[name] = TableConfig(**section("table", own.table(given, "table", ("data", "columns")), own))
    return MappingProxyType(found)


def _unit(value: object, place: ConfigPlace) -> Unit:
    table = place.table(value, "unit")
    return place.declared(lambda: DeclaredUnit(**table))


def _budget(value: object, place: ConfigPlace) -> Budget:
    table = place.table(value, "budget")
    kind = BUDGETS.get(frozenset(table))
    if kind is None:
        raise place.bad(f"is one of {SETTINGS['dataset']['budget'][1]}")
    return place.declared(lambda: kind(**table))


def _columns(value: object, place: ConfigPlace) -> Mapping[str, Column]:
    table = place.table(value)
    if not table:
        raise place.bad("must declare at least one column")
    above = place.where.removesuffix(" columns")
    found = {
        name: _column(name, given, ConfigPlace(f"{above} column {name!r}", place.folder))
        for name, given in table.items()
    }
    return MappingProxyType(found)


def _column(name: str, value: object, place: ConfigPlace) -> Column:
    if isinstance(value, list):
        return place.declared(lambda: declared_by_array(value, name))
    table = place.table(value, "column")
    kinds = [kind for kind in KINDS if kind in table]
    if len(kinds) != 1 or ("grid" in table and kinds != ["real"]) or ("longest" in table and kinds != ["text"]):
        raise place.bad(f"needs exactly one of {', '.join(KINDS)} (grid only with real, longest only with text)")
    found = _of_kind(kinds[0], table[kinds[0]], table.get("grid"), place)
    told = {key: plain(table[key]) for key in ("longest", "missing", "default") if key in table}
    return place.declared(lambda: replace(found, **told))  # the domain checks them


def _of_kind(kind: str, given: object, grid: object, place: ConfigPlace) -> Column:
    """A column of a kind; the domains check the bounds and values that they are given."""
    if kind in ("bool", "text"):
        if given is not True:
            raise place.bad(f"is written {{ {kind} = true }}")
        return Bool() if kind == "bool" else Text()
    if kind == "category_file":
        return place.declared(lambda: Category(read_values(_file(given, place))))
    values = [plain(value) for value in place.of(list, given, "an array: [ ... ]")]
    if kind == "category":
        return place.declared(lambda: Category(tuple(values)))
    if len(values) != 2:
        raise place.bad(f"is written {{ {kind} = [lowest, highest] }}")
    return place.declared(lambda: BOUNDED[kind](*values, *([grid] if kind == "real" else [])))


TOLD_BY: Final[Mapping[str, type[Declaration]]] = {"candidates": Utility, "property": Property, "sensitivity": Stated}
DECLARED_BY: Final[Mapping[type[Declaration], tuple[tuple[str, ...], tuple[str, ...]]]] = {  # keys it has, and may have
    Certificate: ((*CERTIFIES, *BOUNDS), ()),
    Stated: (("sensitivity", *BOUNDS), ("width",)),
    Utility: (("candidates", "sensitivity", *BOUNDS), ("weights",)),
    Property: (("property",), ("columns", "rows")),
}


_COLLECTOR: Final = r"http://(localhost|127\.0\.0\.1|\[::1\]):([1-9]\d{0,3}|[1-5]\d{4}|6[0-4]\d{3})/[a-z0-9/._-]+"
# Every setting: how it is read, and what it says (for the reference page). What a unit, a budget, a column or a share
# is told, is checked by the value made of it.
SETTINGS: Final[Mapping[str, Mapping[str, tuple[Reader | None, str]]]] = {
    "": {
        "dataset": (None, "One table a data set; in NAME.sulq.toml the one table [dataset]."),
        "server": (None, "How `sulq serve` listens and works."),
    },
    "dataset": {
        "data": (
            _source,
            (
                "The data file, relative to this file; several as a list, a pattern or a folder; a postgresql:// "
                "address without a password; a table of Spark (spark://HOST:PORT/TABLE); or a curator's URL."
            ),
        ),
        "table": (_text("a name in quotes"), "The table's name in SQL; default: the data set's name."),
        "ledger": (
            _address,
            "The ledger, relative to this file, or a postgresql:// address; default: beside the data.",
        ),
        "prepared": (_prepared, "Where the prepared copy lies; false: none. Default: beside the ledger."),
        "unit": (_unit, "Whom an answer hides: { column, rows, neighbors, fold, most, share }. Default: one row."),
        "budget": (_budget, "{ epsilon }, { epsilon, delta }, { rho } or { epsilon, delta, queries, calibration }."),
        "basic_share": (None, "Of { epsilon, delta }: the part of delta for asks added one by one. Default: 0.05."),
        "key_share": (None, "Of { epsilon, delta }: the part of delta for open keys. Default: 0.1 if there are any."),
        "columns": (_columns, "One declaration a column; a column that is not declared cannot be asked about."),
        "tables": (_tables, "Of a data set of several tables, one table each, in place of data and columns."),
        "size": (_size, "The declared public number of rows, if it may be known."),
        "synthetic": (_truth, "true: made-up data that needs no protection; fixed for ever in the ledger."),
        "shares": (
            _shares,
            "Parts of the budget by analyst: { alice = { share = 0.5, reserve = 0.1 } }; for who has none yet.",
        ),
        "anchor": (_file, "A file, best on another disk, that keeps an old copy of the ledger from being used."),
        "schedule": (_seconds, "For `sulq serve`: answers leave every so many seconds. Default: that of [server]."),
        "graph": (
            _graph,
            "Of a table whose rows are edges, the columns of both ends and of the weight: ['u', 'v', 'weight'].",
        ),
        "estimators": (
            _estimators,
            "Functions that analysts may choose by name: { NAME = 'package:function' }, or a table each.",
        ),
    },
    "estimator": {
        "function": (None, "Where the function is: package:function."),
        **{name: (None, f"Of a certificate: {what}.") for name, what in CERTIFIES.items()},
        "sensitivity": (
            None,
            "The owner's word: how far one person moves the function (in L1), or any candidate's utility.",
        ),
        **{name: (None, f"Of a certificate, a sensitivity or a utility: {what}.") for name, what in BOUNDS.items()},
        "width": (None, "Of a sensitivity: how many numbers the function gives. Default: 1."),
        "candidates": (None, "Of a utility: what is chosen from; the function gives a number for each."),
        "weights": (None, "Of a utility: a base measure, a positive whole number for each candidate."),
        "property": (None, "true: the function says which tables have a property; of graphs without columns."),
        "rows": (None, "Of a property of tables: how many rows they have at most; exactly under replace_one."),
    },
    "share": {
        "share": (None, "The part of the budget this analyst may spend at most; a fraction of the total. Default: 1."),
        "reserve": (None, "The part of the budget that is kept for this analyst alone. Default: 0."),
    },
    "table": {
        "data": (
            _table_source,
            (
                "The table's data file or files, relative to this file, or a postgresql:// address without a password; "
                "a table of Spark stands alone in a data set, several are connected from Python."
            ),
        ),
        "columns": (_columns, "One declaration a column."),
        "key": (_name, "The column that differs from row to row; checked over all rows."),
        "public": (_truth, "true: rows that need no protection."),
        "person": (_name, "The column that says whose row it is, where it is not the unit's."),
        "references": (
            _references,
            "{ column = table }: columns that name a row of another private table by its key; checked.",
        ),
        "size": (_size, "The declared public number of rows, if it may be known."),
    },
    "unit": {
        "column": (None, "The column that says whose row it is."),
        "rows": (None, 'How many rows of a person are kept; "auto": chosen from a noisy histogram, which is paid for.'),
        "neighbors": (None, "add_remove, replace_one or zero_out."),
        "fold": (None, "Which ids are one person beside equal ones: case or spelling. Default: none."),
        "most": (None, 'With rows = "auto": the largest number there may be. Default: 1024.'),
        "share": (None, 'With rows = "auto": the part of the budget that the histogram costs. Default: 0.05.'),
    },
    "budget": {
        "epsilon": (None, "The total of pure loss, or of approximate loss with delta."),
        "delta": (None, "The probability with which epsilon may fail."),
        "rho": (None, "The total of zero-concentrated loss."),
        "queries": (None, "The number of noisy sums of a SubLinear budget."),
        "calibration": (None, "How a SubLinear budget sets its noise."),
    },
    "column": {
        "int": (None, "[lowest, highest] whole number; a bare pair of whole numbers is short for it."),
        "real": (None, "[lowest, highest] number; a bare pair of numbers is short for it."),
        "grid": (None, "With real: the step, lowered to a power of two."),
        "bool": (None, "true."),
        "category": (None, "The list of values; a bare list of texts is short for it."),
        "category_file": (None, "A file of texts, one a line, relative to this file: a list of up to 1,048,576."),
        "date": (None, "[first, last] day."),
        "timestamp": (None, "[first, last] moment, in UTC."),
        "text": (None, "true."),
        "longest": (None, "With text: how many characters of a cell are kept, at most 10,000, the default."),
        "missing": (None, "false: no cell is missing, so there is no NULL to group by; default: true."),
        "default": (None, "With missing = false: what a cell without a value counts as; default: the lowest."),
    },
    "server": {
        "host": (_text("an address in quotes"), "The address to listen on; default: 127.0.0.1, this machine alone."),
        "port": (_whole(0, 2**16 - 1), "The port to listen on; default: 8765."),
        "hosts": (_hosts, "Further names the server goes by, as requests name them; others are turned away."),
        "public_url": (
            _form_of(r"https://([a-z0-9.-]+|\[[0-9a-f:]+\])(:[0-9]{1,5})?", "must be https://NAME, without a path"),
            "https://NAME, where browsers find it behind a proxy with TLS: cookies are then for TLS alone.",
        ),
        "tls_cert": (_file, "The certificate's file (PEM), with its chain; a public address needs it."),
        "tls_key": (_file, "The certificate's private key (PEM)."),
        "insecure_public": (_truth, "true: listen on a public address without TLS, behind a proxy that has it."),
        "state": (_file, "The folder of the access store and of registered datasets; default: sulq.state here."),
        "data_root": (_file, "The folder below which an owner may register data files over HTTP; default: none."),
        "ledgers": (_file, "The folder of the ledgers of datasets registered over HTTP; default: beside their data."),
        "anchors": (_file, "The folder where datasets registered over HTTP may have an anchor; default: none."),
        "workers": (_whole(1, 64), "Processes that hold each dataset's rows; default: 2."),
        "limit": (_seconds, "Seconds after which a question is stopped, charged; default: 30."),
        "memory": (_whole(256, 2**20), "MiB that a worker may take; default: 4096."),
        "web": (_whole(1, 64), "Processes that answer HTTP; default: 1."),
        "jobs": (_whole(1, 64), "Jobs that run at a time; as many again are there for who has none; default: 4."),
        "job_limit": (_seconds, "Seconds after which a job is ended, what it found kept; default: 7200."),
        "job_memory": (_whole(1024, 2**20), "MiB that a job may take, the program's own 400 included; default: 2048."),
        "share_answers": (_truth, "true: a stored answer is given again to every analyst, not its asker alone."),
        "rate": (_whole(1, 10**7), "Calls a minute for each token; default: 1200."),
        "schedule": (_seconds, "Answers leave every so many seconds: their time tells nothing; default: at once."),
        "traces": (
            _form_of(_COLLECTOR, "must be http://127.0.0.1:PORT/v1/traces, a collector on this machine"),
            "http://127.0.0.1:4318/v1/traces, a collector of OpenTelemetry on this machine; default: none.",
        ),
    },
}
