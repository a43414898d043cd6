"""How declarations fit rows: every kind of cell counted, whatever kind of source it comes from."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import sulq
from sulq.errors import SetupError
from sulq.language.domain import Schema
from sulq.language.facts import TableFacts
from sulq.sources.duckdb.declared_fit import MAX_SHOWN_VALUES, declared_fit
from sulq.sources.origin import Origin
from sulq.sources.tables import Dataset, Given

NAN, INFINITE = float("nan"), float("inf")
ZERO = {"missing": 0, "unread": 0, "unmatched": 0, "nearly": 0, "below": 0, "above": 0, "cut": 0}
DAY = dt.date
CASES = [
    (sulq.Real(0, 10), [1.5, -3.0, 99.0, None, NAN, INFINITE, -INFINITE], {"missing": 2, "below": 2, "above": 2}),
    (sulq.Int(0, 5), [0, 5, 6, -1, None, 2**62], {"missing": 1, "below": 1, "above": 2}),
    (sulq.Int(0, 5), ["0", " 5 ", "6.2", "-1e3", "x", "", "  ", None],
     {"missing": 3, "unread": 1, "below": 1, "above": 1}),
    (sulq.Bool(), ["yes", "no", "maybe", None, "TRUE"], {"missing": 1, "unread": 1}),
    (sulq.Category(["a", "b"]), ["a", "A", " b", "c", None, ""], {"missing": 2, "unmatched": 3, "nearly": 2}),
    (sulq.Category([1, 2, 3]), [1, 2, 9, None], {"missing": 1, "unmatched": 1}),
    (sulq.Date("2020-01-01", "2020-12-31"), [DAY(2020, 1, 1), DAY(2019, 12, 31), DAY(2021, 1, 1), None],
     {"missing": 1, "below": 1, "above": 1}),
    (sulq.Date("2020-01-01", "2020-12-31"), ["2020-12-31 23:59:59", "2019-12-31", "2021-01-01 00:00:00", "soon", ""],
     {"missing": 1, "unread": 1, "below": 1, "above": 1}),
    (sulq.Timestamp("2020-01-01", "2020-12-31"), [DAY(2020, 6, 1), DAY(2019, 12, 31), DAY(9999, 12, 31), None],
     {"missing": 1, "below": 1, "above": 1}),
    (sulq.Timestamp("2020-01-01", "2020-12-31"), [dt.datetime(year, 2, 2, tzinfo=dt.UTC) for year in (2019, 2020)],
     {"below": 1}),
    (sulq.Text(longest=2), ["ab", "abc", "", None], {"missing": 2, "cut": 1}),
    (sulq.Int(0, 5, missing=False, default=3), [None, 9], {"missing": 1, "above": 1}),
]  # fmt: skip


def fit(data: object, columns: dict[str, object], unit: sulq.Unit, **told: object) -> dict:
    given = Given(Origin.of(data), TableFacts(Schema.of("t", columns)))
    (found,) = declared_fit(Dataset((given,), unit, b""), **told)
    return found


@pytest.mark.parametrize("kind", ["frame", "parquet", "csv"])
def test_each_cell_is_counted_as_it_is_read(kind: str, tmp_path: Path) -> None:
    """Missing, unreadable, not listed, clamped or cut; the same of a frame, a Parquet and a CSV file."""
    most = max(len(cells) for _, cells, _ in CASES)
    table = pa.table({f"x{i}": pa.array(cells + [None] * (most - len(cells))) for i, (_, cells, _) in enumerate(CASES)})
    expected = [ZERO | counts | {"missing": counts.get("missing", 0) + most - len(cells)} for _, cells, counts in CASES]
    data: object = table
    if kind == "parquet":
        data = tmp_path / "t.parquet"
        pq.write_table(table, data)
    elif kind == "csv":
        data = tmp_path / "t.csv"
        pacsv.write_csv(table, data)
        expected[0] |= {
            "missing": expected[0]["missing"] - 1,
            "unread": 3,
            "below": 1,
            "above": 1,
        }  # nan and inf are no numbers there
    found = fit(data, {f"x{i}": column for i, (column, _, _) in enumerate(CASES)}, sulq.Unit())["columns"]
    assert [{name: each[name] for name in ZERO} for each in found] == expected


def test_declared_values_that_never_occur_are_named_and_counted() -> None:
    """The first of them by name, all by number, also of a list too long to be looked through; control: all occur."""
    few = fit(pa.table({"x": ["b"]}), {"x": ["a", "b", "c"]}, sulq.Unit())["columns"][0]
    assert (few["unused"], few["never"]) == (["a", "c"], 2)
    values = [f"v{i}" for i in range(500)]
    many = fit(pa.table({"x": ["v499", "V7"]}), {"x": values}, sulq.Unit())["columns"][0]
    assert (many["unused"], many["never"], many["nearly"]) == (values[:MAX_SHOWN_VALUES], 499, 1)
    all_there = fit(pa.table({"x": [5, 6, 7]}), {"x": sulq.Category([5, 6, 7])}, sulq.Unit())["columns"][0]
    assert (all_there["unused"], all_there["never"]) == ([], 0)


def test_rows_are_counted_by_whose_they_are() -> None:
    """Rows of nobody and rows past those that are kept, by ids as the unit folds them; nothing where a row is one."""
    table = pa.table({"pid": ["a", "A", "a", "b", None, ""], "x": [1] * 6})
    found = fit(table, {"x": (0, 9)}, sulq.Unit("pid", rows=1))
    told = ("person", "persons", "nobody", "kept", "heavy", "dropped")
    assert [found[name] for name in told] == ["pid", 3, 2, 1, 1, 1]
    folded = fit(table, {"x": (0, 9)}, sulq.Unit("pid", rows=1, fold="case"))
    assert [folded[name] for name in told] == ["pid", 2, 2, 1, 1, 2]
    assert fit(table, {"x": (0, 9)}, sulq.Unit("pid", rows=1), chosen=False)["dropped"] == 0
    assert "persons" not in fit(table, {"x": (0, 9)}, sulq.Unit())
    assert fit(table.slice(0, 0), {"x": (0, 9)}, sulq.Unit("pid"))["dropped"] == 0


def test_names_that_need_quoting_are_counted() -> None:
    """Columns are never named in the statements."""
    found = fit(pa.table({'a"; --': [7], "b' c": ["x"]}), {'a"; --': (0, 5), "b' c": ["x"]}, sulq.Unit())
    assert [each["above"] for each in found["columns"]] == [1, 0]


def test_tables_elsewhere_are_refused() -> None:
    """Rows of a database are not copied out for a check."""
    with pytest.raises(SetupError) as refused:
        fit("postgresql://localhost/x?table=t", {"x": (0, 5)}, sulq.Unit())
    assert refused.value.code == "not-available"
