"""Contingency tables: every method gives the truth without noise, what it promises with it, and refuses for free."""

from __future__ import annotations

import itertools
import math
import sys
import time
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest

import sulq
from sulq import Epsilon, EpsilonDelta, Rho, SubLinear, Unit, release
from sulq.answers import wire
from sulq.errors import QuestionError, SulqError
from sulq.release.contingency import ContingencyTable, contingency
from sulq.release.tables import fourier, methods
from sulq.release.tables.allocation import MAX_HELD_NUMBERS, MAX_LOOKUP_NUMBERS
from sulq.release.tables.fourier import MAX_PROGRAM_NUMBERS, gamma_quantile
from sulq.release.tables.methods import METHODS
from tests.counts import count
from tests.figures import figure
from tests.learn.cases import exact, opened
from tests.learn.sq.noisy import Arrays
from tests.release.programs import wide_people, wide_table

COLUMNS = {"a": sulq.Bool(), "b": ["x", "y", "z"], "c": sulq.Int(0, 3), "d": sulq.Real(0, 8)}
NAMES = list(COLUMNS)
ASKED = [["a", "b"], ["d", "b", "c"]]
ROUNDED = 8  # rows that rounding the fit to whole counts may cost a marginal here; proved: |B|/2 = 33


def made(n: int = 500, seed: int = 0) -> dict[str, object]:
    """Rows of four attributes."""
    rng = np.random.default_rng(seed)
    return {
        "a": rng.random(n) < 0.3,
        "b": rng.choice(["x", "y", "z"], n, p=[0.6, 0.3, 0.1]),
        "c": rng.integers(0, 4, n),
        "d": rng.random(n) * 8,
    }


def true(data: dict[str, object], names: list[str], keep: np.ndarray | None = None) -> np.ndarray:
    """The counts by some attributes; d in four intervals."""
    codes = {
        "a": np.asarray(data["a"]).astype(int),
        "b": np.searchsorted(["x", "y", "z"], np.asarray(data["b"], dtype=str)),
        "c": np.asarray(data["c"]).astype(int),
        "d": np.minimum(np.asarray(data["d"], dtype=float) // 2, 3).astype(int),
    }
    sizes = {"a": 2, "b": 3, "c": 4, "d": 4}
    found = np.zeros([sizes[name] for name in names])
    rows = np.stack([codes[name] for name in names])
    np.add.at(found, tuple(rows if keep is None else rows[:, keep]), 1)
    return found


def binary(k: int, n: int, seed: int = 0, rate: float = 0.2) -> tuple[dict[str, object], np.ndarray]:
    """K correlated columns of yes or no."""
    rng = np.random.default_rng(seed)
    kinds = rng.random((4, k)) < 0.5
    rows = kinds[rng.integers(0, 4, n)] ^ (rng.random((n, k)) < rate)
    return {f"x{i}": sulq.Bool() for i in range(k)}, rows


def asked_of(rows: np.ndarray, seed: int | None, **options: object) -> Arrays:
    """An Oracle with seeded noise, or none, over columns of yes or no."""
    k = rows.shape[1]
    columns = {f"x{i}": sulq.Bool() for i in range(k)}
    return Arrays(columns, {f"x{i}": rows[:, i] for i in range(k)}, seed=seed, **options)


def counts(rows: np.ndarray, places: tuple[int, ...]) -> np.ndarray:
    """A true marginal of yes or no."""
    code = rows[:, places] @ (2 ** np.arange(len(places))[::-1])
    return np.bincount(code, minlength=2 ** len(places)).reshape((2,) * len(places))


def mean_error(table: ContingencyTable, rows: np.ndarray) -> float:
    """The mean L1 distance of the asked marginals from the truth."""
    return float(
        np.mean(
            [
                np.abs(table.marginal(names).values - counts(rows, tuple(int(n[1:]) for n in names))).sum()
                for names in table.asked
            ]
        )
    )


@pytest.mark.parametrize("method", [*METHODS, "auto"])
@pytest.mark.parametrize("weights", ["best", "even"])
@pytest.mark.parametrize("spend", [Epsilon(1), Rho(0.1)])
def test_without_noise_every_method_gives_the_truth(method: str, weights: str, spend: sulq.Epsilon) -> None:
    """Asked marginals, in any order of attributes, and smaller ones within them; with noise they differ.

    `auto` where noise would be small: it publishes what it measures. A model is near the truth (below).
    """
    data = made()
    spend = Epsilon(60) if method == "auto" else spend
    db = opened(COLUMNS, data, EpsilonDelta(900, 0.1))
    found = contingency(exact(db), NAMES, ASKED, method, bins=4, weights=weights, spend=spend)
    for names in (["a", "b"], ["b", "c", "d"], ["c", "b", "d"], ["c"], ["d", "c"], ["b", "a"]):
        assert found.marginal(names).values == pytest.approx(true(data, names), abs=1e-6)
    spend = Epsilon(1) if method == "auto" else spend
    noisy = contingency(db, NAMES, ASKED, method, bins=4, weights=weights, spend=spend)
    assert np.abs(noisy.marginal(["c"]).values - true(data, ["c"])).max() > 1e-6
    assert noisy.paid.spent == spend
    assert len(noisy.paid.receipts) == (2 if method == "auto" else 1)


def test_of_a_wide_marginal_not_all_orders_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those left out have more noise than the whole marginal has; of triples, the control, pairs have less."""
    columns, rows = binary(8, 300)
    db = opened(columns, {name: rows[:, i] for i, name in enumerate(columns)})
    seen: list[list[methods.Measure]] = []
    real = methods.measures
    module = sys.modules["sulq.release.contingency"]
    monkeypatch.setattr(module, "measures", lambda *given: seen.append(real(*given)) or seen[-1])
    for narrow in (methods.MAX_TRIED_ORDER, 7):
        monkeypatch.setattr(methods, "MAX_TRIED_ORDER", narrow)
        contingency(db, list(columns), [list(columns)], spend=Epsilon(1))
    contingency(db, list(columns), ways=3, spend=Epsilon(1))
    few, all_orders, triples = seen
    assert {way.order for way in few} == {2, 3, 4, 8}
    assert {way.order for way in all_orders} > {2, 3, 4, 8}
    whole = min(way.noise for way in few if way.order == 8)
    assert all(way.noise > whole for way in all_orders if way.order not in {2, 3, 4, 8})
    pairs, whole = (way.noise for way in triples if way.name == "marginals")
    assert pairs < whole


@pytest.mark.parametrize("method", METHODS)
def test_engines_agree_on_many_small_tables(method: str) -> None:
    """Where coefficients are shared out over many tables, DuckDB gives what plain arrays do: the truth."""
    columns, rows = binary(11, 300)
    db = opened(columns, {name: rows[:, i] for i, name in enumerate(columns)})
    for oracle in (exact(db), asked_of(rows, None)):
        found = contingency(oracle, list(columns), method=method, ways=2, spend=Epsilon(1))
        assert mean_error(found, rows) < (ROUNDED if method == "fourier" else 1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_incomplete_rows_are_not_counted(method: str) -> None:
    """A row with a missing or unlisted value in any attribute is in no marginal, by every method alike."""
    rng = np.random.default_rng(3)
    n = 200
    gaps = {f"x{i}": np.where(rng.random(n) < 0.1, None, rng.random(n) < 0.4) for i in range(11)}
    table = pa.table({name: pa.array(values, pa.bool_()) for name, values in gaps.items()})
    columns = {name: sulq.Bool() for name in gaps}
    db = sulq.connect(table, columns=columns, budget=Epsilon(900), synthetic=True, unit=Unit())
    whole = np.all([[value is not None for value in values] for values in gaps.values()], axis=0)
    rows = np.stack([values[whole].astype(bool) for values in gaps.values()], axis=1)
    assert 0 < len(rows) < n
    found = contingency(exact(db), list(gaps), method=method, ways=2, spend=Epsilon(1))
    assert mean_error(found, rows) < (ROUNDED if method == "fourier" else 1e-6)
    assert mean_error(found, np.concatenate([rows, rows[:20]])) > ROUNDED


@pytest.mark.parametrize("method", METHODS)
def test_empty_data_is_answered(method: str) -> None:
    """No rows at all: a table like any other, at the full price."""
    found = contingency(
        asked_of(np.zeros((0, 4), dtype=bool), 1), ["x0", "x1", "x2"], [["x0", "x2"]], method, spend=Epsilon(1)
    )
    assert found.marginal(["x0", "x2"]).values.shape == (2, 2)
    assert found.paid.spent == Epsilon(1)


def test_a_fitted_table_is_whole_and_its_marginals_agree_S3_18() -> None:
    """[S3.18] Counts are whole and not negative, and two marginals agree on what they share; measured ones do not."""
    columns, rows = binary(6, 400)
    found = contingency(asked_of(rows, 4), list(columns), method="fourier", ways=2, spend=Epsilon(0.5))
    table = found.table()
    assert table.min() >= 0
    assert np.array_equal(table, np.rint(table))
    assert np.count_nonzero(table) <= 1 + 6 + 15
    figure(
        "S3.18",
        "cells of the fitted table that are not zero, k = 6, all pairs",
        np.count_nonzero(table),
        "at most |B| = 22",
    )
    for one, other in itertools.permutations(range(6), 2):
        pair = found.marginal([f"x{one}", f"x{other}"]).values
        assert np.array_equal(pair.sum(axis=1), found.marginal([f"x{one}"]).values)
        assert np.array_equal(pair, table.sum(axis=tuple(set(range(6)) - {one, other})) if one < other else pair)
    apart = contingency(asked_of(rows, 4), list(columns), method="marginals", ways=2, spend=Epsilon(0.5))
    sums = {apart.marginal(["x0", f"x{i}"]).values[0].sum() for i in range(1, 6)}
    assert len(sums) > 1
    with pytest.raises(QuestionError, match="no one table"):
        apart.table()


@pytest.mark.parametrize("method", ["cells", "fourier-shift"])
def test_linear_methods_are_consistent(method: str) -> None:
    """Marginals of cells and of coefficients are sums of the published table, less the rows that are added."""
    columns, rows = binary(5, 400)
    found = contingency(asked_of(rows, 4), list(columns), method=method, ways=2, spend=Epsilon(0.5))
    whole = found.table()
    for names in found.asked:
        places = {int(name[1:]) for name in names}
        own = found.marginal(names)
        assert whole.sum(axis=tuple(set(range(5)) - places)) == pytest.approx(own.values + own.added)
    assert whole.sum() == pytest.approx(found.marginal(["x0"]).values.sum() + found.shift)
    assert (found.shift > 0) == (method == "fourier-shift")
    if method == "fourier-shift":
        assert whole.min() >= 0
        assert found.marginal(["x0", "x1"]).percent.min() >= 0


def test_measured_error_of_the_fit_S3_19() -> None:
    """K = 5, all 2-way, epsilon 1, even weights: the worst marginal of a run is 50 off in the median, 105 at most.

    Within 30%, of 40 runs; the proved bound 754.3 is loose, and is passed by none.
    """
    _, rows = binary(5, 1000)
    worst = []
    for seed in range(count("S3.19 fits", short=40, long=400)):
        found = contingency(
            asked_of(rows, seed),
            [f"x{i}" for i in range(5)],
            method="fourier",
            weights="even",
            ways=2,
            spend=Epsilon(1),
        )
        worst.append(
            max(
                np.abs(found.marginal(own).values - counts(rows, (int(own[0][1]), int(own[1][1])))).sum()
                for own in found.asked
            )
        )
    assert np.median(worst) == pytest.approx(50, rel=0.3)
    assert np.sort(worst)[int(0.99 * len(worst)) - (len(worst) == 40) :].min() < 105 * 1.3
    assert found.bound(["x0", "x1"]) == pytest.approx(754.3, rel=1e-3)
    assert max(worst) < found.bound(["x0", "x1"])
    theorem = 4 * 2 * 16 * math.log(16 / 0.05) + 16  # 2^|a| 2|B| ln(|B|/delta)/epsilon + |B|
    assert found.bound(["x0", "x1"]) == pytest.approx(theorem, rel=1e-3)
    figure(
        "S3.19",
        "worst pair of five bits off in L1, median of 40 runs, epsilon 1",
        np.median(worst),
        f"at most {theorem:.1f}",
    )
    assert found.bound(["x0", "x1"]) < 1000 * 2  # less than any table of this size could be off


def test_marginals_get_the_noise_of_their_number_S3_14() -> None:
    """Scale |C|/epsilon each: a row moves |C| cells by one, so the loss is epsilon exactly; for every row at k = 2."""
    oracle = asked_of(np.zeros((0, 4), dtype=bool), None)
    contingency(oracle, ["x0", "x1"], [["x0"], ["x1"]], "marginals", spend=Epsilon(0.5))
    question, spend = oracle.asked[0]
    plan = oracle.foresee(question, spend=spend)
    scales = [float(law.scale) for law in plan.parts[0].laws]
    assert scales == pytest.approx([4.0, 4.0], rel=1e-9)
    for row in itertools.product([0, 1], repeat=2):  # add one row: the log-ratio of any outcome is at most epsilon
        moved = [np.eye(2)[value] for value in row]
        loss = sum(np.abs(cells).sum() / scale for cells, scale in zip(moved, scales, strict=True))
        assert loss == pytest.approx(0.5, rel=1e-9)
        assert sum(np.abs(cells).sum() / (scale / 2) for cells, scale in zip(moved, scales, strict=True)) > 0.5


def test_cells_of_a_one_way_marginal_S3_13_E30() -> None:
    """[S3.13] k = 8: variance 2^k/epsilon^2 of the noise that is drawn; the printed 2^(k-1)/epsilon^2 is half.

    The squares of all cells of the eight marginals: half is the square of their common part, so a run is
    1/(1/4 + 8/256) = 3.5 squares of normal noise.
    """
    runs = count("E30 tables of cells", short=200, long=2000)
    names = [f"x{i}" for i in range(8)]
    drawn = []
    for seed in range(runs):
        oracle = asked_of(np.zeros((0, 8), dtype=bool), seed)
        found = contingency(oracle, names, [["x3"]], "cells", spend=Epsilon(0.1))
        drawn += [np.mean([found.marginal([name]).values ** 2 for name in names])]
    slack = 6 * math.sqrt(2 / (3.5 * runs))
    assert np.mean(drawn) == pytest.approx(2**8 / 0.1**2, rel=slack)
    figure("S3.13", "variance of a one-way cell, k = 8, epsilon .1", np.mean(drawn), 2**8 / 0.1**2)
    assert np.mean(drawn) > (1 + slack) * 2**7 / 0.1**2
    told = found.marginal(["x3"]).standard_error ** 2
    assert told == pytest.approx(np.full(2, 2**8 / 0.1**2), rel=1e-3)


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize("spend", [Epsilon(0.5), Rho(0.1)])
def test_large_marginals_get_the_same_noise(neighbors: str, spend: sulq.Epsilon) -> None:
    """Asked as unit vectors or, where they are large, as partitions: a row moves them alike, and all are the truth."""
    rng = np.random.default_rng(2)
    columns = {"a": sulq.Int(0, 29), "b": sulq.Int(0, 29), "c": sulq.Bool()}
    data = {"a": rng.integers(0, 30, 99), "b": rng.integers(0, 30, 99), "c": rng.random(99) < 0.5}
    found = []
    for marginals in ([["a"], ["b", "c"]], [["a", "b"], ["a", "c"]]):
        oracle = Arrays(columns, data, unit=Unit(neighbors=neighbors), budget=EpsilonDelta(90, 0.1))
        table = contingency(oracle, list(columns), marginals, "marginals", bins=30, spend=spend)
        found.append(table.marginal(marginals[1]).standard_error.max())
        true = np.zeros((30, 2) if "c" in marginals[1] else (30, 30))
        np.add.at(true, tuple(data[name].astype(int) for name in marginals[1]), 1)
        assert np.array_equal(table.marginal(marginals[1]).values, true)
    assert found[0] == pytest.approx(found[1], rel=1e-9)


@pytest.mark.parametrize(("neighbors", "sensitivity"), [("add_remove", 1), ("replace_one", 2)])
def test_the_relation_is_a_parameter_E46(neighbors: str, sensitivity: int) -> None:
    """A histogram moves by 1 where a person comes or goes and by 2 where one changes: the noise follows."""
    oracle = asked_of(np.zeros((0, 3), dtype=bool), None, unit=Unit(neighbors=neighbors))
    found = contingency(oracle, ["x0", "x1"], [["x0"]], "cells", spend=Epsilon(0.1))
    plan = oracle.foresee(oracle.asked[0][0], spend=Epsilon(0.1))
    assert plan.parts[0].sensitivity == (sensitivity,)
    assert found.marginal(["x0", "x1"]).standard_error == pytest.approx(
        np.full((2, 2), math.sqrt(2) * 10 * sensitivity), rel=1e-2
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("spend", [Epsilon(1), Rho(0.3)])
def test_standard_errors_are_those_measured(method: str, spend: sulq.Epsilon) -> None:
    """Over many runs the cells' deviation is the one told, and no cell is biased (a fit aside, near it).

    The squares of all cells of all pairs together, each over the told variance: whichever the method, a run is as good
    as four independent draws or more, since no coefficient makes more than a quarter of them. An error of sqrt 2 either
    way (E01) is far outside.
    """
    rng = np.random.default_rng(9)
    rows = rng.random((4000, 4)) < 0.5
    columns = [f"x{i}" for i in range(4)]
    runs = count("standard errors of a contingency table", short=150, long=1500)
    found = [
        contingency(asked_of(rows, seed, budget=EpsilonDelta(900, 0.1)), columns, method=method, ways=2, spend=spend)
        for seed in range(runs)
    ]
    pairs = list(itertools.combinations(range(4), 2))
    names = [[f"x{i}" for i in pair] for pair in pairs]
    gaps = np.array(
        [[each.marginal(own).values - counts(rows, pair) for own, pair in zip(names, pairs, strict=True)]
         for each in found]
    )  # fmt: skip
    told = np.array([found[0].marginal(own).standard_error for own in names])
    slack = 6 * math.sqrt((3 + 2) / (4 * 4 * runs))  # of a deviation, for excess kurtosis 3
    assert slack < 1 - 1 / math.sqrt(2)
    assert math.sqrt(np.mean((gaps / told) ** 2)) == pytest.approx(1, rel=slack)
    assert np.abs(gaps.mean(axis=0)).max() < 6 * told.max() / math.sqrt(runs)


@pytest.mark.parametrize(
    ("k", "ways", "spend", "best"),
    [
        (6, 2, Epsilon(1), "cells"),
        (9, 1, Epsilon(1), "fourier"),
        (8, 2, Epsilon(1), "cells"),
        (5, 4, Epsilon(1), "cells"),
        (9, 2, Rho(0.05), "fourier"),
    ],
)
def test_auto_takes_the_best(k: int, ways: int, spend: sulq.Epsilon, best: str) -> None:
    """Of all methods, measured on the same rows, auto's is within 5% of the best, up to the chance of few runs."""
    columns, rows = binary(k, 3000)
    runs = count("auto against all methods", short=6, long=60)
    errors = {}
    for method in METHODS:
        several = [
            mean_error(
                contingency(
                    asked_of(rows, seed, budget=EpsilonDelta(900, 0.1)),
                    list(columns),
                    method=method,
                    ways=ways,
                    spend=spend,
                ),
                rows,
            )
            for seed in range(runs)
        ]
        errors[method] = (np.mean(several), np.std(several) / math.sqrt(runs))
    oracle = asked_of(rows, 0, budget=EpsilonDelta(900, 0.1), size=10**6)  # so many that what is measured is published
    chosen = contingency(oracle, list(columns), ways=ways, spend=spend)
    assert chosen.method == best
    least, spread = min(errors.values())
    assert errors[chosen.method][0] <= least * 1.05 + 4 * (spread + errors[chosen.method][1])
    for method, far in chosen.foreseen.items():
        if method == "model":
            continue
        assert errors[method][0] == pytest.approx(far, rel=0.1 + 6 * errors[method][1] / far)
    worst = max(chosen.foreseen.values())
    assert worst > 1.2 * min(chosen.foreseen.values())  # the choice matters here


@pytest.mark.parametrize(("k", "ways", "best"), [(10, 2, "cells"), (16, 2, "fourier-shift"), (16, 3, "cells")])
def test_auto_at_real_sizes(k: int, ways: int, best: str) -> None:
    """Of ten attributes the noisy table is best; of sixteen, coefficients for pairs and the table for triples.

    So for many rows; for few, where noise is large, a model of pairs for both.
    """
    names = [f"x{i}" for i in range(k)]
    found = contingency(asked_of(np.zeros((0, k), dtype=bool), 1, size=10**6), names, ways=ways, spend=Epsilon(1))
    assert found.method == best
    assert found.foreseen[best] <= min(found.foreseen.values()) * 1.05
    few = contingency(asked_of(np.zeros((0, k), dtype=bool), 1, size=10**4), names, ways=ways, spend=Epsilon(0.01))
    assert few.method == "model"
    assert few.contents.order == 2


def test_auto_knows_of_the_rows_only_what_it_paid_for() -> None:
    """Without noise, other rows of the same number give the same choice; a declared size is not counted again.

    The control: another number of rows gives another choice, through the count that is asked for.
    """
    names = [f"x{i}" for i in range(4)]
    found = set()
    for seed in range(3):
        oracle = asked_of(np.random.default_rng(seed).random((9000, 4)) < 0.2 * seed, None)
        table = contingency(oracle, names, ways=2, spend=Epsilon(1))
        assert len(oracle.asked) == 2
        assert sum(spend.exact for _, spend in oracle.asked) == 1
        found.add((table.method, tuple(table.foreseen.items())))
    assert [name for name, _ in found] == ["cells"]
    few = contingency(asked_of(np.zeros((50, 4), dtype=bool), None), names, ways=2, spend=Epsilon(1))
    assert few.method == "model"
    declared = asked_of(np.zeros((50, 4), dtype=bool), None, size=9000)
    assert contingency(declared, names, ways=2, spend=Epsilon(1)).method == "cells"
    assert len(declared.asked) == 1


def test_the_shifted_table_of_ten_attributes_S3_21() -> None:
    """K = 10, |B| = 56, a sparse table of 5000 rows: with the shift no cell of a pair is negative in 60 of 60 runs.

    Without it hardly ever are all of them not (in none of the first 60 runs, in 2 of 241). 3136 rows of it are the
    noise's expected sum, too many to read percentages off, which the note says; at a hundred times the spend it does
    not.
    """
    columns = [f"x{i}" for i in range(10)]
    rows = np.zeros((5000, 10), dtype=bool)
    rows[:2500, :3] = True
    options = {"method": "fourier-shift", "weights": "even", "ways": 2}
    runs, shifted, plain = count("S3.21 shifted tables", short=60, long=600), 0, 0
    for seed in range(runs):
        found = contingency(asked_of(rows, seed), columns, spend=Epsilon(1), **options)
        lowest = [(own.values.min(), own.added) for own in map(found.marginal, found.asked)]
        shifted += all(low + added >= 0 for low, added in lowest)
        plain += all(low >= 0 for low, _ in lowest)
    assert shifted == runs
    assert plain <= runs / 20
    figure(
        "S3.21", "tables of 10 bits, |B| = 56, without a negative cell: with the shift", shifted / runs, "at least 0.95"
    )
    figure("S3.21", "the same without the shift", plain / runs, "-")
    assert found.shift == pytest.approx(gamma_quantile(56, 0.95) * 56 + 56, rel=1e-3)
    assert found.shift / (gamma_quantile(56, 0.95) / 56) == pytest.approx(3136, rel=0.02)
    assert "tell little" in found.notes[0]
    assert f"{found.shift:,.0f} rows are added" in found.charts()[0].said
    ample = contingency(asked_of(rows, 1), columns, spend=Epsilon(100), **options)
    assert "rows are added" in ample.notes[0]
    assert "tell little" not in ample.notes[0]


def test_a_program_that_is_not_solved_leaves_the_coefficients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was paid for is published whatever the solver does: as by fourier-shift, and said; asked only once."""
    _, rows = binary(4, 300)
    names = [f"x{i}" for i in range(4)]
    whole = contingency(asked_of(rows, 2), names, method="fourier", ways=2, spend=Epsilon(1))
    assert whole.notes == ()
    stopped = {"solver": "simplex", "simplex_iteration_limit": 0, "presolve": "off"}
    monkeypatch.setattr(fourier, "STRATEGIES", (stopped,))
    oracle = asked_of(rows, 2)
    found = contingency(oracle, names, method="fourier", ways=2, spend=Epsilon(1))
    assert len(oracle.asked) == 1
    assert found.method == "fourier-shift"
    assert "No solver" in found.notes[0]
    other = contingency(asked_of(rows, 2), names, method="fourier-shift", ways=2, spend=Epsilon(1))
    assert np.array_equal(found.table(), other.table())
    found.save(tmp_path / "out")
    again = release.load(tmp_path / "out")
    assert again.notes == found.notes
    assert "No solver" in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")


def test_the_shift_is_the_same_for_all_rows_and_noise_T6() -> None:
    """Replayed on other rows, and with other noise, the constant and the question are the same to the bit.

    A constant from the realised noise, the control, differs in every run.
    """
    names = [f"x{i}" for i in range(5)]
    constants, realised, questions = set(), set(), set()
    for seed in range(4):
        rows = np.random.default_rng(seed).random((20 * seed, 5)) < 0.5
        oracle = asked_of(rows, seed)
        found = contingency(oracle, names, method="fourier-shift", ways=2, spend=Epsilon(1))
        constants.add(found.shift)
        questions.add(wire.digest(oracle.asked[0][0]))
        without = contingency(asked_of(rows, None), names, method="fourier-shift", ways=2, spend=Epsilon(1))
        noisy, plain = found.contents.noise.values, without.contents.noise.values
        realised.add(sum(float(np.abs(noisy[part] - plain[part]).sum()) for part in plain))
    assert len(constants) == 1
    assert len(questions) == 1
    assert len(realised) == 4


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("written", ["parquet", "csv"])
def test_saved_and_loaded(tmp_path: Path, method: str, written: str) -> None:
    """Marginals, bounds, shift and foresight come back as they were, without the data."""
    db = opened({**COLUMNS, "marginal": sulq.Bool()}, {**made(), "marginal": np.zeros(500, dtype=bool)})
    found = contingency(db, ["d", "marginal", "b"], [["b", "marginal"], ["d"]], method, bins=3, spend=Epsilon(1))
    found.save(tmp_path / "out", written)
    again = release.load(tmp_path / "out")
    assert isinstance(again, ContingencyTable)
    for names in (["marginal", "b"], ["b"], ["d"]):
        assert again.marginal(names).values == pytest.approx(found.marginal(names).values, rel=1e-12)
        assert again.marginal(names).standard_error == pytest.approx(found.marginal(names).standard_error)
        assert again.marginal(names).labels == found.marginal(names).labels
    assert (again.method, again.shift, again.asked) == (method, pytest.approx(found.shift), found.asked)
    assert again.foreseen == found.foreseen
    assert again.title() == found.title()
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "marginal, b" in page
    if method == "fourier":
        assert again.bound(["d"]) == found.bound(["d"])
        assert "Proved bound" in page


WRONG = [
    ("unknown-column", {"attributes": ["a", "nobody"], "marginals": [["a"]]}),
    ("wrong-kind", {"attributes": ["a", "t"], "marginals": [["a"]]}),
    ("bad-parameter", {"attributes": [], "marginals": [["a"]]}),
    ("bad-parameter", {"attributes": "ab", "marginals": [["a"]]}),
    ("bad-parameter", {"attributes": ["a", "a"], "marginals": [["a"]]}),
    ("bad-parameter", {"attributes": ["a", "b"]}),
    ("bad-parameter", {"attributes": ["a", "b"], "marginals": []}),
    ("bad-parameter", {"attributes": ["a", "b"], "marginals": [[]]}),
    ("bad-parameter", {"attributes": ["a", "b"], "marginals": [["c"]]}),
    ("bad-parameter", {"attributes": ["a", "b"], "marginals": [["a", "a"]]}),
    ("bad-parameter", {"attributes": ["a", "b"], "marginals": "ab"}),
    ("bad-parameter", {"attributes": ["a", "b"], "ways": 3}),
    ("bad-parameter", {"attributes": ["a", "b"], "ways": 1, "method": "magic"}),
    ("bad-parameter", {"attributes": ["a", "b"], "ways": 1, "weights": "odd"}),
    ("bad-parameter", {"attributes": ["a", "b"], "ways": 1, "bins": 0}),
    ("spend-missing", {"attributes": ["a", "b"], "ways": 1, "spend": None}),
    ("budget-exceeded", {"attributes": ["a", "b"], "ways": 1, "spend": Epsilon(950)}),
]


@pytest.mark.parametrize(("code", "options"), WRONG)
def test_bad_input_is_refused_for_free(code: str, options: dict[str, object]) -> None:
    """Each is refused with its code, and nothing is spent."""
    db = opened({**COLUMNS, "t": sulq.Text()}, {**made(5), "t": np.array(list("abcde"))})
    with pytest.raises(SulqError) as refusal:
        contingency(db, **{"spend": Epsilon(1), **options})
    assert refusal.value.code == code
    assert db.spent == Epsilon.total(0)


def test_too_large_a_table_says_which_method_fits() -> None:
    """2^k cells times the coefficients are too many for the program, 2^k for cells; fourier-shift takes both."""
    rows = np.random.default_rng(0).random((30, 24)) < 0.5
    names = [f"x{i}" for i in range(24)]
    oracle = asked_of(rows, 3)
    for method in ("fourier", "cells"):
        with pytest.raises(QuestionError, match="fourier-shift") as refusal:
            contingency(oracle, names, [["x0", "x1"], ["x2", "x23"]], method, spend=Epsilon(1))
        assert refusal.value.code == "too-large"
    assert oracle.asked == []
    found = contingency(oracle, names, ways=2, spend=Epsilon(1))
    assert found.method == "fourier-shift"
    assert set(found.foreseen) == {"marginals", "fourier-shift"}
    with pytest.raises(QuestionError) as refusal:
        found.table()
    assert refusal.value.code == "too-large"
    assert MAX_PROGRAM_NUMBERS < 2**24 * 10


@pytest.mark.parametrize("method", [*METHODS, "model", "auto"])
@pytest.mark.parametrize(("k", "options"), [(28, {"marginals": 28}), (32, {"ways": 16}), (30, {"marginals": 23})])
def test_marginals_are_counted_before_they_are_written_down(method: str, k: int, options: dict[str, int]) -> None:
    """Hundreds of millions of marginals, of cells or of subsets: refused in no time, by every method, for free."""
    names = [f"x{i}" for i in range(k)]
    asked = {name: [names[:value]] if name == "marginals" else value for name, value in options.items()}
    oracle = asked_of(np.zeros((3, k), dtype=bool), 1)
    began = time.process_time()
    with pytest.raises(QuestionError) as refusal:
        contingency(oracle, names, method=method, spend=Epsilon(1), **asked)
    assert time.process_time() - began < 1
    assert refusal.value.code == "too-large"
    assert oracle.asked == []


def test_forty_attributes_are_a_table() -> None:
    """All pairs of them, by DuckDB: without noise the truth; what needs all cells at once says what fits."""
    with wide_people() as db:
        names = [f"x{i}" for i in range(40)]
        for method in ("cells", "model"):
            with pytest.raises(QuestionError, match="fourier-shift") as refusal:
                contingency(db, names, method=method, ways=2, spend=Epsilon(1))
            assert refusal.value.code == "too-large"
        assert db.spent.amount == 0
        found = contingency(exact(db), names, ways=2, spend=Epsilon(1))
    table = wide_table()
    for pair in (["x0", "x39"], ["x35", "x2"]):
        true = np.zeros((2, 2))
        np.add.at(true, tuple(table[name].to_numpy().astype(int) for name in pair), 1)
        assert found.marginal(pair).values == pytest.approx(true, abs=1e-6)
    names = [*names, *(f"y{i}" for i in range(1000))]
    with pytest.raises(QuestionError, match=r"1,024"):
        contingency(Arrays(COLUMNS, made()), names, ways=2, spend=Epsilon(1))


@pytest.mark.parametrize("method", ["fourier", "fourier-shift"])
def test_coefficients_of_large_marginals_are_refused(method: str) -> None:
    """Of twelve attributes at once they are too many numbers; the message says what fits, and auto takes it.

    Twelve attributes of one value each are no coefficients but the one, and are walked all the same.
    """
    names = [f"x{i}" for i in range(20)]
    oracle = asked_of(np.zeros((3, 20), dtype=bool), 1)
    for size in (12, 20):
        with pytest.raises(QuestionError, match="method='cells' or method='marginals' fits") as refusal:
            contingency(oracle, names, [names[:size]], method, spend=Epsilon(1))
        assert refusal.value.code == "too-large"
    assert oracle.asked == []
    assert contingency(oracle, names, [names], spend=Epsilon(1)).method == "cells"
    single = Arrays({name: sulq.Int(0, 9) for name in names}, {name: np.zeros(3, dtype=int) for name in names}, seed=1)
    with pytest.raises(QuestionError, match="subsets"):
        contingency(single, names, [names], method, bins=1, spend=Epsilon(1))
    found = contingency(single, names, [names[:5]], method, bins=1, spend=Epsilon(1))
    assert found.marginal(names[:2]).values.shape == (1, 1)


def test_large_attributes_are_asked_by_their_cells() -> None:
    """Coefficients of two attributes of hundreds of values each are no table of numbers; no program is fitted to them.

    They are asked as counts of the cells, of which nearly all are coefficients: the noise is that of the marginal.
    """
    columns = {"a": sulq.Category(list(range(900))), "b": sulq.Category(list(range(800)))}
    codes = np.random.default_rng(1).integers(0, 800, 30)
    oracle = Arrays(columns, dict.fromkeys(columns, codes), seed=1, budget=EpsilonDelta(90, 0.1))
    with pytest.raises(QuestionError) as refusal:
        contingency(oracle, ["a", "b"], [["a", "b"]], "fourier", spend=Epsilon(1))
    assert refusal.value.code == "too-large"
    found = contingency(oracle, ["a", "b"], [["a", "b"]], "fourier-shift", spend=Rho(0.5))
    whole = found.marginal(["b", "a"])
    assert whole.values.shape == (800, 900)
    assert whole.standard_error.max() == pytest.approx(1.0, rel=0.01)
    counted = np.zeros((800, 900))
    np.add.at(counted, (codes, codes), 1)
    far = np.abs(whole.values - counted)
    assert far.max() < 7 * whole.standard_error.max()
    assert far.mean() > 0.5


@pytest.mark.parametrize("method", METHODS)
def test_the_table_as_rows(method: str) -> None:
    """A frame has a column for each attribute and the published counts; of a fit only cells that are not empty."""
    _, rows = binary(4, 300)
    found = contingency(asked_of(rows, 2), ["x0", "x1", "x2"], method=method, ways=2, spend=Epsilon(1))
    if method == "marginals":
        with pytest.raises(QuestionError, match="no one table"):
            found.to_arrow()
        return
    frame = found.to_pandas()
    assert list(frame.columns) == ["x0", "x1", "x2", "value"]
    assert frame["value"].sum() == pytest.approx(found.table().sum())
    assert (len(frame) < 8 or frame["value"].min() > 0) if method == "fourier" else len(frame) == 8


def test_what_was_not_asked_for_is_not_told() -> None:
    """A marginal beyond those asked for is refused, but by cells, which hold all; so is a bound that is not proved."""
    rows = np.zeros((10, 3), dtype=bool)
    names = ["x0", "x1", "x2"]
    for method in METHODS:
        found = contingency(asked_of(rows, 0), names, [["x0", "x1"]], method, spend=Epsilon(1))
        if method == "cells":
            assert found.marginal(["x2", "x0"]).values.shape == (2, 2)
        else:
            with pytest.raises(QuestionError, match="not asked for"):
                found.marginal(["x0", "x2"])
        if method != "fourier":
            with pytest.raises(QuestionError, match="fourier"):
                found.bound(["x0"])
        with pytest.raises(QuestionError, match="attributes of the table"):
            found.marginal(["y"])


def test_under_a_sublinear_budget_queries_decide() -> None:
    """Each scalar is a query: what does not fit is passed over by auto, and refused by name."""
    rows = np.random.default_rng(0).random((200, 6)) < 0.5
    names = [f"x{i}" for i in range(6)]

    def oracle() -> Arrays:
        return asked_of(rows, 1, budget=SubLinear(epsilon=1, delta=1e-6, queries=30))

    found = contingency(oracle(), names, ways=1)
    assert found.method in ("marginals", "fourier")
    assert found.paid.spent.queries <= 30
    with pytest.raises(SulqError) as refusal:
        contingency(oracle(), names, method="cells", ways=1)
    assert refusal.value.code == "budget-exceeded"


def test_progress_is_told() -> None:
    """The count and one ask are planned, and done."""
    told: list[tuple[int, int]] = []
    contingency(
        asked_of(np.zeros((3, 3), dtype=bool), 0),
        ["x0"],
        [["x0"]],
        spend=Epsilon(1),
        progress=lambda *pair: told.append(pair),
    )
    assert told[-1] == (2, 2)


@pytest.mark.parametrize("spend", [Epsilon(1), Rho(0.3)])
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_a_model_is_near_the_truth_and_agrees(spend: sulq.Epsilon, neighbors: str) -> None:
    """Without noise within a fiftieth of the rows, in any order of attributes; none negative, and one table."""
    data = made(5000)
    oracle = Arrays(COLUMNS, data, budget=EpsilonDelta(900, 0.1), unit=Unit(neighbors=neighbors))
    found = contingency(oracle, NAMES, ASKED, "model", bins=4, spend=spend)
    assert found.method == "model"
    for names in (["a", "b"], ["c", "b", "d"], ["c"], ["d", "c"]):
        own = found.marginal(names)
        assert np.abs(own.values - true(data, names)).sum() < 0.02 * 5000
        assert own.values.min() >= 0
        assert own.standard_error.min() > 0
    assert found.table().sum(axis=(2, 3)) == pytest.approx(found.marginal(["a", "b"]).values)
    assert found.marginal(["b", "c"]).values.sum(axis=1) == pytest.approx(found.marginal(["b"]).values)


def test_a_model_beats_all_else_where_noise_is_large() -> None:
    """Triples of eight attributes at epsilon .1: nearer than each method, which auto knows; it says what it did."""
    columns, rows = binary(8, 3000)
    errors = {
        method: np.mean(
            [
                mean_error(
                    contingency(asked_of(rows, i), list(columns), method=method, ways=3, spend=Epsilon(0.1)), rows
                )
                for i in range(4)
            ]
        )
        for method in ("auto", "cells", "marginals", "fourier-shift")
    }
    assert errors["auto"] < 0.9 * min(own for method, own in errors.items() if method != "auto")
    found = contingency(asked_of(rows, 0), list(columns), ways=3, spend=Epsilon(0.1))
    assert found.method == "model"
    assert "interactions of up to" in found.title()
    assert "model's own error" in found.charts()[0].said


def test_a_model_is_made_from_answers_alone_T6() -> None:
    """Replayed with the same answers over other rows it is the same to the bit; with other noise it is not."""
    names = [f"x{i}" for i in range(5)]
    rows = np.random.default_rng(1).random((300, 5)) < 0.3
    first = asked_of(rows, 7)
    found = contingency(first, names, method="model", ways=2, spend=Epsilon(1))

    class Replayed(Arrays):
        answers: ClassVar[list[object]] = []

        def ask(self, question: object, **options: object) -> object:
            answer = super().ask(question, **options)
            self.answers.append(answer)
            return answer

    class Told(Arrays):
        def ask(self, question: object, **options: object) -> object:
            super().ask(question, **options)
            return Replayed.answers[len(self.asked) - 1]

    columns = {name: sulq.Bool() for name in names}
    once = Replayed(columns, {name: rows[:, i] for i, name in enumerate(names)}, seed=7)
    again = contingency(once, names, method="model", ways=2, spend=Epsilon(1))
    other = contingency(
        Told(columns, {name: ~rows[:9, i] for i, name in enumerate(names)}, seed=8),
        names,
        method="model",
        ways=2,
        spend=Epsilon(1),
    )
    assert np.array_equal(again.table(), other.table())
    assert np.array_equal(found.table(), other.table())
    fresh = contingency(asked_of(rows, 9), names, method="model", ways=2, spend=Epsilon(1))
    assert not np.array_equal(fresh.table(), other.table())


@pytest.mark.parametrize("written", ["parquet", "csv"])
@pytest.mark.parametrize("names", [["d", "marginal", "b"], ["a", "marginal"]])
def test_a_model_saved_and_loaded(tmp_path: Path, written: str, names: list[str]) -> None:
    """Its marginals, title and foresight come back as they were, without the data."""
    db = opened({**COLUMNS, "marginal": sulq.Bool()}, {**made(), "marginal": np.zeros(500, dtype=bool)})
    found = contingency(db, names, method="model", ways=2, bins=3, spend=Epsilon(1))
    found.save(tmp_path / "out", written)
    again = release.load(tmp_path / "out")
    assert isinstance(again, ContingencyTable)
    for own in (names[:2], names[1:2]):
        assert again.marginal(own).values == pytest.approx(found.marginal(own).values, rel=1e-9)
        assert again.marginal(own).standard_error == pytest.approx(found.marginal(own).standard_error)
    assert (again.method, again.title(), again.foreseen) == ("model", found.title(), found.foreseen)
    assert again.table() == pytest.approx(found.table())


def test_a_model_that_does_not_fit_is_refused() -> None:
    """Too many cells, and a SubLinear budget, for free; the message says what fits."""
    rows = np.zeros((3, 22), dtype=bool)
    oracle = asked_of(rows, 1)
    with pytest.raises(QuestionError, match="fourier-shift") as refusal:
        contingency(oracle, [f"x{i}" for i in range(22)], [["x0", "x1"]], "model", spend=Epsilon(1))
    assert refusal.value.code == "too-large"
    counted = asked_of(rows[:, :3], 1, budget=SubLinear(epsilon=1, delta=1e-6, queries=300))
    with pytest.raises(QuestionError, match="SubLinear"):
        contingency(counted, ["x0", "x1"], [["x0"]], "model")
    assert oracle.asked == counted.asked == []
    empty = contingency(asked_of(rows[:0], 1), ["x0", "x1"], [["x0", "x1"]], "model", spend=Epsilon(1))
    assert empty.marginal(["x0", "x1"]).values.min() >= 0


def test_a_question_that_is_too_long_to_send_has_smaller_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a door refuses for its length is asked with smaller tables; the refusal is free."""
    tried = []
    module = sys.modules["sulq.release.contingency"]
    original = module._chosen

    def chosen(wish, method, spending):
        tried.append(wish.most)
        if wish.most > MAX_LOOKUP_NUMBERS:
            raise QuestionError("body-too-large", "The body is longer than 16777216 bytes.")
        return original(wish, method, spending)

    monkeypatch.setattr(module, "_chosen", chosen)
    with sulq.connect(pa.table({"x": [0, 1]}), columns={"x": sulq.Int(0, 1)}, budget=Rho(1)) as db:
        contingency(db, ["x"], [["x"]], "fourier-shift", spend=Rho(0.1))
        assert float(db.spent.exact) == 0.1
    assert tried == [MAX_HELD_NUMBERS, MAX_LOOKUP_NUMBERS]
