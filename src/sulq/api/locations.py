"""Where data and prepared copies lie: files, tables in PostgreSQL or on Spark, the copy beside the ledger."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from sulq.addresses.defaults import beside, copy_of, stem
from sulq.addresses.postgres import TableAddress, is_address, same_database
from sulq.errors import SetupError, SetupWarning

SUFFIXES: Final = (".parquet", ".csv", ".csv.gz", ".duckdb")


def data_file(data: object) -> Path | None:
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


def table_name(data: object, path: Path | None) -> str:
    """A table's name in questions, where none is told: the file's stem, or the table that an address names."""
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
    first = sources[0]
    if told is not None or not all(isinstance(source, Path) for source in sources) or not isinstance(first, Path):
        return None if told is None else bool(told)
    near = ledger if isinstance(ledger, Path) else beside(first)
    if found and near != beside(first):  # the ledger of other files too: each has a copy of its own
        return copy_of(near, stem(first))
    return near.with_name(f"{near.name.removesuffix('.ledger')}.prepared")
