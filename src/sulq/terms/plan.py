"""A plan: all that is known of an answer before any row is read."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from sulq.terms.engine import Tally
from sulq.terms.law import Law
from sulq.terms.privacy import Event, Loss, Unit, plain
from sulq.terms.question import Question


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One question of the plan: the exact sums to work out and the noise each value gets.

    Noise for block i is drawn by laws[i] on a grid 2^refine[i] times finer than
    the block's own (SR8 needs that; elsewhere refine is 0).
    """

    tally: Tally
    laws: tuple[Law, ...]
    refine: tuple[int, ...]
    sensitivity: tuple[Fraction, ...]  # of each block, in its own units of measure, in `norm`
    norm: str

    @property
    def steps(self) -> tuple[Fraction, ...]:
        """One unit of each block's noise, in the answer's own units."""
        return tuple(b.step / 2**r for b, r in zip(self.tally.blocks, self.refine, strict=True))

    def accuracy(self, beta: float) -> tuple[Fraction, ...]:
        """How far each block's cells may be off, except with probability beta a cell."""
        return tuple(law.accuracy(beta) * step for law, step in zip(self.laws, self.steps, strict=True))


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
            cells = f"{part.tally.cells} cells" if part.tally.by else "1 cell"
            for i, block in enumerate(part.tally.blocks):
                bars = float(part.accuracy(0.05)[i])
                lines.append(
                    f"  {type(block.fn).__name__} x {block.width}, {cells}: {part.norm} sensitivity "
                    f"{plain(part.sensitivity[i])}, {type(part.laws[i]).__name__}, within {bars:.6g} at 95%"
                )
        return "\n".join(lines)
