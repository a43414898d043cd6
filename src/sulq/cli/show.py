"""What the commands print, in one style; tokens on a terminal alone, or in a file that its owner alone reads."""

from __future__ import annotations

import importlib.metadata
import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import apsw
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from sulq.version import __version__

console = Console(highlight=False, soft_wrap=True)


def show_versions() -> None:
    """Versions of sulq and what it stands on, the entropy source, and how long this disk takes to sync."""
    table = Table(show_header=False, box=None)
    table.add_row("sulq", __version__)
    table.add_row("SQLite", apsw.sqlite_lib_version())
    for package in ("duckdb", "numpy", "pyarrow"):
        table.add_row(package, importlib.metadata.version(package))
    table.add_row("entropy", "os.urandom")
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


def hand_over(tokens: Mapping[str, str], place: Path, speak: Console) -> None:
    """Show tokens by name where somebody looks at a terminal; else write them to a new file and show its path alone.

    What is no terminal may be a log, which others read and which is kept.
    """
    if speak.is_terminal and speak.file.isatty():  # a console may be told to behave like one
        for name, token in tokens.items():
            speak.print(escape(f"  {name:8} {token}"))
        return
    place.unlink(missing_ok=True)
    handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.writelines(f"{name} {token}\n" for name, token in tokens.items())
    speak.print(escape(f"  {place}"))
