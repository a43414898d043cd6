"""Interactions of attributes: which ones marginals need, their vectors, and sums of a table against these.

A marginal is a sum over the coefficients of its subsets, the downward closure [S3.16, S3.18]. The paper's basis is for
yes or no: f^a_g = 2^(-k/2) (-1)^<a,g> [S3.15, E31], the product over attributes of (1, 1) and (1, -1). For an attribute
of r values we take the Haar vectors of a balanced division into halves, with whole entries: constant, left half against
right half, and so on within each half. For r = 2 they are the paper's own.

Why these: any orthogonal basis gives the same Gaussian noise, because the L2 norm of a row's coefficients does not
depend on it (their squares sum to r - 1, without the constant). In L1 a sparse basis is cheaper: at r = 16 a row's
scaled coefficients sum to 8.2 with the constant, in the binary encoding of the paper's footnote to 16. Whole entries
keep the sums exact.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from sulq.language.kinds import Floats, Integers

Places = tuple[int, ...]  # attributes by their place, ascending
MAX_CACHED_CELLS: Final = 64  # of a marginal whose vectors are kept
MAX_BLOCK_CELLS: Final = 32  # cells of attributes that are turned at once
MAX_TRANSFORM_VALUES: Final = 2  # values of an attribute up to which the whole transform is quicker


def within(marginals: Iterable[Places]) -> Iterator[Places]:
    """The subsets of each marginal, one marginal after the other."""
    for marginal in marginals:
        for size in range(len(marginal) + 1):
            yield from itertools.combinations(marginal, size)


@functools.lru_cache(maxsize=64)  # a release walks over its own again and again
def closure(marginals: tuple[Places, ...]) -> tuple[Places, ...]:
    """Every subset of every marginal, the small ones first: a marginal is a sum over its subsets' coefficients."""
    return tuple(sorted({*within(marginals)}, key=lambda part: (len(part), part)))


def inside(marginal: Places) -> tuple[Places, ...]:
    """The subsets of one marginal."""
    return closure((marginal,))


def width(places: Places, sizes: Sequence[int]) -> int:
    """The number of coefficients of one interaction."""
    return math.prod(sizes[place] - 1 for place in places)


def cells(places: Iterable[int], sizes: Sequence[int]) -> int:
    """The number of cells of a marginal."""
    return math.prod(sizes[place] for place in places)


def subsets(marginals: Iterable[Places]) -> int:
    """How many subsets the marginals have, one by one: the length of every walk over them, known without one."""
    return sum(2 ** len(marginal) for marginal in marginals)


def numbers(marginals: Iterable[Places], sizes: Sequence[int], order: int) -> int:
    """How many numbers the vectors of interactions of up to `order` attributes have on the marginals' cells.

    The widths of a marginal's subsets of j attributes sum to the coefficient of t^j in the product of 1 + (r - 1) t.
    """
    whole = 0
    for marginal in marginals:
        widths = [1]
        for place in marginal:
            more = [(sizes[place] - 1) * each for each in widths]
            widths = [one + other for one, other in zip([*widths, 0], [0, *more], strict=True)]
        whole += cells(marginal, sizes) * sum(widths[: order + 1])
    return whole


def largest(marginals: Iterable[Places], sizes: Sequence[int], order: int) -> int:
    """The most numbers that one interaction of up to `order` attributes has on a marginal's cells."""
    return max(
        cells(marginal, sizes)
        * math.prod(sorted((max(sizes[place] - 1, 1) for place in marginal), reverse=True)[:order])
        for marginal in marginals
    )


def own_sizes(part: Places, sizes: Sequence[int]) -> tuple[int, ...]:
    """The sizes of some attributes."""
    return tuple(sizes[place] for place in part)


@functools.cache
def basis(size: int) -> Integers:
    """The vectors, one a row, the constant first; pairwise orthogonal, whole, without a common divisor."""
    rows = [np.ones(size, dtype=np.int64)]
    left = [(0, size)]
    while left:
        start, stop = left.pop(0)
        if stop - start < 2:
            continue
        middle = (start + stop + 1) // 2
        first, second = middle - start, stop - middle
        common = math.gcd(first, second)
        row = np.zeros(size, dtype=np.int64)
        row[start:middle] = second // common
        row[middle:stop] = -(first // common)
        rows.append(row)
        left += [(start, middle), (middle, stop)]
    found = np.stack(rows)
    found.setflags(write=False)
    return found


@functools.cache
def norms(size: int) -> Integers:
    """The squared length of each vector."""
    return np.asarray((basis(size) ** 2).sum(axis=1))


def inverse(coefficients: Floats | Integers) -> Floats:
    """The table that has these coefficients."""
    found = np.asarray(coefficients, dtype=np.float64)
    for axis, size in enumerate(found.shape):
        back = (basis(size) / norms(size)[:, None]).T
        found = np.moveaxis(np.tensordot(back, found, axes=(1, axis)), 0, axis)
    return found


@functools.lru_cache(maxsize=1024)
def product(sizes: tuple[int, ...]) -> Integers:
    """The vectors of one interaction on its own cells, one a row: products of non-constant ones, the last fastest."""
    found = np.ones((1, 1), dtype=np.int64)
    for size in sizes:
        found = np.kron(found, basis(size)[1:])
    found.setflags(write=False)
    return found


@functools.lru_cache(maxsize=1024)
def lengths(sizes: tuple[int, ...]) -> Integers:
    """The squared lengths of `product`'s vectors."""
    found = np.ones(1, dtype=np.int64)
    for size in sizes:
        found = np.kron(found, norms(size)[1:])
    found.setflags(write=False)
    return found


def gathered(table: Floats, wanted: Iterable[Places]) -> dict[Places, Floats]:
    """The marginals of a table by these columns, which are ascending."""
    sizes = table.shape
    found: dict[Places, Floats] = {}

    def gather(rest: Floats, start: int, chosen: Places, tails: set[Places]) -> None:
        """`rest` has a row for each cell of the chosen columns and a column for each cell of those from `start` on."""
        if () in tails:
            found[chosen] = rest.sum(axis=1).reshape([sizes[place] for place in chosen])
        for place in range(start, max((tail[0] for tail in tails if tail), default=-1) + 1):
            split = rest.reshape(len(rest), sizes[place], -1)
            further = {tail[1:] for tail in tails if tail and tail[0] == place}
            if further:
                gather(split.reshape(len(rest) * sizes[place], -1), place + 1, (*chosen, place), further)
            rest = split.sum(axis=1)

    gather(table.reshape(1, -1), 0, (), {*wanted})
    return found


def scattered(parts: Mapping[Places, Floats], sizes: Sequence[int]) -> Floats:
    """The table whose cell is the sum of each part's cell there: <scattered(p), t> = <p, gathered(t)>."""
    flat = {places: values.ravel() for places, values in parts.items()}
    return _scatter(sizes, 0, (), {*flat}, flat).reshape(tuple(sizes))


def _scatter(
    sizes: Sequence[int], start: int, chosen: Places, tails: set[Places], parts: Mapping[Places, Floats]
) -> Floats:
    """The table of the chosen columns, a row for each cell of them, and of the columns from `start` on."""
    rows = cells(chosen, sizes)
    last = max((tail[0] for tail in tails if tail), default=-1)
    found: Floats = np.zeros((rows, math.prod(sizes[last + 1 :]) if last >= 0 else math.prod(sizes[start:])))
    if () in tails:
        found += parts[chosen].reshape(rows, 1)
    for place in range(last, start - 1, -1):
        further = {tail[1:] for tail in tails if tail and tail[0] == place}
        if further:
            own = _scatter(sizes, place + 1, (*chosen, place), further, parts)
            found = (own.reshape(rows, sizes[place], -1) + found[:, None, :]).reshape(rows, -1)
        else:
            found = np.repeat(found[:, None, :], sizes[place], axis=1).reshape(rows, -1)
    return found


def spread(part: Places, over: Places, sizes: Sequence[int]) -> Integers:
    """An interaction's vectors on the cells of more attributes, one a row."""
    own = own_sizes(over, sizes)
    among = tuple(place in part for place in over)
    return _kept(among, own) if cells(over, sizes) <= MAX_CACHED_CELLS else _spread(among, own)


def onto(numbers: Floats, part: Places, over: Places, sizes: Sequence[int], power: int = 1) -> Floats:
    """Rows of an interaction's numbers, each times its vector (or a power of it), on the cells of more attributes.

    Of large marginals attribute by attribute: all vectors at once have cells times coefficients numbers.
    """
    if cells(over, sizes) <= MAX_CACHED_CELLS:
        return np.asarray(numbers @ spread(part, over, sizes) ** power)
    found = numbers.reshape(len(numbers), *(sizes[place] - 1 if place in part else 1 for place in over))
    for axis, place in enumerate(over, 1):
        if place in part:
            vectors = basis(sizes[place])[1:] ** power
            found = np.moveaxis(np.tensordot(found, vectors, axes=(axis, 0)), -1, axis)
    return np.broadcast_to(found, (len(numbers), *own_sizes(over, sizes))).reshape(len(numbers), -1)


def against(table: Floats, part: Places, sizes: Sequence[int]) -> Floats:
    """The sums of a marginal of an interaction's attributes against the interaction's vectors, flat."""
    own = own_sizes(part, sizes)
    if math.prod(own) <= MAX_CACHED_CELLS:
        return np.asarray(product(own) @ table.ravel())
    return _turn(table, [basis(size)[1:].astype(np.float64) for size in own]).ravel()


def turned_by(table: Floats, axes: Places, part: Places, sizes: Sequence[int]) -> Floats:
    """A table whose first axes are those of some attributes: summed against the vectors of `part`, over the others."""
    for axis in range(len(axes) - 1, -1, -1):
        if axes[axis] in part:
            table = np.moveaxis(np.tensordot(basis(sizes[axes[axis]])[1:], table, axes=(1, axis)), 0, axis)
        else:
            table = table.sum(axis=axis)
    return np.asarray(table)


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


def scale(part: Places, sizes: Sequence[int]) -> Floats:
    """What an interaction's coefficients are multiplied by, so that their vectors have the constant's length."""
    return np.asarray(np.sqrt(cells(part, sizes) / lengths(own_sizes(part, sizes))))


def _even(size: int) -> Floats:
    """An attribute's vectors, the constant first, each scaled to the constant's length."""
    return np.asarray(basis(size) * np.sqrt(size / norms(size))[:, None], dtype=np.float64)


class Turned:
    """Sums against all products of the attributes' vectors at once."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = tuple(sizes)
        self._blocks: list[Floats] = []
        for own in map(_even, sizes):
            if self._blocks and len(self._blocks[-1]) * len(own) <= MAX_BLOCK_CELLS:
                self._blocks[-1] = np.asarray(np.kron(self._blocks[-1], own), dtype=np.float64)
            else:
                self._blocks.append(own)

    def forward(self, table: Floats) -> Floats:
        """All coefficients of a table; flat, as the table is."""
        for block in self._blocks:  # each turns the first axes and puts them last, so that all are in order again
            table = (table.reshape(len(block), -1).T @ block.T).ravel()
        return table

    def back(self, coefficients: Floats) -> Floats:
        """The sum of the vectors, each times its number."""
        for block in self._blocks:
            coefficients = (coefficients.reshape(len(block), -1).T @ block).ravel()
        return coefficients

    def places(self, part: Places) -> Integers:
        """Where an interaction's coefficients are."""
        found = np.zeros(1, dtype=np.int64)
        for place in part:
            step = math.prod(self.sizes[place + 1 :])
            found = (found[:, None] + step * np.arange(1, self.sizes[place])).ravel()
        return found


class Transform:
    """By one transform of the whole table; for attributes of at most two values, whose vectors are of +1 and -1."""

    def __init__(self, sizes: Sequence[int], parts: Sequence[Places]) -> None:
        self._turned = Turned(sizes)
        self._places = np.concatenate([self._turned.places(part) for part in parts])
        self._size = math.prod(sizes)

    def told(self, flat: Floats) -> Floats:
        """The sums of a table, which is flat, against the vectors: all, of which these are kept."""
        return np.asarray(self._turned.forward(flat)[self._places])

    def spread(self, numbers: Floats) -> Floats:
        """The table, flat, that is the vectors' sum, each times its number: the transpose of `told`."""
        whole = np.zeros(self._size)
        whole[self._places] = numbers
        return self._turned.back(whole)

    def squares(self, flat: Floats) -> Floats:
        """The sums of a table against the vectors' squares: the square of each entry is one."""
        return np.full(len(self._places), float(flat.sum()))


class Marginals:
    """By the marginals that hold the interactions, none of them within another."""

    def __init__(self, sizes: Sequence[int], parts: Sequence[Places]) -> None:
        self._sizes, self._parts = tuple(sizes), tuple(parts)
        self._own = {size: _even(size)[1:] for size in {*sizes}}
        self._square = {size: own**2 for size, own in self._own.items()}
        homes: list[Places] = []
        self._home: dict[Places, Places] = {}
        for part in sorted({*parts}, key=len, reverse=True):
            home = next((home for home in homes if {*part} <= {*home}), None)
            homes += [part] if home is None else []
            self._home[part] = part if home is None else home
        self._ends = np.cumsum([width(part, sizes) for part in parts])[:-1]

    def told(self, flat: Floats) -> Floats:
        """Each marginal against its own vectors, attribute by attribute."""
        return self._against(flat, self._own)

    def squares(self, flat: Floats) -> Floats:
        """The same with the vectors' squares."""
        return self._against(flat, self._square)

    def spread(self, numbers: Floats) -> Floats:
        """The vectors' sums on the marginals' cells, put together."""
        found: dict[Places, Floats] = {home: np.zeros(own_sizes(home, self._sizes)) for home in self._home.values()}
        for part, own in zip(self._parts, np.split(numbers, self._ends), strict=True):
            shape = [self._sizes[place] - 1 for place in part]
            table = _turn(own.reshape(shape), [self._own[self._sizes[place]].T for place in part])
            home = self._home[part]
            found[home] += table.reshape([self._sizes[place] if place in part else 1 for place in home])
        return scattered(found, self._sizes).ravel()

    def _against(self, flat: Floats, own: dict[int, Floats]) -> Floats:
        tables = gathered(flat.reshape(self._sizes), {*self._home.values()})
        found = []
        for part in self._parts:
            home = self._home[part]
            table = tables[home].sum(axis=tuple(i for i, place in enumerate(home) if place not in part))
            found.append(_turn(table, [own[self._sizes[place]] for place in part]).ravel())
        return np.concatenate(found)


BasisVectors = Transform | Marginals  # the vectors of some interactions, in the interactions' order


def vectors(sizes: Sequence[int], parts: Sequence[Places]) -> BasisVectors:
    """The vectors of these interactions, by the way that is quicker."""
    return Transform(sizes, parts) if max(sizes) <= MAX_TRANSFORM_VALUES else Marginals(sizes, parts)


def farthest(sizes: tuple[int, ...]) -> Integers:
    """The largest entry of each of `product`'s vectors, in absolute value."""
    return _crossed(np.abs(basis(size)[1:]).max(axis=1, initial=0) for size in sizes)


def absolutes(sizes: tuple[int, ...]) -> Integers:
    """The sum of the absolute entries of each of `product`'s vectors."""
    return _crossed(np.abs(basis(size)[1:]).sum(axis=1) for size in sizes)


def _crossed(factors: Iterable[Integers]) -> Integers:
    return functools.reduce(np.kron, factors, np.ones(1, dtype=np.int64))


def _turn(table: Floats, matrices: Sequence[Floats]) -> Floats:
    """A table with each axis multiplied by its matrix."""
    for axis, matrix in enumerate(matrices):
        table = np.moveaxis(np.tensordot(matrix, table, axes=(1, axis)), 0, axis)
    return table
