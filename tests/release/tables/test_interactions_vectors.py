"""Sums against the vectors of interactions: both ways are the sums written out, and `spread` is their transpose."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sulq.release.tables.interactions import (
    Marginals,
    Places,
    Transform,
    Turned,
    closure,
    own_sizes,
    product,
    scale,
    vectors,
)

TWOS, MIXED = (2,) * 6, (3, 4, 5, 2)
PARTS: tuple[Places, ...] = ((1,), (0, 1), (1, 3), (2,), (0, 2, 3), (3,))


def written(part: Places, sizes: tuple[int, ...]) -> np.ndarray:
    """An interaction's vectors on all cells, one a row, each of the constant's length."""
    own = (product(own_sizes(part, sizes)) * scale(part, sizes)[:, None]).reshape(
        -1, *(size if place in part else 1 for place, size in enumerate(sizes))
    )
    return np.broadcast_to(own, (len(own), *sizes)).reshape(len(own), -1)


@pytest.mark.parametrize("sizes", [TWOS, MIXED, (2, 2, 7, 2), (40, 3)])
def test_turned_is_the_transform_of_every_attribute(sizes: tuple[int, ...]) -> None:
    """An interaction's coefficients are where `places` says; back is the transpose, and all vectors have one length."""
    rng = np.random.default_rng(4)
    turned, cells = Turned(sizes), rng.random(sizes)
    flat = turned.forward(cells.ravel())
    for part in closure((tuple(range(len(sizes))),)):
        own = cells.sum(axis=tuple(set(range(len(sizes))) - set(part))).ravel()
        assert flat[turned.places(part)] == pytest.approx((product(own_sizes(part, sizes)) @ own) * scale(part, sizes))
    assert turned.back(flat) / cells.size == pytest.approx(cells.ravel())


@pytest.mark.parametrize(("kind", "sizes"), [(Transform, TWOS), (Marginals, TWOS), (Marginals, MIXED)])
def test_the_sums_are_those_written_out(kind: type[Transform | Marginals], sizes: tuple[int, ...]) -> None:
    """Against the vectors and against their squares, in the parts' order; a table of two vectors is their sum."""
    rng = np.random.default_rng(5)
    own, matrix = kind(sizes, PARTS), np.concatenate([written(part, sizes) for part in PARTS])
    flat, numbers = rng.random(math.prod(sizes)), rng.normal(size=len(matrix))
    assert own.told(flat) == pytest.approx(matrix @ flat)
    assert own.squares(flat) == pytest.approx(matrix**2 @ flat)
    assert own.spread(numbers) == pytest.approx(matrix.T @ numbers)
    other = kind(sizes, PARTS[::-1])
    assert not np.allclose(other.told(flat), own.told(flat))  # the control: in another order they are other numbers


def test_the_quicker_way_is_taken() -> None:
    """Of yes or no the transform, else marginals."""
    assert isinstance(vectors(TWOS, PARTS), Transform)
    assert isinstance(vectors(MIXED, PARTS), Marginals)
