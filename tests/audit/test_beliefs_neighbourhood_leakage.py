"""What must leak, and what looks harmless and is not."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from sulq.audit.beliefs import enumerated, group_epsilon, learned_rule, most_told, random_row
from sulq.audit.pmf import exact_epsilon, noisy, product, statistical_distance
from sulq.errors import QuestionError
from sulq.language.law import LaplaceLaw
from tests.figures import figure


@pytest.mark.parametrize("people", [1, 2, 5])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1)])
def test_all_zeros_and_all_ones_are_told_apart_by_the_tanh_at_most_S4_3(people: int, epsilon: Fraction) -> None:
    """S4.3: TV of the transcripts of all-0 and all-1 is at most tanh(n epsilon/2); for one response it is that.

    Control: half the noise passes it, whatever n is.
    """
    bound = most_told(people, float(epsilon))
    counts = [noisy(LaplaceLaw(1 / epsilon), count, -80, 90) for count in (0, people)]
    assert statistical_distance(*counts) <= bound + 1e-12
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    responses = [product([{bit: keep, 1 - bit: 1 - keep}] * people) for bit in (0, 1)]
    assert statistical_distance(*responses) <= bound + 1e-12
    if people == 1:
        assert statistical_distance(*responses) == pytest.approx(bound)
    halved = [noisy(LaplaceLaw(1 / (2 * epsilon)), count, -80, 90) for count in (0, people)]
    assert statistical_distance(*halved) > bound + 1e-3


@pytest.mark.parametrize("rows", [2, 5, 10])
def test_a_random_row_is_near_in_distance_and_not_private_at_all_S4_4(rows: int) -> None:
    """S4.4: TV is 1/n and epsilon is infinite: the negative control of every audit."""
    one, other = (0,) * rows, (0,) * (rows - 1) + (1,)
    laws = [random_row(one), random_row(other)]
    assert statistical_distance(*laws) == Fraction(1, rows)
    assert exact_epsilon(laws) == math.inf


def test_a_rule_learned_from_one_person_gives_them_away_S2_15() -> None:
    """S2.15: a deterministic learner has infinite epsilon: the only green-haired row writes its rule."""
    crowd = (("brown", True), ("brown", False), ("brown", True))
    laws = [learned_rule((*crowd, ("green", label))) for label in (True, False)]
    assert exact_epsilon(laws) == math.inf
    assert exact_epsilon([learned_rule((*crowd, row)) for row in (("brown", True), ("brown", False))]) == 0
    with pytest.raises(QuestionError):
        learned_rule((1,))


def test_steps_are_counted_by_the_relation_and_below_one_something_is_learned_S4_3() -> None:
    """S4.3: people exchanged are n steps, people who come and go 2n; n epsilon = .8 may tell .38 and does tell .36.

    So "with n epsilon < 1 nothing can be learned" is false: it is the order below which less and less is.
    """
    laws = enumerated(lambda x: noisy(LaplaceLaw(Fraction(5)), sum(x), -60, 65), (0, 1), 4)
    assert group_epsilon(laws, 4) == pytest.approx(0.8)
    told = statistical_distance(laws[0, 0, 0, 0], laws[1, 1, 1, 1])
    assert 0.3 < told <= most_told(4, 0.2) == pytest.approx(math.tanh(0.4))
    figure(
        "S4.3",
        "distance of all zeros from all ones, n = 4, epsilon .2",
        told,
        f"at most tanh(.4) = {math.tanh(0.4):.4f}",
    )
    # Who comes and goes is counted twice: all four out, four others in. A count of the ones moves by 4, and so does
    # that of the zeros; both asked for half the price each are as far apart as 8 steps allow at most.
    both = [product([noisy(LaplaceLaw(Fraction(10)), n, -60, 65) for n in pair]) for pair in ((4, 0), (0, 4))]
    assert most_told(8, 0.2) == pytest.approx(math.tanh(0.8))
    assert statistical_distance(*both) <= most_told(8, 0.2)
    assert most_told(4, 0.0001) < 0.001
