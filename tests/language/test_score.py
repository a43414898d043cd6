"""Scores are a closed list of whole numbers, checked when they are written down."""

from __future__ import annotations

from dataclasses import fields

import pytest

from sulq.errors import QuestionError
from sulq.language.score import SCORES, Contrast, Diagonal, Distance, Linear, NegAbs, NegL1, NegMaxAbs, Rank


def code(make: object, *args: object) -> str:
    with pytest.raises(QuestionError) as refused:
        make(*args)
    return refused.value.code


def test_the_list_of_scores_is_closed_SR5() -> None:
    """No callable, no stated sensitivity: numbers and nothing else (SR5)."""
    assert set(SCORES) == {Rank, Linear, NegAbs, Diagonal, Contrast, NegMaxAbs, NegL1, Distance}
    assert [[field.name for field in fields(kind)] for kind in SCORES] == [
        ["numerator", "denominator", "shift"],
        ["matrix"],
        ["matrix"],
        ["factors", "folded"],
        ["weights"],
        ["matrix", "targets", "base"],
        ["matrix", "targets", "base"],
        ["targets", "weights", "biases"],
    ]


@pytest.mark.parametrize("bad", [(2, 1), (-1, 2), (0, 0), (1, -2), (0.5, 1), (True, 1), (1, 2**31 + 1), ("1", 2)])
def test_a_rank_is_a_fraction_from_0_to_1(bad: tuple[object, object]) -> None:
    """Other ranks are refused, as are shifts past any table."""
    assert code(Rank, *bad) == "bad-literal"
    assert Rank(1, 2) == Rank(1, 2, 0)
    assert code(Rank, 1, 2, 2**40 + 1) == "too-large"
    assert code(Rank, 1, 2, 1.5) == "bad-literal"


@pytest.mark.parametrize("score", [Linear, NegAbs])
def test_a_matrix_is_a_rectangle_of_whole_numbers(score: type) -> None:
    """Not empty, not ragged, not too large, no floats."""
    assert score(((1, -2), (0, 2**31))).matrix[1][1] == 2**31
    for bad in ((), ((),), ((1, 2), (1,))):
        assert code(score, bad) == "bad-question"
    for bad in (((1, 2.0),), ((True,),), ((2**31 + 1,),), (("1",),)):
        assert code(score, bad) == "bad-literal"
    assert code(score, ((0,) * 2**11,) * (2**9 + 1)) == "too-large"


def test_a_diagonal_is_a_factor_for_each_sum() -> None:
    """Whole numbers, at least one, none too large."""
    assert Diagonal((1, -(2**31))) == Diagonal((1, -(2**31)), folded=False)
    for bad in ((), ((1,), 1), ((1,), None)):
        assert code(Diagonal, *(bad or ((),))) == "bad-question"
    for bad in ((1.0,), (True,), (2**31 + 1,), ("1",)):
        assert code(Diagonal, bad) == "bad-literal"
    assert code(Diagonal, (0,) * (2**20 + 1)) == "too-large"


def test_contrasts_are_as_many_in_every_choice() -> None:
    """A matrix of whole numbers for each choice, all of one shape."""
    assert Contrast((((1, -1), (0, 2)), ((3, 4), (5, 6)))).weights[1][0] == (3, 4)
    for bad in ((), ((),), (((1, 2),), ((1, 2), (3, 4))), (((1, 2),), ((1,),))):
        assert code(Contrast, bad) == "bad-question"
    for bad in ((((1, 2.0),),), (((True,),),), (((2**31 + 1,),),)):
        assert code(Contrast, bad) == "bad-literal"
    assert code(Contrast, (((0,) * 2**11,),) * (2**9 + 1)) == "too-large"


@pytest.mark.parametrize("score", [NegMaxAbs, NegL1])
def test_targets_are_of_every_statistic(score: type) -> None:
    """A whole number for each candidate and row of the matrix; a base, if any, has one for each column."""
    matrix = ((1, 0, 2), (0, 1, -1))
    assert score(matrix, ((5, -(2**40)),), (1, 1, 1)).base == (1, 1, 1)
    assert score(matrix, ((5, 6),)).base == ()
    for bad in (((), ((5, 6),)), (matrix, ()), (matrix, ((5,),)), (matrix, ((5, 6),), (1, 1))):
        assert code(score, *bad) == "bad-question"
    for bad in ((matrix, ((5, 6.0),)), (matrix, ((5, 2**40 + 1),)), (matrix, ((5, 6),), (1, 1, 0.5))):
        assert code(score, *bad) == "bad-literal"
    assert code(score, ((1,),) * 2**10, ((0,) * 2**10,) * (2**10 + 1)) == "too-large"


def test_groups_have_targets_a_weight_and_a_bias() -> None:
    """As many of each, whole numbers, none empty."""
    assert Distance(((1, 2), (3,)), (1, -2), (0, 2**60)).weights == (1, -2)
    for bad in ((((1,),), (1, 2), (0,)), (((1,), ()), (1, 2), (0, 0)), (((1,),), (1,), ())):
        assert code(Distance, *bad) == "bad-question"
    for bad in ((((1.0,),), (1,), (0,)), (((1,),), (True,), (0,)), (((1,),), (1,), (2**60 + 1,))):
        assert code(Distance, *bad) == "bad-literal"
    assert code(Distance, (), (), ()) == "bad-question"
    assert code(Distance, ((0,) * (2**20 + 1),), (1,), (0,)) == "too-large"
