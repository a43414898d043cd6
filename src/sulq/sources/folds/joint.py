"""Rows counted by the keys of several tallies at once: each of the tallies is a marginal of that one count.

A level of a tree asks for the rows by leaf, label and attribute, for each attribute
anew. One count by leaf, label and as many attributes as stay near the core has the
counts of all of these, and costs little more than one of them. A row that misses a key
has a place of its own there, so that what is missing changes neither the way nor the time (T34).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

import numpy as np

from sulq.language.tally import Key
from sulq.sources.folds.batch import Batch
from sulq.sources.folds.block_sums import Constant
from sulq.sources.folds.keys import Keys, holding
from sulq.sources.folds.partial_sums import Share

LARGEST: Final = 2**16  # so many cells of a count stay near the core


class Joint:
    """Tallies that count the same rows by few enough keys."""

    def __init__(self, shares: list[Share]) -> None:
        self._shares = shares
        self._keys = _union(shares)
        self._counts = np.zeros([_places(key) for key in self._keys], dtype=np.int64)

    def add(self, batch: Batch, keys: Keys) -> None:
        """Count a batch's rows."""
        counted = holding(self._shares[0].tally.where, batch)
        cells = keys.places(self._keys[0]).copy()
        for key in self._keys[1:]:
            cells *= _places(key)
            cells += keys.places(key)
        cells = cells if counted is None else cells[counted]
        self._counts += np.bincount(cells, minlength=self._counts.size).reshape(self._counts.shape)
        for share in self._shares:
            share.reserve(batch)

    def finish(self) -> None:
        """Give each tally its marginal, of the rows that have all its keys."""
        names = [id(key.fn) for key in self._keys]
        for share in self._shares:
            axes = [names.index(id(key.fn)) for key in share.tally.by]
            there = self._counts[tuple(slice(-1) if axis in axes else slice(None) for axis in range(len(names)))]
            own = there.sum(axis=tuple(axis for axis in range(len(names)) if axis not in axes))
            term = share.kernels[0].term  # type: ignore[attr-defined]  # by `joined` it is a Constant
            share.totals[0].small[:, 0] += own.transpose(np.argsort(np.argsort(axes))).ravel() * term


def joined(shares: Iterable[Share]) -> list[Share | Joint]:
    """The same shares, in which those that count the same rows by few enough keys are counted jointly."""
    alone: list[Share | Joint] = []
    groups: list[list[Share]] = []
    for share in shares:
        if not _counts(share):
            alone.append(share)
            continue
        fits = (group for group in groups if group[0].tally.where is share.tally.where and _together([*group, share]))
        group = next(fits, None)
        if group is None:
            groups.append([share])
        else:
            group.append(share)
    return alone + [Joint(group) if len(group) > 1 else group[0] for group in groups]


def _counts(share: Share) -> bool:
    """Whether a tally does nothing but count rows by different keys."""
    by = [id(key.fn) for key in share.tally.by]
    return len(share.kernels) == 1 and isinstance(share.kernels[0], Constant) and len(set(by)) == len(by) > 0


def _together(shares: list[Share]) -> bool:
    """Whether tallies may be counted jointly: of a key all name the same labels, and their cells stay near the core."""
    sizes = {(id(key.fn), _places(key)) for share in shares for key in share.tally.by}
    named = len({fn for fn, _ in sizes}) == len(sizes)
    return named and math.prod(size for _, size in sizes) <= LARGEST


def _places(key: Key) -> int:
    """How many places a key has: its labels, and one for the rows that have none of them."""
    return len(key.labels) + 1


def _union(shares: list[Share]) -> list[Key]:
    """Every key of some tallies, once."""
    return list({id(key.fn): key for share in shares for key in share.tally.by}.values())
