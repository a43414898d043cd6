"""Programs of folds: what is not of the list is refused, and norms are those of every vector that the guard lets by."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest

from sulq.kernel.facts import Refused
from sulq.kernel.moves import Norms
from sulq.kernel.programs import STEPS, Box, Key, Program, Stack, Step, Sum, Unit, certify, check
from sulq.kernel.values import TEXT, integer
from tests.kernel.folds import column, constant, least, missing

CELL = integer("INTEGER", 0, 9)
VECTOR = Stack((Unit(0, -9, 9), Unit(0, 0, 5)))
GIVEN = ("column", "missing", "constant", "search", "take", "least")
WRONG = {
    "a step of itself": (column(0), Step("floor", (1,))),
    "a step before the first": (column(0), Step("floor", (-1,))),
    "a column that is not there": (column(1),),
    "a missing column that is not there": (missing(-1),),
    "too few of a function": (column(0), Step("add", (0,))),
    "a vector as a number": (column(0), VECTOR, Step("floor", (1,))),
    "a constant that is a text": (constant("1"),),
    "a constant past 2^53": (constant(2**53),),
    "a table of none": (column(0), Step("take", (0,), ())),
    "a table of texts": (column(0), Step("take", (0,), ("a",))),
    "edges of texts": (column(0), Step("search", (0,), ("a",))),
    "edges that do not increase": (column(0), Step("search", (0,), (1.0, 3.0, 0.0))),
    "an edge twice": (column(0), Step("search", (0,), (1.0, 1.0))),
    "an edge that is NaN": (column(0), Step("search", (0,), (math.nan,))),
    "the sign of NaN": (column(0), Step("copysign", (0, 0))),
    "numbers for a function": (column(0), Step("floor", (0,), (1,))),
    "a vector of none": (Stack(()),),
    "bounds the wrong way": (column(0), Stack((Unit(0, 1, 0),))),
    "a constant of none": (Step("constant"),),
    "bounds that are not whole": (column(0), Stack((Unit(0, 0, 0.5),))),
    "bounds past 2^53": (column(0), Stack((Unit(0, 0, 2**53),))),
    "a grid of no size": (column(0), Stack((Unit(0, 0, 1, float("nan")),))),
    "a length of squares past 2^53": (column(0), Stack((Unit(0, 0, 2**27),), ball=1)),
    "shortened to no length": (column(0), Stack((Unit(0, 0, 2),), shorten=True)),
    "shortened past what is exact": (column(0), Stack((Unit(0, 0, 2**30),) * 4, l1=2**31, shorten=True)),
    "a norm below zero": (column(0), Stack((Unit(0, 0, 2),), l1=-1)),
    "weights for other coordinates": (column(0), VECTOR, least(1, (1, 0))),
    "a product past 2^53": (column(0), VECTOR, least(1, (2**50, 2**50, 0))),
    "weights that are not whole": (column(0), VECTOR, least(1, (0.5, 0.5, 0))),
    "scores of a number": (column(0), least(0, (1, 0))),
    "no scores": (column(0), VECTOR, least(1)),
    "one score of several past 2^53": (column(0), VECTOR, least(1, (1, 1, 0), (0, 2**51, 0))),
    "a score past 2^53 with its last": (column(0), VECTOR, least(1, (0, 0, 2**53))),
    "no step at all": ("floor",),
}
SUMS = {
    "of no vector": Sum("vectors", 0),
    "of a step that is not there": Sum("products", 7),
    "of no kind": Sum("median", 1),
    "times what is no number": Sum("vectors", 1, 1),
    "products times a number": Sum("products", 1, 1),
    "a table cut short": Sum("table", 0, units=b"123"),
    "a table of none": Sum("table", 0),
    "a table's huge number": Sum("table", 0, units=(2**40).to_bytes(8, "little")),
    "a table's hugest number": Sum("table", 0, units=(2**63).to_bytes(8, "little")),
    "a key of no size": Sum("vectors", 1, keys=(Key(0, 0),)),
    "a key of a size that is not whole": Sum("vectors", 1, keys=(Key(0, 2.0),)),
    "a condition of a vector": Sum("vectors", 1, keys=(Key(1, 1),)),
    "a key of a later step": Sum("vectors", 1, keys=(Key(2, 1),)),
    "a table at a vector": Sum("table", 1, units=bytes(8)),
    "too many cells of a table": Sum("table", 0, units=bytes(8 * 2**12), keys=(Key(0, 2**18),)),
    "a table of a width that is none": Sum("table", 0, units=bytes(8), width=0),
    "a vector by a vector": Sum("vectors", 1, keys=(Key(1, 2),)),
    "too many cells": Sum("vectors", 1, keys=(Key(0, 2**21), Key(0, 2**21))),
}


@pytest.mark.parametrize("name", WRONG)
def test_steps_that_are_not_of_the_list_are_refused(name: str) -> None:
    """Each for what it is; the control below has every step that there is."""
    with pytest.raises(Refused):
        check(Program(("a",), WRONG[name], ()))


@pytest.mark.parametrize("name", SUMS)
def test_sums_that_are_not_of_the_list_are_refused(name: str) -> None:
    """Likewise."""
    with pytest.raises(Refused):
        check(Program(("a",), (column(0), VECTOR), (SUMS[name],)))


def test_every_step_is_known() -> None:
    """Control of the two above."""
    steps = (
        *(column(0), missing(0), constant(2), Step("add", (0, 2)), Step("search", (3,), (0.0, 1.0))),
        *(Step("take", (4,), (1, 2)), constant(True), VECTOR, constant(0.5), least(7, (1, -1, 0))),
        least(7, (0, 0, 0), (-2, -2, 2)),
        *(Step(name, tuple(range(len(rule.of)))) for name, rule in STEPS.items() if name not in GIVEN),
    )
    sums = (
        Sum("vectors", 7, keys=(Key(10, 2), Key(8, 1))),
        Sum("products", 7),
        Sum("table", 8, units=bytes(16)),
    )
    assert check(Program(("a",), steps, sums))[0].keys() == {7}


def test_columns_are_numbers_and_as_many_as_named() -> None:
    """Texts have no step, and a program of other columns is none of this statement."""
    program = Program(("a",), (column(0), VECTOR), (Sum("vectors", 1),))
    assert certify(program, (CELL,), 1, every=True)[0].present
    for columns in ((TEXT,), (), (CELL, CELL), (integer("HUGEINT", 0, 2**70),)):
        with pytest.raises(Refused):
            certify(program, columns, 1, every=True)


def test_norms_are_those_of_every_guarded_vector_SR1() -> None:
    """All vectors of small boxes, in and beside the guard; the control: with one less somewhere they do not hold."""
    rng, tight = random.Random(3), 0
    for _ in range(150):
        box, vectors = _box(rng)
        for kind in ("vectors", "products"):
            found = _certified(box, kind)
            single, pair = _largest(vectors, kind)
            assert _within(single, found.single), (box, kind)
            assert _within(pair, found.pair), (box, kind)
            tight += single.l2_squared == found.single.l2_squared
    assert tight > 100  # so that one less would not hold


def _box(rng: random.Random) -> tuple[Stack, list[tuple[int, ...]]]:
    ends = [sorted((rng.randint(-4, 4), rng.randint(-4, 4))) for _ in range(rng.randint(1, 3))]
    l1, ball = rng.choice((None, rng.randint(1, 8))), rng.choice((None, rng.randint(1, 6)))
    stack = Stack(tuple(Unit(0, low, high) for low, high in ends), rng.choice((None, 0)), l1, ball, False)
    every = list(itertools.product(*(range(low, high + 1) for low, high in ends)))
    inside = [
        v
        for v in every
        if (l1 is None or sum(map(abs, v)) <= l1) and (ball is None or sum(x * x for x in v) <= ball**2)
    ]
    zero = [(0,) * len(ends)] if stack.missing is not None or len(inside) < len(every) else []
    return stack, inside + zero


def _certified(stack: Stack, kind: str):
    program = Program(("a",), (column(0), stack), (Sum(kind, 1),))
    return certify(program, (CELL,), 1, every=True)[0].moves


def _largest(vectors: list[tuple[int, ...]], kind: str) -> tuple[Norms, Norms]:
    found = np.array(vectors)
    if kind == "products":
        i, j = np.triu_indices(found.shape[1])
        found = found[:, i] * found[:, j]
    far, apart = np.abs(found), np.abs(found[:, None] - found[None, :]).reshape(-1, found.shape[1])
    return tuple(Norms(int(x.sum(1).max()), int((x * x).sum(1).max()), int(x.max())) for x in (far, apart))


def _within(found: Norms, bound: Norms) -> bool:
    return all(getattr(found, each) <= getattr(bound, each) for each in Norms.__slots__)


GUARDED = Stack(tuple(Unit(0, 0, 1) for _ in range(20)), l1=1, shorten=True)
PLAIN = Stack(GUARDED.units)
ONE_BY_ONE = tuple(least(1, (*(int(i == j) for j in range(20)), 0)) for i in range(20))
DECEIVERS = {
    "the guard stands on another vector of the same numbers": ((column(0), GUARDED, PLAIN), Sum("products", 2), 210),
    "its coordinates one by one, each plus one": (
        (column(0), GUARDED, *ONE_BY_ONE, constant(1), *(Step("add", (i + 2, 22)) for i in range(20)),
         Stack(tuple(Unit(23 + i, 0, 2) for i in range(20)))),
        Sum("vectors", 43), 40,
    ),
    "its coordinates one by one, without a guard again": (
        (column(0), GUARDED, *ONE_BY_ONE, Stack(tuple(Unit(i + 2, 0, 1) for i in range(20)))), Sum("vectors", 22), 20,
    ),
    "times a number": ((column(0), GUARDED, Stack((Unit(0, -3, 2),))), Sum("vectors", 1, 2), 3),
    "a guard past the box": ((column(0), Stack(GUARDED.units, l1=99)), Sum("products", 1), 210),
    "a ball instead": ((column(0), Stack(GUARDED.units, ball=1)), Sum("products", 1), 11),
}  # fmt: skip


@pytest.mark.parametrize("name", DECEIVERS)
def test_what_looks_guarded_in_L1_and_is_not_moves_farther_S4_10(name: str) -> None:
    """Its own norms are certified, not those of a guard that stands elsewhere; the control: the guarded vector's."""
    steps, asked, l1 = DECEIVERS[name]
    assert certify(Program(("a",), steps, (asked,)), (CELL,), 1, every=True)[0].moves.single.l1 == l1
    for kind in ("vectors", "products"):  # free of the number of coordinates
        moved = certify(Program(("a",), (column(0), GUARDED), (Sum(kind, 1),)), (CELL,), 1, every=True)[0].moves
        assert (moved.single, moved.pair) == (Norms(1, 1, 1), Norms(2, 2, 1))


def test_a_number_times_a_vector_moves_by_their_product() -> None:
    """Coordinates, norms and all; a person's rows multiply it."""
    steps = (column(0), Stack((Unit(0, -3, 4), Unit(0, 0, 4)), ball=4), Stack((Unit(0, -2, 1),)))
    found = certify(Program(("a",), steps, (Sum("vectors", 1, 2),)), (CELL,), 3, every=True)[0]
    assert found.rows == 3
    assert found.moves.single == Norms(3 * 12, 9 * 64, 3 * 8)
    ball = Box.of((-300, -300), (300, 300), Norms(600, 160**2, 160))
    assert ball.times(Box.of((-120,), (120,))).norms.l1 == 27_153  # sqrt(2) times the product's norm, rounded up once
    assert Box.of((0,), (1,)).times(Box.of((-5,), (2,))).low == (-5,)


def test_presence_is_where_every_row_is_in_the_one_cell() -> None:
    """Not beside a condition or keys, nor where the statement leaves rows out."""
    steps = (column(0), VECTOR)
    for every, more, present in (
        (True, {}, True),
        (False, {}, False),
        (True, {"keys": (Key(0, 1),)}, False),
        (True, {"keys": (Key(0, 2),)}, False),
    ):
        program = Program(("a",), steps, (Sum("vectors", 1, **more),))
        assert certify(program, (CELL,), 1, every=every)[0].present is present


def test_a_vector_is_no_key_and_no_class_is_another() -> None:
    """A vector read as a key was priced as a factor, and failed where there is a row. Control: a number is a key."""
    steps = (column(0), Stack((Unit(0, 0, 9),)), Stack((Unit(0, 0, 0),)))
    assert check(Program(("c0",), steps, (Sum("vectors", 1, keys=(Key(0, 3),)),)))
    with pytest.raises(Refused, match="a vector for a key"):
        check(Program(("c0",), steps, (Sum("vectors", 1, keys=(Key(2, 1),)),)))
    for cls, made in (
        (Sum, lambda each: (steps, (each("vectors", 1),))),
        (Key, lambda each: (steps, (Sum("vectors", 1, keys=(each(0, 3),)),))),
        (Unit, lambda each: ((column(0), Stack((each(0, 0, 9),))), (Sum("vectors", 1),))),
    ):
        with pytest.raises(Refused):
            check(Program(("c0",), *made(type("Other", (cls,), {"__slots__": ()}))))
    with pytest.raises(Refused, match="another class"):
        check(type("Other", (Program,), {"__slots__": ()})(("c0",), steps, (Sum("vectors", 1),)))
