"""Row functions of text as SQL: of code points and ASCII letters, every constant text bound."""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from sulq.compile.emit.piece import Piece, joined
from sulq.language.rowfn import RowFn
from sulq.language.rowfn.texts import (
    MAX_JOINED_LENGTH,
    MAX_TEXT_PLACE,
    Concat,
    IndexOf,
    Length,
    Lowered,
    Substring,
    Trimmed,
    Uppered,
)

if TYPE_CHECKING:
    from sulq.compile.emit.emitter import Emitter

FAR: Final = 2**29  # past the end of every text, and within 32 bits twice over
LETTERS: Final = {"lower": (string.ascii_uppercase, string.ascii_lowercase)}
LETTERS["upper"] = LETTERS["lower"][::-1]


def _cased(writer: Emitter, fn: Lowered | Uppered) -> Piece:
    """Text of as many bytes as characters is ASCII, of which DuckDB's own fast function is right."""
    name = "lower" if isinstance(fn, Lowered) else "upper"
    old, new = LETTERS[name]
    form = f"CASE WHEN strlen({{0}}) = length({{0}}) THEN {name}({{0}}) ELSE translate({{0}}, '{old}', '{new}') END"
    return joined(form, writer.named(writer.words(fn.item)))


def _trimmed(writer: Emitter, fn: Trimmed) -> Piece:
    if not fn.characters:
        return writer.words(fn.item)
    name = {"both": "trim", "left": "ltrim", "right": "rtrim"}[fn.side]
    return joined(f"{name}({{0}}, {{1}})", writer.words(fn.item), writer.parameter(fn.characters))


def _substring(writer: Emitter, fn: Substring) -> Piece:
    first, many = fn.span()
    length = "" if many is None else f", {min(many, FAR)}"
    return joined(f"substr({{0}}, {min(first, FAR) + 1}{length})", writer.words(fn.item))


def _concat(writer: Emitter, fn: Concat) -> Piece:
    form = " || ".join(f"substr({{{i}}}, 1, {MAX_JOINED_LENGTH})" for i in range(len(fn.items)))
    return joined(f"substr({form}, 1, {MAX_JOINED_LENGTH})", *map(writer.words, fn.items))


def _length(writer: Emitter, fn: Length) -> Piece:
    return _at_most(writer, joined("length({0})", writer.words(fn.item)))


def _index_of(writer: Emitter, fn: IndexOf) -> Piece:
    return _at_most(writer, joined("instr({0}, {1})", writer.words(fn.item), writer.parameter(fn.needle)))


def _at_most(writer: Emitter, item: Piece) -> Piece:
    form = f"CAST(CASE WHEN {{0}} > {MAX_TEXT_PLACE} THEN {MAX_TEXT_PLACE} ELSE {{0}} END AS DOUBLE)"
    return joined(form, writer.named(item))


SQL: Final[Mapping[type[RowFn], Callable[[Emitter, Any], Piece]]] = {
    Concat: _concat,
    IndexOf: _index_of,
    Length: _length,
    Lowered: _cased,
    Substring: _substring,
    Trimmed: _trimmed,
    Uppered: _cased,
}
