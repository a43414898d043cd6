"""Shared scans: what several tallies over the same rows ask of SQL, in as few SELECTs as pays.

Tallies with one condition are summed together: those of one partition are one
grouping, and partitions that ask for the same aggregates are the grouping sets
of one SELECT. Tallies with different conditions are not: DuckDB skips what a
condition leaves out, and as FILTERs of one SELECT they took twice as long and more
(docs/decisions/0010-engines.md). All of this is chosen by the questions, never by the rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from sulq.curator.engines import aggregate
from sulq.curator.engines.aggregate import Query
from sulq.curator.engines.emit import Emitter, NotInSql
from sulq.curator.engines.scan import Asking, scan
from sulq.curator.engines.unite import unite
from sulq.terms.engine import Tally
from sulq.terms.kinds import Integers

SETS: Final = 32  # partitions of one SELECT: each has its own table of groups in memory
CELLS: Final = 2**18  # and so many cells of them all


@dataclass(slots=True)
class _Part:
    """One partition: its query, how many labels its keys have, and whose block each of the query's is."""

    query: Query
    sizes: list[int]
    blocks: list[tuple[int, int]] = field(default_factory=list)


def shared(asking: Asking, tallies: Sequence[Tally]) -> list[dict[int, Integers]]:
    """For each tally the sums of the blocks that SQL sums, by place."""
    found: list[dict[int, Integers]] = [{} for _ in tallies]
    united = unite(tallies)
    alike: dict[int, list[int]] = {}
    for i, tally in enumerate(united):
        alike.setdefault(id(tally.where), []).append(i)
    for places in alike.values():
        emitter = asking.emitter()
        condition = united[places[0]].where
        try:
            where = None if condition is None else emitter.truth(condition)
        except NotInSql:
            continue
        for parts in _packed(_parts(emitter, {i: united[i] for i in places})):
            queries = [part.query for part in parts]
            read = scan(asking, queries, where, [part.sizes for part in parts])
            for part, one in zip(parts, read, strict=True):
                for block, sums in one.blocks().items():
                    tally_, place = part.blocks[block]
                    found[tally_][place] = sums
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
        part = parts[name]
        for place, block in enumerate(tally.blocks):
            try:
                aggregate.add(part.query, len(part.blocks), block)
            except NotInSql:
                continue
            part.blocks.append((i, place))
    return [part for part in parts.values() if part.blocks]


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
