"""A choice: how far one person moves its scores, and the law that hides it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Literal

from sulq.compile.plan.draft import PlanDraft, Reach
from sulq.compile.plan.scale import root_of, scale_of
from sulq.kernel.mechanisms import cost_of
from sulq.kernel.scores import candidates, span
from sulq.language.law import ExponentialLaw, FlipLaw
from sulq.language.privacy import Draw
from sulq.language.score import Score, form


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
    """Permute-and-flip for an epsilon, the exponential mechanism for a rho, no noisier than must be (SR4)."""
    if draft.score is None:
        raise AssertionError("a choice is made by a score")
    options = candidates(form(draft.score), draft.blocks, draft.cells // draft.answered, draft.answered)
    reaches = draft.reaches[0].values()
    law: FlipLaw | ExponentialLaw
    if norm == "l1":
        move = max(reach.l1 for reach in reaches) or Fraction(1)  # what nobody moves is hidden like any other (T19)
        law = FlipLaw(scale_of(move / paid), options)
    else:
        move = max(reach.l2_squared for reach in reaches) or Fraction(1)
        law = ExponentialLaw(scale_of(root_of(move / (8 * paid))), options)
    draw = Draw(law.kind, draft.facts.unit.neighbors, norm, move, law.scale, Fraction(1), draft.answered)
    cost = cost_of(draw)
    spent = cost.epsilon if norm == "l1" else cost.rho
    if spent is None or spent > paid:
        raise AssertionError("calibration would cost more than the spend")
    return replace(draft, laws=(law,), refine=(0,), norm=norm, draws=(draw,))
