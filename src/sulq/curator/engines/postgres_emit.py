"""Row functions to PostgreSQL's SQL, by hand, over the integer columns of the prepared copy.

What is inherited is what both databases mean alike: comparisons of integers,
three-valued logic, CASE. What differs is written here. Nothing written can fail on
any row: the size of every double is known in advance (postgres_extent.py), a
divisor is NULL where it is 0, what becomes an integer is bounded. Texts are
compared byte by byte. What cannot be said so is NotInSql and goes the batch way.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import ClassVar, Final

from sulq.curator.engines import postgres_dates, postgres_extent, postgres_texts
from sulq.curator.engines.edges import POSTGRES, Said, search
from sulq.curator.engines.emit import MOST_BINS, Emitter
from sulq.curator.engines.kept import PERSON, Rows
from sulq.curator.engines.piece import NotInSql, Piece, joined
from sulq.curator.engines.postgres_extent import Extents
from sulq.curator.engines.postgres_literal import double
from sulq.curator.engines.read_sql import whole
from sulq.terms.domain import Bool, Category, Schema, Text, is_text
from sulq.terms.engine import Block
from sulq.terms.kinds import Code, Scalar, Truth
from sulq.terms.rowfn.dates import Moment
from sulq.terms.rowfn.keys import HALF, PRIME, Bins, Bucket, mixing
from sulq.terms.rowfn.labels import Relabel, Value
from sulq.terms.rowfn.maths import Greatest, Least, Maths, Modulo, Power, Round
from sulq.terms.rowfn.missing import First, NullIf
from sulq.terms.rowfn.scalar import Arith, Case, Clip, Col, Compare, Fill, IsIn, Lit, RowFn, against

MOST_ENTRIES: Final = 4096  # a longer table of constants is read by the batch path
WIDEST: Final = 2**62
_SIMPLE: Final = {"abs": "abs({0})", "floor": "floor({0})", "ceil": "ceil({0})", "trunc": "trunc({0})",
    "sign": "sign({0})"}  # fmt: skip


class PostgresEmitter(Emitter):
    """Writes the row functions of one tally over a prepared copy in PostgreSQL."""

    said: ClassVar[Said] = POSTGRES
    bound: ClassVar[re.Pattern[str]] = re.compile(r"%\((text[0-9]+)\)s")

    grouping = "grouping"
    grouped_keys = 31

    def __init__(self, schema: Schema, rows: Rows) -> None:
        super().__init__(schema, rows)
        self.extents = Extents(schema)

    def relation(self) -> str:
        """The kept rows with every named operand beside them."""
        relation = self.rows.relation
        for i, layer in enumerate(self.layers):
            relation = f"(SELECT *, {', '.join(layer)} FROM {relation}) AS layer{i}"
        return relation

    def parameter(self, text: str) -> Piece:
        """A text of the question, bound and never spelled out; one that no database can hold goes the batch way."""
        if "\x00" in text or not is_text(text):
            raise NotInSql("a text")
        name = f"text{len(self.parameters)}"
        self.parameters[name] = text
        return Piece(f'(CAST(%({name})s AS text) COLLATE "C")', atom=True)

    # sums

    def units(self, block: Block) -> tuple[Piece, bool]:
        """A number on its block's grid, clamped: always a whole number of SQL's."""
        fn = block.fn
        column = self.schema.find(fn.name) if isinstance(fn, Col) else None
        if column is not None and not isinstance(column, (Text, Category)) and isinstance(fn, Col):
            inside = block.low[0] <= column.low and column.high <= block.high[0]
            if inside and column.step == block.step:
                return Piece(self.rows.names[fn.name], atom=True), True
        low, high = block.low[0], block.high[0]
        extent = self.extents.of(fn)
        if block.step != 1:
            extent = postgres_extent.product(extent, postgres_extent.of(float(1 / block.step)))
        if max(abs(low), abs(high)) >= WIDEST or extent.most > postgres_extent.LARGEST:
            raise NotInSql("a wide block")
        return joined("CAST({0} AS bigint)", self.on_grid(self.number(fn), block.step, low, high)), True

    def on_grid(self, item: Piece, step: Fraction, low: int, high: int) -> Piece:
        """floor(x/step + 1/2), clamped directly under the sum (T11): a whole double."""
        scale = f" * {double(float(1 / step))}" if step != 1 else ""
        units = self.named(joined(f"floor({{0}}{scale} + {double(0.5)})", item))
        return _clamped(units, float(low), float(high))

    def total(self, piece: Piece, most: int, *, integer: bool) -> str:
        """An exact SUM: of 64 bits it is a numeric, of fewer it fits 64 bits where the total is known to."""
        if not integer or most < WIDEST:
            return f"sum({piece.sql})"
        return f"sum(CAST({piece.sql} AS bigint))"

    def narrow(self, sql: str) -> str:
        """A total that is known to fit 64 bits."""
        return f"CAST({sql} AS bigint)"

    def above(self, piece: Piece, low: int, high: int) -> tuple[Piece, bool]:
        """How far whole units lie above their least: 64 bits where these hold its square, else a numeric."""
        kind = "bigint" if (high - low) ** 2 < WIDEST and abs(low) < WIDEST else "numeric"
        return Piece(f"(CAST({piece.sql} AS {kind}) - {whole(low)})", piece.layer), False

    # numbers

    def _number(self, fn: RowFn) -> Piece:
        self.extents.of(fn).safe  # noqa: B018 - refuses what doubles might not hold
        leaf = self._leaf(fn)
        if leaf is not None:
            return leaf
        match fn:
            case Arith("/", left, right):
                return joined(f"({{0}} / nullif({{1}}, {double(0)}))", self.number(left), self.number(right))
            case Arith(op, left, right):
                return joined(f"({{0}} {op} {{1}})", self.number(left), self.number(right))
            case Case(branches, otherwise):
                return self._case(branches, otherwise)
            case Clip(item, lo, hi):
                return _clamped(self.named(self.number(item)), float(lo), float(hi))
            case Fill(item, value) if isinstance(fn.kind(self.schema), Scalar):
                constant = float(against(value, item.kind(self.schema)))
                return joined(f"coalesce({{0}}, {double(constant)})", self.number(item))
            case First(items) if isinstance(fn.kind(self.schema), Scalar):
                return joined(f"coalesce({_places(items)})", *(self.number(item) for item in items))
            case NullIf() if isinstance(fn.kind(self.schema), Scalar):
                return self._null_if(fn, "number")
        found = self._mathematical(fn) or postgres_dates.number(self, fn) or postgres_texts.number(self, fn)
        if found is not None:
            return found
        if isinstance(fn.kind(self.schema), Truth):
            return joined("CAST(CAST({0} AS integer) AS float8)", self.truth(fn))
        raise NotInSql(type(fn).__name__)

    def _leaf(self, fn: RowFn) -> Piece | None:
        match fn:
            case Lit(value) if not isinstance(value, str):
                return Piece(double(float(value)), atom=True)
            case Moment():
                return Piece(double(fn.value), atom=True)
            case Value():
                return self._figure(fn)
            case Col(name) if isinstance(self.schema.find(name), Bool):
                return Piece(f"CAST({self.rows.names[name]} AS float8)")
            case Col(name):
                return self._scaled(name)
        return None

    def _scaled(self, name: str) -> Piece:
        column = self.schema.find(name)
        if column is None or isinstance(column, (Text, Category)):
            raise NotInSql(name)
        units = f"CAST({self.rows.names[name]} AS float8)"
        return Piece(units if column.step == 1 else f"({units} * {double(float(column.step))})")

    def _mathematical(self, fn: RowFn) -> Piece | None:
        match fn:
            case Maths("sqrt", item):
                return self._root(item)
            case Maths(op, item) if op in _SIMPLE:
                return joined(_SIMPLE[op], self.number(item))
            case Modulo(left, right):
                # Of whole numbers; the remainder has the sign of the number, as in doubles.
                return joined(f"CAST(mod(CAST({{0}} AS bigint), {whole(int(right))}) AS float8)", self.number(left))
            case Least(items) | Greatest(items):
                # Of several, as in DuckDB, one that is missing is passed over.
                name = "least" if isinstance(fn, Least) else "greatest"
                return joined(f"{name}({_places(items)})", *(self.number(item) for item in items))
            case Round(item, digits):
                if fn.unchanged(self.schema):
                    return self.number(item)
                there, back = ("*", "/") if digits >= 0 else ("/", "*")
                scale = double(10.0 ** abs(digits))
                x = self.named(joined(f"({{0}} {there} {scale})", self.number(item)))
                half = f"CASE WHEN abs({{0}} - trunc({{0}})) >= {double(0.5)} THEN sign({{0}}) ELSE {double(0)} END"
                return joined(f"((trunc({{0}}) + {half}) {back} {scale})", x)
            case Power(item, exponent):
                if fn.root:
                    return self._root(item)
                x = self.named(self.number(item))
                if exponent == 0:
                    return joined(f"CASE WHEN {{0}} IS NOT NULL THEN {double(1)} END", x)
                if fn.whole is not None:
                    product = f"({' * '.join(['{0}'] * abs(fn.whole))})"
                    return joined(product if fn.whole > 0 else f"({double(1)} / nullif({product}, {double(0)}))", x)
        return None

    def _root(self, item: RowFn) -> Piece:
        """A square root: what is negative is made 0 before, so that none can fail, and NULL."""
        x = self.named(self.number(item))
        return joined(f"CASE WHEN {{0}} >= {double(0)} THEN sqrt(greatest({{0}}, {double(0)})) END", x)

    def _figure(self, fn: Value) -> Piece:
        figures = ["NULL" if x is None else double(x) for x in fn.figures(self.schema)]
        return _table(self.code(fn.item), figures, "float8")

    # conditions

    def _truth(self, fn: RowFn) -> Piece:
        return postgres_texts.truth(self, fn) or super()._truth(fn)

    def _compare(self, fn: Compare) -> Piece:
        left, right, op = fn.sides(self.schema)
        if isinstance(right, RowFn) or isinstance(left, Col) or not isinstance(left.kind(self.schema), Scalar):
            return super()._compare(fn)
        sign = {"==": "=", "!=": "<>"}.get(op, op)
        return joined(f"({{0}} {sign} {double(float(right))})", self.number(left))

    def _is_in(self, fn: IsIn) -> Piece:
        if isinstance(fn.item, Col) or not isinstance(fn.item.kind(self.schema), Scalar):
            return super()._is_in(fn)
        item, values = self.number(fn.item), [double(float(value)) for value in fn.fitted(self.schema)]
        if not values:
            return joined("CASE WHEN {0} IS NOT NULL THEN FALSE END", item)
        return joined(f"({{0}} IN ({', '.join(values)}))", item)

    def _words(self, fn: RowFn) -> Piece:
        return postgres_texts.words(self, fn) or super()._words(fn)

    # keys

    def _code(self, fn: RowFn) -> Piece:
        match fn:
            case Bucket(count, salt):
                a, b, c = mixing(salt)
                mixed = f"({a} * ({PERSON} / {HALF}) + {b} * mod({PERSON}, {HALF}) + {c})"
                return Piece(f"mod(mod({mixed}, {PRIME}), {count})")
            case Relabel(item):
                places = fn.renamed()[1]
                if places != list(range(len(places))):
                    return _table(self.code(item), ["NULL" if x is None else str(x) for x in places], "integer")
                return self.code(item)
            case Bins():
                return self._bins(fn)
        return super()._code(fn)

    def _each(self, item: RowFn) -> Piece:
        kind = item.kind(self.schema)
        if isinstance(kind, Code):
            return self.code(item)
        if isinstance(kind, Truth):
            if isinstance(item, Col):
                return self.column(item.name)
            return joined("CAST({0} AS integer)", self.truth(item))
        if not isinstance(kind, Scalar) or kind.lo is None or self.extents.of(item).most >= WIDEST:
            raise NotInSql(type(item).__name__)
        return joined(f"CAST(({{0}} - {double(float(math.ceil(kind.lo)))}) AS bigint)", self.number(item))

    def _bins(self, fn: Bins) -> Piece:
        if isinstance(fn.item, Col):
            return super()._bins(fn)
        edges = fn.fitted(self.schema)
        if len(edges) > MOST_BINS:
            raise NotInSql("Bins")
        item = self.named(self.number(fn.item))
        return joined(search([double(edge) for edge in edges[:-1]], double(edges[-1])), item)


def _places(items: tuple[RowFn, ...]) -> str:
    return ", ".join(f"{{{i}}}" for i in range(len(items)))


def _clamped(item: Piece, low: float, high: float) -> Piece:
    """A named double held within [low, high]."""
    a, b = double(low), double(high)
    return joined(f"CASE WHEN {{0}} < {a} THEN {a} WHEN {{0}} > {b} THEN {b} ELSE {{0}} END", item)


def _table(item: Piece, entries: list[str], kind: str) -> Piece:
    """A small table of constants read at a code; past its ends it is NULL."""
    if len(entries) > MOST_ENTRIES:
        raise NotInSql("a long table")
    return joined(f"(CAST(ARRAY[{', '.join(entries)}] AS {kind}[]))[CAST({{0}} AS integer) + 1]", item)
