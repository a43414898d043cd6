"""Joins and UNION ALL of rows.

Two private relations are joined on the person only. The query says so by equating
the persons; or it equates a table's key with a column that is declared to refer to
it, where the owner's rows were found to agree on the person, so that asking for the
same person changes nothing (SR15). Anything else would pair the rows of two persons and is refused.
A union makes the columns of both sides alike and puts the rows one after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final

from sulq.language.domain import Schema, iso_text, joinable
from sulq.language.kinds import Code, Scalar, Truth, Words
from sulq.language.relation import Select as Columns
from sulq.language.relation import Union
from sulq.language.rowfn import Arith, Case, Choice, Col, Compare, Lit, Moment, RowFn
from sulq.sql.parse.syntax import NUMERIC, Call, Node, Place, SqlRefused, changed, unsupported, walk
from sulq.sql.rows.expressions import RowExpressions
from sulq.sql.rows.row_set import Item, RelationBuilder, RowSet, column_name, refers, shaped
from sulq.sql.rows.values import Cell, Fixed, PersonValue, Term, as_number, cell, constant_fn, same_labels, valued

SAME_PERSON: Final = (
    "Equate the person's columns too; or the owner declares which column refers to which table: references=."
)
UNVALUED: Final = "can be equated with nothing but a person"


@dataclass(slots=True)
class _Sides:
    """Conditions of a join, sorted by what they speak of."""

    person: bool = False
    pairs: list[tuple[Node, Node, Node]] = field(default_factory=list)  # left, right, the condition itself
    right: list[Node] = field(default_factory=list)
    rest: list[Node] = field(default_factory=list)


def replaced(node: Node, place: Callable[[int], int]) -> Node:
    """An expression whose places are others."""
    return changed(node, lambda item: Place(place(item.index), item.at) if isinstance(item, Place) else None)


def sides(node: Node, left: int) -> set[str]:
    """Which of the two sides an expression speaks of."""
    return {"left" if item.index < left else "right" for item in walk(node) if isinstance(item, Place)}


def linked(node: Node, left: int) -> bool:
    """Whether a condition equates something of one side with something of the other."""
    if not isinstance(node, Call) or node.op != "=":
        return False
    return sorted(map(sorted, (sides(arg, left) for arg in node.args))) == [["left"], ["right"]]


def join(builder: RelationBuilder, tables: tuple[RowSet, RowSet], how: str, conditions: list[Node], at: int) -> RowSet:
    """Two relations side by side; places in the conditions count through both."""
    left, right = tables
    count = len(left.items)
    sorted_ = _sorted(left, right, conditions)
    private = not left.shape.public and not right.shape.public
    person = private and (sorted_.person or _keyed(left, right, sorted_))
    if private and not person:
        why = "These two private tables are not joined on the person, so a pair is no one's own"
        raise SqlRefused("person-lost", why, at, SAME_PERSON)
    optional = how == "left"
    if optional:
        if sorted_.rest:
            unsupported("LEFT JOIN with this condition", sorted_.rest[0].at, "Equate columns, or filter in WHERE.")
        express = right.express()
        extra = tuple(express.condition(replaced(node, lambda i: i - count)) for node in sorted_.right)
        right = replace(right, filters=(*right.filters, *extra))
    ours = [(left.express().term(a), a.at or at) for a, _, _ in sorted_.pairs]
    theirs = [(right.express().term(replaced(b, lambda i: i - count)), b.at or at) for _, b, _ in sorted_.pairs]
    valued_ = [[(valued(term, place, UNVALUED), place) for term, place in side] for side in (ours, theirs)]
    first, second = builder.columns(left, valued_[0]), builder.columns(right, valued_[1], optional=optional)
    on: list[tuple[str, str]] = []
    rest = sorted_.rest + ([] if optional else sorted_.right)
    for (a, _, condition), mine, yours in zip(sorted_.pairs, first.beside, second.beside, strict=True):
        if alike(first.rows.schema, mine, second.rows.schema, yours):
            on.append((mine, yours))
        elif optional:
            raise SqlRefused("wrong-kind", "These columns are declared differently", a.at, "Declare them alike.")
        else:
            rest.append(condition)
    found = builder.join(first.rows, second.rows, tuple(on), how, person=person, at=at)
    express = RowExpressions(found.schema, found.bound)
    return replace(found, filters=tuple(express.condition(node) for node in rest))


def _sorted(left: RowSet, right: RowSet, conditions: list[Node]) -> _Sides:
    count = len(left.items)
    found = _Sides()
    for node in conditions:
        if linked(node, count) and isinstance(node, Call):
            a, b = node.args if sides(node.args[0], count) == {"left"} else reversed(node.args)
            terms = left.express().term(a), right.express().term(replaced(b, lambda i: i - count))
            if all(isinstance(term, PersonValue) for term in terms):
                if any(isinstance(term, PersonValue) and term.present is not None for term in terms):
                    unsupported(
                        "A join on the person of an optional row", node.at, "Join on the person of the left table."
                    )
                found.person = True
            else:
                found.pairs.append((a, b, node))
        else:
            (found.right if sides(node, count) == {"right"} else found.rest).append(node)
    return found


def _keyed(left: RowSet, right: RowSet, conditions: _Sides) -> bool:
    """Whether a pair equates a key that is not the person with what is declared to refer to it."""
    places = [(a.index, b.index) for a, b, _ in conditions.pairs if isinstance(a, Place) and isinstance(b, Place)]
    items = [(left.items[i], right.items[j - len(left.items)]) for i, j in places]
    return any(refers(*two) and not any(isinstance(item.term, PersonValue) for item in two) for two in items)


def alike(left: Schema, mine: str, right: Schema, yours: str) -> bool:
    """Whether two columns hold the same kind of value on the same grid."""
    return joinable(left.find(mine), right.find(yours))


MAX_LABELS: Final = 4096


def united(builder: RelationBuilder, left: RowSet, right: RowSet, at: int) -> RowSet:
    """The rows of both, under the names of the first."""
    if len(left.items) != len(right.items):
        raise SqlRefused("sql-syntax", "The parts of a UNION have different numbers of columns", at)
    number = next(builder.numbers)
    ours: list[tuple[str, RowFn]] = []
    theirs: list[tuple[str, RowFn]] = []
    plans: list[tuple[Item, str | None, str, bool]] = []
    for i, (a, b) in enumerate(zip(left.items, right.items, strict=True)):
        person = isinstance(a.term, PersonValue) and isinstance(b.term, PersonValue)
        if person and any(isinstance(x.term, PersonValue) and x.term.present is not None for x in (a, b)):
            unsupported("A UNION of optional persons", at, "Use JOIN in place of LEFT JOIN.")
        one, other = _plain(a.term, left.schema, at, b.term), _plain(b.term, right.schema, at, a.term)
        if one is None or other is None:
            if not person:
                raise SqlRefused("unknown-column", "A person's column that is not declared has no value to unite", at)
            plans.append((a, None, "", True))
            continue
        fns, kind = _alike(one, left.schema, other, right.schema, at)
        name = f"u{number}.{i}.{column_name(one.fn)}"
        ours.append((name, fns[0]))
        theirs.append((name, fns[1]))
        plans.append((a, name, kind, person))
    if not ours:
        ours, theirs = [(f"u{number}.here", Lit(1))], [(f"u{number}.here", Lit(1))]
    relation = Union((Columns(left.filtered(), tuple(ours)), Columns(right.filtered(), tuple(theirs))))
    found = shaped(relation, builder.facts, at)
    items = []
    for item, column, kind, person in plans:
        inner = None if column is None else cell(Col(column), kind, found.schema, at)
        term: Term | None = PersonValue(inner) if person else inner
        items.append(replace(item, term=term or Fixed(None, "null"), key_of=None, refers_to=None))
    personal = {name for (name, fn) in ours if left.identifies(fn)} | {n for (n, fn) in theirs if right.identifies(fn)}
    return RowSet(relation, found, tuple(items), personal=frozenset(personal))


def _plain(term: Term, schema: Schema, at: int, beside: Term) -> Cell | None:
    if isinstance(term, PersonValue):
        return term.cell
    if not isinstance(term, Fixed):
        return term
    if term.value is not None:
        return cell(constant_fn(term, at), term.type, schema, at)
    like = beside.cell if isinstance(beside, PersonValue) else beside
    kind = "float" if like is None or like.type == "null" else like.type
    if isinstance(like, Cell) and isinstance(like.kind, Code):  # a category that is always missing
        return cell(Choice(((Lit(True), None),), like.kind.labels, None), kind, schema, at)  # type: ignore[arg-type]
    if kind in ("date", "timestamp", "text"):
        return unsupported(f"A UNION of NULL with {kind}", at, "Select a column of the same type in both.")
    return cell(constant_fn(Fixed(None, kind), at), kind, schema, at)


def _alike(left: Cell, a: Schema, right: Cell, b: Schema, at: int) -> tuple[tuple[RowFn, RowFn], str]:
    """Two columns with one domain: the hull of their ranges, all labels of both."""
    if left.type in NUMERIC and right.type in NUMERIC and not same_labels(left, right):
        left, right = as_number(left, a, at), as_number(right, b, at)
    kind = "float" if {left.type, right.type} == {"int", "float"} else left.type
    if kind != right.type and not (left.type in NUMERIC and right.type in NUMERIC):
        raise SqlRefused("wrong-kind", f"A UNION of {left.type} with {right.type}", at, "Cast them alike.")
    one, other = left.kind, right.kind
    if isinstance(one, Scalar) and isinstance(other, Scalar):
        return _hull(left, one, right, other), kind
    if isinstance(one, Code) and isinstance(other, Code):
        if one.labels == other.labels:
            return (left.fn, right.fn), kind
        labels = tuple(sorted({*one.labels, *other.labels}, key=str))
        if len(labels) > MAX_LABELS:
            raise SqlRefused("too-large", f"A UNION has at most {MAX_LABELS} categories in a column", at)
        return (_within(left, labels), _within(right, labels)), kind
    if all(isinstance(item.kind, Code) or (isinstance(item.fn, Lit) and kind == "text") for item in (left, right)):
        return _alike(_lonely(left, a, at), a, _lonely(right, b, at), b, at)
    if type(one) is not type(other) or not isinstance(one, (Truth, Words)):
        raise SqlRefused("wrong-kind", "A UNION of a category with free text", at, "Declare them alike.")
    return (left.fn, right.fn), kind


def _lonely(item: Cell, schema: Schema, at: int) -> Cell:
    """A constant text as a category of one label."""
    if not isinstance(item.fn, Lit):
        return item
    return cell(Choice(((Lit(False), None),), (item.fn.value,), 0), item.type, schema, at)


def _hull(left: Cell, one: Scalar, right: Cell, other: Scalar) -> tuple[RowFn, RowFn]:
    """Two numbers under one range and grid; branches that are never taken widen each without changing it."""
    same = (one.lo, one.hi, one.step) == (other.lo, other.hi, other.step)
    if same or one.lo is None or one.hi is None or other.lo is None or other.hi is None:
        return left.fn, right.fn
    ends: list[RowFn] = [_end(end, one.clock) for end in (min(one.lo, other.lo), max(one.hi, other.hi))]
    if one.clock is None and one.step != other.step:
        steps = [step for step in (one.step, other.step) if step is not None]
        ends.append(Lit(float(min(steps))) if len(steps) == 2 else Arith("/", Lit(1), Lit(3)))
    never = tuple((Lit(False), end) for end in ends)
    return Case(never, left.fn), Case(never, right.fn)


def _end(value: Fraction, clock: str | None) -> RowFn:
    if clock is not None:
        return Moment(iso_text(int(value), clock), "date" if clock == "date" else "timestamp")
    number = float(value)
    return Lit(int(number) if number == int(number) and abs(number) <= 2**53 else number)


def _within(item: Cell, labels: tuple[object, ...]) -> RowFn:
    """A category among more labels than its own."""
    own = item.kind.labels if isinstance(item.kind, Code) else ()
    branches = tuple((Compare("==", item.fn, Lit(label)), labels.index(label)) for label in own)  # type: ignore[arg-type]
    return Choice(branches, labels)  # type: ignore[arg-type]
