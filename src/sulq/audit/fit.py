"""Whether draws follow a law: Pearson's chi-square with exact probabilities, at a level that never cries wolf."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from sulq.errors import QuestionError
from sulq.language.kinds import Integers

MIN_EXPECTED_DRAWS: Final = 10.0  # expected draws of a cell; what is rarer is put together
FAR: Final = 6.0  # standard deviations: all laws of a run together pass this less than once in ten million runs


@dataclass(frozen=True, slots=True)
class Fit:
    """How far the counts of draws are from what their law expects, in standard deviations."""

    deviation: float
    cells: int
    draws: int

    @property
    def follows(self) -> bool:
        """Whether the draws may be of that law."""
        return self.deviation < FAR


def fit(draws: Integers | Sequence[int], pmf: Callable[[int], float]) -> Fit:
    """Compare whole draws with the probabilities of a law.

    Accuracy: the cube root of chi-square over its degrees of freedom is nearly normal (Wilson and Hilferty): 6 of its
    deviations are 6 true ones for many cells and up to 6.7 for two, so no false alarm is likelier than said.
    """
    found = np.asarray(draws, dtype=np.int64).ravel()
    if found.size < 100:
        raise QuestionError("too-few-rows", "A fit needs a hundred draws or more.")
    counts: list[float] = []
    expected: list[float] = []
    low, high = int(found.min()), int(found.max())
    seen = np.bincount(found - low, minlength=high - low + 1)
    mass = np.array([pmf(z) for z in range(low, high + 1)]) * found.size
    count, wanted = 0.0, 0.0
    for here, likely in zip(seen, mass, strict=True):
        count, wanted = count + float(here), wanted + float(likely)
        if wanted >= MIN_EXPECTED_DRAWS:
            counts.append(count)
            expected.append(wanted)
            count, wanted = 0.0, 0.0
    rest = max(found.size - math.fsum(expected), 1e-9)  # both ends and what lies beyond them
    if rest >= MIN_EXPECTED_DRAWS or not expected:
        counts.append(count)
        expected.append(rest)
    else:
        counts[-1] += count
        expected[-1] += rest
    if len(counts) < 2:
        return Fit(0.0 if abs(counts[0] - found.size) < 0.5 else math.inf, 1, int(found.size))
    square = math.fsum((c - e) ** 2 / e for c, e in zip(counts, expected, strict=True))
    free = len(counts) - 1
    deviation = ((square / free) ** (1.0 / 3.0) - (1.0 - 2.0 / (9.0 * free))) / math.sqrt(2.0 / (9.0 * free))
    return Fit(deviation, len(counts), int(found.size))
