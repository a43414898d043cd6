"""A plan in the making: what each step knows, filled in from left to right."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from sulq.language.domain import Schema
from sulq.language.facts import Facts
from sulq.language.law import Law, PassedLaw
from sulq.language.privacy import Draw, Loss
from sulq.language.question import OpenSums, Sums
from sulq.language.score import Score
from sulq.language.shape import Shape
from sulq.language.tally import Block, Key


@dataclass(frozen=True, slots=True)
class Reach:
    """How far one person moves a block's sums, in grid units, in one of the ways the relation allows."""

    l1: Fraction
    l2_squared: Fraction
    most: Fraction = Fraction(0)  # of a stream of sums: the largest move of one of them
    span: Fraction = Fraction(0)  # likewise: the largest rise plus the largest fall


@dataclass(frozen=True, slots=True, eq=False)
class PlanDraft:
    """One question on its way through the steps."""

    question: Sums | OpenSums  # of a choice or a threshold, its counts
    facts: Facts
    spend: Loss  # this question's part of the price
    score: Score | None = None  # of a choice
    levels: tuple[Fraction, ...] | None = None  # of a threshold
    key_delta: Fraction = Fraction(0)  # of open keys: the chance that a person alone in a group shows
    shape: Shape | None = None  # bind: what the sums run over
    keys: tuple[Key, ...] = ()  # bind
    droppable: bool = True  # bind: whether a row can fall outside the sums
    cells: int = 1  # bind; 0 where keys are open
    blocks: tuple[Block, ...] = ()  # bound
    thresholds: tuple[int, ...] | None = None  # bound: the levels in units of the one block
    ways: tuple[str, ...] = ()  # contribution: "single", "pair", "apart"
    rows: int = 1  # contribution
    reaches: tuple[dict[str, Reach], ...] = ()  # sensitivity: for each block, by way
    coordinates: tuple[int, ...] = ()  # sensitivity: the largest move of one coordinate of each block
    laws: tuple[Law, ...] = ()  # calibrate
    refine: tuple[int, ...] = ()  # calibrate
    norm: str = "l1"  # calibrate
    draws: tuple[Draw, ...] = field(default=())  # calibrate
    people: PassedLaw | None = None  # calibrate, of open keys

    @property
    def answered(self) -> int:
        """Cells that are answered: for a choice those of all keys but the last, which it chooses by."""
        return self.cells if self.score is None else self.cells // len(self.keys[-1].labels)

    @property
    def schema(self) -> Schema:
        """The columns the question's row functions speak of."""
        return self.facts.schema if self.shape is None else self.shape.schema
