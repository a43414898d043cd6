"""Names to columns: every row function of the question gets a kind, or the question is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from sulq.curator.plan.draft import Draft
from sulq.errors import QuestionError
from sulq.terms.engine import Key
from sulq.terms.facts import Facts
from sulq.terms.kinds import Code, Words
from sulq.terms.question import Sums
from sulq.terms.rowfn import Bucket, Each, Position, RowFn
from sulq.terms.rowfn.scalar import condition

MOST_CELLS: Final = 2**22


def bind(draft: Draft) -> Draft:
    """Resolve the table, the condition and the keys; check what the relation forbids."""
    question, facts = draft.question, draft.facts
    if question.over.name not in ("", facts.table):
        raise QuestionError("unknown-table", f"No table {question.over.name[:80]!r} is registered here.")
    for fn in walk(question):
        _allowed(fn, facts)
    droppable = False
    if question.where is not None:
        condition(question.where, facts.schema)
        droppable = True
    keys = []
    for fn in question.by:
        kind = fn.kind(facts.schema)
        if isinstance(kind, Words):
            raise QuestionError("not-available", "Free text as a key (open keys) is not in this version.")
        fitted: RowFn = fn
        if not isinstance(kind, Code):
            fitted = Each(fn)
            kind = fitted.kind(facts.schema)
        keys.append(Key(fitted, kind.labels))
        droppable = droppable or kind.nullable
    cells = math.prod(len(key.labels) for key in keys)
    if cells > MOST_CELLS:
        raise QuestionError("too-large", f"The partition has {cells} cells; at most {MOST_CELLS} can be asked.")
    return replace(draft, keys=tuple(keys), droppable=droppable, cells=cells)


def walk(question: Sums) -> list[RowFn]:
    """Every row function of a question, outermost first."""
    found, front = [], question.parts()
    while front:
        found.extend(front)
        front = [part for fn in front for part in fn.parts()]
    return found


def _allowed(fn: RowFn, facts: Facts) -> None:
    """Refuse what would tell rows apart by their place where a neighbour shifts places (S0.7, SR11)."""
    unit = facts.unit
    if isinstance(fn, Position) and not unit.positions_are_public:
        raise QuestionError("needs-position", "A row's place means nothing under this relation.")
    if isinstance(fn, Bucket) and unit.column is None and not unit.positions_are_public:
        raise QuestionError("needs-position", "Rows without a person column have nothing to be bucketed by.")
