"""The mechanism table: what may be released, at what exact price, and which test proves it (SR22).

Source: no mechanism without a row, no row without the id of its exact test
(protocol EX, T20); the ledger refuses an event whose row is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib import metadata
from typing import Final, Literal, Protocol

from sulq.errors import QuestionError
from sulq.kernel.arrays import Integers
from sulq.kernel.laws import (
    AboveLaw,
    BinomialLaw,
    BitLaw,
    ExponentialLaw,
    FlipLaw,
    GaussianLaw,
    LaplaceLaw,
    Law,
    MetricLaw,
    PassedLaw,
)
from sulq.kernel.losses import NEIGHBORS, Draw
from sulq.kernel.mechanisms._release import LIMIT
from sulq.kernel.mechanisms.above import SparseVector
from sulq.kernel.mechanisms.binomial import CentredBinomial
from sulq.kernel.mechanisms.choose import Exponential, PermuteAndFlip
from sulq.kernel.mechanisms.gaussian import DiscreteGaussian
from sulq.kernel.mechanisms.laplace import DiscreteLaplace
from sulq.kernel.mechanisms.metric import BitFlips, NearPoint
from sulq.kernel.mechanisms.open_keys import Thresholded
from sulq.kernel.private import Private
from sulq.version import __version__


class Mechanism(Protocol):
    """A randomiser of integer sums: its exact price and its release."""

    def epsilon(self, sensitivity: Fraction) -> Fraction | None:
        """Exact pure loss, or None where none holds."""
        ...

    def rho(self, sensitivity: Fraction) -> Fraction | None:
        """Exact zero-concentrated loss, or None where none holds."""
        ...

    def release(self, exact: Private[Integers]) -> Integers:
        """Add fresh noise to every exact integer."""
        ...


@dataclass(frozen=True, slots=True)
class Cost:
    """What one call costs; None where no such loss holds at any price."""

    epsilon: Fraction | None
    rho: Fraction | None
    key_delta: Fraction = Fraction(0)


@dataclass(frozen=True, slots=True)
class Row:
    """One mechanism: whom it may protect, in which norm it is priced, its law, and the test that binds it.

    `law` reads a Draw's scale (binomial: the number of coins); `epsilon` and `rho` follow
    from it, and so does its pmf (`sulq.terms.law`). A sensitivity is in grid units, for l2 squared; of a
    choice it is the norm of the spans by which its cells' scores move, of a sparse
    vector the span or the total that `SparseVector` says, of a point of a metric space
    what `NearPoint` says, of bits how many of them one person moves.
    """

    name: str
    neighbors: tuple[str, ...]
    norm: Literal["l1", "l2"]
    law: Callable[[Fraction], Law]
    exact_test: str
    key_delta: Callable[[Draw], Fraction] = lambda _draw: Fraction(0)

    def cost(self, scale: Fraction, sensitivity: Fraction) -> Cost:
        """The exact price, from the law alone."""
        chosen = mechanism(self.law(scale))
        return Cost(chosen.epsilon(sensitivity), chosen.rho(sensitivity))


MECHANISMS: Final[dict[str, Row]] = {
    row.name: row
    for row in (
        Row(
            "laplace",
            NEIGHBORS,
            "l1",
            LaplaceLaw,
            "tests/kernel/mechanisms/test_laplace.py::test_T20_exact_epsilon_is_the_debit",
        ),
        Row(
            "gaussian",
            NEIGHBORS,
            "l2",
            GaussianLaw,
            "tests/kernel/mechanisms/test_gaussian.py::test_T20_exact_renyi_divergence_is_within_the_debit",
        ),
        Row(
            "binomial",
            NEIGHBORS,
            "l1",
            lambda coins: BinomialLaw(_whole(coins)),
            "tests/kernel/mechanisms/test_binomial.py::test_T20_searched_coins_meet_the_exact_target",
        ),
        Row(
            "permute_and_flip",
            NEIGHBORS,
            "l1",
            lambda scale: FlipLaw(scale, 2),
            "tests/kernel/mechanisms/test_choose.py::test_T20_exact_epsilon_of_permute_and_flip_is_the_debit",
        ),
        Row(
            "exponential",
            NEIGHBORS,
            "l2",
            lambda scale: ExponentialLaw(scale, 2),
            "tests/kernel/mechanisms/test_choose.py::test_T20_exact_renyi_divergence_of_the_exponential_choice_is_the_debit",
        ),
        Row(
            "passed",
            NEIGHBORS,
            "l2",
            lambda scale: PassedLaw(scale, 1),
            "tests/kernel/mechanisms/test_open_keys.py::test_T25_the_exact_chance_that_a_person_alone_shows_is_within_delta",
            lambda draw: Thresholded(PassedLaw(draw.scale, _whole(draw.threshold))).key_delta(draw.alone),
        ),
        Row(
            "above",
            NEIGHBORS,
            "l1",
            lambda scale: AboveLaw(scale, Fraction(0), 1),
            "tests/kernel/mechanisms/test_above.py::test_T20_exact_epsilon_of_the_sparse_vector_is_within_the_debit",
        ),
        Row(
            "metric",
            NEIGHBORS,
            "l1",
            lambda scale: MetricLaw(scale, 2),
            "tests/kernel/mechanisms/test_metric.py::test_T20_exact_epsilon_of_a_near_point_is_within_the_debit",
        ),
        Row(
            "bits",
            NEIGHBORS,
            "l1",
            BitLaw,
            "tests/kernel/mechanisms/test_metric.py::test_T20_exact_epsilon_of_bit_flips_is_the_debit",
        ),
    )
}


def mechanism(law: Law) -> Mechanism:
    """The mechanism that adds noise of this law."""
    match law:
        case LaplaceLaw():
            return DiscreteLaplace(law)
        case GaussianLaw():
            return DiscreteGaussian(law)
        case BinomialLaw():
            return CentredBinomial(law)
        case FlipLaw():
            return PermuteAndFlip(law)
        case ExponentialLaw():
            return Exponential(law)
        case MetricLaw():
            return NearPoint(law)
        case BitLaw():
            return BitFlips(law)
        case PassedLaw():
            return Thresholded(law)
        case AboveLaw():
            return SparseVector(law)


def priced(law: Law, sensitivity: Fraction) -> Fraction:
    """The exact price of one call in the law's own currency: epsilon where a pure loss holds, else rho.

    Binomial noise has neither: it is priced in queries.

    Privacy: the price of the scale that is sampled, and of sums clamped to 2^62 on either side: a larger move is
    refused. OpenDP's privacy map, which others wrote, gives the same (tests/cli/test_audit_opendp.py).
    """
    if sensitivity < 0:
        raise ValueError("a sensitivity is never negative")
    if sensitivity > (LIMIT if MECHANISMS[law.kind].norm == "l1" else LIMIT**2):
        raise QuestionError("too-large", "One person moves these sums by more than 64 bits hold.")
    chosen = mechanism(law)
    pure = chosen.epsilon(sensitivity)
    price = chosen.rho(sensitivity) if pure is None else pure
    if price is None:
        raise ValueError(f"{law.kind} noise has no price in epsilon or rho")
    return price


def cost_of(draw: Draw) -> Cost:
    """Recompute the exact price of a recorded call from its mechanism, scale and sensitivity (SR3)."""
    row = MECHANISMS[draw.mechanism]
    if draw.norm != row.norm or draw.neighbors not in row.neighbors:
        raise ValueError(f"the mechanism {row.name} is priced in {row.norm}")
    if draw.level is not None:  # noise on the threshold too: a law of two scales
        if row.name != "above" or draw.level <= 0 or draw.most <= 0:
            raise ValueError("a noisy threshold has a scale, and one person moves a sum")
        vector = SparseVector(AboveLaw(draw.scale, draw.level, max(1, draw.cells)))
        return Cost(vector.epsilon(draw.sensitivity, draw.most), vector.rho(draw.sensitivity, draw.most))
    cost = row.cost(draw.scale, draw.sensitivity)
    return replace(cost, key_delta=row.key_delta(draw))


def versions() -> tuple[tuple[str, str], ...]:
    """What the noise comes from, for the events in the ledger (SR3)."""
    return ("numpy", metadata.version("numpy")), ("sulq", __version__)


def release(law: Law, exact: Private[Integers]) -> Integers:
    """Add fresh noise of this law to every exact integer; the debit must stand already."""
    return mechanism(law).release(exact)


def _whole(number: Fraction | int | None) -> int:
    if number is None or number.denominator != 1:
        raise ValueError("a number of coins, or of people, is whole")
    return number.numerator
