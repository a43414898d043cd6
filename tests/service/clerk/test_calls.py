"""Every call of the clerk's table, over its socket: who may make it, and what comes back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import sulq
from sulq.answers import wire
from sulq.answers.answer import Answer
from sulq.answers.plan import Plan
from sulq.errors import AccessDenied, BudgetExceeded, QuestionError, SulqError
from sulq.language.facts import Facts
from sulq.service.clerk.calls import CALLS
from sulq.service.clerk.tokens import hashed
from sulq.service.ipc import SocketPool
from tests.service.service import Running, clerk_alone

ONE = {"question": wire.to_json(sulq.Sums((sulq.lit(1),))), "spend": wire.to_json(sulq.Epsilon(0.5))}


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with clerk_alone() as found:
        yield found


@pytest.fixture
def line(running: Running) -> Iterator[SocketPool]:
    found = SocketPool(running.socket, timeout=120)
    yield found
    found.close()


def asked(
    line: SocketPool, running: Running, who: str, call: str, body: dict | None = None, *, dataset: object = "survey"
):
    return line.ask(call, token=running.tokens[who], dataset=dataset, body=body)


def test_facts_plans_and_answers_come_back_as_values(running: Running, line: SocketPool) -> None:
    """Facts, a plan and an answer cross the socket as canonical JSON and read back as themselves."""
    facts = wire.from_json(asked(line, running, "alice", "facts")["facts"])
    assert isinstance(facts, Facts)
    assert facts.table == "survey"
    plan = wire.from_json(asked(line, running, "alice", "foresee", ONE)["plan"])
    assert isinstance(plan, Plan)
    answer = wire.from_json(asked(line, running, "alice", "ask", ONE)["answer"])
    assert isinstance(answer, Answer)
    assert abs(float(answer.value) - 2000) < 200
    assert answer.spent == sulq.Epsilon(0.5)


def test_a_token_says_who_calls(running: Running, line: SocketPool) -> None:
    """Whoami gives name, role and scope; a wrong token gives nothing, in any call but health.

    The stored hash of a good token is a wrong one: a stolen access store opens nothing (T80).
    """
    assert asked(line, running, "alice", "whoami")["datasets"] == ["survey"]
    assert line.ask("health")["status"] == "ok"
    for call in set(CALLS) - {"health"}:
        for token in (None, "", "0" * 64, "a" * 10_000, 7, hashed(running.tokens["owner"])):
            with pytest.raises(AccessDenied) as refused:
                line.ask(call, token=token, dataset="survey", body=ONE)
            assert refused.value.code == "unauthorized"


def test_each_role_reaches_its_calls_and_no_other_T79(running: Running, line: SocketPool) -> None:
    """The table's roles are what is enforced, call by call; whoever is let in gets another answer than `forbidden`."""
    for name, call in CALLS.items():
        for who, role in (("owner", "owner"), ("alice", "analyst"), ("auditor", "auditor")):
            body = {"nothing": 1}  # refused by every call that lets one in
            code = "ok"
            try:
                asked(line, running, who, name, body)
            except SulqError as error:
                code = error.code
            allowed = not call.roles or role in call.roles
            assert (code == "forbidden") is not allowed, (name, role, code)


def test_another_dataset_and_none_are_answered_alike_T83(running: Running, line: SocketPool) -> None:
    """What an analyst may not see is not found, word for word as what is not there."""
    running.clerk.datasets["secret"] = running.clerk.datasets["survey"]
    try:
        told = []
        for dataset in ("secret", "nothing", None):
            with pytest.raises(AccessDenied) as refused:
                asked(line, running, "alice", "facts", dataset=dataset)
            told.append(refused.value.args)
        assert told[0] == told[1] == told[2]
        assert told[0][0] == "not-found"
        assert asked(line, running, "owner", "facts", dataset="secret")
        assert [item["name"] for item in asked(line, running, "alice", "datasets")["datasets"]] == ["survey"]
    finally:
        del running.clerk.datasets["secret"]


def test_bad_bodies_are_refused_and_cost_nothing(running: Running, line: SocketPool) -> None:
    """A wrong kind, a missing field, one too many: a clear refusal each, and the budget stands."""
    before = asked(line, running, "owner", "facts")["facts"]["spent"]
    for body in (
        {}, {"question": 1}, {"question": {"kind": "Epsilon", "epsilon": 1}}, {**ONE, "spend": {"kind": "Unit"}},
        {**ONE, "key": 7}, {**ONE, "reuse": 1}, {**ONE, "extra": 1}, {**ONE, "spend": 0.5},
    ):  # fmt: skip
        with pytest.raises(QuestionError):
            asked(line, running, "alice", "ask", body)
    with pytest.raises(BudgetExceeded):
        asked(line, running, "alice", "ask", {**ONE, "spend": wire.to_json(sulq.Epsilon(1000))})
    assert asked(line, running, "owner", "facts")["facts"]["spent"] == before


def test_an_unknown_call_is_refused(line: SocketPool) -> None:
    """There is no call but those of the table."""
    for frame in ({"call": "nothing"}, {"call": 1}, {}, {"call": "facts", "body": []}):
        assert line.call(frame)["error"]["code"] == "bad-request"


def test_a_token_that_was_revoked_is_refused_from_the_next_call_T85(running: Running, line: SocketPool) -> None:
    """An owner lets somebody in and out again; the token is given once and ends at once."""
    new = asked(line, running, "owner", "add_principal", {"name": "eve", "role": "analyst", "days": 1})["token"]
    assert line.ask("whoami", token=new)["name"] == "eve"
    assert new not in str(asked(line, running, "owner", "principals"))
    assert hashed(new) not in str(asked(line, running, "owner", "principals"))
    asked(line, running, "owner", "revoke", {"name": "eve"})
    with pytest.raises(AccessDenied):
        line.ask("whoami", token=new)
