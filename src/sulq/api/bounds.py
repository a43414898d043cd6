"""`bounds="auto"` for the named asks: a search for where values lie, then the ask of the clipped values.

Two debits, checked together before the first of them; the second question follows from what the first released.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sulq.answers.answer import Answer
from sulq.answers.auto_bounds import (
    FoundBounds,
    check_bounds,
    check_most,
    divided_spend,
    search,
    searched,
    total_spent,
)
from sulq.answers.law_choice import Foreseen, LawName, foreseen_of, nearest
from sulq.answers.oracle import Oracle
from sulq.api import questions
from sulq.api.questions import Filter, Keys, Pay
from sulq.language.privacy import EpsilonDelta, Loss
from sulq.language.question import Sums
from sulq.language.rowfn import RowFn
from sulq.sql.explain import value_name
from sulq.sql.forecast import reading_widths
from sulq.sql.session import NO_SEARCH

Ask = Callable[[RowFn, Pay], Answer]


def bounded_ask(oracle: Oracle, value: tuple[RowFn, Filter, Keys], pay: Pay, ask: Ask, *, mean: bool = False) -> Answer:
    """Ask of a value, within bounds that are searched for first if the pay says so; a refusal is before any debit.

    Privacy: each of the two asks is certified, priced and debited as any other; the clip is a function of the first
    one's released counts, so the second is an adaptively chosen question, which sequential composition holds for.
    """
    fn, where, by = value
    if pay.bounds is None:
        return ask(fn, pay)
    facts = oracle.facts
    check_bounds(pay.bounds, facts, pay.within)
    check_most(pay.spend, pay.at_most, facts)
    plain = replace(pay, bounds=None, at_most=None)
    searching = searched(fn, facts.schema, where=where, by=by, centred=mean)
    if searching is None:
        answer = ask(fn, plain)
        return replace(answer, notes=(NO_SEARCH, *answer.notes))
    first, rest = divided_spend(pay.spend)

    def asked(item: RowFn, paid: Loss | None) -> Sums:
        return questions.mean(facts, item, where, by, paid)[0] if mean else questions.total(facts, item, where, by)

    def widths(one: Loss | None) -> list[float] | Foreseen:
        if mean:
            return reading_widths(oracle, *questions.mean(facts, fn, where, by, one), one)
        return foreseen_of(oracle.foresee(asked(fn, one), spend=one))

    rest = nearest(rest, pay.law, lambda: facts.budget, widths) or rest
    oracle.foresee(asked(searching.clipped(searching.narrowest), rest), spend=rest)  # no clip may be refused later
    found = search(oracle, [searching], first, oracle.foresee(asked(fn, rest), spend=rest), reuse=pay.reuse)
    law: LawName | None = "gaussian" if isinstance(rest, EpsilonDelta) else None  # as it was admitted
    answer = ask(searching.clipped(found.clips[0]), replace(plain, spend=rest, law=law))
    return told(answer, found, fn)


def told(answer: Answer, found: FoundBounds, fn: RowFn) -> Answer:
    """The answer with the clip, and the price of both asks."""
    before = found.answers[0]
    names = [value_name(fn)]
    return replace(
        answer,
        spent=total_spent(before.spent, answer.spent),
        reused=answer.reused and before.reused,
        notes=(*found.told(names, answer.spent), *answer.notes),
        clips=found.named(names),
    )
