"""OpenDP's noise with a threshold for keys that nobody listed: the better law at the least threshold its maps allow."""

from __future__ import annotations

import math

import opendp.prelude as dp
from opendp.metrics import l01inf_distance, l02inf_distance

dp.enable_features("contrib")


def least(each, epsilon, delta):
    """The measurement of least threshold for (epsilon, delta) and so many keys a person, on a map of exact counts.

    Laplace noise has all of delta for the threshold; Gaussian noise and its threshold have half each.
    """
    groups, kind = dp.map_domain(dp.atom_domain(T="String"), dp.atom_domain(T="i32")), dp.absolute_distance(T="i32")
    number = dp.atom_domain(T="f64", nan=False), dp.absolute_distance(T="f64")

    def noise(wide):
        made = dp.m.make_gaussian(*number, scale=wide)
        pair = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(made), delta / 2)
        return bool(pair.map(each**0.5)[0] <= epsilon)

    scale = dp.binary_search(noise, bounds=(0.1, 1e4))

    def laplace(threshold):
        found = dp.m.make_laplace_threshold(groups, l01inf_distance(kind), each / epsilon, threshold)
        return found, found.map((each, each, 1))[1] <= delta

    def gaussian(threshold):
        found = dp.m.make_gaussian_threshold(groups, l02inf_distance(kind), scale, threshold)
        return found, found.map((each, math.ceil(each**0.5), 1))[1] <= delta / 2

    levels = {way: dp.binary_search(lambda to, way=way: way(to)[1], bounds=(2, 100_000)) for way in (laplace, gaussian)}
    best = min(levels, key=levels.get)
    return best(levels[best])[0]
