"""Groups found in the data: the threshold's exact chance, the map's release, intervals given that a group passed."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.stats import beta as beta_law
from scipy.stats import binom, chisquare

from sulq.answers.released import Noise, Released
from sulq.compile.plan.calibration import least_laplace_threshold, least_threshold
from sulq.errors import CuratorError, QuestionError
from sulq.kernel.laws import gaussian_holds
from sulq.kernel.mechanisms import cost_of, release, reveal
from sulq.kernel.private import Private
from sulq.language.law import GaussianLaw, LaplaceLaw, Passed, PassedGaussianLaw, PassedLaplaceLaw, PassedLaw, round_up
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
    """T20, T25, EX: m P(noise = threshold), from the cut pmf, is at most delta for m = 1, 2, 5, 10 groups.

    Controls: a threshold one lower lets more through; so does noise of the same threshold that is not cut off.
    """
    for groups in (1, 2, 5, 10):
        tau = least_threshold(scale, delta, groups)
        chance = groups * cut_off(scale, tau)[tau]
        assert chance <= mpmath.mpf(delta.numerator) / delta.denominator
        law = PassedGaussianLaw(scale, tau)
        draw = Draw("passed_gaussian", "add_remove", "l2", ONE, scale, ONE, 0, tau, groups)
        assert chance <= mpmath.mpf(float(cost_of(draw).key_delta)) * (1 + mpmath.mpf(10) ** -15)
        assert cost_of(draw).key_delta == groups * Fraction(law.alone()) <= delta
        assert (cost_of(draw).rho, cost_of(draw).epsilon) == (1 / (2 * scale**2), None)
        if tau > max(math.ceil(scale), 1):  # the smallest threshold there is, but for the rounding of tails
            assert groups * cut_off(scale, tau - 1)[tau - 1] > float(delta) * (1 - 1e-5)
        if scale > 10:
            assert groups * beyond(scale, tau) > chance * 1.5
    with pytest.raises(ValueError, match="whole"):
        cost_of(Draw("passed_gaussian", "add_remove", "l2", ONE, scale, ONE, 0))


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_ledgers_of_earlier_versions_have_noise_that_was_not_cut_off_T25(scale: Fraction) -> None:
    """T20, T25, EX: their price is still m P(noise >= threshold). Control: that of cut noise would be too little."""
    for tau in (2, math.ceil(2 * scale), math.ceil(5 * scale)):
        draw = Draw("passed", "add_remove", "l2", ONE, scale, ONE, 0, tau, 3)
        chance, found = 3 * beyond(scale, tau), mpmath.mpf(float(cost_of(draw).key_delta))
        assert chance <= found * (1 + mpmath.mpf(10) ** -15) <= chance * (1 + 3e-6) + 1e-300
        assert cost_of(draw).rho == 1 / (2 * scale**2)
        if tau >= scale > 2:
            assert float(cost_of(replace(draw, mechanism="passed_gaussian")).key_delta) < chance


@functools.cache
def cut_off(scale: Fraction, tau: int) -> dict[int, mpmath.mpf]:
    """The pmf of Gaussian noise within tau of zero, to sixty digits."""
    with mpmath.workdps(60):
        rate = mpmath.mpf(scale.denominator) ** 2 / (2 * mpmath.mpf(scale.numerator) ** 2)
        found = {z: mpmath.exp(-rate * z * z) for z in range(-tau, tau + 1)}
        mass = mpmath.fsum(found.values())
        return {z: weight / mass for z, weight in found.items()}


def on_both(people: int, scale: Fraction, tau: int) -> list[dict[int, mpmath.mpf]]:
    """The laws of people and one more, given that neither shows what only it can, as they are compared."""
    found = []
    for more in (0, 1):
        law = {people + more + z: p for z, p in cut_off(scale, tau).items()}
        both = {y: p for y, p in law.items() if people + 1 - tau <= y <= people + tau}
        mass = mpmath.fsum(both.values())
        found.append({y: p / mass for y, p in both.items()})
    return found


@pytest.mark.parametrize(("scale", "tau"), [(ONE, 1), (Fraction(5, 2), 3), (Fraction(5), 5), (Fraction(13), 60)])
@pytest.mark.parametrize("order", [1.01, 1.5, 2, 2.7, 13, 60.5, 400])
def test_cut_gaussian_noise_loses_no_more_than_whole_noise_T20(scale: Fraction, tau: int, order: float) -> None:
    """T20, EX: given what both sides can show, the Renyi divergence is at most that of noise that is not cut off.

    At orders whole and broken, both ways, and for thresholds from the scale on. Control: nine tenths of it are too
    little for a high threshold; and where the cut is not where both sides have it, no order is finite.
    """
    with mpmath.workdps(60):
        one, other = on_both(7, scale, tau)
        exact = mpmath.mpf(order) / (2 * mpmath.mpf(scale.numerator) ** 2 / scale.denominator**2)
        for p, q in ((one, other), (other, one)):
            total = mpmath.fsum(p[y] ** order * q[y] ** (1 - mpmath.mpf(order)) for y in p)
            lost = mpmath.log(total) / (order - 1)
            assert 0 < lost <= exact * (1 + mpmath.mpf(10) ** -40)
            assert tau < 4 * scale or order > 3 or lost > exact * 0.9
        assert cut_off(scale, tau)[tau] > 0
        assert set(cut_off(scale, tau)) != {z + 1 for z in cut_off(scale, tau)}


def test_the_pair_of_cut_noise_holds_exactly_SR26() -> None:
    """SR26, EX: of ten groups of a person, by the law itself, in sums of their losses; and the kernel's word for it.

    Control: the normal curve's delta without the factor for the cut, at a threshold that cuts much, is passed.
    """
    scale, groups = 4, 6
    for tau, slack in ((18, True), (5, False)):
        places = np.arange(1 - tau, tau + 1)  # noise on the smaller side that both can show
        whole = np.exp(-(np.arange(-tau, tau + 1) ** 2) / (2 * scale**2)).sum()
        masses = np.exp(-(places**2) / (2 * scale**2)) / whole
        losses, total = np.array([0.0]), np.array([1.0])
        for _ in range(groups):  # a person's groups, one after another; the losses are on one grid
            grid = np.add.outer(losses, (1 - 2 * places) / (2 * scale**2)).ravel()
            chances = np.multiply.outer(total, masses).ravel()
            losses, index = np.unique(np.round(grid * 2 * scale**2).astype(np.int64), return_inverse=True)
            total, losses = np.bincount(index, chances), losses / (2 * scale**2)
        rho = Fraction(groups, 2 * scale**2)
        draws = [Draw("passed_gaussian", "add_remove", "l2", Fraction(groups), Fraction(scale), ONE, 0, tau, groups)]
        for epsilon in (Fraction(3, 2), Fraction(5, 2)):
            over = losses > epsilon
            exact = float(np.sum(total[over] * -np.expm1(float(epsilon) - losses[over])))
            deltas = [Fraction(2) ** -power for power in range(1, 60)]
            believed = [delta for delta in deltas if gaussian_holds(rho, draws, epsilon, delta)]
            assert exact <= float(min(believed, default=ONE))
            assert bool(believed) is slack
    bare = [replace(draws[0], mechanism="gaussian", threshold=None, alone=0)]
    assert gaussian_holds(rho, bare, Fraction(5, 2), Fraction(1, 2))


@functools.cache
def truncated(scale: Fraction, tau: int) -> dict[int, mpmath.mpf]:
    """The pmf of Laplace noise within tau of zero, to sixty digits."""
    with mpmath.workdps(60):
        rate = mpmath.mpf(scale.denominator) / scale.numerator
        weights = {z: mpmath.exp(-abs(z) * rate) for z in range(-tau, tau + 1)}
        mass = mpmath.fsum(weights.values())
        return {z: weight / mass for z, weight in weights.items()}


def shown_of(people: int, scale: Fraction, tau: int, above: int) -> dict[int, mpmath.mpf]:
    """What is released of a group of so many people, 0 where it is hidden, if it is shown above a number."""
    found = {0: mpmath.mpf(0)}
    for z, chance in truncated(scale, tau).items():
        y = people + z if people and people + z > above else 0
        found[y] = found.get(y, mpmath.mpf(0)) + chance
    return found


def left_over(first: dict, second: dict, scale: Fraction, people: int = 1) -> mpmath.mpf:
    """The delta that is left of two laws at epsilon = people/scale."""
    with mpmath.workdps(60):
        factor = mpmath.exp(mpmath.mpf(people) * scale.denominator / scale.numerator) * (1 + mpmath.mpf(10) ** -50)
        return mpmath.fsum(max(p - factor * second.get(y, 0), 0) for y, p in first.items())


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(1), Fraction(13, 4), Fraction(20)], ids=str)
@pytest.mark.parametrize("delta", [Fraction(1, 100), Fraction(1, 10**6), Fraction(1, 10**12)], ids=float)
def test_truncated_noise_is_within_its_epsilon_and_delta_T20_T25(scale: Fraction, delta: Fraction) -> None:
    """T20, T25, EX: of every number of people and one more the exact laws are (1/scale, delta)-close, both ways.

    No lower threshold of the same noise will do. Controls: shown one too low, at the threshold and not above it, and
    noise that is cut off one earlier.
    """
    for groups in (1, 2, 10):
        tau = least_laplace_threshold(scale, delta, groups)
        draw = Draw("passed_laplace", "add_remove", "l1", ONE, scale, ONE, 0, tau, groups)
        cost, each = cost_of(draw), mpmath.mpf(delta.numerator) / delta.denominator / groups
        assert cost.epsilon == 1 / scale
        assert cost.key_delta == groups * Fraction(PassedLaplaceLaw(scale, tau).alone()) <= delta
        for n in (0, 1, 2, tau // 2, tau, tau + 1, 2 * tau, 2 * tau + 1, 2 * tau + 5):
            laws = [shown_of(people, scale, tau, tau) for people in (n, n + 1)]
            assert max(left_over(*laws, scale), left_over(*laws[::-1], scale)) <= each
        if tau > math.ceil(scale) and tau > 1:  # the smallest there is, but for the rounding of tails
            assert truncated(scale, tau - 1)[tau - 1] > each * (1 - mpmath.mpf(10) ** -8)
        low = [shown_of(people, scale, tau, tau - 1) for people in (0, 1)]
        assert left_over(*low[::-1], scale) > truncated(scale, tau)[tau] * (1 + mpmath.mpf(10) ** -9)
        cut = [shown_of(people, scale, max(tau - 1, 1), tau) for people in (2 * tau, 2 * tau + 1)]
        if tau > 1:
            assert left_over(*cut, scale) > truncated(scale, tau)[tau]


def test_two_groups_of_a_person_are_within_twice_the_delta_T20() -> None:
    """EX: a person's two groups at once, by the product of both laws. Control: the delta of one group is too little."""
    scale, tau = Fraction(2), 9
    for n, m in ((0, 0), (0, 3), (1, 9), (9, 12), (20, 20)):
        laws = []
        for more in (0, 1):
            one, other = (shown_of(people + more, scale, tau, tau) for people in (n, m))
            laws.append({(x, y): p * q for x, p in one.items() for y, q in other.items()})
        found = max(left_over(*laws, scale, 2), left_over(*laws[::-1], scale, 2))
        assert found <= 2 * truncated(scale, tau)[tau]
        if (n, m) == (0, 0):
            assert found > truncated(scale, tau)[tau]


def groups_of(persons: list[int], sums: list[list[int]] | None = None) -> Groups:
    keys = ([f"k{i:06d}" for i in range(len(persons))],)
    width = len(sums[0]) if sums else 1
    table = np.array(sums if sums is not None else persons, dtype=np.int64).reshape(len(persons), width)
    return Groups(keys, table, np.array(persons, dtype=np.int64))


def noises(scale: Fraction, tau: int, *widths: int) -> tuple[Noise, ...]:
    return (Noise(PassedGaussianLaw(scale, tau), ONE, 1), *(Noise(GaussianLaw(Fraction(5)), ONE, w) for w in widths))


@pytest.mark.parametrize(
    ("law", "least"),
    [(PassedGaussianLaw, least_threshold), (PassedLaplaceLaw, least_laplace_threshold)],
    ids=["gaussian", "laplace"],
)
@pytest.mark.parametrize("delta", [1e-2, 1e-3])
def test_a_key_of_one_person_shows_at_most_at_its_delta_T24(delta: float, law: type, least: Callable) -> None:
    """Among 60,000 keys of one person each the released share is not above delta (T24).

    Bar: the lower bound of the rate, at a false alarm of 1e-8, is at most delta.
    Control: a threshold lower by one scale passes the bar.
    """
    scale, n = Fraction(4), 60_000
    tau = least(scale, Fraction(delta), 1)
    rates = []
    for threshold in (tau, tau - 4):
        shown = reveal((Noise(law(scale, threshold), ONE, 1),), Private(groups_of([1] * n, [[]] * n)))
        hits = len(shown.units)
        rates.append(beta_law.ppf(1e-8, hits, n - hits + 1) if hits else 0.0)
    assert rates[0] <= delta < rates[1]


@pytest.mark.parametrize(
    ("law", "whole"),
    [(PassedLaplaceLaw(Fraction(3), 9), LaplaceLaw), (PassedGaussianLaw(Fraction(5), 9), GaussianLaw)],
    ids=["laplace", "gaussian"],
)
def test_cut_noise_ends_at_its_threshold_T7(law: PassedLaplaceLaw | PassedGaussianLaw, whole: type) -> None:
    """Of 60,000 draws none is farther out, and both ends are met. Control: whole noise of the scale goes on."""
    n = 60_000
    found = reveal((Noise(law, ONE, 1),), Private(groups_of([1000] * n, [[]] * n))).units - 1000
    assert (found.min(), found.max(), len(found)) == (-9, 9, n)
    assert np.abs(release(whole(law.scale), Private(np.zeros(n, dtype=np.int64)))).max() > 9
    counts = np.bincount(found[:, 0] + 9, minlength=19)
    chances = np.array([law.pmf(z) for z in range(-9, 10)])
    assert math.isclose(law.variance(), math.fsum(z * z * p for z, p in zip(range(-9, 10), chances, strict=True)))
    assert chisquare(counts, n * chances).pvalue > 1e-7


def test_noise_and_threshold_are_one_call_on_a_map_SR14() -> None:
    """Large groups come out, small ones leave nothing: labels ascending, people first, then the sums (SR14)."""
    people = [500, 1, 400, 2, 300]
    given = Groups(
        (["b", "c", "a", "d", "a"], [2, 1, None, 0, 7]),
        np.array([[5000, -1], [0, 0], [4000, -2], [0, 0], [3000, -3]], dtype=np.int64),
        np.array(people, dtype=np.int64),
    )
    shown = reveal(noises(Fraction(2), 30, 1, 1), Private(given))
    assert shown.labels == [["a", "a", "b"], [7, None, 2]]
    assert shown.units.shape == (3, 3)
    assert np.abs(shown.units[:, 0] - [300, 400, 500]).max() < 30
    assert np.abs(shown.units[:, 1] - [3000, 4000, 5000]).max() < 80
    assert np.abs(shown.units[:, 2] - [-3, -2, -1]).max() < 80
    empty = reveal(noises(Fraction(2), 30, 1), Private(groups_of([])))
    assert (empty.labels, empty.units.shape) == ([[]], (0, 2))
    hidden = release(PassedGaussianLaw(Fraction(2), 30), Private(np.array([1, 2, 900])))
    assert hidden.tolist()[:2] == [0, 0]
    assert hidden[2] > 800


def test_the_order_of_groups_is_that_of_their_keys_alone_T29() -> None:
    """In whatever order the engine found them, NaN and missing ones too. Control: as they came, they would differ."""
    keys = [1.0, float("nan"), -2.5, None, 0.0]
    orders = list(itertools.permutations(keys))
    found = set()
    for order in orders:
        given = Groups((list(order),), np.zeros((5, 0), dtype=np.int64), np.full(5, 900, dtype=np.int64))
        found.add(repr(reveal(noises(Fraction(2), 30), Private(given)).labels))
    assert found == {"[[-2.5, 0.0, 1.0, nan, None]]"}
    assert len({repr(sorted(order[:2], key=lambda key: key or 0.0)) for order in orders}) > 10


KINDS = (PassedLaw, PassedGaussianLaw, PassedLaplaceLaw)


@pytest.mark.parametrize("law", [kind(Fraction(3), 15) for kind in KINDS], ids=repr)
def test_a_groups_number_follows_the_law_given_that_it_passed_T7(law: Passed) -> None:
    """A group of 12 people at threshold 15: how often it shows, and the law of what is shown (T7, SR14)."""
    n = 40_000

    def least(z: int) -> mpmath.mpf:
        cut = (cut_off if isinstance(law, PassedGaussianLaw) else truncated)(law.scale, law.threshold)
        return beyond(law.scale, z) if isinstance(law, PassedLaw) else mpmath.fsum(cut[y] for y in range(z, 16))

    shown = reveal((Noise(law, ONE, 1),), Private(groups_of([12] * n, [[]] * n)))
    passing = float(least(4))
    assert min(binom.cdf(len(shown.units), n, passing), binom.sf(len(shown.units) - 1, n, passing)) > 1e-8
    for y in (16, 17, 20):
        p = float(least(y - 12) / least(4))
        hits = int((shown.units[:, 0] >= y).sum())
        assert min(binom.cdf(hits, len(shown.units), p), binom.sf(hits - 1, len(shown.units), p)) > 1e-8


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("beta", [0.5, 0.05, 1e-4])
@pytest.mark.parametrize(
    ("scale", "tau"), [(Fraction(3), 15), (Fraction(1), 6), (Fraction(20), 90), (Fraction(100), 480)]
)
def test_intervals_cover_given_that_the_group_passed_SR14(
    scale: Fraction, tau: int, beta: float, kind: type[Passed]
) -> None:
    """Exactly, from the pmf: of what is shown of n people the intervals hold n with probability 1 - beta or more.

    Control: plain intervals hold 12 people at threshold 15 never.
    """
    law = kind(round_up(scale), tau)
    plain = GaussianLaw(scale) if kind is PassedLaw else law
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
    if tau == 15 and beta == 0.5 and kind is PassedLaw:
        assert not any(abs(y - 12) <= radius for y in shown)
    wide = tau + 3 * far
    assert law.ends(wide, beta) == (wide - plain.accuracy(beta * (1 - 1e-9)), wide + plain.accuracy(beta * (1 - 1e-9)))


def test_a_release_carries_its_conditional_intervals() -> None:
    """`Released.interval`: the people's ends given that they passed, everything else by its own law."""
    noise = noises(Fraction(3), 15, 1)
    found = Released(np.array([[16, 100], [400, 100]]), noise, (("a",), ("b",)))
    low, high = found.interval(0.05)
    assert (low[0, 0], high[0, 0]) == PassedGaussianLaw(Fraction(3), 15).ends(16, 0.05)
    radius = PassedGaussianLaw(Fraction(3), 15).accuracy(0.05 * (1 - 1e-9))
    assert (low[1, 0], high[1, 0]) == (400 - radius, 400 + radius)
    assert low[0, 1] == low[1, 1] == 100 - GaussianLaw(Fraction(5)).accuracy(0.05)


@pytest.mark.parametrize(
    "given",
    [
        Groups((["a", "a"],), np.zeros((2, 1), dtype=np.int64), np.array([900, 900])),
        Groups((["a"],), np.zeros((2, 1), dtype=np.int64), np.array([900])),
        Groups((["a"],), np.zeros((1, 1), dtype=np.int64), np.array([900, 3])),
        Groups((["a"],), np.zeros((1, 1)), np.array([900])),
        Groups((["a"],), np.zeros((1, 1), dtype=np.int64), np.array([900.0])),
        Groups((["a", "a"], [None, None]), np.zeros((2, 1), dtype=np.int64), np.array([900, 900])),
        Groups((["a", "b"], [1]), np.zeros((2, 1), dtype=np.int64), np.array([900, 900])),
        Groups((["a", 1],), np.zeros((2, 1), dtype=np.int64), np.array([900, 900])),
        "no groups",
    ],
)
def test_a_map_that_does_not_fit_is_one_constant_error_T31(given: object) -> None:
    """Whatever is wrong with the exact map, the error says the same and leads nowhere (T30, T31)."""
    with pytest.raises(CuratorError) as refused:
        reveal(noises(Fraction(2), 5, 1), Private(given))
    assert refused.value.code == "noise-failed"
    assert refused.value.__context__ is None


def test_only_noise_of_one_kind_hides_groups() -> None:
    """A law without a threshold, or sums under another law, are refused."""
    for noise in (
        (Noise(GaussianLaw(ONE), ONE, 1), Noise(GaussianLaw(ONE), ONE, 1)),
        (Noise(PassedLaw(ONE, 3), ONE, 1), Noise(LaplaceLaw(ONE), ONE, 1)),
        (Noise(PassedGaussianLaw(ONE, 3), ONE, 1), Noise(LaplaceLaw(ONE), ONE, 1)),
        (Noise(PassedLaplaceLaw(ONE, 3), ONE, 1), Noise(GaussianLaw(ONE), ONE, 1)),
    ):
        with pytest.raises(CuratorError):
            reveal(noise, Private(groups_of([900])))
    with pytest.raises(QuestionError):
        PassedLaw(ONE, 0)
    with pytest.raises(QuestionError):
        PassedLaw(Fraction(1, 1025), 5)
