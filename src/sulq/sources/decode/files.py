"""Files as relations of DuckDB: a row for each record, with the columns s0, s1, ... and, if asked for, its place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from sulq.kernel.keep import POSITION

WILD: Final = re.compile(r"[*?\[]")


def literal(text: str) -> str:
    """An owner's text as an SQL string."""
    return "'" + text.replace("'", "''") + "'"


def exact_path(path: Path) -> str:
    """A path as DuckDB's readers take it: none of its letters a wildcard."""
    return literal(WILD.sub(r"[\g<0>]", str(path)))


def csv_records(path: Path, width: int, *, places: bool, parallel: bool = False) -> str:
    """The records of a CSV file as texts, an empty one missing; `csv_file.check` says that it has one reading.

    `parallel`: threads look for the ends of records on their own, which they may where each LF is one.
    """
    kinds = ", ".join(f"'s{i}': 'VARCHAR'" for i in range(width))
    zipped = "gzip" if path.suffix.lower() == ".gz" else "none"
    reader = (
        f"read_csv({exact_path(path)}, columns = {{{kinds}}}, auto_detect = false, header = true, delim = ',', "
        "quote = '\"', escape = '\"', null_padding = false, ignore_errors = false, strict_mode = true, "
        f"parallel = {str(parallel).lower()}, compression = '{zipped}', nullstr = '', hive_partitioning = false)"
    )
    return table_records(reader, [f"s{i}" for i in range(width)], places=places)


def parquet_records(path: Path, names: Sequence[str], *, places: bool) -> str:
    """The records of a Parquet file, whose columns are called so from here on.

    Parquet's statistics leave NaN out; without can_have_nan DuckDB takes them for the whole truth and folds even
    isnan(x) to false, so that one NaN row would count as its neighbours do (T6).
    """
    numbered = ", file_row_number = true" if places else ""
    reader = f"read_parquet({exact_path(path)}, hive_partitioning = false, can_have_nan = true{numbered})"
    return _called(f"SELECT * FROM {reader}", names, places=places)


def table_records(table: str, names: Sequence[str], *, places: bool) -> str:
    """The records of a table or reader that DuckDB goes through in order; its columns are called so from here on."""
    return _called(f"SELECT *{', row_number() OVER () - 1' if places else ''} FROM {table}", names, places=places)


def _called(select: str, names: Sequence[str], *, places: bool) -> str:
    return f"({select}) AS source({', '.join([*names, *([POSITION] if places else [])])})"
