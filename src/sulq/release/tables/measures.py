"""What `model` may measure, and how good its marginals would be: the method, and the interactions that it asks for.

Interactions of fewer attributes than the marginals have are fewer numbers, with less noise; what is left out the
fitted table supposes to be as the others foretell. How wrong that is no plan tells: it is taken to be LEFT_OUT of the
rows, about what was measured of real tables (docs/theory/contingency.md). So the choice needs the number of rows:
the owner's declared size, or a noisy count paid for in the same spend (SR6).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from sulq.answers.plan import Plan
from sulq.errors import BudgetExceeded, QuestionError
from sulq.language.question import Question
from sulq.release.tables.accuracy import distance
from sulq.release.tables.contents import ModelTable
from sulq.release.tables.fitting import fit
from sulq.release.tables.interactions import Places, largest, numbers, subsets
from sulq.release.tables.loglinear import LARGEST
from sulq.release.tables.methods import MOST_SUBSETS, Method, Wish, method_of, refuse
from sulq.release.tables.noisy_tables import NoisyTable

LEFT_OUT: Final = 0.02  # of the rows: the distance that larger interactions make where they are not measured
PAIRS: Final = 2
NARROW: Final = 4  # attributes of an interaction, up to which all orders are tried
MOST_NUMBERS: Final = 2**30  # of all interactions' vectors on the marginals' cells
LARGEST_PART: Final = 2**24  # of those, of one interaction
QUICK: Final = 2**18  # numbers of lookup tables that are written down to see how good they would be
Foreseen = tuple[Method, NoisyTable]


def refuse_model(wish: Wish) -> str:
    """Why no table is fitted to this wish; empty where one is."""
    if wish.cells > LARGEST:
        return f"The table has {wish.cells:,} cells, and model takes at most {LARGEST:,}; fourier-shift needs none."
    if (walked := subsets(wish.marginals)) > MOST_SUBSETS:
        return f"The marginals have {walked:,} subsets, and model takes at most {MOST_SUBSETS:,}; cells fits."
    if not _holds(wish, min(PAIRS, max(map(len, wish.marginals)))):
        return "The marginals' pairs have too many cells times coefficients for a model; cells or marginals fits."
    return ""


def _holds(wish: Wish, order: int) -> bool:
    """Whether the vectors of interactions of up to so many attributes fit into memory and time."""
    if numbers(wish.marginals, wish.sizes, order) > MOST_NUMBERS:
        return False
    return largest(wish.marginals, wish.sizes, order) <= LARGEST_PART


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


def measures(wish: Wish, foresee: Callable[[Question], Plan], known: Mapping[str, Foreseen]) -> list[Measure]:
    """All ways to measure that the spend allows; from public facts alone. `known`: what was foreseen of the wish."""
    most = max(map(len, wish.marginals))
    found = []
    for order in range(min(PAIRS, most), most + 1):
        if not _holds(wish, order):
            break
        faces = _faces(wish.marginals, order)
        if order > NARROW and len(faces) > len(wish.marginals):
            continue  # more to measure than the marginals themselves: each has more noise, and less is told
        smaller = replace(wish, marginals=faces)
        for name in ("cells", "marginals", "fourier-shift") if order == most else ("marginals", "fourier-shift"):
            if refuse(smaller, name):
                continue
            if name in known and set(faces) == set(wish.marginals):
                made, noise = known[name]
            elif name == "fourier-shift" and smaller.entries > QUICK:
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
    held = {
        part
        for marginal in marginals
        for size in range(min(order, len(marginal)))
        for part in itertools.combinations(marginal, size)
    }
    return tuple(sorted(found - held))
