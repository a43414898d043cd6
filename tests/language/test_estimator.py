"""What an owner declares of functions: Lemma 1 with a strict inequality (S4.13, E41), and what is no declaration."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest

from sulq.errors import SetupError
from sulq.language.estimator import (
    BOUNDS,
    CERTIFIES,
    MAX_CANDIDATES,
    Certificate,
    Estimator,
    Property,
    Stated,
    Utility,
    sensitivity_from_sampler,
)
from sulq.language.rowfn import col
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
    assert (*CERTIFIES, *BOUNDS) == tuple(field.name for field in dataclasses.fields(Certificate))


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


@pytest.mark.parametrize(
    "words",
    [
        {"sensitivity": 0},
        {"sensitivity": -1},
        {"sensitivity": math.inf},
        {"sensitivity": True},
        {"sensitivity": "1"},
        {"low": 1, "high": 1},
        {"high": math.nan},
        {"columns": ()},
        {"columns": "a"},
        {"width": 0},
        {"width": 1.5},
    ],
    ids=str,
)
def test_a_sensitivity_that_is_none_is_refused_S4_27(words: dict) -> None:
    """No positive number, no range, no columns, or no number of numbers. Control: one that is."""
    told = {"sensitivity": 0.5, "low": 0, "high": 9, "columns": ("a",)}
    assert Stated(**told).width == 1
    with pytest.raises(SetupError) as refused:
        Stated(**told | words)
    assert refused.value.code == "bad-certificate"


def test_numbers_and_arrays_of_numpy_are_kept_as_plain_ones() -> None:
    """In every declaration, as the ledger writes them; control: a truth value of NumPy's is as little a number."""
    whole, half = np.int64(4), np.float32(0.5)
    for found, plain in (
        (Stated(whole, half, whole, np.array(["a"]), whole), Stated(4, 0.5, 4, ("a",), 4)),
        (Certificate(half / 4, half, np.float64(0.9), 0, whole, ["a"]), Certificate(0.125, 0.5, 0.9, 0, 4, ("a",))),
        (Utility(np.arange(2), whole, 0, half, ("a",), np.array([1, 2])), Utility((0, 1), 4, 0, 0.5, ("a",), (1, 2))),
        (Utility([whole, [half]], 1, 0, 1, ("a",), [whole, 1]), Utility((4, (0.5,)), 1, 0, 1, ("a",), (4, 1))),
        (Property(("a",), whole), Property(("a",), 4)),
    ):
        assert repr(found) == repr(plain)
    assert sensitivity_from_sampler(half / 4, half, np.float64(0.9)) == 1
    with pytest.raises(SetupError):
        Stated(np.bool_(True), 0, 1, ("a",))


def test_declarations_say_what_rests_on_the_owner() -> None:
    """In one line each, for the facts and for `sulq ledger show`."""
    stated = Stated(0.5, 0, 9, ("a", "b"), 3)
    utility = Utility(("x", ("if", "a", ("y", 2))), 1, 0, 9, ("a",), (1, 4))
    assert str(Estimator("m", "p:f", stated)) == (
        "m: p:f of a, b, 3 numbers, moved by a person 0.5 at most (declared by the owner)"
    )
    assert str(Estimator("m", "p:f", utility)) == (
        "m: p:f a utility of 2 candidates, weighted by a, each moved by a person 1 at most (declared by the owner)"
    )
    sums = Utility({"x": col("a") > 1, "y": col("a") <= 1})
    assert str(Estimator("m", "", sums)) == (
        "m: a utility of 2 candidates, each a sum of a row function (declared by the owner)"
    )
    assert str(Estimator("m", "p:f", Property())) == "m: p:f a property of graphs (declared by the owner)"
    assert str(Estimator("m", "p:f", Property(["a"], 4))) == "m: p:f a property of 4 rows of a (declared by the owner)"
    for function, told in (("", utility), ("p:f", sums), ("", None), ("", Property())):
        with pytest.raises(SetupError):
            Estimator("m", function, told)


@pytest.mark.parametrize(
    "words",
    [
        {"candidates": ()},
        {"candidates": "xy"},
        {"candidates": ("x", "x")},
        {"candidates": ({"a": 1},)},
        {"candidates": (math.nan,)},
        {"candidates": tuple(range(MAX_CANDIDATES + 1))},
        {"weights": (1,)},
        {"weights": (1, 0)},
        {"weights": (1, 2.0)},
        {"weights": (1, 2**20)},
        {"sensitivity": None},
        {"columns": ()},
        {"sums": (col("a") > 1, col("a") > 2)},
    ],
    ids=lambda words: str(words)[:30],
)
def test_a_utility_that_is_none_is_refused_S3_31(words: dict) -> None:
    """Candidates that are not different names, weights that are no base measure, and two ways to say how it moves."""
    told = {"candidates": ["x", ["y", 2]], "sensitivity": 1, "low": 0, "high": 9, "columns": ["a"]}
    assert Utility(**told).candidates == ("x", ("y", 2))
    with pytest.raises(SetupError):
        Utility(**told | words)
    with pytest.raises(SetupError):
        Utility({"x": "a", "y": "b"})


@pytest.mark.parametrize("words", [{"rows": 3}, {"columns": ("a",)}, {"columns": ("a", "a"), "rows": 3}, {"rows": -1}])
def test_a_property_that_is_none_is_refused_S4_28(words: dict) -> None:
    """Of tables it has columns and rows, of graphs neither."""
    assert Property(("a",), 3).rows == 3
    with pytest.raises(SetupError):
        Property(**words)
