"""The one door between the two halves: whoever is clever sees rows only through an Oracle."""

from __future__ import annotations

from typing import Protocol

from sulq.answers.answer import Answer, Answers
from sulq.answers.plan import Plan
from sulq.language.facts import Facts
from sulq.language.privacy import Loss
from sulq.language.question import Question


class Oracle(Protocol):
    """Answers questions with noise, and foretells what an answer would cost."""

    @property
    def facts(self) -> Facts:
        """Domain, unit, budget policy, what remains; all public."""
        ...

    def ask(
        self, question: Question, *, spend: Loss | None = None, key: str | None = None, reuse: bool = False
    ) -> Answer | Answers:
        """Pay and answer; `key` makes a repeat of the same ask free of charge and noise.

        `reuse`: give a stored answer to the same question instead, free, if one is as accurate (SR12).
        """
        ...

    def foresee(self, question: Question, *, spend: Loss | None = None) -> Plan:
        """Price, sensitivity, mechanism and accuracy; free, reads no row."""
        ...
