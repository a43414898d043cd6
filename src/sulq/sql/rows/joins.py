"""Joins: which conditions match rows, and whether the two rows are one person's.

Two private relations are joined on the person only. The query says so by equating
the persons; or it equates a table's key with a column that is declared to refer to
it, where the owner's rows were found to agree on the person, so that asking for the
same person changes nothing (SR15). Anything else would pair the rows of two persons and is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from sulq.language.domain import Schema, joinable
from sulq.sql.parse.refusal import SqlRefused, unsupported
from sulq.sql.parse.syntax import Call, Node, Place, changed, walk
from sulq.sql.rows.expressions import RowExpressions
from sulq.sql.rows.names import refers
from sulq.sql.rows.row_set import Maker, RowSet
from sulq.sql.rows.values import PersonValue, valued

SAME_PERSON: Final = (
    "Equate the person's columns too; or the owner declares which column refers to which table: references=."
)
UNVALUED: Final = "can be equated with nothing but a person"


@dataclass(frozen=True, slots=True)
class _Sides:
    """Conditions of a join, sorted by what they speak of."""

    person: bool
    pairs: tuple[tuple[Node, Node, Node], ...]  # left, right, the condition itself
    right: tuple[Node, ...]
    rest: tuple[Node, ...]


def shift(node: Node, by: int) -> Node:
    """An expression whose places are counted from elsewhere."""
    return changed(node, lambda item: Place(item.index + by, item.at) if isinstance(item, Place) else None)


def sides(node: Node, left: int) -> set[str]:
    """Which of the two sides an expression speaks of."""
    return {"left" if item.index < left else "right" for item in walk(node) if isinstance(item, Place)}


def linked(node: Node, left: int) -> bool:
    """Whether a condition equates something of one side with something of the other."""
    if not isinstance(node, Call) or node.op != "=":
        return False
    return sorted(map(sorted, (sides(arg, left) for arg in node.args))) == [["left"], ["right"]]


class Joins:
    """Joins laid out relations."""

    def __init__(self, maker: Maker) -> None:
        self.maker = maker

    def join(self, left: RowSet, right: RowSet, how: str, conditions: list[Node], at: int) -> RowSet:
        """Two relations side by side; places in the conditions count through both."""
        count = len(left.items)
        sorted_ = self._sorted(left, right, conditions)
        private = not left.shape.public and not right.shape.public
        person = private and (sorted_.person or self._keyed(left, right, sorted_))
        if private and not person:
            why = "These two private tables are not joined on the person, so a pair is no one's own"
            raise SqlRefused("person-lost", why, at, SAME_PERSON)
        if how == "left":
            if sorted_.rest:
                unsupported("LEFT JOIN with this condition", sorted_.rest[0].at, "Equate columns, or filter in WHERE.")
            express = right.express()
            extra = tuple(express.condition(shift(node, -count)) for node in sorted_.right)
            right = replace(right, filters=(*right.filters, *extra))
        pairs = [] if sorted_.person and not sorted_.pairs else list(sorted_.pairs)
        ours = [(left.express().term(a), a.at or at) for a, _, _ in pairs]
        theirs = [(right.express().term(shift(b, -count)), b.at or at) for _, b, _ in pairs]
        first = self.maker.columns(left, [(valued(term, place, UNVALUED), place) for term, place in ours])
        second = self.maker.columns(
            right, [(valued(term, place, UNVALUED), place) for term, place in theirs], optional=how == "left"
        )
        on: list[tuple[str, str]] = []
        rest = list(sorted_.rest) + ([] if how == "left" else list(sorted_.right))
        for (a, _, condition), mine, yours in zip(pairs, first.beside, second.beside, strict=True):
            if alike(first.rows.schema, mine, second.rows.schema, yours):
                on.append((mine, yours))
            elif how == "left":
                raise SqlRefused("wrong-kind", "These columns are declared differently", a.at, "Declare them alike.")
            else:
                rest.append(condition)
        found = self.maker.join(first.rows, second.rows, tuple(on), how, person=person, at=at)
        express = RowExpressions(found.schema, found.bound)
        return replace(found, filters=tuple(express.condition(node) for node in rest))

    def _sorted(self, left: RowSet, right: RowSet, conditions: list[Node]) -> _Sides:
        count = len(left.items)
        person, pairs, ours, rest = False, [], [], []
        for node in conditions:
            where = sides(node, count)
            if linked(node, count) and isinstance(node, Call):
                a, b = node.args if sides(node.args[0], count) == {"left"} else reversed(node.args)
                one, other = left.express().term(a), right.express().term(shift(b, -count))
                if isinstance(one, PersonValue) and isinstance(other, PersonValue):
                    if one.present is not None or other.present is not None:
                        unsupported("A join on the person of an optional row", node.at)
                    person = True
                else:
                    pairs.append((a, b, node))
            elif where == {"right"}:
                ours.append(node)
            else:
                rest.append(node)
        return _Sides(person, tuple(pairs), tuple(ours), tuple(rest))

    def _keyed(self, left: RowSet, right: RowSet, conditions: _Sides) -> bool:
        """Whether a pair equates a key that is not the person with what is declared to refer to it."""
        count = len(left.items)
        for a, b, _ in conditions.pairs:
            if not isinstance(a, Place) or not isinstance(b, Place):
                continue
            one, other = left.items[a.index], right.items[b.index - count]
            if isinstance(one.term, PersonValue) or isinstance(other.term, PersonValue):
                continue
            if refers(one, other):
                return True
        return False


def alike(left: Schema, mine: str, right: Schema, yours: str) -> bool:
    """Whether two columns hold the same kind of value on the same grid."""
    return joinable(left.find(mine), right.find(yours))
