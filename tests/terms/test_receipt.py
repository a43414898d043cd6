"""Receipts: proof of a debit that says nothing else."""

from __future__ import annotations

from sulq.terms import wire
from sulq.terms.receipt import Receipt


def test_a_receipt_crosses_the_wire_without_the_stored_answer() -> None:
    """The answer given earlier to a key stays on this side."""
    receipt = Receipt(3, "ab" * 32, "cd" * 32, "ef" * 32, stored="secret")
    text = wire.encode(receipt)
    assert "secret" not in text + repr(receipt)
    assert wire.decode(text) == receipt
    assert str(receipt) == "entry 3 (abababababab)"
