"""Linear scores of classes: a discriminant of noisy sums, the histogram that calibrates it, rounds that improve it.

Discriminant: from noisy sums of each class, numbers as if normal with one covariance, keys as if independent. A number
adds to the scores as in linear discriminant analysis, a key as in naive Bayes. Both are shrunk by what the noise
explains, so that with little to go by the scores are the classes' sizes and nothing else.

Calibration: where to cut a score of two classes and how steeply, from one noisy histogram of it by class. However many
columns a score is made of, a row lies in one bin of it: the question costs as a count does, and mends what noise did to
the intercept and to the scale of the weights.

Descent: rounds of noisy gradients of the logistic loss, each followed by a noisy search along its direction. The
gradient of class k is the sum of (p_k - 1[y = k]) x over the rows. Its second part is known from the first question of
all; so a round asks for the sum of (p_k - 1/2) x alone, which one row moves half as far, and which has nothing to do
with labels. Curves are public tables (SR16).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, cast

import numpy as np

from sulq.answers.oracle import SpendPlan
from sulq.language.kinds import Floats
from sulq.language.question import Sums, Together
from sulq.language.rowfn import Bins, Lit, Lookup, RowFn, Scaled
from sulq.learn.linear.windows import Design
from sulq.learn.noisy_sums import apart, covariance, divided

PRIOR_GAP_PART = 0.05  # of a number's variance: what class means are taken to differ by at least
FLOOR_DEVIATIONS = 0.3  # deviations of noise that a frequency is never taken to be below
RIDGE_DEVIATIONS = 0.7  # times sqrt(d) deviations of an entry, about what noise moves an eigenvalue by
SCORE_BINS: Final = 32
SCORE_REACH: Final = 4.0  # deviations of the score that they reach to
MIN_CELL_DEVIATIONS: Final = 2.0  # deviations above which a cell of the histogram holds rows
NEWTON_STEPS: Final = 50
MIN_CUT_DEVIATIONS: Final = 1.0  # deviations that another cut than the score's own must be better by
MAX_LOG_ODDS: Final = 8.0  # log-odds beyond which a row counts as this far: e^-8 is .0003
LOGISTIC_CELLS: Final = 256  # of a table of the logistic curve: it is off by 2e-5 at most, on average over a cell
EXPONENTIAL_CELLS: Final = 128  # of the exponential, of which there is one for each pair of classes
STEP_LENGTHS: Final = (0.5, 4.0, 32.0)  # steps that are tried along a direction
SEARCH_PART: Final = 0.15  # of a round's spend
INTERCEPT_PART: Final = 0.07  # of a gradient's
MAX_SPREAD: Final = 1.25  # of a score's variance, as a part of what the products say, up to which these are believed
MIN_STEEP: Final = 1e-3  # of the logistic curve, where it is taken to be flat
MIN_TURN_DEVIATIONS: Final = 2.0  # deviations that a slope must differ from none by to say that a step was too long
MAX_STRETCH: Final = 2.0  # times, that a step is made longer or shorter by the gradient after it
ROUND_GROWTH: Final = 1.3  # of the spend from round to round: the last decides
MAX_GROWTH: Final = 1000.0  # from the first to the last at most


@dataclass(frozen=True, slots=True, eq=False)
class ClassMoments:
    """What is known of the rows of each class.

    `counts`: their numbers, `total` together. `sums`: for each class and place of the design. `noise`: the
    deviation of a place's sums. `second`: the mean products of the numbers, where asked, and the
    deviation of an entry's noise. `level`: what a number's variance is taken for where it is not known.
    """

    counts: Floats
    total: float
    sums: Floats
    noise: Floats
    second: Floats | None
    second_noise: float
    level: float

    @property
    def means(self) -> Floats:
        """The mean of each place over all classes, where means can be."""
        return np.asarray(np.clip(self.sums.sum(axis=0) / self.total, -1.0, 1.0))


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Linear scores: a weight for each class and place, and an intercept for each class."""

    weights: Floats
    intercepts: Floats

    @property
    def gap(self) -> tuple[Floats, float]:
        """Of two classes, how much higher the second one scores: the weights and the intercept of that."""
        return self.weights[1] - self.weights[0], float(self.intercepts[1] - self.intercepts[0])

    @classmethod
    def of_gap(cls, gap: Floats) -> Scores:
        """Of two classes the scores of such log-odds, the intercept last."""
        both = np.stack([-gap, gap]) / 2
        return cls(both[:, :-1], both[:, -1])

    def moved(self, direction: Scores, length: float) -> Scores:
        """The scores so far along a direction."""
        return Scores(self.weights + length * direction.weights, self.intercepts + length * direction.intercepts)


def metric(moments: ClassMoments, design: Design) -> Floats:
    """The covariance of the places as far as it is known: of numbers, and of each label its frequency."""
    d = len(design.numbers)
    frequent = np.maximum(moments.means, (0.5 + 0.5 * moments.noise) / moments.total)
    found = np.diag(np.where(np.arange(design.size) < d, moments.level, frequent))
    if d and moments.second is not None:
        means = moments.means[:d]
        found[:d, :d] = covariance(moments.second - np.outer(means, means), moments.second_noise)
    return found


def discriminant(moments: ClassMoments, design: Design) -> Scores:
    """The scores that the sums speak for."""
    counts, d = moments.counts, len(design.numbers)
    weights = np.zeros((len(counts), design.size))
    intercepts = np.log(counts / counts.sum())
    means = moments.means
    gaps = moments.sums / counts[:, None] - means
    at = d
    if d:
        variances = (moments.noise[0] / counts) ** 2
        weights[:, :d], shift = _numbers(gaps[:, :d], variances, moments, metric(moments, design)[:d, :d])
        intercepts = intercepts + shift - weights[:, :d] @ means[:d]
    for key in design.keys:
        here = slice(at, at + key.size)
        weights[:, here] = _key(gaps[:, here], means[here], float(moments.noise[at]), moments)
        at += key.size
    return Scores(weights, intercepts)


def _numbers(gaps: Floats, variances: Floats, moments: ClassMoments, total: Floats) -> tuple[Floats, Floats]:
    """Fisher's discriminant: gaps of the means over the covariance within classes."""
    shares = moments.counts / moments.counts.sum()
    believed = apart(gaps, variances, shares, PRIOR_GAP_PART * moments.level)
    gaps = gaps * believed[:, None]
    unsure = float((shares * believed * variances).sum())  # what the means themselves may be off by
    between = (shares[:, None] * gaps).T @ gaps
    d = len(total)
    if moments.second is None:
        level = max(moments.level - float(np.trace(between)) / d, 0.3 * moments.level) + unsure
        weights: Floats = gaps / level
    else:
        values, vectors = np.linalg.eigh(total - between)
        ridge = unsure + RIDGE_DEVIATIONS * np.sqrt(d) * moments.second_noise
        weights = gaps @ (vectors / (np.maximum(values, 0.005 * moments.level) + ridge)) @ vectors.T
    return weights, -0.5 * np.einsum("kd,kd->k", weights, gaps)


def _key(gaps: Floats, frequency: Floats, noise: float, moments: ClassMoments) -> Floats:
    """Naive Bayes: how much likelier a label is in the class than among all rows, on a logarithmic scale."""
    counts, total = moments.counts, moments.total
    variances = (noise / counts) ** 2
    believed = apart(gaps, variances, counts / counts.sum(), 1e-6)
    frequency = np.maximum(frequency, (0.5 + 0.5 * noise) / total)  # of a label that is hardly there noise is all
    least = np.minimum(frequency, (FLOOR_DEVIATIONS * believed * np.sqrt(variances) + 0.5 / counts)[:, None])
    return np.log(np.maximum(frequency + believed[:, None] * gaps, least) / frequency)


@dataclass(frozen=True, slots=True)
class Scale:
    """A histogram of a score: `centre` give or take `reach`, in equal parts; what is farther out is at the end."""

    centre: float
    reach: float

    def question(self, score: RowFn, label: RowFn) -> Sums:
        """How many rows of each class have their score in each part."""
        edges = tuple(float(edge) for edge in np.linspace(-1, 1, SCORE_BINS + 1))
        return Sums((Lit(1),), by=(label, Bins(((score - self.centre) / self.reach).clip(-1, 1), edges)))

    @staticmethod
    def law(counts: Floats, deviation: float) -> tuple[Floats, Floats]:
        """How the score is distributed: the middles of the parts, in deviations, and their shares of the rows."""
        rows = _cleared(counts, deviation).sum(axis=0)
        edges = np.linspace(-SCORE_REACH, SCORE_REACH, SCORE_BINS + 1)
        return (edges[1:] + edges[:-1]) / 2, rows / max(float(rows.sum()), 1e-9)

    def line(self, counts: Floats, deviation: float, *, cut: bool) -> tuple[float, float]:
        """The slope and intercept, in terms of the score, of the log-odds of the second class.

        They are those of a logistic regression on the histogram, cells of mere noise left out; with `cut` the
        log-odds are zero where the fewest rows are on the wrong side, which needs no cell to stand out; another cut
        than the score's own must be better by the noise between the two.
        """
        middles = (np.linspace(-1, 1, SCORE_BINS + 1)[:-1] + np.linspace(-1, 1, SCORE_BINS + 1)[1:]) / 2
        slope, intercept = _fitted_line(middles, _cleared(counts, deviation), deviation * np.sqrt(counts.size))
        if cut:
            slope = max(slope, 1e-3)
            below = np.concatenate([[0.0], np.cumsum(counts[0])]) - np.concatenate([[0.0], np.cumsum(counts[1])])
            # Right are those of the first class below a cut and of the second above; cells between two cuts are noisy.
            own = int(np.clip(round((1 - self.centre / self.reach) * SCORE_BINS / 2), 0, SCORE_BINS))
            between = np.abs(np.arange(SCORE_BINS + 1) - own)
            best = int(np.argmax(below - MIN_CUT_DEVIATIONS * deviation * np.sqrt(2 * between)))
            if 0 < best < SCORE_BINS:
                intercept = -slope * (2 * best / SCORE_BINS - 1)
        slope /= self.reach
        return slope, intercept - slope * self.centre


def _cleared(counts: Floats, deviation: float) -> Floats:
    """The cells that stand out from the noise, each class with its own total."""
    found = np.where(counts > MIN_CELL_DEVIATIONS * deviation, counts, 0.0)
    found = np.where(found.sum(axis=1, keepdims=True) > 0, found, np.maximum(counts, 0.0))
    total = np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    return np.asarray(found * total / np.maximum(found.sum(axis=1, keepdims=True), 1e-9))


def _fitted_line(points: Floats, counts: Floats, noise: float) -> tuple[float, float]:
    """Slope and intercept of a logistic regression of two classes counted at points, by damped Newton steps."""
    total = max(float(counts.sum()), 1.0)
    penalty = (1 + 0.005 * noise) / total
    found = np.array([0.0, np.log((counts[1].sum() + 0.5) / (counts[0].sum() + 0.5))])
    terms = np.stack([points, np.ones_like(points)])
    for _ in range(NEWTON_STEPS):
        p = 1 / (1 + np.exp(-np.clip(found @ terms, -30, 30)))
        gradient = terms @ (counts.sum(axis=0) * p - counts[1]) / total + [2 * penalty * found[0], 0]
        hessian = (terms * (counts.sum(axis=0) * p * (1 - p) / total)) @ terms.T + np.diag([2 * penalty, 1e-6])
        step = np.linalg.solve(hessian, gradient)
        found = found - step / max(1.0, float(np.abs(step).max()) / 2)
    return float(np.clip(found[0], -80, 80)), float(np.clip(found[1], -80, 80))


@dataclass(frozen=True, slots=True, eq=False)
class Descent:
    """What the rounds have in common.

    `ball`: the numbers within a ball, for sums; `vector`: the same numbers, for scores; None where there are none.
    `known`: a condition, that the row has a label. `penalty`: of squared weights, 1/C. `law`: how the score of two
    classes is distributed, in deviations, where that was asked (`Scale.law`).
    """

    design: Design
    moments: ClassMoments
    ball: RowFn | None
    vector: RowFn | None
    reach: float  # of the ball, in the norm the noise is calibrated to
    label: RowFn
    known: RowFn
    penalty: float
    law: tuple[Floats, Floats] | None = None

    @property
    def told(self) -> bool:
        """Whether the curvature is known: of two classes of numbers alone whose score spreads as their products say.

        Where it spreads farther, many rows are shortened: their products are not those of the rows that are scored.
        """
        if self.law is None or self.moments.second is None or self.design.keys:
            return False
        points, shares = self.law
        return bool(1 / MAX_SPREAD <= shares @ (points - shares @ points) ** 2 <= MAX_SPREAD)

    def rounds(self, spending: SpendPlan, scores: Scores, count: int, part: float) -> Scores:
        """So many rounds from given scores, for a part of the spend."""
        if self.told:
            return self._newton(spending, scores, [share * part for share in parts(count)])
        for share in parts(count):
            scores = self._round(spending, scores, share * part)
        return scores

    def _newton(self, spending: SpendPlan, scores: Scores, shares: Sequence[float]) -> Scores:
        """Rounds of two classes of numbers alone whose products are known, as is the curvature then: no searches.

        A gradient tells how far the step before it should have gone: the slope along it falls in proportion.
        """
        at, before, step, scale = np.append(*scores.gap), np.zeros(0), np.zeros(self.design.size + 1), 1.0
        spread = metric(self.moments, self.design)
        for share in shares:
            slope, level, noise = self._slopes(spending, Scores.of_gap(at), share)
            found: Floats = np.append(slope, level)
            was, now = float(before @ step) if len(before) else 0.0, float(found @ step)
            if was > 0 and abs(now) > MIN_TURN_DEVIATIONS * float(np.sqrt(((noise * step[:-1]) ** 2).sum())):
                length = float(np.clip(was / max(was - now, was / MAX_STRETCH), 1 / MAX_STRETCH, MAX_STRETCH))
                at, found, scale = at + (length - 1) * step, found + (length - 1) * (found - before), scale / length
            step[:] = np.linalg.solve(scale * self.curvature(at, spread) + self._ridge(noise), found)
            at, before = at + step, found
        return Scores.of_gap(at)

    def curvature(self, gap: Floats, spread: Floats) -> Floats:
        """Of the loss at log-odds, the intercept last: as if a row's numbers beside these had nothing to do with them.

        `spread`: the covariance of the numbers.
        """
        moments, weights, means = self.moments, gap[:-1], self.moments.means
        sigma = float(np.sqrt(max(float(weights @ spread @ weights), 1e-12)))
        along = spread @ weights / sigma
        points, shares = cast("tuple[Floats, Floats]", self.law)
        chances = 1 / (1 + np.exp(-np.clip(weights @ means + gap[-1] + sigma * points, -30, 30)))
        steep = np.maximum(chances * (1 - chances), MIN_STEEP) * shares
        flat, tilt, bent = steep.sum(), steep @ points, steep @ points**2
        cross = tilt * along + flat * means
        numbers = flat * (spread + np.outer(means, means)) + (bent - flat) * np.outer(along, along)
        numbers += tilt * (np.outer(along, means) + np.outer(means, along))
        return moments.total * np.block([[numbers, cross[:, None]], [cross[None], np.array([[flat]])]])

    def _ridge(self, noise: Floats) -> Floats:
        """What the curvature gains by the penalty, and by the noise of gradients."""
        return np.diag(np.append(np.sqrt(noise**2 + self.moments.noise**2) + self.penalty, 1e-9 * self.moments.total))

    def _round(self, spending: SpendPlan, scores: Scores, part: float) -> Scores:
        direction = self._direction(spending, scores, part * (1 - SEARCH_PART))
        length = self._length(spending, scores, direction, part * SEARCH_PART)
        return scores.moved(direction, length)

    def gradient(self, scores: Scores, *, pure: bool) -> Together:
        """The sums of (p_k - 1/2) x over all rows with a label: of numbers, of ones, and by each key."""
        curves = self.curves(scores)
        n = len(curves)
        numbers = () if self.ball is None else tuple(Scaled(self.ball, curve) for curve in curves)
        reaches = (*((self.reach,) if numbers else ()), *(1.0 for _ in self.design.keys))
        shares = divided(self.design.widths, reaches, pure=pure)
        head = shares[0] if numbers else Fraction(0)
        least = Fraction(INTERCEPT_PART)
        first = Sums(
            (*numbers, *curves),
            self.known,
            shares=(*(head * (1 - least) / n for _ in numbers), *(least / n for _ in curves)),
        )
        keys = tuple(Sums(tuple(curves), self.known, by=(key.row,)) for key in self.design.keys)
        rest = [share * (1 - least) for share in (shares[1:] if numbers else shares)]
        return Together((first, *keys), (head * (1 - least) + least, *rest))

    def _direction(self, spending: SpendPlan, scores: Scores, part: float) -> Scores:
        """Against the gradient, as the curvature of the loss allows at least, less where noise is strong."""
        moments = self.moments
        slope, level, deviation = self._slopes(spending, scores, part)
        means = moments.means
        curvature = moments.total * metric(moments, self.design) / 2
        ridge = self._ridge(deviation)[:-1, :-1]
        weights = cast("Floats", np.linalg.solve(curvature + ridge, (slope - level[:, None] * means).T).T)
        intercepts = level / (moments.total / 2) - weights @ means
        if len(moments.counts) == 2:
            weights, intercepts = np.concatenate([-weights, weights]), np.concatenate([-intercepts, intercepts])
        return Scores(weights, intercepts)

    def _slopes(self, spending: SpendPlan, scores: Scores, part: float) -> tuple[Floats, Floats, Floats]:
        """How fast the loss falls with the weights and with the intercepts, and the deviation of places' noise."""
        moments, d = self.moments, len(self.design.numbers)
        first, *keys = spending.several(self.gradient(scores, pure=spending.pure), part)
        classes = len(moments.counts)
        asked = [1] if classes == 2 else list(range(classes))
        released, noise = first.released.values()[0], first.released.deviations()
        sums = np.zeros((len(asked), self.design.size))
        deviation = np.zeros(self.design.size)
        sums[:, :d] = released[: d * len(asked)].reshape(len(asked), d)
        deviation[:d] = noise[:d] if d else 0.0
        at = d
        for key, answer in zip(self.design.keys, keys, strict=True):
            sums[:, at : at + key.size] = answer.released.values().T
            deviation[at : at + key.size] = answer.released.deviations()[0]
            at += key.size
        ones = released[d * len(asked) :]
        slope = moments.sums[asked] - moments.sums.sum(axis=0) / 2 - sums
        level = moments.counts[asked] - moments.counts.sum() / 2 - ones
        # Of two classes the weights are the gap between the rows of scores.
        own = scores.weights[asked] - (scores.weights[[0]] if classes == 2 else 0.0)
        return slope - self.penalty * own, level, deviation

    def _length(self, spending: SpendPlan, scores: Scores, direction: Scores, part: float) -> float:
        """How far to go: where the loss stops falling, between the lengths that are tried."""
        slopes = spending.one(self.search(scores, direction), part).released.values()[0]
        slopes = slopes + [self._penalised(scores, direction, length) for length in STEP_LENGTHS]
        lengths = np.log(STEP_LENGTHS)
        rising = np.flatnonzero(slopes > 0)
        if not len(rising):
            return STEP_LENGTHS[-1]
        first = int(rising[0])
        if first == 0:
            return STEP_LENGTHS[0] / 2
        before, after = slopes[first - 1], slopes[first]
        return float(np.exp(lengths[first - 1] + (lengths[first] - lengths[first - 1]) * before / (before - after)))

    def _penalised(self, scores: Scores, direction: Scores, length: float) -> float:
        """How fast the penalty rises there; of two classes, as the loss in `search`, half of it."""
        own, way = scores.weights, direction.weights
        if len(own) == 2:
            own, way = own[[1]] - own[[0]], way[[1]] - way[[0]]
        rise = self.penalty * float(((own + length * way) * way).sum())
        return rise / 2 if len(scores.weights) == 2 else rise

    def search(self, scores: Scores, direction: Scores) -> Sums:
        """How fast the loss falls or rises along a direction, at each length; of two classes, half of that."""
        spread = np.einsum("kd,de,ke->k", direction.weights, metric(self.moments, self.design), direction.weights)
        reach = 4 * float(np.sqrt(max(float(spread.max()), 1e-12)))
        classes = len(self.moments.counts)
        ways = [
            self.design.score(self.vector, direction.weights[k], float(direction.intercepts[k])).clip(-reach, reach)
            for k in range(classes)
        ]
        values: list[RowFn] = []
        for length in STEP_LENGTHS:
            curves = self.curves(scores.moved(direction, length))
            terms = [
                (curve - Lookup((self.label,), tuple((0.5 if k == j else -0.5,) for j in range(classes)))) * ways[k]
                for k, curve in zip([1] if classes == 2 else range(classes), curves, strict=True)
            ]
            slope = terms[0]
            for term in terms[1:]:
                slope = slope + term
            values.append(slope.clip(-reach, reach))
        return Sums(tuple(values), self.known)

    def curves(self, scores: Scores) -> list[RowFn]:
        """How likely each class is, less one half; of two classes the second alone."""
        classes = len(scores.intercepts)
        if classes == 2:
            odds = self.design.score(self.vector, *scores.gap)
            return [curve_table(odds, lambda x: 1 / (1 + np.exp(-x)) - 0.5, LOGISTIC_CELLS)]
        each = [self.design.score(self.vector, scores.weights[k], float(scores.intercepts[k])) for k in range(classes)]
        found: list[RowFn] = []
        for k in range(classes):
            others: RowFn = Lit(1)
            for j in range(classes):
                if j != k:
                    others = others + curve_table(each[j] - each[k], np.exp, EXPONENTIAL_CELLS)
            found.append((1 / others).clip(0, 1) - 0.5)
        return found


def parts(count: int) -> list[float]:
    """The rounds' parts of what all of them may cost."""
    growth = min(ROUND_GROWTH, MAX_GROWTH ** (1 / count)) ** np.arange(count)
    return [float(part) for part in growth / growth.sum()]


def curve_table(item: RowFn, curve: Callable[[Floats], Floats], size: int) -> Lookup:
    """A curve as a public table over [-FAR, FAR], of its values in the middles of as many cells."""
    edges = np.linspace(-MAX_LOG_ODDS, MAX_LOG_ODDS, size + 1)
    values = curve((edges[1:] + edges[:-1]) / 2)
    return Lookup(
        (Bins(item.clip(-MAX_LOG_ODDS, MAX_LOG_ODDS), tuple(edges.tolist())),),
        tuple((float(value),) for value in values),
    )
