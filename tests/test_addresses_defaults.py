"""Where ledgers and copies lie by default: by the data's own place, whatever else is opened with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sulq.addresses import begun, beside, copy_of, ledger_at, ledger_of
from sulq.errors import SetupError

URL = "postgresql://own@host/base?table=ward.visits&sslmode=require"


def test_a_ledger_lies_beside_the_data_and_a_copy_beside_the_ledger() -> None:
    """By the file's stem; datasets of one ledger have each a copy of their own."""
    assert beside(Path("/data/people.csv.gz")) == beside(Path("/data/people.parquet")) == Path("/data/people.ledger")
    assert copy_of(Path("/data/people.ledger"), "people") == Path("/data/people.prepared")
    assert copy_of(Path("/data/people.ledger"), "a b") == Path("/data/people.a%20b.prepared")


def test_a_ledger_of_a_table_lies_in_its_database() -> None:
    """Named after the schema and the table inside it; sulq's own words of the address are not the ledger's."""
    assert ledger_of(URL, "anything") == "postgresql://own@host/base?sslmode=require&ledger=sulq_ward_visits"
    assert ledger_at(URL, "other") == "postgresql://own@host/base?sslmode=require&ledger=other"
    with pytest.raises(SetupError, match="ledger="):
        ledger_of(URL, None)


def test_where_a_ledger_is_begun(tmp_path: Path) -> None:
    """Beside the private file, whatever frames there are; nowhere for frames; of several folders or tables it is told.

    A private frame beside a file does not put the ledger into memory.
    """
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    assert begun([(object(), "frame"), (two, "two"), (one, "one")]) == tmp_path / "two.ledger"
    assert begun([(object(), "frame")]) is None
    assert begun([(URL, "visits")]) == ledger_of(URL, "visits")
    for several in ([(one, "one"), (tmp_path / "deep" / "two.csv", "two")], [(URL, "visits"), (URL, "people")]):
        with pytest.raises(SetupError, match="ledger="):
            begun(several)
    parts = [tmp_path / "all" / f"year={year}" / f"kind={kind}" / "rows.csv" for year in (1, 2) for kind in "ab"]
    assert begun([(part, "all") for part in parts]) == tmp_path / "all.ledger"
    for other in (tmp_path / "more" / "year=1" / "rows.csv", tmp_path / "all" / "rows.csv"):
        with pytest.raises(SetupError, match="ledger="):
            begun([(parts[0], "all"), (other, "all")])
