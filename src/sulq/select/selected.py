"""What a selection gives: the chosen candidate, how good it is, what it cost."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Final

import numpy as np

from sulq.answers import wire
from sulq.answers.answer import Receipt
from sulq.answers.oracle import SpendPlan
from sulq.display.numbers import figure
from sulq.errors import QuestionError, SetupError, SulqError
from sulq.forms.parameters import number
from sulq.language.law import ExponentialLaw, FlipLaw, MetricLaw
from sulq.language.privacy import Epsilon, EpsilonDelta, Loss, Queries, Rho, Unit
from sulq.language.question import Choose, Holistic

FORMAT: Final = 1  # of a saved selection
LAWS: Final = (FlipLaw, ExponentialLaw, MetricLaw)


@dataclass(frozen=True, slots=True)
class Selected:
    """A candidate drawn by its score. `candidate` is its name or value, `place` its number among all.

    Privacy: the candidate alone is released, by permute-and-flip or the exponential mechanism (SR4).
    Accuracy: `within(beta)`, whatever the scores are [S3.9]. Which candidate is best is not claimed.
    Source: docs/theory/choose.md.
    """

    candidate: object
    place: int
    candidates: int
    law: FlipLaw | ExponentialLaw | MetricLaw
    step: Fraction  # one unit of score, in the utility's own unit
    said: str  # what the utility is
    spent: Loss
    unit: Unit
    guarantee: str
    receipts: tuple[Receipt, ...]

    def within(self, beta: float = 0.05) -> float:
        """How far below the best candidate's utility the chosen one's may be, except with probability beta."""
        rate = number(beta)
        if not 0 < rate < 1:
            raise QuestionError("bad-literal", "A probability lies strictly between 0 and 1.")
        return float(self.law.accuracy(rate) * self.step)

    def to_json(self) -> dict[str, object]:
        """All of it as plain JSON; a receipt without the ledger's own code, which stays with the ledger."""
        return {
            "format": FORMAT,
            "candidate": wire.to_json(self.candidate),
            "place": self.place,
            "candidates": self.candidates,
            "utility": self.said,
            "within": self.within(),
            "law": wire.to_json(self.law),
            "step": wire.to_json(self.step),
            "spent": wire.to_json(self.spent),
            "unit": wire.to_json(self.unit),
            "guarantee": self.guarantee,
            "receipts": [
                {"seq": receipt.seq, "entry": receipt.entry, "plan": receipt.plan} for receipt in self.receipts
            ],
        }

    def save(self, path: str | Path) -> None:
        """Write it as JSON, for `sulq.select.load`.

        Raises:
            SetupError: `missing-file`: the file cannot be written.
        """
        text = json.dumps(self.to_json(), indent=1, ensure_ascii=False, allow_nan=False)
        try:
            Path(path).write_text(f"{text}\n", encoding="utf-8")
        except OSError:
            raise SetupError("missing-file", f"The selection cannot be written to {path}.") from None

    def __repr__(self) -> str:
        return (
            f"{self.candidate}: the chosen one of {self.candidates}; its {self.said} is within {figure(self.within())} "
            f"of the best, at 95%\nspent {self.spent}; protects {self.unit}"
        )


def load(path: str | Path) -> Selected:
    """The selection that `.save(path)` wrote.

    Raises:
        SetupError: `missing-file`: there is no such file.
        QuestionError: `bad-release`: it is no selection, or of a format this version does not know.
    """
    try:
        text = Path(path).read_bytes()
    except OSError:
        raise SetupError("missing-file", f"There is no selection in {path}.") from None
    unreadable = QuestionError("bad-release", "This is not a selection that sulq wrote.")
    try:
        told = wire.strict(text)
        if not isinstance(told, dict) or told["format"] != FORMAT:
            raise unreadable
        law, step, spent, unit = (wire.from_json(told[name]) for name in ("law", "step", "spent", "unit"))
        receipts = tuple(Receipt(int(one["seq"]), str(one["entry"]), str(one["plan"]), "") for one in told["receipts"])
        candidate, place, candidates = wire.from_json(told["candidate"]), int(told["place"]), int(told["candidates"])
        said, guarantee = str(told["utility"]), str(told["guarantee"])
    except (SulqError, LookupError, TypeError, ValueError):
        raise unreadable from None
    losses = (Epsilon, EpsilonDelta, Queries, Rho)
    if not isinstance(law, LAWS) or not isinstance(step, Fraction):
        raise unreadable
    if not isinstance(spent, losses) or not isinstance(unit, Unit):
        raise unreadable
    return Selected(candidate, place, candidates, law, step, said, spent, unit, guarantee, receipts)


def select(
    spending: SpendPlan,
    question: Choose | Holistic,
    candidates: tuple[object, ...],
    step: Fraction,
    said: str,
    *,
    weights: tuple[int, ...] = (),
) -> Selected:
    """Draw one of the candidates: the whole spending, at one debit. What does not fit is refused before it.

    `weights`: of a base measure, how often each stands among those that the question chooses from.
    """
    law = spending.foresee(question).parts[0].laws[0]
    if not isinstance(law, LAWS) or law.candidates != (sum(weights) or len(candidates)):
        many = law.candidates if isinstance(law, LAWS) else 0
        raise QuestionError("bad-parameter", f"The score is of {many} candidates; {len(candidates)} are named.")
    spending.plan(1, question)
    answer = spending.one(question)
    place = int(answer.released.units[0, 0])
    if weights:
        place = int(np.searchsorted(np.cumsum(weights), place, side="right"))
    receipts = tuple(replace(receipt, mac="") for receipt in spending.receipts)  # the ledger's own code stays with it
    return Selected(
        candidates[place], place, len(candidates), law, step, said,
        spending.spent, spending.facts.unit, spending.guarantee, receipts,
    )  # fmt: skip
