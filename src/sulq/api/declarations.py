"""What an owner says of tables, as public facts: columns, keys, persons, references, graphs, functions, sizes."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from sulq.addresses import TableAddress, beside, beside_all, copy_of, is_address, same_database, stem
from sulq.data_files import Files, find_files, not_fetched
from sulq.errors import QuestionError, SetupError, SetupWarning
from sulq.language.domain import Category, Schema, Text, joinable
from sulq.language.estimator import Declaration, Estimator, Property, Utility
from sulq.language.facts import TableFacts
from sulq.language.privacy import Unit
from sulq.language.rowfn.vectors import bounded
from sulq.language.statistic import Graph


class OwnedTable(NamedTuple):
    """One table as its owner hands it over: a path, an address or a frame, its public facts and its declared size.

    `inside`: its name in a file of several tables. `alone`: whether it is the whole dataset.
    """

    source: object
    facts: TableFacts
    inside: str | None = None
    size: int | None = None
    alone: bool = False


def owned_tables(
    data: object,
    columns: Mapping[str, object] | None,
    unit: Unit,
    size: object,
    *,
    table: str | None,
    graph: object,
    estimators: object,
    parts: Mapping[str, Any],
) -> list[OwnedTable]:
    """The tables of a dataset; `parts`: how several hang together, keys, public, persons and references."""
    if isinstance(data, Mapping):
        if table is not None:
            raise SetupError("bad-declaration", "Several tables have their own names; leave table= out.")
        if graph is not None or estimators is not None:
            raise SetupError("bad-declaration", "graph and estimators are for one table.")
        return declare_tables(data, columns, unit, size, **parts)
    if any(item is not None for item in parts.values()):
        why = "keys, public, persons and references are for several tables: connect({...})."
        raise SetupError("bad-declaration", why)
    return [declare_table(data, columns, unit, size, table=table, graph=graph, estimators=estimators)]


def declare_table(
    data: object,
    columns: Mapping[str, object] | None,
    unit: Unit,
    size: object,
    *,
    table: str | None,
    graph: object,
    estimators: object,
) -> OwnedTable:
    """A dataset of one table."""
    several = find_files(data)
    path = data_file(data) if several is None else several.folder
    name = table if table is not None else table_name(data if several is None else None, path)
    facts = single_facts(Schema.of(name, columns), unit, graph, estimators)
    return OwnedTable(several or path or data, facts, table, _sizes(size, [facts]).get(name), alone=True)


def declare_tables(
    data: Mapping[str, object],
    columns: object,
    unit: Unit,
    size: object,
    *,
    keys: Mapping[str, str] | None,
    public: Sequence[str] | None,
    persons: Mapping[str, str] | None,
    references: Mapping[str, Mapping[str, str]] | None,
) -> list[OwnedTable]:
    """A dataset of several tables, private ones first."""
    facts = table_facts(
        data, columns, unit, keys=keys or {}, public=public or (), persons=persons or {}, references=references or {}
    )
    sizes = _sizes(size, facts)
    found = []
    for item in facts:
        name = item.schema.table
        source = data[name]
        several = find_files(source)
        place = several or data_file(source) or source
        found.append(OwnedTable(place, item, None if several else inside(source, name), sizes.get(name)))
    return found


def private_sources(tables: Sequence[OwnedTable]) -> list[tuple[object, str]]:
    """What is read of people: each source of a private table, and the table's name there."""
    return [
        (source, item.inside or item.facts.schema.table)
        for item in tables
        for source in (item.source.covered if isinstance(item.source, Files) else (item.source,))
        if not item.facts.public
    ]


def single_facts(schema: Schema, unit: Unit, graph: object = None, estimators: object = None) -> TableFacts:
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
    """A function as its owner names it; what it is declared for must be declared columns that have numbers."""
    told = ("", told) if isinstance(told, Utility) else told
    function, certificate = told if isinstance(told, tuple) and len(told) == 2 else (told, None)
    found = Estimator(name, cast("str", function), cast("Declaration | None", certificate))
    declared = found.certificate
    for column in () if declared is None else declared.columns:
        kinds = Text if isinstance(declared, Property) else (Text, Category)  # whose tables have a value for each label
        if schema.find(column) is None or isinstance(schema.find(column), kinds):
            raise SetupError("bad-certificate", f"{column[:80]!r} is not a declared column of numbers.")
    if isinstance(declared, Utility) and schema.find(name) is not None:
        raise SetupError("bad-declaration", f"A utility is named as no column is, to be chosen by; {name!r} is one.")
    for fn in declared.sums if isinstance(declared, Utility) else ():
        try:
            bounded(fn, schema)
        except QuestionError as error:
            raise SetupError("bad-declaration", f"A candidate of {name!r}: {error.message}") from None
    return found


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


def table_facts(
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


SUFFIXES: Final = (".parquet", ".csv", ".csv.gz", ".duckdb")


def data_file(data: object) -> Path | None:
    """A data file's place; None for a frame, and for what lies elsewhere."""
    if not isinstance(data, (str, os.PathLike)) or lies_elsewhere(data):
        return None
    if "://" in str(data):
        raise not_fetched()
    path = Path(data)
    try:
        found = path.is_file()
    except OSError:  # a name longer than any file's
        found = False
    known = path.name.lower().endswith(SUFFIXES)
    if not found and (known or not path.suffix):  # without an ending a folder may have been meant
        raise SetupError("missing-file", f"There is no file or folder {path.name[:200]!r}.")
    if not known:
        raise SetupError("unreadable-data", f"{path.name!r} is none of {', '.join(SUFFIXES)}.")
    return path.resolve()


def in_spark(data: object) -> bool:
    """Whether data is named by the address of a table of Spark."""
    return isinstance(data, str) and data.startswith("spark://")


def lies_elsewhere(data: object) -> bool:
    """Whether data is named by an address at which this process asks itself."""
    return is_address(data) or in_spark(data)


def is_curator(data: object) -> bool:
    """Whether data is named by the address of a curator.

    Raises:
        SetupError: `engine-not-available`: it is a file's address, and nothing is fetched.
    """
    if not isinstance(data, str) or "://" not in data or lies_elsewhere(data):
        return False
    if re.split("[?#]", data)[0].lower().endswith(SUFFIXES):
        raise not_fetched()
    return True


def table_name(data: object, path: Path | None) -> str:
    """A table's name in questions, where none is told: the stem of its file or folder, or the table of an address."""
    if path is not None:
        return stem(path)
    if in_spark(data):
        return re.split(r"[./]", str(data).removesuffix(".parquet"))[-1]
    if not is_address(data):
        return "data"
    named = TableAddress.of(str(data)).table
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


def inside(data: object, name: str) -> str | None:
    """A table's name inside a file of several tables, or a database."""
    return name if is_address(data) or str(data).lower().endswith(".duckdb") else None


def prepared_copy(
    sources: Sequence[object], ledger: Path | str | None, told: object, *, found: bool
) -> Path | bool | None:
    """Where the prepared copy lies: as told, beside the ledger, or for a frame in memory.

    `found`: whether nobody named the ledger.
    """
    if isinstance(told, (str, os.PathLike)):
        return Path(told)
    if told is not None or not all(isinstance(source, (Path, Files)) for source in sources):
        return None if told is None else bool(told)
    if isinstance(sources[0], Files):
        named = [path for path in sources[0].covered if isinstance(path, Path)]
        return copy_of(ledger if isinstance(ledger, Path) else beside_all(named), sources[0].name)
    first = cast("Path", sources[0])
    near = ledger if isinstance(ledger, Path) else beside(first)
    if found and near != beside(first):  # the ledger of other files too: each has a copy of its own
        return copy_of(near, stem(first))
    return near.with_name(f"{near.name.removesuffix('.ledger')}.prepared")
