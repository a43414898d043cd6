"""Row functions to SQL over kept rows: each node writes itself (`sql`), this holds what is written so far.

What is written is exactly what the row functions mean on NumPy columns, NULL standing for missing. Names are generated,
numbers are literals we format ourselves, texts are bound parameters: nothing an analyst wrote becomes SQL (T70, T71).
An operand that is needed twice is named in a layer of projections below, so SQL grows no faster than the question.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from sulq.language.domain import Bool, Category, Numbered, Schema, Text
from sulq.language.kinds import Code, Scalar, Truth, Words
from sulq.language.rowfn.base import Col, Lit, RowFn
from sulq.language.rowfn.conditions import Compare, IsIn, IsMissing, Logic, Not, against
from sulq.language.rowfn.keys import Each
from sulq.language.rowfn.piece import NotInSql, Piece, double, joined, places_of, whole
from sulq.language.rowfn.scalar import Fill, First, NullIf
from sulq.language.rowfn.texts import Like, StartsWith

Mode = Literal["number", "truth", "code", "words"]
MODES: Final[dict[type, Mode]] = {Scalar: "number", Truth: "truth", Code: "code", Words: "words"}
CONDITIONS: Final = (Compare, IsIn, IsMissing, Like, Logic, Not, StartsWith, Fill, First, NullIf)  # or what may be one


@dataclass(frozen=True, slots=True, eq=False)
class KeptRows:
    """A relation of kept rows: its SQL, the constants bound in it, and how each column stands in it."""

    relation: str
    parameters: dict[str, object] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)  # declared column -> c0, c1, ...
    doubles: frozenset[str] = frozenset()  # those of them that hold their whole numbers as doubles
    shifts: dict[str, int] = field(default_factory=dict)  # those whose codes do not count from 0
    most: int = 0  # how many there can be, by public facts alone: their number must not choose a word of any statement
    frames: dict[str, object] = field(default_factory=dict, repr=False)  # what it reads, by name
    spelled: dict[str, str] = field(default_factory=dict)  # those whose codes are there as texts too
    sent: bool = False  # whether statements over them are sent elsewhere, which nothing that is bound is


class SqlWriter:
    """Writes row functions over kept rows."""

    def __init__(self, schema: Schema, rows: KeptRows) -> None:
        self.schema = schema
        self.rows = rows
        self.parameters: dict[str, object] = dict(rows.parameters)
        self.layers: list[list[str]] = []
        self._count = 0
        self._binding = False  # whether constants are bound
        self._known: dict[tuple[str, int], tuple[Piece, RowFn]] = {}

    def relation(self) -> str:
        """The kept rows with every named operand beside them."""
        relation = self.rows.relation
        for layer in self.layers:
            relation = f"(SELECT *, {', '.join(layer)} FROM {relation})"
        return relation

    def named(self, piece: Piece) -> Piece:
        """Name a piece that is needed more than once."""
        if piece.atom:
            return piece
        while len(self.layers) <= piece.layer:
            self.layers.append([])
        name = f"t{self._count}"
        self._count += 1
        self.layers[piece.layer].append(f"{piece.sql} AS {name}")
        return Piece(name, piece.layer + 1, atom=True)

    def finite(self, item: Piece) -> Piece:
        """What is not finite is missing."""
        return joined("CASE WHEN isfinite({0}) THEN {0} END", self.named(item))

    def number(self, fn: RowFn) -> Piece:
        """A row function used as a number: a double."""
        return self.write("number", fn)

    def truth(self, fn: RowFn) -> Piece:
        """A row function used as a condition."""
        return self.write("truth", fn)

    def code(self, fn: RowFn) -> Piece:
        """A row function used as a key: a whole number from 0."""
        return self.write("code", fn)

    def words(self, fn: RowFn) -> Piece:
        """A row function used as text."""
        return self.write("words", fn)

    def value(self, fn: RowFn) -> Piece:
        """A row function as what its kind is: a number, a condition, a key or a text."""
        return self.write(self.mode(fn), fn)

    def mode(self, fn: RowFn) -> Mode:
        """As what a row function of its kind is written."""
        mode = MODES.get(type(fn.kind(self.schema)))
        if mode is None:
            raise NotInSql(type(fn).__name__)
        return mode

    def write(self, mode: Mode, fn: RowFn) -> Piece:
        """A row function in one of the modes, written once."""
        known = self._known.get((mode, id(fn)))
        if known is None:
            known = self._known[mode, id(fn)] = (self._written(mode, fn), fn)  # fn is kept: its identity stays its own
        return known[0]

    def _written(self, mode: Mode, fn: RowFn) -> Piece:
        if mode == "number" and isinstance(fn, CONDITIONS) and isinstance(fn.kind(self.schema), Truth):
            return joined("CAST({0} AS DOUBLE)", self.truth(fn))
        match fn:
            case Col(name):
                return self._column(mode, name)
            case Lit(value):
                return self._constant(mode, value)
            case Fill(item, value):
                constant = float(against(value, item.kind(self.schema)))
                filled = double(constant) if mode == "number" else "TRUE" if value else "FALSE"
                return joined(f"coalesce({{0}}, {filled})", self.write(mode, item))
            case First(items):
                return joined(f"coalesce({places_of(items)})", *(self.write(mode, item) for item in items))
            case NullIf():
                return self._null_if(mode, fn)
        return fn.sql(self)

    def _column(self, mode: Mode, name: str) -> Piece:
        column, held = self.schema.find(name), self.rows.names[name]
        if mode == "truth":
            if not isinstance(column, Bool):
                raise NotInSql(name)
            return Piece(f"({held} = 1)")
        if mode == "code":
            shift = self.rows.shifts.get(held, 0)
            return Piece(f"({held} - {whole(shift)})") if shift else self.column(name)
        if mode == "words":
            return self.column(name)
        if column is None or isinstance(column, (Text, Category)):
            raise NotInSql(name)
        units = held if held in self.rows.doubles else f"CAST({held} AS DOUBLE)"
        return Piece(units if column.step == 1 else f"({units} * {double(float(column.step))})")

    def _constant(self, mode: Mode, value: object) -> Piece:
        if mode == "number" and isinstance(value, (int, float)):
            return Piece(double(float(value)), atom=True)
        if mode == "truth" and isinstance(value, bool):
            return Piece("TRUE" if value else "FALSE", atom=True)
        if mode == "words" and isinstance(value, str):
            return self.parameter(value)
        raise NotInSql("Lit")

    def _null_if(self, mode: Mode, fn: NullIf) -> Piece:
        """The item is looked at twice: it is named, and every later mention of it is that name."""
        item = self.named(self.write(mode, fn.item))
        self._known[mode, id(fn.item)] = (item, fn.item)
        return joined("CASE WHEN {0} THEN NULL ELSE {1} END", self.truth(fn.equal), item)

    def stored(self, fn: RowFn) -> Numbered | None:
        """The declared column of whole numbers or codes that a row function is; None for any other."""
        column = self.schema.find(fn.name) if isinstance(fn, Col) else None
        return None if column is None or isinstance(column, Text) else column

    def column(self, name: str) -> Piece:
        """A column as it stands in the relation."""
        return Piece(self.rows.names[name], atom=True)

    def parameter(self, text: str) -> Piece:
        """A text of the question, bound and never spelled out."""
        name = f"text{len(self.parameters)}"
        self.parameters[name] = text
        return Piece(f"CAST(${name} AS VARCHAR)", atom=True)

    def constant(self, number: int) -> str:
        """A whole number that a column is compared with."""
        if not self._binding:
            return whole(number)
        name = f"text{len(self.parameters)}"
        self.parameters[name] = str(number)
        return f"TRY_CAST(${name} AS BIGINT)"

    def where(self, fn: RowFn) -> Piece:
        """A condition that stands in a WHERE alone.

        Where it compares columns with constants these are bound: conditions that differ in them alone are one
        statement, with one certificate. What is written so is used nowhere else, as a CASE could then say less.
        """
        if self.rows.sent or not _compares(fn):
            return self.truth(fn)
        known, self._known, self._binding = self._known, {}, True
        try:
            return self.truth(fn)
        finally:
            self._known, self._binding = known, False

    def any_kind(self, fn: RowFn) -> Piece:
        """A row function of any kind, for a look at whether it is there."""
        if isinstance(fn, Each):  # a key is there where what it is of is
            return self.any_kind(fn.item)
        if isinstance(fn, Col):
            return self.column(fn.name)
        return self.value(fn)


def _compares(fn: RowFn) -> bool:
    """Whether a condition does nothing but compare columns with constants."""
    if isinstance(fn, Compare):
        return {type(fn.left), type(fn.right)} == {Col, Lit}
    return isinstance(fn, (Logic, Not)) and all(map(_compares, fn.parts()))
