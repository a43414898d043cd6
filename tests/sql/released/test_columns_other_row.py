"""The row for all groups that are not shown: a total less the groups shown, and intervals that hold it (SR14)."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import sulq
from sulq import EpsilonDelta
from sulq.answers.released import Noise, Released
from sulq.language.law import GaussianLaw, LaplaceLaw, PassedGaussianLaw
from sulq.sql.compile import compile as compiled_of
from sulq.sql.released import columns
from sulq.sql.released.cells import interval
from sulq.sql.released.columns import difference, rest
from sulq.sql.released.render import PreparedQuery, prepare
from sulq.testing import exact
from tests.answers.readings.test_estimators import covers
from tests.counts import count
from tests.sql.programs import noisy

RUNS = count("coverage of the row for groups not shown", short=400, long=20_000)
FEWER = count("coverage of statistics of the row for groups not shown", short=60, long=20_000)
SPENDS = (EpsilonDelta(2, 1e-6), EpsilonDelta(40, 1e-6))  # noise of many units, and of less than one
QUERY = """
    SELECT job, COUNT(*) AS n, COUNT(age) AS known, SUM(age) AS years, AVG(income) AS mean, STDDEV_POP(age) AS spread,
        CORR(age, income) AS r, COUNT(*) FILTER (WHERE sex = 'f') AS women, SUM(income) / COUNT(*) AS ratio
    FROM people WHERE age IS NULL OR age > 20 GROUP BY job"""

SUMS = """
    SELECT job, COUNT(*) AS n, COUNT(age) AS known, SUM(age) AS years, COUNT(*) FILTER (WHERE sex = 'f') AS women
    FROM people WHERE age IS NULL OR age > 20 GROUP BY job"""


@functools.cache
def people() -> pd.DataFrame:
    """Jobs of many people, of some, and of one or two; some ages are missing; two rows a person."""
    rng = np.random.default_rng(7)
    jobs = ["baker"] * 900 + ["nurse"] * 600
    jobs += [f"some {i}" for i in range(8) for _ in range(20 + 6 * i)]  # about the threshold
    jobs += [f"few {i}" for i in range(60) for _ in range(1 + i % 3)]
    size = len(jobs)
    frame = pd.DataFrame(
        {
            "pid": rng.permutation(size) // 2,
            "job": jobs,
            "age": pd.array(rng.integers(0, 121, size), dtype="Int64"),
            "income": np.floor(rng.gamma(2.0, 20_000.0, size).clip(0, 200_000) / 16) * 16,
            "sex": rng.choice(["f", "m"], size),
        }
    )
    frame.loc[rng.random(size) < 0.06, "age"] = pd.NA
    frame.loc[frame["job"] == "few 7", "job"] = None
    return frame


@functools.cache
def database(rows: int = 2) -> sulq.Database:
    """The table, opened as synthetic."""
    return sulq.connect(
        people() if rows == 2 else people().assign(pid=range(len(people()))),
        table="people",
        columns={
            "age": sulq.Int(0, 120),
            "income": sulq.Real(0, 200_000, grid=16),
            "sex": sulq.Category(("f", "m")),
            "job": sulq.Text(),
        },
        unit=sulq.Unit("pid", rows=rows),
        budget=EpsilonDelta(900, 1e-4),
        synthetic=True,
    )


def asked_of(sql: str, spend: EpsilonDelta) -> tuple[PreparedQuery, list[Released]]:
    """A query with a row for the rest, and the noise-free answers to its questions."""
    facts = database().facts
    asked = prepare(compiled_of(sql, facts).program, facts, spend, "(other)")
    answers = exact(database()).ask(asked.question, spend=spend)
    return asked, [answer.released for answer in answers]


def kept(released: Sequence[Released], labels: set[tuple[object, ...]]) -> list[Released]:
    """Answers in which only some groups are shown."""
    found = []
    for one in released:
        if one.labels is None:
            found.append(one)
            continue
        places = [i for i, label in enumerate(zip(*one.labels, strict=True)) if label in labels]
        columns = tuple(tuple(cells[i] for i in places) for cells in one.labels)
        found.append(Released(one.units[places], one.noise, columns))
    return found


def passed(released: Sequence[Released]) -> set[tuple[object, ...]]:
    """The groups whose noisy number of people is above the threshold."""
    found: set[tuple[object, ...]] = set()
    for one in released:
        if one.labels is not None and isinstance(one.noise[0].law, PassedGaussianLaw):
            threshold = one.noise[0].law.threshold
            found |= {
                label for label, n in zip(zip(*one.labels, strict=True), one.units[:, 0], strict=True) if n > threshold
            }
    return found


SHOWN = {("baker",), ("nurse",), ("some 3",), (None,)}


@pytest.mark.parametrize("spend", SPENDS, ids=str)
def test_the_rest_is_that_of_the_rows_not_shown(spend: EpsilonDelta) -> None:
    """Without noise every statistic is that of the rows whose group is hidden, and the row stands last."""
    asked, released = asked_of(QUERY, spend)
    rows = asked.read(kept(released, SHOWN)).shown()
    assert [row[0].value for row in rows] == ["baker", "nurse", "some 3", None, "(other)"]
    frame = people()
    frame = frame[frame["age"].isna() | (frame["age"] > 20)]
    hidden = frame[~frame["job"].isin(["baker", "nurse", "some 3"]) & frame["job"].notna()]
    known = hidden.dropna(subset="age").astype({"age": float})
    expected = [
        len(hidden),
        len(known),
        known["age"].sum(),
        hidden["income"].mean(),
        known["age"].std(ddof=0),
        known["age"].corr(known["income"]),
        (hidden["sex"] == "f").sum(),
        hidden["income"].mean(),
    ]
    found = [figure.value for figure in rows[-1][1:]]
    assert found == pytest.approx(expected, rel=2e-3)  # products are on a coarse grid
    assert found[:4] == pytest.approx(expected[:4], rel=1e-9)
    assert isinstance(found[0], int)


def test_nothing_is_left_where_every_group_is_shown() -> None:
    """`sulq.testing.exact` shows all groups: the rest is empty, its mean unknown within its bounds."""
    found = exact(database()).sql("SELECT job, COUNT(*), SUM(age), AVG(age) FROM people GROUP BY job", other="(rest)")
    assert found.value[-1] == ("(rest)", 0, 0, None)
    low, high = found.interval(0.95)
    assert (low[-1][3], high[-1][3]) == (0, 120)
    assert low[-1][1] < 0 < high[-1][1]


def covered(asked: PreparedQuery, released: list[Released], beta: float, runs: int) -> dict[str, int]:
    """In how many runs each column's interval misses the exact rest of the groups that run has shown."""
    rng = np.random.default_rng(31)
    missed: dict[str, int] = {}
    for _ in range(runs):
        drawn = noisy(released, rng)
        shown = passed(drawn)
        run = kept(drawn, shown)
        table = asked.read(run)
        (*truth,) = asked.read(kept(released, shown)).rows[-1]
        for name, figure, right in zip(table.names, table.rows[-1], truth, strict=True):
            ends = interval(figure, run, beta)
            if ends is not None and right.value is not None:
                missed[name] = missed.get(name, 0) + (not ends[0] - 1e-6 <= right.value <= ends[1] + 1e-6)
    return missed


@pytest.mark.parametrize("spend", SPENDS, ids=str)
def test_the_intervals_of_the_rest_hold_it_T28_SR14(spend: EpsilonDelta) -> None:
    """Over runs of noise and threshold each interval covers the rest of what is shown, at its level. Control: below."""
    for query, names, runs in (
        (SUMS, {"n", "known", "years", "women"}, RUNS),
        (QUERY, {"n", "known", "years", "mean", "spread", "r", "women", "ratio"}, FEWER),
    ):
        missed = covered(*asked_of(query, spend), 0.1, runs)
        assert set(missed) == names
        assert all(covers(times, runs, 0.1) for times in missed.values()), missed


def test_the_noise_of_the_total_alone_does_not_hold_the_rest_T28(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: intervals that forget the noise of the groups taken away are found out by the same runs."""

    def forgetful(total: Released, shown: Released) -> Released:
        return Released(rest(total, shown).units, total.noise)

    monkeypatch.setattr(columns, "rest", forgetful)
    missed = covered(*asked_of(SUMS, SPENDS[1]), 0.1, RUNS)  # there a dozen groups and more are shown
    assert not any(covers(missed[name], RUNS, 0.1) for name in ("n", "known", "years", "women"))


def pmf(scale: Fraction, reach: int) -> np.ndarray:
    law = GaussianLaw(scale)
    return np.array([law.pmf(z) for z in range(-reach, reach + 1)])


@pytest.mark.parametrize("number", [0, 1, 7, 30])
@pytest.mark.parametrize("scales", ["1/3 1/5", "1/2 3/2", "3/2 1/2", "3 1", "2 2", "20 9"])
def test_the_law_of_a_difference_is_never_too_short_T28(scales: str, number: int) -> None:
    """By convolving exact probabilities: at most beta lies beyond, and where scales are 2 or more not much less."""
    total, group = map(Fraction, scales.split())
    reach = math.ceil(14 * float(max(total, group))) + 2
    exactly = pmf(total, reach)
    for _ in range(number):
        exactly = np.convolve(exactly, pmf(group, reach))
    centre = len(exactly) // 2
    law = difference(GaussianLaw(total), GaussianLaw(group), number)
    beyond = 2 * np.cumsum(exactly[::-1])[::-1][centre + 1 :]  # [t]: farther than t
    for beta in (0.3, 0.05, 1e-4):
        away = law.accuracy(beta)
        assert beyond[away] <= beta * (1 + 1e-9) + 1e-13
        needed = int(np.argmax(beyond <= beta))
        if min(total, group) >= 2 or not number:
            assert away <= needed + 1
        assert beyond[max(needed - 1, 0)] > beta or needed == 0  # control: a unit less would be too short


def test_only_alike_sums_are_taken_from_a_total() -> None:
    """Another grid or another kind of noise is refused, never taken for the same."""
    law, one = GaussianLaw(Fraction(3)), Fraction(1)
    total = Released(np.array([[9]]), (Noise(law, one, 1),))
    assert rest(total, Released(np.zeros((0, 1), np.int64), (Noise(law, one, 1),), ())).units.tolist() == [[9]]
    with pytest.raises(ValueError, match="units"):
        rest(total, Released(np.array([[4]]), (Noise(law, one / 2, 1),), (("a",),)))
    with pytest.raises(TypeError):
        rest(total, Released(np.array([[4]]), (Noise(LaplaceLaw(one), one, 1),), (("a",),)))


def test_the_rest_is_a_row_like_any_other() -> None:
    """HAVING, ORDER BY, LIMIT, expressions and tables over the released rows treat it as they treat a group."""

    def read(sql: str) -> list[tuple[object, ...]]:
        asked, released = asked_of(sql, SPENDS[0])
        return [tuple(f.value for f in row) for row in asked.read(kept(released, SHOWN)).shown()]

    n = len(people())
    some = int((people()["job"] == "some 3").sum())
    none = int(people()["job"].isna().sum())
    others = n - 1500 - some - none
    grouped = "SELECT job, COUNT(*) AS n FROM people GROUP BY job"
    assert read(f"{grouped} ORDER BY n DESC LIMIT 3") == [("baker", 900), ("nurse", 600), ("(other)", others)]
    assert read(f"{grouped} HAVING COUNT(*) < 100") == [("some 3", some), (None, none)]
    assert read(f"{grouped} ORDER BY job DESC LIMIT 1 OFFSET 4") == [("(other)", others)]
    assert read("SELECT UPPER(job) AS j, 2 * COUNT(*) AS n FROM people GROUP BY job")[-1] == ("(OTHER)", 2 * others)
    assert read(f"SELECT SUM(n), COUNT(*) FROM ({grouped}) AS t") == [(n, 5)]
    both = "SELECT job, sex, GROUPING(job), GROUPING(sex), COUNT(*) FROM people GROUP BY ROLLUP (job, sex)"
    found = read(both)
    assert [row[:4] for row in found if row[0] == "(other)"] == [("(other)", "(other)", 0, 0), ("(other)", None, 0, 1)]
    assert found[-1] == (None, None, 1, 1, n)


def test_keys_that_are_no_texts_are_missing_in_the_rest() -> None:
    """The label stands for texts only: a column of numbers keeps its type."""
    with sulq.connect(
        people(), table="people", columns={"age": (0, 120), "income": (0, 200_000)}, unit=sulq.Unit("pid", rows=2),
        budget=EpsilonDelta(20, 1e-4),
    ) as db:  # fmt: skip
        found = db.sql("SELECT income, COUNT(*) AS n FROM people GROUP BY income", spend=SPENDS[0], other="(other)")
        assert found.value[-1][0] is None
        assert str(found.to_arrow().schema.field("income").type) in ("null", "int64", "double")


def test_people_of_one_row_each_are_counted_in_the_rest() -> None:
    """COUNT(DISTINCT person) where a person has one row is a count of rows, and so is its rest."""
    sql = "SELECT job, COUNT(DISTINCT pid) AS n FROM people GROUP BY job"
    db = database(1)
    found = db.sql(sql, spend=SPENDS[0], other="(other)")
    asked = {row[0]: row[1] for row in found.value}
    low, high = found.interval(1 - 1e-9)
    names = set(asked) - {"(other)"}
    frame = people()
    hidden = len(frame) - sum(int((frame["job"] == name).sum()) for name in names)
    assert {"baker", "nurse"} <= names
    assert low[-1][1] <= hidden <= high[-1][1]
    assert exact(db).sql(sql, other="(other)").value[0] == ("baker", 900)
