"""A person space's ledger in its own thread: what lets it go, what it is opened by again, and what it is never."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import sulq
from sulq.curator.ledger import probe
from sulq.curator.ledger.ledger import Ledger, reconcile
from sulq.errors import CuratorError, SetupError
from sulq.kernel.mechanisms import MECHANISMS
from sulq.service.clerk import person_space
from sulq.service.clerk.person_space import Known, PersonSpace
from sulq.service.clerk.registration import declare
from sulq.service.clerk.worker_pool import OpenDataset
from sulq.service.settings import DatasetSettings
from tests.curator.ledger.cases import ask, pure
from tests.service.service import COLUMNS, survey

PRICE = pure("0.01")


class Kept:
    """A person space whose thread does nothing by itself: the tests take its turns."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, **more: object) -> None:
        patch.setattr(PersonSpace, "_run", lambda _: None)
        data = survey(folder / "people.parquet", 20)
        told = {"unit": sulq.Unit("person"), "budget": sulq.Epsilon(3), "ledger": folder / "people.ledger"} | more
        self.declared: list[DatasetSettings] = [declare("people", data, COLUMNS, **told)]
        self.path = Path(self.declared[0].ledger)
        self.known: dict[str, Known] = {}
        self.lost = 0
        self.space = PersonSpace(
            str(self.path), lambda _: self.declared, self.known, serve=self.serve, lost=self.let_go
        )
        self.space.turn()

    def serve(self, _: PersonSpace) -> None:
        pass

    def let_go(self, space: PersonSpace) -> None:
        assert space.ledger is None
        assert space.problem is not None
        self.lost += 1

    def turned(self) -> str | None:
        """A turn in which everything is due, and one more where it let the ledger go: the problem's code afterwards."""
        was_open = self.space.ledger is not None
        self._turn()
        if was_open and self.space.ledger is None:
            self._turn()
        return None if self.space.problem is None else self.space.problem.code

    def _turn(self) -> None:
        self.space._due = self.space._probed = -1e9
        self.space.turn()

    def debit(self) -> None:
        """Pay for something."""
        ask(self.ledger, PRICE)

    @property
    def ledger(self) -> Ledger:
        assert self.space.ledger is not None
        return self.space.ledger

    @property
    def debits(self) -> int:
        return len(self.ledger.transcript())


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kept]:
    found = Kept(tmp_path, monkeypatch)
    yield found
    if found.space.ledger is not None:
        found.space.ledger.close()


def test_a_ledger_whose_write_failed_is_read_anew_before_it_debits_T48(kept: Kept) -> None:
    """It is another object on the same file, with what was durable. Control: one that is well stays as it is."""
    kept.debit()
    first = kept.ledger
    assert kept.turned() is None
    assert kept.ledger is first
    first._writer.fail(CuratorError("ledger-failed", "It was not written."))
    assert kept.turned() is None
    assert kept.ledger is not first
    assert kept.lost == 1
    kept.debit()
    assert kept.debits == 2


def test_an_older_copy_is_not_taken_for_the_ledger_T46(kept: Kept) -> None:
    """Without an anchor too: what this process knew must stand in it. The newest copy is taken, with every debit.

    Control: to whom nothing is known the older copy is a ledger, and its budget is granted again.
    """
    kept.debit()
    old, new = kept.path.with_name("old"), kept.path.with_name("new")
    shutil.copy(kept.path, old)
    kept.debit()
    kept.path.rename(new)
    shutil.copy(old, kept.path)
    for _ in range(3):
        assert kept.turned() == "ledger-rolled-back"
        assert kept.space.ledger is None
    known = dict(kept.known)
    kept.known.clear()
    assert kept.turned() is None
    assert kept.debits == 1, "the control"
    kept.ledger._writer.fail(CuratorError("ledger-failed", "No."))
    kept.known.update(known)
    new.rename(kept.path)
    kept.known.update(known)
    kept.turned()
    kept.known.update(known)
    assert kept.turned() is None
    assert kept.debits == 2


def test_a_copy_written_over_the_file_in_place_is_noticed_too_T46(kept: Kept) -> None:
    """Where the older bytes come under the same name and inode. Control: the same bytes are the same ledger."""
    old = kept.path.with_name("old")
    shutil.copy(kept.path, old)
    kept.debit()
    new = kept.path.read_bytes()
    kept.path.write_bytes(new)
    assert kept.turned() is None
    kept.path.write_bytes(old.read_bytes())
    assert kept.turned() == "ledger-rolled-back"
    kept.path.write_bytes(new)
    assert kept.turned() is None
    assert kept.debits == 1


def test_a_ledger_that_was_there_is_not_begun_anew(kept: Kept) -> None:
    """Its file is gone: it is missing, and nothing is put there. Control: where none was known one is begun."""
    kept.debit()
    away = kept.path.rename(kept.path.with_name("away"))
    for _ in range(2):
        assert kept.turned() in ("ledger-rolled-back", "missing-file")
        assert not kept.path.exists()
    known = dict(kept.known)
    kept.known.clear()
    assert kept.turned() is None
    assert kept.debits == 0, "the control"
    kept.ledger.close()
    kept.known.update(known)
    away.rename(kept.path)
    kept.turned()
    kept.known.update(known)
    assert kept.turned() is None
    assert kept.debits == 1


def test_a_full_disk_is_noticed_before_anybody_pays_T48(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger stays open, to be read, and takes asks again when there is room; a new one leaves nothing behind."""
    first = kept.ledger

    def full(_handle: int, _data: bytes) -> int:
        raise OSError(28, "No space left on device")

    before = sorted(kept.path.parent.iterdir())
    with monkeypatch.context() as patch:
        patch.setattr(probe.os, "write", full)
        assert kept.turned() == "ledger-failed"
        assert kept.space.ledger is first
        other = PersonSpace("x", lambda _: [_elsewhere(kept)], {}, serve=kept.serve, lost=kept.let_go)
        other.turn()
        assert other.problem.code == "ledger-failed"
        assert not (kept.path.parent / "new.ledger").exists()
    assert kept.turned() is None
    assert sorted(kept.path.parent.iterdir()) == before
    other._due = 0.0
    other.turn()
    assert other.ledger is not None, "the control"
    other.ledger.close()


def _elsewhere(kept: Kept) -> DatasetSettings:
    told = kept.declared[0]
    tables = told.tables
    return type(told)("new", tables, told.unit, told.budget, str(kept.path.with_name("new.ledger")))


@pytest.mark.parametrize("code", ["ledger-failed", "ledger-damaged", "missing-file", "ledger-busy", "bad-anchor"])
def test_a_ledger_that_does_not_open_is_tried_again_with_growing_pauses_T48(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    """Whatever the reason: it may be mended at any time. Bar: 1, 2, 4, 8, then 10 seconds. Control: then it opens."""
    usual, tried = person_space.opened, []

    def opened(declared: DatasetSettings, **more: bool) -> Ledger:
        tried.append(more)
        if len(tried) <= 6:
            raise SetupError(code, "No.")
        return usual(declared, **more)

    monkeypatch.setattr(person_space, "opened", opened)
    kept = Kept(tmp_path, monkeypatch)
    pauses = []
    for turn in range(1, 7):
        assert len(tried) == turn
        kept.space.turn()  # not yet due
        assert len(tried) == turn
        pauses.append(kept.space._pause)
        kept.turned()
    assert pauses == [1, 2, 4, 8, 10, 10]
    assert kept.space.problem is None
    assert {more["whole"] for more in tried[1:]} == {code == "ledger-damaged"}, "what was damaged is read whole"
    kept.ledger.close()


def test_an_anchor_that_is_away_is_noticed_and_one_that_failed_is_read_again_T46(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without it nothing is charged; back in its place, the ledger is checked against it and goes on.

    Control: one that knows of a debit that the ledger has not is in the way.
    """
    anchor = tmp_path / "people.anchor"
    kept = Kept(tmp_path, monkeypatch, anchor=anchor)
    kept.debit()
    old = shutil.copy(kept.path, tmp_path / "old")
    away = anchor.rename(tmp_path / "away")
    assert kept.turned() == "bad-anchor"
    with pytest.raises(CuratorError):
        kept.debit()  # it was under way; nobody knows what the other volume holds, so it is not acknowledged
    assert kept.ledger.failed
    assert kept.turned() == "bad-anchor"
    assert kept.space.ledger is None
    away.rename(anchor)
    assert kept.turned() is None
    assert kept.debits == 2, "what was charged stays so"
    kept.debit()
    shutil.copy(old, kept.path)
    assert kept.turned() == "ledger-rolled-back"


def test_a_ledger_and_its_anchor_rolled_back_together_are_not_taken_T46(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What this process knew the anchor to say is not there, nor was it charged: also where as much was spent since.

    Control: to whom nothing is known both are a ledger and its anchor. The newest of both are taken.
    """
    anchor = tmp_path / "people.anchor"
    kept = Kept(tmp_path, monkeypatch, anchor=anchor)
    kept.debit()
    kept.ledger.flush()
    older, newest = tmp_path / "older", tmp_path / "newest"
    _copied(older, kept.path, anchor)
    for _ in range(3):
        kept.debit()
    kept.ledger.flush()
    spent = kept.ledger.spent
    _copied(newest, kept.path, anchor)
    _put(older, kept.path, anchor)
    for _ in range(3):
        assert kept.turned() == "ledger-rolled-back"
        assert kept.space.ledger is None
    known = dict(kept.known)
    assert known[str(kept.path)].noted is not None
    kept.known.clear()
    assert kept.turned() is None, "the control"
    assert kept.debits == 1
    for _ in range(3):
        kept.debit()
    assert kept.ledger.spent == spent
    kept.ledger.close()
    kept.space.ledger = None
    kept.known.update(known)
    assert kept.turned() == "ledger-rolled-back", "it spent as much, for other answers"
    _put(newest, kept.path, anchor)
    assert kept.turned() is None
    assert kept.debits == 4
    kept.ledger.close()


def test_an_older_copy_that_was_charged_what_its_anchor_noted_is_taken_T46(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After `sulq ledger reconcile`, with all that was spent. Control: before it, it is not taken."""
    anchor = tmp_path / "people.anchor"
    kept = Kept(tmp_path, monkeypatch, anchor=anchor)
    kept.debit()
    kept.ledger.flush()
    old = Path(shutil.copy(kept.path, tmp_path / "old"))
    for _ in range(3):
        kept.debit()
    spent = kept.ledger.spent
    old.rename(kept.path)
    assert kept.turned() == "ledger-rolled-back", "the control"
    reconcile(kept.path, anchor, mechanisms=tuple(MECHANISMS))
    assert kept.turned() is None
    assert kept.ledger.spent == spent
    kept.debit()
    kept.ledger.close()


def test_a_ledger_that_is_given_its_first_anchor_must_hold_what_was_known_T46(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older copy is not taken because it has an anchor now, which knows of nothing. Control: the newest is."""
    kept = Kept(tmp_path, monkeypatch)
    old, new = kept.path.with_name("old"), kept.path.with_name("new")
    shutil.copy(kept.path, old)
    kept.debit()
    kept.path.rename(new)
    shutil.copy(old, kept.path)
    kept.declared = [replace(kept.declared[0], anchor=tmp_path / "first.anchor")]
    assert kept.turned() == "ledger-rolled-back"
    new.rename(kept.path)
    assert kept.turned() is None
    assert kept.ledger.anchored
    assert kept.debits == 1
    kept.ledger.close()


def _copied(into: Path, *paths: Path) -> None:
    into.mkdir()
    for path in paths:
        shutil.copy(path, into / path.name)


def _put(back: Path, *paths: Path) -> None:
    """In their place at once, as a snapshot of a volume puts them."""
    for path in paths:
        draft = Path(shutil.copy(back / path.name, path.with_name(f"{path.name}-draft")))
        draft.rename(path)


def test_one_that_declares_the_ledger_otherwise_is_in_nobodys_way_T56(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is opened as the next one declares it. Control: where all do, it is not opened."""
    kept = Kept(tmp_path, monkeypatch)
    right = kept.declared[0]
    kept.ledger.close()
    wrong = type(right)("wrong", right.tables, right.unit, sulq.Epsilon(9), right.ledger)
    kept.declared = [wrong, right]
    assert kept.turned() is None
    kept.ledger.close()
    kept.declared = [wrong]
    assert kept.turned() == "budget-mismatch"


def test_a_disk_that_does_not_answer_is_the_problem_after_a_while(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks is refused at once; when it answers there is no problem. Control: at first it is only slow."""
    answers, begun = threading.Event(), threading.Event()

    def waits() -> None:
        begun.set()
        assert answers.wait(60)

    monkeypatch.setattr(kept.ledger, "probe", waits)
    held = OpenDataset("people", ledger=kept.ledger, space=kept.space)
    turn = threading.Thread(target=kept.turned)
    turn.start()
    assert begun.wait(60)
    assert kept.space.problem is None
    assert held.open_ledger() is kept.ledger
    monkeypatch.setattr(person_space, "MAX_STALL_SECONDS", 0.0)
    assert kept.space.stalled
    assert kept.space.problem.code == "ledger-failed"
    for refused in (held.open_ledger, held.opened):
        with pytest.raises(SetupError) as error:
            refused()
        assert error.value.code == "not-ready"
    answers.set()
    turn.join(60)
    assert kept.space.problem is None
    assert held.open_ledger() is kept.ledger
