"""Which coefficients marginals need: the interactions of their attributes, closed downwards [S3.16, S3.18]."""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence

Places = tuple[int, ...]  # attributes by their place, ascending


def closure(marginals: Iterable[Places]) -> tuple[Places, ...]:
    """Every subset of every marginal, the small ones first: a marginal is a sum over its subsets' coefficients."""
    return _closure(tuple(marginals))


@functools.lru_cache(maxsize=64)  # a release walks over its own again and again
def _closure(marginals: tuple[Places, ...]) -> tuple[Places, ...]:
    found = {
        part
        for marginal in marginals
        for size in range(len(marginal) + 1)
        for part in itertools.combinations(marginal, size)
    }
    return tuple(sorted(found, key=lambda part: (len(part), part)))


def inside(marginal: Places) -> tuple[Places, ...]:
    """The subsets of one marginal."""
    return closure((marginal,))


def width(places: Places, sizes: Sequence[int]) -> int:
    """The number of coefficients of one interaction."""
    return math.prod(sizes[place] - 1 for place in places)


def cells(places: Iterable[int], sizes: Sequence[int]) -> int:
    """The number of cells of a marginal."""
    return math.prod(sizes[place] for place in places)


def subsets(marginals: Iterable[Places]) -> int:
    """How many subsets the marginals have, one by one: the length of every walk over them, known without one."""
    return sum(2 ** len(marginal) for marginal in marginals)


def numbers(marginals: Iterable[Places], sizes: Sequence[int], order: int) -> int:
    """How many numbers the vectors of interactions of up to `order` attributes have on the marginals' cells.

    The widths of a marginal's subsets of j attributes sum to the coefficient of t^j in the product of 1 + (r - 1) t.
    """
    whole = 0
    for marginal in marginals:
        widths = [1]
        for place in marginal:
            more = [(sizes[place] - 1) * each for each in widths]
            widths = [one + other for one, other in zip([*widths, 0], [0, *more], strict=True)]
        whole += cells(marginal, sizes) * sum(widths[: order + 1])
    return whole


def largest(marginals: Iterable[Places], sizes: Sequence[int], order: int) -> int:
    """The most numbers that one interaction of up to `order` attributes has on a marginal's cells."""
    return max(
        cells(marginal, sizes)
        * math.prod(sorted((max(sizes[place] - 1, 1) for place in marginal), reverse=True)[:order])
        for marginal in marginals
    )


def wanted(marginals: Iterable[Places], closed: Iterable[Places]) -> dict[Places, int]:
    """How many of the marginals each interaction is part of."""
    counted = Counter(
        part
        for marginal in marginals
        for size in range(len(marginal) + 1)
        for part in itertools.combinations(marginal, size)
    )
    return {part: counted[part] for part in closed}
