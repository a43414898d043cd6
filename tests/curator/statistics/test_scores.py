"""Scores and their spans, against brute force over small tables: every row in, out and exchanged."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sulq.curator.statistics.scores import LIMIT, candidates, scores, span
from sulq.errors import QuestionError
from sulq.terms.engine import Block
from sulq.terms.rowfn import Lit
from sulq.terms.score import Contrast, Linear, NegAbs, Rank, Score


def block(*bounds: tuple[int, int]) -> Block:
    low, high = zip(*bounds, strict=True)
    return Block(Lit(1), Fraction(1), low, high, vector=len(bounds) > 1)


def meant(score: Score, sums: np.ndarray) -> list[int]:
    """The scores of one choice by their definition, in Python's own integers."""
    flat = [int(n) for n in sums.ravel()]
    if isinstance(score, Rank):
        target = score.numerator * sum(flat) + score.shift
        ends = [score.denominator * n for n in itertools.accumulate(flat, initial=0)]
        return [-max(0, target - ends[c + 1], ends[c] - target) for c in range(len(flat))]
    if isinstance(score, Contrast):
        table = [[int(n) for n in row] for row in sums.reshape(len(score.weights[0][0]), -1)]
        weighed = [[sum(m * n for m, n in zip(row, column, strict=True)) for column in zip(*table, strict=True)]
                   for row in score.weights[0]]  # fmt: skip
        return [abs(n) for row in weighed for n in row]
    rows = [sum(m * n for m, n in zip(row, flat, strict=True)) for row in score.matrix]
    return [-abs(n) for n in rows] if isinstance(score, NegAbs) else rows


matrices = st.integers(1, 3).flatmap(
    lambda m: st.lists(st.lists(st.integers(-5, 5), min_size=6, max_size=6).map(tuple), min_size=m, max_size=4)
)
ranks = st.integers(1, 6).flatmap(lambda d: st.builds(Rank, st.integers(0, d), st.just(d), st.integers(-9, 9)))


@given(ranks, st.lists(st.integers(0, 9), min_size=1, max_size=7))
@settings(deadline=None)
def test_a_rank_is_the_distance_from_the_cells_own_ranks(score: Rank, counts: list[int]) -> None:
    """The score is zero where the row of the asked rank is, and falls by the denominator a row on either side."""
    found = scores(score, np.array(counts, dtype=np.int64).reshape(1, -1, 1))[0]
    assert found.tolist() == meant(score, np.array(counts))
    if sum(counts) and not score.shift:
        values = [i for i, n in enumerate(counts) for _ in range(n)]
        place = -(-score.numerator * len(values) // score.denominator)  # PERCENTILE_DISC's row, from 1
        assert found[values[max(place, 1) - 1]] == 0


@given(matrices, st.lists(st.integers(-9, 9), min_size=6, max_size=6))
@settings(deadline=None)
def test_linear_scores_are_products_with_the_matrix(matrix: list[tuple[int, ...]], sums: list[int]) -> None:
    """Sums of a cell side by side, cells one after the other; NegAbs folds them to one side."""
    exact = np.array(sums, dtype=np.int64).reshape(1, 3, 2)
    for score in (Linear(tuple(matrix)), NegAbs(tuple(matrix))):
        assert scores(score, exact)[0].tolist() == meant(score, exact)


@given(st.lists(matrices, min_size=1, max_size=1), st.lists(st.integers(-9, 9), min_size=36, max_size=36))
@settings(deadline=None)
def test_contrasts_weigh_each_sum_over_the_cells(drawn: list[list[tuple[int, ...]]], sums: list[int]) -> None:
    """Every contrast of every sum of a cell, each choice by its own weights."""
    first = tuple(drawn[0])
    second = tuple(tuple(-2 * n for n in row[::-1]) for row in first)
    exact = np.array(sums, dtype=np.int64).reshape(2, 6, 3)
    found = scores(Contrast((first, second)), exact)
    assert found[0].tolist() == meant(Contrast((first,)), exact[0])
    assert found[1].tolist() == meant(Contrast((second,)), exact[1])


HUGE = Contrast((((3, 3, 3, 3, 3), (1, -1, 0, 0, 1)),))


def test_scores_of_huge_sums_are_exact_and_clamped() -> None:
    """Where 64 bits would wrap, whole numbers of any size are used, and the ends are clamped (T5)."""
    counts = np.array([2**61, 2**61, 2**61, -5, 7], dtype=np.int64)
    for score in (
        Rank(1, 2),
        Rank(999, 1000),
        Linear(((2**31,) * 5, (1, 0, 0, 0, 0))),
        NegAbs(((3, 3, 3, 3, 3),)),
        HUGE,
    ):
        found = scores(score, counts.reshape(1, 5, 1))[0].tolist()
        assert found == [max(-LIMIT, min(LIMIT, n)) for n in meant(score, counts)]


def widest(before: list[int], after: list[int]) -> int:
    moves = [b - a for a, b in zip(before, after, strict=True)]
    return max(0, *moves) - min(0, *moves)


def brute(score: Score, bounds: tuple[tuple[int, int], ...], cells: int, other: np.ndarray) -> tuple[int, int]:
    """The widest span of one row added, and of one exchanged, over every cell and corner of its values."""
    values = [tuple(v) for v in itertools.product(*[sorted({low, 0, high}) for low, high in bounds])]
    single = pair = 0
    tables = []
    for cell, value in itertools.product(range(cells), values):
        table = other.copy()
        table[cell] += value
        tables.append(meant(score, table))
        single = max(single, widest(meant(score, other), tables[-1]))
    for before, after in itertools.product(tables, repeat=2):
        pair = max(pair, widest(before, after))
    return single, pair


rng = np.random.default_rng(7)
SCORES: list[tuple[Score, tuple[tuple[int, int], ...], int]] = [
    (Rank(1, 2), ((0, 1),), 4),
    (Rank(1, 2), ((1, 1),), 4),
    (Rank(9, 10), ((0, 1),), 4),
    (Rank(0, 1, 3), ((0, 1),), 4),
    (Rank(3, 4), ((-2, 3),), 3),
    (Rank(1, 3), ((2, 5),), 3),
    (Linear(((1, 0, 0), (0, 1, 0), (0, 0, 1))), ((0, 1),), 3),
    (Linear(((1, 0, 0), (0, -1, 0), (2, 2, 2))), ((-3, 2),), 3),
    (Linear(tuple(tuple(row) for row in rng.integers(-4, 5, (4, 4)).tolist())), ((0, 2), (-1, 1)), 2),
    (NegAbs(((1, -1, 0), (0, 1, -1))), ((0, 1),), 3),
    (NegAbs(tuple(tuple(row) for row in rng.integers(-4, 5, (3, 4)).tolist())), ((1, 2), (-1, 1)), 2),
    (Contrast((((1, -1), (3, -2)),)), ((-1, 1), (-1, 1), (0, 1)), 2),
    (Contrast((tuple(tuple(row) for row in rng.integers(-4, 5, (3, 3)).tolist()),)), ((0, 2), (-1, 1)), 3),
]


@pytest.mark.parametrize(("score", "bounds", "cells"), SCORES, ids=str)
def test_SR5_no_row_moves_scores_farther_apart_than_planned(score: Score, bounds: object, cells: int) -> None:
    """Brute force over rows and tables stays within the plan's span and, for the usual scores, meets it (SR1, SR5).

    Control: one less than the plan's span of a median's ranks is passed.
    """
    found = span(score, (block(*bounds),), cells)
    seen = [
        brute(
            score, bounds, cells, rng.integers(-3 if min(low for low, _ in bounds) < 0 else 0, 9, (cells, len(bounds)))
        )
        for _ in range(60)
    ]
    single, pair = (max(one) for one in zip(*seen, strict=True))
    assert single <= found.single
    assert pair <= found.pair
    if isinstance(score, Rank) and bounds == ((0, 1),) and score.numerator:
        assert (single, pair) == (found.single, found.pair)
    if isinstance(score, Contrast) and bounds[:2] == ((-1, 1), (-1, 1)):
        assert single == found.single  # one sum's contrast rises as another's falls
    if isinstance(score, Linear) and bounds == ((0, 1),):
        assert (single, pair) == (1, 2)  # counts rise together: half of what any score costs (S3.9, monotone)


def test_a_score_must_fit_its_sums() -> None:
    """A rank is of one count; a matrix has a column for each sum."""
    assert candidates(Rank(1, 2), (block((0, 1)),), 9) == 9
    assert candidates(Linear(((1, 2, 3, 4),)), (block((0, 1), (0, 1)),), 2) == 1
    assert candidates(Contrast((((1, 2), (3, 4), (5, 6)),) * 4), (block((0, 1), (0, 1)),), 2, 4) == 6
    for score, blocks, cells in (
        (Rank(1, 2), (block((0, 1)), block((0, 1))), 3),
        (Linear(((1, 2),)), (block((0, 1)),), 3),
        (NegAbs(((1, 2),)), (block((0, 1)),), 1),
        (Contrast((((1, 2),),)), (block((0, 1)),), 3),
        (Contrast((((1, 2),),) * 2), (block((0, 1)),), 2),
    ):
        with pytest.raises(QuestionError) as refused:
            candidates(score, blocks, cells)
        assert refused.value.code == "bad-question"
