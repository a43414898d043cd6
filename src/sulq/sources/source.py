"""Where rows come from: a file or a frame, what it offers, and how DuckDB is to read it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NamedTuple, Self, cast

import duckdb
import pyarrow as pa
import pyarrow.parquet

from sulq.addresses import TableAddress, is_address
from sulq.errors import SetupError
from sulq.kernel.keep import POSITION
from sulq.language.domain import Int, Real, Schema
from sulq.language.privacy import Unit
from sulq.sources import cell_reading
from sulq.sources.cell_reading import Cell
from sulq.sources.decode import csv_file, files, frames, person
from sulq.sources.decode.files import literal
from sulq.sources.decode.person import Form, Person
from sulq.sources.spark.frame import SCHEME, NamedTable, is_frame

SUFFIXES: Final = (".parquet", ".csv", ".duckdb")
_SERVERS: Final = ("http://", "https://", "s3://", "gs://", "mysql://")


def suffix(path: Path) -> str:
    """The kind of a data file by its name: .parquet, .csv (also gzipped) or .duckdb."""
    name = path.name.lower()
    return next(
        (known for known in SUFFIXES if name.endswith((known, f"{known}.gz" if known == ".csv" else known))), ""
    )


def column_names(data: object) -> list[str] | None:
    """The names of a frame's columns, or None where this is no frame."""
    kind = f"{type(data).__module__.partition('.')[0]}.{type(data).__name__}"
    if kind in ("pandas.DataFrame", "polars.DataFrame"):
        return [str(name) for name in cast("pa.Table", data).columns]
    if isinstance(data, (pa.Table, pa.RecordBatch)):
        return [str(name) for name in data.schema.names]
    return None


ANY_BYTES: Final = 32  # more than any decimal of DuckDB
NUMBER_BYTES: Final = {"INT32": 4, "INT64": 8, "BYTE_ARRAY": ANY_BYTES}  # of Parquet's decimals


class Parquet(NamedTuple):
    """What a Parquet file's own metadata says.

    `stored`: its types, INT96 as the nanoseconds that it holds. `bytes`: how many hold a number of each column.
    """

    names: list[str]
    rows: int
    schema: pa.Schema
    stored: list[pa.DataType]
    bytes: dict[str, int]


@dataclass(frozen=True, slots=True, eq=False)
class Origin:
    """A data file with its size and time as first seen, a frame, or the address of a database."""

    path: Path | None
    data: object = field(default=None, repr=False)
    size: int = 0
    modified: int = 0

    @classmethod
    def of(cls, data: object) -> Origin:
        """Recognise what the owner gave, or refuse it."""
        if isinstance(data, (str, Path)):
            if is_address(data):
                return cls(None, TableAddress.of(str(data)))
            if str(data).startswith(SCHEME):
                return cls(None, NamedTable(str(data)))
            if str(data).startswith(_SERVERS):
                raise SetupError(
                    "engine-not-available", "Data behind this kind of address is not read in this version."
                )
            return cls._file(Path(data))
        if column_names(data) is not None:
            return cls(None, data)
        if is_frame(data):
            return cls(None, data)
        raise SetupError("unreadable-data", f"A {type(data).__name__} is neither a file's path nor a frame.")

    @classmethod
    def _file(cls, path: Path) -> Origin:
        try:
            path = path.expanduser().resolve()
            stat = path.stat()
        except (OSError, RuntimeError, ValueError):
            stat = None
        if stat is None or not path.is_file():
            raise SetupError("missing-file", f"There is no data file {str(path)!r}.")
        if not suffix(path):
            raise SetupError("unreadable-data", f"{path.name!r} ends in none of {', '.join(SUFFIXES)} or .csv.gz.")
        if not os.access(path, os.R_OK):
            raise SetupError("unreadable-data", f"{path.name!r} may not be read by this user.")
        return cls(path, None, stat.st_size, stat.st_mtime_ns)

    @property
    def address(self) -> TableAddress | None:
        """The database's address, where the data lies in one."""
        return self.data if isinstance(self.data, TableAddress) else None

    def place(self, name: str | None) -> tuple[str, str]:
        """The schema and name of a table in the database."""
        if self.address is None:
            raise SetupError("engine-not-available", "Only tables in PostgreSQL are asked there.")
        return self.address.inside(name)

    @property
    def fingerprint(self) -> str:
        """Name, size and time of the file, or "frame": what the ledger registers, never anything of the rows."""
        if isinstance(self.data, NamedTable):
            return self.data.fingerprint
        return "frame" if self.path is None else f"{self.path.name} {self.size} {self.modified}"

    def check(self) -> int | None:
        """Stop the owner where a CSV file is not by RFC 4180: one record could change how others are read.

        The number of its records; None where the data is no CSV file.
        """
        return csv_file.check(self.path) if self.path is not None and suffix(self.path) == ".csv" else None

    @property
    def home(self) -> str:
        """The engine that alone reads these rows, where they are; "" for files and frames, which several read."""
        if self.address is not None:
            return "postgres"
        return "spark" if self.path is None and (isinstance(self.data, NamedTable) or is_frame(self.data)) else ""

    def unchanged(self) -> None:
        """Stop the owner where the file is no longer the one that was opened."""
        if self.path is None:
            return
        try:
            stat = self.path.stat()
        except OSError:
            stat = None
        if stat is None or (stat.st_size, stat.st_mtime_ns) != (self.size, self.modified):
            raise SetupError("source-changed", f"{self.path.name!r} changed since it was opened.")

    def parquet(self) -> Parquet:
        """Names and number of rows of a Parquet file."""
        path = cast("Path", self.path)
        try:
            with pa.parquet.ParquetFile(path) as file:
                stored = list(file.schema_arrow.types)
            with frames.open_parquet(path) as file:
                schema, leaves = file.schema_arrow, map(file.schema.column, range(len(file.schema)))
                wide: dict[str, int] = {}
                for leaf in leaves:  # of a column and a field of the same path the wider counts
                    size = NUMBER_BYTES.get(leaf.physical_type, leaf.length)
                    wide[leaf.path] = max(size, wide.get(leaf.path, 0))
                names, rows = [str(name) for name in schema.names], int(file.metadata.num_rows)
                return Parquet(names, rows, schema, stored, wide)
        except (pa.ArrowException, OSError, ValueError):
            pass
        raise SetupError("unreadable-data", f"{path.name!r} is not a whole Parquet file.")


@dataclass(frozen=True, slots=True, eq=False)
class TableSource:
    """How DuckDB reads the needed columns: a relation, and for each column its kind of cell and its SQL.

    `rows` is an upper bound on the number of rows, where one is known; where places are public, it is their number.
    `person`: how the cell that names the person is read, where one does.
    """

    relation: str
    columns: dict[str, tuple[Cell, str]]
    rows: int | None
    frame: object = field(default=None, repr=False)  # to be registered as `source` and the table's number
    attach: tuple[str, Path] | None = None  # a file to be attached, and under which name
    files: tuple[Path, ...] = ()
    person: Person | None = None


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

    def without_data(self) -> RegisteredTable:
        """The same without the frame: once its rows are prepared in memory they need not be held twice."""
        return replace(self, origin=replace(self.origin, data=None), source=replace(self.source, frame=None))


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
    rows = csv_file.check(path) if unit.positions_are_public else rows
    relation = files.csv_records(path, len(offered), places=unit.positions_are_public)
    return TableSource(relation, _checked(columns, schema), rows, files=(path,), person=named)


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
    return TableSource(relation, columns, rows, files=(path,), person=named)


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
