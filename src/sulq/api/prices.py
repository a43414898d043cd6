"""The price of an accuracy for the named asks: of sums exactly, of a mean by a count that is declared or bought (SR7).

Where the budget holds both kinds of loss, the law of noise is the one whose price takes the least of what is left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

from sulq.answers.answer import Answer
from sulq.answers.law_choice import cheapest, count_first, kinds
from sulq.answers.oracle import Oracle
from sulq.answers.plan import Plan, Priced, affordable, price_of_mean, price_of_sums
from sulq.answers.readings.estimators import Plain
from sulq.answers.readings.sized import Average
from sulq.api import questions
from sulq.api.questions import Filter, Keys, Pay
from sulq.errors import QuestionError
from sulq.language.privacy import Loss, exactly, probability
from sulq.language.question import Question, Sums
from sulq.language.rowfn import IsMissing, Not, RowFn
from sulq.language.rowfn.vectors import bounded

PriceOf = Callable[[Plan], Priced]


def sums(oracle: Oracle, question: Sums, pay: Pay) -> Pay:
    """What to pay so that every sum is as accurate as is wished for."""
    pay.price_once()
    within, facts = cast("float", pay.within), oracle.facts
    wanted = kinds(facts.budget, pay.at_most, pay.law)
    return _paid(oracle, pay, wanted, lambda _: question, lambda plan: price_of_sums(plan, within, pay.beta))


def mean(oracle: Oracle, fn: RowFn, where: Filter, by: Keys, pay: Pay) -> tuple[Pay, tuple[str, ...]]:
    """What to pay for a mean that is accurate enough, and a note of what finding that cost."""
    pay.price_once()
    facts, beta = oracle.facts, probability(pay.beta)
    lo, hi, kind = bounded(fn, facts.schema)
    wanted = kinds(facts.budget, pay.at_most, pay.law)
    asked = {one: questions.mean(facts, fn, where, by, one(1)) for one in wanted}
    within = exactly(pay.within, "within", largest=10**60)
    widths = {one: float(within - reading.rounding) for one, (_, reading) in asked.items()}
    fine = tuple(one for one in wanted if widths[one] > 0)
    if not fine:
        raise QuestionError("too-costly", "The grid of this value is coarser than that.")
    # The declared size bounds the number of values only if every row is kept and none lacks a value.
    whole = where is None and not by and not kind.nullable and facts.unit.column is None
    count, notes = facts.size if whole else None, tuple[str, ...]()
    if count is None and not isinstance(asked[fine[0]][1], Average):
        pay, count, notes = _counted(oracle, fn, where, by, pay)

    def price(plan: Plan) -> Priced:
        one = type(plan.spend)
        reading = asked[one][1]  # type: ignore[index]
        if isinstance(reading, Average):
            return price_of_sums(plan, widths[one] * reading.size, beta)  # type: ignore[index]
        return price_of_mean(plan, hi - lo, widths[one], beta, count or 0)  # type: ignore[index]

    return _paid(oracle, pay, fine, lambda loss: asked[type(loss)][0], price), notes  # type: ignore[index]


def _counted(oracle: Oracle, fn: RowFn, where: Filter, by: Keys, pay: Pay) -> tuple[Pay, int, tuple[str, ...]]:
    """A lower bound on the number of values in every group that has any, for a part of at_most."""
    first, rest = count_first(pay.at_most)
    present = cast("Answer", oracle.ask(Sums((Not(IsMissing(fn)),), where, by), spend=first, reuse=True))
    low, _ = Plain().interval(present.released, pay.beta / max(present.released.cells, 1))
    count = int(min((end for end in low.ravel() if end >= 1), default=0))  # others are unknown at any price
    return replace(pay, at_most=rest), count, (f"a count that set the price cost {present.spent} besides",)


def _paid(
    oracle: Oracle, pay: Pay, wanted: tuple[type[Priced], ...], asked: Callable[[Loss], Question], price: PriceOf
) -> Pay:
    """The price by the law that takes the least of what is left; each is told by one plan at a spend of 1."""
    facts = oracle.facts

    def priced(kind: type[Priced]) -> Priced:
        return affordable(price(oracle.foresee(asked(kind(1)), spend=kind(1))), pay.at_most, facts)

    found = cheapest(facts, wanted, priced, lambda loss: oracle.foresee(asked(loss), spend=loss).event)
    return replace(pay, spend=found, within=None, law=None)
