"""The mechanism table: every row priced, and proved by a test that exists."""

from __future__ import annotations

import ast
from fractions import Fraction
from pathlib import Path

import pytest

from sulq.errors import QuestionError
from sulq.kernel.mechanisms import MECHANISMS, Cost, cost_of, mechanism, priced, table, versions
from sulq.terms.law import BinomialLaw, GaussianLaw, LaplaceLaw, Law, accurate
from sulq.terms.privacy import NEIGHBORS, Draw

ROOT = Path(__file__).resolve().parents[3]


def draw(name: str, scale: Fraction, sensitivity: Fraction, *, norm: str | None = None) -> Draw:
    return Draw(name, "add_remove", norm or MECHANISMS[name].norm, sensitivity, scale, Fraction(1), 1)


@pytest.mark.parametrize("row", MECHANISMS.values(), ids=lambda row: row.name)
def test_SR22_each_row_names_a_test_that_exists(row: table.Row) -> None:
    """SR22: the id of the exact test is a function in a test file, with assertions and a docstring naming T20."""
    path, _, name = row.exact_test.partition("::")
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name]
    assert len(found) == 1
    assert "T20" in (ast.get_docstring(found[0]) or "")
    assert any(isinstance(node, ast.Assert) for node in ast.walk(found[0]))


def test_SR22_rows_are_complete() -> None:
    """SR22: relation, norm, pmf, epsilon, rho, key-delta for each law there is, under its own name."""
    assert set(MECHANISMS) == {law.kind for law in Law.__args__}
    for name, row in MECHANISMS.items():
        assert row.name == name
        assert row.neighbors == NEIGHBORS
        assert row.norm in {"l1", "l2"}
        assert row.key_delta(Draw(name, "add_remove", row.norm, Fraction(1), Fraction(4), Fraction(1), 1, 1, 0)) == 0
        assert accurate(row.law(Fraction(4))).pmf(0) > accurate(row.law(Fraction(4))).pmf(1) > 0
        assert type(row.law(Fraction(4))).kind == name
    assert MECHANISMS["laplace"].cost(Fraction(4), Fraction(2)) == Cost(Fraction(1, 2), Fraction(1, 8))
    assert MECHANISMS["gaussian"].cost(Fraction(4), Fraction(2)) == Cost(None, Fraction(1, 16))
    assert MECHANISMS["binomial"].cost(Fraction(4), Fraction(1)) == Cost(None, None)
    assert MECHANISMS["permute_and_flip"].cost(Fraction(4), Fraction(2)) == Cost(Fraction(1, 2), Fraction(1, 8))
    assert MECHANISMS["exponential"].cost(Fraction(4), Fraction(2)) == Cost(None, Fraction(1, 64))
    assert MECHANISMS["passed"].cost(Fraction(4), Fraction(2)) == Cost(None, Fraction(1, 16))
    assert MECHANISMS["above"].cost(Fraction(4), Fraction(2)) == Cost(Fraction(1, 2), Fraction(1, 8))


def test_SR3_a_recorded_draw_can_be_priced_again() -> None:
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


def test_T5_a_move_past_64_bits_is_refused() -> None:
    """No sensitivity beyond what a clamped sum can move; at that end there is a price (T5)."""
    for law, end in ((LaplaceLaw(Fraction(1)), Fraction(2**62)), (GaussianLaw(Fraction(1)), Fraction(2**124))):
        assert priced(law, end) == end / (1 if law.kind == "laplace" else 2)
        with pytest.raises(QuestionError) as refusal:
            priced(law, end + 1)
        assert refusal.value.code == "too-large"


def test_the_mechanism_of_a_law_carries_it() -> None:
    """Each law has its mechanism, and the mechanism its law."""
    for law in (LaplaceLaw(Fraction(3)), GaussianLaw(Fraction(3)), BinomialLaw(6)):
        assert mechanism(law).law == law


def test_versions_name_what_is_behind_the_noise() -> None:
    """SR3: events carry the versions that produced them."""
    assert [name for name, _ in versions()] == ["numpy", "sulq"]
    assert all(version[0].isdigit() for _, version in versions())
