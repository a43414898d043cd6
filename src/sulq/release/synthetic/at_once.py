"""All marginals asked at once, in one question, where that is foreseen to be near enough.

Choosing what to measure pays where there is far more to measure than the spend is good for. Where there is
not, every choice is a part of the spend lost, and a fit that believes answers as far as they stand out of the noise
leaves little to choose. Which of the two it is follows from public facts, the noise of each way to ask them all, and a
noisy number of rows; nothing else of the data is looked at.

The ways are those of contingency tables: the coefficients of the marginals, those that more of them share with less
noise (under Gaussian noise that is never worse than asking the marginals themselves), the marginals, and all cells.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Final

from sulq.answers.oracle import SpendPlan
from sulq.errors import QuestionError
from sulq.language.question import Sums
from sulq.language.rowfn import Lit
from sulq.release.space import MAX_KEYS, CellSpace, closes
from sulq.release.synthetic.models import MeasuredMarginal, TableModel
from sulq.release.synthetic.rounds import FinishedRun
from sulq.release.tables.fitting import fit
from sulq.release.tables.interactions import Places
from sulq.release.tables.methods import Method, Wish, method_of, refuse
from sulq.release.tables.noisy_tables import distance, variance

SIZE_PART: Final = Fraction(1, 50)  # of the spend, for the number of rows (SR6)
NEAR_ROWS_PART: Final = 0.5  # of the rows: the foreseen distance of a marginal up to which all are asked at once
MAX_MODEL_CELLS: Final = 2**22


def ask_at_once(
    spending: SpendPlan, space: CellSpace, asked: tuple[Places, ...], most: int, ready: Callable[[], None]
) -> FinishedRun | None:
    """Ask for all marginals at once where the table has `most` cells or fewer and that is near enough, else for none.

    It is near enough where a marginal is expected to be off by no more than a part of the rows (NEAR). Of the spend a
    fiftieth is gone for the number of rows where that is not declared, and all of it where the marginals were asked.

    `ready` is called before the number of rows is asked, after which there may be rounds instead: it refuses what
    those would be refused for, while nothing is paid.
    """
    known = spending.facts.size  # it decides alone: how many rows are complete, the answers say
    part = Fraction(1) if known is not None else 1 - SIZE_PART
    fits = space.cells <= min(most, MAX_MODEL_CELLS) and closes(asked)
    best = _nearest(spending, Wish.by(spending, space, asked), part) if fits else None
    if best is None:
        return None
    far, way = best
    counted: MeasuredMarginal | None = None
    if known is None:
        ready()
        spending.plan(2)
        counted = MeasuredMarginal.of(spending.one(Sums((Lit(1),), space.complete), SIZE_PART), (), space)
    if far > NEAR_ROWS_PART * (float(counted.values) if counted else float(known or 0)):
        return None
    found = way.read(way.asked(spending, part)).coefficients(asked)
    if counted:
        found = found.counted(float(counted.values), counted.error)
    model = TableModel(fit(found).table(space.sizes))
    spread = {places: float(variance(found, places).mean()) ** 0.5 for places in asked}
    measured = tuple(MeasuredMarginal(places, found.marginal(places), spread[places]) for places in asked)
    return FinishedRun(model, float(found.values[()][0]), measured)


def _nearest(spending: SpendPlan, wish: Wish, part: Fraction) -> tuple[float, Method] | None:
    """The way to ask whose marginals are foreseen to be nearest, and how far off they are; from public facts alone."""
    names = ["cells"] if len(wish.sizes) <= MAX_KEYS else []
    found: list[tuple[float, Method]] = []
    for name in (*names, "fourier-shift", "marginals"):
        if refuse(wish, name):
            continue
        way = method_of(name, wish)
        try:
            noise = way.foreseen(spending.foresee(way.question, part))
        except QuestionError:
            continue
        found.append((distance(noise.coefficients(wish.marginals), wish.marginals), way))
    return min(found, key=lambda each: each[0], default=None)
