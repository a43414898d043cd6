"""Receipts: proof of a debit that says nothing else."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

from sulq.answers import wire
from sulq.answers.answer import Receipt
from sulq.answers.receipt import DOMAIN, SignedReceipt


def test_a_receipt_crosses_the_wire_without_the_stored_answer() -> None:
    """The answer given earlier to a key stays on this side."""
    receipt = Receipt(3, "ab" * 32, "cd" * 32, "ef" * 32, stored="secret")
    text = wire.encode(receipt)
    assert "secret" not in text + repr(receipt)
    assert wire.decode(text) == receipt
    assert str(receipt) == "entry 3 (abababababab)"


def test_what_is_signed_covers_every_field_but_the_signature() -> None:
    """No two receipts that differ have one message, and the message is marked as a receipt's."""
    receipt = SignedReceipt("s", 2, "e", "p", "q", None, Fraction(1, 3), Fraction(0), 0, "ann", "t", "k", "signature")
    assert wire.decode(wire.encode(receipt)) == receipt
    assert receipt.message.startswith(DOMAIN)
    messages = {receipt.message}
    for field in dataclasses.fields(receipt):
        value = getattr(receipt, field.name)
        other = value + "x" if isinstance(value, str) else (value or 0) + 1
        messages.add(dataclasses.replace(receipt, **{field.name: other}).message)
    assert len(messages) == len(dataclasses.fields(receipt))
    assert dataclasses.replace(receipt, signature="").message == receipt.message
    assert str(receipt) == "entry 2 (e) of person space s: rho 0.333333 by ann at t"
    assert "epsilon 0.5 at" in str(dataclasses.replace(receipt, epsilon=Fraction(1, 2), analyst=""))
    assert "3 queries" in str(dataclasses.replace(receipt, queries=3))
