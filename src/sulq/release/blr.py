"""Synthetic data by the exponential mechanism over all small tables [BLR08]."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Final, cast

import numpy as np

from sulq.answers.call import timed
from sulq.answers.oracle import Oracle, Progress, SpendPlan
from sulq.display.progress import shows_progress
from sulq.errors import QuestionError
from sulq.forms.parameters import between, checked, whole
from sulq.kernel.scores import MOST_ENTRIES
from sulq.language.domain import Schema
from sulq.language.kinds import Integers
from sulq.language.privacy import Loss
from sulq.language.question import Choose, Sums
from sulq.language.rowfn import Lit, Route, RowFn
from sulq.language.score import NegMaxAbs
from sulq.release.base import Paid
from sulq.release.query_class import QueryClass, conjunctions, named_conjunctions
from sulq.release.space import CellSpace
from sulq.release.synthetic.data import SyntheticData, chooses, made
from sulq.sql.conditions import row_function

MAX_CANDIDATES: Final = 1_000_000
MAX_ROWS: Final = 1000
ROWS: Final = 8
MIN_PARAMETER: Final = 1e-9  # gamma or epsilon of the formulas, which stay finite
ERROR_RATE: Final = 0.05


@shows_progress
@timed
def blr(
    db: Oracle,
    columns: list[str],
    marginals: list[list[str]] | None = None,
    *,
    queries: Mapping[str, RowFn | str] | None = None,
    ways: int = 2,
    rows: int | None = None,
    gamma: float | None = None,
    vc: int | None = None,
    bins: int = 2,
    spend: Loss | None = None,
    progress: Progress | None = None,
    timeout: float | None = None,  # noqa: ARG001 - `timed` reads it
) -> SyntheticData:
    """Publish a few rows whose fractions are near those of the data, chosen among all tables of so many rows.

    For very small domains: every table of `rows` rows is a candidate. The queries are the conjunctions that
    make up the marginals, or a class of one's own; the chosen table is about the one that gets the worst of them best,
    and `fractions` holds what it says of each by name.
    Data rows that miss a value in any of the columns are not counted. On domains where this fits, noisy
    counts of all cells (`contingency`, method `cells`) are nearer; it is here for what it shows.

    Args:
        db: The database, or any Oracle.
        columns: Names of the columns.
        marginals: Lists of columns, the counts by which should be kept; none for all of `ways` columns.
        queries: Instead of marginals, names and row functions of these columns: conditions, or numbers in [0, 1]
            on a grid, each the same over a whole cell: {"old": "age >= 60"}, {"old": col("age") >= 60}.
        ways: Columns of each marginal, where none are named.
        rows: How many rows to publish; the more, the finer and the more candidates. Left out, 8, or what gamma asks.
        gamma: How far off every fraction may be, but for probability .05: then the rows follow from it, and fewer
            data rows than that needs are refused by the declared size.
        vc: The class's VC dimension, where the owner of the question knows it; rows follow from it if those are fewer.
        bins: How many intervals a number is divided into.
        spend: What it may cost.
        progress: Called with the asks done and planned.
        timeout: For how many seconds it may go on; what was charged by then stays charged.

    Privacy: one choice, the spend. The score -max over the conjunctions h of |h(D) - (n/m) h(D')| is moved by one row
        by at most 1 in every relation [S3.29]; n is never told (SR6), as the score weighs the true one itself.
    Accuracy: except with probability beta the worst fraction is off by at most (2/(epsilon n))(ln candidates +
        ln 1/beta) more than by the best of all candidates; `blr_rows` and `blr_n` say which sizes make it useful.
    Source: [BLR08]; [S3.29, S3.32].

    Raises:
        QuestionError: `unknown-column`, `bad-parameter`, `too-large` (says how many rows fit), `too-few-rows` (says
            how many gamma needs); nothing is spent.
        BudgetExceeded: `budget-exceeded`; nothing is spent.
    """
    spending = SpendPlan(db, spend, progress)
    chooses(spending)
    space = CellSpace.of(columns, spending.facts.schema, bins)
    told = queries
    if isinstance(queries, Mapping):
        told = {name: cast("RowFn", row_function(query, spending.facts)) for name, query in queries.items()}
    asked = _asked(space, spending.facts.schema, cast("Mapping[str, RowFn] | None", told), marginals, ways)
    checked(vc is None or (gamma is not None and asked.boolean), "vc goes with gamma and with conditions alone.")
    published = _rows(rows, gamma, vc, space, asked)
    _fits(space, asked, published)
    tables = _tables(space.cells, published)
    score = NegMaxAbs(
        tuple(map(tuple, (published * asked.units).tolist())),
        tuple(map(tuple, _counts(tables, asked.units).tolist())),
        (1,) * space.cells,
    )
    question = Choose(Sums((Lit(1),), None, (_cell(space),)), score)
    short = float(spending.foresee(question).parts[0].laws[0].accuracy(ERROR_RATE)) / (published * asked.grid)
    notes = [_useful(gamma, short, spending.facts.size)] if gamma is not None else []
    spending.plan(1)
    answer = spending.one(question)
    chosen = tables[int(answer.released.units[0, 0])]
    cells = np.stack(np.unravel_index(chosen, space.sizes), axis=1).astype(np.int64)
    note = (
        f"The worst of {len(asked.names):,} fractions is off by at most {short:,.4g} rows of the data more than that "
        f"of the best of {len(tables):,} tables, at 95%."
    )
    size = spending.facts.size
    return SyntheticData(
        paid=Paid.by(spending),
        attributes=space.attributes,
        rows=made(space, cells, np.random.default_rng()),
        method="blr",
        total=None if size is None else float(size),
        notes=(note, *notes),
        answers=tuple(zip(asked.names, asked.fractions(chosen), strict=True)),
    )


def _asked(
    space: CellSpace,
    schema: Schema,
    queries: Mapping[str, RowFn] | None,
    marginals: Sequence[Sequence[str]] | None,
    ways: int,
) -> QueryClass:
    """The class of queries: one's own, or the conjunctions of the marginals."""
    checked(queries is None or marginals is None, "Name queries or marginals, not both.")
    if queries is not None:
        return QueryClass.of(queries, space, schema)
    wished = space.workload(marginals, ways)
    several = sum(space.size(places) for places in wished)
    if space.cells * several > MOST_ENTRIES:  # before they are written down
        raise _too_large(space, several, 0, 0)
    return QueryClass(named_conjunctions(space, wished), conjunctions(space, wished), 1)


def _rows(rows: int | None, gamma: float | None, vc: int | None, space: CellSpace, asked: QueryClass) -> int:
    """How many rows are published: as told, or as many as gamma asks for."""
    checked(rows is None or gamma is None, "Name rows or gamma, not both.")
    if gamma is None:
        return whole(ROWS if rows is None else rows, "rows", 1, MAX_ROWS)
    found = blr_rows(gamma, len(asked.names), vc=vc, cells=space.cells)
    if found > MAX_ROWS:
        raise QuestionError(
            "too-large", f"gamma {gamma:g} asks for {found:,} rows; {MAX_ROWS:,} fit.", "Allow a larger gamma."
        )
    return found


def _useful(gamma: float, short: float, size: int | None) -> str:
    """What a promise of gamma rests on; a refusal where the declared size is too small for it (SR6).

    Half of gamma is for a table of so few rows, half for the choice: its shortfall in rows, at most gamma n/2.
    """
    needed = math.ceil(2.0 * short / gamma)
    if size is not None and size < needed:
        raise QuestionError(
            "too-few-rows",
            f"Fractions within {gamma:g} need about {needed:,} rows at this spend; {size:,} are declared.",
            "Accept a larger gamma, name fewer columns or spend more.",
        )
    known = "no size is declared" if size is None else f"{size:,} are declared"
    return f"Every fraction is within {gamma:g} of the data's at 95% if {needed:,} rows or more miss no value; {known}."


def blr_rows(gamma: float, queries: int, *, vc: int | None = None, cells: int | None = None) -> int:
    """How many rows make a table that answers so many queries within half of gamma, whichever bound is the least.

    By the size of the class: ceil((2/gamma^2) ln(2 queries)), Hoeffding's bound for a sample of the data [S3.29]. By
    its VC dimension d, of conditions: the least m with 4 (2em/d)^d e^(-gamma^2 m/32) <= 1 [S3.32], which is the less
    only of classes far too large to be listed. By the number of cells k: ceil(k/(2 gamma)), as fractions of m rows
    can be rounded so that no sum of cells is off by more than k/(4m).
    """
    far = between(gamma, "gamma", MIN_PARAMETER)
    several = whole(queries, "queries", 1, 10**400)
    bounds = [math.ceil(2.0 / far**2 * math.log(2 * several))]
    if cells is not None:
        bounds.append(math.ceil(whole(cells, "cells", 1, 10**9) / (2.0 * far)))
    if vc is not None:
        bounds.append(_vc_rows(far, whole(vc, "vc", 1, 10**6)))
    return min(bounds)


def _vc_rows(far: float, dimension: int) -> int:
    """Vapnik and Chervonenkis: so many rows drawn from the data are a table within half of gamma."""

    def fits(rows: float) -> bool:
        growth = dimension * math.log(2.0 * math.e * rows / dimension)
        return math.log(4.0) + growth <= far**2 * rows / 32.0

    low, high = dimension, 2 * dimension
    while not fits(high):
        low, high = high, 2 * high
    return low + 1 + bisect.bisect_left(range(low + 1, high), True, key=fits)


def blr_n(gamma: float, epsilon: float, *, cells: int, rows: int, beta: float = ERROR_RATE) -> int:
    """How many rows the data need for answers within gamma but for probability beta.

    ceil((4/(epsilon gamma)) (rows ln(cells) + ln(1/beta))) [S3.29]: with cells = 2^d the paper's
    d m ln 2; as tables are counted without their rows' order there are fewer, and this is enough.
    """
    far, rate = between(gamma, "gamma", MIN_PARAMETER), between(beta, "beta")
    loss = between(epsilon, "epsilon", MIN_PARAMETER, 1e6)
    several = whole(rows, "rows", 1, 10**9) * math.log(whole(cells, "cells", 1, 10**9))
    return math.ceil(4.0 / (loss * far) * (several - math.log(rate)))


def candidates(cells: int, rows: int) -> int:
    """How many tables of so many rows there are, in any order of the rows: C(rows + cells - 1, rows)."""
    return math.comb(rows + cells - 1, rows)


def _fits(space: CellSpace, asked: QueryClass, rows: int) -> None:
    """Refuse more candidates than can be written down; say what fits."""
    queries = len(asked.names)
    most = min(MAX_CANDIDATES, MOST_ENTRIES // queries)
    if space.cells * queries > MOST_ENTRIES or candidates(space.cells, rows) > most:
        raise _too_large(space, queries, rows, most)


def _too_large(space: CellSpace, queries: int, rows: int, most: int) -> QuestionError:
    fits = 0
    while space.cells * queries <= MOST_ENTRIES and fits < rows and candidates(space.cells, fits + 1) <= most:
        fits += 1
    can = f"rows={fits} fits here" if fits else "mwem and aim take larger domains"
    domain = f"a domain of {_told(space.cells)} cells"
    many = f"There are {_told(candidates(space.cells, rows))} tables of {rows} rows of {domain}"
    many += f"; at most {most:,} fit with {_told(queries)} queries"
    vast = f"What {_told(queries)} queries say of {domain} cannot be written down"
    return QuestionError(
        "too-large",
        f"{many if rows else vast}; {can}.",
        "Take fewer rows, columns, bins or queries; or sulq.release.mwem, or aim.",
    )


def _told(number: int) -> str:
    """A number for people, who need not count the digits of a large one."""
    return f"{number:,}" if number < 10**12 else f"more than 10^{int((number.bit_length() - 1) * math.log10(2))}"


def _tables(cells: int, rows: int) -> Integers:
    """Every multiset of so many cells, one a line, ascending."""
    several = itertools.combinations_with_replacement(range(cells), rows)
    flat = itertools.chain.from_iterable(several)
    return np.fromiter(flat, dtype=np.int64, count=candidates(cells, rows) * rows).reshape(-1, rows)


def _counts(tables: Integers, holds: Integers) -> Integers:
    """What each query adds up to over the rows of each table."""
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
