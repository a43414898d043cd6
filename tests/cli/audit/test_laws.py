"""Samplers and prices as the audit sees them: right ones pass, wrong ones do not."""

from __future__ import annotations

import importlib
from dataclasses import replace
from fractions import Fraction

import pytest

from sulq.cli.audit.laws import LawScope
from sulq.kernel.mechanisms import MECHANISMS, Cost
from sulq.language.law import LaplaceLaw
from sulq.language.privacy import Draw
from sulq.local.methods import METHODS

checks = importlib.import_module("sulq.cli.audit.laws")


def test_samplers_fit_and_a_wrong_one_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """20,000 draws of each law, of every mechanism and local method; a sampler that ignores its scale fails."""
    monkeypatch.setattr(checks, "DRAWS", (20_000, 20_000))
    found = checks.samplers(LawScope())
    assert found.passed, found.told
    assert f"{len(MECHANISMS)} mechanisms and {len(METHODS)} local methods" in found.told
    honest = checks.release
    monkeypatch.setattr(
        checks, "release", lambda law, exact: honest(LaplaceLaw(Fraction(4)) if law.kind == "laplace" else law, exact)
    )
    assert not checks.samplers(LawScope()).passed


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_is_sampled(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: whichever mechanism draws at another scale, the check fails; and one without a case cannot pass."""
    monkeypatch.setattr(checks, "DRAWS", (20_000, 20_000))
    monkeypatch.setattr(checks, "MECHANISMS", {name: MECHANISMS[name]})
    monkeypatch.setattr(checks, "METHODS", {})
    assert checks.samplers(LawScope()).passed
    honest = checks.release
    monkeypatch.setattr(checks, "release", lambda _law, exact: honest(checks._law(name, Fraction(7)), exact))
    assert not checks.samplers(LawScope()).passed
    monkeypatch.delitem(checks.POSED, name)
    with pytest.raises(KeyError):
        checks.samplers(LawScope())


@pytest.mark.parametrize("name", METHODS)
def test_every_local_method_is_sampled_and_priced(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: a randomiser for half more than it charges fails both checks."""
    monkeypatch.setattr(checks, "DRAWS", (20_000, 20_000))
    monkeypatch.setattr(checks, "MECHANISMS", {})
    kind = METHODS[name]
    monkeypatch.setattr(checks, "METHODS", {name: kind})
    assert checks.samplers(LawScope()).passed

    class Loose:
        @staticmethod
        def of(sizes: tuple[int, ...], epsilon: Fraction) -> object:
            found, honest = kind.of(sizes, epsilon * 3 / 2), kind.of(sizes, epsilon)
            found_pmf, drawn = found.pmf, found.randomise

            class Both:
                pmf = staticmethod(found_pmf if epsilon == checks.LOST and asked[0] == "costs" else honest.pmf)
                randomise = staticmethod(drawn)

            return Both()

    asked = ["samplers"]
    monkeypatch.setattr(checks, "METHODS", {name: Loose})
    assert not checks.samplers(LawScope()).passed
    asked[0] = "costs"
    assert name in checks.costs(LawScope()).told


def test_prices_cover_the_exact_losses_of_the_whole_table_T20() -> None:
    """Every row of the mechanism table is looked at, by cases of its own (SR22, T20, T25)."""
    found = checks.costs(LawScope())
    assert found.passed, found.told
    assert f"{len(MECHANISMS)} mechanisms" in found.told
    scales = [Fraction(1, 2), Fraction(2), Fraction(5)]
    each = [list(checks._losses(name, scales)) for name in MECHANISMS]
    assert all(loss > 0 and price > 0 for losses in each for loss, price in losses)  # none is there to be counted
    assert found.told.startswith(f"{sum(map(len, each)) + len(METHODS)} exact losses")


@pytest.mark.parametrize("name", ["laplace", "gaussian", "permute_and_flip", "exponential", "above"])
def test_a_price_that_is_too_low_is_named_T20(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: half the price of one mechanism, and the check fails and says which."""
    honest = checks.cost_of

    def cheap(draw: Draw) -> Cost:
        found = honest(draw)
        if draw.mechanism != name:
            return found
        half = None if found.epsilon is None else found.epsilon / 2
        return replace(found, epsilon=half, rho=None if found.rho is None else found.rho / 4)

    monkeypatch.setattr(checks, "cost_of", cheap)
    found = checks.costs(LawScope())
    assert not found.passed
    assert name in found.told
