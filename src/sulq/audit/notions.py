"""Two older notions of privacy, exactly, for mechanisms with few outcomes: privacy breaches and isolation [S4.29].

Both follow from epsilon-indistinguishability, with the numbers below. That ratios are within gamma for every row, all
others known, is the same thing (gamma = e^epsilon); that some breach is excluded, or that nobody is isolated, is less.
All is enumerated: every outcome, every property of a row's value, every point an adversary may name.
Source: DMNS06, section 1.2; EGS03; CDMSW05; docs/theory/semantics.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, cast

from sulq.audit.beliefs import Database, Laws
from sulq.audit.pmf import Pmf, Probability, checked, mixture
from sulq.errors import QuestionError

MAX_VALUES: Final = 12  # values of a row: 4,096 properties
MAX_TRIES: Final = 10**6  # databases times points
NONE: Final = Fraction(0)


def amplification(laws: Sequence[Pmf]) -> Probability:
    """Gamma: the largest P(y|x)/P(y|x') over all outcomes y and values x, x'; infinite where only one can give y.

    A mechanism that is epsilon-indistinguishable in a row has gamma <= e^epsilon for the laws by that row's values.
    Source: EGS03, gamma-amplification.
    """
    given = [checked(law) for law in laws]
    largest: Probability = Fraction(1)
    for outcome in dict.fromkeys(itertools.chain.from_iterable(given)):
        several = [law.get(outcome, NONE) for law in given]
        top, bottom = max(several), min(several)
        if top and not bottom:
            return math.inf
        if top:
            largest = max(largest, top / bottom)
    return largest


def breach_limit(gamma: Probability, rho1: Probability) -> Probability:
    """The largest posterior that any property of prior rho1 at most can reach: gamma rho1/(1 - rho1 + gamma rho1).

    Odds move by at most gamma. So a breach from rho1 up to rho2 is excluded wherever
    rho2 (1 - rho1)/(rho1 (1 - rho2)) > gamma; and, by the opposite property, one from rho2 down to rho1.
    Source: EGS03, Statement 1.
    """
    _check_share(rho1)
    if math.isinf(gamma):
        return 1.0
    return gamma * rho1 / (1 - rho1 + gamma * rho1)


@dataclass(frozen=True, slots=True)
class Breach:
    """The most telling outcome for a property that was unlikely: what it is, and its probability before and after."""

    before: Probability
    after: Probability
    outcome: Hashable
    values: frozenset[Hashable]  # the property: the row has one of these


def breach(prior: Pmf, laws: Mapping[Hashable, Pmf], rho1: Probability) -> Breach:
    """The property of prior probability at most rho1 whose posterior is the largest, over all outcomes.

    An upward rho1-to-rho2 breach is possible for this prior exactly if `after` is at least rho2.

    Args:
        prior: What the adversary believes of the row's value.
        laws: For each value, the law of what is told.
        rho1: How likely a property may be beforehand, between 0 and 1.

    Raises:
        QuestionError: `bad-parameter`, `too-large`: more than 12 values, whose properties are not gone through.
    """
    _check_share(rho1)
    belief = {value: chance for value, chance in checked(prior).items() if chance}
    if any(value not in laws for value in belief):
        raise QuestionError("bad-parameter", "Give a law for each value of the prior.")
    if len(belief) > MAX_VALUES:
        raise QuestionError("too-large", f"Properties of at most {MAX_VALUES} values are gone through one by one.")
    values = list(belief)
    given = [checked(laws[value]) for value in values]
    told = mixture([belief[value] for value in values], given)
    before = _subset_sums([belief[value] for value in values])
    best: tuple[Probability, int, Hashable] = (NONE, 0, None)
    for outcome, chance in told.items():
        if not chance:
            continue
        joint = _subset_sums([belief[value] * law.get(outcome, NONE) for value, law in zip(values, given, strict=True)])
        for place, (share, mass) in enumerate(zip(before, joint, strict=True)):
            if share <= rho1 and mass / chance > best[0]:
                best = (mass / chance, place, outcome)
    after, place, outcome = best
    named = frozenset(value for i, value in enumerate(values) if place >> i & 1)
    return Breach(before[place], after, outcome, named)


def _subset_sums(weights: Sequence[Probability]) -> list[Probability]:
    """The sum of every subset, by its number in binary."""
    found: list[Probability] = [NONE]
    for weight in weights:
        found += [each + weight for each in found]
    return found


def _check_share(rho: object) -> None:
    known = isinstance(rho, (int, float, Fraction)) and not isinstance(rho, bool)
    if not known or not 0 < cast("float", rho) < 1:
        raise QuestionError("bad-parameter", "A probability rho lies strictly between 0 and 1.")


def isolates(guess: Hashable, database: Database, *, c: float, t: int, row: int | None = None) -> bool:
    """Whether a point (c, t)-isolates some row of a database, or the row named.

    It isolates y if fewer than t rows lie within c times its distance to y of it; y is one of them. Points are
    numbers, or tuples of numbers with Euclid's distance; whole numbers and fractions are compared exactly.
    Source: CDMSW05.
    """
    far = [_squared(guess, point) for point in database]
    several = far if row is None else [far[row]]
    return any(sum(other <= c * c * own for other in far) < t for own in several)


def _squared(first: Hashable, second: Hashable) -> float:
    one = first if isinstance(first, tuple) else (first,)
    other = second if isinstance(second, tuple) else (second,)
    return cast("float", sum((a - b) ** 2 for a, b in zip(one, other, strict=True)))


@dataclass(frozen=True, slots=True)
class Isolation:
    """How likely the best adversary isolates a row with the output, and the best without it."""

    informed: Probability
    blind: Probability

    @property
    def gain(self) -> Probability:
        """What the output adds."""
        return self.informed - self.blind


def isolation(
    laws: Laws,
    guesses: Sequence[Hashable],
    *,
    c: float,
    t: int,
    prior: Mapping[Database, Probability] | None = None,
    row: int | None = None,
) -> Isolation:
    """How much a mechanism's output helps to isolate a row: the best adversary's success with it, less that without.

    Privacy: over databases of which every two have laws within e^epsilon, success with the output is at most e^epsilon
    times that without (docs/theory/semantics.md). Databases that differ in one row are such for an
    epsilon-indistinguishable mechanism: then the adversary knows all other rows.
    Source: CDMSW05, of protection from isolation.

    Args:
        laws: For each database, a tuple of points, the law of the output.
        guesses: The points the adversary may name.
        c: How many times as far as the isolated point the ball reaches, 1 or more.
        t: Fewer rows than this in the ball are too few.
        prior: How likely each database is; evenly where left out.
        row: Whose point must be isolated; anyone's where left out.

    Raises:
        QuestionError: `bad-parameter`, `too-large`.
    """
    databases = list(laws)
    if not databases or not guesses or c < 1 or t < 1:
        raise QuestionError("bad-parameter", "Isolation needs databases, guesses, c of at least 1 and t of at least 1.")
    if len(databases) * len(guesses) > MAX_TRIES:
        raise QuestionError("too-large", f"At most {MAX_TRIES:,} databases times guesses are gone through.")
    share = Fraction(1, len(databases))
    given: Mapping[Database, Probability] = dict.fromkeys(databases, share) if prior is None else prior
    weights = cast("dict[Database, Probability]", checked(cast("Pmf", given)))
    if set(weights) - set(databases):
        raise QuestionError("bad-parameter", "Give a law for each database of the prior.")
    held = {one: checked(laws[one]) for one in weights}
    won = [[one for one in weights if isolates(guess, one, c=c, t=t, row=row)] for guess in guesses]
    blind = max(sum((weights[one] for one in named), NONE) for named in won)
    outcomes = dict.fromkeys(itertools.chain.from_iterable(held.values()))
    informed = sum(
        (
            max(sum((weights[one] * held[one].get(outcome, NONE) for one in named), NONE) for named in won)
            for outcome in outcomes
        ),
        NONE,
    )
    return Isolation(informed, blind)
