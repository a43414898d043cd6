"""Pieces of generated SQL, and what the writers of single row functions ask of the emitter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from sulq.compile.emit.literals import double
from sulq.compile.statements.kept_table import KeptRows
from sulq.language.domain import Schema
from sulq.language.rowfn import RowFn


class NotInSql(Exception):
    """This row function is left to the batch path."""


@dataclass(frozen=True, slots=True)
class Piece:
    """SQL of one value: the layer of projections it can stand on, and whether repeating it costs nothing."""

    sql: str
    layer: int = 0
    atom: bool = False


class Keyed(NamedTuple):
    """A key of a partition: what its codes are counted from; where they are only looked up by them, the codes.

    `missing` is the code of the rows that lack it; None: they are in no cell.
    """

    piece: Piece
    shift: int = 0
    places: tuple[int, ...] | None = None
    missing: int | None = None


class PieceWriter(Protocol):
    """Writes the parts of a row function."""

    schema: Schema
    rows: KeptRows

    def number(self, fn: RowFn) -> Piece:
        """A row function used as a number: a double."""
        ...

    def truth(self, fn: RowFn) -> Piece:
        """A row function used as a condition."""
        ...

    def code(self, fn: RowFn) -> Piece:
        """A row function used as a key: a whole number from 0."""
        ...

    def words(self, fn: RowFn) -> Piece:
        """A row function used as text."""
        ...

    def column(self, name: str) -> Piece:
        """A column as it stands in the relation."""
        ...

    def named(self, piece: Piece) -> Piece:
        """Name a piece that is needed more than once."""
        ...

    def parameter(self, text: str) -> Piece:
        """A text of the question, bound and never spelled out."""
        ...


def joined(form: str, *pieces: Piece) -> Piece:
    """SQL with pieces in the places {0}, {1}, ..."""
    return Piece(form.format(*(piece.sql for piece in pieces)), max((piece.layer for piece in pieces), default=0))


def clamped(item: Piece, low: float, high: float) -> Piece:
    """A named double held within [low, high]."""
    a, b = double(low), double(high)
    return joined(f"CASE WHEN {{0}} < {a} THEN {a} WHEN {{0}} > {b} THEN {b} ELSE {{0}} END", item)


def finite(writer: PieceWriter, item: Piece) -> Piece:
    """What is not finite is missing."""
    return joined("CASE WHEN isfinite({0}) THEN {0} END", writer.named(item))
