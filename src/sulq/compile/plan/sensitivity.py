"""How far one person moves the sums of each block, in each norm, for each way of moving them."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from sulq.compile.plan.above import moves
from sulq.compile.plan.choice import spans
from sulq.compile.plan.draft import PlanDraft, Reach
from sulq.compile.plan.threshold import people
from sulq.compile.statistics.sums import Extent, extent
from sulq.language.question import OpenSums


def sensitivity(draft: PlanDraft) -> PlanDraft:
    """Combine a row's extent with the number of rows and the relation (SR1, SR13, SPEC X1).

    k rows multiply every norm by k, not by its root: a person may own k equal rows.
    `apart` touches two cells, each as `single` does. A partition multiplies nothing
    else, because a person has at most k rows over all its cells together.
    """
    if draft.score is not None:
        return spans(draft, draft.score)
    if draft.thresholds is not None:
        return moves(draft)
    pairs = "pair" in draft.ways
    extents = tuple(extent(block, draft.schema, pairs=pairs) for block in draft.blocks)
    reaches = tuple({way: _reach(found, way, draft.rows) for way in draft.ways} for found in extents)
    coordinates = tuple(_coordinate(found, draft.ways) * draft.rows for found in extents)
    if isinstance(draft.question, OpenSums):
        reaches = (people(draft), *reaches)
    return replace(draft, reaches=reaches, coordinates=coordinates)


def _reach(found: Extent, way: str, rows: int) -> Reach:
    if way == "pair":
        return Reach(Fraction(found.pair_l1 * rows), Fraction(found.pair_l2_squared * rows**2))
    cells = 2 if way == "apart" else 1
    return Reach(Fraction(found.single_l1 * rows * cells), Fraction(found.single_l2_squared * rows**2 * cells))


def _coordinate(found: Extent, ways: tuple[str, ...]) -> int:
    return max(found.pair_coordinate if way == "pair" else found.single_coordinate for way in ways)


def root_up(square: Fraction) -> Fraction:
    """A rational just above the square root, for showing an L2 sensitivity."""
    scaled = math.isqrt(math.ceil(square * 2**80)) + 1
    return Fraction(scaled, 2**40)
