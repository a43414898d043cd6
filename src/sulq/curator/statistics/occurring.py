"""Which combinations of labels occur in the table: a bit each.

Privacy: a row has one combination, and alone decides about no other: k rows move k bits at most, an exchange 2k.
Source: docs/theory/metric.md.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

import numpy as np

from sulq.curator.statistics.figure import Figure, Move, limit
from sulq.terms.engine import Block
from sulq.terms.kinds import Integers
from sulq.terms.statistic import Occurring

MOST_COMBINATIONS: Final = 2**20


def figure(_asked: Occurring, blocks: tuple[Block, ...], rows: int) -> Figure:
    """How many bits one person moves."""
    size = math.prod(_shape(blocks))
    limit(size, MOST_COMBINATIONS, "What occurs among combinations")
    one, two = min(rows, size), min(2 * rows, size)
    return Figure(Fraction(1), size, Move(one, one, 1, one), Move(two, two, 1, two))


def exact(_asked: Occurring, blocks: tuple[Block, ...], rows: Integers) -> Integers:
    """A bit for each combination, the last column's values fastest."""
    shape = _shape(blocks)
    lows = np.array([block.low[0] for block in blocks])
    found = np.zeros(math.prod(shape), dtype=np.int64)
    found[np.ravel_multi_index(tuple((rows - lows).T), shape)] = 1
    return found


def _shape(blocks: tuple[Block, ...]) -> tuple[int, ...]:
    return tuple(block.high[0] - block.low[0] + 1 for block in blocks)
