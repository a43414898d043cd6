"""Bins as SQL: one integer division where that gives exactly these bins, else a binary search."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from sulq.curator.engines.read_sql import whole

DUCKDB: Final = "(TRY_CAST({{0}} AS BIGINT) * {0} - {1}) // {2}"
POSTGRES: Final = "(CAST({{0}} AS bigint) * {0} - {1}) / {2}"  # of whole numbers that are not negative


def divided(edges: list[Fraction], lower: list[int], top: int, form: str = DUCKDB) -> str | None:
    """Bins of one width as one integer division of an operand {0}; None where no division gives exactly these bins.

    The division is a guess from the outer edges, rounded to small fractions, and
    is used only if it is right at both ends of every bin; being monotone, it is
    then right everywhere.
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
            place = form.format(times, whole(less), by)
            end = f" WHEN {{0}} = {whole(top)} THEN {count - 1}" if closing else ""
            return f"CASE WHEN {{0}} >= {whole(lower[0])} AND {{0}} <= {whole(top - closing)} THEN {place}{end} END"
    return None


def search(lower: list[str], top: str) -> str:
    """A binary search among the lower edges of bins, for an operand {0}."""

    def between(first: int, last: int) -> str:
        if last - first == 1:
            return str(first)
        middle = (first + last) // 2
        return f"CASE WHEN {{0}} < {lower[middle]} THEN {between(first, middle)} ELSE {between(middle, last)} END"

    return f"CASE WHEN {{0}} >= {lower[0]} AND {{0}} <= {top} THEN {between(0, len(lower))} END"
