"""An orthogonal basis of whole numbers for the functions on an attribute's cells.

The paper's basis is for yes or no: f^a_g = 2^(-k/2) (-1)^<a,g> [S3.15, E31], the product
over attributes of (1, 1) and (1, -1). For an attribute of r values we take the Haar
vectors of a balanced division into halves, with whole entries: constant, left half
against right half, and so on within each half. For r = 2 they are the paper's own.

Why these: any orthogonal basis gives the same Gaussian noise, because the L2 norm of a row's
coefficients does not depend on it (their squares sum to r - 1, without the constant). In L1 a
sparse basis is cheaper: at r = 16 a row's scaled coefficients sum to 8.2 with the constant, in the
binary encoding of the paper's footnote to 16. Whole entries keep the sums exact.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from sulq.language.kinds import Floats, Integers


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


@functools.cache
def reach(size: int) -> float:
    """The most that one row's coefficients sum to in absolute value, without the constant's.

    Each vector is scaled to squared length r, as the constant's is.
    """
    scaled = np.abs(basis(size)[1:]) * np.sqrt(size / norms(size)[1:])[:, None]
    return float(scaled.sum(axis=0).max(initial=0.0))


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
