"""Oracles that note what is asked and what was answered, and one that gives noted answers again without any data."""

from __future__ import annotations

from sulq.answers import wire

Answers = list[tuple[str, object]]


class Spy:
    """Notes what is asked."""

    def __init__(self, oracle: object, asked: list) -> None:
        self.oracle, self.asked = oracle, asked

    @property
    def facts(self) -> object:
        return self.oracle.facts

    def foresee(self, question: object, *, spend: object = None) -> object:
        return self.oracle.foresee(question, spend=spend)

    def ask(self, question: object, *, spend: object = None) -> object:
        self.asked.append(question)
        return self.oracle.ask(question, spend=spend)


class Tape(Spy):
    """Notes each question's text with its answer."""

    def ask(self, question: object, *, spend: object = None) -> object:
        answer = self.oracle.ask(question, spend=spend)
        self.asked.append((wire.encode(question), answer))
        return answer


class Told(Spy):
    """Gives a tape's answers again, and has no data: what it is opened over says public facts and foresees."""

    def ask(self, question: object, *, spend: object = None) -> object:
        text, answer = self.asked.pop(0)
        assert text == wire.encode(question)  # the same answers lead to the same questions
        return answer
