"""How far the points of a space are from an exact value, and how far one person moves those distances.

Privacy: a distance that is a metric on whole vectors moves by no more than the value does, in that metric
[DMNS06, Theorem 2; S4.15]. Values are cut off at the farthest a point may be, which moves no two apart.
Source: docs/theory/metric.md.
"""

from __future__ import annotations

import numpy as np

from sulq.curator.statistics.figure import Move
from sulq.terms.kinds import Integers
from sulq.terms.space import FARTHEST, Box, Points


def moved(space: Points | Box, move: Move, stride: int) -> int:
    """How far one person moves a point's distance, in units; of a circle, no farther than half of it."""
    match space.distance:
        case "l1":
            return move.l1
        case "linf":
            return move.most
        case "hamming":
            return move.bits
        case "discrete":
            return min(move.l1, 1)
        case "circle":
            return min(move.l1, space.size * stride // 2)


def distances(space: Points | Box, points: Integers, value: Integers, stride: int) -> Integers:
    """Of each point the distance from the value, in units."""
    apart: Integers = np.abs(points - np.clip(value, -FARTHEST, FARTHEST))
    found: Integers = apart[:, 0]  # of one number, all it is
    match space.distance:
        case "l1":
            found = apart.sum(axis=1)
        case "linf":
            found = np.maximum.reduce(apart, axis=1)
        case "hamming":
            found = (apart > 0).sum(axis=1).astype(np.int64)
        case "discrete":
            found = np.minimum((apart > 0).sum(axis=1), 1).astype(np.int64)
        case "circle":
            around = found % (space.size * stride)
            found = np.minimum(around, space.size * stride - around)
    return found
