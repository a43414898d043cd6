"""Exact counts of how declarations fit rows, for the owner who is about to register them and nobody else.

It runs as a process of its own, sandboxed like a worker, and ends with its answer: the counts pass through the clerk to
the owner's call, and are in no log, ledger or store.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from typing import Final, cast

from sulq.curator.ledger.opening import sources_of
from sulq.errors import SetupError, SulqError
from sulq.language.rows_choice import AutoUnit
from sulq.service.ipc import Frame, refusal
from sulq.service.sandbox import isolation
from sulq.service.settings import DatasetSettings
from sulq.sources.duckdb.declared_fit import declared_fit
from sulq.sources.origin import Origin
from sulq.sources.tables import Dataset, Given

MAX_OPEN_FILES: Final = 256
MAX_SPILL_TIMES_MEMORY: Final = 16

_log = logging.getLogger("sulq.service.worker.row_check")  # the module is run, so its name is not its own


def counted(declared: DatasetSettings) -> Frame:
    """The reply to a check: counts, and what the files' bytes are known by, which the clerk may not read (T98).

    Privacy: the clerk compares these with what ledgers cover, and passes no count on of rows that one does.
    """
    try:
        given = tuple(Given(Origin.of(table.data), table.facts, table.inside) for table in declared.tables)
        files = dict.fromkeys(file for table in declared.tables for file in table.files)
        covers = [source.read().to_json() for source in sources_of([(file, "") for file in files])]  # as it is counted
        chosen = not isinstance(declared.unit, AutoUnit)
        return {"ok": {"tables": declared_fit(Dataset(given, declared.unit, b""), chosen=chosen), "covers": covers}}
    except SulqError as error:
        return refusal(error)
    except Exception as error:  # noqa: BLE001 - a broken file's error may hold its bytes (T31)
        _log.error("rows could not be checked", extra={"error": type(error).__name__})
        return refusal(SetupError("unreadable-data", "The rows cannot be read."))


def main() -> None:
    """Answer on standard output, once."""
    told = isolation.settings("check")
    memory = cast("int", told["memory"]) << 20
    outside = cast("int", told["outside"])
    isolation.confine(memory, MAX_OPEN_FILES, outside=outside, written=MAX_SPILL_TIMES_MEMORY * memory)
    sys.stdout.write(json.dumps(counted(DatasetSettings.from_json(cast("Frame", told["dataset"])))))
    sys.stdout.flush()
    os._exit(0)  # what the engine says as it is taken down is nobody's log


if __name__ == "__main__":
    main()
