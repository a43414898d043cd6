"""Counts of one table planned together: the same counts as apart, nearer, and as near as is foreseen."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import sulq
from sulq import Epsilon, EpsilonDelta, Rho, Unit
from sulq.answers.readings.estimators import Plain
from sulq.answers.released import Released
from sulq.release.joint_counts import joint_designs
from sulq.release.tables.strategy import strategy
from sulq.sql.joint import counts_of
from sulq.sql.session import Sql
from tests.answers.readings.test_estimators import covers, noise
from tests.counts import count

BLOCK = 1_000  # draws at once

COLUMNS = {
    "age": sulq.Int(0, 60),
    "sex": sulq.Category(["F", "M"]),
    "race": sulq.Category(["a", "b", "c"]),
    "city": sulq.Category([f"city {i:02}" for i in range(12)]),
    "smoker": sulq.Bool(),
}
SMALL = [
    "SELECT sex, COUNT(*) AS n FROM t GROUP BY sex",
    "SELECT COUNT(*) AS n FROM t WHERE age BETWEEN 20 AND 40",
    "SELECT COUNT(*) AS n FROM t WHERE age > 30 AND age <= 50 AND sex = 'F'",
    "SELECT race, sex, COUNT(*) AS n FROM t WHERE race <> 'c' GROUP BY race, sex ORDER BY n",
    "SELECT COUNT(*) AS n FROM t",
    "SELECT COUNT(*) AS n FROM t WHERE smoker AND race IN ('a', 'c')",
]
LARGE = [
    "SELECT city, sex, COUNT(*) AS n FROM t GROUP BY city, sex",
    "SELECT race, city, COUNT(*) AS n FROM t GROUP BY race, city",
    "SELECT sex, race, COUNT(*) AS n FROM t GROUP BY sex, race",
    "SELECT city, COUNT(*) AS n FROM t WHERE age BETWEEN 20 AND 40 GROUP BY city",
]


def frame() -> pd.DataFrame:
    """2,000 rows, some values missing."""
    rng = np.random.default_rng(5)
    rows = 2_000
    return pd.DataFrame(
        {
            "age": rng.integers(0, 61, rows),
            "sex": rng.choice(["F", "M", None], rows, p=[0.5, 0.4, 0.1]),
            "race": rng.choice(["a", "b", "c", "?"], rows),
            "city": rng.choice(COLUMNS["city"].values, rows),
            "smoker": rng.choice([True, False, None], rows),
        }
    )


def opened(budget: sulq.Loss, unit: Unit | None = None) -> sulq.Database:
    return sulq.connect(
        frame(), table="t", columns=COLUMNS, budget=budget, synthetic=True, **({} if unit is None else {"unit": unit})
    )


@pytest.mark.parametrize("queries", [SMALL, LARGE], ids=["strategy", "interactions"])
@pytest.mark.parametrize("unit", [None, Unit(neighbors="replace_one")], ids=["add_remove", "replace_one"])
def test_a_design_reads_the_same_counts_as_the_queries_apart(queries: list[str], unit: Unit | None) -> None:
    """Without noise every count, of missing values too, is that of the query by itself, in its own order."""
    with opened(Rho(10), unit) as db:
        exact = sulq.testing.exact(db)
        forecasts = [Sql(db)._forecast(query, db.facts, spend=Rho(1)) for query in queries]
        asked = {i: counts_of(each, Rho(1)) for i, each in enumerate(forecasts)}
        for way in joint_designs(asked, dict.fromkeys(asked, 1.0), db.facts):
            for places, design in way:
                answers = exact.ask(design.question, spend=Rho(1))
                read = design.read([(one.released.values(), one.released.noise) for one in answers])
                for place, found in zip(places, read, strict=True):
                    alone = exact.ask(asked[place], spend=Rho(1)).released
                    assert found.units.tolist() == alone.units.tolist(), queries[place]


@pytest.mark.parametrize("queries", [SMALL, LARGE], ids=["strategy", "interactions"])
def test_a_plan_of_counts_is_one_release_that_is_nearer_than_its_queries_apart(queries: list[str]) -> None:
    """Never farther off in the mean, no query beyond its least part; one debit, and free when it is asked again."""
    with opened(Rho(1)) as db:
        mixed = [*queries, "SELECT AVG(age) AS a FROM t"]
        plan, apart = db.plan(mixed, spend=Rho(0.02)), Sql(db).plan(mixed, spend=Rho(0.02))
        errors, others = ([query.error for query in each.queries] for each in (plan, apart))
        assert sum(errors) < sum(others)
        assert plan[0].together == tuple(range(len(queries)))
        assert plan[len(queries)].together == ()
        assert "planned together with queries 2, 3" in str(plan)
        assert "planned together" in str(plan[0].explanation)
        assert "planned together" not in str(apart)
        answers = plan.ask()
        assert float(db.spent.exact) == pytest.approx(0.02, abs=1e-9)
        assert len({str(answer.receipt) for answer in answers}) == 1
        assert any("planned together" in note for note in answers[0].notes)
        assert sum(float(answer.spent.exact) for answer in answers) <= 0.02
        again = db.plan(mixed, spend=Rho(0.02)).ask()
        assert [one.value for one in again] == [one.value for one in answers]
        assert all(one.reused for one in again)
        assert float(db.spent.exact) == pytest.approx(0.02, abs=1e-9)


def test_what_is_foreseen_of_a_design_is_what_comes_out() -> None:
    """Errors over standard errors have a mean square near 1: off by 5.4 deviations once in 1e7, of 14 numbers a draw.

    The control: with standard errors of two thirds it is far from 1.
    """
    runs = count("joint counts", short=150, long=5_000)
    with opened(Rho(1000)) as db:
        plan = db.plan(SMALL, spend=Rho(0.02))
        exact = sulq.testing.exact(db)
        asked = {
            i: counts_of(Sql(db)._forecast(query, db.facts, spend=Rho(1)), Rho(1)) for i, query in enumerate(SMALL)
        }
        ((places, design),) = next(iter(joint_designs(asked, dict.fromkeys(asked, 1.0), db.facts)))
        true = [exact.ask(asked[place], spend=Rho(1)).released.units.ravel() for place in places]
        foreseen = design.foreseen([part.noise for part in db.foresee(design.question, spend=Rho(0.02)).parts])
        squares = np.zeros(len(places))
        for _ in range(runs):
            answers = db.ask(design.question, spend=Rho(0.02))
            read = design.read([(one.released.values(), one.released.noise) for one in answers])
            for i, (own, noise) in enumerate(zip(read, foreseen, strict=True)):
                squares[i] += float(((own.units.ravel() - true[i]) ** 2).mean() / noise.deviation**2 / runs)
        near = 5.4 * math.sqrt(2 / runs / 14)
        assert len(plan.queries[0].together) == len(SMALL)
        assert abs(squares.mean() - 1) < near + 0.05  # a group's bar is that of its noisiest count
        assert abs(squares.mean() * 1.5**2 - 1) > near + 0.05


@pytest.mark.parametrize(
    ("queries", "rho"),
    [(SMALL, 0.02), (SMALL, 0.5), (SMALL, 8), (LARGE[1:], 0.02)],
    ids=["strategy", "strategy, nearer", "strategy, nearly exact", "interactions"],
)
def test_error_bars_of_counts_that_are_planned_together_hold_T28(queries: list[str], rho: float) -> None:
    """Of every count, by draws of the plan's own noise; where it is wide half of a bar does not (the control)."""
    draws, rng = count("coverage of joint counts", short=20_000, long=200_000), np.random.default_rng(29)
    with opened(Rho(1000)) as db:
        exact = sulq.testing.exact(db)
        forecasts = [Sql(db)._forecast(query, db.facts, spend=Rho(1)) for query in queries]
        asked = {i: counts_of(each, Rho(1)) for i, each in enumerate(forecasts)}
        ((places, design),) = next(iter(joint_designs(asked, dict.fromkeys(asked, 1.0), db.facts)))
        true = [exact.ask(asked[place], spend=Rho(1)).released.units.ravel() for place in places]
        sums = [answer.released.values() for answer in exact.ask(design.question, spend=Rho(1))]
        noises = [part.noise for part in db.foresee(design.question, spend=Rho(rho)).parts]
    off: list[list[np.ndarray]] = [[] for _ in places]
    for first in range(0, draws, BLOCK):
        drawn = [
            np.concatenate(
                [noise(one.law, rng, (BLOCK, len(own), one.width)) * float(one.step) for one in each], axis=2
            )
            for own, each in zip(sums, noises, strict=True)
        ]
        for at in range(min(BLOCK, draws - first)):
            read = design.read([(own + one[at], each) for own, one, each in zip(sums, drawn, noises, strict=True)])
            for own, found, exactly in zip(off, read, true, strict=True):
                own.append(found.units.ravel() - exactly)
    for own, found in zip(off, read, strict=True):
        for beta in (0.5, 0.05, 0.01):
            low, high = Plain().interval(Released(np.zeros((1, 1), dtype=np.int64), found.noise), beta)
            for shrink in (1.0, 0.5):
                missed = (np.abs(own) > shrink * (high - low).item() / 2 + 1e-9).sum(axis=0)
                if shrink == 1.0:
                    assert all(covers(int(each), draws, beta) for each in missed), (found.noise, beta)
                elif rho == 0.02:
                    assert not any(covers(int(each), draws, beta) for each in missed), (found.noise, beta)


def test_only_gaussian_noise_and_plain_counts_are_planned_together() -> None:
    """Laplace noise, sums, ratios of counts, HAVING and other conditions keep their queries apart."""
    with opened(EpsilonDelta(100, 1e-6)) as db:
        assert not any(query.together for query in db.plan(SMALL, spend=Epsilon(1)).queries)
        gaussian = db.plan(SMALL, spend=EpsilonDelta(0.5, 1e-7), law="gaussian")
        assert all(query.together for query in gaussian.queries)
        others = [
            "SELECT SUM(age) AS s FROM t",
            "SELECT sex, COUNT(*) * 2 AS n FROM t GROUP BY sex",
            "SELECT sex, COUNT(*) AS n FROM t GROUP BY sex HAVING COUNT(*) > 10",
            "SELECT COUNT(*) AS n FROM t WHERE sex IS NULL",
        ]
        plan = db.plan([*others, *SMALL[:2]], spend=EpsilonDelta(0.5, 1e-7), law="gaussian")
        assert [bool(query.together) for query in plan.queries] == [False] * 4 + [True] * 2
        common = [f"{SMALL[1]} AND age * 2 > 50", f"{SMALL[4]} WHERE age * 2 > 50", SMALL[0]]
        plan = db.plan(common, spend=EpsilonDelta(0.5, 1e-7), law="gaussian")
        assert plan[2].together == ()


@pytest.mark.parametrize("spend", [Rho(8), Rho(50), EpsilonDelta(50, 1e-7)], ids=str)
def test_counts_that_are_exact_at_their_part_are_planned_too(spend: sulq.Loss) -> None:
    """Their error bars have no width: there is nothing to gain, and nothing to divide by."""
    with opened(type(spend)(60) if isinstance(spend, Rho) else EpsilonDelta(60, 1e-6)) as db:
        assert len(db.plan(SMALL[:3], spend=spend).spends) == 3


def test_a_known_answer_without_error_is_planned_too() -> None:
    """What is known exactly has nothing to gain; the others are planned as if it were not there."""
    with opened(Rho(100)) as db:
        known = [db.sql(SMALL[4], spend=Rho(60)), None, None]
        assert len(db.plan([SMALL[4], *SMALL[:2]], spend=Rho(0.02), known=known).spends) == 3


def test_columns_of_many_values_go_apart() -> None:
    """A design holds a matrix of groups by cells for each column, and is not begun for thousands of them."""
    values = [f"v{i:05}" for i in range(30_000)]
    table = pd.DataFrame({"z": values[:100], "w": range(100)})
    columns = {"z": sulq.Category(values), "w": sulq.Int(0, 999)}
    with sulq.connect(table, table="t", columns=columns, budget=Rho(1), synthetic=True) as db:
        queries = ["SELECT COUNT(*) AS n FROM t WHERE {0}", "SELECT {1}, COUNT(*) AS n FROM t GROUP BY {1}"]
        for words in (("z = 'v00005'", "z"), ("w < 100", "w")):
            asked = {
                i: counts_of(Sql(db)._forecast(query.format(*words), db.facts, spend=Rho(1)), Rho(0.1))
                for i, query in enumerate(queries)
            }
            assert not [*joint_designs(asked, dict.fromkeys(asked, 1.0), db.facts)]


def test_unlike_weights_end_in_a_plan() -> None:
    """Whole numbers of a strategy for weights a million times apart may not tell all counts: then they go apart."""
    counts = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [1, 1, 1, 1], [0, 0, 0, 1]])
    for power in range(0, 40, 3):
        made = strategy(counts, np.arange(4), np.array([1.0, 10.0**power, 1.0, 10.0**-power]))
        assert made is None or np.allclose(made.reads @ made.asked, counts, atol=1e-6)
    assert strategy(counts, np.arange(4), np.ones(4)) is not None
