"""What the papers promise, by exact enumeration on tiny data: definitions, posteriors, subsets, sensitivities."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import pyarrow as pa
import pytest

import sulq
from sulq.compile.plan import draw
from sulq.language.law import BinomialLaw, LaplaceLaw
from sulq.language.privacy import Epsilon, SubLinear, Unit
from sulq.language.question import Sums
from sulq.language.rowfn import Lit, bins, bucket, col, position
from sulq.language.sublinear import conf
from tests.stub import facts

OUT = range(-60, 61)
BITS = sulq.Int(0, 1)


def law(data: tuple[int, ...], scale: Fraction) -> dict[int, float]:
    """The exact law of a noisy count of ones, cut to a window that holds all but e^-50 of it."""
    noise = LaplaceLaw(scale)
    return {z: noise.pmf(z - sum(data)) for z in OUT}


def worst(pairs: list[tuple[dict[int, float], dict[int, float]]]) -> float:
    """The largest log-ratio of two laws."""
    return max(abs(math.log(p[z] / q[z])) for p, q in pairs for z in p)


def test_the_planned_noise_has_exactly_the_loss_that_is_paid_S2_1_S3_2() -> None:
    """For a count under add_remove and under replace_one the exact epsilon by enumeration is the spend (S2.1, S3.2)."""
    spend = Fraction(7, 10)
    for unit, sizes in ((Unit(), (2, 3)), (Unit(neighbors="replace_one"), (3, 3))):
        told = facts(sulq.language.domain.Schema.of("t", {"x": BITS}), unit)
        scale = draw(Sums((col("x"),)), told, Epsilon(spend)).parts[0].laws[0].scale
        small, large = (list(itertools.product((0, 1), repeat=n)) for n in sizes)
        pairs = [
            (law(a, scale), law(b, scale))
            for a in small
            for b in large
            if (len(a) != len(b) and any(b[:i] + b[i + 1 :] == a for i in range(len(b))))
            or (len(a) == len(b) and sum(x != y for x, y in zip(a, b, strict=True)) == 1)
        ]
        assert worst(pairs) == pytest.approx(float(spend), abs=1e-9)
        half = [
            (law(a, scale / 2), law(b, scale / 2))
            for a, b in itertools.product(small, large)
            if abs(sum(a) - sum(b)) == 1
        ]
        assert worst(half) > float(spend) + 0.1  # control: half the noise costs more


def test_histograms_cost_one_or_two_S2_5_S4_6() -> None:
    """A histogram has scale 1/epsilon under add_remove and 2/epsilon under replace_one, whatever its bins."""
    schema = sulq.language.domain.Schema.of("t", {"x": sulq.Int(0, 99)})
    for edges in ([0, 50, 99], list(range(100))):
        question = Sums((Lit(1),), by=(bins("x", edges),))
        scales = [
            draw(question, facts(schema, Unit(neighbors=relation)), Epsilon(Fraction(1, 2))).parts[0].laws[0].scale
            for relation in ("add_remove", "zero_out", "replace_one")
        ]
        assert scales == [2, 2, 4]


def posterior(prior: dict[tuple[int, ...], float], answer: int, scale: Fraction) -> float:
    """Probability that the first person's bit is 1, after one noisy count."""
    weights = {data: p * law(data, scale)[answer] for data, p in prior.items()}
    return sum(w for data, w in weights.items() if data[0]) / sum(weights.values())


def shift(prior: dict[tuple[int, ...], float], scale: Fraction) -> float:
    before = sum(p for data, p in prior.items() if data[0])
    return max(abs(conf(posterior(prior, answer, scale)) - conf(before)) for answer in range(-20, 25))


def independent(chances: tuple[float, ...]) -> dict[tuple[int, ...], float]:
    return {
        data: math.prod(p if x else 1 - p for x, p in zip(data, chances, strict=True))
        for data in itertools.product((0, 1), repeat=len(chances))
    }


def test_beliefs_move_by_epsilon_for_independent_rows_and_by_n_epsilon_for_copies_S0_3() -> None:
    """Independent rows: log-odds shift by at most epsilon, informed or not; perfect copies reach 4 epsilon."""
    scale = Fraction(10, 7)  # epsilon .7
    informed = {(x, 1, 0, 1): 0.5 for x in (0, 1)}
    assert shift(informed, scale) == pytest.approx(0.7, abs=1e-9)
    assert shift(independent((0.3, 0.5, 0.2, 0.9)), scale) <= 0.7 + 1e-9
    copies = {(x,) * 4: 0.5 for x in (0, 1)}
    assert shift(copies, scale) == pytest.approx(2.8, abs=1e-9)


def test_two_sided_shifts_cost_twice_the_failure_probability_S1_3() -> None:
    """Binomial noise: a shift beyond epsilon either way is at most twice as likely as one way (S1.3, E48)."""
    noise, epsilon = BinomialLaw(400), 0.3
    pmf = {z: noise.pmf(z) for z in range(-200, 201)}

    def beyond(test: Callable[[float], bool]) -> float:
        ratios = {z: math.log(pmf[z] / pmf[z - 1]) if z - 1 in pmf and pmf[z - 1] else math.inf for z in pmf}
        return sum(pmf[z] for z in pmf if test(ratios[z]))

    up, down = beyond(lambda r: r > epsilon), beyond(lambda r: r < -epsilon)
    both = beyond(lambda r: abs(r) > epsilon)
    assert both == pytest.approx(up + down)
    assert 0 < both <= 2 * max(up, down)
    assert both > max(up, down)  # control: the one-sided budget alone does not hold both


@pytest.mark.parametrize("neighbors", ["replace_one", "zero_out"])
def test_a_subset_of_rows_is_asked_by_place_S1_1_S0_5_S0_7(neighbors: str) -> None:
    """Sums over a set S of rows: those places alone count, each once, under the relations that keep places (S1.1)."""
    rows = pa.table({"x": [1, 0, 1, 1, 0, 1]})
    with sulq.connect(
        rows, columns={"x": BITS}, unit=Unit(neighbors=neighbors), budget=Epsilon(900), synthetic=True
    ) as db:
        exact = sulq_exact(db)
        for chosen in ([0], [0, 2, 4], [1, 4], [5, 5], []):
            assert exact.sum("x", where=position().isin(chosen)).value == sum(
                [1, 0, 1, 1, 0, 1][i] for i in set(chosen)
            )
        parts = exact.sum("x", by=bucket(3)).value
        assert sum(parts.values()) == 4
    with (
        sulq.connect(rows, columns={"x": BITS}, budget=Epsilon(1)) as db,
        pytest.raises(sulq.errors.QuestionError) as refused,
    ):
        db.sum("x", where=position() == 0, spend=Epsilon(0.1))
    assert refused.value.code == "needs-position"


def sulq_exact(db: object) -> object:
    """The noise-free asks of made-up data."""
    from sulq.testing import exact

    return exact(db)


def test_under_sublinear_the_guarantee_says_what_is_certified_S0_4() -> None:
    """Every answer under SubLinear names its reading: posterior, or dp (S0.4, SR8)."""
    rows = pa.table({"x": [1, 0]})
    for calibration, told in (
        ("posterior", "posterior"),
        ("dp", "dp"),
        ("laplace", "posterior"),
        ("theorem1", "posterior"),
    ):
        with sulq.connect(rows, columns={"x": BITS}, budget=SubLinear(1, 1e-6, 10, calibration)) as db:
            assert db.sum("x").guarantee == told
