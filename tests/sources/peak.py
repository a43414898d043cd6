"""The most memory a process took that sums products over a file: `python -m tests.sources.peak FILE KEPT`.

A process of its own, since a peak is never unlearned. DuckDB's own cache of pages, which grows to its limit
whatever is asked, is held to a few MiB; what is measured besides is what the engine itself takes.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from sulq.language.domain import Int, Schema
from sulq.language.rowfn import lit, outer, vector
from sulq.sources.duckdb import connection
from tests.sources.cases import ask, duck

CACHE = 24  # MiB
SCHEMA = Schema.of("data", {f"x{i}": Int(-(2**53), 2**53) for i in range(4)})


def main(file: Path, kept: int) -> None:
    """Prepare the file, ask twice, and print the peak in KiB."""
    connection.memory = lambda: CACHE
    engine = duck(file, schema=SCHEMA, prepared=file.with_suffix(f".{kept}"), resident=kept, threads=2)
    for _ in range(2):
        engine.sums(ask(lit(1), outer(vector(list(SCHEMA.names))), schema=SCHEMA))
    engine.close()
    # getrusage would count what the process that started this one held, too.
    print(re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))[1])


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
