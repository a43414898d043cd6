"""What a total loss means: how many guesses about people may be right, and in plain words how far odds moved.

Privacy: answers whose total loss is epsilon move the odds of any fact about one person by at most e^epsilon,
for an adversary who knows everyone else [S0.3, S2.2, S4.24]. With a delta the ratio can be
larger for answers of small probability: Pr[it passes e^(epsilon + a)] <= delta/(1 - e^-a), on either side (trap 3).
All of it is known from the ledger's books alone, which are public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Protocol

from sulq.answers.answer import Answer, Answers
from sulq.audit.beliefs import most_told
from sulq.audit.statistics import binomial_tail
from sulq.kernel.facts import rho_within
from sulq.language.facts import Facts, Whose
from sulq.language.privacy import Budget, Epsilon, EpsilonDelta, EpsilonKeys, Loss, Queries, Rho, SubLinear, Unit
from sulq.language.question import Question
from sulq.language.sublinear import conf, inv_conf

MIN_LUCK: Final = 1e-7  # how often luck alone may pass for a broken guarantee
READING_DELTA: Final = 1e-12  # the delta at which a zero-concentrated loss is read
PRIORS: Final = (0.01, 0.1, 0.5)
ADDED_EPSILON: Final = 0.1  # a: what is added to epsilon so that a delta of differential privacy bounds the odds
TOLD_DELTA: Final = 1e-6  # the delta at which a zero-concentrated loss is read, where the budget has none
MAX_TOLD_FACTOR: Final = 1e6
SINCE: Final[dict[Whose, str]] = {
    "everyone": "After these answers",
    "analyst": "After your answers",
    "reports": "After these reports",
}


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
        return binomial_tail(self.right, self.guesses, self.allowed) > MIN_LUCK

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
        case EpsilonDelta() | EpsilonKeys():
            epsilon, delta = float(loss.amount), float(loss.delta)
            return _chance(epsilon * steps, min(_grouped(epsilon, delta, steps), 1.0))
        case SubLinear():
            failing = math.fsum(math.exp(float(loss.exact) * i) for i in range(steps)) * float(loss.exact_delta)
            return min(1.0, _chance(float(loss.exact) * steps, 0.0) + failing)
        case Rho():
            rho = float(loss.amount) * steps**2
            if not rho:
                return 0.5
            return min(_chance(epsilon_of(rho, READING_DELTA), READING_DELTA), 0.5 + math.sqrt(rho / 2.0) / 2.0)
        case Queries():
            return 1.0  # a number of queries alone says nothing; the policy does


def allowed_by(facts: Facts, *, presence: bool) -> float:
    """What a database's own books allow after all its answers so far: public, so anyone can work it out."""
    lost = facts.budget if isinstance(facts.budget, SubLinear) else facts.proved or facts.spent
    return allowed_chance(lost, exchanges(facts.unit, presence=presence))


def _chance(epsilon: float, delta: float) -> float:
    odds = math.exp(-min(epsilon, 700.0))
    return min(1.0, (1.0 + delta * odds) / (1.0 + odds))


@dataclass(frozen=True, slots=True)
class Moved:
    """By what factor the odds of a fact about one person can have moved, and how likely it is that they moved more."""

    factor: float
    failing: float

    def after(self, prior: float) -> tuple[float, float]:
        """Between what ends a probability lies now, that was `prior` before."""
        move = math.log(self.factor) if math.isfinite(self.factor) else math.inf
        return inv_conf(conf(prior) - move), inv_conf(conf(prior) + move)


def moved(loss: Loss, budget: Budget, steps: int = 1) -> Moved:
    """How far the odds can have moved by answers of this total loss, for a fact that is so many steps away."""
    match loss:
        case EpsilonDelta() | EpsilonKeys() if loss.delta:
            return _approximate(float(loss.amount), float(loss.exact_delta), steps)
        case Epsilon() | EpsilonDelta() | EpsilonKeys():
            return Moved(_factor(float(loss.amount) * steps), 0.0)
        case Rho() if not loss.amount:
            return Moved(1.0, 0.0)
        case Rho():
            return _approximate(epsilon_of(float(loss.amount) * steps**2, TOLD_DELTA), TOLD_DELTA, 1)
        case Queries():
            return _sublinear(loss, budget, steps)


def _sublinear(loss: Queries, budget: Budget, steps: int) -> Moved:
    """The policy's promise holds for all its queries, hence for those asked so far."""
    if not loss.queries or not isinstance(budget, SubLinear):
        return Moved(1.0, 0.0) if not loss.queries else Moved(math.inf, 1.0)
    epsilon, delta = float(budget.exact), float(budget.exact_delta)
    if budget.calibration == "laplace":
        return Moved(_factor(epsilon * steps * loss.queries / budget.queries), 0.0)
    if budget.calibration == "dp":
        return _approximate(epsilon, delta, steps)
    return Moved(_factor(epsilon), min(1.0, 2.0 * delta)) if steps == 1 else _approximate(epsilon, delta, steps)


def _approximate(epsilon: float, delta: float, steps: int) -> Moved:
    """From (epsilon, delta)-differential privacy of one step to the odds, both sides counted."""
    whole = _grouped(epsilon, delta, steps)
    return Moved(_factor(epsilon * steps + ADDED_EPSILON), min(1.0, 2.0 * whole / -math.expm1(-ADDED_EPSILON)))


def _grouped(epsilon: float, delta: float, steps: int) -> float:
    """The delta of so many steps [S4.22]; past 1 it says nothing."""
    return delta * math.fsum(math.exp(min(epsilon * i, 700.0)) for i in range(steps))


def _factor(epsilon: float) -> float:
    return math.exp(epsilon) if epsilon < 700.0 else math.inf


def report(facts: Facts, *, people: int = 4) -> list[str]:
    """What all answers so far can have told about one person, a sentence each; no row is needed to write it.

    An analyst's facts count what that one was answered, and then so does this, and says so.

    Args:
        facts: A database's or a collector's public facts: unit, budget and what is proved of its answers.
        people: The size of a group, such as a family, whose rows may tell about each other.
    """
    lost = facts.proved or facts.spent
    return sentences(facts.unit, facts.budget, lost, size=facts.size, whose=facts.whose, people=people)


def sentences(
    unit: Unit, budget: Budget, lost: Loss, *, size: int | None = None, whose: Whose = "everyone", people: int = 4
) -> list[str]:
    """The same from the books alone, where no data is open."""
    one = "row" if unit.column is None else "person"
    steps = exchanges(unit, presence=False)
    found = moved(lost, budget, steps)
    told = [f"{SINCE[whose]}, the odds that a given {one} has any property moved by at most {_times(found)}."]
    lines = ", ".join(f"{_percent(prior)} before is {_between(found, prior)} now" for prior in PRIORS)
    told.append(f"In probabilities: {lines}.")
    if steps > exchanges(unit, presence=True):
        word = "took part" if unit.neighbors == "add_remove" else "had anything to say"
        told.append(f"The odds that a given {one} {word} at all moved by at most {_times(moved(lost, budget))}.")
    group = moved(lost, budget, people * steps)
    told.append(f"Of a group of {people} that stand and fall together, the odds moved by at most {_times(group)}.")
    if whose == "analyst":
        used_up = Queries(budget.queries) if isinstance(budget, SubLinear) else budget
        whole = moved(used_up, budget, steps)
        told.append(f"Answers to others are not counted here; all that the budget allows is at most {_times(whole)}.")
    if isinstance(budget, Epsilon) and size is not None:
        told += _small(size, steps, float(budget.exact))
    told.append(
        "This holds for an adversary who knows everyone else, whatever it asked. It bounds what taking part adds; what "
        "statistics about everyone say of a kind of people, they say of those who stayed away too."
    )
    return told


def _small(size: int, steps: int, epsilon: float) -> list[str]:
    """With n epsilon below 1 even opposite data sets look alike, and how much is worth a word [S4.3]."""
    if size * epsilon >= 1:
        return []
    most = most_told(size * steps, epsilon)
    told = f"The whole budget is small for {size:,} people: whatever is asked, no test tells any two data sets of that "
    return [f"{told}size apart by more than {most:.2g} (a coin 0, certainty 1)."]


def _times(found: Moved) -> str:
    if not math.isfinite(found.factor) or found.factor > MAX_TOLD_FACTOR or found.failing >= 1.0:
        return "a factor of more than a million: this protects nobody"
    by = f"{found.factor:,.3g}" if found.factor < 100 else f"{found.factor:,.0f}"
    failing = f", except with probability {found.failing:.1g}" if found.failing else ""
    return f"a factor of {by}{failing}"


def _between(found: Moved, prior: float) -> str:
    low, high = found.after(prior)
    return _percent(prior) if low == high else f"{_percent(low)} to {_percent(high)}"


def _percent(probability: float) -> str:
    return f"{100 * probability:.2g}%" if probability < 0.995 else f"{100 * probability:.4g}%"
