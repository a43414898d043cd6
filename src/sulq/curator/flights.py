"""Identical asks in flight: one is charged and answered, the others wait and are given its stored answer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TypeVar

from sulq.errors import CuratorError, SulqError

T = TypeVar("T")


@dataclass(slots=True)
class Flight:
    """One ask on its way: how far its debit is, and why it failed once that was begun."""

    thread: int = field(default_factory=threading.get_ident)
    begun: bool = False  # the debit may have been written
    charged: bool = False  # it was
    done: threading.Event = field(default_factory=threading.Event)
    failure: SulqError | None = None

    def end(self, error: BaseException) -> None:
        """Note a failure that followed a debit, or may have; a refusal, which was free, is nobody else's."""
        free = isinstance(error, SulqError) and not isinstance(error, CuratorError)
        if self.charged or (self.begun and not free):
            self.failure = error if isinstance(error, SulqError) else _lost()


class Flights:
    """The asks of one curator that are on their way.

    Privacy: who waits is given what stored answers give, under the same rule: an answer that has left the curator, to
    somebody of the same scope. A failure after a debit is the failure of all that waited for it, so no question is
    charged again without being asked again.
    Source: SR12.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flights: dict[Hashable, Flight] = {}

    def one(self, name: Hashable, stored: Callable[[], T | None], buy: Callable[[Flight], T]) -> T:
        """What is `stored`, or else what this thread buys while all others that ask for the same name wait.

        Whoever waited looks for a stored answer again; if the first was refused, the next asks for itself.
        """
        mine = Flight()
        while (other := self._enter(name, mine)) is not mine:
            if other.thread == mine.thread:  # asked from within its own answer: waiting would never end
                return _first(stored(), lambda: buy(mine))
            other.done.wait()
            if other.failure is not None:
                raise type(other.failure)(other.failure.code, other.failure.message, other.failure.remedy)
            found = stored()
            if found is not None:
                return found
        try:
            return _first(stored(), lambda: buy(mine))
        except BaseException as error:
            mine.end(error)
            raise
        finally:
            with self._lock:
                del self._flights[name]
            mine.done.set()

    def _enter(self, name: Hashable, mine: Flight) -> Flight:
        with self._lock:
            return self._flights.setdefault(name, mine)


def _first(found: T | None, otherwise: Callable[[], T]) -> T:
    return otherwise() if found is None else found


def _lost() -> CuratorError:
    return CuratorError("engine-failed", "The same question, asked at the same moment, was charged and interrupted.")
