"""Functions of rows that need not be sums: an estimate of each block of people, averaged; and the owner's own.

Privacy: of `Aggregated`, a block is a public hash of the person, so a person's rows are in one block, and whatever a
function of one block's rows gives one estimate moves, within its bounds: high - low. Under replace_one another block
takes the person who comes: twice that (SR11). How many rows a person has does not count. How many a block has is told
to the estimator alone.
Of `Certified`, what the owner's certificate says for a row [DMNS06, Lemma 1; S4.13, E41]; only where tables that
differ have as many rows, each in its place: a missing cell is NaN there, and no row is left out.
What an owner's function gives is cut off at the bounds; an error, or what is no number, counts as the middle, and
nothing it prints or logs is heard (SR5, T31). That it is a function of its argument alone is the owner's word, tried
out on made-up rows (`owned.py`).
Source: docs/theory/holistic.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

import numpy as np

from sulq.curator.statistics.figure import Figure, Move
from sulq.curator.statistics.owned import Function, given, hushed
from sulq.terms.domain import grid_for
from sulq.terms.engine import BLANK, Block
from sulq.terms.estimator import Certificate
from sulq.terms.kinds import Floats, Integers
from sulq.terms.statistic import Aggregated

BITS: Final = 22  # an estimate has this many units between zero and its farther bound


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
"""Estimators that sulq brings; of an empty or constant block some have nothing to say, and the middle is taken."""


def _ends(low: float, high: float) -> tuple[Fraction, int, int]:
    """One unit of an estimate, and its bounds in units, widened outwards."""
    ends = Fraction(low), Fraction(high)
    step = grid_for(max(map(abs, ends)), BITS)
    return step, math.floor(ends[0] / step), math.ceil(ends[1] / step)


def figure(asked: Aggregated, _blocks: tuple[Block, ...], _rows: int) -> Figure:
    """How far one person moves the sum of the blocks' estimates; a unit of their average is a unit over the blocks."""
    step, low, high = _ends(asked.low, asked.high)
    return Figure(step / asked.blocks, 1, Move.of(high - low), Move.of(2 * (high - low)))


def exact(asked: Aggregated, blocks: tuple[Block, ...], rows: Integers, own: Mapping[str, Function]) -> Integers:
    """The sum of all blocks' estimates, in units. Rows of a block are sorted: their order is no part of the data."""
    _, function = OWN.get(asked.estimator) or (0, own[asked.estimator])
    ends = _ends(asked.low, asked.high)
    rows = rows[np.lexsort(rows.T[::-1])]  # by block, then by the columns
    values = _values(blocks[1:], rows[:, 1:])
    edges = np.searchsorted(rows[:, 0], np.arange(asked.blocks + 1))
    with hushed():
        found = [_estimate(function, values[i:j], ends) for i, j in itertools.pairwise(edges)]
    return np.array([sum(found)], dtype=np.int64)


def certified_figure(certificate: Certificate, rows: int) -> Figure:
    """How far one person moves a certified function, in units, rounded up; no farther than its bounds are apart."""
    step, low, high = _ends(certificate.low, certificate.high)
    one = math.ceil(Fraction(certificate.sensitivity) / step) + 1  # each of two values is rounded by half a unit
    moved = min(rows * one, high - low)
    return Figure(step, 1, Move.of(moved), Move.of(moved))


def certified(certificate: Certificate, blocks: tuple[Block, ...], rows: Integers, function: Function) -> Integers:
    """The owner's function of all rows, in their order, in units; where a cell is missing it is given NaN."""
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    ends = _ends(certificate.low, certificate.high)
    with hushed():
        found = _estimate(function, _values(blocks[1:], rows[:, 1:]), ends)
    return np.array([found], dtype=np.int64)


def _values(blocks: tuple[Block, ...], rows: Integers) -> Floats:
    """Cells in their own measure: exact doubles."""
    found: Floats = rows * np.array([float(block.step) for block in blocks])
    found[rows == BLANK] = math.nan
    return found


def _estimate(function: Function, values: Floats, ends: tuple[Fraction, int, int]) -> int:
    """An estimate in units, within its bounds whatever the function does."""
    step, low, high = ends
    found = given(function, values)
    if found is None:
        return (low + high) // 2
    return int(np.clip(math.floor(np.clip(found / float(step), low, high) + 0.5), low, high))
