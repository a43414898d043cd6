"""Variances from the eigenvalues of a noisy matrix, with what the noise adds to them taken away.

Independent noise in a symmetric matrix spreads its eigenvalues: the largest are too large on average, and of a matrix
of noise alone they are not zero. How far follows from the deviation of the noise and from public chance.

Nothing here sees a row: it reads released numbers, the deviation of their noise and public facts.
Source: indirect inference (Gourieroux, Monfort and Renault 1993); without noise the eigenvalues stay what they are.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from sulq.language.kinds import Floats
from sulq.learn.noisy_sums import public

ROUNDS: Final = (3, 12)  # at least, for wide matrices, and at most
COORDINATES: Final = 400  # of made-up matrices of noise, together; one matrix at least


def variances(eigenvalues: Floats, noise: float) -> Floats:
    """The numbers that, as a diagonal matrix with such noise in each place, have these eigenvalues on average.

    They are as many, the largest first, and none is below zero. Where noise hides which of several is larger they are
    equal.
    """
    found, d = np.maximum(eigenvalues, 0.0), len(eigenvalues)
    if noise <= 1e-9 * float(found.max(initial=0.0)):
        return found
    drawn = public(d).normal(size=(max(1, COORDINATES // d), d, d)) * noise
    several = np.triu(drawn) + np.transpose(np.triu(drawn, 1), (0, 2, 1))
    for _ in range(min(max(ROUNDS[0], 6 * COORDINATES // d), ROUNDS[1])):
        told = np.linalg.eigvalsh(several + np.diag(found)).mean(axis=0)[::-1]
        found = np.maximum(_falling(found + eigenvalues - told), 0.0)
    return found


def enlarged(found: Floats, spread: float, error: float) -> Floats:
    """Variances of shortened rows, made to add up to the spread of the rows as far as that stands out from its error.

    The part of the gap that its error explains stays: (1 - e^2/gap^2) of it is believed (James and Stein).
    """
    total = float(found.sum())
    gap = spread - total
    if total <= 0 or gap <= error:
        return found
    return np.asarray(found * (1 + (gap - error**2 / gap) / total))


def _falling(values: Floats) -> Floats:
    """The nearest numbers that never rise: neighbours that do are averaged."""
    sums: list[tuple[float, int]] = []
    for value in values.tolist():
        sums.append((value, 1))
        while len(sums) > 1 and sums[-2][0] * sums[-1][1] < sums[-1][0] * sums[-2][1]:
            (a, m), (b, n) = sums[-2:]
            sums[-2:] = [(a + b, m + n)]
    return np.repeat([total / many for total, many in sums], [many for _, many in sums])
