"""Progress on a terminal: a share while somebody waits, after a moment, and nothing left of it."""

from __future__ import annotations

import inspect
import io
import sys
import threading
import time
import types
from collections.abc import Callable

import pytest

from sulq.display import progress
from sulq.display.progress import (
    NotebookScreen,
    PreparationProgress,
    TerminalScreen,
    Working,
    of_preparing,
    screen,
    shows_progress,
)
from sulq.learn import SVD
from sulq.learn.base import Learner
from sulq.release import RELEASES
from sulq.select import SELECTIONS
from sulq.sources.engines import Preparation


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [10.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_one_line_says_a_share_and_is_removed(clock: list[float]) -> None:
    """Nothing at first; the same share is not written twice; at its end the line is empty."""
    terminal = io.StringIO()
    tell = PreparationProgress(TerminalScreen(terminal))
    for seconds, part in ((0, 0.0), (1.5, 0.2), (2.0, 0.42), (2.1, 0.421), (3, 0.9), (4, 1.0)):
        clock[0] = 10 + seconds
        tell(part)
    assert terminal.getvalue().split("\r\033[K") == ["", "preparing the rows:  42%", "preparing the rows:  90%", ""]


def test_what_is_quick_is_not_spoken_of(clock: list[float]) -> None:
    """Control: two seconds passed, and there is a line."""
    terminal = io.StringIO()
    tell = PreparationProgress(TerminalScreen(terminal))
    for part in (0.0, 0.5, 1.0):
        tell(part)
    assert terminal.getvalue() == ""
    tell(0.0)
    clock[0] += 2
    tell(0.5)
    assert terminal.getvalue() != ""


@pytest.mark.parametrize("there", [True, False])
def test_only_a_terminal_is_told(there: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001
    """A log or a pipe has no line that is rewritten."""
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: there)
    monkeypatch.setattr(sys, "stderr", terminal)
    assert (of_preparing() is not None) is there


def test_it_is_told_while_somebody_waits() -> None:
    """What is made ready aside is not spoken of until it is waited for."""
    told: list[float] = []

    def work() -> None:
        aside.tell(0.5)

    aside = Preparation(work, waiting=told.append)
    aside.start()
    aside.wait()
    assert told == []
    aside.finish()
    assert told == [0.5]


def test_a_terminal_that_went_away_stops_no_preparing(clock: list[float]) -> None:
    """Nor does one that was closed."""

    class Gone(io.StringIO):
        def write(self, _text: str) -> int:
            raise OSError

    for terminal in (Gone(), io.StringIO()):
        terminal.close()
        tell = PreparationProgress(TerminalScreen(terminal))
        tell(0.0)
        clock[0] += 2
        tell(0.5)


def test_what_fails_leaves_no_line(clock: list[float]) -> None:
    """Whoever waited reads the error on a line of its own."""
    terminal = io.StringIO()
    told: list[Preparation] = []

    def fail() -> None:
        told[0].tell(0.0)
        clock[0] += 2
        told[0].tell(0.5)
        raise ValueError("no")

    told.append(Preparation(fail, None, PreparationProgress(TerminalScreen(terminal))))
    with pytest.raises(ValueError, match="no"):
        told[0].finish()
    assert terminal.getvalue().split("\r\033[K") == ["", "preparing the rows:  50%", ""]


class Lines:
    """A screen that keeps what it was shown."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def show(self, line: str) -> None:
        self.shown.append(line)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> Lines:
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(progress, "PAUSE_SECONDS", 0.01)
    found = Lines()
    monkeypatch.setattr(progress, "screen", lambda: found)
    return found


def waited(found: Lines, word: str) -> None:
    until = time.monotonic() + 30
    while not any(word in line for line in found.shown) and time.monotonic() < until:
        time.sleep(0.01)


def test_long_work_is_spoken_of_while_one_step_goes_on(quick: Lines) -> None:
    """Steps and seconds; the line is removed at the end, also of work that fails. Control: short work is silent."""
    with Working("fit", quick) as working:
        working.steps(2, 7)
        waited(quick, "2 of 7")
    assert any(line.startswith("fit: 2 of 7 steps, ") for line in quick.shown)
    assert quick.shown[-1] == ""

    def fail() -> None:
        with Working("fit", quick):
            waited(quick, "fit")
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    assert quick.shown[-1] == ""
    silent = Lines()
    with Working("fit", silent):
        pass
    assert silent.shown == []
    with Working("fit", None):
        pass


def test_a_function_that_takes_progress_shows_its_own(quick: Lines) -> None:
    """Where its caller gave none; a progress that was given is told alone."""

    @shows_progress
    def publish(wait: bool, *, progress: Callable[[int, int], None] | None = None) -> str:  # noqa: FBT001
        assert progress is not None
        progress(1, 3)
        if wait:
            waited(quick, "1 of 3")
        return "done"

    assert publish(True) == "done"
    assert any(line.startswith("publish: 1 of 3 steps") for line in quick.shown)
    quick.shown.clear()
    told: list[tuple[int, int]] = []
    assert publish(False, progress=lambda done, planned: told.append((done, planned))) == "done"
    assert (told, quick.shown) == ([(1, 3)], [])


def test_a_notebook_has_one_line_below_its_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is displayed once and then rewritten; a shell on a terminal is no notebook."""
    shown: list[str] = []
    handle = types.SimpleNamespace(update=lambda data, raw: shown.append(f"{data['text/plain']} {raw}"))

    def display(data: dict[str, str], **_options: object) -> object:
        shown.append(f"new {data['text/plain']}")
        return handle

    shell = types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(display=display))
    found = screen()
    assert isinstance(found, NotebookScreen)
    found.show("a")
    found.show("")
    assert shown == ["new a", " True"]
    del shell.kernel
    assert not isinstance(screen(), NotebookScreen)


def test_nothing_is_written_where_nobody_looks(capfd: pytest.CaptureFixture[str]) -> None:
    """Neither a pipe nor a test is told, and no thread looks at the clock."""

    @shows_progress
    def quiet(*, progress: object = None) -> object:
        return progress

    assert quiet() is None
    assert [thread.name for thread in threading.enumerate() if thread.name == "sulq-progress"] == []
    assert capfd.readouterr() == ("", "")


def test_every_learner_release_and_selection_shows_its_steps() -> None:
    """Each is wrapped, and its signature, from which commands and forms are made, is its own."""
    fits = [cls.fit for cls in learners() if "fit" in vars(cls) and cls.__module__.startswith("sulq.")]
    assert SVD.fit in fits or SVD.fit is Learner.fit
    for call in (*RELEASES, *SELECTIONS, *fits):
        assert inspect.unwrap(call) is not call, call
        assert "progress" in inspect.signature(call).parameters


def learners() -> list[type[Learner]]:
    found, front = [], [Learner]
    while front:
        found.append(front.pop())
        front += found[-1].__subclasses__()
    return found
