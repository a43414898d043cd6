"""Scales of noise as the samplers take them: doubles, never less than asked for."""

from __future__ import annotations

import math
from fractions import Fraction

from sulq.errors import QuestionError
from sulq.language.law import LARGEST_SCALE, SMALLEST_SCALE, round_up


def scale_of(scale: Fraction) -> Fraction:
    """The scale as the sampler takes it, a double, never less than asked for."""
    if not SMALLEST_SCALE <= scale <= LARGEST_SCALE:
        raise QuestionError("too-little-noise", "This spend calls for noise outside what the sampler holds.")
    return round_up(scale)


def root_of(square: Fraction) -> Fraction:
    """A rational just above the square root."""
    shift = max(0, 160 - (square.numerator.bit_length() - square.denominator.bit_length())) // 2
    root = math.isqrt(math.ceil(square * 4**shift))
    return Fraction(root + 1, 2**shift)
