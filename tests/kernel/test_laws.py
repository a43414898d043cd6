"""The kernel's laws: limits of their scales, the tail a price needs, and the vocabulary's laws made of them."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import get_args

import mpmath
import pytest

from sulq.errors import QuestionError
from sulq.kernel import laws
from sulq.kernel.mechanisms import MECHANISMS, law_of
from sulq.language import law
from sulq.language.privacy import Draw
from tests.language.exact import gaussian_upper


def fields_of(kind: type) -> list[str]:
    return [field.name for field in dataclasses.fields(kind)]


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_law_with_accuracy_is_the_kernels_own(name: str) -> None:
    """Same kind, same fields, and drawn and priced as the kernel's; none adds a field that a price would not see."""
    draw = Draw(name, "add_remove", MECHANISMS[name].norm, Fraction(1), Fraction(4), Fraction(1), 1, threshold=5)
    own = law_of(draw)
    told = law.accurate(own)
    assert isinstance(told, type(own))
    assert (told.kind, fields_of(type(told))) == (own.kind, fields_of(type(own)))
    assert (told.norm, told.epsilon(Fraction(3)), told.rho(Fraction(3))) == (
        own.norm,
        own.epsilon(Fraction(3)),
        own.rho(Fraction(3)),
    )
    assert dataclasses.astuple(told) == dataclasses.astuple(own)
    assert {kind.kind for kind in get_args(laws.Law)} == {kind.kind for kind in get_args(law.Law)} == set(MECHANISMS)


@pytest.mark.parametrize("scale", [Fraction(1, 2000), Fraction(2**51), Fraction(0), Fraction(-1)])
def test_a_scale_out_of_bounds_has_no_law_T5(scale: Fraction) -> None:
    """T5: noise that would not hide a unit, or reach the ends of 64 bits, has no law; a float is no scale."""
    makers = (laws.LaplaceLaw, laws.GaussianLaw, laws.BitLaw, lambda s: laws.PassedLaw(s, 3))
    makers += (lambda s: laws.PassedLaplaceLaw(s, 3), lambda s: laws.PassedGaussianLaw(s, 3))
    makers += (lambda s: laws.FlipLaw(s, 2), lambda s: laws.AboveLaw(Fraction(1), s or Fraction(-1), 2))
    for make in makers:
        with pytest.raises(QuestionError):
            make(scale)
        with pytest.raises(TypeError):
            make(2.0)
        make(Fraction(2))


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(7, 2), Fraction(64), Fraction(65), Fraction(1000)])
def test_the_chance_that_a_person_alone_shows_is_never_too_small_SR14(scale: Fraction) -> None:
    """SR14, T25: against arbitrary precision, rounded up by less than 3e-6. Control: one less exceeds it."""
    for threshold in (1, 2, math.ceil(scale * 2), math.ceil(scale * 5) + 1):
        found = laws.PassedLaw(scale, threshold).alone()
        exact = gaussian_upper(scale, threshold - 1)
        assert exact <= found <= exact * (1 + 3e-6) + 1e-300
    assert gaussian_upper(scale, 0) > laws.PassedLaw(scale, 2).alone()


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(7, 2), Fraction(64), Fraction(1000), Fraction(2**40)])
def test_the_chance_that_truncated_noise_shows_a_person_is_never_too_small_SR14(scale: Fraction) -> None:
    """SR14, T25: P(noise = threshold) in arbitrary precision. Controls: one threshold more; below the scale, none."""
    with mpmath.workdps(60):
        a = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
        for threshold in (math.ceil(scale), math.ceil(scale * 2), math.ceil(scale * 30) + 1):
            exact = a**threshold / (1 + 2 * a * (1 - a**threshold) / (1 - a))
            found = laws.PassedLaplaceLaw(scale, threshold).alone()
            assert exact <= found <= exact * (1 + 1e-9) + 1e-300
            if scale < 100:
                assert laws.PassedLaplaceLaw(scale, threshold + 1).alone() < exact
    with pytest.raises(QuestionError, match="at least the scale"):
        laws.PassedLaplaceLaw(scale, math.ceil(scale) - 1 or 1) if scale > 1 else laws.PassedLaplaceLaw(Fraction(2), 1)


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(7, 2), Fraction(64), Fraction(65), Fraction(3000)])
def test_the_chance_that_cut_gaussian_noise_shows_a_person_is_never_too_small_SR14(scale: Fraction) -> None:
    """SR14, T25: P(noise = threshold) in arbitrary precision. Controls: one threshold more; below the scale, none."""
    with mpmath.workdps(60):
        rate = mpmath.mpf(scale.denominator) ** 2 / (2 * mpmath.mpf(scale.numerator) ** 2)
        for threshold in (math.ceil(scale), math.ceil(scale * 2), math.ceil(scale * 5) + 1):
            within = mpmath.fsum(mpmath.exp(-rate * z * z) for z in range(-threshold, threshold + 1))
            exact = mpmath.exp(-rate * threshold**2) / within
            found = laws.PassedGaussianLaw(scale, threshold).alone()
            assert exact <= found <= exact * ((1 + 3e-6) if scale > 1 else 1.2) + 1e-300
            assert laws.PassedGaussianLaw(scale, threshold + math.ceil(scale / 30)).alone() < exact
    with pytest.raises(QuestionError, match="at least the scale"):
        laws.PassedGaussianLaw(scale, math.ceil(scale) - 1 or 1) if scale > 1 else laws.PassedGaussianLaw(
            Fraction(2), 1
        )


@pytest.mark.parametrize("scale", [Fraction(1, 1024), Fraction(1, 3), Fraction(7, 2), Fraction(64)])
def test_planned_and_priced_tails_are_one_number_T25(scale: Fraction) -> None:
    """A threshold is planned by a table of tails and priced by one tail: to the bit the same, also past the table."""
    for t in (0, 1, 2, 5, 17, 100, 2561, 10**6):
        assert law.GaussianLaw(scale).tail(t) == laws.gaussian_tail(scale, t) > 0


def test_a_scale_of_another_class_is_refused() -> None:
    """A fraction that says other numbers when it is priced than when it is drawn at."""
    with pytest.raises(TypeError):
        laws.LaplaceLaw(type("Lie", (Fraction,), {})(1000))
