"""How far preparing has come, on the owner's terminal, for whoever waits for it."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import Final, TextIO

PATIENCE_SECONDS: Final = 1.0  # what takes no longer is not spoken of
_CLEAR: Final = "\r\033[K"


class TerminalProgress:
    """One line on a terminal, rewritten as the work goes on and removed at its end; it tells a share alone."""

    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal
        self._begun: float | None = None
        self._shown = ""

    def __call__(self, part: float) -> None:
        """Show how far it has come, from 0 to 1."""
        now = time.monotonic()
        self._begun = now if self._begun is None or part == 0.0 else self._begun
        line = f"preparing the rows: {part:4.0%}" if part < 1.0 and now - self._begun >= PATIENCE_SECONDS else ""
        if line != self._shown:
            self._shown = line
            with contextlib.suppress(OSError, ValueError):  # a terminal that was closed stops no preparing
                self._terminal.write(f"{_CLEAR}{line}")
                self._terminal.flush()


def on_terminal() -> TerminalProgress | None:
    """Progress on the standard error, where that is a terminal."""
    return TerminalProgress(sys.stderr) if sys.stderr is not None and sys.stderr.isatty() else None
