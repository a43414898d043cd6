"""BLR: the best small table without noise, near it with noise, refused where there are too many."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import sulq
from sulq import Epsilon, Rho, SubLinear, Unit
from sulq.release.blr import blr, blr_n, blr_rows, candidates
from sulq.release.synthetic.data import SyntheticData
from tests.learn.cases import exact, opened, refused
from tests.release.recorded import Spy

BITS = {name: sulq.Bool() for name in "abc"}


def bits(n: int) -> dict[str, np.ndarray]:
    """Three dependent bits."""
    rng = np.random.default_rng(5)
    a = rng.random(n) < 0.3
    b = a ^ (rng.random(n) < 0.2)
    return {"a": a, "b": b, "c": rng.random(n) < 0.1 + 0.5 * b}


def fractions(frame: dict[str, np.ndarray]) -> np.ndarray:
    """The 12 conjunctions of two of the bits, as fractions of the rows."""
    return np.array(
        [
            np.mean((np.asarray(frame[x]) == u) & (np.asarray(frame[y]) == v))
            for x, y in itertools.combinations("abc", 2)
            for u in (False, True)
            for v in (False, True)
        ]
    )


def errors_of_all(data: dict[str, np.ndarray], m: int) -> np.ndarray:
    """The worst fraction's error of every table of m rows, by brute force."""
    cells = list(itertools.product((False, True), repeat=3))
    own = np.array([fractions({name: np.array([cell[i]]) for i, name in enumerate("abc")}) for cell in cells])
    tables = np.array(list(itertools.combinations_with_replacement(range(8), m)))
    return np.abs(own[tables].mean(axis=1) - fractions(data)).max(axis=1)


def worst(found: SyntheticData, data: dict[str, np.ndarray]) -> float:
    """The error of the worst fraction."""
    return float(np.abs(fractions({name: np.asarray(found.rows[name]) for name in "abc"}) - fractions(data)).max())


@pytest.mark.parametrize("m", [1, 4, 8])
def test_without_noise_the_best_table_is_chosen_S3_29(m: int) -> None:
    """The argmax of the score, as brute force over all multisets of rows finds it."""
    data = bits(200)
    found = blr(exact(opened(BITS, data)), list("abc"), rows=m, spend=Epsilon(1))
    assert len(found) == m
    assert worst(found, data) == pytest.approx(errors_of_all(data, m).min(), abs=1e-12)
    assert errors_of_all(data, m).max() > 0.3  # the control: another table would be far off


def test_numbers_S3_29() -> None:
    """6,435 candidates of 8 rows of three bits; the sizes' formulas."""
    assert candidates(8, 8) == 6435
    assert blr_rows(0.25, 12) == math.ceil(2 / 0.25**2 * math.log(24)) == 102
    assert blr_n(0.1, 1, cells=8, rows=8, beta=0.1) == math.ceil(40 * (3 * 8 * math.log(2) + math.log(10))) == 758
    assert math.log(candidates(8, 8)) < 8 * math.log(8)  # multisets are fewer than the formula counts
    assert blr_rows(np.float32(0.25), np.int64(12)) == blr_rows(Fraction(1, 4), 12) == 102
    assert blr_n(Fraction(1, 10), 1, cells=8, rows=8, beta=Fraction(1, 10)) == 758
    for gamma in (0.0, 1, True, "0.1", math.nan, 1e-300):
        refused("bad-parameter", blr_rows, gamma, 12)
        refused("bad-parameter", blr_n, gamma, 1, cells=8, rows=8)
    refused("bad-parameter", blr_n, 0.1, 1, cells=8, rows=8, beta=1)
    refused("bad-parameter", blr_n, 0.1, -1, cells=8, rows=8)


def orders() -> np.ndarray:
    """In how many orders the rows of each table of 8 can be written."""
    tables = itertools.combinations_with_replacement(range(8), 8)
    return np.array([math.factorial(8) / math.prod(math.factorial(t.count(c)) for c in {*t}) for t in tables])


def expectation(errors: np.ndarray, weights: np.ndarray, scale: float) -> float:
    """The exponential mechanism's mean error, exactly: chances are weights * e^(-scale * error)."""
    chances = weights * np.exp(-scale * (errors - errors.min()))
    return float((errors * chances).sum() / chances.sum())


@pytest.mark.parametrize(
    ("n", "best", "expected"), [(100, 0.0600, 0.1111), (500, 0.0800, 0.0835), (2000, 0.0850, 0.0850)]
)
def test_expected_error_on_our_instance_S3_29(n: int, best: float, expected: float) -> None:
    """The rows of the specification's numbers are not given: on these rows the same figures, in the same order.

    There .0716/.0802/.0797 of n = 100/500/2000 against .045/.080/.079 at best: well above it at 100 rows, within
    a twentieth from 500 on. At half the epsilon the error is larger (the control), as it is of a blind draw.
    """
    errors = errors_of_all(bits(n), 8)
    found = expectation(errors, orders(), n / 2)
    assert errors.min() == pytest.approx(best, abs=1e-4)
    assert found == pytest.approx(expected, abs=1e-3)
    above = found / errors.min()
    assert 1.3 < above < 2.5 if n == 100 else 1 < above < 1.05
    assert expectation(errors, orders(), n / 4) > found + 1e-3
    assert expectation(errors, orders(), 0.0) > 4 * found


@pytest.mark.parametrize("n", [100, 500, 2000])
def test_error_is_within_its_bound_of_the_best_S3_29(n: int) -> None:
    """In expectation best + (2/(epsilon n))(ln candidates + 1), by the exact law; every run but one in 1e8 as proved.

    The expectation is that of the exponential mechanism, which permute-and-flip is never worse than (SR4), with
    tables weighed evenly and with rows in every order, as the paper has them.
    """
    data = bits(n)
    errors = errors_of_all(data, 8)
    best = errors.min()
    bound = best + 2 / n * (math.log(6435) + 1)
    for weights in (np.ones(6435), orders()):
        assert best < expectation(errors, weights, n / 2) <= bound
        assert expectation(errors, weights, 0.0) > bound  # the control: a table drawn blindly
    db = opened(BITS, data)
    for _ in range(3):
        far = worst(blr(db, list("abc"), rows=8, spend=Epsilon(1)), data)
        assert best - 1e-12 <= far <= best + 2 / n * math.log(6435 * 1e8)


def test_a_row_moves_the_score_by_one_in_every_relation() -> None:
    """The plan's span is two rows' worth of 1/m: rise and fall of one, so the mechanism's scale is 2m/epsilon."""
    for neighbors in ("add_remove", "replace_one"):
        db = opened(BITS, bits(50), unit=Unit(neighbors=neighbors), budget=sulq.EpsilonDelta(50, 1e-6))
        asked = []
        spy = Spy(db, asked)
        blr(spy, list("abc"), rows=4, spend=Epsilon(1))
        (question,) = asked
        assert float(db.foresee(question, spend=Epsilon(1)).parts[0].laws[0].scale) == 8.0


def test_one_debit_and_the_ledger_agrees() -> None:
    """What it says it spent is what the ledger has; n is told only where it is declared."""
    db = opened(BITS, bits(100), budget=Epsilon(2))
    found = blr(db, list("abc"), rows=3, spend=Epsilon(0.5))
    assert found.paid.spent == db.spent == Epsilon(0.5)
    assert len(found.paid.receipts) == 1
    assert found.total is None
    assert "tables" in found.notes[0]
    declared = blr(opened(BITS, bits(100), size=100), list("abc"), rows=3, spend=Epsilon(0.5))
    assert declared.total == 100.0
    assert declared.marginal(["a"]).values.sum() == pytest.approx(100.0)


def test_empty_data_are_answered_like_any_other_SR6() -> None:
    """No row at all: a table at the full charge, by the same question."""
    asked: list[list[object]] = [[], []]
    for i, n in enumerate((0, 60)):
        db = opened(BITS, {name: column[:n] for name, column in bits(60).items()}, budget=Epsilon(2))
        assert len(blr(Spy(db, asked[i]), list("abc"), rows=3, spend=Epsilon(1))) == 3
        assert db.spent == Epsilon(1)
    assert [sulq.answers.wire.encode(q) for q in asked[0]] == [sulq.answers.wire.encode(q) for q in asked[1]]


def test_bad_input_is_refused_and_nothing_is_spent() -> None:
    """Too many candidates (the refusal says what fits), columns, rows, spends."""
    db = opened({**BITS, "x": sulq.Int(0, 1000)}, {**bits(9), "x": np.arange(9)}, budget=Epsilon(2))
    refused("too-large", blr, db, list("abc"), rows=100, spend=Epsilon(1))
    with pytest.raises(sulq.errors.QuestionError, match="rows=13 fits here"):
        blr(db, list("abc"), rows=100, spend=Epsilon(1))
    bits40 = {f"b{i}": sulq.Bool() for i in range(40)}
    many = opened(bits40, {name: np.zeros(2, dtype=bool) for name in bits40}, budget=Epsilon(2))
    with pytest.raises(sulq.errors.QuestionError, match="137,846,528,820 marginals of 20"):
        blr(many, list(bits40), ways=20, spend=Epsilon(1))
    assert many.spent == Epsilon.total(0)
    wide = {f"c{i}": sulq.Int(0, 1023) for i in range(40)}
    vast = opened(wide, {name: np.zeros(2, dtype=int) for name in wide})
    with pytest.raises(sulq.errors.QuestionError, match=r"more than 10\^"):
        blr(vast, list(wide), rows=1000, bins=1024, spend=Epsilon(1))
    with pytest.raises(sulq.errors.QuestionError, match="mwem and aim"):
        blr(db, ["a", "x"], bins=1024, spend=Epsilon(1))
    refused("unknown-column", blr, db, ["a", "z"], spend=Epsilon(1))
    for wrong in ({"rows": 0}, {"rows": True}, {"ways": 0}, {"marginals": [["z"]]}, {"bins": 0}):
        refused("bad-parameter", blr, db, ["a", "b"], spend=Epsilon(1), **wrong)
    refused("spend-missing", blr, db, ["a", "b"])
    refused("spend-kind", blr, db, ["a", "b"], spend=Rho(0.1))
    refused("budget-exceeded", blr, db, ["a", "b"], spend=Epsilon(3))
    assert db.spent == Epsilon.total(0)
    sublinear = opened(BITS, bits(9), budget=SubLinear(1, 1e-6, 10))
    refused("not-a-noisy-sum", blr, sublinear, ["a", "b"])
