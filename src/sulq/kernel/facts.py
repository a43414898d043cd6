"""What certificates and prices follow from: facts of a dataset, whom an answer hides, what it costs, what is left."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, Final, Literal, Self, get_args

from sulq.errors import QuestionError, SetupError

Neighbors = Literal["add_remove", "replace_one", "zero_out"]

MAX_STORED_ROWS: Final = 2**40  # of a table; checked when its rows are kept
OWNER: Final = "o"  # the column that says whose a row is
OWNER_TYPE: Final = "BIGINT"  # in all tables: a cast to compare two might merge persons
HASH: Final = "h"  # the column of a person's public hash, one for all rows of a person
PLACE: Final = "p"  # the column of a row's public place
INTEGERS: Final = {"TINYINT": 7, "SMALLINT": 15, "INTEGER": 31, "BIGINT": 63}  # bits beside the sign


class Refused(Exception):
    """The kernel cannot prove a bound for this statement. The text is made of the statement and public facts alone."""


def require(holds: object, why: str) -> None:
    """Refuse, and say why, unless something holds."""
    if not holds:
        raise Refused(why)


@dataclass(frozen=True, slots=True)
class Column:
    """A stored column: its DuckDB type, the interval of its whole numbers, and whether cells may be missing."""

    type: str
    low: int | None = None
    high: int | None = None
    missing: bool = True


ANY_CELL: Final = {kind: Column(kind, -(2**bits), 2**bits - 1) for kind, bits in INTEGERS.items()} | {
    kind: Column(kind) for kind in ("BOOLEAN", "DATE", "DOUBLE", "FLOAT", "VARCHAR")
}  # of a source: all that its type allows


@dataclass(frozen=True, slots=True)
class Table:
    """A kept table, by the name statements use.

    `rows`: how many rows one person has at most; 0 where rows are public. `owned`: whether the column `o` names each
    row's person, after all others. `size`: how many rows there are at most. `unique`: a column without two equal
    values among a person's rows, or among public ones. What a table says here is checked when it is opened (keep.py).
    `source`: whether it is none yet, but a view of records as they are read, each of which is one person's only row.
    """

    name: tuple[str, ...]
    columns: tuple[tuple[str, Column], ...]
    rows: int
    owned: bool
    size: int = MAX_STORED_ROWS
    unique: str | None = None
    source: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """The kept tables and the relation between neighbours.

    `row_is_person`: no column names the person, so under replace_one a neighbour has as many rows.
    """

    tables: tuple[Table, ...]
    neighbors: Neighbors
    row_is_person: bool


NEIGHBORS: Final = ("add_remove", "replace_one", "zero_out")
Fold = Literal["case", "spelling"]
Number = int | float | Fraction | Decimal

LARGEST: Final = 1000  # an epsilon past this is no protection and surely a mistake
SMALLEST: Final = Fraction(1, 10**15)  # what is smaller is refused, not rounded to nothing
SMALLEST_DELTA: Final = Fraction(1, 10**300)  # logarithms of it are still ordinary doubles
GRAIN: Final = 10**18  # the ledger counts losses in whole units of 1/GRAIN, each rounded up (SR3)

_MARGIN: Final = 1e-12  # in the asker's disfavour: more than a conversion's few float operations are off


def conversion_cost(alpha: float, delta: float) -> float:
    """Cost c(alpha, delta) of reading a Renyi loss of order alpha as (epsilon, delta).

    Privacy: a mechanism of Renyi loss r at order alpha is (r + c, delta)-private with c = ln(1 - 1/alpha) -
    (ln delta + ln alpha)/(alpha - 1) [CKS20, Prop. 12]. Rounded up.
    """
    cost = math.log1p(-1.0 / alpha) - (math.log(delta) + math.log(alpha)) / (alpha - 1.0)
    return cost + _MARGIN * (1.0 + abs(cost))


def best_order(epsilon: float, delta: float) -> float:
    """Order alpha at which (epsilon, delta) holds the largest zero-concentrated loss: any alpha > 1 is sound."""
    low, high = math.log(1e-6), math.log(1e12)
    golden = (math.sqrt(5.0) - 1.0) / 2.0
    for _ in range(200):  # what is held has one peak: golden-section search by the logarithm of alpha - 1
        left, right = high - golden * (high - low), low + golden * (high - low)
        rises = _held(1.0 + math.exp(left), epsilon, delta) < _held(1.0 + math.exp(right), epsilon, delta)
        low, high = (left, high) if rises else (low, right)
    return 1.0 + math.exp((low + high) / 2.0)


def _held(alpha: float, epsilon: float, delta: float) -> float:
    return (epsilon - conversion_cost(alpha, delta)) / alpha


def rho_within(epsilon: float, delta: float) -> Fraction:
    """Largest rho known to be (epsilon, delta)-private: the inverse of the tight conversion."""
    return Fraction(max(_held(best_order(epsilon, delta), epsilon, delta), 0.0) * (1.0 - _MARGIN))


def converts(rho: Fraction, epsilon: Fraction | int, delta: Fraction) -> bool:
    """Whether a zero-concentrated loss is known to be (epsilon, delta)-private."""
    return 0 < epsilon <= LARGEST and SMALLEST_DELTA <= delta <= 1 and rho <= rho_within(float(epsilon), float(delta))


def exactly(value: object, name: str, *, smallest: Fraction = SMALLEST, largest: int = LARGEST) -> Fraction:
    """Read a positive number as the decimal it was written as, or refuse it.

    0.1 means one tenth, not the double next to it, so that ten asks of 0.1 fit a budget of 1. NaN, infinities, text,
    truth values and numbers too small to be counted are refused (T51, T52).
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, Fraction, Decimal)):
        raise QuestionError("bad-loss", f"{name} must be a number, not {type(value).__name__}.")
    if isinstance(value, float):
        value = Decimal(float.__repr__(value))  # a subclass (numpy.float64) may print itself otherwise
    # An exponent of a billion is a short text and an endless fraction.
    if isinstance(value, Decimal) and (not value.is_finite() or abs(value.adjusted()) > 400):
        raise QuestionError("bad-loss", f"{name} must be finite and not out of all measure.")
    number = Fraction(value)
    if number < smallest or number > largest:
        raise QuestionError("bad-loss", f"{name} must lie between {float(smallest):g} and {float(largest):g}.")
    return number


def plain(number: Fraction) -> str:
    """Write a fraction as the short decimal a person would."""
    return f"{float(number):.6g}"


class _Loss:
    """A loss by its numbers, in its fields' order; equal to another of the same kind and numbers."""

    __slots__ = ()
    __match_args__: tuple[str, ...]

    def __post_init__(self) -> None:
        self._numbers()

    @property
    def exact(self) -> Fraction:
        """The number as it was written, to be spent: never zero."""
        name = self.__match_args__[0]
        return exactly(getattr(self, name), name)

    @property
    def amount(self) -> Fraction:
        """The number as it was written; of what is spent or left in total, an exact fraction, it may be zero."""
        value: object = getattr(self, self.__match_args__[0])
        return value if isinstance(value, Fraction) and 0 <= value < SMALLEST else self.exact

    @classmethod
    def total(cls, *amounts: Fraction) -> Self:
        """What is spent or left altogether: zero is allowed here, and refused as a spend."""
        made: Callable[..., Self] = cls
        return made(*map(Fraction, amounts))

    def _numbers(self) -> tuple[Any, ...]:
        return (self.amount,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Loss) and type(other) is type(self) and self._numbers() == other._numbers()

    def __hash__(self) -> int:
        return hash((type(self), self._numbers()))

    def __str__(self) -> str:
        named = zip(self.__match_args__, self._numbers(), strict=True)
        return ", ".join(f"{name} {plain(number)}" for name, number in named)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(plain, self._numbers()))})"


class _Additive(_Loss):
    """A loss whose parts add up to it, and which grows with a power of a group's size."""

    __slots__ = ()
    _power: ClassVar[int] = 1

    def share(self, part: Number) -> Self:
        """This part of the loss, in whole units of the ledger, rounded down; shares compose back to it [S2.6]."""
        units = self.exact * Fraction(part) * GRAIN
        return self.total(exactly(Fraction(units.numerator // units.denominator, GRAIN), "a share"))

    def group(self, people: int) -> Self:
        """What a group of so many people together may lose."""
        if type(people) is not int or people < 1:
            raise QuestionError("bad-loss", "A group has one person or more.")
        return self.total(self.exact * people**self._power)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Epsilon(_Additive):
    """Pure loss: no outcome becomes more than e^epsilon times likelier [S3.2, S4.1]; of a group, it adds up [S3.3]."""

    epsilon: Number


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Rho(_Additive):
    """Zero-concentrated loss: Renyi divergence at most rho*alpha at any order; a group squares it [BS16, Prop. 27]."""

    rho: Number
    _power: ClassVar[int] = 2


class _Approximate(_Loss):
    """A loss with a delta, which may be far smaller than an epsilon."""

    __slots__ = ()
    delta: Number

    @property
    def exact_delta(self) -> Fraction:
        """Delta as it was written."""
        return exactly(self.delta, "delta", smallest=SMALLEST_DELTA, largest=1)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EpsilonDelta(_Approximate):
    """Approximate loss: e^epsilon, except with probability delta."""

    epsilon: Number
    delta: Number

    @property
    def rho(self) -> Fraction:
        """The zero-concentrated loss this admits, by the tight conversion."""
        return rho_within(float(self.exact), float(self.exact_delta))

    def share(self, part: Number) -> Rho:
        """This part of the loss, as the zero-concentrated loss it is accounted in."""
        return Rho.total(self.rho).share(part)

    def group(self, people: int) -> EpsilonDelta:
        """Of a group epsilon adds up; delta is times (e^(people*epsilon) - 1)/(e^epsilon - 1), rounded up [S4.22]."""
        epsilon = Epsilon(self.exact).group(people).exact
        factor = math.expm1(float(epsilon)) / math.expm1(float(self.exact)) * (1.0 + _MARGIN)
        return EpsilonDelta(epsilon, self.exact_delta * Fraction(factor))

    def _numbers(self) -> tuple[Fraction, Fraction]:
        delta = self.delta if isinstance(self.delta, Fraction) and self.delta == 0 else self.exact_delta
        if delta >= 1:
            raise QuestionError("bad-loss", "delta must be below 1.")
        return self.amount, delta


CALIBRATIONS: Final = ("posterior", "dp", "theorem1", "theorem4", "steps", "laplace", "binomial", "binomial-paper")


@dataclass(frozen=True, slots=True, eq=False)
class SubLinear(_Approximate):
    """The SuLQ policy itself: at most `queries` noisy sums, each with noise of variance R.

    Privacy: (epsilon, delta, T)-privacy of the whole interaction, T = queries [BDMN05, Def. 1 and Theorem 1; S0.4,
    S0.6]; which reading is certified, `posterior` or `dp`, follows from the calibration (X3) and is on each answer.
    """

    epsilon: Number
    delta: Number
    queries: int
    calibration: str = "posterior"

    def _numbers(self) -> tuple[Any, ...]:
        if type(self.queries) is not int or not 1 <= self.queries <= 10**9:
            raise QuestionError("bad-loss", "queries must be a whole number from 1 to 1e9.")
        if not isinstance(self.calibration, str) or self.calibration not in CALIBRATIONS:
            raise SetupError("bad-declaration", f"calibration is one of {', '.join(CALIBRATIONS)}.")
        return self.exact, self.exact_delta, self.queries, self.calibration

    def __str__(self) -> str:
        promised = f"epsilon {plain(self.exact)}, delta {plain(self.exact_delta)}"
        return f"{self.queries} queries at {promised} ({self.calibration})"


Budget = Epsilon | Rho | EpsilonDelta | SubLinear


@dataclass(frozen=True, slots=True)
class Unit:
    """Whom one answer hides: all rows of a person, at most `rows` of them kept.

    Without a column the row is the person. `neighbors` is the relation between two data sets that must look alike: a
    person's rows added or removed (`add_remove`), exchanged for another's (`replace_one`), or blanked (`zero_out`: the
    number of rows and their positions are public).
    `fold` says which ids name one person. None: equal ones do, numbers by value whatever their type, texts by their
    bytes. "case": texts that differ in the case of ASCII letters do too. "spelling": so do texts that differ in blanks
    around them, in forms of Unicode or in `.0` after a whole number, and 7 and "7" do.
    """

    column: str | None = None
    rows: int = 1
    neighbors: Neighbors = "add_remove"
    fold: Fold | None = None

    def __post_init__(self) -> None:
        column, fold, k, near = self.column, self.fold, self.rows if type(self.rows) is int else 0, self.neighbors
        rules = {
            f"neighbors is one of {', '.join(NEIGHBORS)}.": isinstance(near, str) and near in NEIGHBORS,
            "fold is None, 'case' or 'spelling'.": fold is None or (isinstance(fold, str) and fold in get_args(Fold)),
            "rows must be a whole number from 1 to 1e6.": 1 <= k <= 10**6,
            "the unit's column must be a name.": column is None or (isinstance(column, str) and column != ""),
            "rows and fold need the column that says whose row it is.": column is not None or (k == 1 and fold is None),
        }
        for rule, holds in rules.items():
            if not holds:
                raise SetupError("bad-declaration", rule)

    def __str__(self) -> str:
        rows = "one row" if self.rows == 1 else f"up to {self.rows} rows"
        ids = "" if self.fold is None else f", ids folded by {self.fold}"
        who = "one row" if self.column is None else f"a person ({self.column}, {rows}{ids})"
        return f"{who}, {self.neighbors}"

    @property
    def positions_are_public(self) -> bool:
        """Whether a row's place may be spoken of: never where a neighbour shifts it [SR11].

        A person whom a column names may own more rows than are kept; exchanging them for fewer moves all behind.
        """
        return self.neighbors == "zero_out" or (self.neighbors == "replace_one" and self.column is None)


@dataclass(frozen=True, slots=True)
class Draw:
    """One call of a mechanism: enough to recompute its cost from the pmf (SR3, SR22)."""

    mechanism: str  # a row of the mechanism table
    neighbors: Neighbors
    norm: str  # "l1" or "l2"
    sensitivity: Fraction  # in grid units; l2: squared
    scale: Fraction  # in grid units; binomial: the number of coins
    step: Fraction  # one grid unit in the answer's own units
    cells: int  # 0 where keys are open and nobody knows
    threshold: int | None = None  # of open keys: what a group's noisy number of people must be above
    alone: int = 0  # likewise: how many groups one person alone may hold
    level: Fraction | None = None  # of a sparse vector with a noisy threshold: the scale of that noise
    most: Fraction = Fraction(0)  # likewise: how far one person moves one sum; `sensitivity` is then the span


@dataclass(frozen=True, slots=True)
class Event:
    """What happened to a person space in one ask: its loss and the draws behind it.

    `epsilon` is None where no pure loss holds; `basic` and `delta` are then the (epsilon, delta) at which basic
    composition adds it, fixed before the debit (SR26). `key_delta`: for unknown keys (SR14); `queries`: of SubLinear.
    """

    epsilon: Fraction | None
    rho: Fraction
    key_delta: Fraction = Fraction(0)
    queries: int = 0
    draws: tuple[Draw, ...] = ()
    versions: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    basic: Fraction | None = None
    delta: Fraction = Fraction(0)


@dataclass(frozen=True, slots=True)
class Split:
    """How an EpsilonDelta budget is divided, fixed once when its ledger is created (SR3); the filter checks it."""

    alpha: Fraction  # the Renyi order all events are read at
    room: Fraction  # E - c(alpha, D'): what the sum of min(epsilon, alpha*rho) may reach
    delta: Fraction  # D', paid once by the conversion
    key_delta: Fraction  # D_keys, for tables with open keys
    basic_delta: Fraction = Fraction(0)  # D_basic, for losses that are added as (epsilon, delta); none in old ledgers
