"""The kernel's certificates against the price of a plan: what is not paid for is not run.

Each block's certified move is compared with the sensitivity that the plan's draw records, and the noise of a part whose
blocks are all certified is priced anew with the certified moves. What no statement sums (folds, statistics of the whole
table) and what another engine reads is not certified yet, and rests on the plan.

Source: docs/theory/kernel.md; SR1, SR3.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol, runtime_checkable

from sulq.curator.statistics.sums import Extent, extent
from sulq.kernel.facts import Refused
from sulq.kernel.norms import Certified, Norms
from sulq.mechanisms import priced
from sulq.terms.engine import Engine, Tally
from sulq.terms.facts import Tables
from sulq.terms.law import GaussianLaw, LaplaceLaw
from sulq.terms.plan import Part
from sulq.terms.privacy import Draw, Event, Unit
from sulq.terms.shape import shape

Moves = dict[str, Norms]


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


def check(parts: Sequence[Part], event: Event, engine: Engine) -> None:
    """Refuse a plan whose statements one person moves farther than was paid for; reads no row.

    Raises:
        Refused: the kernel does not certify it.
    """
    if not isinstance(engine, Certifying):
        return
    found = _certified(parts, engine)
    spent = [Fraction(0), Fraction(0)]
    whole = True
    draws = iter(event.draws)
    for part, blocks in zip(parts, found, strict=True):
        mine = [next(draws) for _ in range(len(part.laws) + (part.people is not None))]
        cost = _part(part, blocks, mine, engine.tables, queries=event.queries > 0)
        whole = whole and cost is not None
        spent = [a + b for a, b in zip(spent, cost or spent, strict=True)]
    paid = event.rho if event.epsilon is None else event.epsilon
    if whole and spent[event.epsilon is None] > paid:
        raise Refused("the certified loss is more than the debit")


def _certified(parts: Sequence[Part], engine: Certifying) -> list[tuple[Certified | None, ...]]:
    listed = [part.tally for part in parts if part.people is None and part.whole is None]
    sums = iter(engine.certified(listed))
    found: list[tuple[Certified | None, ...]] = []
    for part in parts:
        if part.whole is not None:
            found.append(())
        else:
            found.append(next(sums) if part.people is None else engine.certified_groups(part.tally))
    return found


def _part(
    part: Part, blocks: tuple[Certified | None, ...], draws: list[Draw], tables: Tables, *, queries: bool
) -> tuple[Fraction, Fraction] | None:
    """What a part's noise costs by certificate, as epsilon and as rho; None where a block of it has none."""
    if part.whole is not None:
        return None
    over = shape(part.tally.over, tables)
    for block, found in zip(part.tally.blocks, blocks[part.people is not None :], strict=True):
        if found is not None and not within(found, extent(block, over.schema), max(over.rows, 1)):
            raise Refused("one person moves a sum farther than planned")
    if part.score is not None or part.thresholds is not None:
        return None
    known = [found for found in blocks if found is not None]
    moves = [_ways(found, tables.unit, part) for found in known]
    if len(known) == len(blocks):
        bits = part.refine if part.people is None else (0, *part.refine)
        for ways, draw, finer in zip(moves, draws, bits, strict=True):
            _covered(ways, draw, finer, queries=queries)
        return None if queries else _cost(moves, draws)
    return None


def within(found: Certified, planned: Extent, rows: int) -> bool:
    """Whether the certified move is within the plan's, in every norm."""
    single, pair = found.moves.single, found.moves.pair
    return (
        found.rows <= rows
        and single.l1 <= planned.single_l1 * rows
        and single.l2_squared <= planned.single_l2_squared * rows**2
        and single.coordinate <= planned.single_coordinate * rows
        and pair.l1 <= max(planned.pair_l1, planned.single_l1) * rows
        and pair.l2_squared <= max(planned.pair_l2_squared, planned.single_l2_squared) * rows**2
    )


def _ways(found: Certified, unit: Unit, part: Part) -> Moves:
    """The ways in which one person can move a block (curator/plan/contribution.py)."""
    single, pair = found.moves.single, found.moves.pair
    if unit.neighbors != "replace_one":
        return {"single": single}
    ways = {"pair": pair}
    if not (found.present and unit.column is None):
        ways["single"] = single
    if part.people is not None or part.cells != 1:
        ways["apart"] = Norms(2 * single.l1, 2 * single.l2_squared, single.coordinate)
    return ways


def _covered(ways: Moves, draw: Draw, finer: int, *, queries: bool) -> None:
    """Refuse a block that moves farther than its draw records; under SubLinear noise is for one coordinate (SR8)."""
    square = 2 if draw.norm == "l2" else 1
    if queries:
        most = max((norm.coordinate << finer) ** square for norm in ways.values())
    else:
        most = max(norm.l2_squared if square == 2 else norm.l1 for norm in ways.values())
    if most > draw.sensitivity:
        raise Refused("one person moves a sum farther than its noise hides")


def _cost(moves: list[Moves], draws: list[Draw]) -> tuple[Fraction, Fraction]:
    """The exact loss of the worst way, in the currency of the noise."""
    worst = [Fraction(0), Fraction(0)]
    for way in sorted({way for ways in moves for way in ways}):
        pure = rho = Fraction(0)
        for ways, draw in zip(moves, draws, strict=True):
            norm = ways.get(way, Norms(0, 0, 0))
            if draw.mechanism == "laplace":
                pure += priced(LaplaceLaw(draw.scale), Fraction(norm.l1))
            else:
                rho += priced(GaussianLaw(draw.scale), Fraction(norm.l2_squared))
        worst = [max(worst[0], pure), max(worst[1], rho + pure**2 / 2)]
    return worst[0], worst[1]
