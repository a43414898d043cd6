"""The privacy filter: whether one more event fits what a person space may lose (SR3)."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from sulq.errors import QuestionError
from sulq.kernel.accounting import conversion_cost
from sulq.terms.privacy import (
    GRAIN,
    LARGEST,
    Budget,
    Epsilon,
    EpsilonDelta,
    Event,
    Loss,
    Queries,
    Rho,
    Split,
    SubLinear,
    plain,
)

WHOLE: Final = Fraction(1)
BITS: Final = 1200  # of a loss's top and bottom: the wire reads no number of more than 400 digits back


def units(amount: Fraction) -> int:
    """Count an amount in whole units of 1/GRAIN, rounded up: a debit is never less than the loss (T52)."""
    return -(-amount.numerator * GRAIN // amount.denominator)


def whole_units(amount: Fraction) -> int:
    """Count the whole units within a limit: rounded down."""
    return amount.numerator * GRAIN // amount.denominator


@dataclass(frozen=True, slots=True)
class Totals:
    """What all events so far add up to, in units of 1/GRAIN, every addend rounded up.

    The same numbers are enforced, displayed and recomputed from the entries when a ledger is opened.
    """

    epsilon: int = 0  # of the events that have a pure loss
    pure: bool = True  # whether all of them have
    rho: int = 0
    blended: int = 0  # sum of min(epsilon, alpha*rho): the Renyi loss at the order fixed by the split
    key_delta: int = 0
    queries: int = 0  # a plain number
    events: int = 0  # likewise

    def __add__(self, other: Totals) -> Totals:
        """Both together."""
        return Totals(
            self.epsilon + other.epsilon,
            self.pure and other.pure,
            self.rho + other.rho,
            self.blended + other.blended,
            self.key_delta + other.key_delta,
            self.queries + other.queries,
            self.events + other.events,
        )

    def short_of(self, other: Totals) -> Totals:
        """What these lack of others in each part: with it added, they are nowhere less."""
        return Totals(
            max(other.epsilon - self.epsilon, 0),
            other.pure or not self.pure,
            max(other.rho - self.rho, 0),
            max(other.blended - self.blended, 0),
            max(other.key_delta - self.key_delta, 0),
            max(other.queries - self.queries, 0),
            max(other.events - self.events, 0),
        )


class Filter:
    """Admits events as long as their totals stay within a budget.

    Privacy: for asks chosen adaptively, each from all answers before it, adding
    epsilon is a filter for pure loss and adding rho for zero-concentrated loss.
    For EpsilonDelta(E, D', D_keys) the Renyi losses at one order alpha, fixed
    when the ledger was created, may add up to E - c(alpha, D'); or, while every
    event is pure, their epsilons may add up to E. The pure branch uses no delta,
    so allowing either costs nothing more (docs/theory/filter.md).
    Source: [DMNS06, Theorem 1; S4.8], [FZ21, section 4], [WRRW23], [CKS20, Prop. 12].
    """

    __slots__ = ("_alpha", "_limit", "_mechanisms", "_room", "budget", "split")

    def __init__(self, budget: Budget, split: Split | None, mechanisms: Collection[str]) -> None:
        if isinstance(budget, EpsilonDelta) != (split is not None):
            raise ValueError("an EpsilonDelta budget, and no other, has a split")
        self.budget = budget
        self.split = split
        self._mechanisms = frozenset(mechanisms)
        self._limit = budget.queries if isinstance(budget, SubLinear) else whole_units(budget.exact)
        self._alpha = split.alpha if split else Fraction(0)
        self._room = min(whole_units(split.room), self._limit) if split else 0

    def renewed(self, budget: Budget, split: Split | None) -> Filter:
        """A filter for another budget that knows the same mechanisms."""
        return Filter(budget, split, self._mechanisms)

    def check(self, event: Event) -> None:
        """Refuse an event no total could make admissible: nonsense, or a kind this budget cannot hold."""
        for number in _numbers(event):
            if max(abs(number.numerator), number.denominator).bit_length() > BITS:
                raise QuestionError("bad-loss", "A number of this loss is too long to be kept.")
        losses = (event.rho, event.key_delta, *(() if event.epsilon is None else (event.epsilon,)))
        if min(losses) < 0 or event.queries < 0:
            raise QuestionError("bad-loss", "A loss is never negative.")
        unknown = sorted({draw.mechanism for draw in event.draws} - self._mechanisms)
        if unknown:  # SR22
            raise QuestionError("not-available", f"The mechanism {unknown[0]!r} has no row in the mechanism table.")
        moved = any(draw.sensitivity > 0 for draw in event.draws)
        if isinstance(self.budget, SubLinear):
            if moved and event.queries == 0:
                raise QuestionError("not-a-noisy-sum", "Under a SubLinear budget every answer counts as queries.")
        elif moved and (event.rho == 0 or event.epsilon == 0):
            raise QuestionError("bad-loss", "An answer that depends on a person cannot cost nothing.")
        if isinstance(self.budget, Epsilon) and event.epsilon is None:
            raise QuestionError("spend-kind", "This budget is pure epsilon; the noise asked for has no pure loss.")
        if event.key_delta and not isinstance(self.budget, EpsilonDelta):
            raise QuestionError("spend-kind", "Open keys need a budget with a delta.")
        if event.key_delta and self._key_limit == 0:
            raise QuestionError("open-keys", "Nothing of this budget's delta was set aside for open keys.")

    def holds(self, totals: Totals, part: Fraction = WHOLE) -> bool:
        """Whether totals are within the budget, or within a part of it: every limit is then that part of itself."""
        top, bottom = part.numerator, part.denominator
        match self.budget:
            case Epsilon():
                return totals.pure and totals.epsilon * bottom <= self._limit * top and totals.key_delta == 0
            case Rho():
                return totals.rho * bottom <= self._limit * top and totals.key_delta == 0
            case SubLinear():
                return totals.queries * bottom <= self._limit * top and totals.key_delta == 0
        pure = totals.pure and totals.epsilon * bottom <= self._limit * top
        blended = totals.blended * bottom <= self._room * top
        return (pure or blended) and totals.key_delta * bottom <= self._key_limit * top

    def cost(self, event: Event) -> Totals:
        """What one event adds to the totals."""
        renyi = self._alpha * event.rho
        return Totals(
            epsilon=0 if event.epsilon is None else units(event.epsilon),
            pure=event.epsilon is not None,
            rho=units(event.rho),
            blended=units(renyi if event.epsilon is None else min(renyi, event.epsilon)),
            key_delta=units(event.key_delta),
            queries=event.queries,
            events=1,
        )

    def add(self, totals: Totals, event: Event) -> Totals:
        """The totals after one more event."""
        return totals + self.cost(event)

    def limits(self) -> tuple[int, ...]:
        """What may be set aside for someone: the limits that hold for every kind of ask this budget takes.

        Of an EpsilonDelta budget that is the room of the blended branch and the delta of open keys.
        """
        return (self._room, self._key_limit) if isinstance(self.budget, EpsilonDelta) else (self._limit,)

    def measure(self, totals: Totals) -> tuple[int, ...]:
        """What totals take of each of these limits."""
        match self.budget:
            case Epsilon():
                return (totals.epsilon,)
            case Rho():
                return (totals.rho,)
            case SubLinear():
                return (totals.queries,)
        return (totals.blended, totals.key_delta)

    def asked(self, event: Event) -> str:
        """What an event asks for, in words of the budget's kind."""
        match self.budget:
            case SubLinear():
                return f"{event.queries} queries"
            case Rho():
                return f"rho {plain(event.rho)}"
        pure = "no pure epsilon" if event.epsilon is None else f"epsilon {plain(event.epsilon)}"
        keys = f", delta {plain(event.key_delta)} for open keys" if event.key_delta else ""
        return pure if isinstance(self.budget, Epsilon) else f"{pure}, rho {plain(event.rho)}{keys}"

    def spent(self, totals: Totals) -> Loss:
        """What the answers so far are worth: the total loss, in the budget's own kind."""
        match self.budget:
            case Epsilon():
                return Epsilon.total(_amount(totals.epsilon))
            case Rho():
                return Rho.total(_amount(totals.rho))
            case SubLinear():
                return Queries(totals.queries)
        keys = Fraction(totals.key_delta, GRAIN)
        converted = self._limit - self._room + totals.blended
        if totals.pure and totals.epsilon <= converted:
            return EpsilonDelta.total(_amount(totals.epsilon), keys)
        return EpsilonDelta.total(_amount(converted), self._delta + keys)

    def remaining(self, totals: Totals) -> Loss:
        """What is left: for EpsilonDelta the largest pure epsilon that one ask could still spend."""
        return self.loss(self.left(totals))

    def left(self, totals: Totals, part: Fraction = WHOLE) -> tuple[int, ...]:
        """What is left of a part of the budget, in its own unit; never below 0.

        Of an EpsilonDelta budget: the largest pure epsilon, the delta of open keys, and the room of the blended branch.
        """
        limit = self._limit * part.numerator // part.denominator
        if not isinstance(self.budget, EpsilonDelta):
            return (max(limit - self.measure(totals)[0], 0),)
        room = self._room * part.numerator // part.denominator
        keys = self._key_limit * part.numerator // part.denominator - totals.key_delta
        if keys < 0:  # past that limit nothing is admitted, keys or none
            return 0, 0, 0
        room = max(room - totals.blended, 0)
        largest = self.within_room(room)
        if totals.pure:
            largest = max(largest, limit - totals.epsilon)
        return largest, keys, room

    def within_room(self, room: int) -> int:
        """The largest pure epsilon that fits so much of the blended branch.

        A pure ask of epsilon x has rho = x^2/2, so it takes min(x, alpha x^2/2) of the room: this is the inverse.
        """
        room = max(room, 0)
        square = 2 * room * GRAIN / self._alpha
        return max(room, math.isqrt(square.numerator // square.denominator))

    def loss(self, left: tuple[int, ...]) -> Loss:
        """What is left, as a loss of the budget's kind."""
        amount = Fraction(left[0], GRAIN)
        match self.budget:
            case Epsilon():
                return Epsilon.total(amount)
            case Rho():
                return Rho.total(amount)
            case SubLinear():
                return Queries(left[0])
        return EpsilonDelta.total(amount, self._delta + Fraction(left[1], GRAIN))

    def rho(self, left: tuple[int, ...]) -> Fraction | None:
        """The largest rho that one ask could still spend, of what is left; None where the budget holds no rho."""
        match self.budget:
            case Rho():
                return Fraction(left[0], GRAIN)
            case EpsilonDelta():
                return left[2] / (self._alpha * GRAIN)
        return None

    @property
    def _delta(self) -> Fraction:
        return self.split.delta if self.split else Fraction(0)

    @property
    def _key_limit(self) -> int:
        return whole_units(self.split.key_delta) if self.split else 0


def widened(split: Split, budget: EpsilonDelta) -> Split:
    """The division of a raised budget: the same order and shares of delta, so all that was counted keeps its meaning.

    Privacy: the order was fixed before the first ask and stays. Each level (E, D)
    a budget may reach is then a filter of its own over the same sums, and the
    answers given while the budget was at most (E, D) are (E, D)-private
    (docs/theory/filter.md).
    """
    keys = budget.exact_delta * split.key_delta / (split.delta + split.key_delta)
    delta = budget.exact_delta - keys
    room = Fraction(float(budget.exact) - conversion_cost(float(split.alpha), float(delta)))
    return Split(split.alpha, max(room, split.room), delta, keys)


def _amount(total: int) -> Fraction:
    """A total as a loss says it; lost asks may have been charged past what a loss can say."""
    return min(Fraction(total, GRAIN), Fraction(LARGEST))


def _numbers(event: Event) -> Iterator[Fraction]:
    yield event.rho
    yield event.key_delta
    if event.epsilon is not None:
        yield event.epsilon
    for draw in event.draws:
        yield from (draw.sensitivity, draw.scale, draw.step)
