"""The arithmetic behind the page of what a budget admits, and that every contender is asked the same."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from benchmarks import budget_opendp
from benchmarks.budget import BUDGET, Pair, Row, admitted, before, events, filtered, report, summed
from benchmarks.budget_days import COUNT, DAYS, History, Priced, history
from sulq import Epsilon, Rho
from sulq.kernel.ledger.filter import Filter
from sulq.kernel.mechanisms import MECHANISMS


def test_asks_are_counted_in_order() -> None:
    """To the first refusal, or past refusals until as many in a row as a day has."""
    asks = [1, 2, 9, 1, 9, 9, 1]
    assert admitted(lambda size: size < 5, asks, skip=False, idle=2) == 2
    assert admitted(lambda size: size < 5, asks, skip=True, idle=2) == 3
    assert admitted(lambda size: size < 5, asks, skip=True, idle=3) == 4


@pytest.mark.parametrize("day", DAYS, ids=lambda day: day.name)
def test_a_day_has_thirty_asks_of_the_same_loss_for_opendp(day) -> None:
    """No more than we charge, by OpenDP's own maps; and not half of it, but where an ask has several pure draws."""
    with day.opened() as db:
        found = events(day.priced(db.facts), db.facts)
    assert len(found) == 30
    for event in found:
        rho, keys = budget_opendp._concentrated(event.draws).map(1)
        assert rho <= float(event.rho) * (1 + 1e-9)
        assert rho > float(event.rho) / 2 or len(event.draws) > 1
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


def test_a_history_is_counted_under_both_filters() -> None:
    """Rho asks of 1/100 of what the old filter holds: it admits 100, of rho as much as both count."""
    with DAYS[1].opened() as db:
        rule, facts = before(db.facts)
        whole = rule.split.room / rule.split.alpha
        told = History(
            BUDGET, open_keys=True, kinds=[Priced(COUNT, Rho(whole * Fraction(100, 10050)))], order=[0] * 200
        )
        count, rho = summed(rule, facts, told)
        assert (count, rho) == (100, pytest.approx(float(whole), rel=1e-4))
        now = Filter(BUDGET, db.facts.split, MECHANISMS)
        assert 98 <= admitted(filtered(now), events(told.kinds, db.facts) * 200, skip=False, idle=1) <= 100


def test_random_histories_are_the_same_every_time() -> None:
    """And some mix kinds."""
    found = [[history(random.Random(seed)) for seed in range(20)] for _ in range(2)]
    assert [one.order for one in found[0]] == [one.order for one in found[1]]
    assert {one.mixed for one in found[0]} == {True, False}


def test_the_page_tells_which_bars_were_missed() -> None:
    """Fewer than OpenDP, less than 98%, and not more than before on a mixed day."""
    told = history(random.Random(1))
    text, bars = report([Row("a day", False, 100, 97, [(98, "theirs")], 120, True)], [Pair(told, 50, 50, 1.0, 1.0)])
    assert list(bars.values()) == [False, False, False, True]
    assert "| a day | ends the run | 100 | 97 | 98 | 120 |" in text
    assert sum("**missed**" in line for line in text) == 3
