"""A plan in the making: what each step knows, filled in from left to right."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from sulq.terms.engine import Block, Key
from sulq.terms.facts import Facts
from sulq.terms.law import Law
from sulq.terms.privacy import Draw, Loss
from sulq.terms.question import Sums


@dataclass(frozen=True, slots=True)
class Reach:
    """How far one person moves a block's sums, in grid units, in one of the ways the relation allows."""

    l1: Fraction
    l2_squared: Fraction


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """One question on its way through the steps."""

    question: Sums
    facts: Facts
    spend: Loss  # this question's part of the price
    keys: tuple[Key, ...] = ()  # bind
    droppable: bool = True  # bind: whether a row can fall outside the sums
    cells: int = 1  # bind
    blocks: tuple[Block, ...] = ()  # bound
    ways: tuple[str, ...] = ()  # contribution: "single", "pair", "apart"
    rows: int = 1  # contribution
    reaches: tuple[dict[str, Reach], ...] = ()  # sensitivity: for each block, by way
    coordinates: tuple[int, ...] = ()  # sensitivity: the largest move of one coordinate of each block
    laws: tuple[Law, ...] = ()  # calibrate
    refine: tuple[int, ...] = ()  # calibrate
    norm: str = "l1"  # calibrate
    draws: tuple[Draw, ...] = field(default=())  # calibrate
