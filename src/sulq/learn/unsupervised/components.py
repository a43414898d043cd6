"""Singular vectors and principal components from noisy moments, and their variances less what the noise adds.

Independent noise in a symmetric matrix spreads its eigenvalues: the largest are too large on average, and of a matrix
of noise alone they are not zero. How far follows from the deviation of the noise and from public chance.
Source: indirect inference (Gourieroux, Monfort and Renault 1993); without noise the eigenvalues stay what they are.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Final, Literal

import numpy as np

from sulq.answers.answer import Answer
from sulq.answers.oracle import ColumnChoice, SpendPlan
from sulq.forms.parameters import checked, whole
from sulq.language.domain import Column
from sulq.language.kinds import Floats
from sulq.language.privacy import Loss
from sulq.language.question import Sums
from sulq.language.rowfn import Outer, RowFn
from sulq.learn.base import Learner
from sulq.learn.evaluation.prediction import HeldPart
from sulq.learn.features import Features
from sulq.learn.noisy_sums import public, symmetric
from sulq.learn.unsupervised.moments import VERSIONS, Moments, MomentsTask, best_version
from sulq.learn.unsupervised.space import ColumnSpace, ball, by_directions, l1_ball

MAX_COMPONENTS: Final = 1000  # components
NOISE_ROUNDS: Final = (3, 12)  # of the search for variances: at least, for wide matrices, and at most
NOISE_COORDINATES: Final = 400  # of made-up matrices of noise, together; one matrix at least
Version = Literal["auto", "centred", "midpoint", "l1", "0", "1"]


def directions(matrix: Floats, k: int) -> tuple[Floats, Floats]:
    """All eigenvalues of a symmetric matrix, the largest first, and the directions of the first k as rows.

    Of the two signs of a direction the one that makes its largest coordinate positive is taken.
    """
    values, vectors = np.linalg.eigh(matrix)
    values, rows = values[::-1], vectors[:, ::-1].T[:k]
    largest = np.abs(rows).argmax(axis=1)
    signs = np.sign(rows[np.arange(len(rows)), largest])
    return values, np.ascontiguousarray(rows * signs[:, None])


def radius_of(value: object) -> float | None:
    """A radius as part of the half-diagonal; None: left to the learner."""
    good = value is None or (isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0)
    checked(good, "radius is a number above 0, as part of the half-diagonal of the declared bounds.")
    return None if value is None else float(value)  # type: ignore[arg-type]


def bound_of(value: object, radius: float | None) -> float | None:
    """The largest L1 norm of a row, in the units of the model; None: not said."""
    good = value is None or (isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1e60)
    checked(good, "bound is a number above 0: the largest sum of a row's absolute values.")
    checked(value is None or radius is None, "Give a radius or a bound, not both.")
    return None if value is None else float(value)  # type: ignore[arg-type]


class Projection(Learner):
    """What SVD and PCA share: directions to project ordinary rows on."""

    n_components: int
    scale: bool
    components_: Floats
    mean_: Floats
    _features: Features

    def _space(self, X: ColumnChoice) -> tuple[ColumnSpace, int]:
        checked(isinstance(self.scale, bool), "scale is True or False.")
        self._features = Features.of(X)
        return ColumnSpace(self._features, scale=self.scale), self._dimension(self._features)

    def _dimension(self, features: Features) -> int:
        k = whole(self.n_components, "n_components", 1, MAX_COMPONENTS)
        checked(k <= len(features), f"The columns make {len(features)} coordinates; n_components is at most that.")
        return k

    def transform(self, X: object) -> Floats:
        """Rows of an ordinary array or frame, as coordinates along the components."""
        self._ready()
        return (ColumnSpace(self._features, scale=self.scale).transform(X) - self.mean_) @ self.components_.T

    def score(self, X: object, y: object = None, *, spend: Loss | None = None) -> float | Answer:
        """The part of the rows' squared distances from `mean_` that the components hold; of private columns noisy."""
        found = self._private_score(X, y, spend)
        if found is not None:
            return found
        away = ColumnSpace(self._features, scale=self.scale).transform(X) - self.mean_
        whole = float((away**2).sum())
        return float(((away @ self.components_.T) ** 2).sum()) / whole if whole > 0 else 0.0

    def _prediction(self) -> HeldPart:
        return by_directions(ColumnSpace(self._features, scale=self.scale), self.mean_, self.components_)

    def _learned_columns(self) -> tuple[tuple[str, Column], ...]:
        return self._features.columns

    def inverse_transform(self, X: object) -> Floats:
        """Points of the whole space from coordinates along the components."""
        self._ready()
        return np.asarray(X, dtype=np.float64) @ self.components_ + self.mean_


@dataclass(eq=False, repr=False)
class SVD(Projection):
    """The directions that hold most of the rows, as they are, without centring.

    One question: the products of the columns two by two, each summed over all rows with one noise for both
    its places. The directions are the eigenvectors of the largest eigenvalues of that matrix.

    Privacy: the spend's; the model is computed from one noisy answer.
    Accuracy: with E the noise, tr(V'A'AV) is at least the sum of the k largest eigenvalues of A'A less 2k||E||, and
    ||E|| is about 2 sqrt(d) s for independent noise of deviation s [S0.10]. Without noise it is the textbook's.
    Source: BDMN05, section 4.1; with a radius as DTTZ14.

    Args:
        n_components: How many directions.
        radius: Rows farther from zero are shortened to this part of the largest possible norm; left open, none is.
        bound: Rows are shortened to this L1 norm, the sum of their absolute values; 1 where one of many indicators
            is 1. The noise then does not grow with the number of columns [S4.10]. Left open, what the declared
            columns allow: of a category's indicators one is 1.
        scale: Whether each column is scaled by its declared bounds to [-1, 1]; else in its own units.

    Learned: `components_`, a row a direction, in the columns' units; `singular_values_`; `eigenvalues_`, all of the
    noisy matrix's, which may be negative where noise is all there is; `noise_`, the deviation of the noise in the
    matrix. Under a SubLinear budget: d(d+1)/2 queries.
    """

    n_components: int = 2
    _: KW_ONLY
    radius: float | None = None
    bound: float | None = None
    scale: bool = False

    def _fit(self, X: ColumnChoice, y: ColumnChoice, spending: SpendPlan) -> None:
        space, k = self._space(X)
        radius = radius_of(self.radius)
        bound = bound_of(self.bound, radius)
        zero = np.zeros(len(space))
        away, vector = space.away(zero), space.vector(zero)
        short: RowFn = l1_ball(vector, space.longest if bound is None else bound, away)
        if radius is not None:
            short = ball(vector, radius * float(np.linalg.norm(away)), away)
        question = Sums((Outer(short),))
        spending.foresee(question)  # what the language refuses is refused before anything is spent
        spending.plan(1, question)
        released = spending.one(question, Fraction(1)).released
        self._directions(symmetric(released.values()[0], len(space)), k)
        self.noise_ = float(released.deviations().max())
        self.mean_ = zero

    def _directions(self, matrix: Floats, k: int) -> None:
        self.eigenvalues_, self.components_ = directions(matrix, k)
        self.singular_values_ = np.sqrt(np.maximum(self.eigenvalues_[:k], 0.0))


@dataclass(eq=False, repr=False)
class PCA(Projection):
    """The directions along which the rows vary most.

    Two questions, or three. The first asks for the number of rows, their mean and their spread, roughly; the last for
    the products of the columns two by two about that mean, of rows shortened to a ball around it, and what is left of
    the mean. In between a closer look about that mean tells each column's variance, where it is foreseen to pay: noise
    hides the spread and a smaller ball would make up for the price, or noise would drown the matrix and a variance
    stands out. Directions are eigenvectors of the largest eigenvalues of the covariance matrix, which is
    drawn towards the variances expected by as much as noise explains.

    Privacy: the spend's; the model is computed from noisy sums.
    Accuracy: as for SVD, with E = noise/n. Shortening rows keeps the directions of any distribution whose level sets
    are ellipsoids about its mean, so a small ball costs little and takes its noise down by the square of its radius.
    Where noise is small beside the spread no row is shortened, and without noise the result is the textbook's.
    Source: BDMN05, section 4.1 (S0.11) and Dwork05 (S1.9); the ball and one noise for both places as in DTTZ14.

    Spend: a fifth for the first question (3:17:5 for number, mean and spread), .15 for a closer look, of the rest a
    tenth for the mean and nine tenths for the products. The radius is a fifth of the half-diagonal or the spread, the
    smaller, or as far as the noise stays within a hundredth of the spread. Where noise would drown the matrix, the
    columns of least variance are left out; where it would drown every matrix, all is spent on the closer look and a
    component is a column.

    Args:
        n_components: How many directions.
        version: "centred" as above; "midpoint" one question about the middle of the bounds; "l1" raw moments of rows
            within `bound`; "0" and "1" as in the papers, the mean first or raw moments. "auto" is "l1" with a bound, or
            for an epsilon where most columns are categories; under a SubLinear budget "0"; else "centred".
        radius: Rows farther from the centre are shortened to this part of the half-diagonal; left open, by rule.
        bound: Of "l1": rows are shortened to this L1 norm, the sum of their absolute values; 1 where one of many
            indicators is 1. The noise then does not grow with the number of columns [S4.10]. Left open, what the
            declared columns allow.
        scale: Whether each column is scaled by its declared bounds to [-1, 1]; else in its own units.

    Learned: `components_`, `explained_variance_`, `explained_variance_ratio_`, `singular_values_`, `mean_`; `count_`,
    the noisy number of rows; `covariance_`, the noisy matrix; `eigenvalues_`, all of its eigenvalues, which may be
    negative where noise is all there is; `noise_`, the deviation of the noise in it; `radius_`.
    `explained_variance_` are those eigenvalues less what such noise adds to them on average. Where little is spent a
    bias of shortening is left: it takes more of large variances, and their sum is known only as far as the first
    question tells it. Measured on rows of several shapes: 5% at most where a fit is good, up to a third where it is
    not (docs/guide/learn/pca.md).
    """

    n_components: int = 2
    _: KW_ONLY
    version: Version = "auto"
    radius: float | None = None
    bound: float | None = None
    scale: bool = False

    def _fit(self, X: ColumnChoice, y: ColumnChoice, spending: SpendPlan) -> None:
        space, k = self._space(X)
        radius = radius_of(self.radius)
        bound = bound_of(self.bound, radius)
        checked(self.version in VERSIONS or self.version == "auto", f"version is auto or {', '.join(VERSIONS)}.")
        checked(bound is None or self.version in ("auto", "l1"), 'A bound is for version "l1" alone.')
        checked(radius is None or self.version != "l1", 'Version "l1" has a bound, and no radius.')
        version: str = self.version
        if version == "auto":
            version = best_version(MomentsTask(space, spending, k, radius, bound))
        self._learn(VERSIONS[version](MomentsTask(space, spending, k, radius, bound)), k)

    def _learn(self, found: Moments, k: int) -> None:
        kept = np.ix_(found.keep, found.keep)
        values, rows = directions(found.matrix[kept] * found.scale, k)
        if found.believed is not None:
            rows = directions(found.believed, k)[1]
        self.components_ = np.zeros((k, len(found.mean)))
        self.components_[:, found.keep] = rows
        self.mean_ = found.mean
        self.count_ = found.count
        self.covariance_ = found.matrix * found.scale
        self.eigenvalues_ = values
        noise = found.noise if found.even else 0.0
        told = variances(values / found.scale, noise)
        told = enlarged(told, found.spread, float(np.hypot(found.blur, np.sqrt(len(told)) * noise)))
        self.explained_variance_ = told[:k]
        self.explained_variance_ratio_ = told[:k] / max(float(told.sum()), 1e-300)
        self.singular_values_ = np.sqrt(told[:k] * found.count)
        self.noise_ = found.noise * found.scale
        self.radius_ = found.radius


def variances(eigenvalues: Floats, noise: float) -> Floats:
    """The numbers that, as a diagonal matrix with such noise in each place, have these eigenvalues on average.

    They are as many, the largest first, and none is below zero. Where noise hides which of several is larger they are
    equal.
    """
    found, d = np.maximum(eigenvalues, 0.0), len(eigenvalues)
    if noise <= 1e-9 * float(found.max(initial=0.0)):
        return found
    drawn = public(d).normal(size=(max(1, NOISE_COORDINATES // d), d, d)) * noise
    several = np.triu(drawn) + np.transpose(np.triu(drawn, 1), (0, 2, 1))
    for _ in range(min(max(NOISE_ROUNDS[0], 6 * NOISE_COORDINATES // d), NOISE_ROUNDS[1])):
        told = np.linalg.eigvalsh(several + np.diag(found)).mean(axis=0)[::-1]
        found = np.maximum(_falling(found + eigenvalues - told), 0.0)
    return found


def enlarged(found: Floats, spread: float, error: float) -> Floats:
    """Variances of shortened rows, made to add up to the spread of the rows as far as that stands out from its error.

    The part of the gap that its error explains stays: (1 - e^2/gap^2) of it is believed (James and Stein).
    """
    total = float(found.sum())
    gap = spread - total
    if total <= 0 or gap <= error:
        return found
    return np.asarray(found * (1 + (gap - error**2 / gap) / total))


def _falling(values: Floats) -> Floats:
    """The nearest numbers that never rise: neighbours that do are averaged."""
    sums: list[tuple[float, int]] = []
    for value in values.tolist():
        sums.append((value, 1))
        while len(sums) > 1 and sums[-2][0] * sums[-1][1] < sums[-1][0] * sums[-2][1]:
            (a, m), (b, n) = sums[-2:]
            sums[-2:] = [(a + b, m + n)]
    return np.repeat([total / many for total, many in sums], [many for _, many in sums])
