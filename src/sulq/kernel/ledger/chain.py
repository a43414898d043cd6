"""The hash chain of a ledger's entries, and receipts of debits: plain values, which any process may hold."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Final, NamedTuple

ORIGIN: Final = bytes(32)  # what the first entry is chained to


class Row(NamedTuple):
    """One entry as it stands in the file."""

    seq: int
    body: str
    hash: bytes


@dataclass(frozen=True, slots=True)
class Receipt:
    """Where one debit stands in its ledger.

    `entry` is the hash that chains the entry to all before it, so whoever holds
    a receipt can show that the history up to it was not rewritten (T60).
    """

    seq: int
    entry: str
    plan: str  # digest of the plan that was paid for
    # By the key of the ledger's opening, over the above and the event that was charged: the part that sees rows takes
    # no other. Empty beside a stored answer, which opens no row.
    mac: str = field(compare=False)
    # The answer given earlier to this idempotency key (T44); it stays on this side of the wire.
    stored: str | None = field(default=None, compare=False, repr=False, metadata={"wire": False})

    def __str__(self) -> str:
        return f"entry {self.seq} ({self.entry[:12]})"


def canonical(body: object) -> str:
    """Write a body one way only, so that equal entries have equal bytes."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)


def link(previous: bytes, seq: int, body: str) -> bytes:
    """Chain an entry to all before it; the two first parts have fixed lengths, so no two entries read alike (T47)."""
    return hashlib.sha256(previous + seq.to_bytes(8, "big") + body.encode()).digest()
