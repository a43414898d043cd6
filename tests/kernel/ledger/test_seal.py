"""Receipts and the seal on them."""

from __future__ import annotations

import dataclasses

import pytest

from sulq.kernel.ledger.seal import Seal
from sulq.terms import wire
from sulq.terms.receipt import Receipt


def test_a_receipt_fits_its_seal_and_plan_only() -> None:
    """Another key, plan, place or entry does not verify; every part of a receipt is covered."""
    seal = Seal(b"k" * 32)
    receipt = seal.stamp(7, b"e" * 32, "plan")
    assert seal.verifies(receipt, "plan")
    assert not Seal(b"l" * 32).verifies(receipt, "plan")
    for change in ({"seq": 8}, {"entry": "00" * 32}, {"plan": "other"}, {"mac": "0" * 64}, {"mac": "é"}):
        assert not seal.verifies(dataclasses.replace(receipt, **change), "plan")
        assert not seal.verifies(dataclasses.replace(receipt, **change), "other")


def test_no_two_receipts_have_the_same_message() -> None:
    """Moving digits between the parts of a receipt does not give another valid one."""
    seal = Seal(b"k" * 32)
    mac = seal.stamp(1, bytes.fromhex("23"), "4").mac
    assert mac not in {seal.stamp(12, bytes.fromhex("3" + "4"), "").mac, seal.stamp(1, b"\x23\x34", "").mac}


def test_a_receipt_is_redeemed_once() -> None:
    """The second use is refused, and so is any use for an answer given before."""
    seal = Seal(b"k" * 32)
    receipt = seal.stamp(7, b"e" * 32, "plan")
    assert not seal.redeem(receipt, "other")
    assert seal.redeem(receipt, "plan")
    assert not seal.redeem(receipt, "plan")
    assert not seal.redeem(seal.again(8, b"e" * 32, "plan", "1"), "plan")


def test_a_stored_answer_stays_on_this_side_of_the_wire() -> None:
    """A receipt crosses the wire without the answer it may carry, and reads back equal."""
    receipt = Seal(b"k" * 32).again(8, b"e" * 32, "plan", "secret of another")
    text = wire.encode(receipt)
    assert "secret" not in text
    assert "secret" not in repr(receipt)
    back = wire.decode(text)
    assert back == receipt
    assert isinstance(back, Receipt)
    assert back.stored is None


@pytest.mark.parametrize("seq", [1, 10**12])
def test_a_receipt_says_where_it_stands(seq: int) -> None:
    """Its text names the entry."""
    assert str(Seal(b"k").stamp(seq, b"\xab" * 32, "p")) == f"entry {seq} (abababababab)"


def test_a_receipt_of_an_earlier_opening_is_not_redeemed() -> None:
    """A seal does not remember what others redeemed, so it takes none of theirs: one debit, one answer."""
    receipt = Seal(b"k" * 32).stamp(7, b"e" * 32, "plan")
    again = Seal(b"k" * 32)
    assert not again.verifies(receipt, "plan")
    assert not again.redeem(receipt, "plan")


def test_a_seal_may_be_given_to_another_process() -> None:
    """Built from the same key, one seal takes what the other stamped, once; from another key it does not."""
    clerk = Seal(b"k" * 32)
    worker = Seal.given(clerk.key)
    receipt = clerk.stamp(7, b"e" * 32, "plan")
    assert worker.redeem(receipt, "plan")
    assert not worker.redeem(receipt, "plan")
    assert not Seal.given(b"l" * 32).verifies(receipt, "plan")
    assert Seal(b"k" * 32).key != clerk.key  # each opening draws its own
