"""What an owner declares of functions of a table: what rests on the owner's word, and in what words (SR5).

A function is named "package:function" and runs where the rows are. Analysts choose it by its name; the ledger keeps
the declaration, and plans, answers and facts say that it is the owner's.
Source: docs/theory/holistic.md.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from sulq.errors import SetupError
from sulq.language.kinds import native
from sulq.language.rowfn import RowFn

_PLACE: Final = re.compile(r"[A-Za-z_][\w.]{0,199}:[A-Za-z_]\w{0,99}")
_NAME: Final = re.compile(r"[A-Za-z_]\w{0,99}")
_CLEARLY: Final = 1e-12  # an equality must not pass for more by the rounding of a decimal (E41)
MAX_CANDIDATES: Final = 1024
MAX_WEIGHT: Final = 2**20  # of all candidates together
MAX_DEPTH: Final = 20  # lists within lists of a candidate
MAX_WIDTH: Final = 4096  # numbers of one function
DECLARED: Final = "(declared by the owner)"
BOUNDS: Final[Mapping[str, str]] = {
    "low": "the lowest value; what is below counts as this",
    "high": "the highest value; what is above counts as this",
    "columns": "the columns the function is declared for, in the order it reads them",
}
CERTIFIES: Final[Mapping[str, str]] = {
    "reads": "the largest probability with which the sampling algorithm looks at a row",
    "within": "how near it comes to the function (in L1), in the function's own unit",
    "probability": "how often at least it does, for every table; above (1 + reads)/2",
}
"""What a certificate says beside the bounds, a line for each of its fields; the configuration's reference shows it."""


def sensitivity_from_sampler(reads: float, within: float, probability: float) -> float:
    """How far one row moves a function that a sampling algorithm finds: 2 * within, or a refusal [S4.13].

    The algorithm looks at each row with probability at most `reads` and, whatever the rows are, comes `within`
    of the function (in L1) with probability at least `probability`, which must be above (1 + reads)/2.

    Privacy: at exactly (1 + reads)/2 the claim is false, so that is refused (E41). Nobody can measure whether there is
    such an algorithm: whoever calls this asserts it.
    Source: DMNS06, Lemma 1, with a strict inequality; proof and counterexample in docs/theory/holistic.md.
    """
    reads, within, probability = map(native, (reads, within, probability))
    if not all(map(_number, (reads, within, probability))):
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
        _native(self)
        sensitivity_from_sampler(self.reads, self.within, self.probability)
        object.__setattr__(self, "columns", _bounded(self.low, self.high, self.columns))

    @property
    def sensitivity(self) -> float:
        """How far one row moves the function."""
        return sensitivity_from_sampler(self.reads, self.within, self.probability)

    def __str__(self) -> str:
        return f"of {', '.join(self.columns)}, moved by a row {self.sensitivity:g} at most"


@dataclass(frozen=True, slots=True)
class Stated:
    """The owner's word that one person moves a function of some columns by `sensitivity` at most [S4.27].

    A person with all their kept rows, as the data set's own unit and relation have it, whatever the table is: cells
    missing or not, rows few or none. The function gives `width` numbers between `low` and `high`, where they are cut
    off; one person moves them by so much together (in L1). `columns`: those it reads, in order.

    Privacy: nobody can prove it from outside. `sulq.audit.sensitivity` may refute it on small domains, and what that
    finds never lowers it.
    Source: DMNS06, Proposition 1; docs/theory/holistic.md.
    """

    sensitivity: float | int
    low: float | int
    high: float | int
    columns: tuple[str, ...]
    width: int = 1

    def __post_init__(self) -> None:
        _native(self)
        _moves(self.sensitivity)
        object.__setattr__(self, "columns", _bounded(self.low, self.high, self.columns))
        if type(self.width) is not int or not 1 <= self.width <= MAX_WIDTH:
            raise SetupError("bad-certificate", f"A function gives 1 to {MAX_WIDTH:,} numbers: width=1.")

    def __str__(self) -> str:
        numbers = "" if self.width == 1 else f", {self.width} numbers"
        return f"of {', '.join(self.columns)}{numbers}, moved by a person {self.sensitivity:g} at most"


@dataclass(frozen=True, slots=True)
class Utility:
    """Candidates that an owner lets analysts choose from, and how good each is for the rows [S3.31].

    `candidates`: strings, numbers, or lists of such, as trees are; or a row function for each name, whose sum is its
    utility: how far one person moves that, the kernel works out. Else a function gives a number for each candidate, in
    this order, between `low` and `high`, and `sensitivity` is the owner's word for the farthest that one person moves
    any of them. `weights`: a base measure, a positive whole number for each candidate; then the choice is made by the
    exponential mechanism for every spend, each candidate as likely as its weight says where all are equally good.

    Source: Dwork 2008, section 3.1; docs/theory/choose.md.
    """

    candidates: tuple[object, ...]
    sensitivity: float | int | None = None
    low: float | int = 0
    high: float | int = 0
    columns: tuple[str, ...] = ()
    weights: tuple[int, ...] = ()
    # Not compared, as row functions are not: a declaration is told from another by its digest.
    sums: tuple[RowFn, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        _native(self)
        given = self.candidates
        if isinstance(given, Mapping):
            object.__setattr__(self, "sums", tuple(given.values()))
        labels = tuple(map(_label, given)) if isinstance(given, (tuple, list, Mapping)) else ()
        if not 1 <= len(labels) <= MAX_CANDIDATES or len(set(labels)) != len(labels):
            why = f"A utility has 1 to {MAX_CANDIDATES:,} different candidates: texts, numbers, or lists of such."
            raise SetupError("bad-declaration", why)
        object.__setattr__(self, "candidates", labels)
        weights = self.weights
        weights = tuple(map(native, weights)) if isinstance(weights, (tuple, list)) else weights
        whole = isinstance(weights, tuple) and all(type(each) is int and each >= 1 for each in weights)
        if not whole or len(weights) not in (0, len(labels)) or sum(weights) > MAX_WEIGHT:
            why = f"weights are positive whole numbers, one a candidate, {MAX_WEIGHT:,} together at most."
            raise SetupError("bad-declaration", why)
        object.__setattr__(self, "weights", weights)
        if not self.sums:
            _moves(self.sensitivity)
            object.__setattr__(self, "columns", _bounded(self.low, self.high, self.columns))
        elif len(self.sums) != len(labels) or not all(isinstance(fn, RowFn) for fn in self.sums):
            raise SetupError("bad-declaration", "Each candidate has a row function: sulq.col(...) > 0.")
        elif self.sensitivity is not None or self.columns:
            raise SetupError("bad-declaration", "How far a sum of row functions moves is worked out; state nothing.")

    def __str__(self) -> str:
        said = f"a utility of {len(self.candidates)} candidates"
        said += ", weighted" if self.weights else ""
        if self.sums:
            return f"{said}, each a sum of a row function"
        return f"{said} by {', '.join(self.columns)}, each moved by a person {self.sensitivity:g} at most"


@dataclass(frozen=True, slots=True)
class Property:
    """A set of small tables that an owner has named: those of which a function says that they are in it [S4.28].

    Without `columns`, graphs: the function is given the truth matrix of which vertices are joined. With them, tables of
    at most `rows` rows of these columns, of exactly so many under replace_one, given as numbers in no order. The
    function is asked about every such table when the data is opened, and never sees the data. Under replace_one, where
    each row is a person, `rows` must be how many the data has; elsewhere its distance is half the rows to come or go.

    Privacy: how far a table is from the nearest one of a set moves by one for a row or an edge, whatever the set is
    [S4.11]; so a property's distance rests on no word about its sensitivity.
    Source: DMNS06, section 3.2; docs/theory/holistic.md.
    """

    columns: tuple[str, ...] = ()
    rows: int = 0

    def __post_init__(self) -> None:
        _native(self)
        columns = self.columns
        several = isinstance(columns, (tuple, list)) and all(isinstance(name, str) and name for name in columns)
        if not several or len(set(columns)) != len(columns):
            raise SetupError("bad-declaration", 'A property of tables names its columns: columns=("dose",), rows=5.')
        if type(self.rows) is not int or self.rows < 0 or (self.rows > 0) != bool(columns):
            raise SetupError("bad-declaration", "A property of tables has columns and rows, one of graphs neither.")
        object.__setattr__(self, "columns", tuple(columns))

    def __str__(self) -> str:
        return (
            f"a property of {self.rows} rows of {', '.join(self.columns)}" if self.columns else "a property of graphs"
        )


Declaration = Certificate | Stated | Utility | Property
DECLARATIONS: Final = (Certificate, Stated, Utility, Property)


@dataclass(frozen=True, slots=True)
class Estimator:
    """A function of the owner's: "package:function" under a name, and what the owner declares of it, if anything.

    Privacy: it must be a function of its argument alone. One that remembers or counts its calls would let a person
    move other blocks than their own.
    """

    name: str
    function: str
    certificate: Certificate | Stated | Utility | Property | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise SetupError("bad-declaration", "An estimator has a name of letters, digits and _.")
        told = self.certificate
        if told is not None and not isinstance(told, DECLARATIONS):
            names = ", ".join(f"sulq.{kind.__name__}" for kind in DECLARATIONS)
            raise SetupError("bad-certificate", f"A function is declared by one of {names}.")
        summed = isinstance(told, Utility) and bool(told.sums)
        if not isinstance(self.function, str) or (
            self.function != "" if summed else not _PLACE.fullmatch(self.function)
        ):
            raise SetupError("bad-declaration", f'The estimator {self.name!r} is named "package:function".')

    def __str__(self) -> str:
        return f"{self.name}: {' '.join(filter(None, (self.function, str(self.certificate or ''))))} {DECLARED}"


def _native(told: Certificate | Stated | Utility | Property) -> None:
    """Numbers and arrays of NumPy as Python has them: the ledger keeps a declaration as JSON."""
    for name in told.__match_args__:
        object.__setattr__(told, name, native(getattr(told, name)))


def _number(number: object) -> bool:
    return not isinstance(number, bool) and (
        isinstance(number, int) or (isinstance(number, float) and math.isfinite(number))
    )


def _moves(sensitivity: object) -> None:
    if not _number(sensitivity) or not 0 < sensitivity <= 10.0**15:  # type: ignore[operator]  # it is a number
        raise SetupError("bad-certificate", "A sensitivity is a positive number.")


def _bounded(low: object, high: object, names: tuple[str, ...]) -> tuple[str, ...]:
    """The columns of a function, once they and its bounds are looked at."""
    if not _number(low) or not _number(high) or not -(10.0**15) <= low < high <= 10.0**15:  # type: ignore[operator]
        why = "A function lies between two finite numbers, the lower one first: low=0, high=1."
        raise SetupError("bad-certificate", why)
    several = isinstance(names, (tuple, list)) and names and all(isinstance(name, str) and name for name in names)
    if not several or len(set(names)) != len(names):
        raise SetupError("bad-certificate", 'A declaration names its columns: columns=("income",).')
    return tuple(names)


def _label(label: object, depth: int = 0) -> object:
    """A candidate as it is kept: a text, a number, or a tuple of such."""
    label = native(label)
    if isinstance(label, (tuple, list)) and depth < MAX_DEPTH:
        return tuple(_label(each, depth + 1) for each in label)
    if isinstance(label, (str, bool)) or _number(label):
        return label
    raise SetupError("bad-declaration", "A candidate is a text, a number, or a list of such.")
