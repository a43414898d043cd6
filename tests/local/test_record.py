"""Records as cells: declared values, clamped numbers, and nothing that fails for a value's sake."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sulq.errors import QuestionError, SetupError
from sulq.language.domain import Bool, Category, Date, Int, Real, Text, Timestamp
from sulq.local.record import MAX_CELLS, Record


class Spiteful:
    """A value that fails however it is looked at."""

    def __hash__(self) -> int:
        raise RuntimeError

    __eq__ = __bool__ = __float__ = __hash__  # type: ignore[assignment]


def cells(domain: object, values: object) -> list[int]:
    return Record.of(domain).read(values)[0].tolist()


def test_a_domain_is_a_number_a_list_a_column_or_columns() -> None:
    """All ways to say it, and how many values each has."""
    assert [Record.of(given).cells for given in (5, range(3), ["a", "b"], np.arange(4), (0, 9), Int(0, 9), Bool())] == [
        5, 3, 2, 4, 10, 10, 2,
    ]  # fmt: skip
    record = Record.of({"city": ["Lod", "Yafo", "Haifa"], "smoker": Bool(), "score": Real(0, 1, grid=0.25)})
    assert (record.sizes, record.cells) == ((3, 2, 5), 30)
    rows = [("Lod", False, 0.0), ("Lod", False, 0.25), ("Lod", False, 0.5), ("Lod", True, 0.0)]  # the last fastest
    cells = [record.cell(dict(zip(("city", "smoker", "score"), row, strict=True))) for row in rows]
    assert cells == [0, 1, 2, 5]
    assert dict(Record.of(Date("2020-01-01", "2020-01-03")).labels)["item"] == (
        "2020-01-01",
        "2020-01-02",
        "2020-01-03",
    )


@pytest.mark.parametrize("given", [1, 0, ["a"], Text(), Timestamp("2020-01-01", "2020-01-02"), MAX_CELLS + 1, "ab", {}])
def test_a_domain_that_cannot_be_reported_is_refused(given: object) -> None:
    """One value tells nothing, free text has no list, too many have no estimate."""
    with pytest.raises(SetupError) as refused:
        Record.of(given)
    assert refused.value.code == "bad-declaration"


def test_values_become_codes() -> None:
    """Labels by their places, numbers clamped and on their grid, truth values, days."""
    assert cells(["b", "a", "c"], ["a", "c", "b"]) == [1, 2, 0]
    assert cells([7, 3], np.array([3, 7, 3])) == [1, 0, 1]
    assert cells([7, 3], [3.0, 7]) == [1, 0]
    assert cells([1, 0], np.array([True, False])) == cells([1, 0], [True, False]) == [0, 1]
    assert cells([7, 3], [3, 7, "text"])[:2] == [1, 0]
    assert cells(Int(-2, 2), [-9, -2, 0, 1.4, 10**400, -math.inf]) == [0, 0, 2, 3, 4, 0]
    assert cells(Real(0, 1, grid=0.25), [0.13, 0.12, 7]) == [1, 0, 4]
    assert cells(Bool(), [True, 0, 1.0, np.False_]) == [1, 0, 1, 0]
    days = ["2020-01-02", datetime.date(2020, 1, 3), pd.Timestamp("2020-01-04 10:00"), "2031-01-01"]
    assert cells(Date("2020-01-01", "2020-01-05"), days) == [1, 2, 3, 4]
    assert cells(Date("2020-01-01", "2020-01-05"), np.array(["2020-01-02"], dtype="datetime64[s]")) == [1]


def test_a_record_is_one_number_the_last_field_fastest() -> None:
    """Mappings and frames alike; one record alone is told apart from a column of one."""
    domain = {"a": Int(0, 2), "b": Bool()}
    record = Record.of(domain)
    frame = pd.DataFrame({"b": [True, False], "a": [2, 1], "more": [0, 0]})
    assert record.read(frame)[0].tolist() == [5, 2]
    assert record.read({"a": 2, "b": True}) == (np.array([5]), True)
    assert record.read({"a": [2], "b": [True]})[1] is False
    assert Record.of(Category(("x", "y"))).read("y") == (np.array([1]), True)


@pytest.mark.parametrize(
    "strange",
    [
        None, math.nan, "?", b"a", object(), float("inf"), [], {}, np.datetime64("NaT"), 10**400, "a\x00", ([],), [1],
        [[]], {1}, pd.NaT, pd.NA, Decimal("NaN"), Decimal("sNaN"), np.array([1, 2]), 1j, datetime.date.max, Spiteful(),
    ],
)  # fmt: skip
def test_no_value_fails(strange: object) -> None:
    """Whatever a cell holds, it is a cell of the record: a report that fails would tell of the value (T30).

    Given in a list, in a column beside others, in an array of objects, as a field of one record, and alone.
    """
    values = np.empty(3, dtype=object)
    for place in range(3):
        values[place] = strange
    for domain in (["a", "b"], [1, 2], Int(0, 3), Real(0, 1, grid=0.5), Bool(), Date("2020-01-01", "2020-01-02")):
        record, several = Record.of(domain), Record.of({"a": domain, "b": Bool()})
        asked = [
            (record.read(values), 3), (record.read([strange, None]), 2), (record.read(strange, alone=True), 1),
            (several.read({"a": [strange, "a"], "b": [True, False]}), 2), (several.read({"a": strange, "b": True}), 1),
        ]  # fmt: skip
        for (found, single), number in asked:
            assert (found.size, single) == (number, number == 1)
            assert found.min() >= 0
            assert found.max() < several.cells


def test_numbers_are_numbers_however_they_are_held() -> None:
    """Boxed, decimal, or written out as a file of text has them: never noise in place of a declared value."""
    boxed = [np.int64(3), Decimal(3), Fraction(3), "3", " 3.0", np.float32(3), 3]
    for domain in (Int(0, 9), list(range(10)), Real(0, 9, grid=1)):
        assert cells(domain, boxed) == [3] * 7, domain
        assert cells(domain, np.array(boxed, dtype=object)) == [3] * 7
        assert cells(domain, np.array(["3", "4"])) == [3, 4]
        assert cells(domain, pa.chunked_array([[3, 4]])) == cells(domain, pd.Series([3, 4], dtype="Int64")) == [3, 4]
    assert cells(Bool(), ["True", "false", "1", np.True_]) == [1, 0, 1, 1]
    assert cells(Date("2020-01-01", "2020-01-05"), [np.datetime64("2020-01-03"), None])[0] == 2


def test_frames_of_every_kind_are_read_alike() -> None:
    """pandas, pyarrow, and plain columns."""
    columns = {"b": [True, False], "a": [2, 1]}
    record = Record.of({"a": Int(0, 2), "b": Bool()})
    for frame in (pd.DataFrame(columns), pa.table(columns), columns):
        assert record.read(frame)[0].tolist() == [5, 2]


@pytest.mark.parametrize(
    ("domain", "typed"),
    [
        (["a", "b"], np.array([1, 2])), (Int(0, 3), np.array(["2020-01-01"], "M8[D]")),
        (Date("2020-01-01", "2020-01-02"), np.array([1])), ([1, 2], np.array([b"a"])), (Bool(), np.array([1j])),
    ],
)  # fmt: skip
def test_a_type_that_holds_no_declared_value_is_refused(domain: object, typed: object) -> None:
    """By the type of the caller's column alone: the same values in a list, or in objects, are drawn like any other."""
    record = Record.of(domain)
    with pytest.raises(QuestionError) as refused:
        record.read(typed)
    assert refused.value.code == "bad-table"
    untyped = np.asarray(typed).astype(object)
    for values in (untyped, untyped.tolist()):
        assert record.read(values)[0].size == len(untyped)


def test_a_column_whose_type_was_read_off_its_values_is_never_refused_SR19() -> None:
    """A file of one row whose value is missing, or a number, becomes a column of doubles: that tells of the person."""
    record = Record.of(["a", "b"])
    for values in ([float("nan")], [3.5], ["a"], [True], [pd.NaT]):
        assert record.read(pd.Series(values))[0].size == 1


def test_a_text_of_any_length_takes_its_own_room_SR19() -> None:
    """Beside a hundred thousand short ones, not as much room for each of these."""
    found = cells(["a", "b"], ["a"] * 100_000 + ["x" * 10**6])
    assert found[:2] == [0, 0]
    assert len(found) == 100_001


def test_what_is_missing_is_drawn_uniformly() -> None:
    """Chi-square of 70,000 over 7 values passes 60 once in 2e10 times; declared values are never drawn."""
    found, _ = Record.of(list("abcdefg")).read(np.array([None] * 70_000, dtype=object))
    counts = np.bincount(found, minlength=7)
    assert ((counts - 10_000) ** 2 / 10_000).sum() < 60
    assert set(cells(list("abcdefg"), ["c"] * 1000)) == {2}


@pytest.mark.parametrize(
    "values",
    [{"a": [1, 2], "b": [True]}, {"a": [1]}, [1, 2], {"a": np.array([[1]]), "b": np.array([[True]])}, 3],
)
def test_fields_that_are_not_the_declared_ones_are_refused(values: object) -> None:
    """By their shape, never by what is in them."""
    with pytest.raises(QuestionError) as refused:
        Record.of({"a": Int(0, 2), "b": Bool()}).read(values)
    assert refused.value.code == "bad-table"
