"""A respondent's own filter: exact sums, one report a question, kept before it leaves."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from sulq.errors import BudgetExceeded, QuestionError, SetupError
from sulq.language.privacy import Epsilon, Rho
from sulq.local import Diary, Respondent


def together(calls: list[tuple[Callable[[int], None], int]]) -> None:
    """Each call in a thread of its own."""
    threads = [threading.Thread(target=call, args=(number,)) for call, number in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_every_new_round_is_charged_and_every_old_one_is_free_SR19() -> None:
    """Ten rounds of a tenth fit a budget of one exactly; the eleventh does not, and the ten can be asked again."""
    diary = Diary(Epsilon(1))
    respondent = Respondent(["no", "yes"], epsilon=0.1, method="krr", diary=diary)
    told = [int(respondent.report("yes", round=i, question="q")) for i in range(10)]
    assert (diary.spent, diary.remaining) == (Epsilon(1), Epsilon.total(Fraction(0)))
    with pytest.raises(BudgetExceeded) as refused:
        respondent.report("yes", round=10, question="q")
    assert refused.value.code == "budget-exceeded"
    assert [int(respondent.report("no", round=i, question="q")) for i in range(10)] == told
    assert diary.spent == Epsilon(1)


def test_questions_share_a_diary_and_have_reports_of_their_own() -> None:
    """Two questions of one round are two charges; one question in two encodings is refused."""
    diary = Diary(Epsilon(2))
    smoker = Respondent(["no", "yes"], epsilon=0.5, method="krr", diary=diary)
    city = Respondent(["Lod", "Yafo", "Haifa"], epsilon=1, method="oue", diary=diary)
    smoker.report("yes", question="smoker")
    first = city.report("Lod", question="city")
    assert (city.report("Yafo", question="city") == first).all()
    assert diary.spent == Epsilon(1.5)
    with pytest.raises(QuestionError) as refused:
        city.report("Lod", question="smoker")
    assert refused.value.code == "key-reused"
    assert diary.spent == Epsilon(1.5)


def test_a_diary_lasts(tmp_path: Path) -> None:
    """Another start reads what was told; the file holds reports and prices, never a value."""
    path = tmp_path / "diary.json"
    respondent = Respondent(["secret-a", "secret-b"], epsilon=1, method="krr", diary=Diary(Epsilon(3), path))
    told = int(respondent.report("secret-a", round="spring", question="q"))
    again = Respondent(["secret-a", "secret-b"], epsilon=1, method="krr", diary=Diary(Epsilon(3), path))
    assert int(again.report("secret-b", round="spring", question="q")) == told
    assert again.diary is not None
    assert again.diary.spent == Epsilon(1)
    assert "secret" not in path.read_text(encoding="utf-8")
    with pytest.raises(SetupError) as refused:
        Diary(Epsilon(4), path)
    assert refused.value.code == "budget-mismatch"


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"format": 9, "budget": "1", "told": {}}', "\x00"])
def test_a_damaged_diary_is_not_answered_from(text: str, tmp_path: Path) -> None:
    """A budget that cannot be read may be spent already."""
    path = tmp_path / "diary.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SetupError) as refused:
        Diary(Epsilon(1), path)
    assert refused.value.code == "ledger-damaged"


def test_what_cannot_be_kept_is_not_told(tmp_path: Path) -> None:
    """The diary's folder is gone: no report leaves, and none is remembered."""
    diary = Diary(Epsilon(1), tmp_path / "gone" / "diary.json")
    respondent = Respondent(2, epsilon=1, method="krr", diary=diary)
    with pytest.raises(SetupError) as refused:
        respondent.report(1, question="q")
    assert refused.value.code == "missing-file"
    assert diary.spent == Epsilon.total(Fraction(0))
    assert diary.find(json.dumps(["1", ""]), "") is None


def test_two_threads_spend_one_budget() -> None:
    """Forty threads, ten reports' worth: ten are told."""
    diary = Diary(Epsilon(1))
    respondent = Respondent(2, epsilon=0.1, method="krr", diary=diary)
    told: list[int] = []

    def ask(number: int) -> None:
        with contextlib.suppress(BudgetExceeded):
            told.append(int(respondent.report(1, round=number, question="q")))

    together([(ask, number) for number in range(40)])
    assert len(told) == 10


def test_whoever_looks_meanwhile_takes_nothing_back_SR19(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that read the file before a report was noted, and goes on after it: what was noted stays noted."""
    diary = Diary(Epsilon(2), tmp_path / "diary.json")
    respondent = Respondent(2, epsilon=1, method="krr", diary=diary)
    respondent.report(1, round=0, question="q")
    looked, noted = threading.Event(), threading.Event()
    read = Diary._read

    def slow(self: Diary, path: Path) -> None:
        if threading.current_thread().name == "looks":
            before = path.read_text(encoding="utf-8")
            looked.set()
            noted.wait(1)  # as long as a report takes, if it does not wait for its turn
            beside = path.with_name("before.json")
            beside.write_text(before, encoding="utf-8")
            read(self, beside)
        else:
            read(self, path)

    monkeypatch.setattr(Diary, "_read", slow)
    looks = threading.Thread(target=lambda: diary.spent, name="looks")
    looks.start()
    assert looked.wait(10)
    respondent.report(1, round=1, question="q")
    noted.set()
    looks.join()
    monkeypatch.setattr(Diary, "_read", read)
    assert diary.spent == Epsilon(2)
    with pytest.raises(BudgetExceeded):
        respondent.report(1, round=2, question="q")
    assert Diary(Epsilon(2), tmp_path / "diary.json").spent == Epsilon(2)


def test_two_diaries_of_one_file_spend_one_budget(tmp_path: Path) -> None:
    """Ten objects on one path, four rounds each, all at once: ten reports are told, and each knows what all spent."""
    path = tmp_path / "diary.json"
    respondents = [Respondent(2, epsilon=0.1, method="krr", diary=Diary(Epsilon(1), path)) for _ in range(10)]
    told: list[int] = []

    def ask(number: int) -> None:
        for turn in range(4):
            with contextlib.suppress(BudgetExceeded):
                told.append(int(respondents[number].report(1, round=f"{number}.{turn}", question="q")))

    together([(ask, number) for number in range(10)])
    assert len(told) == 10
    for respondent in respondents:
        assert respondent.diary is not None
        assert respondent.diary.spent == Epsilon(1)
    again = [int(respondent.report(0, round="0.0", question="q")) for respondent in respondents[:2]]
    assert again[0] == again[1]  # what one told, the other repeats


def test_another_process_spends_the_same_budget(tmp_path: Path) -> None:
    """A report told elsewhere is charged here, without opening the diary anew."""
    path = tmp_path / "diary.json"
    here = Respondent(2, epsilon=1, method="krr", diary=Diary(Epsilon(1), path))
    code = "import sys; from sulq.local import *; from sulq.language.privacy import Epsilon\n"
    code += (
        "print(Respondent(2, epsilon=1, method='krr', diary=Diary(Epsilon(1), sys.argv[1])).report(1, question='q'))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert int(here.report(0, question="q")) == int(done.stdout)
    with pytest.raises(BudgetExceeded):
        here.report(1, round=2, question="q")


def test_a_diary_is_its_owners_and_outlives_the_power(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mode 0600 whatever the umask; the new file is synced before its name is, and its folder after."""
    order: list[str] = []
    honest, replaced = os.fsync, Path.replace

    def synced(handle: int) -> None:
        order.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        honest(handle)

    def named(self: Path, target: Path) -> Path:
        order.append("name")
        return replaced(self, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", named)
    before = os.umask(0)
    try:
        path = tmp_path / "diary.json"
        Respondent(2, epsilon=1, method="krr", diary=Diary(Epsilon(1), path)).report(1, question="q")
    finally:
        os.umask(before)
    assert order == ["file", "name", "folder"]
    assert [stat.S_IMODE(found.stat().st_mode) for found in tmp_path.iterdir()] == [0o600, 0o600]


def test_a_diary_that_is_gone_is_not_begun_anew(tmp_path: Path) -> None:
    """What was told is not forgotten with its file."""
    path = tmp_path / "diary.json"
    respondent = Respondent(2, epsilon=1, method="krr", diary=Diary(Epsilon(1), path))
    respondent.report(1, question="q")
    path.unlink()
    with pytest.raises(SetupError) as refused:
        respondent.report(1, round=2, question="q")
    assert refused.value.code == "ledger-damaged"


def test_an_older_file_under_a_live_diary_is_refused_T105(tmp_path: Path) -> None:
    """Two reports of .5 on a budget of 1, the file of before the second one put back: no third report is told."""
    path = tmp_path / "diary.json"
    diary = Diary(Epsilon(1), path)
    respondent = Respondent(2, epsilon=0.5, method="krr", diary=diary)
    respondent.report(1, round=1, question="q")
    older = path.read_bytes()
    told = int(respondent.report(1, round=2, question="q"))
    newest = path.read_bytes()
    path.write_bytes(older)
    acts: list[Callable[[], object]] = [
        lambda: respondent.report(1, round=3, question="q"),
        lambda: respondent.report(1, round=2, question="q"),
        lambda: diary.spent,
    ]
    for act in acts:
        with pytest.raises(SetupError) as refused:
            act()
        assert refused.value.code == "ledger-rolled-back"
    path.write_bytes(newest)  # the newest copy is taken again
    assert int(respondent.report(0, round=2, question="q")) == told
    with pytest.raises(BudgetExceeded):
        respondent.report(1, round=3, question="q")


def test_a_changed_report_under_a_live_diary_is_refused_T105(tmp_path: Path) -> None:
    """A report told, or its price, that reads otherwise now: this is no longer the diary that told it."""
    path = tmp_path / "diary.json"
    respondent = Respondent(2, epsilon=0.5, method="krr", diary=Diary(Epsilon(1), path))
    respondent.report(1, question="q")
    sound = json.loads(path.read_text(encoding="utf-8"))
    ((key, (encoding, price, told)),) = sound["told"].items()
    for changed in ([encoding, price, 1 - told], [encoding, "1/1000", told], ["other", price, told]):
        path.write_text(json.dumps(sound | {"told": {key: changed}}), encoding="utf-8")
        with pytest.raises(SetupError) as refused:
            respondent.report(1, round=2, question="q")
        assert refused.value.code == "ledger-rolled-back"


def test_a_budget_is_pure() -> None:
    """Reports lose a pure epsilon; a diary counts nothing else."""
    with pytest.raises(QuestionError) as refused:
        Diary(Rho(1))  # type: ignore[arg-type]
    assert refused.value.code == "bad-loss"
