"""Inference on thousands of samples at once: the sums of all of them, noise of the laws that real plans have.

What reads the noisy sums is the shipped code, which takes any number of them; what makes them is NumPy, and
tests/inference/test_regression.py and test_logistic.py compare both with a database on the same rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from sulq.answers.released import Noise
from sulq.compile.plan import draw
from sulq.inference import logit, means, ols, rates
from sulq.inference.design import Regressors, regressors, term
from sulq.inference.error_law import ErrorLaw
from sulq.inference.logistic import LogitQuestions
from sulq.language.domain import Bool, Real, Schema
from sulq.language.privacy import Epsilon, EpsilonDelta, Loss, Rho
from sulq.language.question import Sums
from sulq.language.rowfn import Bernstein, Outer, named
from tests.inference.populations import Population
from tests.stub import facts
from tests.stub import noise as drawn

BUDGET = EpsilonDelta(50, 1e-6)


@dataclass
class Found:
    """Estimates of many samples, the laws of their errors, and which are told at all."""

    coef: np.ndarray
    law: ErrorLaw
    clear: np.ndarray

    def covered(self, truth: np.ndarray, level: float = 0.95) -> np.ndarray:
        """Whether each interval of a sample that tells anything holds the truth."""
        return (self.law.within(np.abs(self.coef - truth)) <= level)[self.clear]

    @property
    def widths(self) -> np.ndarray:
        """The median half width of the intervals."""
        some = self.clear.nonzero()[0][:200]
        law = ErrorLaw(*(getattr(self.law, name)[some] for name in ErrorLaw.__slots__))
        return np.median(law.reach(0.95), axis=0)

    def without(self, part: str) -> Found:
        """The same with a law that leaves out the noise, or the sampling."""
        nothing = {"noise": ("gaussian", "laplace"), "sampling": ("sampling",)}[part]
        law = ErrorLaw(*(getattr(self.law, n) * (1e-12 if n in nothing else 1.0) for n in ErrorLaw.__slots__))
        return Found(self.coef, law, self.clear)


def together(parts: list[Found]) -> Found:
    """Batches as one."""
    law = ErrorLaw(*(np.concatenate([getattr(p.law, name) for p in parts]) for name in ErrorLaw.__slots__))
    return Found(np.concatenate([p.coef for p in parts]), law, np.concatenate([p.clear for p in parts]))


def part_of(spend: Loss, part: float) -> Loss:
    """A part of a spend, as a purchase divides it."""
    assert isinstance(spend, (Epsilon, Rho))
    return type(spend)(Fraction(spend.exact) * Fraction(part))


class Laboratory:
    """Public facts of a made-up table, the noise its questions would have, and its regressors."""

    def __init__(self, people: Population, spend: Loss, *, truth: bool = False) -> None:
        self.width, self.spend = people.x.shape[-1], spend
        y = Bool() if truth else Real(*people.y_bounds)
        columns = (*((f"x{i}", Real(*people.bounds)) for i in range(self.width)), ("y", y))
        self.facts = facts(Schema("t", columns), budget=BUDGET)
        self.design: Regressors = regressors(self.facts, [f"x{i}" for i in range(self.width)])

    def noise(self, question: Sums, part: float) -> tuple[Noise, ...]:
        """The noise that the plan of a question has."""
        return draw(question, self.facts, part_of(self.spend, part)).parts[0].noise

    def terms(self, people: Population) -> np.ndarray:
        """One and the terms of every row."""
        middle, half = self.design.terms[0].middle, self.design.terms[0].half
        return np.concatenate([np.ones((*people.y.shape, 1)), (people.x - middle) / half], axis=-1)


def blurred(sums: np.ndarray, noise: tuple[Noise, ...], rng: np.random.Generator | None) -> np.ndarray:
    """Sums of many samples with noise of its law, or none."""
    if rng is None:
        return sums
    each = [drawn(one.law, rng, (len(sums), one.width)) * float(one.step) for one in noise]
    return sums + np.concatenate(each, axis=1)


def triangles(rows: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """The upper triangles of the samples' sums of products."""
    weighted = rows if weights is None else rows * weights[..., None]
    matrix = np.swapaxes(weighted, 1, 2) @ rows
    return matrix[:, *np.triu_indices(rows.shape[-1])]


def ols_found(people: Population, spend: Loss, rng: np.random.Generator | None) -> Found:
    """Least squares of each sample."""
    lab = Laboratory(people, spend)
    explained = term(lab.facts, named("y"))
    units, constant = lab.design.units(explained.middle, explained.half)
    vector = lab.design.vector(explained.row)
    noise = lab.noise(Sums((Outer(vector),)), 1 - ols.SQUARES_PART)
    z = lab.terms(people)
    rows = np.concatenate([z, ((people.y - explained.middle) / explained.half)[..., None]], axis=-1)
    found = ols.moments_of(blurred(triangles(rows), noise, rng), noise, units=units)
    trial = lab.noise(ols.trial_squares(vector, None), ols.SQUARES_PART)
    clip = ols.clip_of(found.size, trial[0].deviation)
    residual = np.einsum("rni,ri->rn", rows, found.solution.slack)
    squares = np.minimum(
        (z @ np.swapaxes(ols.score_weights(found), 1, 2) * residual[..., None]) ** 2, clip[:, None, None]
    )
    squares = (squares * np.minimum(1, clip[:, None] / squares.sum(axis=-1))[..., None]).sum(axis=1)
    # The noise of a clip is that many times the noise of a clip of one.
    more = blurred(np.zeros_like(squares), trial, rng) * clip[:, None]
    law = ols.error_law(found, squares + more, (trial[0].deviation * clip)[:, None])
    values = np.einsum("ij,rj->ri", units, found.solution.coefficients) + constant
    return Found(values, law, found.solution.clear)


def logit_found(people: Population, spend: Loss, rng: np.random.Generator | None) -> Found:
    """Logistic regression of each sample; the curve is exact, where the database reads a table."""
    lab = Laboratory(people, spend, truth=True)
    units, _ = lab.design.units(0.0, 1.0)
    asked, z, m = LogitQuestions(lab.design, named("y"), None), lab.terms(people), lab.width + 1
    nothing = np.zeros(m)
    first, second, last = (
        lab.noise(question, part)
        for question, part in zip(
            (asked.moments(), asked.gradient(nothing, 1.0), asked.last(nothing, 1.0)), logit.PARTS, strict=True
        )
    )

    def slope(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        chance = 1 / (1 + np.exp(-np.einsum("rni,ri->rn", z, scores)))
        return np.einsum("rni,rn->ri", z, people.y - chance), chance

    half = np.einsum("rni,rn->ri", z, people.y - 0.5)
    released = blurred(np.concatenate([triangles(z), half], axis=1), first, rng)
    start = logit.started(released[:, :-m], released[:, -m:], first)
    scores = logit.step(start, blurred(slope(start.scores)[0], second, rng))
    gradient, chance = slope(scores)
    sums = blurred(np.concatenate([gradient, triangles(z, chance * (1 - chance))], axis=1), last, rng)
    values, law = logit.finish(scores, start, (sums[:, :m], sums[:, m:]), last, units=units)
    return Found(values, law, start.clear)


def bernstein_noise(bounds: tuple[float, float], spend: Loss, degree: int) -> tuple[Noise, ...]:
    """The noise of Bernstein's terms of a number within bounds, in units of their width to the degree."""
    known = facts(Schema("t", (("y", Real(*bounds)),)), budget=BUDGET)
    fn = Bernstein(named("y"), degree)
    step, low, high = fn.span(known.schema)
    found = draw(Sums((fn,)), known, spend).parts[0].noise
    return tuple(replace(one, step=one.step / ((high - low) * step) ** degree) for one in found)


def mean_sums(values: np.ndarray, bounds: tuple[float, float]) -> np.ndarray:
    """The sums p, q, r of each sample."""
    t = (values - bounds[0]) / (bounds[1] - bounds[0])
    return np.stack([(t**2).sum(axis=1), (2 * t * (1 - t)).sum(axis=1), ((1 - t) ** 2).sum(axis=1)], axis=1)


def batches(make: Callable[[int], Found], runs: int, each: int = 100) -> Found:
    """So many runs, in batches that memory holds."""
    return together([make(min(each, runs - done)) for done in range(0, runs, each)])


def means_found(sums: np.ndarray, noise: tuple[Noise, ...], *, two: bool) -> Found:
    """The mean of one group, or the difference of two on the axis before the last."""
    found = means.group_means(sums, noise[0].deviation)
    if not two:
        return Found(found.mean[:, None], _lifted(means.mean_law(found, noise)), found.clear)
    apart = found.mean[:, 0] - found.mean[:, 1]
    return Found(apart[:, None], _lifted(means.difference_law(found, noise)), found.clear.all(axis=1))


def rates_found(sums: np.ndarray, noise: tuple[Noise, ...], *, lift: bool) -> Found:
    """The difference of two proportions, or the logarithm of their ratio."""
    found = rates.rates_of(sums, noise[0].deviation)
    slopes = np.array([-1.0, 1.0]) / (found.rate if lift else 1.0)
    law = rates.contrast_law(found, noise, np.broadcast_to(slopes, found.rate.shape))
    value = np.log(found.rate[:, 1] / found.rate[:, 0]) if lift else found.rate[:, 1] - found.rate[:, 0]
    return Found(value[:, None], _lifted(law), found.clear.all(axis=1))


def _lifted(law: ErrorLaw) -> ErrorLaw:
    return ErrorLaw(law.sampling[:, None], law.freedom[:, None], law.gaussian[:, None], law.laplace[:, None])
