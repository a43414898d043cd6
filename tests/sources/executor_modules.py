"""Which modules an executor of Spark has loaded; it imports what executors do, and nothing of the tests."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

import pyarrow as pa

from sulq.sources.spark import work


def loaded_there(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The modules of the Python that this runs in, after our functions were loaded there."""
    for _ in rows:
        pass
    list(work.versions([]))
    yield pa.RecordBatch.from_pydict({"name": sorted(sys.modules)})
