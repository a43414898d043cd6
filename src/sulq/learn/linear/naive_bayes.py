"""Naive Bayes: each column counted by class, as if the columns had nothing to do with one another."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from sulq.answers.oracle import ColumnChoice, SpendPlan
from sulq.forms.parameters import checked, number, whole
from sulq.language.attribute import MAX_CELLS, Attribute
from sulq.language.domain import Column, Int
from sulq.language.kinds import Floats
from sulq.language.question import Sums, Together
from sulq.language.rowfn import Lit, Lookup, OrMissing, RowFn
from sulq.learn.base import ScoreClassifier
from sulq.learn.evaluation.prediction import ClassPrediction, added
from sulq.learn.features import Array, Attributes, Labels, cells, codes_of, numbers_of
from sulq.learn.noisy_sums import apart, deviations, divided, sizes

SIZES: Final = 0.1  # of the spend, for the classes' sizes
FLOOR: Final = 0.3  # deviations of noise that a cell is never taken to be below
FEWEST_BINS, FEW_BINS, MANY_BINS = 8, 16, 32  # intervals of a number
MAX_TABLE_CELLS, MIN_CELLS = 2**16, 64  # of all numbers' tables in a prediction, and of one
NOISY, CLEAR = 0.05, 0.003  # noise of a cell as a part of a class, above which there are the fewest, below which many


@dataclass(eq=False, repr=False, kw_only=True)
class NaiveBayes(ScoreClassifier):
    """A classifier that takes each column by itself: counts of its values in each class, multiplied.

    Categories, truth values and few whole numbers are counted as they are, other numbers in intervals between
    their bounds. A number's counts are shrunk towards a normal curve of their own mean and variance, by as much as
    noise explains, and follow the curve within an interval: normal where noise hides the shape, the shape where not.

    Privacy: the spend's; the model is computed from noisy counts.
    Accuracy: without noise a category's probabilities are (count + alpha)/(size of the class + alpha * labels), as in
    the textbook. Each cell's count has noise of scale q/epsilon for q columns (twice that under replace_one) whatever
    the number of cells and classes: a row is in one of them (SR13).
    Source: the calculus of noisy sums of BDMN05, section 4.4; S0.29.

    Spend: 10% for the sizes of the classes, the rest for the columns, as the cube root of their numbers of cells.

    alpha: What is added to each count.
    bins: Intervals of a number; left out 8, 16 or 32, the more the less noise there is.

    Learned: `classes_`, `class_count_`, `class_prior_`; `theta_` and `var_`, the means and variances of numbers in each
    class; `feature_log_prob_`, for each column the logarithm of each value's or interval's probability in each class.
    """

    alpha: float = 0.5
    bins: int | None = None

    def _fit(self, X: ColumnChoice, y: ColumnChoice, spending: SpendPlan) -> None:
        checked(0 < number(self.alpha) <= 1e6, "alpha is a positive number.")
        if self.bins is not None:
            whole(self.bins, "bins", 2, 1000)
        labels = Labels(y)
        first = Sums((Lit(1),), by=(labels.row,))
        most = tables(Attributes.of(X, self.bins or MANY_BINS), labels, spending)
        spending.foresee(most)
        spending.plan(2, first, most)
        answer = spending.one(first, SIZES)
        counts, total = sizes(answer.released.values()[:, 0], float(answer.released.deviations()[0]))
        attributes = Attributes.of(X, self.bins or _intervals(X, labels, spending, total / labels.size))
        found = spending.several(tables(attributes, labels, spending), 1 - Fraction(SIZES))
        self.classes_ = labels.classes
        self.class_count_ = counts
        self.class_prior_ = counts / counts.sum()
        models: list[tuple[Floats, Floats, Floats]] = []
        for attribute, each in zip(attributes.items, found, strict=True):
            noisy = each.released.values().reshape(-1, labels.size).T
            models.append(_model(attribute, noisy, counts, float(each.released.deviations()[0]), float(self.alpha)))
        self._attributes = attributes
        self.feature_log_prob_ = tuple(log for log, _, _ in models)
        numbers = [i for i, attribute in enumerate(attributes.items) if attribute.ordered]
        shape = (labels.size, len(numbers))
        self.theta_ = np.array([models[i][1] for i in numbers]).reshape(shape[::-1]).T
        self.var_ = np.array([models[i][2] for i in numbers]).reshape(shape[::-1]).T

    def _scores(self, X: object) -> Floats:
        found = cells(X, [item.name for item in self._attributes.items])
        codes = self._attributes.codes(X)
        scores = np.tile(np.log(self.class_prior_), (len(codes), 1))
        number = 0
        for i, attribute in enumerate(self._attributes.items):
            known = codes[:, i] >= 0
            scores[known] += self.feature_log_prob_[i].T[codes[known, i]]
            if attribute.ordered:
                if attribute.edges is not None:
                    mean, variance = self.theta_[:, number], self.var_[:, number]
                    scores[known] += _within(attribute, found[attribute.name], mean, variance)[known]
                number += 1
        return scores

    def _prediction(self) -> ClassPrediction:
        prior = np.log(self.class_prior_)
        gap = (
            np.array([[-1.0, 1.0]]) if len(prior) == 2 else np.eye(len(prior))
        )  # of two classes their difference alone
        scores: list[list[RowFn]] = [[Lit(float(start))] for start in gap @ prior]
        number, fine = 0, _cells(len(gap) * len(self._attributes))
        for attribute, log in zip(self._attributes.items, self.feature_log_prob_, strict=True):
            cut, table = attribute, log.T
            if attribute.ordered:
                if attribute.edges is not None:
                    moments = self.theta_[:, number], self.var_[:, number]
                    cut, table = _finer(attribute, log, moments, fine)
                number += 1
            key = OrMissing(cut.row)
            for score, entries in zip(scores, (table @ gap.T).T.tolist(), strict=True):
                score.append(Lookup((key,), (*((entry,) for entry in entries), (0.0,))))
        return ClassPrediction.of([added(score) for score in scores], len(prior))

    def _learned_columns(self) -> tuple[tuple[str, Column], ...]:
        return self._attributes.learned


def _cells(tables: int) -> int:
    """How many cells a number's tables have, where there are so many of them: a question must not grow too large."""
    return int(np.clip(2 ** int(np.log2(MAX_TABLE_CELLS / max(tables, 1))), MIN_CELLS, MAX_CELLS))


def _finer(attribute: Attribute, log: Floats, moments: tuple[Floats, Floats], many: int) -> tuple[Attribute, Floats]:
    """A number in many fine cells, and each class's score in the middle of each of them."""
    fine = Attribute(attribute.name, attribute.domain, attribute.bins * max(many // attribute.bins, 1))
    edges = _edges(fine)
    whole = isinstance(attribute.domain, Int) or attribute.domain.clock is not None
    at = (edges[1:] + edges[:-1]) / 2
    if whole:  # the values themselves lie from an edge up to just before the next one
        at = np.floor(at) if fine.edges is None else np.minimum(at, edges[:-1] + (np.diff(edges) - 1) / 2)
        at = np.clip(at, edges[0] if fine.edges else edges[0] + 0.5, edges[-1])
    codes = codes_of(attribute, at)
    return fine, log.T[codes] + _within(attribute, at, *moments)


def tables(attributes: Attributes, labels: Labels, spending: SpendPlan) -> Together:
    """The question: how many rows each cell of each column has in each class."""
    asked = tuple(Sums((Lit(1),), by=(attribute.row, labels.row)) for attribute in attributes.items)
    widths = [attribute.size for attribute in attributes.items]
    return Together(asked, divided(widths, [1.0] * len(widths), pure=spending.pure))


def _intervals(X: ColumnChoice, labels: Labels, spending: SpendPlan, rows: float) -> int:
    """How many intervals the noise allows: the fewer, the more rows are in each."""
    noise = deviations(spending.foresee(tables(Attributes.of(X, FEW_BINS), labels, spending), 1 - Fraction(SIZES)))
    blur = float(np.mean([part[0] for part in noise])) / rows
    return FEWEST_BINS if blur > NOISY else FEW_BINS if blur > CLEAR else MANY_BINS


def _model(
    attribute: Attribute, noisy: Floats, counts: Floats, deviation: float, alpha: float
) -> tuple[Floats, Floats, Floats]:
    """The logarithms of the cells' probabilities in each class, and a number's mean and variance there."""
    pooled = np.maximum(noisy.sum(axis=0), 0.5 * deviation)
    pooled = pooled / pooled.sum()
    found = _shrunk(noisy, np.tile(pooled, (len(counts), 1)), counts, deviation)
    mean = variance = np.zeros(len(counts))
    if attribute.ordered:
        edges = _edges(attribute)
        middles, width = (edges[1:] + edges[:-1]) / 2, float(np.diff(edges).mean())
        mean = found @ middles
        spread = (found * (middles - mean[:, None]) ** 2).sum(axis=1)
        inside = width**2 / 12 if attribute.edges is not None else 0.0  # an interval's own spread is no distance
        variance = np.maximum(spread - inside, width**2 / 8)
        found = _shrunk(noisy, _normal(edges, mean, variance), counts, deviation)
    expected = found * counts[:, None]
    chance = (expected + alpha) / (expected.sum(axis=1, keepdims=True) + alpha * noisy.shape[1])
    return np.log(chance), mean, variance


def _shrunk(noisy: Floats, target: Floats, counts: Floats, deviation: float) -> Floats:
    """Each class's frequencies, moved from the noisy ones towards a target by what noise explains of their gap."""
    variances = (deviation / counts) ** 2
    gaps = noisy / counts[:, None] - target
    believed = apart(gaps, variances, counts / counts.sum(), 1e-9)
    least = np.minimum(np.maximum(target, 1e-9), (FLOOR * believed * deviation / counts)[:, None])
    found = np.maximum(target + believed[:, None] * gaps, least)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def _edges(attribute: Attribute) -> Floats:
    """The ends of a number's intervals; of single whole values halfway between them."""
    if attribute.edges is not None:
        return np.array(attribute.edges)
    values = np.array(attribute.labels, dtype=np.float64)
    return np.concatenate([values - 0.5, values[-1:] + 0.5])


def _normal(edges: Floats, mean: Floats, variance: Floats) -> Floats:
    """The parts of normal curves between edges; the tails belong to the ends."""
    distance = (edges[1:-1] - mean[:, None]) / np.sqrt(2 * variance)[:, None]
    below = (1 + np.vectorize(math.erf, otypes=[float])(distance)) / 2
    ends = np.zeros((len(mean), 1))
    parts: Floats = np.diff(np.concatenate([ends, below, ends + 1], axis=1), axis=1)
    return np.maximum(parts, 1e-9)


def _within(attribute: Attribute, values: Array, mean: Floats, variance: Floats) -> Floats:
    """How a normal curve is higher or lower at each value than on average over its interval, on a logarithmic scale."""
    edges = _edges(attribute)
    numbers = np.clip(numbers_of(values, attribute.domain, attribute.name), edges[0], edges[-1])
    code = np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, len(edges) - 2)
    height = -0.5 * (numbers[:, None] - mean) ** 2 / variance - 0.5 * np.log(2 * np.pi * variance)
    parts = _normal(edges, mean, variance) / np.diff(edges)
    found: Floats = height - np.log(parts.T[code])
    # Far out in a tail both vanish; what is left of their quotient is bounded.
    return np.clip(np.nan_to_num(found), -3.0, 3.0)
