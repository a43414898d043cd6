"""Cells as values of the declared columns, and back."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sulq.language.attribute import Attribute
from sulq.language.domain import Bool, Category, Date, Int, Real, Timestamp
from sulq.language.kinds import Integers


def kind(attribute: Attribute) -> pa.DataType:
    """What a column's values are kept as."""
    domain = attribute.domain
    if isinstance(domain, Category):
        return pa.string() if isinstance(domain.values[0], str) else pa.int64()
    if isinstance(domain, Int):
        return pa.int64()
    types = {Bool: pa.bool_(), Date: pa.date32(), Timestamp: pa.timestamp("us"), Real: pa.float64()}
    return types[type(domain)]


def decoded(attribute: Attribute, cells: Integers, rng: np.random.Generator) -> pa.Array:
    """A value for each cell: the one it stands for or, of an interval, one drawn evenly from its grid points."""
    edges = attribute.edges
    if edges is None:
        return pa.array(attribute.labels, type=kind(attribute)).take(pa.array(cells))
    first, last = _ends(attribute, edges)
    units = rng.integers(first[cells], last[cells] + 1)
    if isinstance(attribute.domain, Real):
        return pa.array(units * float(attribute.domain.step))  # a power of two: exact
    narrow = units.astype(np.int32) if isinstance(attribute.domain, Date) else units
    return pa.array(narrow).cast(kind(attribute))


def encoded(attribute: Attribute, values: pa.Array) -> Integers:
    """The cell of each value: what `decoded` made of it."""
    edges = attribute.edges
    if edges is None:
        found = pc.index_in(values, pa.array(attribute.labels, type=kind(attribute)))
        return np.asarray(found, dtype=np.int64)
    whole = {"date": pa.int32(), "timestamp": pa.int64()}.get(attribute.domain.clock or "")
    numbers = np.asarray(values if whole is None else values.cast(whole), dtype=np.float64)
    cells = np.searchsorted(np.array(edges), numbers, side="right") - 1
    return np.clip(cells, 0, len(edges) - 2).astype(np.int64)


def _ends(attribute: Attribute, edges: tuple[float, ...]) -> tuple[Integers, Integers]:
    """The first and last grid point of each interval; of one that holds none, the nearest."""
    domain = attribute.domain
    assert isinstance(domain, (Int, Real, Date, Timestamp))  # noqa: S101 - for the type checker
    starts = [math.ceil(Fraction(edge) / domain.step) for edge in edges[:-1]]
    stops = [start - 1 for start in starts[1:]] + [math.floor(Fraction(edges[-1]) / domain.step)]
    first = np.clip(np.array(starts, dtype=np.int64), domain.low, domain.high)
    last = np.clip(np.array(stops, dtype=np.int64), first, domain.high)
    return first, last
