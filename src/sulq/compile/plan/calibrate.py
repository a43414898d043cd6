"""The spend to noise: laws just wide enough, and the event they cost."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from sulq.compile.plan.above import above
from sulq.compile.plan.choice import choice
from sulq.compile.plan.draft import PlanDraft, Reach
from sulq.compile.plan.scale import root_of, scale_of
from sulq.compile.plan.threshold import threshold
from sulq.errors import QuestionError
from sulq.kernel.mechanisms import priced
from sulq.language.law import BinomialLaw, GaussianLaw, LaplaceLaw, Law
from sulq.language.privacy import Draw, Epsilon, EpsilonDelta, Queries, Rho, SubLinear
from sulq.language.sublinear import noise_for
from sulq.language.tally import Block


def calibrate(draft: PlanDraft) -> PlanDraft:
    """Choose the law of each block; the spend's type chooses the family (SR3)."""
    if isinstance(draft.facts.budget, SubLinear):
        return _sublinear(draft, draft.facts.budget)
    if isinstance(draft.spend, Epsilon):
        if draft.thresholds is not None:
            return above(draft, draft.spend.exact, pure=True)
        return _laplace(draft, draft.spend.exact) if draft.score is None else choice(draft, draft.spend.exact, "l1")
    if isinstance(draft.spend, (Rho, EpsilonDelta)):
        rho = draft.spend.exact if isinstance(draft.spend, Rho) else draft.spend.rho
        if rho <= 0:
            raise QuestionError("too-little-noise", "This spend holds no zero-concentrated loss at all.")
        if draft.score is not None:
            return choice(draft, rho, "l2")
        if draft.thresholds is not None:
            return above(draft, rho, pure=False)
        return _gaussian(draft, rho) if draft.key_delta == 0 else threshold(draft, rho)
    raise QuestionError("spend-kind", "This budget does not take that spend.")


def _shares(draft: PlanDraft) -> list[Fraction]:
    """The part of the loss each block may use: as asked, or evenly."""
    asked = draft.question.shares or (Fraction(1),) * len(draft.blocks)
    total = sum(asked)  # once: a question may have tens of thousands of blocks
    return [Fraction(share) / total for share in asked]


def _moves(draft: PlanDraft, pick: Callable[[Reach], Fraction]) -> list[dict[str, Fraction]]:
    """Each block's move by way; of a block that cannot move, one unit: nothing goes without noise (T8, T19)."""
    moves = [{way: pick(reach) for way, reach in ways.items()} for ways in draft.reaches]
    return [ways if any(ways.values()) else dict.fromkeys(ways, Fraction(1)) for ways in moves]


def _laplace(draft: PlanDraft, epsilon: Fraction) -> PlanDraft:
    """Discrete Laplace of scale l1/(share*epsilon), tightened to the worst way as a whole.

    Privacy: the log-ratio of two releases is at most the sum over blocks of
    move/scale for the way the person moved, so the loss is the largest such sum.
    """
    moves = _moves(draft, lambda reach: reach.l1)
    wide = [max(ways.values()) / (share * epsilon) for ways, share in zip(moves, _shares(draft), strict=True)]
    used = max(sum(ways[way] / scale for ways, scale in zip(moves, wide, strict=True)) for way in draft.ways)
    laws = tuple(LaplaceLaw(scale_of(scale * used / epsilon)) for scale in wide)
    return _finish(draft, laws, moves, norm="l1", paid=epsilon)


def _gaussian(draft: PlanDraft, rho: Fraction) -> PlanDraft:
    """Discrete Gaussian of variance l2^2/(2*share*rho), tightened to the worst way as a whole."""
    moves = _moves(draft, lambda reach: reach.l2_squared)
    wide = [max(ways.values()) / (2 * share * rho) for ways, share in zip(moves, _shares(draft), strict=True)]
    used = max(sum(ways[way] / (2 * var) for ways, var in zip(moves, wide, strict=True)) for way in draft.ways)
    laws = tuple(GaussianLaw(scale_of(root_of(variance * used / rho))) for variance in wide)
    return _finish(draft, laws, moves, norm="l2", paid=rho)


def _finish(
    draft: PlanDraft, laws: tuple[Law, ...], moves: list[dict[str, Fraction]], *, norm: str, paid: Fraction
) -> PlanDraft:
    """Check that the price of the rounded scales is within what is paid, and write the draws down."""
    cost = max(sum(priced(law, ways[way]) for law, ways in zip(laws, moves, strict=True)) for way in draft.ways)
    if cost > paid:
        raise AssertionError("calibration would cost more than the spend")
    draws = tuple(
        _draw(draft, law, block, norm=norm, move=max(ways.values()))
        for law, ways, block in zip(laws, moves, draft.blocks, strict=True)
    )
    return replace(draft, laws=laws, refine=(0,) * len(laws), norm=norm, draws=draws)


def _draw(draft: PlanDraft, law: Law, block: Block, *, norm: str, move: Fraction, bits: int = 0) -> Draw:
    scale = Fraction(law.coins) if isinstance(law, BinomialLaw) else law.scale
    cells = draft.cells * block.width
    return Draw(law.kind, draft.facts.unit.neighbors, norm, move, scale, block.step / 2**bits, cells)


def _sublinear(draft: PlanDraft, budget: SubLinear) -> PlanDraft:
    """The SuLQ primitive: each scalar sum gets noise for sensitivity 1, scaled by its own (S0.5, SR8)."""
    laws: list[Law] = []
    refine: list[int] = []
    draws: list[Draw] = []
    norm = "l1"
    for block, coordinate in zip(draft.blocks, draft.coordinates, strict=True):
        move = max(coordinate, 1)
        coins = budget.calibration == "binomial"
        if coins and (block.step != 1 or (*block.low, *block.high) not in ((0, 1), (1, 1))):
            raise QuestionError("boolean-only", "Binomial noise would show a real sum's fraction as it is.")
        noise = noise_for(budget, draft.facts.size, sensitivity=move if coins else 1)
        bits = 0
        law: Law
        if noise.kind == "binomial":
            law = BinomialLaw(int(noise.scale))
        elif noise.kind == "laplace":
            law = LaplaceLaw(scale_of(move * noise.scale))
        else:
            norm = "l2"
            bits = max(0, math.ceil(math.log2(noise.units / float(move * noise.scale))))
            law = GaussianLaw(scale_of(move * 2**bits * noise.scale))
        laws.append(law)
        refine.append(bits)
        moved = Fraction(move * 2**bits) ** (2 if norm == "l2" else 1)
        draws.append(_draw(draft, law, block, norm=norm, move=moved, bits=bits))
    return replace(draft, laws=tuple(laws), refine=tuple(refine), norm=norm, draws=tuple(draws))


def queries(draft: PlanDraft) -> Queries:
    """What a question costs under SubLinear: one for each scalar sum (S0.8, S0.9)."""
    return Queries(draft.cells * sum(block.width for block in draft.blocks))
