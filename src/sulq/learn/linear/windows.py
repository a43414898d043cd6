"""Numbers seen through windows, keys as they are: rows as linear models take them, and how long rows are.

Declared bounds are often far wider than where the rows lie, and noise is as wide as the bounds. A window is the part
of them where most rows are, found from noisy histograms; a number beyond its ends counts as the end. Where there are
too few rows for a histogram of each number, one histogram of the rows' lengths gives a radius for all of them.
Categories and truth values stay keys: a row lies in one cell of each, so that a sum by a key moves by one whatever the
number of its labels (SR13).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from sulq.answers.oracle import ColumnChoice
from sulq.answers.released import Released
from sulq.language.attribute import Attribute
from sulq.language.domain import Bool, Category, Column
from sulq.language.kinds import Floats
from sulq.language.question import Sums
from sulq.language.rowfn import Bins, Col, Dot, Lit, Lookup, Power, RowFn, Vector
from sulq.language.rowfn.keys import OrMissing
from sulq.learn.features import Feature, cells, codes_of, numbers_of

BINS: Final = 16  # of a histogram that a window is found from
SURE_DEVIATIONS: Final = 2.5  # deviations by which a narrower window must be better
WORTH: Final = 0.1  # rows, as a part of all, that may lie outside for a window of half the width
TELLING: Final = 4  # bins of a window that histograms must be able to tell, to be worth their price
BITS: Final = 14  # of the grid numbers are put on before they meet
RADII: Final = tuple(2.0 ** (-j / 2) for j in range(10, -1, -1))  # of the corner of the windows, from 1/32 to 1
WITHIN: Final = 0.7  # of the rows, that the ball holds as they are; the others keep their direction


@dataclass(frozen=True, slots=True)
class Window:
    """A number from the middle of an interval, in units of half its width: within [-1, 1], missing in the middle."""

    name: str
    domain: Column
    low: float
    high: float

    @classmethod
    def declared(cls, name: str, domain: Column) -> Window:
        """The whole of a column's declared bounds."""
        whole = Feature(name, domain)
        middle, half = float(whole.middle), float(whole.half)
        return cls(name, domain, middle - half, middle + half)

    @property
    def middle(self) -> float:
        """Halfway between the ends."""
        return (self.low + self.high) / 2

    @property
    def half(self) -> float:
        """Half the width."""
        return (self.high - self.low) / 2

    @property
    def seen(self) -> RowFn:
        """The number as a row function; a missing one stays missing."""
        return ((Col(self.name) - self.middle) / self.half).clip(-1, 1)

    @property
    def row(self) -> RowFn:
        """The number as a row function; a missing one lies in the middle, as in prediction."""
        return self.seen.fill(0)

    @property
    def histogram(self) -> Sums:
        """How many rows lie in each part of the window."""
        edges = tuple(float(edge) for edge in np.linspace(-1, 1, BINS + 1))
        return Sums((Lit(1),), by=(Bins(self.seen, edges),))

    def narrowed(
        self, histogram: Released, rows: tuple[float, float], worth: float, sure: float = SURE_DEVIATIONS
    ) -> Window:
        """The part of the window that most rows lie in, judged by its noisy histogram.

        `rows`: how many there are, and the deviation of that. An interval is the better, the fewer
        rows lie outside, `worth` of all for each halving of the width, less what noise may flatter it by. How
        many lie outside is told by the bins there or, with less noise, by all rows less those inside. The whole has
        none outside: where noise is all there is, the window stays, but for chance that `sure` makes seldom.
        """
        counts, noise = histogram.values()[:, 0], float(histogram.deviations()[0])
        total, blur = rows
        below = np.concatenate([[0.0], np.cumsum(counts)])
        low, high = np.triu_indices(BINS + 1, 1)
        wide, inside = high - low, below[high] - below[low]
        there, less = noise * np.sqrt(BINS - wide), np.sqrt(wide * noise**2 + blur**2)
        outside = np.where(there <= less, below[-1] - inside, total - inside)
        good = -(outside + sure * np.minimum(there, less)) / total - worth * np.log2(wide / BINS)
        best = int(np.argmax(np.where(wide == BINS, 0.0, good)))
        step = (self.high - self.low) / BINS
        return replace(self, low=self.low + step * int(low[best]), high=self.low + step * int(high[best]))

    def moments(self, histogram: Released, window: Window) -> tuple[float, float]:
        """The mean and the variance of the number in a narrower window, from this one's noisy histogram.

        Bins of no more than their noise are left out. Both are moved, by as much as noise explains, to what a number
        anywhere in the window has: 0 and 1/3.
        """
        counts, noise = histogram.values()[:, 0], float(histogram.deviations()[0])
        middles = self.low + (np.arange(BINS) + 0.5) * (self.high - self.low) / BINS
        places = (middles - window.middle) / window.half
        inside = np.abs(places) < 1
        counts, places = counts[inside], places[inside]
        believed = max(1 - len(counts) * noise**2 / max(float((counts**2).sum()), 1e-9), 0.0)
        clear = np.where(counts > noise, counts, 0.0) / max(float(counts[counts > noise].sum()), 1e-9)
        mean = believed * float(clear @ places)
        square = believed * float(clear @ places**2) + (1 - believed) / 3
        least = ((self.high - self.low) / BINS / window.half) ** 2 / 12
        return mean, max(square - mean**2, least)

    def of(self, values: Floats) -> Floats:
        """The same of an ordinary column."""
        numbers = numbers_of(values, self.domain, self.name)
        scaled = np.clip((numbers - self.middle) / self.half, -1.0, 1.0)
        return np.where(np.isnan(scaled), 0.0, scaled)


@dataclass(frozen=True, slots=True)
class Design:
    """The columns of X: numbers through windows, then keys with a place for each label."""

    columns: tuple[str, ...]
    numbers: tuple[Window, ...]
    keys: tuple[Attribute, ...]

    @classmethod
    def of(cls, X: ColumnChoice) -> Design:
        """The columns as they are declared; free text is refused."""
        found = list(zip(X.names, X.domain, strict=True))
        keys = tuple(Attribute(name, domain, BINS) for name, domain in found if isinstance(domain, (Bool, Category)))
        rest = [(name, domain) for name, domain in found if not isinstance(domain, (Bool, Category))]
        for name, domain in rest:
            Attribute(name, domain, BINS)  # refuses what is neither a number nor a key
        return cls(X.names, tuple(Window.declared(name, domain) for name, domain in rest), keys)

    @property
    def widths(self) -> tuple[int, ...]:
        """How many places the numbers take together, and each key."""
        return (*((len(self.numbers),) if self.numbers else ()), *(key.size for key in self.keys))

    @property
    def size(self) -> int:
        """How many places there are."""
        return sum(self.widths)

    @property
    def names(self) -> tuple[str, ...]:
        """What the places are called, in the order of `order`."""
        said = [window.name for window in self.numbers]
        said += [f"{key.name}={label}" for key in self.keys for label in key.labels]
        return tuple(said[i] for i in self.order)

    @property
    def order(self) -> list[int]:
        """The places in the order of X's columns."""
        place = [self.columns.index(window.name) for window in self.numbers]
        place += [self.columns.index(key.name) for key in self.keys for _ in range(key.size)]
        return sorted(range(self.size), key=lambda i: place[i])

    def vector(self) -> RowFn:
        """The numbers side by side; only where there are any."""
        return Vector(tuple(window.row for window in self.numbers), BITS)

    def score(self, vector: RowFn | None, weights: Floats, intercept: float) -> RowFn:
        """A linear function of a row, with public weights: numbers by an inner product, keys by tables."""
        found: RowFn = Lit(float(intercept))
        if vector is not None:
            found = Dot(vector, tuple(weights[: len(self.numbers)].tolist()), 20) + found
        at = len(self.numbers)
        for key in self.keys:
            table = (*weights[at : at + key.size].tolist(), 0.0)
            found = found + Lookup((OrMissing(key.row),), tuple((float(entry),) for entry in table))
            at += key.size
        return found

    def narrowed(self, windows: Sequence[Window]) -> Design:
        """The same columns through other windows."""
        return replace(self, numbers=tuple(windows))

    def matrix(self, X: object) -> Floats:
        """An ordinary table, a column a place: numbers in their windows, indicators of labels."""
        found = cells(X, list(self.columns))
        parts = [window.of(found[window.name])[:, None] for window in self.numbers]
        for key in self.keys:
            codes = codes_of(key, found[key.name])
            parts.append((codes[:, None] == np.arange(key.size)).astype(np.float64))
        return np.concatenate(parts, axis=1)

    def told(self, weights: Floats, intercept: Floats) -> tuple[Floats, Floats]:
        """Weights of places, and intercepts, in the columns' own units and order."""
        half = np.ones(self.size)
        middle = np.zeros(self.size)
        half[: len(self.numbers)] = [window.half for window in self.numbers]
        middle[: len(self.numbers)] = [window.middle for window in self.numbers]
        own = weights / half
        return own[:, self.order], intercept - own @ middle

    def rows(self, coef: Floats, intercept: Floats) -> list[RowFn]:
        """The linear functions that `told` tells, as row functions; a missing cell is as `scores` has it."""
        own = np.empty_like(coef)
        own[:, self.order] = coef
        d = len(self.numbers)
        half, middle = (np.array([getattr(w, name) for w in self.numbers]) for name in ("half", "middle"))
        start = intercept + own[:, :d] @ middle
        own[:, :d] *= half
        vector = self.vector() if d else None
        return [self.score(vector, weights, float(at)) for weights, at in zip(own, start, strict=True)]

    @property
    def learned(self) -> tuple[tuple[str, Column], ...]:
        """The columns with the domains they were learned in."""
        numbers = tuple((window.name, window.domain) for window in self.numbers)
        return (*numbers, *((key.name, key.domain) for key in self.keys))

    def scores(self, X: object, coef: Floats, intercept: Floats) -> Floats:
        """The linear functions that `told` tells, on an ordinary table; beyond a window a number is its end."""
        matrix = self.matrix(X)
        d = len(self.numbers)
        matrix[:, :d] = matrix[:, :d] * [w.half for w in self.numbers] + [w.middle for w in self.numbers]
        return matrix[:, self.order] @ coef.T + intercept


def stands_out(noise: float, rows: tuple[float, float], worth: float, sure: float = SURE_DEVIATIONS) -> bool:
    """Whether histograms of this noise could tell a window: one of TELLING bins that holds all rows would be chosen."""
    total, blur = rows
    doubt = min(noise * math.sqrt(BINS - TELLING), math.hypot(math.sqrt(TELLING) * noise, blur))
    return sure * doubt < worth * total * math.log2(BINS / TELLING)


def lengths(design: Design) -> Sums:
    """How many rows are as long as each part says, as a part of the way from the middle of all windows to a corner."""
    d = len(design.numbers)
    squares = Vector(tuple(Power(window.row, 2) for window in design.numbers), 15)
    edges = (0.0, *(radius**2 * d for radius in RADII[:-1]), float(d))
    return Sums((Lit(1),), by=(Bins(Dot(squares, (1,) * d).clip(0, d), edges),))


def radius(histogram: Released, total: float) -> float:
    """The least radius that seems to hold WITHIN of the rows; 1, which holds all, where none does.

    How many rows a radius holds is told by the parts within it or, with less noise where these are fewer, by all
    rows less those of the parts beyond. Where noise is all there is, so is the radius: shortened rows keep their
    direction, and sums that are noise at one radius are noise at another.
    """
    counts = histogram.values()[:, 0]
    parts = np.arange(1, len(counts) + 1)
    inside, beyond = np.cumsum(counts), len(counts) - parts
    held = np.where(parts <= beyond, inside, total - (counts.sum() - inside))
    return min([r for r, rows in zip(RADII, held.tolist(), strict=True) if rows >= WITHIN * total], default=1.0)
