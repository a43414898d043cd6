"""What owners declare of tables: what becomes public facts, and what is refused before anything is spent."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sulq
from sulq import Epsilon, Unit, col, lit
from sulq.errors import QuestionError, SetupError
from sulq.language.question import Sums
from sulq.language.relation import Join, Table
from sulq.testing import exact

PEOPLE = pa.table({"pid": ["a", "b", "c"], "age": [10, 20, 30], "home": [1, 2, 9]})
VISITS = pa.table({"patient": ["a", "A", "b", "z"], "cost": [1.0, 2.5, 3.0, 4.0]})
REGIONS = pa.table({"code": [1, 2], "name": ["n", "s"]})
SEVERAL = {
    "columns": {
        "people": {"age": (0, 99), "home": (0, 5)},
        "visits": {"cost": (0, 10.0)},
        "regions": {"code": (0, 5), "name": ["n", "s"]},
    },
    "unit": Unit("pid", rows=5, fold="spelling"),
    "keys": {"people": "pid", "regions": "code"},
    "public": ["regions"],
    "persons": {"visits": "patient"},
    "budget": Epsilon(1),
    "synthetic": True,
}


@pytest.mark.parametrize("engine", ["duckdb", "memory"])
def test_several_tables_are_one_dataset(engine: str, tmp_path: Path) -> None:
    """One ledger, the facts of each table, private ones first; frames and files side by side."""
    pq.write_table(VISITS, tmp_path / "visits.parquet")
    data = {"regions": REGIONS, "people": PEOPLE.to_pandas(), "visits": tmp_path / "visits.parquet"}
    with sulq.connect(data, engine=engine, ledger=tmp_path / "all.ledger", **SEVERAL) as db:
        facts = db.facts
        assert [table.schema.table for table in facts.tables] == ["people", "visits", "regions"]
        assert [(table.key, table.public, table.rows, table.person) for table in facts.tables] == [
            ("pid", False, None, None),
            (None, False, None, "patient"),
            ("code", True, 2, None),
        ]
        joined = Sums((lit(1), col("cost")), over=Join(Table("people"), Table("visits"), (), person=True))
        assert exact(db).ask(joined, spend=Epsilon(1)).value.tolist() == [3, 6.5]
        assert exact(db).count(spend=Epsilon(1)).value == 3  # the first table's
    changed = VISITS.slice(1)
    pq.write_table(changed, tmp_path / "visits.parquet")
    with pytest.raises(SetupError, match="source-changed"):
        sulq.connect(data, engine=engine, ledger=tmp_path / "all.ledger", **SEVERAL)
    with sulq.connect(data, engine=engine, ledger=tmp_path / "all.ledger", renew=True, **SEVERAL) as db:
        assert exact(db).ask(joined, spend=Epsilon(1)).value.tolist() == [2, 5.5]


def test_several_files_share_a_ledger_and_a_copy_beside_the_first_private_one(tmp_path: Path) -> None:
    """Where things lie by default."""
    data = {}
    for name, table in (("regions", REGIONS), ("people", PEOPLE), ("visits", VISITS)):
        data[name] = tmp_path / f"{name}.parquet"
        pq.write_table(table, data[name])
    with sulq.connect(data, **SEVERAL) as db:
        db.prepare()
    assert {path.name for path in tmp_path.iterdir()} >= {"people.ledger", "people.prepared"}


BAD_TABLES = {
    "no tables": ({"data": {}}, "bad-declaration"),
    "no columns": ({"columns": {"people": {"age": (0, 9)}}}, "bad-declaration"),
    "columns of one": ({"columns": [1]}, "bad-declaration"),
    "unknown table": ({"keys": {"poeple": "pid"}}, "bad-declaration"),
    "all public": ({"public": ["people", "visits", "regions"], "keys": {}, "persons": {}}, "bad-declaration"),
    "undeclared key": ({"keys": {"regions": "zip"}}, "bad-declaration"),
    "a public person": ({"persons": {"regions": "code"}}, "bad-declaration"),
    "persons without a unit": ({"unit": Unit(), "keys": {}}, "bad-declaration"),
    "a name": ({"table": "people"}, "bad-declaration"),
    "a bad size": ({"size": {"nobody": 3}}, "bad-declaration"),
    "public by a word": ({"public": "regions"}, "bad-declaration"),
    "a person column that is not there": ({"persons": {"visits": "who"}}, "missing-column"),
    "duplicate persons": ({"keys": {"visits": "patient"}}, "key-not-unique"),
    "no file": ({"data": {"people": "nowhere.parquet", "visits": VISITS, "regions": REGIONS}}, "missing-file"),
}


@pytest.mark.parametrize("what", BAD_TABLES)
def test_bad_datasets_of_several_tables_are_refused(what: str, tmp_path: Path) -> None:
    """An error of the owner's with a code, before anything is spent."""
    changed, code = BAD_TABLES[what]
    data = {"people": PEOPLE, "visits": VISITS, "regions": REGIONS}
    arguments = {"data": data, **SEVERAL, "ledger": tmp_path / "l.ledger", **changed}
    with pytest.raises(SetupError) as refused:
        sulq.connect(arguments.pop("data"), **arguments)
    assert refused.value.code == code


SHOP = {
    "columns": {
        "orders": {"number": (0, 9), "weight": (0, 9.0)}, "lines": {"order": (0, 9), "size": (0, 9)},
        "regions": {"code": (0, 5)},
    },
    "unit": Unit("buyer", rows=3),
    "keys": {"orders": "number", "regions": "code"},
    "public": ["regions"],
    "budget": Epsilon(1),
    "synthetic": True,
}  # fmt: skip
ORDERS = pa.table({"buyer": ["a", "b"], "number": [1, 2], "weight": [1.0, 2.0]})
LINES = pa.table({"buyer": ["a", "a", "b"], "order": [1, 1, 2], "size": [3, 4, 5]})
LEADS = {"lines": {"order": "orders"}}


@pytest.mark.parametrize("engine", ["duckdb", "memory"])
def test_the_person_is_added_to_a_join_along_a_declared_reference_alone_SR15(engine: str, tmp_path: Path) -> None:
    """Declared, checked and public; without it the query must speak of the person itself."""
    data = {"orders": ORDERS, "lines": LINES, "regions": pa.table({"code": [1]})}
    sql = "SELECT SUM(size) FROM orders JOIN lines ON orders.number = lines.order"
    with sulq.connect(data, engine=engine, ledger=tmp_path / "a.ledger", references=LEADS, **SHOP) as db:
        assert "order   Int(0, 9), refers to orders" in str(db.facts)
        assert exact(db).sql(sql).value == 12
        assert exact(db).sql("SELECT COUNT(*) FROM orders WHERE number IN (SELECT lines.order FROM lines)").value == 2
    with sulq.connect(data, engine=engine, ledger=tmp_path / "b.ledger", **SHOP) as db:
        with pytest.raises(QuestionError, match="references=") as refused:
            exact(db).sql(sql)
        assert refused.value.code == "person-lost"
        assert exact(db).sql(f"{sql} AND orders.buyer = lines.buyer").value == 12
    data["lines"] = LINES.set_column(1, "order", pa.array([1, 2, 2]))
    with pytest.raises(SetupError, match="reference-not-own"):
        sulq.connect(data, engine=engine, ledger=tmp_path / "c.ledger", references=LEADS, **SHOP)


@pytest.mark.parametrize(
    ("references", "more"),
    [
        ({"lines": {"order": "nowhere"}}, {}),
        ({"line": {"order": "orders"}}, {}),
        ({"lines": {"order": "regions"}}, {}),
        ({"regions": {"code": "orders"}}, {}),
        ({"lines": {"price": "orders"}}, {}),
        ({"lines": {"buyer": "orders"}}, {}),
        ({"lines": {"order": "orders"}}, {"keys": {"regions": "code"}}),
        ({"lines": {"order": "orders"}}, {"keys": {"orders": "buyer"}}),
        ({"lines": {"order": "orders"}}, {"keys": {"orders": "weight"}}),
        ({"lines": {"order": "orders"}}, {"unit": Unit()}),
        ({"lines": "orders"}, {}),
        (["orders"], {}),
        ({"lines": {3: "orders"}}, {}),
    ],
)
def test_bad_references_are_refused(references: object, more: dict[str, object], tmp_path: Path) -> None:
    """From a private table's declared column to the key, declared alike, of another private table."""
    data = {"orders": ORDERS, "lines": LINES, "regions": pa.table({"code": [1]})}
    with pytest.raises(SetupError) as refused:
        sulq.connect(data, ledger=tmp_path / "l.ledger", references=references, **(SHOP | more))
    assert refused.value.code == "bad-declaration"


def test_a_table_declared_public_is_written_down_T22(tmp_path: Path) -> None:
    """By name alone, when it is registered and when the word changes; the repr says so too.

    Bar: an audit entry for each. Control: a private table's entry says that it is not public.
    """
    path = tmp_path / "all.ledger"
    data = {"people": PEOPLE, "visits": VISITS, "regions": REGIONS}

    def entries() -> list[tuple[str, bool]]:
        with sqlite3.connect(path) as file:
            bodies = [json.loads(body) for (body,) in file.execute("SELECT body FROM entries ORDER BY seq")]
        return [(body["name"], body["public"]) for body in bodies if body["kind"] == "register"]

    with sulq.connect(data, ledger=path, **SEVERAL) as db:
        assert "table regions: public" in repr(db)
        assert db._ledger.declared_public == ("regions",)
    first = [("people", False), ("visits", False), ("regions", True)]
    assert entries() == first
    sulq.connect(data, ledger=path, **SEVERAL).close()
    assert entries() == first  # nothing new, nothing written
    owned = REGIONS.append_column("pid", pa.array(["a", "b"]))
    with sulq.connect({**data, "regions": owned}, ledger=path, **(SEVERAL | {"public": []})) as db:
        assert "table regions: private" in repr(db)
        assert db._ledger.declared_public == ()
    assert entries() == [*first, ("regions", False)]
    text = path.read_bytes()
    assert b'"public":true' in text
    assert not any(cell in text for cell in (b'"n"', b'"s"'))  # no cell of it
