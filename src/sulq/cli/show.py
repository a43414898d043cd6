"""What the commands print, in one style."""

from __future__ import annotations

import importlib.metadata
import os
import tempfile
import time

import apsw
from rich.console import Console
from rich.table import Table

from sulq.kernel.entropy import SOURCE
from sulq.version import __version__

console = Console(highlight=False, soft_wrap=True)


def show_versions() -> None:
    """Versions of sulq and what it stands on, the entropy source, and how long this disk takes to sync."""
    table = Table(show_header=False, box=None)
    table.add_row("sulq", __version__)
    table.add_row("SQLite", apsw.sqlite_lib_version())
    for package in ("duckdb", "numpy", "pyarrow"):
        table.add_row(package, importlib.metadata.version(package))
    table.add_row("entropy", SOURCE)
    table.add_row("fsync", f"{sync_probe() * 1000:.2f} ms")
    console.print(table)


def sync_probe(times: int = 5) -> float:
    """Seconds one small durable write takes here: the floor of every debit."""
    with tempfile.NamedTemporaryFile(dir=".") as file:
        start = time.perf_counter()
        for _ in range(times):
            file.write(b"x" * 512)
            file.flush()
            os.fsync(file.fileno())
        return (time.perf_counter() - start) / times
