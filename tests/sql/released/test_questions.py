"""Statistics to questions: the fewest sums, asked once, whose noise-free answers are the table's own statistics."""

from __future__ import annotations

import datetime
from fractions import Fraction

import duckdb
import pytest

from sulq.language.privacy import Epsilon, EpsilonDelta, Loss, Rho
from sulq.language.question import WHOLE, Sums
from sulq.language.rowfn import Arith, Bernstein, Col, Lit
from sulq.sql.parse.whitelist import REGRESSIONS
from sulq.sql.released.columns import RowGroups, SumCollector
from sulq.sql.released.program import Stat
from sulq.sql.released.questions import columns_of
from tests.sql.programs import database, people, table, truth

SPENDS: list[Loss] = [Epsilon(1), Rho(1), EpsilonDelta(1, 1e-6)]
AGE, INCOME, VISIT, SMOKER = Col("age"), Col("income"), Col("visit"), Col("smoker")
HALF = Fraction(1, 2)
WANTED: list[tuple[Stat, str]] = [
    (Stat("rows"), "count(*)"),
    (Stat("count", (AGE,)), "count(age)"),
    (Stat("sum", (AGE,)), "sum(age)"),
    (Stat("mean", (AGE,)), "avg(age)"),
    (Stat("sum", (INCOME,)), "sum(income)"),
    (Stat("mean", (INCOME,)), "avg(income)"),
    (Stat("var_pop", (AGE,)), "var_pop(age)"),
    (Stat("std_samp", (AGE,)), "stddev_samp(age)"),
    (Stat("var_samp", (INCOME,)), "var_samp(income)"),
    (Stat("persons"), "count(distinct pid)"),
    (Stat("count", (AGE,), distinct=True), "count(distinct age)"),
    (Stat("sum", (AGE,), distinct=True), "sum(distinct age)"),
    (Stat("mean", (AGE,), distinct=True), "avg(distinct age)"),
    (Stat("count", (Col("city"),), distinct=True), "count(distinct city)"),
    (Stat("rows", where=AGE > 50), "count(*) filter (age > 50)"),
    (Stat("mean", (INCOME,), SMOKER), "avg(income) filter (smoker)"),
    (Stat("sum", (AGE,), SMOKER), "sum(age) filter (smoker)"),
    (Stat("count", (Col("city"),), SMOKER), "count(city) filter (smoker)"),
    (Stat("persons", where=SMOKER), "count(distinct pid) filter (smoker)"),
    (Stat("covar_pop", (AGE, INCOME)), "covar_pop(age, income)"),
    (Stat("covar_samp", (AGE, INCOME)), "covar_samp(age, income)"),
    (Stat("corr", (AGE, INCOME)), "corr(age, income)"),
    *((Stat(name, (INCOME, AGE)), f"{name}(income, age)") for name in REGRESSIONS),
    (Stat("min", (AGE,)), "min(age)"),
    (Stat("max", (AGE,)), "max(age)"),
    (Stat("quantile_disc", (AGE,), q=Fraction(1, 4)), "quantile_disc(age, 0.25)"),
    (Stat("quantile_cont", (AGE,), q=HALF), "quantile_cont(age, 0.5)"),
    (Stat("quantile_cont", (INCOME,), q=Fraction(9, 10)), "quantile_cont(income, 0.9)"),
    (Stat("max", (INCOME,), SMOKER), "max(income) filter (smoker)"),
    (Stat("max", (VISIT,)), "max(visit)"),
    (Stat("quantile_disc", (VISIT,), q=HALF), "quantile_disc(visit, 0.5)"),
]
# A spread is worked out on a grid of 2^15 units, and so is what shares its sums; a covariance too.
REGR_NEAR = {"regr_slop": 0.1, "regr_inte": 3.0, "regr_sxy(": 3_000.0, "regr_r2(i": 1e-4}
LOOSE = {"var_samp(income)", "avg(income)", "sum(income)", "covar_pop(age, income)", "covar_samp(age, income)"}


def plain(sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("people", people())
        return connection.execute(sql).fetchall()


@pytest.mark.parametrize("spend", SPENDS, ids=str)
@pytest.mark.parametrize("grouped", [False, True], ids=["all", "by city"])
def test_without_noise_every_statistic_is_that_of_duckdb(spend, grouped):
    """All statistics of one query, asked together, are plain DuckDB's; quantiles to within one bin."""
    asked, released = truth(table([stat for stat, _ in WANTED], [Col("city")] if grouped else []), spend)
    by = "city," if grouped else ""
    names = ", ".join(name for _, name in WANTED)
    rows = plain(f"SELECT {by} {names} FROM people {'GROUP BY city ORDER BY city' if grouped else ''}")
    shown = asked.read(released).shown()
    assert len(shown) == len(rows)
    for ours, theirs in zip(shown, rows, strict=True):
        for figure, expected, name in zip(ours[grouped:], theirs[grouped:], [n for _, n in WANTED], strict=True):
            if isinstance(expected, datetime.date):
                assert figure.value == expected
                continue
            loose = 5e-4 if name in LOOSE or "regr" in name else 16 / 7e4 if "income, 0.9" in name else 1e-9
            near = 1e-9 + 40 * (name in LOOSE) + 1e-4 * ("corr" in name) + REGR_NEAR.get(name[:9], 0.0)
            assert figure.value == pytest.approx(float(expected), rel=loose, abs=near), name


@pytest.mark.parametrize("spend", SPENDS, ids=str)
@pytest.mark.parametrize(("stat", "name"), WANTED, ids=[name for _, name in WANTED])
def test_without_noise_a_statistic_asked_alone_is_that_of_duckdb(stat, name, spend):
    """Each statistic alone, whatever question that makes, is plain DuckDB's."""
    asked, released = truth(table([stat]), spend)
    ((figure,),) = asked.read(released).shown()
    ((expected,),) = plain(f"SELECT {name} FROM people")
    if isinstance(expected, datetime.date):
        assert figure.value == expected
        return
    loose = (
        5e-4 if name.startswith(("var_samp(income", "covar", "regr")) else 16 / 7e4 if "income, 0.9" in name else 1e-4
    )
    assert figure.value == pytest.approx(
        float(expected), rel=loose, abs=1e-9 + 40 * ("covar" in name) + REGR_NEAR.get(name[:9], 0.0)
    )
    whole = name.startswith(
        ("count", "regr_count", "sum(age", "sum(distinct age", "min(age", "max(age", "quantile_disc(age")
    )
    assert isinstance(figure.value, int) == whole


def questions(stats: list[Stat], spend: Loss, keys: tuple[str, ...] = ("city",)) -> list[Sums]:
    asking = SumCollector(database().facts, spend)
    columns_of(asking, RowGroups(WHOLE, None, tuple(Col(key) for key in keys)), stats)
    found = asking.question()
    assert found is not None
    return [question for question in found.questions if isinstance(question, Sums)]


def test_one_shared_sum_serves_count_sum_and_mean():
    """Under pure loss COUNT, SUM, AVG of a value are one pair; with VAR they are its three terms, in one question."""
    stats = [Stat("count", (AGE,)), Stat("sum", (AGE,)), Stat("mean", (AGE,))]
    (only,) = questions(stats, Epsilon(1))
    assert [type(value) for value in only.values] == [Bernstein]
    (with_spread,) = questions([*stats, Stat("std_pop", (AGE,))], Epsilon(1))
    assert [value.degree for value in with_spread.values] == [2]


def test_rows_come_along_with_a_mean_in_a_partition():
    """COUNT(*) beside AVG(x) is read from the same sums: one more term has the rows without a value (SR18)."""
    (only,) = questions([Stat("rows"), Stat("mean", (AGE,))], Epsilon(1))
    assert [(type(value), value.missing) for value in only.values] == [(Bernstein, True)]
    assert len(only.by) == 1
    (pair,) = questions([Stat("rows"), Stat("mean", (AGE,))], Rho(1))
    assert [type(value) for value in pair.values] == [Bernstein, Arith]
    assert len(pair.by) == 1
    (alone,) = questions([Stat("rows")], Epsilon(1))
    assert isinstance(alone.values[0], Lit)
    assert len(alone.by) == 1


def test_equal_sums_are_asked_once():
    """The same statistic twice, or built from equal but different expressions, is one value."""
    stats = [Stat("sum", (Col("age") * 2,)), Stat("sum", (Col("age") * 2,))]
    (only,) = questions(stats, Epsilon(1))
    assert len(only.values) == 1


def test_a_constant_by_its_bounds_needs_only_a_count():
    """Of a value whose bounds meet, the mean and the spread are certain; the sum is the count's."""
    constant = AGE * 0 + 7
    stats = [Stat(name, (constant,)) for name in ("count", "sum", "mean", "var_pop")]
    asked, released = truth(table(stats), Epsilon(1))
    ((count, total, mean, spread),) = asked.read(released).shown()
    present = int(people()["age"].notna().sum())
    assert (count.value, total.value, mean.value, spread.value) == (present, 7 * present, 7.0, 0.0)
