"""Certificates of low sample complexity: Lemma 1 with a strict inequality (S4.13, E41)."""

from __future__ import annotations

import dataclasses
import itertools
import math

import pytest

from sulq.errors import SetupError
from sulq.language.statistic import CERTIFIES, Certificate, Estimator, sensitivity_from_sampler
from tests.figures import figure


def test_at_equality_the_lemma_is_false_and_refused_E41() -> None:
    """f(0) = 0, f(1) = 100; a fair coin of {0, 100} that reads nothing is right with probability 1/2 on both.

    Reads 0, within 1, probability exactly (1 + 0)/2: the lemma "at least" would claim a sensitivity of 2, not 100.
    """
    f = {0: 0, 1: 100}
    for x in (0, 1):
        assert sum(abs(coin - f[x]) <= 1 for coin in (0, 100)) / 2 == 0.5
    assert abs(f[0] - f[1]) > 2 * 1
    for reads in (0.0, 0.1, 0.3, 0.7):
        with pytest.raises(SetupError) as refused:
            sensitivity_from_sampler(reads, 1.0, (1 + reads) / 2)
        assert refused.value.code == "bad-certificate"
        assert sensitivity_from_sampler(reads, 1.0, (1 + reads) / 2 + 1e-9) == 2.0
    with pytest.raises(SetupError):
        sensitivity_from_sampler(0.1, 1, 0.55)  # equality in decimals, whatever doubles make of it


def test_above_equality_the_lemma_holds_on_all_small_cases_E41() -> None:
    """Every algorithm on two tables that with probability 1 - a does not read the row: above (1 + a)/2 values are near.

    Outcomes 0..3, a = 1/4: three parts of the randomness read nothing, one reads. Control: at (1 + a)/2 some are far.
    """
    far_above = far_at = 0
    for blind in itertools.product(range(4), repeat=6):  # six equally likely blind runs of eight, two that read
        for f0, f1 in itertools.product(range(4), repeat=2):
            good = [sum(run == f for run in blind) + 2 for f in (f0, f1)]  # those that read are right on either
            if min(good) / 8 > (1 + 0.25) / 2 and f0 != f1:
                far_above += 1
            if min(good) / 8 == (1 + 0.25) / 2 and f0 != f1:
                far_at += 1
    assert far_above == 0
    assert far_at > 0


def test_the_sample_mean_has_the_sensitivity_that_hoeffding_gives_S4_13() -> None:
    """The mean of n bits, read through a*n random rows: within s by Hoeffding, so 2s; its own sensitivity is 1/n."""
    n, a = 10_000, 0.1
    probability = (1 + a) / 2 + 0.01
    within = math.sqrt(math.log(2 / (1 - probability)) / (2 * a * n))
    claimed = sensitivity_from_sampler(a, within, probability)
    assert claimed == pytest.approx(2 * within)
    assert claimed == pytest.approx(0.0548, abs=1e-3)
    assert 1 / n <= claimed
    figure("S4.13", "sensitivity of a mean of 10,000 bits (certified: 2 sigma)", 1 / n, f"at most {claimed:.4f}")


@pytest.mark.parametrize(
    "numbers",
    [(-0.1, 1, 0.9), (1, 1, 1), (0.1, 0, 0.9), (0.1, math.inf, 0.9), (0.1, 1, 1.1), (math.nan, 1, 0.9), (True, 1, 0.9)],
)
def test_what_is_no_certificate_is_refused(numbers: tuple[float, float, float]) -> None:
    """Numbers out of range, and what is no number."""
    with pytest.raises(SetupError) as refused:
        sensitivity_from_sampler(*numbers)
    assert refused.value.code == "bad-certificate"


def test_a_certificate_has_bounds_and_columns() -> None:
    """The lower bound first, both finite; and the columns it is about, each once."""
    assert Certificate(0.1, 2, 0.9, 0, 50, ("a",)).sensitivity == 4
    assert Certificate(0.1, 2, 0.9, 0, 50, ["a", "b"]).columns == ("a", "b")
    for low, high in ((1, 1), (2, 1), (0, math.inf), (False, 1)):
        with pytest.raises(SetupError):
            Certificate(0.1, 2, 0.9, low, high, ("a",))
    for columns in ((), "a", ("a", "a"), ("",), (3,), None):
        with pytest.raises(SetupError) as refused:
            Certificate(0.1, 2, 0.9, 0, 50, columns)
        assert refused.value.code == "bad-certificate"
    assert tuple(CERTIFIES) == tuple(field.name for field in dataclasses.fields(Certificate))


def test_an_estimator_is_named_and_placed() -> None:
    """package:function under a plain name; it says that it is declared, and what is certified."""
    assert "declared by the owner" in str(Estimator("m", "package.part:function"))
    certified = Estimator("m", "p:f", Certificate(0.1, 2, 0.9, 0, 50, ("a", "b")))
    assert str(certified) == "m: p:f of a, b, moved by a row 4 at most (declared by the owner)"
    for name, place in (("m", "function"), ("m", "a b:c"), ("m n", "p:f"), ("", "p:f"), ("m", 7)):
        with pytest.raises(SetupError) as refused:
            Estimator(name, place)
        assert refused.value.code == "bad-declaration"
    with pytest.raises(SetupError):
        Estimator("m", "p:f", "certified")
