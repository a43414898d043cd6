"""Calls that end early: what they say they were charged, and that no debit is begun afterwards."""

from __future__ import annotations

import math
import threading
import time

import pytest

import sulq
from sulq import Epsilon, EpsilonDelta, Rho
from sulq.answers.call import UserCall, current, debit, timed, timed_asks, timeout, within
from sulq.errors import CuratorError, QuestionError


def charged(call: UserCall, *losses: object, seq: int = 7) -> UserCall:
    with within(call):
        for number, loss in enumerate(losses, seq):
            with debit() as tell:
                tell(number, loss)
    return call


def test_a_call_that_charged_nothing_ends_free() -> None:
    """A refusal that costs nothing is a QuestionError and says so."""
    call = UserCall(2)
    call.stop("timed-out")
    error = call.error()
    assert type(error) is QuestionError
    assert (error.code, error.message) == ("timed-out", "There was no answer within 2 seconds. Nothing was spent.")


@pytest.mark.parametrize(
    ("losses", "told"),
    [
        ([Epsilon(0.1)], "One question was charged: epsilon 0.1 (receipt 7); the debit stands."),
        ([Epsilon(0.1)] * 3, "3 questions were charged: epsilon 0.3 (receipts 7, 8, 9); the debit stands."),
        ([Rho(0.01)] * 2, "2 questions were charged: rho 0.02 (receipts 7, 8); the debit stands."),
        ([EpsilonDelta(1, 1e-6)], "One question was charged: epsilon 1, delta 1e-06 (receipt 7); the debit stands."),
        ([Epsilon(0.1), Rho(0.01)], "2 questions were charged: 1 times epsilon 0.1 + 1 times rho 0.01 (receipts 7, 8)"),
    ],
)
def test_what_was_charged_is_said_with_receipts(losses: list[object], told: str) -> None:
    """The sum of what was paid, and the numbers of the receipts; the error is the curator's own."""
    call = charged(UserCall(), *losses)
    call.stop("cancelled")
    error = call.error()
    assert type(error) is CuratorError
    assert error.code == "cancelled"
    assert told in error.message


def test_of_many_receipts_the_last_are_named() -> None:
    """A long fit's message stays short."""
    told = charged(UserCall(), *[Epsilon(0.1)] * 20).charged
    assert told.endswith("(receipts ..., 19, 20, 21, 22, 23, 24, 25, 26); the debit stands.")


def test_no_debit_is_begun_once_a_call_has_ended_T45() -> None:
    """Whoever was told that nothing was spent is charged nothing afterwards, nor within another call."""
    call = UserCall()
    call.stop("timed-out")
    inner = UserCall(5, call)
    for each in (call, inner):
        with within(each), pytest.raises(QuestionError) as refused, debit():
            pytest.fail("a debit was begun")
        assert refused.value.code == "timed-out"
    assert call.settled


def test_a_call_within_another_ends_alone() -> None:
    """An ask's own timeout leaves the fit around it as it is; both are told of the charge."""
    outer = UserCall()
    inner = charged(UserCall(1, outer), Epsilon(1))
    inner.stop("timed-out")
    assert outer.reason is None
    assert "receipt 7" in outer.charged
    assert "receipt 7" in inner.charged


def test_the_nearer_deadline_counts() -> None:
    """A timeout within another makes it shorter and never longer."""
    outer = UserCall(5)
    assert UserCall(50, outer).deadline == outer.deadline
    assert UserCall(1, outer).left <= 1
    assert UserCall(None, outer).deadline == outer.deadline
    assert UserCall().left is None


@pytest.mark.parametrize("seconds", [0, -1, math.inf, math.nan, True, "1", 10**8, [1]])
def test_what_is_no_number_of_seconds_is_refused(seconds: object) -> None:
    """Before anything is asked."""
    with pytest.raises(QuestionError, match="timeout is a number of seconds"), timeout(seconds):
        pytest.fail("it was taken")


def test_a_keyboard_interrupt_says_what_was_charged() -> None:
    """In its own text, once; an exception of a signal's handler says it in a note."""
    call = charged(UserCall(), Epsilon(0.5))
    with pytest.raises(KeyboardInterrupt) as raised, within(call):
        raise KeyboardInterrupt
    assert str(raised.value).startswith("Interrupted. One question was charged: epsilon 0.5 (receipt 7)")
    other = TimeoutError("mine")
    call = charged(UserCall(), Epsilon(0.5))
    call.explain(other)
    call.explain(other)
    (note,) = other.__notes__
    assert "receipt 7" in note
    assert str(other) == "mine"


def test_a_debit_under_way_is_waited_for() -> None:
    """What is said of a debit is known: a commit takes a moment, and then there is a receipt or none."""
    call, begun = UserCall(), threading.Event()

    def write() -> None:
        with within(call), debit() as tell:
            begun.set()
            time.sleep(0.05)
            tell(3, Epsilon(1))

    thread = threading.Thread(target=write)
    thread.start()
    begun.wait(10)
    call.stop("interrupted")
    assert "may be charged" in call.charged
    call.settle(lambda: False)
    assert "receipt 3" in call.charged
    thread.join()


def test_a_far_question_may_be_charged_and_says_under_which_key() -> None:
    """Nobody waits for a far curator's debit; where noise was fresh its key gives the answer."""
    call = UserCall()
    with within(call), debit("abc"):
        assert current() is None  # a curator in this process has calls of its own
        call.stop("interrupted")
        assert call.charged == "Its question was sent and may be charged."
        assert "key='abc'" in call.remedy
        assert call.far


def test_every_method_with_a_timeout_is_timed() -> None:
    """One decorator for a class; its methods keep their signatures, and others are left alone."""

    @timed_asks
    class Asks:
        def slow(self, *, timeout: float | None = None) -> UserCall | None:
            return current()

        def plain(self) -> UserCall | None:
            return current()

    assert Asks().plain() is None
    assert Asks().slow(timeout=5).left <= 5
    assert Asks().slow().left is None
    with sulq.timeout(3):
        outer = current()
        assert Asks().slow() is outer
        assert Asks().slow(timeout=9).deadline == outer.deadline
    assert timed(len)([1]) == 1
