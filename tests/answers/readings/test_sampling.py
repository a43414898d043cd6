"""Intervals that count sampling hold the population's statistic: on normal, skewed and clipped data, at n = 5,000."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, poisson

from sulq.answers.readings.estimators import Estimated, Plain
from sulq.answers.readings.joint import Correlation
from sulq.answers.readings.quantiles import Quantile, bed, branching, nodes
from sulq.answers.readings.rank_choice import ChosenExtreme
from sulq.answers.readings.sampling import RowSum, SampledTotal, sampled, words
from sulq.answers.released import Noise, Released, ReportLaw
from sulq.api import questions
from sulq.errors import QuestionError
from sulq.language.domain import Real, Schema
from sulq.language.kinds import Cells, Floats
from sulq.language.law import LaplaceLaw
from sulq.language.privacy import Epsilon, Unit
from sulq.language.question import Sums
from sulq.language.rowfn import Col, Lit
from sulq.language.rowfn.base import evaluate, numbers
from sulq.language.rowfn.vectors import to_grid
from sulq.sql.rows.values import TrialRows
from tests.counts import count, generator
from tests.stub import Stub, noise

RUNS = count("coverage of intervals that count sampling", short=600, long=20_000)
ROWS = 5_000
AT_ONCE = 100  # runs whose rows are drawn together
EPSILONS = (0.5, 1.0, 4.0)
SCHEMA = Schema("t", (("x", Real(0, 128, grid=1 / 128)),))
X = Col("x")
FALSE_ALARM = 1e-7


def _population(name: str) -> np.ndarray:
    rng = np.random.default_rng(5)
    found = {
        "normal": lambda: rng.normal(64, 12, 400_000),
        "skewed": lambda: rng.gamma(2, 8, 400_000),
        "clipped": lambda: rng.lognormal(3.6, 0.8, 400_000),
    }[name]()
    return np.rint(np.clip(found, 0, 128) * 128).astype(np.int64)


def drawn_from(name: str) -> np.random.Generator:
    """What a test draws from: the same in every short run, fresh in every long one."""
    return np.random.default_rng(generator(name).getrandbits(64))


NAMES = ("normal", "skewed", "clipped")
POPULATIONS = {name: _population(name) for name in NAMES}


def held(misses: float, runs: int, least: float, most: float) -> bool:
    """Whether a rate of coverage lies from `least` to `most`, but for what so many runs may be off by."""
    z = 5.2  # false in 1e7
    covered = 1 - misses / runs
    return (
        least - z * math.sqrt(least * (1 - least) / runs) <= covered <= most + z * math.sqrt(most * (1 - most) / runs)
    )


@dataclass
class Samples:
    """What each of many samples of a population sums to, in units, for every block of a plan."""

    question: Sums
    values: np.ndarray

    def sums(self, rng: np.random.Generator, runs: int, *, poisson: bool) -> np.ndarray:
        """A row a sample: of 5,000 values, or of a Poisson number of them."""
        plan = Stub(SCHEMA, []).foresee(self.question, spend=Epsilon(1))
        made = []
        for first in range(0, runs, AT_ONCE):
            batch = min(AT_ONCE, runs - first)
            sizes = rng.poisson(ROWS, batch) if poisson else np.full(batch, ROWS)
            drawn = self.values[rng.integers(0, len(self.values), sizes.sum())]
            frame = TrialRows(SCHEMA, len(drawn), lambda _, drawn=drawn: Cells(drawn, None))
            columns = []
            for block in plan.parts[0].tally.blocks:
                units = evaluate(block.fn, frame).values
                if not block.vector:
                    units = to_grid(numbers(block.fn, frame)[0], block.step, block.low[0], block.high[0])[:, None]
                columns.append(units.astype(np.int64))
            starts = np.cumsum(sizes) - sizes
            made.append(np.add.reduceat(np.concatenate(columns, axis=1), starts, axis=0))
        return np.concatenate(made)

    def released(self, sums: np.ndarray, epsilon: float, rng: np.random.Generator) -> Released:
        """The sums with the noise of a spend."""
        (part,) = Stub(SCHEMA, []).foresee(self.question, spend=Epsilon(epsilon)).parts
        drawn = [noise(one.law, rng, (len(sums), one.width)) for one in part.noise]
        return Released(sums + np.concatenate(drawn, axis=1), part.noise)


def misses(low: Floats, high: Floats, truth: float) -> int:
    """How many intervals do not hold the truth."""
    return int(((low[:, 0] > truth) | (high[:, 0] < truth)).sum())


FACTS = Stub(SCHEMA, []).facts
ASKS: dict[str, tuple[Callable[[], tuple[Sums, object]], Callable[[np.ndarray], float], bool]] = {
    "count": (
        lambda: (Sums((X > 40,)), RowSum()),
        lambda x: ROWS * float((x > 40).mean()),
        True,
    ),
    "sum": (lambda: questions.sampled_total(FACTS, X, None, ()), lambda x: ROWS * float(x.mean()), True),
    "mean": (lambda: questions.sampled_mean(FACTS, X, None, ()), lambda x: float(x.mean()), False),
    "variance": (
        lambda: questions.sampled_spread(FACTS, X, None, (), root=False, ddof=1),
        lambda x: float(x.var()),
        False,
    ),
    "std": (lambda: questions.sampled_spread(FACTS, X, None, (), root=True, ddof=0), lambda x: float(x.std()), False),
}


@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize("name", NAMES)
def test_intervals_cover_the_population(ask: str, name: str) -> None:
    """From 94% to 96.5% at 95%, at epsilon 1/2, 1 and 4; those of the noise alone are found out."""
    make, truth_of, poisson = ASKS[ask]
    question, reading = make()
    truth, rng = truth_of(POPULATIONS[name] / 128), drawn_from(f"sampling {ask} {name}")
    samples = Samples(question, POPULATIONS[name])
    sums = samples.sums(rng, RUNS, poisson=poisson)
    for epsilon in EPSILONS:
        released = samples.released(sums, epsilon, rng)
        missed = misses(*sampled(reading, released, 0.05, factor=1.0), truth)
        assert held(missed, RUNS, 0.94, 0.965), (epsilon, 1 - missed / RUNS)
    alone = misses(*reading.interval(released, 0.05), truth)  # at epsilon 4
    assert not held(alone, RUNS, 0.94, 1.0), 1 - alone / RUNS


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("scale", [0.25, 1.0])
def test_small_counts_cover_their_population(scale: float, rows: int) -> None:
    """By the exact law of a Poisson count and its noise, 94% at the least; the noise's own interval is found out.

    `rows`: of each person, all alike.
    """
    law = LaplaceLaw(Fraction(scale))
    people, away = np.arange(60), np.arange(-60, 61)
    decay = math.exp(-1 / scale)
    of_noise = (1 - decay) / (1 + decay) * decay ** np.abs(away)
    values = np.add.outer(rows * people, away)
    released = Released(values.reshape(-1, 1), (Noise(law, Fraction(1), 1),))
    low, high = (end.reshape(values.shape) for end in sampled(RowSum(), released, 0.05, factor=math.sqrt(rows)))
    alone = tuple(end.reshape(values.shape) for end in RowSum().interval(released, 0.05))
    for rate in (0.01, 0.1, *np.arange(0.3, 10.01, 0.05)):
        chance = np.multiply.outer(poisson.pmf(people, rate), of_noise)
        assert chance[(low <= rows * rate) & (high >= rows * rate)].sum() >= 0.94, rate
    assert chance[(alone[0] <= rows * rate) & (alone[1] >= rows * rate)].sum() < 0.8


@pytest.mark.parametrize("values", [(1, 1), (0, 4), (1, 5)], ids=str)
def test_sums_of_few_rows_cover_their_population(values: tuple[int, int]) -> None:
    """Of a Poisson number of values from `values[0]` to `values[1]`, 94% at the least; noise alone is found out."""
    lo, hi = values
    rng, runs = drawn_from(f"sampled small sums {values}"), 20 * RUNS
    reading, least = RowSum(Fraction(lo), Fraction(hi)), binom.ppf(FALSE_ALARM, runs, 0.94)
    for rate in (0.3, 1, 2, 5, 10):
        counts = rng.poisson(rate / (hi - lo + 1), (runs, hi - lo + 1))
        exact = counts @ np.arange(lo, hi + 1)[:, None]
        for scale in (Fraction(hi, 4), Fraction(hi)):
            law = LaplaceLaw(scale)
            released = Released(exact + noise(law, rng, exact.shape), (Noise(law, Fraction(1), 1),))
            low, high = sampled(reading, released, 0.05, factor=1.0)
            truth = rate * (lo + hi) / 2
            assert runs - misses(low, high, truth) >= least, (rate, scale)
    assert runs - misses(*reading.interval(released, 0.05), truth) < least


def test_an_upper_end_of_a_count_is_never_that_of_no_rows_or_less() -> None:
    """A released number at or below 0 has an upper end of z^2 rows or more; a higher one a higher end."""
    released = Released(np.arange(-9, 10)[:, None], (Noise(LaplaceLaw(Fraction(1, 4)), Fraction(1), 1),))
    high = sampled(RowSum(), released, 0.05, factor=1.0)[1][:, 0]
    assert high.min() >= 1.96**2
    assert (np.diff(high[9:]) > 0).all()


def _tree(values: np.ndarray, epsilon: float, q: Fraction, rng: np.random.Generator) -> tuple[Quantile, Released]:
    """A tree of counts of 5,000 values a sample, as a spend would buy it."""
    bins = bed(Fraction(0), Fraction(128), Fraction(1, 128), 2**14 + 1)
    levels, branch = branching(bins.bins, pure=True)
    sizes = nodes(bins.bins, levels, branch)
    leaves = np.zeros((len(values), branch**levels), dtype=np.int64)
    np.add.at(leaves, (np.arange(len(values))[:, None], values), 1)
    counts = [leaves.reshape(len(values), branch**level, -1).sum(axis=2) for level in range(1, levels + 1)]
    units = np.concatenate([count[:, :size] for count, size in zip(counts, sizes, strict=True)], axis=1)
    law = LaplaceLaw(Fraction(levels) / Fraction(epsilon))
    released = Released(units + noise(law, rng, units.shape), (Noise(law, Fraction(1), units.shape[1]),))
    return Quantile(bins, branch, sizes, "cont", q), released


@pytest.mark.parametrize("name", NAMES)
def test_intervals_of_quantiles_cover_the_population(name: str) -> None:
    """By the binomial law of ranks, whatever the distribution is; those of the noise alone are found out."""
    population, runs = POPULATIONS[name], max(RUNS // 6, 100)
    rng = drawn_from(f"sampled quantile {name}")
    for q in (Fraction(1, 2), Fraction(9, 10)):
        truth = float(np.sort(population)[int(q * len(population))]) / 128
        for epsilon in EPSILONS:
            missed = alone = 0
            for first in range(0, runs, 50):
                values = population[rng.integers(0, len(population), (min(50, runs - first), ROWS))]
                reading, released = _tree(values, epsilon, q, rng)
                missed += misses(*sampled(reading, released, 0.05, factor=1.0), truth)
                alone += misses(*reading.interval(released, 0.05), truth)
            # Where noise is the larger part the bins that it leaves are more than those of one: no bar from above.
            assert held(missed, runs, 0.94, 0.98 if epsilon == 4.0 else 1.0), (q, epsilon, 1 - missed / runs)
        assert not held(alone, runs, 0.94, 1.0), (q, 1 - alone / runs)


def _pairs(rng: np.random.Generator, runs: int, correlation: float, scale: int) -> np.ndarray:
    """Count, sums and products of samples of two normal numbers, in units."""
    xs, rest = rng.normal(0, 0.2, (2, runs, ROWS))
    ys = correlation * xs + math.sqrt(1 - correlation**2) * rest
    x, y = (np.rint(np.clip(one, -1, 1) * scale).astype(np.int64) for one in (xs, ys))
    return np.stack([np.full(runs, ROWS), x.sum(1), y.sum(1), (x * x).sum(1), (x * y).sum(1), (y * y).sum(1)], axis=1)


@pytest.mark.parametrize("truth", [0.0, 0.5, -0.9])
def test_intervals_of_correlations_cover_a_normal_population(truth: float) -> None:
    """Fisher's z beside the noise, from 94% to 96.5% at 95% where noise is small."""
    rng, scale = drawn_from(f"sampled correlation {truth}"), 512
    sums = np.concatenate([_pairs(rng, min(100, RUNS - first), truth, scale) for first in range(0, RUNS, 100)])
    step = Fraction(1, scale)
    for epsilon in EPSILONS:
        laws = [LaplaceLaw(Fraction(2 * size) / Fraction(epsilon)) for size in (1, 2 * scale, 3 * scale**2 // 2)]
        parts = (Noise(laws[0], Fraction(1), 1), Noise(laws[1], step, 2), Noise(laws[2], step**2, 3))
        released = Released(sums + np.concatenate([noise(p.law, rng, (RUNS, p.width)) for p in parts], axis=1), parts)
        reading = Correlation((Fraction(1), Fraction(1)))
        missed = misses(*sampled(reading, released, 0.05, factor=1.0), truth)
        assert held(missed, RUNS, 0.94, 0.965 if epsilon == 4.0 else 1.0), (epsilon, 1 - missed / RUNS)
    if abs(truth) < 0.9:  # past that the noise is the larger part at epsilon 4 too
        assert not held(misses(*reading.interval(released, 0.05), truth), RUNS, 0.94, 1.0)


def test_a_mean_without_its_spread_has_what_bounds_allow() -> None:
    """It holds the population's mean, and far too often: of a normal one always; of zeros and ones as it should."""
    question, reading = questions.mean(FACTS, X, None, (), Epsilon(1))
    rng, coin = drawn_from("sampled bare mean"), np.repeat([0, 128 * 128], [300_000, 100_000])
    for values, most in ((POPULATIONS["normal"], 1.0), (coin, 0.965)):
        samples = Samples(question, values)
        released = samples.released(samples.sums(rng, RUNS, poisson=False), 1.0, rng)
        missed = misses(*sampled(reading, released, 0.05, factor=1.0), float(values.mean()) / 128)
        assert held(missed, RUNS, 0.94, most)
        assert (missed == 0) == (most == 1.0)


def test_rows_of_one_person_that_are_alike_are_covered() -> None:
    """Of four equal rows a person the interval of people holds the mean, that of independent rows does not."""
    question, reading = questions.sampled_mean(FACTS, X, None, ())
    values, rng = POPULATIONS["skewed"], drawn_from("sampled alike rows")
    truth, samples = float(values.mean()) / 128, Samples(question, values)
    one = samples.sums(rng, RUNS, poisson=False)
    (part,) = Stub(SCHEMA, [], unit=Unit("p", rows=4)).foresee(question, spend=Epsilon(4)).parts
    released = Released(4 * one + noise(part.noise[0].law, rng, one.shape), part.noise)
    assert held(misses(*sampled(reading, released, 0.05, factor=2.0), truth), RUNS, 0.94, 0.965)
    assert not held(misses(*sampled(reading, released, 0.05, factor=1.0), truth), RUNS, 0.94, 1.0)


def test_a_public_number_of_rows_leaves_a_whole_count_alone() -> None:
    """Of a known size a count of all rows does not vary, one of some varies as a binomial number does."""
    law = Noise(LaplaceLaw(Fraction(2)), Fraction(1), 1)
    released = Released(np.array([[400]]), (law,))
    alone = Plain().interval(released, 0.05)
    whole = sampled(questions.counted(Stub(SCHEMA, [], unit=Unit(None, 1, "replace_one"), size=400).facts, None, ()),
                    released, 0.05, factor=1.0)  # fmt: skip
    assert [float(end[0, 0]) for end in whole] == [float(end[0, 0]) for end in alone]
    low, high = sampled(RowSum(Fraction(0), Fraction(1), 500), released, 0.05, factor=1.0)
    poisson = sampled(RowSum(), released, 0.05, factor=1.0)
    assert alone[0][0, 0] > low[0, 0] > poisson[0][0, 0]
    assert alone[1][0, 0] < high[0, 0] < poisson[1][0, 0]


def test_what_has_no_law_of_sampling_is_refused() -> None:
    """Extremes, sums of unknown values and sums of either sign whose squares were not asked for, each with why."""
    released = Released(np.array([[4, 4]]), (Noise(LaplaceLaw(Fraction(2)), Fraction(1), 2),))
    bins = bed(Fraction(0), Fraction(8), Fraction(1), 16)
    for reading, why in (
        (ChosenExtreme(bins, largest=True), "tail"),
        (Plain(), "within bounds"),
        (RowSum(Fraction(-1), Fraction(1)), "second moment"),
        (object(), "there is none"),
    ):
        with pytest.raises(QuestionError, match=why):
            sampled(reading, released, 0.05, factor=1.0)


def test_a_count_among_reports_varies_as_a_binomial_number() -> None:
    """The reports are as many as their law says."""
    released = Released(np.array([[50]]), (Noise(ReportLaw(100, 3.0, 3.0, 1.0, 1.0), Fraction(1), 1),))
    low, high = sampled(Estimated(), released, 0.05, factor=1.0)
    noise_low, noise_high = Estimated().interval(released, 0.05)
    assert low[0, 0] < noise_low[0, 0] < noise_high[0, 0] < high[0, 0]
    assert high[0, 0] - low[0, 0] == pytest.approx(2 * math.hypot(50 - noise_low[0, 0], 1.96 * 5), rel=0.05)


def test_levels_and_cells_are_each_held_and_no_interval_is_narrower_than_noise() -> None:
    """At 50%, 90% and 99.9% too, with much noise and with little; an interval of the noise alone lies within it."""
    rng, size = drawn_from("sampled levels"), 20 * RUNS
    for scale in (1, 40, 400):
        law = LaplaceLaw(Fraction(scale))
        units = rng.poisson(1000, (size, 1)) + noise(law, rng, (size, 1))
        released = Released(units, (Noise(law, Fraction(1), 1),))
        for beta, most in ((0.5, 0.65), (0.1, 0.93), (1e-3, 1.0)):
            low, high = sampled(RowSum(), released, beta, factor=1.0)
            alone = RowSum().interval(released, beta)
            assert (low <= alone[0]).all()
            assert (high >= alone[1]).all()
            assert held(misses(low, high, 1000.0), size, 1 - beta - 0.001, most)


def test_words_say_what_is_counted() -> None:
    """The population, whose rows are independent, and where the interval is wider than need be."""
    (first, bound) = words([questions.mean(FACTS, X, None, (), Epsilon(1))[1]], True, Unit())
    assert "noise and the sampling of a larger population" in first
    assert "sampling=True" in bound
    assert "VAR_POP" in words([questions.mean(FACTS, X, None, (), Epsilon(1))[1]], True, Unit(), sql=True)[1]
    assert "4 rows of one may be alike" in words([RowSum()], "people", Unit("p", rows=4))[0]
    assert "independent" in words([RowSum()], "rows", Unit("p", rows=4))[0]
    question, reading = questions.sampled_total(FACTS, X, None, ())
    assert isinstance(reading, SampledTotal)
    assert len(words([reading], True, Unit())) == 1
    assert len(question.values) == 1
    assert questions.summed(FACTS, Lit(3) * X, None, ()) == RowSum(Fraction(0), Fraction(384))
