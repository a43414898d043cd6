"""The door: what it opens, what it refuses, and that a refusal spends nothing."""

from __future__ import annotations

import gzip
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from subprocess import PIPE

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sulq
from sulq import Certificate, Epsilon, EpsilonDelta, Int, OpenSums, Real, Rho, Text, Unit, col, lit
from sulq.curator.ledger.ledger import Ledger, verify
from sulq.errors import QuestionError, SetupError, SulqError
from sulq.language.privacy import DELTA_SHARES, key_part
from sulq.language.question import Sums
from sulq.testing import exact

COLUMNS = {"x": Int(0, 9), "g": ["a", "b"]}
TABLE = pa.table({"x": [1, 5, 7, None], "g": ["a", "b", "a", "a"]})


def parquet(folder: Path) -> Path:
    path = folder / "people.parquet"
    pq.write_table(TABLE, path)
    return path


def csv(folder: Path) -> Path:
    path = folder / "people.csv"
    path.write_text("x,g\n1,a\n5,b\n7,a\n,a\n", encoding="utf-8")
    return path


def csv_gz(folder: Path) -> Path:
    path = folder / "people.csv.gz"
    path.write_bytes(gzip.compress(b"x,g\n1,a\n5,b\n7,a\n,a\n"))
    return path


def duckdb_file(folder: Path) -> Path:
    path = folder / "people.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE people AS SELECT * FROM (VALUES (1,'a'),(5,'b'),(7,'a'),(NULL,'a')) AS t(x, g)"
        )
    return path


FILES = [parquet, csv, csv_gz, duckdb_file]
FRAMES = [lambda _: TABLE, lambda _: pl.from_arrow(TABLE), lambda _: TABLE.to_pandas(), lambda _: TABLE.to_batches()[0]]


@pytest.mark.parametrize("engine", ["duckdb", "memory"])
@pytest.mark.parametrize("make", FILES + FRAMES)
def test_every_kind_of_data_has_the_same_sums(make, engine: str, tmp_path: Path) -> None:
    """Files and frames of the same rows open on both engines and agree."""
    data = make(tmp_path)
    if (engine, make) == ("memory", duckdb_file):
        with pytest.raises(SetupError, match="engine-not-available"):
            sulq.connect(data, columns=COLUMNS, budget=Epsilon(1), engine=engine)
        return
    with sulq.connect(data, columns=COLUMNS, budget=Epsilon(1), synthetic=True, engine=engine) as db:
        assert exact(db).count(by="g").value == {"a": 3, "b": 1, None: 0}
        assert exact(db).sum("x").value == 13
        assert db.facts.table == ("people" if isinstance(data, Path) else "data")


def test_where_things_lie_by_default(tmp_path: Path) -> None:
    """A file's ledger and prepared copy lie beside it; a frame's ledger is in memory and says so."""
    with sulq.connect(parquet(tmp_path), columns=COLUMNS, budget=Epsilon(1)) as db:
        db.prepare()
        assert (tmp_path / "people.ledger").is_file()
        assert (tmp_path / "people.prepared").exists()
        assert "forgotten" not in repr(db)
    with sulq.connect(TABLE, columns=COLUMNS, budget=Epsilon(1)) as db:
        assert "forgotten at exit" in repr(db)
    with sulq.connect(
        csv(tmp_path), columns=COLUMNS, budget=Epsilon(1), prepared=False, ledger=tmp_path / "l.ledger", new_people=True
    ) as db:
        db.count(spend=Epsilon(0.5))
    assert not (tmp_path / "l.prepared").exists()


def test_data_that_could_not_be_opened_leave_no_ledger(tmp_path: Path) -> None:
    """What the error says to do is not refused afterwards. Control: a ledger that was there before stays as it was."""
    csv(tmp_path)
    pq.write_table(pa.table({"id": [1], "x": [2]}), tmp_path / "b.parquet")
    (tmp_path / "a.csv").write_text("id,x\n1,2\n")
    tables = {"a": tmp_path / "a.csv", "b": tmp_path / "b.parquet"}
    options = {"columns": {name: {"x": Int(0, 9)} for name in tables}, "prepared": False}
    with pytest.raises(SetupError, match=r"fold='spelling'.*person-type"):
        sulq.connect(tables, unit=Unit("id"), budget=Epsilon(1), **options)
    assert list(tmp_path.glob("*.ledger*")) == []
    with sulq.connect(tables, unit=Unit("id", fold="spelling"), budget=Epsilon(2), **options) as db:
        db.sql("SELECT COUNT(*) FROM a", spend=Epsilon(1))
    (tmp_path / "a.csv").write_text('id,x\n1,"2\n')
    with pytest.raises(SetupError, match="malformed-csv"):
        sulq.connect(tables, unit=Unit("id", fold="spelling"), budget=Epsilon(2), renew=True, **options)
    assert verify(tmp_path / "a.ledger").debits == 1


def asked(data: object, **options: object) -> None:
    """Open data and ask once."""
    with sulq.connect(data, columns=COLUMNS, budget=Epsilon(1), **options) as db:
        db.count(spend=Epsilon(0.5))


def corrupt(folder: Path) -> Path:
    path = parquet(folder)
    content = bytearray(path.read_bytes())
    content[4 : len(content) - 40] = bytes(len(content) - 44)
    path.write_bytes(content)
    return path


def truncated(folder: Path) -> Path:
    path = parquet(folder)
    path.write_bytes(path.read_bytes()[:100])
    return path


def named(folder: Path, name: str, content: bytes = b"") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


BAD_DATA = {
    "missing file": (lambda _: "nowhere.parquet", "missing-file"),
    "folder": (lambda f: f, "missing-file"),
    "other kind": (lambda f: named(f, "people.xlsx"), "unreadable-data"),
    "no parquet": (lambda f: named(f, "people.parquet", b"PAR1 not at all"), "unreadable-data"),
    "truncated parquet": (truncated, "unreadable-data"),
    "empty parquet": (lambda f: named(f, "people.parquet"), "unreadable-data"),
    "no gzip": (lambda f: named(f, "people.csv.gz", b"x,g\n1,a\n"), "unreadable-data"),
    "no duckdb": (lambda f: named(f, "people.duckdb", b"not a database" * 1000), "unreadable-data"),
    "empty csv": (lambda f: named(f, "people.csv"), "missing-column"),
    "cut gzip": (lambda f: named(f, "people.csv.gz", gzip.compress(b"x,g\n1,a\n" * 500)[:-30]), "unreadable-data"),
    "number": (lambda _: 7, "unreadable-data"),
    "list": (lambda _: [1, 2, 3], "unreadable-data"),
    "url": (lambda _: "https://curator.example.org/survey", "bad-declaration"),  # with declarations of its own
    "postgres without a table": (lambda _: "postgresql://somewhere/people", "bad-declaration"),
    "postgres that is not there": (lambda _: "postgresql://127.0.0.1:1/base?table=people", "unreadable-data"),
    "another database": (lambda _: "mysql://somewhere/people", "engine-not-available"),
    "tables": (lambda _: {"people": TABLE}, "bad-declaration"),
}


@pytest.mark.parametrize("what", BAD_DATA)
def test_bad_data_is_an_error_of_set_up(what: str, tmp_path: Path) -> None:
    """Missing, corrupt, foreign and unsupported data: an error with a code, nothing spent, nothing left open."""
    make, code = BAD_DATA[what]
    data = make(tmp_path)
    with pytest.raises(SetupError) as refused:
        asked(data, ledger=tmp_path / "l.ledger")
    assert refused.value.code == code
    assert refused.value.remedy
    with sulq.connect(TABLE, columns=COLUMNS, budget=Epsilon(1), ledger=tmp_path / "l.ledger") as db:
        assert db.spent.amount == 0


def test_a_parquet_with_a_damaged_body_is_an_error_of_set_up(tmp_path: Path) -> None:
    """Pages that cannot be read stop the owner before anything is paid (T33)."""
    with pytest.raises(SetupError) as refused:
        asked(corrupt(tmp_path))
    assert refused.value.code == "unreadable-data"
    pq.write_table(TABLE, tmp_path / "people.parquet")
    with sulq.connect(tmp_path / "people.parquet", columns=COLUMNS, budget=Epsilon(1), renew=True) as db:
        assert db.spent.amount == 0


BAD_DECLARATIONS = {
    "reversed Int": (lambda: {"columns": {"x": Int(9, 0)}}, "bad-bounds"),
    "reversed pair": (lambda: {"columns": {"x": (9, 0)}}, "bad-bounds"),
    "reversed Real": (lambda: {"columns": {"x": Real(1.0, 0.5)}}, "bad-bounds"),
    "NaN bound": (lambda: {"columns": {"x": Real(float("nan"), 1)}}, "bad-bounds"),
    "infinite bound": (lambda: {"columns": {"x": (0.0, float("inf"))}}, "bad-bounds"),
    "truth as bound": (lambda: {"columns": {"x": (False, True)}}, "bad-declaration"),
    "text as bound": (lambda: {"columns": {"x": ("0", "9")}}, "bad-declaration"),
    "equal categories": (lambda: {"columns": {"g": ["a", "a"]}}, "bad-declaration"),
    "mixed categories": (lambda: {"columns": {"g": ["a", 1]}}, "bad-declaration"),
    "reversed dates": (lambda: {"columns": {"x": sulq.Date("2021-01-01", "2020-01-01")}}, "bad-bounds"),
    "no date": (lambda: {"columns": {"x": sulq.Date("yesterday", "2020-01-01")}}, "bad-bounds"),
    "missing column": (lambda: {"columns": {"nothing": Int(0, 1)}}, "missing-column"),
    "missing person": (lambda: {"unit": Unit("nobody")}, "missing-column"),
    "no columns": (lambda: {"columns": {}}, "bad-declaration"),
    "no budget": (lambda: {"budget": None}, "bad-declaration"),
    "budget as number": (lambda: {"budget": 1.0}, "bad-declaration"),
    "queries as budget": (lambda: {"budget": sulq.Queries(5)}, "bad-declaration"),
    "unit as text": (lambda: {"unit": "x"}, "bad-declaration"),
    "rows without column": (lambda: {"unit": Unit(rows=2)}, "bad-declaration"),
    "no rows": (lambda: {"unit": Unit("x", rows=0)}, "bad-declaration"),
    "other relation": (lambda: {"unit": Unit("x", neighbors="bounded")}, "bad-declaration"),
    "no size": (lambda: {"size": 0}, "bad-declaration"),
    "size as text": (lambda: {"size": "10"}, "bad-declaration"),
    "other engine": (lambda: {"engine": "excel"}, "engine-not-available"),
    "unknown engine": (lambda: {"engine": "oracle"}, "engine-not-available"),
    "token for a frame": (lambda: {"token": "t"}, "bad-declaration"),
    "graph": (lambda: {"graph": ("u", "v", "w")}, "bad-declaration"),
    "graph of one column": (lambda: {"graph": ("age",)}, "bad-declaration"),
    "graph of one column twice": (lambda: {"graph": ("age", "age")}, "bad-declaration"),
    "graph as text": (lambda: {"graph": "uv"}, "bad-declaration"),
    "estimators as a list": (lambda: {"estimators": ["math:sqrt"]}, "bad-declaration"),
    "estimator that is nowhere": (lambda: {"estimators": {"f": "math:no_such_function"}}, "bad-declaration"),
    "estimator without a package": (lambda: {"estimators": {"f": "sqrt"}}, "bad-declaration"),
    "certificate of labels": (
        lambda: {"estimators": {"f": ("numpy:min", Certificate(0.1, 1, 0.9, 0, 9, ("g",)))}},
        "bad-certificate",
    ),
    "estimator with a number": (lambda: {"estimators": {"f": ("math:sqrt", 3)}}, "bad-certificate"),
}


@pytest.mark.parametrize("what", BAD_DECLARATIONS)
def test_bad_declarations_are_errors_with_a_code(what: str, tmp_path: Path) -> None:
    """Each wrong declaration is refused by name, and no ledger holds a spend for it."""
    make, code = BAD_DECLARATIONS[what]
    given = {"columns": COLUMNS, "budget": Epsilon(1), "ledger": tmp_path / "l.ledger"}
    with pytest.raises(SulqError) as refused:
        sulq.connect(TABLE, **(given | make()))
    assert refused.value.code == code
    assert str(refused.value).endswith(f"[{code}]")
    with sulq.connect(TABLE, columns=COLUMNS, budget=Epsilon(1), ledger=tmp_path / "m.ledger") as db:
        assert db.spent.amount == 0


def test_a_ledger_of_others_is_refused(tmp_path: Path) -> None:
    """A file that is no ledger, and one in a folder that is not there: codes, nothing spent."""
    ledger = tmp_path / "l.ledger"
    ledger.write_bytes(b"this is no ledger" * 500)
    with pytest.raises(SetupError) as refused:
        sulq.connect(TABLE, columns=COLUMNS, budget=Epsilon(1), ledger=ledger)
    assert refused.value.code == "ledger-damaged"
    with pytest.raises(SulqError) as refused:
        sulq.connect(TABLE, columns=COLUMNS, budget=Epsilon(1), ledger=tmp_path / "nowhere" / "l.ledger")
    assert refused.value.code in {"missing-file", "ledger-failed", "ledger-damaged"}


@pytest.mark.parametrize(
    ("name", "delta", "line"),
    [("basic_share", "basic_delta", "for asks added one by one"), ("key_share", "key_delta", "for open keys")],
)
def test_an_owner_sets_the_parts_of_delta_SR26(tmp_path: Path, name: str, delta: str, line: str) -> None:
    """They are fixed when the ledger is begun: the same and none are opened, another is refused; nothing is spent."""
    path, budget = parquet(tmp_path), EpsilonDelta(1, 1e-6)
    with sulq.connect(path, columns=COLUMNS, budget=budget, **({"basic_share": 0} | {name: 0.3})) as db:
        assert (db.facts.split.delta, getattr(db.facts.split, delta)) == (Fraction(7, 10**7), Fraction(3, 10**7))
        assert f"3e-07 {line}" in str(db.facts)
    for same in ({}, {name: 0.3}, {name: Fraction(3, 10)}, {"budget": None, name: 0.3}):
        with sulq.connect(path, columns=COLUMNS, **({"budget": budget} | same)) as db:
            assert getattr(db.facts.split, delta) == Fraction(3, 10**7)
    for other in (0.1, 0, 0.300000001):
        with pytest.raises(SetupError, match=rf"begun with {name} 0\.3, not 0") as refusal:
            sulq.connect(path, columns=COLUMNS, budget=budget, **{name: other})
        assert refusal.value.code == "budget-mismatch"
        assert refusal.value.remedy.startswith(f"Leave {name} out")


@pytest.mark.parametrize("name", DELTA_SHARES)
def test_a_ledger_is_not_begun_with_a_part_of_no_delta(tmp_path: Path, name: str) -> None:
    """Of a budget that is not divided, or no part at all: refused, and no ledger is left behind."""
    path = parquet(tmp_path)
    for told in ({"budget": Epsilon(1), name: 0.1}, {"budget": EpsilonDelta(1, 1e-6), name: 0.95}):
        with pytest.raises(SetupError, match=name) as refusal:
            sulq.connect(path, columns=COLUMNS, **told)
        assert refusal.value.code == "bad-declaration"
        assert not (tmp_path / "people.ledger").exists()
    sulq.connect(path, columns=COLUMNS, budget=Epsilon(1)).close()
    with pytest.raises(SetupError, match="has none to divide"):
        sulq.connect(path, columns=COLUMNS, **{name: 0.1})
    with pytest.raises(SetupError, match="its own declarations"):
        sulq.connect("http://127.0.0.1:1/x", token="t", **{name: 0.1})


def test_open_keys_have_the_part_that_the_owner_sets_SR14() -> None:
    """A named part holds with and without such columns, and asks divide their delta alike; with 0 they are refused."""
    table, question = pa.table({"x": [1, 2], "word": ["a", "b"]}), OpenSums((), None, (col("word"),))
    spend, budget = EpsilonDelta(0.5, 1e-7), EpsilonDelta(1, 1e-6)
    columns = {"x": Int(0, 9), "word": Text()}
    for told, part in (({}, Fraction(1, 10)), ({"key_share": 0.25}, Fraction(1, 4))):
        with sulq.connect(table, columns=columns, budget=budget, **told) as db:
            assert key_part(db.facts.split) == part
            db.ask(question, spend=spend)
            assert db.transcript()[-1]["event"].key_delta == spend.exact_delta * part
    with sulq.connect(table, columns=columns, budget=budget, key_share=0) as db:
        text = "SELECT word, COUNT(*) FROM data GROUP BY word"
        for act in (lambda: db.ask(question, spend=spend), lambda: db.sql(text, spend=spend)):
            with pytest.raises(QuestionError, match="Nothing of this budget's delta was set aside") as refusal:
                act()
            assert (refusal.value.code, "key_share" in refusal.value.remedy) == ("open-keys", True)
        db.sum("x", spend=spend, law="gaussian")


def test_without_a_part_no_ask_with_a_delta_is_added_one_by_one_SR26() -> None:
    """With 0 a Gaussian ask costs the conversion at once; with more of delta two asks that are not pure leave more."""
    left = {}
    for part in (0, 0.1, 0.9):
        with sulq.connect(TABLE, columns=COLUMNS, budget=EpsilonDelta(1, 1e-6), basic_share=part) as db:
            db.sum("x", spend=Rho(0.001))
            left[part] = float(db.remaining.amount)
            event = db.transcript()[-1]["event"]
            assert (event.basic is None) == (part == 0)
    assert left[0] < left[0.1] < left[0.9]


def test_a_busy_ledger_is_waited_for_and_then_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another process writes, opening and asking end in `ledger-busy` with nothing spent; then they go on."""
    monkeypatch.setattr(Ledger.open.__func__, "__kwdefaults__", _short_wait())
    ledger = tmp_path / "l.ledger"
    with sulq.connect(TABLE, columns=COLUMNS, budget=Epsilon(1), ledger=ledger) as db:
        # Of another process: within one, the locks of two copies of SQLite do not see each other.
        with subprocess.Popen([sys.executable, "-c", HOLD, ledger], stdin=PIPE, stdout=PIPE) as other:
            assert other.stdout.readline()
            for act in (lambda: db.count(spend=Epsilon(0.5)), lambda: asked(TABLE, ledger=ledger)):
                with pytest.raises(SetupError) as refused:
                    act()
                assert refused.value.code == "ledger-busy"
            other.communicate(b"enough")
        assert db.spent.amount == 0
        assert db.count(spend=Epsilon(0.5)).receipt


HOLD = """
import sqlite3, sys
with sqlite3.connect(sys.argv[1], isolation_level=None) as held:
    held.execute("BEGIN EXCLUSIVE")
    print("held", flush=True)
    sys.stdin.read()
    held.execute("ROLLBACK")
"""


def _short_wait() -> dict[str, object]:
    return Ledger.open.__func__.__kwdefaults__ | {"wait": 0.05}


def test_a_missing_extra_names_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without pandas an answer still prints; its frame is refused with the pip line."""
    with sulq.connect(TABLE, columns=COLUMNS, budget=Epsilon(1)) as db:
        answer = db.count(by="g", spend=Epsilon(0.5))
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(SetupError) as refused:
        answer.to_pandas()
    assert refused.value.code == "missing-extra"
    assert "sulq[pandas]" in refused.value.remedy
    assert repr(answer)
    monkeypatch.undo()
    assert isinstance(answer.to_pandas(), pd.DataFrame)


def test_a_column_of_numpy_kinds_is_read() -> None:
    """Frames with small integers, floats and NaN open as they are."""
    frame = pd.DataFrame(
        {"x": np.array([1, 2, 300], dtype=np.int16), "y": [0.5, np.nan, np.inf], "g": ["a", None, "z"]}
    )
    columns = {"x": (0, 9), "y": Real(0, 1), "g": ["a", "b"]}
    with sulq.connect(frame, columns=columns, budget=Epsilon(1), synthetic=True) as db:
        assert exact(db).sum("x").value == 12
        assert exact(db).sum("y").value == 1.5
        assert exact(db).count(col("g").is_missing()).value == 2


def test_keys_are_for_several_tables(tmp_path: Path) -> None:
    """A single table is declared by its unit alone."""
    with pytest.raises(SetupError, match="several tables"):
        sulq.connect(TABLE, columns=COLUMNS, keys={"data": "x"}, budget=Epsilon(1), ledger=tmp_path / "l.ledger")


def test_a_restored_ledger_is_refused_where_an_anchor_remembers_more_T46(tmp_path: Path) -> None:
    """With anchor= an old copy of the ledger does not open; without a restore it does (T46)."""
    path = parquet(tmp_path)

    def opened() -> object:
        return sulq.connect(path, columns=COLUMNS, budget=Epsilon(1), anchor=tmp_path / "people.anchor")

    with opened() as db:
        old = (tmp_path / "people.ledger").read_bytes()
        answer = db.ask(Sums((lit(1),)), spend=Epsilon(0.1))
        assert answer.remaining == Epsilon(0.9)
    with opened() as db:
        assert db.remaining == Epsilon(0.9)
    (tmp_path / "people.ledger").write_bytes(old)
    with pytest.raises(SetupError) as refusal:
        opened()
    assert refusal.value.code == "ledger-rolled-back"


@pytest.mark.parametrize("name", ["synthetic", "renew", "new_people", "insecure"])
@pytest.mark.parametrize("odd", [None, 1, "yes", [True], np.array([True, False])], ids=repr)
def test_what_is_true_or_false_is_nothing_else(name: str, odd: object) -> None:
    """A switch that is no truth value is refused with a code, before any file is looked at."""
    with pytest.raises(SetupError) as refused:
        sulq.connect(pa.table({"x": [1]}), columns={"x": sulq.Int(0, 1)}, budget=Epsilon(1), **{name: odd})
    assert refused.value.code == "bad-declaration"
