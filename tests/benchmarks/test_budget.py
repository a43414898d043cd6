"""The arithmetic behind the page of what a budget admits, and that every contender is asked the same."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from benchmarks import budget_opendp
from benchmarks.budget import (
    BUDGET,
    admitted,
    answered,
    before,
    changes,
    events,
    filtered,
    hindsight,
    pure_among,
    summed,
)
from benchmarks.budget_days import COUNT, DAYS, History, Priced, history
from benchmarks.budget_page import Pair, Row, report
from sulq import Epsilon, EpsilonDelta, Rho
from sulq.kernel.ledger.filter import Filter
from sulq.kernel.mechanisms import MECHANISMS


def test_asks_are_counted_in_order() -> None:
    """To the first refusal, or past refusals until as many in a row as a day has."""
    asks = [1, 2, 9, 1, 9, 9, 1]
    assert admitted(lambda size: size < 5, asks, skip=False, idle=2) == 2
    assert admitted(lambda size: size < 5, asks, skip=True, idle=2) == 3
    assert admitted(lambda size: size < 5, asks, skip=True, idle=3) == 4


def test_pure_asks_are_counted_among_those_admitted() -> None:
    """A budget of 10 for asks of 1 and 4, the day repeated: 1, 4, 1, 4 and no more; asks of 4 are the pure ones."""
    left = [10]

    def ask(size: int) -> bool:
        fits = size <= left[0]
        left[0] -= size * fits
        return fits

    assert pure_among(ask, [1, 4], [False, True]) == 2


@pytest.mark.parametrize("day", DAYS, ids=lambda day: day.name)
def test_a_day_has_thirty_asks_of_the_same_loss_for_opendp(day) -> None:
    """No more than we charge, by OpenDP's own maps; and hardly less."""
    with day.opened() as db:
        found = events(day.priced(db.facts), db.facts)
    assert len(found) == 30
    for event in found:
        rho, keys = budget_opendp._concentrated(event.draws).map(1)
        assert rho <= float(event.rho) * (1 + 1e-9)
        assert rho > float(event.rho) * 0.98
        assert keys <= float(event.key_delta)
        assert not event.key_delta or keys > float(event.key_delta) / 2
        if event.epsilon is not None:
            assert budget_opendp._pure(event.draws).map(1) == pytest.approx(float(event.epsilon))


def test_opendp_converts_as_we_do() -> None:
    """The largest rho of its filter within (3, 1e-6) is ours, where all of delta is for that."""
    assert budget_opendp.most_rho(3.0, 0.0, 1e-6) == pytest.approx(float(BUDGET.rho), rel=1e-6)


def test_opendp_answers_until_its_filter_is_full() -> None:
    """Pure asks of a tenth: thirty fit 3 but for the rounding of its floats."""
    with DAYS[0].opened() as db:
        draws = events([Priced(COUNT, Epsilon(0.1))], db.facts)[0].draws
    found = dict(budget_opendp.ways(3.0, 1e-6, open_keys=False))
    for careful in (False, True):
        ask = found["max_divergence"](careful=careful)
        assert admitted(ask, [draws] * 40, skip=False, idle=1) in (29, 30)


@pytest.mark.parametrize("day", DAYS, ids=lambda day: day.name)
def test_before_is_priced_as_format_1_did(day) -> None:
    """No pairs, half of delta for open keys, of an ask likewise, and a pure ask at the rho of one draw."""
    with day.opened() as db:
        asks, (rule, facts) = day.priced(db.facts), before(db.facts)
    assert (rule.split.basic_delta, rule.split.key_delta) == (0, BUDGET.exact_delta / 2)
    for priced, event in zip(asks, events(asks, facts, whole=True), strict=True):
        assert event.basic is None
        if isinstance(priced.spend, Epsilon):
            assert event.rho == priced.spend.exact**2 / 2
        if isinstance(priced.spend, EpsilonDelta):
            assert event.key_delta == priced.spend.exact_delta / 2
            assert event.rho == EpsilonDelta(priced.spend.exact, priced.spend.exact_delta / 2).rho


def test_the_parts_of_delta_are_chosen_among_several() -> None:
    """With hindsight a day admits no less than by default; the filters that explain it count as the database does."""
    with DAYS[1].opened() as db:
        asks, facts = DAYS[1].priced(db.facts), db.facts
    found = answered(DAYS[1], asks, skip=False)
    best, parts = hindsight(DAYS[1], asks, open_keys=False, skip=False)
    assert best >= found == changes(asks, facts)["all three"]
    assert parts.endswith(", 0")


def test_a_history_is_counted_under_both_filters() -> None:
    """Rho asks of 1/100 of what the old filter holds: it admits 100, of rho as much as both count; ours has more."""
    with DAYS[1].opened() as db:
        rule, facts = before(db.facts)
        whole = rule.split.room / rule.split.alpha
        told = History(
            BUDGET, open_keys=True, kinds=[Priced(COUNT, Rho(whole * Fraction(100, 10050)))], order=[0] * 200
        )
        count, rho = summed(rule, facts, told)
        assert (count, rho) == (100, pytest.approx(float(whole), rel=1e-4))
        now = Filter(BUDGET, db.facts.split, MECHANISMS)
        assert 100 < admitted(filtered(now), events(told.kinds, db.facts) * 200, skip=False, idle=1) < 108


def test_random_histories_are_the_same_every_time() -> None:
    """And some mix kinds."""
    found = [[history(random.Random(seed)) for seed in range(20)] for _ in range(2)]
    assert [one.order for one in found[0]] == [one.order for one in found[1]]
    assert {one.mixed for one in found[0]} == {True, False}


def test_the_page_tells_which_bars_were_missed() -> None:
    """To the first refusal all four; where asks are skipped 98% of before alone. Histories are held to it by rho."""
    told = history(random.Random(1))
    changed = {"before": 100, "all three": 97}
    rows = [
        Row("a day", skip, 100, 97, (97, "0, 0"), 98, [(98, "theirs")], 120, True, changed) for skip in (False, True)
    ]
    text, bars = report(rows, [Pair(told, 50, 50, 1.0, 0.99), Pair(told, 10, 9, 1.0, 1.0)])
    assert list(bars.values()) == [False] * 5 + [True]
    assert "| a day | ends the run | 100 | 97 | 97 | 98 | 98 | 120 |" in text
    assert "| a day | 100 | 97 |" in text
    assert sum("**missed**" in line for line in text) == 5
    assert "- a day, to the first refusal: 97 against 98" in text, "the bars of the first version are told, too"
    assert any("missed today by 1 of 2 histories" in line for line in text)
    _, bars = report(rows, [Pair(told, 50, 50, 1.0, 0.97)])
    assert list(bars.values())[-1] is False
    better = Row("a day", False, 90, 99, (99, "0, 0"), 98, [(99, "theirs")], 120, True, changed)
    assert all(better.bars.values())
    assert len(better.bars) == 4
