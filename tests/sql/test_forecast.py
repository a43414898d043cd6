"""Made-up releases: what is foretold from public facts is what a table of such rows would give."""

from __future__ import annotations

import numpy as np
import pytest

from sulq.answers.readings.estimators import Plain, Spread
from sulq.compile.plan import draw
from sulq.language.domain import Bool, Category, Int, Real, Schema, Text
from sulq.language.privacy import Epsilon, EpsilonDelta, Unit
from sulq.language.question import Choose, OpenSums, Sums, Together
from sulq.language.rowfn import Bernstein, Col, Each, Lit
from sulq.language.score import Rank
from sulq.sql.forecast import LEANS, POINTS, made_up_rows, supposed
from tests.stub import facts

SCHEMA = Schema.of(
    "t", {"a": Int(0, 60), "b": Real(-1, 3), "flag": Bool(), "city": Category(["Lod", "Yafo"]), "name": Text()}
)
TOLD = facts(SCHEMA, Unit("pid", 2), EpsilonDelta(50, 1e-6))


def test_columns_are_spread_over_their_bounds():
    """Every column runs evenly through its declared values, in an order of its own, or stands at an end."""
    rows = made_up_rows(SCHEMA, "spread")
    a, b = rows.codes("a").values, rows.codes("b").values
    assert sorted(a.tolist()) == list(range(61))
    assert b.min() == SCHEMA.find("b").low
    assert b.max() == SCHEMA.find("b").high
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.2
    assert set(made_up_rows(SCHEMA, "low").codes("a").values.tolist()) == {0}
    assert set(made_up_rows(SCHEMA, "high").codes("a").values.tolist()) == {60}
    assert rows.codes("name").values[0] == "x"
    assert len(rows.person()) == len(rows.position()) == POINTS


@pytest.mark.parametrize("lean", LEANS)
def test_a_release_has_the_plans_shape_and_the_rows_supposed(lean):
    """Counts are the number of rows supposed, in every cell; sums lie within their bounds times that."""
    question = Together(
        (Sums((Lit(1), Col("a")), None, (Col("city"), Each(Col("flag")))), Sums((Bernstein(Col("b"), 2),)))
    )
    plan = draw(question, TOLD, Epsilon(1))
    grouped, moments = supposed(plan, TOLD, 1000, lean)
    assert grouped.units.shape == (4, 2)
    assert moments.units.shape == (1, 3)
    assert (grouped.units[:, 0] == 1000).all()
    assert (grouped.units[:, 1] == {"spread": 30_000, "low": 0, "high": 60_000}[lean]).all()
    spread = Spread(SCHEMA.find("b").high * SCHEMA.find("b").step - SCHEMA.find("b").low * SCHEMA.find("b").step)
    variance = float(spread.value(moments)[0, 0])
    assert variance == pytest.approx({"spread": 16 / 12}.get(lean, 0.0), rel=0.05, abs=1e-3)
    assert [one.noise for one in (grouped, moments)] == [part.noise for part in plan.parts]
    whole = supposed(plan, TOLD, 1000, lean, whole=True)
    assert whole[0].units[0, 0] == 250
    assert Plain().interval(grouped, 0.05)[1].shape == (4, 2)


def test_choices_and_open_keys_are_supposed_too():
    """A choice falls into the middle, or to the end it leans to; of open keys one group is shown."""
    plan = draw(Choose(Sums((Lit(1),), None, (Col("city"), Each(Col("a")))), Rank(1, 2)), TOLD, Epsilon(1))
    assert [supposed(plan, TOLD, 10, lean)[0].units.tolist() for lean in LEANS] == [
        [[30], [30]],
        [[0], [0]],
        [[60], [60]],
    ]
    plan = draw(OpenSums((Col("a"),), None, (Col("name"),)), TOLD, EpsilonDelta(1, 1e-6))
    (found,) = supposed(plan, TOLD, 5)
    assert found.labels == ((None,),)
    assert found.units[0, 0] == plan.parts[0].people.threshold + 1
