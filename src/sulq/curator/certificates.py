"""Plans as requests to the kernel: what is run and released of each part, for the kernel to certify and price.

What no statement or program sums (what is worked out by hand, folds on Spark, tables without a copy) has no
certificate: of it the rules of plans are applied anew, to the request that is to be run. How far a statistic of the
whole table moves is the annex's to say (`sulq.kernel.whole`); what another engine reads rests on the plan.

Source: docs/theory/kernel.md; SR1, SR3, SR5.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, cast

from sulq.answers.plan import Part, Whole
from sulq.compile.plan.estimators import functions_of, owned
from sulq.compile.plan.extent import extent
from sulq.compile.plan.holistic import requested
from sulq.kernel.facts import Facts, Refused
from sulq.kernel.moves import Certified, Moves, Norms
from sulq.kernel.private import Private
from sulq.kernel.request import Outside, Proposed, Release
from sulq.kernel.whole.asked import Asked
from sulq.kernel.whole.functions import Declared, Owned, declared
from sulq.language.facts import Tables
from sulq.language.kinds import Code, Grid, Integers, Truth, Words
from sulq.language.privacy import Unit
from sulq.language.relation import Table
from sulq.language.rowfn.vectors import Lookup
from sulq.language.score import form
from sulq.language.shape import Shape, shape
from sulq.language.statistic import Certified as OfOwner
from sulq.language.statistic import HeavyPersons
from sulq.language.tally import Block, Engine, Tally, sums_of


class Certifying(Protocol):
    """An engine whose statements are certified before they run."""

    tables: Tables
    kernel_facts: Facts

    def sources(self, tallies: Sequence[Tally]) -> Sequence[Proposed | None]:
        """Of each tally what the kernel is to run; None where nothing of it can be certified."""
        ...

    def found(self, tally: Tally) -> Proposed | None:
        """As `sources`, of groups that are found in the data."""
        ...

    def labelled(self, tally: Tally, keys: Sequence[list[object]]) -> tuple[list[list[object]], Integers | slice]:
        """Labels for the stored keys of groups that were released, ascending, and the places of these in that order."""
        ...

    def certified_rows(self, asked: Asked, tally: Tally, owners: Mapping[str, Owned]) -> int | None:
        """How many rows that a statistic of the whole table reads a person alters; None where they are read by hand.

        `owners`: what they declare of functions of the table, by name.
        """
        ...


def certifying(engine: Engine) -> Certifying | None:
    """An engine as one whose statements are certified, if it is of a class of these.

    Told by its class: facts that cannot be worked out are a refusal, and never a reason to certify nothing.
    """
    known = hasattr(type(engine), "sources") and getattr(type(engine), "bounded", True)
    return cast("Certifying", engine) if known else None


def releases(parts: Sequence[Part], engine: Engine, own: Mapping[str, Any]) -> tuple[Release, ...]:
    """What is released of each part of a plan; from public facts alone.

    Raises:
        Refused: a part cannot be run as it is written.
    """
    for part in parts:
        _formed(part)
    known = certifying(engine)
    shapes = [
        None if part.whole is not None or known is None else shape(part.tally.over, known.tables) for part in parts
    ]
    for part, over in zip(parts, shapes, strict=True):
        if over is not None:
            _typed(part.tally, over, listed=part.people is None)
    listed = [part.tally for part in parts if part.people is None and part.whole is None]
    certified = [None] * len(listed) if known is None else known.sources(listed)
    places, left = iter(range(len(listed))), [i for i, source in enumerate(certified) if source is None]
    rest = lambda: sums_of(engine, [listed[i] for i in left])  # noqa: E731 - one object: what shares it is read once
    found = []
    for part, over in zip(parts, shapes, strict=True):
        laws, refine, tally = part.laws, part.refine, part.tally
        source: Proposed | Outside | None
        if part.whole is not None:
            source = _statistic(engine, part, own)
        elif part.people is not None:
            laws, refine = (part.people, *laws), (0, *refine)
            source = None if known is None else known.found(tally)
            source = source or _outside(_groups(engine, tally), 0, part, over, known)
        else:
            place = next(places)
            source = certified[place] or _outside(rest, left.index(place), part, over, known)
        score = None if part.score is None else form(part.score)
        found.append(Release(source, laws, refine, part.cells, score, part.thresholds))
    return tuple(found)


def _groups(engine: Engine, tally: Tally) -> Callable[[], list[Private[Any]]]:
    return lambda: [engine.groups(tally)]


def _statistic(engine: Engine, part: Part, own: Mapping[str, Any]) -> Outside:
    """A statistic of the whole table; where the engine's tables are known, with how many rows a person alters."""
    whole = cast("Whole", part.whole)

    def rows() -> Sequence[Private[Integers]]:
        if isinstance(whole.statistic, HeavyPersons):
            return [engine.heavy(cast("Table", part.tally.over).name)]
        # The rows a declared function is about are all of them, whatever they lack (S4.13, S4.27).
        return [engine.listed(part.tally, blanks=isinstance(whole.statistic, OfOwner))]

    known, asked = certifying(engine), requested(whole, part.tally.blocks)
    bounds = () if known is None else (_listed(part, whole, asked, known),)
    return Outside(rows, 0, part.cells, (), bounds, whole=asked, functions=functions_of(own))


def _outside(
    read: Callable[[], Sequence[Private[Any]]], tally: int, part: Part, over: Shape | None, engine: Certifying | None
) -> Outside:
    """What no statement sums; where the engine's tables are known, with the bounds of the rules of plans."""
    groups, blocks = part.people is not None, part.tally.blocks
    several: tuple[Block | None, ...] = (None, *blocks) if groups else blocks
    bounds: tuple[Certified, ...] = ()
    if engine is not None and over is not None:
        bounds = tuple(_planned(block, part.tally, over, engine.tables.unit) for block in several)
    widths = tuple(1 if block is None else block.width for block in several)
    return Outside(read, tally, 0 if groups else part.tally.cells, widths, bounds, groups)


def _formed(part: Part) -> None:
    """Refuse a part that no engine can run as it is written: what would fail after the debit fails before it."""
    tally = part.tally
    if part.whole is not None:
        return
    if not (tally.blocks or part.people) or not all(
        len(block.low) == len(block.high) > 0 and all(map(operator.le, block.low, block.high)) for block in tally.blocks
    ):
        raise Refused("sums without bounds")
    if part.people is None and tally.cells != math.prod(len(key.labels) for key in tally.by):
        raise Refused("other cells than the keys have")
    if part.score is not None and not tally.by:
        raise Refused("a choice without a key")


def _typed(tally: Tally, over: Shape, *, listed: bool) -> None:
    """Refuse row functions of other kinds than a sum, a condition and a key are."""
    if tally.where is not None and not isinstance(tally.where.kind(over.schema), Truth):
        raise Refused("a condition that is none")
    for key in tally.by:
        kind = key.fn.kind(over.schema)
        if isinstance(kind, Grid) or (listed and not (isinstance(kind, Code) and kind.labels == key.labels)):
            raise Refused("a key without these labels")
    for block in tally.blocks:
        kind = block.fn.kind(over.schema)
        if isinstance(kind, Words) or block.vector is not isinstance(kind, Grid):
            raise Refused("a sum of other than numbers")
        if isinstance(kind, Grid) and (block.step, block.low, block.high) != (kind.step, kind.low, kind.high):
            raise Refused("a vector of other bounds than its own")


def _listed(part: Part, whole: Whole, asked: Asked, engine: Certifying) -> Certified:
    """How many of the rows that a statistic of the whole table reads a person alters; of heavy persons none is read."""
    tally, tables, none = part.tally, engine.tables, Norms(0, 0, 0)
    if not isinstance(tally.over, Table) or asked.width % part.cells or whole.width != asked.width:
        raise Refused("a statistic of other than a table, or of other numbers than its own")
    table = tables.table_of(tally.over.name)
    owners = owned(table, tables)
    rows = engine.certified_rows(asked, tally, owners) if tally.blocks else None
    if rows is None:  # by the rules of plans, anew
        rows = max(shape(tally.over, tables).rows, 1)
        if isinstance(asked.statistic, Declared):
            word = declared(asked.statistic, owners).word
            if tally.where is not None or word.placed != tables.placed(table):
                raise Refused("other rows than a function is declared for")
    return Certified(Moves(none, none), rows, present=False)


def _planned(block: Block | None, tally: Tally, over: Shape, unit: Unit) -> Certified:
    """A block, or the number of people, by the rules of plans: never a sensitivity that somebody states (SR5)."""
    rows = max(over.rows, 1)
    if block is None:
        return Certified(Moves(Norms(rows, rows, 1), Norms(0, 0, 0)), rows, present=False)
    most = extent(block, over.schema, pairs=unit.neighbors == "replace_one")
    single = Norms(most.single_l1, most.single_l2_squared, most.single_coordinate)
    pair = Norms(most.pair_l1, most.pair_l2_squared, most.pair_coordinate)
    table = block.fn.units()[0] if isinstance(block.fn, Lookup) and block.vector else None
    moves = Moves(single.times(rows), pair.times(rows), block.low, block.high, table)
    dropped = not over.fixed or tally.where is not None or any(key.fn.kind(over.schema).nullable for key in tally.by)
    return Certified(moves, rows, present=not dropped)
