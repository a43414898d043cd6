"""Answers as plain JSON: cells, error bars, spends in short."""

from __future__ import annotations

import datetime
import json
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import sulq
from sulq.answers import wire
from sulq.answers.answer import Answers
from sulq.errors import QuestionError
from sulq.service.console.views.answer import Forecast
from sulq.service.web.requests import facts_of, loss_of
from sulq.service.web.routes.asking import ExplainBody, SqlBody
from sulq.service.web.sql_answers import _cell, answered, explained, explained_json, sql_json, workload_json
from tests.service.office import survey

GROUPED = "SELECT city, COUNT(*) AS n, AVG(income) AS mean FROM survey GROUP BY city"


@pytest.mark.parametrize(
    ("tree", "loss"),
    [
        (None, None),
        ({"epsilon": 0.1}, sulq.Epsilon(0.1)),
        ({"epsilon": 1, "delta": 1e-6}, sulq.EpsilonDelta(1, 1e-6)),
        ({"rho": 0.01}, sulq.Rho(0.01)),
        ({"queries": 3}, sulq.Queries(3)),
        ({"kind": "Rho", "rho": {"kind": "fraction", "value": "1/3"}}, sulq.Rho(Fraction(1, 3))),
    ],
)
def test_a_spend_is_read_short_or_canonical(tree: dict | None, loss: object) -> None:
    """Both forms mean the same loss, to the digit."""
    assert loss_of(tree) == loss


@pytest.mark.parametrize(
    "tree", [{}, {"eps": 1}, {"epsilon": 1, "rho": 1}, {"kind": "Unit"}, {"kind": 3}, {"delta": 1}]
)
def test_what_is_no_spend_is_refused(tree: dict) -> None:
    """Anything else has a code."""
    with pytest.raises(QuestionError) as caught:
        loss_of(tree)
    assert caught.value.code in ("bad-loss", "wire-format")


def test_rows_stand_beside_their_error_bars() -> None:
    """The bars are those of the answer; keys have none; the release beside them gives the same answer again."""
    with survey() as db:
        answer = db.sql(GROUPED, spend=sulq.Epsilon(1))
        told = sql_json(answer, 0.9)
        json.dumps(told, allow_nan=False)
        low, high = answer.interval(0.9)
        for i, row in enumerate(answer.value):
            assert told["rows"][i] == list(row)
            assert told["low"][i] == [None, low[i][1], low[i][2]]
            assert told["high"][i] == [None, high[i][1], high[i][2]]
        assert told["columns"] == ["city", "n", "mean"]
        assert told["reused"] is False
        assert wire.from_json(told["spent"]) == sulq.Epsilon(1)
        again = wire.from_json(told["answer"])
        assert isinstance(again, Answers)
        assert wire.encode(again) == wire.encode(answer.answers)
        assert told["receipt"]["seq"] == answer.receipt.seq


def test_intervals_of_quantiles_may_be_left_out() -> None:
    """A body says so, for an answer and for its explanation; left out, they are bought."""
    asked = {"sql": "SELECT MEDIAN(income) AS m FROM survey", "spend": {"epsilon": 1}}
    with survey() as db:
        oracle = db._oracle
        bare, bought = (answered(oracle, SqlBody(**asked, **more)) for more in ({"interval": False}, {}))
        assert "no interval was bought" in bare["notes"][0]
        assert not any("no interval" in note for note in bought["notes"])
        texts = [explained(oracle, ExplainBody(**asked, **more))["text"] for more in ({"interval": False}, {})]
        assert ["question 1 of" in text for text in texts] == [False, True]


def test_intervals_count_sampling_where_the_body_says_so() -> None:
    """They are wider, the reply says it, and what has no law of sampling has no interval; else they are of noise."""
    asked = {"sql": "SELECT COUNT(*) AS n, MAX(age) AS m FROM survey", "spend": {"epsilon": 1}}
    with survey() as db:
        wide, alone = (answered(db._oracle, SqlBody(**asked, **more)) for more in ({"sampling": True}, {}))
        assert wide["rows"] == alone["rows"]
        assert wide["low"][0][0] < alone["low"][0][0]
        assert (wide["sampling"], alone["sampling"]) == (True, False)
        assert "larger population" in wide["notes"][0]
        assert json.dumps(wide, allow_nan=False)
        public = answered(db._oracle, SqlBody(sql="SELECT city FROM survey GROUP BY city", sampling=True))
        assert public["spent"] == sql_json(db.sql("SELECT city FROM survey GROUP BY city"))["spent"]


def test_explain_select_is_answered_by_its_lines() -> None:
    """As PostgreSQL answers it: one column of text, nothing spent."""
    with survey() as db:
        told = sql_json(db.sql(f"EXPLAIN {GROUPED}", spend=sulq.Epsilon(1)))
        assert told["columns"] == ["QUERY PLAN"]
        assert told["rows"][0][0].startswith("price epsilon 1")
        assert wire.from_json(told["spent"]).amount == 0
        assert db.transcript() == []


def test_a_query_that_asks_nothing_private_costs_nothing() -> None:
    """Declared categories are public: they are listed without a receipt."""
    with survey() as db:
        told = sql_json(db.sql("SELECT city FROM survey GROUP BY city"))
        assert ["Lod"] in told["rows"]
        assert (told["receipt"], told["answer"]) == (None, None)
        assert db.transcript() == []


def test_explanations_and_plans_are_numbers() -> None:
    """Widths by column and supposed rows; a plan's parts add up to its total at most."""
    with survey() as db:
        told = explained_json(db.explain(GROUPED, spend=sulq.Epsilon(1)))
        assert [column["name"] for column in told["columns"]] == ["n", "mean"]
        assert all(len(column["widths"]) == len(told["rows"]) for column in told["columns"])
        assert wire.from_json(told["price"]) == sulq.Epsilon(1)
        planned = workload_json(db.plan([GROUPED, "SELECT COUNT(*) FROM survey"], spend=sulq.Epsilon(1)))
        assert sum(wire.from_json(query["spend"]).exact for query in planned["queries"]) <= 1
        json.dumps([told, planned], allow_nan=False)


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (math.inf, None),
        (-math.inf, None),
        (math.nan, None),
        (np.float64(0.5), 0.5),
        (np.int64(3), 3),
        (Fraction(1, 4), 0.25),
        (Decimal("0.5"), 0.5),
        (datetime.date(2026, 1, 2), "2026-01-02"),
        (datetime.datetime(2026, 1, 2, 3, 4, tzinfo=datetime.UTC), "2026-01-02T03:04:00+00:00"),
        ("<script>", "<script>"),
        (True, True),
        (None, None),
    ],
)
def test_a_cell_is_plain_json(value: object, cell: object) -> None:
    """Infinite ends are null, moments are text, exact numbers are doubles."""
    assert _cell(value) == cell


def test_kept_rows_are_said_over_http_and_in_the_console() -> None:
    """In an answer's JSON, in an explanation's, in the answer of EXPLAIN, and in what the console reads of them."""
    note = "of the kept rows (at most 2 a person)"
    frame = pa.table({"id": [1, 1, 1, 2], "x": [1, 2, 3, 4]})
    with sulq.connect(frame, columns={"x": sulq.Int(0, 9)}, unit=sulq.Unit("id", rows=2), budget=sulq.Epsilon(9)) as db:
        query = "SELECT SUM(x) AS s FROM data"
        assert note in sql_json(db.sql(query, spend=sulq.Epsilon(1)))["notes"]
        explained = explained_json(db.explain(query, spend=sulq.Epsilon(1)))
        assert explained["notes"][0] == note
        assert note in Forecast.of(explained).notes
        assert [note] in sql_json(db.sql(f"EXPLAIN {query}", spend=sulq.Epsilon(1)))["rows"]
        db.heavy_persons(spend=sulq.Epsilon(1))
        facts = facts_of(json.loads(json.dumps(wire.to_json(db.facts))))
        assert (facts.heavy, facts.rho) == (db.facts.heavy, None)
        assert "about" in sql_json(db.sql(query, spend=sulq.Epsilon(2)))["notes"][0]
