"""IN (SELECT ...) and EXISTS: whether a row has a match, as a join with one row for each match.

A subquery of private rows must speak of the same person: then it becomes one row
for each person (and for whatever else is matched), and joining it decides nothing
about anyone else's rows. A public one is joined by the columns it is matched on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sulq.sql.express import Express
from sulq.sql.joins import alike
from sulq.sql.names import known, refers, resolve
from sulq.sql.refused import Refused, unsupported
from sulq.sql.released import Released
from sulq.sql.rows import Rows, shaped
from sulq.sql.scope import Env, Scope
from sulq.sql.syntax import Call, Exists, Node, Place, Query, Select, Within, conjuncts, parts
from sulq.sql.values import Fixed, Person, Term, cell
from sulq.terms.relation import Distinct, Join, PerPerson, Relation
from sulq.terms.relation import Select as Columns
from sulq.terms.rowfn import Col, Compare, IsMissing, Lit, Not, case
from sulq.terms.rowfn.scalar import RowFn


@dataclass(frozen=True, slots=True)
class Match:
    """A subquery's rows, and what of them must equal what of the outer rows."""

    rows: Rows
    pairs: tuple[tuple[Term, Term, int], ...]  # inner, outer, where
    keyed: bool = False  # a declared key is matched: the owner's word that both rows are one person's


class SemiJoins:
    """Replaces subqueries in WHERE by joins; `simple` makes the rows of a subquery's FROM and WHERE."""

    def __init__(self, scope: Scope, query: Callable[[Query, Env], Rows | Released]) -> None:
        self.scope = scope
        self.query = query

    def where(self, rows: Rows, node: Node, env: Env) -> Rows:
        """One condition of WHERE with its subqueries, applied to the rows."""
        negated = isinstance(node, Call) and node.op == "not" and isinstance(node.args[0], (Within, Exists))
        subject = node.args[0] if negated and isinstance(node, Call) else node
        if isinstance(subject, (Within, Exists)):
            found, there, item = self._joined(rows, subject, env, keep=negated)
            filters = list(found.filters)
            if negated:
                filters.append(Not(there))
                if item is not None:
                    filters.append(Not(IsMissing(item)))
            return replace(found, filters=tuple(filters))
        bound: dict[Node, Term] = {}
        for inner in _subqueries(node):
            rows, there, item = self._joined(rows, inner, env, keep=True)
            truth = there if item is None else Compare("==", case((Not(IsMissing(item)), there)), Lit(1))
            bound[_placed(inner, rows)] = cell(truth, "bool", rows.schema, inner.at)
        express = Express(rows.schema, rows.bound | bound)
        return replace(rows, filters=(*rows.filters, express.condition(_placed(node, rows))))

    def _joined(self, rows: Rows, node: Within | Exists, env: Env, *, keep: bool) -> tuple[Rows, RowFn, RowFn | None]:
        """The rows beside their matches, whether there is one, and the value that must be known for it."""
        match = self._match(rows, node, env)
        persons = [pair for pair in match.pairs if isinstance(pair[0], Person) and isinstance(pair[1], Person)]
        others = [pair for pair in match.pairs if pair not in persons]
        private = not match.rows.shape.public
        if private and not rows.shape.public and not persons and not match.keyed:
            why = "This subquery of private rows does not speak of the same person"
            raise Refused("person-lost", why, node.at, "Match it on the person's column.")
        if not others and not persons:
            unsupported("A subquery that matches nothing of the outer rows", node.at)
        if private and rows.shape.public:
            unsupported("A private subquery in a query over public rows", node.at)
        for inner, outer, at in persons:
            if any(isinstance(term, Person) and term.present is not None for term in (inner, outer)):
                unsupported("A subquery matched on the person of an optional row", at)
        maker = self.scope.maker
        mine = maker.columns(rows, [(_value(outer, at), at) for _, outer, at in others])
        theirs = maker.columns(replace(match.rows, items=()), [(_value(inner, at), at) for inner, _, at in others])
        for (_, _, at), ours, other in zip(others, mine.beside, theirs.beside, strict=True):
            if not alike(mine.rows.schema, ours, theirs.rows.schema, other):
                raise Refused("wrong-kind", "What is matched is declared differently", at, "Declare the columns alike.")
        names = tuple(dict.fromkeys(theirs.beside))
        marker = f"{names[0] if names else 'm'}.{next(maker.numbers)}"
        inner_relation: Relation
        if private:
            inner_relation = PerPerson(theirs.rows.relation, names, ((marker, "count", None),))
        else:
            marked = (*((name, Col(name)) for name in names), (marker, Lit(True)))
            inner_relation = Columns(Distinct(Columns(theirs.rows.relation, marked[:-1])), marked)
        how = "left" if keep else "inner"
        relation = Join(
            mine.rows.relation, inner_relation, tuple(zip(mine.beside, theirs.beside, strict=True)), how, private
        )
        found = replace(mine.rows, relation=relation, shape=shaped(relation, self.scope.facts, node.at))
        item = Col(mine.beside[-1]) if isinstance(node, Within) and others and not persons else None
        return found, Not(IsMissing(Col(marker))), item

    def _match(self, rows: Rows, node: Within | Exists, env: Env) -> Match:
        query = node.query
        if not isinstance(query, Select) or not _plain(query):
            return self._whole(rows, node, env)
        env = env.extended(query.tables)
        if query.source is None:
            return unsupported("A subquery without FROM", node.at)
        pool = conjuncts(query.where)
        inner = self.scope.source(query.source, env, pool)
        if isinstance(inner, Released):
            return unsupported("A subquery over released values that decides about rows", node.at)
        pairs: list[tuple[Term, Term, int]] = []
        keyed = False
        for condition in pool:
            if known(condition, inner.items):
                inner = self.where(inner, condition, env)
                continue
            pair, along = self._correlated(condition, inner, rows)
            pairs.append(pair)
            keyed = keyed or along
        if isinstance(node, Within):
            if len(query.items) != 1 or not known(query.items[0][0], inner.items):
                unsupported("IN with this subquery", node.at)
            pair, along = self._pair(query.items[0][0], inner, node.item, rows, node.at)
            pairs.append(pair)
            keyed = keyed or along
        return Match(inner, tuple(pairs), keyed)

    def _pair(self, here: Node, inner: Rows, there: Node, outer: Rows, at: int) -> tuple[tuple[Term, Term, int], bool]:
        """Two expressions that must agree, and whether one of them is a declared key."""
        a, b = resolve(here, inner.items), resolve(there, outer.items)
        pair = (inner.express().term(a), outer.express().term(b), at)
        plain = isinstance(a, Place) and isinstance(b, Place) and not any(isinstance(x, Person) for x in pair[:2])
        return pair, plain and refers(inner.items[a.index], outer.items[b.index])  # type: ignore[union-attr]

    def _correlated(self, condition: Node, inner: Rows, outer: Rows) -> tuple[tuple[Term, Term, int], bool]:
        """A condition between the inner and the outer rows: an equality, or it is refused."""
        if isinstance(condition, Call) and condition.op == "=":
            for a, b in (condition.args, condition.args[::-1]):
                if known(a, inner.items) and not known(b, inner.items):
                    return self._pair(a, inner, b, outer, condition.at)
        return unsupported("A correlated subquery with this condition", condition.at, "Only equalities are rewritten.")

    def _whole(self, rows: Rows, node: Within | Exists, env: Env) -> Match:
        """A subquery with groups or a union of its own: its rows as they are."""
        found = self.query(node.query, env)
        if isinstance(found, Released):
            why = "A subquery that must be released first cannot decide about rows"
            raise Refused("sql-unsupported", why, node.at, "Ask for its values first, and write them into the query.")
        if isinstance(node, Exists) or len(found.items) != 1:
            return unsupported("This subquery", node.at, "Match one column: x IN (SELECT y ...).")
        outer = rows.express().term(resolve(node.item, rows.items))
        return Match(found, ((found.items[0].term, outer, node.at),))


def _plain(query: Select) -> bool:
    return query.groups is None and query.having is None and query.limit is None and not query.offset


def _value(term: Term, at: int) -> Term:
    if isinstance(term, Person):
        if term.cell is None:
            why = "The person's column is not declared, so it is matched with nothing but a person"
            raise Refused("unknown-column", why, at)
        return term.cell
    if isinstance(term, Fixed):
        raise Refused("sql-unsupported", "A constant matched with a subquery is not answered", at)
    return term


def _subqueries(node: Node) -> list[Within | Exists]:
    found: list[Within | Exists] = []
    front = [node]
    while front:
        item = front.pop()
        if isinstance(item, (Within, Exists)):
            found.append(item)
        else:
            front += parts(item)
    return found


def _placed(node: Node, rows: Rows) -> Node:
    """The expression with its names looked up, subqueries included as they are."""
    return resolve(node, rows.items)


def subqueries(node: Node) -> bool:
    """Whether a condition has subqueries to be joined."""
    return bool(_subqueries(node))
