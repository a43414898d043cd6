"""Who is protected, what an answer costs, and how much there is to spend: the kernel's own words, and queries."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from sulq.errors import QuestionError, SetupError
from sulq.kernel.facts import (
    CALIBRATIONS,
    GRAIN,
    LARGEST,
    NEIGHBORS,
    SMALLEST,
    Budget,
    Draw,
    Epsilon,
    EpsilonDelta,
    Event,
    Fold,
    Neighbors,
    Number,
    Rho,
    Split,
    SubLinear,
    Unit,
    best_order,
    conversion_cost,
    exactly,
    plain,
)
from sulq.kernel.laws import gaussian_holds

__all__ = [
    "CALIBRATIONS", "GRAIN", "LARGEST", "NEIGHBORS", "SMALLEST", "Budget", "Draw", "Epsilon", "EpsilonDelta",
    "EpsilonKeys", "Event", "Fold", "Loss", "Neighbors", "Number", "Queries", "Rho", "Split", "SubLinear", "Unit",
    "basic_part", "delta_share_of", "divided", "epsilon_of", "exactly", "key_part", "normal_epsilon", "normal_rho",
    "plain",
    "probability",
]  # fmt: skip


KEY_SHARE: Final = Fraction(1, 10)  # of delta, for open keys; of an ask's delta likewise, so that as many asks fit
BASIC_SHARE: Final = Fraction(1, 20)  # of the rest: the blended branch keeps 99% of its room (docs/theory/filter.md)
DELTA_SHARES: Final = {  # the parts of delta that an owner may set, and what they are where the owner sets none
    "basic_share": plain(BASIC_SHARE),
    "key_share": f"{plain(KEY_SHARE)} where a table has open keys, else 0",
}
MAX_DELTA_SHARE: Final = Fraction(9, 10)
MAX_DELTA_SHARE_DENOMINATOR: Final = 10**9
BASIC_ASKS: Final = 16  # how many asks priced in rho share that delta


def divided(
    budget: EpsilonDelta, *, open_keys: bool, basic: Fraction | None = None, keys: Fraction | None = None
) -> Split:
    """Divide delta between conversion, open keys and basic composition, and fix the order of Renyi losses.

    The order with the most room is fixed in advance, so plain addition is a filter (SR3); the kernel's filter takes no
    more room than the order and the delta allow. `keys` is the part for open keys; None is the usual one where a table
    has them (`open_keys`), else 0. Of the rest `basic` is the part for basic composition; None is the usual one.
    """
    if keys is None:
        keys = KEY_SHARE if open_keys else Fraction(0)
    whole = budget.exact_delta
    keys *= whole
    basic = (whole - keys) * (BASIC_SHARE if basic is None else basic)
    delta = whole - keys - basic
    alpha = best_order(float(budget.exact), float(delta))
    room = float(budget.exact) - conversion_cost(alpha, float(delta))
    return Split(Fraction(alpha), max(Fraction(room), Fraction(0)), delta, keys, basic)


def delta_share_of(name: str, told: object, budget: Budget | None = None) -> Fraction | None:
    """Read a part of delta that an owner sets, `basic_share` or `key_share`, as it was written: 0.1 is one tenth.

    None is no setting. `budget`: the one it is set for, if that is known already.

    Raises:
        SetupError: `bad-declaration`: it is no such part, or the budget is no EpsilonDelta.
    """
    if told is None:
        return None
    try:
        part = exactly(told, name, smallest=Fraction(0), largest=1)
    except QuestionError:
        part = None
    if part is None or part > MAX_DELTA_SHARE or part.denominator > MAX_DELTA_SHARE_DENOMINATOR:
        raise SetupError(
            "bad-declaration",
            f"{name} is a number from 0 to 0.9, with at most nine decimals.",
            f"Write 0.2, say, or leave it out for {DELTA_SHARES[name]}.",
        )
    if budget is not None and not isinstance(budget, EpsilonDelta):
        raise SetupError(
            "bad-declaration",
            f"{name} divides the delta of an EpsilonDelta budget; {budget} has none to divide.",
            f"Leave {name} out, or declare an EpsilonDelta budget.",
        )
    return part


def key_part(split: Split) -> Fraction:
    """The part of delta that a division has for open keys."""
    return split.key_delta / (split.delta + split.key_delta + split.basic_delta)


def basic_part(split: Split) -> Fraction:
    """The part of delta that a division has for basic composition, of what is not for open keys."""
    return split.basic_delta / (split.delta + split.basic_delta)


def epsilon_of(rho: Fraction, delta: Fraction) -> Fraction:
    """The least epsilon known to hold a zero-concentrated loss at a delta, rounded up: alpha rho + c(alpha, delta).

    Where delta alone would do it is the smallest that is counted.
    """
    loss, chance = float(rho), float(delta)
    low, high = math.log(1e-6), math.log(1e12)
    golden = (math.sqrt(5.0) - 1.0) / 2.0

    def at(place: float) -> float:
        alpha = 1.0 + math.exp(place)
        return alpha * loss + conversion_cost(alpha, chance)

    for _ in range(200):  # one valley in the logarithm of alpha - 1
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (left, high) if at(left) > at(right) else (low, right)
    return max(Fraction(max(at(low), at(high)) * (1.0 + 1e-9)), SMALLEST)


def normal_epsilon(rho: Fraction, draws: Sequence[Draw], delta: Fraction) -> Fraction:
    """Likewise of draws, which may be discrete Gaussian noise alone: then by the normal law's own curve."""
    most = epsilon_of(rho, delta)
    draws = _telling(draws)
    if not gaussian_holds(rho, draws, most, delta):
        return most
    low, high = 0.0, float(most)
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (low, middle) if gaussian_holds(rho, draws, Fraction(middle), delta) else (middle, high)
    return min(max(Fraction(high * (1.0 + 1e-6)), SMALLEST), most)


def _telling(draws: Sequence[Draw]) -> Sequence[Draw]:
    """Of many draws of plain Gaussian noise the one with the least scale: the others change nothing in the curve."""
    return [min(draws, key=lambda draw: draw.scale)] if {draw.mechanism for draw in draws} == {"gaussian"} else draws


def normal_rho(rho: Fraction, draws: Sequence[Draw], epsilon: Fraction, delta: Fraction) -> Fraction | None:
    """The largest loss that draws of this rho, made less noisy alike, may have at an (epsilon, delta), if it is more.

    None where it is not, or where the draws are not discrete Gaussian noise alone.
    """

    def holds(times: float) -> bool:
        part = Fraction(1 / math.sqrt(times) * (1.0 - 1e-9))
        narrower = [replace(draw, scale=draw.scale * part) for draw in draws]
        # No higher a threshold than such draws will have: more noise lies past it.
        narrower = [replace(each, threshold=each.threshold and math.floor(each.threshold * part)) for each in narrower]
        return gaussian_holds(rho * Fraction(times), narrower, epsilon, delta)

    low, high = 1.0, 4.0
    if not holds(low):
        return None
    for _ in range(50):
        middle = (low + high) / 2.0
        low, high = (middle, high) if holds(middle) else (low, middle)
    return rho * Fraction(low) if low > 1.0 else None


@dataclass(frozen=True, slots=True)
class Queries:
    """A number of scalar noisy sums: the currency of a SubLinear budget [S0.8]."""

    queries: int

    def __post_init__(self) -> None:
        if isinstance(self.queries, bool) or not isinstance(self.queries, int) or self.queries < 0:
            raise QuestionError("bad-loss", "queries must be a whole number, zero or more.")

    @property
    def exact(self) -> Fraction:
        """The number of queries."""
        return Fraction(self.queries)

    def __str__(self) -> str:
        return f"{self.queries} {'query' if self.queries == 1 else 'queries'}"


@dataclass(frozen=True, slots=True)
class EpsilonKeys:
    """An (epsilon, delta) that is kept by Laplace noise: of delta open keys take their part, and nothing else any.

    It is what `law="laplace"`, or the choice of a law, makes of an `EpsilonDelta` where keys are open (SR14).
    """

    epsilon: Number
    delta: Number

    def __post_init__(self) -> None:
        EpsilonDelta(self.epsilon, self.delta)

    @property
    def exact(self) -> Fraction:
        """Epsilon as it was written."""
        return EpsilonDelta(self.epsilon, self.delta).exact

    @property
    def amount(self) -> Fraction:
        """Likewise, of what is spent or left in total."""
        return EpsilonDelta(self.epsilon, self.delta).amount

    @property
    def exact_delta(self) -> Fraction:
        """Delta as it was written."""
        return EpsilonDelta(self.epsilon, self.delta).exact_delta

    def __str__(self) -> str:
        return f"{EpsilonDelta(self.epsilon, self.delta)}, Laplace noise"


Loss = Epsilon | Rho | EpsilonDelta | EpsilonKeys | Queries
LOSS_BY_FIELDS: Final[Mapping[frozenset[str], type[Loss]]] = {  # a loss by the names of what it is given
    frozenset({"epsilon"}): Epsilon,
    frozenset({"epsilon", "delta"}): EpsilonDelta,
    frozenset({"rho"}): Rho,
    frozenset({"queries"}): Queries,
}


HELD: Final[Mapping[type, tuple[type, ...]]] = {
    Epsilon: (Epsilon,),
    Rho: (Rho, Epsilon),
    EpsilonDelta: (Epsilon, Rho, EpsilonDelta, EpsilonKeys),
    SubLinear: (Queries,),
}


def check_kind(spend: Loss, budget: Budget) -> None:
    """Refuse a spend of a kind that a budget cannot hold (SR3)."""
    if not isinstance(spend, HELD[type(budget)]):
        kind = type(spend).__name__
        raise QuestionError("spend-kind", f"A budget of {type(budget).__name__} cannot hold a spend of {kind}.")


def probability(value: object) -> float:
    """Read a probability strictly between 0 and 1, or refuse it."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Fraction)) or not 0 < value < 1:
        raise QuestionError("bad-literal", "A probability lies strictly between 0 and 1.")
    return float(value)
