"""The SELECT of kept rows: a source's cells as integers on their grids, heavy persons' rows chosen by SR2.

How cells are read is proposed here; whose a row is and which rows are kept is written by the kernel (kernel/keep.py).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import cast

from sulq.compile.statements import kept_table
from sulq.compile.statements.kept_table import OWNER, names, spelled
from sulq.kernel import keep
from sulq.language.domain import Category, Column, Int, Real, Schema
from sulq.language.rowfn.writer import KeptRows
from sulq.sources import cell_reading, tables
from sulq.sources.cell_reading import Cell
from sulq.sources.decode.files import literal
from sulq.sources.decode.person import Form, Person
from sulq.sources.source import RegisteredTable

HEAVY = "heavy"
LOOKED_UP = 1_000_000  # from here on columns of a source are codes of categories, by the column's place
USUAL = 1_000_000  # and of the first layer what a cell may usually be
TEXT = "u"
ORDER = "r"
OWNER_DIGITS = 32  # of a person's name in a table that is prepared piece by piece: 128 bits, so no two are alike


def lists(registered: RegisteredTable) -> list[tuple[str, list[str]]]:
    """Names and values of the tables in which long lists of categories are looked up."""
    return [
        (f"categories{registered.first + i}", [str(value) for value in cast("Category", column).values])
        for i, column in _looked_up(registered)
    ]


def looked_up(registered: RegisteredTable) -> set[str]:
    """The columns whose codes are found in tables of their values."""
    return {registered.schema.names[i] for i, _ in _looked_up(registered)}


def _looked_up(registered: RegisteredTable) -> list[tuple[int, Column]]:
    found = []
    for i, (name, column) in enumerate(() if registered.source.coded else registered.schema.columns):
        cell, _ = cell_reading.value(column, *registered.source.columns[name])
        found += [(i, column)] if cell_reading.looked_up(column, cell) else []
    return found


def _records(registered: RegisteredTable, *plain: str) -> str:
    """A source's records, each once, beside it the codes of cells that are looked up in this first layer.

    Privacy: a value stands once in its list, so a record stays one, whatever its cells are, and no other is looked at.
    """
    found = registered.source.relation
    for i, column in _looked_up(registered):
        if f"s{LOOKED_UP + i} AS a{i}" not in plain:
            continue
        first, value, cell = _cell(registered, i)
        text = cell_reading.listed(cast("Category", column), cell, f"b{i}")
        layers = f"(SELECT *, {value} FROM (SELECT *, {', '.join(first)} FROM {found}))"
        texts = f"(SELECT * EXCLUDE (a{i}, b{i}), {text} AS t{i} FROM {layers})"
        codes = f"categories{registered.first + i}"
        found = (
            f"(SELECT * EXCLUDE (t{i}, item{i}) FROM {texts} LEFT JOIN "
            f"(SELECT item AS item{i}, code AS s{LOOKED_UP + i} FROM {codes}) ON t{i} = item{i})"
        )
    return found


def _cell(registered: RegisteredTable, place: int) -> tuple[tuple[str, ...], str, Cell]:
    """A column's first two layers of projections, and what its cells are then."""
    name, column = registered.schema.columns[place]
    cell, item = registered.source.columns[name]
    usual = {f"a{USUAL * i + place}": sql for i, sql in enumerate(cell_reading.usual(column, cell, item), 1)}
    plain = {f"a{place}": cell_reading.plainly(column, cell, item)} | usual
    cell, item = cell_reading.value(column, cell, f"a{place}", tuple(usual))
    return tuple(f"{sql} AS {a}" for a, sql in plain.items()), f"{item} AS b{place}", cell


def people(tables: Sequence[RegisteredTable]) -> KeptRows | None:
    """Every person of a dataset, and how many rows of each table the person has; None without persons.

    Persons are told apart by their canonical text, or by their own whole numbers where all are such. The numbers of
    rows are called n0, n1, ... by the table's place.
    """
    private = {place: item for place, item in enumerate(tables) if item.unit.column is not None}
    if not private:
        return None
    whole = whole_persons(tables)
    readings = {place: reading_of(item, ((), (), ()), whole=whole) for place, item in private.items()}
    frames = {name: frame for item in private.values() for name, frame in item.frames.items()}
    return KeptRows(keep.people(readings), frames=frames)


def heavy(tables: Sequence[RegisteredTable], people: str) -> str:
    """Of each table, by its place `t`, how many persons have more rows than are kept, and how many others have any.

    Rows are counted before any is left out; under zero_out blanked ones that still name their person count too.
    """
    parts = []
    for place, item in enumerate(tables):
        most, n = item.unit.rows, f"n{place}"
        more, less = f"{n} > {most}", f"{n} BETWEEN 1 AND {most}"
        if item.unit.column is None:
            more = less = "false"
        counts = f"count(*) FILTER (WHERE {more}) AS heavy, count(*) FILTER (WHERE {less}) AS others"
        parts.append(f"SELECT {place} AS t, {counts} FROM {people}")
    return " UNION ALL ".join(parts)


def whole_persons(tables: Sequence[RegisteredTable]) -> bool:
    """Whether persons are whole numbers in all tables, and compared as such."""
    return all(_person(item).form == "whole" for item in tables if item.unit.column is not None)


def _person(registered: RegisteredTable) -> Person:
    """How the person is read."""
    return registered.source.person or Person("nothing", "NULL", "a")


def form(registered: RegisteredTable) -> Form:
    """What the column of persons holds."""
    return _person(registered).form


def inexact(registered: RegisteredTable) -> KeptRows | None:
    """One row, if there is any, whose person cannot be told exactly; None where all can."""
    source, (kind, item, _) = registered.source, _person(registered)
    if kind not in tables.UNSURE:
        return None
    found = f"(SELECT 1 FROM (SELECT {item} AS a FROM {source.relation}) WHERE {tables.unfit_sql(kind, 'a')} LIMIT 1)"
    return KeptRows(found, frames=registered.frames)


def twice(registered: RegisteredTable) -> KeptRows | None:
    """One value of the table's unique column that stands in more than one row, over all rows of the source.

    None where no column was declared unique. The person is compared by canonical
    text, another column by what it is clamped and rounded to: by this it is joined.
    """
    name, source = registered.unique, registered.source
    if name is None:
        return None
    parameters: dict[str, object] = {}
    if name == registered.unit.column:
        _, cell, text = _person(registered)
        item = f"SELECT {text} AS k FROM (SELECT {cell} AS a FROM {source.relation})"
        there = "k <> ''"
    else:
        plain, value, code = _layers(registered, registered.schema.names.index(name), parameters, exact=True)
        records = f"SELECT {', '.join(plain)} FROM {_records(registered, *plain)}"
        item = f"SELECT {code} AS k FROM (SELECT {value} FROM ({records}))"
        there = "k IS NOT NULL"
    found = f"(SELECT k FROM ({item}) WHERE {there} GROUP BY k HAVING count(*) > 1 LIMIT 1)"
    return KeptRows(found, parameters, frames=registered.frames)


def astray(registered: RegisteredTable, column: str, other: RegisteredTable) -> KeptRows:
    """One row, if there is any, that refers by this column to a row of another person's, over all rows of both sources.

    Compared by what is joined: clamped and rounded values, and persons by canonical text.
    """
    parameters: dict[str, object] = {}
    sides = [_named(registered, column, parameters), _named(other, other.unique or "", parameters)]
    pairs = f"({sides[0]}) AS mine JOIN ({sides[1]}) AS theirs ON mine.k = theirs.k"
    found = f"(SELECT 1 FROM {pairs} WHERE mine.u <> theirs.u AND mine.u <> '' AND theirs.u <> '' LIMIT 1)"
    return KeptRows(found, parameters, frames=registered.frames | other.frames)


def _named(registered: RegisteredTable, name: str, parameters: dict[str, object]) -> str:
    """A column's codes `k` beside the persons' texts `u`."""
    plain, value, code = _layers(registered, registered.schema.names.index(name), parameters, exact=True)
    _, cell, text = _person(registered)
    inner = f"SELECT {', '.join(plain)}, {cell} AS a FROM {_records(registered, *plain)}"
    return f"SELECT {code} AS k, {text} AS u FROM (SELECT {value}, a FROM ({inner}))"


def _layers(
    registered: RegisteredTable, place: int, parameters: dict[str, object] | None, *, exact: bool
) -> tuple[tuple[str, ...], str, str]:
    """A column's three layers of projections, without the last one's name.

    Its list of categories is bound, or without parameters written out.
    """
    _, column = registered.schema.columns[place]
    plain, value, cell = _cell(registered, place)
    if cell_reading.looked_up(column, cell):
        plain, value = (f"s{LOOKED_UP + place} AS a{place}",), f"a{place} AS b{place}"
    listed = registered.first + place
    code = cell_reading.code(column, cell, f"b{place}", listed, exact=exact)
    if isinstance(column, Category) and f"$categories{listed}" in code:  # DuckDB refuses what it does not need
        values = [str(value) for value in column.values]
        if parameters is None:
            code = code.replace(f"$categories{listed}", f"[{', '.join(map(literal, values))}]")
        else:
            parameters[f"categories{listed}"] = values
    return plain, value, code


def select(
    registered: RegisteredTable,
    *,
    stored: bool,
    spell: bool = False,
    tables: Sequence[RegisteredTable] = (),
    only: Collection[str] | None = None,
    view: str = "",
) -> KeptRows:
    """The kept rows of a source, to be stored in the narrowest integers, or else read anew for each question.

    Args:
        registered: The table.
        stored: Whether they are to be stored, each with its owner's number.
        spell: Whether to add the codes of categories as texts.
        tables: All tables of the dataset, which share the owners' numbers; the table itself where it is alone.
        only: The columns that are wanted, where rows are kept without looking at others.
        view: By which name the source's records are read, if there is one; then without hashes and places.
    """
    source, schema, unit = registered.source, registered.schema, registered.unit
    integers = stored or unit.column is not None
    # A view has no parameters: what is the owner's own, categories and the key's digits, is written out there.
    parameters: dict[str, object] | None = {} if stored else None
    layers = layers_of(registered, parameters, integers=integers, only=only)
    reading = reading_of(registered, layers, whole=stored and whole_persons(tables or (registered,)))
    reading = replace(reading, source=view, places=False) if view else reading
    called = names(schema)
    wanted = {called[name] for name in schema.names if only is None or name in only}
    query = keep.keep(
        reading,
        [(name, kind) for name, kind in stored_types(schema) if name in wanted],
        unit.rows,
        spelled={text: code for code, text in spelled(schema).items()} if spell else {},
        blanked=unit.neighbors == "zero_out",
        key="$key" if stored else literal(registered.key.hex()),
        stored=stored,
    )
    if unit.column is not None and parameters is not None:
        parameters["key"] = registered.key.hex()
    doubles, shifts = set(), {}
    for name, column in () if integers else schema.columns:  # as they stand, which costs no arithmetic
        if called[name] not in wanted:
            continue
        cell, _ = cell_reading.value(column, *source.columns[name])
        if isinstance(column, (Int, Real)) and (cell == "number" or isinstance(column, Real)):
            doubles.add(called[name])
        if cell_reading.shift(column, cell):
            shifts[called[name]] = cell_reading.shift(column, cell)
    return KeptRows(query, parameters or {}, called, frozenset(doubles), shifts, frames=registered.frames)


def every(registered: RegisteredTable) -> KeptRows:
    """All rows of a source that have a person, as they are stored; which of them count is left to the caller.

    Beside the columns stand, where rows have a person: the person's text, what orders a person's rows (SR2), the
    person's public hash, and a name of the person that says nothing to whoever lacks the key.
    """
    schema, unit = registered.schema, registered.unit
    parameters: dict[str, object] = {}
    reading = reading_of(registered, layers_of(registered, parameters, integers=True), whole=False)
    columns = stored_types(schema)
    shown = keep.outer(reading, columns, stored=True)
    if unit.column is not None:
        parameters["key"] = registered.key.hex()
        owner = f"substr(sha256(concat_ws(chr(31), $key, 'owner', u)), 1, {OWNER_DIGITS})"
        shown += [f"u AS {TEXT}", f"{keep.ordered(columns, '$key')} AS {ORDER}", f"{owner} AS {OWNER}"]
    where = keep.present(reading, columns, blanked=unit.neighbors == "zero_out")
    query = f"(SELECT {', '.join(shown)} FROM {keep.cells(reading)}{where}) AS every"
    return KeptRows(query, parameters, names(schema))


def stored_types(schema: Schema) -> list[tuple[str, str]]:
    """What the columns are stored as."""
    columns = zip(names(schema).values(), schema.columns, strict=True)
    return [(name, kept_table.smallest(column)) for name, (_, column) in columns]


Layers = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]


def reading_of(registered: RegisteredTable, layers: Layers, *, whole: bool) -> keep.Reading:
    """How records are read as cells, and whose they are."""
    unit = registered.unit
    person = None if unit.column is None else _person(registered)[1:]
    return keep.Reading(_records(registered, *layers[0]), layers, person, whole, unit.positions_are_public)


def layers_of(
    registered: RegisteredTable,
    parameters: dict[str, object] | None,
    *,
    integers: bool,
    only: Collection[str] | None = None,
) -> Layers:
    """A source's cells as codes: the layers of projections."""
    stored = [(i, name) for i, name in enumerate(registered.schema.names) if only is None or name in only]
    layers = [_layers(registered, i, parameters, exact=integers) for i, _ in stored]
    plain = ("1 AS one", *(sql for each in layers for sql in each[0]))
    value = ("one", *(each[1] for each in layers))
    return plain, value, ("one", *(f"{each[2]} AS c{i}" for each, (i, _) in zip(layers, stored, strict=True)))
