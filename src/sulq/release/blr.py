"""Synthetic data by the exponential mechanism over all small tables [BLR08]."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from sulq.answers.oracle import Oracle, Progress, SpendPlan
from sulq.errors import QuestionError
from sulq.forms.parameters import between, whole
from sulq.kernel.scores import MOST_ENTRIES
from sulq.language.kinds import Integers
from sulq.language.privacy import Loss
from sulq.language.question import Choose, Sums
from sulq.language.rowfn import Lit, Route
from sulq.language.score import NegMaxAbs
from sulq.release.base import Paid
from sulq.release.space import CellSpace
from sulq.release.synthetic.data import SyntheticData, chooses, made
from sulq.release.tables.interactions import Places

MAX_CANDIDATES: Final = 1_000_000
MAX_ROWS: Final = 1000
MIN_PARAMETER: Final = 1e-9  # gamma or epsilon of the formulas, which stay finite
ERROR_RATE: Final = 0.05


def blr(
    db: Oracle,
    columns: list[str],
    marginals: list[list[str]] | None = None,
    *,
    ways: int = 2,
    rows: int = 8,
    bins: int = 2,
    spend: Loss | None = None,
    progress: Progress | None = None,
) -> SyntheticData:
    """Publish a few rows whose fractions are near those of the data, chosen among all tables of so many rows.

    For very small domains: every table of `rows` rows is a candidate. The queries are the conjunctions that
    make up the marginals; the chosen table is about the one that gets the worst of them best.
    Data rows that miss a value in any of the columns are not counted. On domains where this fits, noisy
    counts of all cells (`contingency`, method `cells`) are nearer; it is here for what it shows.

    Args:
        db: The database, or any Oracle.
        columns: Names of the columns.
        marginals: Lists of columns, the counts by which should be kept; none for all of `ways` columns.
        ways: Columns of each marginal, where none are named.
        rows: How many rows to publish; the more, the finer and the more candidates.
        bins: How many intervals a number is divided into.
        spend: What it may cost.
        progress: Called with the asks done and planned.

    Privacy: one choice, the spend. The score -max over the conjunctions h of |h(D) - (n/m) h(D')| is moved by one row
        by at most 1 in every relation [S3.29]; n is never told (SR6), as the score weighs the true one itself.
    Accuracy: except with probability beta the worst fraction is off by at most (2/(epsilon n))(ln candidates +
        ln 1/beta) more than by the best of all candidates; `blr_rows` and `blr_n` say which sizes make it useful.
    Source: [BLR08]; [S3.29].

    Raises:
        QuestionError: `unknown-column`, `bad-parameter`, `too-large` (says how many rows fit); nothing is spent.
        BudgetExceeded: `budget-exceeded`; nothing is spent.
    """
    spending = SpendPlan(db, spend, progress)
    chooses(spending)
    space = CellSpace.of(columns, spending.facts.schema, bins)
    asked = space.workload(marginals, ways)
    whole(rows, "rows", 1, MAX_ROWS)
    _fits(space, asked, rows)
    holds = _conjunctions(space, asked)
    tables = _tables(space.cells, rows)
    score = NegMaxAbs(
        tuple(map(tuple, (rows * holds).tolist())),
        tuple(map(tuple, _counts(tables, holds).tolist())),
        (1,) * space.cells,
    )
    spending.plan(1)
    answer = spending.one(Choose(Sums((Lit(1),), None, (_cell(space),)), score))
    chosen = tables[int(answer.released.units[0, 0])]
    cells = np.stack(np.unravel_index(chosen, space.sizes), axis=1).astype(np.int64)
    short = float(answer.released.noise[0].law.accuracy(ERROR_RATE)) / rows
    note = (
        f"The worst of {len(holds):,} fractions is off by at most {short:,.4g} rows of the data more than that of the "
        f"best of {len(tables):,} tables, at 95%."
    )
    size = spending.facts.size
    return SyntheticData(
        paid=Paid.by(spending),
        attributes=space.attributes,
        rows=made(space, cells, np.random.default_rng()),
        method="blr",
        total=None if size is None else float(size),
        notes=(note,),
    )


def blr_rows(gamma: float, queries: int) -> int:
    """How many rows make a table that answers so many queries within gamma: ceil((2/gamma^2) ln(2 queries)) [S3.29]."""
    far = between(gamma, "gamma", MIN_PARAMETER)
    return math.ceil(2.0 / far**2 * math.log(2 * whole(queries, "queries", 1, 10**9)))


def blr_n(gamma: float, epsilon: float, *, cells: int, rows: int, beta: float = ERROR_RATE) -> int:
    """How many rows the data need for answers within gamma but for probability beta.

    ceil((4/(epsilon gamma)) (rows ln(cells) + ln(1/beta))) [S3.29]: with cells = 2^d the paper's
    d m ln 2; as tables are counted without their rows' order there are fewer, and this is enough.
    """
    far, loss, rate = (
        between(gamma, "gamma", MIN_PARAMETER),
        between(epsilon, "epsilon", MIN_PARAMETER, 1e6),
        between(beta, "beta"),
    )
    several = whole(rows, "rows", 1, 10**9) * math.log(whole(cells, "cells", 1, 10**9))
    return math.ceil(4.0 / (loss * far) * (several - math.log(rate)))


def candidates(cells: int, rows: int) -> int:
    """How many tables of so many rows there are, in any order of the rows: C(rows + cells - 1, rows)."""
    return math.comb(rows + cells - 1, rows)


def _fits(space: CellSpace, asked: Sequence[Places], rows: int) -> None:
    """Refuse more candidates than can be written down; say what fits."""
    queries = sum(space.size(places) for places in asked)
    most = min(MAX_CANDIDATES, MOST_ENTRIES // queries) if queries <= MOST_ENTRIES else 0
    if space.cells * queries <= MOST_ENTRIES and candidates(space.cells, rows) <= most:
        return
    fits = 0
    while space.cells * queries <= MOST_ENTRIES and fits < rows and candidates(space.cells, fits + 1) <= most:
        fits += 1
    can = f"rows={fits} fits here" if fits else "mwem and aim take larger domains"
    raise QuestionError(
        "too-large",
        f"There are {_told(candidates(space.cells, rows))} tables of {rows} rows of a domain of {_told(space.cells)} "
        f"cells; at most {most:,} fit with {_told(queries)} conjunctions; {can}.",
        "Take fewer rows, columns or bins; or sulq.release.mwem, or aim.",
    )


def _told(number: int) -> str:
    """A number for people, who need not count the digits of a large one."""
    return f"{number:,}" if number < 10**12 else f"more than 10^{int((number.bit_length() - 1) * math.log10(2))}"


def _conjunctions(space: CellSpace, asked: Sequence[Places]) -> Integers:
    """For each conjunction, a cell of a marginal, in which cells of the whole domain it holds."""
    codes = np.indices(space.sizes).reshape(len(space.sizes), -1)
    found = []
    for places in asked:
        index = np.zeros(space.cells, dtype=np.int64)
        for place in places:
            index = index * space.sizes[place] + codes[place]
        found.append(np.arange(space.size(places))[:, None] == index)
    return np.concatenate(found).astype(np.int64)


def _tables(cells: int, rows: int) -> Integers:
    """Every multiset of so many cells, one a line, ascending."""
    several = itertools.combinations_with_replacement(range(cells), rows)
    flat = itertools.chain.from_iterable(several)
    return np.fromiter(flat, dtype=np.int64, count=candidates(cells, rows) * rows).reshape(-1, rows)


def _counts(tables: Integers, holds: Integers) -> Integers:
    """How many rows of each table each conjunction holds for."""
    counts = np.zeros((len(tables), len(holds)), dtype=np.int64)
    for place in range(tables.shape[1]):
        counts += holds.T[tables[:, place]]
    return counts


def _cell(space: CellSpace) -> Route:
    """The cell of the whole domain as one key: a tree that asks one column after the other."""
    tree: list[tuple[int, ...]] = []
    levels = [math.prod(space.sizes[:depth]) for depth in range(len(space.sizes))]  # nodes of each
    starts = list(itertools.accumulate(levels, initial=0))
    for depth, size in enumerate(space.sizes):
        last = depth == len(space.sizes) - 1
        for node in range(levels[depth]):
            below = range(node * size, (node + 1) * size)
            tree.append((depth, *(-1 - leaf if last else starts[depth + 1] + leaf for leaf in below)))
    return Route(space.keys, tuple(tree))
