"""Columns and their bounds: public facts on private rows.

Every column but Text is a column of integers on a public grid: a cell is
clamped into the declared bounds, put on the nearest grid point, and from then
on *is* that point. Nothing here is read off the data (T21).
"""

from __future__ import annotations

import datetime
import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import ClassVar, Final

from sulq.errors import SetupError
from sulq.forms.coercion import bound_of, category_values, on_clock, plain, shorthand

TERM_BITS: Final = 22  # |term| <= 2^22: totals of 2^40 rows fit 64 bits (SR17)
CELL_LIMIT: Final = 2**31  # a stored integer of a Real column
INT_LIMIT: Final = 2**53  # an Int must be exact as a double
MAX_VALUES: Final = 2**20  # of a Category: as many as a key has labels
MIN_GRID_STEP: Final = Fraction(2) ** -300  # a grid's step and its inverse must be ordinary doubles
MAX_CELL_LENGTH: Final = 10_000  # characters of a free text, where no fewer are declared
MAX_NAME_LENGTH: Final = 1_000  # characters of a table's or column's name
EPOCH: Final = datetime.date(1970, 1, 1)
MICROSECONDS: Final = 86_400_000_000


def is_text(value: str) -> bool:
    """Whether a string is text that can be written down: half a surrogate pair cannot (T71)."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def power_of_two(number: Fraction) -> Fraction:
    """Largest power of two that is at most a positive number."""
    exponent = number.numerator.bit_length() - number.denominator.bit_length()
    candidate = Fraction(2) ** exponent
    return candidate if candidate <= number else candidate / 2


@functools.lru_cache(maxsize=1024)
def grid_for(magnitude: Fraction, bits: int) -> Fraction:
    """Smallest power-of-two step on which a magnitude needs at most 2^bits units; never finer than MIN_GRID_STEP."""
    if magnitude == 0:
        return Fraction(1)
    step = power_of_two(magnitude / 2**bits)
    return max(step if step * 2**bits >= magnitude else step * 2, MIN_GRID_STEP)


def _ordered(low: Fraction | int, high: Fraction | int, what: str) -> None:
    if low > high:
        raise SetupError("bad-bounds", f"The bounds of {what} are reversed.")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Declared:
    """What every column may say besides: whether cells can be missing, and if not, what a missing one counts as.

    `missing=False`: there is no NULL to group by or to count, and a cell that is missing
    all the same takes the `default`; without one the low bound, the first category,
    False, or the empty text. A cell that cannot be read is missing too (SR21).
    """

    missing: bool = field(default=True, metadata={"wire": "set"})
    default: int | float | str | bool | None = field(default=None, metadata={"wire": "set"})
    clock: ClassVar[str | None] = None  # "date" or "timestamp" where cells are points in time

    def __post_init__(self) -> None:
        self._settle()

    def __repr__(self) -> str:
        shown = [f for f in fields(self) if not (f.metadata and getattr(self, f.name) == f.default)]
        shown.sort(key=lambda f: bool(f.metadata))  # a column's own fields first
        return f"{type(self).__name__}({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in shown)})"

    def _code(self, default: object) -> int | str | None:
        """A default as cells are stored; None where it is not in the domain."""
        raise NotImplementedError  # pragma: no cover - every column has its own

    def _settle(self) -> None:
        """Refuse a default that is no value of the domain, or has nothing to stand for."""
        what = type(self).__name__
        object.__setattr__(self, "default", plain(self.default))
        if not isinstance(self.missing, bool):
            raise SetupError("bad-declaration", f"missing= of {what} is True or False.")
        if self.default is None:
            return
        if self.missing:
            why = f"A default of {what} stands for cells that are missing all the same."
            raise SetupError("bad-declaration", why, "Say missing=False with it.")
        if self._code(self.default) is None:
            raise SetupError("bad-declaration", f"The default of {what} is not one of its values.")

    @property
    def filled(self) -> int | str:
        """What a missing cell is stored as, where none may stay missing."""
        found = None if self.default is None else self._code(self.default)
        return getattr(self, "low", "") if found is None else found


def may_be_missing(column: Column) -> Column:
    """The same column where rows without a match have no cell of it."""
    return column if column.missing else replace(column, missing=True, default=None)


@dataclass(frozen=True, slots=True, repr=False)
class _Whole(Declared):
    """A column whose cells are whole numbers themselves, or codes: one grid unit is 1."""

    @property
    def step(self) -> Fraction:
        """One grid unit."""
        return Fraction(1)


@dataclass(frozen=True, slots=True, repr=False)
class Int(_Whole):
    """Whole numbers from `lo` to `hi`; cells outside are clamped."""

    lo: int
    hi: int

    def __post_init__(self) -> None:
        for name in ("lo", "hi"):
            object.__setattr__(self, name, bound := plain(getattr(self, name)))
            if isinstance(bound, bool) or not isinstance(bound, int):
                raise SetupError("bad-declaration", "The bounds of Int must be whole numbers.")
            if abs(bound) > INT_LIMIT:
                raise SetupError("bad-bounds", "The bounds of Int must lie within 2^53.")
        _ordered(self.lo, self.hi, "Int")
        self._settle()

    def _code(self, default: object) -> int | None:
        if isinstance(default, bool) or not isinstance(default, int):
            return None
        return default if self.lo <= default <= self.hi else None

    @property
    def low(self) -> int:
        """Lower bound in grid units."""
        return self.lo

    @property
    def high(self) -> int:
        """Upper bound in grid units."""
        return self.hi


@dataclass(frozen=True, slots=True, repr=False)
class Vertices(Int):
    """The vertices of a graph, numbered from `lo` to `hi`; a cell that is none of them is missing (SR10, SR21).

    What an `Int` is read as where `graph=` names it as an end of edges: a number out of bounds is no vertex, and to
    clamp it would make an edge that nobody has.
    """


@dataclass(frozen=True, slots=True, repr=False)
class Real(Declared):
    """Numbers from `lo` to `hi` on a grid of a power of two; cells outside are clamped.

    A `grid` that is no power of two is lowered to one; bounds widen outwards to
    the grid. The default has at most 2^22 units between zero and the farther
    bound, fine enough not to matter beside the noise.
    """

    lo: float | int
    hi: float | int
    grid: float | int | None = None

    def __post_init__(self) -> None:
        for name in ("lo", "hi", "grid"):
            object.__setattr__(self, name, plain(getattr(self, name)))
        _ordered(bound_of(self.lo, "Real"), bound_of(self.hi, "Real"), "Real")
        if self.grid is not None and bound_of(self.grid, "Real's grid") <= 0:
            raise SetupError("bad-bounds", "The grid of Real must be positive.")
        if max(abs(self.low), abs(self.high)) >= CELL_LIMIT:
            raise SetupError("bad-bounds", "The grid of Real is too fine for its bounds (2^31 units at most).")
        if not Fraction(2) ** -200 <= self.step <= Fraction(2) ** 200:
            raise SetupError("bad-bounds", "The bounds of Real are out of range.")
        self._settle()

    def _code(self, default: object) -> int | None:
        if isinstance(default, bool) or not isinstance(default, (int, float)) or not self.lo <= default <= self.hi:
            return None
        return math.floor(Fraction(default) / self.step + Fraction(1, 2))

    @property
    def step(self) -> Fraction:
        """One grid unit."""
        return _real_grid(self.lo, self.hi, self.grid)[0]

    @property
    def low(self) -> int:
        """Lower bound in grid units, rounded outwards."""
        return _real_grid(self.lo, self.hi, self.grid)[1]

    @property
    def high(self) -> int:
        """Upper bound in grid units, rounded outwards."""
        return _real_grid(self.lo, self.hi, self.grid)[2]


@functools.lru_cache(maxsize=4096)
def _real_grid(lo: float, hi: float, grid: float | None) -> tuple[Fraction, int, int]:
    """Step and bounds of a Real column, worked out once: every plan asks for them many times."""
    low, high = Fraction(lo), Fraction(hi)
    step = grid_for(max(abs(low), abs(high)), TERM_BITS) if grid is None else power_of_two(Fraction(grid))
    return step, math.floor(low / step), math.ceil(high / step)


@dataclass(frozen=True, slots=True, repr=False)
class Bool(_Whole):
    """True or false."""

    low: ClassVar[int] = 0
    high: ClassVar[int] = 1

    def _code(self, default: object) -> int | None:
        return int(default) if isinstance(default, bool) else None


@dataclass(frozen=True, slots=True, repr=False)
class Category(_Whole):
    """One of a declared list of values; a cell that is not on the list is missing (SR21)."""

    values: tuple[str | int, ...]

    def __post_init__(self) -> None:
        values = category_values(self.values)
        if values is None:
            raise SetupError("bad-declaration", "A Category is declared by a list of its values.")
        object.__setattr__(self, "values", values)
        kinds = {type(value) for value in values}
        if kinds not in (set(), {str}, {int}):
            why = "The values of a Category must be all text or all whole numbers."
            raise SetupError("bad-declaration", why, "Truth values are Bool(), other numbers Real(lo, hi).")
        if not 1 <= len(self.values) <= MAX_VALUES or len(set(self.values)) != len(self.values):
            raise SetupError("bad-declaration", f"A Category needs 1 to {MAX_VALUES:,} different values.")
        if any(abs(value) > INT_LIMIT for value in self.values if isinstance(value, int)):
            raise SetupError("bad-declaration", "A whole number of a Category must lie within 2^53.")
        self._settle()

    def _code(self, default: object) -> int | None:
        same = type(default) is type(self.values[0]) and default in self.values
        return self.values.index(default) if same else None

    @property
    def low(self) -> int:
        """Lowest code."""
        return 0

    @property
    def high(self) -> int:
        """Highest code."""
        return len(self.values) - 1


def iso_text(units: int, clock: str) -> str:
    """A day, or a moment in UTC, so many days or microseconds since 1970, as ISO text."""
    if clock == "date":
        return (EPOCH + datetime.timedelta(units)).isoformat()
    return (datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=units)).isoformat()


def days(value: object) -> int:
    """Days since 1970 of a date or its ISO text."""
    try:
        date = datetime.date.fromisoformat(value) if isinstance(value, str) else value
        if isinstance(date, datetime.datetime) or not isinstance(date, datetime.date):
            raise ValueError
    except ValueError:
        raise SetupError("bad-bounds", "A date is written YYYY-MM-DD, without a time of day.") from None
    return (date - EPOCH).days


def microseconds(value: object) -> int:
    """Microseconds since 1970 of a moment in UTC or its ISO text."""
    try:
        moment = datetime.datetime.fromisoformat(value) if isinstance(value, str) else value
        if not isinstance(moment, datetime.datetime):
            raise ValueError
        if moment.tzinfo is not None:
            moment = moment.astimezone(datetime.UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        raise SetupError("bad-bounds", "A moment is written YYYY-MM-DDTHH:MM:SS, in UTC.") from None
    since = moment - datetime.datetime(1970, 1, 1)
    return since.days * MICROSECONDS + since.seconds * 1_000_000 + since.microseconds


@dataclass(frozen=True, slots=True, repr=False)
class _Clock(_Whole):
    """Days or moments from `lo` to `hi`, as ISO text; one grid unit is a day, or a microsecond."""

    lo: str
    hi: str

    def __post_init__(self) -> None:
        for name in ("lo", "hi", *(() if self.default is None else ("default",))):
            object.__setattr__(self, name, self._text(self._units(on_clock(getattr(self, name), self.clock))))
        _ordered(self.low, self.high, type(self).__name__)
        self._settle()

    def _units(self, value: object) -> int:
        """Grid units since 1970."""
        return days(value) if self.clock == "date" else microseconds(value)

    def _text(self, units: int) -> str:
        """ISO text of grid units, or a refusal."""
        if self.clock == "timestamp" and abs(units) >= INT_LIMIT:
            raise SetupError("bad-bounds", "Timestamps must lie between 1685 and 2255.")
        return iso_text(units, self.clock or "date")

    def _code(self, default: object) -> int | None:
        found = self._units(default)
        return found if self.low <= found <= self.high else None

    @property
    def low(self) -> int:
        """First day or moment, in grid units from 1970."""
        return self._units(self.lo)

    @property
    def high(self) -> int:
        """Last day or moment, in grid units from 1970."""
        return self._units(self.hi)


@dataclass(frozen=True, slots=True, repr=False)
class Date(_Clock):
    """Days from `lo` to `hi`; days outside are clamped."""

    clock: ClassVar[str | None] = "date"


@dataclass(frozen=True, slots=True, repr=False)
class Timestamp(_Clock):
    """Moments in UTC from `lo` to `hi`, to the microsecond; moments outside are clamped."""

    clock: ClassVar[str | None] = "timestamp"


@dataclass(frozen=True, slots=True, repr=False)
class Text(Declared):
    """Free text: it can be compared and, where keys are open, grouped by; never listed.

    A cell is its first `longest` characters (code points), at most 10,000: no row is so long that summing it fails
    or takes long enough to be noticed (T30, T74). The shorter, the more patterns one question may look for (T100).
    """

    longest: int = field(default=MAX_CELL_LENGTH, metadata={"wire": "set"})

    def __post_init__(self) -> None:
        if isinstance(self.longest, bool) or not isinstance(self.longest, int):
            raise SetupError("bad-declaration", "The longest of Text is a whole number of characters.")
        if not 1 <= self.longest <= MAX_CELL_LENGTH:
            raise SetupError("bad-bounds", f"The longest of Text is from 1 to {MAX_CELL_LENGTH:,} characters.")
        self._settle()

    def _code(self, default: object) -> str | None:
        fits = isinstance(default, str) and len(default) <= self.longest and "\x00" not in default and is_text(default)
        return default if fits else None  # type: ignore[return-value]


Numbered = Int | Real | Bool | Category | Date | Timestamp
Column = Numbered | Text
COLUMNS: Final = (Int, Real, Bool, Category, Date, Timestamp, Text, Vertices)


def declare(value: object, name: str) -> Column:
    """Read a column's declaration, or what stands for one: (0, 120), range(120), a list, an Enum, a type (coercion)."""
    if isinstance(value, COLUMNS):
        return value
    if isinstance(value, type) and value in (Bool, Text):
        return value()
    kind, arguments = shorthand(value, name)
    made: Callable[..., Column] = next(column for column in COLUMNS if column.__name__ == kind)
    return made(*arguments)


@dataclass(frozen=True, slots=True)
class Schema:
    """A table's name and its declared columns, in order."""

    table: str
    columns: tuple[tuple[str, Column], ...]

    def __post_init__(self) -> None:
        names = [name for name, _ in self.columns]
        if len(set(names)) != len(names) or not all(isinstance(name, str) and name for name in names):
            raise SetupError("bad-declaration", "Column names must be different, non-empty texts.")

    @classmethod
    def of(cls, table: str, columns: Mapping[str, object] | None) -> Schema:
        """Read the owner's declarations."""
        if not isinstance(columns, Mapping) or not columns:
            raise SetupError("bad-declaration", "columns must declare at least one column: {name: domain}.")
        for name in (table, *columns):
            fits = isinstance(name, str) and 1 <= len(name) <= MAX_NAME_LENGTH
            if not fits or "\x00" in name or not is_text(name):
                raise SetupError(
                    "bad-declaration",
                    f"A name of a table or column is text of 1 to {MAX_NAME_LENGTH:,} characters, without NUL.",
                )
        return cls(table, tuple((name, declare(value, str(name))) for name, value in columns.items()))

    @property
    def names(self) -> list[str]:
        """The declared columns' names."""
        return [name for name, _ in self.columns]

    def find(self, name: str) -> Column | None:
        """A column by its name."""
        return next((column for known, column in self.columns if known == name), None)


def joinable(one: Column | None, other: Column | None) -> bool:
    """Whether two columns hold the same kind of value on the same grid, so that equal codes are equal values."""
    if one is None or other is None:
        return False
    if isinstance(one, Category) or isinstance(other, Category):
        return isinstance(one, Category) and isinstance(other, Category) and one.values == other.values
    if type(one) is not type(other):
        return False
    return isinstance(one, Text) or getattr(one, "step", None) == getattr(other, "step", None)
