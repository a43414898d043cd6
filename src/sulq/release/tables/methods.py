"""The methods: what each asks, what noise it would have, and what it makes of the answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from sulq.answers.released import Noise
from sulq.errors import QuestionError
from sulq.language.attribute import Attribute
from sulq.language.facts import Facts
from sulq.language.kinds import Code, Floats
from sulq.language.law import LaplaceLaw
from sulq.language.question import MAX_VALUES, Question, Sums, Together
from sulq.language.rowfn import IsMissing, Lit, Logic, Lookup, Not, RowFn
from sulq.release.tables.coefficients import Coefficients, Design, own_sizes, spread
from sulq.release.tables.interactions import Places, cells, closure, largest, numbers, subsets, width
from sulq.release.tables.kept import Cells, Fitted, Kept, Measured, Shifted
from sulq.release.tables.noisy import CellNoise, Noisy, OwnNoise
from sulq.release.tables.packs import ROOM
from sulq.release.tables.program import LARGEST, fitted
from sulq.release.tables.shift import shift
from sulq.release.tables.weights import Weights

MOST_CELLS: Final = 2**22
MOST_SUBSETS: Final = 2**18  # of all marginals, where coefficients are asked or a model is fitted
MOST_ENTRIES: Final = 2**21  # of the lookup tables that coefficients are asked by
SMALL: Final = 64  # cells of a marginal that is asked as unit vectors
NEGATIVE: Final = 0.05  # how likely a shifted table may have a negative cell
Read = tuple[Floats, tuple[Noise, ...]]  # one question's numbers, a row a cell, and their noise


@dataclass(frozen=True, slots=True, eq=False)
class Wish:
    """What is wished for: marginals of some attributes. Rows with a value missing in any of these are not counted."""

    attributes: tuple[Attribute, ...]
    marginals: tuple[Places, ...]
    weights: Weights
    pure: bool
    paired: bool  # whether a person's row may change into another
    keys: tuple[RowFn, ...]
    whole: RowFn | None  # the condition that no attribute is missing; None where none can be
    sizes: tuple[int, ...]  # the number of cells of each attribute

    @classmethod
    def of(
        cls,
        attributes: tuple[Attribute, ...],
        marginals: tuple[Places, ...],
        weights: Weights,
        facts: Facts,
        *,
        pure: bool,
    ) -> Wish:
        """The wish with its keys, made once: a question's tables share them."""
        keys = tuple(attribute.row for attribute in attributes)
        kinds = [key.kind(facts.schema) for key in keys]
        gaps = [key for key, kind in zip(keys, kinds, strict=True) if isinstance(kind, Code) and kind.nullable]
        present = tuple(Not(IsMissing(key)) for key in gaps)
        whole = None if not present else present[0] if len(present) == 1 else Logic("and", present)
        sizes = tuple(attribute.size for attribute in attributes)
        paired = facts.unit.neighbors == "replace_one"
        return cls(attributes, marginals, weights, pure, paired, keys, whole, sizes)

    @property
    def coefficients(self) -> int:
        """|B|, before anything is written down; a walk over all subsets, so only where these are not too many."""
        return sum(width(part, self.sizes) for part in closure(self.marginals))

    @property
    def entries(self) -> int:
        """No fewer than about the numbers that lookup tables of the coefficients have (`packs`), by the same walk."""
        most = max(cells(part, self.sizes) for part in self.marginals)
        if most**2 > MOST_ENTRIES:  # the numbers of one marginal, which need no walk
            return most**2
        packed = self.coefficients * max(ROOM, most)
        return packed if packed <= MOST_ENTRIES else min(numbers(self.marginals, self.sizes, len(self.sizes)), packed)

    @property
    def cells(self) -> int:
        """The number of cells of the whole table."""
        return cells(range(len(self.sizes)), self.sizes)


class Method(Protocol):
    """One way to publish the marginals."""

    question: Question

    def foreseen(self, noise: Sequence[tuple[Noise, ...]]) -> Noisy:
        """How noisy its marginals would be, from the plan's noise for each question."""
        ...

    def made(self, read: Sequence[Read]) -> Kept:
        """What is kept of the answers."""
        ...


def refuse(wish: Wish, method: str) -> str:
    """Why a method cannot hold this wish; empty where it can."""
    if method == "cells" and wish.cells > MOST_CELLS:
        return f"The table has {wish.cells:,} cells, and cells takes at most {MOST_CELLS:,}; fourier-shift needs none."
    if method == "marginals" and len(wish.marginals) > MAX_VALUES:
        return f"marginals takes at most {MAX_VALUES:,} of them; cells and fourier-shift take them all."
    if method == "marginals" and (whole := sum(cells(part, wish.sizes) for part in wish.marginals)) > MOST_CELLS:
        return f"The marginals have {whole:,} cells, and marginals takes at most {MOST_CELLS:,}; ask for smaller ones."
    return _refuse_coefficients(wish, method) if method.startswith("fourier") else ""


def _refuse_coefficients(wish: Wish, method: str) -> str:
    """Why the coefficients of this wish cannot be asked, or not be fitted; what is counted first is cheap to count."""
    if (walked := subsets(wish.marginals)) > MOST_SUBSETS:
        return f"The marginals have {walked:,} subsets, more than {MOST_SUBSETS:,}; {_other(wish)}."
    if (large := largest(wish.marginals, wish.sizes, len(wish.sizes))) > LARGEST:
        return f"A marginal has {large:,} cells times coefficients, more than {LARGEST:,}; {_other(wish)}."
    if (whole := wish.entries) > MOST_ENTRIES:
        return f"The lookup tables would have {whole:,} numbers, more than {MOST_ENTRIES:,}; {_other(wish)}."
    if method == "fourier" and wish.cells * wish.coefficients > LARGEST:
        return (
            f"The linear program would have {wish.cells:,} cells times {wish.coefficients:,} coefficients, more than "
            f"{LARGEST:,}; method='fourier-shift' or 'cells' fits."
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
    if name == "cells":
        return _Cells(wish)
    if name == "marginals":
        return _Marginals(wish)
    return _Fourier(wish) if name == "fourier" else _Shift(wish)


def _law(noise: Sequence[Noise]) -> str:
    return "laplace" if all(isinstance(each.law, LaplaceLaw) for each in noise) else "gaussian"


def _deviation(noise: Sequence[Noise]) -> float:
    return float(noise[0].law.variance() ** 0.5 * float(noise[0].step))


class _Cells:
    """The whole table, a partition: one person moves one cell (two under replace_one) [S3.13, E46]."""

    def __init__(self, wish: Wish) -> None:
        self.sizes = wish.sizes
        self.question: Question = Sums((Lit(1),), by=wish.keys)

    def foreseen(self, noise: Sequence[tuple[Noise, ...]]) -> CellNoise:
        return CellNoise(self.sizes, _deviation(noise[0]), _law(noise[0]))

    def made(self, read: Sequence[Read]) -> Kept:
        values, noise = read[0]
        return Cells(values.reshape(self.sizes), self.foreseen([noise]))


class _Marginals:
    """Each marginal as a partition of its own, all at one debit, an even share of the spend each [S3.14].

    Small ones are asked as sums of unit vectors, which move as a partition does and are all read off one histogram.
    """

    def __init__(self, wish: Wish) -> None:
        self.marginals, self.sizes = wish.marginals, wish.sizes
        keys = [tuple(wish.keys[place] for place in part) for part in wish.marginals]
        self.widths = [cells(part, wish.sizes) for part in wish.marginals]
        whole = wish.whole if any(len(own) < len(wish.keys) for own in keys) else None
        self.small = all(2 <= width <= SMALL for width in self.widths)
        if self.small:
            units = {width: tuple(map(tuple, np.eye(width, dtype=np.int64).tolist())) for width in set(self.widths)}
            tables = (Lookup(own, units[width]) for own, width in zip(keys, self.widths, strict=True))
            self.question: Question = Sums(tuple(tables), whole)
        else:
            self.question = Together(tuple(Sums((Lit(1),), whole, own) for own in keys))

    def foreseen(self, noise: Sequence[tuple[Noise, ...]]) -> OwnNoise:
        each = noise[0] if self.small else [own[0] for own in noise]
        deviations = dict(zip(self.marginals, (_deviation([own]) for own in each), strict=True))
        return OwnNoise(self.sizes, deviations, _law(each))

    def made(self, read: Sequence[Read]) -> Kept:
        ends = np.cumsum(self.widths)[:-1]
        found = np.split(read[0][0][0], ends) if self.small else [values for values, _ in read]
        values = {
            part: own.reshape(own_sizes(part, self.sizes)) for part, own in zip(self.marginals, found, strict=True)
        }
        return Measured(values, self.foreseen([noise for _, noise in read]))


class _Coefficients:
    """The coefficients of the marginals' downward closure, one question [S3.17, S3.18]."""

    def __init__(self, wish: Wish) -> None:
        self.wish = wish
        self.design = Design.of(wish.marginals, wish.sizes, wish.weights, pure=wish.pure, paired=wish.paired)
        everywhere = all(len(pack.places) == len(wish.keys) for pack in self.design.packs)
        where = None if everywhere else wish.whole
        self.question: Question = self.design.question(wish.keys, where, pure=wish.pure)

    def foreseen(self, noise: Sequence[tuple[Noise, ...]]) -> Coefficients:
        return self.design.read(np.zeros(self.design.count), noise[0])

    def _read(self, read: Sequence[Read]) -> Coefficients:
        values, noise = read[0]
        return self.design.read(values[0], noise)


class _Fourier(_Coefficients):
    """A table of whole counts that fits the coefficients [S3.18]; the coefficients alone if no solver finds one."""

    def made(self, read: Sequence[Read]) -> Kept:
        found = self._read(read)
        everywhere = tuple(range(len(self.wish.keys)))
        matrix = np.concatenate([spread(part, everywhere, self.wish.sizes) for part in self.design.parts]).T
        asked = np.concatenate([found.values[part] for part in self.design.parts])
        noise = np.concatenate([found.deviations[part] for part in self.design.parts])
        cells = fitted(matrix, asked, noise)
        return Shifted(found, shift(found, NEGATIVE)) if cells is None else Fitted.to(found, cells)


class _Shift(_Coefficients):
    """The coefficients alone, and a constant from their noise's law [S3.21]."""

    def made(self, read: Sequence[Read]) -> Kept:
        found = self._read(read)
        return Shifted(found, shift(found, NEGATIVE))
