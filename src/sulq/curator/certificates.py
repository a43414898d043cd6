"""The kernel's certificates against the price of a plan: what is not paid for is not run.

Each block's certified move is compared with the sensitivity that the plan's draw records, and the noise, the choice or
the threshold of a part whose blocks are all certified is priced anew with the certified moves. What no statement sums
(folds, statistics of the whole table) and what another engine reads is not certified yet, and rests on the plan.

Source: docs/theory/kernel.md; SR1, SR3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Protocol, runtime_checkable

from sulq.kernel.facts import Refused
from sulq.kernel.mechanisms import Cost, cost_of, priced
from sulq.kernel.norms import Certified, Norms
from sulq.kernel.score import Score
from sulq.kernel.scoring import candidates, span
from sulq.terms.engine import Engine, Tally
from sulq.terms.facts import Tables
from sulq.terms.law import AboveLaw, BinomialLaw, GaussianLaw, LaplaceLaw, Law, PassedLaw
from sulq.terms.plan import Part
from sulq.terms.privacy import Draw, Event, Unit

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
    if len(event.draws) != sum(len(_noise(part)) for part in parts):
        raise Refused("noise without a draw in the debit")
    costs: list[Cost | None] = []
    draws = iter(event.draws)
    for part, blocks in zip(parts, found, strict=True):
        mine = [next(draws) for _ in _noise(part)]
        if not all(_same(law, draw) for law, draw in zip(_noise(part), mine, strict=True)):
            raise Refused("noise of another law than its draw in the debit")
        costs.append(_part(part, blocks, mine, engine.tables.unit, queries=event.queries > 0))
    if event.queries and event.queries < sum(part.tally.cells * part.tally.width for part in parts):
        raise Refused("more numbers than queries in the debit")
    known = [cost for cost in costs if cost is not None]  # of the others the plan's own price stands
    if sum(cost.rho or 0 for cost in known) > event.rho and not event.queries:
        raise Refused("the certified loss is more than the debit")
    if event.epsilon is not None and sum(_pure(cost) for cost in known) > event.epsilon:
        raise Refused("the certified loss is more than the debit")
    if sum(cost_of(draw).key_delta for draw in event.draws) > event.key_delta:
        raise Refused("the chance that a group tells of a person is more than the debit")


def _noise(part: Part) -> tuple[Law, ...]:
    """The laws of a part's draws, in their order."""
    return part.laws if part.people is None else (part.people, *part.laws)


def _same(law: Law, draw: Draw) -> bool:
    """Whether a draw of the debit is noise of this law."""
    scale = Fraction(law.coins) if isinstance(law, BinomialLaw) else law.scale
    level = (law.threshold_scale or None) if isinstance(law, AboveLaw) else None
    threshold = law.threshold if isinstance(law, PassedLaw) else None
    return (law.kind, scale, level, threshold) == (draw.mechanism, draw.scale, draw.level, draw.threshold)


def _pure(cost: Cost) -> Fraction:
    if cost.epsilon is None:
        raise Refused("noise that has no pure loss for a pure debit")
    return cost.epsilon


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
    part: Part, blocks: tuple[Certified | None, ...], draws: list[Draw], unit: Unit, *, queries: bool
) -> Cost | None:
    """What a part's noise costs by certificate; None where a block of it has none."""
    known = [found for found in blocks if found is not None]
    if part.score is not None or part.thresholds is not None:
        if part.whole is not None or len(known) < len(blocks):
            return None
        return _choice(part, part.score, known, draws[0], unit) if part.score else _above(part, known, draws[0], unit)
    if part.whole is not None:
        return None
    if part.people is not None and blocks[0] is not None:
        alone = blocks[0].rows * (2 if unit.neighbors == "replace_one" else 1)
        if alone > draws[0].alone:
            raise Refused("one person may be alone in more groups than planned")
    apart = part.people is not None or part.cells != 1
    moves = [None if found is None else _norms(found, _ways([found], unit, apart=apart)) for found in blocks]
    bits = part.refine if part.people is None else (0, *part.refine)
    for ways, draw, finer in zip(moves, draws, bits, strict=True):
        if ways is not None:
            _covered(ways, draw, finer, queries=queries)
    certain = [ways for ways in moves if ways is not None]
    return None if queries or len(certain) < len(moves) else _cost(certain, draws)


def _ways(blocks: Sequence[Certified], unit: Unit, *, apart: bool) -> tuple[str, ...]:
    """The ways in which one person can move some blocks (curator/plan/contribution.py)."""
    if unit.neighbors != "replace_one":
        return ("single",)
    present = unit.column is None and all(found.present for found in blocks)
    return (*(() if present else ("single",)), "pair", *(("apart",) if apart else ()))


def _norms(found: Certified, ways: tuple[str, ...]) -> Moves:
    """How far one person moves a block in each way; `apart`, rows leave one cell and enter another."""
    single = found.moves.single
    every = {
        "single": single,
        "pair": found.moves.pair,
        "apart": Norms(2 * single.l1, 2 * single.l2_squared, single.coordinate),
    }
    return {way: every[way] for way in ways}


def _covered(ways: Moves, draw: Draw, finer: int, *, queries: bool) -> None:
    """Refuse a block that moves farther than its draw records; under SubLinear noise is for one coordinate (SR8)."""
    square = 2 if draw.norm == "l2" else 1
    if queries:
        most = max((norm.coordinate << finer) ** square for norm in ways.values())
    else:
        most = max(norm.l2_squared if square == 2 else norm.l1 for norm in ways.values())
    if most > draw.sensitivity:
        raise Refused("one person moves a sum farther than its noise hides")


def _cost(moves: list[Moves], draws: list[Draw]) -> Cost:
    """The exact loss of the worst way: pure where all noise is, and zero-concentrated."""
    pure = all(draw.mechanism == "laplace" for draw in draws)
    epsilon = rho = Fraction(0)
    for way in sorted({way for ways in moves for way in ways}):
        lost = curved = Fraction(0)
        for ways, draw in zip(moves, draws, strict=True):
            norm = ways.get(way, Norms(0, 0, 0))
            if draw.mechanism == "laplace":
                lost += priced(LaplaceLaw(draw.scale), Fraction(norm.l1))
            else:
                curved += priced(GaussianLaw(draw.scale), Fraction(norm.l2_squared))
        epsilon, rho = max(epsilon, lost), max(rho, curved + lost**2 / 2)
    return Cost(epsilon if pure else None, rho)


def _choice(part: Part, score: Score, blocks: Sequence[Certified], draw: Draw, unit: Unit) -> Cost:
    """The exact loss of choices by their scores' spans.

    Privacy: k_g rows of choice g span at most k_g times what one row does; the k_g add up to
    k at most, a person's rows being shared by all choices, and their squares to k^2 (SR13).
    Source: docs/theory/choose.md.
    """
    sums, cells = [block.moves for block in blocks], part.tally.cells // part.cells
    candidates(score, sums, cells, part.cells)
    found = span(score, sums, cells)
    rows = max(block.rows for block in blocks)
    spans = {"single": (found.single, 1), "pair": (found.pair, 1), "apart": (found.single, 2)}
    ways = [spans[way] for way in _ways(blocks, unit, apart=part.cells != 1)]
    if draw.norm == "l1":
        most = max(rows * moved * choices for moved, choices in ways)
    else:
        most = max((rows * moved) ** 2 * choices for moved, choices in ways)
    if most > draw.sensitivity:
        raise Refused("one person moves scores farther apart than the choice hides")
    return cost_of(replace(draw, sensitivity=Fraction(most)))


def _above(part: Part, blocks: Sequence[Certified], draw: Draw, unit: Unit) -> Cost:
    """The exact loss of a threshold: how far a person moves one sum, two of them apart, and all together.

    Privacy: a number moves one sum of its cell, so it spans no more than it moves; a vector's coordinates may rise and
    fall at once. Rows that leave one cell and enter another lower one sum and raise another.
    Source: docs/theory/above.md.
    """
    (block,) = blocks
    single, pair, rows = block.moves.single, block.moves.pair, block.rows
    rise, fall = (rows * max((0, *ends)) for ends in (block.moves.high, [-low for low in block.moves.low]))
    one = len(block.moves.low) == 1
    spans = {
        "single": (single.l1, single.coordinate, single.coordinate if one else rise + fall),
        "pair": (pair.l1, pair.coordinate, pair.coordinate if one else 2 * pair.coordinate),
        "apart": (2 * single.l1, single.coordinate, 2 * single.coordinate),
    }
    ways = [spans[way] for way in _ways(blocks, unit, apart=part.tally.cells != 1)]
    if draw.level is None:
        costs = [cost_of(replace(draw, sensitivity=Fraction(total))) for total, _, _ in ways]
    else:
        costs = [
            cost_of(replace(draw, sensitivity=Fraction(apart), most=Fraction(max(most, 1)))) for _, most, apart in ways
        ]
    worst = max(costs, key=lambda cost: cost.epsilon or 0)
    if _pure(worst) > _pure(cost_of(draw)):
        raise Refused("one person moves sums farther than the threshold's noise hides")
    return worst
