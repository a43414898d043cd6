"""IN (SELECT ...) and EXISTS: whether a row has a match, as a join with one row for each match.

A subquery of private rows must speak of the same person: then it becomes one row
for each person (and for whatever else is matched), and joining it decides nothing
about anyone else's rows. A public one is joined by the columns it is matched on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sulq.language.relation import Distinct, Join, PerPerson, Relation, Where
from sulq.language.relation import Select as Columns
from sulq.language.rowfn import Case, Col, Compare, IsMissing, Lit, Logic, Not, RowFn
from sulq.sql.parse.syntax import (
    Call,
    Node,
    Place,
    Query,
    SelectQuery,
    SqlRefused,
    Subquery,
    conjuncts,
    parts,
    unsupported,
)
from sulq.sql.released.program import ReleasedTable
from sulq.sql.rows.expressions import RowExpressions
from sulq.sql.rows.joins import SAME_PERSON, alike
from sulq.sql.rows.row_set import Item, RowSet, known, refers, resolve, shaped
from sulq.sql.rows.values import Fixed, PersonValue, Term, cell, valued
from sulq.sql.scope import Env, Scope


@dataclass(frozen=True, slots=True)
class Match:
    """A subquery's rows, and what of them must equal what of the outer rows; the last pair of IN is its own value.

    `keyed`: a pair follows a declared reference, the owner's word that both rows are
    one person's. `within`: one that says which rows IN looks through does so.
    """

    rows: RowSet
    pairs: tuple[tuple[Term, Term, int], ...]  # inner, outer, where
    keyed: bool = False
    within: bool = False

    @property
    def persons(self) -> list[tuple[Term, Term, int]]:
        """The pairs of persons."""
        return [pair for pair in self.pairs if isinstance(pair[0], PersonValue) and isinstance(pair[1], PersonValue)]

    @property
    def others(self) -> list[tuple[Term, Term, int]]:
        """The pairs of values."""
        return [
            pair for pair in self.pairs if not (isinstance(pair[0], PersonValue) and isinstance(pair[1], PersonValue))
        ]


class SemiJoins:
    """Replaces subqueries in WHERE by joins; `query` compiles those with groups of their own."""

    def __init__(self, scope: Scope, query: Callable[[Query, Env], RowSet | ReleasedTable]) -> None:
        self.scope = scope
        self.query = query

    def where(self, rows: RowSet, node: Node, env: Env) -> RowSet:
        """One condition of WHERE with its subqueries, applied to the rows."""
        if isinstance(node, Subquery) and node.how != "value":
            return self._joined(rows, node, env, keep=False, unknown=False)[0]
        asked = _subqueries(node)
        count = len(rows.items)
        for inner, unknown in asked:
            rows, truth = self._joined(rows, inner, env, keep=True, unknown=unknown)
            # What was found is a column for a while, or the next subquery's join would not hand it on.
            found = Item("", term=cell(truth, "bool", rows.schema, inner.at), hidden=True)
            rows = replace(rows, items=(*rows.items, found))
        truths = [item.term for item in rows.items[count:]]
        rows = replace(rows, items=rows.items[:count])
        bound = {resolve(inner, rows.items): truth for (inner, _), truth in zip(asked, truths, strict=True)}
        express = RowExpressions(rows.schema, rows.bound | bound)
        return replace(rows, filters=(*rows.filters, express.condition(resolve(node, rows.items))))

    def _joined(self, rows: RowSet, node: Subquery, env: Env, *, keep: bool, unknown: bool) -> tuple[RowSet, RowFn]:
        """The rows beside their matches, and whether there is one; with `unknown`, IN is unknown where SQL has it so.

        x IN (S) is true where a value of S equals x; else false where S is empty, unknown
        where x or a value of S is missing, and false. In a WHERE false and unknown are one
        as long as nothing but AND and OR stands above, and then only the first is asked.
        """
        match = self._match(rows, node, env)
        self._check(rows, match, node)
        others = match.others
        mine = self.scope.builder.columns(rows, [(_value(outer, at), at) for _, outer, at in others])
        relation, there = self._beside(mine.rows.relation, mine.beside, match, keep=keep)
        if unknown and node.how == "in" and match.pairs[-1] not in match.persons:
            if not match.rows.shape.public and not match.persons and not match.within:
                why = "Whether this IN is false or unknown hangs on what is missing in other persons' rows"
                raise SqlRefused("person-lost", why, node.at, "Write NOT EXISTS (SELECT ... WHERE x = y) instead.")
            item, where = Col(mine.beside[-1]), mine.beside[:-1]
            relation, some = self._beside(relation, where, match, keep=True)
            relation, gap = self._beside(relation, where, match, keep=True, missing=True)
            told = Logic("and", (Not(IsMissing(item)), Not(gap)))
            there = Compare("==", Case(((there, Lit(1)), (Logic("or", (Not(some), told)), Lit(0)))), Lit(1))
        return replace(mine.rows, relation=relation, shape=shaped(relation, self.scope.facts, node.at)), there

    def _check(self, rows: RowSet, match: Match, node: Node) -> None:
        """Refuse a subquery whose rows would decide about another person's."""
        private = not match.rows.shape.public
        if private and not rows.shape.public and not match.persons and not match.keyed:
            why = "This subquery of private rows does not speak of the same person"
            raise SqlRefused("person-lost", why, node.at, SAME_PERSON)
        if not match.pairs:
            unsupported("A subquery that matches nothing of the outer rows", node.at)
        if private and rows.shape.public:
            unsupported("A private subquery in a query over public rows", node.at)
        for inner, outer, at in match.persons:
            if any(isinstance(term, PersonValue) and term.present is not None for term in (inner, outer)):
                unsupported("A subquery matched on the person of an optional row", at)

    def _beside(
        self, relation: Relation, ours: tuple[str, ...], match: Match, *, keep: bool, missing: bool = False
    ) -> tuple[Relation, RowFn]:
        """A relation joined with one row for each match of its columns, and whether there is one.

        `ours` are matched with as many of the subquery's values; `missing`: only its rows without the last are.
        """
        builder, facts, private = self.scope.builder, self.scope.facts, not match.rows.shape.public
        values = [(_value(inner, at), at) for inner, _, at in match.others]
        theirs = builder.columns(replace(match.rows, items=()), values, only=True)
        schema = shaped(relation, facts, 0).schema
        for (_, _, at), mine, other in zip(match.others, ours, theirs.beside, strict=False):
            if not alike(schema, mine, theirs.rows.schema, other):
                raise SqlRefused(
                    "wrong-kind", "What is matched is declared differently", at, "Declare the columns alike."
                )
        source: Relation = theirs.rows.relation
        if missing:
            source = Where(source, IsMissing(Col(theirs.beside[-1])))
        names = tuple(dict.fromkeys(theirs.beside[: len(ours)]))
        on = tuple(zip(ours, theirs.beside, strict=False))
        marker = f"m{next(builder.numbers)}"
        there = Col(marker)
        inner: Relation
        if private:
            inner = PerPerson(source, names, ((marker, "count", None),))
        elif names:
            columns = tuple((name, Col(name)) for name in names)
            inner = Columns(Distinct(Columns(source, columns)), (*columns, (marker, Lit(True))))
        else:  # any row at all will do: all of them are one, and equal to what stands in every outer row
            one = f"{marker}.one"
            relation = Columns(relation, (*((name, Col(name)) for name in schema.names), (one, Lit(True))))
            inner, on = Distinct(Columns(source, ((marker, Lit(True)),))), ((one, marker),)
        joined = Join(relation, inner, on, "left" if keep else "inner", private)
        return joined, Not(IsMissing(there))

    def _match(self, rows: RowSet, node: Subquery, env: Env) -> Match:
        query = node.query
        if not isinstance(query, SelectQuery) or not _plain(query):
            return self._whole(rows, node, env)
        env = env.extended(query.tables)
        if query.source is None:
            return unsupported("A subquery without FROM", node.at)
        pool = conjuncts(query.where)
        inner = self.scope.source(query.source, env, pool)
        if isinstance(inner, ReleasedTable):
            return unsupported("A subquery over released values that decides about rows", node.at)
        pairs: list[tuple[Term, Term, int]] = []
        within = keyed = False
        for condition in pool:
            if known(condition, inner.items):
                inner = self.where(inner, condition, env)
                continue
            pair, along = self._correlated(condition, inner, rows)
            pairs.append(pair)
            within = within or along
        if node.item is not None:
            if len(query.items) != 1 or not known(query.items[0][0], inner.items):
                unsupported("IN with this subquery", node.at)
            pair, along = self._pair(query.items[0][0], inner, node.item, rows, node.at)
            pairs.append(pair)
            keyed = along
        return Match(inner, tuple(pairs), within or keyed, within)

    def _pair(
        self, here: Node, inner: RowSet, there: Node, outer: RowSet, at: int
    ) -> tuple[tuple[Term, Term, int], bool]:
        """Two expressions that must agree, and whether one is declared to refer to the other."""
        a, b = resolve(here, inner.items), resolve(there, outer.items)
        pair = (inner.express().term(a), outer.express().term(b), at)
        plain = isinstance(a, Place) and isinstance(b, Place) and not any(isinstance(x, PersonValue) for x in pair[:2])
        return pair, plain and refers(inner.items[a.index], outer.items[b.index])  # type: ignore[union-attr]

    def _correlated(self, condition: Node, inner: RowSet, outer: RowSet) -> tuple[tuple[Term, Term, int], bool]:
        """A condition between the inner and the outer rows: an equality, or it is refused."""
        if isinstance(condition, Call) and condition.op == "=":
            for a, b in (condition.args, condition.args[::-1]):
                if known(a, inner.items) and not known(b, inner.items):
                    return self._pair(a, inner, b, outer, condition.at)
        return unsupported("A correlated subquery with this condition", condition.at, "Only equalities are rewritten.")

    def _whole(self, rows: RowSet, node: Subquery, env: Env) -> Match:
        """A subquery with groups or a union of its own: its rows as they are."""
        found = self.query(node.query, env)
        if isinstance(found, ReleasedTable):
            why = "A subquery that must be released first cannot decide about rows"
            raise SqlRefused(
                "sql-unsupported", why, node.at, "Ask for its values first, and write them into the query."
            )
        if node.item is None or len(found.items) != 1:
            return unsupported("This subquery", node.at, "Match one column: x IN (SELECT y ...).")
        outer = rows.express().term(resolve(node.item, rows.items))
        return Match(found, ((found.items[0].term, outer, node.at),))


def _plain(query: SelectQuery) -> bool:
    return query.groups is None and query.having is None and query.limit is None and not query.offset


def _value(term: Term, at: int) -> Term:
    found = valued(term, at, "is matched with nothing but a person")
    if isinstance(found, Fixed):
        raise SqlRefused("sql-unsupported", "A constant matched with a subquery is not answered", at)
    return found


def _subqueries(node: Node) -> list[tuple[Subquery, bool]]:
    """The different subqueries of a condition, and of each whether false and unknown are different there."""
    found: dict[Subquery, bool] = {}
    front = [(node, False)]
    while front:
        item, matters = front.pop()
        if isinstance(item, Subquery) and item.how != "value":
            found[item] = found.get(item, False) or matters
        else:
            below = matters or not (isinstance(item, Call) and item.op in ("and", "or"))
            front += [(part, below) for part in parts(item)]
    return list(found.items())


def subqueries(node: Node) -> bool:
    """Whether a condition has subqueries to be joined."""
    return bool(_subqueries(node))
