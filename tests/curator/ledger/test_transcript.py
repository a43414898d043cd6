"""The transcript."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from sulq.errors import SetupError
from sulq.terms.privacy import Epsilon
from tests.curator.ledger.cases import ask, gaussian, memory_folder, opened, pure


@pytest.fixture
def folder() -> object:
    with memory_folder() as found:
        yield found


def test_every_ask_is_there_in_order_with_its_answer(folder: Path) -> None:
    """Question, event and answer, kept or not, written already or not, and the same after a restart."""
    events = [pure("0.1"), pure("0.2"), pure("0.3")]
    with opened(folder / "a.ledger") as ledger:
        receipts = [ask(ledger, event, f"q{n}") for n, event in enumerate(events)]
        ledger.keep(receipts[0], "zero")
        ledger.keep(receipts[2], "two")
        lines = ledger.transcript()
        assert [(line.question, line.event, line.answer) for line in lines] == [
            ("q0", events[0], "zero"),
            ("q1", events[1], None),
            ("q2", events[2], "two"),
        ]
        assert [line.seq for line in lines] == [receipt.seq for receipt in receipts]
    with opened(folder / "a.ledger") as ledger:
        assert ledger.transcript() == lines


def test_an_answer_waits_for_the_next_debit(folder: Path) -> None:
    """Answers without a key cost no sync of their own: they are in the file with the next debit, or at flush."""
    path = folder / "a.ledger"
    with opened(path) as ledger, opened(path) as other:
        ledger.keep(ask(ledger, pure("0.1")), "1")
        assert [line.answer for line in other.transcript()] == [None]
        second = ask(ledger, pure("0.1"))
        assert [line.answer for line in other.transcript()] == ["1", None]
        ledger.keep(second, "2")
        ledger.flush()
        assert [line.answer for line in other.transcript()] == ["1", "2"]


def test_many_waiting_answers_are_written_by_themselves(folder: Path) -> None:
    """What waits does not grow without bound."""
    path = folder / "a.ledger"
    with opened(path) as ledger, opened(path) as other:
        receipts = [ask(ledger, pure("0.1")) for _ in range(3)]
        for receipt in receipts:
            ledger.keep(receipt, "1" * 2**22)
        assert sum(line.answer is not None for line in other.transcript()) >= 2


def test_a_keyed_answer_is_written_at_once(folder: Path) -> None:
    """Where a key may ask for it again, another process finds it right away (T44)."""
    path = folder / "a.ledger"
    with opened(path) as ledger, opened(path) as other:
        ledger.keep(ask(ledger, pure("0.1"), key="k"), "1")
        assert [line.answer for line in other.transcript()] == ["1"]
        assert ask(other, pure("0.1"), key="k").stored == "1"
        assert other.spent == Epsilon(0.1)


def test_an_answer_that_cannot_be_written_now_is_kept_for_later(folder: Path) -> None:
    """If another process holds the file when a keyed answer comes, the answer still counts and is written next."""
    path = folder / "a.ledger"
    with opened(path, wait=0.01) as ledger:
        receipt = ask(ledger, pure("0.1"), key="k")
        other = apsw.Connection(str(path))
        other.execute("BEGIN IMMEDIATE")
        ledger.keep(receipt, "1")
        other.execute("ROLLBACK")
        other.close()
        assert ask(ledger, pure("0.1"), key="k").stored == "1"
        assert ledger.spent == Epsilon(0.1)
    with opened(path) as ledger:
        assert ask(ledger, pure("0.1"), key="k").stored == "1"


def test_a_refused_ask_leaves_no_line() -> None:
    """The transcript holds what was charged and nothing else."""
    ledger = opened()
    for event in (pure("2"), gaussian("0.1")):
        with pytest.raises(Exception, match=r"budget-exceeded|spend-kind"):
            ask(ledger, event)
    assert ledger.transcript() == []


def test_a_line_that_changed_since_it_was_read_is_not_shown(folder: Path) -> None:
    """Read again for the transcript or a re-answer, entries are checked again (T47)."""
    path = folder / "a.ledger"
    with opened(path) as ledger:
        ledger.keep(ask(ledger, pure("0.1"), key="k"), "41")
        apsw.Connection(str(path)).execute("UPDATE entries SET body = replace(body, '41', '42')")
        with pytest.raises(SetupError) as refusal:
            ask(ledger, pure("0.1"), key="k")
        assert refusal.value.code == "ledger-damaged"
        with pytest.raises(SetupError):
            ledger.transcript()
