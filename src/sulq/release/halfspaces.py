"""Halfspaces: noisy fractions of the rows on one side of many planes, from which any plane's is answered for ever."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, Self

import numpy as np
import pyarrow as pa

from sulq.answers import wire
from sulq.answers.call import timed
from sulq.answers.oracle import Oracle, Progress, SpendPlan
from sulq.answers.released import Noise
from sulq.display.progress import shows_progress
from sulq.forms.parameters import between, checked, number, whole
from sulq.language.kinds import Floats, Integers
from sulq.language.privacy import Loss
from sulq.release.base import Chart, Paid, Release, unreadable
from sulq.release.directions import (
    ROUNDING_SINE,
    Net,
    direction,
    enough,
    net,
    planes_of,
    projection_dimension,
    projection_failure,
    projections_for,
    scales_of,
    sides,
    signs,
    told,
)

MAX_PROJECTIONS: Final = 1000
MAX_FINE_COLUMNS: Final = 3  # columns up to which a fine net costs little
MAX_NET_COLUMNS: Final = 5  # columns up to which the net is made without projecting
USUAL_PROJECTIONS: Final = 25  # by 8 ln(q/beta) enough for one query at 95%
TIED_COSINES: Final = 1e-12  # between cosines that rounding alone may tell apart
SAFE_DEVIATIONS: Final = 3.0  # of its noise, that a number of rows is at least where something is divided by it
ERROR_RATE: Final = 0.05
UNLIKELY: Final = 0.1  # four times the failure of a projection, as the theorem's own examples have it

Rule = Literal["median", "nearest"]


@dataclass(frozen=True, slots=True)
class HalfspaceFraction:
    """What a release says of one halfspace.

    `value`: the fraction. It is that of another halfspace, at a `distance` from the one asked for: the sine of the
    angle between them, which is at most a right one (E33). `bound`: how far it may be off that one's true fraction.
    `strict`: it was read off the other side of a published plane, so it and its bound are without the rows that lie on
    that plane itself: of <x, w> > 0, not >= 0.
    """

    value: float
    bound: float
    distance: float
    strict: bool = False

    def __str__(self) -> str:
        border = ", without the rows on the plane itself" if self.strict else ""
        return f"{self.value:.4f} ± {self.bound:.4f}, at a distance of {self.distance:.3f}{border}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Halfspaces(Release):
    """Published counts of the rows on one side of planes through the middle of the bounds.

    `planes`: their normals, in whole numbers, in coordinates that the declared bounds scale to [-1, 1].
    `projections`: the random matrices of signs, one d x k matrix each; none where the net is of the columns themselves.
    `size`: a noisy count of the rows that miss none of the columns, which are all that is counted; `declared`: of all
    rows, where that was. `notes`: how many rows this needs, and what is promised of projections.
    """

    kind: ClassVar[str] = "halfspaces"
    names: tuple[str, ...]
    middle: tuple[float, ...]
    half: tuple[float, ...]
    g: float
    net: Floats
    projections: Integers
    planes: Integers
    counts: Floats
    noise: Noise
    size: float
    size_noise: Noise
    declared: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> float:
        """The number of rows that fractions are of: noisy, no less than its noise (SR6), no more than declared."""
        most = math.inf if self.declared is None else self.declared
        return max(min(max(self.size, SAFE_DEVIATIONS * self.size_noise.deviation), most), 1.0)

    def fraction(
        self, y: Sequence[float] | Mapping[str, float], rule: Rule = "median", beta: float = ERROR_RATE
    ) -> HalfspaceFraction:
        """The fraction of complete rows x with <x, y> >= 0, x in the scaled coordinates; free, for any y, at any time.

        Of planes at the same distance one on y's own side answers; where only the opposite side was published, the
        rest, which are the rows of <x, y> > 0 (`strict`).

        Args:
            y: A weight for each column, as a list or by name (others weigh nothing). `scaled(weights, point)` makes
                one of weights in the columns' own units.
            rule: `median` over the projections of the answer at the net's nearest direction [S3.26]; `nearest`, the one
                published halfspace at the smallest distance.
            beta: With what probability some published count may be further off than `bound` allows.

        Raises:
            QuestionError: `bad-parameter`: y has another number of weights, or all are 0.
        """
        checked(rule in ("median", "nearest"), "rule is median or nearest.")
        rate = between(beta, "beta")
        weights = self._weights(y)
        lengths = np.linalg.norm(self.planes, axis=1) * float(np.linalg.norm(weights))
        cosines: Floats = self.planes @ weights / lengths
        if rule == "nearest" or not len(self.projections):
            return self._at(_nearest(cosines), cosines, rate)
        size = len(self.net)
        own = Net(self.net, 0.0)
        places = [own.nearest((weights @ matrix)[None, :])[0] for matrix in self.projections]
        answers = [self._at(i * size + int(place[0]), cosines, rate) for i, place in enumerate(places)]
        return sorted(answers, key=lambda each: each.value)[(len(answers) - 1) // 2]

    def scaled(self, weights: Mapping[str, float]) -> Floats:
        """A direction in the scaled coordinates, from weights in the columns' own units."""
        checked(isinstance(weights, Mapping), 'Give weights by name: {"age": 2.0}.')
        return self._weights({name: weight * self._half(name) for name, weight in weights.items()})

    def _half(self, name: str) -> float:
        checked(name in self.names, f"{str(name)[:80]!r} is none of the columns {', '.join(self.names)}.")
        return self.half[self.names.index(name)]

    def _weights(self, y: Sequence[float] | Mapping[str, float]) -> Floats:
        if isinstance(y, Mapping):
            for name in y:
                self._half(name)
            y = [float(y.get(name, 0.0)) for name in self.names]
        return direction(y, len(self.names), "y")

    def _at(self, place: int, cosines: Floats, beta: float) -> HalfspaceFraction:
        """The fraction of one published plane's side, or of the other side where that is the nearer one."""
        count, n = float(self.counts[place]), self.rows
        each = beta / (len(self.counts) + 1)
        off = float(self.noise.law.accuracy(each) * self.noise.step)
        blur = float(self.size_noise.law.accuracy(each) * self.size_noise.step)
        most = min(self.size + blur, math.inf if self.declared is None else self.declared)
        value = min(max(count / n, 0.0), 1.0)
        low = max((count - off) / most, 0.0) if most > 0 else 0.0
        high = min((count + off) / (self.size - blur), 1.0) if self.size - blur > 0 else 1.0
        bound = min(max(value - low, high - value, 0.0), 1.0)
        cosine = float(cosines[place])
        distance = math.sqrt(max(1.0 - cosine**2, 0.0))
        opposite = cosine < 0
        return HalfspaceFraction(1.0 - value if opposite else value, bound, distance, opposite)

    def title(self) -> str:
        """One line for people."""
        return f"Halfspaces of {', '.join(self.names)}: {len(self.planes):,} counts"

    def tables(self) -> dict[str, pa.Table]:
        """The planes with their noisy counts and fractions; the net; the projections."""
        k, names = self.net.shape[1], [*(f"weight of {name}" for name in self.names), "count"]
        return {
            "planes": pa.table([pa.array(cells) for cells in (*self.planes.T, self.counts)], names=names),
            "net": pa.table({f"v{i + 1}": self.net[:, i] for i in range(k)}),
            "projections": pa.table({f"m{i + 1}": self.projections.reshape(-1, k)[:, i] for i in range(k)}),
        }

    def facts(self) -> dict[str, object]:
        """Columns, bounds, distance, and the noise."""
        return {
            "names": list(self.names),
            "middle": list(self.middle),
            "half": list(self.half),
            "g": self.g,
            "dimension": int(self.net.shape[1]),
            "noise": wire.to_json(self.noise),
            "size": self.size,
            "size_noise": wire.to_json(self.size_noise),
            "declared": self.declared,
            "notes": list(self.notes),
        }

    @classmethod
    def of(cls, paid: Paid, facts: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Self:
        """The release that was saved as these."""
        names = tuple(map(str, facts["names"]))
        noise, size_noise = (wire.from_json(facts[name]) for name in ("noise", "size_noise"))
        declared = facts["declared"]
        if not isinstance(noise, Noise) or not isinstance(size_noise, Noise):
            raise unreadable()
        planes, d, k = tables["planes"], len(names), int(facts["dimension"])
        vectors, matrices = _columns(tables["net"]), _columns(tables["projections"])
        if planes.num_columns != d + 1 or vectors.shape[1] != k or len(matrices) % d:
            raise unreadable()
        return cls(
            paid=paid,
            names=names,
            middle=tuple(map(float, facts["middle"])),
            half=tuple(map(float, facts["half"])),
            g=float(facts["g"]),
            net=vectors,
            projections=matrices.reshape(-1, d, k).astype(np.int64),
            planes=_columns(planes)[:, :d].astype(np.int64),
            counts=_columns(planes)[:, d],
            noise=noise,
            size=float(facts["size"]),
            size_noise=size_noise,
            declared=None if declared is None else int(declared),
            notes=tuple(map(str, facts["notes"])),
        )

    def charts(self) -> list[Chart]:
        """The fraction above the middle of each column."""
        found = [self.fraction({name: 1.0}, "nearest") for name in self.names]
        said = "; ".join(
            f"{name} at a distance of {each.distance:.3f}{', rows in the middle left out' if each.strict else ''}"
            for name, each in zip(self.names, found, strict=True)
        )
        noted = " ".join(self.notes)
        return [
            Chart(
                "Fraction of rows above the middle of a column's bounds",
                self.names,
                tuple(each.value for each in found),
                tuple(each.bound for each in found),
                f"Bars: 95% for all published counts at once. Nearest published halfspaces: {said}. {noted}",
            )
        ]


@shows_progress
@timed
def halfspaces(
    db: Oracle,
    columns: list[str],
    *,
    g: float | None = None,
    dimension: int | None = None,
    projections: int | None = None,
    queries: int | None = None,
    directions: list[list[float]] | None = None,
    accuracy: float = 0.1,
    beta: float = ERROR_RATE,
    spend: Loss | None = None,
    progress: Progress | None = None,
    timeout: float | None = None,  # noqa: ARG001 - `timed` reads it
) -> Halfspaces:
    """Publish counts of rows on one side of planes, so that the fraction of any halfspace can be read off.

    Columns are scaled by their declared bounds to [-1, 1]; the planes go through the middle. Up to 5 columns a net of
    all directions is asked; with more, nets of random projections. Rows that miss one of the columns are on no side:
    fractions are of the complete rows, whose number is asked too.

    Args:
        db: The database, or any Oracle.
        columns: Names of numbers and truth values.
        g: The distance (sine of an angle) of the halfspaces that may stand for the asked one: 0.3 up to three columns,
            else 0.6.
        dimension: Of the projections; the number of columns for none. Left open, 2 from six columns on.
        projections: How many; left open, as many as `queries` need, or 25.
        queries: How many directions will be asked for: 8 ln(queries/beta) projections, of which 25 are enough for one.
        directions: The normals to ask instead of a net, where the halfspaces of interest are known.
        accuracy: How far a published count may be off, as a fraction of the rows. Fewer rows than that needs are
            refused where a size is declared, and told in `notes` where it is not.
        beta: With what probability some count may be further off, and for how many queries the median may fail.
        spend: What it may cost: Epsilon for Laplace noise, Rho or EpsilonDelta for Gaussian.
        progress: Called with the asks done and planned.
        timeout: For how many seconds it may go on; what was charged by then stays charged.

    Privacy: one question, the spend. A row is on the asked side of at most all N planes: sensitivity N in L1, sqrt(N)
        in L2, under every relation [X1]; the number of complete rows is one count more (SR6).
    Accuracy: every published fraction is within `bound` of the truth, all at once but for beta. Without projections
        each y is answered by a halfspace at a distance of at most g, so the release is (bound, beta, g)-useful [S3.23].
        With them the median is over the projections [S3.26]: if each is good for y with probability 3/4, it fails for
        one of q queries with probability q exp(-m/8) (E36). That they are good is proved from thousands of dimensions
        on [S3.25] and measured in the guide; the distance of the halfspace used is told with each answer.
    Source: [S3.22], [S3.23], [S3.26], errata E33, E34, E36, E37; docs/theory/halfspaces.md.

    Raises:
        QuestionError: `too-few-rows`: the declared size is smaller than the message says is needed. `bad-parameter`,
            `unknown-column`, `wrong-kind`, `too-large`; nothing is spent.
        BudgetExceeded: `budget-exceeded`; nothing is spent.
    """
    spending = SpendPlan(db, spend, progress)
    near, rate = between(accuracy, "accuracy"), between(beta, "beta")
    checked(g is None or 0.01 <= number(g) < 1, "g lies from 0.01 to below 1.")
    scales = scales_of(columns, spending.facts.schema)
    d = len(scales)
    width = _dimension(dimension, d)
    several = _projections(projections, queries, rate, width, d)
    far = number(g) if g is not None else (0.3 if max(d, width) <= MAX_FINE_COLUMNS else 0.6)
    if directions is not None:
        instead = (g, dimension, projections, queries)
        checked(all(each is None for each in instead), "directions take the place of a net.")
        checked(isinstance(directions, list) and bool(directions), "directions is a list of lists of weights.")
        vectors = np.array([direction(each, d, "A direction") for each in directions])
        matrices = np.zeros((0, d, d), dtype=np.int64)
    else:
        # Without a projection nothing but the net is between a direction and its answer: the whole distance is its.
        vectors = net(width, (far if width == d else 0.75 * far) - ROUNDING_SINE).vectors
        matrices = np.zeros((0, d, d), dtype=np.int64) if width == d else signs(several, d, width)
    normals = vectors if not len(matrices) else np.concatenate([vectors @ matrix.T for matrix in matrices])
    planes = planes_of(normals)
    question = sides(scales, planes)
    enough(spending, spending.foresee(question), near, rate)
    spending.plan(1, question)
    released = spending.one(question).released
    values = released.values()[0]
    size, noise = float(values[0]), released.noise[-1]
    notes = (told(noise, size, near, rate), *([_promised(matrices, far, rate)] if len(matrices) else []))
    return Halfspaces(
        paid=Paid.by(spending),
        names=tuple(columns),
        middle=tuple(float(scale[1]) for scale in scales),
        half=tuple(float(scale[2]) for scale in scales),
        g=far,
        net=vectors,
        projections=matrices,
        planes=planes,
        counts=values[-len(planes) :],
        noise=noise,
        size=size,
        size_noise=released.noise[0],
        declared=spending.facts.size,
        notes=notes,
    )


def _dimension(dimension: int | None, d: int) -> int:
    if dimension is None:
        return d if d <= MAX_NET_COLUMNS else 2
    return whole(dimension, "dimension", min(2, d), d)


def _projections(projections: int | None, queries: int | None, beta: float, width: int, d: int) -> int:
    """As many as are wished for, or as a median over them needs for so many queries (E36)."""
    if queries is not None:
        checked(projections is None, "Give projections, or the queries that set their number.")
        needed = projections_for(beta, queries=queries)
        checked(
            needed <= MAX_PROJECTIONS or width == d,
            f"So many queries need {needed:,} projections, more than {MAX_PROJECTIONS:,}.",
        )
        return needed
    if projections is None:
        return USUAL_PROJECTIONS
    found = whole(projections, "projections", 1, MAX_PROJECTIONS)
    checked(width < d or found == 1, "Without a smaller dimension there is nothing to project.")
    return found


def _promised(matrices: Integers, g: float, beta: float) -> str:
    """What the theorems say of a median over these projections, and what they do not."""
    several, _, dimension = matrices.shape
    queries = math.floor(beta * math.exp(several / 8.0) + TIED_COSINES)
    failure, enough_of = min(projection_failure(g, dimension), 1.0), projection_dimension(g, UNLIKELY)
    return (
        f"The median of {several:,} projections is for {queries:,} queries at {1 - beta:.4g}, were each good "
        f"for each of them with probability 3/4. Theorem 5 lets one of {dimension} dimensions fail with probability "
        f"{failure:.2g}, and needs {enough_of:,} dimensions for {UNLIKELY / 4:g}: "
        "what fewer give is measured, not proved."
    )


def _nearest(cosines: Floats) -> int:
    """The plane at the smallest distance; of several the one on the asked side, whose count has the rows on it."""
    far = np.abs(cosines)
    return int(np.where(far >= far.max() - TIED_COSINES, cosines, -2.0).argmax())


def _columns(table: pa.Table) -> Floats:
    if not table.num_rows:
        return np.zeros((0, table.num_columns))
    return np.stack([np.asarray(column.to_numpy(), dtype=np.float64) for column in table.columns], axis=1)
