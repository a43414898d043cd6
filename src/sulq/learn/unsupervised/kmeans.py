"""k-means by noisy sums: Lloyd's iteration, one question a round."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import numpy as np

from sulq.answers.oracle import ColumnChoice, SpendPlan
from sulq.errors import QuestionError
from sulq.forms.parameters import checked, number, whole
from sulq.language.kinds import Floats, Integers, Truths
from sulq.language.privacy import SubLinear
from sulq.learn.base import Learner
from sulq.learn.features import Features
from sulq.learn.public_random import public
from sulq.learn.unsupervised.lloyd import ROUNDS, KMeansTask, LloydRound, Shrink
from sulq.learn.unsupervised.quantizer import distances, nearest_of
from sulq.learn.unsupervised.space import ColumnSpace

Small = Literal["keep", "drop", "move", "raise"]


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
        max_iter: How many rounds; left open, 5 from given centres, else as many as the noise allows, at most 3.
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
    max_iter: int | None = None
    small: Small = "keep"
    threshold: float = 5.0
    inertia: bool = False
    scale: bool = False

    def _fit(self, X: ColumnChoice, y: ColumnChoice, spending: SpendPlan) -> None:
        features = Features.of(X)
        space = ColumnSpace(features, scale=self.scale)
        start = self._checked(space)
        self._features = features
        task = KMeansTask(space, spending, self.n_clusters)
        if self.init is None and not spending.sublinear:
            rounds, centres, parts, shrink = task.sketched(self.max_iter)
        else:
            rounds, centres, parts, shrink = task.plain(start, self.max_iter or ROUNDS, inertia=self.inertia)
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
        if self.max_iter is not None:
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
