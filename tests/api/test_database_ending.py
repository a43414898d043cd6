"""Calls on a local database that end early: timeouts, Ctrl-C, cancel, close; what was paid is said, and kept."""

from __future__ import annotations

import inspect
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sulq
from sulq import Epsilon, col
from sulq.api import database
from sulq.api.database import Database
from sulq.api.named_asks import NamedAsks
from sulq.errors import AccessDenied, CuratorError, QuestionError, SulqError
from sulq.forms.signature import signed
from sulq.learn import KMeans


class Gate:
    """Holds whatever runs after a debit until it is opened."""

    def __init__(self, db: Database) -> None:
        self.begun, self.open = threading.Event(), threading.Event()
        rows = db._oracle.curator._rows
        self._run, rows.run = rows.run, self.run

    def run(self, *plan: object) -> object:
        self.begun.set()
        assert self.open.wait(60)
        return self._run(*plan)

    def when_begun(self, act: Callable[[], object]) -> None:
        """Do something from another thread once a question was charged and runs."""
        threading.Thread(target=lambda: (self.begun.wait(60), act())).start()


@pytest.fixture
def db() -> Iterator[Database]:
    frame = pa.table({"age": np.arange(1000) % 100, "pay": np.arange(1000)})
    with sulq.connect(frame, columns={"age": (0, 100), "pay": (0, 1000)}, budget=Epsilon(100)) as opened:
        opened.prepare()
        yield opened


@pytest.fixture
def gate(db: Database) -> Iterator[Gate]:
    made = Gate(db)
    yield made
    made.open.set()


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_an_ask_that_is_charged_and_late_says_so_and_its_answer_is_kept_T32_T45(db: Database, gate: Gate) -> None:
    """The debit stands, the question runs on, and the same ask is given its answer free: nothing is drawn twice."""
    with pytest.raises(
        CuratorError, match=r"within 0.2 seconds. One question was charged: epsilon 1 \(receipt"
    ) as late:
        db.count(col("age") > 5, spend=Epsilon(1), timeout=0.2)
    assert late.value.code == "timed-out"
    assert db.spent == Epsilon(1)
    gate.open.set()
    again = db.count(col("age") > 5, spend=Epsilon(1))
    assert again.reused
    assert db.spent == Epsilon(1)
    (line,) = db.transcript()
    assert f"(receipt {line['seq']})" in late.value.message


def test_the_same_ask_waits_for_the_one_that_still_runs(db: Database, gate: Gate) -> None:
    """Asked again meanwhile it is charged nothing, whether it comes in time or not."""
    for _ in range(2):
        with pytest.raises(SulqError) as late:
            db.count(spend=Epsilon(1), timeout=0.1)
        assert late.value.code == "timed-out"
    assert isinstance(late.value, QuestionError)
    gate.open.set()
    assert db.count(spend=Epsilon(1)).reused
    assert db.spent == Epsilon(1)


def test_an_ask_that_has_no_debit_yet_is_never_charged(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for rows, or plans; the time runs out; and when it comes to its debit it is refused."""
    let, ended = threading.Event(), threading.Event()
    rows = db._oracle.curator._rows
    check = rows.check

    def slow(*plan: object) -> object:
        let.wait(60)
        try:
            return check(*plan)
        finally:
            ended.set()

    monkeypatch.setattr(rows, "check", slow)
    with pytest.raises(QuestionError, match="Nothing was spent"):
        db.count(spend=Epsilon(1), timeout=0.1)
    let.set()
    assert ended.wait(60)
    monkeypatch.undo()
    db.sum("age", spend=Epsilon(1))
    assert db.spent == Epsilon(1)
    assert len(db.transcript()) == 1


@pytest.mark.parametrize("value", [0, -1, float("nan"), "1", True])
def test_a_timeout_is_a_number_of_seconds(db: Database, value: object) -> None:
    """Of every ask, and of a fit; nothing is spent."""
    asks = [
        lambda: db.count(spend=Epsilon(1), timeout=value),
        lambda: db.sql("SELECT COUNT(*) FROM data", spend=Epsilon(1), timeout=value),
        lambda: db.ask(sulq.Sums((sulq.lit(1),)), spend=Epsilon(1), timeout=value),
        lambda: db.occurring("age", spend=Epsilon(1), timeout=value),
        lambda: KMeans(2).fit(db[["age"]], spend=Epsilon(1), timeout=value),
    ]
    for ask in asks:
        with pytest.raises(QuestionError, match="timeout is a number of seconds"):
            ask()
    assert db.spent == Epsilon.total(Fraction(0))


def test_every_ask_that_takes_a_timeout_ends_after_it(db: Database) -> None:
    """Whatever else wraps it; so do those of a table, and nothing is spent."""
    found = 0
    for name, method in inspect.getmembers(NamedAsks, inspect.isfunction):
        parameters = inspect.signature(method).parameters
        if name.startswith("_") or "timeout" not in parameters:
            continue
        needed = [one for one in list(parameters.values())[1:] if one.default is one.empty]
        given = ["age" for one in needed if one.kind is not one.KEYWORD_ONLY]
        for asks in (db, db.table("data")):
            with pytest.raises(QuestionError, match="timeout is a number of seconds"):
                getattr(asks, name)(*given, spend=Epsilon(1), timeout=-1)
        found += 1
    assert found >= 20
    assert db.spent == Epsilon.total(Fraction(0))


def test_a_program_that_asks_and_ends_does_not_abort() -> None:
    """Though nobody closed the database, and its copy is still being made: the program waits for that (T67)."""
    script = (
        "import pyarrow as pa, sulq\n"
        "t = pa.table({'x': list(range(5000))})\n"
        "db = sulq.connect(t, columns={'x': (0, 5000)}, budget=sulq.Epsilon(1))\n"
        "print(db.count(spend=sulq.Epsilon(1)).value > 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "True", "")


def test_a_timeout_that_is_not_reached_changes_nothing(db: Database) -> None:
    """All that takes one answers as without."""
    assert db.count(spend=Epsilon(1), timeout=60).spent == Epsilon(1)
    assert db.count(spend=Epsilon(1), timeout=60).reused
    assert db.sql("SELECT AVG(pay) FROM data", spend=Epsilon(1), timeout=60).spent == Epsilon(1)
    assert KMeans(2, max_iter=2).fit(db[["age"]], spend=Epsilon(1), timeout=60).fitted
    with sulq.timeout(60):
        assert sulq.release.mwem(db, ["age"], bins=4, rounds=1, spend=Epsilon(1)) is not None
        assert db.facts.remaining == Epsilon(96)


@pytest.mark.parametrize("make", [*sulq.release.RELEASES, *sulq.select.SELECTIONS], ids=lambda make: make.__name__)
def test_every_release_and_selection_takes_a_timeout(db: Database, make: Callable[..., object]) -> None:
    """Refused where it is no number, before anything else is looked at; no form asks for it."""
    with pytest.raises(QuestionError, match="timeout is a number of seconds"):
        make(db, [], timeout=0)
    assert "timeout" not in {
        field.name for field in signed(make.__name__, "", make, [inspect.getdoc(make) or ""]).fields
    }


def test_a_release_that_is_late_says_all_that_it_was_charged(db: Database, gate: Gate) -> None:
    """Of all its questions, as a fit does."""
    with pytest.raises(CuratorError, match=r"within 0.2 seconds. One question was charged: epsilon"):
        sulq.release.mwem(db, ["age"], bins=4, rounds=1, spend=Epsilon(1), timeout=0.2)
    assert gate.begun.is_set()
    assert len(db.transcript()) == 1


def test_whatever_asks_ends_within_a_timeout_around_it(db: Database, gate: Gate) -> None:
    """`with sulq.timeout(seconds)` is for whatever asks."""
    with sulq.timeout(0.2), pytest.raises(CuratorError, match="One question was charged"):
        sulq.release.mwem(db, ["age"], bins=4, rounds=1, spend=Epsilon(1))
    assert gate.begun.is_set()


def test_ctrl_c_during_an_ask_says_what_was_charged_T43(db: Database, gate: Gate) -> None:
    """At once, though the question runs; the next ask is answered, and the interrupted one is given free."""
    gate.when_begun(interrupt)
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt, match=r"Interrupted. One question was charged: epsilon 1 \(receipt"):
        db.count(spend=Epsilon(1))
    assert time.monotonic() - begun < 10
    gate.open.set()
    assert db.sum("age", spend=Epsilon(1)).spent == Epsilon(1)
    assert db.count(spend=Epsilon(1)).reused
    assert db.spent == Epsilon(2)


def test_ctrl_c_during_a_fit_says_what_it_has_spent_and_leaves_the_model(db: Database) -> None:
    """The sum over its questions so far, by their receipts."""
    model, asked = KMeans(2, max_iter=30), []

    def progress(done: int, _planned: int) -> None:
        asked.append(done)
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(
        KeyboardInterrupt, match=r"3 questions were charged: epsilon .* \(receipts \d+, \d+, \d+\)"
    ) as end:
        model.fit(db[["age"]], spend=Epsilon(1), progress=progress)
    assert f"epsilon {float(db.spent.epsilon):.3g}"[:12] in str(end.value)
    assert len(db.transcript()) == 3
    assert not model.fitted


def test_a_fits_time_runs_out_between_its_questions(db: Database) -> None:
    """It ends before the next debit, and says how many there were."""

    def progress(done: int, _planned: int) -> None:
        if done == 2:
            time.sleep(1.1)

    with pytest.raises(CuratorError, match=r"within 1 seconds\. 2 questions were charged") as late:
        KMeans(2, max_iter=30).fit(db[["age"]], spend=Epsilon(1), progress=progress, timeout=1)
    assert late.value.code == "timed-out"
    assert len(db.transcript()) == 2


def test_cancel_ends_a_fit_of_another_thread_and_leaves_the_database(db: Database) -> None:
    """Whatever the fit is doing; the next ask is answered."""
    outcome: list[SulqError] = []
    third = threading.Event()

    def progress(done: int, _planned: int) -> None:
        if done == 3:
            third.set()
            time.sleep(0.2)

    def fit() -> None:
        try:
            KMeans(2, max_iter=50).fit(db[["age"]], spend=Epsilon(1), progress=progress)
        except SulqError as error:
            outcome.append(error)

    thread = threading.Thread(target=fit)
    thread.start()
    assert third.wait(60)
    db.cancel()
    thread.join(60)
    assert [error.code for error in outcome] == ["cancelled"]
    assert "3 questions were charged" in outcome[0].message
    assert db.count(spend=Epsilon(1)).spent == Epsilon(1)


def slow_survey(folder: Path) -> Database:
    """A database, and a question of some seconds over it."""
    rows = 600_000
    text = pa.array([f"abcdef{i}" * 30 for i in range(1000)])
    places = pa.array(np.arange(rows, dtype=np.int32) % 1000)
    pq.write_table(
        pa.table({"t": pa.DictionaryArray.from_arrays(places, text).cast(pa.string())}), folder / "notes.parquet"
    )
    return sulq.connect(folder / "notes.parquet", columns={"t": sulq.Text(longest=400)}, budget=Epsilon(100))


SLOW = "SELECT COUNT(*) FROM notes WHERE t LIKE '%a_c_%f1_d%f' OR t LIKE '%b__d%e%1_1_d%' OR t LIKE '%c__e%f%2_1_d%'"


def test_statements_under_way_are_interrupted_by_cancel_and_by_close(tmp_path: Path) -> None:
    """In DuckDB itself: what runs there ends, its debit stands, and `close` leaves a ledger that is whole."""
    db = slow_survey(tmp_path)
    db.prepare()
    outcome: list[BaseException | object] = []

    def ask() -> None:
        try:
            outcome.append(db.sql(SLOW, spend=Epsilon(1), fresh=True))
        except SulqError as error:
            outcome.append(error)

    for count, end in ((1, db.cancel), (2, db.close)):
        thread = threading.Thread(target=ask)
        thread.start()
        while db.spent != Epsilon(count):
            time.sleep(0.01)
        end()
        thread.join(60)
        assert isinstance(outcome[-1], CuratorError), outcome
        assert outcome[-1].code == "cancelled"
        assert "One question was charged: epsilon 1" in outcome[-1].message
    with pytest.raises(AccessDenied):
        db.transcript()
    with sulq.connect(tmp_path / "notes.parquet", columns={"t": sulq.Text(longest=400)}, budget=Epsilon(100)) as again:
        again.verify(whole=True)
        assert again.spent == Epsilon(2)
        assert [line["answer"] for line in again.transcript()] == [None, None]


def test_close_during_an_ask_that_waits_ends_it(db: Database, gate: Gate) -> None:
    """Who waits hears at once that the call was cancelled, and that it was charged."""
    gate.when_begun(lambda: threading.Thread(target=db.close).start())
    threading.Thread(target=lambda: (gate.begun.wait(60), time.sleep(0.5), gate.open.set())).start()
    with pytest.raises(CuratorError, match=r"cancelled\. One question was charged"):
        db.count(spend=Epsilon(1))


def test_close_while_many_threads_go_on_asking_leaves_a_whole_ledger(tmp_path: Path) -> None:
    """Each is answered, ended or refused; what is spent is the sum of the debits."""
    pq.write_table(pa.table({"age": np.arange(100_000) % 100}), tmp_path / "survey.parquet")
    db = sulq.connect(tmp_path / "survey.parquet", columns={"age": (0, 100)}, budget=Epsilon(100))
    db.prepare()
    codes: set[str] = set()

    def ask(first: int) -> None:
        for i in range(first, 10_000, 4):
            try:
                db.count(col("age") > i % 100, spend=Epsilon(0.01), fresh=True, timeout=5 if i % 3 else 0.01)
            except SulqError as error:
                codes.add(error.code)
                if error.code == "closed":
                    return

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    db.close()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert "closed" in codes <= {"closed", "cancelled", "timed-out"}
    with sulq.connect(tmp_path / "survey.parquet", columns={"age": (0, 100)}, budget=Epsilon(100)) as again:
        again.verify(whole=True)
        lines = again.transcript()
        assert again.spent.amount == sum((line["event"].epsilon for line in lines), start=Fraction(0)) > 0


ENDS = """
import os, signal, sys, threading, time
from pathlib import Path
from tests.api.test_database_ending import SLOW, slow_survey
from sulq import Epsilon
db = slow_survey(Path(sys.argv[1]))
if sys.argv[2] == "prepare":
    threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    db.prepare()
else:
    db.prepare()
    def send():
        while db.spent != Epsilon(1):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=send).start()
    db.sql(SLOW, spend=Epsilon(1))
"""


@pytest.mark.parametrize("what", ["prepare", "ask"])
def test_a_script_that_ctrl_c_ends_does_not_wait_for_its_question(tmp_path: Path, what: str) -> None:
    """The process ends as Ctrl-C ends Python, says what was charged, and its ledger is whole."""
    root = Path(__file__).resolve().parents[2]
    paths = os.pathsep.join([str(root), str(root / "src")])
    ended = subprocess.run(
        [sys.executable, "-c", ENDS, str(tmp_path), what], check=False, cwd=root, timeout=120,
        env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True,
    )  # fmt: skip
    assert ended.returncode == -signal.SIGINT, ended.stderr
    told = "Nothing was spent" if what == "prepare" else "One question was charged: epsilon 1"
    assert f"KeyboardInterrupt: Interrupted. {told}" in ended.stderr
    with sulq.connect(tmp_path / "notes.parquet", columns={"t": sulq.Text(longest=400)}, budget=Epsilon(100)) as again:
        again.verify(whole=True)
        assert again.spent.amount == (0 if what == "prepare" else 1)


def test_prepare_that_was_interrupted_goes_on_and_the_database_is_usable(db: Database) -> None:
    """The main thread waits for it and does nothing of it; asked next, it is waited for."""
    gate, begun = threading.Event(), threading.Event()
    prepare = db._preparation._prepare
    db._preparation._prepare = lambda: (begun.set(), gate.wait(60), prepare())
    threading.Thread(target=lambda: (begun.wait(60), interrupt())).start()
    with pytest.raises(KeyboardInterrupt, match="Nothing was spent"):
        db.prepare()
    gate.set()
    assert db.count(spend=Epsilon(1)).spent == Epsilon(1)


def test_a_forked_child_is_refused_and_does_not_hang(db: Database) -> None:
    """Its asks run in threads of its own, which the ledger refuses."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            db.count(spend=Epsilon(1), timeout=30)
        except AccessDenied as error:
            code = 0 if error.code == "forked" else 2
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_connect_that_was_interrupted_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends what it began before it raises: the next opening begins anew, and nothing was spent."""
    pq.write_table(pa.table({"age": np.arange(100)}), tmp_path / "survey.parquet")
    begun, gate = threading.Event(), threading.Event()
    opening = database.open_dataset

    def slow(*given: object, **more: object) -> object:
        begun.set()
        assert gate.wait(60)
        return opening(*given, **more)

    monkeypatch.setattr(database, "open_dataset", slow)
    threading.Thread(target=lambda: (begun.wait(60), interrupt(), time.sleep(0.3), gate.set())).start()
    with pytest.raises(KeyboardInterrupt, match="Nothing was spent"):
        sulq.connect(tmp_path / "survey.parquet", columns={"age": (0, 100)}, budget=Epsilon(1))
    monkeypatch.undo()
    with sulq.connect(tmp_path / "survey.parquet", columns={"age": (0, 100)}, budget=Epsilon(2)) as db:
        assert db.count(spend=Epsilon(1)).spent == Epsilon(1)
