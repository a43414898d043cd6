"""Shared scans: what several tallies over the same rows ask of SQL, in as few SELECTs as pays.

Tallies with one condition are summed together: those of one partition are one
grouping, and partitions that ask for the same aggregates are the grouping sets
of one SELECT. Tallies with different conditions are not: DuckDB skips what a
condition leaves out, and as FILTERs of one SELECT they took twice as long and more
(docs/decisions/0010-engines.md). All of this is chosen by the questions, never by the rows.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from sulq.compile.emit.emitter import Emitter, NotInSql
from sulq.compile.statements import aggregate
from sulq.compile.statements.aggregate import Query
from sulq.compile.statements.common_functions import unite
from sulq.compile.statements.scan import alone, together
from sulq.kernel.request import Statement
from sulq.language.tally import Tally

SETS: Final = 32  # partitions of one SELECT: each has its own table of groups in memory
CELLS: Final = 2**18  # and so many cells of them all


class _Part(NamedTuple):
    """One partition: its query, and how many labels its keys have."""

    query: Query
    sizes: list[int]


def shared(write: Callable[[], Emitter], tallies: Mapping[int, Tally]) -> list[Statement]:
    """The statements of the blocks that SQL sums of tallies; `write` gives writers of row functions over their rows."""
    found: list[Statement] = []
    united = dict(zip(tallies, unite(tuple(tallies.values())), strict=True))
    alike: dict[int, list[int]] = {}
    for i, tally in united.items():
        alike.setdefault(id(tally.where), []).append(i)
    for places in alike.values():
        emitter = write()
        condition = united[places[0]].where
        try:
            where = None if condition is None else emitter.truth(condition)
        except NotInSql:
            continue
        for parts in _packed(_parts(emitter, {i: united[i] for i in places})):
            if len(parts) == 1:
                found.append(alone(parts[0].query, where, parts[0].sizes))
            else:
                found.append(together([part.query for part in parts], where, [part.sizes for part in parts]))
    return found


def _parts(emitter: Emitter, tallies: dict[int, Tally]) -> list[_Part]:
    """The partitions of tallies, each with all blocks that SQL sums for it; what SQL cannot say is left out."""
    parts: dict[tuple[tuple[int, int], ...], _Part] = {}
    for i, tally in tallies.items():
        name = tuple((id(key.fn), len(key.labels)) for key in tally.by)
        if name not in parts:
            try:
                keys = [emitter.key(key.fn, alone=len(tally.by) == 1) for key in tally.by]
            except NotInSql:
                continue
            parts[name] = _Part(Query(emitter, keys), [len(key.labels) for key in tally.by])
        for place, block in enumerate(tally.blocks):
            with contextlib.suppress(NotInSql):
                aggregate.add(parts[name].query, (i, place), block)
    return [part for part in parts.values() if part.query.blocks]


def _packed(parts: list[_Part]) -> Iterator[list[_Part]]:
    """Partitions that one SELECT sums: such as ask for the same aggregates, and not too many at a time."""
    alike: dict[tuple[str, ...], list[_Part]] = {}
    for part in parts:
        alike.setdefault(tuple(part.query.aggregates), []).append(part)
    for same in alike.values():
        pack: list[_Part] = []
        for part in same:
            cells = sum(math.prod(one.sizes) for one in [*pack, part])
            keys = {key.piece.sql for one in [*pack, part] for key in one.query.keys}
            if pack and (len(pack) == SETS or cells > CELLS or len(keys) > part.query.emitter.grouped_keys):
                yield pack
                pack = []
            pack.append(part)
        yield pack
