"""The last step, free: rows drawn from a model, published with what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Protocol

import numpy as np

from sulq.answers.oracle import SpendPlan
from sulq.errors import QuestionError
from sulq.language.kinds import Floats, Integers
from sulq.release.payment import Paid
from sulq.release.space import CellSpace
from sulq.release.synthetic.data import SyntheticData, made
from sulq.release.synthetic.measurement import MeasuredMarginal
from sulq.release.synthetic.mending import mended
from sulq.release.tables.interactions import Places

MAX_ROWS: Final = 10_000_000
MIN_SPARE_ROWS: Final = 10_000  # spare rows to exchange drawn ones for, or as many as there are
_held: Final = ContextVar("rows that are drawn at most where none are named", default=MAX_ROWS)


class Model(Protocol):
    """What rows can be drawn from."""

    def marginals(self, wanted: Iterable[Places]) -> dict[Places, Floats]:
        """The counts that it expects by several lists of columns, each ascending."""
        ...

    def draw(self, rows: int, rng: np.random.Generator) -> Integers:
        """Rows of cells, a column for each of the space's."""
        ...


class FinishedRun(Protocol):
    """What the asks of a run came to: a model, the number of rows, and the marginals as they were told."""

    @property
    def model(self) -> Model:
        """What rows are drawn from."""
        ...

    @property
    def total(self) -> float:
        """How many rows there are, with noise."""
        ...

    @property
    def measured(self) -> Sequence[MeasuredMarginal]:
        """The noisy marginals."""
        ...


@contextmanager
def at_most(rows: int) -> Iterator[None]:
    """Within it, data made as large as the measurements say has at most so many rows: what the place can hold."""
    before = _held.set(rows)
    try:
        yield
    finally:
        _held.reset(before)


def published(
    spending: SpendPlan,
    space: CellSpace,
    found: FinishedRun,
    asked: Sequence[Places],
    *,
    rows: int,
    method: str,
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
