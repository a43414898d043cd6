"""A plan: all that is known of an answer before any row is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Final

from sulq.answers.readings.noise_sums import SLACK
from sulq.answers.released import Noise
from sulq.display import tables
from sulq.display.numbers import figure
from sulq.errors import QuestionError
from sulq.language.estimator import DECLARED, Certificate, Property, Stated, Utility
from sulq.language.facts import Facts
from sulq.language.law import (
    AboveLaw,
    ExponentialLaw,
    FlipLaw,
    GaussianLaw,
    LaplaceLaw,
    Law,
    MetricLaw,
    Passed,
    round_up,
)
from sulq.language.privacy import (
    LARGEST,
    SMALLEST,
    Budget,
    Epsilon,
    EpsilonDelta,
    Event,
    Loss,
    Queries,
    Rho,
    Unit,
    exactly,
    plain,
    probability,
)
from sulq.language.question import Question
from sulq.language.score import Score
from sulq.language.space import Box, Candidates, Points, Space
from sulq.language.statistic import ESTIMATORS, Aggregated, Degrees, Edges, HeavyPersons, Statistic
from sulq.language.tally import Key, Tally


@dataclass(frozen=True, slots=True)
class Whole:
    """A statistic of the whole table as the plan bound it: `width` numbers, each of whole units of `step`.

    `stride`: of a Box, how many units lie between its points. `certificate`: what the owner declares of a `Certified`
    statistic, of a utility's candidates or of a property.
    """

    statistic: Statistic
    step: Fraction
    width: int
    space: Space | None = None
    stride: int = 1
    certificate: Certificate | Stated | Utility | Property | None = None

    @property
    def weights(self) -> tuple[int, ...]:
        """Of candidates, how often each stands among those that one is drawn from; of anything else none."""
        if not isinstance(self.space, Candidates):
            return ()
        given = self.certificate.weights if isinstance(self.certificate, Utility) else ()
        return given or (1,) * self.width

    @property
    def told(self) -> bool:
        """Whether a point or a candidate is released, and no number."""
        return self.placed is not None or isinstance(self.space, Candidates)

    @property
    def placed(self) -> Points | Box | None:
        """The finite space of which a point is released, if it is one."""
        space = self.space
        return space if isinstance(space, Points) or (isinstance(space, Box) and space.bounded) else None

    @property
    def unit(self) -> Fraction:
        """One unit of what noise hides, in the answer's measure: coordinates that differ are counted."""
        counted = self.placed is not None and self.placed.distance in ("hamming", "discrete")
        return Fraction(1) if counted else self.step

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the answer's columns."""
        name = "".join(f"_{c.lower()}" if c.isupper() else c for c in type(self.statistic).__name__).strip("_")
        if isinstance(self.space, Candidates):
            return ("choice",)
        if isinstance(self.statistic, Degrees):
            return tuple(f"at_least_{i}" for i in range(1, self.width + 1))
        if isinstance(self.statistic, HeavyPersons):
            return ("heavy", "others")
        return (name,) if self.width == 1 else tuple(f"{name}_{i}" for i in range(self.width))

    @property
    def declared(self) -> str:
        """What of the statistic rests on the owner's word alone, in words; nothing of most (SR5)."""
        asked, told = self.statistic, self.certificate
        if isinstance(told, Property):
            return f"property {getattr(asked, 'name', '')} {DECLARED}"
        if told is not None:
            return f"sensitivity {'by certificate ' if isinstance(told, Certificate) else ''}{DECLARED}"
        own = isinstance(asked, Aggregated) and asked.estimator not in ESTIMATORS
        return f"estimator {asked.estimator} {DECLARED}" if own and isinstance(asked, Aggregated) else ""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One question of the plan: the exact sums to work out and the noise each value gets.

    Noise for block i is drawn by laws[i] on a grid 2^refine[i] times finer than
    the block's own (SR8 needs that; elsewhere refine is 0). With a `score` the sums
    are not released: laws[0] draws a candidate by their scores, for each cell of the
    keys but the last. With `people` the keys are open: that law hides each group's
    number of people, its threshold decides which groups are released, and
    `sensitivity` has the people first. With `thresholds`, in units of the one block,
    the place of the first sum that reaches its own is released, by laws[0], and no sum.
    With `whole` no row is summed: the tally's blocks are what a statistic of the whole table reads, and its keys, if
    there are any, what its numbers are about.
    """

    tally: Tally
    laws: tuple[Law, ...]
    refine: tuple[int, ...]
    sensitivity: tuple[Fraction, ...]  # of each block, in its own units of measure, in `norm`
    norm: str
    score: Score | None = None
    people: Passed | None = None
    thresholds: tuple[int, ...] | None = None  # one for all sums, or one for each
    whole: Whole | None = None

    @property
    def told(self) -> bool:
        """Whether a place is released, of a candidate, a sum or a point, and no sum."""
        return self.score is not None or self.thresholds is not None or (self.whole is not None and self.whole.told)

    @property
    def steps(self) -> tuple[Fraction, ...]:
        """One unit of each block's noise, in the answer's own units."""
        if self.told:
            return (Fraction(1),)
        if self.whole is not None:
            return (self.whole.step,)
        return tuple(b.step / 2**r for b, r in zip(self.tally.blocks, self.refine, strict=True))

    @property
    def noise(self) -> tuple[Noise, ...]:
        """What the release will carry: the law of each of its columns, the people first where keys are open."""
        widths = (1,) if self.told else tuple(block.width for block in self.tally.blocks)
        if self.whole is not None and not self.told:
            widths = (self.whole.width // self.cells,)
        found = tuple(Noise(law, s, w) for law, s, w in zip(self.laws, self.steps, widths, strict=True))
        return found if self.people is None else (Noise(self.people, Fraction(1), 1), *found)

    @property
    def by(self) -> tuple[Key, ...]:
        """The keys whose cells are answered: for a choice all but the one it chooses by, for a threshold none."""
        if self.thresholds is not None:
            return ()
        return self.tally.by if self.score is None else self.tally.by[:-1]

    @property
    def cells(self) -> int:
        """How many cells are answered; 0 where keys are open and nobody knows."""
        if self.people is not None:
            return 0
        if self.thresholds is not None:
            return 1
        return self.tally.cells if self.score is None else self.tally.cells // len(self.tally.by[-1].labels)

    @property
    def pairs(self) -> bool:
        """Whether the cells are the pairs of different labels, each once, and not all combinations."""
        return self.whole is not None and isinstance(self.whole.statistic, Edges) and bool(self.tally.by)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of a statistic of the whole, a number for each cell or several."""
        found = () if self.whole is None else self.whole.names
        return found if self.cells == 1 else tuple(name.removesuffix("_0") for name in found[:1])

    def accuracy(self, beta: float) -> tuple[Fraction, ...]:
        """How far each column may be off, except with probability beta a cell.

        Of a choice, how far below the best; of a threshold, how far on the wrong side a sum may be; of a point of a
        space, how much farther than the nearest one.
        """
        if self.whole is not None and self.told:
            return (self.laws[0].accuracy(beta) * self.whole.unit,)
        if self.thresholds is not None:
            return (self.laws[0].accuracy(beta) * self.tally.blocks[0].step,)
        return tuple(noise.law.accuracy(beta) * noise.step for noise in self.noise)

    def lines(self) -> Iterator[str]:
        """What is asked and how it is hidden, a line for each value."""
        for what, cells, *hidden, within in self.rows("{:.6g}".format):
            yield f"  {', '.join(filter(None, (what, cells)))}: {', '.join(filter(None, hidden))}, {within} at 95%"

    def rows(self, number: Callable[[float], str] = figure) -> Iterator[PlanRow]:
        """What is asked and how it is hidden, a row for each value, under `PLAN_HEAD`."""
        within, laws = [f"within {number(float(one))}" for one in self.accuracy(0.05)], [one.law for one in self.noise]
        moved = [f"{self.norm} sensitivity {plain(moved)}" for moved in self.sensitivity]
        hidden = [(how, type(law).__name__) for how, law in zip(moved, laws, strict=False)]
        if self.score is not None:
            candidates = laws[0].candidates if isinstance(laws[0], (FlipLaw, ExponentialLaw)) else 1
            what = f"{type(self.score).__name__} x {candidates} candidates"
            yield what, f"{self.cells} choices", *hidden[0], f"score {within[0]} of the best"
        elif isinstance(laws[0], AboveLaw):
            how = _moved(laws[0], self.sensitivity[0])
            yield f"Above x {laws[0].sums} sums", "", *how, f"{within[0]} of the threshold"
        elif self.whole is not None:
            yield self._row(self.whole, laws[0], within[0])
        else:
            cells = f"{self.cells} cells" if self.tally.by else "1 cell"
            names = [f"{type(block.fn).__name__} x {block.width}" for block in self.tally.blocks]
            if self.people is not None:
                names, cells = ["People x 1", *names], f"groups of more than {self.people.threshold} (noisy) people"
            for name, how, bars in zip(names, hidden, within, strict=True):
                yield name, cells, *how, bars

    def _row(self, whole: Whole, law: Law, within: str) -> PlanRow:
        moved = f"{self.norm} sensitivity {plain(self.sensitivity[0])}"
        if whole.certificate is not None and not isinstance(whole.certificate, Property):
            moved += f" {DECLARED}"
        elif whole.declared:
            moved = f"{whole.declared}, {moved}"
        what, of = "a number" if whole.width == 1 else f"{whole.width:,} numbers", ""
        if isinstance(whole.space, Candidates):
            what, of = f"one of {whole.width:,} candidates", " of the best"
        elif isinstance(law, (MetricLaw, ExponentialLaw)):
            what, of = f"one of {law.candidates:,} points", " of the nearest"
        return type(whole.statistic).__name__, what, moved, type(law).__name__, f"{within}{of}"


PlanRow = tuple[str, str, str, str, str]
PLAN_HEAD: Final = ("what", "cells", "sensitivity", "noise", "at 95%")


def _moved(law: AboveLaw, move: Fraction) -> tuple[str, str]:
    """How far one person moves sums that are held against a threshold, and what hides it."""
    if law.threshold_scale:
        return f"one person moves two of them {plain(move)} apart at most", "LaplaceLaw on each and on the threshold"
    return f"l1 sensitivity {plain(move)}", "LaplaceLaw on each"


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """What will be asked of the rows, what noise hides it, and what that costs; free, from public facts alone."""

    question: Question
    parts: tuple[Part, ...]
    event: Event
    spend: Loss
    unit: Unit
    guarantee: str  # "dp", or "posterior" under SubLinear

    def accuracy(self, beta: float = 0.05) -> tuple[tuple[Fraction, ...], ...]:
        """How far each part's blocks may be off."""
        return tuple(part.accuracy(beta) for part in self.parts)

    @property
    def rows(self) -> list[PlanRow]:
        """What is asked and how it is hidden, a row for each value."""
        return [row for part in self.parts for row in part.rows()]

    def __str__(self) -> str:
        return f"{self._price}\n{tables.text(PLAN_HEAD, self.rows)}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return tables.as_html(PLAN_HEAD, self.rows, self._price)

    @property
    def _price(self) -> str:
        return f"price {self.spend}; protects {self.unit}; guarantee {self.guarantee}"


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


def affordable(price: Priced, at_most: Loss | None, facts: Facts) -> Priced:
    """The price, unless it is more than the asker would pay."""
    if at_most is None:
        return price
    most = at_most.exact
    if isinstance(at_most, EpsilonDelta):
        most = at_most.exact if isinstance(price, Epsilon) else facts.counted(at_most).rho
    elif type(price) is not type(at_most):
        raise QuestionError("spend-kind", "at_most must be of the kind the price is in.")
    if price.exact > most:
        raise QuestionError("too-costly", f"That accuracy costs {price}, more than at_most.")
    return price
