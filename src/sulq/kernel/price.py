"""What releases cost: the noise that hides certified moves, compared with what is debited.

The loss is worked out from the laws that are drawn and from the certificates alone. What a debit records of each draw
(its law, its sensitivity) must be true as well, since whoever verifies the ledger recomputes the loss from it.
Source: docs/theory/kernel.md; SR1, SR3, SR8, SR13, SR14.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, cast

from sulq.kernel.facts import Draw, Event, Unit, require
from sulq.kernel.laws import AboveLaw, BinomialLaw, GaussianLaw, LaplaceLaw, Law, Passed, PassedLaplaceLaw
from sulq.kernel.mechanisms import Cost, cost_of, priced
from sulq.kernel.moves import Certified, Moves, Norms
from sulq.kernel.request import Release
from sulq.kernel.scores import Score, candidates, span

NOTHING: Final = Fraction(0)
PURE: Final = (LaplaceLaw, PassedLaplaceLaw)
FARTHER: Final = "one person moves a sum farther than its noise hides"


@dataclass(frozen=True, slots=True)
class Least:
    """The least noise of one query under a SubLinear budget: its law, and its scale for a sum that moves by one.

    `units`: the scale is at least so many units of the grid. Of binomial noise `scale` is the number of coins.
    """

    kind: str
    scale: Fraction
    units: int


Query = Callable[[int], Least] | None  # under a SubLinear budget, for a sum that one person moves so far


def check(
    releases: Sequence[Release], found: Sequence[Sequence[Certified]], event: Event, unit: Unit, least: Query = None
) -> None:
    """Refuse releases whose certified loss is more than the debit; `found`: of each release its blocks."""
    require(least is not None or not event.queries, "queries, where the budget is no number of queries")
    many = event.queries and event.queries < sum(release.numbers for release in releases)
    require(not many, "more numbers than queries in the debit")
    costs: list[Cost] = []
    draws = iter(event.draws)
    for release, blocks in zip(releases, found, strict=True):
        mine = list(itertools.islice(draws, len(release.laws)))
        each = len(mine) == len(release.laws) == (1 if release.told else len(blocks))
        require(each, "a law for other than each block, or without a draw in the debit")
        same = all(_same(law, draw, unit) for law, draw in zip(release.laws, mine, strict=True))
        require(same, "noise of another law than its draw in the debit")
        costs.append(_loss(release, blocks, mine, unit, least if event.queries else None))
    require(next(draws, None) is None, "a draw in the debit without its noise")
    paid = _total(cost.rho for cost in costs) <= event.rho
    paid = paid and (event.epsilon is None or _total(cost.epsilon for cost in costs) <= event.epsilon)
    require(paid, "the certified loss is more than the debit")
    shown = sum(cost_of(draw).key_delta for draw in event.draws)
    require(shown <= event.key_delta, "the chance that a group tells of a person is more than the debit")


def _total(losses: Iterable[Fraction | None]) -> Fraction:
    """The sum of losses that all hold."""
    found = list(losses)
    require(None not in found, "noise without a loss of the debit's kind: no pure one, or one in queries alone")
    return sum((loss for loss in found if loss is not None), NOTHING)


def _same(law: Law, draw: Draw, unit: Unit) -> bool:
    """Whether a draw of the debit is noise of this law, for neighbours as the unit has them."""
    scale = Fraction(law.coins) if isinstance(law, BinomialLaw) else law.scale
    level = (law.threshold_scale or None) if isinstance(law, AboveLaw) else None
    threshold = law.threshold if isinstance(law, Passed) else None
    drawn = (draw.mechanism, draw.scale, draw.level, draw.threshold, draw.neighbors)
    return (law.kind, scale, level, threshold, unit.neighbors) == drawn


def _loss(release: Release, blocks: Sequence[Certified], draws: list[Draw], unit: Unit, least: Query) -> Cost:
    """What one release costs by certificate; nothing more where it is paid for in queries."""
    source = release.source
    require(least is None or not (release.told or source.groups), "other than noisy sums, which alone are queries")
    if source.whole is not None:
        return source.whole.cost(blocks[0].rows, draws[0], unit)
    if release.told:
        require(all(found.moves.low for found in blocks), "a choice or a threshold by sums whose signs are not known")
        return (_above if release.score is None else _choice)(release, blocks, draws[0], unit)
    if source.groups:  # the people first, whom a threshold hides who are alone (SR14)
        alone = blocks[0].rows * (2 if unit.neighbors == "replace_one" else 1)
        require(alone <= draws[0].alone, "one person may be alone in more groups than planned")
    prices: list[list[tuple[Fraction, Fraction]]] = []
    one = len({found.source for found in blocks}) == 1
    for found, law, draw, finer in zip(blocks, release.laws, draws, release.refine, strict=True):
        ways = _ways(blocks if one else [found], unit, apart=source.groups or source.cells != 1)
        moved = [_WAYS[way](found.moves) for way in ways]
        if source.groups and ways == ("single",):
            moved = _gathered(found, people=isinstance(law, Passed))
        norms = [norm.times(1 << finer) for norm in moved]
        if least is not None:
            _check_query(max(norm.coordinate for norm in norms), draw, finer, least)
            continue
        require(max(norm.l2_squared if draw.norm == "l2" else norm.l1 for norm in norms) <= draw.sensitivity, FARTHER)
        prices.append([_price(law, norm) for norm in norms])
    return Cost(NOTHING, NOTHING) if least is not None else _cost(prices, release.laws, one=one)


def _check_query(coordinate: int, draw: Draw, finer: int, least: Callable[[int], Least]) -> None:
    """Refuse less noise than a query has, on each number by itself (SR8)."""
    move = max(coordinate, 1 << finer)
    needed = least(move >> finer)
    coins = needed.kind == "binomial"
    enough = needed.scale if coins else max(move * needed.scale, Fraction(needed.units))
    noisy = draw.mechanism == needed.kind and draw.scale >= enough and not (coins and finer)
    require(noisy, "less noise than the budget puts on a query")
    require(move ** (2 if draw.norm == "l2" else 1) <= draw.sensitivity, FARTHER)


def _ways(blocks: Sequence[Certified], unit: Unit, *, apart: bool) -> tuple[str, ...]:
    """The ways in which one person can move some blocks, under the unit's relation.

    `single`: k rows appear or vanish. `pair`: k rows change into k others of the same cell. `apart`: k rows leave one
    cell and k enter another. Between these lie all mixtures of fewer rows: a norm of the move is convex in how many
    rows go out and come in, so its maximum is at these corners. Exactly one row is always there only under
    replace_one, where the row is the person and each row is in a cell.
    """
    if unit.neighbors != "replace_one":
        return ("single",)
    present = unit.column is None and all(found.present for found in blocks)
    return (*(() if present else ("single",)), "pair", *(("apart",) if apart else ()))


_WAYS: Final[dict[str, Callable[[Moves], Norms]]] = {
    "single": lambda moves: moves.single,
    "pair": lambda moves: moves.pair,
    "apart": lambda moves: Norms(2 * moves.single.l1, 2 * moves.single.l2_squared, moves.single.coordinate),
}


def _gathered(found: Certified, *, people: bool) -> list[Norms]:
    """How far a person's k rows move a block if all are of one group, and if each is of another.

    Privacy: of rows in m groups the squares add up to (k - m + 1)^2 + m - 1 at most, beside m moves of people: convex
    in m, so that the loss is largest at 1 or at k (docs/theory/open-keys.md).
    """
    single, rows = found.moves.single, max(found.rows, 1)
    if people:
        return [Norms(1, 1, 1), single]
    return [single, Norms(single.l1, single.l2_squared // rows, single.coordinate)]


def _price(law: Law, norm: Norms) -> tuple[Fraction, Fraction]:
    """What noise costs where sums move so far: a pure loss, or a zero-concentrated one."""
    if isinstance(law, PURE):
        return priced(law, Fraction(norm.l1)), NOTHING
    require(isinstance(law, (GaussianLaw, Passed)), f"{law.kind} noise on sums")
    return NOTHING, priced(law, Fraction(norm.l2_squared))


def _cost(prices: list[list[tuple[Fraction, Fraction]]], laws: tuple[Law, ...], *, one: bool) -> Cost:
    """The exact loss of the worst way, or of each block's own, whose rhos add up; `prices`: of each block, by way."""
    ways = [list(way) for way in (zip(*prices, strict=True) if one else [map(max, prices)])]
    pure = all(isinstance(law, PURE) for law in laws)
    lost = max(_total(epsilon for epsilon, _ in way) for way in ways)
    return Cost(lost if pure else None, max(_total(rho + epsilon**2 / 2 for epsilon, rho in way) for way in ways))


def _choice(release: Release, blocks: Sequence[Certified], draw: Draw, unit: Unit) -> Cost:
    """The exact loss of choices by their scores' spans.

    Privacy: k_g rows of choice g span at most k_g times what one row does; the k_g add up to
    k at most, a person's rows being shared by all choices, and their squares to k^2 (SR13) (docs/theory/choose.md).
    """
    require(draw.mechanism in ("permute_and_flip", "exponential", "metric"), f"{draw.mechanism} noise for a choice")
    score, cells = cast("Score", release.score), release.source.cells // release.answered
    candidates(score, [block.moves for block in blocks], cells, release.answered)
    one, power, most = len({found.source for found in blocks}) == 1, 1 if draw.norm == "l1" else 2, 0
    for several in [blocks] if one else [[block] for block in blocks]:  # of a sum it is at most the sum of spans
        others = [not any(each is mine for mine in several) for each in blocks]  # of which nothing moves meanwhile
        sums = [_still(each.moves) if other else each.moves for each, other in zip(blocks, others, strict=True)]
        found, rows = span(score, sums, cells), max(block.rows for block in several)
        spans = {"single": (found.single, 1), "pair": (found.pair, 1), "apart": (found.single, 2)}
        ways = [spans[way] for way in _ways(several, unit, apart=release.answered != 1)]
        most += max((rows * moved) ** (power if one else 1) * choices for moved, choices in ways)
    most = most if one else most**power
    require(most <= draw.sensitivity, "one person moves scores farther apart than the choice hides")
    return cost_of(replace(draw, sensitivity=Fraction(most)))


def _still(moves: Moves) -> Moves:
    return Moves(moves.single, moves.pair, (0,) * len(moves.low), (0,) * len(moves.low))


def _above(release: Release, blocks: Sequence[Certified], draw: Draw, unit: Unit) -> Cost:
    """The exact loss of a threshold: how far a person moves one sum, two of them apart, and all together.

    Privacy: a number moves one sum of its cell, so it spans no more than it moves; a vector's coordinates may rise and
    fall at once. Rows that leave one cell and enter another lower one sum and raise another (docs/theory/above.md).
    """
    require(draw.mechanism == "above", f"{draw.mechanism} noise for a threshold")
    (block,) = blocks
    single, pair = block.moves.single, block.moves.pair
    rise, fall = (block.rows * max((0, *ends)) for ends in (block.moves.high, [-low for low in block.moves.low]))
    number = len(block.moves.low) == 1
    spans = {
        "single": single.coordinate if number else rise + fall,
        "pair": pair.coordinate if number else 2 * pair.coordinate,
        "apart": 2 * single.coordinate,
    }
    costs = []
    for way in _ways(blocks, unit, apart=release.source.cells != 1):
        norm = _WAYS[way](block.moves)
        moved, most = (norm.l1, 0) if draw.level is None else (spans[way], max(norm.coordinate, 1))
        costs.append(cost_of(replace(draw, sensitivity=Fraction(moved), most=Fraction(most))))
    worst = max(costs, key=lambda cost: _total([cost.epsilon]))
    paid = _total([worst.epsilon]) <= _total([cost_of(draw).epsilon])
    require(paid, "one person moves sums farther than the threshold's noise hides")
    return worst
