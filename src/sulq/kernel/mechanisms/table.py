"""The mechanism table: what may be released, at what exact price, and which test proves it (SR22).

Source: no mechanism without a row, no row without the id of its exact test
(protocol EX, T20); the ledger refuses an event whose row is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from importlib import metadata
from typing import Final, get_args

from sulq.errors import QuestionError
from sulq.kernel import laws
from sulq.kernel.arrays import Integers
from sulq.kernel.facts import NEIGHBORS, Draw
from sulq.kernel.laws import Law
from sulq.kernel.mechanisms import bulk
from sulq.kernel.mechanisms._release import LIMIT, chosen, released
from sulq.kernel.mechanisms.choose import first_above, flipped, proposed
from sulq.kernel.mechanisms.metric import flipped_bits
from sulq.kernel.mechanisms.open_keys import passed
from sulq.kernel.private import Private
from sulq.version import __version__

MECHANISMS: Final[dict[str, type[Law]]] = {law.kind: law for law in get_args(Law)}
EXACT_TESTS: Final = {  # in tests/kernel/mechanisms
    "laplace": "test_bulk_laplace.py::test_T20_exact_epsilon_is_the_debit",
    "gaussian": "test_bulk_gaussian.py::test_T20_exact_renyi_divergence_is_within_the_debit",
    "binomial": "test_bulk_binomial.py::test_T20_searched_coins_meet_the_exact_target",
    "permute_and_flip": "test_choose.py::test_T20_exact_epsilon_of_permute_and_flip_is_the_debit",
    "exponential": "test_choose.py::test_T20_exact_renyi_divergence_of_the_exponential_choice_is_the_debit",
    "passed": "test_open_keys.py::test_T25_the_exact_chance_that_a_person_alone_shows_is_within_delta",
    "above": "test_choose_above.py::test_T20_exact_epsilon_of_the_sparse_vector_is_within_the_debit",
    "metric": "test_metric.py::test_T20_exact_epsilon_of_a_near_point_is_within_the_debit",
    "bits": "test_metric.py::test_T20_exact_epsilon_of_bit_flips_is_the_debit",
}


@dataclass(frozen=True, slots=True)
class Cost:
    """What one call costs; None where no such loss holds at any price."""

    epsilon: Fraction | None
    rho: Fraction | None
    key_delta: Fraction = Fraction(0)


def priced(law: Law, sensitivity: Fraction) -> Fraction:
    """The exact price of one call in the law's own currency: epsilon where a pure loss holds, else rho.

    Binomial noise has neither: it is priced in queries.

    Privacy: the price of the scale that is sampled, and of sums clamped to 2^62 on either side: a larger move is
    refused. OpenDP's privacy map, which others wrote, gives the same (tests/cli/test_audit_opendp.py).
    """
    if sensitivity < 0:
        raise ValueError("a sensitivity is never negative")
    if sensitivity > (LIMIT if law.norm == "l1" else LIMIT**2):
        raise QuestionError("too-large", "One person moves these sums by more than 64 bits hold.")
    pure = law.epsilon(sensitivity)
    price = law.rho(sensitivity) if pure is None else pure
    if price is None:
        raise ValueError(f"{law.kind} noise has no price in epsilon or rho")
    return price


def law_of(draw: Draw) -> Law:
    """The law of a recorded call; how many candidates a choice had does not count."""
    kind = MECHANISMS[draw.mechanism]
    if issubclass(kind, laws.BinomialLaw):
        return kind(_whole(draw.scale))
    if issubclass(kind, laws.PassedLaw):
        return kind(draw.scale, _whole(draw.threshold))
    if issubclass(kind, laws.AboveLaw):
        return kind(draw.scale, draw.level or Fraction(0), max(1, draw.cells))
    if issubclass(kind, (laws.FlipLaw, laws.ExponentialLaw, laws.MetricLaw)):
        return kind(draw.scale, 2)
    return kind(draw.scale)


def cost_of(draw: Draw) -> Cost:
    """Recompute the exact price of a recorded call from its mechanism, scale and sensitivity (SR3)."""
    law, moved = law_of(draw), draw.sensitivity
    if draw.norm != law.norm or draw.neighbors not in NEIGHBORS:
        raise ValueError(f"the mechanism {law.kind} is priced in {law.norm}")
    if draw.level is not None:  # noise on the threshold too, which a person moves by `most` beside the sums
        if not isinstance(law, laws.AboveLaw) or draw.level <= 0 or draw.most <= 0:
            raise ValueError("a noisy threshold has a scale, and one person moves a sum")
        moved += draw.most * draw.scale / draw.level
    shown = draw.alone * Fraction(law.alone()) if isinstance(law, laws.PassedLaw) else Fraction(0)
    return Cost(law.epsilon(moved), law.rho(moved), shown)


def release(law: Law, exact: Private[Integers]) -> Integers:
    """Fresh noise of this law on every exact integer, or a choice for each row; the debit must stand already."""
    match law:
        case laws.LaplaceLaw():
            return released(exact, lambda values: values + bulk.laplace(values.size, law.scale))
        case laws.GaussianLaw():
            return released(exact, lambda values: values + bulk.gaussian(values.size, law.scale))
        case laws.BinomialLaw():
            return released(exact, lambda values: values + bulk.heads(values.size, law.coins) - law.coins // 2)
        case laws.PassedLaw():
            return released(exact, lambda values: passed(values, law))
        case laws.FlipLaw():
            return chosen(exact, lambda scores: flipped(scores, law.scale))
        case laws.ExponentialLaw() | laws.MetricLaw():  # of a point the score is minus its distance
            return chosen(exact, lambda scores: proposed(scores, law.scale))
        case laws.AboveLaw():
            return chosen(exact, lambda above: first_above(above, law), none=True)
        case laws.BitLaw():
            return released(exact, lambda bits: flipped_bits(bits, law.scale))


def versions() -> tuple[tuple[str, str], ...]:
    """What the noise comes from, for the events in the ledger (SR3)."""
    return ("numpy", metadata.version("numpy")), ("sulq", __version__)


def _whole(number: Fraction | int | None) -> int:
    if number is None or number.denominator != 1:
        raise ValueError("a number of coins, or of people, is whole")
    return number.numerator
