"""Questions to plans: bounds, sensitivities, noise laws and price, in the order of `STEPS`.

Imports the language, answers and the kernel's prices. Never here: a row, a source, or anything that depends on one; a
plan follows from public facts alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final

from sulq.answers.plan import Part, Plan
from sulq.compile.plan.calibration import calibrate, contribution, queries, root_up, sensitivity
from sulq.compile.plan.draft import PlanDraft, bind, bound
from sulq.compile.plan.holistic import HolisticDraw, plan_holistic
from sulq.compile.plan.work import check as check_work
from sulq.errors import QuestionError
from sulq.kernel.mechanisms import cost_of
from sulq.language.facts import Facts
from sulq.language.privacy import (
    KEY_SHARE,
    Budget,
    Draw,
    Epsilon,
    EpsilonDelta,
    EpsilonKeys,
    Event,
    Loss,
    Queries,
    Rho,
    SubLinear,
    basic_part,
    check_kind,
    key_part,
    normal_rho,
)
from sulq.language.question import Above, Choose, Holistic, OpenSums, Question, Single, Sums, Together
from sulq.language.sublinear import noise_for
from sulq.language.tally import Tally

STEPS: Final[tuple[Callable[[PlanDraft], PlanDraft], ...]] = (bind, bound, contribution, sensitivity, calibrate)
RHO_PARTS: Final = 2**100  # a sum of rhos is rounded up to so small a part of one


def draw(
    question: Question,
    facts: Facts,
    spend: Loss | None,
    versions: tuple[tuple[str, str], ...] = (),
    limit: float | None = None,
) -> Plan:
    """Work out what answering costs and how accurate it is, or refuse; free, reads no row.

    `limit`: the seconds after which the ask would be stopped, None where it never is.
    """
    questions = question.questions if isinstance(question, Together) else (question,)
    whole = any(isinstance(item, Holistic) for item in questions)  # which are not priced by an accuracy
    paid = _accepted(spend, facts.budget, "Name what to pay: spend=Epsilon(0.1)." if whole else "")
    if not all(isinstance(item, (Sums, OpenSums, Choose, Above, Holistic)) for item in questions):
        raise QuestionError("bad-question", "Ask Sums, OpenSums, Choose, Above, Holistic or Together.")
    if isinstance(facts.budget, SubLinear) and not all(isinstance(item, Sums) for item in questions):
        raise QuestionError(
            "not-a-noisy-sum",
            "A choice, a threshold, a statistic of the whole, or a key that is not declared, is no noisy sum (SR8).",
        )
    left, key_delta = _keyed(paid, sum(isinstance(item, OpenSums) for item in questions), facts)
    rest = facts.counted(left) if isinstance(left, EpsilonDelta) else left
    asked = question.shares if isinstance(question, Together) else ()
    weights = asked or (Fraction(1),) * len(questions)
    found = _drafts(questions, weights, facts, rest, key_delta)
    check_work(questions, facts, limit)
    if isinstance(facts.budget, SubLinear):
        paid = Queries(sum(queries(draft).queries for draft in found if isinstance(draft, PlanDraft)))
        if isinstance(spend, Queries) and paid.queries > spend.queries:
            raise QuestionError("too-costly", f"This asks for {paid}, more than its spend.")
    guarantee = noise_for(facts.budget, facts.size).guarantee if isinstance(facts.budget, SubLinear) else "dp"
    event = _event(paid if isinstance(paid, Queries) else rest, found, facts, versions)
    if key_delta and isinstance(left, EpsilonDelta) and (more := _by_normal_curve(event, left, facts)) is not None:
        found = _drafts(questions, weights, facts, Rho(more.rho), key_delta)
        event = replace(more, draws=tuple(item for draft in found for item in draft.draws))
    if isinstance(paid, EpsilonKeys):  # what is not for keys is not spent
        paid = EpsilonDelta(paid.epsilon, event.key_delta) if key_delta else Epsilon(paid.epsilon)
    return Plan(question, tuple(map(_part, found)), event, paid, facts.unit, guarantee)


def _drafts(
    questions: Sequence[Single], weights: Sequence[Fraction], facts: Facts, rest: Loss, key_delta: Fraction
) -> list[PlanDraft | HolisticDraw]:
    """Each question through all steps, for its part of the spend."""
    found: list[PlanDraft | HolisticDraw] = []
    total = sum(weights)
    for item, weight in zip(questions, weights, strict=True):
        share = rest
        if len(questions) > 1 and not isinstance(rest, (Queries, EpsilonKeys)):
            share = rest.share(weight / total)
        if isinstance(item, Holistic):
            found.append(plan_holistic(item, facts, share))
            continue
        draft = _draft(item, facts, share, key_delta)
        for step in STEPS:
            draft = step(draft)
        found.append(draft)
    return found


def _by_normal_curve(event: Event, left: EpsilonDelta, facts: Facts) -> Event | None:
    """An ask with open keys for the largest rho that its pair holds by the normal law's own curve, if that is more.

    The pair is the spend's epsilon, and of its delta the part that the budget has for added pairs: so asks and
    budget are used up together, as basic composition adds them (SR26). Only where the owner gave added pairs more
    than half of delta: elsewhere it would take more of the budget than it gains.
    """
    if facts.split is None or 2 * basic_part(facts.split) <= 1:
        return None
    delta = left.exact_delta * basic_part(facts.split)
    rho = normal_rho(event.rho, event.draws, left.exact, delta)
    return None if rho is None else replace(event, rho=rho, basic=left.exact, delta=delta)


def _draft(item: Sums | OpenSums | Choose | Above, facts: Facts, share: Loss, key_delta: Fraction) -> PlanDraft:
    """A question before its first step."""
    if isinstance(item, Choose):
        return PlanDraft(item.counts, facts, share, item.score, exponential=item.exponential)
    if isinstance(item, Above):
        return PlanDraft(item.counts, facts, share, levels=item.levels)
    return PlanDraft(item, facts, share, key_delta=key_delta if isinstance(item, OpenSums) else Fraction(0))


def _keyed(paid: Loss, questions: int, facts: Facts) -> tuple[Loss, Fraction]:
    """Set a part of the spend's delta aside for open keys, evenly for each question that has them (SR14).

    It is the part that the budget has for them, so that asks and budget are used up together.
    """
    pure = Epsilon(paid.exact) if isinstance(paid, EpsilonKeys) else None
    if not questions:
        return pure or paid, Fraction(0)
    if not isinstance(paid, (EpsilonDelta, EpsilonKeys)):
        remedy = "Name spend=EpsilonDelta(epsilon, delta), without within=; or declare the categories."
        raise QuestionError(
            "open-keys", f"Groups found in the data are shown only for a delta; {paid} has none.", remedy
        )
    part = KEY_SHARE if facts.split is None else key_part(facts.split) or KEY_SHARE
    keys = paid.exact_delta * part
    return pure or EpsilonDelta(paid.exact, paid.exact_delta - keys), keys / questions


def _accepted(spend: Loss | None, budget: Budget, remedy: str) -> Loss:
    """The spend, if this budget can hold its kind (SR3)."""
    if isinstance(budget, SubLinear):
        if spend is not None and not isinstance(spend, Queries):
            raise QuestionError("spend-kind", "A SubLinear budget is counted in queries; leave spend out.")
        return Queries(0)
    if spend is None:
        raise QuestionError("spend-missing", "An ask has a price.", remedy)
    if not isinstance(spend, (Epsilon, Rho, EpsilonDelta, EpsilonKeys, Queries)):
        kind = type(spend).__name__
        raise QuestionError("bad-loss", f"spend is a loss such as Epsilon(0.1) or Rho(0.005), not a {kind}.")
    check_kind(spend, budget)
    return spend


def _event(
    paid: Loss, drafts: list[PlanDraft | HolisticDraw], facts: Facts, versions: tuple[tuple[str, str], ...]
) -> Event:
    """The loss that is debited: the asked spend, which no draw's exact cost passes (decision 0009).

    The rho of a pure loss is the sum over its draws, each of which has its own part of epsilon: far less than that of
    one draw for all of it. What is not pure has an (epsilon, delta), too, at which basic composition adds it; its delta
    is the spend's or a part of the share for that, whichever is less (SR26).
    """
    draws = tuple(item for draft in drafts for item in draft.draws)
    keys = sum((draft.key_delta for draft in drafts), start=Fraction(0))
    if isinstance(paid, (Epsilon, EpsilonKeys)):
        alone = paid.exact**2 / 2
        rho = min(_rho_of(draws) or alone, alone) if len(draws) > 1 else alone
        return Event(paid.exact, rho, keys, draws=draws, versions=versions)
    if isinstance(paid, Queries):
        return Event(None, Fraction(0), queries=paid.queries, draws=draws, versions=versions)
    rho = paid.exact if isinstance(paid, Rho) else paid.rho
    return facts.paired(Event(None, rho, keys, draws=draws, versions=versions), paid)


def _rho_of(draws: tuple[Draw, ...]) -> Fraction:
    """What draws cost together, each rounded up: fractions of many scales would add up to one of endless digits."""
    costs = [cost_of(item).rho for item in draws]
    return Fraction(sum(math.ceil((cost or 0) * RHO_PARTS) for cost in costs) if None not in costs else 0, RHO_PARTS)


def _part(draft: PlanDraft | HolisticDraw) -> Part:
    if isinstance(draft, HolisticDraw):
        return draft.part
    tally = Tally(draft.question.over, draft.blocks, draft.question.where, draft.keys, draft.cells)
    if draft.thresholds is not None:
        moved = (draft.draws[0].sensitivity * draft.blocks[0].step,)
        return Part(tally, draft.laws, draft.refine, moved, draft.norm, thresholds=draft.thresholds)
    steps = [block.step for block in draft.blocks]
    if draft.score is not None:
        steps = [Fraction(1)]
    elif draft.people is not None:
        steps = [Fraction(1), *steps]
    moves = []
    for step, ways in zip(steps, draft.reaches, strict=True):
        if draft.norm == "l1":
            moves.append(max(reach.l1 for reach in ways.values()) * step)
        else:
            moves.append(root_up(max(reach.l2_squared for reach in ways.values())) * step)
    return Part(tally, draft.laws, draft.refine, tuple(moves), draft.norm, draft.score, draft.people)
