"""How much memory a process takes for each row that it writes to disk: `python -m tests.sources.inserted HOW ROWS`.

A process of its own, since what is given back to the system depends on what was taken before. `HOW`: `together`, one
statement for all pages, or `apart`, one for each in one transaction.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa

from sulq.sources.duckdb.connection import Connection, create_table, insert_batches, insert_page

PAGE = 65_536
SCHEMA = pa.schema({"a": pa.int64(), "b": pa.int64()})


def pages(rows: int) -> Iterator[pa.RecordBatch]:
    """Rows that need no space to speak of where they are kept."""
    for first in range(0, rows, PAGE):
        cells = np.arange(first, first + PAGE, dtype=np.int64)
        yield pa.RecordBatch.from_arrays([pa.array(cells % 100), pa.array(cells % 50)], schema=SCHEMA)


def taken() -> int:
    """In KiB, without files that are mapped."""
    return int(re.search(r"RssAnon:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))[1])


def main(how: str, rows: int) -> None:
    """Print how many KiB more it has than before."""
    with closing(Connection(threads=1, on_disk=True)) as made:
        create_table(made, "kept", dict.fromkeys(SCHEMA.names, "TINYINT"))
        create_table(made, "warm", dict.fromkeys(SCHEMA.names, "TINYINT"))
        insert_batches(made, "INSERT INTO warm SELECT * FROM page", SCHEMA, pages(4 * PAGE))
        before = taken()
        with made.writing():
            if how == "together":
                insert_batches(made, "INSERT INTO kept SELECT * FROM page", SCHEMA, pages(rows))
            for page in pages(rows) if how == "apart" else ():
                insert_page(made, "kept", pa.Table.from_batches([page]))
            print(taken() - before)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
