"""The hash chain of a ledger's entries, receipts of debits, and the seal on them."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from sulq.kernel import wire
from sulq.kernel.facts import Draw, Event

ORIGIN: Final = bytes(32)  # what the first entry is chained to
EVENTS: Final = {kind.__name__: kind for kind in (Draw, Event)}


class Row(NamedTuple):
    """One entry as it stands in the file."""

    seq: int
    body: str
    hash: bytes


@dataclass(frozen=True, slots=True)
class Receipt:
    """Where one debit stands in its ledger; who holds it can show that no history up to it was rewritten (T60)."""

    seq: int
    entry: str  # the hash that chains it to all before it
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


class Seal:
    """Stamps receipts and knows its own again; the part that sees rows acts on no plan that was not paid for.

    Each opening of a ledger, and each worker with its pool, has a new key: used receipts are not remembered beyond it.
    """

    __slots__ = ("_lock", "_used", "key")

    def __init__(self, key: bytes) -> None:
        self.key = key  # secret: whoever holds it can stamp
        self._used: set[int] = set()
        self._lock = threading.Lock()

    def stamp(self, seq: int, entry: str, plan: str, event: Event) -> Receipt:
        """A receipt for an entry that charged an event; a `Writer` asks for it only when the entry is durable."""
        return Receipt(seq, entry, plan, self._mac(seq, entry, plan, event))

    def verifies(self, receipt: Receipt, plan: str, event: Event) -> bool:
        """Whether this ledger gave the receipt, for this plan and event; the time it takes tells nothing."""
        mac = self._mac(receipt.seq, receipt.entry, plan, event)
        return hmac.compare_digest(mac.encode(), receipt.mac.encode()) and receipt.plan == plan

    def redeem(self, receipt: Receipt, plan: str, event: Event) -> bool:
        """Whether the receipt may be acted on now: ours, for this plan and what it was charged, and once.

        Privacy: `event` is what the kernel priced. If the ledger was charged another, the receipt is of no use.
        """
        if type(receipt.seq) is not int or receipt.stored is not None or not self.verifies(receipt, plan, event):
            return False
        with self._lock:
            fresh = receipt.seq not in self._used
            self._used.add(receipt.seq)
        return fresh

    def _mac(self, seq: int, entry: str, plan: str, event: Event) -> str:
        charged = canonical(wire.to_json(event, EVENTS))
        message = b"".join(part.encode() + b"\0" for part in (str(seq), entry, plan, charged))
        return hmac.new(self.key, message, hashlib.sha256).hexdigest()
