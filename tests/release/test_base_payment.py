"""What is said of a release's price: enough to find its debits, and nothing that is the ledger's own."""

from __future__ import annotations

import json
import pickle

import pytest

from sulq.answers.answer import Answer, Answers
from sulq.answers.oracle import SpendPlan
from sulq.api.named_asks import NamedAsks
from sulq.language.question import Question, Sums
from sulq.language.rowfn import Lit
from sulq.release.base import Paid, ReleaseFiles
from sulq.select.selected import Selected
from sulq.service.jobs.publication import Published
from tests.release.programs import EACH, SPEND, Program, people


class Listening:
    """An Oracle that writes down which codes its ledger gave out."""

    def __init__(self, oracle: NamedAsks) -> None:
        self._oracle = oracle
        self.codes: list[str] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self._oracle, name)

    def ask(self, question: Question, **options: object) -> Answer | Answers:
        answer = self._oracle.ask(question, **options)
        self.codes.append(answer.receipt.mac)
        return answer


@pytest.mark.parametrize("program", [one for one in EACH if one.name != "aim"], ids=lambda program: program.name)
def test_the_ledgers_own_code_stays_with_the_ledger(program: Program) -> None:
    """Neither what is printed, nor pickled, nor written has it (aim pays the same way). Control: answers have."""
    with people() as db:
        heard = Listening(db)
        made = program.release(heard, **program.named, spend=SPEND)
    assert heard.codes
    assert all(len(code) >= 32 for code in heard.codes)
    shown = Published(made)
    texts = [repr(made), str(made), json.dumps(shown.description()), str(pickle.dumps(made))]
    texts += [str(content) for content in shown.files("csv").values()]
    receipts = made.receipts if isinstance(made, Selected) else made.paid.receipts
    texts.append(repr(receipts))
    for code in heard.codes:
        assert not any(code in text for text in texts)
    assert {receipt.entry for receipt in receipts}
    if not isinstance(made, Selected):
        assert ReleaseFiles.of(made).description() == shown.description()


def test_what_a_purse_paid_is_told_without_its_codes() -> None:
    """Place, entry and plan of each debit are there; the code is not. Control: the spending has it."""
    with people() as db:
        spending = SpendPlan(db, SPEND)
        spending.one(Sums((Lit(1),)))
        (told,), (own,) = Paid.by(spending).receipts, spending.receipts
    assert (told.seq, told.entry, told.plan) == (own.seq, own.entry, own.plan)
    assert own.mac
    assert told.mac == ""
    assert own.mac not in repr(Paid.by(spending))
