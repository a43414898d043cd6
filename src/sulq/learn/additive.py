"""Additive models: a sum of one curve a column, fitted to noisy histograms of what it does not explain yet."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from sulq.answers.oracle import ColumnChoice, SpendPlan
from sulq.answers.released import Released
from sulq.errors import QuestionError
from sulq.forms.parameters import checked, number, whole
from sulq.language.domain import Bool, Category, Column, Text
from sulq.language.kinds import Floats
from sulq.language.question import Sums, Together
from sulq.language.rowfn import Bernstein, Bins, Clip, Col, Lit, OrMissing, RowFn, lit, lookup
from sulq.learn.base import Classifier, Learner, Regressor
from sulq.learn.evaluation.prediction import ClassPrediction, NumberPrediction, added
from sulq.learn.features import Attributes, Feature, Labels
from sulq.learn.noisy_sums import deviations
from sulq.learn.shapes import GRID, Shape

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_ROUNDS: Final = 50
START: Final = Fraction(1, 20)  # of the spend, for the intercept and the number of rows
COUNTS: Final = Fraction(1, 10)  # for the columns' histograms
QUERY_ROUNDS: Final = 2  # under a SubLinear budget, where a round costs queries and no accuracy
CLEARNESS_A_ROUND: Final = 14.0  # how far a usual curve stands out of a step's noise; rounds grow with its root
GROUPS: Final = 7.0  # of a number, for the root of the same at the rounds that are made
SMOOTH: Final = 0.3  # of a number's groups, over which a curve is taken to keep its value to a factor of e
ROUGH: Final = 0.1  # part of a curve's variance that each group has to itself
FARTHEST: Final = 4.0  # that one step moves a value
REACH: Final = 6  # a score is clamped to this on either side before it meets the logistic curve
LEAST_SPREAD: Final = 0.05  # of a number to predict, in halves of its width
PRIOR: Final = 0.3  # of a curve's values, in deviations of the number to predict
PRIOR_ODDS: Final = 0.4  # of a curve's values, in log-odds
CLIP: Final = 1.25  # of residuals, in deviations of the number to predict
WINDOW: Final = 5.0  # deviations of y about its mean, within which predictions of it are judged
STEPS: Final = 16  # of that curve, to one unit of score


@dataclass(eq=False, repr=False, kw_only=True)
class Additive(Learner):
    """What both additive models share: histograms first, then rounds over the columns."""

    parts = (Shape,)
    usual_rounds: ClassVar[tuple[int, int]]  # at least and at most, if they are not given

    n_bins: int = 32
    rounds: int | None = None

    def _fit(self, X: ColumnChoice, y: ColumnChoice, spending: SpendPlan) -> None:
        whole(self.n_bins, "n_bins", 2, 256)
        rounds = None if self.rounds is None else whole(self.rounds, "rounds", 1, MAX_ROUNDS)
        self._check()
        attributes = Attributes.of(X, self.n_bins)
        keys = [OrMissing(item.row) for item in attributes.items]
        first, more = self._start(y), self._histogram_keys()
        tables = Together(tuple(Sums((lit(1),), by=(key, *more)) for key in keys))
        steps = [Sums((lit(1),) * self._width, by=(key,)) for key in keys]  # no step has more cells than these
        fewest, most = (QUERY_ROUNDS,) * 2 if spending.sublinear else self.usual_rounds
        spending.plan(2 + len(keys) * (rounds or most), first, tables, *steps * (rounds or fewest))
        answer = spending.one(first, START)
        weight, self.intercept_ = self._begin(answer.released.values(), float(answer.released.deviations()[0]))
        part = (1 - START - COUNTS) / len(keys)
        clear = self._clearness(spending, keys[0], part, weight)
        self.n_rounds_ = rounds or int(np.clip(round(math.sqrt(clear / CLEARNESS_A_ROUND)), fewest, most))
        spending.plan(2 + len(keys) * self.n_rounds_)
        part /= self.n_rounds_
        groups = max(GROUPS * math.sqrt(self._clearness(spending, keys[0], part, weight)), 2.0)
        self.shapes_, weights = self._count(spending, tables, attributes, groups)
        terms = [shape.rows() for shape in self.shapes_]  # of hundreds of columns only one moves in a step
        for turn in range(self.n_rounds_):
            for i, (shape, slopes) in enumerate(zip(self.shapes_, weights, strict=True)):
                answer = spending.one(Sums(self._residuals(self._rows(terms)), by=(shape.group,)), part)
                self._step(shape, answer.released, slopes[min(turn, 1)], self._prior / math.sqrt(turn + 1))
                terms[i] = shape.rows()
        for shape in self.shapes_:
            self.intercept_ = self.intercept_ + shape.centre()

    @property
    @abstractmethod
    def _width(self) -> int:
        """How many scores a row has."""

    @property
    @abstractmethod
    def _prior(self) -> float:
        """How large a curve's values are reckoned to be: what is less than noise is little."""

    def _check(self) -> None:
        """Refuse what is wrong with a subclass's own parameters."""

    @abstractmethod
    def _start(self, y: ColumnChoice) -> Sums:
        """The first question: what the intercept is made of."""

    @abstractmethod
    def _begin(self, sums: Floats, deviation: float) -> tuple[float, Floats]:
        """How much a unit of score moves the residuals of all rows, and the intercepts, from its answer."""

    def _histogram_keys(self) -> tuple[RowFn, ...]:
        """What the columns' histograms are divided by besides."""
        return ()

    @abstractmethod
    def _weights(self, counts: Floats, deviation: float) -> tuple[Floats, Floats]:
        """How much a unit of a shape moves a residual sum, for each group and score: in the first round, and later."""

    @abstractmethod
    def _residuals(self, scores: list[RowFn]) -> tuple[RowFn, ...]:
        """What the model does not explain of a row, within public bounds."""

    def _count(
        self, spending: SpendPlan, tables: Together, attributes: Attributes, groups: float
    ) -> tuple[list[Shape], list[tuple[Floats, Floats]]]:
        """Flat shapes over groups of enough rows, a number's about as many as given, and the weights of their steps."""
        shapes, weights = [], []
        for item, answer in zip(attributes.items, spending.several(tables, COUNTS), strict=True):
            counts = answer.released.values().reshape(item.size + 1, -1)
            deviation = float(answer.released.deviations()[0]) * math.sqrt(counts.shape[1])
            rows = counts.sum(axis=1)
            least = max(deviation, float(np.maximum(rows[:-1], 0).sum()) / groups) if item.ordered else deviation
            shape = Shape.of(item, rows, least, self._width)
            held = np.zeros((len(shape.counts), counts.shape[1]))
            np.add.at(held, list(shape.groups), np.maximum(counts, 0))
            shapes.append(shape)
            # A group of noise alone, such as that of the missing where nobody is, stays flat.
            enough = (shape.counts >= deviation)[:, None]
            first, later = self._weights(held, deviation)
            weights.append((first * enough, later * enough))
        return shapes, weights

    def _clearness(self, spending: SpendPlan, key: RowFn, part: Fraction, weight: float) -> float:
        """How far a curve of the usual size, were it one group, would stand out of the noise of a step; free."""
        step = Sums(self._residuals([lit(float(each)) for each in self.intercept_]), by=(key,))
        noise = float(deviations(spending.foresee(step, part))[0].max())
        return max(weight, 0.0) * self._prior / max(noise, 1e-9)

    def _rows(self, terms: list[list[RowFn]]) -> list[RowFn]:
        """A row's scores, as row functions: what is the same for all rows is one number of them."""
        found = []
        for intercept, each in zip(self.intercept_, zip(*terms, strict=True), strict=True):
            flat = sum(float(term.value) for term in each if isinstance(term, Lit))
            found.append(added([lit(float(intercept) + flat), *(term for term in each if not isinstance(term, Lit))]))
        return found

    def _step(self, shape: Shape, sums: Released, weights: Floats, prior: float) -> None:
        """Move one shape to where its groups' residual sums would be zero, as far as noise allows.

        With G the noisy sums, H the diagonal of their weights, s their deviation and K the covariance that a curve
        is taken to have, the step is the mean K H (H K H + s^2)^-1 G of a curve seen through noise: a group of few
        rows moves as its neighbours do.
        """
        likely = prior**2 * shape.alike(SMOOTH, ROUGH)
        change = np.zeros_like(shape.scores)
        for i, (seen, noise) in enumerate(zip(sums.values().T, sums.deviations().tolist(), strict=True)):
            weight = weights[:, i]
            spread = weight[:, None] * likely * weight + np.eye(len(weight)) * max(noise**2, 1e-12)
            change[:, i] = likely @ (weight * np.linalg.solve(spread, seen))
        shape.add(np.clip(change, -FARTHEST, FARTHEST))

    def _told(self) -> list[RowFn]:
        """A row's scores, exactly as they are told of ordinary rows."""
        return self._rows([shape.rows() for shape in self.shapes_])

    def _learned_columns(self) -> tuple[tuple[str, Column], ...]:
        return Attributes(tuple(shape.attribute for shape in self.shapes_)).learned

    def _decided(self, X: object) -> Floats:
        """The scores of ordinary rows: the intercept and what each column adds."""
        parts, start = self._explained(X)
        found: Floats = parts.sum(axis=1) + start
        return found[:, 0] if found.shape[1] == 1 else found

    def explain(self, X: object) -> Floats:
        """What each column adds to a row's score: rows x columns, and x scores where there are several.

        With `intercept_` they sum to the score.
        """
        parts, _ = self._explained(X)
        return parts[:, :, 0] if parts.shape[2] == 1 else parts

    def _explained(self, X: object) -> tuple[Floats, Floats]:
        self._ready()
        codes = Attributes(tuple(shape.attribute for shape in self.shapes_)).codes(X)
        return np.stack([shape.of_codes(codes[:, i]) for i, shape in enumerate(self.shapes_)], axis=1), self.intercept_

    @property
    def term_importances_(self) -> Floats:
        """How much each column moves the score on the mean, by the noisy counts; over all scores."""
        self._ready()
        return np.array([float(shape.importance.mean()) for shape in self.shapes_])

    def export_text(self) -> str:
        """The model in letters: the intercept, then every column's curve, the weightiest first."""
        self._ready()
        lines = [f"intercept {' '.join(f'{value:+.3f}' for value in self.intercept_)}"]
        order = np.argsort(-self.term_importances_, kind="stable")
        for i in order:
            lines += [f"{self.shapes_[i].name} (importance {self.term_importances_[i]:.3f})", *self.shapes_[i].lines()]
        return "\n".join(lines) + "\n"

    def plot(self, column: str, score: int = 0) -> Axes:
        """A picture of what a column adds, over how many rows have each value (needs the extra `plot`)."""
        self._ready()
        found = {shape.name: shape for shape in self.shapes_}
        checked(column in found, f"column is one of {', '.join(found)}.")
        whole(score, "score", 0, len(self.intercept_) - 1)
        return found[column].plot(score, self._axis(score))

    @abstractmethod
    def _axis(self, score: int) -> str:
        """What a score is called on a picture."""


class AdditiveClassifier(Additive, Classifier):
    """A sum of one curve a column, as log-odds: a model that can be read, drawn and explained row by row.

    Every column is divided into cells; a histogram by label, asked once, joins cells of too few rows. Then, in
    rounds over the columns, one question asks for each group of a column the sum of what the model does not yet explain
    of its rows (the residual 1[y] - p, within [-1, 1]) and the column's curve moves to where that sum would be
    zero: Newton's step, as far as the noise lets it, neighbouring groups taken to be alike. A row is in one group, so a
    step has the price of one sum. The residual is a function of the row's cells alone: the scores are public tables on
    a grid of 1/1024, the logistic curve a public table of 192 steps (SR16). More than two classes: one score for each,
    against the others, and the spend is divided over them.

    The spend: 5% for the classes' counts, 10% for the histograms, the rest evenly over all steps. With w = n p(1 - p),
    the noisy number of rows by the spread of the class, and s the noise of a step: rounds, where not given, are
    sqrt(.4 w/(14 s)), 1 to 8, s as if there were one; neighbouring cells of a number are joined until there are
    about 7 sqrt(.4 w/s) groups. Measured, beside interpret's DP-EBM: docs/benchmarks-learn.md.

    Privacy: the spend's; the curves are made of noisy sums alone.
    Accuracy: without noise and with many rounds it is the logistic regression on the cells' indicators.
    Source: boosted histograms as in [Nori21], with steps of Newton's kind in place of a small rate.

    n_bins: Into how many intervals of equal width a number's declared bounds are divided before any are joined.
    rounds: How often every column has its turn; left out, as the spend is worth.

    Learned: `shapes_`, each column's curve; `intercept_`; `classes_`; `n_rounds_`; `term_importances_`.
    """

    usual_rounds = (1, 8)

    def _start(self, y: ColumnChoice) -> Sums:
        self._labels = Labels(y)
        self.classes_ = self._labels.classes
        return Sums((lit(1),), by=(self._labels.row,))

    @property
    def _width(self) -> int:
        return 1 if len(self.classes_) <= 2 else len(self.classes_)

    @property
    def _prior(self) -> float:
        return PRIOR_ODDS

    def _begin(self, sums: Floats, deviation: float) -> tuple[float, Floats]:
        counts = np.maximum(sums[:, 0], 0) + deviation  # no class is said to be absent
        odds = np.log(counts / np.maximum(counts.sum() - counts, 1e-9))[-self._width :]
        self._parts = counts / counts.sum()
        spread = float((self._parts * (1 - self._parts))[-self._width :].max())
        return float(sums.sum()) * spread, np.rint(np.clip(odds, -REACH, REACH) * GRID) / GRID

    def _histogram_keys(self) -> tuple[RowFn, ...]:
        return (self._labels.row,)

    def _weights(self, counts: Floats, deviation: float) -> tuple[Floats, Floats]:
        """N p(1 - p) with p the part of the class in a group: at least the true weight once the model fits (Jensen).

        In the first round from the prior odds to the group's own: the slope between them, which
        would land there if there were no other column.
        """
        rows = counts.sum(axis=1, keepdims=True)
        before = np.clip(self._parts, 0.02, 0.98)[-self._width :]
        smoothed = (counts + deviation * self._parts) / (counts.sum(axis=1, keepdims=True) + deviation)
        after = np.clip(smoothed, 0.02, 0.98)[:, -self._width :]
        way = np.log(after / (1 - after)) - np.log(before / (1 - before))
        flat = np.abs(way) < 1e-6
        slope = np.where(flat, before * (1 - before), (after - before) / np.where(flat, 1.0, way))
        return rows * slope, rows * after * (1 - after)

    def _residuals(self, scores: list[RowFn]) -> tuple[RowFn, ...]:
        edges = tuple(i / STEPS for i in range(-REACH * STEPS, REACH * STEPS + 1))
        middles = (np.array(edges[:-1]) + np.array(edges[1:])) / 2
        curve = 1 / (1 + np.exp(-middles))
        size = len(self.classes_)
        own = np.eye(size)[size - self._width :]
        return tuple(
            lookup(self._labels.row, is_k.tolist()) - lookup(Bins(Clip(score, -REACH, REACH), edges), curve.tolist())
            for is_k, score in zip(own, scores, strict=True)
        )

    def decision_function(self, X: object) -> Floats:
        """The scores of ordinary rows: the intercept and what each column adds."""
        return self._decided(X)

    def _prediction(self) -> ClassPrediction:
        scores = self._told()
        return ClassPrediction.of(scores, len(self.classes_))

    def predict_proba(self, X: object) -> Floats:
        """The probability of each class."""
        scores = self.decision_function(X)
        odds = 1 / (1 + np.exp(-np.clip(scores, -500, 500)))
        if odds.ndim == 1:
            return np.column_stack([1 - odds, odds]) if len(self.classes_) == 2 else np.ones((len(odds), 1))
        found: Floats = odds / odds.sum(axis=1, keepdims=True)
        return found

    def _axis(self, score: int) -> str:
        return f"log-odds of {self.classes_[score - self._width]}"


@dataclass(eq=False, repr=False, kw_only=True)
class AdditiveRegressor(Additive, Regressor):
    """A sum of one curve a column, for a number: a model that can be read, drawn and explained row by row.

    As `AdditiveClassifier`, with the residual y - score, clipped: how far one row can move a sum. A smaller clip is
    less noise and, of residuals that pass it, less pull (Huber's loss). All of it is in halves of y's declared width;
    y's noisy deviation, of the first question, says where residuals are clipped and how large curves are
    reckoned to be: at 1.25 deviations, and .3 of one.

    The spend: 5% for the mean and the spread, 10% for the histograms, the rest evenly over all steps: 2 to 16 rounds by
    the same rule, as columns that go together share what they explain round by round.

    Privacy: the spend's; the curves are made of noisy sums alone.
    Accuracy: without noise, with many rounds and no residual clipped, it is the linear regression on the cells'
    indicators.
    Source: boosted histograms as in [Nori21].

    n_bins: Into how many intervals of equal width a number's declared bounds are divided before any are joined.
    rounds: How often every column has its turn; left out, as the spend is worth.
    clip: Where residuals are clipped, in halves of y's declared width, up to 2; left out, at 1.25 deviations of y.

    Learned: `shapes_`, each column's curve, and `intercept_`, `spread_`, `clip_`, all in halves of y's width;
    `n_rounds_`; `term_importances_`.
    """

    usual_rounds = (2, 16)

    clip: float | None = None

    def _check(self) -> None:
        checked(self.clip is None or 0 < number(self.clip) <= 2, "clip lies above 0 and is at most 2.")

    def _start(self, y: ColumnChoice) -> Sums:
        domain = y.domain[0]
        if isinstance(domain, (Bool, Category, Text)):
            raise QuestionError("wrong-kind", f"{y.names[0]} is no number; use AdditiveClassifier for classes.")
        self._target = Feature(y.names[0], domain)
        # (y - a)^2, 2(y - a)(b - y), (b - y)^2: number, mean and spread in one vector of norm 1 (SR18).
        return Sums((Bernstein(Col(y.names[0]), 2),))

    @property
    def _width(self) -> int:
        return 1

    @property
    def _prior(self) -> float:
        return PRIOR * self.spread_

    def _begin(self, sums: Floats, deviation: float) -> tuple[float, Floats]:
        above, between, below = sums[0]
        total = above + between + below
        held = max(total, deviation)
        mean = float(np.clip((above - below) / held, -1, 1))
        # With u = y in halves of its width, above + below - between is the sum of u^2.
        self.spread_ = math.sqrt(float(np.clip((above + below - between) / held - mean**2, LEAST_SPREAD**2, 1)))
        self.clip_ = float(self.clip or min(CLIP * self.spread_, 2))
        return float(total / (2 * float(self._target.half)) ** 2), np.array([round(mean * GRID) / GRID])

    def _weights(self, counts: Floats, deviation: float) -> tuple[Floats, Floats]:
        rows = counts.sum(axis=1, keepdims=True)
        return rows, rows

    def _residuals(self, scores: list[RowFn]) -> tuple[RowFn, ...]:
        return (Clip(self._target.row - Clip(scores[0], -1, 1), -self.clip_, self.clip_),)

    def predict(self, X: object) -> Floats:
        """The number, within the declared bounds."""
        scores = np.clip(self._decided(X), -1, 1)
        return scores * float(self._target.half) + float(self._target.middle)

    def _prediction(self) -> NumberPrediction:
        half, middle = float(self._target.half), float(self._target.middle)
        mean, away = float(self.intercept_[0]), WINDOW * self.spread_
        ends = np.clip([mean - away, mean + away], -1.0, 1.0) * half + middle
        return NumberPrediction(Clip(self._told()[0], -1, 1) * half + middle, (float(ends[0]), float(ends[1])))

    @property
    def _predicts(self) -> Column:
        return self._target.domain

    def _axis(self, score: int) -> str:
        return f"{self._target.column}, halves of its width"
