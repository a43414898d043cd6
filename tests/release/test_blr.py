"""BLR: the best small table without noise, near it with noise, refused where there are too many."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import sulq
from sulq import Epsilon, EpsilonDelta, Rho, SubLinear, Unit, col
from sulq.release.blr import blr, blr_n, blr_rows, candidates
from sulq.release.synthetic.data import SyntheticData
from tests.figures import figure
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


def flipped(errors: np.ndarray, scale: float) -> float:
    """Permute-and-flip's mean error, exactly: candidate j, of coin p_j, has p_j times the integral of prod(1 - t p_i).

    The product is over all others; t is where in the random order j comes. Candidates of one error are one factor.
    """
    far, counts = np.unique(np.round(errors, 12), return_counts=True)
    coins = np.exp(-scale * (far - far[0]))
    nodes, weights = np.polynomial.legendre.leggauss(20)  # on intervals that are the shorter the nearer to zero
    ends = np.concatenate([[0.0], np.geomspace(1e-7, 1, 80)])
    half = np.diff(ends) / 2
    t = (ends[:-1] + half)[:, None] + half[:, None] * nodes
    logs = np.log1p(-t.ravel()[:, None] * coins)
    areas = (half[:, None] * weights).ravel()
    chances = counts * coins * (areas @ np.exp((logs * counts).sum(axis=1, keepdims=True) - logs))
    assert chances.sum() == pytest.approx(1, abs=1e-9)
    return float(far @ chances)


@pytest.mark.parametrize(
    ("n", "paper_best", "paper"), [(100, 0.045, 0.0716), (500, 0.080, 0.0802), (2000, 0.079, 0.0797)]
)
def test_the_expected_error_of_what_is_drawn_S3_29(n: int, paper_best: float, paper: float) -> None:
    """{0,1}^3, 12 conjunctions, m = 8, 6,435 candidates: the exact mean error of the law that the plan names.

    Best + (2/(epsilon n))(ln 6435 + 1) is not passed; at a tenth of the noise's epsilon it is (the control).
    """
    data = bits(n)
    errors = errors_of_all(data, 8)
    db, asked = opened(BITS, data), []
    blr(Spy(db, asked), list("abc"), rows=8, spend=Epsilon(1))
    law = db.foresee(asked[0], spend=Epsilon(1)).parts[0].laws[0]
    assert (law.kind, law.candidates, float(law.scale)) == ("permute_and_flip", 6435, 16.0)
    scale = 8 * n / float(law.scale)  # a unit of the score is an eighth of a row
    found, best = flipped(errors, scale), float(errors.min())
    bound = best + 2 / n * (math.log(6435) + 1)
    assert best < found <= min(bound, expectation(errors, np.ones(6435), scale) + 1e-12)  # never worse (SR4)
    assert flipped(errors, scale / 10) > bound
    figure("S3.29", f"expected error and best possible, n = {n}: permute-and-flip, on rows of our own",
           [found, best], [paper, paper_best])  # fmt: skip
    ordered = expectation(errors, orders(), scale)
    figure("S3.29", f"the same by the exponential mechanism over ordered tuples, n = {n}", [ordered, best],
           [paper, paper_best])  # fmt: skip


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


# -- a class of one's own


OWN = {"either": col("a") | col("b"), "all": col("a") & col("b") & col("c"), "share": (col("a") * 1 + col("c")) / 2}


def truth(data: dict[str, np.ndarray]) -> np.ndarray:
    """The three queries of OWN on rows, in plain NumPy."""
    a, b, c = (np.asarray(data[name]) for name in "abc")
    return np.array([np.mean(a | b), np.mean(a & b & c), np.mean((a.astype(float) + c) / 2)])


@pytest.mark.parametrize("relation", ["add_remove", "replace_one", "zero_out"])
def test_a_class_of_ones_own_is_answered_by_name_S3_32(relation: str) -> None:
    """S3.32: conditions and a number in [0, 1]: without noise the table of the least worst error, by brute force."""
    data = bits(300)
    db = opened(BITS, data, unit=Unit(neighbors=relation))
    found = blr(exact(db), list("abc"), queries=OWN, rows=5, spend=Epsilon(1))
    texts = {"either": "a OR b", "all": "a AND b AND c", "share": OWN["share"]}
    assert blr(exact(db), list("abc"), queries=texts, rows=5, spend=Epsilon(1)).fractions == found.fractions
    cells = np.array(list(itertools.product((False, True), repeat=3)))
    tables = list(itertools.combinations_with_replacement(range(8), 5))
    own = [truth(dict(zip("abc", cells[list(table)].T, strict=True))) for table in tables]
    errors = np.abs(np.array(own) - truth(data)).max(axis=1)
    said = np.array([found.fractions[name] for name in OWN])
    assert np.abs(said - truth(data)).max() == pytest.approx(errors.min(), abs=1e-12)
    assert said == pytest.approx(
        truth({name: np.asarray(found.rows[name]) for name in "abc"})
    )  # of the rows themselves
    assert errors.max() > 0.4  # the control: another table would be far off
    noisy = blr(db, list("abc"), queries=OWN, rows=5, spend=Epsilon(1))
    assert np.abs([noisy.fractions[name] for name in OWN] - truth(data)).max() <= errors.min() + 2 / 300 * math.log(
        len(tables) * 1e8
    )


def test_a_row_moves_the_score_of_ones_own_class_by_one_S3_32() -> None:
    """S3.32: the scale of the choice is that of the conjunctions, in the queries' units; brute force over all rows."""
    for neighbors in ("add_remove", "replace_one"):
        db, asked = opened(BITS, bits(50), unit=Unit(neighbors=neighbors)), []
        blr(Spy(db, asked), list("abc"), queries=OWN, rows=4, spend=Epsilon(1))
        scale = float(db.foresee(asked[0], spend=Epsilon(1)).parts[0].laws[0].scale)
        matrix, targets = (np.array(each) for each in (asked[0].score.matrix, asked[0].score.targets))
        rng = np.random.default_rng(3)
        moved = 0.0
        for _ in range(300):
            counts = rng.integers(0, 4, 8)
            other = counts.copy()
            other[rng.integers(8)] += 1
            if neighbors == "replace_one":
                counts[rng.integers(8)] += 1
            one, two = (-np.abs(matrix @ x - targets * x.sum()).max(axis=1) for x in (counts, other))
            moved = max(moved, (two - one).max() - (two - one).min())
        assert 0.5 * scale < moved <= scale  # at epsilon 1 the scale is the span


def test_a_saved_release_keeps_its_answers_S3_32(tmp_path: object) -> None:
    """S3.32: fractions by name are in the file; conjunctions of marginals have names too."""
    db = opened(BITS, bits(100))
    found = blr(db, list("abc"), queries=OWN, rows=3, spend=Epsilon(1))
    found.save(tmp_path / "own")
    assert sulq.release.load(tmp_path / "own").fractions == found.fractions
    plain = blr(db, list("abc"), [["a", "b"]], rows=3, spend=Epsilon(1))
    assert list(plain.fractions) == [f"a {x} and b {y}" for x in (False, True) for y in (False, True)]
    assert sum(plain.fractions.values()) == pytest.approx(1)


def test_rows_by_gamma_are_the_least_of_three_bounds_S3_32() -> None:
    """S3.32: (2/gamma^2) ln(2|C|), the VC bound, and k/(2 gamma) cells: whichever is the least, each by its formula."""
    assert blr_rows(0.25, 12) == math.ceil(2 / 0.0625 * math.log(24)) == 102
    assert blr_rows(0.25, 12, cells=8) == 16
    assert blr_rows(0.25, 2, cells=10**6) == math.ceil(32 * math.log(4))
    for d, gamma in ((1, 0.5), (3, 0.2)):
        m = next(m for m in itertools.count(d) if math.log(4) + d * math.log(2 * math.e * m / d) <= gamma**2 * m / 32)
        assert blr_rows(gamma, 10**9, vc=d) == math.ceil(2 / gamma**2 * math.log(2e9)) < m
        assert blr_rows(gamma, 10**300, vc=d) == m < math.ceil(2 / gamma**2 * math.log(2e300))
    for wrong in ({"vc": 0}, {"cells": 0}, {"vc": True}):
        refused("bad-parameter", blr_rows, 0.1, 12, **wrong)
    # k/(4m): rounding 8 fractions to eighths of m rows; over all subsets of cells as queries, by brute force.
    rng = np.random.default_rng(4)
    subsets = np.array(list(itertools.product((0, 1), repeat=8)))
    worst_far = 0.0
    for _ in range(200):
        shares = rng.dirichlet(np.full(8, 0.5))
        for m in (8, 16):
            down = np.floor(shares * m)
            left = round(float(m - down.sum()))
            down[np.argsort(down - shares * m)[:left]] += 1
            far = float(np.abs(subsets @ (down / m - shares)).max())
            assert far <= 8 / (4 * m) + 1e-12
            worst_far = max(worst_far, far * 4 * m / 8)
    assert worst_far > 0.6


def test_gamma_is_refused_by_the_declared_size_S3_32_SR6() -> None:
    """S3.32, SR6: the refusal names the n it needs and goes by the declared size alone, never by the rows there are.

    At the size it names it is answered, and every fraction is within gamma (95%; here far within). Nothing is spent
    on a refusal, and without a declared size the note says what the promise rests on.
    """
    data = bits(60)  # however few there are
    spent = []
    with pytest.raises(sulq.errors.QuestionError, match=r"need about ([\d,]+) rows") as refusal:
        blr(opened(BITS, data, budget=Epsilon(2), size=20), list("abc"), queries=OWN, gamma=0.5, spend=Epsilon(1))
    assert refusal.value.code == "too-few-rows"
    needed = int(str(refusal.value).split("about ")[1].split(" rows")[0].replace(",", ""))
    assert needed <= blr_n(0.5, 1, cells=8, rows=8)  # the paper's formula, which counts tables with an order
    assert needed == pytest.approx(4 / 0.5 * (math.log(6434) + math.log(19)), rel=0.02)
    for size, answered in ((needed - 1, False), (needed, True), (None, True)):
        for rows in (60, needed):
            db = opened(BITS, bits(rows), budget=Epsilon(2), size=size)
            if not answered:
                refused("too-few-rows", blr, db, list("abc"), queries=OWN, gamma=0.5, spend=Epsilon(1))
            else:
                found = blr(db, list("abc"), queries=OWN, gamma=0.5, spend=Epsilon(1))
                assert len(found) == 8
                assert f"{needed:,} rows or more" in found.notes[1]
                assert ("no size is declared" in found.notes[1]) is (size is None)
                if rows == needed:
                    assert np.abs([found.fractions[name] for name in OWN] - truth(bits(rows))).max() < 0.5
            spent.append(db.spent.amount)
    assert spent == [0, 0, 1, 1, 1, 1]
    rho = opened(BITS, data, budget=EpsilonDelta(2, 1e-6), size=20)
    refused("too-few-rows", blr, rho, list("abc"), queries=OWN, gamma=0.5, spend=Rho(0.05))


def test_queries_that_cells_do_not_determine_are_refused_S3_32() -> None:
    """S3.32: a threshold inside a bin, other columns, places, numbers past [0, 1]; nothing is spent."""
    columns = {"age": sulq.Int(0, 99), "x": sulq.Real(0, 1), "city": ["H", "L"], "a": sulq.Bool()}
    data = {"age": np.arange(20) * 5, "x": np.linspace(0, 1, 20), "city": ["H", "L"] * 10, "a": [True] * 20}
    db = opened(columns, data, budget=Epsilon(2))
    own = {"names": ["age", "city", "a"], "bins": 2}

    def ask(fn: object, **more: object) -> object:
        named = {**own, **more}
        return blr(db, named.pop("names"), queries={"q": fn}, rows=2, spend=Epsilon(1), **named)

    with pytest.raises(sulq.errors.QuestionError, match=r"not the same over the whole cell age 0\.\.50"):
        ask(col("age") >= 30)
    for wrong in (col("age"), col("x") > 0.5, sulq.position() > 3, 3, col("age") / 1000, col("a") * 0.123456):
        refused("bad-parameter", ask, wrong)
    refused("unknown-category", ask, col("city") == "Z")
    refused("wrong-kind", ask, "age")
    refused("unknown-column", ask, "nobody > 3")
    refused("too-large", ask, col("x") >= 0.5, names=["x", "a"])
    refused("bad-parameter", blr, db, ["a"], [["a"]], queries={"q": col("a")}, spend=Epsilon(1))
    for wrong in ({}, [col("a")], {"": col("a")}):
        refused("bad-parameter", blr, db, ["a"], queries=wrong, spend=Epsilon(1))
    refused("bad-parameter", blr, db, ["a"], queries={"q": col("a")}, rows=3, gamma=0.5, spend=Epsilon(1))
    refused("bad-parameter", blr, db, ["a"], queries={"q": col("a") * 0.5}, gamma=0.5, vc=1, spend=Epsilon(1))
    refused("too-large", blr, db, ["age", "city"], queries={"q": col("city") == "H"}, gamma=0.001, spend=Epsilon(1))
    assert db.spent.amount == 0
    # What the edges allow is answered: ages below 50 and from 50 on, by category, and a constant.
    allowed = {"old": col("age") >= 50, "both": (col("age") >= 50) & (col("city") == "H"), "one": sulq.lit(1)}
    found = blr(exact(db), ["age", "city"], queries=allowed, rows=20, spend=Epsilon(1))
    assert found.fractions == {"old": 0.5, "both": 0.25, "one": 1.0}


def test_missing_cells_are_not_counted_S3_32() -> None:
    """S3.32: a row without one of the columns is nowhere; fractions are of the complete rows."""
    a = [True] * 6 + [False] * 2 + [None] * 4
    b = [True, False] * 6
    table = {"a": np.array(a, dtype=object), "b": np.array(b, dtype=object)}
    db = opened({"a": sulq.Bool(), "b": sulq.Bool()}, table)
    found = blr(
        exact(db), ["a", "b"], queries={"a": col("a"), "only a": col("a") & ~col("b")}, rows=8, spend=Epsilon(1)
    )
    assert found.fractions == {"a": 0.75, "only a": 0.375}
