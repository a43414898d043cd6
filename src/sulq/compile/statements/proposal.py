"""Proposals of rows that the kernel does not certify: what is fetched, to be folded by other code."""

from __future__ import annotations

from dataclasses import dataclass

from sulq.kernel.request import Proposal, Scan


@dataclass(frozen=True, slots=True)
class Fetch:
    """What SQL does not sum: the columns to fold over, and the blocks that are folded, each of a tally.

    `filtered`: whether the statement leaves out the rows that the one tally's condition does not hold for.
    """

    scan: Scan
    columns: tuple[str, ...]
    person: bool
    place: bool
    filtered: bool
    blocks: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched(Proposal):
    """A proposal with blocks that neither its statements nor a program sum."""

    fetch: Fetch
