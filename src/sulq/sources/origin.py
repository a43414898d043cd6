"""What an owner gave: a file, several, a frame or an address; its size and time as first seen."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, cast

import pyarrow as pa
import pyarrow.parquet

from sulq.addresses import TableAddress, is_address
from sulq.data_files import Files, Pattern, find_files
from sulq.errors import SetupError
from sulq.sources.decode import csv_file, frames
from sulq.sources.spark.frame import SCHEME, NamedTable, is_frame

SUFFIXES: Final = (".parquet", ".csv", ".duckdb")
_GATHERED: Final = {
    "polars.LazyFrame": "collect",
    "pyarrow.Dataset": "to_table",
    "duckdb.DuckDBPyRelation": "to_arrow_table",
}
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


def gathered(data: object) -> object:
    """A dataset of Arrow's, a lazy frame of polars' or a relation of DuckDB's as a frame; anything else as it is."""
    kinds = {f"{kind.__module__.partition('.')[0].strip('_')}.{kind.__name__}" for kind in type(data).__mro__}
    collect = next((method for kind, method in _GATHERED.items() if kind in kinds), None)
    if collect is None:
        return data
    with contextlib.suppress(Exception):  # its text may hold a cell (T31)
        return getattr(data, collect)()
    raise SetupError("unreadable-data", f"The {type(data).__name__} could not be read to its end.")


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


class Examined(NamedTuple):
    """How many records CSV files have; `plain`: every LF in them ends one."""

    records: int
    plain: bool


@dataclass(frozen=True, slots=True, eq=False)
class Origin:
    """A data file with its size and time as first seen, several, a frame, or the address of a database.

    Of several files `path` is the first, and `data` are all of them.
    """

    path: Path | None
    data: object = field(default=None, repr=False)
    size: int = 0
    modified: int = 0

    @classmethod
    def of(cls, data: object) -> Origin:
        """Recognise what the owner gave, or refuse it."""
        several = find_files(data)
        if several is not None:
            return cls(several.paths[0], several, *several.stamp)
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
        data = gathered(data)
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
    def files(self) -> tuple[Path, ...]:
        """All its files; none of a frame or an address."""
        if isinstance(self.data, Files):
            return self.data.paths
        return () if self.path is None else (self.path,)

    @property
    def covered(self) -> tuple[Path | Pattern, ...]:
        """What a ledger notes of it: its files, and the folders and patterns that they were named by."""
        return self.data.covered if isinstance(self.data, Files) else self.files

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

    def check(self) -> Examined | None:
        """Stop the owner where a CSV file is not by RFC 4180: one record could change how others are read.

        What it holds; None where the data is no CSV file.
        """
        if self.path is None or suffix(self.path) != ".csv":
            return None
        records, plain = zip(*map(csv_file.check, self.files), strict=True)
        return Examined(sum(records), all(plain))

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
        now = None
        with contextlib.suppress(OSError, SetupError):
            several = find_files(list(self.data.told)) if isinstance(self.data, Files) else None
            stat = self.path.stat()
            now = (stat.st_size, stat.st_mtime_ns) if several is None else several.stamp
        if now != (self.size, self.modified):
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
