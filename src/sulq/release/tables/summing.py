"""Many marginals of one table at once, and their transpose: the table that adds up many small ones.

Both walk the columns from the first to the last and keep, beside what is left of the table, the columns that were
chosen so far. A column that nobody wishes for any more is summed out before the next is looked at, so all 2-way
marginals cost a few passes over the table and not one each. No array has more than three axes: many short are slow.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from sulq.language.kinds import Floats
from sulq.release.tables.interactions import Places


def gathered(table: Floats, wanted: Iterable[Places]) -> dict[Places, Floats]:
    """The marginals of a table by these columns, which are ascending."""
    sizes = table.shape
    found: dict[Places, Floats] = {}

    def gather(rest: Floats, start: int, chosen: Places, tails: set[Places]) -> None:
        """`rest` has a row for each cell of the chosen columns and a column for each cell of those from `start` on."""
        if () in tails:
            found[chosen] = rest.sum(axis=1).reshape([sizes[place] for place in chosen])
        for place in range(start, max((tail[0] for tail in tails if tail), default=-1) + 1):
            split = rest.reshape(len(rest), sizes[place], -1)
            further = {tail[1:] for tail in tails if tail and tail[0] == place}
            if further:
                gather(split.reshape(len(rest) * sizes[place], -1), place + 1, (*chosen, place), further)
            rest = split.sum(axis=1)

    gather(table.reshape(1, -1), 0, (), {*wanted})
    return found


def scattered(parts: Mapping[Places, Floats], sizes: Sequence[int]) -> Floats:
    """The table whose cell is the sum of each part's cell there: <scattered(p), t> = <p, gathered(t)>."""
    flat = {places: values.ravel() for places, values in parts.items()}
    return _scatter(sizes, 0, (), {*flat}, flat).reshape(tuple(sizes))


def _scatter(
    sizes: Sequence[int], start: int, chosen: Places, tails: set[Places], parts: Mapping[Places, Floats]
) -> Floats:
    """The table of the chosen columns, a row for each cell of them, and of the columns from `start` on."""
    rows = math.prod(sizes[place] for place in chosen)
    last = max((tail[0] for tail in tails if tail), default=-1)
    found: Floats = np.zeros((rows, math.prod(sizes[last + 1 :]) if last >= 0 else math.prod(sizes[start:])))
    if () in tails:
        found += parts[chosen].reshape(rows, 1)
    for place in range(last, start - 1, -1):
        further = {tail[1:] for tail in tails if tail and tail[0] == place}
        if further:
            own = _scatter(sizes, place + 1, (*chosen, place), further, parts)
            found = (own.reshape(rows, sizes[place], -1) + found[:, None, :]).reshape(rows, -1)
        else:
            found = np.repeat(found[:, None, :], sizes[place], axis=1).reshape(rows, -1)
    return found
