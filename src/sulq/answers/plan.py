"""A plan: all that is known of an answer before any row is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from sulq.answers.released import Noise
from sulq.language.estimator import DECLARED, Certificate
from sulq.language.law import AboveLaw, ExponentialLaw, FlipLaw, Law, MetricLaw, PassedLaw
from sulq.language.privacy import Event, Loss, Unit, plain
from sulq.language.question import Question
from sulq.language.score import Score
from sulq.language.space import Box, Points, Space
from sulq.language.statistic import ESTIMATORS, Aggregated, Degrees, Edges, HeavyPersons, Statistic
from sulq.language.tally import Key, Tally


@dataclass(frozen=True, slots=True)
class Whole:
    """A statistic of the whole table as the plan bound it: `width` numbers, each of whole units of `step`.

    `stride`: of a Box, how many units lie between its points. `certificate`: the owner's, of a `Certified` statistic.
    """

    statistic: Statistic
    step: Fraction
    width: int
    space: Space | None = None
    stride: int = 1
    certificate: Certificate | None = None

    @property
    def placed(self) -> Points | Box | None:
        """The finite space of which a point is released, if it is one."""
        space = self.space
        return space if isinstance(space, Points) or (isinstance(space, Box) and space.bounded) else None

    @property
    def unit(self) -> Fraction:
        """One unit of what noise hides, in the answer's measure: coordinates that differ are counted."""
        counted = self.placed is not None and self.placed.distance in ("hamming", "discrete")
        return Fraction(1) if counted else self.step

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the answer's columns."""
        name = "".join(f"_{c.lower()}" if c.isupper() else c for c in type(self.statistic).__name__).strip("_")
        if isinstance(self.statistic, Degrees):
            return tuple(f"at_least_{i}" for i in range(1, self.width + 1))
        if isinstance(self.statistic, HeavyPersons):
            return ("heavy", "others")
        return (name,) if self.width == 1 else tuple(f"{name}_{i}" for i in range(self.width))

    @property
    def declared(self) -> str:
        """What of the statistic rests on the owner's word alone, in words; nothing of most (SR5)."""
        if self.certificate is not None:
            return f"sensitivity by certificate {DECLARED}"
        asked = self.statistic
        own = isinstance(asked, Aggregated) and asked.estimator not in ESTIMATORS
        return f"estimator {asked.estimator} {DECLARED}" if own and isinstance(asked, Aggregated) else ""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One question of the plan: the exact sums to work out and the noise each value gets.

    Noise for block i is drawn by laws[i] on a grid 2^refine[i] times finer than
    the block's own (SR8 needs that; elsewhere refine is 0). With a `score` the sums
    are not released: laws[0] draws a candidate by their scores, for each cell of the
    keys but the last. With `people` the keys are open: that law hides each group's
    number of people, its threshold decides which groups are released, and
    `sensitivity` has the people first. With `thresholds`, in units of the one block,
    the place of the first sum that reaches its own is released, by laws[0], and no sum.
    With `whole` no row is summed: the tally's blocks are what a statistic of the whole table reads, and its keys, if
    there are any, what its numbers are about.
    """

    tally: Tally
    laws: tuple[Law, ...]
    refine: tuple[int, ...]
    sensitivity: tuple[Fraction, ...]  # of each block, in its own units of measure, in `norm`
    norm: str
    score: Score | None = None
    people: PassedLaw | None = None
    thresholds: tuple[int, ...] | None = None  # one for all sums, or one for each
    whole: Whole | None = None

    @property
    def told(self) -> bool:
        """Whether a place is released, of a candidate, a sum or a point, and no sum."""
        placed = self.whole is not None and self.whole.placed is not None
        return self.score is not None or self.thresholds is not None or placed

    @property
    def steps(self) -> tuple[Fraction, ...]:
        """One unit of each block's noise, in the answer's own units."""
        if self.told:
            return (Fraction(1),)
        if self.whole is not None:
            return (self.whole.step,)
        return tuple(b.step / 2**r for b, r in zip(self.tally.blocks, self.refine, strict=True))

    @property
    def noise(self) -> tuple[Noise, ...]:
        """What the release will carry: the law of each of its columns, the people first where keys are open."""
        widths = (1,) if self.told else tuple(block.width for block in self.tally.blocks)
        if self.whole is not None and not self.told:
            widths = (self.whole.width // self.cells,)
        found = tuple(Noise(law, s, w) for law, s, w in zip(self.laws, self.steps, widths, strict=True))
        return found if self.people is None else (Noise(self.people, Fraction(1), 1), *found)

    @property
    def by(self) -> tuple[Key, ...]:
        """The keys whose cells are answered: for a choice all but the one it chooses by, for a threshold none."""
        if self.thresholds is not None:
            return ()
        return self.tally.by if self.score is None else self.tally.by[:-1]

    @property
    def cells(self) -> int:
        """How many cells are answered; 0 where keys are open and nobody knows."""
        if self.people is not None:
            return 0
        if self.thresholds is not None:
            return 1
        return self.tally.cells if self.score is None else self.tally.cells // len(self.tally.by[-1].labels)

    @property
    def pairs(self) -> bool:
        """Whether the cells are the pairs of different labels, each once, and not all combinations."""
        return self.whole is not None and isinstance(self.whole.statistic, Edges) and bool(self.tally.by)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of a statistic of the whole, a number for each cell or several."""
        found = () if self.whole is None else self.whole.names
        return found if self.cells == 1 else tuple(name.removesuffix("_0") for name in found[:1])

    def accuracy(self, beta: float) -> tuple[Fraction, ...]:
        """How far each column may be off, except with probability beta a cell.

        Of a choice, how far below the best; of a threshold, how far on the wrong side a sum may be; of a point of a
        space, how much farther than the nearest one.
        """
        if self.whole is not None and self.told:
            return (self.laws[0].accuracy(beta) * self.whole.unit,)
        if self.thresholds is not None:
            return (self.laws[0].accuracy(beta) * self.tally.blocks[0].step,)
        return tuple(noise.law.accuracy(beta) * noise.step for noise in self.noise)

    def lines(self) -> Iterator[str]:
        """What is asked and how it is hidden, a line for each value."""
        cells = f"{self.cells} cells" if self.tally.by else "1 cell"
        reach, laws = self.accuracy(0.05), [noise.law for noise in self.noise]
        if self.score is not None:
            candidates = laws[0].candidates if isinstance(laws[0], (FlipLaw, ExponentialLaw)) else 1
            yield (
                f"  {type(self.score).__name__} x {candidates} candidates, {self.cells} choices: {self.norm} "
                f"sensitivity {plain(self.sensitivity[0])}, {_law(laws[0])}, "
                f"score within {float(reach[0]):.6g} of the best at 95%"
            )
            return
        if isinstance(laws[0], AboveLaw):
            yield (
                f"  Above x {laws[0].sums} sums: {_moved(laws[0], self.sensitivity[0])}, "
                f"within {float(reach[0]):.6g} of the threshold at 95%"
            )
            return
        if self.whole is not None:
            yield self._line(self.whole, laws[0], reach[0])
            return
        names = [f"{type(block.fn).__name__} x {block.width}" for block in self.tally.blocks]
        if self.people is not None:
            names, cells = ["People x 1", *names], f"groups of more than {self.people.threshold} (noisy) people"
        for name, moved, law, bars in zip(names, self.sensitivity, laws, reach, strict=True):
            yield (
                f"  {name}, {cells}: {self.norm} sensitivity {plain(moved)}, {_law(law)}, "
                f"within {float(bars):.6g} at 95%"
            )

    def _line(self, whole: Whole, law: Law, reach: Fraction) -> str:
        numbers = "a number" if whole.width == 1 else f"{whole.width:,} numbers"
        moved = f"{self.norm} sensitivity {plain(self.sensitivity[0])}"
        if whole.certificate is not None:
            moved += f" {DECLARED}"
        elif whole.declared:
            moved = f"{whole.declared}, {moved}"
        hidden = f"{moved}, {_law(law)}"
        if isinstance(law, (MetricLaw, ExponentialLaw)):
            what = f"one of {law.candidates:,} points"
            return (
                f"  {type(whole.statistic).__name__}, {what}: {hidden}, within {float(reach):.6g} of the nearest at 95%"
            )
        return f"  {type(whole.statistic).__name__}, {numbers}: {hidden}, within {float(reach):.6g} at 95%"


def _moved(law: AboveLaw, move: Fraction) -> str:
    """How far one person moves sums that are held against a threshold, and what hides it."""
    if law.threshold_scale:
        return f"one person moves two of them {plain(move)} apart at most, LaplaceLaw on each and on the threshold"
    return f"l1 sensitivity {plain(move)}, LaplaceLaw on each"


def _law(law: Law) -> str:
    return type(law).__name__


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """What will be asked of the rows, what noise hides it, and what that costs; free, from public facts alone."""

    question: Question
    parts: tuple[Part, ...]
    event: Event
    spend: Loss
    unit: Unit
    guarantee: str  # "dp", or "posterior" under SubLinear

    def accuracy(self, beta: float = 0.05) -> tuple[tuple[Fraction, ...], ...]:
        """How far each part's blocks may be off."""
        return tuple(part.accuracy(beta) for part in self.parts)

    def __str__(self) -> str:
        lines = [f"price {self.spend}; protects {self.unit}; guarantee {self.guarantee}"]
        for part in self.parts:
            lines.extend(part.lines())
        return "\n".join(lines)
