"""Row functions of text as SQL: of code points and ASCII letters, every constant text bound."""

from __future__ import annotations

import string
from typing import Final

from sulq.compile.emit.piece import Piece, PieceWriter, joined
from sulq.language.rowfn import RowFn
from sulq.language.rowfn.texts import (
    ANY,
    MAX_JOINED_LENGTH,
    MAX_TEXT_PLACE,
    Concat,
    IndexOf,
    Length,
    Like,
    Lowered,
    StartsWith,
    Substring,
    Trimmed,
    Uppered,
)

FAR: Final = 2**29  # past the end of every text, and within 32 bits twice over
_PLAIN: Final = frozenset(string.ascii_letters + string.digits + string.whitespace + "_")


def words(writer: PieceWriter, fn: RowFn) -> Piece | None:
    """A function of text that gives text; None for any other."""
    match fn:
        case Lowered(item):
            return _cased(writer, item, "lower", string.ascii_uppercase, string.ascii_lowercase)
        case Uppered(item):
            return _cased(writer, item, "upper", string.ascii_lowercase, string.ascii_uppercase)
        case Trimmed(item, side, characters):
            if not characters:
                return writer.words(item)
            name = {"both": "trim", "left": "ltrim", "right": "rtrim"}[side]
            return joined(f"{name}({{0}}, {{1}})", writer.words(item), writer.parameter(characters))
        case Substring(item):
            first, many = fn.span()
            length = "" if many is None else f", {min(many, FAR)}"
            return joined(f"substr({{0}}, {min(first, FAR) + 1}{length})", writer.words(item))
        case Concat(items):
            form = " || ".join(f"substr({{{i}}}, 1, {MAX_JOINED_LENGTH})" for i in range(len(items)))
            return joined(f"substr({form}, 1, {MAX_JOINED_LENGTH})", *(writer.words(item) for item in items))
    return None


def _cased(writer: PieceWriter, fn: RowFn, name: str, old: str, new: str) -> Piece:
    """Text of as many bytes as characters is ASCII, of which DuckDB's own fast function is right."""
    item = writer.named(writer.words(fn))
    form = f"CASE WHEN strlen({{0}}) = length({{0}}) THEN {name}({{0}}) ELSE translate({{0}}, '{old}', '{new}') END"
    return joined(form, item)


def number(writer: PieceWriter, fn: RowFn) -> Piece | None:
    """A length or place as a double; None for any other."""
    match fn:
        case Length(item):
            return _at_most(writer, joined("length({0})", writer.words(item)))
        case IndexOf(item, needle):
            return _at_most(writer, joined("instr({0}, {1})", writer.words(item), writer.parameter(needle)))
    return None


def _at_most(writer: PieceWriter, item: Piece) -> Piece:
    form = f"CAST(CASE WHEN {{0}} > {MAX_TEXT_PLACE} THEN {MAX_TEXT_PLACE} ELSE {{0}} END AS DOUBLE)"
    return joined(form, writer.named(item))


def truth(writer: PieceWriter, fn: RowFn) -> Piece | None:
    """A condition on text; None for any other."""
    match fn:
        case StartsWith(item, prefix):
            return joined("starts_with({0}, {1})", writer.words(item), writer.parameter(prefix))
        case Like():
            return _like(writer, fn)
    return None


def _like(writer: PieceWriter, fn: Like) -> Piece:
    """A pattern by the simplest function that decides it; else by an automaton, in linear time whatever the pattern."""
    item = writer.words(fn.item)
    segments = fn.segments()
    texts = ["".join(sign for sign in segment if sign is not ANY) for segment in segments]
    if not any(ANY in segment for segment in segments):
        match texts:
            case [text]:
                return joined("({0} = {1})", item, writer.parameter(text))
            case ["", ""]:
                return joined("CASE WHEN {0} IS NOT NULL THEN TRUE END", item)
            case [text, ""]:
                return joined("starts_with({0}, {1})", item, writer.parameter(text))
            case ["", text]:
                return joined("suffix({0}, {1})", item, writer.parameter(text))
            case ["", text, ""]:
                return joined("contains({0}, {1})", item, writer.parameter(text))
        if not any(sign in text for text in texts for sign in "%_"):
            return joined("({0} ~~ {1})", item, writer.parameter("%".join(texts)))  # linear where there is no _
    inner = ["".join("." if sign is ANY else _escaped(sign) for sign in segment) for segment in segments]
    start, end = "" if not segments[0] else "\\A", "" if not segments[-1] else "\\z"
    pattern = start + ".*".join(part for part in inner if part) + end
    return joined("regexp_matches({0}, {1}, 's')", item, writer.parameter(pattern))


def _escaped(sign: str) -> str:
    """A character that stands for itself in a regular expression."""
    return sign if sign in _PLAIN or not sign.isascii() else f"\\{sign}"
