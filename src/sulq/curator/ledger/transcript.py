"""The lines of a transcript, each read again from its entries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sulq.curator.ledger import notes
from sulq.curator.ledger.history import History, checked
from sulq.curator.ledger.notes import Line
from sulq.kernel.ledger import entries
from sulq.kernel.ledger.chain import ORIGIN, Row, link
from sulq.kernel.ledger.entries import Body
from sulq.kernel.ledger.store import Store, damaged


def all_lines(rows: Iterable[Row], waiting: Mapping[int, str]) -> list[Line]:
    """The lines of all these entries, from the first, read along their chain; `waiting` answers are not in it yet."""
    lines: list[Line] = []
    answers = {seq: answer_text(Row(seq, body, b"")) for seq, body in waiting.items()}
    before = ORIGIN
    for row in rows:
        if link(before, row.seq, row.body) != row.hash:
            raise damaged(f"entry {row.seq}", "is not what was written")
        before, body = row.hash, entries.parse(row)
        if body.get("kind") == "debit":
            lines.append(_line(row.seq, body, None))
        elif body.get("kind") == "answer":
            answers[notes.whole(body, "of")] = notes.text(body, "answer")
    return [line._replace(answer=answers.get(line.seq)) for line in lines]


def lines_at(store: Store, waiting: Mapping[int, str], places: Iterable[tuple[int, int | None]]) -> list[Line]:
    """Some lines, each read by its place and its answer's: however long the ledger, no more of it is read."""
    return [
        _line(seq, entries.parse(checked(store, seq)), _answer(store, waiting, seq, place)) for seq, place in places
    ]


def stored_answer(history: History, store: Store, waiting: Mapping[int, str], seq: int) -> str | None:
    """The answer to one debit, if there is one."""
    return _answer(store, waiting, seq, history.answer_of(seq))


def _answer(store: Store, waiting: Mapping[int, str], seq: int, place: int | None) -> str | None:
    if place is not None:
        return answer_text(checked(store, place))
    return answer_text(Row(seq, waiting[seq], b"")) if seq in waiting else None


def answer_text(row: Row) -> str:
    """What an answer's entry says."""
    return notes.text(entries.parse(row), "answer")


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
