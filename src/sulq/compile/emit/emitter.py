"""Row functions to SQL, one node at a time: a table of nodes in each of `numbers`, `conditions`, `keys` and `texts`.

What is written is exactly what the row functions mean on NumPy columns (language/
rowfn), NULL standing for missing. Names are generated, numbers are literals we
format ourselves, texts are bound parameters: nothing an analyst wrote becomes
SQL (T70, T71). Only functions of FUNCTIONS occur; each is total, row-wise and
deterministic (T18, T30). An operand that is needed twice is named in a layer of
projections below, so SQL grows no faster than the question.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import ClassVar, Final, Literal

from sulq.compile.emit import conditions, keys, numbers, texts
from sulq.compile.emit.keys import MAX_BINS, divided, limited, places
from sulq.compile.emit.piece import Keyed, NotInSql, Piece, clamped, double, joined, places_of, whole
from sulq.compile.statements.kept_table import KeptRows
from sulq.kernel.request import Scan
from sulq.language.domain import Bool, Category, Numbered, Schema, Text
from sulq.language.kinds import Code, Scalar, Truth, Words
from sulq.language.rowfn import Bins, Col, Each, Fill, First, Lit, NullIf, OrMissing, RowFn
from sulq.language.rowfn.conditions import against
from sulq.language.rowfn.keys import code
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
MAX_GROUPED_VALUES: Final = 512  # so many values of a column are grouped by as they are, and then put into bins
Mode = Literal["number", "truth", "code", "words"]
MODES: Final[dict[type, Mode]] = {Scalar: "number", Truth: "truth", Code: "code", Words: "words"}
SQL: Final = {**numbers.SQL, **conditions.SQL, **keys.SQL, **texts.SQL}
CONDITIONS: Final = (*conditions.SQL, Fill, First, NullIf)  # or what may be one


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
        if isinstance(fn, Col):
            return self._column(mode, fn.name)
        if isinstance(fn, Lit):
            return self._constant(mode, fn.value)
        if mode == "number" and isinstance(fn, CONDITIONS) and isinstance(fn.kind(self.schema), Truth):
            return joined("CAST({0} AS DOUBLE)", self.truth(fn))
        match fn:
            case Fill(item, value):
                constant = float(against(value, item.kind(self.schema)))
                filled = double(constant) if mode == "number" else "TRUE" if value else "FALSE"
                return joined(f"coalesce({{0}}, {filled})", self.write(mode, item))
            case First(items):
                return joined(f"coalesce({places_of(items)})", *(self.write(mode, item) for item in items))
            case NullIf():
                return self._null_if(mode, fn)
        write = SQL.get(type(fn))
        if write is None:
            raise NotInSql(type(fn).__name__)
        return write(self, fn)

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
            found, last = self.key(fn.item, alone=alone), code(fn.item, self.schema).size
            if found.missing is not None:  # nothing lacks a key that has a label for what does
                return found
            places = None if found.places is None else tuple(last if i < 0 else i for i in found.places)
            return found._replace(places=places, missing=last)
        if alone and isinstance(fn, Bins):
            binned = self._bins_alone(fn, self.stored(fn.item))
            if binned is not None:
                return binned
        if isinstance(fn, Each):
            column = self.stored(fn.item)
            if isinstance(column, Category):
                return self.key(fn.item, alone=alone)
            if column is not None and column.step == 1:
                return Keyed(self.any_kind(fn.item), column.low)
        return Keyed(self.code(fn))

    def _bins_alone(self, fn: Bins, column: Numbered | None) -> Keyed | None:
        """Bins of a column, some of them found in parts that are added afterwards: less is worked out for each row."""
        if column is None or isinstance(column, Category):
            return None
        edges = fn.fitted(self.schema)
        exact, limits, top = limited(edges, column.step, column.low, column.high)
        if column.high - column.low < MAX_GROUPED_VALUES:
            return Keyed(self.any_kind(fn.item), column.low, places(exact, column.low, column.high))
        within = (column.low, column.high)
        division = None if len(edges) > MAX_BINS else divided(exact, limits, top, within=within, beyond=True)
        if division is None:
            return None
        return Keyed(joined(division, self.any_kind(fn.item)), 0, (*range(len(edges) - 1), len(edges) - 2))

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

    def any_kind(self, fn: RowFn) -> Piece:
        """A row function of any kind, for a look at whether it is there."""
        if isinstance(fn, Each):  # a key is there where what it is of is
            return self.any_kind(fn.item)
        if isinstance(fn, Col):
            return self.column(fn.name)
        return self.value(fn)

    def units(self, block: Block) -> tuple[Piece, bool]:
        """A number on its block's grid, clamped; and whether it is an SQL integer (else a whole double)."""
        fn = block.fn
        column = self.stored(fn)
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
