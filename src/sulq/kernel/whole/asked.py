"""What may be asked of the whole table: a closed list; how far one person moves it, what that costs, its exact value.

Privacy: a sensitivity follows from the statistic's public numbers, from the rows that one person alters by certificate
and from the unit's relation; neither a plan nor a debit states one (SR5). Of a `Declared` one it is the owner's word.
Source: docs/theory/holistic.md, docs/theory/graphs.md, docs/theory/metric.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, get_args

import numpy as np

from sulq.kernel.facts import Draw, Refused, Unit
from sulq.kernel.mechanisms import Cost, cost_of
from sulq.kernel.private import Integers
from sulq.kernel.whole.figure import Move, whole
from sulq.kernel.whole.functions import BLANK, Aggregated, Declared
from sulq.kernel.whole.graphs import Degrees, Edges, MinCut, SpanningTree, ToBoundedDegree, ToConnected, Triangles
from sulq.kernel.whole.metric import Candidates, Cube, Nearest, Points, Space
from sulq.kernel.whole.rows import CellCounts, HeavyPersons, Occurring, ToSorted, ToUnique

MAX_ROWS: Final = 10**6  # of one person
OfGraphs = MinCut | SpanningTree | Triangles | Degrees | Edges | ToConnected | ToBoundedDegree
VERTICES: Final[dict[type, int]] = {Edges: 1448, MinCut: 5000, ToBoundedDegree: 40, Triangles: 8192}  # others: 2^20
OfRows = ToUnique | ToSorted | CellCounts | Occurring | HeavyPersons
Statistic = OfGraphs | OfRows | Aggregated | Declared
STATISTICS: Final = get_args(Statistic)  # what is none of these, exactly, is refused


@dataclass(frozen=True, slots=True)
class Asked:
    """A statistic, and the space that its answer is a point of; without one it is as many noisy numbers."""

    statistic: Statistic
    space: Space | None = None

    def __post_init__(self) -> None:
        if type(self.statistic) not in STATISTICS or type(self.space) not in (type(None), *get_args(Space)):
            raise Refused("a statistic that is none, or a space")
        graph = getattr(self.statistic, "graph", None)
        if graph is not None and graph.vertices > VERTICES.get(type(self.statistic), 2**20):
            raise Refused("a graph of more vertices than are held")
        if isinstance(self.space, Cube) and type(self.statistic) not in (Edges, Occurring):
            raise Refused("a cube for other than bits")
        if isinstance(self.space, Points) and self.space.width != self.width:
            raise Refused("points of another width than the statistic")
        if isinstance(self.space, Candidates) and len(self.space.weights) != self.width:
            raise Refused("other candidates than the statistic has scores")

    @property
    def width(self) -> int:
        """How many numbers the statistic is; one where it is a distance."""
        return 1 if isinstance(self.space, Nearest) else self.statistic.figure(1).width

    def cost(self, altered: int, draw: Draw, unit: Unit) -> Cost:
        """What a draw costs where one person alters so many rows; Refused where it records less than they move.

        Privacy: noise on numbers hides their move in its own norm. Flipped bits hide how many differ. A point or a
        candidate hides D = 2S, S how far a distance or a score moves, or S where the weights of all points add up to
        the same; the exponential law hides log-odds within an interval of 2S (docs/theory/metric.md).
        """
        move = sensitivity(self.statistic, altered, unit)
        moved = {"laplace": move.l1, "gaussian": move.l2_squared}
        match self.space:
            case Nearest():
                moved["gaussian"] = move.l1**2
            case Cube():
                moved = {"bits": move.bits}
            case Points():
                apart = self.space.moved(move)
                moved = {"metric": apart if self.space.even else 2 * apart, "exponential": (2 * apart) ** 2}
            case Candidates(weights):
                moved = {"metric": 2 * move.most, "exponential": (2 * move.most) ** 2}
                if max(weights) == 1:  # which has no base measure
                    moved["permute_and_flip"] = 2 * move.most
        if draw.mechanism not in moved:
            raise Refused(f"{draw.mechanism} noise for a statistic that it does not hide")
        if moved[draw.mechanism] > draw.sensitivity:
            raise Refused("one person moves a statistic farther than its noise hides")
        return cost_of(replace(draw, sensitivity=Fraction(moved[draw.mechanism])))


def sensitivity(statistic: Statistic, altered: int, unit: Unit) -> Move:
    """How far one person, who alters so many rows, moves a statistic, under the unit's relation."""
    whole(altered, 1, MAX_ROWS)
    figure = statistic.figure(altered)
    return figure.swapped if unit.neighbors == "replace_one" else figure.alone


def exact(asked: Asked, cells: Integers, functions: Mapping[str, Any]) -> Integers:
    """What the mechanism is given, a row of whole numbers: the statistic, its scores, or minus points' distances.

    `cells`: of each row the numbers that are read, `BLANK` where one is missing. Such rows count for a `Declared`
    function alone, which sees every row in its place.
    """
    statistic = asked.statistic
    if cells.dtype != np.int64 or cells.ndim != 2 or cells.shape[1] != statistic.columns:
        raise TypeError
    if not isinstance(statistic, Declared):
        cells = cells[(cells != BLANK).all(axis=1)]
    if isinstance(statistic, (Aggregated, Declared)):
        found = statistic.exact(cells, functions[statistic.function])
    else:
        found = statistic.exact(cells)
    if isinstance(asked.space, Nearest):
        points = functions[asked.space.set]
        if points.shape[1:] != found.shape:  # or one number would be compared with each of a point's
            raise TypeError
        found = np.abs(points - found).sum(axis=1).min(keepdims=True)
    if found.shape != (asked.width,) or found.dtype != np.int64:
        raise TypeError
    if isinstance(asked.space, Candidates):
        found = np.repeat(found, asked.space.weights)
    return -asked.space.distances(found)[None] if isinstance(asked.space, Points) else found[None]
