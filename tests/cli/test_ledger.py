"""`sulq ledger` as a person types it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from sulq.cli import app
from sulq.curator.ledger.ledger import Ledger
from sulq.errors import SulqError
from sulq.kernel.mechanisms import MECHANISMS
from sulq.language.estimator import Certificate, Estimator, Stated
from sulq.language.privacy import Epsilon, Unit
from tests.curator.ledger.cases import pure


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A ledger with a debit of ann's."""
    with Ledger.open(tmp_path / "a.ledger", mechanisms=tuple(MECHANISMS), unit=Unit(), budget=Epsilon(1)) as ledger:
        ledger.debit(pure("0.25"), question="q", plan_digest="p", analyst="ann [b]x[/b]")
    return tmp_path


def run(*words: object, text: str | None = None) -> Result:
    return CliRunner().invoke(app, ["ledger", *map(str, words)], input=text)


def said(*words: object, text: str | None = None) -> str:
    found = run(*words, text=text)
    assert found.exit_code == 0, found.exception
    return " ".join(found.output.split())


def refused(code: str, *words: object, text: str | None = None) -> None:
    error = run(*words, text=text).exception
    assert isinstance(error, SulqError)
    assert error.code == code


def test_a_receipt_is_printed_and_checked(folder: Path) -> None:
    """Printed by the curator, it is checked offline, by the public key and against the ledger (T60)."""
    path = folder / "a.ledger"
    text = run("receipt", path, 2).output
    (folder / "receipt.json").write_text(text, encoding="utf-8")
    key = json.loads(text)["public_key"]
    assert key in said("show", path)
    offline = said("check", folder / "receipt.json")
    assert "signed: entry 2" in offline
    assert "ann [b]x[/b]" in offline  # a name is text, not markup
    assert f"by the key {key}: compare it" in offline
    assert "compare" not in said("check", folder / "receipt.json", "--key", key)
    assert "the ledger has this entry" in said("check", "-", "--ledger", path, text=text)
    refused("bad-signature", "check", folder / "receipt.json", "--key", "00" * 32)
    refused("bad-signature", "check", "-", text=text.replace("1/4", "1/5"))
    refused("missing-file", "check", folder / "none.json")
    refused("missing-file", "check", folder / "receipt.json", "--ledger", folder / "none.ledger")
    refused("not-in-ledger", "receipt", path, 1)


def test_what_rests_on_the_owners_word_is_shown_SR5(folder: Path) -> None:
    """Each of the owner's functions with its certificate and as declared; control: none before it is registered."""
    path = folder / "a.ledger"
    assert "estimator" not in said("show", path)
    own = Estimator("share", "clinic.robust:share", Certificate(0.1, 0.25, 0.9, 0, 1, ("income",)))
    with Ledger.open(path, mechanisms=tuple(MECHANISMS), create=False) as ledger:
        ledger.register("[b]survey[/b]", declarations="d", estimators=(own,))
    words = "clinic.robust:share of income, moved by a row 0.5 at most (declared by the owner)"
    assert f"estimator of [b]survey[/b]: share: {words}" in said("show", path)
    assert "sound" in said("verify", path)


def test_a_declaration_changed_after_answers_is_marked_SR28(tmp_path: Path) -> None:
    """Every registration is shown, in order, a sensitivity that is lowered after two asks as changed after them.

    Controls: what was declared before the first ask is not marked, nor is one again in the same words, nor another
    file under the same words; a table that is first declared after asks is.
    """
    path = tmp_path / "b.ledger"

    def own(sensitivity: float) -> Estimator:
        return Estimator("share", "clinic.robust:share", Stated(sensitivity, 0, 1, ("income",)))

    other = Estimator("other", "clinic.robust:other", Stated(1, 0, 1, ("income",)))
    with Ledger.open(path, mechanisms=tuple(MECHANISMS), unit=Unit(), budget=Epsilon(1)) as ledger:
        ledger.register("survey", declarations="a" * 64, size=9, estimators=(own(0.5), other))
        ledger.register("survey", declarations="b" * 64, size=9, estimators=(own(0.25), other))
        for _ in range(2):
            ledger.debit(pure("0.25"), question="q", plan_digest="p")
        for source in ("one", "one", "two"):
            ledger.register("survey", declarations="b" * 64, size=9, source=source, estimators=(own(0.25), other))
        assert "after" not in said("show", path)
        ledger.register("survey", declarations="c" * 64, size=9, estimators=(own(0.125), other))
        ledger.register("late", declarations="d" * 64)
    shown = said("show", path)
    moved = "estimator of survey: share: clinic.robust:share of income, moved by a person {} at most"
    words = [
        f"survey is declared {'a' * 12}, size 9 estimator",
        f"{moved.format(0.5)} (declared by the owner) estimator",
        f"survey is declared {'b' * 12}, size 9 estimator",
        f"{moved.format(0.25)} (declared by the owner) estimator",
        f"survey is declared {'c' * 12}, size 9 (changed after 2 asks)",
        f"{moved.format(0.125)} (declared by the owner) (changed after 2 asks)",
        f"late is declared {'d' * 12}, no size (declared after 2 asks)",
    ]
    places = [shown.find(word) for word in words]
    assert -1 not in places
    assert places == sorted(places)
    assert shown.count("after 2 asks") == 3
    assert "sound" in said("verify", path)


def test_shares_are_set_and_shown(folder: Path) -> None:
    """A share is an entry; nonsense is refused and writes nothing."""
    path = folder / "a.ledger"
    shown = said("share", path, "ben", "--share", "1/2", "--reserve", "0.25")
    assert "ben" in shown
    assert "0.25" in shown
    assert "ann [b]x[/b]" in said("show", path)
    refused("bad-share", "share", path, "ben", "--share", "2")
    refused("bad-share", "share", path, "cat", "--reserve", "0.9")
    refused("missing-file", "share", folder / "none.ledger", "ben")
    assert "3 entries" in said("verify", path)


def test_a_restored_copy_is_reconciled_T46(folder: Path) -> None:
    """The gap is burnt by a command and said; afterwards the ledger opens under its anchor (T46)."""
    path, anchor = folder / "a.ledger", folder / "a.anchor"

    def opened() -> Ledger:
        return Ledger.open(path, mechanisms=tuple(MECHANISMS), anchor=anchor)

    opened().close()
    shutil.copy(path, folder / "old")
    with opened() as ledger:
        ledger.debit(pure("0.5"), question="q", plan_digest="p")
    assert "nothing is burnt" in said("reconcile", path, "--anchor", anchor)
    shutil.copy(folder / "old", path)
    with pytest.raises(SulqError):
        opened()
    found = said("reconcile", path, "--anchor", anchor)
    assert "burnt: 1 asks" in found
    assert "spent epsilon 0.75" in found
    opened().close()
    refused("bad-anchor", "reconcile", path, "--anchor", anchor, "--lost")
    anchor.unlink()
    refused("bad-anchor", "reconcile", path, "--anchor", anchor)
    said("reconcile", path, "--anchor", anchor, "--lost")
    opened().close()
