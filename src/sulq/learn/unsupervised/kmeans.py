"""k-means by noisy sums: Lloyd's iteration, one question a round, from given centres, a spread or a noisy sketch.

A round asks how many rows are nearest to each centre, and what they sum to. Weighted k-means on points that are public
or already released finds the k points that stand for many.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from sulq.answers.oracle import ColumnChoice, SpendPlan, queries
from sulq.errors import QuestionError
from sulq.forms.parameters import checked, number, whole
from sulq.language.kinds import Floats, Integers, Truths
from sulq.language.privacy import SubLinear
from sulq.language.question import Sums
from sulq.language.rowfn import Nearest
from sulq.learn.base import Learner
from sulq.learn.features import Features
from sulq.learn.noisy_sums import SAFE_DEVIATIONS, Chance, deviations, divided, public
from sulq.learn.unsupervised.space import (
    ColumnSpace,
    Location,
    ball,
    locate,
    location_question,
    moved,
    present,
    squared,
)

Places = npt.NDArray[np.intp]

QUANTIZER_STARTS: Final = 8
QUANTIZER_STEPS: Final = 30
INERTIA_PART: Final = Fraction(1, 10)  # of a round that also asks for the squared distances, their part
LOOK_PART: Final = Fraction(3, 20)  # of the spend, for where the rows lie
SKETCH_PART: Final = Fraction(1, 2)  # of the rest, for a first partition into many cells
SKETCH_CELLS: Final = 64  # of that partition at most, or eight a cluster
MAX_CELL_NOISE: Final = 0.5  # the noise of a cell's mean, as part of the spread, up to which cells are worth asking for
SKETCH_SPACING: Final = 0.7  # how far apart the cells' centres lie, in deviations of the rows
RADIUS_SPREADS: Final = 4.0  # squared radius, in spreads
PLAIN_ROUNDS: Final = 5  # of plain Lloyd
MAX_SKETCH_ROUNDS: Final = 3  # rounds after a sketch at most
MAX_ROUND_NOISE: Final = 0.1  # the noise of a cluster's mean, as part of the spread, that another round may not pass
Small = Literal["keep", "drop", "move", "raise"]


def nearest_of(points: Floats, centres: Floats) -> Places:
    """The index of the nearest centre of each point; ties go to the lowest (S0.13)."""
    return np.asarray((np.square(centres).sum(axis=1) - 2.0 * (points @ centres.T)).argmin(axis=1))


def distances(points: Floats, centres: Floats) -> Floats:
    """The squared distances of points from centres, a row a point."""
    squares = np.square(points).sum(axis=1)[:, None] + np.square(centres).sum(axis=1)
    return np.asarray(np.maximum(squares - 2.0 * (points @ centres.T), 0.0))


def quantize(points: Floats, weights: Floats, k: int, *, starts: int = QUANTIZER_STARTS) -> Floats:
    """The best of several runs of weighted k-means from spread starts (k-means++)."""
    rng = public()
    runs = [_run(points, weights, _spread(points, weights, k, rng)) for _ in range(starts)]
    return min(runs, key=lambda run: run[0])[1]


def cover(middle: Floats, half: Floats, k: int) -> Floats:
    """K points that stand for a box about whose inside nothing is known: those of points spread evenly over it."""
    rng = public()
    points = middle + half * rng.uniform(-1.0, 1.0, (max(1000, 20 * k), len(half)))
    return quantize(points, np.ones(len(points)), k, starts=2)


def _spread(points: Floats, weights: Floats, k: int, rng: Chance) -> Floats:
    """Start points, each drawn by weight and squared distance from those before it."""
    chosen = [points[_draw(weights, rng)]]
    away = distances(points, chosen[0][None])[:, 0]
    while len(chosen) < k:
        chosen.append(points[_draw(weights * away, rng)])
        away = np.minimum(away, distances(points, chosen[-1][None])[:, 0])
    return np.array(chosen)


def _draw(weights: Floats, rng: Chance) -> int:
    total = float(weights.sum())
    return int(rng.choice(len(weights), p=weights / total if total > 0 else None))


def _run(points: Floats, weights: Floats, centres: Floats) -> tuple[float, Floats]:
    """Lloyd's iteration; gives what is left of the weighted squared distances, and the centres."""
    for _ in range(QUANTIZER_STEPS):
        place = nearest_of(points, centres)
        mass = np.bincount(place, weights=weights, minlength=len(centres))
        sums = np.zeros_like(centres)
        np.add.at(sums, place, points * weights[:, None])
        moved = np.where(mass[:, None] > 0, sums / np.where(mass > 0, mass, 1.0)[:, None], centres)
        if np.allclose(moved, centres, rtol=0, atol=1e-9 * float(np.abs(points).max() or 1.0)):
            break
        centres = moved
    return float((weights * distances(points, centres).min(axis=1)).sum()), centres


@dataclass(frozen=True, slots=True)
class LloydRound:
    """What one round tells of each cell: its noisy number of rows and their sums about the origin."""

    sizes: Floats
    sums: Floats
    blur: float  # the deviation of a size
    errors: Floats  # of a sum, by coordinate
    squares: Floats | None = None  # squared distances from the origin, where asked for

    @property
    def means(self) -> Floats:
        """The mean of each cell, about the origin; zero where the noisy size is none."""
        return self.sums / np.where(self.sizes > 0, self.sizes, np.inf)[:, None]

    @property
    def guarded(self) -> Floats:
        """The same with sizes no less than their noise: no mean is far off because a size is small by chance."""
        return self.sums / np.maximum(self.sizes, SAFE_DEVIATIONS * self.blur)[:, None]


@dataclass(frozen=True, slots=True)
class Rounds:
    """How rounds are asked: about which origin, within which radius, at which shares.

    Rows are counted for the nearest centre as they lie; what they add to its sum is shortened to the radius
    about the origin, in units that divide the noise evenly over the coordinates.
    """

    space: ColumnSpace
    spending: SpendPlan
    origin: Floats
    radius: float  # of the weighted coordinates
    typical: float  # how far a cell's mean may be from the origin

    @property
    def unit(self) -> Floats:
        """The units of the sums: the space's own where they are all alike, so that a row is read once for both."""
        even = self.space.even(pure=self.spending.pure)
        alike = float(np.ptp(self.space.half)) <= 1e-9 * float(self.space.half.max())
        return np.ones(len(self.space)) if alike else even

    def question(self, centres: Floats, *, inertia: bool = False) -> Sums:
        """The question of a round."""
        space = self.space
        unit = self.unit
        away = space.away(self.origin) / unit
        vector = space.vector(self.origin)
        summed = vector if (unit == 1).all() else space.vector(self.origin, unit)
        move = moved(away, self.radius, pure=self.spending.pure) * float(np.sqrt((unit**2).mean()))
        shares = divided((1, len(space)), (self.typical, move), pure=self.spending.pure)
        values = (present(vector), ball(summed, self.radius, away))
        by = (Nearest(vector, tuple(map(tuple, (centres - self.origin).tolist()))),)
        if not inertia:
            return Sums(values, by=by, shares=shares)
        rest = tuple(share * (1 - INERTIA_PART) for share in shares)
        return Sums((*values, squared(space, self.origin)), by=by, shares=(*rest, INERTIA_PART))

    def ask(self, centres: Floats, part: Fraction, *, inertia: bool = False) -> LloydRound:
        """Ask one round, for a part of the spend; the answer is in the units of the space."""
        released = self.spending.one(self.question(centres, inertia=inertia), part).released
        values, noise, unit = released.values(), released.deviations(), self.unit
        d = len(self.space)
        return LloydRound(
            sizes=values[:, 0],
            sums=values[:, 1 : 1 + d] * unit,
            blur=float(noise[0]),
            errors=noise[1 : 1 + d] * unit,
            squares=values[:, 1 + d] if inertia else None,
        )

    def noise(self, part: Fraction) -> float:
        """The norm of the noise in one cell's sums, foreseen for a part of the spend; free."""
        plan = self.spending.foresee(self.question(self.origin[None]), part)
        return float(np.linalg.norm(deviations(plan)[0][1 : 1 + len(self.space)] * self.unit))


@dataclass(frozen=True, slots=True)
class Shrink:
    """What was known of a mean before a round, so that a round of much noise and few rows does not undo it."""

    mean: Floats
    deviation: Floats  # of the rows, by coordinate
    most: float  # rows that there are surely

    def means(self, found: LloydRound, centres: Floats, origin: Floats) -> Floats:
        """The new means, drawn towards the old centres by as much as noise explains of them."""
        rows = np.clip(found.sizes - found.blur, 0.0, self.most)[:, None]
        signal = (rows * self.deviation) ** 2
        weight = signal / (signal + found.errors**2)
        return centres + weight * (origin + found.guarded - centres)


Plan = tuple[Rounds, Floats, list[Fraction], Shrink | None]


@dataclass(frozen=True, slots=True)
class KMeansTask:
    """One fit: where the centres begin and how the spend is divided."""

    space: ColumnSpace
    spending: SpendPlan
    k: int

    def plain(self, start: Floats | None, rounds: int | None, *, inertia: bool) -> Plan:
        """Lloyd's iteration from given centres, or points spread over the box, in equal parts.

        Without a number of rounds, as many as there are queries for [S0.13, S1.10].
        """
        space = self.space
        typical = float(np.linalg.norm(space.half)) / np.sqrt(3)
        origin = space.middle - space.half if self.spending.sublinear else space.middle  # the papers' cube begins at 0
        asked = Rounds(space, self.spending, origin, np.inf, typical)
        centres = cover(space.middle, space.half, self.k) if start is None else start
        usual, last = asked.question(centres), asked.question(centres, inertia=inertia)
        if rounds is None:
            each, end = (queries(self.spending.oracle, question) for question in (usual, last))
            rounds = 1 + max(self.spending.queries - end, 0) // each
        part = Fraction(1, rounds)
        self.spending.foresee(last, part)
        self.spending.plan(rounds, *[usual] * (rounds - 1), last)
        return asked, centres, [part] * rounds, None

    def sketched(self, rounds: int | None) -> Plan:
        """Centres found in a noisy sketch of the rows; then a few rounds."""
        space, spending, k = self.space, self.spending, self.k
        spending.foresee(location_question(space, spending), LOOK_PART)
        box = Rounds(space, spending, space.middle, np.inf, float(np.linalg.norm(space.half)))
        spending.foresee(box.question(np.tile(space.middle, (max(SKETCH_CELLS, 8 * k), 1))), 1 - LOOK_PART)
        spending.plan(2 + (rounds or MAX_SKETCH_ROUNDS))
        where = locate(space, spending, LOOK_PART)
        about = self._about(where)
        even = space.half**2 / 3  # the variances of rows spread evenly over the box
        spread = np.sqrt(np.minimum(where.spread * space.half**2 / (space.half**2).sum() + where.doubt, even))
        shrink = Shrink(where.mean, spread, where.least)
        reach = float(np.linalg.norm(spread))
        left = 1 - LOOK_PART
        cells = min(
            max(SKETCH_CELLS, 8 * k), int(MAX_CELL_NOISE * where.least * reach / about.noise(left * SKETCH_PART))
        )
        if cells < 2 * k:
            centres = space.inside(cover(where.mean, spread * np.sqrt(3), k))
        else:
            centres = self._sketch(about, shrink, cells, left * SKETCH_PART)
            left *= 1 - SKETCH_PART
        if rounds is None:
            enough = MAX_ROUND_NOISE * where.least * reach / k
            rounds = next((n for n in range(MAX_SKETCH_ROUNDS, 1, -1) if about.noise(left / n) <= enough), 1)
        return about, centres, [left / rounds] * rounds, shrink

    def _about(self, where: Location) -> Rounds:
        """Rounds about the rows' mean, within a few spreads."""
        space = self.space
        box = float((space.half**2).sum())
        wide = RADIUS_SPREADS * (where.spread + where.blur + float(where.doubt.sum()))
        probe = Rounds(space, self.spending, where.mean, np.inf, float(np.sqrt(where.spread)))
        # The same part of the half-diagonal, in the units of the sums.
        radius = float(np.sqrt(wide / box) * np.linalg.norm(space.half / probe.unit))
        return Rounds(space, self.spending, where.mean, radius, float(np.sqrt(where.spread)))

    def _sketch(self, about: Rounds, shrink: Shrink, cells: int, part: Fraction) -> Floats:
        """The best k centres of the noisy means of many cells, weighted by their noisy sizes."""
        rng = public()
        space = self.space
        points = space.inside(shrink.mean + SKETCH_SPACING * shrink.deviation * rng.normal(size=(cells, len(space))))
        found = about.ask(points, part)
        loose = Shrink(shrink.mean, 2 * shrink.deviation, shrink.most)
        means = space.inside(loose.means(found, points, about.origin))
        noise = float((found.errors**2).sum()) / np.maximum(found.sizes, 1.0) ** 2
        weights = np.maximum(found.sizes, 0.0) / (1 + 4 * noise / float((shrink.deviation**2).sum()))
        weights = np.where(found.sizes < 2 * found.blur, 0.0, weights)
        chosen = np.flatnonzero(weights)
        if len(chosen) < self.k:
            chosen, weights = np.argsort(-found.sizes, kind="stable")[: self.k], np.ones(cells)
        return quantize(means[chosen], weights[chosen], self.k)


@dataclass(eq=False, repr=False)
class KMeans(Learner):
    """k centres, each the mean of the rows nearest to it.

    The first question asks where the rows lie; the second puts them into many more cells than clusters, around
    public points, and asks each for its size and sum. The best k centres of these noisy cell means are found without a
    further question, and one to three rounds of Lloyd's iteration, one question each, make them precise.

    Privacy: the spend's. A row lies in one cell, so a round costs the same for any number of clusters.
    Accuracy: if a cluster's noisy size is far above its noise s, its mean is off by O((|m| + sqrt(d)) s/size), m the
    new mean (S0.14, E12). Given centres and no noise, this is Lloyd's iteration.
    Source: BDMN05, section 4.2 (S0.13); Dwork05 for small clusters (S1.10); shares between sizes and sums as Su16.

    Spend: 15% for the first question, half of the rest for the cells, half for the rounds; where cells would be all
    noise, everything for one round. With centres given, equal parts for all rounds.

    Args:
        n_clusters: How many centres.
        init: Centres to begin with (an array, one a row), or "spread" for points spread over the declared bounds; left
            open, as above. With either, plain Lloyd: what the papers do, and what a SubLinear budget gets.
        max_iter: How many rounds; left open, 5 from given centres, else as many as the noise allows, at most 3. Under a
            SubLinear budget "budget" is as many as its queries, or those of spend=Queries(n), allow.
        small: What becomes of a cluster whose noisy size is too small to tell it from none: "keep" its centre, "drop"
            it, "move" it elsewhere, or "raise" an error (what was asked stays paid).
        threshold: That size, in deviations of its noise; the papers' own sqrt(T) is below the noise (E22).
        inertia: Whether to estimate `inertia_` too, for a tenth of the last round.
        scale: Whether each column is scaled by its declared bounds to [-1, 1]; else in its own units.

    Learned: `cluster_centers_`; `counts_`, the noisy sizes in the last round, and `fractions_` of all; `history_`, the
    centres before each round and after the last; `n_iter_`; `inertia_` where asked for. Under a SubLinear
    budget: k(1 + d) queries a round.
    """

    n_clusters: int = 8
    _: KW_ONLY
    init: np.ndarray[Any, Any] | Literal["spread"] | None = None
    max_iter: int | Literal["budget"] | None = None
    small: Small = "keep"
    threshold: float = 5.0
    inertia: bool = False
    scale: bool = False

    def _fit(self, X: ColumnChoice, y: ColumnChoice, spending: SpendPlan) -> None:
        features = Features.of(X)
        space = ColumnSpace(features, scale=self.scale)
        start = self._checked(space)
        unbounded = self.max_iter == "budget" and not spending.sublinear
        checked(not unbounded, 'max_iter="budget" counts the queries of a SubLinear budget; say how many rounds.')
        self._features = features
        task = KMeansTask(space, spending, self.n_clusters)
        most = None if isinstance(self.max_iter, str) else self.max_iter
        if self.init is None and not spending.sublinear:
            rounds, centres, parts, shrink = task.sketched(most)
        else:
            turns = PLAIN_ROUNDS if self.max_iter is None else most
            rounds, centres, parts, shrink = task.plain(start, turns, inertia=self.inertia)
        self.history_ = [centres]
        for i, part in enumerate(parts):
            asked = self.inertia and i == len(parts) - 1
            found = rounds.ask(centres, part, inertia=asked)
            kept = self._kept(found, spending)
            moved = shrink.means(found, centres, rounds.origin) if shrink else rounds.origin + found.means
            centres = space.inside(self._policy(np.where(kept[:, None], moved, centres), found, kept, shrink, i))
            self.history_.append(centres)
            if asked:
                self.inertia_ = _inertia(found, centres, rounds.origin)
        sizes = found.sizes if len(found.sizes) == len(centres) else found.sizes[_large(found, kept)]
        self.cluster_centers_, self.counts_ = centres, sizes
        positive = np.maximum(sizes, 0.0)
        equal = np.full(len(sizes), 1 / len(sizes))
        self.fractions_ = positive / positive.sum() if positive.sum() > 0 else equal
        self.n_iter_ = len(parts)

    def _checked(self, space: ColumnSpace) -> Floats | None:
        """The parameters, and the centres to begin with where they are given."""
        k = whole(self.n_clusters, "n_clusters", 1, 1000)
        if self.max_iter not in (None, "budget"):
            whole(self.max_iter, "max_iter", 1, 100)
        checked(self.small in ("keep", "drop", "move", "raise"), "small is keep, drop, move or raise.")
        checked(0 <= number(self.threshold) < 1e6, "threshold is a number of deviations, 0 or more.")
        checked(isinstance(self.inertia, bool) and isinstance(self.scale, bool), "inertia and scale are True or False.")
        if self.init is None or isinstance(self.init, str):
            checked(self.init in (None, "spread"), 'init is an array of centres, "spread", or nothing.')
            return None
        try:
            start = np.asarray(self.init, dtype=np.float64)
        except (TypeError, ValueError):
            start = np.empty(0)
        right = start.shape == (k, len(space)) and bool(np.isfinite(start).all())
        checked(right, f"init has {k} rows, one a cluster, of {len(space)} numbers each.")
        return space.inside(start)

    def _kept(self, found: LloydRound, spending: SpendPlan) -> Truths:
        """Which clusters are large enough to be told from none, by their noisy sizes [S1.10, E22]."""
        budget = spending.facts.budget
        asked = budget.queries if isinstance(budget, SubLinear) else 0
        enough: Truths = found.sizes >= max(np.sqrt(asked), self.threshold * found.blur)
        return enough & (found.sizes > 0)

    def _policy(self, centres: Floats, found: LloydRound, kept: Truths, shrink: Shrink | None, turn: int) -> Floats:
        """What becomes of small clusters; decided before their sums are divided by anything."""
        if kept.all() or self.small == "keep":
            return centres
        if self.small == "raise":
            worst = int(np.argmin(found.sizes))
            raise QuestionError(
                "small-cluster",
                f"Cluster {worst} has a noisy size of {found.sizes[worst]:.0f}, too small to tell it from none. "
                "What was asked stays paid.",
            )
        if self.small == "drop":
            return centres[_large(found, kept)]
        rng = public(turn)
        space = ColumnSpace(self._features, scale=self.scale)
        middle, half = (space.middle, space.half) if shrink is None else (shrink.mean, shrink.deviation * np.sqrt(3))
        return np.where(kept[:, None], centres, middle + half * rng.uniform(-1, 1, centres.shape))

    def predict(self, X: object) -> Integers:
        """The number of the nearest centre for each row of an ordinary array or frame."""
        self._ready()
        return nearest_of(self._points(X), self.cluster_centers_).astype(np.int64)

    def transform(self, X: object) -> Floats:
        """The distances of rows from the centres."""
        self._ready()
        return np.sqrt(distances(self._points(X), self.cluster_centers_))

    def score(self, X: object, y: object = None) -> float:
        """The squared distances of ordinary rows from their nearest centres, summed, with a minus sign."""
        self._ready()
        return -float(distances(self._points(X), self.cluster_centers_).min(axis=1).sum())

    def _points(self, X: object) -> Floats:
        return ColumnSpace(self._features, scale=self.scale).transform(X)


def _large(found: LloydRound, kept: Truths) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """The clusters that stay where small ones are dropped: at least one."""
    return np.flatnonzero(kept) if kept.any() else np.array([int(np.argmax(found.sizes))])


def _inertia(found: LloydRound, centres: Floats, origin: Floats) -> float:
    """Squared distances from the new centres of the rows that were nearest to the old ones: no less than the inertia.

    sum |x - c|^2 = sum |x|^2 - 2 c.sum x + n |c|^2, all about the origin.
    """
    assert found.squares is not None  # noqa: S101 - it was asked for
    if len(centres) != len(found.sizes):
        centres = centres[nearest_of(origin + found.means, centres)]
    away = centres - origin
    total = found.squares - 2 * (away * found.sums).sum(axis=1) + found.sizes * (away**2).sum(axis=1)
    return max(float(total.sum()), 0.0)
