"""The values of a category from a text file: one a line, as long as the lists that no configuration should hold."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from sulq.errors import SetupError

MAX_FILE_BYTES: Final = 2**28
BOM: Final = "\ufeff"


def read_values(path: Path) -> tuple[str, ...]:
    """The lines of a file, as they are; the domain refuses what a category cannot hold."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise SetupError("bad-config", f"The file of values {path} is longer than {MAX_FILE_BYTES >> 20} MiB.")
        text = path.read_bytes().decode().removeprefix(BOM)
    except (OSError, ValueError):  # bytes that are no UTF-8, a name with a NUL
        raise SetupError("missing-file", f"The file of values {path} cannot be read as UTF-8.") from None
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    empty = next((number for number, line in enumerate(lines, 1) if not line), None)
    if empty is not None:
        raise SetupError("bad-config", f"Line {empty} of the file of values {path} is empty.")
    return tuple(lines)
