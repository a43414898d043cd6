"""What sums run over: one table, so far."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Table:
    """The kept rows of one table, by the name it was registered under ("" where there is only one)."""

    name: str = ""


Relation = Table
