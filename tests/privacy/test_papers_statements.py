"""Statements of the papers checked through the public door, each by the paper's own formula."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import sulq
from sulq import Epsilon, SubLinear, Unit, audit, col
from sulq.language.law import BinomialLaw, LaplaceLaw
from sulq.language.question import Sums
from sulq.language.rowfn import Clip, Lit, each, vector
from sulq.learn.sq import Sample
from tests.figures import figure

REPLACE = Unit(neighbors="replace_one")
EMPTY = pa.table({"x": pa.array([], pa.int64())})


def normal_off(sample: np.ndarray, variance: float) -> tuple[float, float]:
    """Standard errors by which a sample's mean and variance are off those of N(0, variance)."""
    size = sample.size
    mean = abs(sample.mean()) / math.sqrt(variance / size)
    return mean, abs((sample**2).mean() / variance - 1) / math.sqrt(2 / size)


def test_the_noise_of_a_query_has_theorem_1s_variance_S0_5_S0_6_S0_9() -> None:
    """T empty sums asked as one vector: N(0, 8T ln^2(T/delta)/eps^2) on each, cost T, and query T + 1 is refused.

    Six standard errors, a false alarm of 4e-9. Control: the same sample is not of half that variance.
    """
    queries, epsilon, delta = 3_000, 1.0, 1e-6
    paper = 8 * queries * math.log(queries / delta) ** 2 / epsilon**2
    policy = SubLinear(epsilon, delta, queries, calibration="theorem1")
    with sulq.connect(EMPTY, columns={"x": sulq.Int(1, queries)}, budget=policy) as db:
        noise = np.array(list(db.histogram("x").value.values()))
        assert noise.size == queries
        with pytest.raises(sulq.errors.BudgetExceeded):
            db.count()
    assert max(normal_off(noise, paper)) < 6
    assert normal_off(noise, paper / 2)[1] > 6
    half = math.sqrt(paper) * 0.6744897501960817  # half of a normal lies within it
    assert abs((np.abs(noise) <= half).mean() - 0.5) < 6 * 0.5 / math.sqrt(queries)
    lag = (noise[:-1] * noise[1:]).mean() / paper
    assert abs(lag) < 6 / math.sqrt(queries - 1)  # cells are independent
    figure("S0.6", "variance of 3,000 answers at (1, 1e-6, 3000)", (noise**2).mean(), paper)


def test_real_functions_have_the_noise_of_conditions_and_less_than_the_survey_says_S1_8() -> None:
    """A sum of x in [0, 1] and a count have one R; at delta = 1/n it is below T ln n ln T, and T ln n is not enough."""
    n, queries = 10**6, 10**4
    policy = SubLinear(1, 1 / n, queries)
    rows = pa.table({"x": pa.array([], pa.float64())})
    with sulq.connect(rows, columns={"x": sulq.Real(0, 1)}, budget=policy) as db:
        widths = [db.foresee(Sums((g,))).parts[0] for g in (col("x"), col("x") > 0.5)]
        real, count = (float(part.laws[0].scale ** 2) * float(part.steps[0]) ** 2 for part in widths)
    assert real == pytest.approx(count, rel=1e-5)
    assert real < queries * math.log(n) * math.log(queries)
    z = 4.753424308822899  # Q(z) = 1e-6: T fixed questions alone need T/(sqrt(z^2 + 2 eps) - z)^2
    assert real > queries / (math.sqrt(z * z + 2) - z) ** 2 > queries * math.log(n)


@pytest.mark.parametrize("answers", [(3, -7, 0, 12), (-20, -1, 5, 5), (40, 40, -3, 8)])
def test_the_confidence_walks_by_the_coins_own_ratio_S1_7_S1_2(answers: tuple[int, ...]) -> None:
    """R coins, k heads: each step is ln(C(R, k)/C(R, k - 1))'s mirror, ln of k over R - k + 1; dconf is its size.

    Control: coins counted one off would give another walk.
    """
    coins = 400
    law = BinomialLaw(coins)
    walk = audit.Tracker({0: 0.7, 1: 0.3}, lambda bit: bit == 1)
    for answer in answers:
        walk.hear_sum({0: 0, 1: 1}, law, answer)
    heads = [coins // 2 + answer for answer in answers]  # of the coins, had the row been 0
    steps = [math.log(k / (coins - k + 1)) for k in heads]
    assert walk.steps == pytest.approx(steps, abs=1e-9)
    told = audit.shift({0: 0.7, 1: 0.3}, walk.belief, lambda bit: bit == 1, two_sided=True)
    assert told == pytest.approx(abs(sum(steps)), abs=1e-9)
    assert sum(steps) != pytest.approx(sum(math.log((k + 1) / (coins - k)) for k in heads), abs=1e-3)


ROWS = [(x, y) for x in range(4) for y in range(3)]
FUNCTIONS = {
    "a sum of x": ((col("x"),), lambda r: (r[0],)),
    "x and y, a vector": ((vector(["x", "y"]),), lambda r: r),
    "a condition": ((col("x") > 1,), lambda r: (int(r[0] > 1),)),
    "x within [1, 3]": ((Clip(col("x"), 1, 3),), lambda r: (min(max(r[0], 1), 3),)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_scale_is_the_largest_change_over_alpha_S2_5_S3_5_S4_5(name: str) -> None:
    """F = a sum over rows, Delta by brute force over one replaced row: the planned scale is Delta/alpha, no less.

    And by the densities themselves: no outcome is more than e^alpha likelier; at half that scale one is.
    """
    values, row = FUNCTIONS[name]
    largest = max(
        sum(abs(a - b) for a, b in zip(row(v), row(w), strict=True)) for v, w in itertools.product(ROWS, ROWS)
    )
    alpha = Fraction(1, 2)
    columns = {"x": sulq.Int(0, 3, missing=False), "y": sulq.Int(0, 2, missing=False)}
    rows = pa.table({"x": [0, 1], "y": [0, 1]})
    with sulq.connect(rows, columns=columns, unit=REPLACE, budget=Epsilon(1)) as db:
        part = db.foresee(Sums(values), spend=Epsilon(alpha)).parts[0]
    scale = part.laws[0].scale * part.steps[0]
    assert scale == pytest.approx(float(largest / alpha), rel=1e-9)

    def loss(law: LaplaceLaw) -> float:
        return max(
            sum(abs(math.log(law.pmf(0) / law.pmf(abs(a - b)))) for a, b in zip(row(v), row(w), strict=True))
            for v, w in itertools.product(ROWS, ROWS)
        )

    assert loss(LaplaceLaw(Fraction(largest) / alpha)) == pytest.approx(float(alpha), rel=1e-9)
    assert loss(LaplaceLaw(Fraction(largest) / alpha / 2)) > float(alpha) * 1.5


def test_questions_add_up_and_one_histogram_is_one_S3_6_S3_8() -> None:
    """Two conditions on every row: Lap(2/eps) each, by the sum of sensitivities; cells of a histogram: Lap(1/eps)."""
    with sulq.connect(EMPTY, columns={"x": sulq.Int(0, 9)}, budget=Epsilon(1)) as db:
        apart = db.foresee(Sums((col("x") < 5, col("x") < 8)), spend=Epsilon(Fraction(1, 2)))
        cells = db.foresee(Sums((Lit(1),), by=(each("x"),)), spend=Epsilon(Fraction(1, 2)))
    assert [law.scale for law in apart.parts[0].laws] == [4, 4]
    assert [law.scale for law in cells.parts[0].laws] == [2]


def test_the_error_of_a_count_is_passed_with_probability_delta_S2_4() -> None:
    """200,000 cells at once: |error| > scale ln(1/delta) with probability delta, by the integer law's own tail.

    Six standard errors. Control: at half the scale it is passed far more often.
    """
    cells, scale, delta = 200_000, 50.0, 0.05
    with sulq.connect(EMPTY, columns={"x": sulq.Int(1, cells)}, budget=Epsilon(1)) as db:
        noise = np.array(list(db.histogram("x", spend=Epsilon(Fraction(1, 50))).value.values()))
    bound = math.floor(scale * math.log(1 / delta))
    rate = math.exp(-1 / scale)
    exact = 2 * rate ** (bound + 1) / (1 + rate)  # P(|Z| > bound), near delta on a fine grid
    seen = (np.abs(noise) > bound).mean()
    error = math.sqrt(exact * (1 - exact) / cells)
    assert exact == pytest.approx(delta, rel=0.02)
    assert abs(seen - exact) < 6 * error
    assert (np.abs(noise) > bound / 2).mean() - exact > 6 * error
    figure("S2.4", "part of 200,000 errors past scale ln(1/.05)", seen, delta)


def test_each_step_is_the_ratio_of_the_two_sides_mixtures_S0_22() -> None:
    """Eq. 11: ln of the mixture of densities over D1 by that over D0, the weights renewed by every answer before.

    Control: with the prior's weights kept, later steps differ.
    """
    rng = np.random.default_rng(11)
    law, prior = LaplaceLaw(Fraction(3)), {0: 0.4, 1: 0.1, 2: 0.3, 3: 0.2}
    inside = {1, 3}
    walk, weights, kept = audit.Tracker(prior, lambda value: value in inside), dict(prior), []
    for _ in range(12):
        counts = {value: int(rng.integers(0, 2)) for value in prior}
        answer = int(rng.integers(-6, 7))
        density = {value: law.pmf(answer - counts[value]) for value in prior}

        def mixture(w: dict[int, float], side: set[int], density: dict[int, float] = density) -> float:
            return sum(w[v] * density[v] for v in side) / sum(w[v] for v in side)

        outside = set(prior) - inside
        step = math.log(mixture(weights, inside) / mixture(weights, outside))
        kept.append(math.log(mixture(prior, inside) / mixture(prior, outside)))
        assert walk.hear_sum(counts, law, answer) == pytest.approx(step, abs=1e-12)
        weights = {value: w * density[value] for value, w in weights.items()}
    assert max(abs(a - b) for a, b in zip(walk.steps, kept, strict=True)) > 0.01


@pytest.mark.parametrize("odds", [1 / 99, 1.0, 9.0])
def test_posterior_odds_are_the_ratio_times_the_prior_odds_S2_2(odds: float) -> None:
    """P(1 | a)/P(0 | a) = (P(a | 1)/P(a | 0)) (P(1)/P(0)), within e^alpha of the prior odds, at every outcome."""
    alpha = 0.5
    law = LaplaceLaw(Fraction(2))
    prior = {0: 1 / (1 + odds), 1: odds / (1 + odds)}
    factors = []
    for answer in range(-15, 17):
        after = audit.posterior(audit.independent([prior]), [audit.Heard({0: 0, 1: 1}, law, answer)], 0)
        ratio = math.exp((abs(answer) - abs(answer - 1)) / 2)  # of densities exp(-|z|/2)
        assert after[1] / after[0] == pytest.approx(odds * ratio, rel=1e-9)
        factors.append(after[1] / after[0] / odds)
    assert max(factors) == pytest.approx(math.exp(alpha), rel=1e-9) == pytest.approx(1 / min(factors), rel=1e-9)


def test_a_query_is_answered_by_rows_of_its_own_S2_11() -> None:
    """Theorem 6: answer i is the mean over block i alone, of ln(2M/delta)/(2 tau^2) rows or more; else refused.

    Control: the mean of all rows is another number, and one row less is too few.
    """
    queries, tau, delta = 4, 0.1, 0.05
    block = math.ceil(math.log(2 * queries / delta) / (2 * tau**2))
    bits = np.random.default_rng(12).random(queries * block) < np.repeat([0.1, 0.4, 0.6, 0.9], block)
    sample = Sample({"x": sulq.Bool()}, {"x": bits}, queries=queries, beta=delta)
    for i in range(queries):
        own = bits[i * block : (i + 1) * block].mean()
        assert sample.stat(col("x"), tau) == pytest.approx(own, abs=1e-12)
        assert abs(own - bits.mean()) > 0.05
    short = Sample({"x": sulq.Bool()}, {"x": bits[:-1]}, queries=queries, beta=delta)
    with pytest.raises(sulq.errors.QuestionError) as refused:
        short.stat(col("x"), tau)
    assert refused.value.code == "too-few-rows"


@pytest.mark.parametrize("people", [1, 2])
def test_who_lacks_k_rows_makes_the_transcript_itself_S4_21_S4_22_S4_23(people: int) -> None:
    """Randomised response of three bits, by hand: the simulator fills in zeros and is off by the group's loss at most.

    (1, eps) gives (k, k eps); (k, eps)-simulatable gives (k, 2 eps). Control: without the fill-in's own loss it fails.
    """
    epsilon = 0.6
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    databases = list(itertools.product((0, 1), repeat=3))

    def chance(database: tuple[int, ...], told: tuple[int, ...]) -> float:
        return math.prod(keep if a == b else 1 - keep for a, b in zip(database, told, strict=True))

    def apart(x: tuple[int, ...], y: tuple[int, ...]) -> float:
        return max(abs(math.log(chance(x, t) / chance(y, t))) for t in databases)

    group = max(apart(x, y) for x in databases for y in databases if sum(map(int.__ne__, x, y)) <= people)
    simulated = max(
        apart(x, tuple(0 if i in hidden else bit for i, bit in enumerate(x)))
        for x in databases
        for hidden in itertools.combinations(range(3), people)
    )
    assert group == pytest.approx(people * epsilon)
    assert simulated <= group + 1e-12 <= 2 * simulated + 1e-9
    laws = audit.enumerated(lambda x: {t: chance(x, t) for t in databases}, (0, 1), 3)
    assert audit.group_epsilon(laws, people) == pytest.approx(group, abs=1e-9)
    assert audit.simulation_epsilon(laws, people, 0) == pytest.approx(simulated, abs=1e-9)
    assert simulated > people * epsilon * 0.9
    figure("S4.23", f"loss of a simulator that lacks {people} of 3 rows, epsilon .6", simulated, f"at most {group:.6g}")
