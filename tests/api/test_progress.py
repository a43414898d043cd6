"""Progress on a terminal: a share while somebody waits, after a moment, and nothing left of it."""

from __future__ import annotations

import io
import sys

import pytest

from sulq.api import progress
from sulq.api.progress import TerminalProgress, on_terminal
from sulq.sources.engines import Preparation


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [10.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_one_line_says_a_share_and_is_removed(clock: list[float]) -> None:
    """Nothing at first; the same share is not written twice; at its end the line is empty."""
    terminal = io.StringIO()
    tell = TerminalProgress(terminal)
    for seconds, part in ((0, 0.0), (0.5, 0.2), (1.0, 0.42), (1.1, 0.421), (2, 0.9), (3, 1.0)):
        clock[0] = 10 + seconds
        tell(part)
    assert terminal.getvalue().split("\r\033[K") == ["", "preparing the rows:  42%", "preparing the rows:  90%", ""]


def test_what_is_quick_is_not_spoken_of(clock: list[float]) -> None:
    """Control: a second passed, and there is a line."""
    terminal = io.StringIO()
    tell = TerminalProgress(terminal)
    for part in (0.0, 0.5, 1.0):
        tell(part)
    assert terminal.getvalue() == ""
    tell(0.0)
    clock[0] += 1
    tell(0.5)
    assert terminal.getvalue() != ""


@pytest.mark.parametrize("there", [True, False])
def test_only_a_terminal_is_told(there: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001
    """A log or a pipe has no line that is rewritten."""
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: there)
    monkeypatch.setattr(sys, "stderr", terminal)
    assert (on_terminal() is not None) is there


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
        tell = TerminalProgress(terminal)
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

    told.append(Preparation(fail, None, TerminalProgress(terminal)))
    with pytest.raises(ValueError, match="no"):
        told[0].finish()
    assert terminal.getvalue().split("\r\033[K") == ["", "preparing the rows:  50%", ""]
