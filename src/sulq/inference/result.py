"""What an inference gives: a small table of estimates, each with a standard error, an interval and a p-value."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from sulq.answers.answer import Receipt, extra, paid
from sulq.display.numbers import UNKNOWN
from sulq.display.tables import as_html
from sulq.display.text_table import Cell, TextTable
from sulq.errors import QuestionError
from sulq.language.kinds import Floats
from sulq.language.privacy import Loss, Unit

if TYPE_CHECKING:
    import pandas

NOISE_AND_SAMPLING: Final = (
    "Standard errors, intervals and p-values count the noise and the sampling of a larger population."
)
CLAMPED: Final = "Values beyond their declared bounds count as the bound."
NO_HYPOTHESIS: Final = "-"  # in the place of a p-value: the estimate is known, and nothing is tested
COLUMNS: Final = ("term", "coef", "se", "low", "high", "p")


@dataclass(frozen=True, slots=True)
class EstimateRow:
    """One estimate: its name, value and standard error, the ends of its interval, and its p-value.

    An estimate that the noise leaves open is not a number, and its interval whatever is possible.
    """

    term: str
    coef: float
    se: float
    low: float
    high: float
    p: float


@dataclass(frozen=True, slots=True)
class Bill:
    """What an inference cost, and whom it protects."""

    spent: Loss
    remaining: Loss
    unit: Unit
    receipts: tuple[Receipt, ...]
    guarantee: str = "dp"
    reused: bool = False


@dataclass(frozen=True, slots=True)
class EstimateTable:
    """Estimates with standard errors: a row each, in the order of `COLUMNS`.

    `level`: of the intervals. `rows_used`: how many rows the estimates are of, as far as the noise tells.
    `notes`: what the intervals count, and what the estimates rest on, in words.
    """

    title: str
    estimates: tuple[EstimateRow, ...]
    level: float
    rows_used: float
    bill: Bill
    notes: tuple[str, ...]

    @property
    def spent(self) -> Loss:
        """What all of it cost."""
        return self.bill.spent

    @property
    def receipt(self) -> Receipt:
        """The proof of the last debit; `bill.receipts` has all of them."""
        return self.bill.receipts[-1]

    @property
    def reused(self) -> bool:
        """Whether nothing was bought, as all of it had been answered before."""
        return self.bill.reused

    def __iter__(self) -> Iterator[EstimateRow]:
        return iter(self.estimates)

    def __getitem__(self, name: str) -> EstimateRow:
        """The estimate of that name."""
        for one in self.estimates:
            if one.term == name:
                return one
        names = ", ".join(one.term for one in self.estimates)
        raise QuestionError("bad-question", f"No estimate is called {str(name)[:80]!r} (there are: {names}).")

    def to_dict(self) -> dict[str, list[object]]:
        """The columns by name."""
        return {name: [getattr(one, name) for one in self.estimates] for name in COLUMNS}

    def to_pandas(self) -> pandas.DataFrame:
        """A pandas frame with the columns term, coef, se, low, high and p."""
        return cast("pandas.DataFrame", extra("pandas", "pandas").DataFrame(self.to_dict()))

    def table(self) -> TextTable:
        """The table as it is printed."""
        rows = tuple(tuple(_cells(one)) for one in self.estimates)
        names = (*COLUMNS[:3], f"low {self.level:.0%}", f"high {self.level:.0%}", "p")
        return TextTable(self.title, names, rows)

    def _tail(self) -> str:
        bill = self.bill
        return ("reused: " if bill.reused else "") + paid(bill.spent, bill.remaining, bill.unit)

    def __repr__(self) -> str:
        return "\n".join([self.table().text(), self._tail(), *self.notes])

    def _repr_html_(self) -> str:
        table = self.table()
        body = [[UNKNOWN if cell is None else str(cell) for cell in row] for row in table.rows]
        return f"<p>{_escaped(self.title)}</p>" + as_html(table.columns, body, " ".join([self._tail(), *self.notes]))


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def estimates_of(
    names: tuple[str, ...], values: Floats, errors: Floats, *, reach: Floats, p: Floats, known: bool = True
) -> tuple[EstimateRow, ...]:
    """Estimates from arrays; where they are not known, no number and no end."""
    if not known:
        return tuple(unknown(name) for name in names)
    rows = zip(names, values, errors, values - reach, values + reach, p, strict=True)
    return tuple(EstimateRow(name, *map(float, rest)) for name, *rest in rows)


def unknown(name: str, low: float = -math.inf, high: float = math.inf) -> EstimateRow:
    """An estimate that the noise leaves open."""
    return EstimateRow(name, math.nan, math.inf, low, high, math.nan)


def _cells(one: EstimateRow) -> Iterator[Cell]:
    places = _places(one.se)
    yield one.term
    for value in (one.coef, one.se, one.low, one.high):
        yield None if math.isnan(value) else f"{value:,.{places}f}" if math.isfinite(value) else str(value)
    if math.isnan(one.p):
        yield None if math.isnan(one.coef) else NO_HYPOTHESIS
        return
    yield "<0.0001" if one.p < 1e-4 else f"{one.p:.4f}"


def _places(error: float) -> int:
    """Decimals worth showing beside a standard error: two of its figures."""
    if not math.isfinite(error) or error <= 0:
        return 4
    return min(max(1 - math.floor(math.log10(error)), 0), 12)


def checked_level(level: object) -> float:
    """A level of confidence, or a refusal."""
    if isinstance(level, bool) or not isinstance(level, float) or not 0.5 <= level <= 0.9999:
        raise QuestionError("bad-literal", "level is a number from 0.5 to 0.9999, as 0.95.")
    return level
