"""Histories of a ledger under concurrent use, and whether some order of one thing after another explains them.

A history is what was asked and told, with the moments between which each thing
must have happened, and the chain the ledger ended with. Every grant names its
place in the chain, so the order of what was written is known, and no search for
an order is needed (THREATS 2.7): the rest, reads and refusals and answers given
again, must each fit between two entries of it. The check takes n log n.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

UNKNOWN = frozenset({"", "ledger-failed", "closed"})  # told nothing, or that nobody knows
NOTHING = frozenset({"ledger-busy"})  # nothing was done


@dataclass(frozen=True, slots=True)
class Terms:
    """What the owner set: the budget in whole units, and each analyst's share and reserve of it."""

    budget: int
    shares: dict[str, tuple[Fraction, Fraction]]

    def of(self, analyst: str) -> tuple[Fraction, Fraction]:
        """Share and reserve; whoever has none may spend all that is left."""
        return self.shares.get(analyst, (Fraction(1), Fraction(0)))


@dataclass(frozen=True, slots=True)
class Entry:
    """One debit of the chain."""

    seq: int
    analyst: str
    cost: int
    name: str
    key: str | None = None


@dataclass(slots=True)
class Act:
    """Something asked of a ledger: a debit, a read of somebody's standing (None: of all), an answer kept."""

    what: str
    begun: int
    ended: float = math.inf
    outcome: str = ""
    analyst: str | None = ""
    cost: int = 0
    name: str = ""
    key: str | None = None
    seq: int = 0
    spent: int = 0
    left: int = 0
    answer: str = ""


class Model:
    """What a ledger of one thing after another would say after each entry of the chain."""

    def __init__(self, terms: Terms, log: list[Entry]) -> None:
        self.whole = [0, *accumulate(entry.cost for entry in log)]
        self.places = {entry.seq: place for place, entry in enumerate(log)}
        self.keys = {(entry.analyst, entry.key): place for place, entry in enumerate(log) if entry.key is not None}
        self._terms = terms
        names = {*terms.shares, *(entry.analyst for entry in log)}
        self._own: dict[str, list[int]] = {}
        for name in names:
            costs = (entry.cost if entry.analyst == name else 0 for entry in log)
            self._own[name] = [0, *accumulate(costs)]
        self._falling: dict[str, list[Fraction]] = {}
        self.seqs = [entry.seq for entry in log]

    def own(self, analyst: str) -> list[int]:
        """What an analyst has spent after so many entries."""
        return self._own.get(analyst, [0] * len(self.whole))

    def falling(self, analyst: str) -> list[Fraction]:
        """The largest cost an analyst would be granted after so many entries, negative: a list that never falls."""
        if analyst not in self._falling:
            self._falling[analyst] = [-slack for slack in self._slacks(analyst)]
        return self._falling[analyst]

    def _slacks(self, analyst: str) -> list[Fraction]:
        budget, (share, _) = self._terms.budget, self._terms.of(analyst)
        reserves = [(self.own(n), r * budget) for n, (_, r) in self._terms.shares.items() if n != analyst and r]
        own = self.own(analyst)
        return [
            min(share * budget - own[p], budget - whole - sum(max(held - spent[p], 0) for spent, held in reserves))
            for p, whole in enumerate(self.whole)
        ]


def _equal(values: list[int], value: int) -> tuple[int, int]:
    """The first and last place at which a rising list has a value; first > last where it never has."""
    return bisect_left(values, value), bisect_right(values, value) - 1


class Moments:
    """Between which entries of the chain something can have happened, by the clock alone."""

    def __init__(self, spans: list[tuple[int, float]]) -> None:
        done = sorted((ended, place) for place, (_, ended) in enumerate(spans))
        self._ended = [ended for ended, _ in done]
        self._last = list(accumulate((place for _, place in done), max))
        begun = sorted((start, place) for place, (start, _) in enumerate(spans))
        self._begun = [start for start, _ in begun]
        self._first = list(accumulate((place for _, place in reversed(begun)), min))[::-1]
        self._size = len(spans)

    def of(self, act: Act) -> tuple[int, int]:
        """After all that had ended before it began; before all that began after it ended."""
        over = bisect_left(self._ended, act.begun)
        later = bisect_right(self._begun, act.ended)
        return (
            self._last[over - 1] + 1 if over else 0,
            self._first[later] if later < len(self._first) else self._size,
        )


def disorder(acts: list[Act], log: list[Entry], terms: Terms) -> list[str]:
    """What no order explains; empty where one does."""
    found, spans = _written(acts, log)
    if found:
        return found
    model = Model(terms, log)
    found += [
        f"entry {entry.seq} passes a limit"
        for place, entry in enumerate(log)
        if -entry.cost < model.falling(entry.analyst)[place]
    ]
    earliest = math.inf  # when the first of those placed later had ended
    for place in reversed(range(len(log))):
        if spans[place][0] > earliest:
            found.append(f"entry {log[place].seq} stands before what had ended when it began")
        earliest = min(earliest, spans[place][1])
    return found + _fitted(acts, model, Moments(spans))


def _written(acts: list[Act], log: list[Entry]) -> tuple[list[str], list[tuple[int, float]]]:
    """Each entry is the one of one debit that was granted, or of one of which nobody was told; and when that was."""
    found: list[str] = []
    granted: dict[int, Act] = {}
    doubtful: dict[tuple[str | None, str], list[Act]] = {}
    for act in acts:
        if act.what != "debit":
            continue
        if act.outcome == "granted":
            if act.seq in granted:
                found.append(f"entry {act.seq} was given twice")
            granted[act.seq] = act
        elif act.outcome in UNKNOWN:
            doubtful.setdefault((act.analyst, act.name), []).append(act)
    spans: list[tuple[int, float]] = []
    keys: set[tuple[str, str]] = set()
    for entry in log:
        own = granted.pop(entry.seq, None)
        if own is not None and (own.analyst, own.cost, own.name, own.key) != (
            entry.analyst, entry.cost, entry.name, entry.key,
        ):  # fmt: skip
            found.append(f"entry {entry.seq} is not what was granted")
        if own is None:
            maybe = doubtful.get((entry.analyst, entry.name))
            if not maybe:
                found.append(f"entry {entry.seq} was asked by nobody")
                continue
            own = Act("debit", min(act.begun for act in maybe))
        if entry.key is not None:
            if (entry.analyst, entry.key) in keys:
                found.append(f"entry {entry.seq} charges a key again")
            keys.add((entry.analyst, entry.key))
        spans.append((own.begun, own.ended))
    found += [f"entry {seq} was granted and is not there" for seq in granted]
    return found, spans


def _fitted(acts: list[Act], model: Model, moments: Moments) -> list[str]:
    """Reads, refusals and answers given again: each has its place, and places never go back in time."""
    found = []
    kept = {act.seq: act for act in acts if act.what == "keep"}
    over: list[tuple[float, int]] = []
    passed = 0
    for act in sorted(acts, key=lambda act: act.begun):
        if act.what == "keep" or act.outcome in UNKNOWN | NOTHING | {"granted"}:
            continue
        low, high = moments.of(act)
        first, last, fault = _allowed(act, model, kept)
        while over and over[0][0] < act.begun:
            passed = max(passed, heapq.heappop(over)[1])
        place = max(low, first, passed)
        if fault or place > min(high, last):
            found.append(f"{act.what} {act.name or act.analyst} of {act.begun}: {fault or 'no place explains it'}")
        else:
            heapq.heappush(over, (act.ended, place))
    return found


def _allowed(act: Act, model: Model, kept: dict[int, Act]) -> tuple[int, int, str]:
    """The first and last place in the chain at which this could have been told, by what it says alone."""
    end = len(model.whole) - 1
    key = model.keys.get((act.analyst or "", act.key)) if act.key is not None else None
    if act.what == "read":
        if act.analyst is None:
            return (*_equal(model.whole, act.spent), "")
        first, last = _equal(model.own(act.analyst), act.spent)
        falling = model.falling(act.analyst)
        lows, highs = bisect_left(falling, -act.left), bisect_right(falling, -act.left) - 1
        if act.left == 0:
            highs = len(falling) - 1  # what is past the limit is told as nothing left
        return max(first, lows), min(last, highs), ""
    if act.outcome == "refused":
        full = bisect_right(model.falling(act.analyst or ""), -act.cost)  # from here on less is left
        return full, end if key is None else key, ""
    answer = kept.get(act.seq if act.outcome == "stored" else -1)
    if act.outcome == "stored":
        wrong = key is None or model.places.get(act.seq) != key or answer is None or answer.answer != act.answer
        early = answer is not None and answer.begun > act.ended
        return (0 if key is None else key + 1), end, "an answer nobody kept" if wrong or early else ""
    if act.outcome == "answer-lost":
        there = None if key is None else kept.get(model.seqs[key])
        known = there is not None and there.ended < act.begun
        return (end + 1 if key is None else key + 1), end, "a kept answer is missing" if known else ""
    return 0, end, f"an outcome of no kind: {act.outcome}"
