"""OpenDP beside our sampler and our price: `sulq audit --opendp` and the tests ask what others wrote.

sulq draws no noise by it. Only `make_laplace` and `make_gaussian` over 64-bit integers are used, under the feature
`contrib`: their draws and their privacy map.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Final, Protocol, cast

import numpy as np

from sulq.audit.statistics import fit
from sulq.cli.audit.laws import WRONG, LawScope, Result, controls
from sulq.errors import SetupError
from sulq.kernel.mechanisms import priced
from sulq.language.kinds import Integers
from sulq.language.law import GaussianLaw, LaplaceLaw

DRAWS: Final = (20_000, 400_000)  # of each law, and of the long audit
MOVES: Final = (1, 2, 7, 1000, 2**40)  # of one person, in L1 or L2
ROUNDED: Final = Fraction(1, 10**9)  # relatively: their map rounds up by a few units in the last place
Noise = LaplaceLaw | GaussianLaw


class Measurement(Protocol):
    """What is asked of a measurement of OpenDP."""

    def __call__(self, values: list[int]) -> list[int]:
        """Add fresh noise to each value."""
        ...

    def map(self, moved: float) -> float:
        """The loss when a person moves the values by this much, rounded up."""
        ...


def load() -> Callable[[Noise], Measurement]:
    """OpenDP's measurement of a law.

    Raises:
        SetupError: `missing-extra`: it is not installed; names the pip line.
    """
    try:
        from opendp.domains import atom_domain, vector_domain
        from opendp.measurements import make_gaussian, make_laplace
        from opendp.metrics import l1_distance, l2_distance
        from opendp.mod import enable_features
    except ImportError:
        raise SetupError("missing-extra", "This check compares with OpenDP.", "pip install 'opendp>=0.16'") from None
    enable_features("contrib")

    def measurement(law: Noise) -> Measurement:
        values, scale = vector_domain(atom_domain(T="i64")), float(law.scale)
        if isinstance(law, LaplaceLaw):
            return cast("Measurement", make_laplace(values, l1_distance(T="i64"), scale=scale))
        return cast("Measurement", make_gaussian(values, l2_distance(T="f64"), scale=scale))

    return measurement


def drawn(law: Noise, cells: int) -> Integers:
    """So many numbers of noise, drawn by OpenDP."""
    return np.array(load()(law)([0] * cells), dtype=np.int64)


def agrees(law: Noise, theirs: Noise, moved: int) -> bool:
    """Whether our exact price of a law is the one of OpenDP's map, here of a law that may be another; rounded up."""
    ours = priced(law, Fraction(moved if isinstance(law, LaplaceLaw) else moved**2))
    price = load()(theirs).map(moved)
    return math.isfinite(price) and ours <= Fraction(price) <= ours * (1 + ROUNDED)


def compare(scope: LawScope) -> Result:
    """OpenDP's draws follow our laws and its map gives our prices; those of a scale a third off do not."""
    draws = scope.of(*DRAWS)
    scales = [Fraction(3, 2), Fraction(1, 2), Fraction(85, 2), *scope.of([], [Fraction(7, 4), Fraction(400)])]
    fits, noticed = [], list[bool]()
    for family in (LaplaceLaw, GaussianLaw):
        first, *more = (family(scale) for scale in scales)
        fits += [fit(drawn(law, draws), law.pmf).follows for law in (first, *more)]
        fits += [agrees(law, law, moved) for law in (first, *more) for moved in MOVES]
        wrong = family(first.scale * WRONG)
        noticed += [not fit(drawn(wrong, draws), first.pmf).follows]
        noticed += [not agrees(first, wrong, 1), not agrees(wrong, first, 1)]
    told = f"{sum(fits)} of {len(fits)} laws and prices are those of OpenDP, {draws:,} draws each"
    return Result(all(fits) and all(noticed), f"{told}; {controls(noticed)}")
