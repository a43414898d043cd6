"""Columns as keys, for a question and for prediction alike."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sulq.answers.oracle import ColumnChoice
from sulq.errors import QuestionError
from sulq.language.attribute import Attribute
from sulq.language.domain import Bool, Category, Int, Text
from sulq.language.rowfn import RowFn
from sulq.learn.features import Array, cells, is_missing, numbers_of

Codes = npt.NDArray[np.int64]


def codes_of(attribute: Attribute, values: Array) -> Codes:
    """The cells of an ordinary column: -1 for what is missing or on no list; numbers are clamped."""
    if isinstance(attribute.domain, Category):
        place = {label: i for i, label in enumerate(attribute.domain.values)}
        plain = (value.item() if isinstance(value, np.generic) else value for value in values)
        return np.array([-1 if is_missing(value) else place.get(value, -1) for value in plain], dtype=np.int64)
    numbers = numbers_of(values, attribute.domain, attribute.name)
    domain = attribute.domain
    gone = np.isnan(numbers)
    assert not isinstance(domain, Text)  # noqa: S101 - refused above
    clipped = np.clip(np.where(gone, 0.0, numbers), float(domain.low * domain.step), float(domain.high * domain.step))
    edges = attribute.edges
    if edges is None:
        codes = np.rint(clipped).astype(np.int64) - domain.low
    else:
        codes = np.clip(np.searchsorted(np.array(edges), clipped, side="right") - 1, 0, len(edges) - 2)
    return np.where(gone, -1, codes).astype(np.int64)


class Attributes:
    """The keys of X, for a question and for prediction alike."""

    def __init__(self, items: tuple[Attribute, ...]) -> None:
        self.items = items

    @classmethod
    def of(cls, X: ColumnChoice, bins: int) -> Attributes:
        """The attributes of private columns."""
        return cls(tuple(Attribute(name, domain, bins) for name, domain in zip(X.names, X.domain, strict=True)))

    def codes(self, X: object) -> Codes:
        """An ordinary table as codes, one column an attribute; -1 for what is missing or on no list."""
        found = cells(X, [item.name for item in self.items])
        return np.stack([codes_of(item, found[item.name]) for item in self.items], axis=1)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, place: int) -> Attribute:
        return self.items[place]


class Labels:
    """The column to predict, as a key: its classes are the declared ones, whatever the data holds (SR6)."""

    def __init__(self, y: ColumnChoice, *, most: int = 100) -> None:
        name, domain = y.names[0], y.domain[0]
        if not isinstance(domain, (Bool, Category, Int)) or (
            isinstance(domain, Int) and domain.high - domain.low >= most
        ):
            raise QuestionError(
                "wrong-kind",
                f"{name} has no declared classes.",
                f"Declare it as a Category, a Bool or an Int of at most {most} values.",
            )
        self.attribute = Attribute(name, domain, most + 1)
        self.name = name

    @property
    def row(self) -> RowFn:
        """The label as a key."""
        return self.attribute.row

    @property
    def classes(self) -> Array:
        """The classes, in their declared order."""
        return np.array(self.attribute.labels)

    @property
    def size(self) -> int:
        """The number of classes."""
        return self.attribute.size
