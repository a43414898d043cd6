"""Undeclared keys: how many groups an (epsilon, delta) shows, and how near their counts are, beside the peers.

50,000 people with 1, 10 or 100 different labels each, drawn from 200,000 by Zipf's law. Every contender shows each
label that enough people have, for (1, 1e-5) in all and at most so many labels a person.
"""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist, mean, stdev
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import sulq
from benchmarks.epsilon.bars import Bar, Section
from benchmarks.versus.contenders.opendp_keys import least
from benchmarks.versus.environments import Missing, python
from sulq.kernel.laws import gaussian_holds
from sulq.language.privacy import Draw

PEOPLE: Final = 50_000
LABELS: Final = 200_000
EPSILON: Final = 1.0
DELTA: Final = 1e-5
SEED: Final = 23  # of the table; noise has none
RUNS: Final = {1: 20, 10: 5, 100: 2}
# What the code before this part showed of the same tables at the usual shares of delta: COUNT(*), COUNT(DISTINCT pid).
BEFORE: Final = {1: (145, 202), 10: (443, 628), 100: (1_543, 2_180)}
# The parts of delta that the owner of each table would set: for keys, and of the rest for pairs that are added up.
SHARES: Final = {1: (0.9, None), 10: (0.5, 0.9), 100: (0.5, 0.9)}
TIMES: Final = {10: 1.5, 100: 2.0}

HOW: Final = (
    "The budget is (1, 1e-5), all of it spent in one ask. Laplace noise needs no delta: the owner of the first table "
    "sets key_share=0.9; of the others key_share=0.5 and basic_share=0.9, half and half as PipelineDP divides its own. "
    "The usual shares, a tenth of delta for keys, are those of the figures before, and of what is beside them. "
    "OpenDP and PipelineDP have the same (1, 1e-5); OpenDP's Gaussian noise and threshold have half of delta each. "
    "PipelineDP's selections are its own, on the exact numbers of people; beside a count they have half of epsilon. "
    "PipelineDP's noise goes on past its threshold: 61.1 with 10 labels for our 60, 207.9 with 100 for our 195, "
    "although whole numbers, a tenth of delta that the ledger keeps for its other branch and the proof's margin for "
    "discrete noise raise ours. With one label a person whole noise of scale 1 has the threshold 11, which takes "
    "7.7e-6 of delta, and 10 would take 2.1e-5: what is left of 1e-5 buys nothing, while a selection that tells no "
    "numbers uses all of it. That is the whole difference to PipelineDP with groups alone."
)
OFF_BY_ONE: Final = (
    "OpenDP 0.16 charges for a threshold one higher than it applies: at scale 1 and threshold 5 its map says .0049 for "
    "one person, and of 200,000 such groups 0.0133 are shown. Its figures are as it computes them; with one label a "
    "person it spends 1.2e-5 of delta where it reports 4.5e-6."
)

Counts = npt.NDArray[np.int64]
NORMAL: Final = NormalDist()


@dataclass(frozen=True)
class Labels:
    """Each person's labels, a row for each person, and how many people each label has."""

    of: Counts
    counts: Counts

    @classmethod
    def drawn(cls, each: int) -> Labels:
        """So many different labels for each person."""
        random = np.random.default_rng(SEED)
        chances = 1.0 / np.arange(1, LABELS + 1)
        edges = np.cumsum(chances / chances.sum())
        found = np.empty((PEOPLE, each), dtype=np.int64)
        for person in range(PEOPLE):
            mine: list[int] = []
            while len(mine) < each:
                tried = np.minimum(np.searchsorted(edges, random.random(2 * each)), LABELS - 1)
                mine = list(dict.fromkeys([*mine, *tried.tolist()]))[:each]
            found[person] = mine
        return cls(found, np.bincount(found.ravel(), minlength=LABELS))

    def table(self) -> pa.Table:
        """The rows."""
        names = pa.array([f"label {i:06d}" for i in range(LABELS)])
        people = np.repeat(np.arange(PEOPLE), self.of.shape[1])
        return pa.table({"pid": people, "label": names.take(pa.array(self.of.ravel()))})


@dataclass(frozen=True)
class Shown:
    """How many groups were shown, the standard error of that, and how far off their counts were (nan: none given)."""

    groups: float
    error: float
    deviation: float = 0.0

    @classmethod
    def of(cls, runs: Sequence[Shown]) -> Shown:
        """Of several runs their means; of one, whose spread is not known, as much as a number of rare events has."""
        groups = [one.groups for one in runs]
        spread = stdev(groups) / math.sqrt(len(runs)) if len(runs) > 1 else math.sqrt(groups[0]) / 4
        return cls(mean(groups), mean(one.error for one in runs), spread)

    def no_fewer(self, *others: Shown) -> bool | None:
        """Whether it shows as many groups as each, within 3 standard errors; None where one was not run."""
        found = [self.groups >= other.groups - 3 * math.hypot(self.deviation, other.deviation) for other in others]
        return None if any(math.isnan(other.groups) for other in others) else all(found)

    def __str__(self) -> str:
        return "not run" if math.isnan(self.groups) else f"{self.groups:,.0f}"


def ours(labels: Labels, value: str, key_share: float | None, basic_share: float | None, runs: int) -> Shown:
    """The whole budget in one ask."""
    each, found = labels.of.shape[1], []
    data = labels.table()
    for _ in range(runs):
        with sulq.connect(
            data,
            columns={"label": sulq.Text(longest=16)},
            unit=sulq.Unit("pid", rows=each),
            budget=sulq.EpsilonDelta(EPSILON, DELTA),
            key_share=key_share,
            basic_share=basic_share,
            synthetic=True,
        ) as db:
            text = f"SELECT label, {value} AS n FROM {db.facts.table} GROUP BY label"
            answer = db.sql(text, spend=sulq.EpsilonDelta(EPSILON, DELTA)).to_dict()
        places = [int(str(name)[6:]) for name in answer["label"]]
        found.append(_shown(np.array(answer["n"], dtype=np.float64), labels.counts[places]))
    return Shown.of(found)


def _shown(noisy: npt.NDArray[np.float64], exact: Counts) -> Shown:
    return Shown(len(noisy), float(np.sqrt(np.mean((noisy - exact) ** 2))))


# -- OpenDP


def opendp(labels: Labels, runs: int) -> Shown:
    """The better of its two thresholds, at the least noise and threshold that its own privacy maps allow."""
    best = least(labels.of.shape[1], EPSILON, DELTA)
    exact = {f"{i}": int(n) for i, n in enumerate(labels.counts) if n}
    found = []
    for _ in range(runs):
        answer = best(exact)
        noisy = np.array(list(answer.values()), dtype=np.float64)
        found.append(_shown(noisy, labels.counts[[int(key) for key in answer]]))
    return Shown.of(found)


# -- PipelineDP


def pipelinedp(labels: Labels, parts: int, runs: int) -> Shown:
    """The best of its selections: for the keys alone, or with a count for the other half of epsilon."""
    given = {"counts": labels.counts[labels.counts > 0].tolist(), "each": labels.of.shape[1], "runs": max(runs, 2)}
    given |= {"epsilon": EPSILON / parts, "delta": DELTA}
    script = Path(__file__).with_name("keys_pipelinedp.py")
    words = [str(python("pipelinedp")), str(script)]
    made = subprocess.run(words, input=json.dumps(given), check=True, capture_output=True, text=True)
    kept: dict[str, list[int]] = json.loads(made.stdout)
    error = math.nan if parts == 1 else math.sqrt(2.0) * labels.of.shape[1] * parts / EPSILON  # of Laplace noise
    return Shown.of([Shown(groups, error) for groups in max(kept.values(), key=mean)])


# -- What is not in the product


def simulated(labels: Labels) -> str:
    """What weights would show that the kernel does not certify, with each person's weights a vector of length 1.

    Simulations on the exact rows: half of delta for noise by the normal law's own curve, half for the threshold.
    """
    each = labels.of.shape[1]
    one = Fraction(1)
    draw = Draw("gaussian", "add_remove", "l2", one, one * 10**6, one, 0)
    low, high = 1.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        holds = gaussian_holds(one / (2 * Fraction(middle) ** 2), [draw], Fraction(EPSILON), Fraction(DELTA / 2))
        low, high = (low, middle) if holds else (middle, high)
    threshold = max(1 / math.sqrt(t) + high * -NORMAL.inv_cdf(DELTA / 2 / t) for t in range(1, each + 1))
    noise = np.random.default_rng(SEED).normal(0.0, high, LABELS)

    def shown(weights: npt.NDArray[np.float64]) -> str:
        return f"{((weights > 0) & (weights + noise > threshold)).sum():,}"

    return (
        "Simulated, as the kernel certifies no such weights: 1/sqrt(degree) would show "
        f"{shown(labels.counts / math.sqrt(each))}, policy Gaussian, which gives a person's weight to labels that are "
        f"not shown yet, {shown(policy(labels, threshold + 5 * high))}, MaxAdaptiveDegree, which moves what labels "
        f"have too much of to others of the same people, {shown(adaptive(labels, threshold + 2 * high))}."
    )


def policy(labels: Labels, cutoff: float) -> npt.NDArray[np.float64]:
    """The weights of policy Gaussian (Gopi and others, 2020): people in turn."""
    weights = np.zeros(LABELS)
    for mine in labels.of:
        gaps = np.maximum(cutoff - weights[mine], 0.0)
        weights[mine] += gaps / max(1.0, float(np.linalg.norm(gaps)))
    return weights


def adaptive(labels: Labels, cutoff: float) -> npt.NDArray[np.float64]:
    """The weights of MaxAdaptiveDegree (Chen and others, 2025), the largest degree being everybody's."""
    each = labels.of.shape[1]
    first = labels.counts / each
    cut = np.minimum(first, cutoff)
    excess = np.divide(first - cut, first, out=np.zeros(LABELS), where=first > 0)[labels.of].mean(axis=1)
    moved = np.bincount(labels.of.ravel(), np.repeat(excess / each, each), minlength=LABELS)
    return np.asarray(cut + moved + labels.counts * (1 / math.sqrt(each) - 1 / each))


def run() -> Section:
    """Measure all contenders."""
    bars, notes = [], []
    for each in RUNS:
        labels = Labels.drawn(each)
        counted = ours(labels, "COUNT(*)", *SHARES[each], RUNS[each])
        people = counted if each == 1 else ours(labels, "COUNT(DISTINCT pid)", *SHARES[each], RUNS[each])
        usual = [ours(labels, value, None, None, min(RUNS[each], 4)) for value in ("COUNT(*)", "COUNT(DISTINCT pid)")]
        rival = opendp(labels, RUNS[each])
        try:
            selected, with_counts = (pipelinedp(labels, parts, RUNS[each]) for parts in (1, 2))
        except Missing as error:
            notes.append(f"PipelineDP: {error}")
            selected = with_counts = Shown(math.nan, math.nan)
        bars += _bars(each, (counted, people), (usual[0], usual[1]), (rival, selected, with_counts))
        if each > 1:
            notes.append(
                f"Labels a person: {each}, with the shares of delta below: {counted} groups by COUNT(*), {people} by "
                f"COUNT(DISTINCT pid). {simulated(labels)}"
            )
    return Section("Undeclared keys", bars, [*notes, HOW, OFF_BY_ONE])


def _bars(
    each: int, own: tuple[Shown, Shown], usual: tuple[Shown, Shown], peers: tuple[Shown, Shown, Shown]
) -> list[Bar]:
    (counted, people), (rival, selected, with_counts) = own, peers
    what = f"{PEOPLE:,} people, {each} of {LABELS:,} labels each"
    beside = f"OpenDP {rival} (see below), PipelineDP {with_counts}"
    bar, both = "no fewer than the best, within 3 standard errors", people.no_fewer(rival, with_counts)
    alone = people.no_fewer(selected)
    found = [
        Bar(f"{what}: groups with their numbers of people", f"{people}", beside, bar, both),
        Bar(f"{what}: groups alone", f"{people}", f"PipelineDP {selected}", bar, alone),
    ]
    if each == 1:
        near = f"OpenDP {rival.error:.2f}, PipelineDP {with_counts.error:.2f}"
        found.append(Bar(f"{what}: groups by COUNT(*)", f"{people}", beside, "at least 315", counted.groups >= 315))
        off = f"{counted.error:.2f}"
        found.append(Bar(f"{what}: RMSE of the counts", off, near, "at most 1.5", counted.error <= 1.5))
    for value, now, past in zip(("COUNT(*)", "COUNT(DISTINCT pid)"), usual, BEFORE[each], strict=True):
        bar, least = ("at least 315", 315) if each == 1 else (f"at least {TIMES[each]:g} times", TIMES[each] * past)
        beside = f"{past:,} before: {now.groups / past:.2f} times"
        found.append(Bar(f"{what}: {value}, usual shares of delta", f"{now}", beside, bar, now.groups >= least))
    return found
