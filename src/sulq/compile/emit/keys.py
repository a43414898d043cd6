"""Row functions that give a key, as SQL: bins, whole values, buckets, and small tables of constants read at a code.

Bins are one integer division where that gives exactly these bins, else a binary search; or of each value.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from sulq.compile.emit.piece import NotInSql, Piece, double, joined, whole
from sulq.compile.statements.kept_table import PERSON
from sulq.language.kinds import Code, Scalar, Truth
from sulq.language.rowfn import Col, RowFn
from sulq.language.rowfn.keys import HALF, PRIME, Bins, Bucket, Choice, Each, OrMissing, Relabel, code, mixing

if TYPE_CHECKING:
    from sulq.compile.emit.emitter import Emitter

MAX_BINS: Final = 1024  # more are searched by the batch path
MAX_LIST_ENTRIES: Final = 65_536  # a longer table is read by the batch path


def _each(writer: Emitter, fn: Each) -> Piece:
    kind = fn.item.kind(writer.schema)
    if isinstance(kind, Code):
        return writer.code(fn.item)
    if isinstance(kind, Truth):
        if isinstance(fn.item, Col):
            return writer.column(fn.item.name)
        return joined("CAST({0} AS TINYINT)", writer.truth(fn.item))
    if not isinstance(kind, Scalar) or kind.lo is None:
        raise NotInSql(type(fn.item).__name__)
    low = math.ceil(kind.lo)
    return joined(f"TRY_CAST(({{0}} - {double(float(low))}) AS BIGINT)", writer.number(fn.item))


def _bins(writer: Emitter, fn: Bins) -> Piece:
    edges = fn.fitted(writer.schema)
    if len(edges) > MAX_BINS:
        raise NotInSql("Bins")
    column = writer.stored(fn.item)
    if column is not None:
        exact, limits, top = limited(edges, column.step, column.low, column.high)
        division = divided(exact, limits, top, within=(column.low, column.high))
        return joined(division or search(list(map(whole, limits)), whole(top)), writer.any_kind(fn.item))
    item = writer.named(writer.number(fn.item))
    return joined(search([double(edge) for edge in edges[:-1]], double(edges[-1])), item)


def _bucket(_: Emitter, fn: Bucket) -> Piece:
    a, b, c = mixing(fn.salt)
    mixed = f"({a} * ({PERSON} // {HALF}) + {b} * ({PERSON} % {HALF}) + {c})"
    return Piece(f"({mixed} % {PRIME} % {fn.count})")


def _relabel(writer: Emitter, fn: Relabel) -> Piece:
    places = fn.renamed()[1]
    if places == list(range(len(places))):
        return writer.code(fn.item)
    return table(writer.code(fn.item), ["NULL" if x is None else str(x) for x in places], "INTEGER")


def _or_missing(writer: Emitter, fn: OrMissing) -> Piece:
    return joined(f"coalesce({{0}}, {code(fn.item, writer.schema).size})", writer.code(fn.item))


def table(item: Piece, entries: list[str], kind: str) -> Piece:
    """The entry of a list of constants at a code."""
    if len(entries) > MAX_LIST_ENTRIES:
        raise NotInSql("a long table")
    # Codes are stored in the narrowest integers, in which the last code plus one may not fit (T30).
    return joined(f"CAST(list_extract(list_value({', '.join(entries)}), CAST({{0}} AS BIGINT) + 1) AS {kind})", item)


def _choice(writer: Emitter, fn: Choice) -> Piece:
    pieces = [writer.truth(when) for when, _ in fn.branches]
    places = ["NULL" if place is None else str(place) for _, place in fn.branches]
    cases = " ".join(f"WHEN {{{i}}} THEN {place}" for i, place in enumerate(places))
    last = "NULL" if fn.otherwise is None else str(fn.otherwise)
    return joined(f"CAST(CASE {cases} ELSE {last} END AS INTEGER)", *pieces)


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


SQL: Final[Mapping[type[RowFn], Callable[[Emitter, Any], Piece]]] = {
    Bins: _bins,
    Bucket: _bucket,
    Choice: _choice,
    Each: _each,
    OrMissing: _or_missing,
    Relabel: _relabel,
}
