"""What several asks would leave of the budget, before any of them is made; free, reads no row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from sulq.answers.budget import BudgetReport, RunForecast
from sulq.answers.law_choice import LawName, nearest
from sulq.answers.oracle import MAX_FORECAST_ASKS, ForecastingOracle, Oracle
from sulq.answers.plan import Plan
from sulq.errors import QuestionError
from sulq.language.facts import Facts
from sulq.language.privacy import Epsilon, Event, Loss, Queries, Rho
from sulq.language.question import Question
from sulq.sql.explain import Explanation
from sulq.sql.workload import Workload

MAX_SHOWN_CHARACTERS = 60  # of a query, in a line of the forecast
Foresee = Callable[[str | Question, Loss | None], Plan | Explanation | None]


class PricedAsk(NamedTuple):
    """One ask of a run: what it is, what it costs, and the loss that would be debited."""

    name: str
    price: Loss
    event: Event


def run_forecast(
    oracle: Oracle, asks: object, spend: Loss | None, foresee: Foresee, law: LawName | None = None
) -> RunForecast:
    """What would be left after each of these asks; one that is listed again is planned once.

    Raises:
        QuestionError: `bad-question`: what is listed is no ask; or whatever an ask itself would be refused for.
    """
    if not isinstance(asks, (list, tuple, Workload)) or not len(asks):
        raise QuestionError("bad-question", "A forecast is made for a list of asks.", _REMEDY)
    if not isinstance(oracle, ForecastingOracle):
        raise QuestionError("not-available", "Nothing is debited here: there is no budget to forecast.")
    if len(asks) > MAX_FORECAST_ASKS:
        raise QuestionError("too-large", f"A forecast is of at most {MAX_FORECAST_ASKS:,} asks.")
    facts = oracle.facts
    listed = (asks,) if isinstance(asks, Workload) else asks
    known: dict[int, list[PricedAsk]] = {}
    for ask in listed:
        if id(ask) not in known:
            known[id(ask)] = list(_priced(ask, spend, facts, Foreseeing(foresee, law)))
    found = [one for ask in listed for one in known[id(ask)]]
    left = oracle.afford([one.event for one in found])
    names, prices = tuple(one.name for one in found), tuple(one.price for one in found)
    return RunForecast(names, prices, left, BudgetReport.of(facts))


_REMEDY = 'db.afford(["SELECT COUNT(*) FROM t"], spend=Epsilon(0.1)), or db.afford([Epsilon(0.1)] * 10).'


class Foreseeing(NamedTuple):
    """How asks are planned, and the law that was named for those whose price leaves it open."""

    plan: Foresee
    law: LawName | None

    def spend(self, spend: Loss, facts: Facts) -> Loss:
        """What a spend alone buys: of an (epsilon, delta) one number, of Laplace noise unless Gaussian is named."""
        found = nearest(spend, self.law, lambda: facts.budget, lambda one: [float(not isinstance(one, Epsilon))])
        return spend if found is None else found


def _priced(ask: object, spend: Loss | None, facts: Facts, foresee: Foreseeing) -> Iterator[PricedAsk]:
    match ask:
        case Workload():
            if ask.plan is not None:
                yield PricedAsk(f"{len(ask)} queries", ask.plan.spend, ask.plan.event)
                return
            for query in ask.queries:
                yield from _priced(query.explanation, None, facts, foresee)
        case Explanation():
            yield from _foreseen("", ask)
        case Plan():
            yield PricedAsk("", ask.spend, ask.event)
        case Event():
            yield PricedAsk("", _price(ask), ask)
        case (what, price) if isinstance(price, Loss):
            yield from _priced(what, price, facts, foresee)
        case _ if isinstance(ask, (str, Question)):
            yield from _foreseen(ask, foresee.plan(ask, spend))
        case _ if isinstance(ask, Loss):
            paid = foresee.spend(ask, facts)
            yield PricedAsk("", paid, facts.event_of(paid))
        case _:
            raise QuestionError("bad-question", f"What is listed is no ask: {type(ask).__name__}.", _REMEDY)


def _foreseen(ask: str | Question, plan: Plan | Explanation | None) -> Iterator[PricedAsk]:
    """What was planned for an ask; of an explanation the search for bounds and the answer."""
    if isinstance(plan, Explanation):
        named = (("its search for bounds", plan.search), (_short(plan.text), plan.plan))
        yield from (PricedAsk(name, one.spend, one.event) for name, one in named if one is not None)
    elif plan is not None:
        yield PricedAsk(_short(ask) if isinstance(ask, str) else "", plan.spend, plan.event)


def _price(event: Event) -> Loss:
    """What a loss is, in the unit that it is paid in."""
    if event.queries:
        return Queries(event.queries)
    return Rho.total(event.rho) if event.epsilon is None else Epsilon.total(event.epsilon)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_SHOWN_CHARACTERS else f"{line[: MAX_SHOWN_CHARACTERS - 3]}..."
