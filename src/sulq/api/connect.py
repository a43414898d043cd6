"""The door: a path or a frame gives a database, a URL the curator behind it."""

from __future__ import annotations

import importlib
import os
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast, overload

from sulq.addresses.defaults import begun, beside, copy_of, stem
from sulq.addresses.postgres import Address, is_address, same_database
from sulq.errors import QuestionError, SetupError, SetupWarning
from sulq.language.domain import Category, Schema, Text, is_text, joinable
from sulq.language.estimator import Certificate, Estimator
from sulq.language.facts import TableFacts
from sulq.language.privacy import Budget, Epsilon, EpsilonDelta, Rho, SubLinear, Unit
from sulq.language.statistic import Graph

if TYPE_CHECKING:
    from sulq.api.client import Client
    from sulq.api.database import Database

SUFFIXES = (".parquet", ".csv", ".csv.gz", ".duckdb")


@overload
def connect(data: str, *, token: str, insecure: bool = False) -> Client: ...
@overload
def connect(
    data: object,
    *,
    table: str | None = None,
    columns: Mapping[str, object] | None = None,
    unit: Unit | None = None,
    budget: Budget | None = None,
    size: int | Mapping[str, int] | None = None,
    synthetic: bool = False,
    ledger: str | os.PathLike[str] | None = None,
    anchor: str | os.PathLike[str] | None = None,
    prepared: str | os.PathLike[str] | bool | None = None,
    engine: str = "duckdb",
    renew: bool = False,
    progress: Callable[[float], None] | None = None,
    token: None = None,
    keys: Mapping[str, str] | None = None,
    public: Sequence[str] | None = None,
    persons: Mapping[str, str] | None = None,
    references: Mapping[str, Mapping[str, str]] | None = None,
    graph: tuple[str, ...] | None = None,
    estimators: Mapping[str, object] | None = None,
    new_people: bool = False,
) -> Database: ...
def connect(
    data: object,
    *,
    table: str | None = None,
    columns: Mapping[str, object] | None = None,
    unit: Unit | None = None,
    budget: Budget | None = None,
    size: int | Mapping[str, int] | None = None,
    synthetic: bool = False,
    ledger: str | os.PathLike[str] | None = None,
    anchor: str | os.PathLike[str] | None = None,
    prepared: str | os.PathLike[str] | bool | None = None,
    engine: str = "duckdb",
    renew: bool = False,
    progress: Callable[[float], None] | None = None,
    token: str | None = None,
    insecure: bool = False,
    keys: Mapping[str, str] | None = None,
    public: Sequence[str] | None = None,
    persons: Mapping[str, str] | None = None,
    references: Mapping[str, Mapping[str, str]] | None = None,
    graph: tuple[str, ...] | None = None,
    estimators: Mapping[str, object] | None = None,
    new_people: bool = False,
) -> Database | Client:
    """Open private data with its public facts, protected unit and budget.

    Args:
        data: a .parquet, .csv, .csv.gz or .duckdb file, a pandas, polars, pyarrow or Spark table, the postgresql://
            address of a database, or a table of Spark by its address, "spark://host:port/table"; {name: such} for
            several; or the address of a remote curator.
        table: its name in questions, and inside a .duckdb file of several or a database; default the file's stem, or
            "data".
        columns: public facts, never read off the data: {"age": sulq.Int(0, 120), ...}; {table: such} for several.
        unit: whom an answer hides; default: the row, add_remove.
        budget: the total that may ever be lost: Epsilon, Rho, EpsilonDelta or SubLinear.
        size: the owner's declared public size, if n may be known; {table: size} for several.
        synthetic: True for made-up data; written into the ledger for ever.
        ledger: its path, or postgresql://HOST/DATABASE?ledger=NAME; default the one there that covers the data, else
            a new one: beside a data file, in memory for a frame, for a table in PostgreSQL in the same database, as
            sulq_SCHEMA_TABLE.
        anchor: a file on another volume that tells an old copy of the ledger from the newest (docs/operate/ledger.md).
        prepared: where the prepared copy lies; default beside the ledger (in PostgreSQL: the data), False for none.
        engine: "duckdb" or "memory"; tables in PostgreSQL and on Spark are asked there ("postgres", "spark").
        renew: accept a source that changed since it was registered.
        progress: called with the part done (0 to 1) while the prepared copy is built.
        token: for a remote curator, whose address stands in place of the data: "https://host:port/dataset".
        insecure: send the token over http:// to another machine all the same.
        keys: of several tables, the column of each that differs from row to row: {"people": "pid"}. This is checked
            over all rows, and a duplicate is the owner's to hear of: SetupError, before anything is spent.
        public: of several tables, those that need no protection; how many rows they have is public too.
        persons: of several tables, those that name the person otherwise than the unit: {"orders": "customer"}.
        references: of several tables, the columns that name a row of another private table by its key, always one of
            the same person's: {"lines": {"order": "orders"}}. This is checked as keys are; joined so, tables need no
            mention of the person.
        graph: of one table whose rows are edges, the columns of both ends, declared by the same list of all vertices
            or as the same Int, and of the weight, if there is one, within [0, 1]: ("u", "v", "weight"). Then
            `db.graph` is there, and an edge to a number out of bounds is none.
        estimators: of one table, functions that analysts may choose by name: {"name": "package:function"}, or
            {"name": ("package:function", sulq.Certificate(...))} for one whose sensitivity you certify. Each must be a
            function of its argument alone, which is tried when the data is opened. They rest on your word, run in your
            process, and are written down in the ledger and shown as declared.
        new_people: with `ledger=` naming a new one: begin it although another ledger covers this data, as the people
            are others by your word, which is written down. Without it such a ledger is refused (`covered-source`).
    """
    if isinstance(data, str) and "://" in data and not lies_elsewhere(data):
        scheme = data.split("://", 1)[0].lower()
        if scheme not in ("http", "https"):
            raise SetupError("engine-not-available", f"Connecting to {scheme}:// is not in this version.")
        told = (
            table,
            columns,
            unit,
            budget,
            size,
            ledger,
            prepared,
            progress,
            keys,
            public,
            persons,
            graph,
            estimators,
        )
        if any(item is not None for item in told) or synthetic or renew or new_people or engine != "duckdb":
            raise SetupError("bad-declaration", "A remote curator has its own declarations; give token= alone.")
        if token is None:
            raise SetupError(
                "bad-declaration",
                "A remote curator is asked with a token: token=...",
                "The owner gives it out: `sulq analyst add NAME`, on the server.",
            )
        remote = cast("type[Client]", importlib.import_module("sulq.api.client").Client)
        return remote(data, token, insecure=insecure)
    if token is not None or insecure:
        raise SetupError("bad-declaration", "token and insecure are for a remote curator.")
    whole = Unit() if unit is None else unit
    _check(whole, budget)
    _check_paths(ledger=ledger, anchor=anchor, prepared=prepared)
    module = importlib.import_module("sulq.api.database")
    if isinstance(data, Mapping):
        if table is not None:
            raise SetupError("bad-declaration", "Several tables have their own names; leave table= out.")
        if graph is not None or estimators is not None:
            raise SetupError("bad-declaration", "graph and estimators are for one table.")
        facts = declarations(
            data, columns, whole, keys=keys or {}, public=public or (), persons=persons or {},
            references=references or {},
        )  # fmt: skip
        sizes = _sizes(size, facts)
        tables = [
            module.Data(
                _file(data[item.schema.table]) or data[item.schema.table], item,
                _inside(data[item.schema.table], item.schema.table), sizes.get(item.schema.table),
            )
            for item in facts
        ]  # fmt: skip
    else:
        if any(told is not None for told in (keys, public, persons, references)):
            why = "keys, public, persons and references are for several tables: connect({...})."
            raise SetupError("bad-declaration", why)
        path = _file(data)
        name = table if table is not None else _name(data, path)
        alone = single(Schema.of(name, columns), whole, graph, estimators)
        tables = [module.Data(path or data, alone, table, _sizes(size, [alone]).get(name), alone=True)]
    if new_people and ledger is None:
        raise SetupError("bad-declaration", "new_people=True begins a ledger of its own: name it, ledger=...")
    paths = [item.source if isinstance(item.source, Path) else None for item in tables]
    near = paths[0] if None not in paths else None
    private = [(item.source, item.inside or item.facts.schema.table) for item in tables if not item.facts.public]
    covered = module.sources_of(private)
    named = ledger if ledger is None or is_address(ledger) else Path(ledger)
    place = module.ledger_place(covered, named, lambda: begun(private), private, new_people=new_people)
    where = place if isinstance(place, Path) else None if near is None else beside(near)
    _check_ledger(budget, place, [item.source for item in tables])
    warn_of_shared_database(place, [item.source for item in tables], anchor)
    return cast("type[Database]", module.Database)(
        tables,
        unit=whole,
        budget=budget,
        synthetic=synthetic,
        ledger=place,
        anchor=None if anchor is None else Path(anchor),
        prepared=_prepared(near, where, prepared, found=ledger is None),
        engine=engine,
        renew=renew,
        progress=progress,
        covered=covered,
        new_people=new_people,
    )


def single(schema: Schema, unit: Unit, graph: object = None, estimators: object = None) -> TableFacts:
    """The public facts of one table: its columns, whether its rows are edges, and the owner's functions."""
    if graph is not None and (not isinstance(graph, (tuple, list)) or not 2 <= len(graph) <= 3):
        raise SetupError("bad-declaration", 'graph names two columns, or three: ("u", "v", "weight").')
    if estimators is not None and not isinstance(estimators, Mapping):
        raise SetupError("bad-declaration", 'estimators are given by name: {"name": "package:function"}.')
    named = tuple(_estimator(name, told, schema) for name, told in (estimators or {}).items())
    if graph is None:
        return TableFacts(schema, estimators=named)
    try:
        found = Graph(*graph)
    except QuestionError as error:
        raise SetupError("bad-declaration", error.message) from None
    schema = found.numbered(schema)
    unfit = found.unfit(schema, unit.column)
    if unfit is not None:
        raise SetupError(unfit[0] if unfit[0] == "node-unit" else "bad-declaration", unfit[1])
    return TableFacts(schema, graph=found, estimators=named)


def _estimator(name: str, told: object, schema: Schema) -> Estimator:
    """A function as its owner names it; what it is certified for must be declared columns that have numbers."""
    function, certificate = told if isinstance(told, tuple) and len(told) == 2 else (told, None)
    found = Estimator(name, cast("str", function), cast("Certificate | None", certificate))
    for column in () if found.certificate is None else found.certificate.columns:
        if schema.find(column) is None or isinstance(schema.find(column), (Text, Category)):
            raise SetupError("bad-certificate", f"{column[:80]!r} is not a declared column of numbers.")
    return found


def _file(data: object) -> Path | None:
    """A data file's place; None for a frame, and for what lies elsewhere."""
    if not isinstance(data, (str, os.PathLike)) or lies_elsewhere(data):
        return None
    path = Path(data)
    if not path.name.lower().endswith(SUFFIXES):
        raise SetupError("unreadable-data", f"{path.name!r} is none of {', '.join(SUFFIXES)}.")
    try:
        found = path.is_file()
    except OSError:  # a name longer than any file's
        found = False
    if not found:
        raise SetupError("missing-file", f"There is no file {path.name[:200]!r}.")
    return path.resolve()


def in_spark(data: object) -> bool:
    """Whether data is named by the address of a table of Spark."""
    return isinstance(data, str) and data.startswith("spark://")


def lies_elsewhere(data: object) -> bool:
    """Whether data is named by an address at which this process asks itself; any other is a curator's."""
    return is_address(data) or in_spark(data)


def _name(data: object, path: Path | None) -> str:
    """A table's name in questions, where none is told: the file's stem, or the table that an address names."""
    if path is not None:
        return stem(path)
    if in_spark(data):
        return re.split(r"[./]", str(data).removesuffix(".parquet"))[-1]
    if not is_address(data):
        return "data"
    named = Address.of(str(data)).table
    if named is None:
        raise SetupError("bad-declaration", "An address names a database; name the table in it: table=...")
    return named.rpartition(".")[2]


def warn_of_shared_database(ledger: object, sources: Sequence[object], anchor: object) -> None:
    """Tell the owner of a ledger that is restored together with its data, where nothing outside would notice."""
    near = [source for source in sources if is_address(source) and is_address(ledger)]
    if anchor is None and any(same_database(str(ledger), str(source)) for source in near):
        warnings.warn(
            "The ledger lies in the database of its data, without an anchor: whoever restores the one restores "
            "the other, and what was spent since is forgotten. Give anchor=, or a ledger= elsewhere.",
            SetupWarning,
            stacklevel=3,
        )


def _inside(data: object, name: str) -> str | None:
    """A table's name inside a file of several tables, or a database."""
    return name if is_address(data) or str(data).lower().endswith(".duckdb") else None


def _check(unit: object, budget: object) -> None:
    if not isinstance(unit, Unit):
        raise SetupError("bad-declaration", "unit must be a sulq.Unit.")
    if budget is not None and not isinstance(budget, (Epsilon, Rho, EpsilonDelta, SubLinear)):
        raise SetupError("bad-declaration", "budget must be Epsilon, Rho, EpsilonDelta or SubLinear.")


def _check_paths(**told: object) -> None:
    """Refuse what is no path of a file, and no way to leave one out."""
    for name, path in told.items():
        text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else path
        if isinstance(text, str) and "\x00" not in text and is_text(text):
            continue
        if text is not None and not (name == "prepared" and isinstance(text, bool)):
            raise SetupError("bad-declaration", f"{name} is the path of a file.")


def _check_ledger(budget: Budget | None, ledger: str | Path | None, sources: Sequence[object]) -> None:
    """Refuse a ledger that would have no place, and a new one without a budget."""
    if ledger is None and any(in_spark(source) for source in sources):
        raise SetupError("bad-declaration", "A table of Spark has no place beside it for a ledger: ledger=...")
    if budget is None and not isinstance(ledger, str) and (ledger is None or not ledger.exists()):
        raise SetupError("bad-declaration", "A new person space needs a budget: budget=sulq.Epsilon(1), say.")


def _sizes(size: object, facts: Sequence[TableFacts]) -> dict[str, int]:
    """Declared public sizes by table; a bare number is the first one's."""
    names = [item.schema.table for item in facts]
    if size is None:
        return {}
    told = dict(size) if isinstance(size, Mapping) else {names[0]: size}
    sizes: dict[str, int] = {}
    for name, number in told.items():
        if name not in names:
            raise SetupError("bad-declaration", f"size names {str(name)[:80]!r}, which is no table here.")
        if isinstance(number, bool) or not isinstance(number, int) or not 0 < number <= 2**40:
            raise SetupError("bad-declaration", "size must be a positive whole number.")
        sizes[name] = number
    return sizes


def declarations(
    data: Mapping[str, object],
    columns: object,
    unit: Unit,
    *,
    keys: Mapping[str, str],
    public: Sequence[str],
    persons: Mapping[str, str],
    references: Mapping[str, Mapping[str, str]],
) -> list[TableFacts]:
    """The public facts of several tables, private ones first, or a refusal that names what does not fit."""
    names = list(data)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise SetupError("bad-declaration", "Several tables are given by name: {'people': ..., 'visits': ...}.")
    if not isinstance(columns, Mapping):
        raise SetupError("bad-declaration", "columns declares each table: {'people': {...}, 'visits': {...}}.")
    if isinstance(public, str) or not isinstance(keys, Mapping) or not isinstance(persons, Mapping):
        raise SetupError(
            "bad-declaration", "public is a list of tables; keys and persons name a column for each table."
        )
    if not isinstance(references, Mapping) or not all(isinstance(told, Mapping) for told in references.values()):
        why = "references names for each table the table a column refers to: {'lines': {'order': 'orders'}}."
        raise SetupError("bad-declaration", why)
    named = {"columns": columns, "keys": keys, "public": public, "persons": persons, "references": references}
    for what, told in named.items():
        for name in told:
            if name not in names:
                known = ", ".join(names)
                raise SetupError(
                    "bad-declaration", f"{what} names {str(name)[:80]!r}, no table here (there are: {known})."
                )
    facts = []
    for name in names:
        if name not in columns:
            raise SetupError("bad-declaration", f"columns says nothing of table {name!r}.")
        schema = Schema.of(name, columns[name])
        links = tuple(references.get(name, {}).items())
        item = TableFacts(schema, keys.get(name), name in public, None, persons.get(name), links)
        _fits(item, unit)
        facts.append(item)
    if all(item.public for item in facts):
        raise SetupError("bad-declaration", "All of these tables are public; there is nobody to protect.")
    for item in facts:
        for column, to in item.references:
            _leads(item, column, next((other for other in facts if other.schema.table == to), None), unit)
    return sorted(facts, key=lambda item: item.public)


def _fits(table: TableFacts, unit: Unit) -> None:
    name = table.schema.table
    if table.person is not None and (table.public or unit.column is None):
        why = "it is public" if table.public else "the unit names no column"
        raise SetupError("bad-declaration", f"persons names a column of {name!r}, but {why}.")
    person = None if table.public else table.person or unit.column
    if table.key is not None and table.key != person and table.schema.find(table.key) is None:
        raise SetupError("bad-declaration", f"The key of {name!r}, {str(table.key)[:80]!r}, is not a declared column.")


def _leads(table: TableFacts, column: str, other: TableFacts | None, unit: Unit) -> None:
    """A reference leads from a private table's column to the key, declared alike, of a private table."""
    where = f"references says that {str(column)[:80]!r} of {table.schema.table!r} refers to a table"
    ours = table.schema.find(column) if isinstance(column, str) else None
    why = ""
    if other is None:
        why = "that is not here"
    elif unit.column is None or table.public or other.public:
        why = "but between public tables, and where the unit names no column, a join needs no such word"
    elif ours is None or column == (table.person or unit.column):
        why = "but that column is not declared, or is the person's, by which tables are joined anyway"
    elif other.key is None or other.key == (other.person or unit.column):
        why = f"{other.schema.table!r} that has no key, or only the person's: name its key in keys="
    elif not joinable(ours, other.schema.find(other.key)):
        why = f"{other.schema.table!r} whose key is declared differently; declare both columns alike"
    if why:
        raise SetupError("bad-declaration", f"{where} {why}.")


def _prepared(path: Path | None, ledger: Path | None, told: object, *, found: bool) -> Path | bool | None:
    """Where the prepared copy lies: as told, beside the ledger, or for a frame in memory.

    `found`: whether nobody named the ledger.
    """
    if isinstance(told, (str, os.PathLike)):
        return Path(told)
    if told is None and path is not None and ledger is not None:
        if found and ledger != beside(path):  # the ledger of other files too: each has a copy of its own
            return copy_of(ledger, stem(path))
        return ledger.with_name(f"{ledger.name.removesuffix('.ledger')}.prepared")
    return None if told is None else bool(told)
