"""Where rows come from: a file or a frame, what it offers, and how DuckDB is to read it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Self, cast

import duckdb
import pyarrow as pa
import pyarrow.parquet

from sulq.data_files import Files, unlike_part
from sulq.errors import SetupError
from sulq.kernel.keep import POSITION
from sulq.language.domain import Int, Real, Schema
from sulq.language.privacy import Unit
from sulq.sources import cell_reading
from sulq.sources.cell_reading import Cell
from sulq.sources.decode import csv_file, files, frames, person
from sulq.sources.decode.files import literal
from sulq.sources.decode.person import Form, Person
from sulq.sources.origin import ANY_BYTES, Examined, Origin, column_names, suffix

PARTITION: Final = 900_000  # from here on columns of a source are values of partitions


@dataclass(frozen=True, slots=True, eq=False)
class TableSource:
    """How DuckDB reads the needed columns: a relation, and for each column its kind of cell and its SQL.

    `rows` is an upper bound on the number of rows, where one is known; where places are public, it is their number.
    `person`: how the cell that names the person is read, where one does. `plain`: how a CSV file is read in which every
    LF ends a record. `coded`: its columns s0, s1, ... are codes already. `kinds`: the type of each in a Parquet file.
    `whole`: all its records, where those of erased persons are left out of `relation`.
    """

    relation: str
    columns: dict[str, tuple[Cell, str]]
    rows: int | None
    frame: object = field(default=None, repr=False)  # to be registered as `source` and the table's number
    attach: tuple[str, Path] | None = None  # a file to be attached, and under which name
    files: tuple[Path, ...] = ()
    person: Person | None = None
    plain: str | None = None
    coded: bool = False
    kinds: Mapping[str, str] = field(default_factory=dict)
    whole: str | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RegisteredTable:
    """What an owner registered: the data and how it is read, the declarations, and the person space with its key.

    `number` tells the tables of a dataset apart in generated SQL ("" where there is
    only one) and `first` their columns: it is the place of this table's first.
    `unique`: the column that must differ from row to row. `references`: the columns that
    name rows of other tables by that, which must be the same person's, and those tables.
    `records`: how many a CSV file has by RFC 4180, which DuckDB is to find too; None where nothing is compared.
    """

    origin: Origin
    source: TableSource
    schema: Schema
    unit: Unit
    key: bytes
    space: str = ""
    number: str = ""
    first: int = 0
    unique: str | None = None
    references: tuple[tuple[str, str], ...] = ()
    records: int | None = None
    erased: tuple[str, ...] = ()  # digests of persons whose rows are left out

    @property
    def kept(self) -> str:
        """The name of its table of kept rows."""
        return f"kept{self.number}"

    @property
    def places(self) -> int | None:
        """How many rows the source has, blanked ones among them, where that is public (SR6); None where it is not."""
        return self.source.rows if self.unit.positions_are_public else None

    @property
    def frames(self) -> dict[str, object]:
        """The frame that is to be registered before it is read, by name; nothing where it is a file."""
        return {} if self.source.frame is None else {f"source{self.number}": self.source.frame}

    def examined(self, found: Examined | None) -> RegisteredTable:
        """The same, its CSV file once checked: how many records it has, and read by threads where that is safe."""
        if found is None:
            return self
        relation = self.source.plain if found.plain and self.source.plain is not None else self.source.relation
        return replace(self, records=found.records, source=replace(self.source, relation=relation))

    def without_data(self) -> RegisteredTable:
        """The same without the frame: once its rows are prepared in memory they need not be held twice."""
        origin = self.origin if self.origin.path is not None else replace(self.origin, data=None)
        return replace(self, origin=origin, source=replace(self.source, frame=None))


class Shapes:
    """A DuckDB that is asked about the shapes of files: started for the first, let go of after the last.

    Its start takes longer than all that it is asked.
    """

    def __init__(self) -> None:
        self._open = contextlib.ExitStack()
        self._connection: duckdb.DuckDBPyConnection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def ask(self, *queries: str) -> list[tuple[object, ...]]:
        """The rows of the last query."""
        try:
            if self._connection is None:
                config: dict[str, str | bool | int | float | list[str]]
                config = {"threads": 1, "autoload_known_extensions": "false"}
                self._connection = self._open.enter_context(duckdb.connect(":memory:", config=config))
            for query in queries:
                self._connection.execute(query)
            return cast("list[tuple[object, ...]]", self._connection.fetchall())
        except duckdb.Error:
            pass
        raise SetupError("unreadable-data", "The data file cannot be read.")

    @contextlib.contextmanager
    def attached(self, path: Path) -> Iterator[None]:
        """Have a DuckDB file open as `origin`."""
        self.ask(f"ATTACH {literal(str(path))} AS origin (READ_ONLY)")
        try:
            yield
        finally:
            self.ask("DETACH origin")


def describe(
    origin: Origin,
    schema: Schema,
    unit: Unit,
    table: str | None,
    *,
    number: str = "",
    attached: str = "origin",
    shapes: Shapes | None = None,
) -> TableSource:
    """Find out how to read the origin; refuse missing columns and kinds that no declaration here can mean.

    `number` is the table's among those of a dataset, `attached` what a DuckDB file is to be known as, `shapes` what
    the tables of one dataset are asked by.
    """
    if origin.address is not None:
        raise SetupError("engine-not-available", "Tables in PostgreSQL are asked by the engine `postgres`.")
    if origin.path is None:
        return _frame(origin, schema, unit, number)
    if isinstance(origin.data, Files):
        return _several(origin.data, schema, unit)
    kind = suffix(origin.path)
    if kind == ".csv":
        return _csv(origin, origin.path, schema, unit)
    with Shapes() if shapes is None else contextlib.nullcontext(shapes) as asked:
        if kind == ".parquet":
            return _parquet(origin, origin.path, schema, unit, asked)
        return _duckdb(origin.path, schema, unit, table, attached=attached, shapes=asked)


def _checked(cells: dict[str, tuple[Cell, str]], schema: Schema) -> dict[str, tuple[Cell, str]]:
    for name, column in schema.columns:
        cell_reading.agree(name, column, cells[name][0])
    return cells


def _frame(origin: Origin, schema: Schema, unit: Unit, number: str) -> TableSource:
    places = cell_reading.places(column_names(origin.data) or [], schema, unit)
    who = None if unit.column is None else (unit.column, places[unit.column])
    table, kinds, named = frames.records(origin.data, {name: places[name] for name in schema.names}, who, unit.fold)
    if unit.positions_are_public:
        table = table.append_column(POSITION, pa.array(range(table.num_rows), pa.int64()))
    columns, rows = plain(kinds, schema), table.num_rows
    return TableSource(f"source{number}", columns, rows, frame=table, person=whom(named, schema, unit))


def plain(kinds: Sequence[str], schema: Schema) -> dict[str, tuple[Cell, str]]:
    """How the declared columns are read from s0, s1, ..., which are of these types."""
    columns = zip(schema.names, kinds, strict=True)
    return _checked({name: cell_reading.plain(kind, f"s{i}", name) for i, (name, kind) in enumerate(columns)}, schema)


def _csv(origin: Origin, path: Path, schema: Schema, unit: Unit) -> TableSource:
    offered = csv_file.header(path)
    places = cell_reading.places(offered, schema, unit)
    columns: dict[str, tuple[Cell, str]] = {name: ("text", f"s{places[name]}") for name in schema.names}
    named = None if unit.column is None else whom(("text", f"s{places[unit.column]}"), schema, unit)
    rows = None if path.suffix.lower() == ".gz" else origin.size
    rows = csv_file.check(path)[0] if unit.positions_are_public else rows
    relation = files.csv_records(path, len(offered), places=unit.positions_are_public)
    threads = None if unit.positions_are_public else files.csv_records(path, len(offered), places=False, parallel=True)
    return TableSource(relation, _checked(columns, schema), rows, files=(path,), person=named, plain=threads)


def _typed(
    kinds: list[str], places: dict[str, int], schema: Schema, unit: Unit
) -> tuple[dict[str, tuple[Cell, str]], Person | None]:
    """How columns of DuckDB's types are read, and the person's."""
    cells = {name: cell_reading.plain(kinds[places[name]], f"s{places[name]}", name) for name in schema.names}
    named = None
    if unit.column is not None:
        place = places[unit.column]
        named = whom(person.typed(kinds[place], f"s{place}", unit.column), schema, unit)
    return _checked(cells, schema), named


def whom(named: tuple[Form, str] | None, schema: Schema, unit: Unit) -> Person | None:
    """How the person is read, where the column that names it may be declared."""
    if named is None or unit.column is None:
        return None
    return person.person(*named, number=isinstance(schema.find(unit.column), (Int, Real)), fold=unit.fold)


def _parquet(origin: Origin, path: Path, schema: Schema, unit: Unit, shapes: Shapes) -> TableSource:
    names, rows, shape, stored, wide = origin.parquet()
    places = cell_reading.places(names, schema, unit)
    # What DuckDB fails to read is read by Arrow (parquet_cells.py); a type that it does not read is refused now.
    if not all(map(_is_read, (shape.types[place] for place in places.values()))):
        who = None if unit.column is None else (unit.column, places[unit.column])
        frames.records(shape.empty_table(), {name: places[name] for name in schema.names}, who, unit.fold)
    aliases = [f"s{i}" for i in range(len(names))]
    described = shapes.ask(f"DESCRIBE SELECT * FROM {files.parquet_records(path, aliases, places=False)}")
    kinds = [str(row[1]) for row in described]
    columns, named = _typed(kinds, places, schema, unit)
    if unit.column is not None:
        place = places[unit.column]
        frames.check_stored(stored[place], kinds[place], unit.column, wide.get(names[place], ANY_BYTES))
    relation = files.parquet_records(path, aliases, places=unit.positions_are_public)
    by_alias = zip(aliases, kinds, shape.types, strict=True)
    told = {alias: str(by_arrow) if _only_by_arrow(by_arrow) else kind for alias, kind, by_arrow in by_alias}
    return TableSource(relation, columns, rows, files=(path,), person=named, kinds=told)


def _only_by_arrow(kind: pa.DataType) -> bool:
    """Whether DuckDB reads a type as another one, which Arrow tells from it where it reads the file in its place."""
    return bool(pa.types.is_float16(kind) or pa.types.is_decimal256(kind))


def _is_read(kind: pa.DataType) -> bool:
    """Whether Arrow is known to read a type; trying it loads a large part of Arrow."""
    types = pa.types
    known = (
        types.is_integer,
        types.is_float32,
        types.is_float64,
        types.is_boolean,
        types.is_string,
        types.is_large_string,
    )
    return any(is_kind(kind) for is_kind in (*known, types.is_date, types.is_timestamp, types.is_decimal128))


def _needed(source: TableSource) -> list[str]:
    """The columns s0, s1, ... that the declared ones and the person are read from."""
    person = () if source.person is None else (source.person.cell,)
    return sorted(set(re.findall(r"\bs[0-9]+\b", " ".join([*(sql for _, sql in source.columns.values()), *person]))))


def _alike(part: TableSource, first: TableSource, needed: Sequence[str]) -> bool:
    """Whether a part's cells are what they are alone where DuckDB gives both parts' columns one type (SR25).

    Of decimals that type may have a smaller scale: one part's types would round another's numbers, and make one person
    of several.
    """
    if (part.columns, part.person) != (first.columns, first.person):
        return False
    return all(
        len(both) == 1 or both <= set(cell_reading.WHOLE) or both == {"FLOAT", "DOUBLE"}
        for both in ({source.kinds.get(name) for source in (part, first)} for name in needed)
    )


def _several(found: Files, schema: Schema, unit: Unit) -> TableSource:
    """Parts one after the other, read alike, each with the values of its partitions."""
    inside = [name for name in schema.names if name not in found.names]
    if unit.column in found.names or not inside:
        why = "A partition's value is of all rows of a file: it names no person, and is not a table's only column."
        raise SetupError("bad-declaration", why)
    own = replace(schema, columns=tuple(item for item in schema.columns if item[0] in inside))
    sources: list[TableSource] = []
    needed: list[str] = []
    with Shapes() as shapes:
        for path in found.paths:
            sources.append(describe(Origin.of(path), own, unit, None, shapes=shapes))
            needed = needed or _needed(sources[0])
            if not _alike(sources[-1], sources[0], needed):
                raise unlike_part(path, found.paths[0], "columns of other names, types or places")
    return joined(found, sources, needed, schema, unit)


def joined(
    found: Files, sources: Sequence[TableSource], needed: Sequence[str], schema: Schema, unit: Unit
) -> TableSource:
    """The parts one after the other, `needed` columns of each beside the values of its partitions; places go on."""
    first = sources[0]
    partitions = {name: f"s{PARTITION + i}" for i, name in enumerate(found.names)}

    def union(relations: Sequence[str]) -> str:
        before, selects = 0, []
        for relation, source, values in zip(relations, sources, found.values, strict=True):
            told = zip(partitions.values(), values, strict=True)
            said = [f"{'CAST(NULL AS VARCHAR)' if v is None else literal(v)} AS {name}" for name, v in told]
            place = [f"{POSITION} + {before} AS {POSITION}"] if unit.positions_are_public else []
            selects.append(f"SELECT {', '.join([*needed, *said, *place])} FROM {relation}")
            before += source.rows or 0
        return f"({' UNION ALL '.join(selects)})"

    cells: dict[str, tuple[Cell, str]] = {name: ("text", place) for name, place in partitions.items()}
    columns = {name: (first.columns | cells)[name] for name in schema.names}
    rows = [source.rows for source in sources if source.rows is not None]
    plains = [source.plain for source in sources if source.plain is not None]
    return TableSource(
        union([source.relation for source in sources]),
        _checked(columns, schema),
        sum(rows) if len(rows) == len(sources) else None,
        files=tuple(file for source in sources for file in source.files),
        person=first.person,
        plain=union(plains) if len(plains) == len(sources) else None,
    )


def _duckdb(path: Path, schema: Schema, unit: Unit, table: str | None, *, attached: str, shapes: Shapes) -> TableSource:
    with shapes.attached(path):
        offered = [
            name for (name,) in shapes.ask("SELECT table_name FROM duckdb_tables() WHERE database_name = 'origin'")
        ]
        chosen = table if table is not None else offered[0] if len(offered) == 1 else None
        if chosen not in offered:
            raise SetupError(
                "unreadable-data",
                f"{path.name!r} holds the tables {', '.join(map(str, offered[:20]))}.",
                "Name one: table=...",
            )
        quoted = 'origin."' + str(chosen).replace('"', '""') + '"'
        described = shapes.ask(f"DESCRIBE SELECT * FROM {quoted}")
        (count,) = shapes.ask(f"SELECT count(*) FROM {quoted}")[0]
    quoted = f"{attached}{quoted.removeprefix('origin')}"
    names = [str(row[0]) for row in described]
    places = cell_reading.places(names, schema, unit)
    columns, named = _typed([str(row[1]) for row in described], places, schema, unit)
    aliases = [f"s{i}" for i in range(len(names))]
    relation = files.table_records(quoted, aliases, places=unit.positions_are_public)
    return TableSource(relation, columns, cast("int", count), attach=(attached, path), person=named)
