"""The methods: what each asks, what noise it would have, what it makes of the answers; and what `model` may measure.

A model is fitted to interactions of fewer attributes than the marginals have: fewer numbers, with less noise; what is
left out the fitted table supposes to be as the others foretell. How wrong that is no plan tells: it is taken to be
LEFT_OUT of the rows, about what was measured of real tables (docs/theory/contingency.md). So the choice needs the
number of rows: the owner's declared size, or a noisy count paid for in the same spend (SR6).
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np

from sulq.answers.answer import Answers
from sulq.answers.oracle import SpendPlan
from sulq.answers.plan import Plan
from sulq.answers.released import Noise
from sulq.errors import BudgetExceeded, QuestionError
from sulq.language.law import LaplaceLaw
from sulq.language.question import MAX_VALUES, Question, Sums, Together
from sulq.language.rowfn import Lit, Lookup
from sulq.release.space import MAX_KEYS, CellSpace
from sulq.release.tables.allocation import MAX_LOOKUP_NUMBERS, Weights
from sulq.release.tables.contents import Contents, FittedTable, ModelTable, ShiftedTable
from sulq.release.tables.design import MAX_PACK_CELLS, CoefficientDesign, Read
from sulq.release.tables.fitting import MAX_MODEL_CELLS, fit
from sulq.release.tables.fourier import MAX_PROGRAM_NUMBERS, fitted, shift
from sulq.release.tables.interactions import Places, cells, closure, largest, numbers, own_sizes, spread, subsets, width
from sulq.release.tables.noisy_tables import Coefficients, NoisyCells, NoisyMarginals, NoisyTable, distance

MAX_CELLS: Final = 2**22
MAX_SUBSETS: Final = 2**18  # of all marginals, where coefficients are asked or a model is fitted
MAX_COEFFICIENT_WAYS: Final = 10  # attributes of a marginal whose coefficients are asked
MAX_UNIT_VECTOR_CELLS: Final = 64  # of a marginal that is asked as unit vectors
MAX_NEGATIVE_PROBABILITY: Final = 0.05  # of a negative cell in a shifted table
LEFT_OUT: Final = 0.02  # of the rows: the distance that larger interactions make where they are not measured
PAIRS: Final = 2
MAX_TRIED_ORDER: Final = 4  # attributes of an interaction, up to which all orders are tried
MAX_VECTOR_NUMBERS: Final = 2**30  # of all interactions' vectors on the marginals' cells
MAX_INTERACTION_NUMBERS: Final = 2**24  # of those, of one interaction
MAX_TRIED_LOOKUP_NUMBERS: Final = 2**18  # numbers of lookup tables that are written down to see how good they would be


@dataclass(frozen=True, slots=True, eq=False)
class Wish:
    """What is wished for: marginals of some attributes. Rows with a value missing in any of these are not counted."""

    space: CellSpace
    marginals: tuple[Places, ...]
    weights: Weights
    pure: bool
    paired: bool  # whether a person's row may change into another
    ranged: Places = ()  # attributes of which sums over ranges are wished for
    most: int = MAX_LOOKUP_NUMBERS  # of all lookup tables

    @classmethod
    def by(
        cls,
        spending: SpendPlan,
        space: CellSpace,
        marginals: tuple[Places, ...],
        weights: Weights = "best",
        ranged: Places = (),
    ) -> Wish:
        """The wish of somebody who pays by this spending."""
        return cls(space, marginals, weights, spending.pure, spending.facts.unit.neighbors == "replace_one", ranged)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of cells of each attribute."""
        return self.space.sizes

    @property
    def cells(self) -> int:
        """The number of cells of the whole table."""
        return self.space.cells

    @property
    def coefficients(self) -> int:
        """|B|, before anything is written down; a walk over all subsets, so only where these are not too many."""
        return sum(width(part, self.sizes) for part in closure(self.marginals))

    @property
    def entries(self) -> int:
        """About how many numbers lookup tables of the coefficients would have, by the same walk."""
        sizes = self.sizes
        return sum(width(part, sizes) * max(MAX_PACK_CELLS, cells(part, sizes)) for part in closure(self.marginals))


def refuse(wish: Wish, method: str) -> str:
    """Why a method cannot hold this wish; empty where it can."""
    if method == "cells" and len(wish.sizes) > MAX_KEYS:
        return f"cells takes at most {MAX_KEYS} attributes, and the table has {len(wish.sizes)}; fourier-shift fits."
    if method == "cells" and wish.cells > MAX_CELLS:
        return f"The table has {wish.cells:,} cells, and cells takes at most {MAX_CELLS:,}; fourier-shift needs none."
    if method == "marginals" and len(wish.marginals) > MAX_VALUES:
        return f"marginals takes at most {MAX_VALUES:,} of them; cells and fourier-shift take them all."
    if method == "marginals" and (whole := sum(cells(part, wish.sizes) for part in wish.marginals)) > MAX_CELLS:
        return f"The marginals have {whole:,} cells, and marginals takes at most {MAX_CELLS:,}; ask for smaller ones."
    return _refuse_coefficients(wish, method) if method.startswith("fourier") else ""


def _refuse_coefficients(wish: Wish, method: str) -> str:
    """Why the coefficients of this wish cannot be asked, or not be fitted; what is counted first is cheap to count."""
    if (walked := subsets(wish.marginals)) > MAX_SUBSETS:
        return f"The marginals have {walked:,} subsets, more than {MAX_SUBSETS:,}; {_other(wish)}."
    if (wide := max(map(len, wish.marginals))) > MAX_COEFFICIENT_WAYS:
        return f"A marginal has {wide} attributes, more than {MAX_COEFFICIENT_WAYS}; {_other(wish)}."
    if method == "fourier" and wish.cells * wish.coefficients > MAX_PROGRAM_NUMBERS:
        return (
            f"The linear program would have {wish.cells:,} cells times {wish.coefficients:,} coefficients, more than "
            f"{MAX_PROGRAM_NUMBERS:,}; method='fourier-shift' or 'cells' fits."
        )
    return ""


def _other(wish: Wish) -> str:
    """What to do where coefficients are too many."""
    fits = [f"method='{name}'" for name in ("cells", "marginals") if not refuse(wish, name)]
    return f"{' or '.join(fits)} fits" if fits else "ask for marginals of fewer attributes"


def method_of(name: str, wish: Wish) -> Method:
    """The method of this name, its question written down.

    Raises:
        QuestionError: `too-large`: it cannot hold so large a table; the message says which method can.
    """
    why = refuse(wish, name)
    if why:
        raise QuestionError("too-large", why, "Name a method that fits, or method='auto', or fewer attributes.")
    return METHODS[name](wish)


class Method(ABC):
    """One way to publish the marginals.

    `question`: what it asks. `counts`: how many numbers it expects of each of the questions asked together.
    """

    question: Question
    counts: list[int]

    def asked(self, spending: SpendPlan, part: Fraction) -> list[Read]:
        """Ask for a part of the spend: each question's numbers and their noise."""
        answer = spending.ask(self.question, part)
        several = answer.answers if isinstance(answer, Answers) else (answer,)
        return [(each.released.values(), each.released.noise) for each in several]

    @abstractmethod
    def read(self, read: Sequence[Read]) -> NoisyTable:
        """What the answers tell."""

    def foreseen(self, plan: Plan) -> NoisyTable:
        """What would be told of a table of zeros: how noisy the marginals will be."""
        noise = [part.noise for part in plan.parts]
        return self.read([(np.zeros(count), own) for count, own in zip(self.counts, noise, strict=True)])

    @abstractmethod
    def published(self, read: Sequence[Read]) -> Contents:
        """What is published of the answers."""


def _law(noise: Sequence[Noise]) -> str:
    return "laplace" if all(isinstance(each.law, LaplaceLaw) for each in noise) else "gaussian"


class _Cells(Method):
    """The whole table, a partition: one person moves one cell (two under replace_one) [S3.13, E46]."""

    def __init__(self, wish: Wish) -> None:
        self.sizes, self.counts = wish.sizes, [wish.cells]
        self.question = Sums((Lit(1),), by=wish.space.keys)

    def read(self, read: Sequence[Read]) -> NoisyCells:
        ((values, noise),) = read
        return NoisyCells(values.reshape(self.sizes), noise[0].deviation, _law(noise))

    published = read


class _Marginals(Method):
    """Each marginal as a partition of its own, all at one debit, an even share of the spend each [S3.14].

    Small ones are asked as sums of unit vectors, which move as a partition does and are all read off one histogram.
    """

    def __init__(self, wish: Wish) -> None:
        self.marginals, self.sizes = wish.marginals, wish.sizes
        keys = [tuple(wish.space.keys[place] for place in part) for part in wish.marginals]
        self.widths = [cells(part, wish.sizes) for part in wish.marginals]
        whole = wish.space.complete if any(len(own) < len(wish.sizes) for own in keys) else None
        self.small = all(2 <= width <= MAX_UNIT_VECTOR_CELLS for width in self.widths)
        self.counts = [sum(self.widths)] if self.small else self.widths
        if self.small:
            units = {width: tuple(map(tuple, np.eye(width, dtype=np.int64).tolist())) for width in set(self.widths)}
            tables = (Lookup(own, units[width]) for own, width in zip(keys, self.widths, strict=True))
            self.question = Sums(tuple(tables), whole)
        else:
            self.question = Together(tuple(Sums((Lit(1),), whole, own) for own in keys))

    def read(self, read: Sequence[Read]) -> NoisyMarginals:
        noise = read[0][1] if self.small else [own[0] for _, own in read]
        numbers = np.concatenate([values.ravel() for values, _ in read])
        parts = zip(self.marginals, np.split(numbers, np.cumsum(self.widths)[:-1]), strict=True)
        values = {part: own.reshape(own_sizes(part, self.sizes)) for part, own in parts}
        deviations = {part: own.deviation for part, own in zip(values, noise, strict=True)}
        return NoisyMarginals(self.sizes, values, deviations, _law(noise))

    published = read


class _Shift(Method):
    """The coefficients of the marginals' downward closure [S3.17, S3.18], and a constant from their noise [S3.21]."""

    def __init__(self, wish: Wish) -> None:
        self.sizes = wish.sizes
        self.design = CoefficientDesign.of(
            wish.marginals,
            wish.sizes,
            wish.weights,
            pure=wish.pure,
            paired=wish.paired,
            ranged=wish.ranged,
            most=wish.most,
        )
        self.counts = self.design.counts
        everywhere = all(len(places) == len(wish.sizes) for places in self.design.places)
        where = None if everywhere else wish.space.complete
        self.question = self.design.question(wish.space.keys, where, pure=wish.pure)

    def read(self, read: Sequence[Read]) -> Coefficients:
        return self.design.read(read)

    def published(self, read: Sequence[Read]) -> Contents:
        found = self.read(read)
        return ShiftedTable(found, shift(found, MAX_NEGATIVE_PROBABILITY))


class _Fourier(_Shift):
    """A table of whole counts that fits the coefficients [S3.18]; the coefficients alone if no solver finds one."""

    def published(self, read: Sequence[Read]) -> Contents:
        found, parts = self.read(read), self.design.parts
        everywhere = tuple(range(len(self.sizes)))
        matrix = np.concatenate([spread(part, everywhere, self.sizes) for part in parts]).T
        asked, noise = (np.concatenate([own[part] for part in parts]) for own in (found.values, found.deviations))
        cells = fitted(matrix, asked, noise)
        return super().published(read) if cells is None else FittedTable.to(found, cells)


# Of equal ones, auto takes the first.
METHODS: Final[dict[str, Callable[[Wish], Method]]] = {
    "cells": _Cells,
    "marginals": _Marginals,
    "fourier": _Fourier,
    "fourier-shift": _Shift,
}


def refuse_model(wish: Wish) -> str:
    """Why no table is fitted to this wish; empty where one is."""
    if len(wish.sizes) > MAX_KEYS:
        return f"model takes at most {MAX_KEYS} attributes, and the table has {len(wish.sizes)}; fourier-shift fits."
    if (many := wish.cells) > MAX_MODEL_CELLS:
        return f"The table has {many:,} cells, and model takes at most {MAX_MODEL_CELLS:,}; fourier-shift needs none."
    if (walked := subsets(wish.marginals)) > MAX_SUBSETS:
        return f"The marginals have {walked:,} subsets, and model takes at most {MAX_SUBSETS:,}; cells fits."
    if not _holds(wish, min(PAIRS, max(map(len, wish.marginals)))):
        return "The marginals' pairs have too many cells times coefficients for a model; cells or marginals fits."
    return ""


def _holds(wish: Wish, order: int) -> bool:
    """Whether the vectors of interactions of up to so many attributes fit into memory and time."""
    if numbers(wish.marginals, wish.sizes, order) > MAX_VECTOR_NUMBERS:
        return False
    return largest(wish.marginals, wish.sizes, order) <= MAX_INTERACTION_NUMBERS


@dataclass(frozen=True, slots=True, eq=False)
class Measure:
    """One way to measure for a model: `noise` is the mean distance that its coefficients' noise makes."""

    name: str
    order: int
    complete: bool  # whether all interactions of the marginals are measured
    made: Method
    asked: tuple[Places, ...]
    noise: float

    def foreseen(self, rows: float) -> float:
        """The expected mean distance from the truth, before the fit, which may only lessen the noise."""
        return self.noise if self.complete else math.hypot(self.noise, LEFT_OUT * rows)

    def modelled(self, noisy: NoisyTable, rows: tuple[float, float] | None = None) -> ModelTable:
        """The table fitted to what was answered, and to a noisy number of rows with its deviation, if one was."""
        found = noisy.coefficients(self.asked)
        if rows is not None:
            found = found.counted(*rows)
        return ModelTable.of(found, self.name, self.order, fit(found))


def measures(
    wish: Wish, foresee: Callable[[Question], Plan], known: Mapping[str, tuple[Method, NoisyTable]]
) -> list[Measure]:
    """All ways to measure that the spend allows; from public facts alone. `known`: what was foreseen of the wish."""
    most = max(map(len, wish.marginals))
    found = []
    for order in range(min(PAIRS, most), most + 1):
        if not _holds(wish, order):
            break
        faces = _faces(wish.marginals, order)
        if order > MAX_TRIED_ORDER and len(faces) > len(wish.marginals):
            continue  # more to measure than the marginals themselves: each has more noise, and less is told
        smaller = replace(wish, marginals=faces)
        for name in ("cells", "marginals", "fourier-shift") if order == most else ("marginals", "fourier-shift"):
            if refuse(smaller, name):
                continue
            if name in known and set(faces) == set(wish.marginals):
                made, noise = known[name]
            elif name == "fourier-shift" and smaller.entries > MAX_TRIED_LOOKUP_NUMBERS:
                continue
            else:
                made = method_of(name, smaller)
                try:
                    noise = made.foreseen(foresee(made.question))
                except (QuestionError, BudgetExceeded):
                    continue
            told = noise.coefficients(wish.marginals)
            found.append(Measure(name, order, order == most, made, wish.marginals, distance(told, wish.marginals)))
    return found


def _faces(marginals: tuple[Places, ...], order: int) -> tuple[Places, ...]:
    """The marginals of at most so many attributes within the asked ones, none within another."""
    found = {part for marginal in marginals for part in itertools.combinations(marginal, min(order, len(marginal)))}
    held = {part for face in found for part in closure((face,)) if part != face}
    return tuple(sorted(found - held))
