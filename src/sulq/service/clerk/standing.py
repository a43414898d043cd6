"""What the clerk tells an owner's monitoring of each dataset: whether it is ready, its asks, workers and budget.

Everything here is the operator's own: public declarations, the ledger's totals and counts of what was done. Nothing
is read for it: a ledger whose disk or database is away is told as it was last known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from sulq.curator.ledger.ledger import Ledger
from sulq.language.privacy import Budget, Loss
from sulq.service.clerk.worker_pool import OpenDataset
from sulq.service.ipc import Frame

UNITS: Final = ("epsilon", "delta", "rho", "queries")  # in which a budget and what is spent of it are counted


def standing_of(held: OpenDataset, workers: Iterable[Mapping[str, object]]) -> Frame:
    """One dataset as it is now; `workers` are those of all datasets that are connected."""
    found: Frame = {
        "name": held.name,
        "ready": held.ready,
        "problem": None if held.problem is None else held.problem.code,
        "late": held.late,
        "asks": held.asks,
        "waiting": 0 if held.rows is None else held.rows.idle.waiting,
        "workers": sum(worker.get("dataset") == held.name for worker in workers),
        "idle": 0 if held.rows is None else len(held.rows.idle),
    }
    return found if held.ledger is None else found | budget_of(held.ledger)


def budget_of(ledger: Ledger) -> Frame:
    """What there is, is spent and left, of all and of each analyst who has an account, each in its own unit."""
    whole, spent, remaining = ledger.standing(fresh=False)
    shares: list[Frame] = [
        {"analyst": account.analyst, "spent": amounts(account.spent), "remaining": amounts(account.remaining)}
        for account in ledger.standings(fresh=False)
    ]
    return {
        "budget": {"limit": amounts(whole), "spent": amounts(spent), "remaining": amounts(remaining)},
        "shares": shares,
    }


def amounts(loss: Budget | Loss) -> dict[str, float]:
    """The numbers of a budget or a loss, by their unit."""
    return {unit: float(getattr(loss, unit)) for unit in UNITS if unit in loss.__dataclass_fields__}
