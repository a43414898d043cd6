"""Coefficients: which are needed, how they are asked, what noise they get, and the marginals they give."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from sulq import Bool, Category, Epsilon, EpsilonDelta, Rho, Unit
from sulq.answers.plan import Plan
from sulq.language.privacy import Loss
from sulq.release.space import CellSpace
from sulq.release.tables.design import MAX_PACK_CELLS, MAX_TABLE_NUMBERS, CoefficientDesign, Pack, packs
from sulq.release.tables.interactions import cells, closure, inside, spread, width
from sulq.release.tables.methods import Wish, method_of
from sulq.release.tables.noisy_tables import Coefficients, variance
from tests.figures import figure
from tests.learn.sq.noisy import Arrays
from tests.release.tables.test_interactions_basis import transform


def wish(
    sizes: tuple[int, ...], ways: int, weights: str = "even", *, pure: bool = True, unit: Unit | None = None
) -> tuple:
    """A wish for all marginals of so many attributes, and an Oracle over no rows."""
    columns = {
        f"x{i}": Bool() if size == 2 else Category([str(j) for j in range(size)]) for i, size in enumerate(sizes)
    }
    oracle = Arrays(
        columns, {name: np.zeros(0, dtype=object) for name in columns}, unit=unit, budget=EpsilonDelta(90, 0.1)
    )
    space = CellSpace.of(list(columns), oracle.facts.schema, 8)
    marginals = tuple(itertools.combinations(range(len(sizes)), ways))
    paired = oracle.facts.unit.neighbors == "replace_one"
    return Wish(space, marginals, weights, pure, paired), oracle


def planned(method: str, made: tuple, spend: Loss) -> Plan:
    """The plan of a method."""
    return made[1].foresee(method_of(method, made[0]).question, spend=spend)


@pytest.mark.parametrize("k", [3, 8, 16])
def test_number_of_coefficients_S3_15(k: int) -> None:
    """All 3-way marginals need C(k,3) + C(k,2) + k + 1 coefficients."""
    closed = closure(tuple(itertools.combinations(range(k), 3)))
    assert len(closed) == math.comb(k, 3) + math.comb(k, 2) + k + 1
    assert sum(width(part, (2,) * k) for part in closed) == len(closed)


def test_marginals_from_coefficients_S3_16() -> None:
    """[Eqs 3-4] Every marginal of five attributes is the sum over its subsets' coefficients, to 1e-9."""
    k = 5
    table = np.random.default_rng(2).integers(0, 100, (2,) * k)
    found = transform(table)
    values = {
        part: np.array([found[tuple(int(i in part) for i in range(k))]], dtype=float)
        for part in inside(tuple(range(k)))
    }
    coefficients = Coefficients((2,) * k, (), values, values, "laplace")
    for part in inside(tuple(range(k))):
        true = table.sum(axis=tuple(set(range(k)) - set(part)))
        assert np.abs(coefficients.marginal(part) - true).max() < 1e-9


def test_the_marginal_of_a_basis_vector_S3_16() -> None:
    """C^a f^b vanishes unless b is within a; else its entries are +-2^(k/2-|a|) and their sum in L1 is 2^(k/2)."""
    k = 5
    everywhere = tuple(range(k))
    for a, b in itertools.product(inside(everywhere), repeat=2):
        vector = (spread(b, everywhere, (2,) * k)[0] * 2 ** (-k / 2)).reshape((2,) * k)
        found = vector.sum(axis=tuple(set(range(k)) - set(a)))
        if set(b) <= set(a):
            assert np.abs(found) == pytest.approx(np.full(found.shape, 2 ** (k / 2 - len(a))))
            assert np.abs(found).sum() == pytest.approx(2 ** (k / 2))
        else:
            assert np.abs(found).max() < 1e-12


@pytest.mark.parametrize(("neighbors", "printed"), [("add_remove", 2.828), ("replace_one", 3.182)])
def test_sensitivity_of_the_coefficients_S3_17_X1(neighbors: str, printed: float) -> None:
    """K = 5, all 2-way: the plan's L1 sensitivity is the brute-force one, in the paper's units; not twice |B|."""
    made = wish((2,) * 5, 2, unit=Unit(neighbors=neighbors))
    plan = planned("fourier", made, Epsilon(1))
    design = CoefficientDesign.of(made[0].marginals, (2,) * 5, "even", pure=True)
    rows = design.matrix(design.packs[0])
    assert rows.shape == (32, 16)
    moves = rows if neighbors == "add_remove" else (rows[:, None] - rows[None]).reshape(-1, 16)
    most = int(np.abs(moves).sum(axis=1).max())
    assert plan.parts[0].sensitivity == (most,)
    assert most * 2 ** (-5 / 2) == pytest.approx(printed, abs=1e-3)
    assert most * 2 ** (-5 / 2) < 5.657 - 1  # the crude 2|B|
    paper = 16 * 2 ** (-5 / 2) if neighbors == "add_remove" else "at most 5.657"
    figure("S3.17", f"L1 sensitivity of 16 coefficients of 5 bits, {neighbors}", most * 2 ** (-5 / 2), paper)
    squared = planned("fourier", made, Rho(1)).parts[0]
    assert float(squared.sensitivity[0]) == pytest.approx(math.sqrt((moves**2).sum(axis=1).max()))


def test_the_population_change_that_is_as_noisy_E32() -> None:
    """M random rows more or less move a coefficient by sqrt(m): as much as the noise at m = 2|B|^2/epsilon^2.

    The printed |B|^2/epsilon is too few.
    """
    epsilon, size = 0.1, 16
    law = planned("fourier", wish((2,) * 5, 2), Epsilon(epsilon)).parts[0].laws[0]
    rng = np.random.default_rng(32)
    m = round(2 * size**2 / epsilon**2)
    runs = (2 * rng.binomial(m, 0.5, 4000) - m) * 1.0  # a sum of m signs
    assert runs.var() == pytest.approx(law.variance(), rel=0.13)  # 5 standard errors
    assert size**2 / epsilon < law.variance() / 10


def test_the_paper_states_the_scale_as_a_deviation_E01() -> None:
    """[S3.17] The noise on a coefficient has deviation sqrt2 |B|/epsilon, not |B|/epsilon."""
    law = planned("fourier", wish((2,) * 5, 2), Epsilon(0.1)).parts[0].laws[0]
    assert law.variance() ** 0.5 == pytest.approx(math.sqrt(2) * 160, rel=1e-3)


@pytest.mark.parametrize(
    ("sizes", "ways"), [((2,) * 16, 3), ((2,) * 13, 2), ((3, 2, 5, 4, 2, 7, 3, 2, 6), 3), ((30, 40, 50), 2)]
)
def test_every_interaction_is_asked_once(sizes: tuple[int, ...], ways: int) -> None:
    """Tables are small, and between them hold every coefficient exactly once."""
    closed = closure(tuple(itertools.combinations(range(len(sizes)), ways)))
    found = packs(closed, sizes)
    assert sorted(part for pack in found for part in pack.parts) == sorted(closed)
    for pack in found:
        columns = sum(width(part, sizes) for part in pack.parts)
        room = max(MAX_PACK_CELLS**2, *(cells(part, sizes) for part in pack.parts))
        assert all(set(part) <= set(pack.places) for part in pack.parts)
        assert cells(pack.places, sizes) <= room or cells(pack.places, sizes) * columns <= MAX_TABLE_NUMBERS
        assert columns > 1


@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize("weights", ["even", "best"])
def test_tables_apart_cost_no_noise(weights: str, pure: bool) -> None:  # noqa: FBT001 - a case
    """For any arities the largest norms of the tables' rows add up to that of the whole, but for rounded factors."""
    sizes = (3, 2, 5, 4, 7, 2)
    marginals = tuple(itertools.combinations(range(6), 3))
    apart = CoefficientDesign.of(marginals, sizes, weights, pure=pure)
    assert len(apart.packs) > 1
    whole = apart.matrix(Pack(tuple(range(6)), apart.parts))
    norms = [(np.abs(table) if pure else table**2).sum(axis=1).max() for table in map(apart.matrix, apart.packs)]
    assert sum(norms) == pytest.approx((np.abs(whole) if pure else whole**2).sum(axis=1).max(), rel=0.02)


@pytest.mark.parametrize("pure", [True, False])
def test_one_noise_whatever_the_tables(pure: bool) -> None:  # noqa: FBT001 - a case
    """Shared out over many tables the coefficients get the noise of one table: |B|, or sqrt|B|, under add_remove."""
    made = wish((2,) * 12, 2, pure=pure)
    plan = planned("fourier", made, Epsilon(1) if pure else Rho(0.5))
    size = 1 + 12 + 66
    assert len(plan.parts[0].laws) > 1
    for law in plan.parts[0].laws:
        assert float(law.scale) == pytest.approx(size if pure else math.sqrt(size), rel=1e-6)


@pytest.mark.parametrize("sizes", [(2,) * 6, (2, 3, 2, 3, 1), (4, 5, 4)])
def test_marginals_that_are_alike_have_their_moments_together(sizes: tuple[int, ...]) -> None:
    """The same numbers as one by one, and as coefficient by coefficient; also of interactions that were left out."""
    design = CoefficientDesign.of(tuple(itertools.combinations(range(len(sizes)), 2)), sizes, "best", pure=True)
    rng = np.random.default_rng(7)
    deviations = {part: rng.uniform(1, 2, width(part, sizes)) for part in design.parts if part != (0, 1)}
    noise = Coefficients(sizes, design.marginals, deviations, deviations, "laplace")
    pairs = [(0, 1), *((i, j) for i, j in itertools.combinations(range(len(sizes)), 2) if sizes[i] == sizes[j])]
    for pair in pairs:
        alike = [own for own in design.marginals if [sizes[i] for i in own] == [sizes[i] for i in pair]]
        together = noise.moments(alike)
        for power, found in zip((2, 4), together, strict=True):
            for own, told in zip(alike, found, strict=True):
                true = np.zeros(cells(own, sizes))
                for part in inside(own):
                    for place, deviation in enumerate(deviations.get(part, ())):
                        vector = spread(part, own, sizes)[place]
                        true += (deviation * vector / (vector**2).sum()) ** power
                assert told.ravel() == pytest.approx(true, rel=1e-12)
        assert np.array_equal(together[0][-1], variance(noise, alike[-1]))
        assert np.array_equal(together[1][-1], noise.moments(alike[-1:])[1][0])


def test_deviation_in_a_cell_S3_20() -> None:
    """K = 10, all 2-way: sqrt2 |B|/2 = 39.6 by coefficients, sqrt2 |C| = 63.6 by marginals; the best weights: less."""
    made = wish((2,) * 10, 2)
    found = {}
    for method in ("fourier", "marginals"):
        noisy = method_of(method, made[0]).foreseen(planned(method, made, Epsilon(1)))
        found[method] = variance(noisy, (0, 1)) ** 0.5
    assert found["fourier"] == pytest.approx(np.full((2, 2), 39.6), rel=1e-3)
    assert found["marginals"] == pytest.approx(np.full((2, 2), 63.6), rel=1e-3)
    figure(
        "S3.20",
        "deviation of a pair's cell by coefficients, k = 10, epsilon 1",
        found["fourier"].max(),
        math.sqrt(2) * 56 / 2,
    )
    figure("S3.20", "the same by noisy marginals", found["marginals"].max(), math.sqrt(2) * 45)
    best = wish((2,) * 10, 2, "best")
    noisy = method_of("fourier", best[0]).foreseen(planned("fourier", best, Epsilon(1)))
    assert (variance(noisy, (0, 1)) ** 0.5).max() < 0.8 * 39.6
    assert variance(noisy, (0,)).max() < variance(noisy, (0, 1)).max() * 2.1  # smaller ones: 2^|a'| coefficients


@pytest.mark.parametrize("weights", ["even", "best"])
def test_gaussian_noise_is_half_of_laplace(weights: str) -> None:
    """K = 10 at (1, 1e-6), tight conversion: a cell's deviation is at most half of that at epsilon 1."""
    found = []
    for pure, spend in ((True, Epsilon(1)), (False, EpsilonDelta(1, 1e-6))):
        made = wish((2,) * 10, 2, weights, pure=pure)
        noisy = method_of("fourier", made[0]).foreseen(planned("fourier", made, spend))
        found.append(float(variance(noisy, (0, 1)).max()) ** 0.5)
    assert found[0] >= 2 * found[1]


def test_best_weights_are_best() -> None:
    """No interaction's weight, moved up or down by a fifth, lowers the total squared error at the same price."""
    for pure in (True, False):
        made = wish((2, 3, 4, 2, 5), 2, "best", pure=pure)[0]
        design = CoefficientDesign.of(made.marginals, made.sizes, "best", pure=pure)
        counted = {part: sum(set(part) <= set(own) for own in made.marginals) for part in design.parts}
        least = _error(design, counted, pure=pure)
        assert least < _error(CoefficientDesign.of(made.marginals, made.sizes, "even", pure=pure), counted, pure=pure)
        for part in design.parts:
            for change in (0.8, 1.25):
                moved = {key: own * (change if key == part else 1.0) for key, own in design.factors.items()}
                other = CoefficientDesign(design.sizes, design.marginals, moved, design.packs)
                assert _error(other, counted, pure=pure) > least * 0.998


def _error(design: CoefficientDesign, counted: dict, *, pure: bool) -> float:
    """The total squared error, for noise that the L1 norms of interactions (or the L2 norm) ask for."""
    price, error = 0.0, 0.0
    for part in design.parts:
        rows = design.factors[part][:, None] * spread(part, part, design.sizes)
        price += float(np.abs(rows).sum(axis=0).max() if pure else (rows**2).sum(axis=0).max())
        lengths = (spread(part, part, design.sizes) ** 2).sum(axis=1)
        error += counted[part] * float((cells(part, design.sizes) / lengths / design.factors[part] ** 2).sum())
    return price * (price if pure else 1.0) * error
