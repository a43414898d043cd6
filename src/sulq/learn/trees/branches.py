"""How an attribute may divide rows, and how much a division tells about the label.

With N_jk the rows of branch j and label k, N_j those of branch j: sum_jk N_jk ln(N_jk/N_j) = -|T| H(L|A), the
larger the better (E15: the paper prints it as plus |T| H(L|A)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from sulq.language.attribute import Attribute
from sulq.language.kinds import Floats, Integers

Splits = Literal["auto", "multiway", "binary"]
SPLITS: Final = ("auto", "multiway", "binary")


@dataclass(frozen=True, slots=True)
class Options:
    """The ways one attribute may divide rows: for each way the branch of every code."""

    branches: Integers  # ways x codes

    @property
    def several(self) -> bool:
        """Whether there is anything to choose from or at least to divide."""
        return len(self.branches) > 0

    def gather(self, table: Floats) -> Floats:
        """Tables (..., codes, labels) added up by branch: (..., ways, branches, labels)."""
        ends = np.arange(self.branches.max(initial=0) + 1)
        member = (self.branches[:, None, :] == ends[None, :, None]).astype(float)
        found: Floats = np.einsum("wbc,...cl->...wbl", member, table)
        return found

    @property
    def sizes(self) -> Integers:
        """How many codes each branch of each way has."""
        ends = np.arange(self.branches.max(initial=0) + 1)
        found: Integers = (self.branches[:, None, :] == ends[None, :, None]).sum(axis=2)
        return found


def options(attribute: Attribute, splits: Splits) -> Options:
    """An attribute's ways: a branch for each code; a threshold between codes that have an order; one code or not.

    "multiway" is the textbook's: every code has its branch. "binary": numbers are cut at a threshold, a category
    is one value or not that one. "auto": numbers are cut, categories have a branch for each value.
    """
    size = attribute.size
    codes = np.arange(size)
    if size < 2:
        return Options(np.zeros((0, size), dtype=np.int64))
    if splits == "multiway" or (splits == "auto" and not attribute.ordered) or size == 2:
        return Options(codes[None, :])
    if attribute.ordered:
        return Options((codes[None, :] > codes[:-1, None]).astype(np.int64))
    return Options((codes[None, :] != codes[:, None]).astype(np.int64))


def magnitude(variance: float, beta: float) -> float:
    """How far normal noise of a variance goes, except with probability beta: sqrt(2 R ln(1/beta)).

    E17: the paper's sqrt(R ln(1/beta)) is passed with probability about sqrt(beta).
    """
    return math.sqrt(2 * variance * math.log(1 / beta))


def gamma(labels: int, tolerance: float) -> float:
    """How many noise magnitudes a node needs for Lemma 2's tolerance: x ln x with x = t^2/tolerance.

    E18: with the paper's x alone the skipped terms may add up to more than the tolerance.
    """
    x = labels**2 / tolerance
    return x * max(1.0, math.log(x))


def value_of(cells: Floats, sizes: Floats, floor: Floats | float) -> Floats:
    """sum_jk N_jk ln(N_jk/N_j) over the last two axes, without terms where either count is below the floor [S0.18].

    A floor is one number, or one for each branch.
    """
    least = np.asarray(floor)[..., None]
    counted = (cells >= least) & (sizes[..., None] >= least) & (cells > 0) & (sizes[..., None] > 0)
    with np.errstate(all="ignore"):
        terms = np.where(counted, cells * np.log(cells / sizes[..., None]), 0.0)
    found: Floats = terms.sum(axis=(-2, -1))
    return found


def gain_of(cells: Floats, floor: Floats) -> Floats:
    """How much more a division says than none, in rows times nats; branches below their floor say nothing.

    Two branches of which one is below its floor are no division: minus infinity.
    """
    held = np.maximum(cells, 0)
    sizes = held.sum(axis=-1)
    seen = sizes > floor
    together = held.sum(axis=-2)
    whole = together.sum(axis=-1, keepdims=True)
    with np.errstate(all="ignore"):
        parts = np.where(together > 0, together * np.log(together / whole), 0.0).sum(axis=-1)  # -|T| H(L)
        per_row = np.where(whole[..., 0] > 0, parts / whole[..., 0], 0.0)
    kept = value_of(np.where(seen[..., None], held, 0.0), sizes, 0.0)
    gain = kept + np.where(seen, 0.0, sizes).sum(axis=-1) * per_row - parts
    enough = seen.all(axis=-1) if cells.shape[-2] == 2 else seen.sum(axis=-1) > 1
    found: Floats = np.where(enough, gain, -np.inf)
    return found
