"""How far one person moves what is asked (`contribution`, `sensitivity`), and noise just wide enough for the spend.

Sums, choices (`spans`, `choice`), thresholds over many sums (`moves`, `above`) and open keys (`people`, `threshold`)
have each their own sensitivity and their own laws.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Literal

from sulq.compile.plan.draft import PlanDraft, Reach
from sulq.compile.plan.extent import Extent, extent
from sulq.errors import QuestionError
from sulq.kernel.mechanisms import cost_of, priced
from sulq.kernel.scores import candidates, span
from sulq.language.law import (
    LARGEST_SCALE,
    SMALLEST_SCALE,
    AboveLaw,
    BinomialLaw,
    ExponentialLaw,
    FlipLaw,
    GaussianLaw,
    LaplaceLaw,
    Law,
    MetricLaw,
    PassedGaussianLaw,
    PassedLaplaceLaw,
    round_up,
)
from sulq.language.privacy import Draw, Epsilon, EpsilonDelta, Queries, Rho, SubLinear
from sulq.language.question import OpenSums
from sulq.language.score import Score, form
from sulq.language.sublinear import COINS, noise_for
from sulq.language.tails import first
from sulq.language.tally import Block


def scale_of(scale: Fraction) -> Fraction:
    """The scale as the sampler takes it, a double, never less than asked for."""
    if not SMALLEST_SCALE <= scale <= LARGEST_SCALE:
        raise QuestionError("too-little-noise", "This spend calls for noise outside what the sampler holds.")
    return round_up(scale)


def root_of(square: Fraction) -> Fraction:
    """A rational just above the square root."""
    shift = max(0, 160 - (square.numerator.bit_length() - square.denominator.bit_length())) // 2
    root = math.isqrt(math.ceil(square * 4**shift))
    return Fraction(root + 1, 2**shift)


def contribution(draft: PlanDraft) -> PlanDraft:
    """Name the extreme moves of a person with up to k kept rows.

    `single`: k rows appear or vanish. `pair`: k rows change into k others of the
    same cell. `apart`: k rows leave one cell and k enter another, of those that are
    answered: within a choice a row moves between candidates as a `pair`. Between these
    lie all mixtures of fewer rows: a norm of the move is convex in how many rows
    go out and come in, so its maximum is at these corners. Exactly one row is
    always present only under replace_one where the row itself is the person and
    none can be dropped: a row whose person is NULL, or another's, is not kept.
    """
    unit = draft.facts.unit
    if unit.neighbors != "replace_one":
        ways: tuple[str, ...] = ("single",)
    else:
        present = unit.column is None and not draft.droppable
        ways = ("pair",) if present else ("single", "pair")
        if draft.answered != 1:
            ways = (*ways, "apart")
    rows = unit.rows if draft.shape is None else max(draft.shape.rows, 1)  # public rows get noise like any other
    return replace(draft, ways=ways, rows=rows)


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
        if draft.ways == ("single",):
            draft, reaches = replace(draft, ways=("gathered", "spread")), _gathered(reaches, draft.rows)
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


def spans(draft: PlanDraft, score: Score) -> PlanDraft:
    """Norms, over the choices, of the spans by which a person moves their scores.

    Privacy: k_g rows of choice g span at most k_g times what one row does; the k_g add up to
    k at most, a person's rows being shared by all choices, and their squares to k^2 (SR13).
    Source: docs/theory/choose.md.
    """
    found = span(form(score), draft.blocks, draft.cells // draft.answered)
    ways = {"single": (found.single, 1), "pair": (found.pair, 1), "apart": (found.single, 2)}
    reaches = {
        way: Reach(Fraction(draft.rows * moved * choices), Fraction((draft.rows * moved) ** 2 * choices))
        for way, (moved, choices) in ways.items()
        if way in draft.ways
    }
    return replace(draft, reaches=(reaches,))


def choice(draft: PlanDraft, paid: Fraction, norm: Literal["l1", "l2"]) -> PlanDraft:
    """Permute-and-flip for an epsilon, the exponential mechanism for a rho, no noisier than must be (SR4).

    Privacy: an exponential choice whose scores move with a span of D loses epsilon = D/scale too: its law is that of
    points whose distance is minus the score (docs/theory/choose.md).
    """
    if draft.score is None:
        raise AssertionError("a choice is made by a score")
    options = candidates(form(draft.score), draft.blocks, draft.cells // draft.answered, draft.answered)
    reaches = draft.reaches[0].values()
    law: FlipLaw | MetricLaw | ExponentialLaw
    if norm == "l1":
        move = max(reach.l1 for reach in reaches) or Fraction(1)  # what nobody moves is hidden like any other (T19)
        law = (MetricLaw if draft.exponential else FlipLaw)(scale_of(move / paid), options)
    else:
        move = max(reach.l2_squared for reach in reaches) or Fraction(1)
        law = ExponentialLaw(scale_of(root_of(move / (8 * paid))), options)
    draw = Draw(law.kind, draft.facts.unit.neighbors, norm, move, law.scale, Fraction(1), draft.answered)
    cost = cost_of(draw)
    spent = cost.epsilon if norm == "l1" else cost.rho
    if spent is None or spent > paid:
        raise AssertionError("calibration would cost more than the spend")
    return replace(draft, laws=(law,), refine=(0,), norm=norm, draws=(draw,))


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
    reaches = {way: _stream_reach(draft.rows, *ways[way]) for way in draft.ways}
    if not any(reach.l1 for reach in reaches.values()):
        reaches = {
            way: _stream_reach(1, 1, 1, 1) for way in reaches
        }  # what nobody moves is hidden like any other (T19)
    return replace(draft, reaches=(reaches,))


def _stream_reach(rows: int, l1: int, most: int, span: int) -> Reach:
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


def people(draft: PlanDraft) -> dict[str, Reach]:
    """How far one person moves the numbers of people: by one in each of up to k groups, whatever the rows."""
    moves = {"single": draft.rows, "pair": 0, "apart": 2 * draft.rows}
    return {way: Reach(Fraction(moves[way]), Fraction(moves[way])) for way in draft.ways}


def _gathered(reaches: tuple[dict[str, Reach], ...], rows: int) -> tuple[dict[str, Reach], ...]:
    """Of people and values: a person's k rows all of one group, or each of another.

    Privacy: in m groups they are one of the people of m, and the squares of their numbers of rows add up to
    (k - m + 1)^2 + m - 1 at most. The loss is convex in m, so it is largest at 1 or at k (docs/theory/open-keys.md).
    """
    people, *values = (ways["single"] for ways in reaches)
    found = [{"gathered": Reach(Fraction(1), Fraction(1)), "spread": people}]
    found += [{"gathered": value, "spread": Reach(value.l1, value.l2_squared / rows)} for value in values]
    return tuple(found)


def alone(draft: PlanDraft) -> int:
    """How many groups can owe their being in the data, or out of it, to one person: k, and under replace_one 2k."""
    return draft.rows * (2 if draft.facts.unit.neighbors == "replace_one" else 1)


def threshold(draft: PlanDraft, paid: Fraction, *, pure: bool) -> PlanDraft:
    """Laplace or Gaussian noise on the people and the values; the least threshold that key_delta allows.

    Privacy: but for a chance of key_delta what is released is possible on both of two neighbours, and its loss is the
    epsilon or rho of the groups both have [BS16, Definition 8.1].
    Source: docs/theory/open-keys.md.
    """
    moves = _moves(draft, lambda reach: reach.l1 if pure else reach.l2_squared)
    wide = _tightened(draft, moves, paid if pure else 2 * paid)
    scales = [scale_of(each if pure else root_of(each)) for each in wide]
    least = (least_laplace_threshold if pure else least_threshold)(scales[0], draft.key_delta, alone(draft))
    found = PassedLaplaceLaw(scales[0], least) if pure else PassedGaussianLaw(scales[0], least)
    laws = tuple(LaplaceLaw(scale) if pure else GaussianLaw(scale) for scale in scales[1:])
    hidden: list[Law] = [found, *laws]
    unit, steps = draft.facts.unit, [Fraction(1), *(block.step for block in draft.blocks)]
    draws = tuple(
        Draw(law.kind, unit.neighbors, found.norm, max(ways.values()), scale, step, 0)
        for law, scale, ways, step in zip(hidden, scales, moves, steps, strict=True)
    )
    draws = (replace(draws[0], threshold=least, alone=alone(draft)), *draws[1:])
    total = max(sum(priced(law, ways[way]) for law, ways in zip(hidden, moves, strict=True)) for way in draft.ways)
    if total > paid or cost_of(draws[0]).key_delta > draft.key_delta:
        raise AssertionError("calibration would cost more than the spend")
    return replace(draft, laws=laws, refine=(0,) * len(laws), norm=found.norm, draws=draws, people=found)


def _each(key_delta: Fraction, groups: int) -> float:
    """The chance that one of so many groups may have, rounded down."""
    each = key_delta / groups
    beta = float(each)
    while Fraction(beta) > each:
        beta = math.nextafter(beta, 0.0)
    if beta < 1e-300:
        raise QuestionError("bad-loss", "This delta is too small to be told apart from none.")
    return beta


def least_threshold(scale: Fraction, key_delta: Fraction, groups: int) -> int:
    """Smallest whole threshold that none of so many groups of one person passes, but for key_delta (T25).

    Noise is Gaussian and none of it past the threshold: one person passes if it is the threshold.
    """
    chance, low = _each(key_delta, groups), max(math.ceil(scale), 1)
    high = max(low, GaussianLaw(scale).accuracy(min(chance, 0.5)) + 1)  # where a whole tail is half as likely
    return first(lambda level: PassedGaussianLaw(scale, level).alone() <= chance, low, high)


def least_laplace_threshold(scale: Fraction, key_delta: Fraction, groups: int) -> int:
    """Likewise where noise is Laplace."""
    chance, low = _each(key_delta, groups), max(math.ceil(scale), 1)
    high = low + math.ceil(float(scale) * -math.log(chance)) + 1
    return first(lambda level: PassedLaplaceLaw(scale, level).alone() <= chance, low, high)


def calibrate(draft: PlanDraft) -> PlanDraft:
    """Choose the law of each block; the spend's type chooses the family (SR3)."""
    if isinstance(draft.facts.budget, SubLinear):
        return _sublinear(draft, draft.facts.budget)
    if isinstance(draft.spend, Epsilon):
        if draft.thresholds is not None:
            return above(draft, draft.spend.exact, pure=True)
        if draft.key_delta:
            return threshold(draft, draft.spend.exact, pure=True)
        return _laplace(draft, draft.spend.exact) if draft.score is None else choice(draft, draft.spend.exact, "l1")
    if isinstance(draft.spend, (Rho, EpsilonDelta)):
        rho = draft.spend.exact if isinstance(draft.spend, Rho) else draft.spend.rho
        if rho <= 0:
            raise QuestionError("too-little-noise", "This spend holds no zero-concentrated loss at all.")
        if draft.score is not None:
            return choice(draft, rho, "l2")
        if draft.thresholds is not None:
            return above(draft, rho, pure=False)
        return _gaussian(draft, rho) if draft.key_delta == 0 else threshold(draft, rho, pure=False)
    raise QuestionError("spend-kind", "This budget does not take that spend.")


def _tightened(draft: PlanDraft, moves: list[dict[str, Fraction]], paid: Fraction) -> list[Fraction]:
    """The move of each block over its share of what is paid, made as small as the worst way of moving them all allows.

    The shares are those asked for, or even ones.
    """
    asked = draft.question.shares or (Fraction(1),) * len(moves)
    total = sum(asked)  # once: a question may have tens of thousands of blocks
    shares = [Fraction(share) / total for share in asked]
    wide = [max(ways.values()) / (share * paid) for ways, share in zip(moves, shares, strict=True)]
    used = max(sum(ways[way] / scale for ways, scale in zip(moves, wide, strict=True)) for way in draft.ways)
    return [scale * used / paid for scale in wide]


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
    laws = tuple(LaplaceLaw(scale_of(scale)) for scale in _tightened(draft, moves, epsilon))
    return _finish(draft, laws, moves, norm="l1", paid=epsilon)


def _gaussian(draft: PlanDraft, rho: Fraction) -> PlanDraft:
    """Discrete Gaussian of variance l2^2/(2*share*rho), tightened to the worst way as a whole."""
    moves = _moves(draft, lambda reach: reach.l2_squared)
    laws = tuple(GaussianLaw(scale_of(root_of(variance))) for variance in _tightened(draft, moves, 2 * rho))
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
        coins = budget.calibration in COINS
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
