"""Edges of bins: which bin a number is in, as SQL of few operations a row where the edges allow it."""

from __future__ import annotations

import math
from bisect import bisect_right
from fractions import Fraction

from sulq.language.rowfn.piece import double, whole


def limited(edges: list[float], step: Fraction, low: int, high: int) -> tuple[list[Fraction], list[int], int]:
    """Edges in units of a column from low to high; the least unit of each bin, and the greatest of the last."""
    exact = [Fraction(edge) / step for edge in edges]
    least = [min(max(math.ceil(edge), low - 1), high + 1) for edge in exact[:-1]]
    return exact, least, min(max(math.floor(exact[-1]), low - 1), high)


def divided(
    edges: list[Fraction],
    lower: list[int],
    top: int,
    *,
    within: tuple[int, int] | None = None,
    beyond: bool = False,
) -> str | None:
    """Bins of one width as one integer division of an operand {0}; None where no division gives exactly these bins.

    The division is a guess from the outer edges, rounded to small fractions, and
    is used only if it is right at both ends of every bin; being monotone, it is
    then right everywhere. Where the operand lies `within` the outer edges, no row
    is compared with them. With `beyond` the upper edge of all may have the place after the last.
    """
    count = len(lower)
    for digits in (1, 10**3, 10**6):
        width = ((edges[-1] - edges[0]) / count).limit_denominator(digits)
        start = edges[0].limit_denominator(digits)
        if width <= 0:
            continue
        # floor((c - start) / width) = (c * times - less) // by, for what is not negative
        times = width.denominator * start.denominator
        less, by = width.denominator * start.numerator, width.numerator * start.denominator
        closing = edges[-1] == top and (top * times - less) // by == count  # the last bin holds its upper edge
        ends = [*(edge - 1 for edge in lower[1:]), top - closing]
        largest = max(abs(lower[0]), abs(top)) * times + abs(less)
        right = all(
            first > last or (first * times - less) // by == i == (last * times - less) // by
            for i, (first, last) in enumerate(zip(lower, ends, strict=True))
        )
        if right and largest < 2**62 and lower[0] * times >= less:
            item = f"TRY_CAST({{0}} AS {'INTEGER' if largest < 2**31 else 'BIGINT'})"
            end = ""
            if closing and not beyond and lower[-1] < top:  # it counts as the unit below it, which is of the same bin
                item = f"({item} - CAST({{0}} = {whole(top)} AS INTEGER))"
            elif closing and not beyond:
                top, end = top - 1, f" WHEN {{0}} = {whole(top)} THEN {count - 1}"
            outside = [f"{{0}} >= {whole(lower[0])}"] if within is None or within[0] < lower[0] else []
            outside += [f"{{0}} <= {whole(top)}"] if within is None or within[1] > top else []
            place = _place(item, times, less, by)
            return f"CASE WHEN {' AND '.join(outside)} THEN {place}{end} END" if outside else place
    return None


def _place(item: str, times: int, less: int, by: int) -> str:
    """(item * times - less) // by, without what changes nothing."""
    item = item if times == 1 else f"{item} * {times}"
    item = f"({item} - {whole(less)})" if less else item
    return item if by == 1 else f"({item}) // {by}"


def dyadic(edges: list[float]) -> float | None:
    """What edges are multiplied with to be whole numbers one after the other, where that is a power of two from 1 on.

    So multiplied no number is rounded, and its bin is its floor. None: they are no such edges.
    """
    scale = 1 / (edges[1] - edges[0])
    if not 1 <= scale <= 2**52 or math.frexp(scale)[0] != 0.5 or max(map(abs, edges)) * scale > 2**52:
        return None
    first = edges[0] * scale
    return scale if all(edge * scale == first + i for i, edge in enumerate(edges)) and first == int(first) else None


def by_floor(edges: list[float], scale: float, *, covered: bool) -> str:
    """Dyadic bins of an operand {0} by its floor; `covered`: no number lies beyond the edges."""
    place = f"TRY_CAST(floor({{0}} * {double(scale)}) AS BIGINT) - {whole(int(edges[0] * scale))}"
    last = f"WHEN {{0}} = {double(edges[-1])} THEN {len(edges) - 2}"
    if covered:
        return f"CASE {last} ELSE {place} END"
    return f"CASE WHEN {{0}} >= {double(edges[0])} AND {{0}} < {double(edges[-1])} THEN {place} {last} END"


def search(lower: list[str], top: str) -> str:
    """A binary search among the lower edges of bins, for an operand {0}."""

    def between(first: int, last: int) -> str:
        if last - first == 1:
            return str(first)
        middle = (first + last) // 2
        return f"CASE WHEN {{0}} < {lower[middle]} THEN {between(first, middle)} ELSE {between(middle, last)} END"

    return f"CASE WHEN {{0}} >= {lower[0]} AND {{0}} <= {top} THEN {between(0, len(lower))} END"


def places(edges: list[Fraction], low: int, high: int) -> tuple[int, ...]:
    """The bin of every whole number from low to high; -1 for those in none. The last bin holds its upper edge."""
    last, whole = len(edges) - 2, list(map(math.ceil, edges))  # of whole numbers an edge is its ceiling
    end = whole[-1] if edges[-1] == whole[-1] else None
    found = (last if value == end else bisect_right(whole, value) - 1 for value in range(low, high + 1))
    return tuple(place if 0 <= place <= last else -1 for place in found)
