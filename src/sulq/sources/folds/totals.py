"""Running sums that never wrap: 64-bit integers that move to Python's own before they could (SR16)."""

from __future__ import annotations

import numpy as np

from sulq.kernel.private import SATURATED, saturate
from sulq.language.kinds import Integers, Objects


class RunningTotals:
    """Exact running sums of one block, by cell: int64 as long as nothing can wrap, else Python integers."""

    __slots__ = ("large", "small", "used")

    def __init__(self, cells: int, width: int) -> None:
        self.small: Integers = np.zeros((cells, width), dtype=np.int64)
        self.large: Objects | None = None
        self.used = 0

    def reserve(self, most: int) -> None:
        """Make sure that sums of at most this size can be added."""
        if self.used + most >= SATURATED:
            self.large = self.small.astype(object) if self.large is None else self.large + self.small
            self.small[:] = 0
            self.used = 0
        self.used += most

    def saturated(self) -> Integers:
        """The sums as int64, clamped to +-2^62: a 1-Lipschitz step (T5)."""
        return saturate(self.small if self.large is None else self.large + self.small)
