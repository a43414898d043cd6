"""Entries about to be written: whatever is proposed, no debit among them takes the totals past the budget."""

from __future__ import annotations

from collections.abc import Mapping

from sulq.errors import BudgetExceeded, SetupError
from sulq.kernel import wire
from sulq.kernel.ledger import entries
from sulq.kernel.ledger.chain import Row, link
from sulq.kernel.ledger.entries import Debit
from sulq.kernel.ledger.filter import Filter, Totals, widened
from sulq.kernel.ledger.state import State
from sulq.kernel.losses import Budget, EpsilonDelta, Split, SubLinear


class Draft:
    """Entries of one transaction, on top of a state."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.rows: list[Row] = []
        self.debits: dict[int, tuple[str, Debit]] = {}  # what was charged, by its entry's place, with its hash
        # What the state will say once these entries are written.
        self.totals: Totals = state.totals
        self.filter: Filter = state.filter
        self.extra: object = None  # what those who propose keep for each other

    def debit(self, debit: Debit) -> int:
        """Charge an event; returns the place of its entry, of which there is a receipt once it is durable.

        Privacy: the entry says what is paid and for what, and the totals with it are within the budget.

        Raises:
            BudgetExceeded: It does not fit the budget.
        """
        told = wire.strict(debit.body)
        paid = None if not isinstance(told, dict) else (told.get("kind"), told.get("event"), told.get("plan_digest"))
        if paid != ("debit", wire.to_json(debit.event, entries.KINDS), debit.plan):
            raise ValueError("an entry that says other than what is charged")
        self.filter.check(debit.event)
        totals = self.totals + self.filter.cost(debit.event)
        if not self.filter.holds(totals):
            raise BudgetExceeded("budget-exceeded", "This would take the spending past the budget.")
        row = self._add(debit.body)
        self.totals = totals
        self.debits[row.seq] = (row.hash.hex(), debit)
        return row.seq

    def burn(self, losses: Mapping[str, Totals], *, name: str, settles: str, time: str) -> None:
        """Charge asks the ledger has lost, as its anchor told: never too much."""
        self._add(entries.burnt(losses, name=name, settles=settles, time=time))
        self.totals = sum(losses.values(), self.totals)

    def raise_to(self, budget: Budget, *, time: str) -> None:
        """Raise the budget, if it is another one.

        Raises:
            SetupError: `budget-mismatch` if it is of another kind, or lower in any part.
        """
        own = self.filter
        if budget == own.budget:
            return
        _not_lower(own.budget, budget)
        split: Split | None = None
        if own.split is not None and isinstance(budget, EpsilonDelta):
            split = widened(own.split, budget)
        self._add(entries.raised(budget, split, time=time))
        self.filter = own.renewed(budget, split)

    def note(self, body: str) -> Row:
        """Add an entry that spends nothing."""
        told = wire.strict(body)
        if not isinstance(told, dict) or told.get("kind") not in entries.NOTES:
            raise ValueError("an entry of this kind is no note")
        return self._add(body)

    def _add(self, body: str) -> Row:
        """Put an entry after the last one."""
        last = self.rows[-1] if self.rows else Row(self.state.seq, "", self.state.hash)
        row = Row(last.seq + 1, body, link(last.hash, last.seq + 1, body))
        self.rows.append(row)
        return row


def _not_lower(own: Budget, budget: Budget) -> None:
    if type(own) is not type(budget):
        raise SetupError("budget-mismatch", f"A budget of {own} cannot become one of {budget}.", "Keep its kind.")
    if isinstance(own, SubLinear):
        raise SetupError(
            "budget-mismatch",
            "A SubLinear budget cannot be raised: the noise of every answer was fixed by its number of queries.",
            "Begin a new person space, or ask under another budget from the start.",
        )
    lower = budget.exact < own.exact
    if isinstance(own, EpsilonDelta) and isinstance(budget, EpsilonDelta):
        lower = lower or budget.exact_delta < own.exact_delta
    if lower:
        raise SetupError("budget-mismatch", f"A budget is never lowered: {own} to {budget}.", "Raise it or leave it.")
