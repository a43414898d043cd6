"""The table that a model publishes: fitted order by order, interactions believed as far as they stand out of the noise.

The fit to interactions of fewer attributes foretells the next. The gaps between what was told and what is foretold are
supposed to have variances in proportion to the rows that an interaction's vectors vary over: hardly anybody is where
hardly anybody is foretold. If the gaps' squares exceed the noise's by w times those, an interaction is believed up to
r = s^2/w (`loglinear.py`): near the foretold that is the mean of what was told and what is foretold, weighted by the
inverse of their variances. w is taken of each interaction with many coefficients, of all of its order otherwise.

The gaps are foretold by smaller interactions alone, and not by each other, as they are in the fit; so r is only a
guess. The fit goes from the foretold towards what was told in steps, r times 128, 64 and so on, each drawn to where the
last ended, and stops where its risk is least (`risk.py`). What many coefficients say together is so met long before
the noise of single ones is; one step of the best strength draws both back. All of it is made from noisy answers and
the plan's noise [T6].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from sulq.language.kinds import Floats
from sulq.release.tables.coefficients import Coefficients
from sulq.release.tables.interactions import Places
from sulq.release.tables.loglinear import FitTarget, LogLinear, descended, varied
from sulq.release.tables.risk import moved, risk, signs
from sulq.release.tables.vectors import scale, vectors

POOL: Final = 8.0  # coefficients that the whole order counts as, beside an interaction's own
LEAST: Final = 1e-3  # part of an interaction that is worth fitting
MIN_DEVIATION_ROWS: Final = 0.01  # whole counts are not told more exactly than this by hardly any noise
STRENGTHS: Final = (128.0, 64.0, 32.0, 16.0, 8.0, 4.0, 2.0, 1.0, 0.5, 0.25)
WORSE: Final = 2  # steps in a row after which no more are taken: the risk is itself a little noisy

Heard = dict[Places, tuple[Floats, Floats]]  # coefficients of vectors of the constant's length, and their noise
Noted = dict[Places, tuple[Floats, Floats, Floats]]  # the same, and r


def fit(found: Coefficients) -> LogLinear:
    """The table for these noisy coefficients, `()` of which is the number of rows."""
    sizes = found.sizes
    heard = {part: _heard(found, part) for part in found.values}
    total = max(float(heard[()][0][0]), 1.0)
    flat = np.full(math.prod(sizes), total / math.prod(sizes))
    path: _Path | None = None
    for order in range(1, 1 + max(map(len, heard))):
        own = {part: each for part, each in heard.items() if len(part) == order}
        new = believed(own, *_foretold(own, flat, sizes)) if own else {}
        if new:
            path = _followed(path, new, flat, sizes)
            flat = path.flat
    return LogLinear(total, path.parameters if path else {})


def _heard(found: Coefficients, part: Places) -> tuple[Floats, Floats]:
    """An interaction's coefficients for vectors of the constant's length, and their noise."""
    by = scale(part, found.sizes)
    return found.values[part] * by, np.maximum(found.deviations[part], MIN_DEVIATION_ROWS) * by


@dataclass(frozen=True, slots=True, eq=False)
class _Path:
    """A fit: its table and parameters; how these, and what they were drawn to, change with the probes (`risk.py`)."""

    notes: Noted
    told: FitTarget
    flat: Floats
    theta: Floats
    probes: Floats
    turned: Floats
    base: Floats

    @property
    def parameters(self) -> dict[Places, Floats]:
        """By interaction."""
        ends = np.cumsum([len(value) for value, _, _ in self.notes.values()])[:-1]
        return dict(zip(self.notes, np.split(self.theta, ends), strict=True))


def _followed(before: _Path | None, new: Noted, flat: Floats, sizes: tuple[int, ...]) -> _Path:
    """The fit of the least risk on the way from the one before towards what was told.

    In every step the new interactions are drawn to where the last step ended, and the others to what they were.
    """
    old = before.notes if before else {}
    known = sum(len(value) for value, _, _ in old.values())
    notes = old | new
    values, noise, ease = (np.concatenate([each[i] for each in notes.values()]) for i in range(3))
    own, count = vectors(sizes, tuple(notes)), len(values)
    probes = signs(count)
    fresh = np.arange(count) >= known
    theta, base = np.zeros(count), np.zeros(count)
    turned, bent = np.zeros_like(probes), np.zeros_like(probes)
    if before:
        theta[:known], base[:known], ease[:known] = before.theta, before.told.base, before.told.ease
        several = min(len(probes), len(before.probes))
        probes = np.concatenate([before.probes[:several], probes[:several, known:]], axis=1)
        turned, bent = np.zeros_like(probes), np.zeros_like(probes)
        turned[:, :known], bent[:, :known] = before.turned[:several], before.base[:several]
    best, least, worse = None, math.inf, 0
    for strength in STRENGTHS if before else (1.0,):  # of single attributes the gaps are foretold by nothing else
        bent = np.where(fresh, turned, bent)
        told = FitTarget(own, values, noise, np.where(fresh, strength * ease, ease), np.where(fresh, theta, base))
        theta, flat = descended(told, theta, flat)
        turned = moved(told, flat, probes, bent, turned)
        found = risk(told, flat, probes, bent, turned)
        if best is None or found < least:
            best, least, worse = _Path(notes, told, flat, theta, probes, turned, bent), found, 0
        elif (worse := worse + 1) == WORSE:
            break
    assert best is not None  # noqa: S101 - for the type checker
    return best


def believed(told: Heard, gaps: dict[Places, Floats], varied: dict[Places, Floats]) -> Noted:
    """How far each interaction of one order is believed; left out where nothing stands out."""
    over = {part: float((gap**2 - told[part][1] ** 2).sum()) for part, gap in gaps.items()}
    spread = {part: max(float(own.sum()), 1e-9) for part, own in varied.items()}
    whole = sum(over.values()) / max(sum(spread.values()), 1e-9)
    found = {}
    for part, (value, noise) in told.items():
        pool = POOL / len(value)
        weight = (over[part] / spread[part] + pool * whole) / (1.0 + pool)
        if weight * spread[part] > LEAST * float((noise**2).sum()):
            found[part] = (value, noise, noise**2 / weight)
    return found


def _foretold(told: Heard, flat: Floats, sizes: tuple[int, ...]) -> tuple[dict[Places, Floats], dict[Places, Floats]]:
    """The gaps between what was told and a table, and how much the vectors vary over its rows."""
    ends = np.cumsum([len(value) for value, _ in told.values()])[:-1]
    own = vectors(sizes, tuple(told))
    gaps = np.concatenate([value for value, _ in told.values()]) - own.told(flat)
    several = (np.split(gaps, ends), np.split(varied(own, flat), ends))
    one, other = (dict(zip(told, each, strict=True)) for each in several)
    return one, other
