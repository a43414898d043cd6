"""Row functions of text as PostgreSQL's SQL: of code points and ASCII letters, in the collation "C", constants bound.

Columns and constants are of that collation, so texts are compared and searched byte
by byte; in UTF-8 one character is never a part of another. In that collation `lower`
and `upper` change ASCII letters and nothing else; `translate` would compare each
character with all 26 of them.
"""

from __future__ import annotations

from typing import cast

from sulq.curator.engines import emit_texts
from sulq.curator.engines.piece import NotInSql, Piece, Writer, joined
from sulq.terms.rowfn.scalar import RowFn
from sulq.terms.rowfn.texts import ANY, LONGEST, IndexOf, Length, Like, Lowered, Trimmed, Uppered


def words(writer: Writer, fn: RowFn) -> Piece | None:
    """A function of text that gives text; None for any other."""
    match fn:
        case Lowered(item):
            return joined('lower({0} COLLATE "C")', writer.words(item))
        case Uppered(item):
            return joined('upper({0} COLLATE "C")', writer.words(item))
        case Trimmed(item, "both", characters) if characters:
            return joined("btrim({0}, {1})", writer.words(item), writer.parameter(characters))
    return emit_texts.words(writer, fn)


def number(writer: Writer, fn: RowFn) -> Piece | None:
    """A length or place as a double; None for any other."""
    match fn:
        case Length(item):
            return _at_most(writer, joined("char_length({0})", writer.words(item)))
        case IndexOf(item, needle):
            return _at_most(writer, joined("strpos({0}, {1})", writer.words(item), writer.parameter(needle)))
    return None


def _at_most(writer: Writer, item: Piece) -> Piece:
    """No more than the longest; `least` would take the longest for NULL."""
    form = f"CAST(CASE WHEN {{0}} > {LONGEST} THEN {LONGEST} ELSE {{0}} END AS float8)"
    return joined(form, writer.named(item))


def truth(writer: Writer, fn: RowFn) -> Piece | None:
    """A condition on text; None for any other."""
    return _like(writer, fn) if isinstance(fn, Like) else emit_texts.truth(writer, fn)


def _like(writer: Writer, fn: Like) -> Piece:
    """A pattern that is a text, its beginning, or somewhere within; any other goes the batch way, in linear time."""
    segments = fn.segments()
    if any(ANY in segment for segment in segments):
        raise NotInSql("Like")
    item = writer.words(fn.item)
    match ["".join(cast("tuple[str, ...]", segment)) for segment in segments]:
        case [text]:
            return joined("({0} = {1})", item, writer.parameter(text))
        case ["", ""]:
            return joined("CASE WHEN {0} IS NOT NULL THEN TRUE END", item)
        case [text, ""]:
            return joined("starts_with({0}, {1})", item, writer.parameter(text))
        case ["", text, ""]:
            return joined("(strpos({0}, {1}) > 0)", item, writer.parameter(text))
    raise NotInSql("Like")
