"""Singular vectors and principal components from noisy moments, and four ways to ask for a noisy covariance matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from sulq.answers.oracle import ColumnChoice, SpendPlan
from sulq.errors import QuestionError
from sulq.forms.parameters import checked, whole
from sulq.language.kinds import Floats
from sulq.language.question import Question, Sums
from sulq.language.rowfn import Outer, RowFn
from sulq.learn.base import Learner
from sulq.learn.features import Features
from sulq.learn.noisy_sums import deviations, divisor_of, public, symmetric
from sulq.learn.unsupervised.space import (
    ColumnSpace,
    Location,
    ball,
    l1_ball,
    locate,
    location_question,
    read_count,
    with_count,
)
from sulq.learn.unsupervised.spectrum import enlarged, variances

Places = npt.NDArray[np.intp]

LOOK_PART: Final = Fraction(1, 4)  # of the spend, for where the rows lie
CENTRED_SHARES: Final = (Fraction(1), Fraction(9))  # what is left of the mean, the products
MOMENT_SHARES: Final = (Fraction(1), Fraction(9), Fraction(40))  # number, sums, products
MEAN_PART: Final = Fraction(1, 5)  # of the spend, for the mean of version 0
NARROW_RADIUS: Final = 0.2  # a radius, as part of the half-diagonal, that is small enough not to cost
MAX_BLUR: Final = 0.01  # the noise, as part of the spread, up to which a radius may grow
DROWNING_NOISE: Final = 0.6  # the noise, as part of the spread, at which half of what a matrix tells is lost
MIDPOINT_RADIUS: Final = 0.5  # the usual radius about the middle
MAX_COMPONENTS: Final = 1000  # components
Version = Literal["auto", "centred", "midpoint", "l1", "0", "1"]


@dataclass(frozen=True, slots=True)
class MomentsTask:
    """What is asked about, at whose price, for how many directions and within which part of the half-diagonal."""

    space: ColumnSpace
    spending: SpendPlan
    k: int
    radius: float | None = None
    bound: float | None = None


@dataclass(frozen=True, slots=True)
class Moments:
    """A noisy covariance matrix of some coordinates, and what belongs to it."""

    count: float
    mean: Floats  # of all coordinates
    matrix: Floats  # of all; zero where a coordinate was left out
    noise: float  # the deviation in each place of the matrix
    keep: Places  # places of the coordinates that were asked about
    radius: float  # to which rows were shortened; how far the box reaches where none was
    scale: float = 1.0  # what makes up for the shortening
    even: bool = False  # whether such noise was drawn, and in every place
    spread: float = 0.0  # where rows were shortened, the sum of all variances as they were before,
    blur: float = 0.0  # and the deviation of that


def centred(task: MomentsTask) -> Moments:
    """Where the rows lie, then the products about their mean."""
    space, spending = task.space, task.spending
    spending.foresee(location_question(space, spending), LOOK_PART)
    spending.foresee(products(space, space.middle, np.arange(len(space)), np.inf), 1 - LOOK_PART)
    _can_shorten(task, lambda reach: products(space, space.middle, np.arange(len(space)), reach), 1 - LOOK_PART)
    spending.plan(2, location_question(space, spending), products(space, space.middle, np.arange(len(space)), np.inf))
    where = locate(space, spending, LOOK_PART)
    blur = Blur.of(space, spending, where)
    keep = kept(space, blur, task.k)
    half, away = space.half[keep], space.away(where.mean)[keep]
    reach = _reach(where, float((half**2).sum()), blur.relative(len(keep)), task.radius)
    corner = float(np.linalg.norm(away))
    whole = reach >= corner
    released = spending.one(products(space, where.mean, keep, reach), 1 - LOOK_PART).released
    sums, noise = released.values()[0] / where.count, released.deviations() / where.count
    rest, errors = sums[: len(keep)], noise[: len(keep)]
    if not whole:  # of shortened rows the mean says less than the first question did, but for its direction
        rest = rest * max(0.0, 1 - float((errors**2).sum()) / max(float((rest**2).sum()), 1e-300))
    inner = symmetric(sums[len(keep) :], len(keep)) - np.outer(rest, rest)
    matrix, mean = np.zeros((len(space), len(space))), where.mean.copy()
    matrix[np.ix_(keep, keep)] = inner
    if whole:
        mean[keep] += rest
    missing = whole or not where.sure or len(keep) < len(space) or np.trace(inner) <= 0
    scale = 1.0 if missing else float(np.clip(where.spread / np.trace(inner), 1.0, (away**2).sum() / reach**2))
    return Moments(
        where.count,
        space.inside(mean),
        matrix,
        float(noise[-1]),
        keep,
        min(reach, corner),
        scale,
        not released.exact,
        *((0.0, 0.0) if whole or len(keep) < len(space) else (where.spread, where.blur)),
    )


def _reach(where: Location, box: float, relative: float, radius: float | None) -> float:
    if radius is not None:
        return float(radius * np.sqrt(box))
    return float(np.sqrt(max(NARROW_RADIUS**2 * box, MAX_BLUR * where.spread / relative)))


def products(space: ColumnSpace, centre: Floats, keep: Places, reach: float) -> Sums:
    """The sums of some coordinates about a centre, and of their products, of rows within a ball."""
    vector = ball(space.vector(centre, keep=keep.tolist()), reach, space.away(centre)[keep])
    return Sums((vector, Outer(vector)), shares=CENTRED_SHARES)


@dataclass(frozen=True, slots=True)
class Blur:
    """How large the noise in a matrix of products will be beside them, by the number of its coordinates."""

    one: float  # the deviation for a ball of radius 1 and an L1 norm of 1, as part of the number of rows
    pure: bool

    @classmethod
    def of(cls, space: ColumnSpace, spending: SpendPlan, where: Location) -> Blur:
        """Foresee it for two coordinates, the widest one twice: with one alone products would have no sign. Free."""
        widest = int(space.half.argmax())
        reach = float(space.half.max()) / 2
        plan = spending.foresee(products(space, space.middle, np.array([widest, widest]), reach), 1 - LOOK_PART)
        norm = 1.5 if spending.pure else 1.0
        return cls(float(deviations(plan)[0][-1]) / reach**2 / norm / where.least, spending.pure)

    def relative(self, m: int) -> float:
        """The norm of the noise in m coordinates, as part of the squared radius.

        A matrix of independent noise of deviation s has a norm of about 2 sqrt(m) s; under Laplace noise s grows with
        the L1 norm of the products, (m + 1)/2 times the squared radius.
        """
        return float(2 * np.sqrt(m) * self.one * ((m + 1) / 2 if self.pure else 1.0))


def kept(space: ColumnSpace, blur: Blur, k: int) -> Places:
    """The places of the coordinates worth asking about: of the widest bounds, by public facts and the noise alone.

    Of m coordinates a matrix tells about their part of all squared widths, less what the noise hides: half
    of it at DROWNED. Of equal widths none comes first for its place: neighbours, as of an image, are too much alike.
    """
    order = np.lexsort((public().uniform(size=len(space)), -space.half))
    squares = np.cumsum(space.half[order] ** 2)
    worth = [squares[m - 1] / (1 + (blur.relative(m) / DROWNING_NOISE) ** 2) for m in range(k, len(space) + 1)]
    best = len(worth) - 1 - int(np.argmax(worth[::-1]))
    return np.sort(order[: k + best])


def midpoint(task: MomentsTask) -> Moments:
    """One question about the middle of the bounds: number, sums and products."""
    space = task.space
    reach = (MIDPOINT_RADIUS if task.radius is None else task.radius) * float(np.linalg.norm(space.half))
    return _raw(task, space.middle, ball(space.vector(space.middle), reach, space.half), reach)


def raw(task: MomentsTask) -> Moments:
    """Version 1 of the papers: sums and products as they are, from the lower ends of the bounds [S1.9]."""
    space = task.space
    low = space.middle - space.half
    away = space.away(low)
    reach = np.inf if task.radius is None else task.radius * float(np.linalg.norm(away))
    return _raw(task, low, ball(space.vector(low), reach, away), reach)


def in_l1(task: MomentsTask) -> Moments:
    """Raw moments about zero of rows within an L1 norm: the noise does not grow with the number of columns [S4.10]."""
    space = task.space
    zero = np.zeros(len(space))
    bound = space.longest if task.bound is None else task.bound
    return _raw(task, zero, l1_ball(space.vector(zero), bound, space.away(zero)), bound)


def best_version(task: MomentsTask) -> str:
    """The version that public facts speak for.

    Of rows on a ball of radius r the products have a trace of r^2, and one row moves them by (d + 1)/2 r^2 in L1: the
    noise is the same part of it for every r. Rows of L1 norm g that spread by s, if evenly, move them by g^2.
    """
    space, spending = task.space, task.spending
    if task.bound is not None:
        return "l1"
    if spending.sublinear:
        return "0"
    spread = spending.pure and task.radius is None and space.even_spread / space.longest**2 > 2 / (len(space) + 1)
    return "l1" if spread else "centred"


def _raw(task: MomentsTask, centre: Floats, short: RowFn, reach: float) -> Moments:
    """Number, sums and products of rows about a centre, shortened to a radius, in one question."""
    space, spending = task.space, task.spending
    d, vector, away = len(space), space.vector(centre), space.away(centre)
    corner = float(np.linalg.norm(away))
    question = with_count(spending, MOMENT_SHARES, short, Outer(short), counted=vector)
    spending.foresee(question)
    spending.plan(1, question)
    released = spending.one(question).released
    count, off, values, noise = read_count(spending, released)
    n = divisor_of(count, off)
    mean = np.clip(values[:d] / n, -away, away)
    matrix = symmetric(values[d:] / n, d) - np.outer(mean, mean)
    found, off = space.inside(centre + mean), float(noise[-1] / n)
    return Moments(n, found, matrix, off, np.arange(d), min(reach, corner), even=not released.exact)


def mean_first(task: MomentsTask) -> Moments:
    """Version 0 of the papers: the mean, moved into the box, then the products about it [S0.11, E47].

    Within the box a product about the mean moves by no more than a product of the columns does; about a mean outside
    it would move farther than Theorem 1 allows.
    """
    space, spending, radius = task.space, task.spending, task.radius
    low = space.middle - space.half
    first = space.vector(low)
    ask = with_count(spending, (Fraction(1), Fraction(9)), first, counted=first)
    spread = Sums((Outer(space.vector(space.middle)),))
    spending.foresee(ask, MEAN_PART)
    spending.foresee(spread, 1 - MEAN_PART)
    _can_shorten(task, lambda reach: Sums((Outer(ball(space.vector(space.middle), reach, space.half)),)), 1 - MEAN_PART)
    spending.plan(2, ask, spread)
    count, off, values, _ = read_count(spending, spending.one(ask, MEAN_PART).released)
    n = divisor_of(count, off)
    mean = space.inside(low + values / n)
    away = space.away(mean)
    corner = float(np.linalg.norm(away))
    reach = np.inf if radius is None else radius * float(np.linalg.norm(space.half))
    released = spending.one(Sums((Outer(ball(space.vector(mean), reach, away)),)), 1 - MEAN_PART).released
    matrix, noise = symmetric(released.values()[0] / n, len(space)), released.deviations() / n
    places, off = np.arange(len(space)), float(noise.max())
    return Moments(n, mean, matrix, off, places, min(reach, corner), even=not released.exact)


def _can_shorten(task: MomentsTask, ask: Callable[[float], Question], part: Fraction | float) -> None:
    """Refuse a radius that no ball can have, before anything is paid."""
    if task.radius is None:
        return
    try:
        task.spending.foresee(ask(task.radius * float(np.linalg.norm(task.space.half))), part)
    except QuestionError:
        raise QuestionError(
            "bad-parameter",
            f"Rows cannot be shortened to the part {task.radius:g} of their bounds.",
            "Take a larger radius.",
        ) from None


VERSIONS: Final[dict[str, Callable[[MomentsTask], Moments]]] = {
    "centred": centred,
    "l1": in_l1,
    "midpoint": midpoint,
    "0": mean_first,
    "1": raw,
}


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

    Two questions. The first asks for the number of rows, their mean and their spread, roughly; the second for the
    products of the columns two by two about that mean, of rows shortened to a ball around it, and what is left of
    the mean. Directions are eigenvectors of the largest eigenvalues of the resulting covariance matrix.

    Privacy: the spend's; the model is computed from noisy sums.
    Accuracy: as for SVD, with E = noise/n. Shortening rows keeps the directions of any distribution whose level sets
    are ellipsoids about its mean, so a small ball costs little and takes its noise down by the square of its radius.
    Where noise is small beside the spread no row is shortened, and without noise the result is the textbook's.
    Source: BDMN05, section 4.1 (S0.11) and Dwork05 (S1.9); the ball and one noise for both places as in DTTZ14.

    Spend: a quarter for the first question (3:17:5 for number, mean and spread), of the rest a tenth for the mean
    and nine tenths for the products. The radius is a fifth of the half-diagonal, or as far as the noise stays within a
    hundredth of the spread. Where noise would drown the matrix, the columns of the narrowest bounds are left out.

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
