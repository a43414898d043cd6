"""FROM and the subqueries of WHERE: tables, WITH queries, joins, IN and EXISTS, as rows with named columns.

IN (SELECT ...) and EXISTS ask whether a row has a match: a join with one row for each
match. A subquery of private rows must speak of the same person: then it becomes one row
for each person (and for whatever else is matched), and joining it decides nothing about
anyone else's rows. A public one is joined by the columns it is matched on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sulq.language.facts import Facts
from sulq.language.relation import Distinct, Join, PerPerson, Relation, Where
from sulq.language.relation import Select as Columns
from sulq.language.rowfn import Case, Col, Compare, IsMissing, Lit, Logic, Not, RowFn
from sulq.sql.parse import syntax
from sulq.sql.parse.syntax import Node, SqlRefused, unsupported
from sulq.sql.released.program import ReleasedTable
from sulq.sql.rows.expressions import RowExpressions
from sulq.sql.rows.joins import SAME_PERSON, alike, join, linked, replaced
from sulq.sql.rows.row_set import ColumnName, Item, RelationBuilder, RowSet, find, known, refers, resolve, shaped
from sulq.sql.rows.values import Fixed, PersonValue, Term, cell, valued

MAX_TABLES: Final = 32
FIRST: Final = "Ask for its values first, and write them into the query."
MATCHED: Final = "Match a column of these rows: x IN (SELECT y FROM ...), or EXISTS (... WHERE y = x)."


@dataclass(frozen=True, slots=True)
class Env:
    """The WITH queries that may be named here, the nearest last."""

    tables: tuple[tuple[syntax.Name, syntax.Query, Env], ...] = ()

    def find(self, name: syntax.Name) -> tuple[syntax.Query, Env] | None:
        """The WITH query of a name, and what that one may name."""
        found = ((query, env) for known_name, query, env in reversed(self.tables) if name.fits(known_name.text))
        return next(found, None)

    def extended(self, tables: tuple[tuple[syntax.Name, syntax.Query], ...]) -> Env:
        """With the queries of one WITH: each may name those before it."""
        env = self
        for name, query in tables:
            env = Env((*env.tables, (name, query, env)))
        return env


class Scope:
    """Makes rows of FROM; `query` compiles a subquery."""

    def __init__(self, facts: Facts, query: Callable[[syntax.Query, Env], RowSet | ReleasedTable]) -> None:
        self.facts = facts
        self.builder = RelationBuilder(facts)
        self.query = query
        self.used = 0

    def source(self, node: syntax.Source, env: Env, pool: list[Node]) -> RowSet | ReleasedTable:
        """What FROM gives. Conditions of WHERE (`pool`) that match the tables of a join are taken out of it."""
        if not isinstance(node, syntax.Joined):
            return self._one(node, env)
        chain = self._chain(node)
        return self._cross(chain, env, pool) if len(chain) > 1 else self._joined(node, env, pool)

    def _one(self, node: syntax.Named | syntax.Derived, env: Env) -> RowSet | ReleasedTable:
        self.used += 1
        if self.used > MAX_TABLES:
            raise SqlRefused("too-large", f"A query uses at most {MAX_TABLES} tables", node.at)
        if isinstance(node, syntax.Named):
            return self._named(node, env)
        if isinstance(node.query, (syntax.Joined, syntax.Named)):
            found = self.source(node.query, env, [])
        else:
            found = self.query(node.query, env)
        if node.alias is None and isinstance(node.query, (syntax.Joined, syntax.Named)):
            return found  # a join in parentheses keeps its tables' names
        return _aliased(found, node.alias or syntax.Name(""), node.columns, node.at)

    def _named(self, node: syntax.Named, env: Env) -> RowSet | ReleasedTable:
        inner = None if node.registered else env.find(node.name)
        alias = (node.alias or node.name).text
        if inner is not None:
            return _aliased(self.query(*inner), syntax.Name(alias), node.columns, node.at)
        tables = self.facts.catalogue.tables
        fitting = [table for table in tables if node.name.fits(table.schema.table)]
        exact = [table for table in fitting if table.schema.table == node.name.text]
        if not fitting:
            names = ", ".join(table.schema.table for table in tables)
            why = f"No table {node.name.text[:80]!r} is registered here (there are: {names})"
            raise SqlRefused("unknown-table", why, node.at)
        rows = self.builder.table((exact or fitting)[0], alias, node.at)
        return _aliased(rows, syntax.Name(alias), node.columns, node.at)

    def _chain(self, node: syntax.Source) -> list[syntax.Named | syntax.Derived | syntax.Joined]:
        """The tables of a list with commas (or CROSS JOIN), from left to right."""
        if isinstance(node, syntax.Joined) and node.how == "cross":
            return [*self._chain(node.left), node.right]
        return [node]

    def _cross(self, chain: list[syntax.Named | syntax.Derived | syntax.Joined], env: Env, pool: list[Node]) -> RowSet:
        """Tables with commas: each next one is joined by a condition of WHERE where there is one."""
        several = [self._ranked(self._rows(node, env, pool), i) for i, node in enumerate(chain)]
        found, waiting = several[0], list(zip(chain[1:], several[1:], strict=True))
        while waiting:
            place = next((i for i, (_, rows) in enumerate(waiting) if self._links(found, rows, pool)), 0)
            node, rows = waiting.pop(place)
            found = join(self.builder, (found, rows), "inner", self._links(found, rows, pool), node.at)
            self._take(found, pool)
        return self._reranked(found)

    def _rows(self, node: syntax.Source, env: Env, pool: list[Node]) -> RowSet:
        found = self.source(node, env, pool if isinstance(node, syntax.Joined) else [])
        if isinstance(found, ReleasedTable):
            return unsupported("A released table in a join", node.at, "Ask for it first, or aggregate once.")
        return found

    def _joined(self, node: syntax.Joined, env: Env, pool: list[Node]) -> RowSet:
        inner = node.how == "inner"
        left = self._ranked(self._rows(node.left, env, pool if inner or node.how == "left" else []), 0)
        right = self._ranked(self._rows(node.right, env, []), 1)
        items = (*left.items, *right.items)
        conditions: list[Node] = [resolve(part, items) for part in syntax.conjuncts(node.on)]
        hidden: set[int] = set()
        for name in self._shared(node, left, right):
            one, other = (find(syntax.ColumnRef(name, None, name.at), side.items) for side in (left, right))
            if one is None or other is None:
                why = f"No column {name.text[:80]!r} on both sides of USING"
                raise SqlRefused("unknown-column", why, name.at or node.at)
            kept, gone = (one, len(left.items) + other)
            where = name.at or node.at
            conditions.append(syntax.Call("=", (syntax.Place(kept, where), syntax.Place(gone, where)), at=where))
            hidden.add(kept if node.how == "right" else gone)
        linked_here = self._links(left, right, pool) if inner else []
        conditions += [node for node in linked_here if node not in conditions]
        if node.how == "right":
            count = len(left.items)

            def swapped(place: int) -> int:
                """A column's place where those of the right side come first."""
                return place + len(right.items) if place < count else place - count

            conditions = [replaced(condition, swapped) for condition in conditions]
            found, hidden = join(self.builder, (right, left), "left", conditions, node.at), set(map(swapped, hidden))
        else:
            found = join(self.builder, (left, right), "inner" if inner else "left", conditions, node.at)
        shown = tuple(replace(item, hidden=item.hidden or i in hidden) for i, item in enumerate(found.items))
        found = replace(found, items=shown)
        if inner:
            self._take(found, pool)
        return self._reranked(found)

    def _shared(self, node: syntax.Joined, left: RowSet, right: RowSet) -> list[syntax.Name]:
        """The columns of USING, or of NATURAL JOIN those of the same name."""
        if not node.natural:
            return list(node.using)
        ours, theirs = ([item.name for item in side.items if not item.hidden] for side in (left, right))
        shared = {name.lower() for name in theirs}
        return [syntax.Name(name, at=node.at) for name in ours if name.lower() in shared]

    def _links(self, left: RowSet, right: RowSet, pool: list[Node]) -> list[Node]:
        """The conditions of WHERE that equate something of one side with something of the other."""
        items: tuple[ColumnName, ...] = (*left.items, *right.items)
        found = []
        for node in pool:
            if isinstance(node, syntax.Call) and node.op == "=" and known(node, items):
                looked_up = resolve(node, items)
                if linked(looked_up, len(left.items)):
                    found.append(looked_up)
        return found

    def _take(self, found: RowSet, pool: list[Node]) -> None:
        """Drop the conditions a join has already met: equalities over its columns that linked two sides."""
        for node in list(pool):
            if isinstance(node, syntax.Call) and node.op == "=" and known(node, found.items) and self._met(node, found):
                pool.remove(node)

    def _met(self, node: syntax.Call, found: RowSet) -> bool:
        places = [find(arg, found.items) for arg in node.args if isinstance(arg, syntax.ColumnRef)]
        ranks = [found.items[place].rank for place in places if place is not None]
        return len(ranks) == 2 and ranks[0] != ranks[1]

    def _ranked(self, rows: RowSet, rank: int) -> RowSet:
        return replace(rows, items=tuple(replace(item, rank=rank) for item in rows.items))

    def _reranked(self, rows: RowSet) -> RowSet:
        """The columns in the order of the tables in the text, whatever order they were joined in."""
        return replace(rows, items=tuple(sorted(rows.items, key=lambda item: item.rank)))


def _aliased(
    found: RowSet | ReleasedTable, alias: syntax.Name, columns: tuple[syntax.Name, ...], at: int
) -> RowSet | ReleasedTable:
    """A table under another name, and its columns under others where they are listed."""
    if len(columns) > len(found.items):
        raise SqlRefused("sql-syntax", "An alias lists more columns than there are", at)
    given: Sequence[ColumnName] = found.items
    names = [columns[i].text if i < len(columns) else item.name for i, item in enumerate(given)]
    items = (replace(item, name=name, table=alias.text) for item, name in zip(given, names, strict=True))
    return replace(found, items=tuple(items))  # type: ignore[arg-type]


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
        return [pair for pair in self.pairs if all(isinstance(term, PersonValue) for term in pair[:2])]

    @property
    def others(self) -> list[tuple[Term, Term, int]]:
        """The pairs of values."""
        return [pair for pair in self.pairs if pair not in self.persons]


class SemiJoins:
    """Replaces subqueries in WHERE by joins."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def where(self, rows: RowSet, node: Node, env: Env) -> RowSet:
        """One condition of WHERE with its subqueries, applied to the rows."""
        if isinstance(node, syntax.Subquery) and node.how != "value":
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

    def _joined(
        self, rows: RowSet, node: syntax.Subquery, env: Env, *, keep: bool, unknown: bool
    ) -> tuple[RowSet, RowFn]:
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
            unsupported("A subquery that matches nothing of the outer rows", node.at, MATCHED)
        if private and rows.shape.public:
            unsupported("A private subquery in a query over public rows", node.at, "Name the private table in FROM.")
        for inner, outer, at in match.persons:
            if any(isinstance(term, PersonValue) and term.present is not None for term in (inner, outer)):
                unsupported(
                    "A subquery matched on the person of an optional row", at, "Match the person of the left table."
                )

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
                why = "What is matched is declared differently"
                raise SqlRefused("wrong-kind", why, at, "Declare the columns alike.")
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

    def _match(self, rows: RowSet, node: syntax.Subquery, env: Env) -> Match:
        query = node.query
        if not isinstance(query, syntax.SelectQuery) or not _plain(query):
            return self._whole(rows, node, env)
        env = env.extended(query.tables)
        if query.source is None:
            return unsupported("A subquery without FROM", node.at, "Name its table: SELECT ... FROM.")
        pool = syntax.conjuncts(query.where)
        inner = self.scope.source(query.source, env, pool)
        if isinstance(inner, ReleasedTable):
            return unsupported("A subquery over released values that decides about rows", node.at, FIRST)
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
                unsupported(
                    "IN with this subquery", node.at, "Select one column of its own rows: x IN (SELECT y FROM ...)."
                )
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
        if not isinstance(a, syntax.Place) or not isinstance(b, syntax.Place):
            return pair, False
        person = any(isinstance(x, PersonValue) for x in pair[:2])
        return pair, not person and refers(inner.items[a.index], outer.items[b.index])

    def _correlated(self, condition: Node, inner: RowSet, outer: RowSet) -> tuple[tuple[Term, Term, int], bool]:
        """A condition between the inner and the outer rows: an equality, or it is refused."""
        if isinstance(condition, syntax.Call) and condition.op == "=":
            for a, b in (condition.args, condition.args[::-1]):
                if known(a, inner.items) and not known(b, inner.items):
                    return self._pair(a, inner, b, outer, condition.at)
        return unsupported("A correlated subquery with this condition", condition.at, "Only equalities are rewritten.")

    def _whole(self, rows: RowSet, node: syntax.Subquery, env: Env) -> Match:
        """A subquery with groups or a union of its own: its rows as they are."""
        found = self.scope.query(node.query, env)
        if isinstance(found, ReleasedTable):
            why = "A subquery that must be released first cannot decide about rows"
            raise SqlRefused("sql-unsupported", why, node.at, FIRST)
        if node.item is None or len(found.items) != 1:
            return unsupported("This subquery", node.at, "Match one column: x IN (SELECT y ...).")
        outer = rows.express().term(resolve(node.item, rows.items))
        return Match(found, ((found.items[0].term, outer, node.at),))


def _plain(query: syntax.SelectQuery) -> bool:
    return query.groups is None and query.having is None and query.limit is None and not query.offset


def _value(term: Term, at: int) -> Term:
    found = valued(term, at, "is matched with nothing but a person")
    if isinstance(found, Fixed):
        raise SqlRefused("sql-unsupported", "A constant matched with a subquery is not answered", at, MATCHED)
    return found


def _subqueries(node: Node) -> list[tuple[syntax.Subquery, bool]]:
    """The different subqueries of a condition, and of each whether false and unknown are different there."""
    found: dict[syntax.Subquery, bool] = {}
    front = [(node, False)]
    while front:
        item, matters = front.pop()
        if isinstance(item, syntax.Subquery) and item.how != "value":
            found[item] = found.get(item, False) or matters
        else:
            below = matters or not (isinstance(item, syntax.Call) and item.op in ("and", "or"))
            front += [(part, below) for part in syntax.parts(item)]
    return list(found.items())


def subqueries(node: Node) -> bool:
    """Whether a condition has subqueries to be joined."""
    return bool(_subqueries(node))
