"""The same question again and again: noise averages out, and every repeat is paid for (T10, T62)."""

from __future__ import annotations

import math
from typing import cast

from sulq.answers.answer import Answer
from sulq.answers.oracle import Oracle
from sulq.audit.door import Door
from sulq.audit.finding import Finding, allowed_by
from sulq.language.privacy import Epsilon, Rho
from sulq.language.question import Sums
from sulq.language.rowfn import Lit, RowFn


def averaging(
    oracle: Door, *, target: RowFn, secret: RowFn, has: bool, spend: Epsilon | Rho, repeats: int = 16
) -> Finding:
    """Count one person's bit many times, each time for its part of the spend, and guess from the mean.

    The best an attacker can do with a budget is one ask: the mean of k answers at a kth of the price each is
    noisier by sqrt(k), for Laplace noise, and as noisy for Gaussian.

    Args:
        oracle: Whom to ask.
        target: A condition that singles the person out.
        secret: A condition, true of some.
        has: Whether the person has the secret: known to the auditor.
        spend: What to pay in all.
        repeats: How often to ask.
    """
    question = Sums((Lit(1),), where=target & secret)
    share = spend.share(1 / repeats)
    return _guessed(oracle, [_number(oracle.ask(question, spend=share)) for _ in range(repeats)], has=has)


def rewording(
    oracle: Oracle, *, target: RowFn, secret: RowFn, has: bool, spend: Epsilon | Rho, repeats: int = 16
) -> Finding:
    """Ask the same in other words each time, at the full price, where stored answers are given again (SR12).

    The curator sees that they mean the same: the first is charged, the others are its number again and tell
    nothing more.
    """
    words = (target & secret, secret & target)
    asked = [_number(oracle.ask(Sums((Lit(1),), where=words[i % 2]), spend=spend, reuse=True)) for i in range(repeats)]
    return _guessed(oracle, asked, has=has)


def _number(answer: object) -> float:
    return float(cast("Answer", answer).released.values().ravel()[0])


def _guessed(oracle: Door, answers: list[float], *, has: bool) -> Finding:
    guess = math.fsum(answers) / len(answers) > 0.5
    told = f"{len(answers)} answers, {len(set(answers))} of them different"
    return Finding("averaging", int(guess == has), 1, allowed_by(oracle.facts, presence=False), told)
