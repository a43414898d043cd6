"""The Oracle at the far end: keys on every ask, values checked as they come back."""

from __future__ import annotations

import json

import httpx
import pytest

import sulq
from sulq.client.http import Http
from sulq.client.oracle import RemoteOracle
from sulq.errors import CuratorError

QUESTION = sulq.Sums((sulq.lit(1),))


def test_every_ask_has_a_key_of_its_own_T44() -> None:
    """Two asks have different keys, of 128 bits; a key that is given is used."""
    seen = []

    def reply(request: httpx.Request) -> httpx.Response:
        seen.append(json.loads(request.content))
        return httpx.Response(
            400, json={"error": {"kind": "QuestionError", "code": "closed", "message": "", "remedy": ""}}
        )

    oracle = RemoteOracle(Http("http://localhost/survey", "t", transport=httpx.MockTransport(reply)))
    for key, reuse in ((None, False), (None, True), ("mine", False)):
        with pytest.raises(sulq.errors.QuestionError):
            oracle.ask(QUESTION, spend=sulq.Epsilon(0.1), key=key, reuse=reuse)
    first, second, third = seen
    assert first["key"] != second["key"]
    assert len(first["key"]) == 32
    assert third["key"] == "mine"
    assert [body["reuse"] for body in seen] == [False, True, False]


@pytest.mark.parametrize("tree", [{}, {"answer": None}, {"answer": 3}, {"answer": {"kind": "Epsilon", "epsilon": 1}}])
def test_a_reply_of_another_kind_is_not_taken_for_an_answer(tree: dict[str, object]) -> None:
    """Whatever stands where an answer should is the far side's failure."""
    http = Http("http://localhost/survey", "t", transport=httpx.MockTransport(lambda _: httpx.Response(200, json=tree)))
    with pytest.raises(CuratorError) as caught:
        RemoteOracle(http).ask(QUESTION, spend=sulq.Epsilon(0.1))
    assert caught.value.code == "unreachable"
