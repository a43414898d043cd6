"""The mechanism table: every row priced, and proved by a test that exists."""

from __future__ import annotations

import ast
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from sulq.errors import QuestionError
from sulq.kernel.mechanisms import MECHANISMS, Cost, cost_of, law_of, priced
from sulq.language.law import BinomialLaw, GaussianLaw, LaplaceLaw, Law, accurate
from sulq.language.privacy import NEIGHBORS, Draw
from sulq.version import noise_versions

EXACT_TESTS = {  # beside this file
    "laplace": "test_bulk_laplace.py::test_exact_epsilon_is_the_debit_T20",
    "gaussian": "test_bulk_gaussian.py::test_exact_renyi_divergence_is_within_the_debit_T20",
    "binomial": "test_bulk_binomial.py::test_searched_coins_meet_the_exact_target_T20",
    "permute_and_flip": "test_bulk_choose.py::test_exact_epsilon_of_permute_and_flip_is_the_debit_T20",
    "exponential": "test_bulk_choose.py::test_exact_renyi_divergence_of_the_exponential_choice_is_the_debit_T20",
    "passed": "test_table_open_keys.py::test_ledgers_of_earlier_versions_have_noise_that_was_not_cut_off_T25",
    "passed_gaussian": "test_table_open_keys.py::test_cut_gaussian_noise_loses_no_more_than_whole_noise_T20",
    "passed_laplace": "test_table_open_keys.py::test_truncated_noise_is_within_its_epsilon_and_delta_T20_T25",
    "above": "test_bulk_above.py::test_exact_epsilon_of_the_sparse_vector_is_within_the_debit_T20",
    "metric": "test_bulk_metric.py::test_exact_epsilon_of_a_near_point_is_within_the_debit_T20",
    "bits": "test_bulk_metric.py::test_exact_epsilon_of_bit_flips_is_the_debit_T20",
}


def draw(name: str, scale: Fraction, sensitivity: Fraction, *, norm: str | None = None) -> Draw:
    own = norm or MECHANISMS[name].norm
    threshold = {"passed": 1, "passed_gaussian": 4, "passed_laplace": 4}.get(name)
    return Draw(name, "add_remove", own, sensitivity, scale, Fraction(1), 1, threshold=threshold)


@pytest.mark.parametrize("kind", MECHANISMS)
def test_each_row_names_a_test_that_exists_SR22(kind: str) -> None:
    """SR22: the id of the exact test is a function in a test file, with assertions and a docstring naming T20."""
    path, _, name = EXACT_TESTS[kind].partition("::")
    tree = ast.parse((Path(__file__).parent / path).read_text(encoding="utf-8"))
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name]
    assert len(found) == 1
    assert "T20" in (ast.get_docstring(found[0]) or "")
    assert any(isinstance(node, ast.Assert) for node in ast.walk(found[0]))


def test_rows_are_complete_SR22() -> None:
    """SR22: relation, norm, pmf, epsilon, rho, key-delta for each law there is, under its own name."""
    assert set(MECHANISMS) == {law.kind for law in Law.__args__} == set(EXACT_TESTS)
    for name, kind in MECHANISMS.items():
        assert kind.kind == name
        assert kind.norm in {"l1", "l2"}
        assert {cost_of(replace(draw(name, Fraction(4), Fraction(1)), neighbors=n)).key_delta for n in NEIGHBORS} == {0}
        found = accurate(law_of(draw(name, Fraction(4), Fraction(1))))
        assert found.pmf(0) > found.pmf(1) > 0
        assert found.kind == name
        with pytest.raises(ValueError, match="priced"):
            cost_of(replace(draw(name, Fraction(4), Fraction(1)), neighbors="others"))


@pytest.mark.parametrize(
    ("name", "cost"),
    [
        ("laplace", Cost(Fraction(1, 2), Fraction(1, 8))),
        ("gaussian", Cost(None, Fraction(1, 16))),
        ("binomial", Cost(None, None)),
        ("permute_and_flip", Cost(Fraction(1, 2), Fraction(1, 8))),
        ("exponential", Cost(None, Fraction(1, 64))),
        ("passed", Cost(None, Fraction(1, 16))),
        ("passed_gaussian", Cost(None, Fraction(1, 16))),
        ("passed_laplace", Cost(Fraction(1, 2), Fraction(1, 8))),
        ("above", Cost(Fraction(1, 2), Fraction(1, 8))),
        ("metric", Cost(Fraction(1, 2), Fraction(1, 8))),
        ("bits", Cost(Fraction(1, 2), Fraction(1, 16))),
    ],
)
def test_what_each_row_costs_SR22(name: str, cost: Cost) -> None:
    """A sensitivity of two at scale four, by each row; of groups found in the data, a person alone in each."""
    assert cost_of(draw(name, Fraction(4), Fraction(2))) == cost
    if name.startswith("passed"):
        alone = cost_of(replace(draw(name, Fraction(4), Fraction(2)), alone=3))
        assert alone.key_delta == 3 * Fraction(law_of(draw(name, Fraction(4), Fraction(2))).alone())
        assert alone.key_delta > (1 if name == "passed" else Fraction(1, 8))


def test_a_recorded_draw_can_be_priced_again_SR3() -> None:
    """SR3: the price follows from the draw alone; a wrong norm or half a coin has none."""
    assert cost_of(draw("laplace", Fraction(8), Fraction(2))).epsilon == Fraction(1, 4)
    assert cost_of(draw("gaussian", Fraction(8), Fraction(2))).rho == Fraction(1, 64)
    with pytest.raises(ValueError, match="l1"):
        cost_of(draw("laplace", Fraction(8), Fraction(2), norm="l2"))
    with pytest.raises(ValueError, match="whole"):
        cost_of(draw("binomial", Fraction(9, 2), Fraction(1)))


def test_priced_is_the_loss_in_the_laws_own_currency() -> None:
    """STYLE 7: epsilon for Laplace, rho for Gaussian; zero for nobody; fractions of a unit at their exact price."""
    assert priced(LaplaceLaw(Fraction(10)), Fraction(3)) == Fraction(3, 10)
    assert priced(LaplaceLaw(Fraction(10)), Fraction(5, 2)) == Fraction(1, 4)
    assert priced(LaplaceLaw(Fraction(10)), Fraction(0)) == 0
    assert priced(GaussianLaw(Fraction(10)), Fraction(2)) == Fraction(1, 100)
    assert priced(GaussianLaw(Fraction(10)), Fraction(0)) == 0
    with pytest.raises(ValueError, match="negative"):
        priced(LaplaceLaw(Fraction(10)), Fraction(-1))
    with pytest.raises(ValueError, match="price"):
        priced(BinomialLaw(10), Fraction(1))


def test_a_move_past_64_bits_is_refused_T5() -> None:
    """No sensitivity beyond what a clamped sum can move; at that end there is a price (T5)."""
    for law, end in ((LaplaceLaw(Fraction(1)), Fraction(2**62)), (GaussianLaw(Fraction(1)), Fraction(2**124))):
        assert priced(law, end) == end / (1 if law.kind == "laplace" else 2)
        with pytest.raises(QuestionError) as refusal:
            priced(law, end + 1)
        assert refusal.value.code == "too-large"


def test_versions_name_what_is_behind_the_noise() -> None:
    """SR3: events carry the versions that produced them."""
    assert [name for name, _ in noise_versions()] == ["numpy", "sulq"]
    assert all(version[0].isdigit() for _, version in noise_versions())
