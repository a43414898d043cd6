"""Synthetic data as it is published: rows drawn from a model, and the noisy counts that the model was made of."""

# ruff: noqa: PD011 - a marginal's values are NumPy's, not a frame's

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, cast

import numpy as np
import pyarrow as pa

from sulq.answers import wire
from sulq.answers.answer import extra
from sulq.answers.oracle import SpendPlan
from sulq.display.numbers import figure
from sulq.errors import QuestionError
from sulq.forms.parameters import checked
from sulq.language.attribute import Attribute
from sulq.language.domain import Schema
from sulq.language.kinds import Floats, Integers
from sulq.release.base import Chart, Paid, Release, unreadable
from sulq.release.space import CellSpace, Marginal, below, places
from sulq.release.synthetic.rounds import FinishedRun
from sulq.release.synthetic.rows import decoded, encoded, mended
from sulq.release.tables.interactions import Places

if TYPE_CHECKING:
    import pandas

MAX_CHARTS: Final = 20  # marginals on a page
MAX_MARGINAL_CELLS: Final = 2**22
MAX_ROWS: Final = 10_000_000
MIN_SPARE_ROWS: Final = 10_000  # spare rows to exchange drawn ones for, or as many as there are
_held: Final = ContextVar("rows that are drawn at most where none are named", default=MAX_ROWS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticData(Release):
    """Rows that nobody gave, whose counts are about those of the data.

    `method`: how they were made. `total`: how many rows the data are estimated to have, noisy or declared; None
    where that is not known. `measured`: the noisy counts that were asked, with their error bars. `answers`: names and
    means of the queries that the rows were chosen by.
    """

    kind: ClassVar[str] = "synthetic"
    attributes: tuple[Attribute, ...]
    rows: pa.Table
    method: str
    total: float | None
    measured: tuple[Marginal, ...] = ()
    notes: tuple[str, ...] = field(default=())
    answers: tuple[tuple[str, float], ...] = ()

    @property
    def fractions(self) -> dict[str, float]:
        """The queries the rows were chosen by, each by its name: its mean over the rows (`blr`)."""
        return dict(self.answers)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(attribute.name for attribute in self.attributes)

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table."""
        return self.rows

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a pandas frame (needs the extra `pandas`)."""
        extra("pandas", "pandas")
        return cast("pandas.DataFrame", self.rows.to_pandas())

    def frame(self) -> pandas.DataFrame | pa.Table:
        """The rows as a pandas frame where pandas is installed, else as an Arrow table."""
        return self.to_pandas() if importlib.util.find_spec("pandas") else self.to_arrow()

    def marginal(self, names: Sequence[str]) -> Marginal:
        """Counts of the synthetic rows by some columns, as parts of `total` where that is known.

        Free, and at any time. The standard error is by the measured marginal that tells most of it: of a cell
        that measurement says a count with noise of deviation s, from which the rows are off by d, for the model's sake
        or because they are few; the mean square of noise about the rows' count is s^2 + d^2. Where none
        was measured it is not known (nan): then nothing but the model speaks for these counts.

        Raises:
            QuestionError: `bad-parameter`: a column is not in the data, or the marginal has too many cells.
        """
        where = places(names, self.names)
        own = [self.attributes[place] for place in where]
        shape = tuple(attribute.size for attribute in own)
        checked(math.prod(shape) <= MAX_MARGINAL_CELLS, f"A marginal has at most {MAX_MARGINAL_CELLS:,} cells.")
        cells = np.zeros(len(self), dtype=np.int64)
        for attribute in own:
            values = self.rows.column(attribute.name).combine_chunks()
            cells = cells * attribute.size + encoded(attribute, values)
        counts = np.bincount(cells, minlength=math.prod(shape)).astype(np.float64).reshape(shape)
        if self.total is not None and len(self):
            counts *= self.total / len(self)
        labels = tuple(attribute.labels for attribute in own)
        told, noise = self._told(names)
        return Marginal(tuple(names), labels, counts, np.hypot(noise, counts - told))

    def _told(self, names: Sequence[str]) -> tuple[Floats | float, float]:
        """What the measured marginal that has all these columns with the least noise says of them, and that noise."""
        best: tuple[Floats | float, float] = math.nan, math.nan
        for each in self.measured:
            if not {*names} <= {*each.names}:
                continue
            others = tuple(axis for axis, name in enumerate(each.names) if name not in names)
            noise = math.sqrt(float(np.sum(each.standard_error**2, axis=others).flat[0]))
            if not best[1] <= noise:
                left = [name for name in each.names if name in names]
                best = each.values.sum(axis=others).transpose([left.index(name) for name in names]), noise
        return best

    def title(self) -> str:
        """One line for people."""
        return f"Synthetic data: {len(self):,} rows of {', '.join(self.names)} by {self.method}"

    def tables(self) -> dict[str, pa.Table]:
        """The rows, and the measured marginals below each other."""
        return {"rows": self.rows, "measured": below(self.measured, "marginal", "cell")}

    def facts(self) -> dict[str, object]:
        """Columns and their cells, method, what was measured."""
        schema = Schema("synthetic", tuple((each.name, each.domain) for each in self.attributes))
        return {
            "schema": wire.to_json(schema),
            "bins": [each.bins for each in self.attributes],
            "method": self.method,
            "total": self.total,
            "measured": [list(each.names) for each in self.measured],
            "notes": list(self.notes),
            "answers": [list(each) for each in self.answers],
        }

    @classmethod
    def of(cls, paid: Paid, facts: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Self:
        """The data that were saved as these."""
        schema = wire.from_json(facts["schema"])
        if not isinstance(schema, Schema) or list(schema.names) != tables["rows"].column_names:
            raise unreadable()
        attributes = tuple(
            Attribute(name, domain, int(bins))
            for (name, domain), bins in zip(schema.columns, facts["bins"], strict=True)
        )
        own = {attribute.name: attribute for attribute in attributes}
        measured, start = [], 0
        told = tables["measured"]
        for names in facts["measured"]:
            labels = tuple(own[name].labels for name in names)
            shape = tuple(map(len, labels))
            part = told.slice(start, math.prod(shape))
            values, error = (np.asarray(part.column(name)).reshape(shape) for name in ("value", "standard_error"))
            measured.append(Marginal(tuple(names), labels, values, error))
            start += math.prod(shape)
        return cls(
            paid=paid,
            attributes=attributes,
            rows=tables["rows"],
            method=str(facts["method"]),
            total=None if facts["total"] is None else float(facts["total"]),
            measured=tuple(measured),
            notes=tuple(map(str, facts["notes"])),
            answers=tuple((str(name), float(value)) for name, value in facts.get("answers", [])),
        )

    def charts(self) -> list[Chart]:
        """A picture for each measured marginal; where none was, for each column of the rows."""
        if not self.measured:
            return [self.marginal([name]).chart(" ".join(self.notes)) for name in self.names[:MAX_CHARTS]]
        found = []
        for each in self.measured[:MAX_CHARTS]:
            far = float(np.abs(self.marginal(each.names).values - each.values).sum())
            said = (
                "Noisy counts with their 95% intervals. "
                f"The synthetic rows are {figure(far)} from them in L1; their noise alone is about "
                f"{figure(0.75 * float(each.standard_error.sum()))}."
            )
            found.append(each.chart(said, each.accuracy(0.05)))
        return found


def made(space: CellSpace, cells: Integers, rng: np.random.Generator) -> pa.Table:
    """Rows of cells as a table of the declared columns."""
    columns = [decoded(attribute, cells[:, i], rng) for i, attribute in enumerate(space.attributes)]
    return pa.table(columns, names=list(space.names))


@contextmanager
def at_most(rows: int) -> Iterator[None]:
    """Within it, data made as large as the measurements say has at most so many rows: what the place can hold."""
    before = _held.set(rows)
    try:
        yield
    finally:
        _held.reset(before)


def published(
    spending: SpendPlan, space: CellSpace, found: FinishedRun, asked: Sequence[Places], *, rows: int, method: str
) -> SyntheticData:
    """The release: `rows` rows or, of 0, as many as there are about; near the model in the marginals asked for."""
    model, total = found.model, found.total
    count = rows or min(max(round(total), 0), _held.get())  # in a job: what it may make
    rng = np.random.default_rng()  # seeded by the operating system; it draws from public weights
    drawn, spare = model.draw(count, rng), model.draw(min(count, max(count // 4, MIN_SPARE_ROWS)), rng)
    return SyntheticData(
        paid=Paid.by(spending),
        attributes=space.attributes,
        rows=made(space, mended(drawn, spare, model.marginals(asked), rng), rng),
        method=method,
        total=max(total, 0.0),
        measured=tuple(each.marginal(space) for each in found.measured),
    )


def chooses(spending: SpendPlan) -> None:
    """Refuse, before the first ask, a budget under which nothing is chosen."""
    if spending.sublinear:
        raise QuestionError("not-a-noisy-sum", "Synthetic data is made by choices, which a SubLinear budget has not.")
