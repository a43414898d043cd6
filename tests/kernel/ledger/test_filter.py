"""The privacy filter against closed forms, an exact oracle, a reference accountant and the best adversary."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import dp_accounting
import mpmath
import pytest
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import brentq

from sulq.curator.ledger.notes import widened
from sulq.curator.ledger.shares import left_of, proved, refuse_kind, remaining, spent_of
from sulq.errors import QuestionError
from sulq.kernel.facts import converts, rho_within
from sulq.kernel.ledger.filter import Filter, Totals, units, whole_units
from sulq.language.privacy import (
    BASIC_SHARE,
    GRAIN,
    Epsilon,
    EpsilonDelta,
    Event,
    Queries,
    Rho,
    Split,
    SubLinear,
    divided,
    epsilon_of,
)
from tests import counts
from tests.counts import count
from tests.curator.ledger.cases import MECHANISMS, gaussian, pure, queries

EMPTY = Totals()
KINDS = {
    "pure": pure("0.1"),
    "pure third": pure(Fraction(1, 3)),
    "gaussian": gaussian("0.005"),
    "open keys": gaussian("0.005", key_delta="1e-9"),
    "queries": queries(3),
    "tiny": pure(Fraction(1, 10**15)),
}


def admits(held: Filter, totals: Totals, event: Event) -> bool:
    """Whether an event may happen on top of totals."""
    try:
        held.check(event)
    except QuestionError:
        return False
    return held.holds(totals + held.cost(event))


def filter_for(budget: object, *, open_keys: bool = False) -> Filter:
    split = divided(budget, open_keys=open_keys) if isinstance(budget, EpsilonDelta) else None
    return Filter(budget, split, MECHANISMS)


def total(of: Filter, events: list[Event]) -> Totals:
    return sum(map(of.cost, events), EMPTY)


def histories(number: int, seed: int) -> list[list[Event]]:
    """Random sequences of asks: pure, Gaussian or both, of losses across several magnitudes."""
    draw = counts.generator(seed)
    found = []
    for _ in range(number):
        kinds = draw.choice([[pure], [gaussian], [pure, gaussian]])
        sizes = [round(10 ** draw.uniform(-4, 0), 12) for _ in range(draw.randint(1, 12))]
        found.append([draw.choice(kinds)(size) for size in sizes])
    return found


def test_the_split_of_two_and_one_in_a_million_SR3() -> None:
    """EpsilonDelta(2, 1e-6) is read at order 12.3 and has room 1.086 there (SR3)."""
    split = divided(EpsilonDelta(2.0, 1e-6), open_keys=False, basic=Fraction(0))
    assert float(split.alpha) == pytest.approx(12.3, abs=0.05)
    assert float(split.room) == pytest.approx(1.086, abs=0.0005)
    assert (split.delta, split.key_delta, split.basic_delta) == (Fraction(1, 10**6), 0, 0)


@pytest.mark.parametrize("open_keys", [False, True])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1, 3, 10])
@pytest.mark.parametrize("delta", [1e-12, 1e-9, 1e-6, 1e-5])
def test_the_share_for_basic_composition_leaves_the_blended_branch_99_percent(
    epsilon: float, delta: float, *, open_keys: bool
) -> None:
    """A part of delta is set aside for (epsilon, delta)s, and the largest rho falls by at most one percent (SR26)."""
    budget = EpsilonDelta(epsilon, delta)
    split, before = (divided(budget, open_keys=open_keys, basic=part) for part in (BASIC_SHARE, Fraction(0)))
    assert split.delta + split.key_delta + split.basic_delta == budget.exact_delta
    assert split.key_delta == before.key_delta
    assert split.room / split.alpha >= Fraction(99, 100) * before.room / before.alpha


def test_a_share_for_gaussian_asks_alone_would_not_pay() -> None:
    """A branch by the normal law's own curve: 4% more at best, of the share that 98% of the blended branch leave it."""

    def normal(epsilon: float, delta: float) -> float:
        def over(mu: float) -> float:
            tails = [stats.norm.cdf(side * mu / 2 - epsilon / mu) for side in (1, -1)]
            return tails[0] - math.exp(epsilon) * tails[1] - delta

        return brentq(over, 1e-3, 20) ** 2 / 2

    found = []
    for epsilon, delta in itertools.product((0.1, 1.0, 10.0), (1e-12, 1e-9, 1e-6, 1e-5)):
        whole = float(rho_within(epsilon, delta))
        share = brentq(lambda s, e=epsilon, d=delta, w=whole: float(rho_within(e, d * (1 - s))) / w - 0.98, 1e-6, 0.9)
        found.append(normal(epsilon, delta * (share - float(BASIC_SHARE))) / whole)
        assert normal(epsilon, delta) > 1.06 * whole  # with all of delta it would
    assert min(found) == pytest.approx(0.85, abs=0.01)
    assert max(found) == pytest.approx(1.037, abs=0.005)


def test_open_keys_take_a_tenth_of_delta_once_SR3() -> None:
    """Where a table has open keys, a tenth of delta is set aside for them and enforced apart (SR3, SR14, SR26)."""
    held = filter_for(EpsilonDelta(2, 1e-6), open_keys=True)
    assert held.split is not None
    assert held.split.key_delta == Fraction(1, 10**7) == (held.split.delta + held.split.basic_delta) / 9
    half = gaussian("1e-6", key_delta="5e-8")
    assert held.holds(total(held, [half, half]))
    assert not held.holds(total(held, [half, half, gaussian("1e-6", key_delta="1e-18")]))
    assert not admits(filter_for(EpsilonDelta(2, 1e-6)), EMPTY, half)


def test_ten_asks_of_a_tenth_fill_a_budget_of_one_T52() -> None:
    """Decimals add up exactly: the tenth tenth is answered, one unit more is not (T52, S4.8 boundary)."""
    held = filter_for(Epsilon(1))
    totals = total(held, [pure("0.1")] * 9)
    assert admits(held, totals, pure("0.1"))
    assert not admits(held, totals, pure(Fraction(1, 10) + Fraction(1, GRAIN)))
    assert remaining(held, totals) == Epsilon(0.1)
    assert spent_of(held, totals) == Epsilon(Fraction(9, 10))
    assert remaining(held, totals + held.cost(pure("0.1"))) == Epsilon.total(Fraction(0))


def test_shares_of_a_loss_fit_where_the_loss_fits_T52() -> None:
    """Three thirds of a budget are three asks that fit it, though a third is no decimal (T52)."""
    held = filter_for(Epsilon(1))
    assert held.holds(total(held, [pure(Epsilon(1).share(Fraction(1, 3)).exact)] * 3))
    assert not held.holds(total(held, [pure(Fraction(1, 3))] * 3))  # control: thirds rounded up do not


@given(st.lists(st.fractions(min_value=0, max_value=10, max_denominator=10**25), max_size=30))
def test_sums_are_never_below_the_exact_ones_T52(losses: list[Fraction]) -> None:
    """Against exact rationals the totals are never too small, and too large by less than a unit an ask (T52)."""
    held = filter_for(EpsilonDelta(2, 1e-6))
    alpha = held.split.alpha
    events = [Event(loss, loss**2 / 2, loss / 10**6, 1) for loss in losses]
    totals = total(held, events)
    exact = {
        "epsilon": sum(losses),
        "rho": sum(e.rho for e in events),
        "blended": sum(min(e.epsilon, alpha * e.rho) for e in events),
        "key_delta": sum(e.key_delta for e in events),
    }
    for name, amount in exact.items():
        assert 0 <= getattr(totals, name) - Fraction(amount) * GRAIN <= len(losses)
    assert totals.queries == totals.events == len(losses)


def test_a_float_loses_what_the_ledger_counts_T52() -> None:
    """Control: a million spends of 1e-17 vanish in a float and count in whole units (T52)."""
    held = filter_for(Epsilon(2))
    lost, counted = 1.0, EMPTY + held.cost(pure(1))
    for _ in range(1000):
        lost += 1e-17
        counted = counted + held.cost(pure(Fraction(1, 10**17)))
    assert lost == 1.0
    assert counted.epsilon == GRAIN + 1000 * 10


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("budget", [Epsilon(5), Rho(5), EpsilonDelta(5, 1e-6), SubLinear(1, 1e-6, 99)], ids=str)
def test_n_events_cost_n_times_one_S2_6(name: str, budget: object) -> None:
    """Composition: n times an event is that event composed n times, for every kind of event (S2.6, SR3)."""
    held, event = filter_for(budget), KINDS[name]
    once, often = EMPTY + held.cost(event), total(held, [event] * 17)
    for part in ("epsilon", "rho", "blended", "key_delta", "queries", "events"):
        assert getattr(often, part) == 17 * getattr(once, part)
    assert often.pure == once.pure == (event.epsilon is not None)


def test_two_randomised_responses_lose_exactly_both_S2_6() -> None:
    """By enumeration, the worst ratio over the pairs of two randomised responses is the sum of their losses (S2.6)."""
    first, second = 0.3, 0.7
    keep = [math.exp(e) / (1 + math.exp(e)) for e in (first, second)]
    worst = max(
        math.prod(k if o == 0 else 1 - k for k, o in zip(keep, outcome, strict=True))
        / math.prod(k if o == 1 else 1 - k for k, o in zip(keep, outcome, strict=True))
        for outcome in ((0, 0), (0, 1), (1, 0), (1, 1))
    )
    held = filter_for(Epsilon(1))
    assert math.log(worst) == pytest.approx(1.0)
    assert spent_of(held, total(held, [pure(first), pure(second)])) == Epsilon(1)


def test_histograms_asked_apart_cost_twice_S3_6() -> None:
    """Two histograms over disjoint regions are one charge as one question and two charges apart (S3.6, SR13)."""
    held = filter_for(Epsilon(2))
    assert spent_of(held, total(held, [pure(1)])) == Epsilon(1)
    assert spent_of(held, total(held, [pure(1), pure(1)])) == Epsilon(2)


def test_a_refusal_is_free_and_less_may_still_fit_S4_8() -> None:
    """An ask that does not fit leaves the totals alone, and a smaller one is still answered (S4.8)."""
    held = filter_for(Epsilon(1))
    totals = total(held, [pure("0.8")])
    assert not admits(held, totals, pure("0.3"))
    assert admits(held, totals, pure("0.2"))


def test_the_query_after_the_last_is_refused_S0_8() -> None:
    """Under SubLinear T scalar sums are answered, a vector counts its length, and T + 1 is refused (S0.8, S0.9)."""
    held = filter_for(SubLinear(1, 1e-6, 10))
    totals = total(held, [queries(4), queries(5)])
    assert remaining(held, totals) == Queries(1)
    assert spent_of(held, totals) == Queries(9)
    assert admits(held, totals, queries(1))
    assert not admits(held, totals, queries(2))
    assert not admits(held, totals + held.cost(queries(1)), queries(1))


@pytest.mark.parametrize(
    ("budget", "event", "code"),
    [
        (SubLinear(1, 1e-6, 9), gaussian("0.001"), "not-a-noisy-sum"),
        (Epsilon(1), replace(pure("0.1"), epsilon=Fraction(-1)), "bad-loss"),
        (Rho(1), replace(gaussian("0.1"), rho=Fraction(-1)), "bad-loss"),
        (EpsilonDelta(1, 1e-6), replace(gaussian("0.1"), key_delta=Fraction(-1)), "bad-loss"),
        (SubLinear(1, 1e-6, 9), replace(queries(1), queries=-1), "bad-loss"),
        (Epsilon(1), replace(pure("0.1"), epsilon=Fraction(0)), "bad-loss"),
        (Rho(1), replace(pure("0.1"), rho=Fraction(0)), "bad-loss"),
        (EpsilonDelta(1, 1e-6), replace(pure("0.1"), epsilon=Fraction(0)), "bad-loss"),
        (Rho(1), replace(gaussian("0.1"), rho=Fraction(1, 3**900)), "bad-loss"),
    ],
)
def test_what_a_budget_cannot_hold_is_refused_SR3(budget: object, event: Event, code: str) -> None:
    """Negative losses, free answers and numbers too long to keep are refused, whatever is left (SR3, T51)."""
    held = filter_for(budget)
    with pytest.raises(QuestionError) as refusal:
        held.check(event)
    assert refusal.value.code == code
    assert not admits(held, EMPTY, event)


@pytest.mark.parametrize(
    ("budget", "event"),
    [
        (Epsilon(1), gaussian("0.001")),
        (Epsilon(1), replace(pure("0.1"), key_delta=Fraction(1, 10**9))),
        (Rho(1), gaussian("0.001", key_delta="1e-9")),
        (EpsilonDelta(1, 1e-6), gaussian("0.001", key_delta="1e-9")),
    ],
)
def test_what_a_budget_cannot_hold_is_admitted_by_no_totals_SR3(budget: object, event: Event) -> None:
    """Impure losses, and open keys where no delta is set aside, are not within the budget, and are said so by kind."""
    held = filter_for(budget)
    assert not admits(held, EMPTY, event)
    with pytest.raises(QuestionError) as refusal:
        refuse_kind(held, event)
    assert refusal.value.code in {"spend-kind", "open-keys"}
    refuse_kind(held, pure("0.1"))  # control


def test_a_mechanism_without_a_row_is_refused_SR22() -> None:
    """An event drawn by a mechanism that is not in the table is never admitted (SR22)."""
    event = pure("0.1")
    strange = replace(event, draws=(replace(event.draws[0], mechanism="home-made"),))
    for budget in (Epsilon(1), Rho(1), EpsilonDelta(1, 1e-6)):
        assert admits(filter_for(budget), EMPTY, event)
        assert not admits(filter_for(budget), EMPTY, strange)
    with pytest.raises(QuestionError) as refusal:
        filter_for(Epsilon(1)).check(strange)
    assert refusal.value.code == "not-available"


def test_a_constant_costs_nothing() -> None:
    """An answer no person can move may cost nothing."""
    event = pure("0.1")
    still = replace(
        event, epsilon=Fraction(0), rho=Fraction(0), draws=(replace(event.draws[0], sensitivity=Fraction(0)),)
    )
    assert admits(filter_for(Epsilon(1)), EMPTY, still)


@given(
    st.lists(st.sampled_from(["0.3", "0.02", "0.001", "g0.01", "g0.0001"]), max_size=40),
    st.sampled_from([(2, 1e-6), (0.1, 1e-9), (30, 1e-5)]),
)
def test_what_remains_is_the_largest_pure_ask_that_fits(names: list[str], budget: tuple[float, float]) -> None:
    """Under EpsilonDelta `remaining` is admitted as one pure ask and one unit more is not (T52: shown is enforced)."""
    held = filter_for(EpsilonDelta(*budget))
    totals = EMPTY
    for name in names:
        event = gaussian(name[1:]) if name[0] == "g" else pure(name)
        if admits(held, totals, event):
            totals = totals + held.cost(event)
    left = remaining(held, totals).amount
    assert left == 0 or admits(held, totals, pure(left))
    assert not admits(held, totals, pure(left + Fraction(1, GRAIN)))
    assert spent_of(held, totals).amount <= held.budget.exact


def test_what_is_spent_and_left_add_up_to_the_budget_SR3() -> None:
    """Pure asks count by their epsilons until the blended branch is cheaper; one unit is read (SR3)."""
    held = filter_for(EpsilonDelta(2, 1e-6))
    few, many = total(held, [pure("0.05")] * 10), total(held, [pure("0.05")] * 60)
    assert spent_of(held, EMPTY) == Epsilon.total(Fraction(0))
    assert remaining(held, EMPTY) == Epsilon(2)
    assert spent_of(held, few) == Epsilon(0.5)
    assert held.holds(many)  # 60 * 0.05 = 3 > 2
    assert 0.9 < spent_of(held, many).amount < 2
    for totals in (few, many, total(held, [priced("0.001", "1e-8"), gaussian("0.001")])):
        assert spent_of(held, totals).amount + remaining(held, totals).amount == 2


def priced(rho: object, delta: object, **more: object) -> Event:
    """A Gaussian event that basic composition adds at a delta and the least epsilon for it."""
    event, delta = gaussian(rho, **more), Fraction(delta)
    return replace(event, basic=epsilon_of(event.rho, delta), delta=delta)


def test_pairs_are_added_within_their_own_share_of_delta_SR26() -> None:
    """Two pure asks of .25 and one with a delta priced .1 leave .4; past the share of delta the pairs do not fit."""
    held = filter_for(EpsilonDelta(1, 1e-6), open_keys=True)
    ask = priced(EpsilonDelta(0.1, 4e-8).rho, Fraction(4, 10**8), key_delta="1e-8")
    totals = total(held, [pure("0.25"), pure("0.25"), ask])
    assert float(remaining(held, totals).amount) == pytest.approx(0.4, abs=1e-6)
    assert held.holds(totals + held.cost(pure("0.39")))
    assert not held.holds(totals + held.cost(pure("0.41")))
    # Control: with no share of its own, as in ledgers of format 1, the blended branch alone is left.
    old = Filter(held.budget, divided(held.budget, open_keys=True, basic=Fraction(0)), MECHANISMS)
    assert remaining(old, total(old, [pure("0.25"), pure("0.25"), ask])).amount < Fraction(1, 10)
    often = total(held, [priced("1e-7", "9e-9")] * 5)
    assert held.basic_limit == often.delta
    assert remaining(held, often).amount == 1 - Fraction(often.epsilon, GRAIN)
    past = often + held.cost(priced("1e-7", "1e-12"))
    assert remaining(held, past).amount < Fraction(6, 10)  # what the blended branch holds


@pytest.mark.parametrize(
    "wrong",
    [
        {"basic": Fraction(1, 100)},  # less than the loss
        {"delta": Fraction(1, 10**30)},
        {"delta": Fraction(0)},
        {"basic": None},
        {"basic": Fraction(-1)},
        {"delta": Fraction(-1, 10**8)},
        {"epsilon": Fraction(1, 10)},  # a pure loss has no other pair
        {"basic": Fraction(1, 3**900)},
        {"basic": Fraction(2**1100)},
        {"delta": Fraction(1, 2**1100)},
        {"delta": Fraction(3, 2)},
        {"queries": 1},
        {"basic": 1},
    ],
    ids=str,
)
def test_a_pair_that_is_less_than_its_loss_is_refused_SR26(wrong: dict[str, object]) -> None:
    """Deceivers: an (epsilon, delta) that the event's rho is not known to have. Control: the honest one is admitted."""
    held, honest = filter_for(EpsilonDelta(1, 1e-6)), priced("0.001", "1e-8")
    held.check(honest)
    with pytest.raises(QuestionError, match="bad-loss"):
        held.check(replace(honest, **wrong))


def converted(events: list[Event], split: Split) -> float:
    """Closed form of the blended branch in high precision: sum of min(epsilon, alpha rho), plus c(alpha, delta)."""
    with mpmath.workdps(40):
        alpha, delta = mpmath.mpf(split.alpha.numerator) / split.alpha.denominator, mpmath.mpf(1) / 10**6
        blended = sum(
            (e.rho * split.alpha if e.epsilon is None else min(e.epsilon, e.rho * split.alpha)) for e in events
        )
        cost = mpmath.log1p(-1 / alpha) - (mpmath.log(delta) + mpmath.log(alpha)) / (alpha - 1)
        return float(mpmath.mpf(blended.numerator) / blended.denominator + cost)


def test_histories_cost_what_the_closed_forms_say_T53() -> None:
    """Over random histories the spend is the better closed form, never below it, hardly above it (T53)."""
    held = old_filter(EpsilonDelta(2, 1e-6))
    for events in histories(count("T53 histories, closed forms", short=3_000, long=100_000), seed=1):
        sums = [converted(events, held.split)]
        if all(e.epsilon is not None for e in events):
            sums.append(float(sum(e.epsilon for e in events)))
        assert min(sums) - 1e-12 <= charged(held, total(held, events)) <= min(sums) + 1e-9


def old_filter(budget: EpsilonDelta) -> Filter:
    """With all of delta for the blended branch, which closed forms and accountants of one order are compared with."""
    return Filter(budget, divided(budget, open_keys=False, basic=Fraction(0)), MECHANISMS)


def charged(held: Filter, totals: Totals) -> float:
    """The epsilon at which a history is enforced: the cheaper of both branches."""
    converted = held.limit - held.room + totals.blended
    added = totals.epsilon if totals.pure and totals.delta <= held.basic_limit else math.inf
    return min(converted, added) / GRAIN


def reference(events: list[Event], alpha: float, delta: float) -> float:
    """What dp-accounting says of a history at our order, from each mechanism's own Renyi curve, or its pure sum."""
    accountant = RdpAccountant([alpha])
    for event in events:
        if event.epsilon is None:
            accountant.compose(dp_accounting.GaussianDpEvent(1 / math.sqrt(2 * event.rho)))
        else:
            accountant.compose(dp_accounting.LaplaceDpEvent(1 / float(event.epsilon)))
    pure_sum = sum(math.inf if e.epsilon is None else float(e.epsilon) for e in events)
    return min(accountant.get_epsilon(delta), pure_sum)


def test_no_history_costs_less_than_a_reference_accountant_says_T53() -> None:
    """Over random histories dp-accounting, at our order, never asks for more than we charge (T53)."""
    held = old_filter(EpsilonDelta(2, 1e-6))
    alpha = float(held.split.alpha)
    halved = 0
    for events in histories(count("T53 histories, dp-accounting", short=3_000, long=10_000), seed=2):
        least = reference(events, alpha, 1e-6)
        assert charged(held, total(held, events)) >= least - 1e-12
        wrong = [replace(e, rho=e.rho / 2) for e in events]
        halved += charged(held, total(held, wrong)) < least - 1e-12
    assert halved > 100  # control: half the charge falls below the reference


def test_no_history_costs_less_than_its_privacy_loss_distribution_T53() -> None:
    """The tightest account, by convolving privacy losses, stays within ours; a test, not the filter (SR3)."""
    held = old_filter(EpsilonDelta(2, 1e-6))
    for events in histories(count("T53 histories, PLD", short=12, long=200), seed=3):
        # Optimistic discretisation: a lower bound on the true epsilon.
        accountant = PLDAccountant(value_discretization_interval=1e-3)
        for event in events:
            noise = 1 / math.sqrt(2 * event.rho) if event.epsilon is None else 1 / float(event.epsilon)
            kind = dp_accounting.GaussianDpEvent if event.epsilon is None else dp_accounting.LaplaceDpEvent
            accountant.compose(kind(noise))
        slack = 2e-3 * len(events)  # a step of the grid for each rounding up
        assert charged(held, total(held, events)) >= accountant.get_epsilon(1e-6) - slack


@pytest.mark.parametrize("delta", [0.5, 1e-2, 1e-6, 1e-12, 1e-30])
def test_the_pair_of_any_rho_is_one_that_holds_it_SR26(delta: float) -> None:
    """Over all magnitudes; where delta alone would do, the epsilon is the smallest that is counted."""
    for power in range(-15, 3):
        rho, share = Fraction(10) ** power, Fraction(repr(delta)) / 160
        epsilon = epsilon_of(rho, share)
        assert epsilon >= Fraction(1, 10**15)
        assert epsilon > 1000 or converts(rho, epsilon, share)
        assert epsilon < Fraction(1, 10**12) or not converts(rho, epsilon * Fraction(99, 100), share)


@pytest.mark.parametrize("part", [Fraction(1), Fraction(1, 50), Fraction(1, 1000)])
@pytest.mark.parametrize("budget", [EpsilonDelta(1, 1e-6), EpsilonDelta(0.001, 1e-3), EpsilonDelta(1, 0.5)], ids=str)
def test_what_is_spent_is_never_negative(budget: EpsilonDelta, part: Fraction) -> None:
    """Of parts so small that the blended sum holds one ask of more than their epsilon, nothing is spent yet."""
    held = filter_for(budget)
    assert spent_of(held, EMPTY, part) == Epsilon.total(Fraction(0))
    assert left_of(held, EMPTY, part)[0] > 0
    after = total(held, [gaussian("1e-9")])
    left, spent = left_of(held, after, part)[0], spent_of(held, after, part).amount
    assert left + spent * GRAIN == held.limit * part  # though the blended branch may hold an ask of more


def test_what_is_proved_has_the_delta_of_both_branches_once_either_is_used() -> None:
    """Pure asks alone are proved without one; spent, which is no guarantee, says less than what is proved."""
    held = filter_for(EpsilonDelta(2, 1e-6))
    assert proved(held, EMPTY) == EpsilonDelta.total(Fraction(0), Fraction(0))
    assert proved(held, total(held, [pure("0.5")])) == EpsilonDelta.total(Fraction(1, 2), Fraction(0))
    ask = priced("0.01", "1e-8")
    found = proved(held, total(held, [pure("0.5"), ask]))
    assert found.exact_delta == held.split.delta + ask.delta
    assert 0 <= found.exact - Fraction(1, 2) - ask.basic <= Fraction(2, GRAIN)
    assert 0.9 < proved(held, Totals(epsilon=GRAIN, key_delta=2 * GRAIN)).exact_delta < 1  # burns may pass every limit
    many = total(held, [pure("0.05")] * 60)
    assert proved(held, many).exact_delta == held.split.delta
    assert proved(held, many).exact > spent_of(held, many).exact


@pytest.mark.parametrize("budget", [EpsilonDelta(1, 1e-6), EpsilonDelta(1000, 1e-12), EpsilonDelta(0.001, 1e-300)])
def test_no_more_is_believed_of_a_split_than_follows_from_its_order_SR3(budget: EpsilonDelta) -> None:
    """Deceivers: a larger room, other deltas, an order that is none. Control: an honest one has all that it says."""
    honest = divided(budget, open_keys=True)
    own = Filter(budget, honest, MECHANISMS)
    limits = tuple(map(whole_units, (honest.room, honest.key_delta, honest.basic_delta)))
    assert (own.room, own.key_limit, own.basic_limit) == limits
    greedy = Filter(budget, replace(honest, room=Fraction(10**6), key_delta=Fraction(1)), MECHANISMS)
    assert 0 <= greedy.room - own.room <= 10**6  # a millionth of the margin of the conversion
    assert greedy.key_limit == whole_units(honest.key_delta + honest.basic_delta)
    assert greedy.basic_limit == 0
    assert Filter(budget, replace(honest, basic_delta=Fraction(1)), MECHANISMS).basic_limit == own.basic_limit
    assert not Filter(budget, replace(honest, delta=Fraction(1, 2)), MECHANISMS).holds(Totals())  # more than there is
    for wrong in ({"alpha": Fraction(1)}, {"alpha": Fraction(1, 2)}, {"alpha": Fraction(-2)}, {"delta": Fraction(0)}):
        with pytest.raises(ValueError, match="domain"):
            Filter(budget, replace(honest, **wrong), MECHANISMS)


def test_a_raised_budget_keeps_its_order_SR3() -> None:
    """Raising keeps alpha and the shares of delta, so sums keep their meaning; it never takes room away (SR3)."""
    split = divided(EpsilonDelta(1, 1e-6), open_keys=True)
    wide = widened(split, EpsilonDelta(2, 4e-6))
    assert wide.alpha == split.alpha
    assert wide.room > split.room + 1
    assert (wide.delta, wide.key_delta, wide.basic_delta) == (
        Fraction(342, 10**8),
        Fraction(4, 10**7),
        Fraction(18, 10**8),
    )
    assert widened(split, EpsilonDelta(1, 1e-6)) == split
    best = divided(EpsilonDelta(2, 4e-6), open_keys=True)
    assert wide.room / wide.alpha <= best.room / best.alpha


@given(st.fractions(min_value=0, max_value=1000))
def test_units_are_rounded_against_the_asker(amount: Fraction) -> None:
    """A debit is rounded up, a limit down, and by less than a unit."""
    assert 0 <= units(amount) - amount * GRAIN < 1
    assert 0 <= amount * GRAIN - whole_units(amount) < 1


def test_a_split_belongs_to_an_epsilon_delta_budget() -> None:
    """A filter is not built from a budget and a division of another kind."""
    with pytest.raises(ValueError, match="split"):
        Filter(EpsilonDelta(1, 1e-6), None, MECHANISMS)
    with pytest.raises(ValueError, match="split"):
        Filter(Epsilon(1), divided(EpsilonDelta(1, 1e-6), open_keys=False), MECHANISMS)


@pytest.mark.parametrize("losses", [(1, Fraction(1, 2)), (Fraction(1), 1), (None, True), (None, 0.5)])
def test_an_event_of_other_than_fractions_is_refused(losses: tuple[object, object]) -> None:
    """Its entry could be written and never be read again."""
    with pytest.raises(QuestionError, match="bad-loss"):
        Filter(Rho(1), None, MECHANISMS).check(Event(*losses))
