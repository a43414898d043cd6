"""Private[T]: an exact value in a box that does not open by accident."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NoReturn, TypeVar

from sulq.errors import AccessDenied

S = TypeVar("S")
T = TypeVar("T")


class Private(Generic[T]):
    """An exact value on its way from the rows to the noise.

    It will not print, compare, iterate, copy, pickle or leave the process; `open` is
    called by the mechanisms alone, and by sulq.testing, which sees made-up data (a
    test reads the source for it).
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
