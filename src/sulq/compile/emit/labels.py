"""Row functions between labels as SQL: small tables of constants read at a code."""

from __future__ import annotations

from typing import Final

from sulq.compile.emit.literals import double
from sulq.compile.emit.piece import NotInSql, Piece, PieceWriter, joined
from sulq.language.rowfn import RowFn
from sulq.language.rowfn.keys import Choice, OrMissing, Relabel, Value, code

MAX_LIST_ENTRIES: Final = 65_536  # a longer table is read by the batch path


def number(writer: PieceWriter, fn: RowFn) -> Piece | None:
    """The number a label is; None for any other function."""
    if not isinstance(fn, Value):
        return None
    figures = fn.figures(writer.schema)
    item = writer.code(fn.item)
    first = figures[0]
    if first is not None and figures == [first + i for i in range(len(figures))] and abs(first) < 2**52:
        return joined(f"(CAST({{0}} AS DOUBLE) + {double(first)})", item)
    return _table(item, ["NULL" if x is None else double(x) for x in figures], "DOUBLE")


def key(writer: PieceWriter, fn: RowFn) -> Piece | None:
    """A key made of labels as a code from 0; None for any other function."""
    match fn:
        case Choice():
            return _choice(writer, fn)
        case Relabel(item):
            places = fn.renamed()[1]
            if places == list(range(len(places))):
                return writer.code(item)
            return _table(writer.code(item), ["NULL" if x is None else str(x) for x in places], "INTEGER")
        case OrMissing(item):
            return joined(f"coalesce({{0}}, {code(item, writer.schema).size})", writer.code(item))
    return None


def _table(item: Piece, entries: list[str], kind: str) -> Piece:
    if len(entries) > MAX_LIST_ENTRIES:
        raise NotInSql("a long table")
    # Codes are stored in the narrowest integers, in which the last code plus one may not fit (T30).
    return joined(f"CAST(list_extract(list_value({', '.join(entries)}), CAST({{0}} AS BIGINT) + 1) AS {kind})", item)


def _choice(writer: PieceWriter, fn: Choice) -> Piece:
    pieces = [writer.truth(when) for when, _ in fn.branches]
    places = ["NULL" if place is None else str(place) for _, place in fn.branches]
    cases = " ".join(f"WHEN {{{i}}} THEN {place}" for i, place in enumerate(places))
    last = "NULL" if fn.otherwise is None else str(fn.otherwise)
    return joined(f"CAST(CASE {cases} ELSE {last} END AS INTEGER)", *pieces)
