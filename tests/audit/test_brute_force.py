"""Sensitivity by brute force: the papers' own numbers, and all pairs of neighbours, enumerated otherwise (S3.4)."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest

from sulq import Unit, audit
from sulq.errors import QuestionError
from tests.figures import figure

SWAPPED, BLANKED = Unit(neighbors="replace_one"), Unit(neighbors="zero_out")
BITS = (0, 1)


def total(rows: np.ndarray) -> float:
    """The sum, missing cells and blanked rows left out."""
    return float(np.nansum(rows))


def histogram(rows: np.ndarray) -> list[int]:
    """How many rows have each of three values."""
    return [int((rows[:, 0] == value).sum()) for value in range(3)]


@pytest.mark.parametrize(
    ("f", "domain", "unit", "norm", "expected"),
    [
        (total, BITS, Unit(), "l1", 1),  # S4.6, Example 3; X1
        (total, BITS, SWAPPED, "l1", 1),
        (total, BITS, BLANKED, "l1", 1),
        (total, (-3, 2), Unit(), "l1", 3),  # max(|a|, |b|)
        (total, (-3, 2), SWAPPED, "l1", 5),  # b - a
        (total, (-3, 2), BLANKED, "l1", 3),
        (histogram, range(3), Unit(), "l1", 1),  # S3.8
        (histogram, range(3), SWAPPED, "l1", 2),  # S4.6
        (histogram, range(3), SWAPPED, "l2", math.sqrt(2)),
        (histogram, range(3), SWAPPED, "linf", 1),
        (histogram, range(3), BLANKED, "l1", 1),
        (np.nanmean, BITS, SWAPPED, "l1", 1 / 3),  # of three rows: width/n
        (len, (0, None), Unit(), "l1", 1),
        (len, (0, None), SWAPPED, "l1", 0),  # how many rows there are is public
        (len, (0, None), BLANKED, "l1", 0),
    ],
)
def test_the_papers_numbers_are_met_S3_4(f: object, domain: object, unit: Unit, norm: str, expected: float) -> None:
    """Exactly, over all tables of three rows; the pair that is told reaches it."""
    found = audit.sensitivity(f, domain, 3, unit, norm=norm)
    assert found.value == pytest.approx(expected, abs=1e-12)
    width = len(next(iter(domain), ())) if isinstance(next(iter(domain)), tuple) else 1
    first, second = (np.array(rows, dtype=float).reshape(-1, width) for rows in (found.first, found.second))
    order = {"l1": 1, "l2": 2, "linf": np.inf}[norm]
    apart = np.linalg.norm(np.atleast_1d(f(first)).astype(float) - np.atleast_1d(f(second)).astype(float), ord=order)
    assert apart == pytest.approx(found.value)


@pytest.mark.parametrize(("neighbors", "expected"), [("add_remove", 505), ("zero_out", 505), ("replace_one", 505)])
def test_a_person_of_several_rows_moves_a_sum_by_all_of_them_SR1(neighbors: str, expected: float) -> None:
    """SR1's own example: values of 100 and 101, five rows, replace_one: 505 and not 5. Control: of one row 101."""
    assert audit.sensitivity(total, (100, 101), 2, Unit("pid", 5, neighbors)).value == expected
    assert audit.sensitivity(total, (100, 101), 2, Unit("pid", 1, neighbors)).value == 101
    assert audit.sensitivity(total, (100, 101), 2, SWAPPED).value == 1


def test_the_covariance_moves_by_six_and_not_by_eight_S4_10_E35() -> None:
    """With rows in the L1 ball of radius c, here its corners: 6 c^2 (n - 1)/n^2, reached; 8 c^2/n is not."""

    def covariance(rows: np.ndarray) -> np.ndarray:
        return rows.T @ rows / len(rows) - np.outer(rows.mean(axis=0), rows.mean(axis=0))

    corners = [(1, 0), (-1, 0), (0, 1), (0, -1)]
    for n in (2, 4, 6):
        found = audit.sensitivity(covariance, corners, n, SWAPPED).value
        assert found <= 6 * (n - 1) / n**2 + 1e-12 < 8 / n
        if n == 6:
            assert found == pytest.approx(5 / 6)
            figure("S3.4", "largest move of the covariance of six rows at corners of the L1 ball, c = 1", found, 5 / 6)
            figure(
                "E35",
                "largest move of a covariance, n = 6, L1 norm 1, over all corners",
                found,
                "printed 8/6; right 6 * 5/36 = 0.8333",
            )


def test_an_approximate_distance_moves_by_more_than_one_trap_9() -> None:
    """The distance from being sorted is one-sensitive; a greedy one, which approximates it, is not."""

    def distance(rows: np.ndarray) -> int:
        values = rows[:, 0].tolist()
        kept = max(
            (len(part) for n in range(len(values) + 1) for part in itertools.combinations(values, n)
             if all(a <= b for a, b in itertools.pairwise(part))),
            default=0,
        )  # fmt: skip
        return len(values) - kept

    def greedy(rows: np.ndarray) -> int:
        kept, high = 0, -math.inf
        for value in rows[:, 0]:
            if value >= high:
                kept, high = kept + 1, value
        return len(rows) - kept

    assert audit.sensitivity(distance, range(3), 4, SWAPPED).value == 1
    assert audit.sensitivity(greedy, range(3), 4, SWAPPED).value > 1


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one", "zero_out"])
@pytest.mark.parametrize("column", [None, "pid"])
def test_every_pair_of_neighbours_is_looked_at_S3_4(neighbors: str, column: str | None) -> None:
    """Against another enumeration: of each person's rows by name, for functions that are tables of random numbers."""
    rng = np.random.default_rng(7)
    unit = Unit(column, 2 if column else 1, neighbors)
    places = column is None and neighbors != "add_remove"
    numbers: dict[str, np.ndarray] = {}

    def wild(rows: np.ndarray) -> np.ndarray:
        return numbers.setdefault(str(rows.tolist()), rng.normal(size=2))

    found = audit.sensitivity(wild, (0, 1), 2, unit)
    own = [held for many in range(unit.rows + 1) for held in itertools.product((0.0, 1.0), repeat=many)]
    if places:
        own = [(0.0,), (1.0,), *([(math.nan,)] if neighbors == "zero_out" else [])]
    gone = (math.nan,) if places else ()

    def value(people: tuple) -> np.ndarray:
        rows = [row for held in people for row in held]
        return wild(np.array(rows if places else sorted(rows)).reshape(-1, 1))

    worst = 0.0
    for people in itertools.product(own, repeat=2):
        for i, other in itertools.product(range(2), own if neighbors == "replace_one" else [gone]):
            changed = tuple(other if j == i else held for j, held in enumerate(people))
            worst = max(worst, float(np.abs(value(people) - value(changed)).sum()))
    assert found.value == worst
    assert found.tables == len(numbers)


def test_missing_cells_and_tuples_are_rows_of_a_domain() -> None:
    """A missing cell is NaN and comes first; of tuples there are as many columns."""
    seen = []
    audit.sensitivity(lambda rows: seen.append(rows.tolist()) or 0, [(2, None), (1, 5), (None, 3)], 1, Unit())
    told = [str(rows) for rows in seen]
    assert told == ["[]", "[[nan, 3.0]]", "[[1.0, 5.0]]", "[[2.0, nan]]"]
    audit.sensitivity(lambda rows: seen.append(rows.tolist()) or 0, [2, 1], 2, Unit())
    assert Counter(map(str, seen))["[[1.0], [2.0]]"] == 1  # sorted: one table, asked once
    assert "[[2.0], [1.0]]" not in map(str, seen)


@pytest.mark.parametrize(
    "domain",
    [np.arange(3), np.array([0.0, 1.0, 2.0], dtype=np.float32), [np.int64(0), 1, np.float64(2)], np.arange(3)[:, None],
     [(np.int8(0),), np.array([1]), (2,)]],
    ids=["array", "float32", "numbers", "matrix", "rows"],
)  # fmt: skip
def test_numbers_and_arrays_of_numpy_are_a_domain(domain: object) -> None:
    """As plain ones are."""
    assert audit.sensitivity(histogram, domain, 3) == audit.sensitivity(histogram, (0, 1, 2), 3)


def test_a_domain_without_rows_says_so() -> None:
    """It is not told to be of one length; control: one of two lengths is."""
    for domain, why in (([], "at least one row"), (np.array([]), "at least one row"), (((1, 2), 3), "of one length")):
        with pytest.raises(QuestionError, match=why):
            audit.sensitivity(total, domain, 3)
    with pytest.raises(QuestionError, match="a list of numbers"):
        audit.sensitivity(total, np.array(3), 3)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ({"n": 40}, "too-large"),
        ({"n": 10**6, "unit": SWAPPED}, "too-large"),
        ({"n": 9, "unit": Unit("pid", 50)}, "too-large"),
        ({"n": 0}, "bad-parameter"),
        ({"domain": ()}, "bad-parameter"),
        ({"domain": "abc"}, "bad-parameter"),
        ({"domain": ("a", "b")}, "bad-parameter"),
        ({"domain": (1, 1.0)}, "bad-parameter"),
        ({"domain": ((1, 2), 3)}, "bad-parameter"),
        ({"norm": "l3"}, "bad-parameter"),
        ({"unit": "pid"}, "bad-parameter"),
        ({"f": 7}, "bad-parameter"),
        ({"f": lambda rows: rows[0, 0]}, "bad-parameter"),
        ({"f": lambda rows: math.nan if len(rows) > 1 else 0}, "bad-parameter"),
        ({"f": lambda rows: [0] * len(rows)}, "bad-parameter"),
    ],
)
def test_what_is_too_large_or_no_function_is_refused_with_a_code(words: dict, code: str) -> None:
    """Before a table is looked at, or naming the table it fails for. Control: the same without the fault."""
    told = {"f": total, "domain": tuple(range(9)), "n": 2}
    assert audit.sensitivity(**told).value == 8
    with pytest.raises(QuestionError) as refused:
        audit.sensitivity(**told | words)
    assert refused.value.code == code
    if callable(words.get("f")):
        assert "for the table [" in refused.value.message
