"""One thread's part of one tally's sums."""

from __future__ import annotations

import numpy as np

from sulq.language.domain import Schema
from sulq.language.kinds import Integers
from sulq.language.tally import Tally
from sulq.sources.folds.batch import Batch
from sulq.sources.folds.block_sums import kernel
from sulq.sources.folds.coordinates import Vectors
from sulq.sources.folds.keys import Keys, choose
from sulq.sources.folds.totals import Totals


class Share:
    """One thread's part of one tally's sums."""

    def __init__(self, tally: Tally, schema: Schema, vectors: Vectors) -> None:
        self.tally = tally
        self.totals = [Totals(tally.cells, block.width) for block in tally.blocks]
        self.kernels = [kernel(block, schema, tally.cells, vectors, keyed=bool(tally.by)) for block in tally.blocks]

    def add(self, batch: Batch, keys: Keys) -> None:
        """Add a batch's terms."""
        chosen = choose(self.tally, batch, keys)
        self.reserve(batch)
        for one, total in zip(self.kernels, self.totals, strict=True):
            one.add(batch, chosen, total.small)

    def reserve(self, batch: Batch) -> None:
        """Make sure that a batch's terms can be added."""
        for one, total in zip(self.kernels, self.totals, strict=True):
            total.reserve(batch.size * one.most)

    def finish(self) -> None:
        """Add what was put off until the last batch."""
        for one, total in zip(self.kernels, self.totals, strict=True):
            one.finish(total)

    def merge(self, other: Share) -> None:
        """Add another thread's part."""
        for total, more in zip(self.totals, other.totals, strict=True):
            total.merge(more)

    def sums(self) -> Integers:
        """The sums of all blocks side by side, saturated."""
        return np.concatenate([total.saturated() for total in self.totals], axis=1)
