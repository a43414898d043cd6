"""The basis: orthogonal whole vectors, the paper's own for yes or no, and transforms that undo each other."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from sulq.release.tables.allocation import Demand
from sulq.release.tables.interactions import basis, inverse, lengths, norms, product, spread


def transform(table: np.ndarray) -> np.ndarray:
    """All coefficients of a table, axis by axis; for yes or no the fast Walsh-Hadamard transform."""
    for axis, size in enumerate(table.shape):
        table = np.moveaxis(np.tensordot(basis(size), table, axes=(1, axis)), 0, axis)
    return table


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 8, 16, 41, 100])
def test_vectors_are_orthogonal(size: int) -> None:
    """The products of different vectors vanish exactly, in whole numbers; the constant is first."""
    found = basis(size)
    assert found.dtype == np.int64
    assert np.array_equal(found @ found.T, np.diag(norms(size)))
    assert np.array_equal(found[0], np.ones(size))
    assert np.gcd.reduce(found, axis=1).tolist() == [1] * size
    leverage = (found**2 / norms(size)[:, None]).sum(axis=0)
    assert leverage == pytest.approx(np.ones(size))  # each row's squares sum to the same: L2 does not see the basis


def test_yes_or_no_is_the_papers_basis_E31() -> None:
    """[S3.15] The product over k attributes is (-1)^<a,g>, which scaled by 2^(-k/2) is orthonormal; without it, not."""
    k = 5
    points = np.array(list(itertools.product([0, 1], repeat=k)))
    printed = (-1) ** (points @ points.T)
    everywhere = tuple(range(k))
    ours = np.stack([spread(tuple(np.flatnonzero(a).tolist()), everywhere, (2,) * k)[0] for a in points])
    assert np.array_equal(ours, printed)
    scaled = ours * 2.0 ** (-k / 2)
    assert scaled @ scaled.T == pytest.approx(np.eye(2**k))
    assert not np.allclose(ours @ ours.T, np.eye(2**k))


@pytest.mark.parametrize("sizes", [(2, 2, 2, 2), (3, 2, 5), (1, 4)])
def test_transform_and_back(sizes: tuple[int, ...]) -> None:
    """[S3.15] The fast transform gives every coefficient, and its inverse the table."""
    table = np.random.default_rng(5).integers(0, 9, sizes)
    found = transform(table)
    slow = np.array(
        [
            (table * math.prod(np.ix_(*(basis(size)[j] for size, j in zip(sizes, places, strict=True))))).sum()
            for places in np.ndindex(sizes)
        ]
    ).reshape(sizes)
    assert np.array_equal(found, slow)
    assert inverse(found) == pytest.approx(table)


def test_products_and_lengths() -> None:
    """An interaction has a vector for each choice of non-constant ones, with the product of their lengths."""
    found = product((3, 4))
    assert found.shape == (6, 12)
    assert np.array_equal(found @ found.T, np.diag(lengths((3, 4))))
    assert (found.sum(axis=1) == 0).all()
    assert product(()).tolist() == [[1]]
    assert product((1,)).shape == (0, 1)


def test_a_sparse_basis_moves_less_in_l1() -> None:
    """At 16 values a row's coefficients sum to 7.2 without the constant, in a binary encoding to 15."""
    assert Demand.of(((0,),), (2,)).reaches.tolist() == [1, 1]
    assert Demand.of(((0,),), (16,)).reaches[1] == pytest.approx(1 + math.sqrt(2) + 2 + math.sqrt(8))
    assert Demand.of(((0,),), (16,)).reaches[1] < 15 / 2
    assert Demand.of(((0,),), (1,)).parts == ((),)
