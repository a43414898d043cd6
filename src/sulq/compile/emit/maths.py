"""Mathematical row functions as SQL: an argument outside a function's domain is NULL before the function sees it."""

from __future__ import annotations

from sulq.compile.emit.literals import double
from sulq.compile.emit.piece import Piece, PieceWriter, clamped, finite, joined
from sulq.language.kinds import Scalar
from sulq.language.rowfn import RowFn
from sulq.language.rowfn.maths import OPERATIONS, Greatest, Least, Maths, Modulo, Power, Round


def number(writer: PieceWriter, fn: RowFn) -> Piece | None:
    """A mathematical function as a double; None for any other."""
    match fn:
        case Maths(op, item):
            found = _applied(writer, op, writer.number(item))
            return found if OPERATIONS[op].exact else _held(writer, found, fn.kind(writer.schema))
        case Round():
            return _rounded(writer, fn)
        case Power():
            return _power(writer, fn)
        case Modulo(left, right):
            return joined(f"({{0}} % {double(float(right))})", writer.number(left))
        case Least(items) | Greatest(items):
            name = "least" if isinstance(fn, Least) else "greatest"
            places = ", ".join(f"{{{i}}}" for i in range(len(items)))
            return joined(f"{name}({places})", *(writer.number(item) for item in items))
    return None


def _applied(writer: PieceWriter, op: str, item: Piece) -> Piece:
    operation = OPERATIONS[op]
    if operation.domain is None:
        return joined(operation.sql, item)
    sign, end = operation.domain
    return joined(operation.sql.format(f"CASE WHEN {{0}} {sign} {double(end)} THEN {{0}} END"), writer.named(item))


def _held(writer: PieceWriter, item: Piece, kind: Scalar) -> Piece:
    if kind.lo is None or kind.hi is None:
        return item
    return clamped(writer.named(item), float(kind.lo), float(kind.hi))


def _rounded(writer: PieceWriter, fn: Round) -> Piece:
    item = writer.number(fn.item)
    if fn.unchanged(writer.schema):
        return item
    there, back = ("*", "/") if fn.digits >= 0 else ("/", "*")
    scale = double(10.0 ** abs(fn.digits))
    scaled = joined(f"({{0}} {there} {scale})", item)
    if fn.kind(writer.schema).bounded:
        return joined(f"(round({{0}}) {back} {scale})", scaled)
    return finite(writer, joined(f"(round({{0}}) {back} {scale})", finite(writer, scaled)))


def _power(writer: PieceWriter, fn: Power) -> Piece:
    item = writer.named(writer.number(fn.item))
    kind = fn.kind(writer.schema)
    if fn.exponent == 0:
        return joined("CASE WHEN {0} IS NOT NULL THEN 1e0 END", item)
    if fn.root:
        return _applied(writer, "sqrt", item)
    if fn.whole is not None:
        product = " * ".join(["{0}"] * abs(fn.whole))
        if fn.whole > 0:
            found = joined(f"({product})", item)
            return found if kind.bounded else finite(writer, found)
        return finite(writer, joined(f"(1e0 / ({product}))", item))
    domain = [] if fn.signed else ["{0} >= 0e0"]
    domain += ["{0} <> 0e0"] if fn.exponent < 0 else []
    base = f"CASE WHEN {' AND '.join(domain)} THEN {{0}} END" if domain else "{0}"
    found = joined(f"pow({base}, {double(float(fn.exponent))})", item)
    return _held(writer, finite(writer, found), kind)
