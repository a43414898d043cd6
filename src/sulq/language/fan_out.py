"""How many rows of a relation one other row can meet in a join.

Of a public relation all its rows are meant; of a private one only those of the other
row's person. By induction over how the relation is made, of the rows that agree with
another in some columns
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

from collections.abc import Iterable

from sulq.language.facts import Facts, Tables
from sulq.language.relation import Distinct, Join, PerPerson, Relation, Select, Table, Union, Where
from sulq.language.rowfn import Col


def fan_out(relation: Relation, columns: Iterable[str], facts: Facts | Tables) -> int | None:
    """How many rows of a relation agree with one other row in these columns, at most; None where that is not known."""
    return _FanOut(facts).most(relation, frozenset(columns))


class _FanOut:
    """Goes through every pair of a relation and columns once: a chain of joins would branch at each of them."""

    def __init__(self, facts: Facts | Tables) -> None:
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
