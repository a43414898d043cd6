"""Coefficients from any noisy answers: each from all numbers that tell of it, by the inverse of their variance.

A marginal of cells with noise of one deviation s has the coefficients of its subsets b, with noise of deviation s |f_b|
(on the marginal's cells), uncorrelated because the vectors are orthogonal. Several marginals that hold b tell its
coefficient independently, so their mean, weighted by 1/variance, is the least-squares estimate from all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from sulq.language.kinds import Floats
from sulq.release.tables.basis import lengths, product
from sulq.release.tables.coefficients import Coefficients, own_sizes
from sulq.release.tables.interactions import Places, cells, closure, inside, width
from sulq.release.tables.kept import Cells, Fitted, Kept, Measured, Shifted
from sulq.release.tables.noisy import CellNoise, Noisy, OwnNoise

FINEST: Final = 1e-6  # rows: a deviation that is as good as none


def coefficients(kept: Kept, asked: tuple[Places, ...]) -> Coefficients:
    """The coefficients that some answers tell of, for marginals that need them."""
    if isinstance(kept, Cells):
        return _of_cells(kept, asked)
    if isinstance(kept, Measured):
        return _of_marginals(kept, asked)
    assert isinstance(kept, (Fitted, Shifted))  # noqa: S101 - for the type checker
    return replace(kept.noise, marginals=asked)


def counted(found: Coefficients, rows: float, deviation: float) -> Coefficients:
    """The same with a noisy number of rows that was told apart, which the vector of ones has for its coefficient."""
    trust, more = (np.maximum(own, FINEST) ** -2.0 for own in (found.deviations[()], deviation))
    mean = (found.values[()] * trust + rows * more) / (trust + more)
    return replace(
        found,
        values={**found.values, (): mean},
        deviations={**found.deviations, (): (trust + more) ** -0.5},
    )


def silent(noise: Noisy) -> Kept:
    """Answers of nothing but zeros with this noise: what is foreseen before anything is asked."""
    if isinstance(noise, CellNoise):
        return Cells(np.zeros(noise.sizes), noise)
    if isinstance(noise, OwnNoise):
        return Measured({part: np.zeros(own_sizes(part, noise.sizes)) for part in noise.deviations}, noise)
    assert isinstance(noise, Coefficients)  # noqa: S101 - likewise
    return Shifted(noise, 0.0)


def _summed(values: Floats, whole: Places, part: Places, sizes: Sequence[int]) -> Floats:
    """An interaction's coefficients of a marginal that holds it."""
    others = tuple(i for i, place in enumerate(whole) if place not in part)
    return np.asarray(product(own_sizes(part, sizes)) @ values.sum(axis=others).ravel())


def _of_cells(kept: Cells, asked: tuple[Places, ...]) -> Coefficients:
    """Of the whole table, each told once."""
    sizes = kept.noise.sizes
    values: dict[Places, Floats] = {}
    for marginal in asked:
        own = kept.marginal(marginal)
        for part in inside(marginal):
            if part not in values and width(part, sizes):
                values[part] = _summed(own, marginal, part, sizes)
    everywhere = cells(range(len(sizes)), sizes)
    deviations = {
        part: kept.noise.deviation * np.sqrt(lengths(own_sizes(part, sizes)) * (everywhere / cells(part, sizes)))
        for part in values
    }
    return _ordered(Coefficients(sizes, asked, values, deviations, kept.noise.law))


def _of_marginals(kept: Measured, asked: tuple[Places, ...]) -> Coefficients:
    """Of several marginals, each from all that hold it."""
    sizes = kept.noise.sizes
    sums: dict[Places, Floats] = {}
    weights: dict[Places, Floats] = {}
    for marginal, values in kept.values.items():
        for part in inside(marginal):
            if not width(part, sizes):
                continue
            longer = lengths(own_sizes(part, sizes)) * (cells(marginal, sizes) / cells(part, sizes))
            each = 1.0 / (kept.noise.deviations[marginal] ** 2 * longer)
            none = np.zeros(len(each))
            sums[part] = sums.get(part, none) + each * _summed(values, marginal, part, sizes)
            weights[part] = weights.get(part, none) + each
    found = {part: own / weights[part] for part, own in sums.items()}
    deviations = {part: own**-0.5 for part, own in weights.items()}
    return _ordered(Coefficients(sizes, asked, found, deviations, kept.noise.law))


def _ordered(found: Coefficients) -> Coefficients:
    """The small interactions first, as they are on file."""
    parts = [part for part in closure(found.values) if part in found.values]
    return replace(
        found,
        values={part: found.values[part] for part in parts},
        deviations={part: found.deviations[part] for part in parts},
    )
