"""Types of NumPy arrays, named once; and the end of the range that exact sums are kept in."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]
Objects = npt.NDArray[np.object_]
Stored = tuple[np.ndarray, Truths | None]  # a column, and where it is missing

SATURATED: Final = 2**62


def saturate(sums: Integers | Objects) -> Integers:
    """Clamp exact sums of any size to +-2^62: a 1-Lipschitz step (T5)."""
    return np.clip(sums, -SATURATED, SATURATED).astype(np.int64)
