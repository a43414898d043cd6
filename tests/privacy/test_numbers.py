"""Released numbers: on a public grid, from released integers alone, finite, with noise of their own."""

from __future__ import annotations

import ast
import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from sulq import Category, Epsilon, EpsilonDelta, Int, Real, Rho, Sums, Unit, col
from sulq.answers import wire
from sulq.errors import SulqError
from sulq.language.law import SMALLEST_SCALE, GaussianLaw, LaplaceLaw
from sulq.language.rowfn import Bins, Lit
from sulq.testing import exact, neighbours
from sulq.testing.questions import Drawer
from sulq.testing.replay import cost
from tests import counts
from tests.privacy.cases import ENGINES, answerable, facts_of, opened, seeded
from tests.trees import trees


def off_grid(values: np.ndarray, step: Fraction) -> int:
    """How many numbers are no whole multiple of a step."""
    return sum((Fraction(float(value)) / step).denominator != 1 for value in values)


@pytest.mark.audit
@pytest.mark.parametrize("spend", [Epsilon(0.7), Rho(0.05)])
def test_every_released_number_is_a_whole_multiple_of_a_public_step_T1_T3(spend: object) -> None:
    """Laplace and Gaussian answers lie on the grid the plan foretold (T1, T3).

    Bar: 0 of 1e6 off it. Control: the same sums with NumPy's float noise.
    """
    planned = counts.count(f"numbers released by {type(spend).__name__}", short=20_000, long=1_000_000)
    rng = seeded("grid")
    table = pa.table({"x": rng.uniform(-3, 90, 500), "k": rng.uniform(0, 1, 500)})
    edges = np.linspace(0, 1, 10_001)
    with opened(table, columns={"x": Real(-3, 90), "k": Real(0, 1)}, budget=EpsilonDelta(1000, 1e-6)) as db:
        question = Sums((col("x"), Lit(1)), None, (Bins(col("k"), tuple(edges.tolist())),))
        done = 0
        while done < planned:
            answer = db.ask(question, spend=spend)
            steps = [noise.step for noise in answer.released.noise]
            assert steps == [step for part in db.foresee(question, spend=spend).parts for step in part.steps]
            cells = np.array(list(answer.value.values()))
            for column, step in enumerate(steps):
                assert off_grid(cells[:, column], step) == 0
            done += cells.size
    floats = cells[:, 0] + np.random.default_rng().laplace(size=len(cells))
    assert off_grid(floats, steps[0]) > 0.9 * len(cells)


def test_nothing_that_draws_float_noise_is_imported_T1() -> None:
    """Nothing on the way from a row to an answer names a source of other noise (T1, T66).

    Bar: 0 forbidden imports or names. Control: where people are made up, generators are found.
    """
    forbidden = {"random", "secrets", "scipy", "numpy.random", "uuid"}
    found = []
    for path, tree in trees().items():
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):  # of scipy one kind of matrix adds vectors up, and draws nothing
                harmless = node.module == "scipy.sparse" and [alias.name for alias in node.names] == ["csc_array"]
                names += [] if harmless else [node.module or ""]
            attributes = isinstance(node, ast.Attribute) and node.attr in (
                "default_rng",
                "seed",
                "RandomState",
                "random",
            )
            if attributes or any(name == bad or name.startswith(f"{bad}.") for name in names for bad in forbidden):
                found.append(path.as_posix())
    data = {"cli/demo.py", "testing/neighbours.py", "testing/questions.py"}
    # Of an audit: people who are made up, adversaries who are played, and subsets that an attacker asks about.
    data |= {"audit/promise.py", "audit/attacks.py", "cli/audit/checks.py", "cli/audit/laws.py"}
    # Where a learner begins and how it breaks ties: public choices, made after the answers, that hide nobody.
    # So are rows drawn from released weights, and projections that a release prints: releases see answers alone.
    after = {"learn/noisy_sums.py", *(path for path in found if path.startswith("release/"))}
    assert "cli/demo.py" in found
    assert set(found) <= data | after


@pytest.mark.parametrize("spend", [Epsilon(1), Rho(0.2)])
def test_derived_statistics_follow_from_the_released_integers_alone_T2(spend: object) -> None:
    """Means, variances, deviations and covariances are recomputed bit for bit from the bytes released (T2, T28).

    Control: one released unit more gives other bits.
    """
    rng = seeded("derived")
    table = pa.table({"x": rng.uniform(0, 9, 200), "y": rng.uniform(-1, 1, 200), "g": rng.integers(0, 2, 200)})
    columns = {"x": Real(0, 9), "y": Real(-1, 1), "g": [0, 1]}
    with opened(table, columns=columns, budget=EpsilonDelta(1000, 1e-6)) as db:
        answers = [
            db.mean("x", spend=spend), db.mean("y", by="g", spend=spend), db.variance("x", spend=spend),
            db.std("y", spend=spend), db.covariance(["x", "y"], spend=spend), db.sum("x", spend=spend),
        ]  # fmt: skip
    for answer in answers:
        again = wire.decode(wire.encode(answer.released))
        assert again.units.tobytes() == answer.released.units.tobytes()
        assert answer.reading.value(again).tobytes() == answer.reading.value(answer.released).tobytes()
        for mine, shown in zip(
            answer.reading.interval(again, 0.05), answer._interval(0.05, simultaneous=False), strict=True
        ):
            assert mine.tobytes() == shown.tobytes()
        more = wire.decode(wire.encode(answer.released))
        more.units[:] += 1000
        assert answer.reading.value(more).tobytes() != answer.reading.value(again).tobytes()
    if isinstance(spend, Epsilon):
        above, below = (Fraction(int(unit)) for unit in answers[0].released.units[0])
        assert math.isclose(answers[0].value, float(9 * above / (above + below)), rel_tol=1e-12)


@pytest.mark.parametrize("kind", ENGINES)
def test_order_and_splitting_of_rows_change_no_integer_T4(kind: str) -> None:
    """Shuffled, reversed and chunked rows have the same exact sums (trap 8, T4, SR16).

    Control: the float sum of the same column changes with its order.
    """
    rng = seeded("order")
    x = rng.uniform(-1e6, 1e6, 3001) * 10.0 ** rng.integers(-6, 7, 3001)
    g = rng.integers(0, 3, 3001)
    orders = [np.arange(3001), np.arange(3001)[::-1], rng.permutation(3001), rng.permutation(3001)]
    found = set()
    for order in orders:
        table = pa.concat_tables([pa.table({"x": x[part], "g": g[part]}) for part in np.array_split(order, 5)])
        with opened(table, columns={"x": Real(-1e6, 1e6), "g": [0, 1, 2]}, engine=kind, synthetic=True) as db:
            answers = [exact(db).sum("x", by="g"), exact(db).covariance(["x"]), exact(db).mean(col("x") * col("x"))]
        found.add(b"".join(answer.released.units.tobytes() for answer in answers))
    floats = {sum(x[rng.permutation(3001)].tolist()) for _ in range(12)}
    assert len(found) == 1
    assert len(floats) > 1


@pytest.mark.audit
@pytest.mark.parametrize("kind", ENGINES)
def test_sums_at_the_ends_of_64_bits_neither_wrap_nor_raise_T5(kind: str) -> None:
    """Cells of +-(2^63 - 1) in many rows: totals are those of the clamped cells (T5, SR17).

    Bar: total = clamp oracle, for a column and for its square. Control: 64-bit sums of the cells wrap.
    """
    rows = counts.count(f"rows at the ends on {kind}", short=20_000, long=1_000_000)
    cells = np.full(rows, 2**63 - 1)
    cells[::4] = -(2**63) + 1
    with np.errstate(over="ignore"):
        assert int(cells.sum()) != sum(cells.tolist())
    bound = 2**53
    with opened(pa.table({"x": cells}), columns={"x": Int(-bound, bound)}, engine=kind, synthetic=True) as db:
        total = exact(db).sum("x").value
        square = exact(db).sum(col("x") * col("x")).value
        noisy = db.sum("x", spend=Epsilon(1))
    below = -(-rows // 4)
    assert Fraction(total) == bound * (rows - 2 * below)
    assert Fraction(square) == rows * Fraction(bound) ** 2
    assert abs(Fraction(noisy.value) - Fraction(total)) <= Fraction(noisy.accuracy(1e-9))


@pytest.mark.parametrize("kind", ENGINES)
def test_special_cells_reach_no_release_T6(kind: str) -> None:
    """NULL, NaN, infinities, subnormals and -0 everywhere give finite answers, the same on every engine (T6).

    Control: plain sums of the column are NaN.
    """
    rng = seeded("special")
    rows = [neighbours.row(rng, f"p{i}", special=0.9) for i in range(60)]
    asked = [Sums((col(name), col(name) * col(name), col(name) / 3), None, (col("city"),)) for name in ("gain", "debt")]
    with opened(neighbours.arrow(rows), engine=kind) as db:
        answers = [db.ask(question, spend=Epsilon(2)) for question in asked] + [db.mean("gain", spend=Epsilon(1))]
        for answer in answers:
            assert np.isfinite(
                list(answer.to_dict()["value"] if "value" in answer.to_dict() else answer.released.values())
            ).all()
    assert not math.isfinite(sum(row["gain"] for row in rows if row["gain"] is not None))


@pytest.mark.audit
def test_no_plan_costs_nothing_or_draws_less_noise_than_it_pays_for_T8_T19() -> None:
    """Whatever the question and spend, each sum has noise, and the exact cost is within the debit (T8, T19).

    Bar: 0 plans with cost above debit or without noise; spends outside the sampler's scales are refused.
    """
    planned = counts.count("plans priced", short=120, long=20_000)
    rng = seeded("degenerate")
    refused = set()
    with opened(pa.table({"age": [1]}), columns=dict(neighbours.COLUMNS[:1]), budget=EpsilonDelta(1000, 1e-6)) as small:
        for power in (-15, -9, -4, -1, 0, 2):
            for spend in (Epsilon(10.0**power), Rho(10.0**power)):
                for fn in (Lit(0), Lit(1), col("age"), col("age") * 1e-30, col("age") * 2**53):
                    try:
                        _check_plan(small.foresee(Sums((fn,)), spend=spend))
                    except SulqError as error:
                        refused.add(error.code)
    assert refused == {"too-little-noise"}
    for unit in (Unit(), Unit("pid", 3, "replace_one"), Unit("pid", 2, "zero_out")):
        budget = EpsilonDelta(1000, 1e-6)
        spends = [Epsilon(float(e)) for e in 10.0 ** rng.uniform(-6, 2, 5)] + [Rho(0.3), EpsilonDelta(1, 1e-9)]
        asked = answerable(Drawer(rng), facts_of(unit, budget), spends, planned // 3)
        with opened(neighbours.arrow([neighbours.row(rng, "p")]), unit=unit, budget=budget) as db:
            for question, spend in asked:
                _check_plan(db.foresee(question, spend=spend))


def _check_plan(plan: object) -> None:
    laws = [law for part in plan.parts for law in part.laws]
    assert all(isinstance(law, (LaplaceLaw, GaussianLaw)) and law.scale >= SMALLEST_SCALE for law in laws)
    assert all(draw.sensitivity >= 1 for draw in plan.event.draws)
    paid = plan.event.rho if plan.event.epsilon is None else plan.event.epsilon
    assert paid > 0
    # Each block's own largest move is an upper bound for any single way; a tightened plan may pass it for the sum.
    assert max(cost(law, draw.sensitivity) for law, draw in zip(laws, plan.event.draws, strict=True)) <= paid


def tie_excess(noise: np.ndarray, law: LaplaceLaw) -> float:
    """Equal pairs among independent draws, in standard deviations from what the law expects."""
    n = len(noise)
    support = np.arange(-200, 201)
    p = np.array([law.pmf(int(z)) for z in support])
    p2, p3 = (p**2).sum(), (p**3).sum()
    pairs = n * (n - 1) / 2
    variance = pairs * (p2 - p2**2) + n * (n - 1) * (n - 2) * (p3 - p2**2)
    _, seen = np.unique(noise, return_counts=True)
    return float(((seen * (seen - 1) / 2).sum() - pairs * p2) / math.sqrt(variance))


@pytest.mark.parametrize("cells", [60, 500])
def test_cells_without_rows_have_noise_of_their_own_T9(cells: int) -> None:
    """Declared keys nobody has: tie rate and correlation of neighbouring cells are those of independent draws (T9).

    Few cells and many have samplers of their own. Bar: within 6 sigma of theory. Control: one draw given to all cells,
    and one shared by neighbours.
    """
    keys = [f"key {i}" for i in range(cells)]
    with opened(pa.table({"k": pa.array([], pa.string())}), columns={"k": Category(keys, missing=False)}) as db:
        answers = [db.count(by="k", spend=Epsilon(0.25), fresh=True) for _ in range(10_000 // cells)]
    law = answers[0].released.noise[0].law
    noise = np.array([list(answer.value.values()) for answer in answers], dtype=float)
    assert noise.shape == (10_000 // cells, cells)

    def correlation(cells: np.ndarray) -> float:
        return float((cells[:, ::2] * cells[:, 1::2]).sum() / law.variance() / math.sqrt(cells.size / 2))

    def ties(cells: np.ndarray) -> float:  # over all releases: the tail of a single one is not normal
        return sum(tie_excess(row, law) for row in cells) / math.sqrt(len(cells))

    assert abs(ties(noise)) < 6
    assert abs(correlation(noise)) < 6
    assert ties(np.repeat(noise[:, :1], cells, axis=1)) > 6
    assert abs(correlation(np.repeat(noise[:, ::2], 2, axis=1))) > 6


@pytest.mark.audit
def test_a_repeat_has_new_noise_and_its_price_or_the_same_answer_and_none_T10() -> None:
    """The same question again, also spelled otherwise: new noise at full charge; with a key, the stored answer (T10).

    Bar: 0 of 1e4 pairs with new noise for nothing. Control: the stored answers are perfectly correlated.
    """
    pairs = counts.count("repeated questions", short=25, long=10_000)
    rng = seeded("repeats")
    edges = tuple(range(41))
    spelled = [
        Sums((Lit(1),), (col("x") > 1) & (col("x") < 30), (Bins(col("x"), edges),)),
        Sums((Lit(1),), (col("x") < 30) & (col("x") > 1), (Bins(col("x"), edges),)),
        Sums((Lit(1),), ~((col("x") <= 1) | (col("x") >= 30)), (Bins(col("x"), edges),)),
    ]
    fresh, stored, price = [], [], Epsilon(Fraction(1, 1000))
    data = pa.table({"x": rng.uniform(0, 40, 300)})
    with opened(data, columns={"x": Real(0, 40)}, synthetic=True) as db:
        truth = exact(db).ask(spelled[0]).released.units
        for i in range(pairs):
            before = db.spent.amount
            one, other = (db.ask(spelled[int(j)], spend=price) for j in rng.integers(0, 3, 2))
            assert db.spent.amount == before + 2 * price.exact
            assert one.receipt != other.receipt
            assert not one.reused
            assert not other.reused
            fresh.append((one.released.units - truth, other.released.units - truth))
            if i < 20:
                kept, again = (db.ask(spelled[0], spend=price, key=f"key {i}") for _ in range(2))
                assert db.spent.amount == before + 3 * price.exact
                assert again.reused
                assert again.released.units.tobytes() == kept.released.units.tobytes()
                stored.append((kept.released.units - truth, again.released.units - truth))
    variance = one.released.noise[0].law.variance()

    def correlation(both: list[tuple[np.ndarray, np.ndarray]]) -> float:
        total = sum(float((a.astype(float) * b).sum()) for a, b in both)
        return total / variance / math.sqrt(sum(a.size for a, _ in both))

    assert abs(correlation(fresh)) < 6
    assert correlation(stored) > 6
