"""How coefficients are asked: which ones share a lookup table, how finely each is asked, and the one question for all.

Privacy: a row adds to each coefficient its entry of the basis vector, a public table read at the row's keys
(`lookup`); the plan takes the L1 or L2 norm of the table's rows. For yes or no, even weights: |B| in L1, sqrt|B| in
L2, in units where a coefficient is a sum of +-1; the paper's f^a are 2^(k/2) times smaller, and its noise too [S3.17].

Tables: one over all attributes has cells x coefficients numbers, and is public like any part of a question. Under
`replace_one` it is asked as one where it is not large: a pair of rows differs in only some coefficients, and the plan
then finds the farthest pair [X1, E46]. Otherwise coefficients are shared out over tables of few attributes each, quick
to write, send and read. Under `add_remove` that costs no noise: the norms of a row add up over the tables, and
the row of the largest norm is the same in each (docs/theory/contingency.md).

Factors: each interaction has the noise that `allocation.py` finds best. Within one noise that is a whole factor before
its vectors, which keeps every sum exact and only steers the noise: rounding it costs a little of that. Interactions
that are asked in the cells of large attributes are questions of their own, at one debit, whose shares of the spend give
them their noise.

Source: Dwork08, section 4.2 [S3.15, S3.16, S3.20]; docs/theory/contingency.md.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

import numpy as np

from sulq.answers.released import Noise
from sulq.language.kinds import Floats, Integers
from sulq.language.law import LaplaceLaw
from sulq.language.question import MAX_VALUES, Question, Sums, Together
from sulq.language.rowfn import Lit, Lookup, RowFn
from sulq.release.tables.allocation import MAX_LOOKUP_NUMBERS, Ask, Demand, Objective, asks_within, deviations, steps
from sulq.release.tables.interactions import Places, cells, inside, lengths, own_sizes, spread, turned_by, width
from sulq.release.tables.noisy_tables import Coefficients, averaged

MAX_TABLE_NUMBERS: Final = 2**12  # numbers of a table that is asked as one
MAX_PAIRED_TABLE_NUMBERS: Final = 2**16  # the same, where pairs of rows are compared
MAX_PACK_CELLS: Final = 64  # cells of a table otherwise, unless one interaction has more
MIN_VECTOR_WIDTH: Final = 2  # coefficients that make a vector
MAX_GROWN_NUMBERS: Final = 2**20  # numbers of all tables that take in more attributes than an interaction has
SHARE_GRAIN: Final = 256  # shares of the spend are in such parts of a unit of the norm
MIN_FACTOR: Final = 64  # the smallest factor, where they differ
Read = tuple[Floats, Sequence[Noise]]  # one question's numbers, a row a cell, and their noise


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
    widths = np.array([width(part, sizes) for part in parts])
    member = np.array([[place in part for place in range(len(sizes))] for part in map(set, parts)], dtype=np.float64)
    room = min(MAX_PACK_CELLS, MAX_GROWN_NUMBERS // int(widths.sum()))
    left = np.ones(len(parts), dtype=np.bool_)
    found: list[Pack] = []
    for i in range(len(parts) - 1, -1, -1):  # the large ones bring the small ones along
        if left[i]:
            places = _grown(parts[i], everywhere, member, widths * left, sizes=sizes, most=room)
            taken = left & (member.sum(axis=1) == member[:, places].sum(axis=1))
            left &= ~taken
            found.append(Pack(tuple(sorted(places)), tuple(parts[j] for j in np.flatnonzero(taken))))
    return _joined(found, sizes)


def _grown(
    part: Places, everywhere: Places, member: Floats, widths: Integers, *, sizes: Sequence[int], most: int
) -> list[int]:
    """An interaction's attributes, and those that bring most coefficients for their cells, as long as there is room."""
    places = [*part]
    while True:
        room = most // cells(places, sizes)
        fits = [place for place in everywhere if place not in places and sizes[place] <= room]
        if not fits:
            return places
        lacking = member.sum(axis=1) - member[:, places].sum(axis=1)
        brought = (widths * (lacking == 1)) @ member + widths[lacking == 0].sum()
        places.append(max(fits, key=lambda place: (float(brought[place]) / sizes[place], -place)))


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
    noise: Mapping[Places, float], sizes: Sequence[int], ranged: Collection[int] = ()
) -> tuple[dict[Places, Integers], float]:
    """A factor for each coefficient of each interaction, and what a factor would be of a deviation 1 and length 1."""
    alike = {
        part: (own_sizes(part, sizes), tuple(place in ranged for place in part), deviation)
        for part, deviation in noise.items()
    }
    wish = {kind: _wished(*kind) for kind in set(alike.values())}
    least = min(float(wished.min()) for wished in wish.values())
    most = max(float(wished.max()) for wished in wish.values())
    unit = (1 if most / least < 1 + 1e-9 else MIN_FACTOR) / least
    found = {kind: np.rint(wished * unit).astype(np.int64) for kind, wished in wish.items()}
    for each in found.values():
        each.setflags(write=False)  # interactions of the same sizes share it
    return {part: found[kind] for part, kind in alike.items()}, unit


def _wished(sizes: tuple[int, ...], ranged: tuple[bool, ...], deviation: float) -> Floats:
    """The factors of one interaction, not yet whole: for vectors of the constant's length and steps of their noise."""
    found = np.sqrt(math.prod(sizes) / lengths(sizes)) / deviation
    noise = np.ones(1)
    for size, by in zip(sizes, ranged, strict=True):
        noise = np.asarray(np.kron(noise, steps(size, ranged=by)))
    return np.asarray(found / noise)


@dataclass(frozen=True, slots=True, eq=False)
class CoefficientDesign:
    """What is asked for some marginals: interactions, their factors, and the tables they are put into.

    `beside`: interactions that are asked in the cells of large attributes, the factors of their vectors, and how much
    finer than a table's their noise is to be.
    """

    sizes: tuple[int, ...]
    marginals: tuple[Places, ...]
    factors: dict[Places, Integers]
    packs: tuple[Pack, ...]
    beside: dict[Ask, tuple[Integers, float]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        marginals: tuple[Places, ...],
        sizes: tuple[int, ...],
        weights: Objective,
        *,
        pure: bool,
        paired: bool = False,
        ranged: Places = (),
        most: int = MAX_LOOKUP_NUMBERS,
    ) -> CoefficientDesign:
        """The design for all cells of these marginals; `paired` where a row may change into another.

        `ranged`: attributes of which sums over ranges are read. `most`: numbers of all lookup tables.
        """
        demand = Demand.of(marginals, sizes, ranged)
        asked = asks_within(demand.parts, sizes, most, ranged)
        noise = deviations(asked, demand, sizes, weights, pure=pure)
        own = {ask.part: deviation for ask, deviation in noise.items() if not ask.by}
        found, unit = factors(own, sizes, ranged)
        beside: dict[Ask, tuple[Integers, float]] = {}
        for ask in sorted((ask for ask in asked if ask.by), key=lambda ask: (ask.by, ask.part)):
            alone, fine = factors({ask.part: 1.0}, sizes, ranged)
            beside[ask] = alone[ask.part], unit * math.sqrt(cells(ask.by, sizes)) / (fine * noise[ask])
        most = MAX_PAIRED_TABLE_NUMBERS if paired else MAX_TABLE_NUMBERS
        return cls(sizes, marginals, found, packs(tuple(own), sizes, most), beside)

    @property
    def parts(self) -> tuple[Places, ...]:
        """The interactions of the tables, in the order they are asked in."""
        return tuple(part for pack in self.packs for part in pack.parts)

    @property
    def places(self) -> list[Places]:
        """The attributes that each table or question beside it is read at."""
        return [pack.places for pack in self.packs] + [tuple(sorted((*ask.by, *ask.part))) for ask in self.beside]

    @property
    def counts(self) -> list[int]:
        """How many numbers each question asks."""
        tables = [sum(width(part, self.sizes) for pack in some for part in pack.parts) for some in self._chunks()]
        several = [sum(width(ask.part, self.sizes) for ask in own) for own in self._by().values()]
        return tables + [cells(by, self.sizes) * many for by, many in zip(self._by(), several, strict=True)]

    @property
    def count(self) -> int:
        """|B|: the number of coefficients, each as often as it is told."""
        return sum(self.counts)

    def _chunks(self) -> list[tuple[Pack, ...]]:
        """The tables of each question."""
        return [self.packs[i : i + MAX_VALUES] for i in range(0, len(self.packs), MAX_VALUES)]

    def _by(self) -> dict[Places, list[Ask]]:
        """What is asked beside the tables, by the attributes in whose cells."""
        found: dict[Places, list[Ask]] = {}
        for ask in self.beside:
            found.setdefault(ask.by, []).append(ask)
        return found

    def matrix(self, pack: Pack) -> Integers:
        """One table: a row for each cell of its keys, a column for each coefficient."""
        found = [self.factors[part][:, None] * spread(part, pack.places, self.sizes) for part in pack.parts]
        return np.concatenate(found).T

    def question(self, keys: Sequence[RowFn], where: RowFn | None, *, pure: bool) -> Question:
        """All coefficients at one debit; each table's share of the spend is its own norm, so all get one noise."""
        known: dict[bytes, tuple[tuple[int, ...], ...]] = {}  # tables that are alike are written down once

        def value(places: Places, table: Integers, finer: float = 1.0) -> tuple[RowFn, Fraction]:
            norm = int((np.abs(table) if pure else table**2).sum(axis=1).max())
            share = Fraction(max(round(norm * (finer if pure else finer**2) * SHARE_GRAIN), 1), SHARE_GRAIN)
            if not places:
                return Lit(int(table[0, 0])), share
            rows = known.setdefault(repr(table.shape).encode() + table.tobytes(), tuple(map(tuple, table.tolist())))
            return Lookup(tuple(keys[place] for place in places), rows), share

        found: list[tuple[Places, list[tuple[RowFn, Fraction]]]] = [
            ((), [value(pack.places, self.matrix(pack)) for pack in some]) for some in self._chunks()
        ]
        for by, several in self._by().items():
            own = [(ask.part, *self.beside[ask]) for ask in several]
            found.append(
                (
                    by,
                    [value(part, (each[:, None] * spread(part, part, self.sizes)).T, fine) for part, each, fine in own],
                )
            )
        whole = sum(share for _, several in found for _, share in several)
        questions = []
        for by, pairs in found:
            values, shares = zip(*pairs, strict=True)
            mine = sum(shares)
            questions.append((Sums(values, where, tuple(keys[i] for i in by), tuple(s / mine for s in shares)), mine))
        if len(questions) == 1:
            return questions[0][0]
        return Together(tuple(each for each, _ in questions), tuple(mine / whole for _, mine in questions))

    def read(self, read: Sequence[Read]) -> Coefficients:
        """The coefficients from the answers' numbers; each gets its own noise, and what several tell is averaged."""
        laws = [each.law for _, noise in read for each in noise]
        tables = len(self._chunks())
        released = np.concatenate([values.ravel() for values, _ in read[:tables]])
        noise = [each for _, own in read[:tables] for each in own]
        drawn = np.repeat([each.deviation for each in noise], [each.width for each in noise])
        multiplied = np.concatenate([self.factors[part] for part in self.parts])
        ends = np.cumsum([width(part, self.sizes) for part in self.parts]).tolist()
        values, drawn = released / multiplied, drawn / multiplied
        told = [
            (part, values[start:end], drawn[start:end])
            for part, start, end in zip(self.parts, [0, *ends], ends, strict=False)
        ]
        for (by, several), (numbers, own) in zip(self._by().items(), read[tables:], strict=True):
            rows = numbers.reshape(cells(by, self.sizes), -1)
            at = 0
            for ask, each in zip(several, own, strict=True):
                multiplied = self.beside[ask][0]
                block = rows[:, at : at + len(multiplied)] / multiplied
                at += len(multiplied)
                told += self._turned(ask, block, each.deviation / multiplied)
        law = "laplace" if all(isinstance(each, LaplaceLaw) for each in laws) else "gaussian"
        return averaged(told, self.marginals, self.sizes, law)

    def _turned(self, ask: Ask, block: Floats, drawn: Floats) -> list[tuple[Places, Floats, Floats]]:
        """What a question by cells tells: its vectors' interactions with every subset of the cells' attributes."""
        found = []
        table = block.reshape(*own_sizes(ask.by, self.sizes), *(self.sizes[place] - 1 for place in ask.part))
        for own in inside(ask.by):
            if not width(own, self.sizes):
                continue
            values = turned_by(table, ask.by, own, self.sizes)
            longer = lengths(own_sizes(own, self.sizes)) * (cells(ask.by, self.sizes) / cells(own, self.sizes))
            noisy = np.multiply.outer(np.sqrt(longer), drawn).reshape(values.shape)
            places = (*own, *ask.part)
            order = np.argsort(places)
            part = tuple(sorted(places))
            found.append((part, values.transpose(order).ravel(), noisy.transpose(order).ravel()))
        return found
