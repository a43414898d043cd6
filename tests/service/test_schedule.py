"""The release schedule: when an answer leaves follows from when its question came, and from nothing else."""

from __future__ import annotations

import contextlib
import copy
import threading
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

import sulq
from sulq.answers import wire
from sulq.curator.reuse import ReusingOracle
from sulq.errors import CuratorError, QuestionError, SetupError, SulqError
from sulq.language.rowfn import Like, Logic
from sulq.service.clerk.registration import declare
from sulq.service.clerk.request import timed
from sulq.service.clerk.worker_pool import MAX_ASKS_AT_ONCE, OpenDataset
from sulq.service.schedule import PacedRows, Schedule, ScheduledAsk
from sulq.service.settings import DatasetSettings
from tests.counts import count
from tests.service import faulty_worker
from tests.service.kills import question
from tests.service.office import survey
from tests.service.service import Running, service


class Clock:
    """A clock that moves when it is slept by."""

    def __init__(self) -> None:
        self.now = 1000.3

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def left_at(arrived: float, worked: float, period: float = 2.0) -> tuple[float, bool]:
    clock = Clock()
    clock.now = arrived
    schedule = Schedule(period, clock, clock.sleep)
    clock.now += worked
    kept = schedule.wait(schedule.due(arrived))
    return clock.now, kept


def test_the_time_of_an_answer_does_not_depend_on_the_work_T35_T36() -> None:
    """However long the work took, up to a whole period, the answer leaves at the same tick.

    Control: waiting for the next tick after the work, as a simpler schedule would, tells work from work.
    """
    for arrived in (1000.0, 1000.3, 1001.999, 1002.0):
        times = {left_at(arrived, worked) for worked in (0.0, 0.001, 0.7, 1.3, 1.999, 2.0)}
        assert len(times) == 1
        ((moment, kept),) = times
        assert kept
        assert moment % 2.0 == 0
        assert 2.0 <= moment - arrived <= 4.0
    simpler = Schedule(2.0)
    assert len({simpler.tick(1001.9 + worked) for worked in (0.01, 0.3)}) == 2


def test_an_answer_that_misses_its_tick_leaves_at_another_one() -> None:
    """Even a late answer leaves at a tick, and is counted."""
    moment, kept = left_at(1000.3, 9.1)
    assert not kept
    assert moment == 1010.0


def test_answers_failures_and_refusals_of_a_service_leave_at_ticks_T37_T39() -> None:
    """Answers, re-answers, overruns and failures: none leaves before the tick that follows from when it came.

    That it leaves at a tick is shown by the clock above; here a busy machine may bring any reply later.

    Control: without a schedule the same answer is there before that tick.
    """
    period = 1.0
    with service(worker="tests.service.faulty_worker") as running:
        gains = [Schedule(period).due(time.monotonic()) - answered(running, 10 + number) for number in range(20)]
        assert max(gains) > 0
    with service(worker="tests.service.faulty_worker", schedule=period, limit=20.0) as running:
        for number in (10, faulty_worker.PAUSES, faulty_worker.SLOW, faulty_worker.RAISES, 10):
            due = Schedule(period).due(time.monotonic())
            assert answered(running, number) >= due
        with pytest.raises(QuestionError):
            running.ask("alice", "ask", {**question(10), "spend": wire.to_json(sulq.Rho(1))})


def answered(running: Running, number: int) -> float:
    """When a question's reply is there, an answer or the one constant failure."""
    try:
        running.ask("alice", "ask", question(number) | {"reuse": number == 10})
    except CuratorError as error:
        assert error.code == "engine-failed"  # noqa: PT017 - some are answered
    return time.monotonic()


class Fails:
    """Rows that cannot be summed."""

    def ready(self) -> None:
        pass

    def check(self, *_: object) -> wire.Writer:
        return wire.Writer()

    def run(self, *_: object) -> None:
        raise CuratorError("engine-failed", "The rows could not be summed.")


def seen_before_the_tick(*, paced: bool, fails: bool = False) -> list[tuple[int, int, bool]]:
    """What the books say while an ask waits for its tick: debits, answers, and whether its slot is still held."""
    seen = []
    clock = Clock()
    with survey(sulq.Epsilon(10)) as database:
        ledger = database._ledger

        def sleep(seconds: float) -> None:
            lines = ledger.transcript()
            answers = max(ledger.verify().answers, sum(line.answer is not None for line in lines))
            seen.append((len(lines), answers, held._slots._value < MAX_ASKS_AT_ONCE))
            clock.sleep(seconds)

        schedule = Schedule(2.0, clock, sleep)
        curator = copy.copy(database._oracle.curator)
        rows = Fails() if fails else curator._rows
        held = OpenDataset("survey", ledger=ledger, curator=ReusingOracle(curator), schedule=schedule)
        curator._rows = held.paced = PacedRows(rows, schedule)
        if not paced:
            curator._rows, held.paced = rows, None
        with contextlib.suppress(CuratorError):
            timed(held, "ann", lambda: held.oracle("ann").ask(sulq.Sums((sulq.lit(1),)), spend=sulq.Epsilon(1)))
        assert clock.now % 2.0 == 0
        assert sum(line.answer is not None for line in ledger.transcript()) == (0 if fails else 1)
        assert held.late == 0
    return seen


def test_no_book_has_an_answer_before_its_tick_T35() -> None:
    """While an ask waits for its tick its debit is there for all, its answer for nobody; its slot is another's.

    Control: were only the reply held back, the transcript would have the answer, and its time, at once.
    """
    assert seen_before_the_tick(paced=True) == [(1, 0, False)]
    assert seen_before_the_tick(paced=True, fails=True) == [(1, 0, False)]
    assert seen_before_the_tick(paced=False) == [(1, 1, False)]


def test_an_answer_is_not_given_again_before_its_tick_T39() -> None:
    """Asked again with reuse while the first waits, a question is paid for anew: that its work is done shows nowhere.

    Control: asked again after the tick it is given again, free.
    """
    clock = Clock()
    found = []
    with survey(sulq.Epsilon(10)) as database:
        mine = database._oracle.for_analyst("ann")
        other = ReusingOracle(mine.curator, mine._flights)  # as in a server, where asks run where they are made

        def sleep(seconds: float) -> None:
            found.append(other.ask(sulq.Sums((sulq.lit(1),)), spend=sulq.Epsilon(1), reuse=True).reused)
            clock.sleep(seconds)

        schedule = Schedule(2.0, clock, sleep)
        paced = copy.copy(other.curator)
        paced._rows = PacedRows(paced._rows, schedule)
        first = ReusingOracle(paced, other._flights)
        first.ask(sulq.Sums((sulq.lit(1),)), spend=sulq.Epsilon(1), reuse=True)
        assert other.ask(sulq.Sums((sulq.lit(1),)), spend=sulq.Epsilon(1), reuse=True).reused
    assert found == [False]


def test_what_could_not_be_done_in_time_is_not_begun_T37() -> None:
    """An ask that waited half its period for a slot is refused, uncharged, at its tick; the control is answered."""
    clock = Clock()
    with survey(sulq.Epsilon(10)) as database:
        held = OpenDataset(
            "survey", ledger=database._ledger, curator=database._oracle, schedule=Schedule(2.0, clock, clock.sleep)
        )

        @contextlib.contextmanager
        def crowded(_: str):
            clock.sleep(1.5)
            yield

        count = sulq.Sums((sulq.lit(1),))
        timed(held, "ann", lambda: held.oracle("ann").ask(count, spend=sulq.Epsilon(1)))
        waits = Slow(held, crowded)
        with pytest.raises(SetupError) as refused:
            timed(waits, "ann", lambda: held.oracle("ann").ask(count, spend=sulq.Epsilon(1)))
        assert refused.value.code == "not-ready"
        assert clock.now % 2.0 == 0
        assert len(database.transcript()) == 1
    assert not ScheduledAsk(Schedule(2.0, clock, clock.sleep)).late


class Slow:
    """A dataset whose slots are long in coming."""

    def __init__(self, held: OpenDataset, slot: object) -> None:
        self._held, self.slot, self.late = held, slot, 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._held, name)


def test_a_polled_transcript_of_a_service_tells_nothing_before_the_tick_T35() -> None:
    """Whoever polls transcript and verification meanwhile sees the debit early and the answer not before its tick."""
    period = 1.5
    with service(schedule=period) as running:
        debited = False
        for before in range(20):  # until a poll of a busy machine came between a debit and its tick
            due = Schedule(period).due(time.monotonic())
            asking = threading.Thread(target=answered, args=(running, 20 + before))
            asking.start()
            while asking.is_alive():
                lines = running.ask("alice", "transcript")["lines"]
                answers = running.ask("auditor", "verify")["answers"]
                if time.monotonic() < due:
                    assert answers == sum(line["answer"] is not None for line in lines) == before
                    debited = debited or len(lines) == before + 1
                time.sleep(0.01)
            asking.join()
            assert running.ask("alice", "transcript")["lines"][before]["answer"] is not None
            if debited:
                return
        raise AssertionError("the control: the debit is there for all at once")


def told(running: Running, dataset: str, patterns: int) -> str:
    """The outcome of a question with so many patterns over one person's notes."""
    some = Logic("or", tuple(Like(sulq.col("note"), "%e" + "_" * 90 + f"z{i}%") for i in range(patterns)))
    asked = sulq.Sums((sulq.lit(1),), (sulq.col("name") == "x") & some)
    body = {"question": wire.to_json(asked), "spend": wire.to_json(sulq.Epsilon(1e-6))}
    try:
        running.ask("owner", "ask", body, dataset=dataset)
    except SulqError as error:
        return error.code
    return "answered"


def noted(folder: Path, pair: str, *, person: bool, schedule: float | None) -> DatasetSettings:
    """One of two neighbours: three hundred people with a short note each and, if asked for, one with many long ones."""
    name = f"{pair}{person:d}"
    rows = [(i, "y", pair) for i in range(300)]  # other people in each pair: each dataset has a ledger of its own
    rows += [(300, "x", "e" * 9_000 + str(i)) for i in range(30 if person else 0)]
    data = dict(zip(("person", "name", "note"), map(list, zip(*rows, strict=True)), strict=True))
    pa.parquet.write_table(pa.table(data), folder / f"{name}.parquet")
    columns = {"name": sulq.Text(100), "note": sulq.Text(10_000)}
    unit = sulq.Unit("person", rows=30)
    return declare(name, folder / f"{name}.parquet", columns, unit=unit, budget=sulq.Epsilon(1), schedule=schedule)


def test_neighbours_have_one_outcome_whatever_one_person_wrote_T100(tmp_path: Path) -> None:
    """A question that one person's notes would make overrun is refused with them and without, and nothing is spent.

    Control: a clerk that lets it through answers without the person and fails at the limit with the person, for a
    spend of a millionth; with a schedule too.
    """
    schedules = (None, 3.0)[: count("T100 neighbours without and with a schedule", short=1, long=2)]
    for clerk, outcomes in (
        ("", ["too-much-work"] * 2),
        ("tests.service.unbounded_clerk", ["engine-failed", "answered"]),
    ):
        several = [
            noted(tmp_path, f"n{len(clerk)}{number}", person=person, schedule=schedule)
            for number, schedule in enumerate(schedules)
            for person in (True, False)
        ]
        with service(workers=1, more=tuple(several), limit=3.0, clerk=clerk) as running:
            for declared in several:
                running.ready(declared.name)
            assert [told(running, declared.name, 150) for declared in several] == outcomes * len(schedules)
            for declared in several if not clerk else ():
                assert running.ask("owner", "transcript", dataset=declared.name)["lines"] == []
