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

from sulq.kernel.facts import Draw, Event, Refused, Unit
from sulq.kernel.laws import AboveLaw, BinomialLaw, GaussianLaw, LaplaceLaw, Law, PassedLaw
from sulq.kernel.mechanisms import Cost, cost_of, priced
from sulq.kernel.moves import Certified, Norms
from sulq.kernel.moves import Moves as Bounds
from sulq.kernel.scores import Score, candidates, span

Moves = dict[str, Norms]


@dataclass(frozen=True, slots=True)
class Release:
    """What is released of some blocks of sums: each with noise, or a choice or a threshold by all of them.

    `laws`: of each block; of the number of people first, where groups are found in the data; of a choice or a threshold
    one. `refine`: by how many bits each block's grid is finer than its sums. `cells`: how many are summed, 0 where
    groups are found in the data; `answered`: how many are told apart in the answer; `width`: numbers a cell.
    `whole`: what a draw of a statistic of the whole table costs where a person alters so many rows, by the annex.
    """

    laws: tuple[Law, ...]
    refine: tuple[int, ...]
    cells: int
    answered: int
    width: int
    score: Score | None = None
    above: bool = False
    people: bool = False
    whole: Callable[[int, Draw, Unit], Cost] | None = None

    def __post_init__(self) -> None:
        if (self.score is not None) + self.above + self.people + (self.whole is not None) > 1:
            raise Refused("a release of several kinds")

    @property
    def told(self) -> bool:
        """Whether one law decides what is told of all blocks."""
        return self.score is not None or self.above or self.whole is not None


@dataclass(frozen=True, slots=True)
class Least:
    """The least noise of one query under a SubLinear budget: its law, and its scale for a sum that moves by one.

    `units`: the scale is at least so many units of the grid. Of binomial noise `scale` is the number of coins.
    """

    kind: str
    scale: Fraction
    units: int


def check(
    releases: Sequence[Release],
    found: Sequence[Sequence[Certified]],
    event: Event,
    unit: Unit,
    least: Callable[[int], Least] | None = None,
) -> None:
    """Refuse releases whose certified loss is more than the debit; `found`: of each release its blocks.

    `least`: under a SubLinear budget, the noise of a query for a sum that one person moves so far.

    Raises:
        Refused: the debit does not cover the releases.
    """
    if event.queries and least is None:
        raise Refused("queries, where the budget is no number of queries")
    if event.queries and event.queries < sum(release.cells * release.width for release in releases):
        raise Refused("more numbers than queries in the debit")
    costs: list[Cost] = []
    draws = iter(event.draws)
    for release, blocks in zip(releases, found, strict=True):
        mine = list(itertools.islice(draws, len(release.laws)))
        if not len(mine) == len(release.laws) == (1 if release.told else len(blocks)):
            raise Refused("a law for other than each block, or without a draw in the debit")
        if not all(_same(law, draw, unit) for law, draw in zip(release.laws, mine, strict=True)):
            raise Refused("noise of another law than its draw in the debit")
        costs.append(_loss(release, blocks, mine, unit, least if event.queries else None))
    if next(draws, None) is not None:
        raise Refused("a draw in the debit without its noise")
    if _total(cost.rho for cost in costs) > event.rho:
        raise Refused("the certified loss is more than the debit")
    if event.epsilon is not None and _total(cost.epsilon for cost in costs) > event.epsilon:
        raise Refused("the certified loss is more than the debit")
    if sum(cost_of(draw).key_delta for draw in event.draws) > event.key_delta:
        raise Refused("the chance that a group tells of a person is more than the debit")


def _total(losses: Iterable[Fraction | None]) -> Fraction:
    """The sum of losses that all hold."""
    total = Fraction(0)
    for loss in losses:
        if loss is None:
            raise Refused("noise without a loss of the debit's kind: no pure one, or one in queries alone")
        total += loss
    return total


def _same(law: Law, draw: Draw, unit: Unit) -> bool:
    """Whether a draw of the debit is noise of this law, for neighbours as the unit has them."""
    scale = Fraction(law.coins) if isinstance(law, BinomialLaw) else law.scale
    level = (law.threshold_scale or None) if isinstance(law, AboveLaw) else None
    threshold = law.threshold if isinstance(law, PassedLaw) else None
    drawn = (draw.mechanism, draw.scale, draw.level, draw.threshold, draw.neighbors)
    return (law.kind, scale, level, threshold, unit.neighbors) == drawn


def _loss(
    release: Release,
    blocks: Sequence[Certified],
    draws: list[Draw],
    unit: Unit,
    least: Callable[[int], Least] | None,
) -> Cost:
    """What one release costs by certificate; nothing more where it is paid for in queries."""
    if least is not None and (release.told or release.people):
        raise Refused("other than noisy sums, which alone are queries")
    if release.whole is not None:
        return release.whole(blocks[0].rows, draws[0], unit)
    if release.score is not None or release.above:
        if not all(found.moves.low for found in blocks):
            raise Refused("a choice or a threshold by sums whose signs are not known")
        if release.score is not None:
            return _choice(release, release.score, blocks, draws[0], unit)
        return _above(release, blocks, draws[0], unit)
    if release.people:
        _opened(blocks[0], draws, unit)
    apart = release.people or release.answered != 1
    bits = (0,) * len(blocks) if release.people else release.refine
    moves = [
        _norms(found, _ways([found], unit, apart=apart), 1 << finer) for found, finer in zip(blocks, bits, strict=True)
    ]
    for ways, draw, finer in zip(moves, draws, bits, strict=True):
        if least is None:
            _covered(ways, draw)
        else:
            _hidden(max(norm.coordinate for norm in ways.values()), draw, finer, least)
    if len({found.source for found in blocks}) > 1:  # other rows: each block may be moved in its own worst way
        moves = [{"each": _worst(ways)} for ways in moves]
    return _cost(moves, release.laws) if least is None else Cost(Fraction(0), Fraction(0))


def _opened(people: Certified, draws: list[Draw], unit: Unit) -> None:
    """Refuse groups found in the data that a person alone could show, or whose noise is not theirs (SR14)."""
    if draws[0].threshold is None or any(draw.mechanism not in ("passed", "gaussian") for draw in draws):
        raise Refused("groups found in the data without a threshold, or under other than Gaussian noise")
    if people.rows * (2 if unit.neighbors == "replace_one" else 1) > draws[0].alone:
        raise Refused("one person may be alone in more groups than planned")


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


def _norms(found: Certified, ways: tuple[str, ...], units: int) -> Moves:
    """How far one person moves a block in each way, of so many finer units; `apart`: from one cell to another."""
    single = found.moves.single.times(units)
    every = {
        "single": single,
        "pair": found.moves.pair.times(units),
        "apart": Norms(2 * single.l1, 2 * single.l2_squared, single.coordinate),
    }
    return {way: every[way] for way in ways}


def _worst(ways: Moves) -> Norms:
    return Norms(*(max(getattr(norm, name) for norm in ways.values()) for name in ("l1", "l2_squared", "coordinate")))


def _covered(ways: Moves, draw: Draw) -> None:
    """Refuse a block that moves farther than its draw records."""
    most = max(norm.l2_squared if draw.norm == "l2" else norm.l1 for norm in ways.values())
    if most > draw.sensitivity:
        raise Refused("one person moves a sum farther than its noise hides")


def _hidden(coordinate: int, draw: Draw, finer: int, least: Callable[[int], Least]) -> None:
    """Refuse less noise than a query has, on each number by itself (SR8)."""
    move = max(coordinate, 1 << finer)
    needed = least(move >> finer)
    enough = needed.scale if needed.kind == "binomial" else max(move * needed.scale, Fraction(needed.units))
    if draw.mechanism != needed.kind or draw.scale < enough or (needed.kind == "binomial" and finer):
        raise Refused("less noise than the budget puts on a query")
    if move ** (2 if draw.norm == "l2" else 1) > draw.sensitivity:
        raise Refused("one person moves a sum farther than its noise hides")


def _cost(moves: list[Moves], laws: tuple[Law, ...]) -> Cost:
    """The exact loss of the worst way: pure where all noise is, and zero-concentrated."""
    epsilon = rho = Fraction(0)
    for way in sorted({way for ways in moves for way in ways}):
        lost = curved = Fraction(0)
        for ways, law in zip(moves, laws, strict=True):
            norm = ways.get(way, Norms(0, 0, 0))
            if isinstance(law, LaplaceLaw):
                lost += priced(law, Fraction(norm.l1))
            elif isinstance(law, (GaussianLaw, PassedLaw)):
                curved += priced(law, Fraction(norm.l2_squared))
            else:
                raise Refused(f"{law.kind} noise on sums")
        epsilon, rho = max(epsilon, lost), max(rho, curved + lost**2 / 2)
    return Cost(epsilon if all(isinstance(law, LaplaceLaw) for law in laws) else None, rho)


def _choice(release: Release, score: Score, blocks: Sequence[Certified], draw: Draw, unit: Unit) -> Cost:
    """The exact loss of choices by their scores' spans.

    Privacy: k_g rows of choice g span at most k_g times what one row does; the k_g add up to
    k at most, a person's rows being shared by all choices, and their squares to k^2 (SR13).
    Source: docs/theory/choose.md.
    """
    if draw.mechanism not in ("permute_and_flip", "exponential"):
        raise Refused(f"{draw.mechanism} noise for a choice")
    cells = release.cells // release.answered
    candidates(score, [block.moves for block in blocks], cells, release.answered)
    together = len({block.source for block in blocks}) == 1
    most = 0
    for several in [blocks] if together else [[block] for block in blocks]:  # of a sum it is at most the sum of spans
        sums = [each.moves if any(each is one for one in several) else _nothing(each.moves) for each in blocks]
        found, rows = span(score, sums, cells), max(block.rows for block in several)
        spans = {"single": (found.single, 1), "pair": (found.pair, 1), "apart": (found.single, 2)}
        ways = [spans[way] for way in _ways(several, unit, apart=release.answered != 1)]
        square = draw.norm != "l1" and together
        most += max((rows * moved) ** (2 if square else 1) * choices for moved, choices in ways)
    most = most**2 if draw.norm != "l1" and not together else most
    if most > draw.sensitivity:
        raise Refused("one person moves scores farther apart than the choice hides")
    return cost_of(replace(draw, sensitivity=Fraction(most)))


def _nothing(moves: Bounds) -> Bounds:
    """A block of which nothing moves."""
    none = (0,) * len(moves.low)
    return replace(moves, low=none, high=none, vectors=None)


def _above(release: Release, blocks: Sequence[Certified], draw: Draw, unit: Unit) -> Cost:
    """The exact loss of a threshold: how far a person moves one sum, two of them apart, and all together.

    Privacy: a number moves one sum of its cell, so it spans no more than it moves; a vector's coordinates may rise and
    fall at once. Rows that leave one cell and enter another lower one sum and raise another.
    Source: docs/theory/above.md.
    """
    if draw.mechanism != "above":
        raise Refused(f"{draw.mechanism} noise for a threshold")
    (block,) = blocks
    single, pair, rows = block.moves.single, block.moves.pair, block.rows
    rise, fall = (rows * max((0, *ends)) for ends in (block.moves.high, [-low for low in block.moves.low]))
    one = len(block.moves.low) == 1
    spans = {
        "single": (single.l1, single.coordinate, single.coordinate if one else rise + fall),
        "pair": (pair.l1, pair.coordinate, pair.coordinate if one else 2 * pair.coordinate),
        "apart": (2 * single.l1, single.coordinate, 2 * single.coordinate),
    }
    ways = [spans[way] for way in _ways(blocks, unit, apart=release.cells != 1)]
    moves = [(total, 0) if draw.level is None else (apart, max(most, 1)) for total, most, apart in ways]
    costs = [cost_of(replace(draw, sensitivity=Fraction(moved), most=Fraction(most))) for moved, most in moves]
    worst = max(costs, key=lambda cost: _total([cost.epsilon]))
    if _total([worst.epsilon]) > _total([cost_of(draw).epsilon]):
        raise Refused("one person moves sums farther than the threshold's noise hides")
    return worst
