"""Ordinary tables to predict on: arrays and frames, by column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from sulq.errors import QuestionError

Array = npt.NDArray[Any]


class BadTable(QuestionError, ValueError):
    """A table that does not fit the model; also a ValueError, which is what scikit-learn's tools look for."""


def cells(X: object, names: Sequence[str]) -> dict[str, Array]:
    """The columns of an ordinary table: a frame's by name, an array's by their order.

    Raises:
        BadTable: `bad-table`: a column is not there, or the array is of another width.
    """
    if hasattr(X, "columns") and hasattr(X, "__getitem__"):
        frame = cast("Any", X)
        known = frame.column_names if hasattr(frame, "column_names") else list(frame.columns)
        missing = [name for name in names if name not in known]
        if missing:
            raise BadTable("bad-table", f"The table has no column {missing[0]!r}; it was learned from.")
        return {name: np.asarray(frame[name]) for name in names}
    array = np.asarray(X)
    if array.ndim == 1 and len(names) == 1 and array.dtype != object:
        array = array.reshape(-1, 1)
    wanted = f"{', '.join(names[:5])}{', ...' * (len(names) > 5)}"
    if array.ndim != 2:
        raise BadTable("bad-table", f"Reshape your data to a table of {len(names)} columns ({wanted}).")
    if array.shape[1] != len(names):
        raise BadTable(
            "bad-table",
            f"X has {array.shape[1]} features, but prediction is expecting {len(names)} features as input ({wanted}).",
        )
    return {name: array[:, i] for i, name in enumerate(names)}


def is_missing(value: object) -> bool:
    """Whether a cell holds nothing: None, NaN, NaT, or pandas' NA, which has no answer to any comparison."""
    try:
        return value is None or bool(value != value)  # noqa: PLR0124 - what NaN is told by
    except TypeError:
        return True
