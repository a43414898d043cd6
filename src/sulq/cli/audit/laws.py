"""The checks of `sulq audit` that need no data: samplers against their laws, and laws against their prices."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, TypeVar, cast

import numpy as np

from sulq.audit.pmf import Pmf, exact_epsilon, excess, noisy, renyi
from sulq.audit.statistics import MAX_FIT_DEVIATIONS, Fit, fit
from sulq.kernel.mechanisms import MECHANISMS, cost_of, law_of, release
from sulq.kernel.private import Private
from sulq.language.kinds import Integers
from sulq.language.law import (
    BinomialLaw,
    GaussianLaw,
    LaplaceLaw,
    Law,
    Passed,
    PassedGaussianLaw,
    PassedLaplaceLaw,
    PassedLaw,
    accurate,
)
from sulq.language.privacy import Draw
from sulq.language.sublinear import coin_delta
from sulq.local.methods import METHODS, Reports, Response

T = TypeVar("T")
DRAWS: Final = (60_000, 400_000)  # of each law, and of the long audit
ORDERS: Final = (1.5, 2.0, 8.0, 64.0)
ROUNDING: Final = 1e-9  # what sums of floats may be off by
GAPS: Final = (-2, 0, 1, 40)  # of two candidates' scores
WRONG: Final = Fraction(4, 3)  # times its scale, a sampler must be noticed
COINS: Final = 66  # times a scale: how many coins binomial noise is tried with
LOST: Final = Fraction(1)  # by a report
SIZES: Final = (4,)  # of the record that reports are of
KEYS: Final = ((Fraction(2), 7), (Fraction(5), 12), (Fraction(1), 3))  # scales and thresholds of groups
GROUPS: Final = ("passed", "passed_gaussian", "passed_laplace")


@dataclass(frozen=True, slots=True)
class LawScope:
    """How far to look, and public randomness for what is made up; noise is never drawn from it."""

    deep: bool = False
    random: np.random.Generator = field(default_factory=np.random.default_rng)

    def of(self, usual: T, deep: T) -> T:
        """The one or the other."""
        return deep if self.deep else usual


@dataclass(frozen=True, slots=True)
class Result:
    """What one check found: whether the promise held and the controls failed, and in what numbers."""

    passed: bool
    told: str


@dataclass(frozen=True, slots=True)
class LawCase:
    """The laws of a mechanism on two neighbours, and what its row charges for the move between them."""

    first: Pmf
    second: Pmf
    epsilon: Fraction | None
    rho: Fraction | None

    def loss(self) -> tuple[float, float]:
        """The exact loss and its price, both as epsilon or both as rho."""
        if self.epsilon is not None:
            return exact_epsilon([self.first, self.second]), float(self.epsilon)
        pairs = ((self.first, self.second), (self.second, self.first))
        found = max(renyi(*pair, order) / order for order in ORDERS for pair in pairs)
        return found, math.inf if self.rho is None else float(self.rho)


def joined(results: Sequence[Result]) -> Result:
    """Several checks as one."""
    return Result(all(found.passed for found in results), " / ".join(found.told for found in results))


def controls(noticed: Iterable[bool]) -> str:
    """How many of the broken things were noticed."""
    found = list(noticed)
    return f"{sum(found)} of {len(found)} controls noticed"


def samplers(scope: LawScope) -> Result:
    """Draws of every mechanism and every local method fit their exact law; those of a scale a third off do not."""
    draws = scope.of(*DRAWS)
    scales = [Fraction(1, 2), Fraction(3, 2), Fraction(85, 2), *scope.of([], [Fraction(7, 4), Fraction(400)])]
    fits, noticed = list[Fit](), list[bool]()
    for name in MECHANISMS:
        laws = [_law(name, scale) for scale in scales]
        fits += [_drawn(law, law, draws) for law in laws]
        wrong = _drawn(_law(name, scales[1] * WRONG), laws[1], draws)
        noticed.append(not wrong.follows)
    for kind in METHODS.values():
        response = kind.of(SIZES, LOST)
        fits.append(_reported(response, response, draws))
        noticed.append(not _reported(kind.of(SIZES, LOST * WRONG), response, draws).follows)
    worst = max(found.deviation for found in fits)
    told = f"{len(MECHANISMS)} mechanisms and {len(METHODS)} local methods, {len(fits)} laws, {draws:,} draws each"
    told += f": at most {worst:.1f} deviations off (limit {MAX_FIT_DEVIATIONS})"
    return Result(all(found.follows for found in fits) and all(noticed), f"{told}; {controls(noticed)}")


def _law(name: str, scale: Fraction) -> Law:
    """The law of a row of the table at a scale; of binomial noise the scale is a number of coins."""
    return accurate(law_of(_draw(name, Fraction(2 * math.ceil(scale * COINS)) if name == "binomial" else scale)))


def _draw(name: str, scale: Fraction, moved: int = 1) -> Draw:
    """A call of a row of the table, as a debit records it."""
    norm = MECHANISMS[name].norm
    sensitivity = Fraction(moved if norm == "l1" else moved**2)
    least = max(2, math.ceil(scale))
    threshold = {"passed": 1, "passed_gaussian": least, "passed_laplace": least}.get(name)
    return Draw(name, "add_remove", norm, sensitivity, scale, Fraction(1), 1, threshold=threshold)


def _drawn(sampled: Law, law: Law, draws: int) -> Fit:
    """Draws of one law beside the probabilities of another, or of the same."""
    exact, chance = POSED[law.kind](law)
    return fit(release(sampled, Private(np.tile(np.array(exact, dtype=np.int64), (draws, 1)))), chance)


Posed = tuple[list[int], Callable[[int], float]]


def _alone(law: Law) -> Posed:
    """Noise on a sum of nothing, or a bit that is not set."""
    return [0], law.pmf


def _choice(law: Law) -> Posed:
    """A choice between two candidates, or points, the second one 2 below, or away."""
    return [0, -2], lambda z: law.pmf(2 if z else -2)


def _threshold(law: Law) -> Posed:
    """A sum 2 below its threshold: 0 where it passes, 1 where none does."""
    return [-2], lambda z: 1.0 - law.pmf(2) if z else law.pmf(2)


def _group(law: Law) -> Posed:
    """A group as large as its threshold: its number where it passes, else 0."""
    passed = cast("Passed", law)
    people, reach = passed.threshold, passed.threshold + math.ceil(40 * passed.scale)
    hidden = 1.0 - math.fsum(passed.pmf(z - people) for z in range(people + 1, reach))
    return [people], lambda z: passed.pmf(z - people) if z > people else hidden if z == 0 else 0.0


# A mechanism whose law is missing here stops the audit: none goes unlooked at.
POSED: Final[dict[str, Callable[[Law], Posed]]] = {
    "laplace": _alone,
    "gaussian": _alone,
    "binomial": _alone,
    "bits": _alone,
    "permute_and_flip": _choice,
    "exponential": _choice,
    "metric": _choice,
    "above": _threshold,
    "passed": _group,
    "passed_gaussian": _group,
    "passed_laplace": _group,
}


def _reported(sampled: Response, response: Response, draws: int) -> Fit:
    """Reports of one record by one randomiser beside the exact probabilities of another, or of the same."""
    cell = math.prod(SIZES) - 1
    chances = {_number(np.asarray(report)): float(chance) for report, chance in response.pmf(cell)}
    reports = sampled.randomise(np.full(draws, cell, dtype=np.int64))
    return fit(_numbered(reports), lambda z: chances.get(z, 0.0))


def _number(report: Reports) -> int:
    return int(_numbered(report[None])[0])


def _numbered(reports: Reports) -> Integers:
    """Reports as whole numbers; rows of bits in binary."""
    if reports.ndim == 1:
        return reports.astype(np.int64)
    return reports.astype(np.int64) @ 2 ** np.arange(reports.shape[1], dtype=np.int64)


def costs(scope: LawScope) -> Result:
    """The exact loss of every mechanism and local method, from its law, is within what is charged for it."""
    scales = [Fraction(1, 2), Fraction(2), Fraction(5), *scope.of([], [Fraction(9, 4), Fraction(21, 2)])]
    over, tight, cases = set[str](), set[str](), 0
    looked = {name: list(_losses(name, scales)) for name in MECHANISMS}
    for name, kind in METHODS.items():  # the exact loss of a report, in fractions, over all records
        response = kind.of(SIZES, LOST)
        reports = [dict(response.pmf(cell)) for cell in range(math.prod(SIZES))]
        looked[name] = [(exact_epsilon(reports), float(LOST))]
    for name, losses in looked.items():
        cases += len(losses)
        if not losses or any(loss > price * (1 + ROUNDING) for loss, price in losses):
            over.add(name)
        if any(loss > 0.9 * price for loss, price in losses):  # nine tenths of the price would not do
            tight.add(name)
    told = f"NOT covered: {', '.join(sorted(over))}" if over else f"{cases} exact losses are within their price"
    sharp = [{"laplace", "permute_and_flip", "bits", *METHODS} <= tight, _keys_noticed(), _coins_noticed(scales)]
    about = f"{len(MECHANISMS)} mechanisms and {len(METHODS)} local methods"
    return Result(not over and all(sharp), f"{told}, {about}; {controls(sharp)}")


def _losses(name: str, scales: list[Fraction]) -> Iterator[tuple[float, float]]:
    """Exact losses of one mechanism, each beside its price: epsilon, rho, or a delta where that is the promise."""
    if name == "binomial":  # no epsilon and no rho: what it promises is a delta at an epsilon
        for coins in _coins(scales):
            yield _left(coins), coin_delta(coins, 1.0, 1, guarantee="dp")
        return
    for scale in scales:
        for move in (1, 2):
            yield from (case.loss() for case in _cases(name, scale, move))
    if name in GROUPS:  # and a delta for those who are alone in a group
        yield from (_shown(name, scale, threshold) for scale, threshold in KEYS)


def _cases(name: str, scale: Fraction, move: int) -> Iterator[LawCase]:
    cost = cost_of(_draw(name, scale, move))
    for first, second in _laws(_law(name, scale), move):
        yield LawCase(first, second, cost.epsilon, cost.rho)


def _laws(law: Law, move: int) -> Iterator[tuple[Pmf, Pmf]]:
    """What is answered on neighbours whose sums, or scores, are a move apart."""
    if isinstance(law, (PassedGaussianLaw, PassedLaplaceLaw)):  # but for what one alone can give: its delta
        both = range(move - law.threshold, law.threshold + 1)
        chances = [[law.pmf(z - shift) for z in both] for shift in (0, move)]
        sides: list[Pmf] = [dict(zip(both, (p / math.fsum(each) for p in each), strict=True)) for each in chances]
        yield sides[0], sides[1]
        return
    if isinstance(law, PassedLaw):
        law = GaussianLaw(law.scale)
    if isinstance(law, (LaplaceLaw, GaussianLaw)):
        reach = math.ceil(8 * law.scale) + 4  # no probability there is too small for a double
        yield noisy(law, 0, -reach, reach + move), noisy(law, move, -reach, reach + move)
    elif law.kind == "bits":
        kept, flipped = law.pmf(0), law.pmf(1)
        yield {0: kept, 1: flipped}, {0: flipped, 1: kept}
    else:  # of two candidates, or of one sum and its threshold: the one that is chosen, or whether it passes
        for gap in GAPS:
            near, far = law.pmf(gap), law.pmf(gap + move)
            yield {0: near, 1: 1.0 - near}, {0: far, 1: 1.0 - far}


def _shown(name: str, scale: Fraction, threshold: int, charged_at: int | None = None) -> tuple[float, float]:
    """How often a person alone in a group shows, beside the delta that is charged, for this threshold or another."""
    at = threshold if charged_at is None else charged_at
    shown = math.fsum(GaussianLaw(scale).pmf(z) for z in range(threshold, threshold + 400))
    if name != "passed":  # noise within what is charged, and so many people past the threshold
        whole = (LaplaceLaw if name == "passed_laplace" else GaussianLaw)(scale)
        weights = {z: whole.pmf(z) for z in range(-at, at + 1)}
        shown = math.fsum(weights[z] for z in range(threshold, at + 1)) / math.fsum(weights.values())
    norm = "l1" if name == "passed_laplace" else "l2"
    draw = Draw(name, "add_remove", norm, Fraction(1), scale, Fraction(1), 0, threshold=at, alone=1)
    return shown, float(cost_of(draw).key_delta)


def _keys_noticed() -> bool:
    """Control: with a threshold one lower than is charged for, they show oftener."""
    found = [_shown(name, scale, at - 1, at) for name in GROUPS for scale, at in KEYS]
    return all(shown > charged for shown, charged in found)


def _coins(scales: list[Fraction]) -> list[int]:
    return [2 * math.ceil(20 * scale) for scale in scales]


def _left(coins: int) -> float:
    """The delta that one answer with so many coins leaves at epsilon 1."""
    law, ends = BinomialLaw(coins), range(-coins, coins + 2)
    laws: list[Pmf] = [{z: law.pmf(z - at) for z in ends} for at in (0, 1)]
    return max(excess(laws[0], laws[1], 1.0), excess(laws[1], laws[0], 1.0))


def _coins_noticed(scales: list[Fraction]) -> bool:
    """Control: half of the coins leave more delta than the search for their number says."""
    halves = [(2 * math.ceil(coins / 4), coins) for coins in _coins(scales)]
    return all(_left(half) > coin_delta(coins, 1.0, 1, guarantee="dp") for half, coins in halves)
