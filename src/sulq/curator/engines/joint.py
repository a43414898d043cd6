"""Rows counted by the keys of several tallies at once: each of the tallies is a marginal of that one count.

A level of a tree asks for the rows by leaf, label and attribute, for each attribute
anew. One count by leaf, label and as many attributes as stay near the core has the
counts of all of these, and costs little more than one of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

import numpy as np

from sulq.curator.engines.batch import Batch
from sulq.curator.engines.kernels import Constant
from sulq.curator.engines.keys import Keys, cells_of, holding
from sulq.curator.engines.share import Share
from sulq.terms.engine import Key

LARGEST: Final = 2**14  # so many cells of a count stay near the core


class Joint:
    """Tallies that count the same rows; batches in which a row misses a key are left to each tally itself."""

    def __init__(self, shares: list[Share]) -> None:
        self._shares = shares
        self._keys = _union(shares)
        self._counts = np.zeros([len(key.labels) for key in self._keys], dtype=np.int64)

    def add(self, batch: Batch, keys: Keys) -> None:
        """Count a batch's rows."""
        if any(keys.codes(key)[1] is not None for key in self._keys):
            for share in self._shares:
                share.add(batch, keys)
            return
        counted = holding(self._shares[0].tally.where, batch)
        cells = cells_of(self._keys, keys)
        cells = cells if counted is None else cells[counted]
        self._counts += np.bincount(cells, minlength=self._counts.size).reshape(self._counts.shape)
        for share in self._shares:
            share.reserve(batch)

    def finish(self) -> None:
        """Give each tally its marginal."""
        names = [id(key.fn) for key in self._keys]
        for share in self._shares:
            axes = [names.index(id(key.fn)) for key in share.tally.by]
            others = tuple(axis for axis in range(len(names)) if axis not in axes)
            own = self._counts.sum(axis=others).transpose(np.argsort(np.argsort(axes)))
            term = share.kernels[0].term  # type: ignore[attr-defined]  # by `joined` it is a Constant
            share.totals[0].small[:, 0] += own.ravel() * term


def joined(shares: Iterable[Share]) -> list[Share | Joint]:
    """The same shares, in which those that count the same rows by few enough keys are counted jointly."""
    alone: list[Share | Joint] = []
    groups: list[list[Share]] = []
    for share in shares:
        if not _counts(share):
            alone.append(share)
            continue
        fits = (group for group in groups if group[0].tally.where is share.tally.where and _cells([*group, share]))
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


def _cells(shares: list[Share]) -> bool:
    return math.prod(len(key.labels) for key in _union(shares)) <= LARGEST


def _union(shares: list[Share]) -> list[Key]:
    """Every key of some tallies, once."""
    return list({id(key.fn): key for share in shares for key in share.tally.by}.values())
