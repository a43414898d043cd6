"""The clerk as an Oracle: what the web process compiles SQL against.

The web process holds no rows and no ledger; it sends questions with the caller's
own token, and the clerk checks the token at each call.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final, cast

from sulq.answers import wire
from sulq.answers.answer import Answer, Answers
from sulq.answers.plan import Plan
from sulq.language.facts import Facts
from sulq.language.privacy import Loss
from sulq.language.question import Question
from sulq.service.ipc import opened

MOVING: Final = ("spent", "remaining")
RHO: Final = "rho"  # moves too, and may be none
Call = Callable[[Mapping[str, object]], Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class ClerkClient:
    """The clerk, as the holder of one token may call it."""

    call: Call
    token: str | None = field(repr=False)  # the bearer token itself: its hash, which is stored, opens nothing

    def ask(
        self, name: str, body: Mapping[str, object] | None = None, *, dataset: str | None = None
    ) -> dict[str, object]:
        """One call of the clerk's table: what it gives, or its error, raised here."""
        return opened(self.call({"call": name, "token": self.token, "dataset": dataset, "body": dict(body or {})}))


def facts_of(tree: Mapping[str, object]) -> Facts:
    """Facts from their JSON: of one ask to the next only what is spent and left changes, and is read anew."""
    moving = {name: wire.from_json(tree[name]) for name in MOVING}
    fixed = json.dumps({name: value for name, value in tree.items() if name not in (*MOVING, RHO)})
    spent, remaining = cast("tuple[Loss, Loss]", tuple(moving.values()))
    rho = cast("Fraction | None", wire.from_json(tree.get(RHO)))
    return replace(_fixed(fixed), spent=spent, remaining=remaining, rho=rho)


@functools.lru_cache(maxsize=256)
def _fixed(text: str) -> Facts:
    nothing = {name: {"kind": "Epsilon", "epsilon": 1} for name in MOVING}  # stands where the moving parts will
    return cast("Facts", wire.from_json({**json.loads(text), **nothing}))


@dataclass(frozen=True, slots=True)
class ClerkOracle:
    """One dataset behind the clerk."""

    clerk: ClerkClient
    dataset: str

    @property
    def facts(self) -> Facts:
        """Everything public, as this caller may see it."""
        return facts_of(cast("dict[str, object]", self.clerk.ask("facts", dataset=self.dataset)["facts"]))

    def ask(
        self, question: Question, *, spend: Loss | None = None, key: str | None = None, reuse: bool = False
    ) -> Answer | Answers:
        """Pay and answer."""
        body = {"question": wire.to_json(question), "spend": wire.to_json(spend), "key": key, "reuse": reuse}
        return cast("Answer | Answers", wire.from_json(self.clerk.ask("ask", body, dataset=self.dataset)["answer"]))

    def foresee(self, question: Question, *, spend: Loss | None = None) -> Plan:
        """Price, sensitivity, mechanism and accuracy; free."""
        body = {"question": wire.to_json(question), "spend": wire.to_json(spend)}
        return cast("Plan", wire.from_json(self.clerk.ask("foresee", body, dataset=self.dataset)["plan"]))
