"""A threshold over many sums: how far one person moves them, and the noise that hides it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from sulq.compile.plan.draft import PlanDraft, Reach
from sulq.compile.plan.scale import root_of, scale_of
from sulq.compile.statistics.sums import extent
from sulq.kernel.mechanisms import cost_of, priced
from sulq.language.law import AboveLaw, LaplaceLaw, round_up
from sulq.language.privacy import Draw


def moves(draft: PlanDraft) -> PlanDraft:
    """How far a person moves one sum (R), how far apart two of them (the span S), and all together (L).

    Privacy: a row is in one cell. A number moves one sum there, so it spans no more than it
    moves; a vector's coordinates may rise and fall at once. All three are at most k
    times those of one row, or of one exchanged for another: a row leaves a cell and another
    enters one (`apart`), or both are of one cell (`pair`) (SR1, SR13).
    Source: docs/theory/above.md.
    """
    (block,) = draft.blocks
    found = extent(block, draft.schema)
    single, pair = found.single_coordinate, found.pair_coordinate
    rise, fall = max((0, *block.high)), -min((0, *block.low))
    one = block.width == 1
    ways = {
        "single": (found.single_l1, single, single if one else min(rise, single) + min(fall, single)),
        "pair": (found.pair_l1, pair, pair if one else 2 * pair),
        "apart": (2 * found.single_l1, single, 2 * single),
    }
    reaches = {way: _reach(draft.rows, *ways[way]) for way in draft.ways}
    if not any(reach.l1 for reach in reaches.values()):
        reaches = {way: _reach(1, 1, 1, 1) for way in reaches}  # what nobody moves is hidden like any other (T19)
    return replace(draft, reaches=(reaches,))


def _reach(rows: int, l1: int, most: int, span: int) -> Reach:
    return Reach(Fraction(rows * l1), Fraction(0), Fraction(rows * most), Fraction(rows * span))


def above(draft: PlanDraft, paid: Fraction, *, pure: bool) -> PlanDraft:
    """The narrower of two ways to hide the same: a noisy threshold, or none and noise for all sums together.

    Privacy: with noise on the threshold epsilon = R/threshold_scale + S/scale, without L/scale
    (docs/theory/above.md). For a rho, epsilon = sqrt(2 rho).
    Accuracy: of all scales of one price those with threshold_scale/scale = (R/S)^(1/3) have the least variance of
    the difference they decide by: the epsilons then are as 1 to (S/R)^(2/3) [LSL17]; to a sixteenth here.
    """
    (ways,), (block,) = draft.reaches, draft.blocks
    most, span = max(reach.most for reach in ways.values()), max(reach.span for reach in ways.values())
    ratio = Fraction(round(16 * float(most / span) ** (1 / 3)), 16)
    worst = max(ways.values(), key=lambda reach: reach.most / ratio + reach.span)
    shared = worst.most / ratio + worst.span
    apart = max(reach.l1 for reach in ways.values())
    alone = apart**2 <= shared**2 * (1 + ratio**2)
    move = apart if alone else shared
    scale = scale_of(move / paid if pure else root_of(move**2 / (2 * paid)))
    sums = draft.cells * block.width
    law = AboveLaw(scale, Fraction(0) if alone else round_up(ratio * scale), sums)
    draw = Draw(law.kind, draft.facts.unit.neighbors, "l1", apart if alone else worst.span, scale, block.step, sums)
    if not alone:
        draw = replace(draw, level=law.threshold_scale, most=worst.most)
    cost = cost_of(draw)
    spent = cost.epsilon if pure else cost.rho
    sampled = max(_sampled(law, reach) for reach in ways.values())
    if cost.epsilon is None or sampled > cost.epsilon or spent is None or spent > paid:
        raise AssertionError("calibration would cost more than the spend")
    return replace(draft, laws=(law,), refine=(0,), norm="l1", draws=(draw,))


def _sampled(law: AboveLaw, reach: Reach) -> Fraction:
    """The loss of one way of moving: the sum of what its draws cost."""
    if not law.threshold_scale:
        return priced(LaplaceLaw(law.scale), reach.l1)
    return priced(LaplaceLaw(law.scale), reach.span) + priced(LaplaceLaw(law.threshold_scale), reach.most)
