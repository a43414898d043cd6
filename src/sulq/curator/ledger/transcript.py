"""The transcript: every question that was charged, with its answer where one was kept."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from typing import Final

from sulq.answers.receipt import SignedReceipt
from sulq.curator.ledger import notes
from sulq.curator.ledger.history import Charge, History
from sulq.curator.ledger.notes import Line
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
