"""Marginals without negative counts that agree with each other, nearest to noisy ones: small tables, one by one.

A marginal is the sum of its interactions: what its smaller marginals say, and a remainder that sums to nothing along
every column. Small ones go first; each takes over what those within it were mended to, and of its own noisy
remainder as much as leaves no count below zero. The nearest such table is found by Dykstra's alternating
projections: on to tables with these smaller marginals, on to tables without negative counts. Cells of which noise alone
speaks, as most of a large marginal are, lose it there; and before, as far as noise explains what columns by
themselves do not, an interaction is drawn towards none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from sulq.release.synthetic.evidence import Evidence, tabled
from sulq.release.synthetic.space import Places
from sulq.release.tables.interactions import cells, closure, inside
from sulq.terms.kinds import Floats

STEPS: Final = 200
FEWEST: Final = 6  # cells of a marginal whose gaps tell how large they are


def nearest(evidence: Evidence, wanted: Iterable[Places]) -> dict[Places, Floats]:
    """The mended marginals by these columns, with all that lie within them; counts that sum to the evidence's."""
    found: dict[Places, Floats] = {(): np.array(max(evidence.total, 1.0))}
    for places in closure(wanted)[1:]:
        shape = [evidence.sizes[place] for place in places]
        known = np.zeros(shape)
        for part in inside(places)[:-1]:
            own = [size if place in part else 1 for place, size in zip(places, shape, strict=True)]
            known += (centred(found[part]) * (cells(part, evidence.sizes) / cells(places, evidence.sizes))).reshape(own)
        alone = product([found[place,] for place in places]) if len(places) > 1 else np.zeros(shape)
        found[places] = mended(_own(evidence, places, alone), known)
    return found


def product(alone: Sequence[Floats]) -> Floats:
    """The marginal that columns would have which have nothing to do with each other."""
    found = alone[0]
    for each in alone[1:]:
        found = found[..., None] * (each / each.sum())
    return found


def _own(evidence: Evidence, places: Places, alone: Floats) -> Floats:
    """A marginal's own interaction: as it was told, less noise; what was not told is that of columns by themselves."""
    if places not in evidence.values:
        return centred(alone)
    count = cells(places, evidence.sizes)
    told = tabled(evidence.values[places], places, evidence.sizes) / count
    noise = float((evidence.deviations[places] ** 2).sum()) / count**2
    return centred(shrunk(told, centred(alone), alone, noise)) if len(places) > 1 else told


def shrunk(told: Floats, supposed: Floats, alone: Floats, noise: float) -> Floats:
    """An interaction drawn towards the one supposed as far as noise of this variance a cell explains their gap.

    Gaps are supposed to have variances in proportion to the counts of columns by themselves: hardly anybody is where
    hardly anybody is expected. The factor is what the gaps' squares exceed the noise by, and each gap keeps
    its variance's share of the variance with noise (Wiener's filter). Of fewer than FEWEST cells nothing is told.
    """
    gap = told - supposed
    excess = float((gap**2).sum()) - gap.size * noise
    if gap.size < FEWEST:
        return told
    own = np.maximum(alone, 0.0) * (max(excess, 0.0) / max(float(alone.sum()), 1.0))
    return supposed + gap * own / (own + noise)


def mended(rest: Floats, known: Floats, steps: int = STEPS) -> Floats:
    """The table without negative counts nearest to known + rest whose smaller marginals are those of `known`."""
    found = known + rest
    owed: Floats = np.zeros_like(found)
    for _ in range(steps):
        clipped = np.maximum(found + owed, 0.0)
        owed += found - clipped
        found = known + centred(clipped)
    return np.maximum(found, 0.0)


def centred(table: Floats) -> Floats:
    """What of a table sums to nothing along each of its columns: its own interaction."""
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table
