"""Plans of questions that differ in nothing but the numbers that their condition compares columns with.

Noise and price of sums do not depend on these numbers: whether a condition is there at all does (`bind`). So one plan
is drawn for all of them, and the condition is put in its place. It is a proposal as any other: the kernel certifies it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import cast

from sulq.answers.plan import Plan
from sulq.errors import SulqError
from sulq.language.facts import Facts
from sulq.language.question import Question, Sums
from sulq.language.relation import Table
from sulq.language.rowfn import Col, Compare, Lit, Logic, Not, RowFn
from sulq.language.rowfn.base import condition


def plan_by_form(question: Question, facts: Facts, draw: Callable[[Question], Plan]) -> Plan:
    """The plan of a question, by its form where it has one; what is wrong with the question is said of itself."""
    form = form_of(question)
    with contextlib.suppress(SulqError):
        if form is not None:
            return filled(draw(form), cast("Sums", question), facts)
    return draw(question)


def form_of(question: Question) -> Sums | None:
    """Sums over a table, with 0 for each such number; None of another question."""
    if not isinstance(question, Sums) or question.where is None or not isinstance(question.over, Table):
        return None
    where = _formed(question.where)
    return None if where is None else replace(question, where=where)


def _formed(fn: RowFn) -> RowFn | None:
    """A condition with 0 for its numbers; None where it does other than compare columns with constants."""
    if isinstance(fn, Compare):
        sides = fn.left, fn.right
        if {type(side) for side in sides} != {Col, Lit}:
            return None
        return Compare(fn.op, *(_zero(side) if isinstance(side, Lit) else side for side in sides))
    if isinstance(fn, (Logic, Not)):
        parts = tuple(formed for part in fn.parts() if (formed := _formed(part)) is not None)
        if len(parts) == len(fn.parts()):
            return Logic(fn.op, parts) if isinstance(fn, Logic) else Not(parts[0])
    return None


def _zero(constant: Lit) -> Lit:
    """Numbers alone: a text may be no label of its column, which a plan refuses."""
    return Lit(0) if type(constant.value) in (int, float) else constant


def filled(plan: Plan, question: Sums, facts: Facts) -> Plan:
    """The plan of a form as that of a question of this form, whose condition is looked at as a plan's is."""
    where = cast("RowFn", question.where)
    condition(where, facts.table_of(cast("Table", question.over).name).schema)
    (part,) = plan.parts
    return replace(plan, question=question, parts=(replace(part, tally=replace(part.tally, where=where)),))
