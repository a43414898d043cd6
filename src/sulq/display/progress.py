"""How far long work has come: one line on a terminal or in a notebook, once it has taken two seconds.

What it tells are steps of a plan, seconds, and, of preparing, a share that the owner alone is told. Where nobody
looks, in a pipe, a test, a server or a job, nothing is written.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, ParamSpec, Protocol, Self, TextIO, TypeVar, cast

PATIENCE_SECONDS: Final = 2.0  # what takes no longer is not spoken of
PAUSE_SECONDS: Final = 1.0  # between two looks at the clock
_CLEAR: Final = "\r\033[K"
P = ParamSpec("P")
T = TypeVar("T")


class Screen(Protocol):
    """One line that is rewritten as work goes on; an empty one removes it."""

    def show(self, line: str) -> None:
        """Write the line in place of the last one."""
        ...


class TerminalScreen:
    """The last line of a terminal."""

    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal

    def show(self, line: str) -> None:
        """Rewrite the line; a terminal that was closed stops no work."""
        with contextlib.suppress(OSError, ValueError):
            self._terminal.write(f"{_CLEAR}{line}")
            self._terminal.flush()


class NotebookScreen:
    """A line below a notebook's cell, by the notebook's own way to display."""

    def __init__(self, display: Callable[..., Any]) -> None:
        self._display = display
        self._handle: Any = None

    def show(self, line: str) -> None:
        """Rewrite the line."""
        shown = {"text/plain": line}
        if self._handle is None:
            self._handle = self._display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)


def screen() -> Screen | None:
    """Where somebody looks: the cell of a notebook, or the standard error where that is a terminal."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if getattr(shell, "kernel", None) is not None:
        return NotebookScreen(sys.modules["IPython.display"].display)
    return TerminalScreen(sys.stderr) if sys.stderr is not None and sys.stderr.isatty() else None


class Working:
    """Work that takes long: `with Working("verifying the ledger", screen()): ...`.

    A thread looks at the clock, so that the line comes also while one long step goes on; it is removed at the end.
    """

    def __init__(self, what: str, shown_on: Screen | None) -> None:
        self._what = what
        self._screen = shown_on
        self._steps = ""
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def steps(self, done: int, planned: int) -> None:
        """Say how many steps are done, and how many there are."""
        self._steps = f"{done} of {planned} steps, " if planned else ""

    def __enter__(self) -> Self:
        if self._screen is not None:
            self._thread = threading.Thread(target=self._watch, args=(self._screen,), name="sulq-progress", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self, shown_on: Screen) -> None:
        begun, pause, shown = time.monotonic(), PATIENCE_SECONDS, False
        while not self._ended.wait(pause):
            shown_on.show(f"{self._what}: {self._steps}{time.monotonic() - begun:.0f} s")
            shown, pause = True, PAUSE_SECONDS
        if shown:
            shown_on.show("")


def shows_progress(call: Callable[P, T]) -> Callable[P, T]:
    """Show the steps of a function that takes `progress=`, where its caller gave none and somebody looks."""

    @functools.wraps(call)
    def shown(*args: P.args, **given: P.kwargs) -> T:
        shown_on = screen() if given.get("progress") is None else None
        if shown_on is None:
            return call(*args, **given)
        what = type(args[0]).__name__ if call.__name__ == "fit" else call.__name__
        with Working(what, shown_on) as working:
            return cast("Callable[..., T]", call)(*args, **{**given, "progress": working.steps})

    return shown


class PreparationProgress:
    """What part of the rows is prepared, for the owner who waits for it."""

    def __init__(self, shown_on: Screen) -> None:
        self._screen = shown_on
        self._begun: float | None = None
        self._shown = ""

    def __call__(self, part: float) -> None:
        """Show how far it has come, from 0 to 1."""
        now = time.monotonic()
        self._begun = now if self._begun is None or part == 0.0 else self._begun
        line = f"preparing the rows: {part:4.0%}" if part < 1.0 and now - self._begun >= PATIENCE_SECONDS else ""
        if line != self._shown:
            self._shown = line
            self._screen.show(line)


def of_preparing() -> PreparationProgress | None:
    """Progress of preparing, where somebody looks."""
    found = screen()
    return None if found is None else PreparationProgress(found)
