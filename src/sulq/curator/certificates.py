"""The kernel's certificates for the parts of a plan: what is not paid for is not run.

What no statement or program sums (what is worked out by hand, folds on Spark) has no certificate yet: of it the rules
of plans are applied anew, to the request that is to be run. Statistics of the whole table, and what another engine
reads, rest on the plan.

Source: docs/theory/kernel.md; SR1, SR3.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from functools import partial
from typing import Final, Protocol, runtime_checkable

from sulq.curator.statistics.sums import extent
from sulq.kernel import price
from sulq.kernel.facts import Refused
from sulq.kernel.laws import PassedLaw
from sulq.kernel.norms import Certified, Moves, Norms
from sulq.terms.engine import Block, Engine, Tally
from sulq.terms.facts import Tables
from sulq.terms.kinds import Code, Grid, Truth, Words
from sulq.terms.plan import Part
from sulq.terms.privacy import Budget, Event, SubLinear, Unit
from sulq.terms.rowfn.vectors import Lookup
from sulq.terms.shape import Shape, shape
from sulq.terms.sublinear import noise_for

GRID: Final = 62  # bits by which a grid may be finer
SUMS: Final = 2**24  # numbers of one release
LEVEL: Final = 2**60  # of a threshold: sums are clamped beyond it


@runtime_checkable
class Certifying(Protocol):
    """An engine whose statements are certified before they run."""

    tables: Tables

    def certified(self, tallies: Sequence[Tally]) -> tuple[tuple[Certified | None, ...], ...]:
        """Of each tally what is certified of its blocks."""
        ...

    def certified_groups(self, tally: Tally) -> tuple[Certified | None, ...]:
        """Of groups that are found in the data, the number of people first."""
        ...


def check(parts: Sequence[Part], event: Event, engine: Engine, budget: Budget | None = None) -> None:
    """Refuse a plan whose statements one person moves farther than was paid for; reads no row.

    `budget`: which a SubLinear one says how much noise each query has.

    Raises:
        Refused: the kernel does not certify it.
    """
    for part in parts:
        _formed(part)
    if not isinstance(engine, Certifying):
        return
    least = partial(_least, budget) if isinstance(budget, SubLinear) else None
    price.check([_release(part) for part in parts], _certified(parts, engine), event, engine.tables.unit, least)


def _least(budget: SubLinear, move: int) -> price.Least:
    noise = noise_for(budget, sensitivity=move if budget.calibration == "binomial" else 1)
    return price.Least(noise.kind, noise.scale, noise.units)


def _release(part: Part) -> price.Release:
    laws = part.laws if part.people is None else (part.people, *part.laws)
    cells = part.tally.cells if part.people is None else 0
    return price.Release(
        laws, part.refine, cells, part.cells, part.tally.width, part.score,
        above=part.thresholds is not None, people=part.people is not None, whole=part.whole is not None,
    )  # fmt: skip


def _formed(part: Part) -> None:
    """Refuse a part that cannot be run as it is written: what would fail after the debit fails before it."""
    tally = part.tally
    if part.whole is not None:
        return
    if not (tally.blocks or part.people) or not all(
        len(block.low) == len(block.high) > 0 and all(map(operator.le, block.low, block.high)) for block in tally.blocks
    ):
        raise Refused("sums without bounds")
    one = part.score is not None or part.thresholds is not None
    if len(part.refine) != (1 if one else len(tally.blocks)) or not all(0 <= bits <= GRID for bits in part.refine):
        raise Refused("a grid for other than each block")
    if any(isinstance(law, PassedLaw) for law in part.laws):
        raise Refused("a threshold of people for sums")
    if part.people is not None:
        return
    sums = tally.cells * tally.width
    if tally.cells != math.prod(len(key.labels) for key in tally.by) or not 0 < sums <= SUMS:
        raise Refused("other cells than the keys have")
    if part.score is not None and not tally.by:
        raise Refused("a choice without a key")
    if part.thresholds is not None:
        told = len(part.thresholds) in (1, sums) and max(map(abs, part.thresholds)) <= LEVEL
        if not told or len(tally.blocks) != 1 or not all(getattr(law, "sums", 0) == sums for law in part.laws):
            raise Refused("thresholds that are not those of the sums")


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


def _certified(parts: Sequence[Part], engine: Certifying) -> list[tuple[Certified, ...]]:
    """Of each part what a person does to its blocks; what no statement sums is bounded by the rules of plans, anew."""
    tables = engine.tables
    shapes = [None if part.whole is not None else shape(part.tally.over, tables) for part in parts]
    for part, over in zip(parts, shapes, strict=True):
        if over is not None:
            _typed(part.tally, over, listed=part.people is None)
    listed = [part.tally for part in parts if part.people is None and part.whole is None]
    sums = iter(engine.certified(listed))
    found: list[tuple[Certified, ...]] = []
    for part, over in zip(parts, shapes, strict=True):
        if over is None:
            found.append(())
            continue
        blocks = next(sums) if part.people is None else engine.certified_groups(part.tally)
        own: tuple[Block | None, ...] = part.tally.blocks if part.people is None else (None, *part.tally.blocks)
        plan = partial(_planned, tally=part.tally, over=over, unit=tables.unit)
        found.append(tuple(plan(block) if one is None else one for one, block in zip(blocks, own, strict=True)))
    return found


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
