"""Asking through the clerk: what could not be sent back is refused before it is paid for."""

from __future__ import annotations

import json

import pytest

import sulq
from sulq.errors import CuratorError, QuestionError
from sulq.server import asking, frames
from sulq.terms import wire
from tests.server.service import Running, clerk_alone

ONE = sulq.Sums((sulq.lit(1),))


def ask(running: Running, question: object) -> object:
    body = {"question": wire.to_json(question), "spend": wire.to_json(sulq.Epsilon(0.01))}
    return wire.from_json(running.ask("alice", "ask", body)["answer"])


def spent(running: Running) -> object:
    return wire.from_json(running.ask("owner", "budget")["spent"]).amount


def test_T45_an_answer_too_long_to_send_is_refused_before_it_is_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """More questions together, or more cells, than a frame holds; the fewer that fit are answered."""
    with clerk_alone() as running:
        cells = sulq.Sums((sulq.lit(1),) * 40, None, (sulq.each(sulq.col("income")),))
        with pytest.raises(QuestionError) as refused:
            ask(running, cells)
        monkeypatch.setattr(asking, "MOST", 2**16)
        with pytest.raises(QuestionError) as several:
            ask(running, sulq.Together((ONE,) * 50))
        assert (refused.value.code, several.value.code) == ("too-large", "too-large")
        assert spent(running) == 0
        assert len(ask(running, sulq.Together((ONE,) * 20))) == 20


def test_a_reply_to_questions_asked_together_grows_with_their_number() -> None:
    """Not with its square: twice the questions, twice the bytes. The estimate that refuses is not below the truth."""
    with clerk_alone() as running:
        sizes = []
        for number in (20, 40, 80):
            body = {"question": wire.to_json(sulq.Together((ONE,) * number)), "spend": wire.to_json(sulq.Epsilon(1))}
            reply = running.ask("alice", "ask", body)
            sizes.append(len(json.dumps(reply)))
            event = wire.from_json(reply["answer"])[0].event
            assert sizes[-1] < len(wire.encode(event)) + number * (asking.SHORT + asking.LONGEST_NUMBER) * 2
    assert sizes[2] - sizes[1] < 2.1 * (sizes[1] - sizes[0])


def test_T45_a_reply_that_is_too_long_all_the_same_is_no_free_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups found in the data may be more than foreseen: the debit stands, and the outcome says so."""
    with clerk_alone() as running:
        ask(running, ONE)
        before = spent(running)
        sent = frames.send

        def short(sock: object, obj: dict) -> None:
            if "answer" in obj.get("ok", {}):
                raise QuestionError("too-large", "A message between the curator's parts is too long.")
            sent(sock, obj)

        monkeypatch.setattr(frames, "send", short)
        with pytest.raises(CuratorError) as failed:
            ask(running, ONE)
        assert failed.value.code == "engine-failed"
        monkeypatch.undo()
        assert spent(running) - before == sulq.Epsilon(0.01).exact
