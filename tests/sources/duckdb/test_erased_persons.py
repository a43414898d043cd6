"""Persons as an owner names them, found by what the column of persons holds; copies that hold them deleted."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import sulq
from sulq.errors import SetupError
from sulq.language.domain import Schema
from sulq.language.facts import TableFacts
from sulq.sources.duckdb.erased_persons import drop_copies, find_persons
from sulq.sources.erasure import digest_of
from sulq.sources.origin import Origin
from sulq.sources.tables import Dataset, Given

KEY = bytes(32)
ID = uuid.UUID(int=0xABC)


def found(persons: list[object], ids: list[str], fold: str | None = None) -> list[bool]:
    table = pa.table({"pid": persons, "x": [1] * len(persons)})
    given = Given(Origin.of(table), TableFacts(Schema.of("t", {"x": (0, 9)})))
    digests, there = find_persons(Dataset((given,), sulq.Unit("pid", fold=fold), KEY), ids)
    assert all(len(each) <= 1 for each in digests)
    return there


@pytest.mark.parametrize(
    ("persons", "ids", "fold", "there"),
    [
        (["a", "B "], ["a", "A", "B ", "B"], None, [True, False, True, False]),
        (["a", "B "], ["A", "b", "B "], "spelling", [True, True, True]),
        ([7, 8], ["7", "7.0", " 8 ", "9", "x", ""], None, [True, True, True, False, False, False]),
        ([7.0, None], ["7", "7.00"], None, [True, True]),
        ([Decimal("7.50"), Decimal("8.00")], ["7.5", "8", "8.1"], None, [True, True, False]),
        ([dt.date(2024, 1, 2)], ["2024-01-02", "2024-01-03", "soon"], None, [True, False, False]),
        ([str(ID)], [str(ID), str(ID).upper()], None, [True, False]),
        ([True], ["true", "false"], None, [True, False]),
    ],
)
def test_an_id_names_whom_the_column_does(
    persons: list[object], ids: list[str], fold: str | None, there: list[bool]
) -> None:
    """Numbers by value, texts by their bytes or as the unit folds them, days in ISO form; what is no id is nobody."""
    assert found(persons, ids, fold) == there


def test_an_id_of_nobody_has_a_digest_too() -> None:
    """So that what is noted does not tell whether a row names it; what can name nobody there has none."""
    table = pa.table({"pid": ["a"], "x": [1]})
    given = Given(Origin.of(table), TableFacts(Schema.of("t", {"x": (0, 9)})))
    digests, there = find_persons(Dataset((given,), sulq.Unit("pid"), KEY), ["zoe", ""])
    assert (digests, there) == ([{digest_of(KEY, "zoe")}, set()], [False, False])


def test_rows_that_name_no_persons_or_lie_elsewhere_are_refused() -> None:
    """Nobody's rows can be told there."""
    for data, unit, code in (
        (pa.table({"x": [1]}), sulq.Unit(), "bad-declaration"),
        ("postgresql://localhost/x?table=t", sulq.Unit("pid"), "not-available"),
    ):
        given = Given(Origin.of(data), TableFacts(Schema.of("t", {"x": (0, 9)})))
        with pytest.raises(SetupError) as refused:
            find_persons(Dataset((given,), unit, KEY), ["a"])
        assert refused.value.code == code


def test_copies_of_the_person_space_alone_are_deleted(tmp_path: Path) -> None:
    """A worker's too; another space's, and what is no copy, stay."""
    for name in ("a", "b"):
        table = pa.table({"pid": [name], "n": [1]})
        told = {"unit": sulq.Unit("pid"), "budget": sulq.Epsilon(1), "ledger": tmp_path / f"{name}.ledger"}
        pa.parquet.write_table(table, tmp_path / f"{name}.parquet")
        with sulq.connect(tmp_path / f"{name}.parquet", columns={"n": (0, 9)}, **told) as db:
            db.prepare()
            space = db._ledger.space
    (tmp_path / "b.prepared.d").mkdir()
    (tmp_path / "b.prepared.d" / "rows").hardlink_to(tmp_path / "b.prepared")
    (tmp_path / "odd.prepared").write_bytes(b"no copy")
    used = tmp_path / "kept.db"
    used.write_bytes((tmp_path / "b.prepared").read_bytes())
    assert drop_copies([tmp_path], space) == [tmp_path / "odd.prepared"], "it may be one, and its owner is told"
    assert not (tmp_path / "b.prepared.d" / "rows").exists()
    assert used.exists()
    drop_copies([tmp_path], space, used=used)
    assert not used.exists()
    assert sorted(path.name for path in tmp_path.glob("*.prepared")) == ["a.prepared", "odd.prepared"]
