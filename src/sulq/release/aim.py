"""Synthetic data by an adaptive and iterative mechanism: AIM [MMSM22]."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

import numpy as np

from sulq.answers.call import timed
from sulq.answers.oracle import Oracle, Progress, SpendPlan
from sulq.display.progress import shows_progress
from sulq.forms.parameters import between, whole
from sulq.language.privacy import Loss
from sulq.release.space import CellSpace, closure
from sulq.release.synthetic.at_once import SIZE_PART, ask_at_once
from sulq.release.synthetic.data import MAX_ROWS, SyntheticData, chooses, published
from sulq.release.synthetic.models import BYTES_A_NUMBER
from sulq.release.synthetic.rounds import Candidate, MeasuringRounds, distance, max_groups, rehearse
from sulq.release.tables.interactions import Places

MAX_ROUNDS: Final = 10_000
CHOOSING: Final = Fraction(1, 10)  # of a round's part; the rest measures
FIRST: Final = Fraction(1, 3)  # at most, for the columns by themselves
ROUNDS: Final = 16  # a column, at first, where parts of rho are divided
PURE_ROUNDS: Final = 4  # likewise of epsilon: noise grows with the rounds themselves, not with their root
STEPS: Final = 80  # at most, of a fit after each round
LAST: Final = 2000  # likewise of the last fit


@shows_progress
@timed
def aim(
    db: Oracle,
    columns: list[str],
    marginals: list[list[str]] | None = None,
    *,
    ways: int = 2,
    rounds: int = 0,
    max_model_size: float = 80.0,
    bins: int = 8,
    rows: int = 0,
    spend: Loss | None = None,
    progress: Progress | None = None,
    timeout: float | None = None,  # noqa: ARG001 - `timed` reads it
) -> SyntheticData:
    """Publish rows whose marginals are near those of the data, for tables of many columns.

    Where all marginals asked at once are foreseen to be near enough, by the plan's noise and a noisy number of rows,
    they are: one question, and the table that believes what it told as far as that stands out of the noise. Else, and
    where `rounds` is given, each column is measured by itself; then, round by round, the marginal from which most is to
    be learned is chosen and measured, and a graphical model explains all measurements so far. Where a round moved the
    model by no more than its noise, later rounds get larger parts of the spend: so their number follows from the data's
    noisy answers and not from a guess. Data rows that miss a value in any of the columns are not counted.

    Args:
        db: The database, or any Oracle.
        columns: Names of the columns.
        marginals: Lists of columns, the counts by which should be kept; none for all of `ways` columns.
        ways: Columns of each marginal, where none are named.
        rounds: Rounds of choices that the spend is divided for at first; 0 for none where all at once is near enough,
            else 16 a column (4 of a pure epsilon).
        max_model_size: Megabytes that the model may take; marginals that would make it larger are not chosen.
        bins: How many intervals a number is divided into.
        rows: How many rows to publish; 0 for about as many as the data have.
        spend: What it may cost: Epsilon for Laplace noise, Rho or EpsilonDelta for Gaussian.
        progress: Called with the asks done and planned.
        timeout: For how many seconds it may go on; what was charged by then stays charged.

    Privacy: choices and measurements, whose parts sum to the spend; what the next one is depends on answers and public
        facts alone. The model and the rows are made of them.
    Accuracy: the measured marginals have error bars; a choice weighs what is learned against the noise of learning it.
        All at once, coefficients that k marginals share have variances in proportion to k^(-1/2), which is best in
        squares; the fit stops where it is estimated to be nearest to the truth, and rows are mended to have its counts.
    Source: [MMSM22]; the model of [MSM19].

    Raises:
        QuestionError: `unknown-column`, `bad-parameter`, `not-a-noisy-sum`, `too-large` (says what fits), `bad-loss`
            (the smallest part of a round buys nothing).
        BudgetExceeded: `budget-exceeded`. Whichever is raised, nothing is spent.
    """
    spending = SpendPlan(db, spend, progress)
    chooses(spending)
    space = CellSpace.of(columns, spending.facts.schema, bins)
    asked = space.workload(marginals, ways)
    whole(rounds, "rounds", 0, MAX_ROUNDS)
    whole(rows, "rows", 0, MAX_ROWS)
    megabytes = between(max_model_size, "max_model_size", high=1e6)
    within = closure(asked)
    max_groups([space.size(places) for places in within])
    weights = _weights(within, asked)
    several = rounds or len(columns) * (PURE_ROUNDS if spending.pure else ROUNDS)

    def ready() -> None:
        first = _first(len(columns), several)
        least = min(Fraction(1, several), 1 - SIZE_PART - first)  # of a round: parts do not shrink, the last takes all
        choosing, measuring = least * CHOOSING, least * (1 - CHOOSING)
        rehearse(spending, space, weights, first=first, choosing=choosing, measuring=measuring)

    most = int(megabytes * 2**20 / BYTES_A_NUMBER)
    if not rounds and (found := ask_at_once(spending, space, asked, most, ready)):
        return published(spending, space, found, asked, rows=rows, method="aim")
    before = len(spending.receipts)  # one where a noisy number of rows was asked
    if not before:
        ready()
    spending.plan(before + 1 + 2 * several)
    run = _Run(spending, space, weights, megabytes, several)
    while run.left:
        run.next()
    spending.plan(len(spending.receipts))  # which are all: the answers said how many rounds there would be
    return published(spending, space, run.finished(LAST), asked, rows=rows, method="aim")


def _weights(within: Sequence[Places], asked: Sequence[Places]) -> dict[Places, int]:
    """How much of the marginals wished for each marginal tells: the columns that it shares with each of them."""
    shared = Counter(place for own in asked for place in own)
    return {places: sum(shared[place] for place in places) for places in within}


def _first(columns: int, rounds: int) -> Fraction:
    """The part of the spend that measures the columns by themselves."""
    return min(Fraction(columns, rounds) * (1 - CHOOSING), FIRST)


class _Run(MeasuringRounds):
    """Rounds whose part of the spend grows where they teach nothing; `left` is what is not spent yet."""

    def __init__(
        self, spending: SpendPlan, space: CellSpace, weights: dict[Places, int], megabytes: float, rounds: int
    ) -> None:
        first = _first(len(space.names), rounds)
        self.left = 1 - len(spending.receipts) * SIZE_PART - first
        self.part = Fraction(1, rounds)  # of the spend, for a round
        self.weights, self.megabytes = weights, megabytes
        super().__init__(spending, space, first, STEPS)

    def next(self) -> None:
        """Choose, measure, learn; and make the next rounds larger where hardly anything was learned."""
        if self.left < 2 * self.part:
            self.part = self.left
        measuring = self.part * (1 - CHOOSING)
        plan = self.spending.foresee(self.space.partition((0,)), measuring)
        noise = distance(plan.parts[0].noise[0])  # of a cell; of a partition it is the same for every one
        chosen = self.round(self._candidates(noise), self.part * CHOOSING, measuring)
        self.left -= self.part
        moved = float(np.abs(self.model.marginal(chosen.places) - chosen.expected).sum())
        if moved <= chosen.noise:
            self.part *= 2 if self.spending.pure else 4  # half the noise, either way

    def _candidates(self, noise: float) -> list[Candidate]:
        """The marginals that fit the model's size, of which more is granted as the spend is used up."""
        most = self.megabytes * float(1 - self.left)
        free = {*closure(self.model.cliques)}
        fit = [places for places in self.weights if places in free or self.model.megabytes([places]) <= most]
        expected = self.model.marginals(fit)
        return [
            Candidate(places, expected[places], self.weights[places], noise * self.space.size(places)) for places in fit
        ]
