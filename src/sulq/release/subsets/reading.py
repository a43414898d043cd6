"""How published histograms are read: shares with standard errors, cells by their values; and what else could be had."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from sulq.errors import QuestionError
from sulq.language.kinds import Floats
from sulq.release.marginal import Marginal
from sulq.release.payment import unreadable
from sulq.release.subsets.estimates import Series, proper


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Probabilities(Marginal):
    """Estimated shares of all rows, by some attributes; unbiased, so that some may be negative."""

    @property
    def proper(self) -> Floats:
        """As probabilities: none negative, the sum one."""
        return proper(self.values)


@dataclass(frozen=True, slots=True)
class Direct:
    """What measuring the 2l-attribute histograms themselves would give at the same spend.

    `histograms`: their number, C(k, 2l). `standard_error`: of a minterm of 2l literals, measured. `inferred`: of the
    same by inference, as a root mean square over tables. `better`: how many times smaller the measured one is.
    """

    histograms: int
    standard_error: float
    inferred: float

    @property
    def better(self) -> float:
        """Above 1: direct measurement is better by so much. Below: inference is."""
        return self.inferred / self.standard_error if self.standard_error > 0 else math.inf

    def __str__(self) -> str:
        said = f"direct measurement of {self.histograms:,} histograms: standard error {self.standard_error:.3g}, "
        which, times = ("smaller", self.better) if self.better >= 1 else ("larger", 1 / self.better)
        return f"{said}{times:,.3g} times {which} than inference's {self.inferred:.3g}"


def single(series: Series, column: int) -> Series:
    """One condition of a series; the sizes stay those of the whole histogram."""
    own = slice(column, column + 1)
    return replace(
        series,
        counts=series.counts[:, own],
        chances=series.chances[own],
        noise=series.noise[own],
        rest=series.rest[own],
        share_noise=series.share_noise[own],
    )


def code_of(labels: Sequence[object], value: object, name: str) -> int:
    """The place of a value among an attribute's cells; a number within an interval is in its cell."""
    wanted = tuple(value) if isinstance(value, list) else value
    for i, label in enumerate(labels):
        if label == wanted and isinstance(label, bool) == isinstance(wanted, bool):
            return i
    if isinstance(wanted, (int, float, str)) and not isinstance(wanted, bool):
        last = len(labels) - 1
        for i, label in enumerate(labels):
            if isinstance(label, tuple) and isinstance(wanted, str) == isinstance(label[0], str):
                low, high = label
                if low <= wanted and (wanted < high or (i == last and wanted == high)):
                    return i
    raise QuestionError("bad-parameter", f"{str(value)[:80]!r} is no value of {name}.")


def divided(table: pa.Table, shapes: Sequence[tuple[int, ...]]) -> tuple[Floats, ...]:
    """A column of numbers as arrays, one after the other."""
    values = np.asarray(table.column("value").to_numpy(), dtype=np.float64)
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    if ends[-1] != len(values):
        raise unreadable()
    return tuple(part.reshape(shape) for part, shape in zip(np.split(values, ends[:-1]), shapes, strict=True))
