"""Where values lie, from released counts: public bins, the clip of least foreseen error, and coverage."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pyarrow as pa
import pytest

import sulq
from sulq import Epsilon, EpsilonDelta, Queries, Rho, SubLinear, Unit, col
from sulq.answers.auto_bounds import (
    SEARCH_SHARE,
    SearchedValue,
    _figure,
    check_bounds,
    check_most,
    chosen_clip,
    divided_spend,
    edges_of,
    laplace_evidence,
    searched,
    share_beyond,
    stands_out,
    total_spent,
)
from sulq.answers.readings.estimators import Plain
from sulq.answers.released import Noise, Released
from sulq.api import questions
from sulq.errors import QuestionError
from sulq.language.domain import Schema
from sulq.language.law import GaussianLaw, LaplaceLaw
from sulq.language.privacy import Loss
from sulq.language.rowfn import Lit
from tests import counts

SCHEMA = Schema.of(
    "data",
    {
        "whole": sulq.Int(0, 1000),
        "signed": sulq.Int(-5, 3),
        "real": sulq.Real(0, 1e9),
        "fine": sulq.Real(-1, 1, grid=2**-20),
        "far": sulq.Int(900, 1000),
        "point": sulq.Int(7, 7),
        "flag": sulq.Bool(),
        "city": sulq.Category(["a", "b", "c"]),
    },
)
RNG = np.random.default_rng(23)


def test_bins_are_powers_of_two_within_the_declared_bounds_and_no_finer_than_the_grid() -> None:
    """What is public about a value fixes its bins; a constant, a truth value or a narrow range leaves none."""
    assert edges_of(col("whole"), SCHEMA) == (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000)
    assert edges_of(col("signed"), SCHEMA) == (-5, -4, -2, -1, 0, 1, 2, 3)
    assert edges_of(col("real"), SCHEMA)[:3] == (0, 256, 512)  # its grid is 256
    assert len(edges_of(col("fine"), SCHEMA)) == 43
    assert edges_of(col("whole") * col("real"), SCHEMA)[0] == 0
    for name in ("far", "point", "flag"):
        assert searched(col(name), SCHEMA) is None
    found = searched(col("whole"), SCHEMA, by=[col("city")])
    assert found is not None
    assert (found.groups, found.narrowest, found.clipped((0, 1000))) == (3, (0, 1), found.fn)
    assert found.ends[:13] == (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16)
    halves = SearchedValue(Lit(1), (0.0, 0.5, 1.0))
    assert (halves.ends, halves.narrowest) == (tuple(i / 8 for i in range(9)), (0.0, 0.125))


@pytest.mark.parametrize("many", [1, 2, 3, 4])
def test_evidence_is_the_exact_tail_of_summed_noise(many: int) -> None:
    """Against a million draws within five deviations; of one draw it is t + ln 2."""
    past = np.array([0.0, 1.0, 3.0, 6.0])
    drawn = RNG.laplace(size=(10**6, many)).sum(axis=1)
    told = np.exp(-laplace_evidence(many, past))
    seen = np.array([(drawn > t).mean() for t in past])
    assert np.all(np.abs(seen - told) < 5.5 * np.sqrt(told / 10**6))
    if many == 1:
        assert laplace_evidence(1, past) == pytest.approx(past + math.log(2))


def released(counted: np.ndarray, law: LaplaceLaw | GaussianLaw) -> Released:
    """A released histogram, as it was drawn."""
    return Released(counted.astype(np.int64)[:, None], (Noise(law, Fraction(1), 1),))


EDGES = (0, *(2**i for i in range(31)))


@pytest.mark.parametrize("law", [LaplaceLaw(Fraction(3)), GaussianLaw(Fraction(4))])
def test_the_clip_holds_what_stands_out_and_no_noise(law: LaplaceLaw | GaussianLaw) -> None:
    """Values in three bins, noise in all others: the upper end is theirs or one bin off, whatever the bound."""
    value, ends = SearchedValue(Lit(1), EDGES), Counter()
    for _ in range(400):
        noise = RNG.laplace(0, 3, 31) if isinstance(law, LaplaceLaw) else RNG.normal(0, 4, 31)
        exact = np.zeros(31)
        exact[10:13] = 400, 800, 300
        low, high = chosen_clip(value, released(np.round(exact + noise), law))
        ends[high] += 1
        assert low <= 512
    assert sum(many for end, many in ends.items() if 2**11 < end <= 2**13) >= 390
    many = np.zeros(31)
    many[3], many[28] = 10_000, 2_000  # a second crowd far off is seen where it is large enough
    assert chosen_clip(value, released(many, law))[1] == 2**28


def test_without_evidence_the_declared_bounds_stay() -> None:
    """Nothing stands out: no rows at all, or far fewer than the noise hides, within bounds that are not wide."""
    value = SearchedValue(Lit(1), edges_of(col("whole"), SCHEMA))
    law = LaplaceLaw(Fraction(30))
    assert chosen_clip(value, released(np.full(11, 5), law)) == (0, 1000)
    kept = [chosen_clip(value, released(np.round(RNG.laplace(0, 30, 11)), law)) == (0, 1000) for _ in range(400)]
    assert sum(kept) > 240
    assert chosen_clip(value, released(np.arange(11) == 3, LaplaceLaw(Fraction(1, 20)))) != (0, 1000)  # control


TAILS = {
    "lognormal": np.exp(RNG.normal(10, 1, 1000)),
    "pareto": np.minimum((RNG.pareto(0.7, 1000) + 1) * 100, 2**30),
    "everywhere": np.exp(RNG.uniform(0, 20, 1000)),
    "nobody": np.zeros(0),
}


@pytest.mark.audit
@pytest.mark.parametrize("law", [LaplaceLaw(Fraction(30)), GaussianLaw(Fraction(30))], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("name", TAILS)
def test_the_share_beyond_a_clip_is_told_and_at_most_what_is_said(name: str, law: LaplaceLaw | GaussianLaw) -> None:
    """Told wrongly, or of nobody's values, no oftener than in 5%, at 1e-6; control: the estimate alone is no bound."""
    runs = counts.count(f"share beyond a clip of {name} by {law.kind}", short=150, long=10_000)
    value, values = SearchedValue(Lit(1), EDGES), TAILS[name]
    wrong, low, told = 0, 0, 0
    for noise in drawn(law, (runs, 31)):
        found = released(np.histogram(values, np.array(EDGES))[0] + noise, law)
        clip = chosen_clip(value, found)
        if stands_out(found):
            share, most = share_beyond(value, clip, found)
            beyond = ((values < clip[0]) | (values > clip[1])).mean() if len(values) else 2.0
            told, wrong, low = told + 1, wrong + (beyond > most), low + (beyond > share)
    allowed = 0.05 * runs - NormalDist().inv_cdf(1e-6) * math.sqrt(0.0475 * runs)
    assert wrong <= allowed
    assert told > 0.9 * runs or name in ("nobody", "everywhere")
    assert low > allowed or name in ("nobody", "everywhere")


def test_the_share_beyond_a_clip_by_hand() -> None:
    """Whole bins, a divided one, and nothing beyond the declared bounds."""
    value, law = SearchedValue(Lit(1), (0, 4, 8, 16)), LaplaceLaw(Fraction(1, 100))
    found = released(np.array([60, 20, 20]), law)
    assert share_beyond(value, (0, 8), found) == pytest.approx((0.2, 0.2))
    assert share_beyond(value, (0, 6), found) == pytest.approx((0.3, 0.4))
    assert share_beyond(value, (0, 16), found) == (0.0, 0.0)
    assert share_beyond(value, (0, 8), released(np.array([-5, -3, 2]), law)) == (1.0, 1.0)
    assert share_beyond(value, (0, 8), released(np.array([-5, -3, -2]), law)) == (0.0, 1.0)


def test_the_clip_is_told_exactly() -> None:
    """What is told is read as the number that clips, in as few figures as that takes."""
    told = [_figure(number) for number in (-1835008, 2**31 + 1, 1835008.0, 0.1, 0.15625, 2.0**-20)]
    assert told == ["-1,835,008", "2,147,483,649", "1,835,008", "0.1", "0.15625", "9.5367431640625e-07"]


def test_groups_and_sums_have_their_own_best_clip() -> None:
    """The more groups share a clip, the more noise counts, so it is no wider; a sum's noise starts at zero."""
    exact = np.zeros(31)
    exact[8:14] = 5000, 4000, 900, 200, 40, 12
    law = LaplaceLaw(Fraction(3))
    highs = [
        chosen_clip(SearchedValue(Lit(1), EDGES, groups=many), released(exact, law))[1] for many in (1, 100, 10**4)
    ]
    assert highs == sorted(highs, reverse=True)
    assert highs[0] > highs[-1]
    assert chosen_clip(SearchedValue(Lit(1), EDGES, centred=False), released(exact, law))[0] == 0


def test_a_spend_is_divided_and_added_up_again() -> None:
    """Both parts together are within the spend; of an epsilon and a delta the delta is the answer's."""
    for spend in (Epsilon(1), Rho(0.05), EpsilonDelta(1, 1e-6)):
        first, rest = divided_spend(spend)
        whole = total_spent(first, rest)
        assert type(whole) is type(spend)
        assert spend.exact * (1 - Fraction(1, 10**12)) <= whole.exact <= spend.exact
        assert float(first.exact) == pytest.approx(float(SEARCH_SHARE * spend.exact))
    assert divided_spend(EpsilonDelta(1, 1e-6))[1].exact_delta == Fraction(1, 10**6)
    assert total_spent(Epsilon(1), Queries(3)) == Queries(3)
    with pytest.raises(QuestionError, match="spend-missing"):
        divided_spend(None)


def test_what_bounds_may_be_is_checked() -> None:
    """Only "auto", not beside an accuracy, and not where the noise is fixed."""
    with sulq.connect(pa.table({"x": [1]}), columns={"x": (0, 9)}, unit=Unit(), budget=Epsilon(1)) as db:
        check_bounds("auto", db.facts)
        for wrong, within in (("Auto", None), ((0, 9), None), (True, None), ("auto", 3)):
            with pytest.raises(QuestionError, match="bad-question"):
                check_bounds(wrong, db.facts, within)
    budget = SubLinear(1, 1e-6, 50)
    with (
        sulq.connect(pa.table({"x": [1]}), columns={"x": (0, 9)}, unit=Unit(neighbors="zero_out"), budget=budget) as db,
        pytest.raises(QuestionError, match="spend-kind"),
    ):
        db.mean("x", bounds="auto")


@pytest.mark.parametrize(
    ("spend", "at_most", "code"),
    [
        (Epsilon(1), Epsilon(0.5), "too-costly"),
        (EpsilonDelta(1, 1e-7), EpsilonDelta(0.5, 1e-7), "too-costly"),
        (EpsilonDelta(1, 1e-6), EpsilonDelta(1, 1e-7), "too-costly"),
        (Epsilon(1), EpsilonDelta(0.5, 1e-7), "too-costly"),
        (Rho(1), EpsilonDelta(0.5, 1e-7), "too-costly"),
        (EpsilonDelta(1, 1e-7), Epsilon(2), "spend-kind"),
        (Rho(1), Epsilon(2), "spend-kind"),
        (Epsilon(1), "x", "spend-kind"),
        (Epsilon(1), 2, "spend-kind"),
        (Epsilon(1), Queries(3), "spend-kind"),
        (EpsilonDelta(1, 1e-7), EpsilonDelta(1, 1e-7), None),
        (Rho(0.001), EpsilonDelta(1, 1e-7), None),
        (Epsilon(1), Epsilon(1), None),
        (None, Epsilon(1), None),
        (Epsilon(1), None, None),
    ],
)
def test_a_spend_is_held_against_at_most(spend: Loss | None, at_most: object, code: str | None) -> None:
    """Every kind of loss, in both its numbers; what is no loss, or of another kind, is refused."""
    budget = EpsilonDelta(5, 1e-5)
    with sulq.connect(pa.table({"x": [1]}), columns={"x": (0, 9)}, unit=Unit(), budget=budget) as db:
        if code is None:
            check_most(spend, at_most, db.facts)
            return
        with pytest.raises(QuestionError, match="at_most") as refused:
            check_most(spend, at_most, db.facts)
        assert refused.value.code == code


# -- coverage, by released integers as they are drawn


def drawn(law: LaplaceLaw | GaussianLaw, shape: tuple[int, ...]) -> np.ndarray:
    """Discrete noise; a Gaussian of such scales, rounded, is the discrete one up to 1e-8."""
    if isinstance(law, LaplaceLaw):
        p = -math.expm1(-1 / float(law.scale))
        return RNG.geometric(p, shape) - RNG.geometric(p, shape)
    return np.round(RNG.normal(0, float(law.scale), shape)).astype(np.int64)


VALUES = np.round(np.exp(RNG.normal(6, 1.3, 400))).astype(np.int64)


@pytest.mark.audit
@pytest.mark.parametrize("how", ["mean", "sum"])
@pytest.mark.parametrize("spend", [Epsilon(1), Rho(0.1)], ids=["laplace", "gaussian"])
def test_the_interval_holds_the_clipped_statistic_and_not_the_other(spend: Epsilon | Rho, how: str) -> None:
    """Of 20,000 searches and answers the 90% interval misses no oftener than nominal, at 1e-6.

    Control: taken for one of the unclipped statistic it fails, as the clip takes from the tail.
    """
    runs = counts.count(f"coverage of searched bounds, {how} by {type(spend).__name__}", short=400, long=20_000)
    columns, unit = {"x": sulq.Int(0, 10**6)}, Unit(neighbors="add_remove")
    with sulq.connect(pa.table({"x": VALUES}), columns=columns, unit=unit, budget=type(spend)(10)) as db:
        facts, (first, rest) = db.facts, divided_spend(spend)
        value = searched(col("x"), facts.schema, centred=how == "mean")
        assert value is not None
        (noise,) = db.foresee(value.question, spend=first).parts[0].noise
        exact = np.histogram(VALUES, np.array(value.edges))[0]
        noisy = exact + drawn(noise.law, (runs, len(exact)))
        clips = Counter(chosen_clip(value, Released(row[:, None], (noise,))) for row in noisy)
        missed, unclipped = 0, 0
        for clip, many in clips.items():
            fn, held = value.clipped(clip), np.clip(VALUES, *clip)
            if how == "mean":
                question, reading = questions.mean(facts, fn, None, (), rest)
            else:
                question, reading = questions.total(facts, fn, None, ()), Plain()
            part = db.foresee(question, spend=rest).parts[0]
            units = np.array([[_units(block.fn, held, clip, block.step)] for block in part.tally.blocks], dtype=object)
            sums = np.concatenate([np.concatenate(one).astype(np.int64) for one in units])
            widths = [n.width for n in part.noise]
            noises = np.concatenate([drawn(n.law, (many, w)) for n, w in zip(part.noise, widths, strict=True)], axis=1)
            low, high = reading.interval(Released(sums[None, :] + noises, part.noise), 0.1)
            truth = held.mean() if how == "mean" else held.sum()
            whole = VALUES.mean() if how == "mean" else VALUES.sum()
            missed += int(((low[:, 0] > truth) | (truth > high[:, 0])).sum())
            unclipped += int(((low[:, 0] > whole) | (whole > high[:, 0])).sum())
    most = 0.1 * runs - NormalDist().inv_cdf(1e-6) * math.sqrt(0.09 * runs)
    assert missed <= most
    assert unclipped > most


def _units(fn: object, held: np.ndarray, clip: tuple[int, int], step: Fraction) -> np.ndarray:
    """The exact sums of a block, in its units: of values, of the two one-sided ones, of a count."""
    name = type(fn).__name__
    low, high = clip
    if name == "Bernstein":
        return np.array([(held - low).sum(), (high - held).sum()]) / float(step)
    if name in ("Not", "Lit"):
        return np.array([len(held)])
    middle = (low + high) / 2 if name == "Arith" else 0
    return np.array([np.round((held - middle) / float(step)).sum()])
