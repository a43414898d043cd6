"""A table described at one debit, and correlations of its numbers: without noise what pandas says, refused in time."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import sulq
from sulq import Epsilon, EpsilonDelta, Rho, SubLinear, col
from sulq.errors import QuestionError, SulqError
from sulq.sql.description import MAX_BOUGHT_COLUMNS, QUARTILES
from sulq.sql.description_table import STATS
from sulq.testing import exact
from tests.privacy.cases import people, replayed

RNG = np.random.default_rng(31)
ROWS = 400
X = RNG.integers(0, 101, ROWS)
TABLE = pd.DataFrame(
    {
        "x": X,
        "y": np.where(np.arange(ROWS) % 9, (X / 2 + RNG.integers(0, 40, ROWS)) // 1, np.nan),
        "city": RNG.choice(["a", "b", "c", None], ROWS, p=[0.5, 0.3, 0.1, 0.1]),
        "yes": RNG.random(ROWS) < 0.3,
        "day": pd.to_datetime("2024-01-01") + pd.to_timedelta(RNG.integers(0, 300, ROWS), unit="D"),
        "name": [f"n{i}" if i % 4 else None for i in range(ROWS)],
        "one": 3,
    }
)
COLUMNS = {
    "x": sulq.Int(0, 100, missing=False, default=0), "y": sulq.Int(0, 100), "city": ["a", "b", "c"],
    "yes": sulq.Bool(), "day": sulq.Date("2024-01-01", "2024-12-31"), "name": sulq.Text(), "one": sulq.Int(3, 3),
}  # fmt: skip


@pytest.fixture
def db():
    with sulq.connect(TABLE, columns=COLUMNS, budget=EpsilonDelta(50, 1e-6), synthetic=True) as found:
        yield found


def test_without_noise_a_description_is_that_of_pandas(db):
    """Counts, missing cells, moments, quartiles, categories and bins of every kind of column."""
    found = exact(db).describe(spend=Epsilon(1))
    assert found.columns == tuple(COLUMNS)
    assert found.rows()[0] == ROWS
    for name in COLUMNS:
        told = found.value[name]
        assert told["count"] == TABLE[name].notna().sum()
        assert told.get("missing", 0) == TABLE[name].isna().sum()
    for name in ("x", "y"):
        told = found.value[name]
        assert told["mean"] == pytest.approx(TABLE[name].mean(), abs=0.01)
        assert told["std"] == pytest.approx(TABLE[name].std(), rel=0.01)
        for head, q in QUARTILES:
            assert told[head] == pytest.approx(TABLE[name].quantile(float(q)), abs=1.0)
    assert found.value["day"]["median"] == TABLE["day"].quantile(0.5, interpolation="lower").date()
    assert {label: ends[0] for label, ends in found.counts("city").items()} == {
        **TABLE["city"].value_counts().to_dict(), None: TABLE["city"].isna().sum(),
    }  # fmt: skip
    assert sum(ends[0] for ends in found.counts("x").values()) == ROWS
    assert [label for label, _ in found.summaries()[2].top] == ["a", "b", "c"]
    assert not found.summaries()[5].counts


@pytest.mark.parametrize("spend", [Epsilon(2), Rho(0.5), EpsilonDelta(2, 1e-7)], ids=str)
def test_a_description_is_one_debit_that_is_divided_and_said(db, spend):
    """One receipt for exactly the spend; the parts add up to all of it, and a plan foretells them."""
    plan = db.describe_plan(spend=spend)
    assert not db.transcript()
    found = db.describe(spend=spend)
    assert found.receipt is not None
    assert len(db.transcript()) == 1
    assert plan.shares == found.shares
    assert sum(part for _, _, part in found.shares) == pytest.approx(1)
    assert "of the spend" in repr(found)
    assert "one debit" in repr(plan)
    assert "1 of 1 asks fit" in repr(db.afford([plan.plan]))
    again = db.describe(spend=spend)
    assert again.reused
    assert again.value == found.value
    assert not db.describe(spend=spend, fresh=True).reused


def test_its_tables_and_charts_show_all_of_it(db):
    """A frame with a row a column, HTML with a small chart each, a picture with one axes each."""
    found = db.describe(spend=Epsilon(20))
    frame = found.to_pandas()
    assert list(frame["column"]) == list(COLUMNS)
    assert set(STATS) <= set(frame.columns)
    wide = found.to_pandas(0.95)
    held = wide[wide["mean"].notna()]
    assert (held["low_mean"] <= held["mean"]).all()
    assert (held["mean"] <= held["high_mean"]).all()
    page = found._repr_html_()
    assert page.count("<svg") == sum(bool(one.counts) for one in found.summaries()) == 4
    assert "n1" not in page
    assert len(found.plot().axes) == 4
    assert found.interval(0.9)["x"]["mean"][0] > found.interval(0.99)["x"]["mean"][0]
    told = found.with_sampling()
    assert told.interval()["x"]["mean"][0] < found.interval()["x"]["mean"][0]
    assert found.interval(sampling=True) == told.interval()
    assert "larger population" in repr(told)


def test_names_are_escaped_and_quoted():
    """A column and a category may be called anything; HTML shows them as texts."""
    frame = pd.DataFrame({'a "<b>': ["<i>", "ü"] * 20, "x y": range(40)})
    columns = {'a "<b>': ["<i>", "ü"], "x y": (0, 40)}
    with sulq.connect(frame, columns=columns, budget=Epsilon(90)) as db:
        page = db.describe(spend=Epsilon(40))._repr_html_()
    assert "<b>" not in page
    assert "<i>" not in page
    assert "&lt;i&gt;" in page


def test_empty_data_and_any_unit_are_described():
    """Facts of the data are no errors (SR6): no row, one class, k rows a person, any relation, a public size."""
    empty = TABLE.iloc[:0].assign(p=pd.Series([], dtype="int64"))
    one = TABLE.assign(p=np.arange(ROWS) // 3, city="a")
    for frame in (empty, one):
        for neighbors in ("add_remove", "replace_one", "zero_out"):
            for unit in (sulq.Unit("p", rows=3, neighbors=neighbors), sulq.Unit(None, 1, neighbors)):
                if len(frame) == 0 and unit.column is None and neighbors != "add_remove":
                    continue  # a declared size must be there
                columns = COLUMNS | {"x": (0, 100)}
                size = ROWS if neighbors == "replace_one" and unit.column is None else None
                with sulq.connect(frame, columns=columns, unit=unit, budget=Epsilon(9), size=size) as db:
                    found = db.describe(spend=Epsilon(1)).with_sampling()
                    assert found.columns == tuple(COLUMNS)
                    assert repr(found)


def test_under_sublinear_it_counts_and_averages():
    """Each number is a query there: no quartiles and no charts, which is said."""
    with sulq.connect(
        TABLE, columns=COLUMNS, size=ROWS, budget=SubLinear(epsilon=1, delta=1e-6, queries=90)
    ) as counted:
        found = counted.describe()
        assert "median" not in found.value["x"]
        assert found.shares == ()
        assert "would be a query" in repr(found)


def test_of_many_numbers_intervals_and_charts_are_bought_when_asked():
    """Past 50 columns neither these nor quartiles are bought where nobody says so; the answer says how to have them."""
    names = [f"x{i}" for i in range(MAX_BOUGHT_COLUMNS + 2)]
    frame = pd.DataFrame(dict.fromkeys(names, range(30)))
    with sulq.connect(frame, columns=dict.fromkeys(names, (0, 30)), budget=Rho(90)) as db:
        few, many = db.describe_plan(names[:3], spend=Rho(1)), db.describe_plan(spend=Rho(1))
        assert [what for _, what, _ in few.shares].count("charts") == 3
        assert [what for _, what, _ in many.shares].count("charts") == 0
        assert [what for _, what, _ in many.shares].count("quartiles") == 0
        assert "say interval=False" in repr(many)
        assert "median" not in db.describe(spend=Rho(1)).value["x0"]
        told = db.describe_plan(spend=Rho(1), interval=False, charts=False)
        assert [what for _, what, _ in told.shares].count("quartiles") == len(names)
        assert "say interval" not in repr(told)


def test_what_cannot_be_described_is_refused_free_of_charge(db):
    """Names, words and spends that are none; nothing is spent."""
    for bad in (
        lambda: db.describe("nothing", spend=Epsilon(1)),
        lambda: db.describe([], spend=Epsilon(1)),
        lambda: db.describe(["x", "x"], spend=Epsilon(1)),
        lambda: db.describe(interval=1, spend=Epsilon(1)),
        lambda: db.describe(fresh=1, spend=Epsilon(1)),
        lambda: db.describe(where="x >", spend=Epsilon(1)),
        db.describe,
        lambda: db.describe(spend=Epsilon(1000)),
        lambda: db.corr(["x"], spend=Epsilon(1)),
        lambda: db.corr(["x", "x"], spend=Epsilon(1)),
        lambda: db.corr(["x", "one"], spend=Epsilon(1)),
        lambda: db.corr(["x", "city"], spend=Epsilon(1)),
        lambda: db.describe(["x"], spend=Epsilon(1)).counts("y"),
    ):
        with pytest.raises(SulqError):
            bad()
    assert len(db.transcript()) == 1  # the last one's


def test_correlations_are_those_of_the_table(db):
    """By pairs and as a matrix, over the rows where all are present; a condition holds for all."""
    found = exact(db).corr(["x", "y", col("x") * col("x")], spend=Epsilon(1))
    both = TABLE.dropna(subset=["y"])
    frame = pd.DataFrame({"x": both["x"], "y": both["y"], "mul": both["x"] ** 2})
    assert found.matrix == pytest.approx(frame.corr().to_numpy(), abs=1e-3)
    noisy = db.corr(["x", "y"], where=col("x") > 10, spend=Epsilon(20))
    low, high = noisy.interval(0.95)
    assert low["x", "y"] < noisy.value["x", "y"] < high["x", "y"]
    wide = noisy.interval(0.95, sampling=True)
    assert wide[0]["x", "y"] < low["x", "y"]
    assert list(noisy.to_pandas(0.95).columns) == ["column", "with", "value", "low", "high"]
    assert "Fisher" in repr(noisy.with_sampling())
    assert db.covariance(["x", "y"], spend=Epsilon(1)).matrix.shape == (2, 2)
    with pytest.raises(QuestionError, match="no matrix"):
        _ = db.count(spend=Epsilon(1)).matrix


def test_what_is_asked_depends_on_no_row():
    """Replayed on neighbours: descriptions, correlations, lines and sampling intervals differ by hidden numbers alone.

    Control: `test_replay` shows that the harness sees what depends on rows.
    """
    programs = [
        lambda db: db.describe(spend=Epsilon(2)).with_sampling().answers,
        lambda db: db.describe(["age", "city"], where=col("age") > 3, spend=Rho(0.1)).answers,
        lambda db: db.corr(["age", "gain"], spend=Epsilon(1)).with_sampling(),
        lambda db: db.mean("gain", by="city", sampling=True, spend=Epsilon(1)).with_sampling(),
        lambda db: db.sum("gain", sampling=True, spend=Epsilon(1)).with_sampling("rows"),
        lambda db: db.variance("gain", sampling=True, spend=Epsilon(1)).with_sampling(),
        lambda db: db.median("age", sampling=True, spend=Epsilon(1)).with_sampling(),
        lambda db: db.sql("SELECT REGR_SLOPE(gain, age), REGR_R2(gain, age) FROM data", spend=Epsilon(1)).answers,
    ]
    for unit in (sulq.Unit("pid", 2), sulq.Unit("pid", 2, "replace_one")):
        assert replayed("memory", people("HLY"), people("HLYY"), programs, unit, budget=EpsilonDelta(90, 1e-6)) == []
