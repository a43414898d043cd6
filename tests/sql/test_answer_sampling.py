"""Intervals of a query that count sampling: cells, sums of cells, shares and ratios; endless where no law is known."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import sulq
from sulq import Epsilon, EpsilonDelta
from sulq.answers.released import Noise
from sulq.errors import QuestionError
from sulq.language.law import LaplaceLaw
from sulq.sql.answer import SqlAnswer
from sulq.sql.released.ratios import JointRatio
from tests.answers.readings.test_sampling import drawn_from, held
from tests.counts import count
from tests.stub import noise

RUNS = count("coverage of shares with sampling", short=4_000, long=100_000)
ROWS = 600
FRAME = pd.DataFrame(
    {"x": np.arange(ROWS) % 101, "c": np.where(np.arange(ROWS) % 3, "a", "b"), "p": np.arange(ROWS) // 2}
)
COLUMNS = {"x": (0, 100), "c": sulq.Category(["a", "b"], missing=False)}


@pytest.fixture(scope="module")
def db():
    unit = sulq.Unit("p", rows=2)
    with sulq.connect(FRAME, columns=COLUMNS, unit=unit, budget=EpsilonDelta(900, 1e-6)) as found:
        yield found


def asked(db, text: str) -> SqlAnswer:
    return db.sql(text, spend=Epsilon(20))


def test_a_share_of_a_population_is_covered():
    """From 94% to 96.5% at 95%, with a tenth and a half; the interval of the noise alone is found out."""
    rng, law = drawn_from("sampled shares"), LaplaceLaw(Fraction(8))
    for part in (0.5, 0.1):
        below = np.full(RUNS, 5_000)
        above = rng.binomial(5_000, part, RUNS) + noise(law, rng, (RUNS,))
        below = below + noise(law, rng, (RUNS,))
        parts = (Noise(law, Fraction(1), 1),) * 2
        told = [
            JointRatio(above * 1.0, below * 1.0, np.eye(2), parts, (0.0, 1.0), np.abs(below * 1.0), sampling)
            for sampling in (1.0, 0.0)
        ]
        missed = [int(((low > part) | (high < part)).sum()) for low, high, _ in (one.interval(0.05) for one in told)]
        assert held(missed[0], RUNS, 0.94, 0.965), 1 - missed[0] / RUNS
        assert not held(missed[1], RUNS, 0.94, 1.0)


def test_cells_are_wider_by_the_law_of_their_statistic(db):
    """A count by the root of it, and of people with two rows each by the root of two more; a value is not altered."""
    found = asked(db, "SELECT c, COUNT(*) AS n, AVG(x) AS m, VAR_POP(x) AS v FROM data GROUP BY c ORDER BY c")
    people, rows = found.with_sampling(), found.with_sampling("rows")
    assert people.value == found.value
    for j in (1, 2, 3):
        width = [one.accuracy(0.05)[0][j] for one in (found, rows, people)]
        assert width[0] < width[1] < width[2]
    n = found.value[0][1]
    assert rows.accuracy(0.05)[0][1] == pytest.approx(1.96 * math.sqrt(n), rel=0.15)
    assert people.accuracy(0.05)[0][1] == pytest.approx(1.96 * math.sqrt(2 * n), rel=0.15)
    assert found.interval(0.95, sampling=True) == people.interval(0.95)
    assert found.accuracy(0.05, sampling="rows") == rows.accuracy(0.05)
    assert "2 rows of one may be alike" in repr(people)
    assert list(people.to_pandas(0.95)["low_n"]) < list(found.to_pandas(0.95)["low_n"])


def test_sums_of_groups_and_people_have_their_own(db):
    """Groups' counts add up as independent ones; people are counted once, however many rows they have."""
    inner = "SELECT SUM(n) FROM (SELECT c, COUNT(*) AS n FROM data GROUP BY c) AS t"
    assert asked(db, inner).accuracy(0.05, sampling="rows") == pytest.approx(1.96 * math.sqrt(ROWS), rel=0.2)
    persons = asked(db, "SELECT COUNT(DISTINCT p) AS n FROM data")
    assert persons.accuracy(0.05, sampling=True) == pytest.approx(1.96 * math.sqrt(ROWS / 2), rel=0.2)
    each = asked(db, "SELECT AVG(n) AS n FROM (SELECT p, COUNT(*) AS n FROM data GROUP BY p) AS t")
    assert each.accuracy(0.05, sampling=True) == pytest.approx(each.accuracy(0.05, sampling="rows"))


def test_shares_and_ratios_are_read_together(db):
    """A share stays within its range; of another ratio both sides vary."""
    text = "SELECT 100.0 * COUNT(*) FILTER (WHERE x > 98) / COUNT(*) AS s, SUM(x) * 1.0 / COUNT(*) AS r FROM data"
    share = asked(db, text)
    low, high = share.interval(0.95, sampling=True)
    assert 0 <= low[0][0] < share.value[0][0] < high[0][0] <= 100
    alone = share.interval(0.95)
    assert low[0][0] < alone[0][0][0]
    assert low[0][1] < alone[0][0][1] < alone[1][0][1] < high[0][1]


def test_where_no_law_is_known_the_interval_is_endless_and_said(db):
    """Extremes, numbers of different values, and groups found in the data."""
    found = asked(db, "SELECT MAX(x) AS a, COUNT(DISTINCT x) AS b, COUNT(*) AS n FROM data")
    low, high = found.interval(0.95, sampling=True)
    assert low[0][:2] == (-math.inf, -math.inf)
    assert high[0][:2] == (math.inf, math.inf)
    assert math.isfinite(low[0][2])
    assert "endless" in repr(found.with_sampling())
    opened = db.sql("SELECT x, COUNT(*) AS n FROM data WHERE x < 3 GROUP BY x", spend=Epsilon(20))
    assert opened.with_sampling() is not opened
    with pytest.raises(QuestionError, match="sampling is True"):
        found.interval(0.95, sampling="persons")


def test_an_answer_that_was_not_asked_here_has_noise_alone(db):
    """One of a plan at one debit, say: it is refused, with what to do. Control: asked by itself it is told."""
    text = "SELECT COUNT(*) AS n FROM data"
    (answer, _) = db.plan([text, "SELECT AVG(x) AS m FROM data"], spend=Epsilon(4)).ask(together=True)
    with pytest.raises(QuestionError, match="noise alone"):
        answer.interval(0.95, sampling=True)
    assert asked(db, text).interval(0.95, sampling=True)
    assert asked(db, text).with_sampling(False).notes == asked(db, text).notes
