"""A look at a data file for its owner: the names of its columns and their kinds, from the file's own schema.

No row is read and nothing is guessed from one: of a CSV file every column is text until the owner says otherwise, and
its name alone suggests what it may hold. It runs as a process of its own, sandboxed
like a worker, and ends with its answer.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, cast

from sulq.errors import SetupError, SulqError
from sulq.service.ipc import Frame, refusal
from sulq.service.sandbox import isolation
from sulq.sources.column_guess import UNTYPED, suggested
from sulq.sources.tables import list_tables

MAX_WRITTEN_BYTES: Final = 2**20  # bytes of one file; it has nothing to write

_log = logging.getLogger("sulq.service.worker.file_look")  # the module is run, so its name is not its own


def seen(path: Path, partitions: Sequence[str] = ()) -> Frame:
    """The reply to a look; `partitions`: columns beside the file's own, which the folders above it say."""
    try:
        tables = list_tables(path)
    except SulqError as error:
        return refusal(error)
    except Exception as error:  # noqa: BLE001 - a broken file's error may hold its bytes (T31)
        _log.error("a file could not be looked at", extra={"error": type(error).__name__})
        return refusal(SetupError("unreadable-data", "The file cannot be read."))
    beside = [(name, UNTYPED) for name in partitions]
    found = [{"table": name, "columns": [_column(*each) for each in columns + beside]} for name, columns in tables]
    return {"ok": {"file": path.name, "tables": found, "columns": found[0]["columns"] if found else []}}


def _column(name: str, kind: str) -> Frame:
    return {"name": name, "type": kind, "suggests": suggested(kind, name)}


def main() -> None:
    """Answer on standard output, once."""
    told = isolation.settings("look")
    isolation.confine(
        cast("int", told["memory"]) << 20, 64, outside=cast("int", told["outside"]), written=MAX_WRITTEN_BYTES
    )
    sys.stdout.write(json.dumps(seen(Path(str(told["path"])), cast("list[str]", told.get("partitions", [])))))
    sys.stdout.flush()
    os._exit(0)  # what the engine says as it is taken down is nobody's log


if __name__ == "__main__":
    main()
