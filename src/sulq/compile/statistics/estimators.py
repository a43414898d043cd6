"""Estimators that sulq brings: what each makes of a block's rows.

Privacy: whatever one gives is cut off at the question's bounds, and a person is in one block (SR5, SR11), so no mistake
here releases more (`sulq.kernel.whole.functions`).
Source: docs/theory/holistic.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from sulq.kernel.whole.functions import Function
from sulq.language.kinds import Floats


def _trimmed(rows: Floats) -> float:
    cut = len(rows) // 10
    return float(np.sort(rows[:, 0])[cut : len(rows) - cut].mean())


def _slope(rows: Floats) -> float:
    x = rows[:, 0] - rows[:, 0].mean()
    return float((x @ rows[:, 1]) / (x @ x))


OWN: Final[Mapping[str, tuple[int, Function]]] = {  # how many columns each reads
    "mean": (1, lambda rows: rows[:, 0].mean()),
    "median": (1, lambda rows: np.median(rows[:, 0])),
    "trimmed_mean": (1, _trimmed),
    "slope": (2, _slope),
    "correlation": (2, lambda rows: np.corrcoef(rows[:, 0], rows[:, 1])[0, 1]),
}
"""Of an empty or constant block some have nothing to say, and the middle is taken."""
