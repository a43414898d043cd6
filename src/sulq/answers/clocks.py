"""Which keys of an answer are dates or moments: public facts, so that every door shows them as such."""

from __future__ import annotations

from typing import Final

from sulq.answers.plan import Part
from sulq.language.domain import Schema
from sulq.language.facts import Catalogue
from sulq.language.kinds import Scalar
from sulq.language.rowfn import Bins, Each, OrMissing, RowFn
from sulq.language.shape import shape

TIMED: Final = (Bins, Each, OrMissing)  # keys whose labels are those of what they are made of, or edges among them
Keys = tuple[tuple[str, tuple[object, ...]], ...]  # name and labels of each


def clock_of(fn: RowFn, schema: Schema) -> str | None:
    """How the numbers of a row function count time: "date" (days), "timestamp" (microseconds), or not at all."""
    if isinstance(fn, TIMED):
        return clock_of(fn.item, schema)
    kind = fn.kind(schema)
    return kind.clock if isinstance(kind, Scalar) else None


def clocks_of(part: Part, keys: Keys, facts: Catalogue) -> tuple[tuple[str, str], ...]:
    """Which of an answer's keys count time, and how."""
    if not part.by:
        return ()
    schema = shape(part.tally.over, facts).schema
    found = [(name, clock_of(key.fn, schema)) for (name, _), key in zip(keys, part.by, strict=True)]
    return tuple((name, clock) for name, clock in found if clock is not None)
