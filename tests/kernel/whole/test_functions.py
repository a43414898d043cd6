"""Sample and aggregate, and declared functions: one block moves, whatever the function does, and nobody hears it.

S4.13, SR5, SR11, T31.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
import sys
import threading
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from sulq.kernel.facts import Refused
from sulq.kernel.whole.functions import (
    BLANK,
    Aggregated,
    Declared,
    Function,
    Owned,
    Range,
    Word,
    declared,
    given,
    hushed,
)
from tests.figures import figure

ONE = Fraction(1)
UNIT = Fraction(1, 2**19)
FEW = Range(UNIT, -8 * 2**19, 8 * 2**19)
ROWS = np.ones((3, 1))


def asked(columns: int = 1, count: int = 4) -> Aggregated:
    """Blocks told by the hash modulo their number."""
    return Aggregated("own", (ONE,) * columns, count, (0, 1, 0), FEW)


def mean(question: Aggregated, rows: np.ndarray, function: Function) -> float:
    """The average of the blocks' estimates."""
    return float(question.exact(rows, function)[0] * UNIT / question.blocks)


def test_blocks_are_told_by_the_persons_hash_alone() -> None:
    """As ((a u + b v + c) mod p) mod blocks, of hashes of 60 bits: as Python's integers tell how many are in each."""
    rng = np.random.default_rng(4)
    hashes = rng.integers(0, 2**60, 200)
    question = Aggregated("own", (ONE,), 7, (2**31 - 2, 2**31 - 3, 12345), Range(ONE, 0, 200))
    told = [
        (a * (h >> 30) + b * (h % 2**30) + c) % (2**31 - 1) % 7
        for h in hashes.tolist()
        for a, b, c in [question.mixing]
    ]
    seen: list[int] = []
    question.exact(np.column_stack([hashes, hashes % 5]), lambda rows: seen.append(len(rows)) or 0.0)
    assert seen == np.bincount(told, minlength=7).tolist()


def test_whatever_a_function_does_stays_within_its_bounds_SR5() -> None:
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
    found = {name: mean(asked(), rows, function) for name, function in own.items()}
    assert found == {"fails": 0, "nan": 0, "text": 0, "high": 8, "huge": -8, "nothing": 0, "leaves": 0}


def test_an_empty_block_has_an_estimate_too() -> None:
    """A block of nobody gives the middle; how many blocks have anyone changes no shape."""
    assert mean(asked(), np.zeros((0, 2), dtype=np.int64), np.mean) == 0
    assert mean(asked(), np.array([(2, 8)]), np.median) == pytest.approx(8 / 4, abs=1e-5)


def test_one_person_moves_one_block_by_its_range_at_most_SR11() -> None:
    """Brute force over what a person's rows, any number of them in one block, can do to any estimator; it is reached.

    Under replace_one the person who comes is in another block: twice. Control: half would not do.
    """
    question = asked(count=3)
    rng = np.random.default_rng(1)
    said = question.figure(5)
    most = swapped = 0
    for _ in range(300):
        table = {int(n): float(rng.uniform(-20, 20)) for n in range(60)}  # an estimator that is nobody's friend
        wild = lambda rows, table=table: table[len(rows) % 60] * (1 if rows.sum() % 2 else -1)  # noqa: E731
        base = np.column_stack([rng.integers(0, 3, 9), rng.integers(-5, 5, 9)])
        extra = [np.column_stack([np.full(n, b), rng.integers(-5, 5, n)]) for b, n in ((0, 5), (1, 4))]
        values = [int(question.exact(np.vstack([base, *more]), wild)[0]) for more in ([], *[[e] for e in extra])]
        most = max(most, abs(values[1] - values[0]))
        swapped = max(swapped, abs(values[1] - values[2]))
    assert said.alone.l1 / 2 < most <= said.alone.l1
    assert said.alone.l1 < swapped <= said.swapped.l1 == 2 * said.alone.l1
    assert question.figure(1) == said  # how many rows a person has does not count


def test_the_order_of_rows_is_no_part_of_the_data() -> None:
    """An estimator that looks at the first row sees the same one, however an engine lists them."""
    rng = np.random.default_rng(3)
    rows = np.column_stack([rng.integers(0, 4, 50), rng.integers(-8, 8, 50)])
    first = lambda values: values[0, 0]  # noqa: E731
    assert mean(asked(), rows, first) == mean(asked(), rows[::-1], first)


def word(columns: int = 1, moved: Fraction = Fraction(1, 10), high: int = 2**22) -> Word:
    return Word((ONE,) * columns, Range(Fraction(1, 2**22), 0, high), moved, placed=True)


def test_a_declared_function_moves_by_its_owners_word_S4_13() -> None:
    """So many units, rounded up; whatever a person's rows are, and no farther than its bounds are apart."""
    said = Declared("own", word()).figure(1)
    unit = Fraction(1, 2**22)
    assert Fraction(1, 10) + unit / 2 <= said.alone.l1 * unit <= Fraction(1, 10) + 3 * unit / 2
    assert said == Declared("own", word()).figure(100)
    assert said.alone == said.swapped
    assert Declared("own", word(moved=Fraction(7))).figure(1).alone.l1 * unit == 1
    rows = np.array([(2, 9), (0, 3), (1, 5)])  # place, value
    found = Declared("own", word()).exact(rows, lambda values: values[0, 0] / 10)
    assert float(found[0] * unit) == pytest.approx(0.3, abs=1e-5)  # in the order of their places


@pytest.mark.parametrize("unit", [ONE, Fraction(1, 3), Fraction(3, 8), Fraction(1, 2**20)], ids=str)
def test_rounding_moves_a_declared_function_no_farther_than_its_figure_S4_27(unit: Fraction) -> None:
    """Numbers that are the sensitivity apart, together, in L1, each off by less than half a unit as doubles may be.

    Values next to halves of units are among them. Control: a unit less for each number is passed.
    """
    rng = np.random.default_rng(6)
    for width, moved in ((1, ONE), (1, Fraction(5, 7)), (3, ONE), (3, Fraction(5, 2))):
        own = Declared("own", Word((ONE,), Range(unit, 0, math.ceil(100 / unit)), moved, width))
        most = 0
        for _ in range(150):
            first = [float((int(rng.integers(0, 90)) + Fraction(1, 2)) * unit) + rng.choice([0, -1e-14, 1e-14])]
            first += rng.uniform(0, 90, width - 1).tolist()
            parts = rng.dirichlet(np.full(width, 0.5)) if width > 1 else np.ones(1)
            off = rng.uniform(-0.499, 0.499, width) * float(unit)
            second = (np.array(first) + float(moved) * parts + off).tolist()
            one, other = (own.exact(np.array([(0,)]), lambda _, v=v: v) for v in (first, second))
            most = max(most, int(np.abs(one - other).sum()))
        assert most <= own.figure(1).alone.l1
        if unit == ONE and width == 3:
            assert most > math.ceil(moved)


def test_every_norm_of_a_declared_function_is_bounded_by_its_own_S4_27() -> None:
    """Three numbers that move by 3 units together, or by 2 each, and by half a unit each as doubles may.

    A number that moves by d units and a half is floor(d + 1/2) + 1 units farther at most, once it is rounded.
    Control: each bound but that of squares is reached.
    """
    parts = np.array(list(itertools.product(range(7), repeat=3))) / 2
    moves = {False: parts[parts.sum(axis=1) <= 3], True: parts[parts.max(axis=1) <= 2]}
    apart = {each: np.floor(moved + 0.5) + 1 for each, moved in moves.items()}
    for each, found in apart.items():
        moved = Fraction(2 if each else 3)
        said = Declared("own", Word((ONE,), Range(ONE, 0, 100), moved, 3, each)).figure(1).alone
        assert found.sum(axis=1).max() == said.l1
        assert (found**2).sum(axis=1).max() <= said.l2_squared
        assert found.max() == said.most
        assert (found > 0).sum(axis=1).max() == said.bits
    reached = int(apart[False].sum(axis=1).max())
    figure(
        "S4.27", "L1 move in units of three rounded doubles that move by 3 together", reached, "3 + 3/2 + 3, below 8"
    )


@pytest.mark.parametrize("words", [(Fraction(0),), (Fraction(-1),), (1,), (ONE, 0), (ONE, 2**21), (ONE, 1.0)], ids=str)
def test_a_word_that_is_none_is_refused(words: tuple) -> None:
    """No sensitivity, or no number of numbers."""
    with pytest.raises(Refused):
        Word((ONE,), FEW, *words)


def test_rows_without_places_are_handed_over_in_one_order_S4_27() -> None:
    """However an engine lists them; a missing cell is NaN and no row is left out."""
    seen: list[np.ndarray] = []
    rows = np.array([(9, 1), (BLANK, 4), (9, 0), (BLANK, BLANK)])
    unplaced = replace(word(2), placed=False)
    for given_rows in (rows, rows[::-1], rows[[2, 0, 3, 1]]):
        Declared("own", unplaced).exact(given_rows, lambda values: seen.append(values) or 0.0)
    expected = [(math.nan, math.nan), (math.nan, 4), (9, 0), (9, 1)]
    assert all(np.array_equal(each, expected, equal_nan=True) for each in seen)
    assert Declared("own", unplaced).columns == 2
    Declared("own", word(1)).exact(rows[::2], lambda values: seen.append(values) or 0.0)
    assert seen[-1].tolist() == [[1], [0]] or seen[-1].tolist() == [[0], [1]]


def test_several_numbers_are_given_or_all_are_the_middle_S4_27() -> None:
    """Too few, too many, texts or an error: a constant in range. Control: as many as were declared."""
    own = Declared("own", Word((ONE,), Range(ONE, 0, 9), ONE, 3))
    cells = np.array([(5,)])
    assert own.exact(cells, lambda rows: [rows[0, 0], 2.6, 99]).tolist() == [5, 3, 9]
    assert own.exact(cells, lambda _: np.array([[1, math.nan, -7]])).tolist() == [1, 4, 0]
    for wrong in ([1, 2], [1, 2, 3, 4], "abc", None, 7, [1, "x", 3], {"a": 1}):
        assert own.exact(cells, lambda _, wrong=wrong: wrong).tolist() == [4, 4, 4]


def test_what_is_asked_is_what_the_owner_declares_SR5() -> None:
    """Another bound, range or name than the owner's is refused. Control: the owner's."""
    owners = {"own": Owned(word(), ("kept",), ("c0",))}
    assert declared(Declared("own", word()), owners) is owners["own"]
    for other in (
        Declared("own", word(moved=Fraction(1, 40))),
        Declared("own", replace(word(), each=True)),
        Declared("own", replace(word(), placed=False)),
        Declared("own", word(high=2**21)),
        Declared("own", word(2)),
        Declared("other", word()),
    ):
        with pytest.raises(Refused):
            declared(other, owners)


@pytest.mark.parametrize("numbers", [(Fraction(0), 0, 1), (ONE, 1, 0), (ONE, 0, 2**41), (ONE, 0.0, 1), (-ONE, 0, 1)])
def test_a_range_that_is_none_is_refused(numbers: tuple) -> None:
    """No unit, ends the wrong way round, or too many units for a double's rounding."""
    with pytest.raises(Refused):
        Range(*numbers)


@pytest.mark.parametrize("more", [{"blocks": 0}, {"blocks": True}, {"mixing": (2**31, 0, 0)}, {"mixing": (0, -1, 0)}])
def test_blocks_that_64_bits_do_not_tell_are_refused(more: dict) -> None:
    """No block at all, or multipliers past the prime."""
    with pytest.raises(Refused):
        replace(asked(), **more)


def test_a_missing_cell_is_NaN_where_it_stands_S4_13() -> None:
    """So a function of many rows sees as many, each in its place, whatever they lack; control: others are numbers."""
    seen = []
    rows = np.array([(2, 9, 1), (0, BLANK, 4), (1, BLANK, BLANK)])
    Declared("own", word(2)).exact(rows, lambda values: seen.append(values) or 0.0)
    assert np.array_equal(seen[0], [(math.nan, 4), (math.nan, math.nan), (9, 1)], equal_nan=True)


@pytest.mark.parametrize(
    "error", [ValueError, SystemExit, GeneratorExit, asyncio.CancelledError, MemoryError, StopIteration], ids=str
)
def test_whatever_a_function_raises_it_gives_nothing_T31(error: type[BaseException]) -> None:
    """Leaving the interpreter among them; control: the operator's interrupt passes."""

    def raises(rows: np.ndarray) -> float:
        raise error(f"a row says {rows[0, 0]}")

    def stopped(_rows: np.ndarray) -> float:
        raise KeyboardInterrupt

    assert math.isnan(*given(raises, ROWS))
    with pytest.raises(KeyboardInterrupt):
        given(stopped, ROWS)


def test_an_interrupt_leaves_a_function_without_its_text_T31() -> None:
    """A function may raise one itself and write a row into it, into what led to it, and into its frames."""

    def interrupts(rows: np.ndarray) -> float:
        try:
            raise ValueError(f"a row says {rows[0, 0]}")
        except ValueError as error:
            raise KeyboardInterrupt(f"a row says {rows[0, 0]}") from error

    with pytest.raises(KeyboardInterrupt) as raised:
        given(interrupts, ROWS)
    assert raised.value.args == ()
    assert raised.value.__context__ is None
    assert raised.value.__cause__ is None
    assert "interrupts" not in [entry.name for entry in raised.traceback]


def loud(_rows: np.ndarray) -> float:
    """A function that tells a secret in every way it can."""
    print("canary")
    print("canary", file=sys.stderr)
    logging.getLogger("owners").critical("canary")
    warnings.warn("canary", stacklevel=1)
    thread = threading.Thread(target=print, args=("canary",))
    thread.start()
    thread.join()
    return 1.0


def test_what_a_function_says_is_not_heard_T31(
    capfd: pytest.CaptureFixture, caplog: pytest.LogCaptureFixture, recwarn: pytest.WarningsRecorder
) -> None:
    """Prints, log lines of any level and warnings are swallowed, and heard again afterwards.

    Control: called without the hush, all of them are heard.
    """
    caplog.set_level(logging.DEBUG)
    streams = sys.stdout, sys.stderr
    with hushed():
        assert given(loud, ROWS) == [1.0]
    out = capfd.readouterr()
    assert "canary" not in out.out + out.err + caplog.text
    assert not recwarn.list
    assert (sys.stdout, sys.stderr) == streams
    loud(ROWS)
    out = capfd.readouterr()
    assert out.out.count("canary") == 2
    assert "canary" in out.err
    assert "canary" in caplog.text
    assert len(recwarn.list) == 1


def test_the_hush_ends_with_an_error_and_waits_for_its_turn() -> None:
    """What was disabled before stays as it was, and two threads that are hushed at once leave the streams alone."""
    streams, disabled = (sys.stdout, sys.stderr), logging.root.manager.disable

    def work() -> None:
        for _ in range(50):
            with hushed():
                given(loud, ROWS)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with pytest.raises(KeyError), hushed():
        raise KeyError
    assert (sys.stdout, sys.stderr) == streams
    assert logging.root.manager.disable == disabled
