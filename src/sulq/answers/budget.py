"""What a budget is, what of it is spent and left, and what that buys: for people to read."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from sulq.language.facts import Facts, Whose, delta_parts
from sulq.language.law import GaussianLaw, LaplaceLaw
from sulq.language.privacy import Budget, Epsilon, EpsilonDelta, Loss, Queries, Rho, Split, Unit, plain

BAR_SIGNS: Final = 20
WITHIN_ROWS: Final = 50  # the accuracy of the counts that stand for what is left
WHOSE: Final[dict[Whose, str]] = {
    "everyone": "by everyone",
    "analyst": "by you",
    "reports": "by each report, when it was given",
}


@dataclass(frozen=True, slots=True)
class BudgetLeft:
    """What would be left after an ask: the largest loss that one more could spend, and the rho several could share."""

    remaining: Loss
    rho: Fraction | None


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

    def after(self, left: BudgetLeft) -> BudgetReport:
        """The budget as it would stand if so much were left."""
        total = _number(self.spent) + _number(self.remaining) - _number(left.remaining)
        kind = type(self.spent) if isinstance(self.spent, (Rho, EpsilonDelta)) else Epsilon
        spent = Queries(int(total)) if isinstance(self.spent, Queries) else kind.total(total)
        return replace(self, spent=spent, remaining=left.remaining, rho=left.rho)

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
            return f"{self.counts:,} more noisy {'sum' if self.counts == 1 else 'sums'}"
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
        spent, left = _number(self.spent), _number(self.remaining)
        return float(spent / (spent + left)) if spent + left else 1.0

    def __repr__(self) -> str:
        return "\n".join(f"{name:8}{value}" for name, value in self.lines().items())

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>"
            for name, value in self.lines().items()
        )
        return f"<table>{rows}</table>"


def _number(loss: Loss) -> Fraction:
    return loss.exact if isinstance(loss, Queries) else loss.amount


@dataclass(frozen=True, slots=True)
class RunForecast:
    """What would be left after each of several asks, in their order; an ask that is refused takes nothing.

    Nothing is spent, and no row is read. An answer that is stored and given again costs nothing, which is not foretold.
    """

    asks: tuple[str, ...]
    prices: tuple[Loss, ...]
    left: tuple[BudgetLeft | None, ...]  # None: refused
    before: BudgetReport

    @property
    def fits(self) -> bool:
        """Whether all of them would be answered."""
        return None not in self.left

    @property
    def after(self) -> BudgetReport:
        """The budget as it would stand after those that fit."""
        found = [left for left in self.left if left is not None]
        return self.before.after(found[-1]) if found else self.before

    def to_dict(self) -> dict[str, list[object]]:
        """A row for each ask: what it is, its price, and what would be left after it; None where it is refused."""
        left = [None if one is None else one.remaining for one in self.left]
        return {"ask": list(self.asks), "price": list(self.prices), "left": list(left)}

    def __repr__(self) -> str:
        number = sum(left is not None for left in self.left)
        lines = [
            f"{number} of {len(self.left)} asks fit; nothing is spent yet",
            f"now     {self.before.remaining} left",
        ]
        for ask, price, left in zip(self.asks, self.prices, self.left, strict=True):
            told = "refused: more than is left" if left is None else f"{left.remaining} left"
            lines.append(f"{told} after {price}{f': {ask}' if ask else ''}")
        lines.append(f"then    {self.after.buys}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self), quote=False)}</pre>"


def _scale(law: type[LaplaceLaw | GaussianLaw]) -> Fraction:
    """The largest scale, to a sixteenth, at which a count is within that many rows at 95%."""
    low, high = 16, 16 * WITHIN_ROWS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if law(Fraction(middle, 16)).accuracy(0.05) <= WITHIN_ROWS else (low, middle)
    return Fraction(low, 16)
