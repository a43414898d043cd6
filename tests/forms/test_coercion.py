"""Tests of sulq.forms.coercion: what people have at hand becomes the plain values of declarations and questions."""

from __future__ import annotations

import datetime
import decimal
import enum
from collections.abc import Callable

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sulq.errors import QuestionError, SetupError
from sulq.forms.coercion import category_values, plain, shorthand
from sulq.language.domain import Bool, Category, Date, Int, Real, Schema, Text, Timestamp, declare
from sulq.language.rowfn import col, lit

DAY, NOON = datetime.date(2020, 1, 2), datetime.datetime.fromisoformat("2020-01-02T12:00:00")


class Town(enum.Enum):
    """Values of a column as a program has them."""

    LOD = "Lod"
    YAFO = "Yafo"


class Grade(enum.IntEnum):
    """Whole numbers with names."""

    LOW = 1
    HIGH = 3


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.int64(3), 3), (np.float32(0.5), 0.5), (np.str_("a"), "a"), (np.bool_(True), True), (Town.LOD, "Lod"),
        (Town.YAFO, "Yafo"), (Grade.LOW, 1),
        (Grade.HIGH, 3), (decimal.Decimal("2.50"), 2.5), (decimal.Decimal(7), 7), (pd.Timestamp(NOON), NOON),
        (np.datetime64("2020-01-02"), DAY), (np.datetime64("2020-01-02T12"), NOON), (pd.NaT, None), (DAY, DAY),
        (np.datetime64("NaT"), None), ("a", "a"), (None, None),
    ],
)  # fmt: skip
def test_a_constant_becomes_the_plain_one(value: object, expected: object) -> None:
    """The value is the same and the type exactly Python's own, which the wire can carry."""
    found = plain(value)
    assert found == expected
    assert type(found) is type(expected)


def test_what_is_nobodys_constant_stays_as_it_is() -> None:
    """It is refused where it is used, by its own name."""
    for value in ([1], {}, object, 1j, b"x"):
        assert plain(value) is value


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (range(120), Int(0, 119)), (range(3, 4), Int(3, 3)), (range(0, 9, 3), Category((0, 3, 6))),
        (Town, Category(("Lod", "Yafo"))),
        (Grade, Category((1, 3))), ((np.int64(0), np.int64(9)), Int(0, 9)),
        ((np.int64(0), np.float64(1)), Real(0, 1.0)),
        ((decimal.Decimal("0.5"), 2), Real(0.5, 2)),
        ((DAY, datetime.date(2021, 1, 1)), Date("2020-01-02", "2021-01-01")),
        ((NOON, pd.Timestamp("2021")), Timestamp("2020-01-02T12:00:00", "2021-01-01T00:00:00")),
        (np.array(["a", "b"]), Category(("a", "b"))), ([np.int32(1), 2], Category((1, 2))),
        ({"b", "a"}, Category(("a", "b"))),
        (pd.CategoricalDtype(["x", "a"]), Category(("x", "a"))), (pl.Enum(["u", "v"]), Category(("u", "v"))),
        (pd.Categorical(["b"], categories=["a", "b"]), Category(("a", "b"))),
        (pd.CategoricalDtype([1.0, 2.0]), Category((1, 2))),
        (bool, Bool()), (np.dtype(bool), Bool()), (pd.BooleanDtype(), Bool()), (pa.bool_(), Bool()),
        (pl.Boolean, Bool()),
        (pl.Boolean(), Bool()), (np.bool_, Bool()), (str, Text()), (pd.StringDtype(), Text()), (pa.string(), Text()),
        (pl.String, Text()), (pd.Index(["a", "b"]), None),
    ],
)  # fmt: skip
def test_declarations_take_what_people_have_at_hand(told: object, expected: object) -> None:
    """Arrays, ranges, Enums, dates, categorical and boolean types; an index of labels is a list too, or is refused."""
    if expected is None:
        with pytest.raises(SetupError):
            declare(told, "x")
    else:
        assert declare(told, "x") == expected
        assert Schema.of("t", {"x": told}).find("x") == expected


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (np.dtype("int64"), "says nothing of its bounds"),
        (pd.Int64Dtype(), "says nothing of its bounds"),
        (pa.float64(), "says nothing of its bounds"),
        (pl.Int32, "says nothing of its bounds"),
        (int, "says nothing of its bounds"),
        (pd.Series(["a", "b"], dtype="category"), "values are rows"),
        (pl.Series(["a"]), "values are rows"),
        (pa.chunked_array([["a"]]), "values are rows"),
        (pd.DataFrame({"a": [1]}), "values are rows"),
        (range(0), "1 to"),
        ({1, "a"}, "all text or all whole"),
        ([1.5], "all text or all whole"),
        (pd.CategoricalDtype(), "says nothing of its bounds or values"),
        (np.zeros((2, 2)), "needs a domain"),
        (5, "needs a domain"),
        ("bool", "needs a domain"),
        ([1.0, 2.0], "all text or all whole"),
        ((DAY, 3), "must be a number"),
    ],
)
def test_what_determines_no_domain_is_refused_with_what_to_declare(told: object, words: str) -> None:
    """A type without values, and a column of data: public facts are never read off rows (T21)."""
    with pytest.raises(SetupError, match=words) as refused:
        declare(told, "x")
    assert refused.value.remedy


def test_the_cells_of_a_categorical_are_never_looked_at() -> None:
    """Of pandas' Categorical the declared categories count, whatever its cells are: two with other cells are one."""
    kinds = ["a", "b", "c"]
    assert (
        category_values(pd.Categorical(["c", None], kinds))
        == category_values(pd.Categorical([], kinds))
        == ("a", "b", "c")
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda: Int(np.int8(0), np.int64(5)),
        lambda: Real(np.float32(0), decimal.Decimal(5), grid=np.float64(0.5)),
        lambda: Category(np.array([1, 2])),
        lambda: Category([Town.LOD, np.str_("b")], missing=False, default=np.str_("b")),
        lambda: Date(np.datetime64("2020-01-01"), pd.Timestamp("2020-12-31")),
        lambda: Timestamp(DAY, np.datetime64("2021-01-01T05")),
    ],
)
def test_what_is_kept_of_a_declaration_is_plain(make: Callable[[], object]) -> None:
    """Numbers, texts and tuples of Python, so that wire, ledger and repr are those of a plain declaration."""
    column = make()
    for name in ("lo", "hi", "grid", "default"):
        assert type(getattr(column, name, None)) in (int, float, str, type(None))
    assert all(type(value) in (int, str) for value in getattr(column, "values", ()))
    assert repr(column) == repr(eval(repr(column)))


def test_literals_of_questions_are_as_plain() -> None:
    """Enum members, decimals, dates of pandas and NumPy stand for their values; what is missing is refused."""
    for value, expected in (
        (Town.LOD, "Lod"),
        (decimal.Decimal("0.25"), 0.25),
        (np.datetime64("2020-01-02"), "2020-01-02"),
    ):
        assert lit(value).value == expected  # type: ignore[attr-defined]
    schema = Schema.of("t", {"d": Date("2020-01-01", "2020-12-31"), "t": Timestamp(DAY, NOON)})
    for moment in (
        pd.Timestamp("2020-06-01"),
        datetime.datetime.fromisoformat("2020-06-01"),
        np.datetime64("2020-06-01T00"),
    ):
        assert (col("d") >= moment).kind(schema)
    assert (col("t") >= DAY).kind(schema)
    with pytest.raises(QuestionError, match="time of day"):
        (col("d") >= NOON).kind(schema)
    for bad in (pd.NaT, None, pd.NA, np.timedelta64(1, "D"), decimal.Decimal("NaN"), decimal.Decimal("1e999")):
        with pytest.raises(QuestionError):
            lit(bad)


def test_shorthand_names_the_class_and_its_arguments() -> None:
    """What a list or tuple stands for, before the class checks it."""
    assert shorthand((0, 1.0), "x") == ("Real", (0, 1.0))
    assert shorthand(("a", "b"), "x") == ("Real", ("a", "b"))
