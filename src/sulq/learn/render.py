"""What a model learned, as tables and text for people to read; its JSON has all of it."""

from __future__ import annotations

from typing import Final

import numpy as np

from sulq.display.text_table import Cell, TextTable, cell
from sulq.learn.base import Learner
from sulq.learn.features import Array, Features

MAX_TABLE_COLUMNS: Final = 64  # columns of a table
_NUMBERED: Final = ("explained", "singular", "noise", "count", "size", "cluster", "label", "inertia")
_ELSEWHERE: Final = ("spent_", "unit_", "guarantee_", "n_features_in_", "feature_names_in_", "classes_")
_ALONE: Final = (bool, int, float, str, np.generic)


def text_tables(model: Learner) -> list[TextTable]:
    """The learned attributes that are numbers, lists or tables; single numbers share one table, the first."""
    alone: list[tuple[Cell, ...]] = []
    found: list[TextTable] = []
    for name, value in vars(model).items():
        if not name.endswith("_") or name.startswith("_") or name in _ELSEWHERE:
            continue
        if isinstance(value, _ALONE):
            alone.append((_title(name), _cell(value)))
        elif (array := _array(value)) is not None and (table := _table(model, name, array)) is not None:
            found.append(table)
    return [TextTable("Summary", ("", "value"), tuple(alone)), *found] if alone else found


def text(model: Learner) -> str:
    """A model to read in a terminal: a tree as a tree, anything else as its tables."""
    return drawn(model) or "\n\n".join(table.text() for table in text_tables(model))


def drawn(model: Learner) -> str:
    """How a model draws itself in letters, as a tree does; empty where it does not."""
    draw = getattr(model, "export_text", None)
    return str(draw()) if callable(draw) else ""


def _array(value: object) -> Array | None:
    """Numbers or texts in rows; None for what has no such shape."""
    if isinstance(value, (list, tuple)) and all(isinstance(item, _ALONE) for item in value):
        value = np.array(value)
    return value if isinstance(value, np.ndarray) and value.size and value.dtype.kind in "fiubU" else None


def _table(model: Learner, name: str, array: Array) -> TextTable | None:
    title = _title(name)
    if array.ndim == 1:
        names = _names(model, len(array), first=True, features=not name.startswith(_NUMBERED))
        return TextTable(
            title, ("", title), tuple((label, _cell(value)) for label, value in zip(names, array, strict=True))
        )
    if array.ndim > 2 or array.shape[1] > MAX_TABLE_COLUMNS:
        return None
    labels = _names(model, array.shape[0], first=True, features=name.startswith("covariance"))
    columns = _names(model, array.shape[1], first=False, features=True)
    cells = tuple((label, *map(_cell, row)) for label, row in zip(labels, array, strict=True))
    return TextTable(title, ("", *columns), cells)


def _names(model: Learner, size: int, *, first: bool, features: bool) -> list[str]:
    """What the places of an axis are called: features, classes, or their number from one."""
    held = next((value for value in vars(model).values() if isinstance(value, Features)), None)
    known = [held.names] if held is not None else []
    for names in [*known, model.feature_names_in_] if features else []:
        if len(names) == size:
            return list(names)
    classes = getattr(model, "classes_", None)
    if classes is not None and len(classes) == size:
        return [str(item) for item in classes]
    return [f"{'' if first else '#'}{i + 1}" for i in range(size)]


def _title(name: str) -> str:
    return name.strip("_").replace("_", " ")


def _cell(value: object) -> Cell:
    return cell(value.item() if isinstance(value, np.generic) else value)
