"""How many rows of a person are kept, where that is chosen from a noisy histogram of rows per person.

An owner who writes `rows="auto"` declares a public maximum and a part of the budget. For that part one histogram is
bought, in which each person is in one bin; the number follows from the released bins alone and is fixed in the ledger
(curator/rows_choice.py). Until then rows are kept, and noise is sized, by the maximum.
Source: docs/decisions/0048-rows-chosen-from-a-release.md; SR2, SR28.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Final, Literal

import numpy as np

from sulq.errors import QuestionError, SetupError
from sulq.language.kinds import Floats
from sulq.language.privacy import Budget, Epsilon, Fold, Neighbors, Number, Rho, SubLinear, Unit, exactly

AUTO: Final = "auto"
AUTO_FIELDS: Final = frozenset({"column", "rows", "neighbors", "fold", "most", "share"})
MAX_ROWS: Final = 1024  # by default, of one person while the number is chosen
MIN_MAX_ROWS: Final = 2
MAX_UNIT_ROWS: Final = 10**6  # of any unit
MAX_BINS: Final = 64
HISTOGRAM_SHARE: Final = Fraction(1, 20)  # by default, of the budget
MIN_HISTOGRAM_SHARE: Final = Fraction(1, 10**6)
MAX_HISTOGRAM_SHARE: Final = Fraction(1, 2)
ASK_SHARE: Final = Fraction(1, 50)  # of the budget: the ask whose error is made small
GROUPS: Final = 10  # of the second count whose error is made small
# Noise alone takes one bin in 300,000 past `SURE`, and one in five past `NEAR`, beside a bin that has people. Chosen on
# generated numbers of rows: a bin of noise taken for people costs as much as it lies above all others.
SURE_BETA: Final = math.exp(-12.0)  # both ways
NEAR_BETA: Final = math.exp(-1.0)
MAX_BIN_VALUES: Final = 64  # of a wider bin so many numbers of rows stand for all


@dataclass(frozen=True, slots=True)
class AutoUnit(Unit):
    """A unit whose number of rows is chosen when its data is registered; until then it is one of so many `rows`.

    `share`: the part of the budget that the histogram costs.
    """

    share: Fraction = HISTOGRAM_SHARE

    def __post_init__(self) -> None:
        if type(self.rows) is not int or not MIN_MAX_ROWS <= self.rows <= MAX_UNIT_ROWS:
            raise SetupError("bad-declaration", "most is a whole number from 2 to 1e6.")
        Unit.__post_init__(self)
        if self.column is None:
            raise SetupError("bad-declaration", 'rows="auto" needs the column that says whose row it is.')
        if not isinstance(self.share, Fraction) or not MIN_HISTOGRAM_SHARE <= self.share <= MAX_HISTOGRAM_SHARE:
            raise SetupError("bad-declaration", "share is a part of the budget, from 1e-6 to 0.5.")

    @classmethod
    def of(
        cls,
        column: str | None,
        neighbors: Neighbors = "add_remove",
        fold: Fold | None = None,
        most: int = MAX_ROWS,
        share: Number = HISTOGRAM_SHARE,
    ) -> AutoUnit:
        """As an owner says it, the share as it was written: 0.1 is one tenth."""
        try:
            part = exactly(share, "share")
        except QuestionError:
            part = Fraction(0)  # which is refused
        return cls(column, most, neighbors, fold, part)

    @property
    def widest(self) -> Unit:
        """The unit that holds until the number is chosen."""
        return Unit(self.column, self.rows, self.neighbors, self.fold)

    def fits(self, own: Unit) -> bool:
        """Whether another unit is this one but for its number of rows."""
        return (self.column, self.neighbors, self.fold) == (own.column, own.neighbors, own.fold)

    def __str__(self) -> str:
        ids = "" if self.fold is None else f", ids folded by {self.fold}"
        chosen = f"rows chosen from a noisy histogram, at most {self.rows}"
        return f"a person ({self.column}, {chosen}{ids}), {self.neighbors}"


class _Declared(type):
    """Makes a unit, or one whose number of rows is yet to be chosen: the kernel's own `Unit` knows numbers alone."""

    def __call__(
        cls,
        column: str | None = None,
        rows: int | Literal["auto"] = 1,
        neighbors: Neighbors = "add_remove",
        fold: Fold | None = None,
        *,
        most: int | None = None,
        share: Number | None = None,
    ) -> Unit:
        if isinstance(rows, str) and rows == AUTO:
            told = (MAX_ROWS if most is None else most, HISTOGRAM_SHARE if share is None else share)
            return AutoUnit.of(column, neighbors, fold, *told)
        if most is not None or share is not None:
            raise SetupError("bad-declaration", 'most and share are for rows="auto".')
        return Unit(column, rows, neighbors, fold)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Unit)


class DeclaredUnit(Unit, metaclass=_Declared):
    """Whom one answer hides: all rows of a person, at most `rows` of them kept.

    Without a column the row is the person. `neighbors` is the relation between two data sets that must look alike: a
    person's rows added or removed (`add_remove`), exchanged for another's (`replace_one`), or blanked (`zero_out`: the
    number of rows and their positions are public).
    `rows="auto"` buys one noisy histogram of rows per person when the data is registered, and fixes the number that
    promises counts the least error; `most` is the largest there may be (1024), `share` the part of the budget that the
    histogram costs (a twentieth).
    `fold` says which ids name one person. None: equal ones do, numbers by value whatever their type, texts by their
    bytes. "case": texts that differ in the case of ASCII letters do too. "spelling": so do texts that differ in blanks
    around them, in forms of Unicode or in `.0` after a whole number, and 7 and "7" do.
    """

    __slots__ = ()
    if TYPE_CHECKING:

        def __init__(
            self,
            column: str | None = None,
            rows: int | Literal["auto"] = 1,
            neighbors: Neighbors = "add_remove",
            fold: Fold | None = None,
            *,
            most: int | None = None,
            share: Number | None = None,
        ) -> None: ...


def check_auto(unit: Unit, budget: Budget | None, several: int) -> None:
    """Refuse what `rows="auto"` cannot be bought for; `several`: the private tables of which not all rows are kept."""
    if not isinstance(unit, AutoUnit):
        return
    if isinstance(budget, SubLinear):
        why = 'rows="auto" buys a histogram for a part of the budget; a SubLinear budget counts queries.'
        raise SetupError("bad-declaration", why, "Declare rows as a number, or another budget.")
    if several != 1:
        why = f'rows="auto" is for one private table with several rows a person; here there are {several}.'
        raise SetupError("bad-declaration", why, "Declare rows as a number; it is kept of each table.")


def bin_ends(most: int) -> tuple[int, ...]:
    """The largest number of rows of each bin: 1, 2, 3, 4, 6, 8, 11, 16, ..., by the root of two up to the maximum."""
    ends = {min(round(2 ** (place / 2)), most) for place in range(2 * most.bit_length() + 1)}
    return tuple(sorted(ends))


@dataclass(frozen=True, slots=True)
class RowsLine:
    """One number of rows, and what is foreseen of it from the released bins alone."""

    rows: int
    kept: float  # the share of rows that are kept
    margin: float  # how far that may be off by the bins' noise, at 95%
    noise: float  # the deviation of the noise in a count
    whole: float  # the error of a count of all rows: what is left out, and noise
    group: float  # the error of a count of a tenth of them


@dataclass(frozen=True, slots=True)
class RowsChoice:
    """The number of rows that was chosen, and the released bins it follows from.

    `entry`: the ledger's entry of their debit. `ends`: the largest number of rows of each bin. `counts`: the noisy
    numbers of persons. `deviation`, `near`, `sure`: of the noise in them, its deviation and two distances that it
    passes seldom and hardly ever. `scale`: the deviation of the noise in a count, for each kept row, at `ask`.
    """

    table: str
    entry: int
    ends: tuple[int, ...]
    counts: tuple[float, ...]
    deviation: float
    near: float
    sure: float
    scale: float
    ask: Epsilon | Rho
    rows: int = field(default=0)
    NAMES: ClassVar[tuple[str, ...]] = ("rows", "rows kept", "noise", "error of a count", f"of 1/{GROUPS} of it")

    def __post_init__(self) -> None:
        ascending = all(low < high for low, high in zip((0, *self.ends), self.ends, strict=False))
        if not 0 < len(self.ends) == len(self.counts) <= MAX_BINS or not ascending or self.ends[-1] > MAX_UNIT_ROWS:
            raise QuestionError("wire-format", "Not a sulq value: bins of rows per person are another list than this.")

    @property
    def persons(self) -> Floats:
        """The numbers of persons that are reckoned with: none above the last bin that stands out of noise."""
        counts = np.array(self.counts)
        (sure,) = np.nonzero(counts > self.sure)
        last = int(sure[-1]) if len(sure) else 0
        while last + 1 < len(counts) and counts[last + 1] > self.near:
            last += 1
        counts[last + 1 :] = 0.0
        found: Floats = np.maximum(counts, 0.0)
        return found

    @property
    def lines(self) -> tuple[RowsLine, ...]:
        """What is foreseen of each number of rows that is looked at."""
        tried = np.array(_candidates(self.ends[-1]))
        above, below = _split(self.ends, tried)
        persons = self.persons
        dropped, kept = persons @ above, persons @ below
        whole = np.maximum(dropped + kept, 1.0)
        margin = 1.96 * self.deviation * np.sqrt(((above * kept - below * dropped) ** 2)[persons > 0].sum(axis=0))
        noise = self.scale * tried
        errors = np.hypot(dropped, noise), np.hypot(dropped / GROUPS, noise)
        columns = (tried, kept / whole, np.minimum(margin / whole**2, 1.0), noise, *errors)
        found = (tuple(column[i].item() for column in columns) for i in range(len(tried)))
        return tuple(RowsLine(*line) for line in found)

    def best(self) -> int:
        """The number of rows at which the worse of two counts is nearest to its own best.

        The counts are of all rows and of a tenth of them: what is left out weighs less in the second, so that it is
        best with fewer rows.
        """
        lines = self.lines
        least = [min(line.whole for line in lines), min(line.group for line in lines)]
        return min(lines, key=lambda line: max(line.whole / least[0], line.group / least[1])).rows

    @property
    def shown(self) -> tuple[RowsLine, ...]:
        """The lines an owner is shown: the chosen number, and those by doubling up to the last bin that has people."""
        (there,) = np.nonzero(self.persons)
        last = max(self.ends[int(there[-1])] if len(there) else 1, self.rows)
        doubled = {2**place for place in range(last.bit_length() + 1)} | {self.rows}
        return tuple(line for line in self.lines if line.rows in doubled and line.rows <= 2 * last)

    @property
    def cells(self) -> list[tuple[str, ...]]:
        """The shown lines in words."""
        return [
            (
                f"{line.rows}{' (chosen)' if line.rows == self.rows else ''}",
                f"{100 * line.kept:.0f}% +- {100 * line.margin:.0f}%",
                *(f"{number:,.0f}" for number in (line.noise, line.whole, line.group)),
            )
            for line in self.shown
        ]

    def __str__(self) -> str:
        table = [self.NAMES, *self.cells]
        widths = [max(len(row[i]) for row in table) for i in range(len(self.NAMES))]
        lines = ["  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)) for row in table]
        head = (
            f"{self.table}: at most {self.rows} rows a person, chosen from the noisy histogram of entry {self.entry}; "
            f"errors of counts at {self.ask}"
        )
        return "\n".join([head, *lines])


def ask_price(budget: Budget) -> Epsilon | Rho:
    """The price of the ask whose error is made small; of a SubLinear budget there is none."""
    if isinstance(budget, SubLinear):
        raise SetupError("bad-declaration", "A SubLinear budget counts queries.")
    return budget.share(ASK_SHARE)


def noise_scale(ask: Epsilon | Rho) -> float:
    """The deviation of the noise in a count of rows, for each row that a person may have."""
    amount = float(ask.exact)
    return math.sqrt(2.0) / amount if isinstance(ask, Epsilon) else 1.0 / math.sqrt(2.0 * amount)


def _candidates(most: int) -> Sequence[int]:
    """The numbers of rows that are looked at: all up to 64, then by a tenth of a doubling."""
    finer = (round(64 * 2 ** (place / 10)) for place in range(10 * most.bit_length()))
    return sorted({rows for rows in (*range(1, 65), *finer, most) if rows <= most})


def _split(ends: Iterable[int], tried: np.ndarray) -> tuple[Floats, Floats]:
    """Rows of a bin's person that are left out and kept, in the mean, for each number tried.

    Within a bin a number of rows is as likely as its inverse, as it is where bins that double have as many people.
    """
    above, below, low = [], [], 0
    for end in ends:
        rows = (
            np.arange(low + 1, end + 1) if end - low <= MAX_BIN_VALUES else np.geomspace(low + 1, end, MAX_BIN_VALUES)
        )
        weights = np.ones(len(rows)) if end - low > MAX_BIN_VALUES else 1.0 / rows
        weights /= weights.sum()
        above.append(weights @ np.maximum(rows[:, None] - tried, 0))
        below.append(weights @ np.minimum(rows[:, None], tried))
        low = end
    return np.array(above), np.array(below)
