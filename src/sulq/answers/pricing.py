"""The price of an accuracy: the smallest spend whose noise stays within a width (SR7).

Prices follow from the question, public facts and answers already released,
never from a row; a draw is never repeated to get a better one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from statistics import NormalDist

from sulq.answers.estimators import SLACK
from sulq.answers.plan import Part, Plan
from sulq.errors import QuestionError
from sulq.language.law import GaussianLaw, LaplaceLaw, round_up
from sulq.language.privacy import (
    LARGEST,
    SMALLEST,
    Budget,
    Epsilon,
    EpsilonDelta,
    Loss,
    Queries,
    Rho,
    exactly,
    probability,
)

Priced = Epsilon | Rho
Sampled = LaplaceLaw | GaussianLaw


def probe(budget: Budget, at_most: Loss | None) -> Priced:
    """A spend of 1 of the kind a price is looked for in: at_most's, else the budget's own."""
    if at_most is not None and not isinstance(at_most, (Epsilon, Rho, EpsilonDelta, Queries)):
        raise QuestionError("spend-kind", "at_most is a loss: Epsilon, Rho or EpsilonDelta.")
    if isinstance(at_most, (Rho, EpsilonDelta)) or (at_most is None and isinstance(budget, Rho)):
        return Rho(1)
    return Epsilon(1)


def price_of_sums(plan: Plan, within: float, beta: float) -> Priced:
    """The spend at which every sum of the probed plan is within a width except with probability beta a cell.

    A law's scale is inverse to epsilon, or to the root of rho, so one probe
    tells the price: exact for counts and sums.
    """
    width, beta = exactly(within, "within", largest=10**60), probability(beta)
    prices = []
    for part in plan.parts:
        for law, step in zip(_laws(part), part.steps, strict=True):
            prices.append(_ratio(law, _largest(_within(width / step, beta), [law])))
    return _spend(plan, max(prices))


def _within(units: Fraction, beta: float) -> Callable[[list[Sampled]], bool]:
    return lambda laws: all(law.accuracy(beta) <= units for law in laws)


def price_of_mean(plan: Plan, spread: Fraction, within: float, beta: float, count: float) -> Priced:
    """The spend at which a mean over at least `count` values is within a width, except with probability beta.

    The interval of a mean ends where |A - t(A + B)| (or |S - dN|) meets the noise's
    quantile, so its half-width is at most that quantile, at the worst t, over the
    noisy mass, which falls short of the true one by no more than its own noise.
    """
    width = exactly(within, "within", largest=10**60)
    laws = _laws(plan.parts[0])
    steps = [float(step) for step in plan.parts[0].steps]
    factor = _largest(lambda wide: _half_width(wide, steps, float(spread), beta, count) <= width, laws)
    return _spend(plan, _ratio(laws[0], factor))


def width_of_mean(plan: Plan, spread: Fraction, beta: float, count: float) -> float:
    """How far off a mean over at least `count` values may be at a plan's noise, except with probability beta."""
    steps = [float(step) for step in plan.parts[0].steps]
    return _half_width(_laws(plan.parts[0]), steps, float(spread), beta, count)


def _half_width(laws: list[Sampled], steps: list[float], spread: float, beta: float, count: float) -> float:
    """How wide the interval of a mean can get, for the pair (A, B) or for the count N and the centred sum S."""
    scales = [float(law.scale) * step for law, step in zip(laws, steps, strict=True)]
    z = -NormalDist().inv_cdf(beta / 2)
    slip = 2 * laws[0].accuracy(beta / 2) * steps[0]  # what noise may take from the mass; below that it is "weak"
    if len(laws) == 1:
        reach = scales[0] * (math.log(1 / beta) if isinstance(laws[0], LaplaceLaw) else z) + SLACK * steps[0]
        mass = count * spread - slip
        return spread * reach / mass if mass > slip else math.inf
    reach = z * math.hypot(scales[1], spread / 2 * scales[0]) + SLACK * (steps[1] + spread / 2 * steps[0])
    mass = count - slip
    return reach / mass if mass > slip else math.inf


def _laws(part: Part) -> list[Sampled]:
    found = [law for law in part.laws if isinstance(law, (LaplaceLaw, GaussianLaw))]
    if len(found) < len(part.laws):
        raise QuestionError("bad-question", "Under this budget the noise is fixed; within= has no price.")
    return found


def _largest(fits: Callable[[list[Sampled]], bool], laws: list[Sampled]) -> Fraction:
    """The largest factor by which all scales may grow and the laws still fit a width."""
    scales = [float(law.scale) for law in laws]
    low, high = math.log(2.0**-9 / min(scales)), math.log(2.0**49 / max(scales))

    def grown(log: float) -> list[Sampled]:
        return [type(law)(round_up(law.scale * Fraction(math.exp(log)))) for law in laws]

    if low >= high or not fits(grown(low)):
        raise QuestionError("too-costly", "No noise that could be asked for is within that width.")
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(grown(middle)) else (low, middle)
    return Fraction(math.exp(low))


def _ratio(law: Sampled, factor: Fraction) -> Fraction:
    """The price of scales grown by a factor, as a part of the probe's spend."""
    return 1 / factor if isinstance(law, LaplaceLaw) else 1 / factor**2


def _spend(plan: Plan, ratio: Fraction) -> Priced:
    """The probe's spend times a ratio, rounded up to six digits so that prices read well."""
    grain = Fraction(10) ** (math.floor(math.log10(ratio)) - 5)
    price = max(math.ceil(ratio / grain * (1 + Fraction(1, 10**9))) * grain, SMALLEST)
    if price > LARGEST:
        raise QuestionError("too-costly", "That accuracy would leave no privacy at all.")
    return Epsilon(price) if isinstance(plan.spend, Epsilon) else Rho(price)


def affordable(price: Priced, at_most: Loss | None) -> Priced:
    """The price, unless it is more than the asker would pay."""
    if at_most is not None:
        if isinstance(price, Epsilon) != isinstance(at_most, Epsilon) or isinstance(at_most, Queries):
            raise QuestionError("spend-kind", "at_most must be of the kind the price is in.")
        if price.exact > (at_most.rho if isinstance(at_most, EpsilonDelta) else at_most.exact):
            raise QuestionError("too-costly", f"That accuracy costs {price}, more than at_most.")
    return price
