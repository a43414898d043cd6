"""A column as a key: every row in one of finitely many public cells.

A category has its values, a truth value two, a number as many intervals of equal
width as wished for between its declared bounds, each whole value where those are fewer.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from sulq.errors import QuestionError
from sulq.language.domain import Bool, Category, Column, Int, Text, iso_text
from sulq.language.rowfn import Bins, Col, Each, RowFn

MAX_CELLS: Final = 1024  # cells of one attribute


@dataclass(frozen=True, slots=True)
class Attribute:
    """One column as a key of `size` cells, in their public order."""

    name: str
    domain: Column
    bins: int  # intervals a number is divided into

    def __post_init__(self) -> None:
        if isinstance(self.domain, Text):
            raise QuestionError("wrong-kind", f"{self.name} is free text; keys are categories and numbers.")
        if self.size > MAX_CELLS:
            raise QuestionError("too-large", f"{self.name} has {self.size:,} values, more than {MAX_CELLS:,}.")

    @property
    def edges(self) -> tuple[float, ...] | None:
        """The ends of the intervals; None where each value is a cell of its own."""
        domain = self.domain
        if isinstance(domain, (Bool, Category, Text)) or (
            isinstance(domain, Int) and domain.high - domain.low < self.bins
        ):
            return None
        low, high = domain.low * domain.step, domain.high * domain.step
        width = (high - low) / self.bins or Fraction(1)
        if domain.step >= 1:  # whole values: edges between them, so that no interval is uneven by chance
            inner = [Fraction(math.ceil(low + width * i)) for i in range(1, self.bins)]
        else:
            inner = [low + width * i for i in range(1, self.bins)]
        ends = sorted(
            {low, *(edge for edge in inner if low < edge < high), max(high, low + 1 if low == high else high)}
        )
        return tuple(float(end) for end in ends)

    @property
    def labels(self) -> tuple[object, ...]:
        """What the cells are called: values, or intervals."""
        edges = self.edges
        if edges is not None:
            return tuple(itertools.pairwise(_said(edge, self.domain) for edge in edges))
        if isinstance(self.domain, Category):
            return self.domain.values
        if isinstance(self.domain, Int):
            return tuple(range(self.domain.low, self.domain.high + 1))
        return (False, True)

    @property
    def size(self) -> int:
        """The number of cells."""
        return len(self.labels)

    @property
    def ordered(self) -> bool:
        """Whether the cells have an order: numbers do, categories do not."""
        return not isinstance(self.domain, (Bool, Category))

    @property
    def row(self) -> RowFn:
        """The attribute as a key."""
        edges = self.edges
        if edges is not None:
            return Bins(Col(self.name), tuple(_said(edge, self.domain) for edge in edges))
        return Col(self.name) if isinstance(self.domain, Category) else Each(Col(self.name))

    def joined(self, groups: Sequence[int]) -> RowFn | None:
        """Groups of neighbouring cells as a key of their own; None where the cells are no intervals."""
        edges = self.edges
        if edges is None:
            return None
        inner = [edge for edge, one, next_ in zip(edges[1:-1], groups, groups[1:], strict=False) if one != next_]
        return Bins(Col(self.name), tuple(_said(edge, self.domain) for edge in (edges[0], *inner, edges[-1])))


def _said(edge: float, domain: Column) -> float | str:
    """An edge as a question says it: a day or a moment in its ISO form."""
    return edge if domain.clock is None else iso_text(int(edge), domain.clock)
