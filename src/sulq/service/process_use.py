"""What this process uses of the machine, for the operator: time, memory, open files. Never told of a worker's.

How much memory and time a worker takes follows from the rows it holds; what is told here is of processes without any.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import Final

BEGUN: Final = time.time()  # about when this process started
_OWN: Final = Path("/proc/self")


def process_use() -> dict[str, float]:
    """CPU seconds and the start; where the system says so, resident bytes and open files too."""
    found = {"cpu_seconds": time.process_time(), "start_seconds": BEGUN}
    with contextlib.suppress(OSError, ValueError, IndexError):
        pages = int((_OWN / "statm").read_text(encoding="ascii").split()[1])
        found["resident_bytes"] = float(pages * os.sysconf("SC_PAGE_SIZE"))
    with contextlib.suppress(OSError):
        found["open_files"] = float(len(os.listdir(_OWN / "fd")) - 1)  # noqa: PTH208 - names alone; one is the listing's
    return found
