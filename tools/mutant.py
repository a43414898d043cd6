"""A planted bug."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    """One bug: where it was, what it was, which line of ours becomes which, and what must notice."""

    bug: str
    what: str
    file: str
    line: str
    planted: str
    tests: tuple[str, ...]
