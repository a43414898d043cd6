"""Several files as one table, as a configuration names them: the same rows, one ledger, one prepared copy."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sulq.cli.config import files_of, find
from sulq.cli.open import ledger_for, opened
from sulq.cli.serve import declaration
from sulq.errors import SetupError
from sulq.language.privacy import Epsilon

CONFIG = """[dataset.people]
data = {data}
budget = {{ epsilon = 900 }}
synthetic = true
[dataset.people.columns]
x = {{ int = [0, 9] }}
"""
LIST = '["parts/p0.parquet", "parts/p1.parquet"]'
TOLD = ['"parts"', '"parts/*.parquet"', LIST]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two parts of ten rows."""
    (tmp_path / "parts").mkdir()
    for part in range(2):
        pq.write_table(pa.table({"x": list(range(10))}), tmp_path / "parts" / f"p{part}.parquet")
    return tmp_path


def written(folder: Path, data: str) -> Path:
    path = folder / "sulq.toml"
    path.write_text(CONFIG.format(data=data), encoding="utf-8")
    return path


@pytest.mark.parametrize("data", TOLD)
def test_several_files_are_named_in_a_configuration(folder: Path, data: str) -> None:
    """As a folder, a pattern or a list; a second process finds ledger and copy."""
    found = find("people", written(folder, data))
    assert [path.name for path in found.files] == ["p0.parquet", "p1.parquet"]
    for _ in range(2):
        with opened(found) as db:
            db.prepare()
            assert abs(db.count(spend=Epsilon(400)).value - 20) < 1
            assert db.spent == Epsilon(400)
    parts = folder / "parts"
    ledger = folder / "parts.ledger" if data == TOLD[0] else parts / "p0.ledger"  # a folder's lies beside it
    assert ledger_for(found) == ledger
    assert [path.name for path in ledger.parent.glob("*.prepared")] == [f"{ledger.stem}.people.prepared"]


def test_however_they_are_named_they_have_one_ledger_T98(folder: Path) -> None:
    """Control: what one process spent, the next that names them otherwise finds spent."""
    for times, data in enumerate(TOLD, 1):
        with opened(find("people", written(folder, data))) as db:
            db.count(spend=Epsilon(1), fresh=True)
            assert db.spent == Epsilon(times)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ('"parts/*.csv"', "no data file in"),
        ("[]", "empty"),
        ('["parts/p0.parquet", "parts/p7.parquet"]', "p7.parquet"),
        ('["parts/p0.parquet", "parts/p0.parquet"]', "twice"),
        ("[1]", "a path in quotes"),
    ],
)
def test_what_names_no_files_is_refused(folder: Path, data: str, said: str) -> None:
    """With the reason, before anything is opened."""
    with pytest.raises(SetupError, match=said):
        opened(find("people", written(folder, data)))


@pytest.mark.parametrize("data", TOLD)
def test_a_server_holds_several_files_as_one_table(folder: Path, data: str) -> None:
    """With the ledger that a command finds. Control: of one file alone it is another table's."""
    found = find("people", written(folder, data))
    declared = declaration(found)
    assert [path.name for path in declared.tables[0].files] == ["p0.parquet", "p1.parquet"]
    assert declared.ledger == str(ledger_for(found))
    alone = declaration(find("people", written(folder, '"parts/p0.parquet"')))
    assert alone.tables[0].data.name == "p0.parquet"


def test_one_file_stands_for_itself_whether_it_is_there_or_not(folder: Path) -> None:
    """An address too."""
    assert files_of(folder / "none.parquet") == (folder / "none.parquet",)
    assert files_of("postgresql://h/d") == ("postgresql://h/d",)
