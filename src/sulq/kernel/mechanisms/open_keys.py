"""Groups found in the data: noise and threshold in one call on the whole map (SR14)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, Protocol

import numpy as np

from sulq.kernel.arrays import Integers
from sulq.kernel.laws import GaussianLaw, Law, PassedLaw
from sulq.kernel.mechanisms._release import opened
from sulq.kernel.mechanisms.gaussian import DiscreteGaussian
from sulq.kernel.private import Groups, Private


@dataclass(frozen=True, slots=True)
class Thresholded:
    """Discrete Gaussian noise on the number of people of each group; what is not above the threshold becomes 0.

    Privacy: if one person moves the numbers by a vector of squared L2 norm at most D2
    and holds at most m groups alone, the release is delta-approximate rho-zCDP with
    rho = D2/(2 scale^2) and delta = m P(noise >= threshold), the exact tail rounded
    up (T24, T25); no pure epsilon holds [BS16, Definition 8.1].
    Accuracy: `sulq.terms.law.PassedLaw.ends`, given that the group passed.
    Source: docs/theory/open-keys.md; sampled as `DiscreteGaussian`.
    """

    law: PassedLaw

    def epsilon(self, sensitivity: Fraction) -> None:
        """No pure loss holds: a group may be there for one neighbour alone."""

    def rho(self, sensitivity: Fraction) -> Fraction:
        """Exact zero-concentrated loss for a squared L2 sensitivity, but for key_delta."""
        return DiscreteGaussian(self.law.noise).rho(sensitivity)

    def key_delta(self, alone: int) -> Fraction:
        """Chance, rounded up, that any of so many groups of one person shows."""
        return alone * Fraction(self.law.alone())

    def release(self, exact: Private[Integers]) -> Integers:
        """Add fresh noise to every number of people, then hide those that do not pass as zeros."""
        noisy = DiscreteGaussian(self.law.noise).release(exact)
        return np.where(noisy > self.law.threshold, noisy, 0)


class Columns(Protocol):
    """The law of the noise on so many neighbouring columns."""

    @property
    def law(self) -> Law:
        """The law."""

    @property
    def width(self) -> int:
        """How many columns."""


class Shown(NamedTuple):
    """The groups that passed: noisy numbers, a row for each, and its label, ascending."""

    units: Integers
    labels: tuple[tuple[object, ...], ...]


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
    seen = Thresholded(people.law).release(Private(groups.persons))
    kept = np.flatnonzero(seen)
    kept = kept[_ascending([groups.keys[i] for i in kept])]
    columns, start = [seen[kept, None]], 0
    for item in rest:
        if not isinstance(item.law, GaussianLaw):
            raise TypeError
        columns.append(DiscreteGaussian(item.law).release(Private(groups.sums[kept, start : start + item.width])))
        start += item.width
    return Shown(np.concatenate(columns, axis=1), tuple(groups.keys[i] for i in kept))


def _ascending(labels: list[tuple[object, ...]]) -> Integers:
    """The places of the labels in ascending order, None last: an order that the rows have no part in."""
    places = sorted(
        range(len(labels)), key=lambda i: [(part is None, 0 if part is None else part) for part in labels[i]]
    )
    return np.array(places, dtype=np.int64)
