"""Groups found in the data: noise and threshold in one call on the whole map (SR14).

Source: docs/theory/open-keys.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from sulq.kernel.arrays import Integers
from sulq.kernel.laws import GaussianLaw, Law, PassedLaw
from sulq.kernel.mechanisms import bulk
from sulq.kernel.mechanisms._release import noisy, opened
from sulq.kernel.private import Groups, Private


@dataclass(frozen=True, slots=True)
class Columns:
    """The law of the noise on so many neighbouring columns."""

    law: Law
    width: int


class Shown(NamedTuple):
    """The groups that passed: noisy numbers, a row for each, and its label, ascending."""

    units: Integers
    labels: tuple[tuple[object, ...], ...]


def passed(people: Integers, law: PassedLaw) -> Integers:
    """Noisy numbers of people; those that do not pass are hidden as zeros."""
    found = _blurred(people, law)
    return np.where(found > law.threshold, found, 0)


def _blurred(sums: Integers, law: GaussianLaw | PassedLaw) -> Integers:
    return sums + bulk.gaussian(sums.size, law.scale)


def reveal(noise: Sequence[Columns], exact: Private[Groups]) -> Shown:
    """The groups that pass, ascending, with their noisy numbers of people and noisy sums.

    `noise`: the law of the people first, then those of the sums, column by column.
    Nothing of a group that does not pass leaves: not how many there were, not a sum over them.
    """
    return opened(exact, lambda groups: _revealed(noise, groups))


def _revealed(noise: Sequence[Columns], groups: Groups) -> Shown:
    people, *rest = noise
    width = sum(item.width for item in rest)
    if groups.sums.shape != (len(groups.keys), width) or groups.persons.shape != (len(groups.keys),):
        raise ValueError
    if not isinstance(people.law, PassedLaw) or len(set(groups.keys)) != len(groups.keys):
        raise ValueError
    seen = noisy(groups.persons, partial(passed, law=people.law))
    kept = sorted(np.flatnonzero(seen).tolist(), key=lambda i: _placed(groups.keys[i]))
    columns, start = [seen[kept, None]], 0
    for item in rest:
        if not isinstance(item.law, GaussianLaw):
            raise TypeError
        columns.append(noisy(groups.sums[kept, start : start + item.width], partial(_blurred, law=item.law)))
        start += item.width
    return Shown(np.concatenate(columns, axis=1), tuple(groups.keys[i] for i in kept))


def _placed(label: tuple[object, ...]) -> list[tuple[int, object]]:
    """Where a label stands among others, NaN and None last: an order that the rows have no part in."""
    nan = [isinstance(part, float) and math.isnan(part) for part in label]
    return [(2, 0) if part is None else (1, 0) if none else (0, part) for part, none in zip(label, nan, strict=True)]
