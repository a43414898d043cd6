"""Synthetic data by multiplicative weights [HLM12], kept as potentials of the measured marginals [MSM19]."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from sulq.answers.call import timed
from sulq.answers.oracle import Oracle, Progress, SpendPlan
from sulq.display.progress import shows_progress
from sulq.errors import QuestionError
from sulq.forms.parameters import whole
from sulq.language.privacy import Loss
from sulq.release.space import CellSpace
from sulq.release.synthetic.at_once import SIZE_PART, ask_at_once
from sulq.release.synthetic.data import MAX_ROWS, SyntheticData, chooses, published
from sulq.release.synthetic.rounds import Candidate, MeasuringRounds, max_groups, rehearse

MAX_CELLS: Final = 2**20
MAX_ROUNDS: Final = 1000
FIRST: Final = Fraction(1, 10)  # of the spend, for the columns by themselves and with them the number of rows (SR6)
ROUNDS: Final = 2  # a column, where none are named
STEPS: Final = 60  # at most, of a fit after each round
LAST: Final = 2000  # at most, of the last fit


@shows_progress
@timed
def mwem(
    db: Oracle,
    columns: list[str],
    marginals: list[list[str]] | None = None,
    *,
    ways: int = 2,
    rounds: int = 0,
    bins: int = 8,
    rows: int = 0,
    spend: Loss | None = None,
    progress: Progress | None = None,
    timeout: float | None = None,  # noqa: ARG001 - `timed` reads it
) -> SyntheticData:
    """Publish rows whose marginals are near those of the data: each round mends the one that is farthest off.

    Where all marginals asked at once are foreseen to be near enough, by the plan's noise and a noisy number of rows,
    they are, and there are no rounds. Else, and where `rounds` is given, each column is measured by itself
    first, so that rounds learn how columns go together.

    For domains whose cells can be written down (a million); `aim` takes larger ones. Data rows that
    miss a value in any of the columns are not counted.

    Args:
        db: The database, or any Oracle.
        columns: Names of the columns.
        marginals: Lists of columns, the counts by which should be kept; none for all of `ways` columns.
        ways: Columns of each marginal, where none are named.
        rounds: How often a marginal is chosen and measured; each has an equal part of the spend; 0 for none where all
            at once is near enough, else 2 a column.
        bins: How many intervals a number is divided into.
        rows: How many rows to publish; 0 for about as many as the data have.
        spend: What it may cost: Epsilon for Laplace noise, Rho or EpsilonDelta for Gaussian.
        progress: Called with the asks done and planned.
        timeout: For how many seconds it may go on; what was charged by then stays charged.

    Privacy: at once, one question. Else a tenth of the spend measures the columns, and each round chooses a marginal
        and measures it, half and half; the parts sum to the spend. The model and the rows are made of the answers.
    Accuracy: the measured marginals have error bars; those that were never far off were not measured.
    Source: [HLM12], with marginals for queries and repeated steps.

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
    if space.cells > MAX_CELLS:
        raise QuestionError(
            "too-large",
            f"The domain has {space.cells:,} cells; {MAX_CELLS:,} fit. aim needs none of them.",
            "Take sulq.release.aim, or fewer columns or bins.",
        )
    max_groups([space.size(places) for places in asked])
    several = rounds or ROUNDS * len(columns)

    def ready() -> None:
        least = (1 - FIRST) * (1 - SIZE_PART) / (2 * several)
        weights = dict.fromkeys(asked, 1)
        rehearse(spending, space, weights, first=FIRST * (1 - SIZE_PART), choosing=least, measuring=least)

    if not rounds and (found := ask_at_once(spending, space, asked, MAX_CELLS, ready)):
        return published(spending, space, found, asked, rows=rows, method="mwem")
    before = len(spending.receipts)  # one where a noisy number of rows was asked
    if not before:
        ready()
    spending.plan(before + 1 + 2 * several)
    left = 1 - SIZE_PART * before
    run = MeasuringRounds(spending, space, FIRST * left, STEPS)
    part = (1 - FIRST) * left / (2 * several)
    for _ in range(several):
        run.round([Candidate(places, run.model.marginal(places)) for places in asked], part, part)
    return published(spending, space, run.finished(LAST), asked, rows=rows, method="mwem")
