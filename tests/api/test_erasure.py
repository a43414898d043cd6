"""`db.forget`: persons' rows erased for good, under the same ledger, whatever the data is kept in."""

from __future__ import annotations

import contextlib
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import sulq
from sulq.api.erasure import MEANS, Erasure
from sulq.errors import AccessDenied, SetupError

N = 400
PERSONS = [f"person-{i % 100}" for i in range(N)]
TABLE = pa.table({"pid": PERSONS, "x": [i // 100 + 10 * (i % 100) for i in range(N)]})  # a cell of its own each
GROUPS = "SELECT x, COUNT(*) FROM t GROUP BY x"
NAMES = ["person-7", "person-42", "nobody-at-all"]
KINDS = ["parquet", "csv", "duckdb", "frame", "unprepared", "parts"]


def placed(kind: str, folder: Path) -> object:
    """The table as such a source."""
    if kind == "frame":
        return TABLE
    if kind == "parts":
        (folder / "t").mkdir()
        for i in range(2):
            pq.write_table(TABLE.slice(i * N // 2, N // 2), folder / "t" / f"{i}.parquet")
        return folder / "t"
    path = folder / {"unprepared": "t.parquet"}.get(kind, f"t.{kind}")
    if kind == "csv":
        pacsv.write_csv(TABLE, path)
    elif kind == "duckdb":
        with duckdb.connect(str(path)) as db:
            db.register("found", TABLE)
            db.execute("CREATE TABLE t AS SELECT * FROM found")
    else:
        pq.write_table(TABLE, path)
    return path


def opened(kind: str, data: object, folder: Path) -> sulq.api.database.Database:
    more = {"prepared": False} if kind == "unprepared" else {}
    return sulq.connect(
        data, table="t", columns={"x": sulq.Category(list(range(1000)))}, unit=sulq.Unit("pid", rows=2),
        budget=sulq.Epsilon(100), synthetic=True, ledger=folder / "t.ledger", **more,
    )  # fmt: skip


def kept(db: sulq.api.database.Database) -> set[int]:
    """Which rows are kept: each has a cell of its own."""
    frame = sulq.testing.exact(db).sql(GROUPS).to_dict()
    return {x for x, count in zip(*list(frame.values())[:2], strict=True) if count}


@pytest.mark.parametrize("kind", KINDS)
def test_erased_persons_stay_out_and_nobody_else_s_rows_are_drawn_anew_SR2(kind: str, tmp_path: Path) -> None:
    """Of every other person the same rows are kept; the source still holds them all. Control: those rows were there."""
    data = placed(kind, tmp_path)
    with opened(kind, data, tmp_path) as db:
        before = kept(db)
        told = db.forget(NAMES)
    assert (told.asked, told.unknown) == (3, (3,))
    gone = {x for x in before if x // 10 in (7, 42)}
    assert len(gone) == 4
    for _ in range(2):
        with opened(kind, data, tmp_path) as db:
            assert kept(db) == before - gone


def test_nothing_is_given_back_and_no_stored_answer_is_given_again_SR12(tmp_path: Path) -> None:
    """Spent stays spent, and the same question is asked of the rows anew; control: before, it was free."""
    data = placed("parquet", tmp_path)
    with opened("parquet", data, tmp_path) as db:
        db.count(spend=sulq.Epsilon(1))
        assert db.count(spend=sulq.Epsilon(1)).reused
        version = db.facts.version
        db.forget(NAMES)
        with pytest.raises(AccessDenied):
            db.count(spend=sulq.Epsilon(1))
    with opened("parquet", data, tmp_path) as db:
        assert (db.spent, db.facts.version) == (sulq.Epsilon(1), version + 1)
        assert not db.count(spend=sulq.Epsilon(1)).reused
        assert db.spent == sulq.Epsilon(2)
        db.forget(NAMES)  # again: nothing more to note
    with opened("parquet", data, tmp_path) as db:
        assert db.facts.version == version + 1


def test_questions_end_before_anything_is_noted_SR12(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer over the old rows is never stored under the new version; where they do not end nobody is erased."""
    data = placed("parquet", tmp_path)
    for ends in (False, True):
        with opened("parquet", data, tmp_path) as db:
            ledger, order, erase = db._ledger, [], db._ledger.erase
            monkeypatch.setattr(db._waits, "end", lambda _, ends=ends, order=order: (order.append("end"), ends)[1])
            monkeypatch.setattr(
                ledger, "erase", lambda told, order=order, erase=erase: (order.append("erase"), erase(told))
            )
            with contextlib.nullcontext() if ends else pytest.raises(SetupError, match="nobody was erased"):
                db.forget(NAMES)
            assert order[:2] == (["end", "erase"] if ends else ["end", "end"])
    with opened("parquet", data, tmp_path) as db:
        assert len(db._ledger.erased) == len(NAMES)


def test_who_opened_the_rows_before_answers_nothing_from_them_SR12(tmp_path: Path) -> None:
    """As a running server: no debit and no stored answer after another process erased; control: before, both."""
    data = placed("parquet", tmp_path)
    with opened("parquet", data, tmp_path) as old:
        old.count(spend=sulq.Epsilon(1))
        assert old.count(spend=sulq.Epsilon(1)).reused
        with opened("parquet", data, tmp_path) as db:
            db.forget(NAMES)
        for spend in (1, 2):
            with pytest.raises(SetupError, match="erased since") as refused:
                old.count(spend=sulq.Epsilon(spend))
            assert refused.value.code == "not-ready"
        assert old.spent == sulq.Epsilon(1)
    with opened("parquet", data, tmp_path) as db:
        assert not db.count(spend=sulq.Epsilon(1)).reused


def test_the_copy_in_use_is_deleted_whatever_it_is_called(tmp_path: Path) -> None:
    """Another name and folder than the ledger's; what cannot be looked at is named to the owner."""
    copy = tmp_path / "away" / "rows.db"
    copy.parent.mkdir()
    (tmp_path / "odd.prepared").write_bytes(b"no copy")
    told = {"columns": {"x": (0, 999)}, "unit": sulq.Unit("pid", rows=2), "budget": sulq.Epsilon(1)}
    with sulq.connect(placed("parquet", tmp_path), ledger=tmp_path / "t.ledger", prepared=copy, **told) as db:
        db.prepare()
        assert copy.exists()
        found = db.forget(NAMES)
    assert not copy.exists()
    assert found.unread == (str(tmp_path / "odd.prepared"),)
    assert "odd.prepared" in str(found)


def test_no_id_stands_anywhere_and_entries_do_not_tell_who_was_there(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Neither in the ledger, a copy, a log, the words nor analysts' facts; one of nobody is noted like any."""
    data = placed("parquet", tmp_path)
    with opened("parquet", data, tmp_path) as db:
        db.prepare()
        facts = str(db.facts)
        told = str(db.forget(NAMES))
    with opened("parquet", data, tmp_path) as db:
        db.prepare()
        assert str(db.facts) == facts
        assert len(db._ledger.erased) == len(NAMES)
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.name != "t.parquet")
    said = told + caplog.text + "".join(capfd.readouterr())
    for name in NAMES:
        assert name.encode() not in written
        assert name not in said
    assert "2 of 3 ids had rows" in told


def test_every_table_of_the_ledger_is_without_them(tmp_path: Path) -> None:
    """Those of the dataset by each table's own column, one that is registered later too; public ones are not asked."""
    stays = pa.table({"who": ["person-7", "person-8"], "y": [1, 2]})
    regions = pa.table({"pid": ["person-7"], "code": [1]})
    told = {
        "unit": sulq.Unit("pid", rows=4), "budget": sulq.Epsilon(100), "synthetic": True,
        "ledger": tmp_path / "t.ledger", "public": ["regions"], "persons": {"stays": "who"},
        "columns": {"t": {"x": (0, 999)}, "stays": {"y": (0, 9)}, "regions": {"code": (0, 9)}},
    }  # fmt: skip
    with sulq.connect({"t": TABLE, "stays": stays, "regions": regions}, **told) as db:
        db.forget(["person-7"])
    with sulq.connect({"t": TABLE, "stays": stays, "regions": regions}, **told) as db:
        exact = sulq.testing.exact(db)
        counts = [exact.sql(f"SELECT COUNT(*) FROM {table}").value for table in ("t", "stays")]
        assert [int(count) for count in counts] == [396, 1]
    later = {name: told[name] for name in ("unit", "budget", "synthetic", "ledger")}
    with sulq.connect(stays.rename_columns(["pid", "y"]), table="u", columns={"y": (0, 9)}, **later) as db:
        assert int(sulq.testing.exact(db).sql("SELECT COUNT(*) FROM u").value) == 1


def test_what_cannot_be_erased_is_refused(tmp_path: Path) -> None:
    """A ledger in memory, and rows without persons; nothing is noted, and the database stays open."""
    with sulq.connect(TABLE, columns={"x": (0, 999)}, unit=sulq.Unit("pid"), budget=sulq.Epsilon(1)) as db:
        with pytest.raises(SetupError) as refused:
            db.forget(["person-7"])
        assert refused.value.code == "not-available"
    told = {"columns": {"x": (0, 999)}, "budget": sulq.Epsilon(1), "ledger": tmp_path / "t.ledger"}
    with sulq.connect(TABLE, **told) as db:
        with pytest.raises(SetupError, match="no person's rows"):
            db.forget(["person-7"])
        assert db._ledger.erased == ()
        db.count(spend=sulq.Epsilon(0.1))


def test_the_owner_is_told_what_it_means() -> None:
    """In words, with places of ids and none of them."""
    assert str(Erasure(1)).startswith("1 of 1 id had rows")
    assert str(Erasure(3, (2,))).splitlines()[1].endswith("2. They stay out if they come.")
    assert str(Erasure(2)).endswith(MEANS)
