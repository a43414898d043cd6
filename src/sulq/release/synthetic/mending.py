"""Drawn rows exchanged for others that were drawn, until they have the model's own marginals.

Rows drawn from a model miss its marginals by about the root of a count, which can be more than the noise.
Exchanging the few rows that are too many for drawn ones that are wanted takes most of that away, and no row is
published that the model did not draw. Free: the model, and so its marginals, are made of answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from sulq.language.kinds import Floats, Integers
from sulq.release.tables.interactions import Places

ROUNDS: Final = 100
FIRST: Final = 0.01  # of the rows, exchanged at once at first
GROWTH: Final = 1.2  # of that number after an exchange that helped; one that did not halves it
CHOICE: Final = 4  # times as many that are most wanted, of which those exchanged are drawn: else all would be alike
MOST: Final = 2**23  # numbers that are looked at in a round; beyond it rows stay as they were drawn


def mended(rows: Integers, spare: Integers, marginals: Mapping[Places, Floats], rng: np.random.Generator) -> Integers:
    """As many rows, of these and of the spare ones, whose counts are near the marginals' shares."""
    if not len(rows) or not len(spare) or (len(rows) + len(spare)) * len(marginals) > MOST:
        return rows
    both = np.concatenate([rows, spare])
    places, start = [], 0
    for own, table in marginals.items():
        places.append(start + np.ravel_multi_index(tuple(both[:, place] for place in own), table.shape))
        start += table.size
    where = np.stack(places, axis=1)
    goal = np.concatenate([table.ravel() * (len(rows) / table.sum()) for table in marginals.values()])
    taken = np.arange(len(both)) < len(rows)
    short: Floats = goal - np.bincount(where[taken].ravel(), minlength=start)
    several = max(int(FIRST * len(rows)), 1)
    for _ in range(ROUNDS):
        wanted = short[where].sum(axis=1)
        worst = _drawn(np.flatnonzero(taken), wanted, several, rng)
        best = _drawn(np.flatnonzero(~taken), -wanted, several, rng)
        few = min(len(worst), len(best))
        worst, best = worst[:few], best[:few]
        after = short - np.bincount(where[best].ravel(), minlength=start)
        after += np.bincount(where[worst].ravel(), minlength=start)
        if float(after @ after) < float(short @ short):
            short = after
            taken[worst], taken[best] = False, True
            several = int(several * GROWTH)
        else:
            several = max(several // 2, 1)
    return both[taken]


def _drawn(rows: Integers, wanted: Floats, several: int, rng: np.random.Generator) -> Integers:
    """So many of the least wanted of these rows, not always the very least."""
    most = min(CHOICE * several, len(rows))
    found = rows[np.argpartition(wanted[rows], most - 1)[:most]]
    return rng.permutation(found)[:several]
