"""Row functions that put each row into one of finitely many public cells, or none: keys, labels, trees of keys."""

from __future__ import annotations

import functools
import hashlib
import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from sulq.errors import QuestionError
from sulq.kernel.facts import HASH
from sulq.language.domain import Schema, Text
from sulq.language.kinds import Cells, Code, Frame, Integers, Scalar, Truth, entry, union
from sulq.language.rowfn.base import (
    Col,
    Literal,
    RowFn,
    check,
    condition,
    describe,
    evaluate,
    is_whole,
    known,
    literal,
    literals,
    numbers,
    per_schema,
    truths,
)
from sulq.language.rowfn.conditions import against
from sulq.language.rowfn.edges import by_floor, divided, dyadic, limited, search
from sulq.language.rowfn.piece import NotInSql, Piece, double, joined, whole

if TYPE_CHECKING:
    from sulq.language.rowfn.writer import SqlWriter

PRIME: Final = 2**31 - 1
HALF: Final = 2**30
MAX_LABELS: Final = 2**20
MAX_BINS: Final = 1024  # more are searched by the batch path
MAX_LIST_ENTRIES: Final = 65_536  # a longer table is read by the batch path


@dataclass(frozen=True, slots=True, eq=False)
class Each(RowFn, item="The item"):
    """Every whole value of a bounded number, or both truth values, as a key."""

    item: RowFn

    @per_schema
    def kind(self, schema: Schema) -> Code:
        inner = self.item.kind(schema)
        if isinstance(inner, Truth):
            return Code((False, True), inner.nullable)
        if isinstance(inner, Code):
            return inner
        if not isinstance(inner, Scalar) or inner.lo is None or inner.hi is None:
            raise QuestionError("wrong-kind", f"{describe(self.item)} cannot be a key; use bins(...).")
        if inner.step is None or inner.step < 1:
            raise QuestionError("wrong-kind", f"{describe(self.item)} is not whole; use bins(...).")
        low, high = math.ceil(inner.lo), math.floor(inner.hi)
        if high - low >= MAX_LABELS:
            raise QuestionError("too-large", f"{describe(self.item)} has too many values for a key; use bins(...).")
        return Code(tuple(range(low, high + 1)), inner.nullable)

    def cells(self, frame: Frame) -> Cells:
        inner = self.item.kind(frame.schema)
        if isinstance(inner, Code):
            return evaluate(self.item, frame)
        low = math.ceil(inner.lo) if isinstance(inner, Scalar) and inner.lo is not None else 0
        column = frame.schema.find(self.item.name) if isinstance(self.item, Col) else None
        if isinstance(self.item, Col) and column is not None and not isinstance(column, Text) and column.step == 1:
            codes = frame.codes(self.item.name)  # whole to begin with
            units = codes.values.astype(np.int64, copy=False)
            return Cells(units - low if low else units, codes.missing)
        values, missing = numbers(self.item, frame)
        with np.errstate(all="ignore"):  # of a missing cell: no warning may tell that there is one
            return Cells((values - low).astype(np.int64), missing)

    def sql(self, writer: SqlWriter) -> Piece:
        kind = self.item.kind(writer.schema)
        if isinstance(kind, Code):
            return writer.code(self.item)
        if isinstance(kind, Truth):
            if isinstance(self.item, Col):
                return writer.column(self.item.name)
            return joined("CAST({0} AS TINYINT)", writer.truth(self.item))
        if not isinstance(kind, Scalar) or kind.lo is None:
            raise NotInSql(type(self.item).__name__)
        low = math.ceil(kind.lo)
        return joined(f"TRY_CAST(({{0}} - {double(float(low))}) AS BIGINT)", writer.number(self.item))


@dataclass(frozen=True, slots=True, eq=False)
class Bins(RowFn, item="The item", edges=literals):
    """The half-open interval [edge, next edge) a number falls into; the last one is closed."""

    item: RowFn
    edges: tuple[float | int | str, ...]

    def __post_init__(self) -> None:
        if not 2 <= len(self.edges) <= MAX_LABELS:
            raise QuestionError("bad-literal", "Bins need at least two edges, and not too many.")
        RowFn.__post_init__(self)

    def fitted(self, schema: Schema) -> list[float]:
        """The edges as they meet the cells."""
        return self._fitted(schema)[0]

    @per_schema
    def _fitted(self, schema: Schema) -> tuple[list[float], Code, bool]:
        inner = self.item.kind(schema)
        if not isinstance(inner, Scalar):
            raise QuestionError("wrong-kind", f"{describe(self.item)} is not a number and has no bins.")
        edges = [float(against(edge, inner)) for edge in self.edges]
        if any(a >= b for a, b in itertools.pairwise(edges)):
            raise QuestionError("bad-literal", "The edges of bins must increase.")
        covered = inner.lo is not None and inner.hi is not None and edges[0] <= inner.lo and inner.hi <= edges[-1]
        return edges, Code(tuple(itertools.pairwise(self.edges)), inner.nullable or not covered), covered

    def kind(self, schema: Schema) -> Code:
        return self._fitted(schema)[1]

    def cells(self, frame: Frame) -> Cells:
        edges = np.array(self.fitted(frame.schema))
        values, missing = numbers(self.item, frame)
        scale = dyadic(edges.tolist())
        with np.errstate(all="ignore"):  # of a missing cell: no warning may tell that there is one
            if scale is None:
                index = np.searchsorted(edges, values, side="right") - 1
            else:
                index = np.floor(values * scale) - edges[0] * scale
            index = np.minimum(index, len(edges) - 2).astype(np.int64)
        outside = (values < edges[0]) | (values > edges[-1])
        return Cells(index, union(outside, missing))

    def sql(self, writer: SqlWriter) -> Piece:
        edges = self.fitted(writer.schema)
        if len(edges) > MAX_BINS:
            raise NotInSql("Bins")
        column = writer.stored(self.item)
        if column is not None:
            exact, limits, top = limited(edges, column.step, column.low, column.high)
            division = divided(exact, limits, top, within=(column.low, column.high))
            return joined(division or search(list(map(whole, limits)), whole(top)), writer.any_kind(self.item))
        item, scale = writer.named(writer.number(self.item)), dyadic(edges)
        if scale is None:
            return joined(search([double(edge) for edge in edges[:-1]], double(edges[-1])), item)
        return joined(by_floor(edges, scale, covered=self._fitted(writer.schema)[2]), item)


@functools.lru_cache(maxsize=1024)
def mixing(salt: int) -> tuple[int, int, int]:
    """Public multipliers of the bucket hash for a salt."""
    seed = hashlib.sha256(f"sulq bucket {salt}".encode()).digest()
    a, b, c = (int.from_bytes(seed[i : i + 8], "big") % (PRIME - 1) + 1 for i in (0, 8, 16))
    return a, b, c


@dataclass(frozen=True, slots=True, eq=False)
class Bucket(RowFn):
    """A public hash of the person modulo `parts`: all rows of a person together (SR11).

    With h = 2^30 u + v the person's hash, the bucket is ((a u + b v + c) mod p)
    mod parts, p = 2^31 - 1: pairwise independent over salts, and plain 64-bit
    integer arithmetic on every engine.
    """

    count: int
    salt: int = 0

    def __post_init__(self) -> None:
        if not is_whole(self.count, 1, MAX_LABELS):
            raise QuestionError("bad-literal", "A bucket needs 1 to 2^20 parts.")
        if not is_whole(self.salt, -(2**53), 2**53):
            raise QuestionError("bad-literal", "A salt is a whole number.")

    def kind(self, schema: Schema) -> Code:
        return Code(tuple(range(self.count)), nullable=False)

    def cells(self, frame: Frame) -> Cells:
        a, b, c = mixing(self.salt)
        person = frame.person()
        return Cells((a * (person // HALF) + b * (person % HALF) + c) % PRIME % self.count, None)

    def sql(self, writer: SqlWriter) -> Piece:
        a, b, c = mixing(self.salt)
        mixed = f"({a} * ({HASH} // {HALF}) + {b} * ({HASH} % {HALF}) + {c})"
        return Piece(f"({mixed} % {PRIME} % {self.count})")


MAX_BRANCHES: Final = 10_000


def code(fn: RowFn, schema: Schema) -> Code:
    """The kind of a row function used as a key."""
    kind = fn.kind(schema)
    if not isinstance(kind, Code):
        raise QuestionError("wrong-kind", f"{describe(fn)} is not a key.")
    return kind


@dataclass(frozen=True, slots=True, eq=False)
class Choice(RowFn, labels=literals):
    """The label of the first condition that holds, else that of `otherwise`; None is missing.

    A case whose results are all constants: it puts each row into one public cell.
    """

    branches: tuple[tuple[RowFn, int | None], ...]
    labels: tuple[int | float | str | bool, ...]
    otherwise: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= len(self.branches) <= MAX_BRANCHES or not 1 <= len(self.labels) <= MAX_LABELS:
            raise QuestionError("bad-question", "A choice needs branches and labels, and not too many.")
        RowFn.__post_init__(self)
        _one_kind(self.labels)
        if len(set(self.labels)) != len(self.labels):
            raise QuestionError("bad-question", "The labels of a choice must differ.")
        for when, place in self.branches:
            check(when, "A condition")
            if place is not None and not is_whole(place, 0, len(self.labels) - 1):
                raise QuestionError("bad-question", "A branch gives one of the labels, or none.")
        if self.otherwise is not None and not is_whole(self.otherwise, 0, len(self.labels) - 1):
            raise QuestionError("bad-question", "A choice ends with one of the labels, or none.")

    def parts(self) -> tuple[RowFn, ...]:
        return tuple(when for when, _ in self.branches)

    def kind(self, schema: Schema) -> Code:
        for when, _ in self.branches:
            condition(when, schema)
        return Code(self.labels, self.otherwise is None or any(place is None for _, place in self.branches))

    def cells(self, frame: Frame) -> Cells:
        found = np.full(frame.size, -1 if self.otherwise is None else self.otherwise, dtype=np.int64)
        for when, place in reversed(self.branches):
            found = np.where(known(*truths(when, frame)), -1 if place is None else place, found)
        return Cells(found, found < 0)

    def sql(self, writer: SqlWriter) -> Piece:
        pieces = [writer.truth(when) for when, _ in self.branches]
        places = ["NULL" if place is None else str(place) for _, place in self.branches]
        cases = " ".join(f"WHEN {{{i}}} THEN {place}" for i, place in enumerate(places))
        last = "NULL" if self.otherwise is None else str(self.otherwise)
        return joined(f"CAST(CASE {cases} ELSE {last} END AS INTEGER)", *pieces)


def _one_kind(labels: Iterable[object]) -> None:
    """Labels can be told apart and put in order whatever rows there are: what cannot is refused here (T30)."""
    if len({str if isinstance(x, str) else bool if isinstance(x, bool) else float for x in labels}) != 1:
        raise QuestionError("bad-question", "The labels of a key are all texts, all numbers or all truths.")


@dataclass(frozen=True, slots=True, eq=False)
class Relabel(RowFn, item="The item"):
    """A key under other names: labels[i] is the new name of code i, None where it has none and is missing.

    Codes of one name become one. The new labels are sorted.
    """

    item: RowFn
    labels: tuple[int | float | str | bool | None, ...]

    def __post_init__(self) -> None:
        RowFn.__post_init__(self)
        if len(self.labels) > MAX_LABELS:
            raise QuestionError("too-large", "A key has at most 2^20 labels.")
        object.__setattr__(self, "labels", tuple(None if x is None else literal(x) for x in self.labels))
        _one_kind(self._named)

    @property
    def _named(self) -> list[Literal]:
        return [label for label in self.labels if label is not None]

    def renamed(self) -> tuple[tuple[Literal, ...], list[int | None]]:
        """The new labels, and the new code of each old one."""
        different = {cast("float", label): label for label in reversed(self._named)}
        names = tuple(different[key] for key in sorted(different))
        places = {cast("float", label): i for i, label in enumerate(names)}
        return names, [None if label is None else places[cast("float", label)] for label in self.labels]

    def kind(self, schema: Schema) -> Code:
        inner = code(self.item, schema)
        if inner.size != len(self.labels):
            raise QuestionError("bad-question", f"A key of {inner.size} labels needs as many new ones.")
        return Code(self.renamed()[0], inner.nullable or None in self.labels)

    def cells(self, frame: Frame) -> Cells:
        item = evaluate(self.item, frame)
        places = np.array([-1 if place is None else place for place in self.renamed()[1]], dtype=np.int64)
        found = entry(places, cast("Integers", item.values))
        return Cells(found, union(item.missing, found < 0) if None in self.labels else item.missing)

    def sql(self, writer: SqlWriter) -> Piece:
        places = self.renamed()[1]
        if places == list(range(len(places))):
            return writer.code(self.item)
        return _table(writer.code(self.item), ["NULL" if x is None else str(x) for x in places], "INTEGER")


@dataclass(frozen=True, slots=True, eq=False)
class OrMissing(RowFn, item="The item"):
    """A key with one label more, None, for the rows in which it is missing."""

    item: RowFn

    def kind(self, schema: Schema) -> Code:
        inner = code(self.item, schema)
        return Code((*inner.labels, None), nullable=False)

    def cells(self, frame: Frame) -> Cells:
        item = evaluate(self.item, frame)
        if item.missing is None:
            return item
        last = code(self.item, frame.schema).size
        return Cells(np.where(item.missing, last, cast("Integers", item.values)), None)

    def sql(self, writer: SqlWriter) -> Piece:
        return joined(f"coalesce({{0}}, {code(self.item, writer.schema).size})", writer.code(self.item))


@dataclass(frozen=True, slots=True, eq=False)
class Value(RowFn, item="The item"):
    """The number a label is; missing where the label is None."""

    item: RowFn

    def figures(self, schema: Schema) -> list[float | None]:
        """The number of each code."""
        return self._figures(code(self.item, schema))

    def _figures(self, inner: Code) -> list[float | None]:
        found: list[float | None] = []
        for label in inner.labels:
            if label is not None and (isinstance(label, bool) or not isinstance(label, (int, float))):
                raise QuestionError("wrong-kind", f"{describe(self.item)} has labels that are no numbers.")
            found.append(None if label is None else float(label))
        return found

    def kind(self, schema: Schema) -> Scalar:
        inner = code(self.item, schema)
        figures = self._figures(inner)
        known = [Fraction(x) for x in figures if x is not None] or [Fraction(0)]
        step = Fraction(1) if all(x.denominator == 1 for x in known) else None
        return Scalar(min(known), max(known), step, inner.nullable or None in figures)

    def cells(self, frame: Frame) -> Cells:
        item = evaluate(self.item, frame)
        figures = self.figures(frame.schema)
        table = np.array([0.0 if x is None else x for x in figures])
        none = np.array([x is None for x in figures], dtype=np.bool_)
        index = cast("Integers", item.values)
        gone = entry(none, index) if none.any() else None
        return Cells(entry(table, index), union(item.missing, gone))

    def sql(self, writer: SqlWriter) -> Piece:
        figures, item = self.figures(writer.schema), writer.code(self.item)
        first = figures[0]
        if first is not None and figures == [first + i for i in range(len(figures))] and abs(first) < 2**52:
            return joined(f"(CAST({{0}} AS DOUBLE) + {double(first)})", item)
        return _table(item, ["NULL" if x is None else double(x) for x in figures], "DOUBLE")


def _table(item: Piece, entries: list[str], kind: str) -> Piece:
    """The entry of a list of constants at a code."""
    if len(entries) > MAX_LIST_ENTRIES:
        raise NotInSql("a long table")
    # Codes are stored in the narrowest integers, in which the last code plus one may not fit (T30).
    return joined(f"CAST(list_extract(list_value({', '.join(entries)}), CAST({{0}} AS BIGINT) + 1) AS {kind})", item)
