"""Choosing a candidate by its score: permute-and-flip for pure epsilon, exponential for zero-concentrated loss."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from sulq.kernel import coins
from sulq.kernel.arrays import Integers
from sulq.kernel.laws import ExponentialLaw, FlipLaw
from sulq.kernel.mechanisms._release import chosen
from sulq.kernel.private import Private

_AT_ONCE: Final = 2**20  # coins


@dataclass(frozen=True, slots=True)
class PermuteAndFlip:
    """Candidates in random order, each flipping a coin of bias exp(-gap/scale); the first heads is chosen.

    Privacy: let one person's rows move the scores of choice g by a span of D_g, the
    largest rise plus the largest fall. The odds of any outcome of choice g change by
    at most e^(D_g/scale), those of all by e^(D/scale), D the sum of the D_g: epsilon =
    D/scale [MS20; docs/theory/choose.md], rho = epsilon^2/2 and no better:
    not epsilon^2/8 (SR4).
    Accuracy: P(score <= best - scale*(ln m + s)) <= e^-s for m candidates, as the exponential choice or better [MS20].
    Source: docs/theory/choose.md; sampled from exact coins, all flipped at once and one of the heads drawn.
    """

    law: FlipLaw

    def epsilon(self, sensitivity: Fraction) -> Fraction:
        """Exact pure loss for spans that add up to this."""
        return sensitivity / self.law.scale

    def rho(self, sensitivity: Fraction) -> Fraction:
        """Zero-concentrated loss for spans that add up to this."""
        return self.epsilon(sensitivity) ** 2 / 2

    def release(self, exact: Private[Integers]) -> Integers:
        """Choose a candidate for each row of exact scores."""
        return chosen(exact, self._pick)

    def _pick(self, scores: Integers) -> Integers:
        rows = max(1, _AT_ONCE // scores.shape[1])
        parts = [self._flipped(scores[i : i + rows]) for i in range(0, len(scores), rows)]
        return np.concatenate([np.empty(0, dtype=np.int64), *parts])

    def _flipped(self, scores: Integers) -> Integers:
        """In a random order the first heads is a uniform one of all heads; the best candidate's coin has no tails."""
        gaps = scores.max(axis=1, keepdims=True) - scores
        up = coins.heads(gaps.ravel(), self.law.scale).reshape(gaps.shape)
        count = np.cumsum(up, axis=1, dtype=np.int64)
        place = coins.below(count[:, -1])
        first: Integers = np.argmax(count > place[:, None], axis=1).astype(np.int64)
        return first


@dataclass(frozen=True, slots=True)
class Exponential:
    """A candidate with probability proportional to exp(+score/scale): likelier the higher its score (E29).

    Privacy: let one person's rows move the scores of choice g by a span of D_g. The
    log-odds of the outcomes of choice g change within an interval of length
    D_g/scale, so it loses rho = (D_g/scale)^2/8 [CR21, DR19]; all choices together D2/(8 scale^2),
    D2 the sum of the squares [S3.9].
    Accuracy: P(score <= best - scale*(ln m + s)) <= e^-s for m candidates [S3.9].
    Source: docs/theory/choose.md; sampled by proposing uniform candidates to exact coins.
    """

    law: ExponentialLaw

    def epsilon(self, sensitivity: Fraction) -> Fraction | None:
        """A pure loss holds, but the sum of squared spans does not tell it; it is not claimed."""
        return None if sensitivity else Fraction(0)

    def rho(self, sensitivity: Fraction) -> Fraction:
        """Zero-concentrated loss for spans whose squares add up to this."""
        return sensitivity / (8 * self.law.scale**2)

    def release(self, exact: Private[Integers]) -> Integers:
        """Choose a candidate for each row of exact scores."""
        return chosen(exact, lambda scores: proposed(scores, self.law.scale))


def proposed(scores: Integers, scale: Fraction) -> Integers:
    """Of each row a candidate with probability proportional to exp(score/scale), exactly.

    Uniform candidates are proposed until a coin of bias exp(-gap/scale) is heads: m times or fewer, on average.
    """
    gaps = scores.max(axis=1, keepdims=True) - scores
    found = np.full(len(scores), -1, dtype=np.int64)
    open_rows = np.arange(len(scores))
    while open_rows.size:
        rows = open_rows[:_AT_ONCE]
        tries = max(1, min(2 * scores.shape[1], _AT_ONCE // len(rows)))
        tried = coins.below(np.full(len(rows) * tries, scores.shape[1])).reshape(len(rows), tries)
        up = coins.heads(gaps[rows[:, None], tried].ravel(), scale).reshape(tried.shape)
        first = np.argmax(up, axis=1)
        hit = up[np.arange(len(rows)), first]
        found[rows[hit]] = tried[np.arange(len(rows)), first][hit]
        open_rows = open_rows[found[open_rows] < 0]
    return found
