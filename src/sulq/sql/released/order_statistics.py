"""Quantiles and extremes to questions: choices by rank, a tree of counts, or both, as is foreseen to be nearer.

One to three quantiles are chosen with most of the spend; many share one tree of counts. An interval is bought from the
same spend: by two choices at shifted ranks, or by a tree. Which, and how the spend is divided, follows from public
facts alone: how many quantiles, bins and groups there are, and the law. A mistake costs accuracy, never privacy.
Proofs: docs/theory/quantiles.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final

from sulq.answers import wire
from sulq.answers.readings.quantiles import MOST_BINS, Bed, Picked, Quantile, bed, branching, nodes
from sulq.answers.readings.rank_choice import (
    COUNT_SHARE,
    ChosenExtreme,
    ChosenQuantile,
    CountedFirst,
    RankForecast,
    RankReading,
    RankShares,
    gap_of,
    rank_of,
)
from sulq.errors import QuestionError
from sulq.kernel.scores import Rank
from sulq.language import rowfn
from sulq.language.kinds import Scalar
from sulq.language.privacy import Epsilon, EpsilonDelta, Rho
from sulq.language.rowfn import RowFn
from sulq.language.rowfn.vectors import bounded
from sulq.language.shape import shape
from sulq.sql.released.columns import (
    DECLARE,
    AnswerSlice,
    RowGroups,
    StatColumn,
    SumCollector,
    exact,
    is_whole,
    slice_at,
)

_HOW: Final = {"min": "min", "max": "max", "quantile_cont": "cont", "quantile_disc": "disc"}
_AT: Final = {"min": Fraction(0), "max": Fraction(1)}
_EXTREME: Final = {Fraction(0): "min", Fraction(1): "max"}
MAX_EXACT_BINS: Final = 2**17  # bins of all groups together that hold one value each: noise is drawn for each of them
MAX_COARSE_BINS: Final = 2**15  # bins of all groups together where that does not suffice
MIN_GROUP_BINS: Final = 256  # bins of a group, however many groups there are
MAX_WEIGHT: Final = 6  # quantiles of a value get at most so many times the spend of a count
Wanted = tuple[str, Fraction]  # how, and which quantile


def order_statistics(
    asking: SumCollector, rows: RowGroups, fn: RowFn, wanted: Sequence[tuple[str, Fraction | None]]
) -> list[StatColumn]:
    """A column for each quantile and extreme of one value."""
    if rows.open:
        raise QuestionError("open-keys", "Quantiles are asked of groups that are known in advance.", DECLARE)
    schema = asking.schema(rows)
    lo, hi, kind = bounded(fn, schema)
    bins = _bed(lo, hi, kind, max(asking.cells(rows), 1))
    asked = [(_HOW[name], _AT.get(name, q if q is not None else Fraction(1, 2))) for name, q in wanted]
    made = _Asked(asking, rows, fn, bins).readings([(how, at) for how, at in asked])
    whole = is_whole(fn, schema) and kind.clock is None
    found = []
    for how, at in asked:
        slices, reading = made[how, at]
        found.append(StatColumn(slices, reading, whole=whole and how != "cont", clock=kind.clock))
    return found


def _bed(lo: Fraction, hi: Fraction, kind: Scalar, cells: int) -> Bed:
    """The bins of a value in each of so many groups: one a value if there is room, else as many as are drawn soon."""
    finest = bed(lo, hi, kind.step, max(min(MOST_BINS, MAX_EXACT_BINS // cells), MIN_GROUP_BINS))
    single = kind.step is not None and finest.width == kind.step
    return finest if single else bed(lo, hi, kind.step, max(MAX_COARSE_BINS // cells, MIN_GROUP_BINS))


Slices = tuple[AnswerSlice, ...]
Read = tuple[Slices, RankReading]


class _Asked:
    """The order statistics of one value in the making."""

    def __init__(self, asking: SumCollector, rows: RowGroups, fn: RowFn, bins: Bed) -> None:
        self.asking, self.rows, self.fn, self.bins = asking, rows, fn, bins
        self.groups = max(asking.cells(rows), 1)
        self.levels, self.branch = branching(bins.bins, pure=not asking.gaussian)
        self.sizes = nodes(bins.bins, self.levels, self.branch)
        self.text = wire.encode(fn)
        self.forecast = RankForecast(self.levels, self.branch, bins.bins, not asking.gaussian, self.groups)

    def readings(self, wanted: Sequence[Wanted]) -> Mapping[Wanted, tuple[Slices, RankReading | CountedFirst]]:
        """Where each is read, and how."""
        different = list(dict.fromkeys(wanted))
        if not self._chooses():
            return self._from_tree(different, self._tree_weight())
        extremes = [one for one in different if one[0] in _AT or one[1] in _EXTREME]
        inner = [one for one in different if one not in extremes]
        layout = self.forecast.layout([float(q) for _, q in inner], interval=self.asking.interval) if inner else None
        if layout is not None and not layout.choice and not extremes:
            return self._from_tree(inner, self._tree_weight())
        each = 3 if self.asking.interval and layout is not None and layout.choice else 1
        weight = Fraction(min(each * len(inner) + 2 * len(extremes), MAX_WEIGHT))
        counted: Slices = ()
        if self.rows.keys:
            counted = (slice_at(self.asking.put(self.rows, self._present(), weight * COUNT_SHARE)),)
            weight *= 1 - COUNT_SHARE
        part = weight / (each * len(inner) + 2 * len(extremes))
        found = {one: self._extreme(_EXTREME[one[1]], 2 * part) for one in extremes}
        if layout is not None:
            found |= self._inner(inner, layout, part * each * len(inner))
        if not counted:
            return found
        return {one: ((*counted, *slices), CountedFirst(reading)) for one, (slices, reading) in found.items()}

    def _chooses(self) -> bool:
        """Whether any is chosen: not from sums that coarser groups are added up from, nor where a tree is exact."""
        spend = self.asking.spend
        if not self.asking.chooses or not self.rows.alone or not isinstance(spend, (Epsilon, Rho, EpsilonDelta)):
            return False
        paid = float(spend.rho if isinstance(spend, EpsilonDelta) else spend.exact)
        most = shape(self.rows.over, self.asking.facts).rows
        return 2 * self.forecast.tree(0.5, paid) * most >= 0.5  # else whole counts are known

    def _present(self) -> RowFn:
        there = self.fn.kind(self.asking.schema(self.rows)).nullable
        return rowfn.Not(rowfn.IsMissing(self.fn)) if there else rowfn.Lit(1)

    def _inner(self, wanted: Sequence[Wanted], layout: RankShares, weight: Fraction) -> dict[Wanted, Read]:
        if not layout.choice:
            return self._from_tree(wanted, weight)
        trees = self._from_tree(wanted, weight * layout.tree) if layout.tree else {}
        found: dict[Wanted, Read] = {}
        for how, q in wanted:
            centre = self._choice(rank_of(how, q), weight * layout.choice)
            slices, reading = trees.get((how, q), ((), None))
            if isinstance(reading, Quantile):
                found[how, q] = ((*slices, centre), Picked(reading))
                continue
            gap = None
            if layout.end:
                gap = max(self._gap(rank_of(how, q, end), 2) for end in (-1, 1))
                ends = (rank_of(how, q, -gap), rank_of(how, q, gap))
                slices = tuple(self._choice(rank, weight * layout.end) for rank in ends)
            found[how, q] = ((centre, *slices), ChosenQuantile(self.bins, rank_of(how, q).denominator, gap))
        return found

    def _extreme(self, how: str, weight: Fraction) -> Read:
        centre = self.forecast.centre(interval=self.asking.interval)
        own = self._choice(rank_of(how, _AT[how]), weight * centre)
        if not self.asking.interval:
            return (own,), ChosenExtreme(self.bins, how == "max")
        gap = self._gap(rank_of(how, _AT[how], 1), 1)
        inner = self._choice(rank_of(how, _AT[how], gap), weight * (1 - centre))
        return (own, inner), ChosenExtreme(self.bins, how == "max", gap)

    def _gap(self, rank: Rank, ends: int) -> int:
        """The shift that the law of a choice needs; 1, and no interval, while the law is not known."""
        law = self.asking.law(self._chosen_from(rank))
        return 1 if law is None else gap_of(law, self.groups, ends)

    def _chosen_from(self, rank: Rank) -> RowGroups:
        key = self._key(1, self.bins.bins)
        return RowGroups(self.rows.over, self.rows.where, (*self.rows.keys, key), score=rank)

    def _key(self, together: int, size: int) -> RowFn:
        made = (self.text, self.bins, together, size)
        return self.asking.once(made, lambda: binned(self.fn, self.bins, together, size))

    def _choice(self, rank: Rank, weight: Fraction) -> AnswerSlice:
        return slice_at(self.asking.put(self._chosen_from(rank), rowfn.Lit(1), weight))

    def _tree_weight(self) -> Fraction:
        """What a tree is paid with where nothing is chosen: more than a count, and not all of a query's spend."""
        noise = self.levels ** (2 if self.asking.gaussian else 3) * (self.branch - 1) / 4
        weight = max(1.0, min(noise, MAX_WEIGHT**2) ** (1.0 if self.asking.gaussian else 0.5))
        return Fraction(weight).limit_denominator(100)

    def _from_tree(self, wanted: Sequence[Wanted], weight: Fraction) -> dict[Wanted, Read]:
        """One tree of counts for all of them."""
        rows, slices = self.rows, []
        for level, size in enumerate(self.sizes):
            key = self._key(self.branch ** (self.levels - 1 - level), size)
            groups = RowGroups(rows.over, rows.where, (*rows.keys, key))
            slices.append(slice_at(self.asking.put(groups, rowfn.Lit(1), weight / self.levels), fold=size))
        return {(how, q): (tuple(slices), Quantile(self.bins, self.branch, self.sizes, how, q)) for how, q in wanted}


def binned(fn: RowFn, bins: Bed, together: int, size: int) -> RowFn:
    """The key of a level of the tree: the number of the bin a value falls into, several bins `together`."""
    width = bins.width * together
    index = (fn - exact(bins.start)) / exact(width) if width != 1 else fn - exact(bins.start)
    return rowfn.Each(rowfn.Maths("floor", index).clip(0, size - 1))
