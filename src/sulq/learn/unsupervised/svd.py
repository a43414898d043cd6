"""The best projection of rows, from a noisy matrix of products."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from sulq.answers.columns import Columns
from sulq.answers.spend_plan import Purse
from sulq.forms.parameters import checked, whole
from sulq.language.kinds import Floats
from sulq.language.question import Sums
from sulq.language.rowfn import Outer
from sulq.learn.base import Learner
from sulq.learn.features import Features
from sulq.learn.unsupervised.covariance import symmetric
from sulq.learn.unsupervised.space import Space, ball

WIDEST: Final = 1000  # components


def directions(matrix: Floats, k: int) -> tuple[Floats, Floats]:
    """All eigenvalues of a symmetric matrix, the largest first, and the directions of the first k as rows.

    Of the two signs of a direction the one that makes its largest coordinate positive is taken.
    """
    values, vectors = np.linalg.eigh(matrix)
    values, rows = values[::-1], vectors[:, ::-1].T[:k]
    largest = np.abs(rows).argmax(axis=1)
    signs = np.sign(rows[np.arange(len(rows)), largest])
    return values, np.ascontiguousarray(rows * signs[:, None])


def radius_of(value: object) -> float | None:
    """A radius as part of the half-diagonal; None: left to the learner."""
    good = value is None or (isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0)
    checked(good, "radius is a number above 0, as part of the half-diagonal of the declared bounds.")
    return None if value is None else float(value)  # type: ignore[arg-type]


class Projection(Learner):
    """What SVD and PCA share: directions to project ordinary rows on."""

    n_components: int
    scale: bool
    components_: Floats
    mean_: Floats
    _features: Features

    def _space(self, X: Columns) -> tuple[Space, int]:
        checked(isinstance(self.scale, bool), "scale is True or False.")
        self._features = Features.of(X)
        return Space(self._features, scale=self.scale), self._dimension(self._features)

    def _dimension(self, features: Features) -> int:
        k = whole(self.n_components, "n_components", 1, WIDEST)
        checked(k <= len(features), f"The columns make {len(features)} coordinates; n_components is at most that.")
        return k

    def transform(self, X: object) -> Floats:
        """Rows of an ordinary array or frame, as coordinates along the components."""
        self._ready()
        found: Floats = (Space(self._features, scale=self.scale).transform(X) - self.mean_) @ self.components_.T
        return found

    def inverse_transform(self, X: object) -> Floats:
        """Points of the whole space from coordinates along the components."""
        self._ready()
        found: Floats = np.asarray(X, dtype=np.float64) @ self.components_ + self.mean_
        return found


@dataclass(eq=False, repr=False)
class SVD(Projection):
    """The directions that hold most of the rows, as they are, without centring.

    One question: the products of the columns two by two, each summed over all rows with one noise for both
    its places. The directions are the eigenvectors of the largest eigenvalues of that matrix.

    Privacy: the spend's; the model is computed from one noisy answer.
    Accuracy: with E the noise, tr(V'A'AV) is at least the sum of the k largest eigenvalues of A'A less 2k||E||, and
    ||E|| is about 2 sqrt(d) s for independent noise of deviation s [S0.10]. Without noise it is the textbook's.
    Source: BDMN05, section 4.1; with a radius as DTTZ14.

    Args:
        n_components: How many directions.
        radius: Rows farther from zero are shortened to this part of the largest possible norm; left open, none is.
        scale: Whether each column is scaled by its declared bounds to [-1, 1]; else in its own units.

    Learned: `components_`, a row a direction, in the columns' units; `singular_values_`; `eigenvalues_`, all of the
    noisy matrix's, which may be negative where noise is all there is; `noise_`, the deviation of the noise in the
    matrix. Under a SubLinear budget: d(d+1)/2 queries.
    """

    n_components: int = 2
    _: KW_ONLY
    radius: float | None = None
    scale: bool = False

    def _fit(self, X: Columns, y: Columns | None, purse: Purse) -> None:
        space, k = self._space(X)
        radius = radius_of(self.radius)
        zero = np.zeros(len(space))
        away = space.away(zero)
        reach = np.inf if radius is None else radius * float(np.linalg.norm(away))
        question = Sums((Outer(ball(space.vector(zero), reach, away)),))
        purse.foresee(question)  # what the language refuses is refused before anything is spent
        purse.plan(1, question)
        released = purse.one(question, Fraction(1)).released
        self._directions(symmetric(released.values()[0], len(space)), k)
        self.noise_ = float(released.deviations().max())
        self.mean_ = zero

    def _directions(self, matrix: Floats, k: int) -> None:
        self.eigenvalues_, self.components_ = directions(matrix, k)
        self.singular_values_ = np.sqrt(np.maximum(self.eigenvalues_[:k], 0.0))
