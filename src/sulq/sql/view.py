"""A SELECT of rows as a derived table: the columns it shows, and the relation they are of, before any release."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sulq.errors import QuestionError
from sulq.language.facts import Facts
from sulq.language.relation import Relation, Select, Table, Where
from sulq.language.rowfn import Col, RowFn
from sulq.language.shape import shape
from sulq.sql.compile import SqlCompiler, elsewhere
from sulq.sql.parse import syntax
from sulq.sql.parse.syntax import SqlRefused
from sulq.sql.parse.text import Parsed, parse
from sulq.sql.released.program import ReleasedTable
from sulq.sql.rows.row_set import Item, RowSet
from sulq.sql.rows.values import Cell, Fixed, PersonValue, constant_fn
from sulq.sql.scope import Env

AGGREGATED = "This SELECT aggregates rows of several persons, so it is a released answer and no table of rows"
ASK = "Ask it with db.sql; or aggregate each person's own rows: GROUP BY the person's column."


@dataclass(frozen=True, slots=True, eq=False)
class ViewRows:
    """A derived table.

    `where`: a condition on the relation's rows. `columns`: where the relation is a table of the database's as it
    stands, those of its columns that are shown. `person`: the column that names the person, if it is shown.
    """

    relation: Relation
    where: RowFn | None
    columns: tuple[str, ...] | None
    person: str | None


def view_rows(text: str, facts: Facts, read: Callable[[str], Parsed] = parse) -> ViewRows:
    """Compile a SELECT of rows from public facts alone, or refuse it with a code and the place in the text."""
    if not isinstance(text, str):
        raise QuestionError("bad-question", 'A view is a SELECT: db.view("SELECT a, b FROM t").')
    parsed = read(text)
    if parsed.explain:
        raise QuestionError("bad-question", "A view is a SELECT; EXPLAIN is asked with db.explain.")
    try:
        found = _of(parsed.query, facts)
    except SqlRefused as refused:
        raise elsewhere(refused, facts).located(text) from None
    except RecursionError:
        raise QuestionError("too-large", "The query is nested too deeply.") from None
    shape(found.relation if found.where is None else Where(found.relation, found.where), facts)
    return found


def _of(query: syntax.Query, facts: Facts) -> ViewRows:
    if query.limit is not None or query.offset:
        raise SqlRefused("raw-rows", "LIMIT and OFFSET pick rows by their place", query.at, "Leave them out.")
    if query.order:
        raise SqlRefused("sql-unsupported", "The rows of a view have no order", query.at, "Leave ORDER BY out.")
    rows = SqlCompiler(facts).query(query, Env())
    if isinstance(rows, ReleasedTable):
        raise SqlRefused("sql-unsupported", AGGREGATED, query.at, ASK)
    pairs, person = _columns(rows.items, query.at)
    where = rows.where()
    if isinstance(rows.relation, Table) and all(isinstance(fn, Col) and fn.name == name for name, fn in pairs):
        return ViewRows(rows.relation, where, tuple(name for name, _ in pairs), person)
    _check_person(pairs, person, rows, facts)
    return ViewRows(Select(rows.filtered(), tuple(pairs)), None, None, person)


def _columns(items: tuple[Item, ...], at: int) -> tuple[list[tuple[str, RowFn]], str | None]:
    """The columns that are shown with their row functions, and the name of the one that is the person."""
    pairs: list[tuple[str, RowFn]] = []
    person = None
    for item in (item for item in items if not item.hidden):
        if isinstance(item.term, PersonValue) and item.term.present is None:
            person = item.name
        if item.name.lower() in {name.lower() for name, _ in pairs}:
            why = f"Two columns of this view are called {item.name[:80]!r}"
            raise SqlRefused("bad-question", why, at, "Name one otherwise with AS.")
        fn = _value(item, at)
        if fn is not None:
            pairs.append((item.name, fn))
    if not pairs:
        raise SqlRefused("bad-question", "This view has no declared column", at, "Select one.")
    return pairs, person


def _value(item: Item, at: int) -> RowFn | None:
    """What a column holds; None for the person where that column is not declared."""
    term = item.term.cell if isinstance(item.term, PersonValue) else item.term
    match term:
        case Cell():
            return term.fn
        case Fixed() if term.value is None:
            raise SqlRefused("bad-question", f"Column {item.name[:80]!r} of this view is NULL in every row", at)
        case Fixed():
            return constant_fn(term, at)
        case None:
            return None


def _check_person(pairs: list[tuple[str, RowFn]], person: str | None, rows: RowSet, facts: Facts) -> None:
    """Refuse another column under the person's name: a count of different ones would be of people."""
    own = facts.unit.column
    if rows.shape.owned and own is not None and person != own and own in {name for name, _ in pairs}:
        why = f"Column {own[:80]!r} of this view has the name of the person's column and is another"
        raise QuestionError("bad-question", why, "Name it otherwise with AS.")
