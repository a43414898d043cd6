"""How noise is divided over interactions, against dense matrices and the best mechanism there is."""

from __future__ import annotations

import functools
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from benchmarks.epsilon.marginals import optimum
from sulq.answers.released import Noise
from sulq.language.law import GaussianLaw
from sulq.language.privacy import Rho
from sulq.language.rowfn import Col, Lookup
from sulq.release.tables import allocation
from sulq.release.tables.allocation import MAX_HELD_NUMBERS, Ask, Demand, asks, asks_within, deviations, told_numbers
from sulq.release.tables.design import CoefficientDesign
from sulq.release.tables.interactions import closure, width
from sulq.release.tables.methods import method_of
from sulq.release.tables.noisy_tables import variance
from tests.release.tables.test_noisy_tables_coefficients import planned, wish

SIZES = (3, 2, 5, 4)
RHO = 0.5


def pairs(sizes: tuple[int, ...], ways: int = 2) -> tuple[tuple[int, ...], ...]:
    return tuple(itertools.combinations(range(len(sizes)), ways))


def workload(sizes: tuple[int, ...], marginals: tuple[tuple[int, ...], ...]) -> list[np.ndarray]:
    """Each marginal as a matrix over the cells of the whole table."""
    return [
        functools.reduce(np.kron, [np.eye(n) if i in own else np.ones((1, n)) for i, n in enumerate(sizes)])
        for own in marginals
    ]


@pytest.mark.parametrize("ways", [1, 2, 3])
def test_the_closed_form_is_the_least_of_all_gaussian_mechanisms(ways: int) -> None:
    """(trace of the root of W'W)^2/N over 2 rho: below it no Gaussian noise has a sum of variances, by duality."""
    matrix = np.concatenate(workload(SIZES, pairs(SIZES, ways)))
    roots = np.sqrt(np.maximum(np.linalg.eigvalsh(matrix.T @ matrix), 0)).sum()
    found = optimum(SIZES, pairs(SIZES, ways), RHO)
    assert found.total == pytest.approx(roots**2 / math.prod(SIZES) / (2 * RHO), rel=1e-6)
    cells = sum(len(each) for each in workload(SIZES, pairs(SIZES, ways)))
    assert found.worst >= found.total / cells * (1 - 1e-9)  # the largest is no less than the mean
    assert found.gap < 2e-3


def foreseen(sizes: tuple[int, ...], ways: int, weights: str) -> tuple[float, float]:
    """The sum of the variances of all cells, and the largest, as the plan has them."""
    made = wish(sizes, ways, weights, pure=False)
    noise = method_of("fourier-shift", made[0]).foreseen(planned("fourier-shift", made, Rho(RHO)))
    each = [variance(noise, own) for own in made[0].marginals]
    return sum(float(own.sum()) for own in each), max(float(own.max()) for own in each)


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize(("sizes", "ways"), [(SIZES, 2), ((2,) * 12, 3), ((40, 3, 25, 2, 7), 2), ((9, 8, 8, 2, 6), 3)])
def test_planned_noise_is_within_a_fiftieth_of_the_least(
    sizes: tuple[int, ...],
    ways: int,
    few: bool,  # noqa: FBT001 - a case
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of the sum of variances and of the worst, each by its own weights; also where large tables are asked by cells.

    Even weights, the control, are not, nor is one by the other's weights where attributes differ.
    """
    monkeypatch.setattr(allocation, "MAX_OWN_NUMBERS", 600 if few else 2**16)
    best = optimum(sizes, pairs(sizes, ways), RHO)
    total, _ = foreseen(sizes, ways, "variance")
    _, worst = foreseen(sizes, ways, "worst")
    bar = 1.02 if not few or max(sizes) > 9 else 1.05  # of attributes of 9 values a ninth of the cells are not needed
    assert 1 - 1e-6 < total / best.total < bar
    assert 1 - 1e-6 < worst / best.worst < bar
    even = foreseen(sizes, ways, "even")
    assert even[0] > 1.02 * best.total
    if len(set(sizes)) > 1:
        assert even[1] > 1.02 * best.worst
        assert foreseen(sizes, ways, "variance")[1] > 1.02 * best.worst


def test_large_tables_are_asked_by_the_cells_of_their_largest_attributes() -> None:
    """No table is too large, nor all together; what is asked tells every interaction; small ones stay by themselves."""
    sizes = (100, 99, 85, 42, 16, 2)
    parts = closure(pairs(sizes, 3))
    found = asks(parts, sizes)
    numbers = [math.prod(sizes[i] for i in ask.part) * width(ask.part, sizes) for ask in found]
    assert max(numbers) <= allocation.MAX_OWN_NUMBERS
    assert sum(numbers) <= allocation.MAX_LOOKUP_NUMBERS
    assert [ask.told()[-1] for ask in found] == list(parts)
    assert Ask((), (4, 5)) in found
    assert Ask((0,), (1,)) in found
    fewer = asks(parts, sizes, 20_000)
    assert sum(math.prod(sizes[i] for i in ask.part) * width(ask.part, sizes) for ask in fewer) <= 20_000
    assert sum(told_numbers(ask, sizes) for ask in fewer) > sum(told_numbers(ask, sizes) for ask in found)


@pytest.mark.parametrize("weights", ["best", "variance", "worst"])
@pytest.mark.parametrize("pure", [False, True])
def test_no_precision_moved_lowers_the_error(weights: str, pure: bool) -> None:  # noqa: FBT001 - a case
    """At the same price, of each ask, up or down by a tenth; of the even one, the control, some does."""
    marginals = pairs(SIZES)
    demand = Demand.of(marginals, SIZES)
    asked = asks(demand.parts, SIZES)

    def error(deviation: np.ndarray) -> float:
        own = demand.variances(deviation**2)
        price = float((demand.reaches / deviation).sum() ** 2 if pure else (demand.widths / deviation**2).sum())
        scale = {"best": demand.cells**2, "variance": demand.cells, "worst": None}[weights]
        return price * float(own.max() if scale is None else scale @ own)

    found = np.array([deviations(asked, demand, SIZES, weights, pure=pure)[Ask((), part)] for part in demand.parts])
    least = error(found)
    moves = [np.where(np.arange(len(found)) == i, by, 1.0) for i in range(len(found)) for by in (0.9, 1.1)]
    assert min(error(found * move) for move in moves) > least * (1 - 2e-3)
    assert min(error(np.ones(len(found)) * move) for move in moves) < error(np.ones(len(found))) * (1 - 2e-3)


def test_what_is_asked_by_cells_tells_the_marginals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read back without noise they are the true marginals; with it, in the mean too, as noisy as foreseen.

    400 draws: each of 160 cells' mean is within 7 of its standard errors, and its mean square within 8.
    """
    sizes, draws, ways = (6, 5, 3, 2), 400, 3
    monkeypatch.setattr(allocation, "MAX_OWN_NUMBERS", 60)
    made = CoefficientDesign.of(pairs(sizes, ways), sizes, "variance", pure=False)
    assert {len(ask.by) for ask in made.beside} == {1, 2}
    rng = np.random.default_rng(3)
    table = rng.poisson(3, sizes).astype(float)
    true = {own: table.sum(axis=tuple(set(range(4)) - set(own))) for own in made.marginals}
    exact, noise = answered(made, table)
    told = made.read(list(zip(exact, noise, strict=True)))
    runs = []
    for _ in range(draws):
        numbers = [own + 10.0 * rng.standard_normal(own.shape) for own in exact]
        runs.append(made.read(list(zip(numbers, noise, strict=True))))
    for own in made.marginals:
        assert told.marginal(own) == pytest.approx(true[own], abs=1e-9)
        off = np.stack([run.marginal(own) - true[own] for run in runs])
        error = np.sqrt(variance(told, own))
        assert np.abs(off.mean(axis=0) / error).max() < 7 / math.sqrt(draws)
        assert np.abs((off**2).mean(axis=0) / error**2 - 1).max() < 8 * math.sqrt(2 / draws)
        assert np.abs((off**2).mean(axis=0) / (1.5 * error) ** 2 - 1).mean() > 0.3  # the control


def answered(made: CoefficientDesign, table: np.ndarray) -> tuple[list[np.ndarray], list[list[Noise]]]:
    """What the questions answer of a table without noise, and the law of noise of deviation 10."""
    exact, noise = [], []
    for each in made.question([Col(str(i)) for i in range(table.ndim)], None, pure=False).questions:
        by = [int(key.name) for key in each.by]
        tables = [
            ([int(key.name) for key in value.keys], np.array(value.table, dtype=float))
            if isinstance(value, Lookup)
            else ([], np.array([[value.value]], dtype=float))
            for value in each.values
        ]
        margins = [np.einsum(table, list(range(table.ndim)), [*by, *keys]) for keys, _ in tables]
        columns = [own.reshape(-1, len(rows)) @ rows for own, (_, rows) in zip(margins, tables, strict=True)]
        exact.append(np.concatenate(columns, axis=1))
        noise.append([Noise(GaussianLaw(Fraction(10)), Fraction(1), rows.shape[1]) for _, rows in tables])
    return exact, noise


def test_tables_grow_only_where_much_more_is_told_than_needed() -> None:
    """Of 60 attributes of 10 values a tenth of what usual tables tell is not needed; of 3 values, nothing."""
    for size, larger in ((10, True), (3, False)):
        sizes = (size,) * 60
        parts = closure(pairs(sizes))
        needed = sum(width(part, sizes) for part in parts)
        several = asks(parts, sizes), asks_within(parts, sizes, MAX_HELD_NUMBERS)
        told = [sum(told_numbers(ask, sizes) for ask in found) / needed for found in several]
        assert (told[0] > 1.03) == larger  # the control: without larger tables
        assert told[1] <= 1.02
        assert (several[0] == several[1]) != larger
