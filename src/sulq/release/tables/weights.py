"""How finely each coefficient is asked: whole factors in front of the basis vectors.

A coefficient that many marginals share is worth more noise-free than one that few do. Let s_b be the
noise of interaction b's coefficients (scaled to equal length), D_b their number, n_b how many of the
asked marginals hold b. The squared error of a marginal's cells, times its number of cells squared,
is the sum of D_b s_b^2 over its subsets [S3.16], so over all marginals it is the sum of D_b n_b s_b^2.
Under rho, the price is the sum of D_b/(2 s_b^2): least error at s_b^2 proportional to n_b^(-1/2).
Under epsilon, the price is the sum of L_b/s_b, L_b the L1 norm of a row's coefficients: least error at
s_b proportional to (L_b/(D_b n_b))^(1/3). `even`: the paper's own, all s_b alike [S3.17].
Whole factors keep every sum exact; they only steer the noise, so rounding them costs nothing but a little of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, Literal

import numpy as np

from sulq.language.kinds import Integers
from sulq.release.tables.basis import lengths, reach
from sulq.release.tables.interactions import Places, cells, width

Weights = Literal["best", "even"]
FINE: Final = 16  # the smallest factor, where they differ


def factors(
    wanted: Mapping[Places, int], sizes: Sequence[int], weights: Weights, *, pure: bool
) -> dict[Places, Integers]:
    """A factor for each coefficient of each interaction."""
    alike = {part: (tuple(sizes[place] for place in part), count) for part, count in wanted.items()}
    wish = {
        kind: np.sqrt(cells(part, sizes) / lengths(kind[0])) / _noise(part, kind[1], sizes, weights, pure=pure)
        for part, kind in {kind: (part, kind) for part, kind in alike.items()}.values()
    }
    least = min(float(wished.min()) for wished in wish.values() if wished.size)
    most = max(float(wished.max()) for wished in wish.values() if wished.size)
    fine = 1 if most / least < 1 + 1e-9 else FINE
    found = {kind: np.rint(wished / least * fine).astype(np.int64) for kind, wished in wish.items()}
    for each in found.values():
        each.setflags(write=False)  # interactions of the same sizes share it
    return {part: found[kind] for part, kind in alike.items()}


def _noise(part: Places, count: int, sizes: Sequence[int], weights: Weights, *, pure: bool) -> float:
    """How noisy an interaction's coefficients should be, up to a common factor."""
    if weights == "even":
        return 1.0
    if not pure:
        return float(count**-0.25)
    moved = math.prod(reach(sizes[place]) for place in part)
    return float((moved / (max(width(part, sizes), 1) * count)) ** (1 / 3)) or 1.0
