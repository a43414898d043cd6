"""`sulq.check`: of frames and files, with the note that the owner looked; no client and no Oracle has it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sulq
from sulq.api.client import Client
from sulq.api.named_asks import NamedAsks
from sulq.errors import SetupError

COLUMNS = {"x": (0, 5)}
TABLE = pa.table({"pid": ["a", "a", "b"], "x": [1, 9, 3]})


def test_a_frame_is_checked_and_its_ledger_s_note_left(tmp_path: Path) -> None:
    """Beside the ledger it will have; with one in memory nothing is left, as nothing of that stays."""
    found = sulq.check(TABLE, columns=COLUMNS, unit=sulq.Unit("pid", rows=1))
    assert (found.tables[0].columns[0].above, found.tables[0].dropped) == (1, 1)
    ledger = tmp_path / "a.ledger"
    sulq.check(TABLE, columns=COLUMNS, unit=sulq.Unit("pid", rows=1), ledger=ledger)
    assert [path.name for path in tmp_path.iterdir()] == ["a.looked"]
    assert "9" not in (tmp_path / "a.looked").read_text().replace('"', " ").split()
    for columns, words in ((COLUMNS, ""), ({"x": (0, 9)}, "column x")):
        unit = sulq.Unit("pid", rows=1)
        with sulq.connect(TABLE, columns=columns, unit=unit, budget=sulq.Epsilon(1), ledger=ledger) as db:
            assert db.facts.after_looking == (f"declared after looking at the data: {words}" if words else "")
            assert (db.facts.after_looking in repr(db)) == (bool(words) or not db.facts.after_looking)
            assert not words or words in db.count(spend=sulq.Epsilon(0.1)).notes[-1]


@pytest.mark.parametrize("rows", [1, "auto"])
def test_another_unit_or_table_after_a_look_is_said_SR28(tmp_path: Path, rows: object) -> None:
    """The unit's rows are a declaration too, and so is a table that was not there; a number that sulq chose is none."""
    ledger = tmp_path / "a.ledger"
    table = pa.table({"pid": list(range(200)) * 2, "x": [1] * 400})
    sulq.check(table, table="t", columns=COLUMNS, unit=sulq.Unit("pid", rows=rows), ledger=ledger)
    told = {"columns": COLUMNS, "budget": sulq.Epsilon(50), "ledger": ledger}
    with sulq.connect(table, table="t", unit=sulq.Unit("pid", rows="auto"), **told) as db:
        assert db.facts.after_looking.endswith("the unit") == (rows == 1)
    with sulq.connect(table, table="u", unit=sulq.Unit("pid", rows="auto"), **told) as db:
        assert "column x" in db.facts.after_looking


def test_several_tables_are_checked_together(tmp_path: Path) -> None:
    """Each by its own declarations; a table's own person and key as `connect` takes them."""
    pq.write_table(TABLE, tmp_path / "visits.parquet")
    regions = pa.table({"code": [1, 2], "who": ["a", None]})
    found = sulq.check(
        {"visits": tmp_path / "visits.parquet", "regions": regions},
        columns={"visits": COLUMNS, "regions": {"code": (0, 1)}},
        unit=sulq.Unit("pid", rows=5),
        public=["regions"],
        ledger=tmp_path / "a.ledger",
    )
    assert [(each.name, each.person, each.columns[0].above) for each in found.tables] == [
        ("visits", "pid", 1), ("regions", None, 1),
    ]  # fmt: skip


def test_what_cannot_be_checked_is_refused(tmp_path: Path) -> None:
    """A curator elsewhere, a ledger in a database, a column that is not there; and no note is left of it."""
    with pytest.raises(SetupError, match="a curator elsewhere"):
        sulq.check("http://127.0.0.1:1/survey")
    with pytest.raises(SetupError, match="lies in a database") as refused:
        sulq.check(TABLE, columns=COLUMNS, ledger="postgresql://localhost/x?ledger=y")
    assert refused.value.code == "not-available"
    pq.write_table(TABLE, tmp_path / "t.parquet")
    (tmp_path / "t.looked").write_text("[]")
    with pytest.raises(SetupError, match="cannot be read"):
        sulq.check(tmp_path / "t.parquet", columns=COLUMNS)


def test_no_client_and_no_oracle_has_a_check() -> None:
    """It is a function of the owner's data and never a method of what analysts hold."""
    for holder in (Client, NamedAsks):
        assert not [name for name in dir(holder) if "check" in name]
