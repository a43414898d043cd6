"""Ratios of released sums: one interval for the quotient, shares within their range, noise that is shared read once."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import sulq
from sulq import Epsilon, Rho
from sulq.answers.readings.regions import ratios
from sulq.sql.released.cells import Applied, statistics
from sulq.sql.released.ratios import Ratio
from tests.answers.readings.test_estimators import covers, runs
from tests.counts import count

RUNS = count("coverage of ratios in SQL", short=4000, long=100_000)
N = 3000
FLAG = np.arange(N) % 50 != 3
TABLE = pa.table({"c": ["a", "b", "b"] * (N // 3), "f": FLAG, "x": np.arange(N) % 11, "y": 5 + np.arange(N) % 3})
COLUMNS = {"c": sulq.Category(["a", "b"]), "f": sulq.Bool(), "x": sulq.Int(0, 10), "y": sulq.Int(0, 10)}


def asked(text: str, spend: object = Epsilon(1), *, exact: bool = False) -> object:
    """The answer of a fresh database over the same rows."""
    with sulq.connect(TABLE, columns=COLUMNS, budget=type(spend)(50), synthetic=True) as db:
        return (sulq.testing.exact(db) if exact else db).sql(text, spend=spend)


def origin(text: str, spend: object = Epsilon(1)) -> object:
    """What the first cell of the first row came from."""
    return asked(text, spend, exact=True).table.rows[0][-1].origin


SHARES = {
    "COUNT(*) FILTER (WHERE f) * 1.0 / COUNT(*)": (0, 1),
    "100.0 * COUNT(*) FILTER (WHERE f AND x > 3) / COUNT(*) FILTER (WHERE f)": (0, 100),
    "100.0 * SUM(CASE WHEN f THEN 1 ELSE 0 END) / NULLIF(COUNT(*), 0)": (0, 100),
    "CAST(COUNT(x) AS DOUBLE PRECISION) / COUNT(*)": (0, 1),
    "COUNT(*) FILTER (WHERE f) * 1.0 / (COUNT(*) FILTER (WHERE f) + COUNT(*) FILTER (WHERE NOT f))": (0, 1),
    "COUNT(*) FILTER (WHERE x = 3) * 1.0 / (SELECT COUNT(*) FROM data)": (0, 1),
    "-1.0 * COUNT(*) FILTER (WHERE f) / COUNT(*)": (-1, 0),
}
NO_SHARES = (
    "COUNT(*) * 1.0 / COUNT(*) FILTER (WHERE f)",
    "COUNT(*) FILTER (WHERE f) * 1.0 / COUNT(*) FILTER (WHERE x > 3)",
    "SUM(x) * 1.0 / COUNT(*)",
    "SUM(x) * 1.0 / SUM(y)",
    "(COUNT(*) FILTER (WHERE f) + 1.0) / COUNT(*)",
)


@pytest.mark.parametrize("text", SHARES)
def test_a_share_stays_within_its_range_SR18(text: str) -> None:
    """Value and interval, though noise is larger than the count; what is not seen to be a share has no such range."""
    found = origin(f"SELECT {text} AS s FROM data")
    assert isinstance(found, Ratio)
    assert found.joint.bounds == SHARES[text]
    for spend in (Epsilon(0.002), Rho(0.0001)):
        answer = asked(f"SELECT {text} AS s FROM data", spend)
        low, high = answer.interval(0.95)
        assert SHARES[text][0] <= low <= answer.value <= high <= SHARES[text][1]


def test_other_ratios_have_no_such_range() -> None:
    """Control: of counts of other rows, and of sums."""
    for text in NO_SHARES:
        found = origin(f"SELECT {text} AS s FROM data")
        assert isinstance(found, Ratio)
        assert found.joint.bounds is None


def test_groups_of_a_whole_are_shares_of_it() -> None:
    """The rows of a group are part of all rows; of rows that satisfy a condition they are not."""
    found = origin("SELECT c, COUNT(*) * 1.0 / (SELECT COUNT(*) FROM data) AS s FROM data GROUP BY c")
    assert found.joint.bounds == (0, 1)
    assert len(found.joint.above) == 3
    other = origin("SELECT c, COUNT(*) * 1.0 / (SELECT COUNT(*) FROM data WHERE f) AS s FROM data GROUP BY c")
    assert other.joint.bounds is None


def test_what_is_not_linear_is_read_as_before() -> None:
    """Products and roots of noisy values, and quotients that are cut off inside others, have the old interval."""
    for text in ("SUM(x) * SUM(y) / COUNT(*)", "SQRT(SUM(x)) / COUNT(*)", "(COUNT(*) / 3) * 1.0 / SUM(x)"):
        found = origin(f"SELECT {text} AS s FROM data")
        assert isinstance(found, Applied)
        assert not isinstance(found, Ratio)


def test_nullif_is_left_out_below_a_quotient_alone() -> None:
    """Above it a sum of 0 is NULL, so that the ratio may have no value; below it is missing anyway."""
    assert isinstance(origin("SELECT SUM(x) * 1.0 / NULLIF(SUM(y), 0) AS r FROM data"), Ratio)
    for text in ("NULLIF(SUM(x), 0) * 1.0 / SUM(y)", "SUM(x) * 1.0 / (1 + NULLIF(SUM(y), 0))"):
        assert not isinstance(origin(f"SELECT {text} AS r FROM data"), Ratio)


def test_a_quotient_by_a_released_nought_has_an_interval_too_T27() -> None:
    """It has no value, and its range says so; which ratios are likely is known all the same."""
    found = origin("SELECT SUM(x) * 1.0 / NULLIF(SUM(y), 0) AS r FROM data")
    missing, given = replace(found, value=None).range((), 0.05), found.range((), 0.05)
    assert missing.null
    assert not given.null
    assert (missing.low, missing.high) == (given.low, given.high)


def test_sums_that_two_statistics_share_are_read_once() -> None:
    """A sum and a count from the same one-sided sums: their noise is one draw on both sides of the quotient."""
    both = origin("SELECT SUM(x) * 1.0 / COUNT(*) AS s FROM data")
    assert both.joint.weights.shape[1] == len(both.joint.noises) <= 3
    assert (np.abs(both.joint.weights).min(axis=0) > 0).any()


def test_a_ratio_is_one_statistic_and_its_parts_others() -> None:
    """The error probability is divided by what a cell depends on: a ratio counts once, a sum beside it once more."""
    answer = asked("SELECT SUM(x) * 1.0 / SUM(y) AS r, SUM(x) * 1.0 / SUM(y) + SUM(x) AS t FROM data", exact=True)
    (first, second), *_ = answer.table.rows
    assert [len(statistics(figure)) for figure in (first, second)] == [1, 2]


@pytest.mark.parametrize("spend", [Epsilon(0.05), Rho(0.002)], ids=str)
def test_intervals_of_ratios_hold_them_T28(spend: object) -> None:
    """By many draws of the plan's own noise; three fifths of the interval does not (the control)."""
    rng = np.random.default_rng(81)
    for text in ("SUM(x) * 1.0 / SUM(y)", "SUM(x) * 1.0 / COUNT(*)", "100.0 * COUNT(*) FILTER (WHERE f) / COUNT(*)"):
        joint = origin(f"SELECT {text} AS s FROM data", spend).joint
        noise = runs([0] * len(joint.noises), list(joint.noises), rng, RUNS).values()
        above, below = (side[0] + noise @ w for side, w in zip((joint.above, joint.below), joint.weights, strict=True))
        low, high, _ = ratios(above, below, joint.weights, joint.noises, 0.05, bounds=joint.bounds)
        truth, value = joint.above[0] / joint.below[0], above / below
        assert covers(int(((truth < low) | (truth > high)).sum()), RUNS, 0.05)
        low, high = value + (low - value) * 0.6, value + (high - value) * 0.6
        assert not covers(int(((truth < low) | (truth > high)).sum()), RUNS, 0.05)


def test_an_unknown_group_stays_unknown_SR18() -> None:
    """A divisor that may be nought: no value, and the whole range, which a share has."""
    answer = asked("SELECT c, 100.0 * COUNT(*) FILTER (WHERE f) / COUNT(*) AS s FROM data GROUP BY c", Epsilon(0.5))
    rows = dict(zip(answer.to_dict()["c"], answer.to_dict()["s"], strict=True))
    assert rows[None] is None
    assert [end[-1][1] for end in answer.interval(0.95)] == [0, 100]
    assert 80 < rows["b"] <= 100


def test_many_groups_are_read_at_once() -> None:
    """Five thousand groups within seconds, though the machine is busy: the intervals are worked out together."""
    table = pa.table({"k": np.arange(20_000) % 5000, "f": np.arange(20_000) % 3 == 0})
    columns = {"k": sulq.Int(0, 4999), "f": sulq.Bool()}
    with sulq.connect(table, columns=columns, budget=Epsilon(50)) as db:
        text = "SELECT k, 100.0 * COUNT(*) FILTER (WHERE f) / COUNT(*) AS s FROM data GROUP BY k"
        answer = db.sql(text, spend=Epsilon(20))
        start = time.process_time()
        low, high = answer.interval(0.95)
        assert time.process_time() - start < 5
        assert len(low) == len(high) == 5001
        bounds = [(a[1], b[1]) for a, b in zip(low, high, strict=True) if a[1] is not None]
        assert all(0 <= a <= b <= 100 for a, b in bounds if np.isfinite(a))
