"""Counts over ranges of a published table's cells, with the standard error of their noise."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sulq.forms.parameters import checked
from sulq.language.kinds import Floats, Truths
from sulq.release.space import ATTRIBUTES, CellSpace, places, text
from sulq.release.tables.interactions import Places, basis, cells, inside, lengths, own_sizes
from sulq.release.tables.noisy_tables import Coefficients, NoisyTable, variance


@dataclass(frozen=True, slots=True)
class RangeCount:
    """How many rows lie in some cells; of a model, the standard error is that of what was measured."""

    value: float
    standard_error: float


def counted(values: Floats, noise: NoisyTable, whole: Places, chosen: Sequence[Truths]) -> RangeCount:
    """The sum of a marginal's chosen cells: of each of its attributes some are."""
    where = np.ix_(*chosen)
    if isinstance(noise, Coefficients):
        return RangeCount(float(values[where].sum()), _variance(noise, whole, chosen) ** 0.5)
    return RangeCount(float(values[where].sum()), float(variance(noise, whole)[where].sum()) ** 0.5)


def _variance(noise: Coefficients, whole: Places, chosen: Sequence[Truths]) -> float:
    """Cells share coefficients: each moves the sum by its vector's sum over the chosen cells."""
    own = dict(zip(whole, chosen, strict=True))
    found = 0.0
    for part in inside(whole):
        if part in noise.deviations:
            sums = [basis(noise.sizes[place])[1:] @ own[place] for place in part]
            others = float(np.prod([own[place].sum() for place in whole if place not in part]))
            rest = cells(whole, noise.sizes) / cells(part, noise.sizes)
            moved = functools.reduce(np.kron, sums, np.full(1, others)) / lengths(own_sizes(part, noise.sizes)) / rest
            found += float(((noise.deviations[part] * moved) ** 2).sum())
    return found


def picked(name: str, labels: Sequence[object], wanted: object) -> Truths:
    """Which cells of an attribute are meant: one by its label, or those between a low and a high end, both included.

    Raises:
        QuestionError: `bad-parameter`: there are none, the cells have no order, or the range cuts one.
    """
    wanted = _plain(wanted)
    if not isinstance(wanted, tuple) or wanted in labels:
        found = [each == wanted for each in labels]
        checked(any(found), f"{name} has no cell {text(wanted)}; it has {', '.join(map(text, labels[:20]))}.")
        return np.array(found)
    ends = [(each[0], each[-1]) if isinstance(each, (tuple, list)) else (each, each) for each in labels]
    kinds = (int, float) if all(isinstance(end, (int, float)) for pair in ends for end in pair) else (str,)
    ordered = kinds != (str,) or all(isinstance(each, (tuple, list)) for each in labels)
    fine = len(wanted) == 2 and all(isinstance(end, kinds) for end in wanted)
    checked(ordered and fine, f"A range of {name} is a low and a high end, of an attribute whose cells have an order.")
    low, high = wanted
    found = [low <= first and last <= high for first, last in ends]
    cut = any(not own and first < high and low < last for own, (first, last) in zip(found, ends, strict=True))
    checked(any(found) and not cut, f"A range of {name} holds whole cells; they end at {_ends(ends)}.")
    return np.array(found)


def _plain(one: object) -> object:
    """NumPy's numbers as Python's, which compare with any label, and lists as tuples."""
    plain = one.tolist() if isinstance(one, (np.generic, np.ndarray)) else one
    return tuple(map(_plain, plain)) if isinstance(plain, (tuple, list)) else plain


def _ends(ends: Sequence[tuple[object, object]]) -> str:
    return ", ".join(dict.fromkeys(text(end) for pair in ends for end in pair))


def ranged(ranges: Sequence[str] | None, space: CellSpace, method: str) -> Places:
    """The attributes that are to be read by ranges, by their places; refuses those without an order."""
    if not ranges:
        return ()
    found = places(ranges, space.names, ATTRIBUTES)
    ordered = all(space.attributes[place].ordered for place in found)
    checked(ordered, "Ranges are of numbers, whose cells have an order.")
    checked(method in ("auto", "fourier", "fourier-shift"), "Noise is divided for ranges by fourier or fourier-shift.")
    return found


def conditions(where: object) -> Mapping[str, object]:
    """What is asked of attributes, by their names; refuses whatever else was given."""
    checked(isinstance(where, Mapping) and bool(where), 'Name attributes and their values: {"age": (20, 40)}.')
    assert isinstance(where, Mapping)  # noqa: S101 - for the type checker
    return where
