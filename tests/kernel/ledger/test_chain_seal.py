"""Receipts and the seal on them."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import pytest

from sulq.answers import wire
from sulq.answers.answer import Receipt
from sulq.kernel.entropy import random_bytes
from sulq.kernel.ledger.chain import Seal
from tests.curator.ledger.cases import ask, memory_folder, opened, pure


def test_a_receipt_fits_its_seal_and_plan_only() -> None:
    """Another key, plan, place or entry does not verify; every part of a receipt is covered."""
    seal, event = Seal(b"k" * 32), pure("0.5")
    receipt = seal.stamp(7, "e" * 64, "plan", event)
    assert seal.verifies(receipt, "plan", event)
    assert not Seal(b"l" * 32).verifies(receipt, "plan", event)
    for change in ({"seq": 8}, {"entry": "00" * 32}, {"plan": "other"}, {"mac": "0" * 64}, {"mac": "é"}, {"mac": ""}):
        assert not seal.verifies(dataclasses.replace(receipt, **change), "plan", event)
        assert not seal.verifies(dataclasses.replace(receipt, **change), "other", event)


def test_every_part_of_the_charged_event_is_covered_T43() -> None:
    """A deceiver: one debit, and a plan of which any number, draw or version differs; its own event is the control."""
    seal, event = Seal(b"k" * 32), pure("0.5")
    receipt = seal.stamp(7, "e" * 64, "plan", event)
    (draw,) = event.draws
    others: list[dict[str, object]] = [
        {"epsilon": None},
        {"epsilon": Fraction(1)},
        {"rho": Fraction(1)},
        {"key_delta": Fraction(1, 9)},
        {"queries": 1},
        {"draws": ()},
        {"draws": (draw, draw)},
        {"draws": (dataclasses.replace(draw, scale=draw.scale / 2),)},
        {"draws": (dataclasses.replace(draw, sensitivity=draw.sensitivity / 2),)},
        {"versions": (("numpy", "1"),)},
    ]
    for other in others:
        assert not seal.redeem(receipt, "plan", dataclasses.replace(event, **other))
    assert seal.redeem(receipt, "plan", event)


def test_no_two_receipts_have_the_same_message() -> None:
    """Moving digits between the parts of a receipt does not give another valid one."""
    seal, event = Seal(b"k" * 32), pure("0.5")
    mac = seal.stamp(1, "23", "4", event).mac
    assert mac not in {seal.stamp(12, "34", "", event).mac, seal.stamp(1, "2334", "", event).mac}


def test_a_receipt_is_redeemed_once() -> None:
    """The second use is refused, and so is any use for an answer given before."""
    seal, event = Seal(b"k" * 32), pure("0.5")
    receipt = seal.stamp(7, "e" * 64, "plan", event)
    assert not seal.redeem(receipt, "other", event)
    assert seal.redeem(receipt, "plan", event)
    assert not seal.redeem(receipt, "plan", event)
    assert not seal.redeem(dataclasses.replace(seal.stamp(8, "e" * 64, "plan", event), stored="1"), "plan", event)


def test_a_place_spelled_otherwise_redeems_nothing_T43() -> None:
    """A text or a truth for the number has the same MAC, and would be another receipt. Control: as it was stamped."""
    seal, event = Seal(b"k" * 32), pure("0.5")
    receipt = seal.stamp(1, "e" * 64, "plan", event)
    for seq in ("1", True, 1.0):
        assert not seal.redeem(dataclasses.replace(receipt, seq=seq), "plan", event)
    assert seal.redeem(receipt, "plan", event)


def test_a_stored_answer_stays_on_this_side_of_the_wire() -> None:
    """A receipt crosses the wire without the answer it may carry, and reads back equal."""
    receipt = Receipt(8, "e" * 64, "plan", "", "secret of another")
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
    assert str(Seal(b"k").stamp(seq, "ab" * 32, "p", pure("0.5"))) == f"entry {seq} (abababababab)"


def test_a_receipt_of_an_earlier_opening_is_not_redeemed() -> None:
    """A seal does not remember what others redeemed, so it takes none of theirs: one debit, one answer."""
    receipt = Seal(random_bytes(32)).stamp(7, "e" * 64, "plan", pure("0.5"))
    again = Seal(random_bytes(32))
    assert not again.verifies(receipt, "plan", pure("0.5"))
    assert not again.redeem(receipt, "plan", pure("0.5"))


def test_each_opening_of_a_ledger_has_a_seal_of_its_own() -> None:
    """A receipt of one opening is not redeemed by another of the same ledger. Control: by its own it is."""
    with memory_folder() as folder, opened(folder / "a.ledger") as one, opened(folder / "a.ledger") as two:
        receipt = ask(one, pure("0.5"), "q")
        assert one.seal.key != two.seal.key
        assert not two.redeem(receipt, receipt.plan, pure("0.5"))
        assert one.redeem(receipt, receipt.plan, pure("0.5"))


def test_a_seal_may_be_given_to_another_process() -> None:
    """Built from the same key, one seal takes what the other stamped, once; from another key it does not."""
    clerk = Seal(random_bytes(32))
    worker = Seal(clerk.key)
    receipt = clerk.stamp(7, "e" * 64, "plan", pure("0.5"))
    assert worker.redeem(receipt, "plan", pure("0.5"))
    assert not worker.redeem(receipt, "plan", pure("0.5"))
    assert not Seal(b"l" * 32).verifies(receipt, "plan", pure("0.5"))
