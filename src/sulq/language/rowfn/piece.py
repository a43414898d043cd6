"""Pieces of generated SQL: literals, values with the layer they stand on, and what is put together of them."""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import dataclass


class NotInSql(Exception):
    """This row function is left to the batch path."""


@dataclass(frozen=True, slots=True)
class Piece:
    """SQL of one value: the layer of projections it can stand on, and whether repeating it costs nothing."""

    sql: str
    layer: int = 0
    atom: bool = False


def double(number: float) -> str:
    """A double literal that DuckDB reads back to the same bits."""
    text = repr(float(number) + 0.0)
    text = text if "e" in text else f"{text}e0"
    return f"({text})" if text.startswith("-") else text


def whole(number: int) -> str:
    """An integer literal."""
    return f"({number})" if number < 0 else str(number)


def joined(form: str, *pieces: Piece) -> Piece:
    """SQL with pieces in the places {0}, {1}, ..."""
    return Piece(form.format(*(piece.sql for piece in pieces)), max((piece.layer for piece in pieces), default=0))


def places_of(pieces: Sized) -> str:
    """The places of several pieces in a form, as a list."""
    return ", ".join(f"{{{i}}}" for i in range(len(pieces)))


def clamped(item: Piece, low: float, high: float) -> Piece:
    """A named double held within [low, high]."""
    a, b = double(low), double(high)
    return joined(f"CASE WHEN {{0}} < {a} THEN {a} WHEN {{0}} > {b} THEN {b} ELSE {{0}} END", item)
