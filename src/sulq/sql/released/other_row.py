"""The rest: what the groups that are shown leave of a total (SR14).

Of groups that did not pass their threshold nothing leaves the curator, so nothing
is summed over them: the row for all of them is a noisy total, a question of its
own, less the noisy groups that are shown.
Accuracy: which groups are shown follows from the noise on their numbers of people
alone, and that is independent of the noise on their sums and on the total. Given
the groups shown, the difference is off by one draw of the total's noise and one of
each shown group's; every reading takes it as any other released cell.
Source: docs/theory/open-keys.md.
"""

from __future__ import annotations

import math
from fractions import Fraction

from sulq.answers.noise_sums import SMOOTH, AddedLaw, added
from sulq.answers.released import Noise, Released
from sulq.language.law import GaussianLaw, Law, round_up


def rest(total: Released, shown: Released) -> Released:
    """One cell: the total's columns less those of all groups shown, with the noise of both."""
    units = total.units - shown.units.sum(axis=0, keepdims=True)
    noise = []
    for whole, each in zip(total.noise, shown.noise, strict=True):
        if whole.step != each.step or whole.width != each.width:
            raise ValueError("a total is told in the units of its groups")
        law = difference(whole.law, each.law, shown.cells)
        noise.append(Noise(law, whole.step, whole.width))  # type: ignore[arg-type]
    return Released(units, tuple(noise))


def difference(total: Law, group: Law, number: int) -> Law | AddedLaw:
    """The law of one draw of the total's noise less so many of a group's.

    Discrete Gaussians of scale 2 or more add up to one, up to 1e-16. Below that a
    scale is raised: either to 2, or all of them to the larger one. More noise spreads a
    sum of symmetric unimodal draws, so no interval becomes too short (Birnbaum).
    """
    if not number:
        return total
    if not isinstance(total, GaussianLaw) or not isinstance(group, GaussianLaw):
        raise TypeError("only noise on sums adds up")
    least = Fraction(SMOOTH)
    whole, each = max(total.scale, least), max(group.scale, least)
    wide = math.sqrt(whole**2 + number * each**2)
    alike = GaussianLaw(max(total.scale, group.scale))
    if alike.scale < least and (number + 1) * alike.variance() < wide**2:
        return added(alike, number + 1)
    return GaussianLaw(round_up(Fraction(wide * (1 + 1e-12))))
