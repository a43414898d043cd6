"""Questions to plans, from public facts alone: no step here has a row to look at."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Final

from sulq.curator.plan.bind import bind
from sulq.curator.plan.bound import bound
from sulq.curator.plan.calibrate import calibrate, queries
from sulq.curator.plan.contribution import contribution
from sulq.curator.plan.draft import Draft
from sulq.curator.plan.sensitivity import root_up, sensitivity
from sulq.errors import QuestionError
from sulq.terms.engine import Tally
from sulq.terms.facts import Facts
from sulq.terms.plan import Part, Plan
from sulq.terms.privacy import Budget, Epsilon, EpsilonDelta, Event, Loss, Queries, Rho, SubLinear
from sulq.terms.question import Question, Sums, Together
from sulq.terms.sublinear import noise_for

STEPS: Final[tuple[Callable[[Draft], Draft], ...]] = (bind, bound, contribution, sensitivity, calibrate)


HELD: Final[dict[type, tuple[type, ...]]] = {
    Epsilon: (Epsilon,),
    Rho: (Rho, Epsilon),
    EpsilonDelta: (Epsilon, Rho, EpsilonDelta),
}


def draw(question: Question, facts: Facts, spend: Loss | None, versions: tuple[tuple[str, str], ...] = ()) -> Plan:
    """Work out what answering costs and how accurate it is, or refuse; free, reads no row."""
    paid = _accepted(spend, facts.budget)
    questions = question.questions if isinstance(question, Together) else (question,)
    if not all(isinstance(item, Sums) for item in questions):
        raise QuestionError("bad-question", "Ask Sums or Together.")
    asked = question.shares if isinstance(question, Together) else ()
    weights = asked or (Fraction(1),) * len(questions)
    drafts = []
    for item, weight in zip(questions, weights, strict=True):
        share = paid
        if len(questions) > 1 and not isinstance(paid, Queries):
            share = paid.share(weight / sum(weights))
        draft = Draft(item, facts, share)
        for step in STEPS:
            draft = step(draft)
        drafts.append(draft)
    if isinstance(facts.budget, SubLinear):
        paid = Queries(sum(queries(draft).queries for draft in drafts))
        if isinstance(spend, Queries) and paid.queries > spend.queries:
            raise QuestionError("too-costly", f"This asks for {paid}, more than its spend.")
    guarantee = noise_for(facts.budget, facts.size).guarantee if isinstance(facts.budget, SubLinear) else "dp"
    event = _event(paid, drafts, versions)
    return Plan(question, tuple(map(_part, drafts)), event, paid, facts.unit, guarantee)


def _accepted(spend: Loss | None, budget: Budget) -> Loss:
    """The spend, if this budget can hold its kind (SR3)."""
    if isinstance(budget, SubLinear):
        if spend is not None and not isinstance(spend, Queries):
            raise QuestionError("spend-kind", "A SubLinear budget is counted in queries; leave spend out.")
        return Queries(0)
    if spend is None:
        raise QuestionError("spend-missing", "An ask has a price.")
    if not isinstance(spend, (Epsilon, Rho, EpsilonDelta, Queries)):
        kind = type(spend).__name__
        raise QuestionError("bad-loss", f"spend is a loss such as Epsilon(0.1) or Rho(0.005), not a {kind}.")
    if not isinstance(spend, HELD[type(budget)]):
        kind = type(spend).__name__
        raise QuestionError("spend-kind", f"A budget of {type(budget).__name__} cannot hold a spend of {kind}.")
    return spend


def _event(paid: Loss, drafts: list[Draft], versions: tuple[tuple[str, str], ...]) -> Event:
    """The loss that is debited: the asked spend, which no draw's exact cost passes (decision 0009)."""
    draws = tuple(item for draft in drafts for item in draft.draws)
    if isinstance(paid, Epsilon):
        return Event(paid.exact, paid.exact**2 / 2, draws=draws, versions=versions)
    if isinstance(paid, Queries):
        return Event(None, Fraction(0), queries=paid.queries, draws=draws, versions=versions)
    rho = paid.exact if isinstance(paid, Rho) else paid.rho
    return Event(None, rho, draws=draws, versions=versions)


def _part(draft: Draft) -> Part:
    tally = Tally(draft.facts.table, draft.blocks, draft.question.where, draft.keys, draft.cells)
    moves = []
    for block, ways in zip(draft.blocks, draft.reaches, strict=True):
        if draft.norm == "l1":
            moves.append(max(reach.l1 for reach in ways.values()) * block.step)
        else:
            moves.append(root_up(max(reach.l2_squared for reach in ways.values())) * block.step)
    return Part(tally, draft.laws, draft.refine, tuple(moves), draft.norm)
