"""A signed receipt: what one debit's entry says, to keep and to check offline."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

DOMAIN: Final = b"sulq receipt 1\0"  # what is signed as a receipt is good for nothing else


@dataclass(frozen=True, slots=True)
class SignedReceipt:
    """A receipt to keep: what one debit's entry says, signed by its ledger.

    Whoever has the ledger's public key can check it with nothing else at hand
    (`sulq ledger check`), and with the ledger that the entry is still there (T60).
    """

    space: str  # the person space whose ledger signed it
    seq: int
    entry: str  # the hash that chains the entry to all before it
    plan: str  # digest of the plan that was paid for
    question: str  # digest of the question and its price
    epsilon: Fraction | None  # what it cost, as the event says
    rho: Fraction
    key_delta: Fraction
    queries: int
    analyst: str
    time: str  # as the curator's clock showed it
    public_key: str
    signature: str = ""

    @property
    def message(self) -> bytes:
        """The bytes that are signed: every field but the signature, in one order and one spelling."""
        fields = [
            self.space, self.seq, self.entry, self.plan, self.question,
            None if self.epsilon is None else str(self.epsilon), str(self.rho), str(self.key_delta), self.queries,
            self.analyst, self.time, self.public_key,
        ]  # fmt: skip
        return DOMAIN + json.dumps(fields, separators=(",", ":")).encode()

    def __str__(self) -> str:
        cost = f"rho {float(self.rho):.6g}" if self.epsilon is None else f"epsilon {float(self.epsilon):.6g}"
        cost = f"{self.queries} queries" if self.queries else cost
        who = f" by {self.analyst}" if self.analyst else ""
        return f"entry {self.seq} ({self.entry[:12]}) of person space {self.space}: {cost}{who} at {self.time}"
