"""Values and types as Python's libraries have them, as the plain ones that declarations and questions are made of.

NumPy's scalars, decimals, members of an Enum, pandas' moments and categories, Arrow's and polars' types. Libraries that
need not be there are recognised by what their objects offer, and never imported. Never a column's cells: the values of
a Category are public, and rows are not.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Final, cast

import numpy as np

from sulq.errors import SetupError

MAX_DECIMAL_EXPONENT: Final = 400  # beyond it no double lies
PLAIN: Final = (int, float, str, bool, type(None))
BOOLEANS: Final = ("bool", "boolean", "Boolean", "bool[pyarrow]")
TEXTS: Final = ("str", "string", "String", "large_string", "utf8", "string_view", "string[pyarrow]")


def plain(value: object) -> object:
    """A constant as Python has it; what is nobody's constant stays as it is."""
    if type(value) in PLAIN:
        return value
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if isinstance(value, np.datetime64):
        return value.astype("datetime64[us]").item() if value.dtype != np.dtype("datetime64[D]") else value.item()
    if isinstance(value, np.generic):
        return _bare(value.item())
    if isinstance(value, decimal.Decimal):
        return _from_decimal(value)
    return _bare(value)


def _bare(value: object) -> object:
    """A date or text of a library's own class as Python's; pandas' NaT as None."""
    if isinstance(value, datetime.datetime):
        if value != value:  # noqa: PLR0124 - NaT is a datetime that equals nothing
            return None
        turned = getattr(value, "to_pydatetime", None)
        return value if turned is None else turned(warn=False)
    if isinstance(value, str) and type(value) is not str:
        return str(value)
    return value


def _from_decimal(value: decimal.Decimal) -> object:
    """A decimal number as a whole one, or as the nearest double, which is what a decimal literal of Python is."""
    if not value.is_finite() or abs(value.adjusted()) > MAX_DECIMAL_EXPONENT:
        return float(value)
    exact = Fraction(value)
    return exact.numerator if exact.denominator == 1 else float(exact)


def bound_of(value: object, what: str) -> Fraction:
    """A bound as an exact number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise SetupError("bad-declaration", f"A bound of {what} must be a number, not {type(value).__name__}.")
    if isinstance(value, float) and not math.isfinite(value):
        raise SetupError("bad-bounds", f"A bound of {what} must be finite.")
    bound = Fraction(value)
    if abs(bound) > Fraction(10) ** 60:
        raise SetupError("bad-bounds", f"A bound of {what} is out of range.")
    return bound


def on_clock(value: object, clock: str | None) -> object:
    """The end of a range of dates or moments: of dates a moment at which a day begins is that day, and the reverse."""
    found = plain(value)
    if clock == "date" and isinstance(found, datetime.datetime) and found.timetz() == datetime.time():
        return found.date()
    if clock == "timestamp" and isinstance(found, datetime.date) and not isinstance(found, datetime.datetime):
        return datetime.datetime.combine(found, datetime.time())
    return found


def shorthand(value: object, name: str) -> tuple[str, tuple[object, ...]]:
    """What stands for a column's declaration: the name of its class, and the class's arguments."""
    if isinstance(value, tuple) and len(value) == 2:
        ends = tuple(map(plain, value))
        if all(isinstance(end, datetime.datetime) for end in ends):
            return "Timestamp", ends
        if all(isinstance(end, datetime.date) for end in ends):
            return "Date", ends
        whole = all(isinstance(end, int) and not isinstance(end, bool) for end in ends)
        return "Int" if whole else "Real", ends
    if isinstance(value, range) and value.step == 1 and len(value):
        return "Int", (value.start, value.stop - 1)
    if not isinstance(value, tuple):
        values = category_values(value)
        if values is not None:
            return "Category", (values,)
    word = type_word(value)
    if word:
        return {"bool": "Bool", "text": "Text"}[word], ()
    if word == "":
        why = f"The type of column {name!r} says nothing of its bounds or values."
        remedy = (
            "Declare what it may hold: sulq.Int(lo, hi), sulq.Real(lo, hi), a list of categories, sulq.Date(lo, hi)."
        )
        raise SetupError("bad-declaration", why, remedy)
    why = f"Column {name!r} needs a domain such as sulq.Int(0, 120), (0, 120) or a list of categories."
    raise SetupError("bad-declaration", why)


def category_values(value: object) -> tuple[object, ...] | None:
    """The values a category may have, by a list, a range, an array, an Enum class, or a categorical type of pandas.

    A set is put in order, since it has none: places in answers must not depend on how Python stores it. Of pandas'
    categories the declared ones are taken, and never the cells. None where it is nothing of the kind.
    """
    if isinstance(value, type) and issubclass(value, enum.Enum):
        return tuple(plain(member) for member in value)
    if isinstance(value, (set, frozenset)):
        found = [plain(item) for item in value]
        try:
            return tuple(sorted(found))  # type: ignore[type-var]
        except TypeError:
            return tuple(found)  # of several kinds, which a Category refuses
    if is_series(value):
        why = "A column of data is no declaration: its values are rows."
        raise SetupError(
            "bad-declaration", why, "List the values that may occur, or give its categorical type: x.dtype."
        )
    categories = getattr(value, "categories", None)
    if categories is not None and not isinstance(value, type) and not callable(categories):
        return _listed(categories)
    if isinstance(value, (list, tuple, range)):
        return tuple(map(plain, value))
    if isinstance(value, np.ndarray):
        return tuple(map(_whole, value.tolist())) if value.ndim == 1 else None
    return None


def _listed(values: object) -> tuple[object, ...] | None:
    turned = getattr(values, "tolist", None) or getattr(values, "to_list", None)
    found = turned() if callable(turned) else values
    if isinstance(found, (str, bytes, Mapping)) or not isinstance(found, Iterable):
        return None
    return tuple(map(_whole, cast("Iterable[object]", found)))


def _whole(value: object) -> object:
    """A plain constant; a float that is a whole number as that number, as pandas stores whole numbers beside NaN."""
    found = plain(value)
    return int(found) if isinstance(found, float) and found.is_integer() and abs(found) <= 2**53 else found


def is_series(value: object) -> bool:
    """Whether a value is a column of pandas, polars or Arrow with rows in it."""
    kind = type(value)
    return kind.__module__.split(".")[0] in ("pandas", "polars", "pyarrow") and kind.__name__ in (
        *("Series", "DataFrame", "LazyFrame", "ChunkedArray", "Table", "DictionaryArray", "StringArray"),
        *("Int64Array", "BooleanArray", "RecordBatch"),
    )


def type_word(value: object) -> str | None:
    """What a type of Python, NumPy, pandas, polars or Arrow determines: "bool" or "text"; "" nothing; None: no type."""
    if isinstance(value, type):
        if issubclass(value, (bool, np.bool_)):
            return "bool"
        if issubclass(value, str):
            return "text"
        plainly = issubclass(value, (int, float, np.generic, datetime.date, decimal.Decimal))
        known = plainly or (value.__module__.startswith("polars.datatypes"))
        name = value.__name__
    else:
        known = isinstance(value, np.dtype) or type(value).__name__.endswith(("Dtype", "DataType"))
        known = known or (type(value).__module__.split(".")[0] in ("polars", "pyarrow") and not is_series(value))
        name = str(value)
    if not known:
        return None
    return "bool" if name in BOOLEANS else "text" if name in TEXTS else ""
