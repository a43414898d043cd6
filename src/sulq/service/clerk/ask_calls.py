"""The calls that ask: facts, foresee, ask. The curator is the real one; what it says goes back as it is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Final, TypeVar

from sulq.answers import wire
from sulq.answers.oracle import Oracle
from sulq.errors import QuestionError, SetupError
from sulq.language.privacy import Loss
from sulq.language.question import Question, Sums
from sulq.service.clerk.open_dataset import OpenDataset
from sulq.service.clerk.request import Request
from sulq.service.ipc import MAX_FRAME_BYTES, Frame
from sulq.service.schedule import ScheduledAsk

SHORT_QUESTION_CHARACTERS: Final = 1000  # characters: what a question of few numbers is written in
MAX_NUMBER_CHARACTERS: Final = 21  # characters of a 64-bit number, its sign and a comma

T = TypeVar("T")


def facts(request: Request) -> Frame:
    """Everything public, with what is left for this analyst."""
    request.only()
    return {"facts": wire.to_json(request.held.oracle(request.whose).facts)}


def foresee(request: Request) -> Frame:
    """Price and accuracy; free, reads no row."""
    request.only("question", "spend")
    plan = request.held.oracle(request.who.name).foresee(request.question(), spend=request.spend())
    return {"plan": wire.to_json(plan)}


def ask(request: Request) -> Frame:
    """Pay and answer."""
    request.only("question", "spend", "key", "reuse")
    question, spend = request.question(), request.spend()
    key, reuse = request.optional("key"), request.truth("reuse")
    oracle = request.held.oracle(request.who.name)
    check_length(oracle, question, spend)
    with request.held.asking():
        return timed(
            request.held,
            request.who.name,
            lambda: {"answer": wire.to_json(oracle.ask(question, spend=spend, key=key, reuse=reuse))},
        )


def check_length(oracle: Oracle, question: Question, spend: Loss | None) -> None:
    """Refuse, before anything is paid, a question whose answer would be longer than what one frame carries."""
    if isinstance(question, Sums) and not question.by and len(wire.encode(question)) < SHORT_QUESTION_CHARACTERS:
        return
    plan = oracle.foresee(question, spend=spend)
    numbers = sum(part.tally.cells * part.tally.width for part in plan.parts)
    once = len(wire.encode(plan.event))  # the first answer says what all of them cost together
    if once + numbers * MAX_NUMBER_CHARACTERS + len(plan.parts) * SHORT_QUESTION_CHARACTERS > MAX_FRAME_BYTES // 2:
        raise QuestionError("too-large", "The answer would be longer than the server sends at once.")


def timed(held: OpenDataset, whose: str, work: Callable[[], T]) -> T:
    """Do what reads rows, in a slot of its dataset; under a release schedule its outcome leaves at its tick.

    The slot is free again when the work is done; until its tick nobody finds the answer in any book (`Paced`).
    """
    schedule = held.schedule
    if schedule is None:
        with held.slot(whose):
            return work()
    turn = ScheduledAsk(schedule)
    try:
        with ExitStack() as slot, ExitStack() as times:
            slot.enter_context(held.slot(whose))
            if turn.late:
                raise SetupError("not-ready", "Too many questions are under way.", "Try again in a moment.")
            turn.worked = slot.close
            if held.rows is not None:
                end = turn.arrived + schedule.period
                times.enter_context(held.rows.until(end, end - schedule.period / 2))
            if held.paced is not None:
                times.enter_context(held.paced.during(turn))
            return work()
    finally:
        if not turn.wait():
            held.late += 1
