"""How long an answer will be: one that no frame carries is refused before anything is paid, by clerk and web alike."""

from __future__ import annotations

from typing import Final

from sulq.answers import wire
from sulq.answers.plan import Plan
from sulq.errors import QuestionError
from sulq.language.question import Question, Sums
from sulq.service.ipc import MAX_FRAME_BYTES

SHORT_QUESTION_CHARACTERS: Final = 1000  # characters: what a question of few numbers is written in
MAX_NUMBER_CHARACTERS: Final = 21  # characters of a 64-bit number, its sign and a comma


def may_be_long(question: Question) -> bool:
    """Whether an answer to it may be longer than what one frame carries."""
    return (
        not isinstance(question, Sums) or bool(question.by) or len(wire.encode(question)) >= SHORT_QUESTION_CHARACTERS
    )


def check_length(plan: Plan) -> None:
    """Refuse, before anything is paid, a question whose answer would be longer than what one frame carries."""
    numbers = sum(part.tally.cells * part.tally.width for part in plan.parts)
    once = len(wire.encode(plan.event))  # the first answer says what all of them cost together
    if once + numbers * MAX_NUMBER_CHARACTERS + len(plan.parts) * SHORT_QUESTION_CHARACTERS > MAX_FRAME_BYTES // 2:
        raise QuestionError("too-large", "The answer would be longer than the server sends at once.")
