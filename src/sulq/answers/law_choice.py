"""Which law of noise an ask gets where its price leaves that open: the one of least foreseen error (SR3).

An (epsilon, delta) is kept by Laplace noise for the epsilon alone, which uses no delta, and by Gaussian noise for
both. Which is nearer follows from public facts: Laplace for few sums that one person moves together, Gaussian for many.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Final, Literal, NamedTuple, get_args

from sulq.answers.plan import Plan, Priced, probe
from sulq.errors import QuestionError
from sulq.language.facts import Facts
from sulq.language.privacy import Budget, Epsilon, EpsilonDelta, EpsilonKeys, Event, Loss, Queries, Rho, SubLinear

LawName = Literal["laplace", "gaussian"]
LAWS: Final = get_args(LawName)
COUNT_FIRST: Final = Fraction(1, 10)  # of at_most: the noisy count bought before what depends on it is priced (SR7)
BETA: Final = 0.05  # errors are compared at 95%


class Foreseen(NamedTuple):
    """How far off each number would be, and the thresholds of groups that are found in the data (SR14)."""

    widths: Iterable[float]
    thresholds: tuple[int, ...]


Widths = Callable[[Loss | None], Iterable[float] | Foreseen]  # how far off each number would be for a spend
_LEFT_OUT: Final = ("open-keys", "too-little-noise")  # what one law cannot answer, and the other may


def nearest(spend: Loss | None, law: str | None, budget: Callable[[], Budget], widths: Widths) -> Loss | None:
    """The spend that buys the named law, or the law of least foreseen error; it keeps the same promise.

    Errors are compared by their geometric mean over all numbers, so that no unit of measure counts more than another.
    Where keys are open the least threshold comes first: it shows the most groups (SR14).

    Raises:
        QuestionError: `spend-kind`: the spend does not buy the named law.
    """
    found = _spends(spend, law, budget)
    if len(found) == 1:
        return found[0]
    errors: list[tuple[tuple[float, int, float], int]] = []
    for place, one in enumerate(found):
        if isinstance(one, EpsilonKeys) and any(isinstance(found[tried], Epsilon) for _, tried in errors):
            continue  # no keys are open: it is the same without a delta
        try:
            errors.append((_error(widths(one)), place))
        except QuestionError as error:
            if error.code not in _LEFT_OUT:
                raise
    return found[min(errors)[1]] if errors else found[-1]


def _spends(spend: Loss | None, law: str | None, budget: Callable[[], Budget]) -> tuple[Loss | None, ...]:
    """The spends that keep this one's promise, one for each law that may be had."""
    _check(law)
    if isinstance(spend, EpsilonDelta):
        if law == "gaussian" or not isinstance(budget(), EpsilonDelta):  # another budget refuses it by itself
            return (spend,)
        pure = (Epsilon(spend.exact), EpsilonKeys(spend.epsilon, spend.delta))
        return pure if law == "laplace" else (*pure, spend)
    if law is not None:
        own = {Epsilon: "laplace", Rho: "gaussian"}.get(type(spend))  # type: ignore[arg-type]
        if own is None:
            raise QuestionError("spend-kind", "The law of noise is not chosen here.", "Leave law out.")
        if own != law:
            told = f"{spend} buys {own.capitalize()} noise alone."
            raise QuestionError("spend-kind", told, "Name spend=EpsilonDelta(epsilon, delta), or leave law out.")
    return (spend,)


def _check(law: object) -> None:
    if law is not None and (not isinstance(law, str) or law not in LAWS):
        raise QuestionError("bad-question", 'law is "laplace" or "gaussian"; left out, the better one is taken.')


def _error(foreseen: Iterable[float] | Foreseen) -> tuple[float, int, float]:
    """What is compared: thresholds, then how many errors are endless, then the sum of the logarithms of the others."""
    known = foreseen if isinstance(foreseen, Foreseen) else Foreseen(foreseen, ())
    found = [width for width in known.widths if width > 0]
    finite = [width for width in found if math.isfinite(width)]
    return math.fsum(map(math.log, known.thresholds)), len(found) - len(finite), math.fsum(map(math.log, finite))


def foreseen_of(plan: Plan, widths: Iterable[float] | None = None) -> Foreseen:
    """How far off each column of a plan may be, or what is read of it, and its thresholds."""
    own = [float(width) for part in plan.accuracy(BETA) for width in part] if widths is None else widths
    return Foreseen(own, tuple(part.people.threshold for part in plan.parts if part.people is not None))


def kinds(budget: Budget, at_most: Loss | None, law: str | None) -> tuple[type[Priced], ...]:
    """The kinds of loss in which the price of an accuracy is looked for: one for each law that may be had."""
    if isinstance(budget, SubLinear):
        raise QuestionError("spend-kind", "Under SubLinear the noise is fixed; within= has no price.")
    found: tuple[type[Priced], ...] = (type(probe(budget, at_most)),)
    if isinstance(budget, EpsilonDelta) and (at_most is None or isinstance(at_most, EpsilonDelta)):
        found = (Epsilon, Rho)
    _check(law)
    kept = tuple(kind for kind in found if law is None or kind is (Epsilon if law == "laplace" else Rho))
    if not kept:
        raise QuestionError("spend-kind", f"The price is in {found[0].__name__} here, which buys no {law} noise.")
    return kept


def portion(event: Event, facts: Facts) -> float:
    """Which part of what is left an ask takes, in the way of adding up that takes least of it.

    Its inverse is how many such asks what is left would hold; so the law of the smallest part is the cheapest.
    """
    split, left = facts.split, facts.remaining
    epsilon = event.basic if event.epsilon is None else event.epsilon
    parts = [math.inf]
    if epsilon is not None and isinstance(left, Epsilon) and left.amount:
        parts.append(float(epsilon / left.amount))
    if split is not None and facts.rho:
        renyi = event.rho if event.epsilon is None else min(event.rho, event.epsilon / split.alpha)
        parts.append(float(renyi / facts.rho))
    return min(parts)


def count_first(at_most: Loss | None) -> tuple[Loss, Loss]:
    """The part of the most that may be paid which buys a count before a price is known, and the rest of it (SR7).

    Of an (epsilon, delta) the count needs no delta.

    Raises:
        QuestionError: `spend-missing`: no such most is named.
    """
    if at_most is None or isinstance(at_most, Queries):
        raise QuestionError(
            "spend-missing", "No count is known here.", "Give at_most=; a tenth of it buys a count first."
        )
    if isinstance(at_most, (EpsilonDelta, EpsilonKeys)):
        rest = EpsilonDelta(at_most.exact * (1 - COUNT_FIRST), at_most.exact_delta)
        return Epsilon(at_most.exact * COUNT_FIRST), rest
    return at_most.share(COUNT_FIRST), at_most.share(1 - COUNT_FIRST)


def cheapest(
    facts: Facts,
    wanted: tuple[type[Priced], ...],
    price: Callable[[type[Priced]], Priced],
    event: Callable[[Loss], Event],
) -> Priced:
    """The price of an accuracy by the law that takes the least of what is left.

    Raises:
        QuestionError: `too-costly` and the like, where no law has a price; the first one's.
    """
    found: list[Priced] = []
    refusals: list[QuestionError] = []
    for kind in wanted:
        try:
            found.append(price(kind))
        except QuestionError as error:
            if len(wanted) == 1 or error.code not in ("too-costly", *_LEFT_OUT):
                raise
            refusals.append(error)
    if not found:
        raise refusals[0]
    return found[0] if len(found) == 1 else min(found, key=lambda one: portion(event(one), facts))
