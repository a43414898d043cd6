"""Oracles of some of a database's rows: those of one table or of a derived one, and those of a part of the people.

Each asks the question of its rows in place of the first table's, and has facts in which they are the only table. A
question stays one of the language, certified and priced like any other; so a mistake here costs accuracy alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Self, cast

from sulq.answers.answer import Answer, Answers
from sulq.answers.budget import BudgetLeft
from sulq.answers.oracle import ForecastingOracle, KeepingOracle, Oracle
from sulq.answers.plan import Part, Plan
from sulq.answers.reuse import name_of
from sulq.errors import QuestionError
from sulq.language.domain import Schema
from sulq.language.facts import Facts
from sulq.language.privacy import Event, Loss
from sulq.language.question import Above, Choose, Holistic, OpenSums, Question, Single, Sums, Together
from sulq.language.relation import Distinct, Join, PerPerson, Relation, Select, Table, Union, Where
from sulq.language.rowfn import Bucket, Lit, RowFn
from sulq.language.shape import DerivedTable, shape

MAX_PARTS: Final = 1000  # into which people are divided, of which one part or several are taken
SALT: Final = 2**48  # of a division: far from those that learners and releases take for their own


@dataclass(frozen=True, slots=True, eq=False)
class RowsOracle(ABC):
    """An Oracle of some of the rows of the one behind it."""

    oracle: Oracle

    @property
    @abstractmethod
    def facts(self) -> Facts:
        """Everything public of these rows: a size that is declared is another's, unless all rows are here (SR6)."""

    @abstractmethod
    def sums_over(self, relation: Relation, where: RowFn | None) -> tuple[Relation, RowFn | None]:
        """What sums over a relation run over behind, and under which condition."""

    def ask(
        self, question: Question, *, spend: Loss | None = None, key: str | None = None, reuse: bool = False
    ) -> Answer | Answers:
        """Pay and answer."""
        return self.oracle.ask(self.translated(question), spend=spend, key=key, reuse=reuse)

    def foresee(self, question: Question, *, spend: Loss | None = None) -> Plan:
        """Price, sensitivity, mechanism and accuracy, in the words of the question as it is asked here; free."""
        plan = self.oracle.foresee(self.translated(question), spend=spend)
        asked = question.questions if isinstance(question, Together) else (question,)
        parts = tuple(map(_part_of, asked, plan.parts))
        return replace(plan, question=question, parts=parts)

    def stored(self, question: Question, *, spend: Loss | None = None) -> Answer | Answers | None:
        """A stored answer that is as accurate, where the Oracle behind keeps any; free."""
        if not isinstance(self.oracle, KeepingOracle):
            return None
        return self.oracle.stored(self.translated(question), spend=spend)

    def afford(self, events: Sequence[Event]) -> tuple[BudgetLeft | None, ...]:
        """What would be left after each of these losses; where nothing is debited, as much as now. Free."""
        if isinstance(self.oracle, ForecastingOracle):
            return self.oracle.afford(events)
        facts = self.oracle.facts
        return tuple(BudgetLeft(facts.remaining, facts.rho) for _ in events)

    def translated(self, question: Question) -> Question:
        """The question of these rows, as the Oracle behind is asked it."""
        if isinstance(question, Together):
            return Together(tuple(self._one(item) for item in question.questions), question.shares)
        return self._one(question)

    def _one(self, question: Single) -> Single:
        match question:
            case Choose() | Above():
                return replace(question, counts=cast("Sums", self._one(question.counts)))
            case Sums() | OpenSums():
                over, where = self.sums_over(question.over, question.where)
                return replace(question, over=over, where=where)
            case Holistic():
                over, where = self.sums_over(question.over, question.where)
                return replace(question, over=cast("Table", over), where=where)  # it refuses any but a table

    def upon(self, oracle: Oracle) -> Self:
        """The same rows of another Oracle."""
        return replace(self, oracle=self.oracle.upon(oracle) if isinstance(self.oracle, RowsOracle) else oracle)

    @property
    def base(self) -> Oracle:
        """The Oracle of the whole database."""
        return self.oracle.base if isinstance(self.oracle, RowsOracle) else self.oracle

    @property
    def scope(self) -> tuple[str, ...]:
        """A text for the rows, equal for the same rows of one database."""
        before = self.oracle.scope if isinstance(self.oracle, RowsOracle) else ()
        return (*before, self.rows_name)

    @property
    @abstractmethod
    def rows_name(self) -> str:
        """A text for what rows these are of those behind."""


@dataclass(frozen=True, slots=True, eq=False)
class RelationOracle(RowsOracle):
    """An Oracle of the rows of one relation, which questions call the first table.

    `where`: a condition on them. `name`: what the relation is called. `columns`: those of a table that are shown, None
    for all. `person`: the column that names the person, where there is one.
    """

    relation: Relation
    name: str
    where: RowFn | None = None
    columns: tuple[str, ...] | None = None
    person: str | None = None

    @property
    def facts(self) -> Facts:
        """Everything public, these rows the only table."""
        facts = self.oracle.facts
        table = self._table(facts)
        same = self.where is None and isinstance(self.relation, Table) and table.schema.table == facts.table
        heavy = tuple(item for item in facts.heavy if table.bound is not None and item.table == table.schema.table)
        return replace(facts, schema=table.schema, size=facts.size if same else None, tables=(table,), heavy=heavy)

    def _table(self, facts: Facts) -> DerivedTable:
        found = shape(self.relation, facts)
        if self.where is not None:
            found = replace(found, fixed=False)
        if not isinstance(self.relation, Table):
            schema = Schema(self.name, found.schema.columns)
            return DerivedTable(schema, public=found.public, person=self.person, found=found)
        own = facts.table_of(self.relation.name)
        shown = [each for each in own.schema.columns if self.columns is None or each[0] in self.columns]
        return DerivedTable(
            Schema(self.name, tuple(shown)),
            own.key,
            own.public,
            own.rows if self.where is None else None,
            own.person if self.person is None else self.person,
            own.references,
            own.graph,
            own.estimators,
            found=found,
            bound=facts.kept_of(own),
        )

    def sums_over(self, relation: Relation, where: RowFn | None) -> tuple[Relation, RowFn | None]:
        """The relation in place of the first table, its condition beside that of the question."""
        if isinstance(relation, Table):
            self._check(relation)
            return self.relation, both(where, self.where)
        return self._replaced(relation), where

    @property
    def rows_name(self) -> str:
        """A text for the relation and its condition."""
        return name_of(Sums((Lit(1),), self.where, over=self.relation))

    def _replaced(self, relation: Relation) -> Relation:
        match relation:
            case Where(source=Table() as table):  # in one: a part of the people is taken of a table's own rows
                self._check(table)
                return Where(
                    self.relation, relation.condition if self.where is None else self.where & relation.condition
                )
            case Table():
                self._check(relation)
                return self.relation if self.where is None else Where(self.relation, self.where)
            case _:
                return with_sources(relation, [self._replaced(item) for item in relation.sources()])

    def _check(self, table: Table) -> None:
        if table.name not in ("", self.name):
            raise QuestionError("unknown-table", f"No table {table.name[:80]!r} is here: {self.name} is the only one.")


@dataclass(frozen=True, slots=True, eq=False)
class PeopleOracle(RowsOracle):
    """An Oracle of a part of the people: all rows of theirs in every private table, and all public rows.

    `part`: a condition on a public hash of the person (SR11). How many people it holds is nobody's to know (SR6).
    """

    part: RowFn
    public: frozenset[str]
    first: str

    @classmethod
    def of(cls, oracle: Oracle, part: RowFn) -> PeopleOracle:
        """Of a database's people those for whom a condition on their hash holds."""
        facts = oracle.facts
        public = frozenset(table.schema.table for table in facts.every if table.public)
        return cls(oracle, part, public, facts.every[0].schema.table)

    @property
    def facts(self) -> Facts:
        """Everything public, without a size."""
        return replace(self.oracle.facts, size=None, heavy=())

    def sums_over(self, relation: Relation, where: RowFn | None) -> tuple[Relation, RowFn | None]:
        """The same tables, of each private one the rows of these people."""
        if isinstance(relation, Table):
            return relation, where if self._is_public(relation) else both(where, self.part)
        return self._parted(relation), where

    @property
    def rows_name(self) -> str:
        """A text for the part."""
        return name_of(Sums((Lit(1),), self.part))

    def _parted(self, relation: Relation) -> Relation:
        match relation:
            case Where(source=Table() as table):
                return relation if self._is_public(table) else Where(table, self.part & relation.condition)
            case Table():
                return relation if self._is_public(relation) else Where(relation, self.part)
            case _:
                return with_sources(relation, [self._parted(item) for item in relation.sources()])

    def _is_public(self, table: Table) -> bool:
        return (table.name or self.first) in self.public


def _part_of(question: Single, part: Part) -> Part:
    """A part of a plan over the rows that its question names."""
    counts = question.counts if isinstance(question, (Choose, Above)) else question
    return replace(part, tally=replace(part.tally, over=counts.over, where=counts.where))


def both(one: RowFn | None, other: RowFn | None) -> RowFn | None:
    """Both of two conditions, where there are any."""
    return one & other if one is not None and other is not None else other if one is None else one


def with_sources(relation: Relation, sources: Sequence[Relation]) -> Relation:
    """The same step over other rows."""
    match relation:
        case Join():
            return replace(relation, left=sources[0], right=sources[1])
        case Union():
            return Union(tuple(sources))
        case Where() | Select() | PerPerson() | Distinct():
            return replace(relation, source=sources[0])
        case Table():
            return relation


def divided(oracle: Oracle, parts: tuple[int, int], salt: int) -> tuple[Oracle, Oracle]:
    """The same rows of two parts of the people: of so many parts all but the first few, and those.

    A division of what is a part already is by another hash, so that it does not go along the same line.
    """
    if isinstance(oracle, RelationOracle):
        rest, few = divided(oracle.oracle, parts, salt)
        return replace(oracle, oracle=rest), replace(oracle, oracle=few)
    depth, behind = 0, oracle
    while isinstance(behind, RowsOracle):
        depth, behind = depth + isinstance(behind, PeopleOracle), behind.oracle
    count, taken = parts
    test = Bucket(count, SALT * (1 + depth) + salt).isin(range(taken))
    return PeopleOracle.of(oracle, ~test), PeopleOracle.of(oracle, test)


def base_of(oracle: Oracle) -> Oracle:
    """The Oracle of the whole database."""
    return oracle.base if isinstance(oracle, RowsOracle) else oracle


def scope_of(oracle: Oracle) -> tuple[str, ...]:
    """A text for the rows of an Oracle, equal for the same rows of one database; of the whole database none."""
    return oracle.scope if isinstance(oracle, RowsOracle) else ()


def same_rows(one: Oracle, other: Oracle) -> bool:
    """Whether two Oracles are of the same rows of one database."""
    return base_of(one) is base_of(other) and scope_of(one) == scope_of(other)
