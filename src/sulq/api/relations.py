"""Some of a database's rows, asked as a database is: one table, a derived table, rows under a condition, two parts.

What is given back has the named asks, handles for learners, and is what releases take; it is the same on a far curator.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import wraps
from typing import TYPE_CHECKING, Final, NamedTuple, ParamSpec, TypeVar, cast

from sulq.answers.handle_rows import own_rows, rows_of_handles
from sulq.answers.oracle import ColumnChoice, Oracle
from sulq.answers.relation_oracle import MAX_PARTS, RelationOracle, base_of, divided
from sulq.errors import QuestionError
from sulq.language.facts import Facts
from sulq.language.relation import Table
from sulq.language.rowfn import Col, RowFn
from sulq.language.rowfn.base import condition as check_condition
from sulq.language.rowfn.base import walk
from sulq.language.rowfn.operators import Operators
from sulq.sql.conditions import CONDITION_HINT, Condition, condition
from sulq.sql.view import view_rows

if TYPE_CHECKING:
    from sulq.api.named_asks import NamedAsks

P = ParamSpec("P")
T = TypeVar("T")
VIEW: Final = "view"  # what a derived table is called that has no name of its own
NAMES: Final = 'A database is asked for columns by name: db["a"], db[["a", "b"]].'


class Handles(ColumnChoice):
    """Private handles on columns, as learners take them: X or y."""

    __slots__ = ()

    def where(self, condition: Condition) -> Handles:
        """The same columns of the rows for which a condition holds."""
        return Handles(self.names, restricted(self.oracle, own_rows(condition, self.oracle)))


class PeopleSplit(NamedTuple):
    """Two parts of the people, each asked as a database is: `train, test = db.split(test=0.2)`."""

    train: NamedAsks
    test: NamedAsks


def rows_of(asks: NamedAsks, table: str | None, view: str | None) -> NamedAsks:
    """The table that is named, or the derived table of a SELECT; without either the database itself."""
    if table is not None and view is not None:
        raise QuestionError("bad-question", "Name a table or a view, not both.")
    if table is not None:
        return asks.table(table)
    return asks if view is None else asks.view(view)


class RelationAsks(ABC):
    """The asks that give some of the rows, and the handles on columns."""

    _oracle: Oracle

    @property
    @abstractmethod
    def facts(self) -> Facts:
        """Everything public."""

    @abstractmethod
    def asking(self, oracle: Oracle) -> NamedAsks:
        """The same named asks on another Oracle."""

    def table(self, name: str) -> NamedAsks:
        """One table, asked as a database is: `db.table("visits").count(by="year", spend=...)`.

        SQL there sees this table alone. A declared size is that of the first table.
        """
        if not isinstance(name, str) or not name:
            raise QuestionError("bad-question", 'A table is asked for by name: db.table("visits").')
        return self.asking(_table(self._oracle, self.facts, name))

    def view(self, text: str, *, name: str = VIEW) -> NamedAsks:
        """A derived table, asked as a database is: a SELECT of rows, without a released aggregate, ORDER BY or LIMIT.

        Its columns have the domains that follow from the declarations, its rows are at most as many a person as the
        declarations allow; both are `facts` of what is given back.

        Args:
            text: the SELECT: joins, conditions, expressions, UNION ALL, one row for each person by GROUP BY.
            name: what SQL on the derived table calls it.
        """
        if not isinstance(name, str) or not name:
            raise QuestionError("bad-question", "A view is named by a text.")
        found = view_rows(text, self.facts)
        made = RelationOracle(self._oracle, found.relation, name, found.where, found.columns, found.person)
        return self.asking(made)

    def where(self, condition: Condition) -> NamedAsks:
        """The rows of the first table for which a condition holds, asked as a database is."""
        return self.asking(restricted(rows_of_handles(self._oracle, (condition,)), condition))

    def split(self, test: float = 0.2, *, salt: int = 0) -> PeopleSplit:
        """Divide the people by a public hash into those to learn from and those to test by (SR11).

        All rows of a person, in every private table, are in one part. How many people that is, is private. What is
        learned from one part and what is asked of the other cost what they would cost of all rows.

        Args:
            test: the part of the people to test by, between 0 and 1.
            salt: another number divides the people otherwise.
        """
        count, taken = _parts(test)
        if not isinstance(salt, int) or isinstance(salt, bool) or not 0 <= salt < 2**32:
            raise QuestionError("bad-literal", "A salt is a whole number, 0 or more.")
        _divisible(self.facts)
        train, few = divided(self._oracle, (count, taken), salt)
        return PeopleSplit(self.asking(train), self.asking(few))

    def __getitem__(self, names: str | Sequence[str]) -> Handles:
        """Private handles on columns: db["smoker"], db[["age", "income"]], db[["visits.year", "visits.income"]]."""
        listed = (names,) if isinstance(names, str) else tuple(names) if isinstance(names, (list, tuple)) else ()
        if not listed or not all(isinstance(name, str) for name in listed):
            raise QuestionError("bad-question", NAMES)
        facts = self.facts
        own, columns = _of_one_table(listed, facts)
        oracle = self._oracle if own is None else _table(self._oracle, facts, own)
        with naming(columns, oracle):
            return Handles(columns, oracle)


def _table(oracle: Oracle, facts: Facts, name: str) -> Oracle:
    found = facts.table_of(name).schema.table
    return oracle if found == facts.every[0].schema.table else RelationOracle(oracle, Table(found), found)


def restricted(oracle: Oracle, where: Condition) -> Oracle:
    """An Oracle of the first table's rows for which a condition holds."""
    facts = oracle.facts
    rows = condition(where, facts)
    if rows is None:
        raise QuestionError("bad-question", "Rows are chosen by a condition.", CONDITION_HINT)
    with naming((rows,), oracle):
        check_condition(rows, facts.schema)
    return RelationOracle(oracle, Table(), facts.table, rows)


def _divisible(facts: Facts) -> None:
    """Refuse to divide where nothing tells people apart that a neighbour leaves in place (SR11)."""
    private = [table for table in facts.every if not table.public]
    if not private:
        raise QuestionError("needs-position", "Public rows have no people to be divided.", PUBLIC)
    if facts.unit.column is None and not facts.unit.positions_are_public:
        raise QuestionError("needs-position", "Rows without a person column have nothing to be divided by.", DIVIDE)


PUBLIC: Final = "Divide them yourself: they need no protection."
DIVIDE: Final = (
    "Have the owner declare the person's column, unit=Unit(COLUMN, ...), or neighbors replace_one or zero_out, under "
    "which the places of rows are public."
)


def _parts(test: object) -> tuple[int, int]:
    """Into how many parts people are divided, and how many of them are for the test."""
    if isinstance(test, bool) or not isinstance(test, (int, float, Fraction)) or not 0 < test < 1:
        raise QuestionError("bad-literal", "test is a part of the people, between 0 and 1, such as 0.2.")
    part = Fraction(str(test)).limit_denominator(MAX_PARTS)
    if not 0 < part < 1:
        raise QuestionError("bad-literal", f"test is at least 1/{MAX_PARTS}, and that much less than 1.")
    return part.denominator, part.numerator


def _of_one_table(listed: Sequence[str], facts: Facts) -> tuple[str | None, tuple[str, ...]]:
    """The table that all of these columns are of, None for the first, and their names there."""
    found = [_placed(name, facts) for name in listed]
    tables = list(dict.fromkeys(table for table, _ in found))
    if len(tables) > 1:
        first = facts.every[0].schema.table
        named = " and ".join(tables[i] or first for i in range(2))
        raise QuestionError("bad-question", f"These are columns of {named}.", JOIN)
    return tables[0], tuple(column for _, column in found)


JOIN: Final = 'Bring them together in one derived table: db.view("SELECT ... FROM ... JOIN ..."), and take both there.'


def _placed(name: str, facts: Facts) -> tuple[str | None, str]:
    """The table of a column, None for the first, and its name there; of the first a name stands for itself."""
    if facts.schema.find(name) is not None or "." not in name:
        return None, name
    first, *others = facts.every
    whole = [(table, name.removeprefix(f"{table.schema.table}.")) for table in (first, *others)]
    within = [(table, column) for table, column in whole if column != name]
    fitting = [(table, column) for table, column in within if table.schema.find(column) is not None]
    if len(fitting) > 1:
        ways = " or ".join(f"db.table({table.schema.table!r})[{column!r}]" for table, column in fitting)
        raise QuestionError("unknown-column", f"{name[:80]!r} may be one of several columns.", f"Write {ways}.")
    if not within:
        return None, name
    table, column = (fitting or within)[0]
    return None if table is first else table.schema.table, column


# -- the rows that an ask is about

COLUMNS: Final = frozenset({"value", "columns", "by", "y", "x", "success", "paired"})  # a text there is a column's name
ROWS: Final = COLUMNS | {"where"}


def of_table(ask: Callable[P, T]) -> Callable[P, T]:
    """A named ask of the table that is named, or of the rows whose handles it is given.

    Its refusal of an unknown column names the table that has it.
    """
    order = tuple(inspect.signature(ask).parameters)

    @wraps(ask)
    def call(*given: P.args, **named: P.kwargs) -> T:
        table = named.pop("table", None)
        asks = cast("RelationAsks", given[0])
        if table is not None:
            asks = asks.table(cast("str", table))
        roles = [*order[1 : len(given)], *[""] * (len(given) - len(order)), *map(str, named)]
        try:
            told = [_told(asks, role, item) for role, item in zip(roles, (*given[1:], *named.values()), strict=True)]
        except RecursionError:
            raise QuestionError("too-large", "What is asked is nested too deeply.") from None
        own = asks._oracle  # noqa: SLF001 - a method of its own
        rows = rows_of_handles(own, [item for role, item in zip(roles, told, strict=True) if role in ROWS])
        asks = asks if rows is own else asks.asking(rows)
        listed, more = told[: len(given) - 1], dict(zip(named, told[len(given) - 1 :], strict=True))
        with naming(told, rows):
            return cast("Callable[..., T]", ask)(asks, *listed, **more)

    return call


def _told(asks: RelationAsks, role: str, item: object) -> object:
    """An argument as the ask takes it: a handle of several columns as a list, "b.year" as db["b.year"]."""
    if role not in COLUMNS:
        return item
    if isinstance(item, ColumnChoice):
        return list(item.row) if role in ("columns", "x") else item
    if isinstance(item, Mapping):
        return {name: _told(asks, "by", value) for name, value in item.items()}
    if isinstance(item, Iterable) and not isinstance(item, (str, bytes, Operators)):
        several = [_told(asks, "by", each) for each in item]
        return tuple(several) if isinstance(item, tuple) else several
    if not isinstance(item, str) or "." not in item:
        return item
    return item if _placed(item, asks.facts) == (None, item) else asks[item].as_row()


# -- a column that another table has


@contextmanager
def naming(asked: Sequence[object], oracle: Oracle) -> Iterator[None]:
    """Name the table that has a column, where a column is refused as unknown; facts are read in that case alone."""
    try:
        yield
    except QuestionError as error:
        if error.code != "unknown-column":
            raise
        facts = oracle.facts
        tables = base_of(oracle).facts.every
        for name in columns_in(asked):
            found = [table.schema.table for table in tables if table.schema.find(name) is not None]
            if facts.schema.find(name) is None and found:
                raise QuestionError("unknown-column", *elsewhere(name, facts.table, found)) from None
        raise


def elsewhere(name: str, own: str, found: Sequence[str]) -> tuple[str, str]:
    """What is said of a column that other tables have, and what to do."""
    have = f"table {found[0]} has it" if len(found) == 1 else f"tables {', '.join(found)} have it"
    there = f'db.table("{found[0]}"), table="{found[0]}", or SQL'
    return f"No column {name[:80]!r} in {own}; {have}.", f"Ask there: {there}."


def columns_in(asked: Sequence[object]) -> Iterator[str]:
    """The columns that are named in what is asked: by a text, in a list, or in a row function."""
    for item in asked:
        if isinstance(item, str):
            yield item
        elif isinstance(item, (list, tuple)):
            yield from columns_in(item)
        elif isinstance(item, RowFn):
            yield from (fn.name for fn in walk(item) if isinstance(fn, Col))
