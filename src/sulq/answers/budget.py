"""What a budget is, what of it is spent and left, and what that buys: for people to read."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from sulq.language.facts import Facts, Whose, delta_parts
from sulq.language.law import GaussianLaw, LaplaceLaw
from sulq.language.privacy import Budget, Loss, Queries, Rho, Split, Unit, plain

BAR_SIGNS: Final = 20
WITHIN_ROWS: Final = 50  # the accuracy of the counts that stand for what is left
WHOSE: Final[dict[Whose, str]] = {
    "everyone": "by everyone",
    "analyst": "by you",
    "reports": "by each report, when it was given",
}


@dataclass(frozen=True, slots=True)
class BudgetReport:
    """A budget as it stands: of an EpsilonDelta budget `spent` and `remaining` are epsilons that add up to its own.

    `rho`: what several asks may still share, where the budget holds any. `counts`: about how many more counts, each
    within 50 rows at 95%, what is left buys; under a SubLinear budget how many more sums. `split`: how the delta of an
    EpsilonDelta budget is divided.
    """

    budget: Budget
    spent: Loss
    remaining: Loss
    rho: Fraction | None
    unit: Unit
    whose: Whose
    split: Split | None = None

    @classmethod
    def of(cls, facts: Facts) -> BudgetReport:
        """The budget of a database, as it stands now."""
        return cls(facts.budget, facts.spent, facts.remaining, facts.rho, facts.unit, facts.whose, facts.split)

    @property
    def counts(self) -> int:
        """About how many more counts within 50 rows, or sums, what is left buys."""
        left = self.remaining
        if isinstance(left, Queries):
            return left.queries
        k = self.unit.rows
        pure = Fraction(k, _scale(LaplaceLaw))
        shared = Fraction(k**2, 2 * _scale(GaussianLaw) ** 2)
        if isinstance(left, Rho):
            return math.floor(left.amount / shared)
        return math.floor(max(left.amount / pure, (self.rho or Fraction(0)) / shared))

    @property
    def buys(self) -> str:
        """What is left, in words."""
        if isinstance(self.remaining, Queries):
            return f"{self.counts:,} more noisy sums"
        return f"about {self.counts:,} more counts within {WITHIN_ROWS} rows"

    def lines(self) -> dict[str, str]:
        """The report, line by line."""
        part = self._part()
        filled = round(BAR_SIGNS * part)
        bar = "#" * filled + "-" * (BAR_SIGNS - filled)
        shared = (
            f", or rho {plain(self.rho)} for several asks" if self.rho and not isinstance(self.remaining, Rho) else ""
        )
        return {
            "budget": str(self.budget),
            "spent": f"{self.spent} {WHOSE[self.whose]}",
            "left": f"{self.remaining}{shared}",
            "": f"[{bar}] {part:.0%} spent",
            "buys": self.buys,
        } | ({} if self.split is None else {"delta": delta_parts(self.split)})

    def _part(self) -> float:
        """Which part of the budget is gone."""
        whole = self.spent.exact if isinstance(self.spent, Queries) else self.spent.amount
        left = self.remaining.exact if isinstance(self.remaining, Queries) else self.remaining.amount
        return float(whole / (whole + left)) if whole + left else 1.0

    def __repr__(self) -> str:
        return "\n".join(f"{name:8}{value}" for name, value in self.lines().items())

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>"
            for name, value in self.lines().items()
        )
        return f"<table>{rows}</table>"


def _scale(law: type[LaplaceLaw | GaussianLaw]) -> Fraction:
    """The largest scale, to a sixteenth, at which a count is within that many rows at 95%."""
    low, high = 16, 16 * WITHIN_ROWS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if law(Fraction(middle, 16)).accuracy(0.05) <= WITHIN_ROWS else (low, middle)
    return Fraction(low, 16)
