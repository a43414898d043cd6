"""Groups found in the data: the threshold's exact chance, the map's release, intervals given that a group passed."""

from __future__ import annotations

import functools
import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.stats import beta as beta_law
from scipy.stats import binom

from sulq.answers.released import Noise, Released
from sulq.compile.plan.calibration import least_threshold
from sulq.errors import CuratorError, QuestionError
from sulq.kernel.mechanisms import cost_of, release, reveal
from sulq.kernel.private import Private
from sulq.language.law import GaussianLaw, LaplaceLaw, PassedLaw, round_up
from sulq.language.privacy import Draw
from sulq.language.tally import Groups

ONE = Fraction(1)


def beyond(scale: Fraction, z: int) -> mpmath.mpf:
    """P(noise >= z), the pmf summed to forty digits."""
    with mpmath.workdps(40):
        terms = weights(scale)
        return mpmath.fsum(terms[z:]) / (2 * mpmath.fsum(terms) - 1)


@functools.cache
def weights(scale: Fraction) -> list[mpmath.mpf]:
    """exp(-k^2/(2 scale^2)) for k = 0, 1, ... until e^-200."""
    with mpmath.workdps(40):
        rate = mpmath.mpf(scale.denominator) ** 2 / (2 * mpmath.mpf(scale.numerator) ** 2)
        return [mpmath.exp(-rate * k * k) for k in range(math.ceil(20 * scale) + 2)]


SCALES = [Fraction(1, 2), Fraction(1), Fraction(13, 4), Fraction(20), Fraction(80)]


@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("delta", [Fraction(1, 100), Fraction(1, 10**6), Fraction(1, 10**12)], ids=float)
def test_the_exact_chance_that_a_person_alone_shows_is_within_delta_T25(scale: Fraction, delta: Fraction) -> None:
    """T20, T25, EX: m P(1 + noise > threshold), from the pmf, is at most delta for m = 1, 2, 5, 10 groups.

    Control: one person less to pass, or a threshold cut down to a whole number, lets more through.
    """
    for groups in (1, 2, 5, 10):
        tau = least_threshold(scale, delta, groups)
        chance = groups * beyond(scale, tau)
        assert chance <= mpmath.mpf(delta.numerator) / delta.denominator
        law = PassedLaw(scale, tau)
        draw = Draw("passed", "add_remove", "l2", ONE, scale, ONE, 0, tau, groups)
        assert chance <= mpmath.mpf(float(cost_of(draw).key_delta)) * (1 + mpmath.mpf(10) ** -15)
        assert cost_of(draw).key_delta == groups * Fraction(law.alone()) <= delta
        assert cost_of(draw).rho == 1 / (2 * scale**2)
        assert cost_of(draw).epsilon is None
        if tau > 1:  # the control: the smallest threshold there is, but for the rounding of tails
            assert groups * beyond(scale, tau - 1) > float(delta) * (1 - 1e-5)
    with pytest.raises(ValueError, match="whole"):
        cost_of(Draw("passed", "add_remove", "l2", ONE, scale, ONE, 0))


def groups_of(persons: list[int], sums: list[list[int]] | None = None) -> Groups:
    keys = tuple((f"k{i:06d}",) for i in range(len(persons)))
    width = len(sums[0]) if sums else 1
    table = np.array(sums if sums is not None else persons, dtype=np.int64).reshape(len(persons), width)
    return Groups(keys, table, np.array(persons, dtype=np.int64))


def noises(scale: Fraction, tau: int, *widths: int) -> tuple[Noise, ...]:
    return (Noise(PassedLaw(scale, tau), ONE, 1), *(Noise(GaussianLaw(Fraction(5)), ONE, w) for w in widths))


@pytest.mark.parametrize("delta", [1e-2, 1e-3])
def test_a_key_of_one_person_shows_at_most_at_its_delta_T24(delta: float) -> None:
    """Among 60,000 keys of one person each the released share is not above delta (T24).

    Bar: the lower bound of the rate, at a false alarm of 1e-8, is at most delta.
    Control: a threshold lower by one scale passes the bar.
    """
    scale, n = Fraction(4), 60_000
    tau = least_threshold(scale, Fraction(delta), 1)
    rates = []
    for threshold in (tau, tau - 4):
        shown = reveal(noises(scale, threshold), Private(groups_of([1] * n, [[]] * n)))
        hits = len(shown.units)
        rates.append(beta_law.ppf(1e-8, hits, n - hits + 1) if hits else 0.0)
    assert rates[0] <= delta < rates[1]


def test_noise_and_threshold_are_one_call_on_a_map_SR14() -> None:
    """Large groups come out, small ones leave nothing: labels ascending, people first, then the sums (SR14)."""
    people = [500, 1, 400, 2, 300]
    given = Groups(
        (("b", 2), ("c", 1), ("a", None), ("d", 0), ("a", 7)),
        np.array([[5000, -1], [0, 0], [4000, -2], [0, 0], [3000, -3]], dtype=np.int64),
        np.array(people, dtype=np.int64),
    )
    shown = reveal(noises(Fraction(2), 30, 1, 1), Private(given))
    assert shown.labels == (("a", 7), ("a", None), ("b", 2))
    assert shown.units.shape == (3, 3)
    assert np.abs(shown.units[:, 0] - [300, 400, 500]).max() < 30
    assert np.abs(shown.units[:, 1] - [3000, 4000, 5000]).max() < 80
    assert np.abs(shown.units[:, 2] - [-3, -2, -1]).max() < 80
    empty = reveal(noises(Fraction(2), 30, 1), Private(groups_of([])))
    assert (empty.labels, empty.units.shape) == ((), (0, 2))
    hidden = release(PassedLaw(Fraction(2), 30), Private(np.array([1, 2, 900])))
    assert hidden.tolist()[:2] == [0, 0]
    assert hidden[2] > 800


def test_the_order_of_groups_is_that_of_their_keys_alone_T29() -> None:
    """In whatever order the engine found them, NaN and missing ones too. Control: as they came, they would differ."""
    keys = [(1.0,), (float("nan"),), (-2.5,), (None,), (0.0,)]
    orders = list(itertools.permutations(keys))
    found = set()
    for order in orders:
        given = Groups(order, np.zeros((5, 0), dtype=np.int64), np.full(5, 900, dtype=np.int64))
        found.add(repr(reveal(noises(Fraction(2), 30), Private(given)).labels))
    assert found == {"((-2.5,), (0.0,), (1.0,), (nan,), (None,))"}
    assert len({repr(sorted(order[:2], key=lambda key: key[0] or 0.0)) for order in orders}) > 10


def test_a_groups_number_follows_the_law_given_that_it_passed_T7() -> None:
    """A group of 12 people at threshold 15: how often it shows, and the law of what is shown (T7, SR14)."""
    law, n = PassedLaw(Fraction(3), 15), 40_000
    shown = reveal((Noise(law, ONE, 1),), Private(groups_of([12] * n, [[]] * n)))
    passing = float(beyond(law.scale, 4))
    assert min(binom.cdf(len(shown.units), n, passing), binom.sf(len(shown.units) - 1, n, passing)) > 1e-8
    for y in (16, 17, 20):
        p = float(beyond(law.scale, y - 12) / beyond(law.scale, 4))
        hits = int((shown.units[:, 0] >= y).sum())
        assert min(binom.cdf(hits, len(shown.units), p), binom.sf(hits - 1, len(shown.units), p)) > 1e-8


@pytest.mark.parametrize("beta", [0.5, 0.05, 1e-4])
@pytest.mark.parametrize(
    ("scale", "tau"), [(Fraction(3), 15), (Fraction(1), 6), (Fraction(20), 90), (Fraction(100), 480)]
)
def test_intervals_cover_given_that_the_group_passed_SR14(scale: Fraction, tau: int, beta: float) -> None:
    """Exactly, from the pmf: of what is shown of n people the intervals hold n with probability 1 - beta or more.

    Control: plain intervals hold 12 people at threshold 15 never.
    """
    law, plain = PassedLaw(round_up(scale), tau), GaussianLaw(scale)
    radius, far = plain.accuracy(beta), plain.accuracy(1e-13)
    shown = range(tau + 1, tau + 3 * far + 2)
    ends = {y: law.ends(y, beta) for y in shown}
    assert all(1 <= low <= high for low, high in ends.values())
    sizes = sorted({1, 2, tau // 2, tau - 3, tau, tau + 1, tau + int(scale), tau + 3 * int(scale), tau + 2 * far})
    for n in (size for size in sizes if size >= 1):
        weights = [plain.pmf(y - n) for y in shown]
        if math.fsum(weights) < 1e-280:
            continue
        held = math.fsum(w for y, w in zip(shown, weights, strict=True) if ends[y][0] <= n <= ends[y][1])
        assert held / math.fsum(weights) >= 1 - beta * (1 + 1e-6)
    if tau == 15 and beta == 0.5:
        assert not any(abs(y - 12) <= radius for y in shown)
    wide = tau + 3 * far
    assert law.ends(wide, beta) == (wide - plain.accuracy(beta * (1 - 1e-9)), wide + plain.accuracy(beta * (1 - 1e-9)))


def test_a_release_carries_its_conditional_intervals() -> None:
    """`Released.interval`: the people's ends given that they passed, everything else by its own law."""
    noise = noises(Fraction(3), 15, 1)
    found = Released(np.array([[16, 100], [400, 100]]), noise, (("a",), ("b",)))
    low, high = found.interval(0.05)
    assert (low[0, 0], high[0, 0]) == PassedLaw(Fraction(3), 15).ends(16, 0.05)
    radius = GaussianLaw(Fraction(3)).accuracy(0.05 * (1 - 1e-9))
    assert (low[1, 0], high[1, 0]) == (400 - radius, 400 + radius)
    assert low[0, 1] == low[1, 1] == 100 - GaussianLaw(Fraction(5)).accuracy(0.05)


@pytest.mark.parametrize(
    "given",
    [
        Groups((("a",), ("a",)), np.zeros((2, 1), dtype=np.int64), np.array([900, 900])),
        Groups((("a",),), np.zeros((2, 1), dtype=np.int64), np.array([900])),
        Groups((("a",),), np.zeros((1, 1), dtype=np.int64), np.array([900, 3])),
        Groups((("a",),), np.zeros((1, 1)), np.array([900])),
        Groups((("a",),), np.zeros((1, 1), dtype=np.int64), np.array([900.0])),
        Groups((("a",), (1,)), np.zeros((2, 1), dtype=np.int64), np.array([900, 900])),
        "no groups",
    ],
)
def test_a_map_that_does_not_fit_is_one_constant_error_T31(given: object) -> None:
    """Whatever is wrong with the exact map, the error says the same and leads nowhere (T30, T31)."""
    with pytest.raises(CuratorError) as refused:
        reveal(noises(Fraction(2), 5, 1), Private(given))
    assert refused.value.code == "noise-failed"
    assert refused.value.__context__ is None


def test_only_gaussian_noise_hides_groups() -> None:
    """A law without a threshold, or sums under another law, are refused."""
    for noise in (
        (Noise(GaussianLaw(ONE), ONE, 1), Noise(GaussianLaw(ONE), ONE, 1)),
        (Noise(PassedLaw(ONE, 3), ONE, 1), Noise(LaplaceLaw(ONE), ONE, 1)),
    ):
        with pytest.raises(CuratorError):
            reveal(noise, Private(groups_of([900])))
    with pytest.raises(QuestionError):
        PassedLaw(ONE, 0)
    with pytest.raises(QuestionError):
        PassedLaw(Fraction(1, 1025), 5)
