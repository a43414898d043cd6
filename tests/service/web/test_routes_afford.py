"""What a run of asks would leave, and which law an ask gets, over HTTP."""

from __future__ import annotations

import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

import sulq
from sulq.answers import wire
from sulq.answers.budget import BudgetLeft
from sulq.api.client import Client
from sulq.curator.ledger.shares import Share
from sulq.errors import BudgetExceeded, QuestionError
from sulq.language.privacy import Draw, Event
from sulq.service import answer_length
from sulq.service.jobs import kinds
from sulq.service.jobs.kinds import QueriesBody
from tests.client.far import Loop
from tests.service.door import Door
from tests.service.office import Office, survey

COUNT = "SELECT COUNT(*) AS n FROM survey"
ONE = sulq.Sums((sulq.lit(1),))
MANY = sulq.Sums((sulq.vector([sulq.col("age") > i for i in range(60)]),))
AFFORD = "/v1/datasets/survey/afford"


def event(rho: Fraction) -> object:
    """A Gaussian loss with a pair that has no delta."""
    noise = (Draw("gaussian", "add_remove", "l2", Fraction(1), Fraction(1000), Fraction(1), 1),)
    return wire.to_json(Event(None, rho, draws=noise, basic=Fraction(1, 9)))


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    office = Office(tmp_path, survey=survey(budget=sulq.EpsilonDelta(1, 1e-6)))
    made = Door(office)
    yield made
    made.close()


def test_a_run_is_foretold_as_it_happens(door: Door) -> None:
    """SQL, a question, the loss of a plan and spends alone, in short form; then the same is left."""
    plan = door.post("/v1/datasets/survey/foresee", {"question": wire.to_json(ONE), "spend": {"rho": 0.001}}, "analyst")
    asks = [
        {"sql": COUNT, "spend": {"epsilon": 0.1}, "times": 2},
        {"question": wire.to_json(ONE), "spend": {"epsilon": 0.1}},
        {"event": plan.json()["plan"]["event"]},
        {"spend": {"epsilon": 0.9}},
    ]
    told = door.post(AFFORD, {"asks": asks}, "analyst").json()
    left = [wire.from_json(line["left"]) for line in told["asks"]]
    assert not told["fits"]
    assert [isinstance(one, BudgetLeft) for one in left] == [True] * 4 + [False]
    assert [left[i].remaining for i in range(3)] == [sulq.Epsilon(part) for part in (0.9, 0.8, 0.7)]
    assert left[3].remaining == wire.from_json(told["remaining"])
    assert "more counts within 50 rows" in told["buys"]
    assert door.office.databases["survey"].spent == sulq.Epsilon.total(0)
    explained = door.post("/v1/datasets/survey/explain", {"sql": COUNT, "spend": {"epsilon": 0.1}}, "analyst").json()
    assert (explained["fits"], wire.from_json(explained["left"])) == (True, sulq.Epsilon(0.9))
    assert "would be after this" in explained["text"]
    much = door.post("/v1/datasets/survey/explain", {"sql": COUNT, "spend": {"epsilon": 1.1}}, "analyst").json()
    assert (much["fits"], much["left"], much["buys"]) == (False, None, None)
    answer = door.post("/v1/datasets/survey/sql", {"sql": COUNT, "spend": {"epsilon": 0.1}}, "analyst").json()
    assert wire.from_json(answer["remaining"]) == left[0].remaining


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"asks": []}, "bad-request"),
        ({"asks": [{}]}, "bad-request"),
        ({"asks": [{"sql": COUNT, "question": {"kind": "Sums"}, "spend": {"epsilon": 1}}]}, "bad-request"),
        ({"asks": [{"event": {"kind": "Epsilon", "epsilon": 1}}]}, "wire-format"),
        ({"asks": [{"question": {"kind": "Epsilon", "epsilon": 1}}]}, "wire-format"),
        ({"asks": [{"sql": COUNT}]}, "spend-missing"),
        ({"asks": [{"spend": {"epsilon": 1}, "times": 10_001}]}, "bad-request"),
        ({"asks": [{"sql": COUNT, "spend": {"epsilon": 1}, "times": 1000}] * 11}, "too-large"),
        ({"asks": [{"sql": COUNT, "spend": {"epsilon": 1}}] * 101}, "too-large"),
        ({"asks": [{"event": event(Fraction(1, 10**340))}]}, "bad-loss"),
        ({"asks": [{"event": event(Fraction(1, 10**6))}]}, "bad-loss"),
        ({"asks": [{"spend": {"epsilon": 1}}], "law": "cauchy"}, "bad-request"),
    ],
)
def test_what_is_no_run_is_refused_with_a_code(door: Door, body: dict, code: str) -> None:
    """At once, before anything is planned, and nothing is spent."""
    start = time.process_time()
    reply = door.post(AFFORD, body, "analyst")
    assert time.process_time() - start < 2
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, code), reply.text
    assert door.office.databases["survey"].spent == sulq.Epsilon.total(0)


@pytest.mark.parametrize("path", ["foresee", "ask"])
def test_a_structured_question_gets_the_nearer_noise_or_the_named_one_SR3(door: Door, path: str) -> None:
    """Without sulq at the far end the web process chooses, by the clerk's plans; a law not bought is refused."""

    def law(question: object, **more: object) -> str:
        body = {"question": wire.to_json(question), "spend": {"epsilon": 0.1, "delta": 1e-7}} | more
        reply = door.post(f"/v1/datasets/survey/{path}", body, "analyst")
        assert reply.status_code == 200, reply.text
        found = wire.from_json(reply.json()["plan" if path == "foresee" else "answer"])
        return found.event.draws[0].mechanism

    assert law(ONE) == "laplace"
    assert law(MANY) == "gaussian"
    assert law(ONE, law="gaussian") == "gaussian"
    assert law(MANY, law="laplace") == "laplace"
    body = {"question": wire.to_json(ONE), "spend": {"epsilon": 0.1}, "law": "gaussian"}
    refused = door.post(f"/v1/datasets/survey/{path}", body, "analyst")
    assert refused.json()["error"]["code"] == "spend-kind"
    wrong = door.post(f"/v1/datasets/survey/{path}", body | {"question": {"kind": "Unit"}}, "analyst")
    assert wrong.json()["error"]["code"] in {"wire-format", "spend-kind"}


def test_a_client_chooses_once_and_foretells_alike(tmp_path: Path) -> None:
    """What sulq chose at the far end stays: a mean that was laid out for Gaussian noise gets that."""
    office = Office(tmp_path, survey=survey(budget=sulq.EpsilonDelta(1, 1e-6)))
    door = Door(office)
    with Loop(door.app) as loop:
        url, token = "http://localhost/survey", office.tokens["analyst"]
        with Client(url, token, transport=loop.transport) as far:
            near = office.databases["survey"]
            spend = sulq.EpsilonDelta(0.1, 1e-7)
            assert far.mean("income", spend=spend).event.epsilon is not None
            assert far.mean("age", spend=spend, law="gaussian").event.epsilon is None
            assert far.ask(MANY, spend=spend).event.epsilon is None
            assert repr(far.afford([spend, (COUNT, sulq.Epsilon(0.1))])) == repr(
                near.afford([spend, (COUNT, sulq.Epsilon(0.1))])
            )
            plan = far.foresee(ONE, spend=sulq.Rho(1e-5))
            assert repr(far.afford([plan] * 1500)) == repr(near.afford([plan] * 1500))
            each = [far.foresee(ONE, spend=sulq.Rho(1e-5 + i * 1e-8)) for i in range(3)] * 300
            assert far.afford(each).left == near.afford(each).left
            with pytest.raises(QuestionError, match="no ask"):
                far.afford([7])
    door.close()


def test_a_plan_takes_weights(door: Door) -> None:
    """The query that counts more gets more; weights for other than each query are refused, free."""
    queries = ["SELECT COUNT(*) AS n FROM survey", "SELECT AVG(age) AS a FROM survey"]
    body = {"queries": queries, "spend": {"epsilon": 0.01}}
    parts = []
    for weights in (None, [10_000, 1], [1, 10_000]):
        reply = door.post("/v1/datasets/survey/plan", body | {"weights": weights}, "analyst")
        assert reply.status_code == 200
        parts.append(wire.from_json(reply.json()["queries"][0]["spend"]).exact)
    assert parts[2] < parts[0] < parts[1]
    refused = door.post("/v1/datasets/survey/plan", body | {"weights": [1]}, "analyst")
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "bad-question")


def test_a_plan_buys_no_intervals_over_http(door: Door) -> None:
    """The error of a quantile is then that of its value; the job asks it so, with a total and with spends."""
    queries, spend = ["SELECT MEDIAN(age) AS m FROM survey"], {"epsilon": 0.5}
    errors = []
    for interval in (True, False):
        body = {"queries": queries, "spend": spend, "interval": interval}
        reply = door.post("/v1/datasets/survey/plan", body, "analyst").json()
        errors.append(reply["queries"][0]["error"])
        for price in ({"spend": spend}, {"spends": [spend]}):
            asked = QueriesBody(queries=queries, interval=interval, **price)
            with survey() as db:
                (answer,) = list(kinds._queries(db, asked))[-1].result["answers"]
                assert any("no interval was bought" in note for note in answer["notes"]) is not interval
    assert errors[1] < errors[0]
    refused = door.post("/v1/datasets/survey/plan", body | {"interval": "no"}, "analyst")
    assert refused.status_code == 400


def test_counts_are_planned_as_one_design_over_http(door: Door) -> None:
    """A plan says which queries share a design; the job asks them at one debit, or one by one where it is told so."""
    office = door.office
    counts = [f"SELECT COUNT(*) AS n FROM survey WHERE age BETWEEN {low} AND {low + 30}" for low in (10, 20, 30, 40)]
    asked = {"queries": counts, "spend": {"epsilon": 0.3, "delta": 1e-7}, "law": "gaussian"}
    told = door.post("/v1/datasets/survey/plan", asked, "analyst").json()["queries"]
    assert [query["together"] for query in told] == [[0, 1, 2, 3]] * 4
    before = len(office.databases["survey"].transcript())
    for more, debits in (({}, 1), ({"together": False}, 4)):
        reply = door.post("/v1/datasets/survey/jobs", {"kind": "queries", "parameters": asked | more}, "analyst")
        assert reply.status_code == 202, reply.text
        while (job := door.get(f"/v1/jobs/{reply.json()['id']}", "analyst").json())["state"] in ("waiting", "running"):
            time.sleep(0.01)
        assert (job["state"], job["done"], job["error"]) == ("done", 4, None)
        assert all(answer["low"][0][0] < answer["rows"][0][0] for answer in job["result"]["answers"])
        after = len(office.databases["survey"].transcript())
        assert after - before == debits
        before = after


MEAN = "SELECT AVG(income) AS m FROM survey"


def test_bounds_are_searched_over_http_and_by_a_client(tmp_path: Path) -> None:
    """The field of sql, explain and afford; a share that holds the search alone is refused before it."""
    office = Office(tmp_path, survey=survey(budget=sulq.Epsilon(3)))
    ledger = office.databases["survey"]._ledger
    ledger.share("other", Share.of("1/6"))
    with Door(office) as door, Loop(door.app) as loop:
        body = {"sql": MEAN, "spend": {"epsilon": 0.6}, "bounds": "auto"}
        told = door.post("/v1/datasets/survey/explain", body, "analyst").json()
        assert float(wire.from_json(told["left"]).exact) == pytest.approx(2.4)
        run = door.post(
            AFFORD, {"asks": [{"sql": MEAN, "spend": {"epsilon": 0.6}}], "bounds": "auto"}, "analyst"
        ).json()
        assert (len(run["asks"]), run["fits"]) == (2, True)
        refused = door.post("/v1/datasets/survey/sql", body, "other").json()
        assert refused["error"]["code"] == "budget-exceeded"
        assert ledger.totals.events == 0
        found = door.post("/v1/datasets/survey/sql", body, "analyst").json()
        assert float(wire.from_json(found["spent"]).exact) == pytest.approx(0.6)
        assert found["notes"][0].startswith("values are clipped: income to [")
        assert list(found["bounds"]) == ["income"]
        assert ledger.totals.events == 2
        wrong = door.post("/v1/datasets/survey/sql", body | {"bounds": "wide"}, "analyst").json()
        assert wrong["error"]["code"] == "bad-request"
        with Client("http://localhost/survey", office.tokens["analyst"], transport=loop.transport) as far:
            mean = far.mean("income", spend=sulq.Epsilon(0.6), bounds="auto", fresh=True)
            assert float(mean.spent.exact) == pytest.approx(0.6)
            again = far.sql(MEAN, spend=sulq.Epsilon(0.6), bounds="auto")
            assert (again.reused, again.spent.amount) == (True, 0)
            with pytest.raises(BudgetExceeded):
                far.sum("income", spend=sulq.Epsilon(2), bounds="auto")
        assert ledger.totals.events == 4


def test_a_search_for_bounds_is_not_paid_where_the_answer_cannot_be_sent_T45(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second of two asks is looked at before the first is debited. Control: with room for it both are paid."""
    body = {"sql": "SELECT age, AVG(income) AS m FROM survey GROUP BY age", "spend": {"epsilon": 1}, "bounds": "auto"}
    with Door(Office(tmp_path, survey=survey())) as door:
        frames = answer_length.MAX_FRAME_BYTES
        monkeypatch.setattr(answer_length, "MAX_FRAME_BYTES", 10_000)
        refused = door.post("/v1/datasets/survey/sql", body, "analyst")
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "too-large")
        assert door.office.databases["survey"].spent.amount == 0
        monkeypatch.setattr(answer_length, "MAX_FRAME_BYTES", frames)
        assert door.post("/v1/datasets/survey/sql", body, "analyst").status_code == 200
        assert door.office.databases["survey"].spent.amount > 0


def test_a_stored_answer_is_given_or_none_and_nothing_is_paid_SR12(tmp_path: Path) -> None:
    """`stored` gives what `reuse` would give free. Control: `reuse` buys what is not there."""
    question = wire.to_json(sulq.Sums((sulq.lit(1),)))
    body = {"question": question, "spend": {"epsilon": 0.5}}
    path = "/v1/datasets/survey/ask"
    with Door(Office(tmp_path, survey=survey())) as door:
        ledger = door.office.databases["survey"]
        assert door.post(path, body | {"stored": True}, "analyst").json() == {"answer": None}
        assert ledger.spent.amount == 0
        bought = wire.from_json(door.post(path, body | {"reuse": True}, "analyst").json()["answer"])
        spent = ledger.spent
        assert spent.amount > 0
        stored = wire.from_json(door.post(path, body | {"stored": True}, "analyst").json()["answer"])
        assert (stored.value, stored.reused, ledger.spent) == (bought.value, True, spent)
