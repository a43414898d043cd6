"""What a relation is, from public facts alone: its columns, whose its rows are, and how many a person can have.

Privacy: a person who joins or leaves alters at most `rows` rows of the relation
(adds or removes them; under replace_one as many go as come). By induction:
- a table keeps at most k rows of a person (SR2), one where the person is its key;
- filtering and computing columns look at one row at a time;
- a join of two private relations pairs rows of one person only: k1 k2 of them, or
  k1 where the right is matched by a key that is unique in it (and k2 the other way
  round), at least k1 where unmatched left rows stay. A join with a public table
  whose key is unique keeps at most one row for each; any other with a public table
  of m rows at most m;
- a person's own groups are no more than the person's rows;
- of different rows no more change than of all rows: each altered row can make one
  value appear or vanish;
- a union holds the rows of its parts, k1 + k2.
How many rows there can be in all follows the same way from how many a table can hold: the number itself is not public,
so nothing that is written down before an answer may follow from it.
How many rows of a relation one other row can meet in a join (`fan_out`): of a public relation all its rows are meant,
of a private one only those of the other row's person. Of the rows that agree with another in some columns
- a table has one where its unique key is among them (checked over all rows), else all;
- a filter has no more than its source, and computed columns as many;
- different rows have one where they agree in every column;
- a person's groups have one where they agree in all keys of the grouping;
- a join has so many as one side has, and to each of them so many as the other has that
  agree in the columns it is joined by as well. Either side may come first, and the smaller
  bound holds; but a left row that found no match has nothing on the right, and agrees with
  no row in a column from there.
Source: docs/theory/relations.md; SR15.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from sulq.errors import QuestionError, SetupError
from sulq.language import domain
from sulq.language.domain import INT_LIMIT, Bool, Category, Column, Int, Real, Schema, Text, joinable, may_be_missing
from sulq.language.facts import Catalogue, TableFacts
from sulq.language.kinds import Code, Kind, Scalar, Truth, Words
from sulq.language.privacy import Unit
from sulq.language.relation import Distinct, Join, PerPerson, Relation, Select, Table, Union, Where
from sulq.language.rowfn import Col, RowFn
from sulq.language.rowfn.base import condition
from sulq.language.rowfn.dates import calendar
from sulq.language.rowfn.vectors import bounded, scalar_grid


def fan_out(relation: Relation, columns: Iterable[str], facts: Catalogue) -> int | None:
    """How many rows of a relation agree with one other row in these columns, at most; None where that is not known."""
    return _FanOut(facts).most(relation, frozenset(columns))


class _FanOut:
    """Goes through every pair of a relation and columns once: a chain of joins would branch at each of them."""

    def __init__(self, facts: Catalogue) -> None:
        self.facts = facts
        self.known: dict[tuple[int, frozenset[str]], int | None] = {}

    def most(self, relation: Relation, names: frozenset[str]) -> int | None:
        """The bound for these columns."""
        place = (id(relation), names)
        if place not in self.known:
            self.known[place] = self._most(relation, names)
        return self.known[place]

    def _most(self, relation: Relation, names: frozenset[str]) -> int | None:
        match relation:
            case Table():
                table = self.facts.table_of(relation.name)
                return 1 if table.key in names else self.facts.rows_of(table)
            case Where():
                return self.most(relation.source, names)
            case Select():
                origins = (fn.name for name, fn in relation.columns if name in names and isinstance(fn, Col))
                return self.most(relation.source, frozenset(origins))
            case Distinct():
                return 1 if names >= self._names(relation) else self.most(relation.source, names)
            case PerPerson():
                return 1 if names >= set(relation.keys) else None
            case Join():
                return self._joined(relation, names)
            case Union():
                return None

    def _joined(self, join: Join, names: frozenset[str]) -> int | None:
        ours, theirs = names & self._names(join.left), names & self._names(join.right)
        on = frozenset(a for a, _ in join.on), frozenset(b for _, b in join.on)
        found = []
        first, then = self.most(join.left, ours), self.most(join.right, theirs | on[1])
        if first is not None and then is not None:
            found.append(first * (max(then, 1) if join.how == "left" else then))
        if join.how == "inner" or theirs:
            first, then = self.most(join.right, theirs), self.most(join.left, ours | on[0])
            if first is not None and then is not None:
                found.append(first * then)
        return min(found, default=None)

    def _names(self, relation: Relation) -> frozenset[str]:
        """The columns of a relation."""
        match relation:
            case Table():
                return frozenset(self.facts.table_of(relation.name).schema.names)
            case Select():
                return frozenset(name for name, _ in relation.columns)
            case PerPerson():
                return frozenset((*relation.keys, *(name for name, _, _ in relation.values)))
            case Join():
                return self._names(relation.left) | self._names(relation.right)
            case Where() | Distinct() | Union():
                return self._names(relation.sources()[0])


MAX_PERSON_ROWS: Final = 10**6
MAX_STORED_ROWS: Final = 2**40  # of one table, checked when rows are kept: terms of 2^22 fit 64 bits (SR17)


@dataclass(frozen=True, slots=True)
class Shape:
    """A relation's public face.

    `rows`: how many of its rows one person can alter; 0 for public rows. `owned`:
    whether each row is one person's, and known to be. `fixed`: whether every row of
    the table is there, with nothing dropped or added. `public`: whether no row is
    anyone's. `most`: how many rows there can be, whatever the tables hold.
    """

    schema: Schema
    rows: int
    owned: bool
    fixed: bool
    public: bool
    most: int


@dataclass(frozen=True, slots=True)
class DerivedTable(TableFacts):
    """A derived table as one of a database's own: what follows from its relation stands for what is declared of others.

    `found`: its shape. `bound`: how many rows of a person are kept in the one table that it is of, where they are.
    """

    found: Shape | None = None  # as fields of the base have defaults; it is always there
    bound: int | None = None

    def __post_init__(self) -> None:
        if self.found is None:
            raise QuestionError("bad-question", "A derived table has a shape.")

    @property
    def made(self) -> Shape:
        """Its shape, with the columns as they are named here."""
        assert self.found is not None  # noqa: S101 - for the type checker
        return replace(self.found, schema=self.schema)

    @property
    def noted(self) -> str:
        """How many of its rows are one person's, at most."""
        rows = self.made.rows
        return "" if self.public else f", at most {rows} row{'s' * (rows != 1)} a person"

    def owner(self, unit: Unit) -> str | None:
        """The column of the person, where each row is one person's."""
        return (self.person or unit.column) if self.made.owned else None

    def kept(self, unit: Unit) -> int | None:
        """How many rows of a person are kept in the table it is of."""
        return self.bound

    def altered(self, unit: Unit) -> int | None:
        """How many of its rows are one person's, at most."""
        return self.made.most if self.public else self.made.rows


def shape(relation: Relation, facts: Catalogue) -> Shape:
    """Work out a relation's shape, or refuse it and say where the person is lost."""
    match relation:
        case Table():
            return _table(facts.table_of(relation.name), facts)
        case Where():
            source = shape(relation.source, facts)
            condition(relation.condition, source.schema)
            return replace(source, fixed=False)
        case Select():
            source = shape(relation.source, facts)
            columns = tuple((name, column_of(fn, source.schema)) for name, fn in relation.columns)
            return replace(source, schema=Schema("", columns))
        case Join():
            return _join(relation, shape(relation.left, facts), shape(relation.right, facts), facts)
        case PerPerson():
            return _per_person(relation, shape(relation.source, facts))
        case Distinct():
            return replace(shape(relation.source, facts), owned=False, fixed=False)
        case Union():
            return _union([shape(item, facts) for item in relation.relations])


def _table(table: TableFacts, facts: Catalogue) -> Shape:
    if isinstance(table, DerivedTable):
        return table.made
    if table.public:
        most = MAX_STORED_ROWS if table.rows is None else table.rows
        return Shape(table.schema, 0, owned=False, fixed=True, public=True, most=most)
    owned = facts.person_of(table) is not None
    return Shape(table.schema, facts.rows_of(table) or 1, owned, fixed=True, public=False, most=MAX_STORED_ROWS)


def _join(join: Join, left: Shape, right: Shape, facts: Catalogue) -> Shape:
    shared = set(left.schema.names) & set(right.schema.names)
    if shared:
        raise QuestionError("bad-question", f"Both sides of a join have a column {min(shared)[:80]!r}.")
    for ours, theirs in join.on:
        _comparable(ours, left.schema, theirs, right.schema)
    beside = right.schema.columns
    if join.how == "left":  # of a left row without a match they are all missing
        beside = tuple((name, may_be_missing(column)) for name, column in beside)
    schema = Schema("", (*left.schema.columns, *beside))
    if join.person:
        if not (left.owned and right.owned):
            raise QuestionError("person-lost", "A side of this join has rows that are no one person's.")
        rows, most = _pairs(join, left, right, facts)
        return Shape(schema, _few(rows), owned=True, fixed=False, public=False, most=most)
    if not right.public and left.public and join.how == "left":
        why = "A public row that is kept where no one's row matches it would say that nobody's does."
        raise QuestionError("person-lost", why, "Use JOIN, or put the private table on the left.")
    if not right.public and not left.public:
        raise QuestionError(
            "person-lost", "Private tables are joined on the person.", "Add the person's column to the condition."
        )
    if right.public:
        private, fan, kept = left, fan_out(join.right, [theirs for _, theirs in join.on], facts), join.how == "left"
    else:
        private, fan, kept = right, fan_out(join.left, [ours for ours, _ in join.on], facts), False
    if fan is None:
        if not private.public:
            raise QuestionError(
                "join-fan-out", "This join with public rows has no bound.", "Join a public table by its declared key."
            )
        fan = right.most
    fan = max(fan, 1) if kept else fan
    fixed = private.fixed and kept and fan == 1
    return Shape(schema, _few(private.rows * fan), private.owned, fixed, private.public, private.most * fan)


def _pairs(join: Join, left: Shape, right: Shape, facts: Catalogue) -> tuple[int, int]:
    """How many pairs one person's rows can make, and all rows: each left row so many as agree with it, or each right.

    Of all rows no fewer can be said: a person with one row on the left may have all of theirs on the right.
    """
    theirs = fan_out(join.right, [name for _, name in join.on], facts)
    theirs = right.rows if theirs is None else min(theirs, right.rows)
    if join.how == "left":
        return left.rows * max(theirs, 1), left.most * max(theirs, 1)
    ours = fan_out(join.left, [name for name, _ in join.on], facts)
    ours = left.rows if ours is None else ours
    return min(left.rows * theirs, right.rows * ours), min(left.most * theirs, right.most * ours)


def _comparable(ours: str, left: Schema, theirs: str, right: Schema) -> None:
    """Join columns hold the same kind of value, on the same grid."""
    a, b = left.find(ours), right.find(theirs)
    for name, column, schema in ((ours, a, left), (theirs, b, right)):
        if column is None:
            known = ", ".join(schema.names)
            raise QuestionError("unknown-column", f"No column {name[:80]!r} to join by (there are: {known}).")
    if not joinable(a, b):
        raise QuestionError(
            "wrong-kind", f"{ours[:80]!r} and {theirs[:80]!r} are declared differently.", "Declare the columns alike."
        )


def _per_person(relation: PerPerson, source: Shape) -> Shape:
    if not source.owned:
        raise QuestionError("person-lost", "These rows are no one person's, so none can be put together by person.")
    columns: list[tuple[str, Column]] = []
    for name in relation.keys:
        column = source.schema.find(name)
        if column is None:
            raise QuestionError("unknown-column", f"No column {name[:80]!r} to group by.")
        columns.append((name, column))
    columns += [(name, _aggregated(how, fn, source)) for name, how, fn in relation.values]
    rows = source.rows if relation.keys else 1
    return Shape(Schema("", tuple(columns)), rows, owned=True, fixed=False, public=False, most=source.most)


def _aggregated(how: str, fn: RowFn | None, source: Shape) -> Column:
    """What an aggregate over at most `rows` rows of a person can be."""
    if fn is None or how in ("count", "distinct"):
        if fn is not None:
            fn.kind(source.schema)
        return Int(0, source.rows)
    if how in ("min", "max") and (isinstance(fn, Col) or isinstance(fn.kind(source.schema), (Code, Words))):
        return column_of(fn, source.schema)  # one of the person's own cells: categories in their order, texts by bytes
    low, high, kind = bounded(fn, source.schema)
    if how == "sum":
        low, high = min(low, low * source.rows), max(high, high * source.rows)
    lattice = kind.step if how != "mean" else None
    return numeric(Scalar(low, high, lattice, clock=kind.clock if how in ("min", "max") else None))


def _union(shapes: list[Shape]) -> Shape:
    first = shapes[0]
    columns = []
    for i, (name, _) in enumerate(first.schema.columns):
        several = []
        for item in shapes:
            if len(item.schema.columns) != len(first.schema.columns):
                raise QuestionError("bad-question", "The parts of a union have different numbers of columns.")
            several.append(item.schema.columns[i][1])
        if any(column.missing for column in several):
            several = [may_be_missing(column) for column in several]
        texts = [column for column in several if isinstance(column, Text)]
        if len(texts) == len(several):
            several = [max(texts, key=lambda text: text.longest)]
        if any(column != several[0] for column in several):
            raise QuestionError(
                "wrong-kind", f"Column {name[:80]!r} of a union is not the same in all its parts.", "Cast them alike."
            )
        columns.append((name, several[0]))
    rows = _few(sum(item.rows for item in shapes))
    owned, public = all(item.owned for item in shapes), all(item.public for item in shapes)
    return Shape(Schema("", tuple(columns)), rows, owned, fixed=False, public=public, most=sum(x.most for x in shapes))


def _few(rows: int) -> int:
    if rows > MAX_PERSON_ROWS:
        raise QuestionError(
            "too-large", f"One person could have {rows} rows here; at most {MAX_PERSON_ROWS} can be hidden."
        )
    return rows


def column_of(fn: RowFn, schema: Schema) -> Column:
    """The column that holds a row function's values; a column by itself stays as it is, on its own grid."""
    kind = fn.kind(schema)
    if isinstance(fn, Col):
        column = schema.find(fn.name)
        if column is not None:
            return column
    if isinstance(kind, Scalar):
        bounded(fn, schema)  # refuses what has no bounds, naming it
        return numeric(kind)
    return _other(kind)


def _other(kind: Kind) -> Column:
    if isinstance(kind, Truth):
        return Bool()
    if isinstance(kind, Words):
        return Text(max(kind.longest, 1))
    if isinstance(kind, Code) and {type(label) for label in kind.labels} in ({str}, {int}):
        return Category(kind.labels)  # type: ignore[arg-type]
    raise QuestionError("wrong-kind", "A column of a derived table is a number, a truth value, a category or text.")


def numeric(kind: Scalar) -> Column:
    """The column of a bounded number: whole where it is known to be, a moment where it is one, else on a grid."""
    if kind.lo is None or kind.hi is None:
        raise QuestionError("unbounded", "A column of a derived table has no bounds.")
    if kind.clock is not None and kind.step is not None and kind.step.denominator == 1:
        # The beginning of the period the first moments lie in may be before every moment: cells there are clamped.
        first, last = calendar(kind.clock)
        ends = (min(max(n, first), last) for n in (math.ceil(kind.lo), math.floor(kind.hi)))
        column = domain.Date if kind.clock == "date" else domain.Timestamp
        return column(*(domain.iso_text(end, kind.clock) for end in ends))
    whole = kind.step is not None and kind.step.denominator == 1
    if whole and max(abs(kind.lo), abs(kind.hi)) <= INT_LIMIT:
        return Int(math.ceil(kind.lo), math.floor(kind.hi))
    step, low, high = scalar_grid(kind.lo, kind.hi, kind.step)
    try:
        return Real(float(low * step), float(high * step), float(step))
    except SetupError:
        raise QuestionError("too-large", "A column of a derived table is out of range.") from None
