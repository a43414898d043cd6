"""Who is protected, what an answer costs, and how much there is to spend: the kernel's own words, and queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from sulq.errors import QuestionError
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

__all__ = [
    "CALIBRATIONS", "GRAIN", "LARGEST", "NEIGHBORS", "SMALLEST", "Budget", "Draw", "Epsilon", "EpsilonDelta",
    "Event", "Fold", "Loss", "Neighbors", "Number", "Queries", "Rho", "Split", "SubLinear", "Unit", "divided",
    "exactly", "plain", "probability",
]  # fmt: skip


def divided(budget: EpsilonDelta, *, open_keys: bool) -> Split:
    """Divide delta between the conversion and open keys, and fix the order at which Renyi losses are added up.

    The order with the most room is fixed in advance, so plain addition is a filter (SR3); the kernel's filter takes no
    more room than the order and the delta allow.
    """
    delta = budget.exact_delta / 2 if open_keys else budget.exact_delta
    alpha = best_order(float(budget.exact), float(delta))
    room = float(budget.exact) - conversion_cost(alpha, float(delta))
    return Split(Fraction(alpha), max(Fraction(room), Fraction(0)), delta, budget.exact_delta - delta)


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
        return f"{self.queries} queries"


Loss = Epsilon | Rho | EpsilonDelta | Queries
LOSS_BY_FIELDS: Final[Mapping[frozenset[str], type[Loss]]] = {  # a loss by the names of what it is given
    frozenset({"epsilon"}): Epsilon,
    frozenset({"epsilon", "delta"}): EpsilonDelta,
    frozenset({"rho"}): Rho,
    frozenset({"queries"}): Queries,
}


def probability(value: object) -> float:
    """Read a probability strictly between 0 and 1, or refuse it."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Fraction)) or not 0 < value < 1:
        raise QuestionError("bad-literal", "A probability lies strictly between 0 and 1.")
    return float(value)
