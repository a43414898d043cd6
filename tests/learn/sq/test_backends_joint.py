"""Private statistics over all rows: prices, secret sizes, populations, refusals."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

import sulq
from sulq import Epsilon, EpsilonDelta, Rho, Unit, col
from sulq.answers import wire
from sulq.errors import SulqError
from sulq.language.law import LaplaceLaw
from sulq.learn import StatisticalQueries, min_n
from tests.counts import count
from tests.learn.cases import exact, opened
from tests.learn.sq.noisy import Arrays

FALSE_ALARM = 1e-7
COLUMNS = {"x": sulq.Bool(), "y": sulq.Bool(), "z": sulq.Real(0, 1)}


def table(rows: int) -> dict[str, object]:
    place = np.arange(rows)
    return {"x": place % 3 == 0, "y": place % 2 == 0, "z": (place % 100) / 100}


def refused(code: str, act: object, *args: object, **kwargs: object) -> SulqError:
    with pytest.raises(SulqError) as refusal:
        act(*args, **kwargs)
    assert refusal.value.code == code
    return refusal.value


def named_rows(refusal: SulqError) -> int:
    return int(refusal.message.split("about ")[1].split(" rows")[0].replace(",", ""))


def test_a_query_costs_what_its_tolerance_needs_S3_27() -> None:
    """With n = 9,596 declared, 30 queries of tolerance .02 cost epsilon 1/30 each; a wider one costs less."""
    rows = 9596
    with opened(COLUMNS, table(rows), size=rows) as db:
        oracle = StatisticalQueries(db, spend=Epsilon(1), queries=30)
        oracle.stat(col("x"), 0.02)
        assert float(oracle.spent.exact) == pytest.approx(1 / 30, rel=5e-3)
        assert oracle.spent.exact <= Fraction(1, 30)  # so that all thirty fit
        oracle.stat(col("x"), 0.04)
        assert float(oracle.spent.exact) == pytest.approx(1.5 / 30, rel=5e-3)
        assert oracle.remaining.exact == 1 - oracle.spent.exact
        oracle.stats([col("x"), col("y")], 0.02)
        assert float(db.spent.amount) == pytest.approx(3.5 / 30, rel=5e-3)
        assert db.spent.amount == oracle.spent.exact


@pytest.mark.parametrize(
    ("spend", "size", "neighbors"),
    [
        (Epsilon(1), None, "add_remove"),
        (Epsilon(1), 4000, "add_remove"),
        (Epsilon(1), None, "replace_one"),
        (Epsilon(1), 4000, "replace_one"),
        (Rho(Fraction(1, 20)), None, "zero_out"),
        (EpsilonDelta(1, 1e-6), 4000, "add_remove"),
    ],
)
def test_all_answers_are_within_their_tolerances(spend: object, size: int | None, neighbors: str) -> None:
    """But for beta, whatever the noise and whether n is declared or secret; half of the tolerance fails (control)."""
    rows, beta, queries = 4000, 0.2, 6
    budget = EpsilonDelta(4, 1e-6) if not isinstance(spend, Epsilon) else Epsilon(4)
    phis = [col("x"), col("y"), col("z"), col("x") & col("y"), ~col("x"), (col("z") > 0.3)]
    data = table(rows)
    x, y, z = (np.asarray(data[name]) for name in "xyz")
    truth = np.array([x.mean(), y.mean(), z.mean(), (x & y).mean(), 1 - x.mean(), (z > 0.3).mean()])
    runs = count(f"joint within tau {neighbors} {size} {spend}", short=40, long=2000)
    off, half = 0, 0
    tau = 0.02 if size or neighbors == "zero_out" else 0.025
    tau *= 2 if neighbors == "replace_one" and size is None else 1
    for seed in range(runs):
        oracle = StatisticalQueries(
            Arrays(COLUMNS, data, budget=budget, size=size, seed=seed, unit=Unit(neighbors=neighbors)),
            spend=spend,
            queries=queries,
            beta=beta,
        )
        worst = np.abs(oracle.stats(phis, tau) - truth).max()
        off += bool(worst > tau)
        half += bool(worst > tau / 4)
    assert off <= binom.ppf(1 - FALSE_ALARM, runs, beta)
    assert half > binom.ppf(1 - FALSE_ALARM, runs, beta)


def counted(rows: int, seed: int) -> tuple[object, list[dict], list[object]]:
    """The noisy count, the questions and their prices of two queries on a table of so many rows."""
    database = Arrays(COLUMNS, table(rows), seed=seed)
    oracle = StatisticalQueries(database, spend=Epsilon(1), queries=4)
    assert oracle.size is None
    oracle.stats([col("x"), col("z")], 0.1)
    assert oracle.size is not None
    return (
        oracle.size,
        [wire.to_json(question) for question, _ in database.asked],
        [spend for _, spend in database.asked],
    )


def test_the_size_is_bought_or_declared_and_never_read_E38() -> None:
    """Under add_remove a tenth of the spend is a noisy count, and all else follows from it.

    Of two neighbours whose counts came out the same, questions and prices are the same; with other counts (control)
    one and the same table has other prices.
    """
    size, questions, prices = counted(3000, seed=5)
    assert size.rows != 3000
    assert [(question["kind"], len(question["values"])) for question in questions] == [("Sums", 1), ("Sums", 2)]
    assert prices[0] == Epsilon(Fraction(1, 10))
    others = [counted(2999, seed) for seed in range(count("sizes of neighbours", short=300, long=600))]
    alike = [found for found in others if found[0] == size]
    assert alike
    assert all(found == (size, questions, prices) for found in alike)
    assert len({found[2][1] for found in others}) > 9


def test_dividing_by_the_true_n_would_tell_it_E38() -> None:
    """The printed average, noise over a known n, of two tables that differ by a row: only zero is common to both.

    Noise from -96 to 95; beyond are less than 10^-40 of all. So with probability .83 the outcome is one
    that the other table never gives: no epsilon is a bound, and no delta below that.
    """
    law = LaplaceLaw(Fraction(1))
    outcomes = [{Fraction(1 + z, rows): law.pmf(z) for z in range(-96, 96)} for rows in (97, 98)]
    assert outcomes[0].keys() & outcomes[1].keys() == {Fraction(0)}
    assert law.tail(95) < 1e-40
    assert sum(mass for value, mass in outcomes[0].items() if value not in outcomes[1]) == pytest.approx(0.83, abs=1e-3)
    noisy = [{z: law.pmf(z - rows) for z in range(40, 160)} for rows in (97, 98)]  # the count we buy instead
    assert noisy[0].keys() == noisy[1].keys()
    ratios = [abs(math.log(noisy[0][z] / noisy[1][z])) for z in noisy[0]]
    assert max(ratios) == pytest.approx(1.0)


@pytest.mark.parametrize("queries", [1, 40])
def test_under_replace_one_the_cheaper_of_two_ways_is_taken(queries: int) -> None:
    """Few queries are pairs, many are sums over a noisy count; either way within tau, and near the declared price."""
    rows, unit = 20_000, Unit(neighbors="replace_one")
    prices = []
    for size in (None, rows):
        database = Arrays(COLUMNS, table(rows), seed=1, size=size, unit=unit)
        oracle = StatisticalQueries(database, spend=Epsilon(1), queries=queries)
        assert abs(oracle.stat(col("x"), 0.03) - 1 / 3) <= 0.03
        prices.append(float(oracle.spent.exact) - (0.1 if size is None else 0))
    assert prices[0] < (3 if queries == 1 else 1.3) * prices[1]


def test_a_secret_n_costs_no_more_than_a_known_one() -> None:
    """The pair's quotient needs the noise of one sum: but for the count's tenth the price is the declared size's."""
    rows, tau = 20_000, 0.02
    prices = []
    for size in (None, rows):
        oracle = StatisticalQueries(Arrays(COLUMNS, table(rows), seed=1, size=size), spend=Epsilon(1), queries=5)
        oracle.stat(col("x"), tau)
        prices.append(float(oracle.spent.exact) - (0.1 if size is None else 0))
    assert prices[0] == pytest.approx(prices[1], rel=0.12)


@pytest.mark.parametrize("size", [None, 300])
@pytest.mark.parametrize("population", [True, False])
def test_too_few_rows_are_told_before_the_query_is_asked(size: int | None, population: object) -> None:
    """With the n it would need, which is enough, and little more than needed; only a count is paid."""
    tau, spend = 0.01, Epsilon(Fraction(1, 2))
    settings = {"spend": spend, "queries": 3, "population": population}
    database = Arrays(COLUMNS, table(300), size=size, seed=2)
    refusal = refused("too-few-rows", StatisticalQueries(database, **settings).stats, [col("x"), col("y")], tau)
    assert len(database.asked) == (size is None)
    assert ("declared" in refusal.message) == (size is not None)
    needed = named_rows(refusal)
    enough = Arrays(COLUMNS, table(needed + 400), size=size and needed, seed=2)
    assert StatisticalQueries(enough, **settings).stats([col("x"), col("y")], tau).shape == (2,)
    fewer = Arrays(COLUMNS, table(int(needed * 0.9)), size=size and int(needed * 0.9), seed=2)
    refused("too-few-rows", StatisticalQueries(fewer, **settings).stats, [col("x"), col("y")], tau)
    if size is not None and population is False:
        assert needed == pytest.approx(min_n(2, tau, spend=spend, beta=0.05 * 2 / 3), rel=5e-2)  # in whole rows


def test_a_refusal_spends_nothing_of_a_ledger() -> None:
    """Of a declared size nothing at all; the budget holds what the spend may be."""
    with opened(COLUMNS, table(300), Epsilon(1), size=300) as db:
        oracle = StatisticalQueries(db, spend=Epsilon(1), queries=3)
        refused("too-few-rows", oracle.stat, col("x"), 0.001)
        refused("budget-exceeded", StatisticalQueries, db, spend=Epsilon(2), queries=3)
        refused("spend-missing", StatisticalQueries, db, queries=3)
        refused("bad-question", StatisticalQueries, object(), spend=Epsilon(1), queries=3)
        for wrong in (
            {"queries": 0},
            {"queries": 3, "beta": 0.0},
            {"queries": 3, "method": "both"},
            {"queries": 3, "population": "yes"},
            {"queries": 3, "family": 2},
        ):
            refused("bad-parameter", StatisticalQueries, db, spend=Epsilon(1), **wrong)
        assert db.spent.amount == 0


def test_means_of_a_population_are_asked_at_once_or_of_a_family() -> None:
    """A second query could fit the rows at hand: refused, unless the bound is for all there might have been."""
    database = Arrays(COLUMNS, table(20_000), seed=3)
    oracle = StatisticalQueries(database, spend=Epsilon(1), queries=9, population=True)
    oracle.stats([col("x"), col("y")], 0.05)
    refused("bad-question", oracle.stat, col("z"), 0.05)
    family = StatisticalQueries(database, spend=Epsilon(1), queries=9, population=True, family=10**40)
    family.stat(col("x"), 0.06)
    family.stat(col("y"), 0.06)
    grouped = Arrays({**COLUMNS, "p": sulq.Int(0, 9)}, {**table(100), "p": np.zeros(100, int)}, unit=Unit("p", rows=3))
    refused("bad-parameter", StatisticalQueries, grouped, spend=Epsilon(1), queries=9, population=True)


def test_trap_4_sampling_is_on_top_of_the_noise() -> None:
    """An average over few rows may be exact and still far from the population's: the margin allows for it."""
    rng = np.random.default_rng(6)
    rows, beta, runs = 400, 0.1, count("sampling margin", short=100, long=5000)
    within, beyond = 0, 0
    for seed in range(runs):
        data = {"x": rng.random(rows) < 0.5, "y": np.zeros(rows, bool), "z": np.zeros(rows)}
        oracle = StatisticalQueries(
            Arrays(COLUMNS, data, size=rows, seed=seed), spend=Epsilon(900), queries=1, beta=beta, population=True
        )
        answer = oracle.stat(col("x"), 0.08)
        within += abs(answer - 0.5) > 0.08
        beyond += abs(data["x"].mean() - 0.5) > 0.02  # what a tolerance for the table alone would promise
    assert within <= binom.ppf(1 - FALSE_ALARM, runs, beta)
    assert beyond > runs / 4


def test_facts_of_the_data_are_no_errors() -> None:
    """No rows, missing cells, a constant: answers within [0, 1], the same asks (SR6)."""
    nothing = {"x": np.zeros(0, bool), "y": np.zeros(0, bool), "z": np.zeros(0)}
    gone = {"x": np.array([None, True, None]), "y": np.array([None] * 3), "z": np.array([np.nan, 0.5, 1.0])}
    for data in (nothing, gone):
        oracle = StatisticalQueries(Arrays(COLUMNS, data, size=3, seed=1), spend=Epsilon(900), queries=5)
        answers = oracle.stats([col("x"), col("y"), col("z"), sulq.lit(0.25)], 0.3)
        assert np.all((answers >= 0) & (answers <= 1))
        assert answers[3] == 0.25
    expected = [1 / 3, 0, 0.5]  # what is missing counts as zero
    assert np.abs(answers[:3] - expected).max() <= 0.3
    empty = StatisticalQueries(Arrays(COLUMNS, nothing, seed=1), spend=Epsilon(1), queries=5)
    refused("too-few-rows", empty.stat, col("x"), 0.1)


def test_exact_answers_are_the_tables_means() -> None:
    """On the noise-free oracle the answer is the mean itself, declared size or not, alone or as a table."""
    data = table(600)
    x, y, z = (np.asarray(data[name]) for name in "xyz")
    for size in (None, 600):
        with opened(COLUMNS, data, size=size) as db:
            oracle = StatisticalQueries(exact(db), spend=Epsilon(50), queries=9)
            found = oracle.stats([col("x"), col("z"), col("x") & col("y")], 0.1)
            assert np.allclose(found, [x.mean(), z.mean(), (x & y).mean()], atol=1e-6)
            cells = oracle.cells([[col("x"), col("y")]], 0.1)[0]
            assert np.allclose(cells, [x.mean(), (~x & y).mean()])
            assert db.spent.amount == 0


def test_a_table_costs_as_one_query() -> None:
    """Four conditions of which one holds cost a quarter of four queries."""
    rows = 50_000
    four = [col("x") & col("y"), col("x") & ~col("y"), ~col("x") & col("y"), ~col("x") & ~col("y")]
    prices = []
    for ask in ("cells", "stats"):
        oracle = StatisticalQueries(Arrays(COLUMNS, table(rows), seed=1, size=rows), spend=Epsilon(1), queries=4)
        _ = oracle.cells([four], 0.02) if ask == "cells" else oracle.stats(four, 0.02)
        prices.append(float(oracle.spent.exact))
    assert prices[1] == pytest.approx(4 * prices[0], rel=1e-3)
