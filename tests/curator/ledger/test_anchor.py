"""The anchor: an old copy of a ledger is refused, the gap is burnt, and nothing is acknowledged before it is noted."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
import threading
from fractions import Fraction
from pathlib import Path

import pytest

from sulq.curator.ledger.anchor import Anchor, Noted
from sulq.curator.ledger.ledger import Ledger, reconcile
from sulq.curator.ledger.notes import Signer
from sulq.curator.ledger.opening import verify
from sulq.curator.ledger.shares import Share
from sulq.errors import BudgetExceeded, CuratorError, SetupError, SulqError
from sulq.kernel.ledger.chain import canonical
from sulq.kernel.ledger.filter import Totals
from sulq.language.privacy import Budget, Epsilon, EpsilonDelta, epsilon_of
from tests import counts
from tests.counts import count
from tests.curator.ledger.cases import MECHANISMS, ask, gaussian, memory_folder, opened, pure
from tests.curator.ledger.places import copied, removed, there


@pytest.fixture
def folder() -> object:
    with memory_folder() as found:
        yield found


def refused(code: str, act: object, *args: object, **kwargs: object) -> SulqError:
    with pytest.raises(SulqError) as refusal:
        act(*args, **kwargs)
    assert refusal.value.code == code
    return refusal.value


def anchored(folder: Path, name: str = "a.ledger", budget: Budget | None = None, **options: object) -> Ledger:
    return opened(folder / name, budget, anchor=folder / "a.anchor", **options)


def mended(folder: Path, **options: object) -> dict[str, Totals]:
    return reconcile(folder / "a.ledger", folder / "a.anchor", mechanisms=MECHANISMS, **options)


def noted(folder: Path) -> dict[str, object]:
    return json.loads((folder / "a.anchor").read_bytes())


def test_an_older_copy_is_refused_and_the_gap_is_burnt_T46(folder: Path) -> None:
    """Restored from a copy, a ledger does not open; reconciled, its spend is what the anchor says (T46)."""
    path = folder / "a.ledger"
    with anchored(folder) as ledger:
        ledger.debit(pure("0.1"), question="q", plan_digest="p", analyst="ann")
    copied(path, folder / "old")
    with anchored(folder) as ledger:
        ledger.debit(pure("0.2"), question="q", plan_digest="p", analyst="ann")
        ledger.debit(pure("0.3"), question="q", plan_digest="p", analyst="ben")
    copied(folder / "old", path)
    before = verify(path)
    refused("ledger-rolled-back", anchored, folder)
    assert verify(path) == before  # a refusal writes nothing
    burnt = mended(folder)
    assert {name: Fraction(loss.epsilon, 10**18) for name, loss in burnt.items()} == {
        "ann": Fraction(1, 5), "ben": Fraction(3, 10),
    }  # fmt: skip
    with anchored(folder) as ledger:
        assert {each.analyst: each.spent for each in ledger.standings()} == {"ann": Epsilon(0.3), "ben": Epsilon(0.3)}
        assert ledger.totals.events == 3
        ask(ledger, pure("0.4"))
        refused("budget-exceeded", ask, ledger, pure("0.01"))
        assert ledger.verify().debits == 2
    assert mended(folder) == {}  # done once


def test_an_anchor_that_was_signed_before_sums_had_a_delta_opens_T46(folder: Path) -> None:
    """What earlier versions wrote has no such field, and its signature covers every byte. Control: a field more."""
    with anchored(folder) as ledger:
        ask(ledger, pure("0.1"))
    assert "delta" not in noted(folder)["whole"]
    with anchored(folder) as ledger:
        assert ledger.spent == Epsilon(0.1)
    body = noted(folder)
    body["whole"]["delta"] = 0
    (folder / "a.anchor").write_text(canonical(body))
    refused("bad-anchor", anchored, folder)


def test_a_lost_pair_is_burnt_with_its_delta_T46(folder: Path) -> None:
    """The anchor tells the deltas of asks that a restored ledger has lost."""
    path, delta = folder / "a.ledger", Fraction(1, 10**9)
    event = dataclasses.replace(gaussian("0.001"), basic=epsilon_of(Fraction(1, 1000), delta), delta=delta)
    with anchored(folder, budget=EpsilonDelta(1, 1e-6)) as ledger:
        ask(ledger, pure("0.1"))
    copied(path, folder / "old")
    with anchored(folder, budget=EpsilonDelta(1, 1e-6)) as ledger:
        ask(ledger, event)
        totals = ledger.totals
    removed(path)
    copied(folder / "old", path)
    mended(folder)
    with anchored(folder, budget=EpsilonDelta(1, 1e-6)) as ledger:
        assert ledger.totals.delta == totals.delta == 10**9


def test_a_ledger_that_is_its_anchors_opens_T46(folder: Path) -> None:
    """Control: without a restore the same ledger opens, time and again, and nothing is burnt."""
    for cost in ("0.1", "0.2", "0.3"):
        with anchored(folder) as ledger:
            ask(ledger, pure(cost))
        assert noted(folder)["seq"] == ledger._writer.state.seq
        assert mended(folder) == {}
    assert verify(folder / "a.ledger").spent == Epsilon(0.6)


def test_a_ledger_takes_no_debit_without_its_anchor_T46(folder: Path) -> None:
    """Opened without it, with an empty place or another ledger's, nothing is charged; it may still be read."""
    with anchored(folder) as ledger:
        ask(ledger, pure("0.1"))
    with opened(folder / "a.ledger") as ledger:
        refused("bad-anchor", ask, ledger, pure("0.1"))
        assert ledger.spent == Epsilon(0.1)
        assert len(ledger.transcript()) == 1
    refused("bad-anchor", opened, folder / "a.ledger", anchor=folder / "none.anchor")
    opened(folder / "b.ledger", anchor=folder / "b.anchor").close()
    refused("bad-anchor", opened, folder / "a.ledger", anchor=folder / "b.anchor")
    refused("bad-declaration", opened, None, anchor=folder / "c.anchor")
    assert verify(folder / "a.ledger").spent == Epsilon(0.1)


def test_a_new_ledger_is_not_begun_under_an_old_anchor_T46(folder: Path) -> None:
    """Where the ledger is gone and its anchor is not, nothing is begun: the people's spend would be forgotten (T56)."""
    with anchored(folder) as ledger:
        ask(ledger, pure("0.1"))
    removed(folder / "a.ledger")
    refused("ledger-rolled-back", anchored, folder)
    assert not there(folder / "a.ledger")


def test_a_lost_anchor_is_replaced_by_the_owners_word_T46(folder: Path) -> None:
    """With --lost a new anchor is begun; the old one, found again, is added up rather than compared."""
    with anchored(folder) as ledger:
        ask(ledger, pure("0.1"))
        copied(folder / "a.ledger", folder / "copy")
        ask(ledger, pure("0.2"))
    refused("bad-anchor", mended, folder, lost=True)  # it is there
    (folder / "a.anchor").rename(folder / "found")
    copied(folder / "copy", folder / "a.ledger")
    refused("bad-anchor", mended, folder)
    assert mended(folder, lost=True) == {}
    with anchored(folder) as ledger:  # goes on from the copy: nobody can know of the 0.2
        ask(ledger, pure("0.3"))
    refused("ledger-rolled-back", opened, folder / "a.ledger", anchor=folder / "found")
    shutil.copy(folder / "found", folder / "a.anchor")
    refused("ledger-rolled-back", anchored, folder)
    mended(folder)
    with anchored(folder) as ledger:
        # Both histories, the part they share twice: at least the 0.1 + 0.2 + 0.3 that were spent.
        assert ledger.spent == Epsilon(0.7)


def test_an_interrupted_replacement_can_be_finished_T46(folder: Path) -> None:
    """A new anchor whose ledger does not know of it yet is adopted by the same command again."""
    with anchored(folder) as ledger:
        ask(ledger, pure("0.1"))
    (folder / "a.anchor").unlink()

    def failpoint(name: str) -> None:
        if name == "anchor-renamed":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mended(folder, lost=True, failpoint=failpoint)
    refused("bad-anchor", anchored, folder)
    mended(folder, lost=True)
    with anchored(folder) as ledger:
        ask(ledger, pure("0.1"))


def test_a_burn_that_was_interrupted_is_not_charged_twice_T46(folder: Path) -> None:
    """Stopped between the burn and the new anchor, the ledger opens, and the command again burns nothing."""
    anchored(folder).close()
    copied(folder / "a.ledger", folder / "old")
    with anchored(folder) as ledger:
        ask(ledger, pure("0.3"))
    for again in (lambda: mended(folder), lambda: anchored(folder).close()):
        copied(folder / "old", folder / "a.ledger")
        shutil.copy(folder / "a.anchor", folder / "kept")

        def failpoint(name: str) -> None:
            if name == "after-burn":
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            mended(folder, failpoint=failpoint)
        again()
        with anchored(folder) as ledger:
            assert ledger.spent == Epsilon(0.3)
        shutil.copy(folder / "kept", folder / "a.anchor")


def test_a_burn_is_charged_whatever_the_limits_T46(folder: Path) -> None:
    """A raise that was lost with the asks it paid for leaves a ledger past its budget, which then refuses all."""
    with anchored(folder) as ledger:
        ledger.share("ann", Share.of("1/2"))
    copied(folder / "a.ledger", folder / "old")
    with anchored(folder) as ledger:
        ledger.raise_to(Epsilon(5))
        ledger.debit(pure("2.5"), question="q", plan_digest="p", analyst="ann")
    copied(folder / "old", folder / "a.ledger")
    mended(folder)
    with anchored(folder) as ledger:
        assert ledger.spent == Epsilon(2.5)
        assert ledger.remaining.amount == 0
        assert ledger.standing(analyst="ann")[2].amount == 0
        refused("budget-exceeded", ask, ledger, pure("0.001"))
        ledger.raise_to(Epsilon(5))
        ask(ledger, pure("2.5"))


def test_of_two_copies_only_one_goes_on_T46(folder: Path) -> None:
    """A second copy under the same anchor is stopped at its first debit, which nobody is told of.

    Also where both are asked the same in the same moment: the clock stands still.
    """
    with anchored(folder, clock=lambda: 0.0) as ledger:
        ask(ledger, pure("0.1"))
    copied(folder / "a.ledger", folder / "b.ledger")
    with anchored(folder, clock=lambda: 0.0) as one, anchored(folder, "b.ledger", clock=lambda: 0.0) as two:
        ask(one, pure("0.1"))
        refused("ledger-rolled-back", ask, two, pure("0.1"))
        assert isinstance(refused("ledger-failed", ask, two, pure("0.1")), CuratorError)
        ask(one, pure("0.1"))
    refused("ledger-rolled-back", anchored, folder, "b.ledger")


def test_several_openings_of_one_ledger_share_its_anchor(folder: Path) -> None:
    """Each notes the head on top of the others'; the anchor never goes back."""
    with anchored(folder) as one, anchored(folder) as two:
        seen = []
        for i in range(10):
            ask((one, two)[i % 2], pure("0.01"))
            seen.append(noted(folder)["seq"])
        assert seen == sorted(set(seen))
    assert noted(folder)["whole"]["events"] == 10


def test_threads_share_a_write_of_the_anchor(folder: Path) -> None:
    """Debits committed together are noted together, and each is noted when it is acknowledged."""
    steps: list[str] = []
    wrong: list[int] = []
    with anchored(folder, budget=Epsilon(10), failpoint=steps.append) as ledger:
        start = threading.Barrier(16)

        def work() -> None:
            start.wait()
            for _ in range(10):
                seq = ask(ledger, pure("0.01")).seq
                if noted(folder)["seq"] < seq:
                    wrong.append(seq)

        threads = [threading.Thread(target=work) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []
    assert noted(folder)["whole"]["events"] == 160
    assert steps.count("anchor-written") < 160


def test_an_anchor_that_cannot_be_written_stops_the_ledger_T48(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The debit stands, no receipt is given, and every later ask is refused until it is opened again (T48)."""
    with anchored(folder) as ledger:
        ask(ledger, pure("0.1"))
        with monkeypatch.context() as patched:

            def full(_: int) -> None:
                raise OSError(28, "No space left on device")

            patched.setattr("sulq.curator.ledger.anchor.os.fsync", full)
            assert isinstance(refused("ledger-failed", ask, ledger, pure("0.1"), key="k"), CuratorError)
        refused("ledger-failed", ask, ledger, pure("0.1"))
        assert ledger.spent == Epsilon(0.2)
    with anchored(folder) as ledger:  # ahead of its anchor by a debit nobody was told of
        ask(ledger, pure("0.1"))
        assert noted(folder)["whole"]["events"] == 3
    assert [file.name for file in folder.iterdir() if file.name.endswith(".new")] == []


def test_an_anchor_is_synced_renamed_and_its_folder_synced_T48(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this order, so that a power cut leaves the old anchor or the new one, whole."""
    steps: list[str] = []
    sync, replace = os.fsync, Path.replace
    with anchored(folder) as ledger:

        def synced(handle: int) -> None:
            steps.append("folder" if Path(f"/proc/self/fd/{handle}").readlink().is_dir() else "file")
            sync(handle)

        def replaced(self: Path, target: Path) -> Path:
            steps.append("rename")
            return replace(self, target)

        monkeypatch.setattr("sulq.curator.ledger.anchor.os.fsync", synced)
        monkeypatch.setattr(Path, "replace", replaced)
        ask(ledger, pure("0.1"))
    assert steps == ["file", "rename", "folder"]


def test_every_changed_bit_of_an_anchor_is_found_T47(folder: Path) -> None:
    """Whatever is flipped or cut off, the anchor is refused: it is signed (T47)."""
    with anchored(folder) as ledger:
        ledger.debit(pure("0.1"), question="q", plan_digest="p", analyst="ann")
    whole = (folder / "a.anchor").read_bytes()
    signer = ledger._signer
    assert Noted.read(whole, signer.public).whole.events == 1
    draw = counts.generator("anchor bits")
    bits = range(len(whole) * 8)
    for bit in draw.sample(bits, count("T47 flipped bits of an anchor", short=600, long=len(bits) // 2)):
        image = bytearray(whole)
        image[bit // 8] ^= 1 << bit % 8
        assert isinstance(refused("bad-anchor", Noted.read, bytes(image), signer.public), SetupError), bit
    for length in range(0, len(whole), 7):
        refused("bad-anchor", Noted.read, whole[:length], signer.public)
    refused("bad-anchor", Noted.read, whole, Signer(b"k" * 32).public)
    (folder / "a.anchor").write_bytes(whole[:-1])
    refused("bad-anchor", anchored, folder)


def test_an_anchor_reads_back(folder: Path) -> None:
    """What is noted is what is read, and where there is no file there is nothing."""
    signer = Signer(b"s" * 32)
    one = Noted("space", "name", 7, "ab", Totals(5, False, 4, 3, 2, 1, 9), {"ann": Totals(1), "": Totals()})
    assert Noted.read(one.text(signer).encode(), signer.public) == one
    assert dataclasses.replace(one, seq=8).text(signer) != one.text(signer)
    assert Anchor(folder / "none", "space", signer, print).read() is None
    refused("bad-anchor", Anchor(folder, "space", signer, print).read)


def test_an_anchor_may_be_added_later_and_old_ledgers_open(folder: Path) -> None:
    """A ledger begun without one takes one at any opening; its earlier copies are then refused as well."""
    with opened(folder / "a.ledger") as ledger:
        ask(ledger, pure("0.1"))
    copied(folder / "a.ledger", folder / "old")
    with anchored(folder) as ledger:
        ask(ledger, pure("0.1"))
    copied(folder / "old", folder / "a.ledger")
    refused("ledger-rolled-back", anchored, folder)


def test_random_restores_never_lose_a_spend_T46(folder: Path) -> None:
    """Over random asks, copies and restores, what was acknowledged is never more than what the ledger says (T46)."""
    draw = counts.generator("restores")
    path = folder / "a.ledger"
    for story in range(count("T46 stories of restores", short=12, long=400)):
        for file in folder.iterdir():
            file.unlink()
        for name in ("a.ledger", *map(str, range(13))):
            removed(folder / name)
        budget = EpsilonDelta(50, 1e-6)
        anchored(folder, budget=budget).close()
        copies = 1
        copied(path, folder / "0")
        acknowledged = {"epsilon": Fraction(0), "rho": Fraction(0), "events": 0}
        for _ in range(12):
            match draw.choice(["ask", "ask", "copy", "restore"]):
                case "copy":
                    copied(path, folder / str(copies))
                    copies += 1
                case "restore":
                    copied(folder / str(draw.randrange(copies)), path)
                case _:
                    with contextlib.suppress(SetupError):
                        mended(folder)
                    with anchored(folder, budget=budget) as ledger, contextlib.suppress(BudgetExceeded):
                        event = draw.choice([pure, gaussian])(Fraction(draw.randrange(1, 90), 1000))
                        ledger.debit(event, question="q", plan_digest="p", analyst=draw.choice(["ann", "ben"]))
                        acknowledged["epsilon"] += event.epsilon or 0
                        acknowledged["rho"] += event.rho
                        acknowledged["events"] += 1
        mended(folder)
        with anchored(folder, budget=budget) as ledger:
            totals = ledger.verify().totals
            assert totals.epsilon >= acknowledged["epsilon"] * 10**18, story
            assert totals.rho >= acknowledged["rho"] * 10**18, story
            assert totals.events >= acknowledged["events"], story


def test_without_an_anchor_a_restore_goes_unnoticed_T46(folder: Path) -> None:
    """Control: the same restore of a ledger without an anchor opens, and the spend is forgotten."""
    with opened(folder / "a.ledger") as ledger:
        ask(ledger, pure("0.1"))
        copied(folder / "a.ledger", folder / "old")
        ask(ledger, pure("0.9"))
    copied(folder / "old", folder / "a.ledger")
    with opened(folder / "a.ledger") as ledger:
        assert ledger.spent == Epsilon(0.1)
