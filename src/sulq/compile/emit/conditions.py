"""Row functions that give a truth value, as SQL; a pattern is matched in linear time, every constant text is bound."""

from __future__ import annotations

import math
import string
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from sulq.compile.emit.piece import NotInSql, Piece, double, joined, whole
from sulq.language.domain import Text
from sulq.language.kinds import Code, Scalar, Truth, Words
from sulq.language.rowfn import Col, Compare, IsIn, IsMissing, Logic, Not, RowFn
from sulq.language.rowfn.dates import Moment
from sulq.language.rowfn.texts import ANY, Like, StartsWith

if TYPE_CHECKING:
    from sulq.compile.emit.emitter import Emitter

_PLAIN: Final = frozenset(string.ascii_letters + string.digits + string.whitespace + "_")


def _compare(writer: Emitter, fn: Compare) -> Piece:
    left, right, op = fn.sides(writer.schema)
    kind = left.kind(writer.schema)
    sign = {"==": "=", "!=": "<>"}.get(op, op)
    if isinstance(right, Moment) and isinstance(left, Col):
        return _threshold(writer, left.name, op, Fraction(right.value))
    if isinstance(right, RowFn):
        mode = writer.mode(left)
        return joined(f"({{0}} {sign} {{1}})", writer.write(mode, left), writer.write(mode, right))
    if isinstance(kind, Words):
        return joined(f"({{0}} {sign} {{1}})", writer.words(left), writer.parameter(str(right)))
    if isinstance(kind, Code):
        return joined(f"({{0}} {sign} {int(right)})", writer.code(left))
    if isinstance(kind, Truth):
        return joined(f"({{0}} {sign} {'TRUE' if right else 'FALSE'})", writer.truth(left))
    if isinstance(left, Col):
        return _threshold(writer, left.name, op, Fraction(right))
    return joined(f"({{0}} {sign} {double(float(right))})", writer.number(left))


def _threshold(writer: Emitter, name: str, op: str, constant: Fraction) -> Piece:
    """A column against a constant, as a comparison of its integers, exactly (no float decides: SR16)."""
    column = writer.schema.find(name)
    if column is None or isinstance(column, Text):
        raise NotInSql(name)
    stored = writer.column(name)
    units = constant / column.step
    if op in ("==", "!="):
        if units.denominator != 1 or not column.low <= units <= column.high:
            return joined(f"CASE WHEN {{0}} IS NOT NULL THEN {'FALSE' if op == '==' else 'TRUE'} END", stored)
        return joined(f"({{0}} {'=' if op == '==' else '<>'} {whole(int(units))})", stored)
    least = {">": math.floor(units) + 1, ">=": math.ceil(units)}.get(op)
    if least is not None:
        return joined(f"({{0}} >= {whole(min(max(least, column.low), column.high + 1))})", stored)
    most = math.ceil(units) - 1 if op == "<" else math.floor(units)
    return joined(f"({{0}} <= {whole(min(max(most, column.low - 1), column.high))})", stored)


def _is_in(writer: Emitter, fn: IsIn) -> Piece:
    kind = fn.item.kind(writer.schema)
    values = fn.fitted(writer.schema)
    column = writer.stored(fn.item)
    pieces: list[Piece]
    if isinstance(kind, Words):
        item, pieces = writer.words(fn.item), [writer.parameter(str(value)) for value in values]
    elif isinstance(kind, Code):
        item, pieces = writer.code(fn.item), [Piece(str(value)) for value in values]
    elif isinstance(kind, Scalar) and column is not None:
        units = [Fraction(value) / column.step for value in values]
        found = [int(unit) for unit in units if unit.denominator == 1 and column.low <= unit <= column.high]
        item, pieces = writer.any_kind(fn.item), [Piece(whole(unit)) for unit in found]
    elif isinstance(kind, Scalar):
        item, pieces = writer.number(fn.item), [Piece(double(float(value))) for value in values]
    else:
        item, pieces = writer.truth(fn.item), [Piece("TRUE" if value else "FALSE") for value in values]
    if not pieces:
        return joined("CASE WHEN {0} IS NOT NULL THEN FALSE END", item)
    return joined(f"({{0}} IN ({', '.join(piece.sql for piece in pieces)}))", item)


def _logic(writer: Emitter, fn: Logic) -> Piece:
    form = f" {fn.op.upper()} ".join(f"{{{i}}}" for i in range(len(fn.items)))
    return joined(f"({form})", *map(writer.truth, fn.items))


THERE: Final = "CASE WHEN {0} IS NOT NULL THEN TRUE END"


def _starts_with(writer: Emitter, fn: StartsWith) -> Piece:
    if not fn.prefix:  # DuckDB takes the condition for true then, also where the text is NULL
        return joined(THERE, writer.words(fn.item))
    return joined("starts_with({0}, {1})", writer.words(fn.item), writer.parameter(fn.prefix))


def _like(writer: Emitter, fn: Like) -> Piece:
    """A pattern by the simplest function that decides it; else by an automaton, in linear time whatever the pattern."""
    item = writer.words(fn.item)
    segments = fn.segments()
    texts = ["".join(sign for sign in segment if sign is not ANY) for segment in segments]
    if not any(ANY in segment for segment in segments):
        match texts:
            case [text]:
                return joined("({0} = {1})", item, writer.parameter(text))
            case ["", ""]:
                return joined(THERE, item)
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


SQL: Final[Mapping[type[RowFn], Callable[[Emitter, Any], Piece]]] = {
    Compare: _compare,
    IsIn: _is_in,
    IsMissing: lambda writer, fn: joined("({0} IS NULL)", writer.any_kind(fn.item)),
    Like: _like,
    Logic: _logic,
    Not: lambda writer, fn: joined("(NOT {0})", writer.truth(fn.item)),
    StartsWith: _starts_with,
}
