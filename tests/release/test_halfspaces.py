"""Halfspaces: exact sides without noise, useful answers with it, and refusals that name what they would need."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

import sulq
from sulq import Epsilon, EpsilonDelta, Queries, Rho, SubLinear, Unit, release
from sulq.answers import wire
from sulq.compile.plan import draw
from sulq.errors import QuestionError
from sulq.release.directions import halfspace_n
from sulq.release.halfspaces import Halfspaces, halfspaces
from tests.counts import count
from tests.figures import figure
from tests.frames import Frame, sums
from tests.learn.cases import exact, opened, refused
from tests.learn.sq.noisy import Arrays

GRID = 2.0**-12


def space(d: int) -> dict[str, object]:
    """Columns whose bounds differ."""
    return {f"x{i}": sulq.Real(-1 - i, 1 + i, grid=GRID) for i in range(d)}


def table(points: np.ndarray) -> dict[str, np.ndarray]:
    """Points of [-1, 1]^d as columns within the bounds of `space`."""
    return {f"x{i}": np.rint(points[:, i] / GRID) * GRID * (1 + i) for i in range(points.shape[1])}


def margin(rng: np.random.Generator, n: int, y: np.ndarray, least: float, share: float = 0.35) -> np.ndarray:
    """Points of the unit sphere about a lopsided centre, none of which has |cos| below `least` with y."""
    across = rng.normal(size=(n, len(y))) + rng.normal(size=len(y))
    across -= np.outer(across @ y, y)
    across /= np.linalg.norm(across, axis=1)[:, None]
    cosine = rng.uniform(least, 1, n) * np.where(rng.random(n) < share, 1, -1)
    return across * np.sqrt(1 - cosine**2)[:, None] + np.outer(cosine, y)


def direction(rng: np.random.Generator, d: int) -> np.ndarray:
    y = rng.normal(size=d)
    return y / np.linalg.norm(y)


@pytest.mark.parametrize(
    ("d", "options", "planes"),
    [
        (1, {}, 1),
        (2, {"g": 0.3}, 6),
        (3, {"g": 0.5}, 12),
        (4, {}, 40),
        (5, {}, 121),
        (8, {}, 100),
        (6, {"dimension": 3, "projections": 3, "g": 0.6}, 45),
        (5, {"directions": [[1, 0, 0, 0, 0], [1, -2.5, 0, 0, 1e-3]]}, 2),
    ],
)
def test_without_noise_S3_22(d: int, options: dict[str, object], planes: int) -> None:
    """Every published count is exactly the number of rows x with <x, w> >= 0; n is the number of rows."""
    rng = np.random.default_rng(d)
    points = rng.uniform(-1, 1, (700, d))
    data = table(points)
    columns = space(d)
    made = halfspaces(exact(opened(columns, data)), list(columns), **options, spend=Epsilon(50))
    units = np.stack([np.rint(data[f"x{i}"] / ((1 + i) * GRID)) for i in range(d)], axis=1).astype(np.int64)
    assert len(made.planes) == planes
    assert made.counts.tolist() == (units @ made.planes.T >= 0).sum(axis=0).tolist()
    assert made.rows == 700
    y = made.planes[0] / np.linalg.norm(made.planes[0])
    found = made.fraction(y, "nearest")
    assert found.distance == pytest.approx(0, abs=1e-6)
    assert found.value == pytest.approx(made.counts[0] / 700)
    assert made.fraction(-y, "nearest").value == pytest.approx(1 - found.value)


def test_a_halfspace_and_its_opposite_share_their_border_S3_22() -> None:
    """H_y + H_-y = 1 + the rows on the plane, where both were published; one alone leaves them out of the other."""
    columns = {"a": sulq.Bool(), "b": sulq.Bool()}
    data = {"a": np.array([1, 1, 0, 0, 1]) > 0, "b": np.array([1, 0, 1, 0, 0]) > 0}
    db = exact(opened(columns, data))
    both = halfspaces(db, ["a", "b"], directions=[[1, 1], [-1, -1]], spend=Epsilon(50))
    assert both.counts.tolist() == [4, 4]  # (+,+) and three on the plane; (-,-) and the same three
    for y, count_of in (([1, 1], 4), ([-1, -1], 4)):
        found = both.fraction(y)
        assert (found.value, found.strict) == (pytest.approx(count_of / 5), False)
        assert found.distance == pytest.approx(0, abs=1e-6)
    assert both.fraction([1, 1]).value + both.fraction([-1, -1]).value == pytest.approx(1 + 3 / 5)
    for order in ([[1, 1]], [[1, 1], [1, -1]]):
        one = halfspaces(db, ["a", "b"], directions=order, spend=Epsilon(50))
        found = one.fraction([-1, -1])
        assert (found.value, found.strict) == (pytest.approx(1 / 5), True)  # the rows of <x, y> > 0
        assert "without the rows on the plane" in str(found)
        assert "plane" not in str(one.fraction([1, 1]))


@pytest.mark.parametrize("size", [None, 400])
def test_rows_that_miss_a_value_are_on_neither_side(size: int | None) -> None:
    """Declared or not, y and -y are fractions of the complete rows, and add up to one but for the border.

    Control: the declared size below a count would put the rows that miss a value on the opposite side.
    """
    points = np.random.default_rng(3).uniform(0.001, 1, (400, 2)) * np.where(np.arange(400) % 10 < 7, 1, -1)[:, None]
    data = table(points)
    data["x1"][:160] = np.nan
    db = exact(opened(space(2), data, size=size))
    made = halfspaces(db, ["x0", "x1"], directions=[[1, 0], [1, 1]], accuracy=0.5, spend=Epsilon(50))
    assert (made.rows, made.declared) == (240, size)
    positive = float((points[160:, 0] > 0).mean())
    assert made.fraction([1, 0]).value == pytest.approx(positive)
    assert made.fraction([-1, 0]).value == pytest.approx(1 - positive)
    assert 1 - made.counts[0] / 400 > 1 - positive + 0.2
    assert abs(made.fraction([-1, 0]).value - (1 - positive)) <= made.fraction([-1, 0]).bound


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one", "zero_out"])
@pytest.mark.parametrize("size", [None, 30])
def test_the_sensitivity_is_brute_force_X1(neighbors: str, size: int | None) -> None:
    """N counts move by N in L1 and sqrt(N) in L2 under every relation; the number of rows is one more (SR6)."""
    unit, columns = Unit(neighbors=neighbors), {"x0": sulq.Int(-1, 1), "x1": sulq.Int(-1, 1)}
    data = {"x0": np.zeros(0, int), "x1": np.zeros(0, int)}
    oracle = Arrays(columns, data, unit=unit, size=size)
    wish = {"accuracy": 0.99} if size is None else {"accuracy": 0.9, "beta": 0.9}
    made = halfspaces(oracle, ["x0", "x1"], directions=[[1, 0], [1, 1], [2, 1], [3, -1]], **wish, spend=Epsilon(1))
    question = oracle.asked[0][0]
    plan = draw(question, oracle.facts, Epsilon(1))
    blocks = plan.parts[0]
    assert blocks.sensitivity[-1] == 4
    assert len(blocks.sensitivity) == 2
    assert made.declared == size
    schema = oracle.frame.schema
    rows = [
        {"x0": a, "x1": b, "person": i, "position": i}
        for i, (a, b) in enumerate(itertools.product((-1, 0, 1), repeat=2))
    ]
    base = sums(blocks.tally, Frame(schema, rows))
    step = float(blocks.tally.blocks[-1].step)
    worst = {1: 0.0, 2: 0.0}
    for i, row in enumerate(rows):
        rest = [other for other in rows if other is not row]
        neighbours = [rest] if neighbors != "replace_one" else [[*rest, {**other, "person": i}] for other in rows]
        for neighbour in neighbours:
            moved = np.abs(base - sums(blocks.tally, Frame(schema, neighbour)))[0, -4:] * step
            worst = {p: max(worst[p], float((moved**p).sum())) for p in worst}
    assert worst == {1: 4.0, 2: 4.0}
    rho = draw(question, Arrays(columns, data, unit=unit, size=size, budget=Rho(9)).facts, Rho(1)).parts[0]
    assert float(rho.sensitivity[-1]) == pytest.approx(2, rel=1e-6)


def test_the_number_of_complete_rows_is_noisy_SR6() -> None:
    """Asked in the same question with the same noise, declared or not; of no rows at all the same is asked."""
    asked = []
    for n in (0, 1, 400):
        points = np.random.default_rng(0).uniform(-1, 1, (n, 2))
        oracle = Arrays(space(2), table(points), seed=3)
        made = halfspaces(oracle, ["x0", "x1"], spend=Epsilon(1))
        assert float(made.size_noise.law.scale * made.size_noise.step) == pytest.approx(
            float(made.noise.law.scale * made.noise.step), rel=1e-3
        )
        assert made.rows >= 3 * math.sqrt(2) * 7 - 1  # seven counts at epsilon 1: never less than its noise
        found = made.fraction([1.0, 1.0])
        assert 0 <= found.value <= 1
        assert 0 <= found.bound <= 1
        asked.append([(wire.encode(question), spend) for question, spend in oracle.asked])
    assert asked[0] == asked[1] == asked[2]
    declared = [Arrays(space(2), table(np.zeros((n, 2))), seed=3, size=4000) for n in (5, 4000)]
    few, all_there = (halfspaces(each, ["x0", "x1"], spend=Epsilon(1)) for each in declared)
    assert few.rows < 200
    assert 3900 < all_there.rows <= 4000  # never more than declared


def test_a_note_names_the_rows_it_needs_SR6() -> None:
    """Where no size is declared a fact of the data is no refusal: the noisy number of rows, and how many would do."""
    said = {}
    for n in (0, 40, 12_000):
        points = np.random.default_rng(0).uniform(-1, 1, (n, 8))
        made = halfspaces(Arrays(space(8), table(points), seed=3), list(space(8)), spend=Epsilon(1))
        need = int(made.notes[0].split("need ")[1].split(" complete")[0].replace(",", ""))
        assert need == pytest.approx(halfspace_n(100, 0.1, 0.05, spend=Epsilon(1)), rel=0.02)
        assert f"about {max(round(made.size), 0):,}:" in made.notes[0]
        assert made.charts()[0].said.count(made.notes[0]) == 1
        said[n] = "enough." in made.notes[0]
    assert said == {0: False, 40: False, 12_000: True}


def test_bounds_hold_for_all_counts_at_once() -> None:
    """With probability 1 - beta every published fraction is within its bound; with a third of it hardly ever."""
    runs = count("halfspaces: bounds of all counts", short=150, long=3000)
    points = np.random.default_rng(1).uniform(-1, 1, (3000, 2))
    truth = halfspaces(Arrays(space(2), table(points)), ["x0", "x1"], spend=Epsilon(1))
    failed = missed = 0
    for seed in range(runs):
        made = halfspaces(Arrays(space(2), table(points), seed=seed), ["x0", "x1"], spend=Epsilon(1))
        off = []
        for plane, exact_count in zip(made.planes, truth.counts, strict=True):
            found = made.fraction(plane, "nearest", 0.2)
            off.append(abs(found.value - exact_count / 3000) / found.bound)
        failed += max(off) > 1
        missed += max(off) > 1 / 3
    assert failed <= binom.ppf(1 - 1e-7, runs, 0.2)
    assert missed > runs / 2


@pytest.mark.parametrize("d", [2, 3, 5])
def test_useful_for_every_direction_S3_23(d: int) -> None:
    """frac(cos > g) - acc <= v <= frac(cos >= -g) + acc for any y: the net alone is between them, within g."""
    runs, beta = count(f"halfspaces: usefulness in {d} columns", short=20, long=400), 0.05
    failed = 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        points = rng.normal(size=(4000, d)) + 0.5 * rng.normal(size=d)
        points /= np.linalg.norm(points, axis=1)[:, None]
        made = halfspaces(Arrays(space(d), table(points), seed=seed), list(space(d)), spend=Epsilon(2), beta=beta)
        fine = True
        for _ in range(50):
            y = direction(rng, d)
            found = made.fraction(y, beta=beta)
            assert found.distance <= made.g
            cosine = points @ y
            low, high = (cosine > made.g + 1e-3).mean(), (cosine >= -made.g - 1e-3).mean()
            fine &= low - found.bound <= found.value <= high + found.bound
        failed += not fine
    assert failed <= binom.ppf(1 - 1e-7, runs, beta)
    figure("S3.23", f"runs in which one of 50 directions is not useful, {d} columns", failed / runs, f"at most {beta}")


@pytest.mark.parametrize("d", [6, 10])
def test_useful_on_margin_data_with_projections_S3_23(d: int) -> None:
    """At d <= 10 the default is within .1 on data of margin .6, epsilon 1, 20,000 rows, in 1 - beta of the runs."""
    runs, beta, accuracy = count(f"halfspaces: margin data in {d} columns", short=12, long=600), 0.05, 0.1
    failed = turned = 0
    for seed in range(runs):
        rng = np.random.default_rng((d, seed))
        y = direction(rng, d)
        points = margin(rng, 20_000, y, 0.6)
        made = halfspaces(Arrays(space(d), table(points), seed=seed), list(space(d)), spend=Epsilon(1))
        assert (made.g, len(made.planes)) == (0.6, 100)
        value, cosine = made.fraction(y).value, points @ y
        failed += not (cosine > 0.6).mean() - accuracy <= value <= (cosine >= -0.6).mean() + accuracy
        turned += not (cosine > 0.6).mean() - accuracy <= 1 - value <= (cosine >= -0.6).mean() + accuracy
    assert failed <= binom.ppf(1 - 1e-7, runs, beta)
    assert turned == runs  # the control: the opposite side


def test_the_median_is_over_the_projections_S3_26() -> None:
    """The answer is the middle one of those at each projection's nearest direction, sign and all (E33)."""
    d = 7
    rng = np.random.default_rng(2)
    points = rng.uniform(-1, 1, (600, d))
    columns = list(space(d))
    made = halfspaces(Arrays(space(d), table(points)), columns, projections=5, g=0.5, spend=Epsilon(1))
    assert made.projections.shape == (5, d, 2)
    assert set(np.unique(made.projections)) == {-1, 1}
    assert all(np.linalg.matrix_rank(matrix) == 2 for matrix in made.projections)
    for _ in range(20):
        y = direction(rng, d)
        answers = []
        for i, matrix in enumerate(made.projections):
            projected = y @ matrix / np.linalg.norm(y @ matrix)  # renormalised (E34)
            both = np.concatenate([made.net, -made.net])
            place = int((both @ projected).argmax())
            own = made.counts[i * len(made.net) + place % len(made.net)] / made.rows
            answers.append(own if place < len(made.net) else 1 - own)
        found = made.fraction(y)
        assert found.value == pytest.approx(sorted(answers)[2])
        assert made.fraction(-y).value == pytest.approx(1 - found.value)
        assert made.fraction(y, "nearest").distance <= found.distance
    drawn = [halfspaces(Arrays(space(d), table(points)), columns, spend=Epsilon(1)).projections for _ in range(2)]
    assert (drawn[0] != drawn[1]).any()  # from the operating system


def test_a_refusal_names_the_rows_it_needs() -> None:
    """Where a size is declared that noise would drown: too-few-rows, for free, with a number that would do."""
    points = table(np.random.default_rng(0).uniform(-1, 1, (50, 8)))
    columns = list(space(8))
    for spend, budget in ((Epsilon(1), Epsilon(9)), (Rho(0.02), Rho(9))):
        needed = halfspace_n(100, 0.1, 0.05, spend=spend)
        small = Arrays(space(8), points, size=int(needed * 0.95), budget=budget)
        with pytest.raises(QuestionError, match="need") as refusal:
            halfspaces(small, columns, spend=spend)
        assert refusal.value.code == "too-few-rows"
        said = int(str(refusal.value).split("need ")[1].split(" rows")[0].replace(",", ""))
        assert said == pytest.approx(needed, rel=0.02)
        assert not small.asked
        made = halfspaces(Arrays(space(8), points, size=said, budget=budget), columns, spend=spend)
        assert (made.declared, f"need {said:,} complete rows" in made.notes[0]) == (said, True)


def test_the_queries_set_the_number_of_projections_E36() -> None:
    """8 ln(q/beta) projections for q intended queries; 25, the default, are for one. The notes say what is proved."""
    points = table(np.random.default_rng(0).uniform(-1, 1, (50, 6)))
    columns = list(space(6))
    made = {
        q: halfspaces(Arrays(space(6), points), columns, queries=q, beta=0.1, spend=Epsilon(1)) for q in (1, 20, 100)
    }
    for q, one in made.items():
        assert len(one.projections) == release.projections_for(0.1, queries=q) == math.ceil(8 * math.log(q / 0.1))
        served = int(one.notes[1].split("is for ")[1].split(" queries")[0].replace(",", ""))
        assert q <= served < 1.2 * q + 1
    default = halfspaces(Arrays(space(6), points), columns, spend=Epsilon(1))
    assert len(default.projections) == 25
    assert "is for 1 queries" in default.notes[1]  # the control: a default that is for more would say so
    assert f"{release.projection_dimension(0.6, 0.1):,} dimensions" in default.notes[1]
    assert release.projection_failure(0.6, 2) > 1
    assert "probability 1," in default.notes[1]
    assert len(halfspaces(Arrays(space(2), points), columns[:2], queries=50, spend=Epsilon(1)).notes) == 1
    several = release.projections_for(0.05, bits=2, columns=6)
    every = halfspaces(Arrays(space(6), points), columns, projections=several, spend=Epsilon(1))
    assert every.fraction(release.discretise([1.0, 0.4, -0.2, 0, 0, 1], 2)).distance < 1
    for wrong in ({"queries": 0}, {"queries": 10**15}, {"queries": 5, "projections": 3}, {"queries": 2.5}):
        refused("bad-parameter", halfspaces, Arrays(space(6), points), columns, **wrong, beta=1e-60, spend=Epsilon(1))


def test_numbers_of_any_kind_are_numbers() -> None:
    """Floats of NumPy, whole numbers of it, fractions: one checker for every rate; truth values and texts are none."""
    points = table(np.random.default_rng(0).uniform(-1, 1, (50, 2)))
    made = halfspaces(
        Arrays(space(2), points), ["x0", "x1"], g=np.float32(0.5), accuracy=np.float64(0.2), beta=Fraction(1, 20),
        spend=Epsilon(1),
    )  # fmt: skip
    assert made.fraction([1, 1], "nearest", np.float32(0.25)) == made.fraction([1, 1], "nearest", 0.25)
    assert made.fraction([1, 1], beta=Fraction(1, 4)) == made.fraction([1, 1], beta=0.25)
    for wrong in (0, 1, True, np.int64(1), "0.1", None, math.nan, math.inf, 10**400, np.float64(1)):
        refused("bad-parameter", made.fraction, [1, 1], "nearest", wrong)
    assert halfspace_n(np.int64(100), np.float32(0.5), np.float64(0.05), spend=Epsilon(1)) == halfspace_n(
        100, 0.5, 0.05, spend=Epsilon(1)
    )


def test_own_units_names_and_missing_values() -> None:
    """Weights by name or in the columns' own units; rows that miss a value are not counted."""
    points = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    data = table(points)
    data["x1"][:100] = np.nan
    made = halfspaces(exact(opened(space(2), data)), ["x0", "x1"], directions=[[1, 0], [1, 1]], spend=Epsilon(50))
    assert made.rows == 300
    assert made.counts[0] == (data["x0"][100:] >= 0).sum()
    assert made.scaled({"x0": 2.0, "x1": 1.0}) == pytest.approx([1.0, 1.0])
    assert made.fraction({"x0": 3.0}).value == pytest.approx(made.counts[0] / 300)
    assert made.fraction(made.scaled({"x0": 2, "x1": 1})).distance == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(
    ("budget", "spend", "spent"),
    [
        (Epsilon(9), Epsilon(1), Epsilon(1)),
        (EpsilonDelta(9, 1e-6), EpsilonDelta(1, 1e-7), None),
        (SubLinear(epsilon=1, delta=1e-6, queries=100), None, Queries(7)),
    ],
    ids=str,
)
def test_one_debit_saved_and_loaded(budget: object, spend: object, spent: object, tmp_path: Path) -> None:
    """Every kind of spend, one receipt; from either format every answer comes back, without data."""
    points = np.random.default_rng(0).uniform(-1, 1, (400, 6))
    db = opened(space(6), table(points), budget)
    columns = list(space(6))[: 2 if spend is None else 6]
    made = halfspaces(db, columns, spend=spend)
    assert len(made.paid.receipts) == 1
    assert made.paid.spent == (spent or made.paid.spent)
    for written in ("parquet", "csv"):
        made.save(tmp_path / written, written)
        again = release.load(tmp_path / written)
        assert isinstance(again, Halfspaces)
        for y in np.random.default_rng(1).normal(size=(5, len(columns))):
            assert again.fraction(y) == made.fraction(y)
            assert again.fraction(y, "nearest") == made.fraction(y, "nearest")
        assert (again.g, again.rows, again.paid.spent) == (made.g, made.rows, made.paid.spent)
    assert "above the middle" in (tmp_path / "csv" / "index.html").read_text(encoding="utf-8")
    file = tmp_path / "csv" / "release.json"
    file.write_text(file.read_text(encoding="utf-8").replace('"x0",', ""), encoding="utf-8")
    refused("bad-release", release.load, tmp_path / "csv")


@pytest.mark.parametrize(
    ("code", "columns", "options"),
    [
        ("bad-parameter", [], {}),
        ("bad-parameter", "x0", {}),
        ("bad-parameter", ["x0", "x0"], {}),
        ("unknown-column", ["x0", "height"], {}),
        ("wrong-kind", ["x0", "city"], {}),
        ("bad-parameter", ["x0", "x1"], {"g": 0.0}),
        ("bad-parameter", ["x0", "x1"], {"g": 1.5}),
        ("bad-parameter", ["x0", "x1"], {"dimension": 3}),
        ("bad-parameter", ["x0", "x1"], {"projections": 3}),
        ("bad-parameter", ["x0", "x1"], {"accuracy": 0}),
        ("bad-parameter", ["x0", "x1"], {"beta": "x"}),
        ("bad-parameter", ["x0", "x1"], {"directions": [[1, 2]], "queries": 5}),
        ("bad-parameter", ["x0", "x1"], {"directions": []}),
        ("bad-parameter", ["x0", "x1"], {"directions": [[0, 0]]}),
        ("bad-parameter", ["x0", "x1"], {"directions": [[1, math.inf]]}),
        ("bad-parameter", ["x0", "x1"], {"directions": [[1, 2, 3]]}),
        ("bad-parameter", ["x0", "x1"], {"directions": [[1, 2]], "g": 0.5}),
        ("too-large", ["x0", "x1", "x2", "x3"], {"g": 0.4}),
        ("too-large", ["x0", "x1", "x2", "x3"], {"dimension": 2, "projections": 900}),
        ("spend-missing", ["x0", "x1"], {"spend": None}),
        ("budget-exceeded", ["x0", "x1"], {"spend": Epsilon(10)}),
    ],
)
def test_bad_input_is_refused_for_free(code: str, columns: list[str], options: dict[str, object]) -> None:
    """Each with its code; the ledger is as it was."""
    points = table(np.zeros((10, 4)))
    db = opened({**space(4), "city": ["Lod", "Yafo"]}, {**points, "city": np.array(["Lod"] * 10)}, Epsilon(9))
    refused(code, halfspaces, db, columns, **{"spend": Epsilon(1), **options})
    assert db.remaining == Epsilon(9)


def test_a_reader_is_told_what_cannot_be_read() -> None:
    """Directions of another length, of nothing, of unknown names; rules and rates that are none."""
    made = halfspaces(Arrays(space(2), table(np.zeros((9, 2))), seed=1), ["x0", "x1"], spend=Epsilon(1))
    for wrong in ([1.0], [0.0, 0.0], {"height": 1.0}, ["a", "b"], [math.nan, 1.0], None):
        refused("bad-parameter", made.fraction, wrong)
    refused("bad-parameter", made.fraction, [1, 1], "mean")
    refused("bad-parameter", made.fraction, [1, 1], "median", 1.0)
    refused("bad-parameter", made.scaled, {"height": 1.0})
