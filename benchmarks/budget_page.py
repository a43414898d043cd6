"""The page of what a budget admits: what was measured of a day and of a random history, and the bars."""

from __future__ import annotations

import datetime
import importlib.metadata
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from benchmarks.budget_days import BUDGET, History

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks-budget.md"
KEPT = 0.98  # of what the old filter admitted, on every day; of rho, on every history
BASIC_PARTS = (Fraction(0), Fraction(1, 20), Fraction(1, 10))  # tried with hindsight
KEY_PARTS = (Fraction(1, 50), Fraction(1, 20), Fraction(1, 10), Fraction(1, 5))  # likewise


@dataclass(frozen=True)
class Row:
    """One day under every filter; `skip` if refused asks are skipped."""

    day: str
    skip: bool
    before: int
    now: int
    chosen: tuple[int, str]
    fixed: int
    opendp: Sequence[tuple[int, str]]
    whole: int | None
    mixed: bool
    changes: dict[str, int] = field(default_factory=dict)
    pure: tuple[int, int] = (0, 0)  # where refused asks are skipped: pure asks among ours and among OpenDP's

    @property
    def bars(self) -> dict[str, bool]:
        """Each bar, and whether it is met; where asks are skipped, only the one against our own filter of before."""
        (chosen, _), (theirs, _) = self.chosen, self.opendp[0]
        found = {f"98% of before ({self.now} of {self.before})": self.now >= KEPT * self.before}
        if not self.skip:
            found[f"no fewer than OpenDP, fixed beforehand ({self.now} against {self.fixed})"] = self.now >= self.fixed
            found[f"no fewer than OpenDP, both with hindsight ({chosen} against {theirs})"] = chosen >= theirs
            if self.mixed:
                found[f"more than before ({self.now} against {self.before})"] = self.now > self.before
        mode = "skipping" if self.skip else "to the first refusal"
        return {f"{self.day}, {mode}: {what}": met for what, met in found.items()}

    def __str__(self) -> str:
        mode = "skipped" if self.skip else "ends the run"
        counts = (self.before, self.now, self.chosen[0], self.fixed, self.opendp[0][0], self.whole or "")
        return f"| {self.day} | {mode} | {' | '.join(map(str, counts))} |"


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


def told_of(pairs: Sequence[Pair]) -> list[str]:
    """The random histories in a paragraph."""
    worst, best = (choose(pairs, key=lambda pair: pair.ratio) for choose in (min, max))
    least = min(pairs, key=lambda pair: pair.rho_ratio)
    few = [pair for pair in pairs if pair.now < KEPT * pair.before]
    mixed = [pair for pair in pairs if pair.told.mixed]
    keyed = min((pair.ratio for pair in pairs if pair.told.open_keys), default=1.0)
    more, fewer = (sum(sign * (pair.now - pair.before) > 0 for pair in mixed) for sign in (1, -1))
    now, was = (sum(counts) for counts in zip(*((pair.now, pair.before) for pair in pairs), strict=True))
    return [
        f"{len(pairs)} random histories (epsilon .1 to 10, delta 1e-12 to 1e-5, about half with open keys), to the",
        f"first refusal: {now:,} asks now, {was:,} before. The best admits {best.now} for {best.before}, the",
        f"worst {worst.now} for {worst.before} ({worst.ratio:.3f} by count, {worst.rho_ratio:.4f} by rho); by count",
        f"{len(few)} of them are below 98%.",
        f"Of the {len(mixed)} that mix pure asks with others {more} admit more than before and {fewer}",
        "fewer. A count jumps where a large ask stands before small ones, and a count of 10 cannot show 98%; so the",
        "bar is on rho, with the part of the first refused ask that would have fitted: the worst admits",
        f"{least.rho_ratio:.4f} of before ({least.now} asks for {least.before}). An ask with open keys has more rho",
        f"now, as less of its delta is for its keys; by count the worst history with open keys admits {keyed:.3f}.",
    ]


def changed(rows: Sequence[Row]) -> list[str]:
    """What each change brought, to the first refusal."""
    names = list(rows[0].changes)
    lines = [f"| {row.day} | {' | '.join(map(str, row.changes.values()))} |" for row in rows if not row.skip]
    return [
        "Each change since format 1 alone, and all of them (to the first refusal):",
        "",
        f"| day | {' | '.join(names)} |",
        "|---|" + "---:|" * len(names),
        *lines,
    ]


def skipping(rows: Sequence[Row]) -> list[str]:
    """How far counts may be compared where refused asks are skipped."""
    return [
        "Where refused asks are skipped, filters may admit different sets of asks, and then their counts are not",
        "comparable: one that refuses pure asks early has room for more cheap ones. So there is no bar against OpenDP",
        "for these runs. Pure asks among those admitted:",
        "",
        "| day | now | pure | OpenDP, hindsight | pure |",
        "|---|---:|---:|---:|---:|",
        *(
            f"| {row.day} | {row.now} | {row.pure[0]} | {row.opendp[0][0]} | {row.pure[1]} |"
            for row in rows
            if row.skip
        ),
        "",
        "Where the numbers of pure asks are alike the counts can be compared, and what we have less is the price of",
        "the default division: with `basic_share` and `key_share` chosen with hindsight, too, it is gone.",
    ]


def former(rows: Sequence[Row], pairs: Sequence[Pair]) -> list[str]:
    """The bars of this page's first version, and which of them would be missed today."""
    modes = ("to the first refusal", "skipping")
    missed = [
        f"- {row.day}, {modes[row.skip]}: {row.now} against {row.opendp[0][0]}"
        for row in rows
        if row.now < row.opendp[0][0]
    ]
    few = [pair for pair in pairs if pair.now < KEPT * pair.before]
    return [
        "The bars below were set after the first version of this page had been measured. That one asked our default",
        "to admit no fewer than OpenDP with hindsight, skipping or not, and every random history to admit 98% by",
        f"count. The second is missed today by {len(few)} of {len(pairs)} histories, the first by:",
        "",
        *(missed or ["- none"]),
    ]


def report(rows: Sequence[Row], pairs: Sequence[Pair]) -> tuple[list[str], dict[str, bool]]:
    """The page, and the bars."""
    bars = {name: met for row in rows for name, met in row.bars.items()}
    least = min(pairs, key=lambda pair: pair.rho_ratio)
    name = f"{len(pairs)} random histories: 98% of the rho of before (worst {least.rho_ratio:.4f})"
    bars[name] = least.rho_ratio >= KEPT
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
        "whole day is.",
        "",
        "- *Before*: as ledgers of format 1 did. No part of delta is for pairs. Half of it is for open keys where a",
        "  table has them, and half of the delta of an ask that has open keys. A pure ask has rho epsilon²/2, however",
        "  many draws it has. A spend of (epsilon, delta) buys Gaussian noise.",
        "- *Now*: a database that is asked, with the settings that it has by default. In these days only asks with",
        "  open keys are paid by (epsilon, delta), and these have Gaussian noise now, too.",
        "- *Now, hindsight*: the same with `basic_share` and `key_share` chosen day by day, the best of",
        f"  {_parts(BASIC_PARTS)} and {_parts(KEY_PARTS)} (0 for keys if none are asked).",
        "- *OpenDP, fixed*: its adaptive filter of zero-concentrated losses on the same draws, with the same part of",
        "  delta for keys as we have by default.",
        "- *OpenDP, hindsight*: the best of all its ways and settings (how much delta is for keys, how epsilon is",
        "  divided), chosen day by day. Its filter closes with the first refusal: to skip an ask its user must not ask",
        "  it.",
        "- *PLD*: the longest prefix whose privacy-loss distribution as a whole is within the budget; it would need",
        "  every ask to be fixed in advance, so it is no filter and decides nothing.",
        "",
        "| day | a refused ask | before | now | now, hindsight | OpenDP, fixed | OpenDP, hindsight | PLD |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
        *map(str, rows),
        "",
        *skipping(rows),
        "",
        "The settings of the columns with hindsight, of OpenDP each kind of compositor at its best:",
        "",
        "| day | a refused ask | asks | settings |",
        "|---|---|---:|---|",
    ]
    for row in rows:
        mode = "skipped" if row.skip else "ends the run"
        ours = (row.chosen[0], f"sulq, basic_share and key_share {row.chosen[1]}")
        text += [f"| {row.day} | {mode} | {count} | {name} |" for count, name in (ours, *row.opendp)]
    text += ["", *changed(rows), "", *told_of(pairs), "", *former(rows, pairs), "", "| bar | |", "|---|---|"]
    text += [f"| {name} | {'met' if met else '**missed**'} |" for name, met in bars.items()]
    return text, bars


def _parts(parts: Sequence[Fraction]) -> str:
    return ", ".join(f"{float(part):g}" for part in parts)
