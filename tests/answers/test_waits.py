"""Waiting for work that is done aside: a timeout, a signal, a cancellation from another thread, a fork."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from sulq import Epsilon
from sulq.answers.call import UserCall, current, debit, timeout, within
from sulq.answers.waits import Waits, Work
from sulq.errors import AccessDenied, CuratorError, QuestionError


class Slow:
    """Work that charges, and goes on until it is let go of."""

    def __init__(self) -> None:
        self.begun, self.gate, self.ended = threading.Event(), threading.Event(), threading.Event()

    def __call__(self) -> str:
        with debit() as tell:
            tell(4, Epsilon(1))
        self.begun.set()
        assert self.gate.wait(30)
        self.ended.set()
        return "answer"


@pytest.fixture
def slow() -> Slow:
    return Slow()


def test_work_of_the_main_thread_is_done_aside() -> None:
    """So that no signal strikes within it; what it gives or raises is what the caller gets."""
    waits = Waits()
    assert waits.run(threading.current_thread) is not threading.main_thread()
    assert waits.run(threading.current_thread, always=False) is threading.main_thread()
    with pytest.raises(ZeroDivisionError):
        waits.run(lambda: 1 // 0)
    assert waits.run(lambda: waits.run(threading.get_ident) == threading.get_ident())


def test_work_of_another_thread_is_done_there() -> None:
    """No signal comes there, and an ask of a server costs no thread more."""
    waits, found = Waits(), []
    thread = threading.Thread(target=lambda: found.append(waits.run(threading.current_thread)))
    thread.start()
    thread.join()
    assert found == [thread]


def test_after_a_timeout_the_work_goes_on_to_its_end_T32(slow: Slow) -> None:
    """The caller is told of the debit, and what is computed and kept is the same as if it had waited."""
    waits = Waits()
    with timeout(0.2), pytest.raises(CuratorError) as raised:
        waits.run(slow)
    assert raised.value.code == "timed-out"
    assert "within 0.2 seconds. One question was charged: epsilon 1 (receipt 4)" in raised.value.message
    assert not slow.ended.is_set()
    slow.gate.set()
    assert slow.ended.wait(10)


def test_a_timeout_before_the_debit_is_free_and_stays_so() -> None:
    """The work is refused its debit when it comes to it."""
    waits, gate, outcome = Waits(), threading.Event(), []

    def plan() -> None:
        gate.wait(10)
        try:
            with debit():
                outcome.append("charged")
        except QuestionError as error:
            outcome.append(error.code)

    with timeout(0.1), pytest.raises(QuestionError, match="Nothing was spent"):
        waits.run(plan)
    gate.set()
    for _ in range(1000):
        if outcome:
            break
        time.sleep(0.01)
    assert outcome == ["timed-out"]


def test_nothing_is_begun_after_the_deadline() -> None:
    """Between two questions of a fit the time may have run out; the second is never asked."""
    waits, begun = Waits(), []
    with timeout(0.05):
        waits.run(lambda: begun.append(1))
        time.sleep(0.1)
        for _ in range(2):
            with pytest.raises(QuestionError) as raised:
                waits.run(lambda: begun.append(2))
            assert raised.value.code == "timed-out"
    assert begun == [1]


def test_a_real_signal_ends_the_wait_at_once(slow: Slow) -> None:
    """Ctrl-C in the main thread, while the work is in the middle of what it does."""
    waits = Waits()

    def send() -> None:
        slow.begun.wait(10)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=send).start()
    with pytest.raises(KeyboardInterrupt, match=r"One question was charged: epsilon 1 \(receipt 4\)"):
        waits.run(slow)
    assert not slow.ended.is_set()
    slow.gate.set()
    assert slow.ended.wait(10)


def test_a_signal_handlers_own_exception_passes_with_a_note(slow: Slow) -> None:
    """A program with its own alarms gets its own exception."""

    class AlarmError(Exception):
        pass

    def ring(*_: object) -> None:
        raise AlarmError

    before = signal.signal(signal.SIGUSR2, ring)
    try:
        threading.Thread(target=lambda: (slow.begun.wait(10), os.kill(os.getpid(), signal.SIGUSR2))).start()
        with pytest.raises(AlarmError) as raised:
            Waits().run(slow)
    finally:
        signal.signal(signal.SIGUSR2, before)
        slow.gate.set()
    assert "receipt 4" in raised.value.__notes__[0]


@pytest.mark.parametrize("aside", [False, True])
def test_cancelling_from_another_thread_ends_the_call(slow: Slow, *, aside: bool) -> None:
    """Whoever waits goes on at once, the thread at work is interrupted, and later questions of the call are refused."""
    waits, outcome = Waits(), []

    def fit() -> None:
        with within(UserCall(100 if aside else None)):
            for _ in range(2):
                try:
                    waits.run(slow)
                except (CuratorError, QuestionError) as error:
                    outcome.append(error.code)

    def interrupt(threads: set[int]) -> None:
        interrupted.append(threads)
        slow.gate.set()

    interrupted: list[set[int]] = []
    thread = threading.Thread(target=fit)
    thread.start()
    slow.begun.wait(10)
    assert waits.cancel(interrupt)
    thread.join(10)
    assert outcome[-1] == "cancelled"
    assert (thread.ident in interrupted[0]) is not aside
    assert waits.run(lambda: "the next") == "the next"


def test_a_failure_of_what_was_interrupted_is_a_cancellation(slow: Slow) -> None:
    """The engine says that it failed; the caller hears why."""
    waits, outcome = Waits(), []

    def failing() -> None:
        slow()
        raise CuratorError("engine-failed", "The rows could not be summed.")

    def ask() -> None:
        try:
            waits.run(failing)
        except CuratorError as error:
            outcome.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    slow.begun.wait(10)
    assert waits.cancel(lambda _: slow.gate.set())
    thread.join(10)
    assert [error.code for error in outcome] == ["cancelled"]
    assert "receipt 4" in outcome[0].message


def test_what_does_not_end_is_waited_for_a_bounded_time(slow: Slow) -> None:
    """`cancel` comes back, and says that something still runs."""
    waits = Waits()
    threading.Thread(target=lambda: waits.run(slow)).start()
    slow.begun.wait(10)
    begun = time.monotonic()
    assert not waits.cancel(wait=0.1)
    assert time.monotonic() - begun < 5
    slow.gate.set()


def test_after_the_end_nothing_is_begun(slow: Slow) -> None:
    """Threads that go on asking while a database is closed are refused, so that its engine is nobody's."""
    waits = Waits()
    thread = threading.Thread(target=lambda: waits.run(slow))
    thread.start()
    slow.begun.wait(10)
    waits.end(lambda _: slow.gate.set())
    thread.join()
    with pytest.raises(AccessDenied) as refused:
        waits.run(lambda: pytest.fail("it was begun"))
    assert refused.value.code == "closed"


def test_a_far_curators_work_is_done_aside_in_every_thread() -> None:
    """An HTTP call cannot be interrupted, so its wait can; not where somebody waits for the whole call elsewhere."""
    found: list[bool] = []

    def ask() -> None:
        far = Waits(far=True)
        found.append(far.run(threading.get_ident) == threading.get_ident())
        with within(UserCall(attended=True)):
            found.append(far.run(threading.get_ident) == threading.get_ident())
            with timeout(10):
                found.append(far.run(threading.get_ident) == threading.get_ident())

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert found == [False, True, False]


def test_a_forked_child_does_not_wait_for_threads_it_lacks(slow: Slow) -> None:
    """What was under way in the parent is not under way in the child."""
    waits = Waits()
    thread = threading.Thread(target=lambda: waits.run(slow))
    thread.start()
    slow.begun.wait(10)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            assert current() is None
            code = 0 if waits.run(lambda: 5) == 5 else 2
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    slow.gate.set()
    thread.join()
    assert os.waitstatus_to_exitcode(status) == 0


def test_a_result_is_had_once_work_is_over() -> None:
    """What woke the waiter is told apart from an answer."""
    work = Work(UserCall(), lambda: 3)
    work.wake()
    assert work.wait(0)
    assert not work.answered
    work.run()
    assert (work.answered, work.result()) == (True, 3)
