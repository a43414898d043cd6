"""What is spent and what is left of a budget, in the owner's and the analysts' own words; the filter alone decides."""

from __future__ import annotations

import functools
import math
from fractions import Fraction

from sulq.errors import QuestionError
from sulq.kernel.facts import GRAIN, LARGEST, Epsilon, EpsilonDelta, Event, Rho, SubLinear, plain
from sulq.kernel.ledger.filter import WHOLE, Filter, Totals
from sulq.language.privacy import Loss, Queries


def refuse_kind(rule: Filter, event: Event) -> None:
    """Say that an event is of a kind this budget cannot hold, whatever is left: no totals with it would be admitted."""
    if isinstance(rule.budget, Epsilon) and event.epsilon is None:
        raise QuestionError("spend-kind", "This budget is pure epsilon; the noise asked for has no pure loss.")
    if event.key_delta and not isinstance(rule.budget, EpsilonDelta):
        raise QuestionError("spend-kind", "Open keys need a budget with a delta.")
    if event.key_delta and rule.key_limit == 0:
        raise QuestionError("open-keys", "Nothing of this budget's delta was set aside for open keys.")


def limits(rule: Filter) -> tuple[int, ...]:
    """What may be set aside for someone: the limits that hold for every kind of ask this budget takes.

    Of an EpsilonDelta budget that is the room of the blended branch and the delta of open keys.
    """
    return (rule.room, rule.key_limit) if isinstance(rule.budget, EpsilonDelta) else (rule.limit,)


def measure(rule: Filter, totals: Totals) -> tuple[int, ...]:
    """What totals take of each of these limits."""
    match rule.budget:
        case Epsilon():
            return (totals.epsilon,)
        case Rho():
            return (totals.rho,)
        case SubLinear():
            return (totals.queries,)
    return (totals.blended, totals.key_delta)


def asked(rule: Filter, event: Event) -> str:
    """What an event asks for, in words of the budget's kind."""
    match rule.budget:
        case SubLinear():
            return f"{event.queries} queries"
        case Rho():
            return f"rho {plain(event.rho)}"
    pure = "no pure epsilon" if event.epsilon is None else f"epsilon {plain(event.epsilon)}"
    keys = f", delta {plain(event.key_delta)} for open keys" if event.key_delta else ""
    return pure if isinstance(rule.budget, Epsilon) else f"{pure}, rho {plain(event.rho)}{keys}"


@functools.lru_cache(maxsize=64)  # looked up several times an ask
def spent(rule: Filter, totals: Totals) -> Loss:
    """What the answers so far are worth: the total loss, in the budget's own kind."""
    match rule.budget:
        case Epsilon():
            return Epsilon.total(_amount(totals.epsilon))
        case Rho():
            return Rho.total(_amount(totals.rho))
        case SubLinear():
            return Queries(totals.queries)
    keys = Fraction(totals.key_delta, GRAIN)
    converted = rule.limit - rule.room + totals.blended
    if totals.pure and totals.epsilon <= converted:
        return EpsilonDelta.total(_amount(totals.epsilon), keys)
    return EpsilonDelta.total(_amount(converted), _delta(rule) + keys)


@functools.lru_cache(maxsize=64)
def remaining(rule: Filter, totals: Totals) -> Loss:
    """What is left: for EpsilonDelta the largest pure epsilon that one ask could still spend."""
    return loss(rule, left(rule, totals))


def left(rule: Filter, totals: Totals, part: Fraction = WHOLE) -> tuple[int, ...]:
    """What is left of a part of the budget, in its own unit; never below 0.

    Of an EpsilonDelta budget: the largest pure epsilon, the delta of open keys, and the room of the blended branch.
    """
    limit = rule.limit * part.numerator // part.denominator
    if not isinstance(rule.budget, EpsilonDelta):
        return (max(limit - measure(rule, totals)[0], 0),)
    room = rule.room * part.numerator // part.denominator
    keys = rule.key_limit * part.numerator // part.denominator - totals.key_delta
    if keys < 0:  # past that limit nothing is admitted, keys or none
        return 0, 0, 0
    room = max(room - totals.blended, 0)
    largest = within_room(rule, room)
    if totals.pure:
        largest = max(largest, limit - totals.epsilon)
    return largest, keys, room


def within_room(rule: Filter, room: int) -> int:
    """The largest pure epsilon that fits so much of the blended branch.

    A pure ask of epsilon x has rho = x^2/2, so it takes min(x, alpha x^2/2) of the room: this is the inverse.
    """
    room = max(room, 0)
    square = 2 * room * GRAIN / rule.alpha
    return max(room, math.isqrt(square.numerator // square.denominator))


def loss(rule: Filter, left: tuple[int, ...]) -> Loss:
    """What is left, as a loss of the budget's kind."""
    amount = Fraction(left[0], GRAIN)
    match rule.budget:
        case Epsilon():
            return Epsilon.total(amount)
        case Rho():
            return Rho.total(amount)
        case SubLinear():
            return Queries(left[0])
    return EpsilonDelta.total(amount, _delta(rule) + Fraction(left[1], GRAIN))


def rho(rule: Filter, left: tuple[int, ...]) -> Fraction | None:
    """The largest rho that one ask could still spend, of what is left; None where the budget holds no rho."""
    match rule.budget:
        case Rho():
            return Fraction(left[0], GRAIN)
        case EpsilonDelta():
            return left[2] / (rule.alpha * GRAIN)
    return None


def _delta(rule: Filter) -> Fraction:
    return rule.split.delta if rule.split else Fraction(0)


def _amount(total: int) -> Fraction:
    """A total as a loss says it; lost asks may have been charged past what a loss can say."""
    return min(Fraction(total, GRAIN), Fraction(LARGEST))
