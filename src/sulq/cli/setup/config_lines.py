"""Lines of a configuration file: which is still to be filled in, and which one a refusal is about."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from sulq.errors import SetupError, SulqError

BLANK: Final = "?"  # what `sulq init` writes where its owner must
_QUOTED: Final = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'")
_NAMED: Final = re.compile(
    r": \[(?P<section>[^\]]*)\](?: (?:column |does not know )?(?:'(?P<quoted>.+?)'|(?P<bare>\w+)))?"
)


def unfilled(text: str, path: Path) -> SetupError | None:
    """The refusal of the first line that still has a blank to be filled in."""
    for number, line in enumerate(text.splitlines(), 1):
        if BLANK in _QUOTED.sub("", line).partition("#")[0]:
            why = f"{path}, line {number} is still to be filled in: {line.partition('#')[0].strip()}"
            remedy = f"Write what each {BLANK} stands for, or delete the line of a column that nobody may ask about."
            return SetupError("bad-config", why, remedy)
    return None


def at_line(error: SulqError, text: str, path: Path) -> SulqError:
    """The same refusal with the number of the line that it names, where that is found."""
    named = _NAMED.search(error.message)
    if named is None or not error.message.startswith(str(path)):
        return error
    line = _line(text.splitlines(), named["section"].rpartition(".tables.")[2], named["quoted"] or named["bare"] or "")
    if not line:
        return error
    return SetupError(error.code, f"{error.message.removesuffix('.')} (line {line}).", error.remedy)


def _line(lines: list[str], section: str, key: str) -> int:
    """The line of a key; of several tables that of this section's; 0 where there is none."""
    header, found = "", 0
    starts = (f"{key} ", f"{key}=", f'"{key}"', f"'{key}'")
    for number, line in enumerate(map(str.strip, lines), 1):
        header = line if line.startswith("[") else header
        if key and line.startswith(starts):
            if section in header:
                return number
            found = found or number
    return found
