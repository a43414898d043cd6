"""Four ways to ask for a noisy covariance matrix, and one within an L1 norm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
import numpy.typing as npt

from sulq.answers.oracle import SpendPlan
from sulq.errors import QuestionError
from sulq.language.kinds import Floats
from sulq.language.question import Question, Sums
from sulq.language.rowfn import Outer, RowFn
from sulq.learn.noisy_sums import deviations, divisor_of, public, symmetric
from sulq.learn.unsupervised.space import (
    CLOSE_SPREADS,
    MIN_RADIUS,
    SURE_DEVIATIONS,
    ColumnSpace,
    Location,
    ball,
    closer,
    closer_question,
    foreseen_most,
    l1_ball,
    locate,
    location_question,
    read_count,
    with_count,
)

Places = npt.NDArray[np.intp]

LOOK_PART: Final = Fraction(1, 5)  # of the spend, for where the rows lie
CENTRED_SHARES: Final = (Fraction(1), Fraction(9))  # what is left of the mean, the products
MOMENT_SHARES: Final = (Fraction(1), Fraction(9), Fraction(40))  # number, sums, products
MEAN_PART: Final = Fraction(1, 5)  # of the spend, for the mean of version 0
NARROW_RADIUS: Final = 0.2  # a radius, as part of the half-diagonal, that is small enough not to cost
MAX_BLUR: Final = 0.01  # the noise, as part of the spread, up to which a radius may grow
DROWNING_NOISE: Final = 0.4  # the noise, as part of the spread, at which half of what a matrix tells is lost
MIDPOINT_RADIUS: Final = 0.5  # the usual radius about the middle
CLOSER_PART: Final = Fraction(3, 20)  # of the spend, for a closer look
MIN_CORRELATION: Final = 0.2  # that two columns are expected to have at least


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
    believed: Floats | None = None  # the matrix of those coordinates as far as it stands out from noise


def centred(task: MomentsTask) -> Moments:
    """Where the rows lie, then the products about their mean: of all columns, or of those that vary most.

    Where that is foreseen to pay, the rows are looked at more closely in between.
    Where it would drown any matrix of more columns than components, that is the last question: a component is a column.
    """
    space, spending = task.space, task.spending
    everything, left = np.arange(len(space)), 1 - LOOK_PART
    spending.foresee(location_question(space, spending), LOOK_PART)
    spending.foresee(products(space, space.middle, everything, np.inf), left)
    spending.foresee(closer_question(space, space.middle, float(space.half.max())), CLOSER_PART)
    _can_shorten(task, lambda reach: products(space, space.middle, everything, reach), left)
    spending.plan(2, location_question(space, spending), products(space, space.middle, everything, np.inf))
    where = locate(space, spending, LOOK_PART)
    keep = kept(where.variances, Blur.of(space, spending, where, left), task.k)
    alone = len(keep) == task.k < len(space) and where.sure
    part = left if alone else CLOSER_PART
    if not spending.sublinear and _look_again(task, where, left, part, few=len(keep) < len(space)):
        spending.plan(2 if alone else 3)
        where = closer(space, spending, where, part)
        if alone:
            return _of_columns(where, np.sort(_order(where.variances)[: task.k]))
        left -= part
        keep = kept(where.variances, Blur.of(space, spending, where, left), task.k)
    return _of_products(task, where, keep, left)


def _look_again(task: MomentsTask, where: Location, left: Fraction, part: Fraction, *, few: bool) -> bool:
    """Whether a closer look pays: by a smaller ball, or by the variances of columns of which few can be asked about."""
    space, spending = task.space, task.spending
    most, noise = foreseen_most(space, spending, where, part)
    if few and noise < where.spread / len(space):
        return True
    narrow = NARROW_RADIUS**2 * float((space.half**2).sum())
    dearer = float(1 - part / left) ** (1.0 if spending.pure else 0.5)
    return not where.sure and task.radius is None and min(narrow, most) < dearer * min(narrow, where.most)


def _of_columns(where: Location, keep: Places) -> Moments:
    """The variances of some columns, of which each is a component."""
    matrix = np.zeros((len(where.mean), len(where.mean)))
    matrix[keep, keep] = where.variances[keep]
    return Moments(where.count, where.mean, matrix, where.blur, keep, float(np.sqrt(where.spread)))


def _of_products(task: MomentsTask, where: Location, keep: Places, part: Fraction) -> Moments:
    """The products of some columns about the mean."""
    space, spending = task.space, task.spending
    blur = Blur.of(space, spending, where, part)
    half, away = space.half[keep], space.away(where.mean)[keep]
    reach = _reach(where, float((half**2).sum()), blur.relative(len(keep)), task.radius)
    corner = float(np.linalg.norm(away))
    whole = reach >= corner
    released = spending.one(products(space, where.mean, keep, reach), part).released
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
        *((0.0, 0.0) if whole or not where.sure or len(keep) < len(space) else (where.spread, where.blur)),
        believed=believed(inner, 0.0 if released.exact else float(noise[-1]), where.variances[keep], half),
    )


def _reach(where: Location, box: float, relative: float, radius: float | None) -> float:
    if radius is not None:
        return float(radius * np.sqrt(box))
    narrow = min(NARROW_RADIUS**2 * box, CLOSE_SPREADS * where.most)
    return max(float(np.sqrt(max(narrow, MAX_BLUR * where.spread / relative))), float(np.sqrt(box)) * MIN_RADIUS)


def products(space: ColumnSpace, centre: Floats, keep: Places, reach: float) -> Sums:
    """The sums of some coordinates about a centre, and of their products, of rows within a ball."""
    vector = ball(space.vector(centre, keep=keep.tolist()), reach, space.away(centre)[keep])
    return Sums((vector, Outer(vector)), shares=CENTRED_SHARES)


def believed(matrix: Floats, noise: float, expected: Floats, half: Floats) -> Floats:
    """A noisy matrix of products, drawn towards a diagonal one of the variances expected by as much as noise explains.

    Columns that vary alike are drawn alike, which leaves the directions; of one that hardly varies the noise goes.
    """
    most = np.outer(half, half)  # no covariance is larger
    matrix = np.clip(matrix, -most, most)
    level = max(float(np.trace(matrix)), np.sqrt(len(matrix)) * noise)
    prior = expected * (level / max(float(expected.sum()), 1e-300))
    likely = np.maximum(prior, np.diag(matrix) - SURE_DEVIATIONS * noise)
    prior[_order(prior)] *= 1 - 1e-9 * np.arange(len(prior))  # of equal ones the same come first everywhere
    pairs, apart = np.outer(likely, likely), ~np.eye(len(matrix), dtype=bool)
    signal = float((matrix**2 - noise**2)[apart].sum()) / max(float(pairs[apart].sum()), 1e-300)
    width = pairs * min(max(signal, MIN_CORRELATION**2), 1.0)
    return np.asarray(np.diag(prior) + width / np.maximum(width + noise**2, 1e-300) * (matrix - np.diag(prior)))


@dataclass(frozen=True, slots=True)
class Blur:
    """How large the noise in a matrix of products will be beside them, by the number of its coordinates."""

    one: float  # the deviation for a ball of radius 1 and an L1 norm of 1, as part of the number of rows
    pure: bool

    @classmethod
    def of(cls, space: ColumnSpace, spending: SpendPlan, where: Location, part: Fraction) -> Blur:
        """Foresee it for two coordinates, the widest one twice: with one alone products would have no sign. Free."""
        widest = int(space.half.argmax())
        reach = float(space.half.max()) / 2
        plan = spending.foresee(products(space, space.middle, np.array([widest, widest]), reach), part)
        norm = 1.5 if spending.pure else 1.0
        return cls(float(deviations(plan)[0][-1]) / reach**2 / norm / where.least, spending.pure)

    def relative(self, m: int) -> float:
        """The norm of the noise in m coordinates, as part of the squared radius.

        A matrix of independent noise of deviation s has a norm of about 2 sqrt(m) s; under Laplace noise s grows with
        the L1 norm of the products, (m + 1)/2 times the squared radius.
        """
        return float(2 * np.sqrt(m) * self.one * ((m + 1) / 2 if self.pure else 1.0))


def _order(variances: Floats) -> Places:
    """Places by variance, the largest first; equal ones in a public order: neighbours, as of an image, are alike."""
    return np.lexsort((public().uniform(size=len(variances)), -variances))


def kept(variances: Floats, blur: Blur, k: int) -> Places:
    """The places of the coordinates worth asking about: those of the largest variances, as far as they are known.

    Of m coordinates a matrix tells about their part of all variance, less what the noise hides: half of it at
    DROWNING_NOISE.
    """
    order = _order(variances)
    squares = np.cumsum(variances[order])
    worth = [squares[m - 1] / (1 + (blur.relative(m) / DROWNING_NOISE) ** 2) for m in range(k, len(variances) + 1)]
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
