"""Which marginal a model explains worst: one choice for all of them, whose price does not grow with their number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from sulq.errors import QuestionError
from sulq.kernel.scores import LARGEST_SHIFT
from sulq.language.kinds import Floats, Integers
from sulq.language.question import MAX_VALUES, Choose, Sums
from sulq.language.rowfn import Lookup, Route
from sulq.language.score import Distance
from sulq.release.space import CellSpace
from sulq.release.tables.interactions import Places

SCALE: Final = 16  # parts of a row that scores are counted in, so that what is subtracted is hardly rounded
ENTRIES: Final = 2**18  # numbers of all tables of one question: beyond it cells are looked at in groups
FEWEST: Final = 4  # groups of a marginal
EVERYBODY: Final = Route((), ())  # the key of one cell, where every row is


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A marginal with the counts that a model expects of it.

    `weight`: how much it matters. `noise`: the distance that measuring it would be off by; what it explains beyond
    that is gained.
    """

    places: Places
    expected: Floats
    weight: int = 1
    noise: float = 0.0


def worst(space: CellSpace, candidates: Sequence[Candidate]) -> Choose:
    """The question which candidate is farthest from what the model expects, in L1, weighed and less its noise.

    A row is one number in one of its marginal's cells, so it moves a candidate's distance by
    its weight, however many cells there are. Of marginals with many cells the rarest, as the model
    has it, are looked at in groups: that can only make them look nearer than they are.

    Raises:
        QuestionError: `too-large`: there are too many marginals, or they have too many cells.
    """
    sizes = [candidate.expected.size for candidate in candidates]
    most = _groups(sizes)
    values, targets = [], []
    for candidate in candidates:
        expected = candidate.expected.ravel()
        group, width = _grouped(expected, most)
        keys = tuple(space.keys[place] for place in candidate.places)
        table = np.zeros((expected.size, width), dtype=np.int64)
        table[np.arange(expected.size), group] = 1
        values.append(Lookup(keys, tuple(map(tuple, table.tolist()))))
        aim = np.bincount(group, weights=expected, minlength=width)
        targets.append(tuple(int(n) for n in np.clip(np.rint(aim), -LARGEST_SHIFT, LARGEST_SHIFT)))
    score = Distance(
        tuple(targets),
        tuple(candidate.weight * SCALE for candidate in candidates),
        tuple(-round(candidate.weight * SCALE * candidate.noise) for candidate in candidates),
    )
    return Choose(Sums(tuple(values), space.complete, (EVERYBODY,)), score)


def check(sizes: Sequence[int]) -> None:
    """Refuse marginals that no question can hold, before the first is asked.

    Raises:
        QuestionError: `too-large`.
    """
    _groups(sizes)


def _groups(sizes: Sequence[int]) -> int:
    """The most groups a marginal may have, so that all tables together have at most ENTRIES numbers."""
    if len(sizes) > MAX_VALUES:
        raise QuestionError(
            "too-large",
            f"{len(sizes):,} marginals are too many to choose from; {MAX_VALUES:,} fit.",
            "Name the marginals that matter, or take fewer ways or columns.",
        )
    most = max(sizes)
    while most > FEWEST and sum(size * min(size, most) for size in sizes) > ENTRIES:
        most = max(most // 2, FEWEST)
    if sum(size * min(size, most) for size in sizes) > ENTRIES:
        raise QuestionError(
            "too-large",
            f"The marginals have {sum(sizes):,} cells; about {ENTRIES // FEWEST:,} fit.",
            "Name fewer marginals, or take fewer bins, ways or columns.",
        )
    return most


def _grouped(expected: Floats, most: int) -> tuple[Integers, int]:
    """Each cell's group: one of its own for those expected to be large, the others dealt out in turn."""
    if expected.size <= most:
        return np.arange(expected.size), expected.size
    order = np.argsort(-expected, kind="stable")
    own = most // 2
    group = np.empty(expected.size, dtype=np.int64)
    group[order[:own]] = np.arange(own)
    group[order[own:]] = own + np.arange(expected.size - own) % (most - own)
    return group, most
