"""Made-up rows in which row functions are evaluated: values of declared domains, never a row of the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from sulq.language.domain import Schema
from sulq.language.kinds import Cells, Integers


def no_column(name: str) -> Cells:
    """The columns of rows in which all that is read is in `seen` already."""
    raise LookupError(name)


@dataclass(slots=True)
class TrialRows:
    """A batch of made-up rows; `seen` holds row functions that are evaluated already, by their identity."""

    schema: Schema
    size: int
    codes: Callable[[str], Cells] = no_column
    seen: dict[int, Cells] = field(default_factory=dict)

    def person(self) -> Integers:
        """Everyone is somebody else."""
        return np.arange(self.size, dtype=np.int64)

    def position(self) -> Integers:
        """One after the other."""
        return np.arange(self.size, dtype=np.int64)
