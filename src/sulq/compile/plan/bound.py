"""Kinds to integer blocks: each value gets bounds and a grid, or the question is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from sulq.compile.plan.draft import PlanDraft
from sulq.errors import QuestionError
from sulq.kernel.scores import candidates
from sulq.language.domain import Schema
from sulq.language.kinds import HUGE, Grid
from sulq.language.rowfn import RowFn
from sulq.language.rowfn.vectors import MAX_BITS, bounded, reach, scalar_grid
from sulq.language.score import form
from sulq.language.tally import Block

MAX_SUMS = 2**24
MAX_THRESHOLD_UNITS = 2**60  # a threshold, in units: sums are clamped beyond it, so that none changes sides (T5)
MAX_TERM_UNITS = 2 ** (2 * MAX_BITS)  # the largest term of a sum: a product of two coordinates (SR17)


def bound(draft: PlanDraft) -> PlanDraft:
    """Fix the grid of each value from public facts, the same on every engine (SR17)."""
    blocks = tuple(_block(fn, draft.schema) for fn in draft.question.values)
    if draft.cells * sum(block.width for block in blocks) > MAX_SUMS:
        raise QuestionError("too-large", f"The answer would hold more than {MAX_SUMS} numbers.")
    if draft.score is not None:
        options = candidates(form(draft.score), blocks, draft.cells // draft.answered, draft.answered)
        if draft.answered * options > MAX_SUMS:
            raise QuestionError("too-large", f"The choices would have more than {MAX_SUMS} candidates.")
    thresholds = None if draft.levels is None else _thresholds(draft.levels, blocks[0], draft.cells)
    return replace(draft, blocks=blocks, thresholds=thresholds)


def _thresholds(levels: tuple[Fraction, ...], block: Block, cells: int) -> tuple[int, ...]:
    """Thresholds in whole units: a sum of units reaches a level exactly if it reaches the next unit above it."""
    sums = cells * block.width
    if len(levels) not in (1, sums):
        raise QuestionError("bad-question", f"There are {len(levels)} thresholds for {sums} sums.")
    units = tuple(math.ceil(level / block.step) for level in levels)
    if max(map(abs, units)) > MAX_THRESHOLD_UNITS:
        raise QuestionError("too-large", "A threshold is farther out than any sum can be.")
    return units


def _block(fn: RowFn, schema: Schema) -> Block:
    kind = fn.kind(schema)
    if isinstance(kind, Grid):
        if reach(kind) > MAX_TERM_UNITS or reach(kind) * kind.step > HUGE:
            raise QuestionError("too-large", "A coordinate has too many units, or is too large, to be summed.")
        return Block(fn, kind.step, kind.low, kind.high, vector=True)
    lo, hi, number = bounded(fn, schema)
    step, low, high = scalar_grid(lo, hi, number.step)
    return Block(fn, step, (low,), (high,), vector=False)
