"""Oracles on which columns are others, or rows fewer: what is asked of them is asked of the database in other words.

A learner reads a column's bounds in its declaration and nowhere else. So a column that was clipped or scaled is
declared anew, and every question is asked of the expression that it is; rows are left out by a condition of every
question. No learner need know of either.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import replace

from sulq.answers.answer import Answer, Answers
from sulq.answers.oracle import ColumnChoice, Oracle
from sulq.answers.plan import Plan
from sulq.answers.relation_oracle import same_rows
from sulq.errors import QuestionError
from sulq.language.domain import Column, Schema
from sulq.language.facts import Facts
from sulq.language.privacy import Loss
from sulq.language.question import Above, Choose, Holistic, OpenSums, Question, Sums, Together
from sulq.language.relation import Table
from sulq.language.rowfn import Col, Logic, RowFn

Derived = tuple[RowFn, Column]  # what a column is in the database, and what it is declared as


class ReworkedOracle:
    """An Oracle that asks another one in other words."""

    def __init__(self, oracle: Oracle) -> None:
        self.source = oracle

    @property
    def facts(self) -> Facts:
        """Everything public."""
        return self.source.facts

    def ask(
        self, question: Question, *, spend: Loss | None = None, key: str | None = None, reuse: bool = False
    ) -> Answer | Answers:
        """Pay and answer."""
        return self.source.ask(self._of(question), spend=spend, key=key, reuse=reuse)

    def foresee(self, question: Question, *, spend: Loss | None = None) -> Plan:
        """Price, sensitivity, mechanism and accuracy; free."""
        return self.source.foresee(self._of(question), spend=spend)

    def _of(self, question: Question) -> Question:
        raise NotImplementedError


class DerivedOracle(ReworkedOracle):
    """An Oracle on which some columns are expressions of the database's, each declared as what it then is."""

    def __init__(self, oracle: Oracle, columns: Mapping[str, Derived]) -> None:
        super().__init__(oracle)
        self.derived = dict(columns)

    @property
    def facts(self) -> Facts:
        """Everything public, the derived columns declared anew."""
        facts = self.source.facts
        tables = tuple(
            replace(table, schema=self._declared(table.schema)) if i == 0 else table
            for i, table in enumerate(facts.tables)
        )
        return replace(facts, schema=self._declared(facts.schema), tables=tables)

    def _declared(self, schema: Schema) -> Schema:
        known = {name: column for name, (_, column) in self.derived.items()}
        return Schema(schema.table, tuple((name, known.get(name, column)) for name, column in schema.columns))

    def _of(self, question: Question) -> Question:
        found = substituted(question, {name: row for name, (row, _) in self.derived.items()})
        assert isinstance(found, Question)  # noqa: S101 - for the type checker
        return found


def substituted(value: object, columns: Mapping[str, RowFn], known: dict[int, object] | None = None) -> object:
    """A question or row function with expressions in the place of columns; what occurs twice stays one object."""
    known = {} if known is None else known
    if isinstance(value, tuple):
        if not value or isinstance(value[0], (int, float, str)):
            return value
        items = tuple(substituted(item, columns, known) for item in value)
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    if not isinstance(value, (RowFn, Question)):
        return value
    if isinstance(value, Col):
        return columns.get(value.name, value)
    if id(value) not in known:
        held = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}  # type: ignore[arg-type]
        changed = {name: substituted(old, columns, known) for name, old in held.items()}
        others = {name: new for name, new in changed.items() if new is not held[name]}
        known[id(value)] = replace(value, **others) if others else value  # type: ignore[type-var]
    return known[id(value)]


class RestrictedOracle(ReworkedOracle):
    """An Oracle whose questions are of the rows that a condition holds for.

    Privacy: nobody knows how many rows these are, so a declared public size is none of theirs (SR6, SR11).
    """

    def __init__(self, oracle: Oracle, condition: RowFn) -> None:
        super().__init__(oracle)
        self.condition = condition

    @property
    def facts(self) -> Facts:
        """Everything public; how many rows are left is not."""
        return replace(self.source.facts, size=None)

    def _of(self, question: Question) -> Question:
        if isinstance(question, Together):
            return replace(question, questions=tuple(self._single(each) for each in question.questions))
        return self._single(question)

    def _single(
        self, question: Sums | OpenSums | Choose | Above | Holistic
    ) -> Sums | OpenSums | Choose | Above | Holistic:
        if isinstance(question, (Choose, Above)):
            return replace(question, counts=self._sums(question.counts))
        if isinstance(question, Sums):
            return self._sums(question)
        return replace(question, where=self._where(question))

    def _sums(self, question: Sums) -> Sums:
        return replace(question, where=self._where(question))

    def _where(self, question: Sums | OpenSums | Holistic) -> RowFn:
        if not isinstance(question.over, Table):
            raise QuestionError(
                "bad-question", "A part of the rows is asked about by themselves, not in derived tables."
            )
        return self.condition if question.where is None else Logic("and", (self.condition, question.where))


def database_of(oracle: Oracle) -> Oracle:
    """The Oracle whose columns an Oracle derives, or the Oracle itself."""
    while isinstance(oracle, DerivedOracle):
        oracle = oracle.source
    return oracle


def beside(X: ColumnChoice, y: ColumnChoice) -> ColumnChoice:
    """A label of the database that X's columns are derived from, as a column of X's own Oracle."""
    derived = X.oracle is not y.oracle and same_rows(database_of(X.oracle), database_of(y.oracle))
    return ColumnChoice(y.names, X.oracle) if derived else y
