"""Kept rows: the check that prepared tables are what the facts say, before anything is asked of them.

Certificates follow from facts alone, so no row may contradict them. Whoever read the sources is not believed: the
tables themselves are asked, each time they are opened, before any debit.

Source: docs/theory/kernel.md, "Kept rows"; SR2, SR11, SR15.
"""

from __future__ import annotations

import re
from typing import Final

import duckdb

from sulq.errors import SetupError
from sulq.kernel.facts import HASH, OWNER, OWNER_TYPE, Column, Facts, Table
from sulq.kernel.numbers import INTEGERS

_DIGITS: Final = re.compile("[0-9]{1,9}")
_DEFINITION: Final = """
    SELECT sql FROM duckdb_tables()
    WHERE table_name = $name AND database_name IN (coalesce($database, current_database()), 'temp')
"""


def check(cursor: duckdb.DuckDBPyConnection, facts: Facts) -> None:
    """Stop the owner where a kept table is not as its facts say.

    Privacy: runs before any debit, and its one message is constant. It fails only where whoever prepared the rows made
    a mistake, or the copy was altered; then nothing at all is answered.
    """
    if any(unfit(cursor, table) for table in facts.tables):
        raise SetupError("unfit-rows", "The kept rows are not as declared, so nothing is answered from them.")


def unfit(cursor: duckdb.DuckDBPyConnection, table: Table) -> str:
    """What of a kept table contradicts its facts; nothing where it is as they say."""
    name, columns = ".".join(table.name), dict(table.columns)
    if not all(map(_checkable, columns.values())) or _definition(cursor, table) != _defined(table):
        return "columns"
    if table.owned != (table.rows > 0) and table.rows != 1:
        return "owners"  # several rows of a person whom nothing names, or public rows that name persons
    if _some(cursor, f"(SELECT {' AND '.join(_conditions(table))} AS fit FROM {name}) WHERE NOT fit"):
        return "cells"
    if not all(_codes(cursor, f"{column} FROM {name}", fact) for column, fact in table.columns):
        return "codes"
    one_hash = f" OR min({HASH}) <> max({HASH})" if HASH in columns else ""
    if table.owned and _some(cursor, f"{name} GROUP BY {OWNER} HAVING count(*) > {table.rows}{one_hash}"):
        return "persons"
    if table.unique is not None and not (table.owned and table.rows == 1):  # a person's only row has no equal
        key = f"{OWNER}, {table.unique}" if table.owned else table.unique
        if _some(cursor, f"{name} WHERE {table.unique} IS NOT NULL GROUP BY {key} HAVING count(*) > 1"):
            return "unique"
    return ""


def _some(cursor: duckdb.DuckDBPyConnection, rows: str) -> bool:
    """Whether there is any row."""
    return bool(cursor.execute(f"SELECT 1 FROM {rows} LIMIT 1").fetchall())


def _codes(cursor: duckdb.DuckDBPyConnection, rows: str, column: Column) -> bool:
    """Whether a column of texts that stand for whole numbers holds no others; each different text is looked at once."""
    if column.type != "VARCHAR" or column.low is None or column.high is None:
        return True
    most = column.high - column.low + 2  # with the missing one
    found = cursor.execute(f"SELECT DISTINCT {rows} LIMIT {most + 1}").fetchall()
    codes = [str(code) for (code,) in found if code is not None]
    fit = all(_DIGITS.fullmatch(code) and column.low <= int(code) <= column.high for code in codes)
    return fit and len(found) <= most


def _checkable(column: Column) -> bool:
    """Whether a column holds texts, or integers between two that are known."""
    unknown = (column.low is None, column.high is None)
    return unknown == (False, False) if column.type in INTEGERS else column.type == "VARCHAR" and len(set(unknown)) == 1


def _definition(cursor: duckdb.DuckDBPyConnection, table: Table) -> str:
    """How DuckDB says the table was made; nothing where there is no table of that name, or several."""
    *database, name = table.name
    asked = {"name": name, "database": database[0] if database else None}
    found = cursor.execute(_DEFINITION, asked).fetchall() if len(database) < 2 else []
    return str(found[0][0]) if len(found) == 1 else ""


def _defined(table: Table) -> str:
    """How it is said of a table of these columns in this order, none of them computed anew or with a collation."""
    columns = [f"{name} {column.type}" for name, column in table.columns]
    columns += [f"{OWNER} {OWNER_TYPE}"] if table.owned else []
    return f"CREATE TABLE {table.name[-1]}({', '.join(columns)});"


def _conditions(table: Table) -> list[str]:
    """What all rows together meet, in one pass; aggregates skip what is missing, and there may be no row at all."""
    found = [f"count(*) <= {table.size}", *([f"count({OWNER}) = count(*)"] if table.owned else [])]
    for name, column in table.columns:
        found += [] if column.missing else [f"count({name}) = count(*)"]
        if column.type != "VARCHAR":
            least, most = _between(f"min({name})", column), _between(f"max({name})", column)
            found.append(f"coalesce({least} AND {most}, true)")
    return found


def _between(item: str, column: Column) -> str:
    return f"{item} BETWEEN {column.low} AND {column.high}"
