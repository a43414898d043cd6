"""Exact laws of what a mechanism may answer: a probability for each outcome, and how far two such laws are apart.

A law is a mapping from outcomes to probabilities. Where all of them are fractions
every comparison below is exact, and only the last logarithm is a float.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Final

from sulq.errors import QuestionError
from sulq.language.law import BinomialLaw, GaussianLaw, LaplaceLaw

Probability = float | Fraction
Pmf = Mapping[Hashable, Probability]
Noise = LaplaceLaw | GaussianLaw | BinomialLaw

SLACK: Final = 1e-9  # how far from 1 floats may add up to; fractions not at all
FAINT: Final = 1e-300  # probabilities below this are not looked for
MAX_OUTCOMES: Final = 10**6  # outcomes of noise that are written out one by one


def exact_epsilon(laws: Sequence[Pmf], pairs: Iterable[tuple[int, int]] | None = None) -> float:
    """The largest |ln P(outcome)/Q(outcome)| over the given laws, by enumeration [S2.1, S3.2, S4.1].

    Of all pairs of laws, or of the neighbours that `pairs` numbers. An outcome that no law
    of a pair can give is no evidence (0/0); one that only one can give is proof (infinite).
    """
    given = [checked(law) for law in laws]
    if pairs is not None:
        return max((_widest([given[i], given[j]]) for i, j in pairs), default=0.0)
    return _widest(given)


def statistical_distance(first: Pmf, second: Pmf) -> Probability:
    """Half the sum of |P - Q|: how much likelier an event can be under one law than under the other [S4.4]."""
    one, other = checked(first), checked(second)
    none = Fraction(0)
    outcomes = {**one, **other}
    both = [(one.get(outcome, none), other.get(outcome, none)) for outcome in outcomes]
    return _total(max(p, q) - min(p, q) for p, q in both) / 2


def excess(first: Pmf, second: Pmf, epsilon: float) -> float:
    """The delta that remains at an epsilon: the sum of P - e^epsilon Q where that is positive."""
    one, other = checked(first), checked(second)
    factor = math.exp(epsilon)
    return math.fsum(max(float(p) - factor * float(other.get(outcome, 0)), 0.0) for outcome, p in one.items())


def renyi(first: Pmf, second: Pmf, order: float) -> float:
    """Renyi divergence of an order above 1; a loss of rho keeps it within rho times the order [BS16]."""
    if not order > 1.0:
        raise QuestionError("bad-parameter", "An order is above 1.")
    one, other = checked(first), checked(second)
    terms = []
    for outcome, p in one.items():
        q = other.get(outcome, 0)
        if p and not q:
            return math.inf
        if p:
            terms.append(order * _log(p) + (1.0 - order) * _log(q))
    top = max(terms)
    return (top + math.log(math.fsum(math.exp(term - top) for term in terms))) / (order - 1.0)


def mixture(weights: Sequence[Probability], laws: Sequence[Pmf]) -> dict[Hashable, Probability]:
    """The law of a law drawn by weights: what an adversary expects who does not know which database it is."""
    found: dict[Hashable, Probability] = {}
    for weight, law in zip(weights, laws, strict=True):
        for outcome, probability in law.items():
            found[outcome] = found.get(outcome, Fraction(0)) + weight * probability
    return found


def product(laws: Sequence[Pmf]) -> dict[Hashable, Probability]:
    """The law of several independent answers together; outcomes are tuples [S2.6]."""
    found: dict[Hashable, Probability] = {}
    for outcomes in itertools.product(*(law.items() for law in laws)):
        chance = math.prod((probability for _, probability in outcomes), start=Fraction(1))
        found[tuple(outcome for outcome, _ in outcomes)] = chance
    return found


def noisy(law: Noise, exact: int, low: int, high: int) -> dict[Hashable, Probability]:
    """The law of an integer plus noise, everything at or beyond either end told as that end.

    Clamping is post-processing: the loss is never larger than without it, and of
    discrete Laplace noise it is the same as soon as an end lies beyond the sums.
    """
    if low > high or high - low > MAX_OUTCOMES:
        raise QuestionError("bad-parameter", f"Give ends that are at most {MAX_OUTCOMES} apart, the lower first.")
    found: dict[Hashable, Probability] = {z: law.pmf(z - exact) for z in range(low + 1, high)}
    return {low: _beyond(law, exact - low)} | found | {high: _beyond(law, high - exact)} if high > low else {low: 1.0}


def checked(law: Pmf) -> dict[Hashable, Probability]:
    """A law as it was given, or a refusal: probabilities are not negative and add up to one."""
    if not isinstance(law, Mapping) or not law:
        raise QuestionError("bad-parameter", "A law is a mapping from outcomes to probabilities, and not empty.")
    for probability in law.values():
        known = isinstance(probability, (int, float, Fraction)) and not isinstance(probability, bool)
        if not known or not math.isfinite(probability) or probability < 0:
            raise QuestionError("bad-parameter", "A probability is a number from 0 to 1.")
    total = _total(law.values())
    if total != 1 if isinstance(total, (int, Fraction)) else abs(total - 1.0) > SLACK:
        raise QuestionError("bad-parameter", f"The probabilities of a law add up to 1, not to {float(total):.12g}.")
    return dict(law)


def log_ratio(first: Probability, second: Probability) -> float:
    """ln(first/second): 0 where both are 0, infinite where one is."""
    if not first or not second:
        return 0.0 if first == second else math.copysign(math.inf, float(first) - float(second))
    if isinstance(first, (int, Fraction)) and isinstance(second, (int, Fraction)):
        ratio = Fraction(first) / Fraction(second)
        if abs(ratio - 1) < Fraction(1, 10):  # the digits of a small loss
            return math.log1p(float(ratio - 1))
        return math.log(ratio.numerator) - math.log(ratio.denominator)
    return _log(first) - _log(second)


def _widest(laws: Sequence[dict[Hashable, Probability]]) -> float:
    """The largest log-ratio of any outcome: fractions are compared exactly, floats by their logarithms.

    Products of floats, which would compare ratios without a division, are zero where both are faint.
    """
    exact, found = Fraction(1), 0.0
    for outcome in dict.fromkeys(itertools.chain.from_iterable(laws)):
        several = [law.get(outcome, Fraction(0)) for law in laws]
        top, bottom = max(several), min(several)
        if top and not bottom:
            return math.inf
        if top and isinstance(top, (int, Fraction)) and isinstance(bottom, (int, Fraction)):
            exact = max(exact, Fraction(top) / Fraction(bottom))
        elif top:
            found = max(found, log_ratio(top, bottom))
    return max(found, log_ratio(exact, Fraction(1)))


def _log(probability: Probability) -> float:
    """A logarithm, also of a fraction that no float could hold."""
    if isinstance(probability, Fraction):
        return math.log(probability.numerator) - math.log(probability.denominator)
    return math.log(probability)


def _total(numbers: Iterable[Probability]) -> Probability:
    listed = list(numbers)
    if all(isinstance(number, (int, Fraction)) for number in listed):
        return sum((Fraction(number) for number in listed), start=Fraction(0))
    return math.fsum(float(number) for number in listed)


def _beyond(law: Noise, least: int) -> float:
    """P(noise >= least) of symmetric noise, summed from the far end so that a small one keeps its digits."""
    if least <= 0:
        return 1.0 - _beyond(law, 1 - least)
    terms = []
    for z in range(least, least + MAX_OUTCOMES):
        terms.append(law.pmf(z))
        if terms[-1] < FAINT or terms[-1] < terms[0] * 1e-20:
            break
    return math.fsum(terms)
