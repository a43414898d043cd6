"""Sample and aggregate, and certified functions: one block moves, whatever the function does (S4.13, SR5, SR11)."""

from __future__ import annotations

import math
import sys
from fractions import Fraction

import numpy as np
import pytest

from sulq.curator.statistics import aggregate
from sulq.terms.engine import BLANK, Block
from sulq.terms.estimator import Certificate
from sulq.terms.rowfn.keys import Bucket
from sulq.terms.rowfn.scalar import Col
from sulq.terms.statistic import ESTIMATORS, Aggregated


def blocks(count: int, columns: int, step: Fraction = Fraction(1)) -> tuple[Block, ...]:
    own = Block(Bucket(count), Fraction(1), (0,), (count - 1,), vector=False)
    return (own, *(Block(Col(f"c{i}"), step, (-(2**20),), (2**20,), vector=False) for i in range(columns)))


def asked(name: str, columns: int = 1, count: int = 4, low: float = -8, high: float = 8) -> Aggregated:
    return Aggregated(name, tuple(f"c{i}" for i in range(columns)), count, low, high)


def mean(question: Aggregated, rows: np.ndarray, own: dict | None = None) -> float:
    """The average of the blocks' estimates."""
    given = blocks(question.blocks, len(question.columns))
    found = aggregate.exact(question, given, rows, own or {})
    return float(found[0] * aggregate.figure(question, given, 1).step)


def test_estimators_that_sulq_brings() -> None:
    """Each of a block's values, averaged over blocks; exactly, on the grid of estimates."""
    rows = np.array([(b, v) for b in range(4) for v in (b, b + 1, b + 5)])
    assert mean(asked("mean"), rows) == pytest.approx(np.mean([b + 2 for b in range(4)]), abs=1e-5)
    assert mean(asked("median"), rows) == pytest.approx(np.mean([b + 1 for b in range(4)]), abs=1e-5)
    assert mean(asked("trimmed_mean"), rows) == pytest.approx(np.mean([b + 2 for b in range(4)]), abs=1e-5)
    line = np.array([(b, x, 2 * x + b) for b in range(4) for x in range(6)])
    assert mean(asked("slope", 2), line) == pytest.approx(2.0, abs=1e-5)
    assert mean(asked("correlation", 2), line) == pytest.approx(1.0, abs=1e-5)


def test_SR5_whatever_a_function_does_stays_within_its_bounds() -> None:
    """An error, no number, infinities and texts: a constant in range, or the bound; nothing gets out (T31)."""

    def fails(rows: np.ndarray) -> float:
        raise ValueError(f"a row says {rows[0, 0]}")

    rows = np.array([(b, 7) for b in range(4)])
    own = {
        "fails": fails,
        "nan": lambda _rows: math.nan,
        "text": lambda _rows: "seven",
        "high": lambda _rows: math.inf,
        "huge": lambda _rows: -1e300,
        "nothing": lambda _rows: None,
        "leaves": lambda _rows: sys.exit(3),
    }
    found = {name: mean(asked(name), rows, own) for name in own}
    assert found == {"fails": 0, "nan": 0, "text": 0, "high": 8, "huge": -8, "nothing": 0, "leaves": 0}


def test_an_empty_block_has_an_estimate_too() -> None:
    """A block of nobody gives the middle; how many blocks have anyone changes no shape."""
    assert mean(asked("mean"), np.zeros((0, 2), dtype=np.int64)) == 0
    assert mean(asked("median"), np.array([(2, 8)])) == pytest.approx(8 / 4, abs=1e-5)


def test_SR11_one_person_moves_one_block_by_its_range_at_most() -> None:
    """Brute force over what a person's rows, any number of them in one block, can do to any estimator; it is reached.

    Under replace_one the person who comes is in another block: twice. Control: half would not do.
    """
    question = asked("wild", count=3)
    rng = np.random.default_rng(1)
    given = blocks(3, 1)
    said = aggregate.figure(question, given, 5)
    most = swapped = 0
    for _ in range(300):
        table = {int(n): float(rng.uniform(-20, 20)) for n in range(60)}  # an estimator that is nobody's friend
        own = {"wild": lambda rows, table=table: table[len(rows) % 60] * (1 if rows.sum() % 2 else -1)}
        base = np.column_stack([rng.integers(0, 3, 9), rng.integers(-5, 5, 9)])
        extra = [np.column_stack([np.full(n, b), rng.integers(-5, 5, n)]) for b, n in ((0, 5), (1, 4))]
        values = [
            int(aggregate.exact(question, given, np.vstack([base, *more]), own)[0])
            for more in ([], *[[e] for e in extra])
        ]
        most = max(most, abs(values[1] - values[0]))
        swapped = max(swapped, abs(values[1] - values[2]))
    assert said.alone.l1 / 2 < most <= said.alone.l1
    assert said.alone.l1 < swapped <= said.swapped.l1 == 2 * said.alone.l1
    assert aggregate.figure(question, given, 1) == said  # how many rows a person has does not count


def test_the_order_of_rows_is_no_part_of_the_data() -> None:
    """An estimator that looks at the first row sees the same one, however an engine lists them."""
    rng = np.random.default_rng(3)
    rows = np.column_stack([rng.integers(0, 4, 50), rng.integers(-8, 8, 50)])
    own = {"first": lambda values: values[0, 0]}
    assert mean(asked("first"), rows, own) == mean(asked("first"), rows[::-1], own)


def test_S4_13_a_certified_function_moves_by_its_certificate() -> None:
    """A row moves it 2 * within at most, rounding counted; k rows k times, no farther than its bounds are apart."""
    certificate = Certificate(reads=0.1, within=0.05, probability=0.9, low=0, high=1, columns=("c0",))
    said = aggregate.certified_figure(certificate, 1)
    assert 0.1 <= float(said.step * said.alone.l1) <= 0.1 + 2 * float(said.step)
    assert aggregate.certified_figure(certificate, 100).alone.l1 * said.step == 1
    rows = np.array([(2, 9), (0, 3), (1, 5)])  # place, value
    found = aggregate.certified(certificate, blocks(1, 1), rows, lambda values: values[0, 0] / 10)
    assert float(found[0] * said.step) == pytest.approx(0.3, abs=1e-5)  # in the order of their places


def test_S4_13_a_missing_cell_is_NaN_where_it_stands() -> None:
    """So a function of many rows sees as many, each in its place, whatever they lack; control: others are numbers."""
    certificate = Certificate(reads=0.1, within=0.05, probability=0.9, low=0, high=9, columns=("c0", "c1"))
    seen = []
    rows = np.array([(2, 9, 1), (0, BLANK, 4), (1, BLANK, BLANK)])
    aggregate.certified(certificate, blocks(1, 2), rows, lambda values: seen.append(values) or 0.0)
    assert np.array_equal(seen[0], [(math.nan, 4), (math.nan, math.nan), (9, 1)], equal_nan=True)


def test_estimators_that_sulq_brings_are_those_the_language_names() -> None:
    """One list of names, and a function for each."""
    assert tuple(aggregate.OWN) == ESTIMATORS
