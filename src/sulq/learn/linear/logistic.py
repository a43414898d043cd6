"""Logistic regression from noisy sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, NoReturn

import numpy as np

from sulq.answers.oracle import ColumnChoice, SpendPlan
from sulq.errors import QuestionError
from sulq.forms.parameters import checked, number, whole
from sulq.language.domain import Column
from sulq.language.kinds import Floats
from sulq.language.question import Sums, Together
from sulq.language.rowfn import Col, Lit, Outer, RowFn, WithinBall
from sulq.learn.base import ScoreClassifier
from sulq.learn.evaluation.prediction import ClassPrediction
from sulq.learn.features import Labels
from sulq.learn.linear.scores import SCORE_REACH, ClassMoments, Descent, Scale, Scores, discriminant, metric, parts
from sulq.learn.linear.windows import WORTH, Design, Window, lengths, radius, stands_out
from sulq.learn.noisy_sums import deviations, divided, sizes, symmetric

LOOK: Final = 0.1  # for the windows of numbers
LENGTHS: Final = 0.05  # for the lengths of rows, where windows would be noise
TWO_SIZES: Final = 0.05  # for the sizes of two classes
SIZES: Final = 0.1  # of more
PRODUCTS: Final = 0.4  # for products of numbers, where there is nothing but numbers
CUT: Final = 0.25  # of what remains, for the calibration of two classes
CLEAR: Final = 0.3  # noise of a product, as part of a number's variance, up to which products are asked for
MIN_PART: Final = 0.015  # of the spend, that any question has at least
MAX_ROUNDS: Final = 200
MAX_NEWTON: Final = 8  # rounds by itself where the curvature is known, else half as many as where it is not
RADII: Final = 64  # parts of the way to a corner that radii are rounded to
# How far all rows must stand out of the noise of their sum for rounds to gain more than their noise costs. With keys,
# which the discriminant takes for independent, a round gains much more than on numbers alone.
TWO_WITH_KEYS, TWO_OF_NUMBERS = 1200, 6000  # of two classes, for three rounds
WITH_KEYS, OF_NUMBERS = 400, 2500  # of more, for each class and for each of up to three rounds
MAX_QUESTION_NODES: Final = 45_000  # nodes of a question, of which 50,000 are allowed


@dataclass(eq=False, repr=False, kw_only=True)
class LogisticRegression(ScoreClassifier):
    """A linear classifier by logistic regression, of two classes or more.

    A few questions make a discriminant of the classes' noisy sums, and two classes are told apart by a histogram
    of its score. Where rows and spend allow, rounds of noisy gradients follow: they lead to the maximum of the
    likelihood. Numbers are scaled to the window that most rows lie in and rows are shortened to a ball; where
    histograms of every number would be noise, one of the rows' lengths says how small the ball may be.

    Privacy: the spend's; everything is computed from noisy sums.
    Accuracy: without noise the rounds converge to multinomial logistic regression with the penalty |w|^2/(2C) on
    scaled numbers. With noise the scores are shrunk towards the classes' sizes by as much as noise explains. Rounds
    are made where the noise foreseen for a gradient costs less than they gain: of two classes where the rows are about
    6,000 times its noise (1,200 where there are categories, which the discriminant takes for independent, so that
    rounds gain more), of more one from 2,500 a class (400), two and three from as many times that.
    Source: the calculus of noisy sums of BDMN05, section 4; S0.29.

    Two classes of numbers alone need no searches where the products of the numbers say how the loss curves: then rounds
    are half as many, of Newton's steps.

    Spend: 5% for the sizes of two classes (10% of more), 10% for windows of numbers or 5% for lengths of rows, up to
    40% for products of numbers where they would stand out, 25% of the rest for the histogram, the rest for the sums of
    classes. With rounds these take 60% of the rest, 15% of each for the search along its direction where there is one.

    max_iter: How many rounds of gradients; left out, as many as the noise allows.
    C: The inverse strength of the penalty that rounds put on the squared weights of scaled numbers.
    narrow: Whether to look where the numbers lie; else declared bounds are the window of each.

    Learned: `classes_`; `coef_` and `intercept_`, in the columns' own units, a row of two classes and a row for each
    of more; `coef_names_`, what the columns of `coef_` are; `windows_`, the ends of each number's window: beyond them
    it counts as the end; `class_count_`; `n_iter_`, the rounds made.
    """

    parts = (Design, Window)

    max_iter: int | None = None
    C: float = 1.0
    narrow: bool = True

    def _fit(self, X: ColumnChoice, y: ColumnChoice, spending: SpendPlan) -> None:
        rounds = None if self.max_iter is None else whole(self.max_iter, "max_iter", 0, MAX_ROUNDS)
        checked(1e-6 <= number(self.C) <= 1e6, "C is a number from 1e-6 to 1e6.")
        checked(isinstance(self.narrow, bool), "narrow is True or False.")
        task = LogisticTask(Design.of(X), Labels(y), spending)
        narrow = self.narrow and not spending.sublinear
        task.check(rounds, narrow=narrow)
        counts, total = task.look(narrow=narrow)
        self.class_count_ = counts
        scores, self.n_iter_ = task.learn(counts, total, rounds, float(self.C))
        self._design = task.design
        self.classes_ = task.labels.classes
        self.windows_ = np.array([(window.low, window.high) for window in task.design.numbers]).reshape(-1, 2)
        self.coef_names_ = task.design.names
        coef, intercept = task.design.told(scores.weights, scores.intercepts)
        if task.labels.size == 2:
            coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
        self.coef_, self.intercept_ = coef, intercept

    def summary(self) -> NoReturn:
        """Refused: coefficients that are moved on purpose, to predict well, have no honest standard errors (0073)."""
        raise QuestionError(
            "not-available",
            "The coefficients of a fit are shrunk and clipped to predict well: they have no honest standard errors.",
            "Ask the database: db.logit(y, [x, ...], spend=...), which has them.",
        )

    def _scores(self, X: object) -> Floats:
        found = self._design.scores(X, self.coef_, self.intercept_)
        return np.concatenate([-found / 2, found / 2], axis=1) if len(self.classes_) == 2 else found

    def _prediction(self) -> ClassPrediction:
        scores = self._design.rows(self.coef_, self.intercept_)
        return ClassPrediction.of(scores, len(self.classes_))

    def _learned_columns(self) -> tuple[tuple[str, Column], ...]:
        return self._design.learned


@dataclass(slots=True)
class LogisticTask:
    """One fit: what is learned from what, and how the spend is divided."""

    design: Design
    labels: Labels
    spending: SpendPlan
    left: float = 1.0
    most: float = 1.0  # part of the way to a corner that rows are shortened to at most
    vectors: dict[float, RowFn] = field(default_factory=dict)  # of the design: within a radius, or 0 as they are
    histograms: Together | None = None  # of the numbers, once they were asked for
    law: tuple[Floats, Floats] | None = None  # of the score of two classes, likewise

    @property
    def known(self) -> RowFn:
        """That a row has a label."""
        return ~Col(self.labels.name).is_missing()

    def check(self, rounds: int | None, *, narrow: bool) -> None:
        """Refuse what cannot be asked, before the first question: at the whole spend, and at the least part of it."""
        fits = self._nodes() <= MAX_QUESTION_NODES
        checked(not rounds or fits, "Rounds of gradients are for fewer columns or classes; leave max_iter out.")
        self.spending.foresee(self.sizes(), self.first())
        later: list[Sums | Together] = [self.sizes(), self.sums(1.0)]
        looks = narrow and bool(self.design.numbers)
        if looks:
            self.spending.foresee(self.windows(), LOOK)
            self.spending.foresee(lengths(self.design), LENGTHS)
        if self.design.numbers:
            later.append(self.products(1.0))
        nothing = Scores(np.zeros((self.labels.size, self.design.size)), np.zeros(self.labels.size))
        if self.labels.size == 2:
            later.append(Scale(0.0, 1.0).question(self._score(nothing), self.labels.row))
        self._can_ask(later, MIN_PART)
        if rounds:
            classes, places = np.ones(self.labels.size), np.ones(self.design.size)
            descent = self.descent(ClassMoments(classes, 1.0, nothing.weights, places, None, 0.0, 1.0), 1.0, 1.0)
            each = descent.gradient(nothing, pure=self.spending.pure), descent.search(nothing, nothing)
            self._can_ask(each, MIN_PART * min(parts(rounds)))
            later += each * rounds
        self.spending.plan(3 + looks + 2 * (rounds or 0), *later)

    def _can_ask(self, questions: Sequence[Sums | Together], least: float) -> None:
        for question in questions:
            self.spending.foresee(question)
            self.spending.foresee(question, least)

    def _nodes(self) -> int:
        """How large the question for a gradient, or for a search, is at most."""
        score = 12 * len(self.design.numbers) + 8 * len(self.design.keys) + 4
        n = self.labels.size
        curves = score if n == 2 else n * (n - 1) * (2 * score + 8)
        return max(curves * (2 + len(self.design.keys)), 4 * (curves + 2 * n * score))

    def sizes(self) -> Sums:
        """How many rows each class has."""
        return Sums((Lit(1),), by=(self.labels.row,))

    def first(self) -> float:
        """The part of the spend for the sizes."""
        return TWO_SIZES if self.labels.size == 2 else SIZES

    def windows(self) -> Together:
        """Where each number lies, within declared bounds."""
        if self.histograms is None:
            numbers = self.design.numbers
            self.histograms = Together(tuple(window.histogram for window in numbers), (Fraction(1),) * len(numbers))
        return self.histograms

    def look(self, *, narrow: bool) -> tuple[Floats, float]:
        """The sizes of the classes, then where the numbers lie: the window of each, or how long rows are."""
        released = self.spending.one(self.sizes(), self.first()).released
        self.left -= self.first()
        deviation = float(released.deviations()[0])
        counts, total = sizes(released.values()[:, 0], deviation)
        if narrow and self.design.numbers:
            blur = deviation * float(np.sqrt(self.labels.size))
            worth = WORTH * min(1.0, (100 * self._blur(total)) ** 0.25)
            noise = float(self._noise(self.windows(), LOOK)[0][0])
            if stands_out(noise, (total, blur), worth):
                found = zip(self.design.numbers, self.spending.several(self.windows(), LOOK), strict=True)
                self.design = self.design.narrowed([w.narrowed(a.released, (total, blur), worth) for w, a in found])
                self.vectors.clear()
                self.left -= LOOK
            else:
                self.most = radius(self.spending.one(lengths(self.design), LENGTHS).released, total)
                self.left -= LENGTHS
        return counts, total

    def _blur(self, total: float) -> float:
        """The noise of a mean of numbers that the whole spend could buy, as a part of the half width."""
        asked = Sums((self.vector(),), by=(self.labels.row,))
        return float(deviations(self.spending.foresee(asked))[0][0]) / (float(np.sqrt(2)) * total)

    def _radius(self, total: float) -> float:
        """What rows are shortened to, as a part of the cube's corner: half, and more where noise is small beside n.

        Less where the rows were seen to be shorter.
        """
        if not self.design.numbers:
            return 1.0
        wished = float(np.clip(0.5 * (self._blur(total) / 1e-4) ** -0.25, 0.5, 1.0))
        return min(round(wished * RADII) / RADII, self.most)  # one of few: vectors in memory are then of other fits too

    def vector(self) -> RowFn:
        """The numbers side by side: one object for all questions, so that what it is need be worked out once."""
        if 0.0 not in self.vectors:
            self.vectors[0.0] = self.design.vector()
        return self.vectors[0.0]

    def ball(self, radius: float) -> RowFn:
        """The numbers, shortened; likewise."""
        if radius not in self.vectors:
            self.vectors[radius] = WithinBall(self.vector(), radius * float(np.sqrt(len(self.design.numbers))))
        return self.vectors[radius]

    def reach(self, radius: float) -> float:
        """How far one row moves a sum of shortened numbers, in the norm of the noise."""
        d = len(self.design.numbers)
        return radius * (d if self.spending.pure else float(np.sqrt(d)))

    def sums(self, radius: float) -> Together:
        """The sums of each class: of numbers, and how many have each label of each key."""
        design, label = self.design, self.labels.row
        reaches = (*((self.reach(radius),) if design.numbers else ()), *(1.0 for _ in design.keys))
        asked = [Sums((Lit(1),), by=(key.row, label)) for key in design.keys]
        if design.numbers:
            asked.insert(0, Sums((self.ball(radius),), by=(label,)))
        return Together(tuple(asked), divided(design.widths, reaches, pure=self.spending.pure))

    def products(self, radius: float) -> Sums:
        """The products of the numbers, two by two."""
        return Sums((Outer(self.ball(radius)),), self.known)

    def learn(self, counts: Floats, total: float, rounds: int | None, C: float) -> tuple[Scores, int]:
        """The discriminant, then what improves it."""
        radius = self._radius(total)
        clear = total * np.sqrt(2) / np.sqrt(np.mean(np.concatenate(self._noise(self.sums(radius))) ** 2))
        free = rounds is None
        if rounds is None:
            rounds = self._rounds(float(clear))
        two = self.labels.size == 2
        products = self._products(radius, total)
        rest = self.left - products
        part = rest * (0.35 if rounds else 1 - CUT if two else 1.0)
        moments = self._moments(counts, total, radius, part, products)
        scores = discriminant(moments, self.design)
        if two:
            cut = rest * (0.05 if rounds else CUT)
            scores = self._calibrated(scores, moments, cut, last=not rounds)
            part += cut
        descent = self.descent(moments, radius, 1 / C)
        if free and descent.told:
            rounds = min(-(-rounds // 2), MAX_NEWTON)
        return descent.rounds(self.spending, scores, rounds, rest - part) if rounds else scores, rounds

    def _noise(self, question: Together | Sums, part: float = 1.0) -> list[Floats]:
        return deviations(self.spending.foresee(question, part))

    def _rounds(self, clear: float) -> int:
        """How many rounds the noise allows: `clear` is how far all rows stand out from the noise of their sum."""
        if self.spending.sublinear or self.labels.size < 2 or self._nodes() > MAX_QUESTION_NODES:
            return 0
        if self.labels.size == 2:
            fewest = 3 if clear >= (TWO_WITH_KEYS if self.design.keys else TWO_OF_NUMBERS) else 0
        else:
            clear /= self.labels.size  # each class has a gradient of its own
            fewest = int(min(clear / (WITH_KEYS if self.design.keys else OF_NUMBERS), 3))
        return fewest if clear < 20_000 else 6 if clear < 1e6 else 30

    def _products(self, radius: float, total: float) -> float:
        """The part of the spend for products: nothing where noise would drown them."""
        d = len(self.design.numbers)
        if not d:
            return 0.0
        numbers = self.reach(radius)
        part = PRODUCTS * numbers / (numbers + len(self.design.keys))
        noise = float(self._noise(self.products(radius), part)[0].max())
        return part if noise / total < CLEAR * radius**2 / 3 else 0.0

    def _moments(self, counts: Floats, total: float, radius: float, part: float, products: float) -> ClassMoments:
        """Ask for the sums and, where it pays, the products: one question."""
        d, classes = len(self.design.numbers), self.labels.size
        sums = self.sums(radius)
        asked, shares = sums.questions, [share * Fraction(part) for share in sums.shares]
        if products:
            asked, shares = (*asked, self.products(radius)), [*shares, Fraction(products)]
        found = list(self.spending.several(Together(asked, tuple(shares)), part + products))
        second = found.pop() if products else None
        columns: list[Floats] = []
        noise: list[Floats] = []
        for i, answer in enumerate(found):
            values = answer.released.values()
            columns.append(values if d and i == 0 else values.reshape(-1, classes).T)
            noise.append(np.full(columns[-1].shape[1], answer.released.deviations()[0]))
        return ClassMoments(
            counts=counts,
            total=total,
            sums=np.concatenate(columns, axis=1),
            noise=np.concatenate(noise),
            second=None if second is None else symmetric(second.released.values()[0], d) / total,
            second_noise=0.0 if second is None else float(second.released.deviations()[0]) / total,
            level=radius**2 / 3,
        )

    def _score(self, scores: Scores) -> RowFn:
        """How much higher the second class scores, as a row function."""
        return self.design.score(self.vector() if self.design.numbers else None, *scores.gap)

    def _calibrated(self, scores: Scores, moments: ClassMoments, part: float, *, last: bool) -> Scores:
        """Two classes: the score's scale and cut from its histogram."""
        gap, offset = scores.gap
        spread = float(np.sqrt(max(float(gap @ metric(moments, self.design) @ gap), 1e-12)))
        scale = Scale(offset + float(gap @ moments.means), SCORE_REACH * spread)
        answer = self.spending.one(scale.question(self._score(scores), self.labels.row), part)
        counts = answer.released.values().reshape(2, -1)
        noise = float(answer.released.deviations()[0])
        self.law = scale.law(counts, noise)
        slope, intercept = scale.line(counts, noise, cut=last)
        weights, offset = slope * gap, slope * offset + intercept
        return Scores(np.stack([-weights / 2, weights / 2]), np.array([-offset / 2, offset / 2]))

    def descent(self, moments: ClassMoments, radius: float, penalty: float) -> Descent:
        """The rounds that may follow."""
        numbers = bool(self.design.numbers)
        return Descent(
            design=self.design,
            moments=moments,
            ball=self.ball(radius) if numbers else None,
            vector=self.vector() if numbers else None,
            reach=self.reach(radius),
            label=self.labels.row,
            known=self.known,
            penalty=penalty,
            law=self.law,
        )
