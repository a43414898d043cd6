"""Rows from a model: cells drawn by their weights, exchanged until they have its marginals, and told as values.

Cells are drawn each as often as its share says, up to one. Rows drawn from a model still miss its marginals by about
the root of a count, which can be more than the noise. Exchanging the few rows that are too many for drawn ones that are
wanted takes most of that away, and no row is published that the model did not draw. Free: weights and marginals are
made of answers. The generator's seed comes from the operating system and protects nobody.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sulq.language.attribute import Attribute
from sulq.language.domain import Bool, Category, Date, Int, Real, Timestamp
from sulq.language.kinds import Floats, Integers
from sulq.release.tables.interactions import Places

EXCHANGE_ROUNDS: Final = 100
FIRST_EXCHANGED_PART: Final = 0.01  # of the rows, exchanged at once at first
GROWTH: Final = 1.2  # of that number after an exchange that helped; one that did not halves it
CHOICE: Final = 4  # times as many that are most wanted, of which those exchanged are drawn: else all would be alike
MAX_LOOKED_AT_NUMBERS: Final = 2**23  # numbers that are looked at in a round; beyond it rows stay as they were drawn


def drawn(weights: Floats, rows: int, rng: np.random.Generator) -> Integers:
    """`rows` cells in random order, cell c either the floor or the ceiling of rows * share(c) times."""
    return given(weights[None, :], np.zeros(rows, dtype=np.int64), rng)


def given(weights: Floats, groups: Integers, rng: np.random.Generator) -> Integers:
    """A cell for each row by its group's weights (a row of them a group): likewise evenly within each group."""
    shares = np.cumsum(np.maximum(weights, 0.0), axis=1)
    nothing = shares[:, -1] <= 0
    shares[nothing] = np.arange(1, weights.shape[1] + 1)  # a group that weighs nothing is drawn evenly
    shares /= shares[:, -1:]
    found = np.empty(len(groups), dtype=np.int64)
    order = rng.permutation(len(groups))
    order = order[np.argsort(groups[order], kind="stable")]  # by group, in random order within
    counts = np.bincount(groups, minlength=len(weights))
    stops = np.cumsum(counts)
    for group in np.flatnonzero(counts):
        at = (np.arange(counts[group]) + rng.random()) / counts[group]
        cells = np.searchsorted(shares[group], at, side="right")
        found[order[stops[group] - counts[group] : stops[group]]] = np.minimum(cells, weights.shape[1] - 1)
    return found


def mended(rows: Integers, spare: Integers, marginals: Mapping[Places, Floats], rng: np.random.Generator) -> Integers:
    """As many rows, of these and of the spare ones, whose counts are near the marginals' shares."""
    if not len(rows) or not len(spare) or (len(rows) + len(spare)) * len(marginals) > MAX_LOOKED_AT_NUMBERS:
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
    several = max(int(FIRST_EXCHANGED_PART * len(rows)), 1)
    for _ in range(EXCHANGE_ROUNDS):
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


def kind(attribute: Attribute) -> pa.DataType:
    """What a column's values are kept as."""
    domain = attribute.domain
    if isinstance(domain, Category):
        return pa.string() if isinstance(domain.values[0], str) else pa.int64()
    if isinstance(domain, Int):
        return pa.int64()
    types = {Bool: pa.bool_(), Date: pa.date32(), Timestamp: pa.timestamp("us"), Real: pa.float64()}
    return types[type(domain)]


def decoded(attribute: Attribute, cells: Integers, rng: np.random.Generator) -> pa.Array:
    """A value for each cell: the one it stands for or, of an interval, one drawn evenly from its grid points."""
    edges = attribute.edges
    if edges is None:
        return pa.array(attribute.labels, type=kind(attribute)).take(pa.array(cells))
    first, last = _ends(attribute, edges)
    units = rng.integers(first[cells], last[cells] + 1)
    if isinstance(attribute.domain, Real):
        return pa.array(units * float(attribute.domain.step))  # a power of two: exact
    narrow = units.astype(np.int32) if isinstance(attribute.domain, Date) else units
    return pa.array(narrow).cast(kind(attribute))


def encoded(attribute: Attribute, values: pa.Array) -> Integers:
    """The cell of each value: what `decoded` made of it."""
    edges = attribute.edges
    if edges is None:
        found = pc.index_in(values, pa.array(attribute.labels, type=kind(attribute)))
        return np.asarray(found, dtype=np.int64)
    whole = {"date": pa.int32(), "timestamp": pa.int64()}.get(attribute.domain.clock or "")
    numbers = np.asarray(values if whole is None else values.cast(whole), dtype=np.float64)
    cells = np.searchsorted(np.array(edges), numbers, side="right") - 1
    return np.clip(cells, 0, len(edges) - 2).astype(np.int64)


def _ends(attribute: Attribute, edges: tuple[float, ...]) -> tuple[Integers, Integers]:
    """The first and last grid point of each interval; of one that holds none, the nearest."""
    domain = attribute.domain
    assert isinstance(domain, (Int, Real, Date, Timestamp))  # noqa: S101 - for the type checker
    starts = [math.ceil(Fraction(edge) / domain.step) for edge in edges[:-1]]
    stops = [start - 1 for start in starts[1:]] + [math.floor(Fraction(edges[-1]) / domain.step)]
    first = np.clip(np.array(starts, dtype=np.int64), domain.low, domain.high)
    last = np.clip(np.array(stops, dtype=np.int64), first, domain.high)
    return first, last
