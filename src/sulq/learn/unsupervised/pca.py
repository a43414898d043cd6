"""Principal components from noisy moments."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Literal

import numpy as np

from sulq.answers.columns import Columns
from sulq.answers.spend_plan import Purse
from sulq.forms.parameters import checked
from sulq.learn.unsupervised.covariance import VERSIONS, Moments, Task
from sulq.learn.unsupervised.svd import Projection, directions, radius_of

Version = Literal["auto", "centred", "midpoint", "0", "1"]


@dataclass(eq=False, repr=False)
class PCA(Projection):
    """The directions along which the rows vary most.

    Two questions. The first asks for the number of rows, their mean and their spread, roughly; the second for the
    products of the columns two by two about that mean, of rows shortened to a ball around it, and what is left of
    the mean. Directions are eigenvectors of the largest eigenvalues of the resulting covariance matrix.

    Privacy: the spend's; the model is computed from noisy sums.
    Accuracy: as for SVD, with E = noise/n. Shortening rows keeps the directions of any distribution whose level sets
    are ellipsoids about its mean, so a small ball costs little and takes its noise down by the square of its radius.
    Where noise is small beside the spread no row is shortened, and without noise the result is the textbook's.
    Source: BDMN05, section 4.1 (S0.11) and Dwork05 (S1.9); the ball and one noise for both places as in DTTZ14.

    Spend: a quarter for the first question (3:17:5 for number, mean and spread), of the rest a tenth for the mean
    and nine tenths for the products. The radius is a fifth of the half-diagonal, or as far as the noise stays within a
    hundredth of the spread. Where noise would drown the matrix, the columns of the narrowest bounds are left out.

    Args:
        n_components: How many directions.
        version: "centred" as above; "midpoint" one question about the middle of the bounds; "0" and "1" as in the
            papers, the mean first or raw moments; "auto" is "centred", under a SubLinear budget "0".
        radius: Rows farther from the centre are shortened to this part of the half-diagonal; left open, by rule.
        scale: Whether each column is scaled by its declared bounds to [-1, 1]; else in its own units.

    Learned: `components_`, `explained_variance_`, `explained_variance_ratio_`, `singular_values_`, `mean_`; `count_`,
    the noisy number of rows; `covariance_`, the noisy matrix; `eigenvalues_`, all of its eigenvalues, which may be
    negative where noise is all there is; `noise_`, the deviation of the noise in it; `radius_`.
    """

    n_components: int = 2
    _: KW_ONLY
    version: Version = "auto"
    radius: float | None = None
    scale: bool = False

    def _fit(self, X: Columns, y: Columns | None, purse: Purse) -> None:
        space, k = self._space(X)
        radius = radius_of(self.radius)
        checked(self.version in VERSIONS or self.version == "auto", f"version is auto or {', '.join(VERSIONS)}.")
        version = self.version if self.version != "auto" else "0" if purse.sublinear else "centred"
        self._learn(VERSIONS[version](Task(space, purse, k, radius)), k)

    def _learn(self, found: Moments, k: int) -> None:
        kept = np.ix_(found.keep, found.keep)
        values, rows = directions(found.matrix[kept] * found.scale, k)
        self.components_ = np.zeros((k, len(found.mean)))
        self.components_[:, found.keep] = rows
        self.mean_ = found.mean
        self.count_ = found.count
        self.covariance_ = found.matrix * found.scale
        self.eigenvalues_ = values
        self.explained_variance_ = values[:k]
        self.explained_variance_ratio_ = values[:k] / max(float(np.maximum(values, 0.0).sum()), 1e-300)
        self.singular_values_ = np.sqrt(np.maximum(values[:k], 0.0) * found.count)
        self.noise_ = found.noise * found.scale
        self.radius_ = found.radius
