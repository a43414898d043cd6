"""The papers' sizes for halfspaces, with their errata: how many dimensions, projections and rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Final

import numpy as np

from sulq.errors import QuestionError
from sulq.forms.parameters import between, checked, whole
from sulq.language.kinds import Integers
from sulq.language.privacy import Epsilon, EpsilonDelta, Loss, Rho

LARGEST: Final = 10**15


def projection_failure(g: float, dimension: int) -> float:
    """With what probability, at most, a random projection changes a cosine by g/4 or more [S3.25].

    2 exp(-((g/16)^2 - (g/16)^3) k/4) (Johnson and Lindenstrauss); at dimensions that have a net it is no bound at all.
    """
    return 2.0 * math.exp(-_room(g) * whole(dimension, "dimension", 1, LARGEST) / 4.0)


def projection_dimension(g: float, failure: float) -> int:
    """The dimension at which that is a quarter of `failure`: 4 ln(8/failure)/((g/16)^2 - (g/16)^3) [S3.25]."""
    return math.ceil(4.0 * math.log(8.0 / between(failure, "failure")) / _room(g))


def _room(g: float) -> float:
    part = between(g, "g") / 16
    return part**2 - part**3


def projections_for(beta: float, *, queries: int | None = None, bits: int | None = None, columns: int = 1) -> int:
    """How many projections a median over them needs: 8 ln(q/beta) for q intended queries [S3.26].

    For all directions of `bits` bits a coordinate, of which there are 2^(bd) [S3.24], 8 (ln(1/beta) + bd ln 2): the
    paper's ln(bd) is too small for a union bound over them (E36). Directions are brought there by `discretise`.

    Args:
        beta: With what probability the median may fail for one of them, if each projection is good for each with
            probability 3/4.
        queries: How many directions will be asked for.
        bits: Of a coordinate, where any direction may be.
        columns: How many coordinates.

    Raises:
        QuestionError: `bad-parameter`: a number out of range, or both queries and bits.
    """
    rate = between(beta, "beta")
    checked((queries is None) != (bits is None), "Give the number of queries, or the bits of a coordinate.")
    if queries is not None:
        return math.ceil(8.0 * math.log(whole(queries, "queries", 1, LARGEST) / rate))
    several = whole(bits, "bits", 1, 64) * whole(columns, "columns", 1, LARGEST)
    return math.ceil(8.0 * (math.log(1.0 / rate) + several * math.log(2.0)))


def discretise(y: Sequence[float], bits: int) -> Integers:
    """A direction with each coordinate in so many bits, as whole numbers from -2^(b-1) to 2^(b-1) - 1 [S3.24]."""
    try:
        values = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.array(math.nan)
    checked(values.ndim == 1 and bool(np.isfinite(values).all()), "A direction is a finite weight for each column.")
    top = float(np.abs(values).max(initial=0.0)) or 1.0
    half = 2 ** (whole(bits, "bits", 1, 53) - 1)
    found: Integers = np.clip(np.rint(values / top * half), -half, half - 1).astype(np.int64)
    return found


def halfspace_n(directions: int, accuracy: float = 0.1, beta: float = 0.05, *, spend: Loss) -> int:
    """How many rows put every published count within `accuracy` times the rows, all at once but for probability beta.

    Of N counts at Epsilon(a): N ln(N/beta)/(a accuracy) (E37: the numerator that Theorem 6 prints is a sum, too small
    as soon as ln(N/beta) exceeds 1/accuracy). At Rho(r): sqrt(N/(2r)) z/accuracy, z the normal quantile of
    1 - beta/(2N). One row a person; the number of complete rows is one count more. It is noisy too, so that the bound
    of a fraction may be up to about twice `accuracy`.

    Args:
        directions: N, the counts asked: projections times directions of a net.
        accuracy: How far a count may be off, as a fraction of the rows.
        beta: With what probability one of them may be further off.
        spend: What the counts may cost together.

    Raises:
        QuestionError: `bad-parameter`: a number out of range.
    """
    count, far, rate = whole(directions, "directions", 1, LARGEST), between(accuracy, "accuracy"), between(beta, "beta")
    if isinstance(spend, Epsilon):
        return math.ceil(count * math.log(count / rate) / (float(spend.exact) * far))
    if not isinstance(spend, (Rho, EpsilonDelta)):
        raise QuestionError("bad-loss", "spend is a loss such as Epsilon(1) or Rho(0.05).")
    rho = float(spend.rho)
    tail = -NormalDist().inv_cdf(rate / (2 * count))
    return math.ceil(math.sqrt(count / (2 * rho)) * tail / far)
