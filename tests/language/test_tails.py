"""Searches that accuracies are made of: against going through all numbers, one by one."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sulq.errors import QuestionError
from sulq.kernel.laws import gaussian_tail
from sulq.language.tails import check_beta, first, first_within, gaussian_tails, smallest, tail_at


@pytest.mark.parametrize("guess", [0, 3, 40, 900])
def test_the_smallest_is_found_from_any_guess(guess: int) -> None:
    """Of a tail that halves. Control: one less is past beta."""
    for beta in (0.9, 0.3, 1e-3, 1e-60):
        found = smallest(lambda t: 2.0 ** -(t + 1), guess, beta)
        assert 2.0 ** -(found + 1) <= beta
        assert found == 0 or 2.0**-found > beta


def test_the_first_that_holds_is_found_or_the_last() -> None:
    """Every place of a range at which a condition may begin to hold; where it never does, the end."""
    for start in range(12):
        assert first(lambda n, at=start: n >= at, 2, 9) == min(max(start, 2), 9)


def test_a_table_of_tails_is_the_kernels_and_ends() -> None:
    """To the bit, also past the end of the table; the first within beta is the first."""
    table = gaussian_tails(3.5)
    for t in (0, 1, 20, 10**6):
        assert tail_at(table, t) == gaussian_tail(Fraction(7, 2), t)
    assert first_within(table, 0.01) == int(np.argmax(table <= 0.01))


@pytest.mark.parametrize("beta", [0, 1, 1e-301, float("nan"), True, "0.1"])
def test_what_is_no_probability_is_refused(beta: object) -> None:
    """Control: one that is."""
    check_beta(0.05)
    with pytest.raises(QuestionError):
        check_beta(beta)
