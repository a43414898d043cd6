"""Where data and prepared copies lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from sulq.api.declarations import data_file, inside, prepared_copy, table_name
from sulq.data_files import find_files
from sulq.errors import SetupError


def test_a_table_is_named_after_its_place(tmp_path: Path) -> None:
    """A file's stem, the table of an address, or "data" for a frame."""
    assert table_name(None, tmp_path / "people.csv.gz") == "people"
    assert table_name("spark://host:7077/clinic.visits", None) == "visits"
    assert table_name("postgresql://host/base?table=clinic.visits", None) == "visits"
    assert table_name(object(), None) == "data"
    with pytest.raises(SetupError, match="name the table"):
        table_name("postgresql://host/base", None)
    assert inside(tmp_path / "all.duckdb", "visits") == "visits"
    assert inside(tmp_path / "visits.csv", "visits") is None


def test_only_data_files_that_are_there_are_taken(tmp_path: Path) -> None:
    """Another ending and a missing file are refused; an address is no file."""
    with pytest.raises(SetupError, match="unreadable-data"):
        data_file(tmp_path / "people.xlsx")
    with pytest.raises(SetupError, match="missing-file"):
        data_file(tmp_path / "people.csv")
    assert data_file("postgresql://host/base") is None


@pytest.mark.parametrize(
    ("ledger", "told", "found", "expected"),
    [
        ("people.ledger", None, True, "people.prepared"),
        ("all.ledger", None, True, "all.people.prepared"),
        ("all.ledger", None, False, "all.prepared"),
        (None, None, True, "people.prepared"),
        ("people.ledger", "there", True, "there"),
        ("people.ledger", False, True, False),
    ],
)
def test_the_prepared_copy_lies_beside_the_ledger(
    ledger: str | None, told: object, found: object, expected: object, tmp_path: Path
) -> None:
    """As told; where the ledger covers other files too, each has its own copy; a frame's is in memory."""
    place = None if ledger is None else tmp_path / ledger
    told = tmp_path / told if isinstance(told, str) else told
    expected = tmp_path / expected if isinstance(expected, str) else expected
    assert prepared_copy([tmp_path / "people.csv"], place, told, found=bool(found)) == expected
    assert prepared_copy([tmp_path / "people.csv", object()], place, None, found=bool(found)) is None


def test_the_copy_of_several_files_lies_beside_the_ledger_too(tmp_path: Path) -> None:
    """Under a name of its own, as the first file alone may have one, and as the same folder told otherwise has.

    Control: frames have theirs in memory.
    """
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("x\n1\n", encoding="utf-8")
    several = find_files(tmp_path)
    assert prepared_copy([several], tmp_path / "a.ledger", None, found=True) == tmp_path / f"a.{several.name}.prepared"
    whole = tmp_path.parent / f"{tmp_path.name}.{several.name}.prepared"
    assert prepared_copy([several], None, None, found=True) == whole
    listed = find_files([tmp_path / "a.csv", tmp_path / "b.csv"])
    assert prepared_copy([listed], None, None, found=True) == tmp_path / f"a.{listed.name}.prepared" != whole
    assert prepared_copy([several], tmp_path / "a.ledger", False, found=True) is False
    assert prepared_copy([several, object()], tmp_path / "a.ledger", None, found=True) is None
