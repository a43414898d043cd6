"""The seal on receipts: the part that sees rows acts on no plan that was not paid for."""

from __future__ import annotations

import hashlib
import hmac
import threading
from typing import Self

from sulq.kernel.entropy import random_bytes
from sulq.kernel.ledger.receipt import Receipt


class Seal:
    """Stamps receipts and knows its own again; a worker holds a copy."""

    __slots__ = ("_lock", "_used", "key")

    def __init__(self, key: bytes) -> None:
        # A receipt is good for the opening that gave it: which ones were used is not remembered beyond it.
        self.key = hmac.new(key, random_bytes(32), hashlib.sha256).digest()  # secret: whoever holds it can stamp
        self._used: set[int] = set()
        self._lock = threading.Lock()

    @classmethod
    def given(cls, key: bytes) -> Self:
        """The seal of another process, by its `key`; each such pair of seals needs a key no other pair ever had."""
        seal = cls(key)
        seal.key = bytes(key)
        return seal

    def stamp(self, seq: int, entry: bytes, plan: str) -> Receipt:
        """A receipt for an entry; a `Draft` alone asks for it, and hands it out only when the entry is on disk."""
        return Receipt(seq, entry.hex(), plan, self._mac(seq, entry.hex(), plan))

    def again(self, seq: int, entry: bytes, plan: str, stored: str) -> Receipt:
        """A receipt for a stored answer: it opens no row, whoever holds it."""
        with self._lock:
            self._used.add(seq)
        return Receipt(seq, entry.hex(), plan, self._mac(seq, entry.hex(), plan), stored)

    def verifies(self, receipt: Receipt, plan: str) -> bool:
        """Whether this ledger gave the receipt, and for this plan; the time it takes tells nothing."""
        mac = self._mac(receipt.seq, receipt.entry, plan)
        return hmac.compare_digest(mac.encode(), receipt.mac.encode()) and receipt.plan == plan

    def redeem(self, receipt: Receipt, plan: str) -> bool:
        """Whether the receipt may be acted on now: ours, for this plan, not for an answer given before, and once."""
        if receipt.stored is not None or not self.verifies(receipt, plan):
            return False
        with self._lock:
            fresh = receipt.seq not in self._used
            self._used.add(receipt.seq)
        return fresh

    def _mac(self, seq: int, entry: str, plan: str) -> str:
        message = b"".join(part.encode() + b"\0" for part in (str(seq), entry, plan))
        return hmac.new(self.key, message, hashlib.sha256).hexdigest()
