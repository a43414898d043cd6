"""Plain DuckDB as the judge: the same SQL over the same bounded rows, and whether a noise-free answer agrees."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from typing import Self

import duckdb
import pandas as pd

from sulq.api.named_asks import NamedAsks
from tests.sql.queries import Query


class Judge:
    """DuckDB over frames, told to count as PostgreSQL does."""

    def __init__(self, tables: Mapping[str, pd.DataFrame]) -> None:
        self._connection = duckdb.connect(config={"threads": 1, "python_enable_replacements": False})
        self._connection.execute("SET integer_division = true")
        self._connection.execute("SET default_null_order = 'nulls_last_on_asc_first_on_desc'")
        for name, frame in tables.items():
            self._connection.register(f"given_{name}", frame)
            self._connection.execute(f'CREATE TABLE "{name}" AS SELECT * FROM "given_{name}"')

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def answer(self, sql: str) -> pd.DataFrame:
        """What DuckDB answers."""
        found = self._connection.execute(sql)
        names = [column[0] for column in found.description]
        return pd.DataFrame(found.fetchall(), columns=pd.Index(names), dtype=object)

    def verdict(self, query: Query, exact: NamedAsks) -> list[str]:
        """In what the noise-free answer to a drawn query differs from DuckDB's."""
        told: dict[str, object] = {}
        if query.nothing is not None:
            told = dict(exact.sql(query.nothing).to_pandas().iloc[0])
        wanted = self.answer(query.judged.format(**told))
        empty = rows_of(self.answer(query.empty.format(**told))) if query.keys else []
        found = exact.sql(query.text).to_pandas()
        nothing = empty[0] if empty else None
        return disagreements(
            found, wanted, keys=query.keys, empty=nothing, ordered=query.ordered, once=query.once, away=query.away
        )


def plain(sql: str, tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """What DuckDB answers over frames."""
    with Judge(tables) as judge:
        return judge.answer(sql)


def disagreements(
    ours: pd.DataFrame,
    theirs: pd.DataFrame,
    *,
    keys: int = 0,
    empty: tuple[object, ...] | None = None,
    empties: pd.DataFrame | None = None,
    ordered: bool = False,
    once: bool = True,
    away: float | Mapping[str, float] = 1e-6,
) -> list[str]:
    """In what an answer differs from DuckDB's, as multisets of rows or in order; empty if in nothing.

    Columns have the same names. Every row of DuckDB's is among ours. All declared keys
    are returned (T24), so ours may also hold groups without rows, but only such: behind
    the first `keys` columns they show exactly what `empty` does, and their keys stand
    nowhere else if each group is there `once` (of several grouping sets a missing key may
    mean two things); or they are among `empties`, rows with their keys. Where both are
    None there may be no other row. `away`: how far a number may lie from its like.
    """
    if list(ours.columns) != list(theirs.columns):
        return [f"columns {list(ours.columns)} against {list(theirs.columns)}"]
    allowed = [_away(away, str(name)) for name in theirs.columns]
    left, right = rows_of(ours), rows_of(theirs)
    if ordered:
        same = len(left) == len(right) and all(_alike(*pair, allowed) for pair in zip(left, right, strict=True))
        return [] if same else [f"{left} against {right}, in order"]
    found = []
    for row in right:
        place = next((i for i, mine in enumerate(left) if _alike(mine, row, allowed)), None)
        if place is None:
            found.append(f"no row {row}")
        else:
            left.pop(place)
    told = {row[:keys] for row in right}
    nothing = None if empty is None else tuple(map(_cell, empty))
    several = [] if empties is None else rows_of(empties)
    equal = set(several)  # nearly all are found here: comparing each with each takes a minute for 8,000 groups
    for mine in left:
        known = nothing is not None and _alike(mine[keys:], nothing, allowed[keys:])
        if not known and mine not in equal and not any(_alike(mine, row, allowed) for row in several):
            found.append(f"a row {mine} that is no empty group, which shows {nothing or several[:1]}")
        elif keys and once and mine[:keys] in told:
            found.append(f"a row {mine} whose group has another")
        told.add(mine[:keys])
    return found


def rows_of(frame: pd.DataFrame) -> list[tuple[object, ...]]:
    """The rows, each value spelled in one way."""
    return [tuple(map(_cell, row)) for row in frame.itertuples(index=False, name=None)]


def told(wanted: pd.DataFrame, nothing: pd.DataFrame) -> pd.DataFrame:
    """The rows wanted, with what we document in place of an aggregate over nothing.

    That is what it shows in every group of a database without rows; a key shows something else in each.
    """
    made = wanted.copy()
    for i in range(len(wanted.columns)):
        shown = {row[i] for row in rows_of(nothing)}
        if len(shown) == 1 and None not in shown:
            made.isetitem(i, [shown.copy().pop() if row[i] is None else row[i] for row in rows_of(wanted)])
    return made


def _away(away: float | Mapping[str, float], name: str) -> float:
    return away.get(name, 1e-6) if isinstance(away, Mapping) else away


def _cell(cell: object) -> object:
    """One spelling of a value, whatever library it comes from."""
    if cell is None or cell is pd.NaT or cell is pd.NA or (isinstance(cell, float) and math.isnan(cell)):
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


def _alike(mine: tuple[object, ...], row: tuple[object, ...], allowed: Sequence[float]) -> bool:
    return all(_same(a, b, away) for a, b, away in zip(mine, row, allowed, strict=True))


def _same(a: object, b: object, away: float) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= away * max(1.0, abs(b))
    if isinstance(a, str) and isinstance(b, str):
        return a == b or (a[:10] == b[:10] and a[10:] in ("", "T00:00:00") and b[10:] in ("", "T00:00:00"))
    return a == b and isinstance(a, bool) == isinstance(b, bool)
