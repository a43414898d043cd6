"""Names to columns: every row function of the question gets a kind, or the question is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from sulq.compile.plan.draft import PlanDraft
from sulq.errors import QuestionError
from sulq.language.facts import Facts
from sulq.language.kinds import Code, Grid, Words
from sulq.language.question import Holistic, OpenSums, Sums
from sulq.language.relation import Relation, Table, functions
from sulq.language.rowfn import Bucket, Each, Position, RowFn
from sulq.language.rowfn.base import condition
from sulq.language.shape import Shape, shape
from sulq.language.tally import Key

MAX_CELLS: Final = 2**22


def bind(draft: PlanDraft) -> PlanDraft:
    """Resolve the table, the condition and the keys; check what the relation forbids."""
    question, facts = draft.question, draft.facts
    over = shape(question.over, facts)
    for fn in walk(question):
        allowed(fn, question.over, facts)
    droppable = not over.fixed
    if question.where is not None:
        condition(question.where, over.schema)
        droppable = True
    if isinstance(question, OpenSums):
        return replace(draft, shape=over, keys=_open(question, over), droppable=True, cells=0)
    keys = []
    for fn in question.by:
        kind = fn.kind(over.schema)
        if isinstance(kind, Words):
            raise QuestionError("open-keys", "Free text as a key has no labels known in advance.")
        fitted: RowFn = fn
        if not isinstance(kind, Code):
            fitted = Each(fn)
            kind = fitted.kind(over.schema)
        keys.append(Key(fitted, kind.labels))
        droppable = droppable or kind.nullable
    cells = math.prod(len(key.labels) for key in keys)
    if cells > MAX_CELLS:
        raise QuestionError("too-large", f"The partition has {cells} cells; at most {MAX_CELLS} can be asked.")
    return replace(draft, shape=over, keys=tuple(keys), droppable=droppable, cells=cells)


def _open(question: OpenSums, over: Shape) -> tuple[Key, ...]:
    """Keys without labels. Whose a row is must be known: the threshold counts people, not rows (SR14)."""
    if not over.owned and over.rows > 1:
        raise QuestionError("person-lost", "Groups that are found in the data need rows that are one person's each.")
    for fn in question.by:
        if isinstance(fn.kind(over.schema), Grid):
            raise QuestionError("wrong-kind", "A vector cannot be a key.")
    return tuple(Key(fn, ()) for fn in question.by)


def walk(question: Sums | OpenSums | Holistic) -> list[RowFn]:
    """Every row function of a question, outermost first."""
    found: list[RowFn] = []
    front = question.parts() + functions(question.over)
    while front:
        found.extend(front)
        front = [part for fn in front for part in fn.parts()]
    return found


def allowed(fn: RowFn, over: Relation, facts: Facts) -> None:
    """Refuse what would tell rows apart by their place where a neighbour shifts places (S0.7, SR11)."""
    unit = facts.unit
    if isinstance(fn, (Position, Bucket)) and not isinstance(over, Table):
        raise QuestionError("needs-position", "A derived table has no places and no buckets.")
    if isinstance(fn, (Position, Bucket)) and isinstance(over, Table) and facts.table_of(over.name).public:
        raise QuestionError("needs-position", "A public table has no people to be bucketed.")
    if isinstance(fn, Position) and not unit.positions_are_public:
        raise QuestionError("needs-position", "A row's place means nothing under this relation.")
    if isinstance(fn, Bucket) and unit.column is None and not unit.positions_are_public:
        raise QuestionError("needs-position", "Rows without a person column have nothing to be bucketed by.")
