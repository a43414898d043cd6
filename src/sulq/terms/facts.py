"""Everything about a database that is public."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sulq.terms.domain import Category, Column, Schema
from sulq.terms.privacy import Budget, EpsilonDelta, Loss, Rho, SubLinear, Unit
from sulq.terms.sublinear import noise_for

SHOWN: Final = 5  # categories named before the rest are counted
MUCH: Final = 20  # an epsilon past this is worth a word


@dataclass(frozen=True, slots=True)
class Facts:
    """Public facts: declarations, unit, budget and what remains of it; nothing read off a row."""

    schema: Schema
    unit: Unit
    budget: Budget
    spent: Loss
    remaining: Loss
    size: int | None = None  # the owner's declared public size
    synthetic: bool = False
    durable: bool = True  # False: the ledger is in memory and forgotten at exit
    version: int = 1  # advanced by the owner's registration (SR12)

    @property
    def table(self) -> str:
        """The name the data was registered under."""
        return self.schema.table

    @property
    def cautions(self) -> tuple[str, ...]:
        """What a careful reader of the declarations would point out (T93)."""
        found = []
        budget, size = self.budget, self.size
        if isinstance(budget, (EpsilonDelta, SubLinear)) and size is not None and budget.exact_delta * size >= 1:
            found.append("delta is at least 1/size: one person in the table may be given away outright")
        if not isinstance(budget, Rho) and budget.exact > MUCH:
            found.append(f"a budget past epsilon {MUCH} protects little")
        return tuple(found)

    def __str__(self) -> str:
        lines = [f"{self.table}: protects {self.unit}"]
        lines.append(f"budget {self.budget}; spent {self.spent}; left {self.remaining}")
        lines += [f"  {name}: {_brief(column)}" for name, column in self.schema.columns]
        if self.size is not None:
            lines.append(f"declared size {self.size}")
        if isinstance(self.budget, SubLinear):
            lines.append(noise_for(self.budget, self.size).report)
        lines += [f"caution: {caution}" for caution in self.cautions]
        if self.synthetic:
            lines.append("synthetic data: not private")
        if not self.durable:
            lines.append("the ledger is in memory and forgotten at exit")
        return "\n".join(lines)


def _brief(column: Column) -> str:
    if not isinstance(column, Category):
        return repr(column).replace("lo=", "").replace("hi=", "").replace(", grid=None", "")
    named = ", ".join(map(repr, column.values[:SHOWN]))
    more = len(column.values) - SHOWN
    return f"Category({named}, and {more} more)" if more > 0 else f"Category({named})"
