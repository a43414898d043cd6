"""Receipts of debits: plain values, which any process may hold."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Receipt:
    """Where one debit stands in its ledger.

    `entry` is the hash that chains the entry to all before it, so whoever holds
    a receipt can show that the history up to it was not rewritten (T60).
    """

    seq: int
    entry: str
    plan: str  # digest of the plan that was paid for
    # By the ledger's own key, over the above and the event that was charged: the part that sees rows takes no other.
    # Empty beside a stored answer, which opens no row.
    mac: str = field(compare=False)
    # The answer given earlier to this idempotency key (T44); it stays on this side of the wire.
    stored: str | None = field(default=None, compare=False, repr=False, metadata={"wire": False})

    def __str__(self) -> str:
        return f"entry {self.seq} ({self.entry[:12]})"
