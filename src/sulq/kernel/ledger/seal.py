"""The seal on receipts: the part that sees rows acts on no plan, and for no event, that was not paid for."""

from __future__ import annotations

import hashlib
import hmac
import threading
from typing import Final

from sulq.kernel import wire
from sulq.kernel.entropy import random_bytes
from sulq.kernel.facts import Draw, Event
from sulq.kernel.ledger.chain import Receipt, canonical

EVENTS: Final = {kind.__name__: kind for kind in (Draw, Event)}


class Seal:
    """Stamps receipts and knows its own again, by a key of its own.

    A receipt is good for the opening that gave it: which ones were used is not remembered beyond it. A worker's seal
    is given its key, which no other pair of seals ever had.
    """

    __slots__ = ("_lock", "_used", "key")

    def __init__(self, key: bytes | None = None) -> None:
        self.key = random_bytes(32) if key is None else key  # secret: whoever holds it can stamp
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
