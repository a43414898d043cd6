"""Conditions as people write them: a text in SQL, a row function, or a column that is true or false.

Every ask that takes `where` comes here, so a condition means the same wherever it stands.
"""

from __future__ import annotations

from sulq.answers.oracle import ColumnChoice
from sulq.errors import QuestionError
from sulq.language.facts import Facts, TableFacts
from sulq.language.rowfn import Col, RowFn
from sulq.sql.parse.condition import WHAT, parse_condition
from sulq.sql.parse.syntax import ColumnRef, Node, Place, SqlRefused, walk
from sulq.sql.rows.expressions import RowExpressions
from sulq.sql.rows.row_set import Item, find, resolve, type_of
from sulq.sql.rows.values import PersonValue, Term, cell

Condition = RowFn | ColumnChoice | str | None
"""What `where` may be; None keeps every row."""
CONDITION_HINT = "Write where=\"age > 40 AND city = 'Lod'\", or where=(col('age') > 40) & (col('city') == 'Lod')."


def condition(where: Condition, facts: Facts, table: str = "") -> RowFn | None:
    """A condition on a table's rows as a row function; `table` is its name, by default the only or first one.

    Args:
        where: a text in our SQL, `year = 1984`; a row function, `col("year") == 1984`; a column of true and false,
            `db["smoker"]`; or None.
        facts: public facts of the tables.
        table: whose rows.

    Raises:
        QuestionError: A text that is not read, or speaks of no declared column: with the place in the text.
    """
    if not isinstance(where, str):
        return row_condition(where)
    try:
        return _read(parse_condition(where), facts, table)
    except SqlRefused as refused:
        raise refused.located(where, WHAT) from None
    except RecursionError:
        raise QuestionError("too-large", "The condition is nested too deeply.") from None


def row_condition(where: object) -> RowFn | None:
    """A condition that is no text: a row function, a handle of one column, or None."""
    if where is None or isinstance(where, RowFn):
        return where
    if isinstance(where, ColumnChoice):
        return where.as_row()
    why = f"A condition is a text or built from columns, not of type {type(where).__name__}."
    raise QuestionError("bad-question", why, CONDITION_HINT)


def row_function(value: object, facts: Facts) -> object:
    """A text read as a condition and a handle as its column; anything else as it is, for whoever asked to check."""
    return condition(value, facts) if isinstance(value, (str, ColumnChoice)) else value


def _read(node: Node, facts: Facts, table: str) -> RowFn:
    found = facts.table_of(table)
    items = _items(found, None if found.public else facts.person_of(found))
    for part in walk(node):
        if isinstance(part, ColumnRef) and find(part, items) is None:
            _elsewhere(part, facts, found.schema.table)
    bound: dict[Node, Term] = {Place(i): item.term for i, item in enumerate(items)}
    return RowExpressions(found.schema, bound).condition(resolve(node, items))


def _items(table: TableFacts, person: str | None) -> list[Item]:
    """The columns of a table's rows, as a query has them in its WHERE."""
    schema = table.schema
    cells = [(name, cell(Col(name), type_of(column), schema, 0)) for name, column in schema.columns]
    terms: list[tuple[str, Term]] = [(name, PersonValue(one) if name == person else one) for name, one in cells]
    if person is not None and person not in schema.names:
        terms.append((person, PersonValue()))
    return [Item(name, schema.table, term=term) for name, term in terms]


def _elsewhere(column: ColumnRef, facts: Facts, own: str) -> None:
    """Refuse a column of another table by naming that table; what is in none is refused as anywhere."""
    others = [item.schema for item in facts.every if item.schema.table != own]
    named = [one for one in others if column.table is None or column.table.fits(one.table)]
    having = [one.table for one in named if any(column.name.fits(name) for name in one.names)]
    if having:
        why = f"{column.name.text[:80]!r} is a column of {having[0]!r}, and these rows are of {own!r}"
        remedy = f"Ask of {having[0]!r}, or join the tables in a whole query: db.sql('SELECT ...')."
        raise SqlRefused("unknown-column", why, column.at, remedy)
