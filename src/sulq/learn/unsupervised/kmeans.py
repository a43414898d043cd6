"""k-means by noisy sums: Lloyd's iteration, one question a round, from given centres, a spread or a noisy sketch.

A round asks how many rows are nearest to each centre, and what they sum to.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from typing import Any, Final, Literal

import numpy as np

from sulq.answers.answer import Answer
from sulq.answers.oracle import ColumnChoice, SpendPlan, queries
from sulq.errors import QuestionError
from sulq.forms.parameters import checked, number, whole
from sulq.language.domain import Column
from sulq.language.kinds import Floats, Integers, Truths
from sulq.language.privacy import Loss, SubLinear
from sulq.language.question import Sums
from sulq.language.rowfn import Nearest
from sulq.learn.base import Learner
from sulq.learn.evaluation.prediction import ClusterPrediction
from sulq.learn.features import Features
from sulq.learn.noisy_sums import SAFE_DEVIATIONS, deviations, divided, public
from sulq.learn.unsupervised.quantizer import cover, distances, nearest_of, quantize
from sulq.learn.unsupervised.space import (
    ColumnSpace,
    Location,
    ball,
    closer,
    closer_question,
    foreseen_most,
    locate,
    location_question,
    moved,
    present,
    squared,
    to_centres,
)

INERTIA_PART: Final = Fraction(1, 10)  # of a round that also asks for the squared distances, their part
LOOK_PART: Final = Fraction(3, 20)  # of the spend, for where the rows lie
SKETCH_PART: Final = Fraction(1, 2)  # of the rest, for a first partition into many cells
SKETCH_CELLS: Final = 64  # of that partition at most, or eight a cluster
MAX_CELL_NOISE: Final = 0.5  # the noise of a cell's mean, as part of the spread, up to which cells are worth asking for
SKETCH_SPACING: Final = 0.7  # how far apart the cells' centres lie, in deviations of the rows
RADIUS_SPREADS: Final = 4.0  # squared radius, in spreads, that is small enough
MAX_RADIUS_NOISE: Final = 0.03  # the noise of a cluster's mean, as part of the spread, up to which a radius may grow
PLAIN_ROUNDS: Final = 5  # of plain Lloyd
MAX_SKETCH_ROUNDS: Final = 3  # rounds after a sketch at most
CLOSER_PART: Final = Fraction(3, 20)  # of the spend, for a closer look where noise hides how far the rows spread
MIN_SIGNAL: Final = 0.5  # the part of the clusters' means that noise leaves, below which the mean of all is a centre
MAX_ROUND_NOISE: Final = 0.1  # the noise of a cluster's mean, as part of the spread, that another round may not pass
Small = Literal["keep", "drop", "move", "raise"]


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

    def errors(self, part: Fraction) -> Floats:
        """The noise in one cell's sums, by coordinate, foreseen for a part of the spend; free."""
        plan = self.spending.foresee(self.question(self.origin[None]), part)
        return deviations(plan)[0][1 : 1 + len(self.space)] * self.unit

    def noise(self, part: Fraction) -> float:
        """The norm of that."""
        return float(np.linalg.norm(self.errors(part)))


@dataclass(frozen=True, slots=True)
class Shrink:
    """What was known of a mean before a round, so that a round of much noise and few rows does not undo it."""

    mean: Floats
    deviation: Floats  # of the rows, by coordinate
    most: float  # rows that there are surely
    doubt: Floats | float = 0.0  # the variance of what is not known of the mean of all, by coordinate

    def means(self, found: LloydRound, centres: Floats, origin: Floats, kept: Truths | None = None) -> Floats:
        """The new means, drawn towards the old centres by as much as noise explains of them.

        What all of them moved by is told by the sum of all cells: it is known better than what one of them did.
        Those that are not kept move with the others alone.
        """
        shift = self._shift(found, centres - origin)
        rows = np.clip(found.sizes - found.blur, 0.0, self.most)[:, None]
        signal = (rows * self.deviation) ** 2 * (1.0 if kept is None else kept[:, None])
        weight = signal / np.maximum(signal + found.errors**2, 1e-300)
        return centres + shift + weight * (origin + found.guarded - centres - shift)

    def _shift(self, found: LloydRound, away: Floats) -> Floats:
        """How far the mean of all rows is from where the centres have it, as far as it stands out from noise."""
        rows = max(float(found.sizes.sum()), SAFE_DEVIATIONS * found.blur * np.sqrt(len(away)))
        off = (found.sums - found.sizes[:, None] * away).sum(axis=0) / rows
        noise = (len(away) * found.errors**2 + found.blur**2 * (away**2).sum(axis=0)) / rows**2
        return np.asarray(self.doubt / np.maximum(self.doubt + noise, 1e-300) * off)


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
        spending.foresee(closer_question(space, space.middle, float(space.half.max())), CLOSER_PART)
        box = Rounds(space, spending, space.middle, np.inf, float(np.linalg.norm(space.half)))
        spending.foresee(box.question(np.tile(space.middle, (max(SKETCH_CELLS, 8 * k), 1))), 1 - LOOK_PART)
        spending.plan(3 + (rounds or MAX_SKETCH_ROUNDS))
        where, left = locate(space, spending, LOOK_PART), 1 - LOOK_PART
        if self._look_again(where, left):
            where = closer(space, spending, where, CLOSER_PART)
            left -= CLOSER_PART
        about = self._about(where)
        even = space.half**2 / 3  # the variances of rows spread evenly over the box
        spread = np.sqrt(np.minimum(where.variances + where.doubt, even))
        shrink = Shrink(where.mean, np.sqrt(np.minimum(where.variances, even)), where.least, where.doubt)
        reach = float(np.linalg.norm(spread))
        cells = min(
            max(SKETCH_CELLS, 8 * k), int(MAX_CELL_NOISE * where.least * reach / about.noise(left * SKETCH_PART))
        )
        if cells < 2 * k:
            centres = self._spread(about, where, spread, left)
        else:
            centres = self._sketch(about, replace(shrink, deviation=spread), cells, left * SKETCH_PART)
            left *= 1 - SKETCH_PART
        if rounds is None:
            enough = MAX_ROUND_NOISE * where.least * reach / k
            rounds = next((n for n in range(MAX_SKETCH_ROUNDS, 1, -1) if about.noise(left / n) <= enough), 1)
        return about, centres, [left / rounds] * rounds, shrink

    def _look_again(self, where: Location, left: Fraction) -> bool:
        """Whether a closer look pays: the ball it foresees makes less noise at the smaller price that is left."""
        about, most = self._about(where), foreseen_most(self.space, self.spending, where, CLOSER_PART)[0]
        corner = float((self.space.away(where.mean) ** 2).sum()) / RADIUS_SPREADS
        smaller = np.sqrt(min(most, corner) / min(where.most, corner))
        return bool(not where.sure and smaller * about.noise(left - CLOSER_PART) < about.noise(left))

    def _spread(self, about: Rounds, where: Location, spread: Floats, left: Fraction) -> Floats:
        """Public points about the mean; where the clusters' own means would drown in noise, it is one of them.

        With the mean among the centres no row is farther from them than from it.
        """
        centres = self.space.inside(cover(where.mean, spread * np.sqrt(3), self.k))
        signal = (where.least * spread / self.k) ** 2
        seen = float((spread**2 * signal / np.maximum(signal + about.errors(left) ** 2, 1e-300)).sum())
        if seen < MIN_SIGNAL * float((spread**2).sum()):
            centres[nearest_of(where.mean[None], centres)[0]] = where.mean
        return centres

    def _about(self, where: Location) -> Rounds:
        """Rounds about the rows' mean, within a few spreads, or as far as the noise stays small.

        Shortened rows draw the mean of a far cluster inwards, however much is spent.
        """
        space = self.space
        box = float((space.half**2).sum())
        wide = RADIUS_SPREADS * (where.spread + where.blur + float(where.doubt.sum()))
        probe = Rounds(space, self.spending, where.mean, np.inf, float(np.sqrt(where.spread)))
        # The same part of the half-diagonal, in the units of the sums.
        radius = float(np.sqrt(wide / box) * np.linalg.norm(space.half / probe.unit))
        found = Rounds(space, self.spending, where.mean, radius, float(np.sqrt(where.spread)))
        noise = found.noise((1 - LOOK_PART) * SKETCH_PART / MAX_SKETCH_ROUNDS) * self.k / where.least
        small = MAX_RADIUS_NOISE * float(np.sqrt(where.spread)) / max(noise, 1e-300)
        return replace(found, radius=radius * max(small, 1.0))

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

    Spend: 15% for the first question; as much for a closer look where noise hides the spread and the smaller ball it
    foresees makes up for the price; half of the rest for the cells, half for the rounds; where cells would be all
    noise, everything for one round; where clusters would be, the mean of all is among the centres, which move together
    by what their cells tell of it. With centres given, equal parts for all rounds.

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
            if shrink:
                moved = shrink.means(found, centres, rounds.origin, kept)
            else:
                moved = np.where(kept[:, None], rounds.origin + found.means, centres)
            centres = space.inside(self._policy(moved, found, kept, shrink, i))
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

    def score(self, X: object, y: object = None, *, spend: Loss | None = None) -> float | Answer:
        """The squared distances of rows from their nearest centres, summed, with a minus sign."""
        found = self._private_score(X, y, spend)
        return (
            found if found is not None else -float(distances(self._points(X), self.cluster_centers_).min(axis=1).sum())
        )

    def _prediction(self) -> ClusterPrediction:
        return to_centres(ColumnSpace(self._features, scale=self.scale), self.cluster_centers_)

    def _learned_columns(self) -> tuple[tuple[str, Column], ...]:
        return self._features.columns

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
