"""Plain DuckDB as the judge: the same SQL over the same bounded rows, and whether a noise-free answer agrees."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping

import duckdb
import pandas as pd


def plain(sql: str, tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """What DuckDB answers over frames."""
    with duckdb.connect(config={"threads": 1, "python_enable_replacements": False}) as connection:
        connection.execute("SET integer_division = true")  # whole numbers divide as in PostgreSQL
        for name, frame in tables.items():
            connection.register(name, frame)
        found = connection.execute(sql)
        names = [column[0] for column in found.description]
        return pd.DataFrame(found.fetchall(), columns=pd.Index(names), dtype=object)


def disagreements(
    ours: pd.DataFrame,
    theirs: pd.DataFrame,
    *,
    keys: tuple[str, ...] = (),
    away: float | Mapping[str, float] = 1e-6,
    whole: bool = False,
) -> list[str]:
    """In what an answer differs from DuckDB's, as multisets of rows; empty if in nothing.

    Every row of DuckDB's must be among ours. With `whole` there may be no other;
    else ours may also hold groups without rows, since all declared keys are
    returned (T24). Outside the columns of `keys` a NULL of DuckDB's may be a
    number: that a group has no value at all is a fact of its rows, which is not
    told. `away`: how far a number may lie from its like.
    """
    if len(ours.columns) != len(theirs.columns):
        return [f"{len(ours.columns)} columns against {len(theirs.columns)}"]
    allowed = [(_away(away, str(name)), str(name) not in keys) for name in theirs.columns]
    left = [tuple(map(_cell, row)) for row in ours.itertuples(index=False, name=None)]
    found = []
    for row in (tuple(map(_cell, row)) for row in theirs.itertuples(index=False, name=None)):
        place = next((i for i, mine in enumerate(left) if _alike(mine, row, allowed)), None)
        if place is None:
            found.append(f"no row {row}")
        else:
            left.pop(place)
    if whole and left:
        found.append(f"{len(left)} rows too many, such as {left[0]}")
    return found


def _away(away: float | Mapping[str, float], name: str) -> float:
    return away.get(name, 1e-6) if isinstance(away, Mapping) else away


def _cell(cell: object) -> object:
    """One spelling of a value, whatever library it comes from."""
    if cell is None or cell is pd.NaT or (isinstance(cell, float) and math.isnan(cell)):
        return None
    if isinstance(cell, (bool, str)):
        return cell
    if isinstance(cell, datetime.datetime):
        return cell.isoformat()
    if isinstance(cell, datetime.date):
        return cell.isoformat()
    item = getattr(cell, "item", None)
    cell = item() if item is not None else cell
    return cell if isinstance(cell, (bool, str)) else float(cell)


def _alike(mine: tuple[object, ...], row: tuple[object, ...], allowed: list[tuple[float, bool]]) -> bool:
    return all(_same(a, b, *how) for a, b, how in zip(mine, row, allowed, strict=True))


def _same(a: object, b: object, away: float, silent: bool) -> bool:  # noqa: FBT001 - spread from a pair
    if b is None and silent and isinstance(a, float):
        return True
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= away * max(1.0, abs(b))
    if isinstance(a, str) and isinstance(b, str):
        return a == b or (a[:10] == b[:10] and a[10:] in ("", "T00:00:00") and b[10:] in ("", "T00:00:00"))
    return a == b and isinstance(a, bool) == isinstance(b, bool)
