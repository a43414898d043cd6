"""Drafts: whatever is proposed, receipts are for debits within the budget, and notes spend nothing."""

from __future__ import annotations

import ast
import contextlib
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from sulq.curator.ledger import notes
from sulq.curator.ledger.history import pending
from sulq.errors import BudgetExceeded, QuestionError, SetupError
from sulq.kernel.facts import Epsilon, EpsilonDelta, Event, SubLinear
from sulq.kernel.ledger import entries
from sulq.kernel.ledger.entries import Draft
from sulq.kernel.ledger.filter import Totals
from sulq.language.privacy import divided
from tests.curator.ledger.cases import ask, gaussian, opened, pure

SRC = Path(__file__).resolve().parents[3] / "src" / "sulq"


def charge(draft: Draft, event: Event) -> int:
    return draft.debit(event, plan_digest="p", question="q", question_digest="d", version=0, time="t")


def test_a_proposer_that_looks_at_nothing_stays_within_the_budget_T52() -> None:
    """A deceiver: a proposer without shares, keys or an anchor charges until it is refused; never past the budget."""
    with opened(None) as ledger:  # a budget of 1

        def greedy(draft: Draft) -> list[int]:
            found = []
            with contextlib.suppress(BudgetExceeded):
                while True:
                    found.append(charge(draft, pure("0.3")))
            return found

        places = ledger._writer.take(greedy)
        assert places == [2, 3, 4]
        receipts = [ledger._writer.receipt(seq) for seq in places]
        assert ledger.spent == Epsilon(0.9)
        assert [ledger.redeem(receipt, "p", pure("0.3")) for receipt in receipts + receipts] == [True] * 3 + [False] * 3
        assert not ledger.redeem(receipts[0], "another plan", pure("0.3"))
        with pytest.raises(BudgetExceeded):
            ledger._writer.take(lambda draft: charge(draft, pure("0.11")))
        with pytest.raises(BudgetExceeded):
            ledger._writer.take(lambda draft: charge(draft, gaussian("0.01")))  # no pure loss
        ledger.verify()


def test_what_a_debit_says_is_what_is_charged_T52() -> None:
    """A deceiver: whatever else an entry is told, its event, its plan and its kind are the kernel's."""
    told = {"question_digest": "d", "version": 0, "event": {"kind": "Event"}, "kind": "answer", "nonce": ""}
    with opened(None) as ledger:
        seq = ledger._writer.take(lambda draft: draft.debit(pure("0.5"), plan_digest="p", **told))
        assert ledger.spent == Epsilon(0.5)
        body = entries.parse(ledger._writer._store.row(seq))
        assert notes.read_event(body) == pure("0.5")
        assert (body["kind"], body["plan_digest"], len(body["nonce"])) == ("debit", "p", 32)
        receipt = ledger._writer.receipt(seq)
        assert not ledger.redeem(receipt, "q", pure("0.5"))
        assert not ledger.redeem(receipt, "p", pure("0.2"))
        assert ledger.redeem(receipt, "p", pure("0.5"))


def test_an_event_that_could_not_be_read_again_is_not_charged() -> None:
    """Queries that are no whole number would be damage when the entry is read. Control: none at all."""
    with opened(None) as ledger:
        for wrong in (True, 1.0):
            with pytest.raises(QuestionError):
                ledger._writer.take(lambda draft, wrong=wrong: charge(draft, replace(pure("0.1"), queries=wrong)))
        ledger._writer.take(lambda draft: charge(draft, pure("0.1")))
        assert ledger.verify().entries == 2


@pytest.mark.parametrize(
    "body",
    [
        notes.raised(Epsilon(100), None, time="t"),
        entries.debit(pure("0.1"), plan_digest="p"),
        notes.burnt({"ann": Totals(1)}, name="n", settles="h", time="t"),
        notes.answer(2, "1", time="t").replace('"answer"', '"refund"'),
        notes.answer(2, "1", time="t")[:-1] + ',"kind" :"raise"}',
    ],
    ids=["raise", "debit", "burn", "unknown", "hidden"],
)
def test_no_note_spends_or_raises(body: str) -> None:
    """Deceivers: entries that spend, raise or are of no known kind are no notes; an answer that quotes one is."""
    quoted = notes.answer(2, '{"kind":"raise"}', time="t")
    with opened(None) as ledger:
        ask(ledger, pure("0.1"))

        def propose(draft: Draft) -> int:
            with pytest.raises((ValueError, QuestionError)):
                draft.note(body)
            return draft.note(quoted).seq

        assert ledger._writer.take(propose) == 3
        assert (ledger.spent, ledger.budget) == (Epsilon(0.1), Epsilon(1))


def test_a_budget_is_raised_and_never_lowered_T45() -> None:
    """T45: a draft takes a larger budget of the same kind; a SubLinear one none at all."""
    with opened(None) as ledger:
        for wrong in (Epsilon(0.5), SubLinear(1, 1e-6, 9)):
            with pytest.raises(SetupError):
                ledger._writer.take(lambda draft, wrong=wrong: draft.raise_to(notes.raised(wrong, None, time="t")))
            with pytest.raises(SetupError):
                ledger.raise_to(wrong)
        ledger.raise_to(Epsilon(1))
        assert ledger.verify().entries == 1
        ledger._writer.take(lambda draft: draft.raise_to(notes.raised(Epsilon(2), None, time="t")))
        assert (ledger.verify().entries, ledger.budget) == (2, Epsilon(2))


def test_a_raise_that_divides_the_budget_anew_is_refused_T45() -> None:
    """Deceivers: another order, less room, less for open keys, no raise at all. Control: the same order, widened."""
    budget, larger = EpsilonDelta(1, 1e-6), EpsilonDelta(2, 4e-6)
    with opened(None, budget, open_keys=True) as ledger:
        split = divided(budget, open_keys=True)
        wide = notes.widened(split, larger)
        for wrong in (
            divided(larger, open_keys=True),
            replace(wide, room=split.room / 2),
            replace(wide, delta=wide.delta + wide.key_delta, key_delta=Fraction(0)),
        ):
            body = notes.raised(larger, wrong, time="t")
            with pytest.raises(SetupError) as refused:
                ledger._writer.take(lambda draft, body=body: draft.raise_to(body))
            assert refused.value.code == "budget-mismatch"
        note = notes.answer(2, "1", time="t")
        with pytest.raises(ValueError, match="kind"):
            ledger._writer.take(lambda draft: draft.raise_to(note))
        ledger._writer.take(lambda draft: draft.raise_to(notes.raised(larger, wide, time="t")))
        assert ledger.verify().budget == larger


def test_proposers_of_one_draft_share_what_is_pending() -> None:
    """What proposers keep for each other lives as long as the draft."""
    with opened(None) as ledger:
        assert ledger._writer.take(lambda draft: pending(draft) is pending(draft))


def test_receipts_are_stamped_in_one_place_SR24() -> None:
    """SR24: nothing but a writer, of what is durable, calls `stamp`; the pool does for a receipt that it redeemed."""
    calls = {
        path.relative_to(SRC).as_posix()
        for path in SRC.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "stamp" and isinstance(node.ctx, ast.Load)
        if "seal" in ast.unparse(node.value)
    }
    assert calls - {"service/clerk/worker_pool.py"} == {"kernel/ledger/writer.py"}
