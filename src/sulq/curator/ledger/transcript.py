"""The transcript: every question that was charged, with its answer where one was kept; receipts of its lines."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from sulq.answers import wire
from sulq.answers.answer import SignedReceipt
from sulq.curator.ledger import history as histories
from sulq.curator.ledger import notes
from sulq.curator.ledger.history import Charge, History
from sulq.curator.ledger.notes import Line
from sulq.curator.ledger.opening import entry_of
from sulq.curator.ledger.signature import Signer, signed
from sulq.errors import QuestionError, SulqError
from sulq.kernel.ledger import entries
from sulq.kernel.ledger.chain import ORIGIN, Row, link
from sulq.kernel.ledger.entries import Body
from sulq.kernel.ledger.store import Store, damaged

FEW: Final = 4


def transcript(history: History, store: Store, waiting: Mapping[int, str]) -> list[Line]:
    """All lines in order, read again from the file along its chain; `waiting` answers are not in it yet."""
    lines: list[Line] = []
    answers = {seq: answer_text(Row(seq, body, b"")) for seq, body in waiting.items()}
    last = ORIGIN
    for row in store.rows():
        if link(last, row.seq, row.body) != row.hash:
            raise damaged(f"entry {row.seq}", "is not what was written")
        last = row.hash
        if row.seq in history.charges:
            lines.append(_line(row.seq, entries.parse(row), None))
        elif (body := entries.parse(row)).get("kind") == "answer":
            answers[notes.whole(body, "of")] = notes.text(body, "answer")
    return [line._replace(answer=answers.get(line.seq)) for line in lines]


def part(
    history: History,
    store: Store,
    waiting: Mapping[int, str],
    *,
    analyst: str | None,
    datasets: Collection[str] | None,
    after: int,
    limit: int | None,
) -> list[Line]:
    """Some lines, each read by its place: however long the ledger, no more of it is read."""
    found = (
        seq for seq, charge in history.charges.items() if seq > after and seen(charge, analyst, datasets)
    )  # in order: entries are followed in order
    return [
        _line(seq, entries.parse(_checked(store, seq)), stored_answer(history, store, waiting, seq))
        for seq in itertools.islice(found, limit)
    ]


def seen(charge: Charge, analyst: str | None, datasets: Collection[str] | None) -> bool:
    """Whether a debit may be shown to whoever sees this analyst's and these datasets' (None: all).

    A debit that does not say which dataset it was of is shown to those who see all of them (T79).
    """
    return analyst in (None, charge.analyst) and (datasets is None or charge.dataset in datasets)


def receipt(space: str, store: Store, seq: int, public_key: str) -> SignedReceipt:
    """What one debit's entry says, to be signed."""
    return read_receipt(space, _checked(store, seq), public_key)


def read_receipt(space: str, row: Row, public_key: str) -> SignedReceipt:
    """The receipt of an entry, without its signature."""
    body = entries.parse(row)
    event = entries.read_losses(body)
    return SignedReceipt(
        space=space,
        seq=row.seq,
        entry=row.hash.hex(),
        plan=notes.text(body, "plan_digest"),
        question=notes.text(body, "question_digest"),
        epsilon=event.epsilon,
        rho=event.rho,
        key_delta=event.key_delta,
        queries=event.queries,
        analyst=notes.optional(body, "analyst") or "",
        time=notes.text(body, "time"),
        public_key=public_key,
    )


def kept(history: History, store: Store, waiting: Mapping[int, str], *, question: str, version: int) -> list[Line]:
    """The lines of one question under one version of the data that have an answer: a few of the strongest, pure or not.

    However often a question was asked anew, finding its best answers reads no more of the file.
    """
    found = [seq for seq in history.asked.get(question, ()) if _is_kept(history.charges[seq], seq, waiting, version)]
    pure = [seq for seq in found if history.charges[seq].epsilon is not None]
    others = [seq for seq in found if history.charges[seq].epsilon is None]
    strongest = sorted(pure, key=lambda seq: (-(history.charges[seq].epsilon or 0), seq))[:FEW]
    strongest += sorted(others, key=lambda seq: (-history.charges[seq].rho, seq))[:FEW]
    return [
        _line(seq, entries.parse(_checked(store, seq)), stored_answer(history, store, waiting, seq))
        for seq in strongest
    ]


def _is_kept(charge: Charge, seq: int, waiting: Mapping[int, str], version: int) -> bool:
    return charge.version == version and (charge.answer is not None or seq in waiting)


def stored_answer(history: History, store: Store, waiting: Mapping[int, str], seq: int) -> str | None:
    """The answer to one debit, if there is one."""
    place = history.charges[seq].answer
    if place is not None:
        return answer_text(_checked(store, place))
    return answer_text(Row(seq, waiting[seq], b"")) if seq in waiting else None


def answer_text(row: Row) -> str:
    """What an answer's entry says."""
    return notes.text(entries.parse(row), "answer")


def _checked(store: Store, seq: int) -> Row:
    """One entry, if it still is what was chained to the one before."""
    before, row = store.row(seq - 1), store.row(seq)
    if before is None or row is None or link(before.hash, seq, row.body) != row.hash:
        raise damaged(f"entry {seq}", "is not what was written")
    return row


def _line(seq: int, body: Body, answer: str | None) -> Line:
    return Line(
        seq,
        notes.text(body, "time"),
        notes.text(body, "question"),
        notes.read_event(body),
        answer,
        notes.optional(body, "analyst") or "",
        notes.optional(body, "dataset") or "",
    )


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
    own = histories.of(state).founding
    public = Signer(own.signing_key).public
    if receipt.space != own.space or receipt.public_key != public:
        raise QuestionError("not-in-ledger", "The receipt is of another ledger.")
    if row is None or receipt.seq not in histories.of(state).charges:
        raise QuestionError("not-in-ledger", f"The ledger has no debit at entry {receipt.seq}.")
    if read_receipt(own.space, row, public) != replace(receipt, signature=""):
        raise QuestionError("not-in-ledger", f"Entry {receipt.seq} of the ledger is another one: it was rewritten.")
