"""The operator's log: one JSON object a line on stderr. Names, codes and numbers; never a text that data can reach.

An exception is written down by its type alone, also one that nobody caught:
its text may hold a cell (T31).
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from datetime import UTC, datetime
from types import TracebackType
from typing import Final

_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class Lines(logging.Formatter):
    """Log records as lines of JSON."""

    def __init__(self, part: str) -> None:
        super().__init__()
        self._part = part

    def format(self, record: logging.LogRecord) -> str:
        """One line; extra fields that are names or numbers are kept, an exception's text is not."""
        told: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "part": self._part,
            "from": record.name,
            "event": record.getMessage(),
        }
        more = {name: value for name, value in vars(record).items() if name not in _STANDARD}
        told |= {name: value for name, value in more.items() if isinstance(value, (str, int, float, bool))}
        if record.exc_info and record.exc_info[0] is not None:
            told["error"] = record.exc_info[0].__name__
        return json.dumps(told)


def start(part: str) -> None:
    """Write this process's log, and what nobody caught, to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines(part))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("sulq").setLevel(logging.INFO)
    log = logging.getLogger("sulq.service")

    def uncaught(kind: type[BaseException], _: BaseException, __: TracebackType | None) -> None:
        log.critical("nobody caught an error", extra={"error": kind.__name__})

    def in_thread(args: threading.ExceptHookArgs) -> None:
        log.critical("nobody caught an error", extra={"error": args.exc_type.__name__})

    sys.excepthook = uncaught
    threading.excepthook = in_thread
    sys.unraisablehook = lambda _: log.error("an error could not be raised")
