"""Row functions to SQL, by hand, one node at a time.

What is written is exactly what the row functions mean on NumPy columns (language/
rowfn), NULL standing for missing. Names are generated, numbers are literals we
format ourselves, texts are bound parameters: nothing an analyst wrote becomes
SQL (T70, T71). Only functions of FUNCTIONS occur; each is total, row-wise and
deterministic (T18, T30). An operand that is needed twice is named in a layer of
projections below, so SQL grows no faster than the question.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import ClassVar, Final, Literal

from sulq.compile.emit import dates, maths, texts
from sulq.compile.emit import labels as emit_labels
from sulq.compile.emit.bins import divided, limited, places, search
from sulq.compile.emit.literals import double, whole
from sulq.compile.emit.piece import Keyed, NotInSql, Piece, clamped, finite, joined
from sulq.compile.statements.kept_table import PERSON, PLACE, KeptRows
from sulq.kernel.request import Scan
from sulq.language.domain import Bool, Category, Numbered, Schema, Text
from sulq.language.kinds import Code, Scalar, Truth, Words
from sulq.language.rowfn import (
    Arith,
    Case,
    Clip,
    Col,
    Compare,
    Fill,
    IsIn,
    IsMissing,
    Lit,
    Logic,
    Not,
    Position,
    RowFn,
    keys,
)
from sulq.language.rowfn.conditions import against
from sulq.language.rowfn.dates import Moment
from sulq.language.rowfn.keys import HALF, PRIME, Bins, Bucket, Each, OrMissing, mixing
from sulq.language.rowfn.scalar import First, NullIf
from sulq.language.tally import Block

__all__ = ["FUNCTIONS", "Emitter", "NotInSql", "Piece"]

FUNCTIONS: Final = frozenset(
    {
        # questions
        "!=", "%", "*", "+", "-", "/", "//", "<", "<=", "<>", "=", ">", ">=",
        "||", "~~", "abs", "ceil", "coalesce", "contains", "count", "count_star", "date_part", "date_trunc",
        "epoch_us", "exp", "floor", "greatest", "grouping_id", "instr", "isfinite", "least", "length", "list_extract",
        "list_value", "ln", "lower", "ltrim", "make_timestamp", "max", "min", "pow", "regexp_matches", "round", "rtrim",
        "sign", "sqrt", "starts_with", "strlen", "substr", "suffix", "sum", "translate", "trim", "trunc", "upper",
        # reading a source
        "chr", "concat", "concat_ws", "enum_code", "epoch_ns", "isnan", "list_position", "lpad", "nfc_normalize",
        "read_csv", "read_parquet", "regexp_extract", "regexp_full_match", "regexp_replace", "replace", "row_number",
        "rpad", "sha256", "struct_pack",
    }
)  # fmt: skip
"""Every function that may stand in generated SQL; whatever is not listed is refused (T18)."""

EXACT: Final = 2**53
MAX_BINS: Final = 1024  # more are searched by the batch path
MAX_GROUPED_VALUES: Final = 512  # so many values of a column are grouped by as they are, and then put into bins
Mode = Literal["number", "truth", "code", "words"]
MODES: Final[dict[type, Mode]] = {Scalar: "number", Truth: "truth", Code: "code", Words: "words"}


class Emitter:
    """Writes the row functions of one tally over the kept rows."""

    bound: ClassVar[re.Pattern[str]] = re.compile(r"\$(text[0-9]+)\b")  # and the place of a bound text

    grouping = "grouping_id"  # which grouping set a group is of: a bit for each key that is not in it
    grouped_keys = 32  # so many keys it tells of

    def __init__(self, schema: Schema, rows: KeptRows) -> None:
        self.schema = schema
        self.rows = rows
        self.parameters: dict[str, object] = dict(rows.parameters)
        self.layers: list[list[str]] = []
        self._count = 0
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
        return self.write(self._mode(fn), fn)

    def _mode(self, fn: RowFn) -> Mode:
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
        if isinstance(fn, (First, NullIf)) and mode == self._mode(fn):
            return self._first(mode, fn.items) if isinstance(fn, First) else self._null_if(mode, fn)
        if mode == "number":
            return self._number(fn)
        if mode == "truth":
            return self._truth(fn)
        return self._code(fn) if mode == "code" else self._words(fn)

    def _first(self, mode: Mode, items: tuple[RowFn, ...]) -> Piece:
        places = ", ".join(f"{{{i}}}" for i in range(len(items)))
        return joined(f"coalesce({places})", *(self.write(mode, item) for item in items))

    def _null_if(self, mode: Mode, fn: NullIf) -> Piece:
        """The item is looked at twice: it is named, and every later mention of it is that name."""
        item = self.named(self.write(mode, fn.item))
        self._known[mode, id(fn.item)] = (item, fn.item)
        return joined("CASE WHEN {0} THEN NULL ELSE {1} END", self.truth(fn.equal), item)

    def _stored(self, fn: RowFn) -> Numbered | None:
        """The declared column of whole numbers or codes that a row function is; None for any other."""
        column = self.schema.find(fn.name) if isinstance(fn, Col) else None
        return None if column is None or isinstance(column, Text) else column

    def key(self, fn: RowFn, *, alone: bool = False) -> Keyed:
        """A row function used as a key of the partition.

        A key that is alone may be a text of digits, or a column whose few values are put into bins afterwards.
        """
        column = self.schema.find(fn.name) if isinstance(fn, Col) else None
        if isinstance(column, Category) and isinstance(fn, Col):
            stored = self.rows.names[fn.name]
            if alone and stored in self.rows.spelled:
                return Keyed(Piece(self.rows.spelled[stored], atom=True))
            return Keyed(self.column(fn.name), self.rows.shifts.get(stored, 0))
        if isinstance(fn, OrMissing):  # the database groups by what it stores, and NULL is one group
            found, last = self.key(fn.item, alone=alone), keys.code(fn.item, self.schema).size
            if found.missing is not None:  # nothing lacks a key that has a label for what does
                return found
            places = None if found.places is None else tuple(last if i < 0 else i for i in found.places)
            return found._replace(places=places, missing=last)
        if alone and isinstance(fn, Bins):
            binned = self._bins_alone(fn, self._stored(fn.item))
            if binned is not None:
                return binned
        if isinstance(fn, Each):
            column = self._stored(fn.item)
            if isinstance(column, Category):
                return self.key(fn.item, alone=alone)
            if column is not None and column.step == 1:
                return Keyed(self._any(fn.item), column.low)
        return Keyed(self.code(fn))

    def _bins_alone(self, fn: Bins, column: Numbered | None) -> Keyed | None:
        """Bins of a column, some of them found in parts that are added afterwards: less is worked out for each row."""
        if column is None or isinstance(column, Category):
            return None
        edges = fn.fitted(self.schema)
        exact, limits, top = limited(edges, column.step, column.low, column.high)
        if column.high - column.low < MAX_GROUPED_VALUES:
            return Keyed(self._any(fn.item), column.low, places(exact, column.low, column.high))
        within = (column.low, column.high)
        division = None if len(edges) > MAX_BINS else divided(exact, limits, top, within=within, beyond=True)
        if division is None:
            return None
        return Keyed(joined(division, self._any(fn.item)), 0, (*range(len(edges) - 1), len(edges) - 2))

    def column(self, name: str) -> Piece:
        """A column as it stands in the relation."""
        return Piece(self.rows.names[name], atom=True)

    def parameter(self, text: str) -> Piece:
        """A text of the question, bound and never spelled out."""
        name = f"text{len(self.parameters)}"
        self.parameters[name] = text
        return Piece(f"CAST(${name} AS VARCHAR)", atom=True)

    def scan(self, statement: str) -> Scan:
        """A statement with the texts it names, numbered anew: those of parts left to the batch path are not there."""
        number = {name: f"text{i}" for i, name in enumerate(dict.fromkeys(self.bound.findall(statement)))}
        sql = self.bound.sub(lambda found: found[0].replace(found[1], number[found[1]]), statement)
        return Scan(sql, tuple(str(self.parameters[name]) for name in number))

    def _number(self, fn: RowFn) -> Piece:
        match fn:
            case Col(name):
                return self._scaled(name)
            case Lit(value) if not isinstance(value, str):
                return Piece(double(float(value)), atom=True)
            case Position():
                place = f"CASE WHEN {PLACE} > {Position.LIMIT} THEN {Position.LIMIT} ELSE {PLACE} END"
                return Piece(f"CAST({place} AS DOUBLE)")
            case Arith(op, left, right):
                return self._arithmetic(fn, op, self.number(left), self.number(right))
            case Case(branches, otherwise):
                return self._case(branches, otherwise)
            case Clip(item, lo, hi):
                x = self.named(self.number(item))
                return clamped(x, float(lo), float(hi))
            case Fill(item, value) if isinstance(fn.kind(self.schema), Scalar):
                constant = float(against(value, item.kind(self.schema)))
                return joined(f"coalesce({{0}}, {double(constant)})", self.number(item))
        for write in (maths.number, dates.number, emit_labels.number, texts.number):
            found = write(self, fn)
            if found is not None:
                return found
        if isinstance(fn.kind(self.schema), Truth):
            return joined("CAST({0} AS DOUBLE)", self.truth(fn))
        raise NotInSql(type(fn).__name__)

    def _scaled(self, name: str) -> Piece:
        column = self.schema.find(name)
        if column is None or isinstance(column, (Text, Category)):
            raise NotInSql(name)
        stored = self.rows.names[name]
        units = stored if stored in self.rows.doubles else f"CAST({stored} AS DOUBLE)"
        return Piece(units if column.step == 1 else f"({units} * {double(float(column.step))})")

    def _arithmetic(self, fn: Arith, op: str, left: Piece, right: Piece) -> Piece:
        result = joined(f"({{0}} {op} {{1}})", left, right)
        return result if fn.kind(self.schema).bounded else finite(self, result)

    def _case(self, branches: tuple[tuple[RowFn, RowFn], ...], otherwise: RowFn | None) -> Piece:
        pieces: list[Piece] = []
        form = "CASE"
        for when, then in branches:
            form += f" WHEN {{{len(pieces)}}} THEN {{{len(pieces) + 1}}}"
            pieces += [self.truth(when), self.number(then)]
        if otherwise is not None:
            form += f" ELSE {{{len(pieces)}}}"
            pieces.append(self.number(otherwise))
        return joined(f"{form} END", *pieces)

    def _truth(self, fn: RowFn) -> Piece:
        match fn:
            case Col(name) if isinstance(self.schema.find(name), Bool):
                return Piece(f"({self.rows.names[name]} = 1)")
            case Lit(value) if isinstance(value, bool):
                return Piece("TRUE" if value else "FALSE", atom=True)
            case Compare():
                return self._compare(fn)
            case IsIn():
                return self._is_in(fn)
            case Logic(op, items):
                form = f" {op.upper()} ".join(f"{{{i}}}" for i in range(len(items)))
                return joined(f"({form})", *(self.truth(item) for item in items))
            case Not(item):
                return joined("(NOT {0})", self.truth(item))
            case IsMissing(item):
                return joined("({0} IS NULL)", self._any(item))
            case Fill(item, value):
                return joined(f"coalesce({{0}}, {'TRUE' if value else 'FALSE'})", self.truth(item))
        found = texts.truth(self, fn)
        if found is None:
            raise NotInSql(type(fn).__name__)
        return found

    def _any(self, fn: RowFn) -> Piece:
        """A row function of any kind, for a look at whether it is there."""
        if isinstance(fn, Each):  # a key is there where what it is of is
            return self._any(fn.item)
        if isinstance(fn, Col):
            return self.column(fn.name)
        return self.value(fn)

    def _words(self, fn: RowFn) -> Piece:
        if isinstance(fn, Col):
            return self.column(fn.name)
        if isinstance(fn, Lit) and isinstance(fn.value, str):
            return self.parameter(fn.value)
        found = texts.words(self, fn)
        if found is None:
            raise NotInSql(type(fn).__name__)
        return found

    def _compare(self, fn: Compare) -> Piece:
        left, right, op = fn.sides(self.schema)
        kind = left.kind(self.schema)
        sign = {"==": "=", "!=": "<>"}.get(op, op)
        if isinstance(right, Moment) and isinstance(left, Col):
            return self._threshold(left.name, op, Fraction(right.value))
        if isinstance(right, RowFn):
            mode = self._mode(left)
            return joined(f"({{0}} {sign} {{1}})", self.write(mode, left), self.write(mode, right))
        if isinstance(kind, Words):
            return joined(f"({{0}} {sign} {{1}})", self.words(left), self.parameter(str(right)))
        if isinstance(kind, Code):
            return joined(f"({{0}} {sign} {int(right)})", self.code(left))
        if isinstance(kind, Truth):
            return joined(f"({{0}} {sign} {'TRUE' if right else 'FALSE'})", self.truth(left))
        if isinstance(left, Col):
            return self._threshold(left.name, op, Fraction(right))
        return joined(f"({{0}} {sign} {double(float(right))})", self.number(left))

    def _threshold(self, name: str, op: str, constant: Fraction) -> Piece:
        """A column against a constant, as a comparison of its integers, exactly (no float decides: SR16)."""
        column = self.schema.find(name)
        if column is None or isinstance(column, Text):
            raise NotInSql(name)
        stored = self.column(name)
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

    def _is_in(self, fn: IsIn) -> Piece:
        kind = fn.item.kind(self.schema)
        values = fn.fitted(self.schema)
        column = self._stored(fn.item)
        pieces: list[Piece]
        if isinstance(kind, Words):
            item, pieces = self.words(fn.item), [self.parameter(str(value)) for value in values]
        elif isinstance(kind, Code):
            item, pieces = self.code(fn.item), [Piece(str(value)) for value in values]
        elif isinstance(kind, Scalar) and column is not None:
            units = [Fraction(value) / column.step for value in values]
            found = [int(unit) for unit in units if unit.denominator == 1 and column.low <= unit <= column.high]
            item, pieces = self._any(fn.item), [Piece(whole(unit)) for unit in found]
        elif isinstance(kind, Scalar):
            item, pieces = self.number(fn.item), [Piece(double(float(value))) for value in values]
        else:
            item, pieces = self.truth(fn.item), [Piece("TRUE" if value else "FALSE") for value in values]
        if not pieces:
            return joined("CASE WHEN {0} IS NOT NULL THEN FALSE END", item)
        return joined(f"({{0}} IN ({', '.join(piece.sql for piece in pieces)}))", item)

    def _code(self, fn: RowFn) -> Piece:
        match fn:
            case Col(name):
                shift = self.rows.shifts.get(self.rows.names[name], 0)
                return Piece(f"({self.rows.names[name]} - {whole(shift)})") if shift else self.column(name)
            case Each(item):
                return self._each(item)
            case Bins():
                return self._bins(fn)
            case Bucket(count, salt):
                a, b, c = mixing(salt)
                mixed = f"({a} * ({PERSON} // {HALF}) + {b} * ({PERSON} % {HALF}) + {c})"
                return Piece(f"({mixed} % {PRIME} % {count})")
        found = emit_labels.key(self, fn)
        if found is None:
            raise NotInSql(type(fn).__name__)
        return found

    def _each(self, item: RowFn) -> Piece:
        kind = item.kind(self.schema)
        if isinstance(kind, Code):
            return self.code(item)
        if isinstance(kind, Truth):
            if isinstance(item, Col):
                return self.column(item.name)
            return joined("CAST({0} AS TINYINT)", self.truth(item))
        if not isinstance(kind, Scalar) or kind.lo is None:
            raise NotInSql(type(item).__name__)
        low = math.ceil(kind.lo)
        return joined(f"TRY_CAST(({{0}} - {double(float(low))}) AS BIGINT)", self.number(item))

    def _bins(self, fn: Bins) -> Piece:
        edges = fn.fitted(self.schema)
        if len(edges) > MAX_BINS:
            raise NotInSql("Bins")
        column = self._stored(fn.item)
        if column is not None:
            exact, limits, top = limited(edges, column.step, column.low, column.high)
            division = divided(exact, limits, top, within=(column.low, column.high))
            return joined(division or search(list(map(whole, limits)), whole(top)), self._any(fn.item))
        item = self.named(self.number(fn.item))
        return joined(search([double(edge) for edge in edges[:-1]], double(edges[-1])), item)

    def units(self, block: Block) -> tuple[Piece, bool]:
        """A number on its block's grid, clamped; and whether it is an SQL integer (else a whole double)."""
        fn = block.fn
        column = self._stored(fn)
        if column is not None and not isinstance(column, Category) and isinstance(fn, Col):
            inside = block.low[0] <= column.low and column.high <= block.high[0]
            if inside and column.step == block.step:
                stored = self.rows.names[fn.name]
                return Piece(stored, atom=True), stored not in self.rows.doubles
        return self.on_grid(self.number(fn), block.step, block.low[0], block.high[0]), False

    def total(self, piece: Piece, most: int, *, integer: bool) -> str:
        """An exact SUM: whole doubles are added as such where no total can leave the exact ones, else as integers."""
        if not integer and most > EXACT:
            return f"sum(TRY_CAST({piece.sql} AS BIGINT))"
        return f"sum({piece.sql})"

    def narrow(self, sql: str) -> str:
        """A total that is known to fit 64 bits."""
        return f"TRY_CAST({sql} AS BIGINT)"

    def above(self, piece: Piece, low: int, high: int) -> tuple[Piece, bool]:
        """How far whole units lie above their least, as what may be squared and added exactly; whether as an integer.

        They are cast once, to integers that hold their square: faster than to cast their sums' terms.
        """
        kind = "INTEGER" if max(abs(low), abs(high)) < 2**31 and (high - low) ** 2 < 2**31 else "BIGINT"
        return Piece(f"(TRY_CAST({piece.sql} AS {kind}) - {whole(low)})", piece.layer), True

    def on_grid(self, item: Piece, step: Fraction, low: int, high: int) -> Piece:
        """floor(x/step + 1/2), clamped directly under the sum (T11): a whole double."""
        scale = f" * {double(float(1 / step))}" if step != 1 else ""
        units = self.named(joined(f"floor({{0}}{scale} + 0.5e0)", item))
        return clamped(units, float(low), float(high))
