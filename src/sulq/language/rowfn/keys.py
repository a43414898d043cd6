"""Row functions that put each row into one of finitely many public cells, or none."""

from __future__ import annotations

import functools
import hashlib
import itertools
import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from sulq.errors import QuestionError
from sulq.language.domain import Schema
from sulq.language.kinds import Cells, Code, Frame, Kind, Scalar, Truth
from sulq.language.rowfn.base import RowFn, describe, evaluate, literal, numbers, per_schema
from sulq.language.rowfn.conditions import against

PRIME: Final = 2**31 - 1
HALF: Final = 2**30
MAX_LABELS: Final = 2**20
MAX_CACHED: Final = 4096


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
        values, missing = numbers(self.item, frame)
        with np.errstate(all="ignore"):  # of a missing cell: no warning may tell that there is one
            return Cells((values - low).astype(np.int64), missing)


@dataclass(frozen=True, slots=True, eq=False)
class Bins(RowFn, item="The item"):
    """The half-open interval [edge, next edge) a number falls into; the last one is closed."""

    item: RowFn
    edges: tuple[float | int | str, ...]

    def __post_init__(self) -> None:
        RowFn.__post_init__(self)
        if not 2 <= len(self.edges) <= MAX_LABELS:
            raise QuestionError("bad-literal", "Bins need at least two edges, and not too many.")
        object.__setattr__(self, "edges", tuple(literal(edge) for edge in self.edges))

    def fitted(self, schema: Schema) -> list[float]:
        """The edges as they meet the cells."""
        return _few(self, schema)[0] if len(self.edges) <= MAX_CACHED else self._fitted(self.item.kind(schema))[0]

    def _fitted(self, kind: Kind) -> tuple[list[float], Scalar]:
        if not isinstance(kind, Scalar):
            raise QuestionError("wrong-kind", f"{describe(self.item)} is not a number and has no bins.")
        edges = [float(against(edge, kind)) for edge in self.edges]
        if any(a >= b for a, b in itertools.pairwise(edges)):
            raise QuestionError("bad-literal", "The edges of bins must increase.")
        return edges, kind

    def kind(self, schema: Schema) -> Code:
        return _few(self, schema)[1] if len(self.edges) <= MAX_CACHED else self._kind(schema)

    def _kind(self, schema: Schema) -> Code:
        edges, inner = self._fitted(self.item.kind(schema))
        covered = inner.lo is not None and inner.hi is not None and edges[0] <= inner.lo and inner.hi <= edges[-1]
        return Code(tuple(itertools.pairwise(self.edges)), inner.nullable or not covered)

    def cells(self, frame: Frame) -> Cells:
        edges = np.array(self.fitted(frame.schema))
        values, missing = numbers(self.item, frame)
        index = np.searchsorted(edges, values, side="right") - 1
        index = np.where(values == edges[-1], len(edges) - 2, index)
        outside = (index < 0) | (index > len(edges) - 2)
        return Cells(index.astype(np.int64), outside if missing is None else outside | missing)


@functools.lru_cache(maxsize=64)
def _few(fn: Bins, schema: Schema) -> tuple[list[float], Code]:
    """Edges and kind of bins, kept from batch to batch where they are few: what is kept must stay small."""
    return fn._fitted(fn.item.kind(schema))[0], fn._kind(schema)  # noqa: SLF001 - its own, looked up


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
        if isinstance(self.count, bool) or not isinstance(self.count, int) or not 1 <= self.count <= MAX_LABELS:
            raise QuestionError("bad-literal", "A bucket needs 1 to 2^20 parts.")
        if isinstance(self.salt, bool) or not isinstance(self.salt, int) or abs(self.salt) > 2**53:
            raise QuestionError("bad-literal", "A salt is a whole number.")

    def kind(self, schema: Schema) -> Code:
        return Code(tuple(range(self.count)), nullable=False)

    def cells(self, frame: Frame) -> Cells:
        a, b, c = mixing(self.salt)
        person = frame.person()
        return Cells((a * (person // HALF) + b * (person % HALF) + c) % PRIME % self.count, None)
