"""Open keys: noise for the people and the values of each group, and the threshold a group must pass (SR14)."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from sulq.compile.plan.draft import PlanDraft, Reach
from sulq.compile.plan.scale import root_of, scale_of
from sulq.errors import QuestionError
from sulq.kernel.mechanisms import cost_of
from sulq.language.law import GaussianLaw, Law, PassedLaw
from sulq.language.privacy import Draw


def people(draft: PlanDraft) -> dict[str, Reach]:
    """How far one person moves the numbers of people: by one in each of up to k groups, whatever the rows."""
    moves = {"single": draft.rows, "pair": 0, "apart": 2 * draft.rows}
    return {way: Reach(Fraction(moves[way]), Fraction(moves[way])) for way in draft.ways}


def alone(draft: PlanDraft) -> int:
    """How many groups can owe their being in the data, or out of it, to one person: k, and under replace_one 2k."""
    return draft.rows * (2 if draft.facts.unit.neighbors == "replace_one" else 1)


def threshold(draft: PlanDraft, rho: Fraction) -> PlanDraft:
    """Discrete Gaussian noise on the people and the values; the least threshold that key_delta allows.

    Privacy: a group that one person alone is in has one person, and passes if the noise
    is `threshold` or more. There are at most `alone` such groups, so with probability
    1 - key_delta none passes; then the release is that of the groups both neighbours
    have, whose loss is rho: together key_delta-approximate rho-zCDP [BS16, Definition 8.1].
    Source: docs/theory/open-keys.md.
    """
    moves = [{way: reach.l2_squared for way, reach in ways.items()} for ways in draft.reaches]
    moves = [ways if any(ways.values()) else dict.fromkeys(ways, Fraction(1)) for ways in moves]
    asked = draft.question.shares or (Fraction(1),) * len(moves)
    wide = [max(ways.values()) * sum(asked) / (2 * share * rho) for ways, share in zip(moves, asked, strict=True)]
    used = max(sum(ways[way] / (2 * var) for ways, var in zip(moves, wide, strict=True)) for way in draft.ways)
    scales = [scale_of(root_of(variance * used / rho)) for variance in wide]
    found = PassedLaw(scales[0], least_threshold(scales[0], draft.key_delta, alone(draft)))
    laws = tuple(GaussianLaw(scale) for scale in scales[1:])
    hidden: list[Law] = [found, *laws]
    unit, steps = draft.facts.unit, [Fraction(1), *(block.step for block in draft.blocks)]
    draws = tuple(
        Draw(law.kind, unit.neighbors, "l2", max(ways.values()), scale, step, 0)
        for law, scale, ways, step in zip(hidden, scales, moves, steps, strict=True)
    )
    draws = (replace(draws[0], threshold=found.threshold, alone=alone(draft)), *draws[1:])
    cost = [cost_of(draw) for draw in draws]
    total = max(
        sum(ways[way] / (2 * scale**2) for ways, scale in zip(moves, scales, strict=True)) for way in draft.ways
    )
    if total > rho or cost[0].key_delta > draft.key_delta or any(item.rho is None for item in cost):
        raise AssertionError("calibration would cost more than the spend")
    return replace(draft, laws=laws, refine=(0,) * len(laws), norm="l2", draws=draws, people=found)


def least_threshold(scale: Fraction, key_delta: Fraction, groups: int) -> int:
    """Smallest whole threshold that none of so many groups of one person passes, but for key_delta (T25).

    One person and the noise z pass if 1 + z > threshold, that is z >= threshold.
    """
    each = 2 * key_delta / groups  # both tails
    beta = float(each)
    while Fraction(beta) > each:
        beta = math.nextafter(beta, 0.0)
    if beta < 1e-300:
        raise QuestionError("bad-loss", "This delta is too small to be told apart from none.")
    return GaussianLaw(scale).accuracy(min(beta, 0.5)) + 1
