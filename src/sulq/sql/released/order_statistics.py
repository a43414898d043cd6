"""Quantiles and extremes of one value: one tree of counts for all of them, and choices where those are nearer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from sulq.answers.quantiles import MOST_BINS, Bed, Picked, Quantile, bed, branching, nodes
from sulq.errors import QuestionError
from sulq.kernel.scores import LARGEST_ENTRY, Rank
from sulq.language import rowfn
from sulq.language.kinds import Scalar
from sulq.language.rowfn import RowFn
from sulq.language.rowfn.vectors import bounded
from sulq.sql.released.columns import ColumnReading, Leaf
from sulq.sql.released.sum_collector import RowGroups, SumCollector, cut_at, exact, is_whole

_HOW: Final = {"min": "min", "max": "max", "quantile_cont": "cont", "quantile_disc": "disc"}
_AT: Final = {"min": Fraction(0), "max": Fraction(1)}
MAX_EXACT_BINS: Final = 2**17  # bins of all groups together that hold one value each: noise is drawn for each of them
MAX_COARSE_BINS: Final = 2**15  # bins of all groups together where that does not suffice
MIN_GROUP_BINS: Final = 256  # bins of a group, however many groups there are
MAX_TREE_WEIGHT: Final = 6  # a tree gets at most so many times the spend of a count


def tree(asking: SumCollector, rows: RowGroups, fn: RowFn, wanted: Sequence[tuple[str, Fraction | None]]) -> list[Leaf]:
    """Quantiles and extremes of one value: one tree of counts for all of them."""
    if rows.open:
        raise QuestionError("open-keys", "Quantiles are asked of groups that are known in advance.")
    schema = asking.schema(rows)
    lo, hi, kind = bounded(fn, schema)
    bins = _bed(lo, hi, kind, max(asking.cells(rows), 1))
    levels, branch = branching(bins.bins, pure=not asking.gaussian)
    sizes = nodes(bins.bins, levels, branch)
    noise = levels ** (2 if asking.gaussian else 3) * (branch - 1) / 4
    weight = max(1.0, min(noise, MAX_TREE_WEIGHT**2) ** (1.0 if asking.gaussian else 0.5))
    share = Fraction(weight).limit_denominator(100)
    cuts = []
    for level, size in enumerate(sizes):
        key = binned(fn, bins, branch ** (levels - 1 - level), size)
        place = asking.put(RowGroups(rows.over, rows.where, (*rows.keys, key)), rowfn.Lit(1), share / levels)
        cuts.append(cut_at(place, fold=size))
    whole = is_whole(fn, schema) and kind.clock is None
    asked = [(_HOW[name], _AT.get(name, q if q is not None else Fraction(1, 2))) for name, q in wanted]
    chosen = _chosen(asking, asked, levels, branch) if rows.alone else set()
    made = []
    for how, at in asked:
        reading: ColumnReading = Quantile(bins, branch, sizes, how, at)
        own = tuple(cuts)
        if (how, at) in chosen:
            reading = Picked(Quantile(bins, branch, sizes, how, at))
            finest = RowGroups(rows.over, rows.where, (*rows.keys, key), score=_rank(how, at))
            own = (*own, cut_at(asking.put(finest, rowfn.Lit(1), share / (3 * len(chosen)))))
        made.append(Leaf(own, reading, whole=whole and how != "cont", clock=kind.clock))
    return made


def _bed(lo: Fraction, hi: Fraction, kind: Scalar, cells: int) -> Bed:
    """The bins of a value in each of so many groups: one a value if there is room, else as many as are drawn soon."""
    finest = bed(lo, hi, kind.step, max(min(MOST_BINS, MAX_EXACT_BINS // cells), MIN_GROUP_BINS))
    single = kind.step is not None and finest.width == kind.step
    return finest if single else bed(lo, hi, kind.step, max(MAX_COARSE_BINS // cells, MIN_GROUP_BINS))


def _chosen(
    asking: SumCollector, wanted: Sequence[tuple[str, Fraction]], levels: int, branch: int
) -> set[tuple[str, Fraction]]:
    """The quantiles that are also chosen directly: where that is foreseen to be nearer than the tree's own estimate.

    In rows, for a person's one row at a spend of 1: a choice at a quarter of the spend,
    divided over m of them, is off by about 3 max(q, 1-q) of its scale; the tree's
    contrast of l(b-1) counts at half weight each, less what fitting the levels saves.
    """
    inner = {(how, q) for how, q in wanted if how in ("cont", "disc") and 0 < q < 1}
    inner = {(how, q) for how, q in inner if 2 * q.denominator <= LARGEST_ENTRY}
    if not asking.chooses or not inner or any(how in ("min", "max") for how, _ in wanted):
        return set()
    far = max(max(q, 1 - q) for _, q in inner)
    counts = levels * (branch - 1)
    if asking.gaussian:
        choice, tree_ = 1.5 * far * math.sqrt(2 * len(inner)), 0.4 * math.sqrt(levels * counts / 2)
    else:
        choice, tree_ = 12.0 * far * len(inner), 0.8 * levels * math.sqrt(counts / 2)
    return inner if choice < tree_ else set()


def _rank(how: str, q: Fraction) -> Rank:
    """The rank looked for, between two rows: that of PERCENTILE_DISC, or of PERCENTILE_CONT's lower neighbour."""
    a, d = q.numerator, q.denominator
    return Rank(2 * a, 2 * d, -1 if how == "disc" else 1 - 2 * a)


def binned(fn: RowFn, bins: Bed, together: int, size: int) -> RowFn:
    """The key of a level of the tree: the number of the bin a value falls into, several bins `together`."""
    width = bins.width * together
    index = (fn - exact(bins.start)) / exact(width) if width != 1 else fn - exact(bins.start)
    return rowfn.Each(rowfn.Maths("floor", index).clip(0, size - 1))
