"""The transcript."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from sulq.curator.ledger import view
from sulq.errors import QuestionError, SetupError
from sulq.kernel.ledger import entries
from sulq.kernel.ledger.chain import Row, canonical, link
from sulq.language.privacy import Epsilon
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
    """If another process holds the file, a keyed answer is not given before it is written; the key has it next."""
    path = folder / "a.ledger"
    with opened(path, wait=0.01) as ledger:
        receipt = ask(ledger, pure("0.1"), key="k")
        other = apsw.Connection(str(path))
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(SetupError, match="ledger-busy"):
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


def test_a_part_of_the_transcript_is_read_by_place_and_analyst(folder: Path) -> None:
    """An analyst's lines, those after an entry and the first few of them are what the whole transcript says."""
    with opened(folder / "a.ledger") as ledger:
        for n in range(12):
            receipt = ledger.debit(pure("0.01"), question=f"q{n}", plan_digest="p", analyst=("ann", "ben", "")[n % 3])
            if n % 2:
                ledger.keep(receipt, f"answer {n}", at_once=n % 4 == 1)
        whole = ledger.transcript()
        assert [line.analyst for line in whole[:3]] == ["ann", "ben", ""]
        for analyst in ("ann", "ben", "", "nobody"):
            assert ledger.transcript(analyst=analyst) == [line for line in whole if line.analyst == analyst]
        for after in (0, 5, 99):
            for limit in (0, 1, 4, None):
                assert (
                    ledger.transcript(after=after, limit=limit) == [line for line in whole if line.seq > after][:limit]
                )
        found = ledger.transcript(analyst="ben", after=whole[3].seq, limit=1)
        assert [line.question for line in found] == ["q4"]


def test_debits_are_shown_by_the_dataset_they_were_of_T79(folder: Path) -> None:
    """Lines and receipts of some datasets alone; those that name none are for who sees all. There after a reopening."""
    names = ("a", "b", "")
    with opened(folder / "a.ledger") as ledger:
        seqs = [
            ledger.debit(pure("0.01"), question="q", plan_digest="p", analyst="ann", dataset=names[n % 3]).seq
            for n in range(9)
        ]
    with opened(folder / "a.ledger") as ledger:
        whole = ledger.transcript()
        assert [line.dataset for line in whole] == [names[n % 3] for n in range(9)]
        for scope in ((), ("a",), ("a", "b"), ("c",)):
            assert ledger.transcript(datasets=scope) == [line for line in whole if line.dataset in scope]
            assert ledger.transcript(datasets=scope, analyst="ben") == []
            for seq, line in zip(seqs, whole, strict=True):
                if line.dataset in scope:
                    assert ledger.receipt(seq, datasets=scope)
                    continue
                with pytest.raises(QuestionError) as refused:
                    ledger.receipt(seq, datasets=scope)
                assert refused.value.code == "not-in-ledger"
        assert all(ledger.receipt(seq) for seq in seqs)


def test_a_debit_of_before_datasets_were_named_is_for_who_sees_all() -> None:
    """An entry without the field is read as it always was."""
    with opened(None) as ledger:
        seq = ask(ledger, pure("0.1")).seq
        body = entries.parse(ledger._writer._store.row(seq))
        old = {name: value for name, value in body.items() if name != "dataset"}
        assert len(old) == len(body) - 1, "the control: the field is written now"
        state = ledger._writer.state
        row = Row(seq, canonical(old), link(ledger._writer._store.row(seq - 1).hash, seq, canonical(old)))
        state.seq, state.hash = seq - 1, ledger._writer._store.row(seq - 1).hash
        ledger._history.charges.clear()
        state.follow(row)
        assert ledger._history.charges[seq].kind.dataset == ""
        assert not view.seen(ledger._history.charges[seq].kind, None, ("survey",))
        assert view.seen(ledger._history.charges[seq].kind, None, None)
