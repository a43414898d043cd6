"""Python's operators and methods, which make row functions of whatever stands for one value of a row.

`Operators` is what row functions and a database's handles of one column, `db["age"]`, have in common.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, NoReturn

from sulq.errors import QuestionError

if TYPE_CHECKING:
    from sulq.language.rowfn.base import RowFn

Operator = Callable[["Operators", object], "RowFn"]
NODES: Final[dict[str, Callable[..., RowFn]]] = {}
"""The row functions by the names of their classes: what Python's operators and methods make."""


def operand(value: object) -> RowFn:
    """A row function as it is or of a handle, a constant as a literal."""
    return value.as_row() if isinstance(value, Operators) else NODES["Lit"](value)


def _infix(node: str, op: str, *, swapped: bool = False) -> Operator:
    """An operator of Python that makes a node of two sides."""

    def make(self: Operators, other: object) -> RowFn:
        left, right = (operand(other), self.as_row()) if swapped else (self.as_row(), operand(other))
        return NODES[node](op, (left, right)) if node == "Logic" else NODES[node](op, left, right)

    return make


class Operators:
    """What is joined with other values of a row by Python's operators."""

    __slots__ = ()

    def as_row(self) -> RowFn:
        """The row function that this stands for."""
        raise NotImplementedError  # pragma: no cover - each has its own

    __add__, __radd__ = _infix("Arith", "+"), _infix("Arith", "+", swapped=True)
    __sub__, __rsub__ = _infix("Arith", "-"), _infix("Arith", "-", swapped=True)
    __mul__, __rmul__ = _infix("Arith", "*"), _infix("Arith", "*", swapped=True)
    __truediv__, __rtruediv__ = _infix("Arith", "/"), _infix("Arith", "/", swapped=True)
    __eq__, __ne__ = _infix("Compare", "=="), _infix("Compare", "!=")  # type: ignore[assignment]
    __lt__, __le__ = _infix("Compare", "<"), _infix("Compare", "<=")
    __gt__, __ge__ = _infix("Compare", ">"), _infix("Compare", ">=")
    __and__, __rand__ = _infix("Logic", "and"), _infix("Logic", "and", swapped=True)
    __or__, __ror__ = _infix("Logic", "or"), _infix("Logic", "or", swapped=True)

    def __neg__(self) -> RowFn:
        return NODES["Lit"](0) - self

    def __pos__(self) -> RowFn:
        return self.as_row()

    def __abs__(self) -> RowFn:
        return NODES["Maths"]("abs", self.as_row())

    def __mod__(self, other: object) -> RowFn:
        """The remainder by a constant, of the number's sign, as `%` is in SQL."""
        return NODES["Modulo"](self.as_row(), _constant(other, "A remainder is taken"))

    def __floordiv__(self, other: object) -> RowFn:
        return NODES["Maths"]("floor", self / other)

    def __rfloordiv__(self, other: object) -> RowFn:
        return NODES["Maths"]("floor", other / self)

    def __pow__(self, other: object) -> RowFn:
        return NODES["Power"](self.as_row(), _constant(other, "A power is taken"))

    def __rmod__(self, _: object) -> NoReturn:
        _constant(self, "A remainder is taken")
        raise AssertionError  # pragma: no cover - a column is no constant

    def __rpow__(self, _: object) -> NoReturn:
        _constant(self, "A power is taken")
        raise AssertionError  # pragma: no cover - a column is no constant

    def __xor__(self, other: object) -> RowFn:
        """Either condition, and not both."""
        left, right = self.as_row(), operand(other)
        return (left & ~right) | (~left & right)

    __rxor__ = __xor__

    def __round__(self, digits: object = 0) -> RowFn:
        return NODES["Round"](self.as_row(), digits)

    def __floor__(self) -> RowFn:
        return NODES["Maths"]("floor", self.as_row())

    def __ceil__(self) -> RowFn:
        return NODES["Maths"]("ceil", self.as_row())

    def __trunc__(self) -> RowFn:
        return NODES["Maths"]("trunc", self.as_row())

    def __invert__(self) -> RowFn:
        return NODES["Not"](self.as_row())

    def __hash__(self) -> int:
        return id(self)

    def __contains__(self, _: object) -> NoReturn:
        why = "Whether something is `in` a column is no question about one row."
        raise QuestionError("bad-question", why, "Compare: x == value, x.isin([...]); of texts, like(x, '%part%').")

    def no_such(self, *_: object) -> NoReturn:
        """Every other operator of Python is refused in our words."""
        why = "Columns are joined by + - * / // % **, compared, and combined with & | ~ ^."
        raise QuestionError("bad-question", why, "Use an operator from this list, or SQL.")

    __matmul__ = __rmatmul__ = __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = no_such
    __divmod__ = __rdivmod__ = no_such
    __array_ufunc__ = None  # a number of NumPy leaves the operator to us

    def clip(self, lo: float, hi: float) -> RowFn:
        """Clamp into [lo, hi]."""
        return NODES["Clip"](self.as_row(), lo, hi)

    def isin(self, values: Iterable[object]) -> RowFn:
        """Whether the value is one of these."""
        return NODES["IsIn"](self.as_row(), values)

    def between(self, lo: object, hi: object) -> RowFn:
        """Whether the value lies from lo to hi, both included."""
        return (self >= lo) & (self <= hi)

    def is_missing(self) -> RowFn:
        """Whether there is no value."""
        return NODES["IsMissing"](self.as_row())

    def fill(self, value: object) -> RowFn:
        """Put a constant where there is no value."""
        return NODES["Fill"](self.as_row(), value)


def _constant(value: object, act: str) -> object:
    """A constant on the right of an operator that takes no column there."""
    if isinstance(value, Operators):
        hint = "Put the constant on the right: x % 7, x ** 2; of a column, divide and round, or use SQL's functions."
        raise QuestionError("bad-question", f"{act} by a constant, not by a column.", hint)
    return value
