"""How coefficients are asked: which ones share a lookup table, how finely each is asked, and the one question for all.

Privacy: a row adds to each coefficient its entry of the basis vector, a public table read at the row's keys
(`lookup`); the plan takes the L1 or L2 norm of the table's rows. For yes or no, even weights: |B| in L1, sqrt|B| in
L2, in units where a coefficient is a sum of +-1; the paper's f^a are 2^(k/2) times smaller, and its noise too [S3.17].

Tables: one over all attributes has cells x coefficients numbers, and is public like any part of a question. Under
`replace_one` it is asked as one where it is not large: a pair of rows differs in only some coefficients, and the plan
then finds the farthest pair [X1, E46]. Otherwise coefficients are shared out over tables of few attributes each, quick
to write, send and read. Under `add_remove` that costs no noise: the norms of a row add up over the tables, and
the row of the largest norm is the same in each (docs/theory/contingency.md).

Factors: a coefficient that many marginals share is worth more noise-free than one that few do. Let s_b be the noise
of interaction b's coefficients (scaled to equal length), D_b their number, n_b how many of the asked marginals hold
b. The squared error of a marginal's cells, times its number of cells squared, is the sum of D_b s_b^2 over its
subsets [S3.16], so over all marginals it is the sum of D_b n_b s_b^2. Under rho, the price is the sum of D_b/(2
s_b^2): least error at s_b^2 proportional to n_b^(-1/2). Under epsilon, the price is the sum of L_b/s_b, L_b the L1
norm of a row's coefficients: least error at s_b proportional to (L_b/(D_b n_b))^(1/3). `even`: the paper's own, all
s_b alike [S3.17]. Whole factors keep every sum exact; they only steer the noise, so rounding them costs nothing but a
little of it.

Source: Dwork08, section 4.2 [S3.15, S3.16, S3.20]; docs/theory/contingency.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

import numpy as np

from sulq.answers.released import Noise
from sulq.language.kinds import Floats, Integers
from sulq.language.law import LaplaceLaw
from sulq.language.question import Sums
from sulq.language.rowfn import Lookup, RowFn
from sulq.release.tables.interactions import Places, cells, closure, lengths, reach, spread, wanted, width
from sulq.release.tables.noisy_tables import Coefficients

MAX_TABLE_NUMBERS: Final = 2**12  # numbers of a table that is asked as one
MAX_PAIRED_TABLE_NUMBERS: Final = 2**16  # the same, where pairs of rows are compared
MAX_PACK_CELLS: Final = 64  # cells of a table otherwise, unless one interaction has more
MIN_VECTOR_WIDTH: Final = 2  # coefficients that make a vector
Weights = Literal["best", "even"]
MIN_FACTOR: Final = 16  # the smallest factor, where they differ


@dataclass(frozen=True, slots=True)
class Pack:
    """One lookup table: the attributes it is read at, and the interactions whose coefficients it holds."""

    places: Places
    parts: tuple[Places, ...]


def packs(closed: Sequence[Places], sizes: Sequence[int], most: int = MAX_TABLE_NUMBERS) -> tuple[Pack, ...]:
    """Every interaction of at least one coefficient in exactly one table; in one alone, if it has no more numbers."""
    parts = [part for part in closed if width(part, sizes)]
    everywhere = tuple(sorted({place for part in parts for place in part})) or (0,)
    if cells(everywhere, sizes) * sum(width(part, sizes) for part in parts) <= most:
        return (Pack(everywhere, tuple(parts)),)
    masks = np.array([sum(1 << place for place in part) for part in parts], dtype=np.int64)
    widths = np.array([width(part, sizes) for part in parts])
    left = np.ones(len(parts), dtype=np.bool_)
    found: list[Pack] = []
    for i in range(len(parts) - 1, -1, -1):  # the large ones bring the small ones along
        if not left[i]:
            continue
        places = _grown(set(parts[i]), everywhere, masks[left], widths[left], sizes)
        mask = sum(1 << place for place in places)
        taken = left & ((masks & ~mask) == 0)
        left &= ~taken
        found.append(Pack(tuple(sorted(places)), tuple(parts[j] for j in np.flatnonzero(taken))))
    return _joined(found, sizes)


def _grown(
    places: set[int], everywhere: Places, masks: np.ndarray, widths: np.ndarray, sizes: Sequence[int]
) -> set[int]:
    """Add the attribute that brings most coefficients for its cells, as long as there is room."""
    while True:
        mask = sum(1 << place for place in places)
        room = MAX_PACK_CELLS // cells(places, sizes)
        fits = [place for place in everywhere if place not in places and sizes[place] <= room]
        if not fits:
            return places
        lacking = masks & ~mask
        brought = (lacking == np.array([[1 << place] for place in fits], dtype=np.int64)) @ widths
        whole = brought + widths[lacking == 0].sum()
        gains = [(float(each) / sizes[place], -place) for each, place in zip(whole, fits, strict=True)]
        places = places | {-max(gains)[1]}


def _joined(found: list[Pack], sizes: Sequence[int]) -> tuple[Pack, ...]:
    """A table of a single coefficient joins the one before it: vectors are read off the counts of their keys."""
    joined: list[Pack] = []
    for pack in found:
        if joined and sum(width(part, sizes) for part in pack.parts) < MIN_VECTOR_WIDTH:
            last = joined.pop()
            joined.append(Pack(tuple(sorted({*last.places, *pack.places})), last.parts + pack.parts))
        else:
            joined.append(pack)
    return tuple(joined)


def factors(
    wanted: Mapping[Places, int], sizes: Sequence[int], weights: Weights, *, pure: bool
) -> dict[Places, Integers]:
    """A factor for each coefficient of each interaction."""
    alike = {part: (tuple(sizes[place] for place in part), count) for part, count in wanted.items()}
    wish = {
        kind: np.sqrt(cells(part, sizes) / lengths(kind[0])) / _noise(part, kind[1], sizes, weights, pure=pure)
        for part, kind in {kind: (part, kind) for part, kind in alike.items()}.values()
    }
    least = min(float(wished.min()) for wished in wish.values() if wished.size)
    most = max(float(wished.max()) for wished in wish.values() if wished.size)
    fine = 1 if most / least < 1 + 1e-9 else MIN_FACTOR
    found = {kind: np.rint(wished / least * fine).astype(np.int64) for kind, wished in wish.items()}
    for each in found.values():
        each.setflags(write=False)  # interactions of the same sizes share it
    return {part: found[kind] for part, kind in alike.items()}


def _noise(part: Places, count: int, sizes: Sequence[int], weights: Weights, *, pure: bool) -> float:
    """How noisy an interaction's coefficients should be, up to a common factor."""
    if weights == "even":
        return 1.0
    if not pure:
        return float(count**-0.25)
    moved = math.prod(reach(sizes[place]) for place in part)
    return float((moved / (max(width(part, sizes), 1) * count)) ** (1 / 3)) or 1.0


@dataclass(frozen=True, slots=True, eq=False)
class CoefficientDesign:
    """What is asked for some marginals: interactions, their factors, and the tables they are put into."""

    sizes: tuple[int, ...]
    marginals: tuple[Places, ...]
    factors: dict[Places, Integers]
    packs: tuple[Pack, ...]

    @classmethod
    def of(
        cls,
        marginals: tuple[Places, ...],
        sizes: tuple[int, ...],
        weights: Weights,
        *,
        pure: bool,
        paired: bool = False,
    ) -> CoefficientDesign:
        """The design for all cells of these marginals; `paired` where a row may change into another."""
        closed = closure(marginals)
        counted = wanted(marginals, closed)
        return cls(
            sizes,
            marginals,
            factors(counted, sizes, weights, pure=pure),
            packs(closed, sizes, MAX_PAIRED_TABLE_NUMBERS if paired else MAX_TABLE_NUMBERS),
        )

    @property
    def parts(self) -> tuple[Places, ...]:
        """The interactions in the order they are asked in."""
        return tuple(part for pack in self.packs for part in pack.parts)

    @property
    def count(self) -> int:
        """|B|: the number of coefficients."""
        return sum(width(part, self.sizes) for part in self.parts)

    def matrix(self, pack: Pack) -> Integers:
        """One table: a row for each cell of its keys, a column for each coefficient."""
        found = [self.factors[part][:, None] * spread(part, pack.places, self.sizes) for part in pack.parts]
        return np.concatenate(found).T

    def question(self, keys: Sequence[RowFn], where: RowFn | None, *, pure: bool) -> Sums:
        """All coefficients as one question; each table's share of the spend is its own norm, so all get one noise."""
        tables = [self.matrix(pack) for pack in self.packs]
        values = tuple(
            Lookup(tuple(keys[place] for place in pack.places), tuple(map(tuple, table.tolist())))
            for pack, table in zip(self.packs, tables, strict=True)
        )
        shares = tuple(Fraction(int((np.abs(table) if pure else table**2).sum(axis=1).max())) for table in tables)
        whole = sum(shares)
        return Sums(values, where, (), tuple(share / whole for share in shares))

    def read(self, released: Floats, noise: Sequence[Noise]) -> Coefficients:
        """The coefficients from the answer's one row of numbers; each gets its own noise."""
        deviations = np.repeat([each.deviation for each in noise], [each.width for each in noise])
        multiplied = np.concatenate([self.factors[part] for part in self.parts])
        ends = np.cumsum([width(part, self.sizes) for part in self.parts]).tolist()
        values, deviations = released / multiplied, deviations / multiplied
        own = {part: slice(start, end) for part, start, end in zip(self.parts, [0, *ends], ends, strict=False)}
        return Coefficients(
            self.sizes,
            self.marginals,
            {part: values[place] for part, place in own.items()},
            {part: deviations[place] for part, place in own.items()},
            "laplace" if all(isinstance(each.law, LaplaceLaw) for each in noise) else "gaussian",
        )
