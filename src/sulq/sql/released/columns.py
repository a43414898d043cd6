"""Leaves: statistics of groups as columns of released answers, with the reading that makes them numbers.

A leaf names the blocks of an answer it is read from. Cells that an answer splits
further (bins of a tree, rows with and without a value) are folded into columns;
groups of a coarser grouping set are summed from a finer one (SR13); what the shown
groups of open keys leave of a total is a leaf of one row (SR14).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar, cast

import numpy as np

from sulq.answers.noise_sums import Counted, added, unknown
from sulq.answers.released import Noise, Released
from sulq.language.kinds import Floats, Integers, Truths
from sulq.sql.released.other_row import rest

T = TypeVar("T")


class ColumnReading(Protocol):
    """What makes released columns one number a cell, with an interval."""

    def value(self, released: Released) -> Floats:
        """The statistic, one row a cell."""
        ...

    def interval(self, released: Released, beta: float) -> tuple[Floats, Floats]:
        """From where to where, except with probability beta a cell."""
        ...


@dataclass(frozen=True, slots=True)
class Cut:
    """Blocks of one answer; `fold` cells of it are one group; `picked` names the columns wanted of those that gives."""

    question: int
    blocks: tuple[int, ...]
    fold: int = 1
    picked: tuple[int, ...] | None = None

    def columns(self, released: Released) -> tuple[Integers, list[Noise]]:
        """The units and the noise of the columns."""
        widths = [noise.width for noise in released.noise]
        starts = np.cumsum([0, *widths])
        chosen = [i for block in self.blocks for i in range(starts[block], starts[block + 1])]
        units = released.units[:, chosen]
        noises = [released.noise[block] for block in self.blocks]
        if self.fold > 1:
            units = units.reshape(len(units) // self.fold, -1)
            one = len(noises) == 1
            noises = [Noise(n.law, n.step, n.width * self.fold) for n in noises] if one else noises * self.fold
        if self.picked is not None:
            single = [Noise(n.law, n.step, 1) for n in noises for _ in range(n.width)]
            units, noises = units[:, list(self.picked)], [single[i] for i in self.picked]
        return units, noises


@dataclass(slots=True, eq=False)
class Leaf:
    """One statistic of each group: where its columns are and how they are read.

    `whole`: its values are whole numbers. `clock`: they are moments. `summed`: how the
    groups asked are added up to those shown: the sizes of the asked keys and which of
    them stay. `less`: groups of which this is the rest (SR14).
    """

    cuts: tuple[Cut, ...]
    reading: ColumnReading
    whole: bool = False
    clock: str | None = None
    summed: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    less: Leaf | None = None
    _kept: dict[object, object] = field(default_factory=dict)
    _of: object = None  # the answers that what is kept was worked out from

    def _once(self, answers: Sequence[Released], what: object, work: Callable[[], T]) -> T:
        """What is worked out from these answers, once."""
        if self._of is not answers:
            self._of, self._kept = answers, {}
        if what not in self._kept:
            self._kept[what] = work()
        return cast("T", self._kept[what])

    def released(self, answers: Sequence[Released]) -> Released:
        """The leaf's columns, a row for each group."""
        return self._once(answers, "released", lambda: self._columns(answers))

    def _columns(self, answers: Sequence[Released]) -> Released:
        parts = [cut.columns(answers[cut.question]) for cut in self.cuts]
        units = np.concatenate([units for units, _ in parts], axis=1)
        found = Released(units, tuple(noise for _, noises in parts for noise in noises))
        if self.summed is not None:
            found = coarser(found, *self.summed)
        if self.less is not None:
            found = rest(found, self.less.released(answers))
        return replace(found, exact=all(answers[cut.question].exact for cut in self.cuts))

    def values(self, answers: Sequence[Released]) -> Floats:
        """The statistic of each group."""
        return self._once(answers, "value", lambda: self.reading.value(self.released(answers))[:, 0])

    def unknown(self, answers: Sequence[Released]) -> tuple[Truths, float, float] | None:
        """Which groups may have no rows, and the whole range of what is then unknown; None for counts and sums."""
        reading = self.reading
        if not isinstance(reading, Counted):
            return None
        (low,), (high,) = reading.bounds()
        return self._once(answers, "unknown", lambda: unknown(reading, self.released(answers))), float(low), float(high)

    def interval(self, answers: Sequence[Released], beta: float) -> tuple[Floats, Floats]:
        """From where to where, except with probability beta a group."""
        low, high = self._once(answers, beta, lambda: self.reading.interval(self.released(answers), beta))
        return low[:, 0], high[:, 0]


def coarser(released: Released, sizes: tuple[int, ...], kept: tuple[int, ...]) -> Released:
    """The groups of fewer keys, each the sum of the groups it is made of; its noise is the sum of theirs."""
    away = tuple(i for i in range(len(sizes)) if i not in kept)
    width = released.units.shape[1]
    units = released.units.reshape((*sizes, width)).sum(axis=away)
    # The kept keys may be wanted in another order than they were asked in.
    order = sorted(kept)
    units = np.transpose(units, [*(order.index(i) for i in kept), len(kept)]).reshape(-1, width)
    number = int(np.prod([sizes[i] for i in away]))
    noise = tuple(Noise(added(n.law, number), n.step, n.width) for n in released.noise)  # type: ignore[arg-type]
    return Released(units, noise)
