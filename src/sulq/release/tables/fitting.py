"""The table that a model publishes: log-linear, fitted order by order, believed as far as it stands out of the noise.

The table x = total exp(sum of theta_b u_b)/Z has the coefficients c_b = y_b - r_b (theta_b - base_b) where the convex

    total log Z(theta) - sum theta_b y_b + 1/2 sum r_b (theta_b - base_b)^2

is least. The vectors u_b have the constant's length. Of all tables of this total it is the one with the least of half
the sum of (c_b - y_b)^2/r_b and the divergence from the table of the base, for 0 the even one: r_b says how much of the
noisy y_b is believed, and what no coefficient tells is as even as the others allow, not zero.

The fit to interactions of fewer attributes foretells the next. The gaps between what was told and what is foretold are
supposed to have variances in proportion to the rows that an interaction's vectors vary over: hardly anybody is where
hardly anybody is foretold. If the gaps' squares exceed the noise's by w times those, an interaction is believed up to
r = s^2/w: near the foretold that is the mean of what was told and what is foretold, weighted by the inverse of their
variances. w is taken of each interaction with many coefficients, of all of its order otherwise.

The gaps are foretold by smaller interactions alone, and not by each other, as they are in the fit; so r is only a
guess. The fit goes from the foretold towards what was told in steps, r times 128, 64 and so on, each drawn to where the
last ended, and stops where its risk is least. What many coefficients say together is so met long before the noise of
single ones is; one step of the best strength draws both back.

The risk is Stein's unbiased estimate. A fit c(y) to y = truth + noise of deviation s has, for normal noise, the
expected squared distance, each coefficient in units of its noise,

    E sum (c_b - truth_b)^2/s_b^2 = E [ sum (c_b - y_b)^2/s_b^2 + 2 f - m ],   f = sum of dc_b/dy_b,

m the number of coefficients: what was told itself has f = m and the distance m. f is how many coefficients' worth of
noise the fit has taken in. The condition c + r (theta - base) = y gives, along any change dy, (H + R) dtheta = dy + R
dbase and dc = dy - R (dtheta - dbase), H the covariances of the vectors over the fitted table's rows, R the diagonal of
r. The sum of derivatives is the mean of z' dc for dy = z of random signs. Linear fits need no normal noise, variances
alone. All of it is made from noisy answers and the plan's noise (trap 6).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from sulq.language.kinds import Floats
from sulq.release.tables.interactions import BasisVectors, Places, Turned, scale, vectors
from sulq.release.tables.noisy_tables import Coefficients

Valued = Callable[[Floats], tuple[float, Floats]]  # a function's value and its slope
MAX_REMEMBERED_STEPS: Final = 10  # steps remembered
MIN_GAIN_PART: Final = 1e-4  # part of the foreseen gain that a step must bring
MAX_HALVINGS: Final = 30
MAX_IDLE_STEPS: Final = 3  # steps in a row that gain too little, until it ends
MAX_MODEL_CELLS: Final = 2**21  # cells
GAIN: Final = 0.002  # of the noise's own share in the loss: a step that gains less is too little
ROUND_STEPS: Final = 40  # steps
MAX_FIT_ROUNDS: Final = 5  # of each fit at most
PROBE_SIGNS: Final = 1000  # signs of all probes together, about: of many coefficients one probe tells enough
MAX_PROBES: Final = 8  # probes
MAX_SOLVER_STEPS: Final = 40  # of a solution at most
SOLVER_GAP: Final = 0.05  # of what is solved for: the gap that is left
POOLED_COEFFICIENTS: Final = 8.0  # coefficients that the whole order counts as, beside an interaction's own
MIN_BELIEVED_PART: Final = 1e-3  # part of an interaction that is worth fitting
MIN_TOLD_DEVIATION_ROWS: Final = 0.01  # whole counts are not told more exactly than this by hardly any noise
STRENGTHS: Final = (128.0, 64.0, 32.0, 16.0, 8.0, 4.0, 2.0, 1.0, 0.5, 0.25)
MAX_WORSE_STEPS: Final = 2  # steps in a row after which no more are taken: the risk is itself a little noisy

Heard = dict[Places, tuple[Floats, Floats]]  # coefficients of vectors of the constant's length, and their noise
Noted = dict[Places, tuple[Floats, Floats, Floats]]  # the same, and r


def least(function: Valued, start: Floats, *, gain: float, steps: int) -> tuple[Floats, float]:
    """Where the function is least, to within steps that gain `gain` no more, and what all steps gained.

    The inverse of the second derivatives is known from the last slopes alone, so a step costs one or two
    evaluations. It goes down by every step, so ending early leaves a point no worse than the start.
    """
    here, (value, slope) = start, function(start)
    first = value
    memory: deque[tuple[Floats, Floats]] = deque(maxlen=MAX_REMEMBERED_STEPS)
    idle = 0
    for _ in range(steps):
        step = _newton(slope, memory)
        foreseen = float(step @ slope)
        if foreseen >= 0:
            break
        rate = 1.0 if memory else min(1.0, 1.0 / max(float(np.abs(slope).max()), 1e-300))
        for _ in range(MAX_HALVINGS):
            there = here + rate * step
            new, turned = function(there)
            if new <= value + MIN_GAIN_PART * rate * foreseen:
                break
            rate /= 2.0
        else:
            break
        moved, bent = there - here, turned - slope
        if float(moved @ bent) > 0:
            memory.append((moved, bent))
        idle = idle + 1 if value - new < gain else 0
        here, value, slope = there, new, turned
        if idle >= MAX_IDLE_STEPS:
            break
    return here, first - value


def _newton(slope: Floats, memory: deque[tuple[Floats, Floats]]) -> Floats:
    """The step that the remembered slopes let expect to lead to the least point."""
    left = -slope
    factors = []
    for moved, bent in reversed(memory):
        factor = float(moved @ left) / float(moved @ bent)
        left = left - factor * bent
        factors.append(factor)
    if memory:
        moved, bent = memory[-1]
        left = left * (float(moved @ bent) / float(bent @ bent))
    for (moved, bent), factor in zip(memory, reversed(factors), strict=True):
        left = left + (factor - float(bent @ left) / float(moved @ bent)) * moved
    return left


@dataclass(frozen=True, slots=True, eq=False)
class LogLinear:
    """The fitted table, by its total and the parameters of each interaction."""

    total: float
    parameters: dict[Places, Floats]

    def table(self, sizes: Sequence[int]) -> Floats:
        """All cells."""
        turned = Turned(sizes)
        flat = np.zeros(math.prod(sizes))
        for part, own in self.parameters.items():
            flat[turned.places(part)] = own
        return _exponential(turned.back(flat), self.total)[0].reshape(tuple(sizes))


def _exponential(energy: Floats, total: float) -> tuple[Floats, float]:
    """A table of this total in proportion to the exponential, and the logarithm of what it was divided by."""
    top = float(energy.max())
    raised = np.exp(energy - top)
    whole = float(raised.sum())
    return raised * (total / whole), top + math.log(whole)


@dataclass(frozen=True, slots=True, eq=False)
class FitTarget:
    """Noisy coefficients and their noise; how far a parameter moves each from what was told, by its gap from `base`."""

    vectors: BasisVectors
    values: Floats
    noise: Floats
    ease: Floats
    base: Floats


def descended(told: FitTarget, theta: Floats, flat: Floats) -> tuple[Floats, Floats]:
    """The parameters, and the table flat; begins at some parameters and their table.

    Steps are taken in units of the loss's own curvature, total var(u_b) + r_b, known anew every ROUND of them: where a
    table is nearly empty its parameters may move far.
    """
    total = float(flat.sum())

    def loss(own: Floats) -> tuple[float, Floats]:
        table, log = _exponential(told.vectors.spread(own), total)
        moved = own - told.base
        slope = told.vectors.told(table) - told.values + told.ease * moved
        return total * log - float(own @ told.values) + 0.5 * float(told.ease @ moved**2), slope

    gain = GAIN * float((told.noise**2).sum()) / (2.0 * total)
    for _ in range(MAX_FIT_ROUNDS):
        unit = 1.0 / np.sqrt(varied(told.vectors, flat) + told.ease)
        there, gained = least(_scaled(loss, unit), theta / unit, gain=gain, steps=ROUND_STEPS)
        theta = there * unit
        flat, _ = _exponential(told.vectors.spread(theta), total)
        if gained < ROUND_STEPS * gain:
            break
    return theta, flat


def _scaled(loss: Valued, unit: Floats) -> Valued:
    """The same function of parameters in other units."""

    def scaled(point: Floats) -> tuple[float, Floats]:
        value, slope = loss(point * unit)
        return value, slope * unit

    return scaled


def varied(vectors: BasisVectors, flat: Floats) -> Floats:
    """How much each vector varies over the rows of a table: the sum of its squares less the squared sum's share."""
    found = vectors.squares(flat) - vectors.told(flat) ** 2 / float(flat.sum())
    return np.asarray(np.maximum(found, 0.0), dtype=np.float64)


def signs(count: int) -> Floats:
    """The probes, one a row; the same ones always, so that fits of different strength are compared by the same."""
    several = min(max(PROBE_SIGNS // max(count, 1), 1), MAX_PROBES)
    return np.random.default_rng(0).choice((-1.0, 1.0), size=(several, count))


def moved(told: FitTarget, flat: Floats, probes: Floats, base: Floats, start: Floats) -> Floats:
    """How the parameters change, a row for each probe, where what was told changes by it in units of the noise.

    `base`: how the bases change. `start`: where to begin.
    """
    total, sums = float(flat.sum()), told.vectors.told(flat)
    unit = 1.0 / np.sqrt(varied(told.vectors, flat) + told.ease)

    def bent(point: Floats) -> Floats:
        """(H + R) times a vector, in units of its diagonal."""
        own = unit * point
        turned = told.vectors.told(flat * told.vectors.spread(own)) - sums * (float(sums @ own) / total)
        return unit * (turned + told.ease * own)

    goals = probes * told.noise + told.ease * base
    found = [unit * _solved(bent, unit * goal, first / unit) for goal, first in zip(goals, start, strict=True)]
    return np.stack(found)


def risk(told: FitTarget, flat: Floats, probes: Floats, base: Floats, turned: Floats) -> float:
    """The expected squared distance from the truth of the coefficients of a fitted table, in units of their noise."""
    gaps = (told.vectors.told(flat) - told.values) / told.noise
    return float(gaps @ gaps) + 2.0 * freedom(told, probes, base, turned) - len(gaps)


def freedom(told: FitTarget, probes: Floats, base: Floats, turned: Floats) -> float:
    """How many coefficients' worth of noise the fit has taken in: the sum of dc_b/dy_b."""
    left = probes * told.ease / told.noise * (turned - base)
    return float(probes.shape[1] - left.sum() / len(probes))


def _solved(bent: Callable[[Floats], Floats], goal: Floats, start: Floats) -> Floats:
    """Where a positive linear map gives the goal, by conjugate gradients."""
    found = start
    rest = goal - bent(start)
    way = rest
    square = float(rest @ rest)
    enough = SOLVER_GAP**2 * float(goal @ goal)
    for _ in range(MAX_SOLVER_STEPS):
        if square <= enough:
            break
        turned = bent(way)
        step = square / float(way @ turned)
        found, rest = found + step * way, rest - step * turned
        square, before = float(rest @ rest), square
        way = rest + (square / before) * way
    return found


def fit(found: Coefficients) -> LogLinear:
    """The table for these noisy coefficients, `()` of which is the number of rows."""
    sizes = found.sizes
    heard: Heard = {}
    for part, values in found.values.items():
        by = scale(part, sizes)
        heard[part] = values * by, np.maximum(found.deviations[part], MIN_TOLD_DEVIATION_ROWS) * by
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
        elif (worse := worse + 1) == MAX_WORSE_STEPS:
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
        pool = POOLED_COEFFICIENTS / len(value)
        weight = (over[part] / spread[part] + pool * whole) / (1.0 + pool)
        if weight * spread[part] > MIN_BELIEVED_PART * float((noise**2).sum()):
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
