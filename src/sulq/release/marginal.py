"""One marginal of a published table, with its error bars."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from sulq.answers.answer import extra
from sulq.forms.parameters import checked
from sulq.language.kinds import Floats
from sulq.release.payment import Chart

if TYPE_CHECKING:
    import pandas


def text(label: object) -> str:
    """A cell's name for people: a value, or an interval."""
    return "..".join(map(_edge, label)) if isinstance(label, (tuple, list)) else str(label)


def _edge(value: object) -> str:
    """An interval's end: a whole number without a point."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def rows(labels: Sequence[Sequence[object]]) -> list[list[str]]:
    """Columns of cell names, one an attribute, the last fastest."""
    several = list(itertools.product(*([text(label) for label in own] for own in labels)))
    return [[row[i] for row in several] for i in range(len(labels))]


def named(names: Sequence[str], column: str) -> str:
    """A column's name beside the attributes', which keep theirs."""
    while column in names:
        column += "_"
    return column


@dataclass(frozen=True, slots=True, eq=False)
class Marginal:
    """Counts by some attributes: `values` and `standard_error` have an axis for each.

    `added`: rows that are in the published table beside the counted ones, in each cell of this marginal
    (`fourier-shift`); `values` are without them.
    """

    names: tuple[str, ...]
    labels: tuple[tuple[object, ...], ...]
    values: Floats
    standard_error: Floats
    added: float = 0.0

    @property
    def cells(self) -> tuple[str, ...]:
        """A name for each cell, the last attribute fastest."""
        return tuple(" / ".join(map(text, cell)) for cell in itertools.product(*self.labels))

    def chart(self, said: str, error: Floats | None = None) -> Chart:
        """Bars of the cells, with half the length of their intervals where that is known."""
        bars = () if error is None else tuple(error.ravel())
        return Chart(", ".join(self.names), self.cells, tuple(self.values.ravel()), bars, said)

    def accuracy(self, beta: float = 0.05) -> Floats:
        """About how far off a cell may be except with probability beta: the wider of a normal and a Laplace tail."""
        checked(isinstance(beta, float) and 0 < beta < 1, "beta lies strictly between 0 and 1.")
        factor = max(-NormalDist().inv_cdf(beta / 2), -math.log(beta) / math.sqrt(2.0))
        return self.standard_error * factor

    @property
    def percent(self) -> Floats:
        """Shares of the whole in percent; with the added rows counted, so that they are seldom negative."""
        padded = self.values + self.added
        whole = float(padded.sum())
        return padded * (100.0 / whole if whole > 0 else 0.0)

    def to_dict(self) -> dict[str, Sequence[object]]:
        """Columns by name: an attribute's cells, `value`, `standard_error`."""
        table: dict[str, Sequence[object]] = {}
        table.update(zip(self.names, rows(self.labels), strict=True))
        table[named(self.names, "value")] = self.values.ravel().tolist()
        table[named(self.names, "standard_error")] = self.standard_error.ravel().tolist()
        return table

    def to_arrow(self) -> pa.Table:
        """As an Arrow table."""
        return pa.table(self.to_dict())

    def to_pandas(self) -> pandas.DataFrame:
        """As a pandas frame (needs the extra `pandas`)."""
        return cast("pandas.DataFrame", extra("pandas", "pandas").DataFrame(self.to_dict()))

    def __repr__(self) -> str:
        shown = [
            f"{cell}: {value:,.6g} ± {error:,.3g}"
            for cell, value, error in itertools.islice(
                zip(self.cells, self.values.ravel(), self.standard_error.ravel(), strict=True), 20
            )
        ]
        more = self.values.size - len(shown)
        return "\n".join([", ".join(self.names), *shown, *([f"and {more:,} more cells"] if more else [])])
