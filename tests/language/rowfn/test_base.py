"""Python's operators on columns: each with one meaning on every engine, or refused with what to write instead."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pyarrow as pa
import pytest

import sulq
import sulq.testing
from sulq import Epsilon, Unit, by_row, col, lit
from sulq.errors import QuestionError

N = [-7, -4, -1, 0, 1, 2, 5, 8]
COLUMNS = {"n": sulq.Int(-7, 8), "p": sulq.Int(1, 8), "a": sulq.Bool(), "b": sulq.Bool()}
DATA = {
    "n": N,
    "p": [abs(n) or 3 for n in N],
    "a": [True, True, True, False, False, False, None, None],
    "b": [True, False, None, True, False, None, True, None],
}


def half_away(value: float) -> float:
    return math.copysign(math.floor(abs(value) + 0.5), value)


MEANINGS = {  # a row function, and the same of a row's numbers n and p in plain Python
    "n % 3": (col("n") % 3, lambda n, _: math.fmod(n, 3)),
    "n // 3": (col("n") // 3, lambda n, _: n // 3),
    "12 // p": (12 // col("p"), lambda _, p: 12 // p),
    "2 / p": (2 / col("p"), lambda _, p: 2 / p),
    "3 - n": (3 - col("n"), lambda n, _: 3 - n),
    "-n": (-col("n"), lambda n, _: -n),
    "+n": (+col("n"), lambda n, _: n),
    "abs(n)": (abs(col("n")), lambda n, _: abs(n)),
    "n ** 2": (col("n") ** 2, lambda n, _: n**2),
    "n ** 3": (col("n") ** 3, lambda n, _: n**3),
    "n ** 0": (col("n") ** 0, lambda *_: 1),
    "p ** -1": (col("p") ** -1, lambda _, p: 1 / p),
    "round(n / 2)": (round(col("n") / 2), lambda n, _: half_away(n / 2)),
    "round(n / 3, 1)": (round(col("n") / 3, 1), lambda n, _: half_away(n / 3 * 10) / 10),
    "floor(n / 2)": (math.floor(col("n") / 2), lambda n, _: math.floor(n / 2)),
    "ceil(n / 2)": (math.ceil(col("n") / 2), lambda n, _: math.ceil(n / 2)),
    "trunc(n / 2)": (math.trunc(col("n") / 2), lambda n, _: math.trunc(n / 2)),
    "n == p": (lit(1) * (col("n") == col("p")), lambda n, p: n == p),
    "0 <= n": (lit(1) * (col("n") >= 0), lambda n, _: n >= 0),
    "~(n > 0)": (lit(1) * ~(col("n") > 0), lambda n, _: not n > 0),
    "n > 0 ^ p > 4": (lit(1) * ((col("n") > 0) ^ (col("p") > 4)), lambda n, p: (n > 0) != (p > 4)),
    "True ^ n > 0": (lit(1) * (True ^ (col("n") > 0)), lambda n, _: not n > 0),
    "n + by row": (col("n") * by_row([1, 0, 2, 0.5]), None),
}


@pytest.mark.parametrize("engine", ["duckdb", "memory"])
def test_operators_mean_what_python_writes(engine: str) -> None:
    """Each on every row of a table, one cell a row, without noise; `%` keeps the sign and `round` goes from zero."""
    unit = Unit(neighbors="replace_one")
    table = pa.table(DATA)
    with sulq.connect(table, columns=COLUMNS, unit=unit, budget=Epsilon(9), synthetic=True, engine=engine) as db:
        plain = sulq.testing.exact(db)
        place = sulq.each(sulq.position().clip(0, 7))
        for name, (fn, meaning) in MEANINGS.items():
            found = plain.ask(sulq.Sums((fn,), by=(place,)), spend=Epsilon(1)).released.values()[:, 0]
            if meaning is None:
                meant = [n * factor for n, factor in zip(N, [1, 0, 2, 0.5, 0, 0, 0, 0], strict=True)]
            else:
                meant = [float(meaning(n, p)) for n, p in zip(N, DATA["p"], strict=True)]
            assert found == pytest.approx(meant, abs=1e-4), name


@pytest.mark.parametrize("engine", ["duckdb", "memory"])
def test_exclusive_or_is_unknown_where_either_side_is(engine: str) -> None:
    """`a ^ b` of three truth values, as `a != b` is; a number is no condition."""
    with sulq.connect(pa.table(DATA), columns=COLUMNS, budget=Epsilon(9), synthetic=True, engine=engine) as db:
        plain = sulq.testing.exact(db)
        meant = [None if a is None or b is None else a != b for a, b in zip(DATA["a"], DATA["b"], strict=True)]
        for fn in (col("a") ^ col("b"), col("b") ^ col("a"), col("a") != col("b")):
            assert plain.count(fn, spend=Epsilon(1)).value == meant.count(True)
            assert plain.count(fn.is_missing(), spend=Epsilon(1)).value == meant.count(None)
        for wrong in (col("n") ^ 1, col("n") ^ col("a"), 1 ^ col("n")):
            with pytest.raises(QuestionError) as refused:
                plain.count(wrong, spend=Epsilon(1))
            assert refused.value.code == "wrong-kind"


REFUSED = {
    "and": (lambda: col("a") and col("b"), "& | ~ ^"),
    "or": (lambda: col("a") or col("b"), "& | ~ ^"),
    "not": (lambda: not col("a"), "& | ~ ^"),
    "if": (lambda: 1 if col("a") else 0, "case("),
    "chain": (lambda: 0 < col("n") < 3, "between(lo, hi)"),
    "in a list": (lambda: col("n") in [1, 2], "isin("),
    "in a column": (lambda: 1 in col("n"), "isin("),
    "text in a column": (lambda: "x" in col("n"), "like("),
    "% by a column": (lambda: col("n") % col("p"), "constant on the right"),
    "a constant % a column": (lambda: 7 % col("p"), "constant on the right"),
    "** by a column": (lambda: col("n") ** col("p"), "constant on the right"),
    "a constant ** a column": (lambda: 2 ** col("p"), "constant on the right"),
    "None": (lambda: col("n") == None, "is_missing()"),  # noqa: E711 - what a reader may write
    "matrices": (lambda: col("n") @ col("p"), "operator from this list"),
    "shifts": (lambda: col("n") << 2, "operator from this list"),
    "divmod": (lambda: divmod(col("n"), 2), "operator from this list"),
    "sum of a column": (lambda: sum(col("n")), "operator from this list"),
    "max": (lambda: max(col("n"), col("p")), "& | ~ ^"),
    "int": (lambda: int(col("n")), "operator from this list"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_operator_without_a_meaning_says_what_to_write(name: str) -> None:
    """A code, a sentence, and the next step; never a TypeError of Python's, never a silent constant."""
    act, hint = REFUSED[name]
    with pytest.raises(QuestionError) as refused:
        act()
    assert refused.value.code in ("bad-question", "bad-literal")
    assert hint in str(refused.value)


def test_numbers_of_numpy_leave_the_operator_to_the_column() -> None:
    """On either side, arrays of one number too; the column is not asked number by number."""
    for left, right in itertools.permutations((np.float64(2.5), col("n"))):
        assert type(left + right).__name__ == "Arith"
    assert type(np.bool_(True) ^ (col("n") > 0)).__name__ == "Logic"
    assert type(np.int64(7) // col("p")).__name__ == "Maths"


def test_a_number_for_each_row_has_its_limits_S0_7() -> None:
    """Numbers alone, finite, at most a million; text and nested lists are refused."""
    for wrong in (["x"], [[1]], [math.nan], "12", 3):
        with pytest.raises(QuestionError):
            by_row(wrong)
    with pytest.raises(QuestionError) as refused:
        by_row(itertools.repeat(1))
    assert refused.value.code == "too-large"
    assert by_row(np.array([1, 2])).table == ((1,), (2,), (0,))


@pytest.mark.parametrize("neighbors", ["replace_one", "zero_out"])
def test_a_subset_of_the_rows_is_a_number_for_each_S0_5_S1_1(neighbors: str) -> None:
    """S0.5, S1.1: a query (S, g) sums g over the rows of S, fixed beforehand; it moves by one as g does."""
    inside = np.arange(8) % 3 == 0
    unit = Unit(neighbors=neighbors)
    with sulq.connect(pa.table(DATA), columns=COLUMNS, unit=unit, budget=Epsilon(9), synthetic=True) as db:
        query = by_row(inside.astype(int)) * (col("n") > 0)
        assert sulq.testing.exact(db).sum(query, spend=Epsilon(1)).value == sum(np.array(N)[inside] > 0)
        assert db.foresee(sulq.Sums((query,)), spend=Epsilon(1)).parts[0].laws[0].scale == 1
