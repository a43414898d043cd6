"""The door an attack knocks at: an Oracle, or the desk an analyst sits at; both answer questions for a price."""

from __future__ import annotations

from typing import Protocol

from sulq.answers.answer import Answer, Answers
from sulq.language.facts import Facts
from sulq.language.privacy import Loss
from sulq.language.question import Question


class Door(Protocol):
    """What an attack needs of whom it asks: less than an Oracle, and nothing that an analyst does not have."""

    @property
    def facts(self) -> Facts:
        """Domain, unit, budget policy, what remains; all public."""
        ...

    def ask(self, question: Question, *, spend: Loss | None = None) -> Answer | Answers:
        """Pay and answer."""
        ...
