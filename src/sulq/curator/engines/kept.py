"""The SELECT of kept rows: a source's cells as integers on their grids, heavy persons' rows chosen by SR2."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field

from sulq.curator.engines import grammar, read_sql
from sulq.curator.engines.source import POSITION, Registered
from sulq.terms.domain import Category, Int, Real, Schema, Text
from sulq.terms.privacy import Unit

PERSON = "h"
PLACE = "p"
SPELLED = 512  # so many categories are stored as short texts beside their codes


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """A relation of kept rows: its SQL, the constants bound in it, and how each column stands in it."""

    relation: str
    parameters: dict[str, object]
    names: dict[str, str]  # declared column -> c0, c1, ...
    doubles: frozenset[str]  # those of them that hold their whole numbers as doubles
    shifts: dict[str, int]  # those whose codes do not count from 0
    rows: int | None  # an upper bound on their number
    frame: object = field(default=None, repr=False)
    spelled: dict[str, str] = field(default_factory=dict)  # those whose codes are there as texts too


def names(schema: Schema) -> dict[str, str]:
    """The generated names of the columns: no name of the owner's or the analyst's is ever part of SQL (T71)."""
    return {name: f"c{i}" for i, name in enumerate(schema.names)}


def spelled(schema: Schema) -> dict[str, str]:
    """The columns of categories whose codes a prepared file holds as texts too.

    DuckDB keeps short texts as a dictionary and groups by its entries, faster than by integers (docs/benchmarks.md).
    """
    columns = zip(names(schema).values(), (column for _, column in schema.columns), strict=True)
    return {
        name: f"d{name[1:]}"
        for name, column in columns
        if isinstance(column, Category) and len(column.values) <= SPELLED
    }


def types(schema: Schema) -> list[tuple[str, list[str]]]:
    """Names and values of the types that long lists of categories need."""
    found = []
    for i, (_, column) in enumerate(schema.columns):
        if isinstance(column, Category) and len(column.values) > read_sql.FEW:
            found.append((f"categories{i}", [str(value) for value in column.values]))
    return found


def select(registered: Registered, *, stored: bool, spell: bool = False, needed: Container[str] | None = None) -> Rows:
    """The kept rows of a source, to be stored in the narrowest integers, or else read for one question.

    `spell` adds the codes of categories as texts. `needed` names the columns the question looks at; where rows are
    chosen by all columns, all are read.
    """
    source, schema, unit = registered.source, registered.schema, registered.unit
    integers = stored or unit.column is not None
    every = needed is None or unit.column is not None or unit.neighbors == "zero_out"
    columns = names(schema)
    parameters: dict[str, object] = {}
    plain, value, code, doubles = ["1 AS one"], ["one"], ["one"], set()
    shifts: dict[str, int] = {}
    read = [name for name in schema.names if every or name in (needed or ())]
    for i, (name, column) in enumerate(schema.columns):
        if name not in read:
            continue
        cell, item = source.columns[name]
        plain.append(f"{read_sql.trimmed(item) if read_sql.needs_trim(column, cell) else item} AS a{i}")
        cell, item = read_sql.value(column, cell, f"a{i}")
        value.append(f"{item} AS b{i}")
        code.append(f"{read_sql.code(column, cell, f'b{i}', i, exact=integers)} AS {columns[name]}")
        if not integers and isinstance(column, (Int, Real)) and (cell == "number" or isinstance(column, Real)):
            doubles.add(columns[name])
        if not integers and read_sql.shift(column, cell):
            shifts[columns[name]] = read_sql.shift(column, cell)
        if isinstance(column, Category) and f"$categories{i}" in code[-1]:  # DuckDB refuses what it does not need
            parameters[f"categories{i}"] = [str(value) for value in column.values]
    extra: list[str] = []
    if unit.column is not None:
        cell, item = source.columns[unit.column]
        plain.append(f"{item} AS a")
        value.append(f"{read_sql.person('text' if cell == 'text' else cell, 'a')} AS u")
        extra.append("u")
    if unit.positions_are_public:
        plain.append(POSITION)
        value.append(POSITION)
        extra.append(POSITION)
    layers = f"(SELECT {', '.join(value)} FROM (SELECT {', '.join(plain)} FROM {source.relation}))"
    inner = f"SELECT {', '.join([*code, *extra])} FROM {layers}"
    where = _present(columns, unit)
    outer = _outer(schema, unit, stored=stored, read=read)
    if spell:
        outer += [f"lpad(CAST({code} AS VARCHAR), 3, '0') AS {text}" for code, text in spelled(schema).items()]
    query = f"SELECT {', '.join(outer)} FROM ({inner}){where}"
    if unit.column is not None:
        parameters["key"] = registered.key.hex()
        # Equal rows are interchangeable, but where a place can be asked for it must be the same one every time.
        order = f"{_order(schema)}, {POSITION}" if unit.positions_are_public else _order(schema)
        query += f" QUALIFY row_number() OVER (PARTITION BY u ORDER BY {order}) <= {unit.rows}"
    return Rows(f"({query}) AS kept", parameters, columns, frozenset(doubles), shifts, source.rows, source.frame)


def _present(columns: dict[str, str], unit: Unit) -> str:
    """Rows without a person are dropped, and under zero_out those that were blanked."""
    conditions = []
    if unit.column is not None:
        conditions.append("u <> ''")
    if unit.neighbors == "zero_out":
        conditions.append("(" + " OR ".join(f"{name} IS NOT NULL" for name in columns.values()) + ")")
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def _outer(schema: Schema, unit: Unit, *, stored: bool, read: Container[str]) -> list[str]:
    columns = [] if stored else ["one"]
    for i, (name, column) in enumerate(schema.columns):
        if name not in read:
            continue
        narrow = stored and not isinstance(column, Text)
        columns.append(f"TRY_CAST(c{i} AS {grammar.smallest(column)}) AS c{i}" if narrow else f"c{i}")
    if unit.column is not None:
        columns.append(f"{read_sql.person_hash('u')} AS {PERSON}")
    elif unit.positions_are_public:
        columns.append(f"{read_sql.person_hash(f'CAST({POSITION} AS VARCHAR)')} AS {PERSON}")
    if unit.positions_are_public:
        columns.append(f"CAST({POSITION} AS BIGINT) AS {PLACE}")
    return columns


def _order(schema: Schema) -> str:
    """A keyed hash of the person and all declared columns; with its length no text passes for another column (SR2)."""
    parts = ["$key", "u"]
    for i, (_, column) in enumerate(schema.columns):
        text = f"concat(strlen(c{i}), ':', c{i})" if isinstance(column, Text) else f"CAST(c{i} AS VARCHAR)"
        parts.append(f"CASE WHEN c{i} IS NULL THEN '{grammar.MISSING}' ELSE {text} END")
    return f"sha256(concat_ws(chr(31), {', '.join(parts)}))"
