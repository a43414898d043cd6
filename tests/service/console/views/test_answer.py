"""Answers as tables and files."""

from __future__ import annotations

import csv
import io
import json
from urllib.parse import quote_plus

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sulq.service.console.api import Refusal
from sulq.service.console.views.answer import MAX_DOWNLOAD_BYTES, AnswerTable, to_csv, to_parquet

CELLS = st.one_of(st.none(), st.text(max_size=12), st.integers(-(10**9), 10**9))


def table(**more: object) -> AnswerTable:
    tree = {
        "columns": ["city", "count"],
        "rows": [["Lod", 10], [None, 3]],
        "low": [[None, 8], [None, 1]],
        "high": [[None, 12], [None, None]],
        "level": 0.9,
    }
    return AnswerTable.of(tree | more)


def test_estimates_are_told_from_keys() -> None:
    """A column with intervals is an estimate; the rest name the bars; a missing end is said."""
    found = table()
    assert found.noisy == (False, True)
    assert [[cell.text for cell in row] for row in found.cells()] == [["Lod", "10"], ["missing", "3"]]
    assert found.cells()[0][1].spread == "8 to 12"
    assert found.cells()[1][1].spread == "1 to anything"
    assert table(low=[[None, 8], [None, 1]], high=[[None, 12], [None, 5]]).cells()[0][1].spread == "± 2"
    assert "90% confidence" in found.sentence()
    assert len(found.charts()) == 1


def test_an_unknown_estimate_is_said_and_not_drawn_SR18() -> None:
    """A missing value in a column of estimates is unknown; a missing key is missing; the chart leaves it out."""
    found = table(rows=[["Lod", 10], [None, None]], low=[[None, 8], [None, 0]], high=[[None, 12], [None, 120]])
    assert [[cell.text for cell in row] for row in found.cells()] == [["Lod", "10"], ["missing", "unknown"]]
    assert found.cells()[1][1].spread == "0 to 120"
    assert to_csv(found).decode().splitlines()[2] == ",,0,120"
    ((_, drawn),) = found.charts()
    assert "Lod" in drawn
    assert "missing" not in drawn


def test_a_single_estimate_is_a_sentence() -> None:
    """One number is read out with its interval and level."""
    alone = table(columns=["count"], rows=[[10]], low=[[8]], high=[[12]], level=0.95)
    assert alone.sentence() == "With 95% confidence the true count lies between 8 and 12."
    whole = table(columns=["count"], rows=[[10]], low=[[8]], high=[[12]], level=0.95, sampling=True)
    assert "the count of the larger population lies between 8 and 12" in whole.sentence()
    assert "no noise" in table(rows=[["a", 1]], low=[[None, None]], high=[[None, None]]).sentence()
    assert "No group" in table(rows=[], low=[], high=[]).sentence()


def test_digits_follow_the_interval() -> None:
    """A mean known to within two has no five decimals."""
    mean = table(columns=["m"], rows=[[119.87654]], low=[[117.8]], high=[[121.9]])
    assert mean.cells()[0][0].text == "119.9"


@given(st.lists(st.tuples(CELLS, CELLS), max_size=6), st.tuples(st.text(max_size=8), st.text(max_size=8)))
def test_no_text_of_a_csv_starts_a_formula_T82(rows: list[tuple[object, object]], names: tuple[str, str]) -> None:
    """Whatever the texts, no cell of the file begins like a formula unless it is a number; all rows are there."""
    blank = [[None, None]] * len(rows)
    tree = {"columns": list(names), "rows": [list(row) for row in rows], "low": blank, "high": blank, "level": 0.95}
    found = list(csv.reader(io.StringIO(to_csv(AnswerTable.of(tree)).decode(), newline="")))
    assert len(found) == len(rows) + 1
    for line in found:
        for cell in line:
            risky = cell.lstrip(" ")[:1] in tuple("=+-@\t\r\n|%") and cell.strip() != ""
            assert not risky or cell.lstrip("-").isdecimal()


def test_a_parquet_file_has_the_table_s_kinds() -> None:
    """Whole numbers stay whole, mixed ones become doubles, and missing cells stay missing."""
    made = table(rows=[["Lod", 10], [None, 2.5]], high=[[None, 12], [None, 4]])
    found = pq.read_table(io.BytesIO(to_parquet(made)))
    assert [str(field.type) for field in found.schema] == ["string", "double", "int64", "int64"]
    assert found.column("city").to_pylist() == ["Lod", None]


@pytest.mark.parametrize(
    "more",
    [
        {"columns": "x"},
        {"rows": None},
        {"rows": [["a"]]},
        {"low": []},
        {"level": "high"},
        {"rows": [["a", {"b": 1}], ["a", 1]]},
        {"rows": [["a", [1]], ["a", 1]]},
    ],
)
def test_what_is_no_table_is_refused(more: dict[str, object]) -> None:
    """A form can be written by hand; what is not a table of plain cells is refused."""
    with pytest.raises(Refusal):
        table(**more)


def test_a_table_survives_its_form() -> None:
    """What a page carries to the download reads back the same."""
    kept = AnswerTable.of(json.loads(table().kept()))
    assert kept == table()


@pytest.mark.parametrize("label", ["key", '"=&%+, \u20ac'])
def test_a_table_is_kept_where_a_form_can_carry_it(label: str) -> None:
    """As a browser sends it, it is no longer than what is read back. Control: the first that is not kept is longer."""

    def kept(rows: int) -> tuple[AnswerTable, str | None]:
        labels = [[f"{label}{i}", i] for i in range(rows)]
        found = table(rows=labels, low=[[None, i] for i in range(rows)], high=[[None, i + 1] for i in range(rows)])
        return found, found.kept()

    least, most = 1, 150_000
    while most - least > 1_000:
        middle = (least + most) // 2
        least, most = (middle, most) if kept(middle)[1] is not None else (least, middle)
    text = kept(least)[1]
    assert text is not None
    assert MAX_DOWNLOAD_BYTES / 2 < len(quote_plus(text)) <= MAX_DOWNLOAD_BYTES
    found, none = kept(2 * most)
    assert none is None
    parts = {name: getattr(found, name) for name in ("columns", "rows", "low", "high", "level")}
    assert len(quote_plus(json.dumps(parts, separators=(",", ":")))) > MAX_DOWNLOAD_BYTES


def test_a_chart_of_many_rows_says_how_many_there_are() -> None:
    """No more bars are made than are drawn."""
    rows = range(1_000)
    found = table(
        rows=[[f"k{i}", i] for i in rows], low=[[None, i - 1] for i in rows], high=[[None, i + 1] for i in rows]
    )
    ((_, drawn),) = found.charts()
    assert "and 988 more." in drawn
    assert "all in the table" not in drawn  # a page has 200 of them
    assert "k39" in drawn
    assert "k40" not in drawn
