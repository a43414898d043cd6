"""The Oracle at the far end of HTTP: questions out, answers back, both in the canonical JSON."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from types import NoneType
from typing import TypeVar, cast

from sulq.answers import wire
from sulq.answers.answer import Answer, Answers
from sulq.answers.budget import BudgetLeft
from sulq.answers.call import debit
from sulq.answers.plan import Plan
from sulq.answers.waits import Waits
from sulq.client.http import Http, Tree
from sulq.errors import CuratorError, SulqError
from sulq.language.facts import Facts
from sulq.language.privacy import EpsilonDelta, Event, Loss
from sulq.language.question import Question

T = TypeVar("T")


class RemoteOracle:
    """Asks a curator elsewhere."""

    def __init__(self, http: Http) -> None:
        self._http = http
        self.waits = Waits(far=True)

    @property
    def facts(self) -> Facts:
        """Everything public, with what is left for whoever holds the token."""
        return self.waits.run(lambda: _of(self._http.get(self._http.at()), "facts", Facts), always=False)

    def ask(
        self, question: Question, *, spend: Loss | None = None, key: str | None = None, reuse: bool = False
    ) -> Answer | Answers:
        """Pay and answer. Each ask has an idempotency key, so that one cut short is repeated and charged once (T44).

        Who asked may stop waiting; what was sent is answered and kept by the curator.
        """
        own = os.urandom(16).hex() if key is None else key
        body = _asked(question, spend) | {"key": own, "reuse": reuse}

        def send() -> Answer | Answers:
            with debit("" if reuse else own) as charged:
                tree = self._http.post(self._http.at("ask"), body, again=True)
                answer = cast("Answer | Answers", _of(tree, "answer", Answer, Answers))
                first = answer.answers[0] if isinstance(answer, Answers) else answer
                if not first.reused:
                    charged(answer.receipt.seq, answer.spent)
            return answer

        return self.waits.run(send)

    def stored(self, question: Question, *, spend: Loss | None = None) -> Answer | Answers | None:
        """A stored answer that is as accurate; None where it would have to be bought. Free."""
        body = _asked(question, spend) | {"stored": True}
        tree = self._post("ask", body)
        return _of(tree, "answer", Answer, Answers, NoneType)

    def foresee(self, question: Question, *, spend: Loss | None = None) -> Plan:
        """Price, sensitivity, mechanism and accuracy; free."""
        return _of(self._post("foresee", _asked(question, spend)), "plan", Plan)

    def afford(self, events: Sequence[Event]) -> tuple[BudgetLeft | None, ...]:
        """What would be left after each of these losses; None: it would be refused. Free."""
        runs = [(event, len(list(same))) for event, same in itertools.groupby(events)]
        asks = [{"event": wire.to_json(event), "times": times} for event, times in runs]
        tree = self._post("afford", {"asks": asks})
        lines = tree.get("asks")
        found = [_of(line, "left", BudgetLeft, NoneType) for line in (lines if isinstance(lines, list) else ())]
        return tuple(found)

    def _post(self, name: str, body: Mapping[str, object]) -> Tree:
        """A call that charges nothing; where there is no end to it nobody has to stop waiting aside."""
        return self.waits.run(lambda: self._http.post(self._http.at(name), body, again=True), always=False)


def _asked(question: Question, spend: Loss | None) -> dict[str, object]:
    """A question and its spend; the law of its noise is that of the spend, as it was chosen before."""
    law = "gaussian" if isinstance(spend, EpsilonDelta) else None
    return {"question": wire.to_json(question), "spend": wire.to_json(spend), "law": law}


def _of(tree: Tree, name: str, *kinds: type[T]) -> T:
    """A value of a reply, of a kind it may have."""
    try:
        found = wire.from_json(tree.get(name))
    except SulqError:
        found = None
    if not isinstance(found, kinds):
        raise CuratorError("unreachable", "The curator's reply could not be read; it may be of another version.")
    return found
