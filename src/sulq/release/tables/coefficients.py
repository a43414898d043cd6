"""The noisy coefficients of a table: how they are asked as one question, and the marginals they give.

Privacy: a row adds to each coefficient its entry of the basis vector, a public table read at the row's keys
(`lookup`); the plan takes the L1 or L2 norm of the table's rows. For yes or no, even weights: |B| in L1, sqrt|B| in
L2, in units where a coefficient is a sum of +-1; the paper's f^a are 2^(k/2) times smaller, and its noise too [S3.17].
Accuracy: a cell of marginal a is the sum over b within a of the coefficients, each divided by the squared length of
its vector on a's cells; noise adds up in squares.
Source: Dwork08, section 4.2 [S3.15, S3.16, S3.20]; docs/theory/contingency.md.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np

from sulq.answers.released import Noise
from sulq.language.kinds import Floats, Integers
from sulq.language.law import LaplaceLaw
from sulq.language.question import Sums
from sulq.language.rowfn import Lookup, RowFn
from sulq.release.tables.basis import lengths, product
from sulq.release.tables.interactions import Places, cells, closure, inside, wanted, width
from sulq.release.tables.packs import PAIRED, WHOLE, Pack, packs
from sulq.release.tables.weights import Weights, factors

MAX_CACHED_CELLS: Final = 64  # of a marginal whose vectors are kept
MIN_DEVIATION_ROWS: Final = 1e-6  # as good as no noise


def own_sizes(part: Places, sizes: Sequence[int]) -> tuple[int, ...]:
    """The sizes of some attributes."""
    return tuple(sizes[place] for place in part)


def spread(part: Places, over: Places, sizes: Sequence[int]) -> Integers:
    """An interaction's vectors on the cells of more attributes, one a row."""
    own = tuple(sizes[place] for place in over)
    among = tuple(place in part for place in over)
    return _kept(among, own) if cells(over, sizes) <= MAX_CACHED_CELLS else _spread(among, own)


def _spread(among: tuple[bool, ...], sizes: tuple[int, ...]) -> Integers:
    vectors = product(tuple(size for size, held in zip(sizes, among, strict=True) if held))
    found = vectors.reshape(-1, *(size if held else 1 for size, held in zip(sizes, among, strict=True)))
    return np.broadcast_to(found, (len(found), *sizes)).reshape(len(found), -1)


@functools.lru_cache(maxsize=1024)
def _kept(among: tuple[bool, ...], sizes: tuple[int, ...]) -> Integers:
    """The same for the many small marginals that are alike."""
    found = _spread(among, sizes)
    found.setflags(write=False)
    return found


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
            packs(closed, sizes, PAIRED if paired else WHOLE),
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


@dataclass(frozen=True, slots=True, eq=False)
class Coefficients:
    """Noisy coefficients by interaction, with the standard deviation of each one's noise."""

    sizes: tuple[int, ...]
    marginals: tuple[Places, ...]
    values: dict[Places, Floats]
    deviations: dict[Places, Floats]
    law: str

    def marginal(self, places: Places) -> Floats:
        """A marginal's cells, its own attributes as axes; linear in the coefficients, O(its cells) each."""
        found = np.zeros(cells(places, self.sizes))
        for part in inside(places):
            if part in self.values:
                found += (self.values[part] / self._lengths(part, places)) @ spread(part, places, self.sizes)
        return found.reshape(own_sizes(places, self.sizes))

    def moments(self, alike: Sequence[Places]) -> tuple[Floats, Floats]:
        """Of marginals of the same sizes, whose cells have the same vectors, each cell's variance and fourth moment.

        The second is the sum of the squared variances of its draws: it tells how far from normal its noise is.
        """
        first = alike[0]
        variance, fourth = np.zeros((2, len(alike), cells(first, self.sizes)))
        for part in inside(tuple(range(len(first)))):
            own = [tuple(places[i] for i in part) for places in alike]
            if not (many := width(own[0], self.sizes)):
                continue
            none = np.zeros(many)
            each = np.stack([self.deviations.get(one, none) for one in own]) / self._lengths(own[0], first)
            vectors = spread(own[0], first, self.sizes)
            variance += each**2 @ vectors**2
            fourth += each**4 @ vectors**4
        shape = (len(alike), *own_sizes(first, self.sizes))
        return variance.reshape(shape), fourth.reshape(shape)

    def coefficients(self, asked: tuple[Places, ...]) -> Coefficients:
        """The same, for these marginals."""
        return replace(self, marginals=asked)

    def counted(self, rows: float, deviation: float) -> Coefficients:
        """The same with a noisy number of rows that was told apart: it is the coefficient of the vector of ones."""
        trust, more = (np.maximum(own, MIN_DEVIATION_ROWS) ** -2.0 for own in (self.deviations[()], deviation))
        mean = (self.values[()] * trust + rows * more) / (trust + more)
        known = {**self.deviations, (): (trust + more) ** -0.5}
        return replace(self, values={**self.values, (): mean}, deviations=known)

    def _lengths(self, part: Places, places: Places) -> Floats:
        """The squared length of each vector on a marginal's cells."""
        rest = cells(places, self.sizes) / cells(part, self.sizes)
        return np.asarray(lengths(own_sizes(part, self.sizes)) * rest, dtype=np.float64)
