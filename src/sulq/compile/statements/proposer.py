"""Tallies to proposals: which statements sum them, and what is left to be folded.

Everything here follows from tallies and public facts; no row is looked at, nor how
many there are.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache, partial
from typing import Final, NamedTuple, cast

from sulq.compile.statements import aggregate
from sulq.compile.statements.aggregate import Query, alone, shared
from sulq.compile.statements.emitter import Emitter, Keyed
from sulq.compile.statements.kept_table import OWNER, PERSON, PLACE
from sulq.compile.statements.programs.compiler import ProgramCompiler
from sulq.compile.statements.tally_functions import Needed, unite
from sulq.kernel.programs import Fold
from sulq.kernel.request import Looked, Part, Proposal, Scan, Statement
from sulq.language.domain import Schema
from sulq.language.kinds import Code
from sulq.language.rowfn import Col, Position, RowFn
from sulq.language.rowfn.keys import Bucket
from sulq.language.rowfn.piece import NotInSql, Piece, whole
from sulq.language.rowfn.vectors import Lookup
from sulq.language.rowfn.writer import KeptRows
from sulq.language.tally import Tally

TOGETHER: Final = 2**17  # so many combinations of keys are counted once for all lookup tables of a tally
GROUPED: Final = 2**14  # and so many for some of them, where all have more


class _Divided(NamedTuple):
    """Statements of several tallies, each tally's own, what SQL does not sum, and what else it sums of the same."""

    shared: list[Statement]
    own: dict[int, list[Statement]]
    left: list[tuple[int, int]]
    beside: list[tuple[int, int]]


class Proposer:
    """Writes what is asked of one relation's rows."""

    def __init__(self, schema: Schema, rows: KeptRows) -> None:
        self.schema = schema
        self.rows = rows

    def emitter(self) -> Emitter:
        """Writes row functions over these rows."""
        return Emitter(self.schema, self.rows)

    def propose(self, tallies: Sequence[Tally]) -> Proposal:
        """The statements of tallies over the same rows; what SQL does not sum of any of them takes one pass for all."""
        statements, own, left, beside = self._divided(tallies)
        done = _summed(statements)
        torn = {i for i, tally in enumerate(tallies) if 0 < done[i] < len(tally.blocks)}
        if torn:  # a tally's own statements, or its fold, are of the same rows
            statements, own, left, beside = self._divided(tallies, torn)
        shapes = tuple((tally.cells, tuple(block.width for block in tally.blocks)) for tally in tallies)
        fold: Fold | None = None
        try:  # one program tells rows and cells for all sums of a tally, which are then moved by the same rows
            fold = self._fold(tallies, sorted(left + beside)) if left else None
            own = {i: several for i, several in own.items() if i not in {i for i, _ in left}}
        except NotInSql:
            fold = self._fold(tallies, left)
        every = [*statements, *(each for several in own.values() for each in several)]
        return Proposal(shapes, tuple(every), fold=fold)

    def _divided(self, tallies: Sequence[Tally], apart: Collection[int] = ()) -> _Divided:
        """What SQL sums of tallies, in statements of several and in each one's own; and what it does not sum.

        `apart`: no statement of several sums a part of these.
        """
        together = {i: tally for i, tally in enumerate(tallies) if i not in apart}
        statements = shared(self.emitter, together) if len(tallies) > 1 else []
        done = {block.at for each in statements for part in each.parts for block in part.combined}
        own: dict[int, list[Statement]] = {}
        left: list[tuple[int, int]] = []
        beside: list[tuple[int, int]] = []
        for i, tally in enumerate(tallies):
            asked = [place for place in range(len(tally.blocks)) if (i, place) not in done]
            own[i], rest = self._sums(i, tally, asked)
            left += [(i, place) for place in rest]
            beside += [(i, place) for place in asked if rest and place not in rest]
        return _Divided(statements, own, left, beside)

    def _fold(self, tallies: Sequence[Tally], blocks: Sequence[tuple[int, int]]) -> Fold:
        return ProgramCompiler(self.schema, self.rows).fold(unite(tallies), blocks)

    def _sums(self, i: int, tally: Tally, asked: Sequence[int]) -> tuple[list[Statement], list[int]]:
        """The statements that sum some blocks, and the places of those that SQL cannot sum.

        Statements of one tally share an emitter, so that they speak of its rows and cells in the same words.
        """
        tables = [place for place in asked if isinstance(tally.blocks[place].fn, Lookup) and tally.blocks[place].vector]
        tally = unite((tally,))[0] if tables else tally
        emitter = self.emitter()
        main = self._query(emitter, tally, alone=not tables) if asked else None
        if main is None:
            return [], list(asked)
        left: list[int] = []
        for place in asked:
            if place not in tables:
                try:
                    aggregate.add(main[0], (i, place), tally.blocks[place])
                except NotInSql:
                    left.append(place)
        read, rest = self._tables(emitter, i, tally, tables)
        if main[0].blocks:
            read.insert(0, partial(alone, *main))
        return [write() for write in read], sorted(left + rest)  # now that all words are known

    def _query(
        self, emitter: Emitter, tally: Tally, *beside: RowFn, alone: bool = True
    ) -> tuple[Query, Piece | None] | None:
        """A SELECT of the tally's partition, with hidden keys beside its own; None where a part is not in SQL."""
        try:
            where = None if tally.where is None else emitter.where(tally.where)
            asked = [*(key.fn for key in tally.by), *beside]
            keys = [emitter.key(key, alone=alone and len(asked) == 1) for key in asked]
        except NotInSql:
            return None
        return Query(emitter, keys, [*(len(key.labels) for key in tally.by), *map(self._size, beside)]), where

    def _tables(
        self, emitter: Emitter, i: int, tally: Tally, places: list[int]
    ) -> tuple[list[Callable[[], Statement]], list[int]]:
        """Statements that count the keys of lookup tables; and the places of those whose keys SQL cannot say.

        Where their keys together have few combinations these are counted once, for several tables.
        """
        lookups = {place: cast("Lookup", tally.blocks[place].fn) for place in places}
        statements: list[Callable[[], Statement]] = []
        left: list[int] = []
        groups = self._groups(lookups, tally.cells)
        while groups:
            own = groups.pop(0)
            counted = self._counted(emitter, i, tally, own)
            if counted is not None:
                statements.append(counted)
            elif len(own) == 1:
                left += own
            else:  # SQL cannot say a key of one of them
                groups += [{place: lookup} for place, lookup in own.items()]
        return statements, left

    def _groups(self, lookups: dict[int, Lookup], cells: int) -> list[dict[int, Lookup]]:
        """Lookup tables that are read off one count: all of them, or those within some keys of few combinations.

        Each group begins with the first table that is left, and takes the keys that complete most others for their
        size.
        """
        keys = list(_keys(lookups.values()))
        sizes = [self._size(key) for key in keys]
        if len(lookups) == 1 or math.prod(sizes) * cells <= TOGETHER:
            return [lookups] if lookups else []
        place_of = {id(key): place for place, key in enumerate(keys)}
        combined = cache(lambda mask: math.prod(size for i, size in enumerate(sizes) if mask >> i & 1))
        left = {at: sum({1 << place_of[id(key)] for key in lookup.keys}) for at, lookup in lookups.items()}
        found: list[dict[int, Lookup]] = []
        while left:
            own = left[next(iter(left))]
            while True:
                room = GROUPED // (cells * combined(own))
                brought = Counter(rest for mask in left.values() if (rest := mask & ~own))
                fits = {rest: many / size for rest, many in brought.items() if (size := combined(rest)) <= room}
                if not fits:
                    break
                own |= max(fits, key=fits.__getitem__)
            taken = [at for at, mask in left.items() if not mask & ~own]
            found.append({at: lookups[at] for at in taken})
            for at in taken:
                del left[at]
        return found

    def _size(self, key: RowFn) -> int:
        return cast("Code", key.kind(self.schema)).size

    def _counted(
        self, emitter: Emitter, i: int, tally: Tally, lookups: dict[int, Lookup]
    ) -> Callable[[], Statement] | None:
        """One count of all keys of some lookup tables."""
        keys = list(_keys(lookups.values()))
        asked = self._query(emitter, tally, *keys)
        if asked is None:
            return None
        query, where = asked
        query.aggregate("count(*)", self.rows.most)
        place_of = {id(key): place for place, key in enumerate(keys, len(tally.by))}
        looked = []
        for place, lookup in lookups.items():
            units = lookup.units()[0]
            mine = tuple(place_of[id(key)] for key in lookup.keys)
            looked.append(Looked((i, place), mine, units.shape[1], units.astype("<i8").tobytes()))
        return partial(alone, query, where, tuple(looked))

    def columns(self, relation: str, wanted: Needed, *, owned: bool = False) -> str:
        """A SELECT of what is wanted of each row: columns with their codes counted from 0, and what stands beside."""
        found = [_unshifted(self.rows, name) for name in self.schema.names if name in wanted.columns]
        beside = ((PERSON, wanted.person), (PLACE, wanted.place), (OWNER, owned))
        found += [name for name, asked in beside if asked]
        return f"SELECT {', '.join(found) or '1'} FROM {relation}"

    def listing(self, tally: Tally) -> Scan:
        """The SELECT of the rows that a statistic of the whole table reads; NotInSql where SQL does not say a part."""
        emitter = self.emitter()
        condition = "" if tally.where is None else f" WHERE {emitter.truth(tally.where).sql}"
        found = ", ".join(self._beside(block.fn) for block in tally.blocks)
        return emitter.scan(f"SELECT {found} FROM {emitter.relation()}{condition}")

    def _beside(self, fn: RowFn) -> str:
        """A column as it is kept, a row's place, or the hash that tells which part of the people it is in."""
        if isinstance(fn, Col):
            return self.rows.names[fn.name]
        if isinstance(fn, (Bucket, Position)):
            return PERSON if isinstance(fn, Bucket) else PLACE
        raise NotInSql(type(fn).__name__)

    def groups(self, tally: Tally, *, owned: bool) -> Statement:
        """The SELECT of groups that are not listed in advance; NotInSql where SQL does not say a part.

        `owned`: whether a group's people are counted by their owners; else its rows are.
        """
        emitter = self.emitter()
        where = None if tally.where is None else emitter.truth(tally.where)
        query = Query(emitter, [Keyed(_key(emitter, key.fn)) for key in tally.by], [])
        for place, block in enumerate(tally.blocks):
            aggregate.add(query, (0, place + 1), block)  # after the people
        people = query.aggregate(f"count(DISTINCT {OWNER})" if owned else "count(*)", self.rows.most)
        part = Part((), 0, None, tuple(query.combined()))
        return Statement(emitter.scan(query.sql(where)), len(tally.by), (part,), people)


def _summed(statements: Sequence[Statement]) -> Counter[int]:
    """Of how many blocks of each tally some statements give the sums."""
    return Counter(block.at[0] for each in statements for part in each.parts for block in part.combined)


def _keys(lookups: Iterable[Lookup]) -> Iterable[RowFn]:
    """The keys of lookup tables, each once."""
    return {id(key): key for lookup in lookups for key in lookup.keys}.values()


def _unshifted(rows: KeptRows, name: str) -> str:
    """A column with its codes counted from 0."""
    column = rows.names[name]
    shift = rows.shifts.get(column, 0)
    return f"{column} - {whole(shift)} AS {column}" if shift else column


def _key(emitter: Emitter, fn: RowFn) -> Piece:
    """A key that is not listed in advance: a code, a truth value, a number or a text."""
    kind = fn.kind(emitter.schema)
    if isinstance(kind, Code):
        code = emitter.named(emitter.code(fn))
        there = f"{code.sql} >= 0 AND {code.sql} < {kind.size}"
        # A key must be told by its label alone: what has no label is one group, however it came about (T30).
        unnamed = sorted(set(range(kind.size)) - set(kind.named))
        there += "".join(f" AND {code.sql} <> {i}" for i in unnamed)
        return Piece(f"CASE WHEN {there} THEN {code.sql} END", code.layer)
    return emitter.value(fn)
