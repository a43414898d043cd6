"""DuckDB connections: private, without network or extensions, and locked before the first question (T69, T72, T73)."""

from __future__ import annotations

import os
import resource
import shutil
import tempfile
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import duckdb

from sulq.sources.decode.files import literal

MEMORY_FRACTION: Final = 0.3  # of the machine's memory that one engine may take before it spills: there may be others


def memory() -> int:
    """How many MiB one engine may take."""
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:  # what a worker may address holds the program too
        whole = min(whole, limit * 2 // 3)
    return max(256, int(MEMORY_FRACTION * (whole >> 20)))


def cores() -> int:
    """Usable CPUs: those of this process's affinity, where the system tells it (macOS does not)."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Connection:
    """One DuckDB instance in memory, with its own folder for what it spills, removed with it."""

    def __init__(self, *, threads: int | None = None, folder: Path | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="sulq-", dir=folder))  # mode 0700
        self._forget = weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        config: dict[str, str | bool | int | float | list[str]] = {
            "allow_community_extensions": "false",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "ieee_floating_point_ops": "true",
            "memory_limit": f"{memory()}MiB",
            "preserve_insertion_order": "true",
            "python_enable_replacements": "false",
            "temp_directory": str(self.folder),
            "threads": cores() if threads is None else threads,
        }
        spilled, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
        if spilled != resource.RLIM_INFINITY:  # a worker's: what one file may take, all that is spilled may
            config["max_temp_directory_size"] = f"{spilled >> 20}MiB"
        self.root = duckdb.connect(":memory:", config=config)
        self.root.execute("SET GLOBAL TimeZone = 'UTC'")

    def attach(self, path: Path, name: str, *, writable: bool = False) -> None:
        """Open a DuckDB file beside the memory."""
        self.root.execute(f"ATTACH {literal(str(path))} AS {name}{'' if writable else ' (READ_ONLY)'}")

    def lock(self, files: Iterable[Path] = ()) -> None:
        """Close every way out: no file but these, no setting, no extension from here on."""
        paths = ", ".join(literal(str(path)) for path in files)
        if paths:
            self.root.execute(f"SET allowed_paths = [{paths}]")
        self.root.execute("SET enable_external_access = false")
        self.root.execute("SET lock_configuration = true")

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """A fresh connection to the same rows: a question leaves nothing behind for the next (T38)."""
        return self.root.cursor()

    def close(self) -> None:
        """Let go of the memory and the folder."""
        self.root.close()
        self._forget()
