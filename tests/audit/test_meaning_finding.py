"""What an attack may get right, and how it is reported."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from sulq.audit.meaning import Finding, allowed_chance, exchanges
from sulq.language.privacy import Epsilon, EpsilonDelta, Queries, Rho, SubLinear, Unit


def test_the_chance_of_a_right_guess_follows_from_the_loss() -> None:
    """e^epsilon/(1 + e^epsilon); two steps of the relation double epsilon; nothing spent is a coin."""
    assert allowed_chance(Epsilon(1)) == pytest.approx(math.e / (1 + math.e))
    assert allowed_chance(Epsilon(1), 2) == pytest.approx(1 / (1 + math.exp(-2)))
    assert allowed_chance(Epsilon.total(Fraction(0))) == 0.5
    assert allowed_chance(Rho.total(Fraction(0))) == 0.5
    assert allowed_chance(EpsilonDelta.total(Fraction(0), Fraction(0))) == 0.5
    assert allowed_chance(EpsilonDelta(1, 0.01)) == pytest.approx((math.e + 0.01) / (1 + math.e))
    assert allowed_chance(EpsilonDelta.total(Fraction(1), Fraction(0)), 2) == allowed_chance(Epsilon(2))
    assert allowed_chance(SubLinear(1, 1e-6, 10)) == pytest.approx(math.e / (1 + math.e) + 1e-6)
    assert allowed_chance(Queries(3)) == 1
    assert 0.5 < allowed_chance(Rho(0.02)) == pytest.approx(0.55)
    assert allowed_chance(Rho(50)) <= 1


def test_the_relation_says_how_far_a_fact_is() -> None:
    """Exchanged, a person is one step from another; coming and going, two."""
    assert exchanges(Unit(neighbors="replace_one"), presence=False) == 1
    assert exchanges(Unit(), presence=True) == 1
    assert exchanges(Unit(), presence=False) == 2
    assert exchanges(Unit(neighbors="zero_out"), presence=False) == 2


def test_more_right_guesses_than_luck_allows_are_a_broken_guarantee() -> None:
    """73 of 100 is within epsilon 1, 100 of 100 is not; findings of one attack add up."""
    found = Finding("test", 73, 100, allowed_chance(Epsilon(1)), "a word")
    assert found.within
    assert not found.succeeded
    assert "within the guarantee; a word" in str(found)
    assert Finding("test", 51, 51, allowed_chance(Epsilon(1))).within  # so few say nothing: attacks make 120 guesses
    broken = Finding("test", 100, 100, allowed_chance(Epsilon(1)))
    assert not broken.within
    assert broken.succeeded
    assert "BEYOND" in str(broken)
    assert (found + broken).right == 173
    assert (found + broken).guesses == 200
