"""The row functions of tallies: what of the rows they look at, and equal ones made one.

A question that came over the wire names the same vector or key again and again. Kernels know a function again by its
identity, so what is one object is worked out once a batch.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from typing import cast

from sulq.language.relation import Relation, Table, steps
from sulq.language.rowfn import Col, Lit, Position, RowFn
from sulq.language.rowfn.base import walk
from sulq.language.rowfn.keys import Bucket
from sulq.language.tally import Tally


class Needed:
    """What is looked at: columns, the person's hash, the place in the source."""

    def __init__(self, columns: Iterable[str] = ()) -> None:
        self.columns = set(columns)
        self.person = False
        self.place = False

    def add(self, *fns: RowFn) -> None:
        """Take note of what row functions look at."""
        for fn in walk(*fns):
            self.columns |= {fn.name} if isinstance(fn, Col) else set()
            self.person |= isinstance(fn, Bucket)
            self.place |= isinstance(fn, Position)


def needed(*tallies: Tally) -> Needed:
    """What of the rows the functions of tallies look at."""
    found = Needed()
    found.add(*(fn for tally in tallies for fn in functions(tally)))
    return found


def parted(relation: Relation, table: str) -> Needed:
    """What conditions on a table's own rows look at within a relation: of a part of the people their hash."""
    found = Needed()
    found.add(*(fn for rows, fns in steps(relation) if rows == Table(table) for fn in fns))
    return found


def functions(tally: Tally) -> list[RowFn]:
    """The row functions of a tally."""
    where = [] if tally.where is None else [tally.where]
    return [block.fn for block in tally.blocks] + [key.fn for key in tally.by] + where


def unite(tallies: Sequence[Tally]) -> tuple[Tally, ...]:
    """The same tallies, in which row functions that are written alike are the same object."""
    known = _Known()
    return tuple(
        replace(
            tally,
            blocks=tuple(replace(block, fn=known.one(block.fn)) for block in tally.blocks),
            where=None if tally.where is None else known.one(tally.where),
            by=tuple(replace(key, fn=known.one(key.fn)) for key in tally.by),
        )
        for tally in tallies
    )


class _Known:
    """The row functions met so far, by what is written in them."""

    def __init__(self) -> None:
        self._found: dict[tuple[object, ...], RowFn] = {}
        self._same: dict[int, tuple[RowFn, RowFn]] = {}  # by their identity: most are one already
        self._texts: dict[int, tuple[object, object]] = {}  # of fields by their identity: tables are long

    def one(self, fn: RowFn) -> RowFn:
        """The first row function that was written like this one."""
        if id(fn) not in self._same:
            self._same[id(fn)] = (fn, self._one(fn))
        return self._same[id(fn)][1]

    def _one(self, fn: RowFn) -> RowFn:
        given = [getattr(fn, field.name) for field in fields(fn)]  # type: ignore[arg-type]  # every node is a dataclass
        united = [self._parts(value) for value in given]
        written = (type(fn), *(self._written(value) for value in united))
        known = self._found.get(written)
        if known is None:
            same = all(a is b for a, b in zip(given, united, strict=True))
            known = self._found[written] = fn if same else type(fn)(*united)
        return known

    def _parts(self, value: object) -> object:
        """A field with the row functions in it made one; of a table of constants not a number is looked at.

        A constant stays as it is: what holds it would be made anew, and all that is known of that worked out anew.
        """
        if isinstance(value, RowFn):
            return value if isinstance(value, Lit) else self.one(value)
        if isinstance(value, tuple) and _holds(value):
            united = tuple(self._parts(item) for item in value)
            return value if all(a is b for a, b in zip(value, united, strict=True)) else united
        return value

    def _written(self, value: object) -> object:
        """What tells a field from another: of a row function that is one already its identity, of constants their text.

        A text tells 1 from 1.0 and from True, and 0.0 from -0.0, as equality does not; of a table of whole numbers
        equality is enough, and quicker.
        """
        if isinstance(value, Lit):
            return Lit, type(value.value), repr(value.value)
        if isinstance(value, RowFn):
            return id(value)
        if isinstance(value, tuple) and _holds(value):
            return tuple(self._written(item) for item in cast("tuple[object, ...]", value))
        if id(value) not in self._texts:
            self._texts[id(value)] = (value, value if _whole(value) else repr(value))
        return self._texts[id(value)][1]


def _whole(value: object) -> bool:
    """Whether a field is a table of whole numbers."""
    if not isinstance(value, tuple) or set(map(type, value)) != {tuple}:
        return False
    return set(map(type, itertools.chain.from_iterable(value))) <= {int}


def _holds(value: object) -> bool:
    """Whether there are row functions in a field: then the first of its items has one."""
    return isinstance(value, RowFn) or (isinstance(value, tuple) and _holds(value[:1][0] if value else None))
