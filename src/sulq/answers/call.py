"""What a user called: how long it may take, what its questions were charged, and what is said when it ends early.

Privacy: an end changes nothing that is drawn, stored or charged. A question whose debit was begun runs to its end aside
and its answer is kept; one whose debit was not begun is never charged. So whether a call ended early follows from time
alone, which whoever called could have read off a clock (SECURITY.md, "Timing"; T32, T100).
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import inspect
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, Literal, ParamSpec, TypeVar

from sulq.errors import CuratorError, QuestionError, SulqError
from sulq.language.privacy import Epsilon, Loss, Rho

MAX_TIMEOUT_SECONDS: Final = 10**7
MAX_DEBIT_SECONDS: Final = 15.0  # for which a debit that was begun is waited for, so that what is said of it is so
POLL_SECONDS: Final = 0.002
MAX_NAMED_RECEIPTS: Final = 8

Reason = Literal["timed-out", "cancelled", "interrupted"]

P = ParamSpec("P")
T = TypeVar("T")

_lock = threading.Lock()  # of the fields of all calls, for a few instructions each
_current: contextvars.ContextVar[UserCall | None] = contextvars.ContextVar("sulq_call", default=None)


def _renew() -> None:
    global _lock  # noqa: PLW0603 - another thread of the parent may have held it
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_renew)


@dataclass(slots=True, eq=False)
class CallState:
    """How long one call may take, why it ended, and what it was charged."""

    timeout: float | None
    reason: Reason | None = None
    debits: int = 0  # that were begun, and of which nobody knows yet whether they were written
    charges: list[tuple[int, Loss]] = field(default_factory=list)  # receipts' numbers and what was paid
    key: str | None = None  # where the last question was sent to a far curator: its key, "" if nobody needs it


class UserCall:
    """One call, and the calls it was made within: each is told of the charges, and any may have ended."""

    def __init__(self, timeout: float | None = None, outer: UserCall | None = None, *, attended: bool = False) -> None:
        """`attended`: somebody waits for the whole call elsewhere, so nobody does for its questions."""
        own = _checked(timeout)
        self._own = CallState(own)
        self.records: tuple[CallState, ...] = (self._own, *(() if outer is None else outer.records))
        self.attended: bool = attended or (outer is not None and outer.attended)
        own = None if own is None else time.monotonic() + own
        known = [each for each in (own, None if outer is None else outer.deadline) if each is not None]
        self.deadline: float | None = min(known, default=None)

    @property
    def left(self) -> float | None:
        """How many seconds are left of it; None where it has no end."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    @property
    def reason(self) -> Reason | None:
        """Why it, or a call around it, ended."""
        return next((each.reason for each in self.records if each.reason is not None), None)

    @property
    def far(self) -> bool:
        """Whether its questions are answered elsewhere."""
        return self._own.key is not None

    @property
    def settled(self) -> bool:
        """Whether of every debit it is known whether it was written."""
        return self._own.debits == 0

    def stop(self, reason: Reason) -> None:
        """End it: from here on no debit of it is begun."""
        with _lock:
            self._own.reason = self._own.reason or reason

    def begin(self, key: str | None = None) -> None:
        """Say that a debit is about to be written; refused where the call has ended, and then nothing is charged."""
        with _lock:
            if self.reason is None:
                for each in self.records:
                    each.debits += 1
                    each.key = key
                return
        raise self.error()

    def end(self, charge: tuple[int, Loss] | None) -> None:
        """Say what became of it: the receipt's number and the price, or nothing."""
        with _lock:
            for each in self.records:
                each.debits -= 1
                if charge is not None:
                    each.charges.append(charge)

    def settle(self, over: Callable[[], bool]) -> None:
        """Wait until all debits are known, or the work is over; not for longer than a ledger may take."""
        until = time.monotonic() + MAX_DEBIT_SECONDS
        while not self.settled and not over() and time.monotonic() < until:
            time.sleep(POLL_SECONDS)

    def error(self) -> SulqError:
        """The error of a call that ended."""
        reason = self.reason or "cancelled"
        code = "timed-out" if reason == "timed-out" else "cancelled"
        family = CuratorError if self._own.charges or self._own.debits else QuestionError
        return family(code, f"{self._why(reason)} {self.charged}", self.remedy)

    def _why(self, reason: Reason) -> str:
        if reason == "timed-out":
            told = [each.timeout for each in self.records if each.timeout is not None]
            return f"There was no answer within {min(told):g} seconds." if told else "There was no answer in time."
        return "This call was cancelled." if reason == "cancelled" else "Interrupted."

    @property
    def charged(self) -> str:
        """What of it was charged, in words."""
        known, unknown = list(self._own.charges), self._own.debits > 0
        if not known:
            return "Its question was sent and may be charged." if unknown else "Nothing was spent."
        several = f"{len(known)} questions were" if len(known) > 1 else "One question was"
        numbers = ", ".join(str(seq) for seq, _ in known[-MAX_NAMED_RECEIPTS:])
        which = f"receipt{'s' if len(known) > 1 else ''} {'..., ' if len(known) > MAX_NAMED_RECEIPTS else ''}{numbers}"
        more = " Another was sent and may be charged." if unknown else ""
        return f"{several} charged: {_sum([loss for _, loss in known])} ({which}); the debit stands.{more}"

    @property
    def remedy(self) -> str:
        """What can be done."""
        own = self._own
        if not own.charges and not own.debits:
            return "Ask again."
        if self.reason == "cancelled" and own.key is None:
            return "A question that was interrupted has no answer; db.transcript() lists what was charged."
        keyed = f" (db.ask(..., key={own.key!r}) where it was fresh)" if own.key and own.debits else ""
        kept = "Answers are kept, also of a question that still runs aside: the same ask, without fresh=True, gives it"
        return f"{kept} free{keyed}. db.transcript() lists what was charged."

    def explain(self, error: BaseException) -> None:
        """Let an exception that is none of ours say what was charged: a KeyboardInterrupt in its text, others below."""
        text = f"{self._why(self.reason or 'interrupted')} {self.charged} {self.remedy}"
        if hasattr(error, "told_by_sulq"):  # by a call within this one
            return
        error.told_by_sulq = True  # type: ignore[attr-defined]
        if isinstance(error, KeyboardInterrupt) and not error.args:
            error.args = (text,)
        else:
            error.add_note(text)


def _checked(timeout: object) -> float | None:
    if timeout is None:
        return None
    number = isinstance(timeout, (int, float)) and not isinstance(timeout, bool)
    if not number or not 0 < timeout <= MAX_TIMEOUT_SECONDS:  # type: ignore[operator]  # NaN is none such
        raise QuestionError(
            "bad-question", f"timeout is a number of seconds, above 0 and at most {MAX_TIMEOUT_SECONDS:,}."
        )
    return float(timeout)  # type: ignore[arg-type]


def _sum(losses: list[Loss]) -> str:
    """What several questions cost together, where that is one number."""
    for kind in (Epsilon, Rho):
        if all(isinstance(loss, kind) for loss in losses):
            return str(kind.total(sum((loss.amount for loss in losses if isinstance(loss, kind)), start=Fraction(0))))
    if len(losses) == 1:
        return str(losses[0])
    return " + ".join(f"{times} times {loss}" for loss, times in Counter(map(str, losses)).items())


def current() -> UserCall | None:
    """The call that this thread is in."""
    return _current.get()


def check_going_on() -> None:
    """Stop here where the call has ended: before something that would last."""
    call = _current.get()
    if call is not None and call.reason is not None:
        raise call.error()


@contextlib.contextmanager
def within(call: UserCall) -> Iterator[UserCall]:
    """Be in a call; what interrupts it says what it was charged."""
    token = _current.set(call)
    try:
        yield call
    except KeyboardInterrupt as error:
        call.stop("interrupted")
        call.explain(error)
        raise
    finally:
        _current.reset(token)


@contextlib.contextmanager
def timeout(seconds: float | None) -> Iterator[None]:
    """End what is called within after so many seconds: `with sulq.timeout(60): model.fit(X, spend=...)`.

    A question that was charged stays charged, and its answer is kept (docs/guide/ask.md).
    """
    with within(UserCall(seconds, current())):
        yield


def timed(method: Callable[P, T]) -> Callable[P, T]:
    """Let what is called end after its `timeout`, and say what it was charged when it ends early."""

    @functools.wraps(method)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        outer, seconds = _current.get(), kwargs.get("timeout")
        if outer is not None and seconds is None:
            return method(*args, **kwargs)
        with within(UserCall(seconds, outer)):  # type: ignore[arg-type]  # it is checked there
            return method(*args, **kwargs)

    return called


def timed_asks(asks: type[T]) -> type[T]:
    """Let every method of a class that takes a `timeout` end after it (`timed`)."""
    for name, method in list(vars(asks).items()):
        if inspect.isfunction(method) and "timeout" in inspect.signature(method).parameters:
            setattr(asks, name, timed(method))
    return asks


@contextlib.contextmanager
def debit(key: str | None = None) -> Iterator[Callable[[int, Loss], None]]:
    """Write a debit: not begun where the call has ended, and told to the call once its receipt is known.

    `key`: of a question that is sent to a far curator; "" where a stored answer is given without it.
    """
    call, charge = _current.get(), list[tuple[int, Loss]]()
    if call is not None:
        call.begin(key)
    token = _current.set(call if key is None else None)  # a curator in this very process has its own calls
    try:
        yield lambda seq, loss: charge.append((seq, loss))
    finally:
        _current.reset(token)
        if call is not None:
            call.end(charge[0] if charge else None)
