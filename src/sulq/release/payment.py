"""What is said of every release: its price, its promise, its pictures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from sulq.answers import wire
from sulq.answers.answer import Receipt
from sulq.answers.oracle import SpendPlan
from sulq.errors import QuestionError
from sulq.language.privacy import Epsilon, EpsilonDelta, Loss, Queries, Rho, Unit
from sulq.version import __version__

FORMAT: Final = 1  # of a saved release


@dataclass(frozen=True, slots=True)
class Paid:
    """What a release cost, whom it protects and in what sense, and the receipts of its debits."""

    spent: Loss
    unit: Unit
    guarantee: str
    receipts: tuple[Receipt, ...] = ()
    version: str = field(default=__version__)

    @classmethod
    def by(cls, spending: SpendPlan) -> Paid:
        """What a spending has paid so far; a receipt as everybody may see it, without the ledger's own code."""
        receipts = tuple(replace(receipt, mac="", stored=None) for receipt in spending.receipts)
        return cls(spending.spent, spending.facts.unit, spending.guarantee, receipts)

    def to_json(self) -> dict[str, object]:
        """As a description says it."""
        return {
            "spent": wire.to_json(self.spent),
            "unit": wire.to_json(self.unit),
            "guarantee": self.guarantee,
            "receipts": [
                {"seq": receipt.seq, "entry": receipt.entry, "plan": receipt.plan} for receipt in self.receipts
            ],
            "version": self.version,
        }

    @classmethod
    def from_json(cls, tree: Mapping[str, Any]) -> Paid:
        """What `to_json` told; a receipt without the ledger's own code, which stays with the ledger."""
        spent, unit = wire.from_json(tree["spent"]), wire.from_json(tree["unit"])
        if not isinstance(spent, (Epsilon, EpsilonDelta, Rho, Queries)) or not isinstance(unit, Unit):
            raise unreadable()
        receipts = tuple(
            Receipt(int(told["seq"]), str(told["entry"]), str(told["plan"]), "") for told in tree["receipts"]
        )
        return cls(spent, unit, str(tree["guarantee"]), receipts, str(tree["version"]))

    def __str__(self) -> str:
        entries = ", ".join(str(receipt.seq) for receipt in self.receipts)
        return f"spent {self.spent}, protects {self.unit} ({self.guarantee}); ledger entry {entries or 'none'}"


@dataclass(frozen=True, slots=True)
class Chart:
    """One picture of a release's page: a number with its error bar for each of some names."""

    title: str
    names: tuple[str, ...]
    values: tuple[float, ...]
    error: tuple[float, ...] = ()  # half the length of each bar's interval; empty where there is none
    said: str = ""  # a line below: what the interval means, what was measured against what was foreseen


def unreadable(why: str = "This is not a release that sulq wrote.") -> QuestionError:
    """The refusal of what cannot be loaded."""
    return QuestionError("bad-release", why)
