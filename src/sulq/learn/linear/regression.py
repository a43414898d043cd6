"""Linear regression from noisy sufficient statistics."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, NoReturn

import numpy as np

from sulq.answers.answer import Answer
from sulq.answers.oracle import ColumnChoice, SpendPlan
from sulq.errors import QuestionError
from sulq.forms.parameters import checked
from sulq.language.domain import Bool, Category, Column, Text
from sulq.language.kinds import Floats
from sulq.language.question import Sums, Together
from sulq.language.rowfn import Bernstein, Col, Dot, Lit, Lookup, Outer, RowFn, Scaled, Vector, WithinBall
from sulq.language.rowfn.keys import OrMissing
from sulq.learn.base import Regressor
from sulq.learn.evaluation.prediction import NumberPrediction
from sulq.learn.linear.backfitting import Backfitting
from sulq.learn.linear.windows import BITS, WORTH, Design, Window
from sulq.learn.noisy_sums import deviations, symmetric

COUNT, LOOK, LOOK_Y = 0.02, 0.08, 0.02  # of the spend: the number of rows, windows of X, the window of y
MIN_MEAN_Y_PART, MEANS = 0.06, 0.1  # the mean of y at least, of all columns
MAX_MEAN_Y_PART: Final = 0.3  # the mean of y at most
NEAR: Final = 0.015  # of its half width, what the mean of y should be off by at most
WITH_Y: Final = 0.42  # of what remains, for products with y
SURE: Final = 4.0  # deviations by which a narrower window must be better
OUTSIDE_Y: Final = 0.01  # rows that may lie outside for a window of y of half the width: y is what is predicted
MIN_CLEARNESS: Final = 2.0  # how far a column must stand out of a step's noise; below it y's mean is all that is asked
CLEAR: Final = 0.025  # noise of the products' eigenvalues, as part of a column's variance, up to which they are asked
CHANCE: Final = 0.01  # that products with y which are all noise are taken for more
MAX_PRIOR_VARIANCE: Final = 1.0  # the largest variance a scaled coefficient is taken to have


@dataclass(eq=False, repr=False, kw_only=True)
class LinearRegression(Regressor):
    """Least squares, regularised by what the noise calls for.

    First: where the columns lie. Where noise is small the products of the columns two by two and with y follow, about
    their means; the coefficients are their least squares, with a ridge that follows from the noise. Where it is not,
    there are rounds over the columns: each step asks for one sum, of a column times what the others leave unexplained,
    or of that alone for each label. Where even a step would drown, the prediction is the mean of y.

    Privacy: the spend's; the coefficients are computed from noisy sums.
    Accuracy: without noise these are the least squares of the textbook. Noise of deviation s in the products with y and
    a prior variance t of scaled coefficients, read off the same products, give w = (S^2 + s^2/t)^-1 S b, the
    mean of w given b. Rows are shortened, X and y by one factor, which leaves a linear relation what it is.
    Source: the calculus of noisy sums of BDMN05, section 4.1; S0.29.

    Spend: 2% the number of rows, 10% windows, 6% to 30% the mean of y (as much as brings it within 1.5% of the window's
    half width). By products: 10% the other means, of the rest 42% products with y and 58% of the columns; taken where
    sqrt(d) times a product's noise is below .025 of a column's variance. By steps: 8% how many rows have each label,
    the rest evenly over 2 to 12 rounds, residuals clipped at 1.5 deviations of y. All of it for the mean of y where
    a column that moves y by .3 deviations would not be twice the noise of a step.

    narrow: Whether to look for the window of each number that most rows lie in; else declared bounds are the window.

    Learned: `coef_` and `intercept_`, in the columns' own units; `coef_names_`, what they are of, a category's
    first label having none; `windows_`, the ends of each number's window: beyond them it counts as the end.
    """

    parts = (Design, Window)

    narrow: bool = True

    def _fit(self, X: ColumnChoice, y: ColumnChoice, spending: SpendPlan) -> None:
        checked(isinstance(self.narrow, bool), "narrow is True or False.")
        name, domain = y.names[0], y.domain[0]
        if isinstance(domain, (Bool, Category, Text)):
            raise QuestionError("wrong-kind", f"{name} is not a number.", "Predict classes with a classifier.")
        task = RegressionTask(Design.of(X), Window.declared(name, domain), spending)
        narrow = self.narrow and not spending.sublinear
        task.check(narrow=narrow)
        self._y = task.y
        task.look(narrow=narrow)
        weights, intercept = task.learn()
        self._design, self._y_seen = task.design, task.y
        self.windows_ = np.array([(window.low, window.high) for window in task.design.numbers]).reshape(-1, 2)
        self.coef_names_ = task.design.names
        coef, constant = task.design.told(weights[None], np.array([intercept]))
        self.coef_, self.intercept_ = coef[0], float(constant[0])

    def predict(self, X: object) -> Floats:
        """The number for each row of an ordinary array or frame, within the bounds declared for y."""
        self._ready()
        found = self._design.scores(X, self.coef_[None], np.array([self.intercept_]))[:, 0]
        return np.clip(found, self._y.low, self._y.high)

    def summary(self) -> NoReturn:
        """Refused: coefficients that are moved on purpose, to predict well, have no honest standard errors (0073)."""
        raise QuestionError(
            "not-available",
            "The coefficients of a fit are shrunk and clipped to predict well: they have no honest standard errors.",
            "Ask the database: db.ols(y, [x, ...], spend=...), which has them.",
        )

    @property
    def _predicts(self) -> Column:
        return self._y.domain

    def _prediction(self) -> NumberPrediction:
        (score,) = self._design.rows(self.coef_[None], np.array([self.intercept_]))
        seen: Window = getattr(self, "_y_seen", self._y)  # models that were saved before have none
        return NumberPrediction(score.clip(self._y.low, self._y.high), (seen.low, seen.high))

    def _learned_columns(self) -> tuple[tuple[str, Column], ...]:
        return self._design.learned


@dataclass(slots=True)
class RegressionTask:
    """One fit: what is learned from what, and how the spend is divided."""

    design: Design
    y: Window
    spending: SpendPlan
    left: float = 1.0
    total: float = 1.0  # rows, as far as is known
    blur: float = 0.0  # and the deviation of that
    moments: list[tuple[float, float]] = field(default_factory=list)

    @property
    def terms(self) -> list[tuple[int, RowFn]]:
        """The columns of the regression: the place of each in the design, and a row function within [-1, 1].

        A key has a column for each label but its first, 1 where the row has the label and -1 where not.
        """
        found = [(i, window.row) for i, window in enumerate(self.design.numbers)]
        at = len(found)
        for key in self.design.keys:
            for code in range(1, key.size):
                table = [(1.0 if i == code else -1.0,) for i in range(key.size)]
                found.append((at + code, Lookup((OrMissing(key.row),), (*table, (0.0,)))))
            at += key.size
        return found

    @property
    def known(self) -> RowFn:
        """That a row has a y."""
        return ~Col(self.y.name).is_missing()

    @property
    def width(self) -> int:
        """How many columns the regression has, y included."""
        return len(self.terms) + 1

    def shortened(self, means: Floats, radius: float) -> RowFn:
        """The columns and y about their means, shortened to a part of the cube's corner, all by one factor."""
        rows = [row for _, row in self.terms] + [self.y.row]
        about = tuple(row - float(mean) for row, mean in zip(rows, means, strict=True))
        return WithinBall(Vector(about, BITS), radius * float(np.sqrt(self.width)))

    def count(self) -> Sums:
        """How many rows have a y."""
        return Sums((Lit(1),), self.known)

    def means(self, radius: float) -> tuple[Sums, Sums]:
        """The sums of y from either end of its window (SR18), and those of all columns."""
        return (Sums((Bernstein(self.y.seen),)), Sums((self.shortened(np.zeros(self.width), radius),), self.known))

    def products(self, means: Floats, radius: float) -> tuple[Sums, Sums]:
        """The products of y with each column, and of all columns two by two."""
        row = self.shortened(means, radius)
        pick = (0.0,) * (self.width - 1) + (1.0,)
        return Sums((Scaled(row, Dot(row, pick), BITS),), self.known), Sums((Outer(row),), self.known)

    def check(self, *, narrow: bool) -> None:
        """Refuse what cannot be asked, before the first question: at the whole spend, and at the least part of it.

        Noisy counts decide between products and steps, so queries must suffice for either.
        """
        nowhere = np.zeros(self.width)
        sights, part = self.sights(narrow=narrow)
        steps = Backfitting(self.design, self.y, self.known, self.spending, [], np.zeros(self.design.size))
        later = [*self.means(1.0), *self.products(nowhere, 1.0)]
        self.spending.foresee(sights, part)
        for question in later:
            self.spending.foresee(question)
            self.spending.foresee(question, MIN_MEAN_Y_PART)
        self.spending.foresee(steps.start(MIN_MEAN_Y_PART), MIN_MEAN_Y_PART)
        for path in (steps.fewest(MIN_MEAN_Y_PART), later):
            self.spending.plan(3, sights, *path)

    def sights(self, *, narrow: bool) -> tuple[Together, Fraction]:
        """The first question: the number of rows, and where they lie; and its part of the spend."""
        n = len(self.design.numbers)
        shares = [Fraction(COUNT)]
        if narrow:
            shares += [Fraction(LOOK_Y), *(Fraction(LOOK) / n for _ in range(n))]
        windows = (self.y, *self.design.numbers) if narrow else ()
        asked = (self.count(), *(window.histogram for window in windows))
        return Together(asked, tuple(shares)), sum(shares, Fraction(0))

    def look(self, *, narrow: bool) -> None:
        """The number of rows and, with it, the windows of the numbers and of y."""
        windows = (self.y, *self.design.numbers) if narrow else ()
        asked, part = self.sights(narrow=narrow)
        answer, *histograms = self.spending.several(asked, part)
        self.left -= float(part)
        self.blur = float(answer.released.deviations()[0])
        self.total = max(float(answer.released.values()[0, 0]), self.blur, 1.0)
        if not windows:
            return
        worth = WORTH * min(1.0, (100 * self._blur()) ** 0.25)
        worths = [min(worth, OUTSIDE_Y), *(worth for _ in self.design.numbers)]
        found = [
            window.narrowed(histogram.released, (self.total, self.blur), each, SURE)
            for window, histogram, each in zip(windows, histograms, worths, strict=True)
        ]
        self.y, self.design = found[0], self.design.narrowed(found[1:])
        seen = zip(windows[1:], found[1:], histograms[1:], strict=True)
        self.moments = [old.moments(histogram.released, new) for old, new, histogram in seen]

    def _blur(self) -> float:
        """The noise of a mean that the whole spend could buy, as a part of the half width."""
        return self._noise(self.means(1.0)[1], 1.0) / float(np.sqrt(2))

    def _noise(self, question: Sums, part: float) -> float:
        """The deviation of the noise in a mean."""
        return float(deviations(self.spending.foresee(question, part))[0].max()) / self.total

    def learn(self) -> tuple[Floats, float]:
        """The weights of the design's places, and the intercept, in y's own units."""
        radius = float(np.clip(0.5 * (self._blur() / 1e-4) ** -0.25, 0.5, 1.0))
        level = radius**2 / 3  # what a column's variance is taken for before it is known
        for_y = self._for_y()
        rest = self.left - for_y - MEANS
        _, columns = self.products(np.zeros(self.width), radius)
        weights = np.zeros(self.design.size)
        steps = Backfitting(self.design, self.y, self.known, self.spending, self.moments, weights, total=self.total)
        if steps.clearness(rest) * (1 - self.blur / self.total) < MIN_CLEARNESS:  # of as many rows as there are surely
            mean = self._mean_y(self.spending.one(self.means(radius)[0], self.left))
            return weights, self.y.middle + self.y.half * mean
        if self._noise(columns, rest * (1 - WITH_Y)) * np.sqrt(self.width) > CLEAR * level:
            weights, intercept = steps.run(self.left, for_y)
            return self._from_first(weights * self.y.half, self.y.middle + self.y.half * intercept)
        answers = self.spending.several(Together(self.means(radius), (Fraction(for_y), Fraction(MEANS))), for_y + MEANS)
        mean_y = self._mean_y(answers[0])
        off = float(answers[0].released.deviations()[0]) / (2 * self.total)  # what the mean of y may be off by
        means, noise = self._mean(answers[1])
        signal = max(float((means[:-1] ** 2).mean()) - noise**2, 0.0) if self.width > 1 else 0.0
        means = np.append(means[:-1] * signal / (signal + noise**2), mean_y)
        slopes = self._slopes(means, radius, rest, off=2 * off * noise)
        for (place, _), slope in zip(self.terms, slopes, strict=True):
            weights[place] = slope
        intercept = float(means[-1] - slopes @ means[:-1])
        numbers = len(self.design.numbers)
        weights[numbers:] *= 2  # a label's column is 1 or -1, its place in the design 1 or 0
        intercept -= float(weights[numbers:].sum()) / 2
        return weights * self.y.half, self.y.middle + self.y.half * intercept

    def _for_y(self) -> float:
        """The part for the mean of y: as much as brings it near, since without slopes it is all there is."""
        off = self._noise(self.means(1.0)[0], 1.0) / 2
        needed = off / NEAR if self.spending.pure else (off / NEAR) ** 2
        return float(np.clip(needed, MIN_MEAN_Y_PART, MAX_MEAN_Y_PART))

    def _mean_y(self, answer: Answer) -> float:
        """The mean of y from the two one-sided sums, which also tell the number of rows better."""
        above, below = answer.released.values()[0]
        noise = float(answer.released.deviations()[0])
        rows = (above + below) / 2
        self.total = max(rows, noise, 1.0)
        return float(np.clip((above - below) / max(above + below, 2 * noise), -1.0, 1.0))

    def _mean(self, answer: Answer) -> tuple[Floats, float]:
        """Means from noisy sums, where means can be, and the deviation of their noise."""
        noise = float(answer.released.deviations().max()) / self.total
        return np.clip(answer.released.values()[0] / self.total, -1.0, 1.0), noise

    def _from_first(self, weights: Floats, intercept: float) -> tuple[Floats, float]:
        """The same function with no weight for the first label of each key."""
        at = len(self.design.numbers)
        for key in self.design.keys:
            first = float(weights[at])
            weights[at : at + key.size] -= first
            intercept += first
            at += key.size
        return weights, intercept

    def _slopes(self, means: Floats, radius: float, rest: float, *, off: float) -> Floats:
        """The slopes of the scaled columns, from the products; `off`: what these may be off by about wrong means."""
        d = self.width - 1
        shares = (Fraction(WITH_Y), 1 - Fraction(WITH_Y))
        first, second = self.spending.several(Together(self.products(means, radius), shares), rest)
        matrix = symmetric(second.released.values()[0], d + 1) / self.total
        blur = float(second.released.deviations()[0]) / self.total
        products = first.released.values()[0][:d] / self.total
        noise = float(first.released.deviations()[0]) / self.total
        trust = blur**2 / (blur**2 + noise**2)  # both questions tell the products with y: each counts by its precision
        products = trust * products + (1 - trust) * matrix[:d, d]
        return ridge(matrix[:d, :d], products, float(np.hypot(noise * np.sqrt(trust), off)), blur)


def ridge(matrix: Floats, products: Floats, noise: float, blur: float) -> Floats:
    """Slopes from mean products of the columns, blurred by noise, and with y: the mean of a posterior.

    `noise`, `blur`: deviations of the entries of `products` and `matrix`. The prior variance of slopes is what
    the products with y have beyond noise; where they might be noise alone the slopes are nothing.
    """
    d = len(products)
    if not d:
        return products
    values, vectors = np.linalg.eigh(matrix)
    values = np.maximum(values, 0.0) + blur
    seen = vectors.T @ products
    energy = float((seen**2).sum()) / max(noise**2, 1e-300)
    if energy < d + np.log(d / CHANCE) ** 2 / 2:  # a Laplace variable passes u deviations with probability e^(-sqrt2 u)
        return np.zeros(d)
    prior = min((energy - d) * noise**2 / max(float((values**2).sum()), 1e-12), MAX_PRIOR_VARIANCE)
    return np.asarray(vectors @ (values * seen / (values**2 + noise**2 / prior)))
