"""Checking receipts that were kept: with the public key alone, or against the ledger itself (T60)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sulq.answers import wire
from sulq.answers.receipt import SignedReceipt
from sulq.curator.ledger import history
from sulq.curator.ledger.opening import entry_of
from sulq.curator.ledger.signature import Signer, signed
from sulq.curator.ledger.transcript import read_receipt
from sulq.errors import QuestionError, SulqError


def check_receipt(text: str | bytes, *, key: str | None = None, ledger: Path | str | None = None) -> SignedReceipt:
    """Read a receipt that someone kept, if its ledger signed every word of it.

    Args:
        text: The receipt, as it was given.
        key: The ledger's public key, as its owner published it. Without it, and without the ledger, the receipt
            is only shown to be whole: whoever made it brought the key it is checked with.
        ledger: The ledger, to see that the entry is still there and says the same.

    Raises:
        QuestionError: `bad-signature`: changed, not a receipt, or signed by another key; `not-in-ledger`.
        SetupError: The ledger cannot be read or does not verify.
    """
    try:
        receipt = wire.decode(text)
    except SulqError as error:
        raise QuestionError("bad-signature", "This is not a signed receipt.") from error
    if not isinstance(receipt, SignedReceipt):
        raise QuestionError("bad-signature", "This is not a signed receipt.")
    if key is not None and receipt.public_key != key.strip().lower():
        raise QuestionError("bad-signature", "The receipt was signed by another key.")
    if not signed(receipt.message, receipt.signature, receipt.public_key):
        raise QuestionError("bad-signature", "The receipt was changed after it was signed.")
    if ledger is not None:
        _stands(receipt, ledger)
    return receipt


def _stands(receipt: SignedReceipt, ledger: Path | str) -> None:
    state, row = entry_of(ledger, receipt.seq)
    own = history.of(state).founding
    public = Signer(own.signing_key).public
    if receipt.space != own.space or receipt.public_key != public:
        raise QuestionError("not-in-ledger", "The receipt is of another ledger.")
    if row is None or receipt.seq not in history.of(state).charges:
        raise QuestionError("not-in-ledger", f"The ledger has no debit at entry {receipt.seq}.")
    if read_receipt(own.space, row, public) != replace(receipt, signature=""):
        raise QuestionError("not-in-ledger", f"Entry {receipt.seq} of the ledger is another one: it was rewritten.")
