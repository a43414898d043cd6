"""Exact values: the types of their arrays, the end of their range, and the box that does not open by accident."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

from sulq.errors import AccessDenied

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]
Objects = npt.NDArray[np.object_]
Stored = tuple[np.ndarray, Truths | None]  # a column, and where it is missing

SATURATED: Final = 2**62

S = TypeVar("S")
T = TypeVar("T")


def saturate(sums: Integers | Objects) -> Integers:
    """Clamp exact sums of any size to +-2^62: a 1-Lipschitz step (T5)."""
    return np.clip(sums, -SATURATED, SATURATED).astype(np.int64)


class Private(Generic[T]):
    """An exact value on its way from the rows to the noise.

    It will not print, compare, iterate, copy, pickle or leave the process; `open` is called by the mechanisms alone,
    and by sulq.testing, which sees made-up data (a test reads the source for it).
    """

    __slots__ = ("_value",)

    def __init__(self, value: T) -> None:
        self._value = value

    def open(self) -> T:
        """Hand the exact value to the mechanism that hides it."""
        return self._value

    def map(self, function: Callable[[T], S]) -> Private[S]:
        """Apply a function inside the box."""
        return Private(function(self._value))

    def _refuse(self, *_: object) -> NoReturn:
        raise AccessDenied("private-value", "This is an exact value of private rows.")

    def __repr__(self) -> str:
        return "Private(...)"

    __str__ = __repr__
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __hash__ = __bool__ = __len__ = __iter__ = __getitem__ = _refuse
    __int__ = __float__ = __complex__ = __index__ = __array__ = __format__ = _refuse
    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = __getstate__ = _refuse


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Exact sums of the groups that occur, where the keys are not listed in advance (SR14).

    `keys`: of each the groups' cells as they are stored; None: a missing one is a label too. `sums`: of shape (groups,
    width), saturated at +-2^62. `persons`: how many people each group has; how many rows, where they are nobody's.
    """

    keys: Sequence[list[object]]
    sums: Integers
    persons: Integers
