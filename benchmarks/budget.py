"""What a budget admits: days of asks and random histories, before and now, under OpenDP, and what a PLD would allow.

    python -m benchmarks.budget [--histories 200] [--no-page]

Writes docs/benchmarks-budget.md; a part of `make bench`. Ends with 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import importlib.metadata
import platform
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
from dp_accounting.pld import common
from dp_accounting.pld import privacy_loss_distribution as pld

import sulq
from benchmarks import budget_opendp
from benchmarks.budget_days import BUDGET, DAYS, Day, History, Priced, history
from sulq import EpsilonDelta, Text
from sulq.compile.plan import draw
from sulq.errors import BudgetExceeded
from sulq.kernel.facts import best_order, conversion_cost
from sulq.kernel.ledger.filter import Filter, Totals
from sulq.kernel.mechanisms import MECHANISMS
from sulq.language.facts import Facts
from sulq.language.privacy import Event, Split, divided

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks-budget.md"
SEED = "what a budget admits"
MANY = 100  # asks
KEPT = 0.98  # of what the old filter admitted, on every history
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


def before(facts: Facts) -> tuple[Filter, Facts]:
    """The filter of ledgers of format 1, and the facts under which asks have no pairs; the same share for open keys."""
    split = divided(facts.budget, open_keys=facts.split.key_delta > 0, basic=Fraction(0))
    return Filter(facts.budget, split, MECHANISMS), replace(facts, split=split)


def events(asks: Iterable[Priced], facts: Facts) -> list[Event]:
    """What each ask is debited, as it is planned."""
    return [draw(ask.question, facts, ask.spend).event for ask in asks]


def answered(day: Day, asks: Sequence[Priced], *, skip: bool) -> int:
    """How many asks a database answers."""
    with day.opened() as db:

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


@dataclass(frozen=True)
class Row:
    """One day under every filter; `skip` if refused asks are skipped."""

    day: str
    skip: bool
    before: int
    now: int
    opendp: Sequence[tuple[int, str]]
    whole: int | None
    mixed: bool
    supposed: dict[str, int] = field(default_factory=dict)

    @property
    def bars(self) -> dict[str, bool]:
        """Each bar, and whether it is met."""
        found = {
            f"no fewer than OpenDP ({self.now} against {self.opendp[0][0]})": self.now >= self.opendp[0][0],
            f"98% of before ({self.now} of {self.before})": self.now >= KEPT * self.before,
        }
        if self.mixed:
            found[f"more than before ({self.now} against {self.before})"] = self.now > self.before
        mode = "skipping" if self.skip else "to the first refusal"
        return {f"{self.day}, {mode}: {what}": met for what, met in found.items()}

    def __str__(self) -> str:
        mode = "skipped" if self.skip else "ends the run"
        return f"| {self.day} | {mode} | {self.before} | {self.now} | {self.opendp[0][0]} | {self.whole or ''} |"


def measured(day: Day) -> list[Row]:
    """A day under every filter, both ways to go on."""
    with day.opened() as db:
        facts = db.facts
    asks = day.priced(facts)
    now = events(asks, facts)
    rule, old = before(facts)
    priced = events(asks, old)
    draws = [event.draws for event in now]
    mixed = len({event.epsilon is None for event in now}) > 1
    open_keys = any(event.key_delta for event in now)  # who asks for none need not keep delta for them
    rows = []

    limits = float(BUDGET.exact), float(BUDGET.exact_delta)
    for skip in (False, True):
        was = admitted(filtered(rule), repeated(priced), skip=skip, idle=len(asks))
        counted = functools.partial(admitted, asks=list(repeated(draws)), skip=skip, idle=len(draws))
        theirs = budget_opendp.best(counted, *limits, open_keys=open_keys, careful=skip)
        whole = None if skip else longest(now)
        others = supposed(now, facts)
        rows.append(Row(day.name, skip, was, answered(day, asks, skip=skip), theirs, whole, mixed, others))
        print(rows[-1], flush=True)
    return rows


@dataclass(frozen=True)
class Pair:
    """What a random history admits under both filters, to the first refusal: asks, and their rho."""

    told: History
    before: int
    now: int
    rho_before: float
    rho_now: float

    @property
    def ratio(self) -> float:
        """Asks now over asks before."""
        return self.now / self.before if self.before else 1.0

    @property
    def rho_ratio(self) -> float:
        """Likewise of rho."""
        return self.rho_now / self.rho_before if self.rho_before else 1.0


def part(ask: Priced, size: Fraction) -> Priced:
    """The same ask at a part of its price."""
    spend = ask.spend
    if isinstance(spend, EpsilonDelta):
        return Priced(ask.question, EpsilonDelta(spend.exact * size, spend.exact_delta))
    return Priced(ask.question, type(spend)(spend.exact * size))


def summed(rule: Filter, facts: Facts, told: History) -> tuple[int, float]:
    """How many asks are admitted, and their rho, with as much of the first one refused as would have fitted.

    A count jumps where a large ask stands before many small ones; a sum of rho does not.
    """
    prices = events(told.kinds, facts)
    asks = [prices[place] for place in told.order]
    count = admitted(filtered(rule), asks, skip=False, idle=1)
    rho = sum((event.rho for event in asks[:count]), start=Fraction(0))
    if count < len(asks):
        totals = sum(map(rule.cost, asks[:count]), Totals())
        low, high, fitted = Fraction(0), Fraction(1), Fraction(0)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            tried = events([part(told.kinds[told.order[count]], middle)], facts)[0]
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
    was, then = summed(rule, old, told)
    now, since = summed(Filter(told.budget, facts.split, MECHANISMS), facts, told)
    return Pair(told, was, now, then, since)


def told_of(pairs: Sequence[Pair]) -> list[str]:
    """The random histories in a paragraph."""
    worst, best = (choose(pairs, key=lambda pair: pair.ratio) for choose in (min, max))
    least = min(pairs, key=lambda pair: pair.rho_ratio)
    few = [pair for pair in pairs if pair.now < KEPT * pair.before]
    mixed = [pair for pair in pairs if pair.told.mixed]
    many = [pair for pair in few if pair.before >= MANY]
    more, fewer = (sum(sign * (pair.now - pair.before) > 0 for pair in mixed) for sign in (1, -1))
    now, was = (sum(counts) for counts in zip(*((pair.now, pair.before) for pair in pairs), strict=True))
    return [
        f"{len(pairs)} random histories (epsilon .1 to 10, delta 1e-12 to 1e-5, about half with open keys), to the",
        f"first refusal: {now:,} asks now, {was:,} before. The best admits {best.now} for {best.before}, the",
        f"worst {worst.now} for {worst.before} ({worst.ratio:.3f}); {len(few)} are below 98%,",
        f"{len(many)} of them with {MANY} asks or more.",
        f"Of the {len(mixed)} that mix pure asks with others {more} admit more than before and {fewer}",
        "fewer. A count jumps where a large ask stands before small ones. Of rho, with the part of the first refused",
        f"ask that would have fitted, the worst admits {least.rho_ratio:.4f} of before; that is no bar, as this",
        "measure was added when the counts had been seen.",
    ]


def causes(rows: Sequence[Row]) -> list[str]:
    """What separates us from OpenDP, to the first refusal: each choice of ours taken back alone, and all of them."""
    names = list(rows[0].supposed)
    found = [
        "Each choice of ours taken back alone, and all of them (to the first refusal):",
        "",
        f"| day | now | {' | '.join(names)} |",
    ]
    found.append("|---|---:|" + "---:|" * len(names))
    ends = [row for row in rows if not row.skip]
    return found + [f"| {row.day} | {row.now} | {' | '.join(map(str, row.supposed.values()))} |" for row in ends]


def supposed(now: Sequence[Event], facts: Facts) -> dict[str, int]:
    """How many asks a day would have if a choice of ours were another."""

    def counted(asked: Sequence[Event], keys: Fraction, basic: Fraction) -> int:
        whole = BUDGET.exact_delta
        delta = whole * (1 - keys) * (1 - basic)
        alpha = best_order(float(BUDGET.exact), float(delta))
        room = Fraction(float(BUDGET.exact) - conversion_cost(alpha, float(delta)))
        split = Split(Fraction(alpha), room, delta, whole * keys, whole * (1 - keys) * basic)
        rule = Filter(BUDGET, split, MECHANISMS)
        return admitted(filtered(rule), repeated(asked), skip=False, idle=1)

    split, whole = facts.split, BUDGET.exact_delta
    own = split.key_delta / whole, split.basic_delta / (split.delta + split.basic_delta)
    drawn = [event if event.epsilon is None else replace(event, rho=min(event.rho, rho_drawn(event))) for event in now]
    few = Fraction(1, 20) if any(event.key_delta for event in now) else Fraction(0)
    return {
        "rho of a pure ask summed over its draws": counted(drawn, *own),
        "5% of delta for open keys, none where none are asked": counted(now, few, own[1]),
        "no tenth for pairs": counted(now, own[0], Fraction(0)),
        "all three": counted(drawn, few, Fraction(0)),
    }


def rho_drawn(event: Event) -> Fraction:
    """The rho of pure draws one by one."""
    return sum(((each.sensitivity / each.scale) ** 2 / 2 for each in event.draws), start=Fraction(0))


def report(rows: Sequence[Row], pairs: Sequence[Pair]) -> tuple[list[str], dict[str, bool]]:
    """The page, and the bars."""
    bars = {name: met for row in rows for name, met in row.bars.items()}
    worst = min(pairs, key=lambda pair: pair.ratio)
    bars[f"{len(pairs)} random histories: 98% of before (worst {worst.now} of {worst.before})"] = all(
        pair.now >= KEPT * pair.before for pair in pairs
    )
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("opendp", "dp-accounting"))
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    text = [
        "# What a budget admits, measured",
        "",
        "`python -m benchmarks.budget`, a part of `make bench`, writes this page.",
        f"{today}, Python {platform.python_version()}, {versions}.",
        "",
        f"Asks admitted of {BUDGET}. A day has 30 asks, written down before any was counted",
        "(benchmarks/budget_days.py), and is repeated until an ask is refused; or refused asks are skipped until a",
        "whole day is. *Before*: the two branches of format 1. *Now*: a database that is asked. *OpenDP*: its adaptive",
        "filters run on the same draws, the best of all ways and settings. *PLD*: the longest prefix whose",
        "privacy-loss distribution as a whole is within the budget; it would need every ask to be fixed in advance, so",
        "it is no filter and decides nothing. OpenDP's settings (how much delta is for open keys, how epsilon is",
        "divided) are chosen for it with hindsight, day by day. Its filter closes with the first refusal: to skip",
        "an ask its user must not ask it.",
        "",
        "| day | a refused ask | before | now | OpenDP | PLD |",
        "|---|---|---:|---:|---:|---:|",
        *map(str, rows),
        "",
        "OpenDP, each kind of compositor at its best setting:",
        "",
        "| day | a refused ask | asks | compositor |",
        "|---|---|---:|---|",
    ]
    for row in rows:
        mode = "skipped" if row.skip else "ends the run"
        text += [f"| {row.day} | {mode} | {count} | {name} |" for count, name in row.opendp]
    text += ["", *causes(rows), "", *told_of(pairs), "", "| bar | |", "|---|---|"]
    text += [f"| {name} | {'met' if met else '**missed**'} |" for name, met in bars.items()]
    return text, bars


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
