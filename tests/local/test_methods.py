"""The methods by name, and the one that `auto` takes."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from sulq.errors import QuestionError
from sulq.local import METHODS, Respondent
from sulq.local.estimation import inversion, shaped
from sulq.local.methods import best, response
from sulq.local.record import Record


def rare(method: str, cells: int, epsilon: float) -> float:
    """The variance of one report's estimate of a value that is not its own."""
    own = np.zeros((cells, 1))
    own[0] = 1
    randomiser = METHODS[method].of((cells,), Fraction(epsilon))
    return float(inversion(randomiser).spread(own)[0][1, 0])


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("cells", [2, 3, 8, 10, 16, 64, 200, 1000])
def test_auto_takes_the_least_variance_or_nearly(cells: int, epsilon: float) -> None:
    """Never worse than the best by more than half, and k-ary exactly where it wins: K < 3e^epsilon + 2."""
    chosen = best(cells, Fraction(epsilon))
    found = {method: rare(method, cells, epsilon) for method in ("krr", "oue", "hadamard")}
    assert found[chosen] <= 1.5 * min(found.values())
    assert (chosen == "krr") == (cells < 3 * math.exp(epsilon) + 2) == (found["krr"] < found["oue"])


def test_auto_is_the_default() -> None:
    """Few values k-ary, many by Hadamard where that is nearly as good and shorter, else unary."""
    assert [Respondent(k, epsilon=e).method for k, e in ((2, 1), (64, 1), (1000, 4))] == ["krr", "hadamard", "oue"]


@pytest.mark.parametrize("method", ["KRR", "", None, 3, "laplace"])
def test_a_method_that_is_none_is_refused(method: object) -> None:
    """The refusal names those there are."""
    with pytest.raises(QuestionError) as refused:
        Respondent(3, epsilon=1, method=method)  # type: ignore[arg-type]
    assert refused.value.code == "bad-parameter"
    assert "hadamard" in refused.value.message


def test_a_record_of_too_many_bits_is_refused() -> None:
    """Ten fields of three values and one of a single value are written in 21 bits; 20 are the most."""
    with pytest.raises(QuestionError) as refused:
        response(Record.of({f"x{i}": range(3) for i in range(10)} | {"y": range(1)}), Fraction(1), "bitwise")
    assert refused.value.code == "too-large"


@pytest.mark.parametrize("reports", [[-1], [4], [0.5], ["a"], [[1]], [[True, False]], None, {"a": 1}])
def test_what_is_no_report_is_refused(reports: object) -> None:
    """Of another method, another domain, or no numbers at all."""
    with pytest.raises(QuestionError) as refused:
        shaped(reports, response(Record.of(4), Fraction(1), "krr")[1])
    assert refused.value.code == "bad-reports"


def test_auto_takes_no_report_of_many_bits() -> None:
    """Beyond a thousand values a report is a short number, at any epsilon; below, the least variance decides."""
    assert best(1_024, Fraction(2)) == "oue"
    assert best(65_536, Fraction(2)) == "hadamard"
