"""The privacy filter: whether one more event fits what a person space may lose (SR3)."""

from __future__ import annotations

import operator
from collections.abc import Collection
from fractions import Fraction
from typing import Final, NamedTuple

from sulq.errors import QuestionError
from sulq.kernel.facts import GRAIN, Budget, EpsilonDelta, Event, Rho, Split, SubLinear, conversion_cost, converts
from sulq.kernel.laws import gaussian_holds

NIL, WHOLE = Fraction(0), Fraction(1)
SLACK: Final = Fraction(5, 10**13)
BITS: Final = 1200  # of a loss's top and bottom: the wire reads no number of more than 400 digits back


def units(amount: Fraction) -> int:
    """Count an amount in whole units of 1/GRAIN, rounded up: a debit is never less than the loss (T52)."""
    return -(-amount.numerator * GRAIN // amount.denominator)


def whole_units(amount: Fraction) -> int:
    """Count the whole units within a limit: rounded down."""
    return amount.numerator * GRAIN // amount.denominator


class Totals(NamedTuple):
    """What all events so far add up to, in units of 1/GRAIN, rounded up; enforced, shown, recomputed at opening."""

    epsilon: int = 0  # of the events that are pure, or have an (epsilon, delta)
    pure: bool = True  # whether all of them are, or have
    rho: int = 0
    blended: int = 0  # sum of min(epsilon, alpha*rho): the Renyi loss at the order fixed by the split
    key_delta: int = 0
    queries: int = 0  # a plain number
    events: int = 0  # likewise
    delta: int = 0  # of the events that have an (epsilon, delta)

    def __add__(self, other: Totals) -> Totals:  # type: ignore[override]  # no longer tuple
        """Both together."""
        epsilon, _, *others = map(operator.add, self, other)
        return Totals(epsilon, self.pure and other.pure, *others)


class Filter:
    """Admits events as long as their totals stay within a budget.

    Privacy: for asks chosen adaptively, each from all answers before it, adding epsilon is a filter for pure loss and
    adding rho for zero-concentrated loss. For EpsilonDelta(E, D' + D_basic + D_keys) the Renyi losses at one order
    alpha, fixed when the ledger was created, may add up to E - c(alpha, D'); or the events' (epsilon, delta), with no
    delta where pure, to (E, D_basic). Each branch has its own share of delta (SR26; docs/theory/filter.md).
    Source: [DMNS06, Theorem 1; S4.8], [FZ21, section 4], [WRRW23], [CKS20, Prop. 12].
    """

    __slots__ = ("alpha", "basic_limit", "budget", "key_limit", "limit", "mechanisms", "room", "split")

    def __init__(self, budget: Budget, split: Split | None, mechanisms: Collection[str]) -> None:
        if isinstance(budget, EpsilonDelta) != (split is not None):
            raise ValueError("an EpsilonDelta budget, and no other, has a split")
        self.budget = budget
        self.split = split
        self.mechanisms = frozenset(mechanisms)
        # What each total may reach, in its own units: of EpsilonDelta both branches, and open keys.
        self.limit = budget.queries if isinstance(budget, SubLinear) else whole_units(budget.exact)
        self.room, self.key_limit, self.basic_limit, self.alpha = 0, 0, 0, Fraction(0)
        if split is not None and isinstance(budget, EpsilonDelta):
            # No more is believed of a split than follows from its order, above 1, and its delta; but for half the
            # margin of the cost, which two machines may round otherwise.
            most = budget.exact - Fraction(conversion_cost(float(split.alpha), float(split.delta))) + SLACK
            self.room = min(whole_units(split.room), whole_units(max(most, Fraction(0))), self.limit)
            keys = min(split.key_delta, budget.exact_delta - split.delta)
            self.key_limit = whole_units(keys)
            self.basic_limit = whole_units(min(split.basic_delta, budget.exact_delta - split.delta - keys))
            self.alpha = split.alpha

    def check(self, event: Event) -> None:
        """Refuse an event that is nonsense, or that nothing would be charged for."""
        losses = [e for e in (event.epsilon, event.basic, event.rho, event.delta, event.key_delta) if e is not None]
        numbers = losses + [each for draw in event.draws for each in (draw.sensitivity, draw.scale, draw.step)]
        exact = {type(each) for each in numbers} == {Fraction}  # a ledger's entry reads nothing else back
        if not exact or any(max(abs(each.numerator), each.denominator).bit_length() > BITS for each in numbers):
            raise QuestionError("bad-loss", "A number of this loss is no exact fraction, or too long to be kept.")
        if min(losses) < 0 or type(event.queries) is not int or event.queries < 0:
            raise QuestionError("bad-loss", "A loss is never negative, and queries are a whole number.")
        unknown = sorted({draw.mechanism for draw in event.draws} - self.mechanisms)
        if unknown:  # SR22
            raise QuestionError("not-available", f"The mechanism {unknown[0]!r} has no row in the mechanism table.")
        moved = any(draw.sensitivity > 0 for draw in event.draws)
        if isinstance(self.budget, SubLinear):
            if moved and event.queries == 0:
                raise QuestionError("not-a-noisy-sum", "Under a SubLinear budget every answer counts as queries.")
        elif moved and (event.rho == 0 or event.epsilon == 0):
            raise QuestionError("bad-loss", "An answer that depends on a person cannot cost nothing.")
        pure = event.epsilon is not None or event.queries > 0
        paired = event.basic is not None or event.delta > 0
        pair = event.basic or 0, event.delta
        if paired and (pure or not (converts(event.rho, *pair) or gaussian_holds(event.rho, event.draws, *pair))):
            raise QuestionError("bad-loss", "This epsilon and delta are less than the loss they stand for.")

    def holds(self, totals: Totals, part: Fraction = WHOLE) -> bool:
        """Whether totals are within the budget, or within a part of it: every limit is then that part of itself."""
        top, bottom = part.numerator, part.denominator
        if totals.key_delta * bottom > self.key_limit * top:
            return False
        match self.budget:
            case Rho():
                return totals.rho * bottom <= self.limit * top
            case SubLinear():
                return totals.queries * bottom <= self.limit * top
        basic = totals.pure and totals.delta * bottom <= self.basic_limit * top
        if basic and totals.epsilon * bottom <= self.limit * top:
            return True
        return self.split is not None and totals.blended * bottom <= self.room * top

    def admits_all_of(self, other: Filter) -> bool:
        """Whether all that the other admits is admitted here too, and is counted alike."""
        alike = type(self.budget) is type(other.budget) and self.alpha == other.alpha
        limits = [(rule.limit, rule.room, rule.key_limit, rule.basic_limit) for rule in (self, other)]
        return alike and all(map(operator.ge, *limits))

    def cost(self, event: Event) -> Totals:
        """What one event adds to the totals."""
        renyi, epsilon = self.alpha * event.rho, event.basic if event.epsilon is None else event.epsilon
        blended = renyi if event.epsilon is None else min(renyi, event.epsilon)
        added, rho, blend, keys, delta = map(units, (epsilon or NIL, event.rho, blended, event.key_delta, event.delta))
        return Totals(added, epsilon is not None, rho, blend, keys, event.queries, 1, delta)
