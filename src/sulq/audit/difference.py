"""One person by subtraction: differencing, and the tracker that gets round a limit on small groups.

Both ask only about large groups; what they learn about the target is as noisy as the sum of their answers.
Source: Denning, Denning and Schwartz, "The tracker" [DDS79]; T62.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from sulq.answers.answer import Answers
from sulq.audit.door import Door
from sulq.audit.finding import Finding, allowed_by
from sulq.language.privacy import Loss
from sulq.language.question import Sums, Together
from sulq.language.rowfn import Lit, RowFn


def differencing(oracle: Door, *, targets: Sequence[tuple[RowFn, bool]], secret: RowFn, spend: Loss | None) -> Finding:
    """Count the secret among all, and among all but the target; the difference is the target's own bit.

    Args:
        oracle: Whom to ask.
        targets: For each person a condition that singles them out, and whether they have the secret.
        secret: A condition, true of some.
        spend: What to pay in all.
    """
    counts = _counts(oracle, [secret, *(secret & ~target for target, _ in targets)], spend)
    guesses = [counts[0] - count > 0.5 for count in counts[1:]]
    return _finding("differencing", oracle, guesses, targets, "two counts a person")


def tracker(
    oracle: Door, *, targets: Sequence[tuple[RowFn, bool]], secret: RowFn, padding: RowFn, spend: Loss | None
) -> Finding:
    """Four large counts a person: #(C or T) + #(not C or T) - #C - #(not C) is the count of T alone.

    `padding` is the condition C, true of about half of the rows, so that no group asked about is small.
    """
    asked = [padding, ~padding]
    for target, _ in targets:
        asked += [padding | (target & secret), ~padding | (target & secret)]
    counts = _counts(oracle, asked, spend)
    whole, pairs = counts[0] + counts[1], zip(counts[2::2], counts[3::2], strict=True)
    guesses = [one + other - whole > 0.5 for one, other in pairs]
    return _finding("tracker", oracle, guesses, targets, "four counts a person")


def _counts(oracle: Door, conditions: Sequence[RowFn], spend: Loss | None) -> list[float]:
    """Counts by conditions, asked together at one price."""
    asked = Together(tuple(Sums((Lit(1),), where=condition) for condition in conditions))
    found = cast("Answers", oracle.ask(asked, spend=spend))
    return [float(answer.released.values().ravel()[0]) for answer in found]


def _finding(
    name: str, oracle: Door, guesses: Sequence[bool], targets: Sequence[tuple[RowFn, bool]], told: str
) -> Finding:
    right = sum(guess == has for guess, (_, has) in zip(guesses, targets, strict=True))
    return Finding(name, right, len(targets), allowed_by(oracle.facts, presence=False), told)
