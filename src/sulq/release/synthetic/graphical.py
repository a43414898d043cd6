"""A model that is a graph: marginals joined by few common columns [MSM19].

A fit begins where the last one ended, so a round's is quick: hardly anything is new. docs/decisions/0040 compares it
with mbi, the library of the paper's authors: the same fit, in a thirtieth of the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from sulq.language.kinds import Floats, Integers
from sulq.release.synthetic.drawing import given
from sulq.release.synthetic.forest import Forest, megabytes
from sulq.release.synthetic.junction import Junction
from sulq.release.synthetic.measurement import MeasuredMarginal
from sulq.release.tables.interactions import Places

GROWTH: Final = 1.5  # of the rate after a step that helped; one that did not halves it
SMALL: Final = 1e-4  # part of the loss that a step must gain
PATIENCE: Final = 5  # steps in a row that gain less, until a fit ends


class GraphModel:
    """A Markov random field over the declared columns that explains the measured marginals.

    Its potentials are on the measured marginals: one step of mirror descent takes from each what the model has
    too much of there, in units of its noise; the rate halves where the fit would get worse.
    """

    def __init__(self, sizes: tuple[int, ...]) -> None:
        self._sizes = sizes
        self._potentials: dict[Places, Floats] = {}
        self._rate = 0.0
        self._forest = Forest.of((), sizes)
        self._tree = Junction.of({}, self._forest.cliques, (), sizes)
        self.total = 1.0

    @property
    def cliques(self) -> tuple[Places, ...]:
        """The marginals that it explains."""
        return tuple(self._potentials)

    def megabytes(self, more: Iterable[Places] = ()) -> float:
        """The size of the junction tree's tables, with some marginals more."""
        return megabytes((*self.cliques, *more), self._sizes)

    def fit(self, measured: Sequence[MeasuredMarginal], total: float, steps: int) -> None:
        """Learn from all measurements, from where the last fit ended."""
        merged = self._prepare(measured, total)
        strength = sum(each.error**-2 for each in merged)
        rate = max(self._rate, 1.0 / (strength * self.total))
        tree = self._grown(self._potentials)
        loss, found, slopes = self._judged(tree, merged)
        stalled = 0
        for _ in range(steps):
            potentials = {own: values - rate * slopes[own] for own, values in self._potentials.items()}
            ahead = self._grown(potentials)
            new, then, turned = self._judged(ahead, merged)
            gain = sum(float(np.vdot(slopes[own], found[own] - then[own])) for own in slopes)
            if loss - new < 0.25 * gain:
                rate /= 2.0
                continue
            stalled = 0 if loss - new > SMALL * max(new, 1.0) else stalled + 1
            self._potentials, tree, loss, found, slopes = potentials, ahead, new, then, turned
            rate *= GROWTH
            if stalled >= PATIENCE:
                break
        self._tree, self._rate = tree, rate

    def _prepare(self, measured: Sequence[MeasuredMarginal], total: float) -> list[MeasuredMarginal]:
        """Make room for what is new; all measurements, those of one marginal as one."""
        self.total = max(total, 1.0)
        merged = _merged(measured)
        self._potentials = {
            each.places: self._potentials.get(each.places, np.zeros(each.values.shape)) for each in merged
        }
        self._forest = Forest.of(self.cliques, self._sizes)
        return merged

    def _grown(self, potentials: dict[Places, Floats]) -> Junction:
        return Junction.of(potentials, self._forest.cliques, self._forest.edges, self._sizes)

    def _judged(
        self, tree: Junction, merged: Sequence[MeasuredMarginal]
    ) -> tuple[float, dict[Places, Floats], dict[Places, Floats]]:
        """Half the squared gaps in units of their noise, the marginals, and how the first changes with the second."""
        found = {own: values * self.total for own, values in tree.marginals(each.places for each in merged).items()}
        gaps = {each.places: (found[each.places] - each.values) / each.error for each in merged}
        loss = 0.5 * sum(float(np.vdot(gap, gap)) for gap in gaps.values())
        return loss, found, {each.places: gaps[each.places] / each.error for each in merged}

    def marginal(self, places: Places) -> Floats:
        """The counts that it expects by some columns."""
        return self._tree.marginal(places) * self.total

    def marginals(self, wanted: Iterable[Places]) -> dict[Places, Floats]:
        """The counts that it expects by several lists of columns, each ascending."""
        return {places: values * self.total for places, values in self._tree.marginals(wanted).items()}

    def draw(self, rows: int, rng: np.random.Generator) -> Integers:
        """Rows of cells, a column for each of the space's.

        Columns are drawn one after the other, each given those before it that share a clique: that is the
        model's own law, as the order of elimination is turned round.
        """
        found = np.zeros((rows, len(self._sizes)), dtype=np.int64)
        known: set[int] = set()
        for column in reversed(self._forest.order):
            near = {place for clique in self._forest.cliques if column in clique for place in clique}
            before = tuple(sorted(near & known))
            weights = self._tree.marginal((*before, column)).reshape(-1, self._sizes[column])
            groups = np.zeros(rows, dtype=np.int64)
            for place in before:
                groups = groups * self._sizes[place] + found[:, place]
            found[:, column] = given(weights, groups, rng)
            known.add(column)
        return found


def _merged(measured: Sequence[MeasuredMarginal]) -> list[MeasuredMarginal]:
    """Measurements of one marginal as one, each weighed by the inverse of its variance."""
    found: list[MeasuredMarginal] = []
    for places in dict.fromkeys(each.places for each in measured):
        same = [each for each in measured if each.places == places]
        trust = [each.error**-2 for each in same]
        values = np.average([each.values for each in same], axis=0, weights=trust)
        found.append(MeasuredMarginal(places, values, sum(trust) ** -0.5))
    return found
