"""A typed door to OpenDP: integer vector noise, its sampler and its privacy map, and nothing else.

Only `make_laplace` and `make_gaussian` over 64-bit integers are used, under the
feature `contrib`, enabled here; none of its thresholds, domains over floats,
accountants or its prelude (R11).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Final, Literal, Protocol, cast

import numpy as np
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian, make_laplace
from opendp.metrics import l1_distance, l2_distance
from opendp.mod import enable_features

from sulq.errors import QuestionError
from sulq.terms.kinds import Integers

Kind = Literal["laplace", "gaussian"]

LARGEST_MOVE: Final = 2**62  # sums are clamped to this on either side before they meet noise (T5)

enable_features("contrib")


class Measurement(Protocol):
    """What sulq asks of an OpenDP measurement."""

    def __call__(self, values: list[int]) -> list[int]:
        """Add fresh noise to each value, saturating at the ends of 64 bits."""
        ...

    def map(self, moved: float) -> float:
        """The loss when a person moves the values by this much, rounded up."""
        ...


@functools.lru_cache(maxsize=1024)
def measurement(kind: Kind, scale: float) -> Measurement:
    """Construct a measurement once per kind and scale: construction costs as much as a call."""
    values = vector_domain(atom_domain(T="i64"))
    if kind == "laplace":
        return cast("Measurement", make_laplace(values, l1_distance(T="i64"), scale=scale))
    return cast("Measurement", make_gaussian(values, l2_distance(T="f64"), scale=scale))


def exact_double(scale: Fraction) -> float:
    """Read the scale as a double that is exactly it, or refuse: another scale would have another price."""
    double = float(scale)
    if Fraction(double) != scale:
        raise QuestionError("too-little-noise", "The noise scale must be a double; round it up first.")
    return double


def sampler(kind: Kind, scale: Fraction) -> Callable[[Integers], Integers]:
    """Independent noise on each of many integers, as a function."""
    chosen = measurement(kind, exact_double(scale))

    def add(values: Integers) -> Integers:
        return np.array(chosen(values.tolist()), dtype=np.int64)

    return add


def mapped(kind: Kind, scale: Fraction, sensitivity: Fraction) -> float:
    """OpenDP's own price, rounded up: epsilon for an L1 sensitivity, rho for a squared L2 sensitivity."""
    moved = _whole(sensitivity) if kind == "laplace" else _root(sensitivity)
    return measurement(kind, exact_double(scale)).map(moved)


def _whole(sensitivity: Fraction) -> int:
    """The next integer: integer sums move by integers."""
    moved = math.ceil(sensitivity)
    if moved > LARGEST_MOVE:
        raise QuestionError("too-large", "One person moves these sums by more than 64 bits hold.")
    return moved


def _root(squared: Fraction) -> float:
    """A double at or above the square root."""
    root = math.sqrt(float(squared))
    while Fraction(root) ** 2 < squared:
        root = math.nextafter(root, math.inf)
    return root
