"""How long rows are: one noisy histogram for the ball that most of them lie in, however many numbers there are.

A window for each number takes a histogram of each, and the spend is divided among them; of few rows and many numbers
they are all noise. The length of a row lies in one part of one histogram, so the whole of a look goes to it. It tells
less, one radius for all numbers about the middle of their bounds; but noise follows the radius, in sums as it is and in
products squared.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from sulq.answers.released import Released
from sulq.language.question import Sums
from sulq.language.rowfn import Bins, Dot, Lit, Power, Vector
from sulq.learn.linear.windows import Design

RADII: Final = tuple(2.0 ** (-j / 2) for j in range(10, -1, -1))  # of the corner of the windows, from 1/32 to 1
WITHIN: Final = 0.7  # of the rows, that the ball holds as they are; the others keep their direction


def lengths(design: Design) -> Sums:
    """How many rows are as long as each part says, as a part of the way from the middle of all windows to a corner."""
    d = len(design.numbers)
    squares = Vector(tuple(Power(window.row, 2) for window in design.numbers), 15)
    edges = (0.0, *(radius**2 * d for radius in RADII[:-1]), float(d))
    return Sums((Lit(1),), by=(Bins(Dot(squares, (1,) * d).clip(0, d), edges),))


def radius(histogram: Released, total: float) -> float:
    """The least radius that seems to hold WITHIN of the rows; 1, which holds all, where none does.

    How many rows a radius holds is told by the parts within it or, with less noise where these are fewer, by all
    rows less those of the parts beyond. Where noise is all there is, so is the radius: shortened rows keep their
    direction, and sums that are noise at one radius are noise at another.
    """
    counts = histogram.values()[:, 0]
    parts = np.arange(1, len(counts) + 1)
    inside, beyond = np.cumsum(counts), len(counts) - parts
    held = np.where(parts <= beyond, inside, total - (counts.sum() - inside))
    return min([r for r, rows in zip(RADII, held.tolist(), strict=True) if rows >= WITHIN * total], default=1.0)
