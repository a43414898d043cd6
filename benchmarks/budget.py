"""What a budget admits: days of asks and random histories, before and now, under OpenDP, and what a PLD would allow.

    python -m benchmarks.budget [--histories 200] [--no-page]

Writes docs/benchmarks-budget.md; a part of `make bench`. Ends with 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import functools
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TypeVar

import pyarrow as pa
from dp_accounting.pld import common
from dp_accounting.pld import privacy_loss_distribution as pld

import sulq
from benchmarks import budget_opendp
from benchmarks.budget_days import BUDGET, DAYS, Day, History, Priced, history
from benchmarks.budget_page import BASIC_PARTS, KEY_PARTS, PAGE, Pair, Row, report
from sulq import EpsilonDelta, Text
from sulq.compile.plan import draw
from sulq.errors import BudgetExceeded
from sulq.kernel.ledger.filter import Filter, Totals
from sulq.kernel.mechanisms import MECHANISMS
from sulq.language.facts import Facts
from sulq.language.privacy import BASIC_SHARE, Event, divided, key_part

SEED = "what a budget admits"
OLD_KEYS = Fraction(1, 2)  # of delta, for open keys, in ledgers of format 1
HALVINGS = 12  # of the ask that is refused first
LONGEST = 3_000  # asks of a day, repeated
A = TypeVar("A")


def admitted(ask: Callable[[A], bool], asks: Iterable[A], *, skip: bool, idle: int) -> int:
    """How many asks are admitted in order: until one is refused, or, skipping those, until `idle` in a row are."""
    count = refused = 0
    for each in asks:
        if ask(each):
            count, refused = count + 1, 0
            continue
        refused += 1
        if not skip or refused >= idle:
            break
    return count


def pure_among(ask: Callable[[A], bool], asks: Sequence[A], pure: Sequence[bool]) -> int:
    """How many of the admitted asks of a repeated day are pure, refused ones skipped."""
    found = 0

    def noted(pair: tuple[A, bool]) -> bool:
        nonlocal found
        fits = ask(pair[0])
        found += fits and pair[1]
        return fits

    admitted(noted, repeated(list(zip(asks, pure, strict=True))), skip=True, idle=len(asks))
    return found


def repeated(asks: Sequence[A]) -> Iterable[A]:
    """The same day again and again."""
    return (asks[i % len(asks)] for i in range(LONGEST))


def filtered(rule: Filter) -> Callable[[Event], bool]:
    """A filter of the package, charged with what it admits."""
    totals = Totals()
    cost = functools.cache(rule.cost)

    def ask(event: Event) -> bool:
        nonlocal totals
        after = totals + cost(event)
        if not rule.holds(after):
            return False
        totals = after
        return True

    return ask


def parted(facts: Facts, keys: Fraction, basic: Fraction) -> tuple[Filter, Facts]:
    """The filter of a ledger whose delta is divided so, and the facts that asks are priced by."""
    split = divided(facts.budget, open_keys=False, basic=basic, keys=keys)
    return Filter(facts.budget, split, MECHANISMS), replace(facts, split=split)


def before(facts: Facts) -> tuple[Filter, Facts]:
    """The filter of ledgers of format 1: no pairs, and half of delta for open keys where a table has them."""
    return parted(facts, OLD_KEYS if facts.split.key_delta else Fraction(0), Fraction(0))


def events(asks: Iterable[Priced], facts: Facts, *, whole: bool = False) -> list[Event]:
    """What each ask is debited, as it is planned; `whole`: as format 1 did, at the rho of one draw for all its epsilon.

    An ask's part for open keys is that of the budget, so under format 1 half of its delta.
    """
    found = [draw(ask.question, facts, ask.spend).event for ask in asks]
    pure = [whole and event.epsilon is not None for event in found]
    return [replace(e, rho=e.epsilon**2 / 2) if old else e for e, old in zip(found, pure, strict=True)]


def answered(day: Day, asks: Sequence[Priced], *, skip: bool, **shares: Fraction) -> int:
    """How many asks a database answers."""
    with day.opened(**shares) as db:

        def ask(priced: Priced) -> bool:
            try:
                db.ask(priced.question, spend=priced.spend)
            except BudgetExceeded:
                return False
            return True

        return admitted(ask, repeated(asks), skip=skip, idle=len(asks))


@functools.cache
def _laplace(ratio: float, times: int) -> pld.PrivacyLossDistribution:
    return pld.from_laplace_mechanism(ratio).self_compose(times)


@functools.cache
def _pure(epsilon: float, times: int) -> pld.PrivacyLossDistribution:
    parameters = common.DifferentialPrivacyParameters(epsilon, 0)
    return pld.from_privacy_parameters(parameters).self_compose(times)


def within(asked: Sequence[Event]) -> bool:
    """Whether the privacy loss distribution of all draws together, rounded up, is within the budget.

    Of the laws' continuous forms; Gaussian draws compose to one, exactly.
    """
    precise = 0.0
    pure: Counter[tuple[str, float]] = Counter()
    for event in asked:
        for each in event.draws:
            if each.norm == "l2":
                precise += float(each.sensitivity) / float(each.scale) ** 2
            else:
                pure[each.mechanism, float(f"{float(each.scale / each.sensitivity):.12g}")] += 1
    parts = [pld.from_gaussian_mechanism(precise**-0.5)] if precise else []
    for (mechanism, ratio), times in pure.items():
        parts.append(_laplace(ratio, times) if mechanism == "laplace" else _pure(1 / ratio, times))
    if not parts:
        return True
    whole = functools.reduce(lambda one, other: one.compose(other), parts)
    delta = whole.get_delta_for_epsilon(float(BUDGET.exact))
    return delta + float(sum(event.key_delta for event in asked)) <= float(BUDGET.exact_delta)


def longest(asked: Sequence[Event]) -> int:
    """The longest prefix of the repeated day that is within the budget as a whole."""
    low, high = 0, LONGEST
    every = list(repeated(asked))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if within(every[:middle]) else (low, middle - 1)
    return low


def hindsight(day: Day, asks: Sequence[Priced], *, open_keys: bool, skip: bool) -> tuple[int, str]:
    """The most that a database answers, its two parts of delta chosen for this day; and these parts."""
    tried = [(basic, keys) for basic in BASIC_PARTS for keys in (KEY_PARTS if open_keys else (Fraction(0),))]
    found = [
        (answered(day, asks, skip=skip, basic_share=basic, key_share=keys), f"{float(basic):g}, {float(keys):g}")
        for basic, keys in tried
    ]
    return max(found, key=lambda each: each[0])


def measured(day: Day) -> list[Row]:
    """A day under every filter, both ways to go on."""
    with day.opened() as db:
        facts = db.facts
    asks = day.priced(facts)
    now = events(asks, facts)
    rule, old = before(facts)
    priced = events(asks, old, whole=True)
    draws = [event.draws for event in now]
    kinds = [event.epsilon is not None for event in now]
    mixed = len(set(kinds)) > 1
    open_keys = any(event.key_delta for event in now)  # who asks for none need not keep delta for them
    rows = []

    limits = float(BUDGET.exact), float(BUDGET.exact_delta)
    for skip in (False, True):
        was = admitted(filtered(rule), repeated(priced), skip=skip, idle=len(asks))
        counted = functools.partial(admitted, asks=list(repeated(draws)), skip=skip, idle=len(draws))
        fixed = counted(budget_opendp.fixed(*limits, float(facts.split.key_delta), careful=skip))
        theirs = budget_opendp.best(counted, *limits, open_keys=open_keys, careful=skip)
        chosen = hindsight(day, asks, open_keys=open_keys, skip=skip)
        whole = None if skip else longest(now)
        found = answered(day, asks, skip=skip)
        pure = (0, 0)
        if skip:
            ours = pure_among(filtered(Filter(BUDGET, facts.split, MECHANISMS)), now, kinds)
            most = dict(budget_opendp.ways(*limits, open_keys=open_keys))[theirs[0][1]](careful=True)
            pure = ours, pure_among(most, draws, kinds)
        rows.append(Row(day.name, skip, was, found, chosen, fixed, theirs, whole, mixed, changes(asks, facts), pure))
        print(rows[-1], flush=True)
    return rows


def part(ask: Priced, size: Fraction) -> Priced:
    """The same ask at a part of its price."""
    spend = ask.spend
    if isinstance(spend, EpsilonDelta):
        return Priced(ask.question, EpsilonDelta(spend.exact * size, spend.exact_delta))
    return Priced(ask.question, type(spend)(spend.exact * size))


def summed(rule: Filter, facts: Facts, told: History, *, whole: bool = False) -> tuple[int, float]:
    """How many asks are admitted, and their rho, with as much of the first one refused as would have fitted.

    A count jumps where a large ask stands before many small ones; a sum of rho does not.
    """
    prices = events(told.kinds, facts, whole=whole)
    asks = [prices[place] for place in told.order]
    count = admitted(filtered(rule), asks, skip=False, idle=1)
    rho = sum((event.rho for event in asks[:count]), start=Fraction(0))
    if count < len(asks):
        totals = sum(map(rule.cost, asks[:count]), Totals())
        low, high, fitted = Fraction(0), Fraction(1), Fraction(0)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            tried = events([part(told.kinds[told.order[count]], middle)], facts, whole=whole)[0]
            if rule.holds(totals + rule.cost(tried)):
                low, fitted = middle, tried.rho
            else:
                high = middle
        rho += fitted
    return count, float(rho)


def compared(told: History) -> Pair:
    """A random history under the filter as it was and as it is."""
    columns = {"city": Text()} if told.open_keys else {"city": sulq.Int(0, 9)}
    cell = pa.table({"city": ["a"] if told.open_keys else [1]})
    with sulq.connect(cell, columns=columns, budget=told.budget, table="t", synthetic=True) as db:
        facts = db.facts
    rule, old = before(facts)
    was, then = summed(rule, old, told, whole=True)
    now, since = summed(Filter(told.budget, facts.split, MECHANISMS), facts, told)
    return Pair(told, was, now, then, since)


def changes(asks: Sequence[Priced], facts: Facts) -> dict[str, int]:
    """How many asks a day would have before, with each change since then alone, and with all of them."""
    keys = key_part(facts.split)
    old = OLD_KEYS if keys else Fraction(0)

    def counted(keys: Fraction, basic: Fraction, *, whole: bool) -> int:
        rule, priced = parted(facts, keys, basic)
        return admitted(filtered(rule), repeated(events(asks, priced, whole=whole)), skip=False, idle=1)

    return {
        "before": counted(old, Fraction(0), whole=True),
        "rho of a pure ask summed over its draws": counted(old, Fraction(0), whole=False),
        "a tenth of delta for open keys, not half": counted(keys, Fraction(0), whole=True),
        "a twentieth for pairs": counted(old, BASIC_SHARE, whole=True),
        "all three": counted(keys, BASIC_SHARE, whole=False),
    }


def run(histories: int = 200) -> tuple[str, int]:
    """Measure everything; gives the page and how many bars were missed."""
    rows = [row for day in DAYS for row in measured(day)]
    chance = random.Random(SEED)
    text, bars = report(rows, [compared(history(chance)) for _ in range(histories)])
    return "\n".join(text) + "\n", sum(not met for met in bars.values())


def main() -> None:
    """From the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--histories", type=int, default=200, help="how many random histories")
    parser.add_argument("--no-page", action="store_true", help="print only")
    given = parser.parse_args()
    text, missed = run(given.histories)
    print(text)
    if not given.no_page:
        PAGE.write_text(text, encoding="utf-8")
    sys.exit(missed > 0)


if __name__ == "__main__":
    main()
