"""The filter against the best adaptive analyst of small games, by dynamic programming over all strategies."""

from __future__ import annotations

import functools
import math
import random
from dataclasses import replace
from fractions import Fraction

import pytest

from sulq.kernel.facts import Draw
from sulq.kernel.ledger.filter import Filter, whole_units
from sulq.language.privacy import GRAIN, EpsilonDelta, Event, divided, normal_epsilon
from tests import counts
from tests.counts import count
from tests.curator.ledger.cases import MECHANISMS, gaussian, pure
from tests.kernel.ledger.test_filter import EMPTY, admits, filter_for


def worst_delta(
    held: Filter, kinds: list[tuple[Event, list[tuple[float, float]]]], depth: int, level: float, *, check: bool = True
) -> float:
    """The most any adaptive analyst gains: max over strategies of P(S) - e^level Q(S), by dynamic programming.

    A state is how often each kind was asked and came out how; the totals and the
    privacy loss so far follow from it. The analyst may stop at any point, ask any
    kind that the filter admits, and choose S with hindsight.
    """

    @functools.cache
    def value(counts: tuple[tuple[int, ...], ...]) -> float:
        totals, loss = EMPTY, 0.0
        for (event, laws), seen in zip(kinds, counts, strict=True):
            for times, (p, q) in zip(seen, laws, strict=True):
                loss += times * math.log(p / q)
                for _ in range(times):
                    totals = totals + held.cost(event)
        best = max(0.0, 1.0 - math.exp(min(level - loss, 700)))
        if sum(map(sum, counts)) == depth:
            return best
        for i, (event, laws) in enumerate(kinds):
            if admits(held, totals, event) if check else held.holds(totals + held.cost(event)):
                gain = 0.0
                for o, (p, _) in enumerate(laws):
                    seen = (*counts[i][:o], counts[i][o] + 1, *counts[i][o + 1 :])
                    gain += p * value((*counts[:i], seen, *counts[i + 1 :]))
                best = max(best, gain)
        return best

    return value(tuple((0,) * len(laws) for _, laws in kinds))


def coin(epsilon: float) -> tuple[Event, list[tuple[float, float]]]:
    """Randomised response of one bit."""
    p = math.exp(epsilon) / (1 + math.exp(epsilon))
    return pure(epsilon), [(p, 1 - p), (1 - p, p)]


def tail(rho: float, cut: float = 1.5) -> tuple[Event, list[tuple[float, float]]]:
    """A Gaussian seen through a threshold in its tail: post-processing of a rho-concentrated answer."""
    shift = math.sqrt(2 * rho)
    upper = [math.erfc((cut - s) / math.sqrt(2)) / 2 for s in (shift, 0.0)]
    return gaussian(rho), [(upper[0], upper[1]), (1 - upper[0], 1 - upper[1])]


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.05), (0.6, 0.04), (1.5, 0.02)])
def test_the_best_adaptive_analyst_stays_within_the_budget_SR3(epsilon: float, delta: float) -> None:
    """Against every adaptive strategy, of pure and Gaussian asks, the filter keeps (E, D): "or" is free (SR3, T53)."""
    held = filter_for(EpsilonDelta(epsilon, delta))
    kinds = [coin(epsilon / 3), coin(epsilon / 8), tail(epsilon**2 / 40)]
    assert worst_delta(held, kinds, depth=10, level=epsilon) <= delta
    # Control: without paying for the conversion the same analyst gets more than delta.
    loose = Filter(EpsilonDelta(60, delta), held.split, MECHANISMS)
    loose.room = whole_units(Fraction(60))
    assert worst_delta(loose, kinds, depth=10, level=epsilon) > delta


@pytest.mark.parametrize("part", [Fraction(0), Fraction(1, 2), Fraction(9, 10)])
@pytest.mark.parametrize("keys", [Fraction(0), Fraction(9, 10)])
def test_no_part_that_an_owner_sets_gives_an_adaptive_analyst_more_SR26(part: Fraction, keys: Fraction) -> None:
    """(E, D) holds however delta is divided. Control: with a limit of twice delta for pairs it does not."""
    epsilon, delta = 1.0, 0.05
    budget = EpsilonDelta(epsilon, delta)
    held = Filter(budget, divided(budget, open_keys=False, basic=part, keys=keys), MECHANISMS)
    assert held.key_limit == whole_units(budget.exact_delta * keys)
    kinds = [coin(epsilon / 3), tail(epsilon**2 / 40), leak(epsilon / 12, delta / 6)]
    assert worst_delta(held, kinds, depth=8, level=epsilon, check=False) <= delta
    loose = Filter(budget, divided(budget, open_keys=False, basic=part), MECHANISMS)
    loose.basic_limit = 2 * whole_units(budget.exact_delta)
    assert worst_delta(loose, [kinds[2]], depth=12, level=epsilon, check=False) > delta


Kind = tuple[Event, list[tuple[float, float]]]
NEVER = 1e-300  # stands for an outcome that cannot be


def leak(epsilon: float, delta: float) -> Kind:
    """An answer that tells everything with probability delta, and is a randomised response otherwise.

    It is (epsilon, delta)-private and no more. No rho holds for it; so large a one that no blended sum holds it.
    """
    p = math.exp(epsilon) / (1 + math.exp(epsilon))
    laws = [
        (delta, NEVER),
        (NEVER, delta),
        ((1 - delta) * p, (1 - delta) * (1 - p)),
        ((1 - delta) * (1 - p), (1 - delta) * p),
    ]
    event = replace(gaussian(10**6), basic=Fraction(repr(epsilon)), delta=Fraction(repr(delta)))
    return event, laws


FINE = (Draw("gaussian", "add_remove", "l2", Fraction(1), Fraction(10**9), Fraction(1), 1),)  # as good as normal


def shown(kind: Kind, chance: float) -> Kind:
    """The same ask with open keys: with this probability it tells everything instead."""
    event, ((p, q), (rest_p, rest_q)) = kind
    least = (1 - chance) * rest_p, (1 - chance) * rest_q + chance  # where the neighbour tells everything
    return replace(event, key_delta=Fraction(repr(chance))), [
        (chance, NEVER),
        ((1 - chance) * p, (1 - chance) * q),
        least,
    ]


def game(draw: random.Random, *, keys: bool) -> tuple[EpsilonDelta, list[Kind]]:
    """A small budget and three kinds of asks: a pure one or one with open keys, a Gaussian tail, and a leak.

    The tail has the least pair that the kernel believes of normal noise.
    """
    epsilon, delta = round(draw.uniform(0.3, 2), 6), round(10 ** draw.uniform(-2, -0.7), 6)
    event, laws = tail(round(epsilon**2 / draw.uniform(5, 80), 9), cut=draw.uniform(0.5, 2.5))
    share = Fraction(repr(round(delta * draw.choice((0.004, 0.02, 0.05)), 9)))
    pair = replace(event, basic=normal_epsilon(event.rho, FINE, share), delta=share), laws
    told = leak(round(epsilon / draw.uniform(4, 30), 6), round(delta * draw.uniform(0.02, 0.1), 9))
    first = coin(round(epsilon / draw.uniform(1.5, 9), 6))
    if keys:
        first = shown(pair, round(delta * draw.uniform(0.01, 0.08), 9))
    return EpsilonDelta(epsilon, delta), [first, pair, told]


@pytest.mark.parametrize("keys", [False, True])
def test_no_game_of_adaptive_analysts_passes_both_branches_SR26(*, keys: bool) -> None:
    """On random small games every strategy stays within (E, D), with open keys and without (SR3, SR14).

    Control: without a limit on the deltas of pairs, or of keys, some do not.
    """
    draw, past = counts.generator(11 + keys), 0
    games = count(f"T53 games of adaptive analysts, {'with' if keys else 'without'} open keys", short=6, long=500)
    for _ in range(games):
        budget, kinds = game(draw, keys=keys)
        epsilon, delta = float(budget.exact), float(budget.exact_delta)
        held = filter_for(budget, open_keys=keys)
        assert worst_delta(held, kinds, depth=8, level=epsilon, check=False) <= delta
        if not past:
            loose = filter_for(budget, open_keys=keys)
            loose.basic_limit, loose.key_limit = GRAIN, GRAIN if keys else 0
            again = shown(kinds[1], delta / 6) if keys else leak(epsilon / 12, delta / 6)
            past += worst_delta(loose, [again], depth=12, level=epsilon, check=False) > delta
    assert past
