"""Programs read: rows, order, clauses and nested tables as PostgreSQL has them, and cells that are covered."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import pytest

import sulq
from sulq.errors import QuestionError
from sulq.language.privacy import Epsilon, Loss, Rho
from sulq.language.relation import Table
from sulq.language.rowfn import Col, Each, OrMissing
from sulq.sql.parse.syntax import Call, Node, Place
from sulq.sql.released.cells import interval
from sulq.sql.released.program import (
    GroupStatistics,
    KeyLabel,
    LeftOut,
    Regroup,
    StackedPrograms,
    Stat,
    StatAt,
    SubqueryValue,
    TableProgram,
)
from sulq.sql.released.render import SEVERAL, prepare, sources_of
from sulq.testing import exact
from tests.answers.readings.test_estimators import covers
from tests.counts import count
from tests.data import need
from tests.sql.programs import aggregate, apply, const, database, noisy, people, table, truth

RUNS = count("coverage of the cells of queries", short=120, long=2_000)
HALVED_RUNS = 250  # of the control, whose cells are few
AGE, INCOME, CITY, SMOKER = Col("age"), Col("income"), Col("city"), Col("smoker")
ROWS = Stat("rows")


def values(program: TableProgram, spend: Loss | None = None) -> list[tuple[object, ...]]:
    asked, released = truth(program, spend or Epsilon(1))
    return [tuple(figure.value for figure in row) for row in asked.read(released).shown()]


def plain(sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("SET integer_division = true; SET default_null_order = 'nulls_last'")
        connection.register("people", people())
        return connection.execute(sql).fetchall()


def like(ours: list[tuple[object, ...]], theirs: list[tuple[object, ...]]) -> bool:
    if len(ours) != len(theirs):
        return False
    return all(
        mine == pytest.approx(float(their), rel=1e-9) if isinstance(their, float) else mine == their
        for one, two in zip(ours, theirs, strict=True)
        for mine, their in zip(one, two, strict=True)
    )


def grouped(
    columns: tuple[tuple[str, Node], ...], *stats: Stat, keys: tuple[object, ...] = (CITY,), **more: object
) -> TableProgram:
    sets = more.pop("sets", ())
    return TableProgram(GroupStatistics(Table(), None, keys, sets, stats), columns, **more)  # type: ignore[arg-type]


def test_rows_are_sorted_and_clauses_apply_to_released_values():
    """HAVING, ORDER BY, LIMIT, OFFSET and DISTINCT of a grouped query are DuckDB's on noise-free values."""
    columns = (("city", KeyLabel(0)), ("n", StatAt(0)))
    assert like(values(grouped(columns, ROWS)), plain("SELECT city, count(*) FROM people GROUP BY 1 ORDER BY 1"))
    having = apply(">", StatAt(0), const(100))
    assert like(
        values(grouped(columns, ROWS, having=having, order=((StatAt(0), True, True),))),
        plain("SELECT city, count(*) n FROM people GROUP BY 1 HAVING n > 100 ORDER BY n DESC"),
    )
    assert like(
        values(grouped(columns, ROWS, order=((KeyLabel(0), True, True),), limit=1, offset=1)),
        plain("SELECT city, count(*) FROM people GROUP BY 1 ORDER BY 1 DESC LIMIT 1 OFFSET 1"),
    )
    assert values(grouped((("one", const(1)),), ROWS, distinct=True)) == [(1,)]
    both = grouped((("s", apply(">", StatAt(0), const(100))),), ROWS, distinct=True, order=((StatAt(0), False, False),))
    assert values(both) == [(False,), (True,)]


@pytest.mark.parametrize(("down", "first"), [(False, False), (True, True), (False, True), (True, False)])
def test_missing_values_are_ordered_as_asked(down, first):
    """NULLS FIRST and NULLS LAST, ascending and descending."""
    key = OrMissing(Each(AGE))
    program = grouped((("age", KeyLabel(0)), ("n", StatAt(0))), ROWS, keys=(key,), order=((KeyLabel(0), down, first),))
    order = f"ORDER BY 1 {'DESC' if down else 'ASC'} NULLS {'FIRST' if first else 'LAST'}"
    found = [row for row in values(program) if row[1]]
    assert like(found, plain(f"SELECT age, count(*) FROM people GROUP BY 1 {order}"))


@pytest.mark.parametrize("spend", [Epsilon(1), Rho(1)], ids=str)
@pytest.mark.parametrize("sets", [((0, 1), (0,), ()), ((0, 1), (1,), (0,), ()), ((0,), (1,)), ((1, 0), (1,))])
def test_grouping_sets_are_their_own_or_summed_SR13(spend, sets):
    """ROLLUP, CUBE and GROUPING SETS: all rows of all sets, whether asked or added up from finer ones (SR13)."""
    stats = (ROWS, Stat("mean", (AGE,)), Stat("persons"), Stat("count", (AGE,), distinct=True))
    columns = (
        ("city", KeyLabel(0)),
        ("smoker", KeyLabel(1)),
        ("g", LeftOut(1)),
        *((f"s{i}", StatAt(i)) for i in range(len(stats))),
    )
    program = grouped(columns, *stats, keys=(CITY, SMOKER), sets=sets)
    names = ("city", "smoker")
    text = ", ".join(f"({', '.join(names[key] for key in one)})" for one in sets)
    theirs = plain(
        "SELECT city, smoker, grouping(smoker), count(*), avg(age), count(distinct pid), count(distinct age) "
        f"FROM people GROUP BY GROUPING SETS ({text})"
    )
    ours = values(program, spend)
    assert like(sorted(ours, key=str), sorted(theirs, key=str))


def test_expressions_case_and_subqueries():
    """Arithmetic, CASE, and a subquery used as a value, on released numbers."""
    total = TableProgram(GroupStatistics(Table(), None, (), (), (ROWS,)), (("n", StatAt(0)),))
    columns = (
        ("city", apply("upper", KeyLabel(0))),
        ("half", apply("/", StatAt(0), const(2))),
        ("share", apply("/", apply("*", const(1.0), StatAt(0)), SubqueryValue(total))),
        ("size", Call("case", (apply(">", StatAt(0), const(300)), const("big"), const("small")))),
        ("root", apply("round", apply("sqrt", StatAt(1)), const(3))),
    )
    program = grouped(columns, ROWS, Stat("sum", (AGE,)))
    assert len(sources_of(program)) == 2
    theirs = plain(
        "SELECT upper(city), count(*)/2, 1.0*count(*)/(SELECT count(*) FROM people)::double, "
        "CASE WHEN count(*) > 300 THEN 'big' ELSE 'small' END, round(sqrt(sum(age)), 3) "
        "FROM people GROUP BY city ORDER BY city"
    )
    assert like(values(program), theirs)


def inner() -> TableProgram:
    return grouped((("age", KeyLabel(0)), ("n", StatAt(0))), ROWS, keys=(Each(AGE),))


def test_aggregates_of_released_rows():
    """SUM, AVG, MIN, MAX, COUNT with FILTER, spreads and quantiles of released values, by keys of them."""
    big = apply(">", Place(1), const(5))
    names = ("rows", "count", "sum", "mean", "min", "max", "var_pop", "std_samp", "quantile_cont", "quantile_disc")
    stats = [aggregate(name, Place(1), q=Fraction(1, 2)) for name in names] + [
        aggregate("rows", None, big),
        aggregate("sum", Place(0), big),
        aggregate("count", Place(1), distinct=True),
        aggregate("bool_or", big),
        aggregate("bool_and", big),
    ]
    program = TableProgram(
        Regroup(inner(), None, (apply("/", Place(0), const(50)),), ((0,), ()), tuple(stats)),
        (("k", KeyLabel(0)), *((f"s{i}", StatAt(i)) for i in range(len(stats)))),
    )
    theirs = plain(
        "WITH t AS (SELECT age, count(*) n FROM people WHERE age IS NOT NULL GROUP BY age), "
        "u AS (SELECT a.age::int age, coalesce(n, 0) n FROM range(121) a(age) LEFT JOIN t ON t.age = a.age) "
        "SELECT age/50 k, count(*), count(n), sum(n)::int, avg(n), min(n), max(n), var_pop(n), stddev_samp(n), "
        "quantile_cont(n, .5), quantile_disc(n, .5), count(*) filter (n > 5), sum(age) filter (n > 5)::int, "
        "count(distinct n), bool_or(n > 5), bool_and(n > 5) FROM u GROUP BY GROUPING SETS ((k), ()) ORDER BY k"
    )
    assert like(values(program), theirs)


def test_tables_of_tables():
    """A program over a program filters and renames; UNION ALL stacks rows; shapes must agree."""
    outer = TableProgram(inner(), (("n2", apply("*", Place(1), const(2))),), having=apply("<", Place(0), const(3)))
    theirs = plain("SELECT 2 * count(*) FROM people WHERE age < 3 GROUP BY age ORDER BY age")
    assert like(values(outer), theirs)
    stacked = TableProgram(StackedPrograms((outer, outer)), (("n", Place(0)),))
    assert values(stacked) == 2 * values(outer)
    with pytest.raises(QuestionError):
        values(TableProgram(StackedPrograms((outer, inner())), (("n", Place(0)),)))


def test_a_subquery_of_several_rows_is_no_value():
    """Known before anything is asked it is refused; where the released values decide, its value is missing and said."""
    with pytest.raises(QuestionError, match="one for each group"):
        values(grouped((("n", SubqueryValue(inner())),), ROWS))
    numbers = grouped((("n", StatAt(0)),), ROWS)
    with pytest.raises(QuestionError, match="one for each group"):
        values(grouped((("n", SubqueryValue(TableProgram(StackedPrograms((numbers, numbers)), (("n", Place(0)),)))),)))
    assert values(grouped((("n", SubqueryValue(replace(numbers, limit=1))),), keys=()))[0][0] is not None
    asked, released = truth(grouped((("n", SubqueryValue(replace(numbers, having=const(True)))),), keys=()), Epsilon(1))
    read = asked.read(released)
    assert [[cell.value for cell in row] for row in read.shown()] == [[None]]
    assert SEVERAL in read.notes


def test_a_query_that_asks_nothing_costs_nothing():
    """Constants alone make no question; a filter on nothing gives no row."""
    constant = TableProgram(GroupStatistics(Table(), None, (), (), ()), (("one", const(1)),))
    asked = prepare(constant, database().facts, Epsilon(1))
    assert asked.question is None
    assert [[figure.value for figure in row] for row in asked.read([]).shown()] == [[1]]
    empty = TableProgram(GroupStatistics(Table(), None, (), (), ()), (("one", const(1)),), having=const(False))
    assert prepare(empty, database().facts, None).read([]).shown() == []


def test_answers_are_read_again_from_the_program():
    """`read` builds the same table from a program and its answers."""
    program = table([ROWS], [CITY])
    asked = prepare(program, database().facts, Epsilon(1))
    question = asked.question
    answers = exact(database()).ask(question, spend=Epsilon(1))
    found = asked.read([answer.released for answer in answers])
    assert [tuple(figure.value for figure in row) for row in found.shown()] == values(program)
    assert len(prepare(program, database().facts, Epsilon(1)).columns()) == 1


COVERED: list[tuple[str, TableProgram]] = [
    (
        "one of each",
        table(
            [
                ROWS,
                Stat("count", (AGE,)),
                Stat("sum", (AGE,)),
                Stat("mean", (AGE,)),
                Stat("var_samp", (INCOME,)),
                Stat("mean", (INCOME,)),
                Stat("persons"),
                Stat("corr", (AGE, INCOME)),
                Stat("quantile_cont", (AGE,), q=Fraction(1, 2)),
            ],
            [CITY],
        ),
    ),
    ("a rollup", table([ROWS, Stat("mean", (AGE,))], [CITY, SMOKER], sets=((0, 1), (0,), ()))),
    (
        "expressions",
        grouped(
            (
                ("city", KeyLabel(0)),
                ("ratio", apply("/", apply("*", const(1.0), StatAt(1)), StatAt(0))),
                ("log", apply("ln", StatAt(0))),
                (
                    "case",
                    Call("case", (apply(">", StatAt(0), const(230)), StatAt(2), apply("-", StatAt(1), const(5)))),
                ),
                ("whole", apply("/", StatAt(1), const(7))),
                ("gap", apply("abs", apply("-", StatAt(0), apply("*", const(3), StatAt(1))))),
            ),
            ROWS,
            Stat("rows", where=SMOKER),
            Stat("mean", (AGE,)),
        ),
    ),
    (
        "released rows",
        TableProgram(
            Regroup(
                inner(),
                None,
                (),
                (),
                (
                    aggregate("sum", Place(1)),
                    aggregate("max", Place(1)),
                    aggregate("mean", Place(1)),
                    aggregate("rows", None, apply(">", Place(1), const(6))),
                    aggregate("sum", Place(1), apply("<", Place(0), const(30))),
                ),
            ),
            tuple((f"s{i}", StatAt(i)) for i in range(5)),
        ),
    ),
    (
        "filtered rows",
        TableProgram(
            Regroup(
                grouped((("n", StatAt(0)),), ROWS, having=apply(">", StatAt(0), const(200))),
                stats=(aggregate("rows"), aggregate("sum", Place(0)), aggregate("min", Place(0))),
            ),
            tuple((f"s{i}", StatAt(i)) for i in range(3)),
        ),
    ),
]


@pytest.mark.parametrize("spend", [Epsilon(2), Rho(0.5)], ids=str)
@pytest.mark.parametrize(("name", "program"), COVERED, ids=[name for name, _ in COVERED])
def test_the_interval_of_every_cell_holds_the_tables_own_T28(name, program, spend):
    """Over runs of noise each cell's interval covers the same expression of exact statistics at its level (T28)."""
    asked, released = truth(program, spend)
    exact_cells = {labels(row): row for row in asked.read(released).rows}
    rng = np.random.default_rng(23)
    missed: dict[tuple[object, ...], int] = {}
    for _ in range(RUNS):
        run = noisy(released, rng)
        found = asked.read(run)
        for row in found.rows:
            for j, figure in enumerate(row):
                ends = interval(figure, run, 0.1)
                if ends is None:
                    continue
                expected = exact_cells[labels(row)][j].value
                place = (labels(row), j)
                out = expected is not None and not ends[0] - 1e-6 <= expected <= ends[1] + 1e-6
                missed[place] = missed.get(place, 0) + out
    assert missed
    assert all(covers(times, RUNS, 0.1) for times in missed.values()), (name, missed)


def labels(row: tuple[object, ...]) -> tuple[object, ...]:
    """The cells of a row that rest on no noise."""
    return tuple(figure.value for figure in row if figure.origin is None)  # type: ignore[attr-defined]


def test_half_the_interval_of_a_cell_does_not_hold_it_T28():
    """Control: half of a count's, a sum's and a ratio's interval is found out by the same runs."""
    columns = (("n", StatAt(0)), ("s", StatAt(1)), ("r", apply("*", const(2), StatAt(0))))
    program = TableProgram(GroupStatistics(Table(), None, (), (), (ROWS, Stat("sum", (INCOME,), SMOKER))), columns)
    asked, released = truth(program, Epsilon(1))
    ((*exact_row,),) = asked.read(released).shown()
    rng = np.random.default_rng(29)
    missed = [0] * len(columns)
    for _ in range(HALVED_RUNS):
        run = noisy(released, rng)
        ((*row,),) = asked.read(run).shown()
        for j, figure in enumerate(row):
            low, high = interval(figure, run, 0.1)
            middle = (low + high) / 2
            missed[j] += abs(exact_row[j].value - middle) > (high - low) / 4
    assert not any(covers(times, HALVED_RUNS, 0.1) for times in missed)


def test_unknown_nodes_are_refused():
    """A key that is not there is refused."""
    with pytest.raises(QuestionError):
        prepare(table([ROWS], [CITY], sets=((3,),)), database().facts, Epsilon(1))
    assert isinstance(Call("+", (const(1),)), Call)


TOWNS = tuple(f"t{i:02}" for i in range(60))
SOME = {"t07": 40, "t21": 30, "t33": 25, "t50": 50}  # towns with people, and how many


def sparse(**more: object) -> sulq.Database:
    """Sixty declared towns of which four have people; ages from 20 to 40, bounds from 0 to 120."""
    rng = np.random.default_rng(9)
    towns = [town for town, size in SOME.items() for _ in range(size)]
    frame = pd.DataFrame({"town": towns, "age": rng.integers(20, 41, len(towns))})
    columns = {"town": sulq.Category(TOWNS), "age": sulq.Int(0, 120)}
    return sulq.connect(frame, table="people", columns=columns, budget=Epsilon(1000), **more)


@pytest.mark.parametrize(
    "value", ["AVG(age)", "MEDIAN(age)", "MAX(age)", "MIN(age)", "STDDEV_POP(age)", "SUM(age) / COUNT(age)"]
)
def test_groups_without_rows_do_not_win_SR18(value: str) -> None:
    """At epsilon 100 declared groups nobody is in, and NULL, come last in either order, and meet no condition.

    A group without rows is unknown: missing, with the whole range as its interval.
    """
    ask = f"SELECT town, {value} AS v FROM people GROUP BY town"
    with sparse() as db:
        for order in ("ASC", "DESC", "DESC NULLS FIRST"):
            top = db.sql(f"{ask} ORDER BY v {order} LIMIT 4", spend=Epsilon(100))
            assert {town for town, _ in top.value} == set(SOME)
        for condition in (">= -1000", "< 1000"):
            kept = db.sql(f"{ask} HAVING {value} {condition}", spend=Epsilon(100))
            assert {town for town, _ in kept.value} == set(SOME)
        found = db.sql(ask, spend=Epsilon(100))
        assert {town for town, v in found.value if v is None} == {*TOWNS, None} - set(SOME)
        lows, highs = found.interval(0.5)
        whole = (-math.inf, math.inf) if "/" in value else (0, 60) if "STD" in value else (0, 120)
        assert (lows[0][1], highs[0][1]) == whole
        assert "unknown" in repr(found)
        assert found.to_pandas()["v"].isna().sum() == len(TOWNS) + 1 - len(SOME)
        assert found.to_arrow()["v"].null_count == len(TOWNS) + 1 - len(SOME)


def test_the_whole_table_keeps_its_middle_SR18() -> None:
    """Never the whole table: without a group a mean of nothing is the middle, with the whole range."""
    with sparse() as db:
        found = db.sql("SELECT AVG(age) FROM people WHERE age > 100", spend=Epsilon(100))
        assert found.value == pytest.approx(60, abs=60)
        rolled = db.sql("SELECT town, AVG(age) AS v FROM people GROUP BY ROLLUP (town)", spend=Epsilon(100)).value
        assert all(v is None for town, v in rolled if town is not None and town not in SOME)
        assert any(v is not None and town is None for town, v in rolled)


def test_aggregates_over_released_groups_leave_out_those_without_rows() -> None:
    """COUNT(*) and AVG(n) over released groups are of the groups that have rows, with noise as without.

    Groups whose count may be noise alone are no groups; before, half of those without rows were.
    """
    ask = "SELECT COUNT(*) AS towns, AVG(n) AS each, MAX(m) AS top FROM (SELECT town, COUNT(*) AS n, AVG(age) AS m"
    ask += " FROM people GROUP BY town) AS q"
    with sparse(synthetic=True) as db:
        towns, each, top = exact(db).sql(ask).value[0]
        assert (towns, each) == (4, sum(SOME.values()) / 4)
        assert 20 <= top <= 40
        for _ in range(3):
            found = db.sql(ask, spend=Epsilon(100), fresh=True)
            assert found.value[0][0] == 4
            assert found.value[0][1] == pytest.approx(each, abs=5)
            low, high = found.interval(0.95)
            assert low[0][0] <= 4 <= high[0][0]
        union = "SELECT COUNT(*) FROM (SELECT town, COUNT(*) AS n FROM people GROUP BY town UNION ALL"
        union += " SELECT town, COUNT(*) FROM people GROUP BY town) AS q"
        assert db.sql(union, spend=Epsilon(50)).value == 8


def test_noise_makes_no_groups_SR18() -> None:
    """At a small spend too: of 57 groups without rows hardly any passes for a group, in whatever is asked of it.

    Bar: more than eight, where each passes with probability 1e-3 at most, has a probability below 1e-16.
    """
    asks = ["AVG(age)", "MEDIAN(age)", "SUM(age) * 1.0 / COUNT(*)"]
    with sparse() as db:
        for ask in asks:
            found = db.sql(f"SELECT town, {ask} FROM people GROUP BY town", spend=Epsilon(0.1)).value
            assert sum(value is not None and town not in SOME for town, value in found) <= 8, ask
        count = "SELECT COUNT(*) FROM (SELECT town, COUNT(*) AS n FROM people GROUP BY town) AS q"
        assert db.sql(count, spend=Epsilon(0.1)).value <= 4 + 8


def test_top_airports_by_delay_have_flights_SR18() -> None:
    """Real data: of 1,459 declared airports those that lead by average delay at epsilon 100 have flights."""
    flights = pd.read_csv(need("tabular/flights-sample.csv"), usecols=["dest", "arr_delay"])
    codes = sorted(set(pd.read_csv(need("tabular/airports.csv"))["faa"]) | set(flights["dest"]))
    columns = {"dest": sulq.Category(codes), "arr_delay": sulq.Int(-60, 300)}
    with sulq.connect(flights, table="flights", columns=columns, budget=Epsilon(1000)) as db:
        ask = "SELECT dest, AVG(arr_delay) AS delay FROM flights GROUP BY dest ORDER BY delay DESC LIMIT 4"
        assert {dest for dest, _ in db.sql(ask, spend=Epsilon(100)).value} <= set(flights["dest"])
        ask = "SELECT AVG(n), COUNT(*) FROM (SELECT dest, COUNT(*) AS n FROM flights GROUP BY dest) AS q"
        (each, airports), truth = db.sql(ask, spend=Epsilon(50)).value[0], flights["dest"].nunique()
        assert airports == truth
        assert each == pytest.approx(len(flights) / truth, rel=0.001)
