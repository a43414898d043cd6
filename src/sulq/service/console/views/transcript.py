"""The transcript as people read it: who asked what, when, and at what price."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from sulq.answers.question_words import asked, read_value
from sulq.language.privacy import Budget, Epsilon, Event, Rho, Split, SubLinear, divided
from sulq.service.console.api import Api, Tree
from sulq.service.console.views.words import small

PAGE_LINES: Final = 1000
MAX_PAGES: Final = 50  # what is older is in the export


@dataclass(frozen=True, slots=True)
class TranscriptLine:
    """One ask that was charged."""

    seq: int
    time: str
    analyst: str
    asked: str
    price: str
    event: Event | None
    answered: bool


async def read(api: Api, path: str) -> list[TranscriptLine]:
    """All lines a visitor may see, oldest first."""
    found: list[TranscriptLine] = []
    after = 0
    for _ in range(MAX_PAGES):
        some = (await api.get(path, after=after, limit=PAGE_LINES))["lines"]
        found += map(_ask, some)
        if len(some) < PAGE_LINES:
            break
        after = found[-1].seq
    return found


def part_of(event: Event | None, budget: Budget, split: Split | None = None) -> float:
    """What part of a budget one ask took, as asks add up; of an EpsilonDelta budget, of the sum that it takes less of.

    There the filter adds up in two ways, and neither alone decides: a chart of parts is a sketch. `split` is how that
    budget is divided; None is the division by default.
    """
    if event is None:
        return 0.0
    match budget:
        case SubLinear():
            return event.queries / budget.queries
        case Rho():
            return float(event.rho / budget.exact)
        case Epsilon():
            return float((event.epsilon or Fraction(0)) / budget.exact)
    split = split or divided(budget, open_keys=False)
    most = split.alpha * event.rho
    blended = float(min(most if event.epsilon is None else event.epsilon, most) / split.room) if split.room else 1.0
    added = event.basic if event.epsilon is None else event.epsilon
    return blended if added is None else min(blended, float(added / budget.exact))


def running(
    lines: Sequence[TranscriptLine], budget: Budget, split: Split | None = None
) -> list[tuple[datetime.datetime, float]]:
    """What part of a budget was spent up to each line."""
    points, total = [], 0.0
    for line in lines:
        total += part_of(line.event, budget, split)
        try:
            points.append((datetime.datetime.fromisoformat(line.time), total))
        except ValueError:
            continue
    return points


def _ask(line: Tree) -> TranscriptLine:
    event = read_value(line["event"])
    return TranscriptLine(
        seq=line["seq"],
        time=line["time"] or "",
        analyst=line["analyst"] or "",
        asked=asked(read_value(line["question"])),
        price=_price(event) if isinstance(event, Event) else "",
        event=event if isinstance(event, Event) else None,
        answered=line["answer"] is not None,
    )


def _price(event: Event) -> str:
    if event.queries:
        return f"{event.queries:,} {'query' if event.queries == 1 else 'queries'}"
    if event.epsilon is not None:
        return f"ε {small(float(event.epsilon))}"
    keys = f", δ {small(float(event.key_delta))}" if event.key_delta else ""
    return f"ρ {small(float(event.rho))}{keys}"
