"""Choices: exact probabilities, exact losses over all neighbouring score vectors, exact samplers (SR4, T20, E29)."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, chi2

from sulq.errors import CuratorError, QuestionError
from sulq.kernel import entropy
from sulq.kernel.mechanisms import cost_of, law_of, release
from sulq.kernel.private import Private
from sulq.language.law import ExponentialLaw, FlipLaw, accurate
from sulq.language.privacy import Draw

ALARM = 1e-8
Law = FlipLaw | ExponentialLaw


def pmf(law: Law, scores: tuple[int, ...]) -> list[float]:
    """The exact probability of each candidate, by definition, in doubles good to 1e-13.

    Exponential: proportional to exp(score/scale). Permute-and-flip: over all orders of the
    candidates, the chance that those before come up tails and this one heads.
    """
    best = max(scores)
    heads = [math.exp((score - best) / float(law.scale)) for score in scores]
    if isinstance(law, ExponentialLaw):
        return [h / math.fsum(heads) for h in heads]
    found = [0.0] * len(scores)
    for order in itertools.permutations(range(len(scores))):
        reached = 1.0
        for c in order:
            found[c] += reached * heads[c]
            reached *= 1.0 - heads[c]
    return [p / math.factorial(len(scores)) for p in found]


def vectors(span: int, candidates: int, reach: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """All pairs of score vectors with entries in 0..reach whose difference spans at most so much."""
    every = list(itertools.product(range(reach + 1), repeat=candidates))
    return [
        (a, b)
        for a, b in itertools.product(every, repeat=2)
        if max(0, *(x - y for x, y in zip(a, b, strict=True))) - min(0, *(x - y for x, y in zip(a, b, strict=True)))
        <= span
    ]


def worst(law: Law, span: int, candidates: int = 3, reach: int = 4) -> float:
    """The largest log-ratio of the probabilities of an outcome over neighbouring score vectors."""
    table = {s: pmf(law, s) for s in itertools.product(range(reach + 1), repeat=candidates)}
    pairs = vectors(span, candidates, reach)
    return max(math.log(p / q) for a, b in pairs for p, q in zip(table[a], table[b], strict=True))


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(5, 2), Fraction(10)])
@pytest.mark.parametrize("span", [1, 2, 3])
def test_exact_epsilon_of_permute_and_flip_is_the_debit_T20(span: int, scale: Fraction) -> None:
    """T20, EX: the largest log-ratio over all neighbouring vectors of three scores is at most the debit, and near it.

    Control: half the noise costs more than the debit.
    """
    debit = float(FlipLaw(scale, 3).epsilon(Fraction(span)))
    draw = Draw("permute_and_flip", "add_remove", "l1", Fraction(span), scale, Fraction(1), 1)
    assert cost_of(draw).epsilon == Fraction(debit).limit_denominator(1000)
    found = worst(FlipLaw(scale, 3), span)
    assert found <= debit + 1e-12
    assert found >= 0.999 * debit  # two candidates far apart already lose all of it
    assert worst(FlipLaw(scale / 2, 3), span) > 1.5 * debit


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(5, 2), Fraction(10)])
@pytest.mark.parametrize("span", [1, 2, 3])
def test_exact_renyi_divergence_of_the_exponential_choice_is_the_debit_T20(span: int, scale: Fraction) -> None:
    """T20, EX: at every order the divergence over all neighbouring score vectors is at most rho times the order.

    Control: half the noise passes it.
    """
    rho = float(ExponentialLaw(scale, 3).rho(Fraction(span) ** 2))
    assert rho == pytest.approx((span / float(scale)) ** 2 / 8)
    pairs = vectors(span, 3, 3)
    orders = (1.0 + 1e-6, 1.5, 2.0, 4.0, 16.0)
    assert largest_rate(ExponentialLaw(scale, 3), pairs, orders) <= rho * (1 + 1e-9) + 1e-12
    assert largest_rate(ExponentialLaw(scale / 2, 3), pairs, orders) > rho


def largest_rate(law: Law, pairs: list[tuple[tuple[int, ...], tuple[int, ...]]], orders: tuple[float, ...]) -> float:
    """The largest Renyi divergence over its order."""
    table = {s: np.array(pmf(law, s)) for pair in pairs for s in pair}
    ps, qs = (np.array([table[pair[side]] for pair in pairs]) for side in (0, 1))
    found = 0.0
    for order in orders:
        if order < 1.001:
            rate = (ps * np.log(ps / qs)).sum(axis=1)
        else:
            rate = np.log((ps**order * qs ** (1 - order)).sum(axis=1)) / (order - 1) / order
        found = max(found, float(rate.max()))
    return found


def test_permute_and_flip_is_not_priced_as_an_exponential_choice_SR4_T20() -> None:
    """OpenDP #2911: at epsilon .1 permute-and-flip loses rho .0048, four times epsilon^2/8 = .00125 (T20, SR4).

    Control: the debit epsilon^2/2 covers it.
    """
    epsilon = 0.1
    law = FlipLaw(Fraction(10), 2)
    pairs = [((0, 0), (0, 1)), ((0, 1), (0, 0))]
    found = largest_rate(law, pairs, (1 + 1e-6, 1.5, 2.0, 4.0, 16.0))
    assert found > 0.0045 > 3 * epsilon**2 / 8
    assert found <= float(law.rho(Fraction(1))) == pytest.approx(epsilon**2 / 2)


def test_choices_of_several_cells_share_one_persons_rows_SR13() -> None:
    """Two choices whose scores move by one row each lose what one choice loses that moves by two (SR13, T20)."""
    law = FlipLaw(Fraction(3), 2)
    one = {s: pmf(law, s) for s in itertools.product(range(5), repeat=2)}

    def loss(span: int) -> float:
        return max(math.log(p / q) for a, b in vectors(span, 2, 4) for p, q in zip(one[a], one[b], strict=True))

    assert 2 * loss(1) <= float(law.epsilon(Fraction(2))) + 1e-12
    assert loss(1) + loss(1) >= loss(2) - 1e-12
    squares = ExponentialLaw(Fraction(3), 2)
    assert squares.rho(Fraction(1)) + squares.rho(Fraction(1)) <= squares.rho(Fraction(4))


CASES = [
    (0, 0, 0, 0),
    (0, 1, 2, 3),
    (5, 5, 0, -100),
    (-7, -7, -8, -9),
    (0, -(2**61), 2**61, 2**61 - 1),
    (2**62, 2**61, 0, 1),
]


def fits(law: Law, scores: tuple[int, ...], counts: np.ndarray) -> bool:
    """Chi-square against the exact probabilities at false alarm 1e-8; thin candidates by a binomial bound."""
    clipped = tuple(max(-(2**61), min(2**61, s)) for s in scores)
    expected = np.array(pmf(law, clipped)) * counts.sum()
    kept = expected >= 20
    statistic = float((((counts - expected) ** 2)[kept] / expected[kept]).sum())
    rest, seen = expected[~kept].sum(), counts[~kept].sum()
    thin = binom.sf(seen - 1, int(counts.sum()), min(1.0, rest / counts.sum() + 1e-300)) > ALARM if seen else True
    return bool(chi2.sf(statistic, max(int(kept.sum()) - 1, 1)) > ALARM and thin)


@pytest.mark.parametrize("scores", CASES, ids=str)
@pytest.mark.parametrize("family", [FlipLaw, ExponentialLaw])
def test_the_sampler_follows_its_law_T7(family: type, scores: tuple[int, ...]) -> None:
    """Draws of many equal choices at once against the exact probabilities (T7). Control: another scale fails."""
    law = family(Fraction(3, 2), 4)
    drawn = release(law, Private(np.array([scores] * 40_000, dtype=np.int64)))
    assert drawn.shape == (40_000, 1)
    counts = np.bincount(drawn[:, 0], minlength=4)
    assert fits(law, scores, counts)
    if scores == (0, 1, 2, 3):
        assert not fits(family(Fraction(2), 4), scores, counts)
        assert not fits(ExponentialLaw(law.scale, 4) if family is FlipLaw else FlipLaw(law.scale, 4), scores, counts)


@pytest.mark.parametrize("family", [FlipLaw, ExponentialLaw])
def test_each_choice_follows_its_own_scores_T7(family: type) -> None:
    """Rows of different scores, more than one batch of them, and more candidates than a batch holds."""
    law = family(Fraction(2), 3)
    scores = np.array([(0, 0, 9), (9, 0, 0), (0, 9, 0)] * 30_000, dtype=np.int64)
    drawn = release(law, Private(scores))[:, 0]
    for i, best in enumerate((2, 0, 1)):
        own = np.bincount(drawn[i::3], minlength=3)
        assert own.argmax() == best
        assert fits(law, tuple(scores[i].tolist()), own)
    wide = np.zeros((2, 2**20 + 7), dtype=np.int64)
    wide[:, 5] = 10_000
    assert release(family(Fraction(100), 2**20 + 7), Private(wide)).tolist() == [[5], [5]]


def test_a_choice_favours_high_scores_E29() -> None:
    """The sign of a utility: the best of the candidates comes most often, the worst least (E29).

    Control: with the printed sign the worst would come with probability .9993.
    """
    scores = (0, 4, 8)
    law = ExponentialLaw(Fraction(1), 3)
    exact = pmf(law, scores)
    assert exact[2] > 0.98 > exact[1] > exact[0]
    drawn = np.bincount(release(law, Private(np.array([scores] * 20_000)))[:, 0], minlength=3)
    assert drawn[2] > drawn[1] > drawn[0]
    upside_down = pmf(law, tuple(-2 * s for s in scores))
    assert upside_down[0] == pytest.approx(0.9993, abs=5e-4)


def test_the_utility_of_a_choice_S3_9() -> None:
    """P(score <= best - scale (ln m + s)) <= e^-s, for permute-and-flip too (S3.9). Control: half the reach fails."""
    m, scale = 50, 4
    scores = np.concatenate([[0], np.full(m - 1, -16)]).astype(np.int64)
    for family in (FlipLaw, ExponentialLaw):
        law = family(Fraction(scale), m)
        for s in (0.1, 1.0, 3.0):
            assert law.tail(math.ceil(scale * (math.log(m) + s)) - 1) <= math.exp(-s) * (1 + 1e-9)
        drawn = release(law, Private(np.tile(scores, (20_000, 1))))[:, 0]
        bad = int((drawn > 0).sum())
        assert binom.sf(bad - 1, 20_000, law.tail(15)) > ALARM  # a gap of 16 passes 15
        assert binom.sf(bad - 1, 20_000, family(Fraction(scale, 2), m).tail(15)) < ALARM


@pytest.mark.parametrize("family", [FlipLaw, ExponentialLaw])
def test_accuracy_is_the_smallest_reach_within_beta(family: type) -> None:
    """`accuracy` inverts `tail`, also for one candidate and for odd scales."""
    for m, scale, beta in itertools.product(
        (2, 3, 1000, 2**20), (Fraction(1, 1024), Fraction(7, 2), Fraction(2**40)), (0.5, 0.05, 1e-9)
    ):
        law = family(scale, m)
        t = law.accuracy(beta)
        assert law.tail(t) <= beta
        assert t == 0 or law.tail(t - 1) > beta
        assert law.tail(-1) == 1.0
    assert family(Fraction(1), 1).accuracy(0.05) == 0
    assert family(Fraction(1), 1).variance() == 0
    with pytest.raises(QuestionError):
        family(Fraction(1), 0)


def test_permute_and_flip_is_never_farther_below_than_exponential_T20() -> None:
    """MS20, Theorem 2, which the accuracy of permute-and-flip rests on, over all vectors of four small scores."""
    for scores in itertools.product(range(4), repeat=4):
        flip, exponential = (pmf(family(Fraction(3, 2), 4), scores) for family in (FlipLaw, ExponentialLaw))
        for t in range(4):
            bad = [max(scores) - s > t for s in scores]
            assert math.fsum(np.array(flip)[bad]) <= math.fsum(np.array(exponential)[bad]) + 1e-12


def test_rows_price_choices_by_their_law_SR22() -> None:
    """The table's law of two candidates, its probabilities and its costs."""
    for name, norm in (("permute_and_flip", "l1"), ("exponential", "l2")):
        draw = Draw(name, "add_remove", norm, Fraction(4), Fraction(4), Fraction(1), 1)
        law = accurate(law_of(draw))
        assert law.kind == name
        assert [law.pmf(z) for z in (3, -3)] == pytest.approx(pmf(law, (0, 3)))
        assert cost_of(draw).rho == (Fraction(1, 2) if norm == "l1" else Fraction(1, 32))
    with pytest.raises(QuestionError):
        FlipLaw(Fraction(1, 1025), 2)


@pytest.mark.parametrize("family", [FlipLaw, ExponentialLaw])
def test_a_failing_source_gives_one_constant_error_T31_T68(family: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """No choice without fresh bits, no scores in the error, and nothing but 64-bit rows of scores (T31, T68)."""
    law = family(Fraction(1), 2)
    for wrong in (np.zeros((2, 2)), np.zeros(3, dtype=np.int64), "no scores"):
        with pytest.raises(CuratorError) as refused:
            release(law, Private(wrong))
        assert refused.value.code == "noise-failed"
    assert release(law, Private(np.zeros((0, 2), dtype=np.int64))).shape == (0, 1)

    def dry(_count: int) -> bytes:
        raise OSError("4711")

    monkeypatch.setattr(entropy, "random_bytes", dry)
    with pytest.raises(CuratorError) as refused:
        release(law, Private(np.array([[4711, 4712]])))
    assert "4711" not in str(refused.value)
    assert refused.value.__context__ is None
