"""Whom an attack asks, and what it recovered, beside what the guarantee allows: one shape for all attacks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Protocol

from sulq.answers.answer import Answer, Answers
from sulq.audit.interval import binomial_tail
from sulq.kernel.facts import rho_within
from sulq.language.facts import Facts
from sulq.language.privacy import Epsilon, EpsilonDelta, Loss, Queries, Rho, SubLinear, Unit
from sulq.language.question import Question

ALPHA: Final = 1e-7  # how often luck alone may pass for a broken guarantee
RARE: Final = 1e-12  # the delta at which a zero-concentrated loss is read


class Door(Protocol):
    """What an attack needs of whom it asks: less than an Oracle, and nothing that an analyst does not have."""

    @property
    def facts(self) -> Facts:
        """Domain, unit, budget policy, what remains; all public."""
        ...

    def ask(self, question: Question, *, spend: Loss | None = None) -> Answer | Answers:
        """Pay and answer."""
        ...


@dataclass(frozen=True, slots=True)
class Finding:
    """Guesses about people, how many were right, and the chance of a right guess that the guarantee allows.

    Privacy: let each person's bit be fair and independent of all others. Under pure epsilon the number of
    right guesses is at most a binomial one of chance e^epsilon/(1 + e^epsilon), whatever the attack and
    even if all guesses come of one answer [SNJ23]; so more than that, but for alpha, is a broken guarantee.
    With a delta or a rho the chance holds for each guess by itself; that many behave like coins is then not proved.
    """

    attack: str
    right: int
    guesses: int
    allowed: float
    told: str = ""

    @property
    def rate(self) -> float:
        """The part of the guesses that were right; one half is what a coin gets."""
        return self.right / self.guesses

    @property
    def within(self) -> bool:
        """Whether the guarantee is kept: so many right guesses are not out of its reach."""
        return binomial_tail(self.right, self.guesses, self.allowed) > ALPHA

    @property
    def succeeded(self) -> bool:
        """Whether nearly all was recovered: what an attack must do where there is no noise."""
        return self.rate >= 0.95

    def __add__(self, other: Finding) -> Finding:
        """Both together, where one attack was run on several databases."""
        told = self.told or other.told
        allowed = max(self.allowed, other.allowed)
        return Finding(self.attack, self.right + other.right, self.guesses + other.guesses, allowed, told)

    def __str__(self) -> str:
        word = "within the guarantee" if self.within else "BEYOND the guarantee"
        more = f"; {self.told}" if self.told else ""
        return (
            f"{self.attack}: {self.right} of {self.guesses} right ({self.rate:.3f}; a coin 0.500, allowed "
            f"{self.allowed:.3f}), {word}{more}"
        )


def epsilon_of(rho: float, delta: float) -> float:
    """Smallest epsilon for which a zero-concentrated loss rho is (epsilon, delta)-private."""
    low, high = 0.0, rho + 2.0 * math.sqrt(rho * math.log(1.0 / delta)) + 1.0
    for _ in range(200):
        middle = (low + high) / 2.0
        if middle > 0.0 and rho_within(middle, delta) >= rho:
            high = middle
        else:
            low = middle
    return high


def exchanges(unit: Unit, *, presence: bool) -> int:
    """How many steps of the relation a fact about one person is: whether they are there, or what they are like.

    Where people come and go, or are blanked, another value is a person less and one more: two steps [S3.3].
    """
    if unit.neighbors == "replace_one":
        return 1
    return 1 if presence else 2


def allowed_chance(loss: Loss | SubLinear, steps: int = 1) -> float:
    """The best chance of guessing a fair bit of one person from answers of this total loss.

    Privacy: odds of 1 move to at most e^epsilon, so the chance is e^epsilon/(1 + e^epsilon); with
    delta (e^epsilon + delta)/(1 + e^epsilon). A rho is read at a delta of 1e-12, or by Pinsker's inequality,
    whichever is less: a guess is right with chance at most 1/2 + sqrt(rho/2)/2.
    """
    match loss:
        case Epsilon():
            return _chance(float(loss.amount) * steps, 0.0)
        case EpsilonDelta():
            if not loss.amount:
                return 0.5
            grouped = loss.group(steps) if loss.delta else None
            return _chance(float(loss.amount) * steps, float(grouped.exact_delta) if grouped else 0.0)
        case SubLinear():
            failing = math.fsum(math.exp(float(loss.exact) * i) for i in range(steps)) * float(loss.exact_delta)
            return min(1.0, _chance(float(loss.exact) * steps, 0.0) + failing)
        case Rho():
            rho = float(loss.amount) * steps**2
            if not rho:
                return 0.5
            return min(_chance(epsilon_of(rho, RARE), RARE), 0.5 + math.sqrt(rho / 2.0) / 2.0)
        case Queries():
            return 1.0  # a number of queries alone says nothing; the policy does


def allowed_by(facts: Facts, *, presence: bool) -> float:
    """What a database's own books allow after all its answers so far: public, so anyone can work it out."""
    spent = facts.budget if isinstance(facts.budget, SubLinear) else facts.spent
    return allowed_chance(spent, exchanges(facts.unit, presence=presence))


def _chance(epsilon: float, delta: float) -> float:
    odds = math.exp(-min(epsilon, 700.0))
    return min(1.0, (1.0 + delta * odds) / (1.0 + odds))
