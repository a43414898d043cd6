"""Sums of a table against the vectors of some interactions, and tables that are sums of such vectors.

Every vector is a product of one of each attribute's basis (`basis.py`), scaled to the constant's length. Of yes or no
all interactions at once are one transform, which is quick however many of them are wanted. Of more values
the transform is long and the marginals that hold the interactions are few: they are summed first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np

from sulq.language.kinds import Floats, Integers
from sulq.release.tables.basis import basis, lengths, norms
from sulq.release.tables.coefficients import own_sizes
from sulq.release.tables.interactions import Places, cells
from sulq.release.tables.summing import gathered, scattered

BLOCK: Final = 32  # cells of attributes that are turned at once
FEW: Final = 2  # values of an attribute up to which the whole transform is quicker


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
            if self._blocks and len(self._blocks[-1]) * len(own) <= BLOCK:
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


class BasisVectors(Protocol):
    """The vectors of some interactions, in the interactions' order."""

    def told(self, flat: Floats) -> Floats:
        """The sums of a table, which is flat, against them."""
        ...

    def spread(self, numbers: Floats) -> Floats:
        """The table, flat, that is their sum, each times its number: the transpose of `told`."""
        ...

    def squares(self, flat: Floats) -> Floats:
        """The sums of a table against their squares."""
        ...


def vectors(sizes: Sequence[int], parts: Sequence[Places]) -> BasisVectors:
    """The vectors of these interactions, by the way that is quicker."""
    return Transform(sizes, parts) if max(sizes) <= FEW else Marginals(sizes, parts)


class Transform:
    """By one transform of the whole table; for attributes of at most two values, whose vectors are of +1 and -1."""

    def __init__(self, sizes: Sequence[int], parts: Sequence[Places]) -> None:
        self._turned = Turned(sizes)
        self._places = np.concatenate([self._turned.places(part) for part in parts])
        self._size = math.prod(sizes)

    def told(self, flat: Floats) -> Floats:
        """All sums, of which these are kept."""
        return np.asarray(self._turned.forward(flat)[self._places])

    def spread(self, numbers: Floats) -> Floats:
        """The other numbers are zero."""
        whole = np.zeros(self._size)
        whole[self._places] = numbers
        return self._turned.back(whole)

    def squares(self, flat: Floats) -> Floats:
        """The square of each entry is one."""
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
        self._ends = np.cumsum([math.prod(sizes[place] - 1 for place in part) for part in parts])[:-1]

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


def _turn(table: Floats, matrices: Sequence[Floats]) -> Floats:
    """A table with each axis multiplied by its matrix."""
    for axis, matrix in enumerate(matrices):
        table = np.moveaxis(np.tensordot(matrix, table, axes=(1, axis)), 0, axis)
    return table
