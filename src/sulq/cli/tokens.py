"""How a command hands tokens over: on a terminal, or in a file that its owner alone reads; never in a log."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.markup import escape


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
