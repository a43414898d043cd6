"""Functions that rest on the owner's word: named in the owner's own process, shown to analysts as declared (SR5)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sulq.errors import SetupError

_PLACE: Final = re.compile(r"[A-Za-z_][\w.]{0,199}:[A-Za-z_]\w{0,99}")
_NAME: Final = re.compile(r"[A-Za-z_]\w{0,99}")
_CLEARLY: Final = 1e-12  # an equality must not pass for more by the rounding of a decimal (E41)
DECLARED: Final = "(declared by the owner)"
CERTIFIES: Final[Mapping[str, str]] = {
    "reads": "the largest probability with which the sampling algorithm looks at a row",
    "within": "how near it comes to the function (in L1), in the function's own unit",
    "probability": "how often at least it does, for every table; above (1 + reads)/2",
    "low": "the lowest value; what is below counts as this",
    "high": "the highest value; what is above counts as this",
    "columns": "the columns the function is certified for, in the order it reads them",
}
"""What a certificate says, a line for each of its fields; the configuration's reference is made of these."""


def sensitivity_from_sampler(reads: float, within: float, probability: float) -> float:
    """How far one row moves a function that a sampling algorithm finds: 2 * within, or a refusal [S4.13].

    The algorithm looks at each row with probability at most `reads` and, whatever the rows are, comes `within`
    of the function (in L1) with probability at least `probability`, which must be above (1 + reads)/2.

    Privacy: at exactly (1 + reads)/2 the claim is false, so that is refused (E41). Nobody can measure whether there is
    such an algorithm: whoever calls this asserts it.
    Source: DMNS06, Lemma 1, with a strict inequality; proof and counterexample in docs/theory/holistic.md.
    """
    numbers = (reads, within, probability)
    if any(isinstance(n, bool) or not isinstance(n, (int, float)) or not math.isfinite(n) for n in numbers):
        raise SetupError("bad-certificate", "A certificate is made of three finite numbers.")
    if not 0 <= reads < 1 or not 0 <= probability <= 1 or within <= 0:
        raise SetupError("bad-certificate", "reads and probability lie between 0 and 1, and within is positive.")
    if not probability - (1 + reads) / 2 > _CLEARLY:
        raise SetupError(
            "bad-certificate",
            f"The algorithm must succeed with probability above (1 + reads)/2 = {(1 + reads) / 2:g}.",
        )
    return 2 * within


@dataclass(frozen=True, slots=True)
class Certificate:
    """The owner's word that a sampling algorithm finds a function of some columns [S4.13].

    `reads`, `within`, `probability`: as `sensitivity_from_sampler` has them, for every table of these columns, cells
    missing or not. `low`, `high`: values are cut off here. `columns`: those it was certified for, in order; it is
    certified for no others.
    """

    reads: float | int
    within: float | int
    probability: float | int
    low: float | int
    high: float | int
    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        sensitivity_from_sampler(self.reads, self.within, self.probability)
        ends = (self.low, self.high)
        if any(isinstance(n, bool) or not isinstance(n, (int, float)) or not abs(n) <= 10.0**15 for n in ends):
            raise SetupError("bad-certificate", "A certified function lies between two finite numbers.")
        if not self.low < self.high:
            raise SetupError("bad-certificate", "A certified function lies between two numbers, the lower one first.")
        names = self.columns
        several = isinstance(names, (tuple, list)) and names and all(isinstance(n, str) and n for n in names)
        if not several or len(set(names)) != len(names):
            raise SetupError("bad-certificate", 'A certificate names its columns: columns=("income",).')
        object.__setattr__(self, "columns", tuple(names))

    @property
    def sensitivity(self) -> float:
        """How far one row moves the function."""
        return sensitivity_from_sampler(self.reads, self.within, self.probability)


@dataclass(frozen=True, slots=True)
class Estimator:
    """A function of the owner's: "package:function" under a name; a statistic by its certificate, if it has one.

    Privacy: it must be a function of its argument alone. One that remembers or counts its calls would let a person
    move other blocks than their own.
    """

    name: str
    function: str
    certificate: Certificate | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise SetupError("bad-declaration", "An estimator has a name of letters, digits and _.")
        if not isinstance(self.function, str) or not _PLACE.fullmatch(self.function):
            raise SetupError("bad-declaration", f'The estimator {self.name!r} is named "package:function".')
        if self.certificate is not None and not isinstance(self.certificate, Certificate):
            raise SetupError("bad-certificate", "A certificate is a sulq.Certificate.")

    def __str__(self) -> str:
        known = self.certificate
        of = "" if known is None else f" of {', '.join(known.columns)}, moved by a row {known.sensitivity:g} at most"
        return f"{self.name}: {self.function}{of} {DECLARED}"
