"""The sparse vector: exact probabilities of every place, exact losses over all neighbours, exact sampler (T20, T7)."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.stats import binom, chi2

from sulq.errors import CuratorError, QuestionError
from sulq.kernel import entropy
from sulq.kernel.mechanisms import cost_of, law_of, release
from sulq.kernel.private import Private
from sulq.language.law import AboveLaw, accurate
from sulq.language.privacy import Draw

ALARM = 1e-8
NONE = Fraction(0)


def at_least(scale: float, n: np.ndarray) -> np.ndarray:
    """P(Z >= n) of discrete Laplace noise; of none, whether 0 >= n."""
    if not scale:
        return (n <= 0).astype(float)
    a = math.exp(-1.0 / scale)
    size = np.abs(n).astype(float)
    return np.where(n > 0, np.exp(-size / scale), 1.0 + a - np.exp(-(size + 1.0) / scale)) / (1.0 + a)


def levels(threshold_scale: float, farthest: int) -> tuple[np.ndarray, np.ndarray]:
    """The threshold's noise and its probabilities; beyond lies less than e^-50 of any place's probability below."""
    if not threshold_scale:
        return np.zeros(1, dtype=np.int64), np.ones(1)
    reach = math.ceil(50 * threshold_scale) + 2 * farthest
    z = np.arange(-reach, reach + 1)
    return z, math.tanh(0.5 / threshold_scale) * np.exp(-np.abs(z) / threshold_scale)


def pmf(scale: object, threshold_scale: object, above: tuple[int, ...]) -> np.ndarray:
    """The exact probability of each place and of none, for sums less their threshold.

    Given the threshold's noise z the sums pass independently; summed over z in doubles, good to 1e-12.
    """
    z, reached = levels(float(threshold_scale), max(map(abs, above)))
    found = []
    for n in above:
        found.append((reached * at_least(float(scale), z - n)).sum())
        reached = reached * at_least(float(scale), 1 - z + n)
    return np.array([*found, reached.sum()])


def cube(scale: object, threshold_scale: object, reach: int) -> np.ndarray:
    """The same for all vectors of three sums from -reach to reach at once: shape (side, side, side, 4)."""
    z, mass = levels(float(threshold_scale), reach)
    n = np.arange(-reach, reach + 1)
    up, down = (at_least(float(scale), gap) for gap in (z[:, None] - n, 1 - z[:, None] + n))
    side = len(n)
    first = np.einsum("z,zi->i", mass, up)[:, None, None].repeat(side, 1).repeat(side, 2)
    second = np.einsum("z,zi,zj->ij", mass, down, up)[:, :, None].repeat(side, 2)
    before = mass[:, None, None] * down[:, :, None] * down[:, None, :]
    third, none = (np.tensordot(before, last, (0, 0)) for last in (up, down))
    return np.stack([first, second, third, none], axis=-1)


def worst(scale: object, threshold_scale: object, moves: list[tuple[int, ...]], reach: int = 5) -> float:
    """The largest log-ratio of any place's probability over all vectors of three sums in a box and their moves."""
    with np.errstate(divide="ignore", invalid="ignore"):
        table = np.log(cube(scale, threshold_scale, reach))
        found = 0.0
        for move in moves:
            here = tuple(slice(max(0, -m), 2 * reach + 1 - max(0, m)) for m in move)
            there = tuple(slice(max(0, m), 2 * reach + 1 - max(0, -m)) for m in move)
            found = max(found, float(np.nanmax(np.abs(table[here] - table[there]))))  # impossible on both: no news
    return found


def measured(move: tuple[int, ...]) -> tuple[int, int, int]:
    """The largest move of one sum, the span, and the whole move."""
    rise, fall = max(0, *move), max(0, *(-n for n in move))
    return max(rise, fall), rise + fall, sum(map(abs, move))


def moves_of(most: int, span: int) -> list[tuple[int, ...]]:
    """All moves of three sums, none by more than `most`, that span at most so much."""
    every = itertools.product(range(-most, most + 1), repeat=3)
    return [move for move in every if measured(move)[1] <= span]


def apart(scale: Fraction, threshold_scale: Fraction, above: tuple[int, ...], move: tuple[int, ...]) -> float:
    """The largest log-ratio over the places of one pair of neighbours."""
    first, second = (pmf(scale, threshold_scale, row) for row in (above, tuple(np.add(above, move).tolist())))
    return float(np.abs(np.log(first / second)).max())


def exactly(scale: Fraction, threshold_scale: Fraction, above: tuple[int, ...]) -> list[mpmath.mpf]:
    """As `pmf`, from the noise's own probabilities, added up one by one in thirty digits; cut off below e^-60."""
    b, c = (mpmath.mpf(s.numerator) / s.denominator for s in (scale, threshold_scale))
    reach = int(60 * max(b, c)) + 2 * max(map(abs, above))
    found = [mpmath.mpf(0)] * (len(above) + 1)
    mass = {n: mpmath.tanh(1 / (2 * b)) * mpmath.exp(-abs(n) / b) for n in range(-2 * reach, 2 * reach + 1)}
    below = dict(zip(mass, itertools.accumulate(mass.values()), strict=True))
    for z in range(-reach, reach + 1):
        reached = mpmath.tanh(1 / (2 * c)) * mpmath.exp(-abs(z) / c)
        for place, n in enumerate(above):
            found[place] += reached * (1 - below[z - n - 1])
            reached *= below[z - n - 1]
        found[-1] += reached
    return found


def test_the_probabilities_are_those_of_the_definition_T20() -> None:
    """The closed forms and the table above, against sums over the noise itself in thirty digits."""
    with mpmath.workdps(30):
        for above in ((0, 0, 0), (2, -1, 3), (-3, 3, -2)):
            found = [float(p) for p in exactly(Fraction(3, 2), Fraction(2), above)]
            assert pmf(1.5, 2, above) == pytest.approx(found, rel=1e-12)
            assert cube(1.5, 2, 3)[tuple(n + 3 for n in above)] == pytest.approx(found, rel=1e-12)
            assert sum(found) == pytest.approx(1, abs=1e-14)


PRICES = [  # most, span, the ratio of the scales
    (1, 1, Fraction(1)),
    (3, 3, Fraction(1)),
    (2, 3, Fraction(14, 16)),
    (1, 2, Fraction(13, 16)),
    (2, 4, Fraction(13, 16)),
]


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(5), Fraction(12)])
@pytest.mark.parametrize(("most", "span", "ratio"), PRICES)
def test_exact_epsilon_of_the_sparse_vector_is_within_the_debit_T20(most, span, ratio, scale) -> None:
    """T20, EX: over all vectors of three sums in a box and all moves within (R, S), no place's odds pass the debit.

    Control: a third of the noise loses more than the debit. That it is reached: the test after the next.
    """
    law = AboveLaw(scale, ratio * scale, 3)
    level, reach = law.threshold_scale, Fraction(most)
    draw = Draw("above", "add_remove", "l1", Fraction(span), scale, Fraction(1), 3, level=level, most=reach)
    debit = cost_of(draw).epsilon
    assert debit == law.epsilon(span + reach * scale / level) == most / level + span / scale
    assert cost_of(replace(draw, level=level / 2)).epsilon > debit  # what is recorded is what is priced
    assert cost_of(draw).rho == debit**2 / 2
    assert worst(scale, law.threshold_scale, moves_of(most, span)) <= float(debit) + 1e-11
    assert worst(scale / 3, law.threshold_scale / 3, moves_of(most, span)) > float(debit)


@pytest.mark.parametrize("scale", [Fraction(2), Fraction(5)])
@pytest.mark.parametrize("most", [1, 3])
def test_without_noise_on_the_threshold_all_moves_count_T20(most: int, scale: Fraction) -> None:
    """T20: a threshold as it is costs the sum of all moves, L/scale: no place more, and one of them exactly that."""
    for move in itertools.product((-most, 0, most), repeat=3):
        debit = float(AboveLaw(scale, NONE, 3).epsilon(Fraction(measured(move)[2])))
        assert worst(scale, 0, [move]) <= debit + 1e-11
    assert apart(scale, NONE, (40, 40, -40), (most, most, -most)) == pytest.approx(3 * most / float(scale), rel=1e-6)


@pytest.mark.parametrize(("most", "fall", "ratio"), [(1, 0, 1), (2, 0, 1), (1, 1, Fraction(13, 16))])
def test_the_debit_of_the_sparse_vector_is_reached_in_the_limit_T20(most: int, fall: int, ratio: Fraction) -> None:
    """T20: three high sums rise, the last and low one stays, or falls: its odds lose the whole debit, to 1e-3.

    So no smaller price holds, and not the price of sums that move one way where they move both ways.
    """
    scale = Fraction(3)
    level = ratio * scale
    debit = float(most / level + (most + fall) / scale)
    found = apart(scale, level, (40, 40, 40, -40), (most, most, most, -fall))
    assert debit * (1 - 1e-3) < found <= debit + 1e-11
    assert not fall or found > float(most / level + most / scale) + 0.3


def test_known_bad_sparse_vectors_lose_more_than_they_say_T20() -> None:
    """Controls [LSL17]: sums without noise, a threshold not scaled to the move, no noise on it, the monotone price.

    Each is said to cost 1 for sums that move by 2.
    """
    high, rise, both = (40, 40, 40, -40), (2, 2, 2, 0), (2, 2, 2, -2)
    assert apart(Fraction(4), Fraction(4), high, rise) <= 1 + 1e-11
    assert worst(0, Fraction(2), [(2, -2, 2)]) == math.inf  # without noise a place is possible on one side alone
    assert apart(Fraction(4), Fraction(1), high, rise) > 1.4  # noise on the threshold as for a move of 1
    assert apart(Fraction(4), NONE, high, rise) == pytest.approx(1.5, rel=1e-6)  # none: each sum that moves counts
    assert apart(Fraction(4), Fraction(4), high, both) > 1.4  # priced as if all moved one way


def test_the_zero_concentrated_loss_holds_T20() -> None:
    """SR3: at every order the Renyi divergence over neighbours is within order * epsilon^2/2.

    Control: a quarter of the noise passes it.
    """
    rho = float(AboveLaw(Fraction(8), Fraction(8), 3).rho(Fraction(2)))
    assert rho == 1 / 32
    rates = {}
    for scale in (8, 2):
        table = cube(scale, scale, 4)
        first, second = table[:-1].reshape(-1, 4), table[1:].reshape(-1, 4)
        pairs = [
            (first, second),
            (second, first),
            *((table[:-1, :-1, :-1].reshape(-1, 4), table[1:, 1:, 1:].reshape(-1, 4)),),
        ]
        rates[scale] = max(
            float((np.log((p**order * q ** (1 - order)).sum(axis=1)) / (order - 1) / order).max())
            for p, q in pairs
            for order in (1.5, 2.0, 4.0, 16.0)
        )
    assert rates[8] <= rho < rates[2]


CASES = [
    (0, 0, 0, 0),
    (-9, -3, 0, 5),
    (6, 6, 6, -6),
    (-40, -40, -40, -40),
    (-(2**62), 2**61, 0, 1),
]


def fits(scale: object, threshold_scale: object, above: tuple[int, ...], counts: np.ndarray) -> bool:
    """Chi-square against the exact probabilities at false alarm 1e-8; thin places by a binomial bound."""
    near = tuple(max(-500, min(500, n)) for n in above)  # so far out nothing changes
    expected = pmf(scale, threshold_scale, near) * counts.sum()
    kept = expected >= 20
    statistic = float((((counts - expected) ** 2)[kept] / expected[kept]).sum())
    rest, seen = expected[~kept].sum(), counts[~kept].sum()
    thin = binom.sf(seen - 1, int(counts.sum()), min(1.0, rest / counts.sum() + 1e-300)) > ALARM if seen else True
    return bool(chi2.sf(statistic, max(int(kept.sum()) - 1, 1)) > ALARM and thin)


@pytest.mark.parametrize("above", CASES, ids=str)
@pytest.mark.parametrize("threshold_scale", [NONE, Fraction(3, 2), Fraction(13, 8)], ids=str)
def test_the_sampler_follows_its_law_T7(threshold_scale: Fraction, above: tuple[int, ...]) -> None:
    """Many equal streams at once against the exact probabilities of their places (T7). Control: other scales fail."""
    law = AboveLaw(Fraction(2), threshold_scale, 4)
    drawn = release(law, Private(np.array([above] * 5_000, dtype=np.int64)))
    assert drawn.shape == (5_000, 1)
    counts = np.bincount(drawn[:, 0], minlength=5)
    assert fits(2, threshold_scale, above, counts)
    if above == (-9, -3, 0, 5):
        assert not fits(3, threshold_scale, above, counts)
        assert not fits(2, threshold_scale + 2, above, counts)


def test_the_threshold_is_noisy_once_T7() -> None:
    """One level for all sums of a stream: with equal sums the share of streams that none passes is the exact one.

    Control: a fresh level for each sum would let nearly every stream pass.
    """
    law, streams = AboveLaw(Fraction(1), Fraction(6), 12), 3_000
    drawn = release(law, Private(np.full((streams, 12), -4, dtype=np.int64)))[:, 0]
    shared, fresh = pmf(1, 6, (-4,) * 12)[-1], (1 - law.pmf(4)) ** 12
    none, off = int((drawn == 12).sum()), 6 * math.sqrt(streams * shared * (1 - shared))
    assert abs(none - streams * shared) < off
    assert abs(none - streams * fresh) > off


@pytest.mark.parametrize("threshold_scale", [NONE, Fraction(4), Fraction(3)], ids=str)
def test_accuracy_holds_for_every_stream(threshold_scale: Fraction) -> None:
    """Nothing is on the wrong side by more than t but for the tail, whatever the sums; for one sum exactly so.

    Control: half the reach fails for one sum.
    """
    scale = Fraction(4)
    for t in (0, 3, 11):
        one = AboveLaw(scale, threshold_scale, 1)
        early, late = pmf(scale, threshold_scale, (-t - 1,))[0], pmf(scale, threshold_scale, (t,))[1]
        assert early == pytest.approx(late, rel=1e-9) == pytest.approx(one.tail(t), rel=1e-8)
        assert t == 0 or early > AboveLaw(scale / 2, threshold_scale / 2, 1).tail(t)
        law = AboveLaw(scale, threshold_scale, 4)
        for above in itertools.product((-t - 1, 0, t), repeat=4):
            exact = pmf(scale, threshold_scale, above)
            missed = [any(n >= t for n in above[:place]) for place in range(5)]
            bad = [missed[place] or (place < 4 and above[place] < -t) for place in range(5)]
            assert exact[bad].sum() <= law.tail(t)


def test_the_row_prices_by_its_law_SR22() -> None:
    """The table's law of one sum, its probabilities, its costs; scales too small for any noise are refused."""
    draw = Draw("above", "add_remove", "l1", Fraction(2), Fraction(4), Fraction(1), 1)
    for z in (-3, 0, 1, 5):
        assert accurate(law_of(draw)).pmf(z) == pytest.approx(pmf(4, 0, (-z,))[0], rel=1e-9)
    assert cost_of(draw).epsilon == Fraction(1, 2)
    for scales in ((Fraction(1, 1025), NONE), (Fraction(1), Fraction(1, 1025))):
        with pytest.raises(QuestionError):
            AboveLaw(*scales, 2)


def test_a_failing_source_gives_one_constant_error_T31_T68(monkeypatch: pytest.MonkeyPatch) -> None:
    """No place without noise, no sums in the error, and nothing but 64-bit rows (T31, T68)."""
    law = AboveLaw(Fraction(1), Fraction(1), 2)
    for wrong in (np.zeros((2, 2)), np.zeros(3, dtype=np.int64), "no sums"):
        with pytest.raises(CuratorError) as refused:
            release(law, Private(wrong))
        assert refused.value.code == "noise-failed"
    assert release(law, Private(np.zeros((0, 2), dtype=np.int64))).shape == (0, 1)

    def dry(*_given: object) -> object:
        raise OSError("4711")

    monkeypatch.setattr(entropy, "random_bytes", dry)
    with pytest.raises(CuratorError) as refused:
        release(law, Private(np.array([[4711, 4712]])))
    assert "4711" not in str(refused.value)
    assert refused.value.__context__ is None
