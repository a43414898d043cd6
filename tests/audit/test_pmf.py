"""Exact laws: their loss, their distance, and what is refused."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pyarrow as pa
import pytest

import sulq
from sulq.audit.pmf import exact_epsilon, excess, log_ratio, mixture, noisy, product, renyi, statistical_distance
from sulq.errors import QuestionError
from sulq.language.law import BinomialLaw, GaussianLaw, LaplaceLaw
from tests.figures import figure


def response(keep: Fraction, values: int = 2) -> list[dict[int, Fraction]]:
    """Randomised response: the own value with one chance, each other one with an equal part of the rest."""
    rest = (1 - keep) / (values - 1)
    return [{i: keep if i == j else rest for i in range(values)} for j in range(values)]


def test_randomised_response_costs_the_logarithm_of_its_odds_S2_1() -> None:
    """With fractions the largest ratio is found exactly: ln 3 for 3/4, ln 9 for three values at 9/11 (S2.1)."""
    assert exact_epsilon(response(Fraction(3, 4))) == pytest.approx(math.log(3), abs=1e-15)
    assert exact_epsilon(response(Fraction(9, 11), 3)) == pytest.approx(math.log(9), abs=1e-15)
    assert sulq.audit.exact_epsilon([{0: 0.75, 1: 0.25}, {0: 0.25, 1: 0.75}]) == pytest.approx(math.log(3))


def test_losses_of_independent_answers_add_up_S2_6() -> None:
    """Two randomised responses together lose twice as much, by enumeration (S2.6)."""
    laws = [product([law, law]) for law in response(Fraction(3, 4))]
    assert exact_epsilon(laws) == pytest.approx(2 * math.log(3), abs=1e-14)


def test_laplace_noise_loses_epsilon_times_the_distance_E40_S3_2_S4_2() -> None:
    """E40: counts that differ by m, noise of scale 1/epsilon: the ratio is e^(epsilon m), not e^m as printed (S4.2)."""
    epsilon = Fraction(1, 4)
    for far in (1, 2, 3):
        laws = [noisy(LaplaceLaw(1 / epsilon), count, -20, 20) for count in (0, far)]
        assert exact_epsilon(laws) == pytest.approx(float(epsilon) * far, abs=1e-12)
        assert exact_epsilon(laws) < far
    halved = [noisy(LaplaceLaw(1 / (2 * epsilon)), count, -20, 20) for count in (0, 1)]
    assert exact_epsilon(halved) > float(epsilon)


def test_of_several_laws_the_farthest_two_count_and_of_named_pairs_only_these() -> None:
    """Without pairs all are compared; with pairs only neighbours."""
    laws = [noisy(LaplaceLaw(Fraction(2)), count, -30, 30) for count in range(4)]
    assert exact_epsilon(laws) == pytest.approx(1.5)
    assert exact_epsilon(laws, pairs=itertools.pairwise(range(4))) == pytest.approx(0.5)


def test_an_outcome_of_one_law_alone_is_proof_and_one_of_none_is_nothing() -> None:
    """x/0 is infinite, 0/0 is left out; coins at the end of their support are never pure (S1.5)."""
    assert exact_epsilon([{0: 1, 1: 0}, {0: 1, 1: 0}]) == 0
    assert exact_epsilon([{0: Fraction(1)}, {0: Fraction(1, 2), 1: Fraction(1, 2)}]) == math.inf
    coins = BinomialLaw(10)
    laws = [{z: coins.pmf(z - count) for z in range(-5, 7)} for count in (0, 1)]
    assert exact_epsilon(laws) == math.inf


def test_distance_excess_and_mixture() -> None:
    """TV of 3/4 against 1/4 is a half; the delta that is left at epsilon is that distance at 0 and none at ln 3."""
    one, other = response(Fraction(3, 4))
    assert statistical_distance(one, other) == Fraction(1, 2)
    assert excess(one, other, 0) == pytest.approx(0.5)
    assert excess(one, other, math.log(3)) == pytest.approx(0, abs=1e-15)
    assert mixture([Fraction(1, 2)] * 2, [one, other]) == {0: Fraction(1, 2), 1: Fraction(1, 2)}


def test_a_law_with_its_tails_folded_in_is_a_law() -> None:
    """The ends take all that lies beyond them, for every kind of noise, near and far from the sum."""
    for law in (LaplaceLaw(Fraction(3)), GaussianLaw(Fraction(5, 2)), BinomialLaw(50)):
        for exact in (0, 7, -40):
            found = noisy(law, exact, -15, 15)
            assert math.fsum(found.values()) == pytest.approx(1, abs=1e-12)
    far = noisy(LaplaceLaw(Fraction(1)), 0, -3, 60)[60]
    assert far == pytest.approx(math.exp(-60) / (1 + math.exp(-1)), rel=1e-12)


def test_small_losses_keep_their_digits() -> None:
    """ln(1 + 1e-30) is 1e-30 with fractions, where floats would see nothing."""
    ratio = Fraction(10**30 + 1, 10**30)
    assert log_ratio(ratio, Fraction(1)) == pytest.approx(1e-30, rel=1e-12)
    assert log_ratio(0.0, 0.0) == 0
    assert log_ratio(0, 1) == -math.inf


@pytest.mark.parametrize(
    "law", [{}, {0: 0.5}, {0: -0.1, 1: 1.1}, {0: math.nan}, {0: "1"}, {0: Fraction(1, 3), 1: Fraction(1, 3)}, [1]]
)
def test_what_is_no_law_is_refused(law: object) -> None:
    """Probabilities that are negative, no numbers, or do not add up to one."""
    with pytest.raises(QuestionError) as refused:
        exact_epsilon([law])
    assert refused.value.code == "bad-parameter"


def test_trap_5_E42_E43_signs_that_stay_private_and_flips_that_do_not() -> None:
    """Trap 5: exp(+eps d/2S) passes every privacy test and inverts utility; the printed flip looks useful and leaks.

    E42: both signs lose at most epsilon on a path of five points; only the minus favours the true one. E43: S = 4,
    epsilon 1, flips at 1/2 - eps/(2S) = .375 lose 2.04; at 1/(1 + e^(eps/S)) = .4378 they lose 1.000.
    """
    epsilon, points = 1.0, range(5)

    def law(at: int, sign: int) -> dict[int, float]:
        weights = [math.exp(sign * epsilon * abs(y - at) / 2) for y in points]
        return {y: weight / sum(weights) for y, weight in zip(points, weights, strict=True)}

    for sign in (-1, 1):
        laws = [law(at, sign) for at in points]
        assert exact_epsilon(laws, pairs=itertools.pairwise(points)) <= epsilon + 1e-12
    assert max(law(2, -1), key=law(2, -1).get) == 2
    assert max(law(2, 1), key=law(2, 1).get) != 2

    def flips(p: float, bits: tuple[int, ...]) -> dict[object, float]:
        return product([{bit: 1 - p, 1 - bit: p} for bit in bits])

    zeros, ones = (0,) * 4, (1,) * 4
    printed, right = 0.5 - epsilon / 8, 1 / (1 + math.exp(epsilon / 4))
    assert right == pytest.approx(0.4378, abs=1e-3)
    assert exact_epsilon([flips(printed, zeros), flips(printed, ones)]) == pytest.approx(2.04, abs=5e-3)
    assert exact_epsilon([flips(right, zeros), flips(right, ones)]) == pytest.approx(1.0, abs=1e-9)


def test_trap_9_a_sensitivity_is_of_the_exact_object() -> None:
    """Trap 9: bins that overlap, and a distance that is only approximate, lose more than the noise was made for.

    A histogram of disjoint bins moves by 1 when a row goes; of bins that share an edge by 2. A distance to a property
    that is off by up to 2 either way, as approximations are, moves by 5 where the exact one moves by 1.
    """
    law = LaplaceLaw(Fraction(2))  # epsilon 1/2 for a move of 1

    def histogram(counts: tuple[int, int]) -> dict[object, float]:
        return product([noisy(law, count, -6, 8) for count in counts])

    disjoint = exact_epsilon([histogram((1, 0)), histogram((0, 0))])
    shared = exact_epsilon([histogram((1, 1)), histogram((0, 0))])  # a row on the edge is in both
    assert disjoint == pytest.approx(0.5)
    assert shared == pytest.approx(1.0)
    exact = [3, 2]
    rough = [exact[0] + 2, exact[1] - 2]
    assert exact_epsilon([noisy(law, at, -20, 25) for at in exact]) == pytest.approx(0.5)
    assert exact_epsilon([noisy(law, at, -20, 25) for at in rough]) == pytest.approx(2.5)


def test_renyi_divergence_is_within_rho_times_the_order() -> None:
    """Discrete Gaussian noise of scale 2 and a move of 1: rho = 1/8 at every order, and half of it is too little."""
    laws = [noisy(GaussianLaw(Fraction(2)), at, -30, 31) for at in (0, 1)]
    for order in (1.5, 2, 10):
        found = renyi(*laws, order)
        assert found <= order / 8 + 1e-9
        assert found > order / 16
    assert renyi({0: 0.5, 1: 0.5}, {0: 1.0}, 2) == math.inf
    with pytest.raises(QuestionError):
        renyi(*laws, 1)


def test_faint_floats_are_compared_by_their_logarithms() -> None:
    """Products of probabilities of 1e-200 are zero and would hide the widest outcome; so does a fraction as a float."""
    laws = [{0: 1.0 - 2e-200, 1: 1e-200, 2: 1e-200}, {0: 1.0 - 4e-200, 1: 3e-200, 2: 1e-200}]
    assert exact_epsilon(laws) == pytest.approx(math.log(3))
    assert exact_epsilon(laws[::-1]) == pytest.approx(math.log(3))
    faint = Fraction(1, 10**400)
    mixed: list[dict[int, float | Fraction]] = [{0: 1 - faint, 1: faint}, {0: 1.0 - 1e-300, 1: 1e-300}]
    assert exact_epsilon(mixed) == pytest.approx(100 * math.log(10))
    exact = [{0: 1 - faint, 1: faint}, {0: 1 - 2 * faint, 1: 2 * faint}]
    assert exact_epsilon(exact) == pytest.approx(math.log(2))
    assert renyi(*exact, 2.0) == pytest.approx(0, abs=1e-300)


def test_a_vector_with_noise_of_its_sensitivity_over_epsilon_is_indistinguishable_S4_7() -> None:
    """S4.7, Proposition 1: f(x) + Lap(S(f)/epsilon)^d, f = (sum of x, rows with x = 1, rows with y), replace_one.

    S(f) = 3 by brute force over all databases of two rows of {0, 1, 2} x {0, 1}; the law of the vector is the product
    of three integer laws, of which every outcome of a box around is looked at. The largest log-ratio over neighbours is
    epsilon, no more and no less; at half the scale it is twice that (the control). The plan, which adds up how far
    each sum can move, 2 + 1 + 1, takes no less noise.
    """
    rows = list(itertools.product(range(3), range(2)))
    epsilon, databases = Fraction(1, 2), list(itertools.product(rows, repeat=2))

    def f(database: tuple[tuple[int, int], ...]) -> tuple[int, ...]:
        return sum(x for x, _ in database), sum(x == 1 for x, _ in database), sum(y for _, y in database)

    near = [
        (a, b) for a, b in itertools.combinations(databases, 2) if sum(p != q for p, q in zip(a, b, strict=True)) == 1
    ]
    sensitivity = max(sum(abs(p - q) for p, q in zip(f(a), f(b), strict=True)) for a, b in near)
    assert sensitivity == 3  # from (0, 0) to (1, 1): each by one
    losses = {}
    for part in (1, 2):
        law = LaplaceLaw(Fraction(sensitivity) / epsilon / part)
        ends = {value: noisy(law, value, -3, 7) for value in range(5)}
        laws = {value: product([ends[each] for each in value]) for value in {f(database) for database in databases}}
        losses[part] = max(exact_epsilon([laws[one], laws[two]]) for one, two in {(f(a), f(b)) for a, b in near})
    assert losses[1] == pytest.approx(float(epsilon), rel=1e-9)
    assert losses[2] == pytest.approx(2 * float(epsilon), rel=1e-9)
    columns = {"x": sulq.Int(0, 2, missing=False), "y": sulq.Bool(missing=False)}
    asked = sulq.Sums((sulq.col("x"), sulq.col("x") == 1, sulq.col("y")))
    table = pa.table({"x": [0, 2], "y": [True, False]})
    unit = sulq.Unit(neighbors="replace_one")
    with sulq.connect(table, columns=columns, unit=unit, budget=sulq.Epsilon(1)) as db:
        scales = [law.scale for law in db.foresee(asked, spend=sulq.Epsilon(epsilon)).parts[0].laws]
    assert sum(moved / scale for moved, scale in zip((2, 1, 1), scales, strict=True)) == epsilon
    assert min(scales) >= Fraction(sensitivity) / epsilon
    figure("S4.7", "exact epsilon of three sums together, replace_one, scale S/epsilon, epsilon 1/2; half the scale",
           [losses[1], losses[2]], [0.5, "1 (control)"])  # fmt: skip
