"""The kernel's general form of a score: what it refuses, and its values and spans against brute force."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sulq.errors import QuestionError
from sulq.kernel import scores as kernel
from sulq.kernel.scores import BITS, LIMIT, Rank, Span, Weighted, candidates, scores, span
from sulq.language.score import Linear, NegL1


def whole(*numbers: int) -> np.ndarray:
    return np.array(numbers, dtype=np.int64)


def weighted(**given: object) -> Weighted:
    usual = {"matrices": np.zeros((1, 0, 0), dtype=np.int64), "targets": whole(), "sizes": whole(), "base": whole()}
    more = {"weights": whole(1), "biases": whole(0), "folded": False, "farthest": False}
    return Weighted(**{**usual, **more, **given})


@dataclass(frozen=True)
class Box:
    """A block of sums: a row adds any of these values, or a row of the table."""

    low: tuple[int, ...]
    high: tuple[int, ...]
    vectors: np.ndarray | None = None


COUNT = Box((0,), (1,))


class Bold(Weighted):
    """One that checks nothing."""

    __slots__ = ()

    def __post_init__(self) -> None:
        """Nothing is checked."""


class Sloped(Rank):
    """A rank that is none."""

    __slots__ = ()

    def __post_init__(self) -> None:
        """Nothing is checked."""


@pytest.mark.parametrize("name", BITS)
def test_a_form_is_of_whole_numbers_none_too_large(name: str) -> None:
    """Arrays of another type, shape or class, too many numbers, or one that is too large, are refused; flags too."""
    axes = (1, 1, -1) if name == "matrices" else (-1,)
    for bad in (
        whole(2 ** BITS[name] + 1).reshape(axes),
        whole(-(2 ** BITS[name]) - 1).reshape(axes),
        whole(-(2**63)).reshape(axes),
        np.ones(1).reshape(axes),
        np.ones(1, dtype=bool).reshape(axes),
        np.ones(1, dtype=np.int32).reshape(axes),
        np.ones(1, dtype=">i8").reshape(axes),
        np.ones(1, dtype=object).reshape(axes),
        np.ones((1, 1), dtype=np.int64),
        np.zeros(2**20 + 1, dtype=np.int64).reshape(axes),
        np.ma.ones(1, dtype=np.int64).reshape(axes),
        (1,),
        None,
    ):
        with pytest.raises(QuestionError):
            weighted(**{name: bad})
    for flag in ("folded", "farthest"):
        with pytest.raises(QuestionError):
            weighted(**{flag: 1})
    for sizes in (whole(1), whole(1, -1, 2), whole(0, 2), whole(3)):
        with pytest.raises(QuestionError):
            weighted(targets=whole(5, 6), sizes=sizes)
    assert {field.name for field in fields(Weighted)} == {*BITS, "folded", "farthest"}  # no sensitivity (SR5)


def test_what_was_priced_is_what_runs() -> None:
    """The arrays that were given may change afterwards: the form's own do not, and cannot."""
    matrix = np.ones((1, 1, 2), dtype=np.int64)
    form = weighted(matrices=matrix)
    before = span(form, [COUNT], 2)
    matrix[:] = 1000
    assert span(form, [COUNT], 2) == before == Span(1, 2)
    for name in BITS:
        with pytest.raises(ValueError, match="read-only"):
            getattr(form, name)[...] = 7


def test_only_the_kernels_own_records_are_scored() -> None:
    """A record that overrides its checks, or that the language alone knows, is refused. Control: its own are not."""
    vast = np.full((1, 1, 2), 2**62, dtype=np.int64)
    parts = {field.name: getattr(weighted(), field.name) for field in fields(Weighted)} | {"matrices": vast}
    for score in (Bold(**parts), Sloped(5, -1), Linear(((1, 1),)), None, "Linear"):
        with pytest.raises(QuestionError) as refused:
            candidates(score, [COUNT], 2)
        assert refused.value.code == "bad-question"
    assert candidates(Linear(((1, 1),)).form, [COUNT], 2) == 1
    assert candidates(Rank(1, 2), [COUNT], 2) == 2


ROWS = np.ones((1, 2, 6), dtype=np.int64)


@pytest.mark.parametrize(
    "parts",
    [
        {"matrices": ROWS[:, :, :3]},  # a row for each cell, whose sums keep their sign
        {"matrices": ROWS[:, :, :2], "folded": True},
        {"matrices": ROWS.repeat(3, axis=0)},
        {"matrices": ROWS[:0]},
        {"matrices": ROWS, "base": whole(1, 1, 1, 1, 1, 1)},  # nothing that it would be a unit of
        {"matrices": ROWS, "weights": whole(1, 1)},
        {"matrices": ROWS, "biases": whole(1, 1, 1)},
        {"matrices": ROWS, "targets": whole(1, 1), "sizes": whole(2)},  # gaps that may cancel
        {"matrices": ROWS, "targets": whole(1, 1), "sizes": whole(1, 1), "folded": True},
        {"matrices": ROWS, "targets": whole(1, 1, 1, 1), "sizes": whole(4), "folded": True},
        {"matrices": ROWS, "targets": whole(1, 1), "sizes": whole(2), "folded": True, "base": whole(1, 1)},
        {"matrices": ROWS[:, :, :3], "targets": whole(1, 1), "sizes": whole(2), "folded": True},
        {"matrices": ROWS.repeat(2, axis=0), "targets": whole(1, 1), "sizes": whole(2), "folded": True},
        {"targets": whole(1, 1, 1), "sizes": whole(3), "folded": True},
        {"targets": whole(*[1] * 12), "sizes": whole(*[1] * 12), "folded": True},
        {"base": whole(1, 1, 1, 1, 1, 1), "folded": True},
        {"weights": whole(1, 1)},
        {"biases": whole(1, 1)},
        {"targets": whole(*[1] * 6), "sizes": whole(3, 3), "weights": whole(*[1] * 6), "folded": True},
    ],
    ids=str,
)
def test_a_form_must_fit_its_sums(parts: dict[str, object]) -> None:
    """Whatever spans are not worked out for is refused: of three cells of two sums, in two choices."""
    with pytest.raises(QuestionError) as refused:
        candidates(weighted(**parts), [Box((0, 0), (1, 1))], 3, 2)
    assert refused.value.code == "bad-question"


def test_spans_of_many_statistics_do_not_wrap_SR5() -> None:
    """All gaps together are past 64 bits where each of them is not: 32 of 2^59 were taken for nothing."""
    for rows in (1, 15, 16, 32, 64):
        matrix, far = ((2**31,),) * rows, Box((-(2**28),), (2**28,))
        assert span(NegL1(matrix, ((0,) * rows,)).form, [far], 1) == Span(rows * 2**60, rows * 2**61)


def meant(score: Weighted, sums: np.ndarray, choice: int) -> list[int]:
    """The scores of one choice by their definition, in Python's own integers."""
    flat = [int(n) for n in sums.ravel()]
    found, size = flat, 1
    if score.matrices.size:
        matrix = score.matrices[choice % len(score.matrices)].astype(object)
        found = (matrix @ np.array(flat, dtype=object).reshape(matrix.shape[1], -1)).ravel().tolist()
    if score.base.size:
        size = sum(int(m) * n for m, n in zip(score.base, flat, strict=True))
    groups = [[x] for x in found]
    if score.targets.size:
        gaps = [x - int(t) * size for x, t in zip(itertools.cycle(found), score.targets)]
        ends = [0, *np.cumsum(score.sizes).tolist()]
        groups = [gaps[start:stop] for start, stop in itertools.pairwise(ends)]
    groups = [[abs(n) for n in group] for group in groups] if score.folded else groups
    weights, biases = (np.broadcast_to(n, len(groups)).tolist() for n in (score.weights, score.biases))
    joined = [max(group) if score.farthest else sum(group) for group in groups]
    return [w * n + b for w, n, b in zip(weights, joined, biases, strict=True)]


@st.composite
def asked(draw: st.DrawFn) -> tuple[Weighted, list[Box], int, int]:
    """A form that fits, of any kind, also such as no score of the language is; small numbers."""
    cells, choices = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    several = st.lists(st.tuples(st.integers(-2, 1), st.integers(0, 2)), min_size=1, max_size=2)
    blocks = []
    for bounds in draw(st.lists(several, min_size=1, max_size=2)):
        low, high = zip(*((a, a + b) for a, b in bounds), strict=True)
        if draw(st.booleans()):
            blocks.append(Box(low, high))
        else:
            table = np.array([low, high, high[:1] + low[1:]], dtype=np.int64)
            blocks.append(Box(low, high, table))
    sums = cells * sum(len(block.low) for block in blocks)

    def some(*shape: int) -> np.ndarray:
        size = int(np.prod(shape))
        drawn = draw(st.lists(st.integers(-4, 4), min_size=size, max_size=size))
        return np.array(drawn, dtype=np.int64).reshape(shape)

    flags = {"folded": draw(st.booleans()), "farthest": draw(st.booleans())}
    kind = draw(st.sampled_from(["own", "groups", "matrix", "cells", "aimed", "based"]))
    if kind in ("own", "groups"):
        parts = {"weights": some(sums), "biases": some(sums)}
        if kind == "groups":
            marks = draw(st.lists(st.booleans(), min_size=sums - 1, max_size=sums - 1))
            sizes = np.diff(np.flatnonzero([True, *marks, True]))
            parts = {"targets": some(sums), "sizes": sizes, "weights": some(len(sizes)), "biases": some(1)}
        return weighted(**parts, **flags), blocks, cells, choices
    rows, number = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    parts = {"matrices": some(draw(st.sampled_from([1, choices])), rows, sums), "weights": some(1)}
    if kind == "cells":
        parts |= {"matrices": some(choices, rows, cells)}
        flags |= {"folded": True}
    elif kind != "matrix":
        parts |= {"targets": some(number * rows), "sizes": np.full(number, rows), "biases": some(number)}
        parts |= {"matrices": some(1, rows, sums), "base": some(sums) if kind == "based" else whole()}
        flags |= {"folded": True}
    return weighted(**parts, **flags), blocks, cells, choices


def vectors(blocks: list[Box]) -> list[tuple[int, ...]]:
    """Every row's values: of a box all whole numbers in it, of a table its rows; or nothing of a block (SR1)."""
    each = []
    for block in blocks:
        ranges = [range(min(a, 0), max(b, 0) + 1) for a, b in zip(block.low, block.high, strict=True)]
        rows = itertools.product(*ranges) if block.vectors is None else map(tuple, block.vectors.tolist())
        each.append([(0,) * len(block.low), *rows])
    return [sum(row, ()) for row in itertools.product(*each)]


def widest(before: list[int], after: list[int]) -> int:
    moves = [b - a for a, b in zip(before, after, strict=True)]
    return max(0, *moves) - min(0, *moves)


def found_by_hand(score: Weighted, blocks: list[Box], cells: int, choice: int, sums: np.ndarray) -> Span:
    """The widest span of one row added to these sums, and of one exchanged, over every cell and value."""
    tables = []
    for cell, value in itertools.product(range(cells), vectors(blocks)):
        table = sums.copy()
        table[cell] += value
        tables.append(meant(score, table, choice))
    before = meant(score, sums, choice)
    pairs = itertools.combinations({tuple(table) for table in tables}, 2)
    return Span(max(widest(before, table) for table in tables), max((widest(a, b) for a, b in pairs), default=0))


@settings(deadline=None, max_examples=300)
@given(asked(), st.data())
def test_every_form_that_is_taken_is_scored_and_spanned_SR5(drawn: tuple, data: st.DataObject) -> None:
    """Values are as defined, and no row of any cell and value, in, out or exchanged, passes the span (SR1, SR5)."""
    score, blocks, cells, choices = drawn
    width = sum(len(block.low) for block in blocks)
    number = candidates(score, blocks, cells, choices)
    size = choices * cells * width
    sums = np.array(data.draw(st.lists(st.integers(-6, 6), min_size=size, max_size=size)), dtype=np.int64)
    sums = sums.reshape(choices, cells, width)
    expected = [meant(score, own, choice) for choice, own in enumerate(sums)]
    assert scores(score, sums).tolist() == expected
    assert len(expected[0]) == number
    huge = sums << 58
    clamped = [[max(-LIMIT, min(LIMIT, n)) for n in meant(score, own, i)] for i, own in enumerate(huge)]
    assert scores(score, huge).tolist() == clamped
    found = span(score, blocks, cells)
    for choice, own in enumerate(sums):
        seen = found_by_hand(score, blocks, cells, choice, own)
        assert seen.single <= found.single
        assert seen.pair <= found.pair
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(kernel, "LIMIT", 0)
        assert span(score, blocks, cells) == found  # in Python's own numbers too


def test_control_a_span_that_is_too_small_is_seen() -> None:
    """What the test above compares with is met by each kind of form, single and exchanged: one less would be passed."""
    two = Box((0, 0), (1, 1))
    table = Box((0, 0), (1, 1), np.array([[1, 0], [0, 1]]))
    groups = {"targets": whole(3, -2, 0, 5), "sizes": whole(2, 2), "weights": whole(2, 2), "folded": True}
    aimed = {"targets": whole(1, -2, 0, 3), "sizes": whole(2, 2), "folded": True, "weights": whole(-1)}
    crossed = np.array([[[1, 0, 0, 0], [0, 0, 0, 1]]], dtype=np.int64)
    signs = np.array([[[1, 0, 0, 0], [0, -1, 0, 0]]], dtype=np.int64)
    for score, block, cells in (
        (weighted(weights=whole(2, -2, 1, 1)), two, 2),
        (weighted(weights=whole(2, -2, 1, 1), folded=True), two, 2),
        (weighted(**groups), two, 2),
        (weighted(**groups), table, 2),
        (weighted(matrices=signs), two, 2),
        (weighted(matrices=np.array([[[1, -1], [2, 1]]]), folded=True), two, 2),
        (weighted(matrices=crossed, **aimed), two, 2),
        (weighted(matrices=crossed, **aimed, farthest=True), two, 2),
    ):
        candidates(score, [block], cells)
        rng, found = np.random.default_rng(3), span(score, [block], cells)
        tables = [rng.integers(-9, 9, (cells, len(block.low))) for _ in range(60)]
        seen = [found_by_hand(score, [block], cells, 0, table) for table in tables]
        met = Span(max(one.single for one in seen), max(one.pair for one in seen))
        assert met == found


def test_a_form_can_be_replaced_part_by_part() -> None:
    """A record that is made anew from a form is checked anew."""
    form = weighted(matrices=ROWS)
    assert replace(form, folded=True).folded
    with pytest.raises(QuestionError):
        replace(form, weights=np.ones(1))


@pytest.mark.parametrize("shape", [(1, 1, 0), (2, 1, 0), (1, 3, 0), (2, 0, 0), (1, 0, 4)])
def test_an_empty_matrix_has_one_shape_SR5(shape: tuple[int, int, int]) -> None:
    """Of an empty matrix with rows the sums were priced, and another score was run. Control: without rows."""
    none, ones = np.zeros(0, dtype=np.int64), np.ones(4, dtype=np.int64)
    given = (0 * ones, ones, none, ones[:1], 0 * ones[:1])
    assert Weighted(np.zeros((1, 0, 0), dtype=np.int64), *given, folded=True, farthest=False)
    with pytest.raises(QuestionError, match="a matrix has numbers"):
        Weighted(np.zeros(shape, dtype=np.int64), *given, folded=True, farthest=False)
