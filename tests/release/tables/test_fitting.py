"""The model's table: the truth where noise is small, nearer than what was measured where it is large."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from sulq.release.tables import fitting
from sulq.release.tables.fitting import LogLinear, believed, fit
from sulq.release.tables.interactions import closure, own_sizes, product, scale, width
from sulq.release.tables.noisy_tables import Coefficients
from tests.counts import count

TWOS, MIXED = (2,) * 6, (3, 4, 5, 2)


def table(sizes: tuple[int, ...], rows: int, *, joined: bool = True) -> np.ndarray:
    """Rows of two kinds, or of one: then the attributes are independent."""
    rng = np.random.default_rng(5)
    found = np.zeros(sizes)
    for share in (0.7, 0.3) if joined else (1.0,):
        own = np.array(1.0)
        for size in sizes:
            own = np.multiply.outer(own, rng.dirichlet(np.ones(size)))
        found += share * own
    return rng.multinomial(rows, found.ravel()).reshape(sizes).astype(float)


def told(cells: np.ndarray, ways: int, deviation: float, rng: np.random.Generator) -> Coefficients:
    """The coefficients of all marginals of so many attributes, with noise that is even on vectors of one length."""
    sizes = cells.shape
    asked = tuple(itertools.combinations(range(len(sizes)), ways))
    values, deviations = {}, {}
    for part in closure(asked):
        if not width(part, sizes):
            continue
        own = cells.sum(axis=tuple(set(range(len(sizes))) - set(part))).ravel()
        exact = product(own_sizes(part, sizes)) @ own
        deviations[part] = deviation / scale(part, sizes)
        values[part] = exact + rng.normal(0, deviations[part], len(exact))
    return Coefficients(sizes, asked, values, deviations, "gaussian")


def error(found: np.ndarray, truth: np.ndarray, ways: int) -> float:
    """The mean L1 distance of the marginals."""
    axes = range(truth.ndim)
    rests = [tuple(set(axes) - set(own)) for own in itertools.combinations(axes, ways)]
    return float(np.mean([np.abs(found.sum(axis=rest) - truth.sum(axis=rest)).sum() for rest in rests]))


def raw_error(found: Coefficients, truth: np.ndarray) -> float:
    """The same of the coefficients as they are."""
    axes = range(truth.ndim)
    return float(
        np.mean(
            [np.abs(found.marginal(own) - truth.sum(axis=tuple(set(axes) - set(own)))).sum() for own in found.marginals]
        )
    )


@pytest.mark.parametrize("sizes", [TWOS, MIXED])
@pytest.mark.parametrize("ways", [1, 2, 3])
def test_with_little_noise_the_marginals_are_the_truth(sizes: tuple[int, ...], ways: int) -> None:
    """To a small part of a percent of the rows; the even table, the control, is far off."""
    cells = table(sizes, 10**5)
    found = fit(told(cells, ways, 1.0, np.random.default_rng(1))).table(sizes)
    assert found.min() >= 0
    assert error(found, cells, ways) < 1e-3 * 10**5
    assert error(np.full(sizes, cells.mean()), cells, ways) > 0.1 * 10**5


@pytest.mark.parametrize(("sizes", "deviation"), [(TWOS, 300.0), (MIXED, 300.0)])
def test_with_much_noise_it_is_nearer_than_what_was_measured(sizes: tuple[int, ...], deviation: float) -> None:
    """Pairs of few rows, mean of some draws: by a tenth at least; and it is a table of the noisy total."""
    cells = table(sizes, 2000)
    fitted, plain = [], []
    for seed in range(count("tables fitted to much noise", short=10, long=100)):
        coefficients = told(cells, 2, deviation, np.random.default_rng(seed))
        model = fit(coefficients)
        found = model.table(sizes)
        assert found.sum() == pytest.approx(max(float(coefficients.values[()][0]), 1.0))
        fitted.append(error(found, cells, 2))
        plain.append(raw_error(coefficients, cells))
    assert np.mean(fitted) < 0.9 * np.mean(plain)


def test_what_does_not_stand_out_is_not_believed() -> None:
    """Gaps of the noise's own size are dropped; twice as large, three quarters of them are kept; huge ones nearly all.

    Near the foretold a coefficient that varies by v keeps v/(v + r) of its gap.
    """
    rng = np.random.default_rng(3)
    noise, varies = np.full(1, 10.0), np.full(1, 50.0)
    for factor, share in ((0.5, 0.0), (2.0, 0.75), (100.0, 0.9999)):
        gaps = {(i,): factor * 10.0 * np.sign(rng.normal(size=1)) for i in range(40)}
        own = {part: (gap + 7.0, noise) for part, gap in gaps.items()}
        found = believed(own, gaps, dict.fromkeys(own, varies))
        assert bool(found) == (share > 0)
        for part, (value, deviation, ease) in found.items():
            assert value is own[part][0]
            assert deviation is noise
            assert varies / (varies + ease) == pytest.approx(share, rel=1e-6)


def test_an_interaction_with_many_coefficients_is_believed_by_itself() -> None:
    """Of two with forty each, the one that stands out is believed more, though the order is one; of one each, alike."""
    rng = np.random.default_rng(4)
    for many, apart in ((40, True), (1, False)):
        signs = rng.choice((-1.0, 1.0), many)
        gaps = {(0, 1): 100.0 * signs, (0, 2): 12.0 * signs}
        own = {part: (gap, np.full(many, 10.0)) for part, gap in gaps.items()}
        found = believed(own, gaps, dict.fromkeys(own, np.full(many, 50.0)))
        assert (found[0, 2][2].mean() > 4 * found[0, 1][2].mean()) == apart


@pytest.mark.parametrize("deviation", [30.0, 1000.0])
def test_it_stops_where_the_risk_is_least(monkeypatch: pytest.MonkeyPatch, deviation: float) -> None:
    """Triples, mean of 8 draws: as near as a way of the best length told beforehand, by a tenth; the worst is far."""
    cells = table(TWOS, 20_000)
    drawn = [told(cells, 3, deviation, np.random.default_rng(seed)) for seed in range(8)]

    def mean() -> float:
        return float(np.mean([error(fit(each).table(TWOS), cells, 3) for each in drawn]))

    chosen, whole, ends = mean(), fitting.STRENGTHS, []
    monkeypatch.setattr(fitting, "risk", lambda *_: -float(next(steps)))  # every step seems nearer than the last
    for several in range(1, len(whole) + 1):
        steps = itertools.count()
        monkeypatch.setattr(fitting, "STRENGTHS", whole[:several])
        ends.append(mean())
    assert chosen < 1.1 * min(ends)
    assert max(ends) > 1.2 * min(ends)  # the control


@pytest.mark.parametrize("sizes", [TWOS, MIXED])
def test_whatever_the_numbers_are_there_is_a_table(sizes: tuple[int, ...]) -> None:
    """No rows and noise far past any count, a negative total: finite, not negative."""
    for seed in range(5):
        found = fit(told(np.zeros(sizes), 2, 1e4, np.random.default_rng(seed))).table(sizes)
        assert np.isfinite(found).all()
        assert found.min() >= 0
        assert found.sum() >= 1 - 1e-9


def test_a_table_of_its_parameters() -> None:
    """One attribute, one parameter: the odds are exp(2 theta), whatever the total."""
    found = LogLinear(30.0, {(0,): np.array([0.5])}).table((2, 3))
    assert found.sum() == pytest.approx(30)
    assert found[0] / found[1] == pytest.approx(np.full(3, math.e))
