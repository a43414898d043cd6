"""Receipts an analyst can keep: checked with a key alone, or against the ledger (T60)."""

from __future__ import annotations

import dataclasses
import json
import shutil
from fractions import Fraction
from pathlib import Path

import pytest

from sulq.answers import wire
from sulq.curator.ledger import notes
from sulq.curator.ledger.notes import Signer
from sulq.curator.ledger.opening import verify
from sulq.curator.ledger.turns import SqliteFile
from sulq.curator.ledger.view import check_receipt
from sulq.errors import QuestionError, SetupError, SulqError
from sulq.kernel.ledger.chain import ORIGIN, Row, canonical, link
from sulq.language.privacy import EpsilonDelta, Unit
from tests.curator.ledger.cases import ask, gaussian, memory_folder, opened, pure


@pytest.fixture
def folder() -> object:
    with memory_folder() as found:
        yield found


def refused(code: str, act: object, *args: object, **kwargs: object) -> SulqError:
    with pytest.raises(SulqError) as refusal:
        act(*args, **kwargs)
    assert refusal.value.code == code
    return refusal.value


def kept(folder: Path) -> tuple[str, str]:
    """A ledger with three debits; the receipt of the second, and the public key."""
    with opened(folder / "a.ledger", EpsilonDelta(2, 1e-6)) as ledger:
        ask(ledger, pure("0.1"))
        seq = ledger.debit(gaussian("0.01"), question="how many?", plan_digest="plan", analyst="ann").seq
        ask(ledger, pure("0.1"))
        return ledger.receipt(seq), ledger.public_key


def test_a_receipt_is_checked_offline_and_against_its_ledger_T60(folder: Path) -> None:
    """It says what was paid, when and by whom; the key alone checks it, and the ledger still holds it (T60)."""
    text, key = kept(folder)
    found = check_receipt(text, key=key, ledger=folder / "a.ledger")
    assert check_receipt(text.encode()) == found
    assert check_receipt(text, key=f" {key.upper()}\n") == found
    assert (found.seq, found.analyst, found.plan, found.public_key) == (3, "ann", "plan", key)
    assert (found.epsilon, found.rho, found.key_delta, found.queries) == (None, Fraction(1, 100), 0, 0)
    assert wire.encode(found) == text
    assert "entry 3" in str(found)
    assert "by ann" in str(found)


def test_every_changed_word_of_a_receipt_is_found_T60(folder: Path) -> None:
    """Each field changed, left out or added, and each character, makes it fail with one clear code."""
    text, key = kept(folder)
    whole = check_receipt(text)
    changes: dict[str, object] = {
        "space": "00", "seq": 4, "entry": "00" * 32, "plan": "other", "question": "other", "epsilon": Fraction(1, 9),
        "rho": Fraction(1, 200), "key_delta": Fraction(1, 9), "queries": 1, "analyst": "ben", "time": "yesterday",
        "public_key": Signer(b"k" * 32).public, "signature": "00" * 64,
    }  # fmt: skip
    assert {*changes} == {field.name for field in dataclasses.fields(whole)}
    for name, value in changes.items():
        forged = wire.encode(dataclasses.replace(whole, **{name: value}))
        assert isinstance(refused("bad-signature", check_receipt, forged), QuestionError), name
        assert isinstance(refused("bad-signature", check_receipt, forged, key=key), QuestionError), name
        tree = json.loads(text)
        del tree[name]
        refused("bad-signature", check_receipt, json.dumps(tree))
    for place in range(0, len(text), 3):
        image = text[:place] + chr(ord(text[place]) ^ 1) + text[place + 1 :]
        refused("bad-signature", check_receipt, image)
    for junk in ("", "{}", "null", "[]", b"\xff", '{"kind":"Epsilon","epsilon":1}', text + text):
        refused("bad-signature", check_receipt, junk)


def test_a_receipt_signed_by_another_key_is_shown_up_by_the_key_or_the_ledger_T60(folder: Path) -> None:
    """Made up whole, with a key of its own, it is consistent in itself; the owner's key or the ledger tells (T60)."""
    text, key = kept(folder)
    signer = Signer(b"forger of 32 bytes, no more, no ."[:32])
    made_up = dataclasses.replace(check_receipt(text), epsilon=Fraction(1, 10**6), public_key=signer.public)
    made_up = dataclasses.replace(made_up, signature=signer.sign(made_up.message))
    assert check_receipt(wire.encode(made_up)) == made_up  # that is why the key is to be compared
    refused("bad-signature", check_receipt, wire.encode(made_up), key=key)
    refused("not-in-ledger", check_receipt, wire.encode(made_up), ledger=folder / "a.ledger")


def test_a_rewritten_history_does_not_hold_the_receipt_T60(folder: Path) -> None:
    """Whoever has the ledger's file can write another history, but not one that fits receipts already given (T60)."""
    opened(folder / "a.ledger", EpsilonDelta(2, 1e-6)).close()
    shutil.copy(folder / "a.ledger", folder / "b.ledger")
    with opened(folder / "a.ledger", EpsilonDelta(2, 1e-6)) as ledger:
        first = ask(ledger, pure("0.5")).seq
        text = ledger.receipt(first)
        later = ledger.receipt(ask(ledger, pure("0.1")).seq)
    check_receipt(text, ledger=folder / "a.ledger")
    with opened(folder / "b.ledger", EpsilonDelta(2, 1e-6)) as ledger:
        ask(ledger, pure("0.1"))
    assert "rewritten" in refused("not-in-ledger", check_receipt, text, ledger=folder / "b.ledger").message
    refused("not-in-ledger", check_receipt, later, ledger=folder / "b.ledger")  # there is no such entry
    opened(folder / "c.ledger").close()
    refused("not-in-ledger", check_receipt, text, ledger=folder / "c.ledger")
    assert isinstance(refused("missing-file", check_receipt, text, ledger=folder / "none"), SetupError)


def test_a_receipt_is_given_for_a_debit_and_to_whom_it_belongs() -> None:
    """Other entries have none, and an analyst gets its own alone, told nothing of the others'."""
    with opened() as ledger:
        mine = ledger.debit(pure("0.1"), question="q", plan_digest="p", analyst="ann")
        ledger.keep(mine, "1", at_once=True)
        assert check_receipt(ledger.receipt(mine.seq)).entry == mine.entry
        assert check_receipt(ledger.receipt(mine.seq, analyst="ann")).analyst == "ann"
        errors = [refused("not-in-ledger", ledger.receipt, mine.seq, analyst="ben")]
        errors += [refused("not-in-ledger", ledger.receipt, seq) for seq in (1, 3, 99, 0, -1)]
        assert {error.message.replace("2", "N") for error in errors[:1]} == {"Entry N is no debit of this ledger."}


def test_every_ledger_signs_with_its_own_key() -> None:
    """Keys are drawn anew for each person space."""
    ledgers = [opened() for _ in range(10)]
    assert len({ledger.public_key for ledger in ledgers}) == 10


def test_a_ledger_begun_before_there_were_signatures_gives_receipts_T91(folder: Path) -> None:
    """Its key follows from the one it has: it opens as before, and what it signs is checked at every later opening."""
    path = folder / "a.ledger"
    first = json.loads(notes.genesis(Unit(), EpsilonDelta(2, 1e-6), open_keys=False, synthetic=False, time="then"))
    del first["signing_key"]
    event = wire.to_json(pure("0.25"))
    debit = {"kind": "debit", "event": event, "question": "q", "question_digest": "d", "plan_digest": "p"}
    rows: list[Row] = []
    for body in (first, debit | {"version": 0, "key": "k", "time": "then"}):
        text = canonical(body)
        last = rows[-1].hash if rows else ORIGIN
        rows.append(Row(len(rows) + 1, text, link(last, len(rows) + 1, text)))
    SqliteFile.create(path, rows)
    with opened(path, EpsilonDelta(2, 1e-6)) as ledger:
        key, text = ledger.public_key, ledger.receipt(2)
        assert ledger.totals.events == 1
        assert ledger.receipt(ask(ledger, pure("0.1")).seq)
    assert verify(path).public_key == key
    assert check_receipt(text, key=key, ledger=path).analyst == ""
