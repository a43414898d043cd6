"""Interactions put together into few small lookup tables.

A table over all attributes has cells x coefficients numbers, and is public like any part of a question. Under
`replace_one` it is asked as one where it is not large: a pair of rows differs in only some coefficients, and the plan
then finds the farthest pair [X1, E46]. Otherwise coefficients are shared out over tables of few attributes each, quick
to write, send and read. Under `add_remove` that costs no noise: the norms of a row add up over the tables, and
the row of the largest norm is the same in each (docs/theory/contingency.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from sulq.release.tables.interactions import Places, cells, width

WHOLE: Final = 2**12  # numbers of a table that is asked as one
PAIRED: Final = 2**16  # the same, where pairs of rows are compared
ROOM: Final = 64  # cells of a table otherwise, unless one interaction has more
SINGLE: Final = 2  # coefficients that make a vector


@dataclass(frozen=True, slots=True)
class Pack:
    """One lookup table: the attributes it is read at, and the interactions whose coefficients it holds."""

    places: Places
    parts: tuple[Places, ...]


def packs(closed: Sequence[Places], sizes: Sequence[int], most: int = WHOLE) -> tuple[Pack, ...]:
    """Every interaction of at least one coefficient in exactly one table; in one alone, if it has no more numbers."""
    parts = [part for part in closed if width(part, sizes)]
    everywhere = tuple(sorted({place for part in parts for place in part})) or (0,)
    if cells(everywhere, sizes) * sum(width(part, sizes) for part in parts) <= most:
        return (Pack(everywhere, tuple(parts)),)
    masks = np.array([sum(1 << place for place in part) for part in parts], dtype=np.int64)
    widths = np.array([width(part, sizes) for part in parts])
    left = np.ones(len(parts), dtype=np.bool_)
    found: list[Pack] = []
    for i in range(len(parts) - 1, -1, -1):  # the large ones bring the small ones along
        if not left[i]:
            continue
        places = _grown(set(parts[i]), everywhere, masks[left], widths[left], sizes)
        mask = sum(1 << place for place in places)
        taken = left & ((masks & ~mask) == 0)
        left &= ~taken
        found.append(Pack(tuple(sorted(places)), tuple(parts[j] for j in np.flatnonzero(taken))))
    return _joined(found, sizes)


def _grown(
    places: set[int], everywhere: Places, masks: np.ndarray, widths: np.ndarray, sizes: Sequence[int]
) -> set[int]:
    """Add the attribute that brings most coefficients for its cells, as long as there is room."""
    while True:
        mask = sum(1 << place for place in places)
        room = ROOM // cells(places, sizes)
        fits = [place for place in everywhere if place not in places and sizes[place] <= room]
        if not fits:
            return places
        lacking = masks & ~mask
        brought = (lacking == np.array([[1 << place] for place in fits], dtype=np.int64)) @ widths
        whole = brought + widths[lacking == 0].sum()
        gains = [(float(each) / sizes[place], -place) for each, place in zip(whole, fits, strict=True)]
        places = places | {-max(gains)[1]}


def _joined(found: list[Pack], sizes: Sequence[int]) -> tuple[Pack, ...]:
    """A table of a single coefficient joins the one before it: vectors are read off the counts of their keys."""
    joined: list[Pack] = []
    for pack in found:
        if joined and sum(width(part, sizes) for part in pack.parts) < SINGLE:
            last = joined.pop()
            joined.append(Pack(tuple(sorted({*last.places, *pack.places})), last.parts + pack.parts))
        else:
            joined.append(pack)
    return tuple(joined)
