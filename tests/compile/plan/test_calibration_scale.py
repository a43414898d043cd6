"""Scales are doubles at or above what was asked for, within what the samplers hold."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sulq.compile.plan.calibration import root_of, scale_of
from sulq.errors import QuestionError


@given(st.fractions(Fraction(1, 1000), 2**49))
def test_a_scale_is_a_double_never_below(wanted: Fraction) -> None:
    """Rounded up by less than one unit in the last place."""
    found = scale_of(wanted)
    assert Fraction(float(found)) == found >= wanted
    assert found <= wanted * (1 + Fraction(1, 2**51))


@given(st.fractions(Fraction(1, 10**12), 10**30))
def test_a_root_is_just_above(square: Fraction) -> None:
    """Its square passes the number by next to nothing."""
    root = root_of(square)
    assert square < root**2 <= square * (1 + Fraction(1, 2**60))


@pytest.mark.parametrize("scale", [Fraction(1, 1025), Fraction(2**50 + 1), Fraction(0)])
def test_scales_no_sampler_holds_are_refused_T8(scale: Fraction) -> None:
    """Too little noise, or too much (T8)."""
    with pytest.raises(QuestionError) as refused:
        scale_of(scale)
    assert refused.value.code == "too-little-noise"
