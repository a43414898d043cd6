"""Tables in PostgreSQL by `sulq.connect`: one or several, the ledger beside them, and what is refused."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pyarrow as pa
import pytest

import sulq
from sulq.errors import SetupError, SetupWarning
from tests.loaded import address, loaded
from tests.postgres import server

COLUMNS = {"age": sulq.Int(0, 120), "city": ["x", "y"]}
ROWS = pa.table({"who": ["a", "b", "b", "c"], "age": [10, 20, 30, 40], "city": ["x", "y", "x", "y"]})
_names = itertools.count(1)


def named(data: pa.Table = ROWS) -> str:
    """The name of a new table."""
    name = f"connected_{os.getpid()}_{next(_names)}"
    loaded(data, name)
    return name


def test_a_table_in_postgresql_is_asked_like_any_other():
    """Its ledger lies in the same database and outlives the database object; its rows are the copy's."""
    name = named()
    options = {"table": name, "columns": COLUMNS, "unit": sulq.Unit("who", rows=1), "budget": sulq.Epsilon(1000)}
    with sulq.connect(address(), **options) as db:
        value = db.sql(f"SELECT city, COUNT(*), AVG(age) FROM {name} GROUP BY city", spend=sulq.Epsilon(100)).value
        assert sum(row[1] for row in value) == 3
        assert db.count(spend=sulq.Epsilon(100)).value == 3
        spent = db.spent
    assert server().do(f"SELECT to_regnamespace('sulq_public_{name}') IS NOT NULL") == [(True,)]
    with sulq.connect(address(table=name), **options | {"table": None, "budget": None}) as db:
        assert db.spent == spent
        server().do(f"INSERT INTO {name} VALUES ('d', 1, 'x')")
        assert db.count(sulq.col("age") < 1000, spend=sulq.Epsilon(100)).value == 3
    with sulq.connect(address(), **options, renew=True) as db:
        assert db.count(sulq.col("age") < 500, spend=sulq.Epsilon(100)).value == 4


@pytest.mark.filterwarnings("error")
def test_a_ledger_in_the_database_of_its_data_is_warned_of_T105(tmp_path: Path) -> None:
    """Restored together, nothing would notice; control: with an anchor, or the ledger in a file, all is well."""
    options = {"columns": COLUMNS, "budget": sulq.Epsilon(1)}  # each table has a ledger of its own
    for ledger in (None, address(ledger=f"warned_{os.getpid()}")):
        with pytest.raises(SetupWarning, match=r"Give anchor=, or a ledger= elsewhere\."):
            sulq.connect(address(), table=named(), **options, ledger=ledger)
    sulq.connect(address(), table=named(), **options, anchor=tmp_path / "anchor").close()
    sulq.connect(address(), table=named(), **options, ledger=tmp_path / "l.ledger").close()


def test_a_copy_that_was_dropped_is_not_quietly_another(tmp_path: Path) -> None:
    """Which copy answers is written in the ledger: rows taken anew need the owner's word (SR12)."""
    name = named()
    options = {"table": name, "columns": COLUMNS, "budget": sulq.Epsilon(1), "ledger": tmp_path / "l.ledger"}
    sulq.connect(address(), **options).close()  # the copy is there before anything is asked
    for (schema,) in server().do("SELECT nspname FROM pg_namespace WHERE nspname ~ '^sulq_[0-9a-f]{32}$'"):
        if name in str(server().do(f"SELECT value FROM {schema}.facts WHERE name = 'sources'")):
            server().do(f"DROP SCHEMA {schema} CASCADE")
    with pytest.raises(SetupError, match="source-changed") as refused:
        sulq.connect(address(), **options)
    assert "file" not in str(refused.value)
    sulq.connect(address(), **options, renew=True).close()
    sulq.connect(address(), **options).close()


def test_several_tables_and_the_size_of_a_public_one(tmp_path: Path) -> None:
    """Joins by persons and by keys; how many rows a public table has is what its copy has, whatever came since."""
    people, visits = named(pa.table({"who": ["a", "b"], "age": [1, 2], "city": ["x", "y"]})), named()
    towns = named(pa.table({"city": ["x", "y"], "size": [3, 4]}))
    options = {
        "columns": {people: COLUMNS, visits: COLUMNS, towns: {"city": ["x", "y"], "size": sulq.Int(0, 9)}},
        "keys": {people: "who", towns: "city"},
        "public": [towns],
        "unit": sulq.Unit("who", rows=2),
        "budget": sulq.Epsilon(1000),
    }
    tables = {name: address() for name in (people, visits, towns)}
    with pytest.raises(SetupError, match="ledger"):
        sulq.connect(tables, **options)
    with sulq.connect(tables, **options, ledger=tmp_path / "l.ledger") as db:
        joined = f"SELECT COUNT(*) FROM {people} JOIN {visits} ON {people}.who = {visits}.who"
        assert db.sql(joined, spend=sulq.Epsilon(100)).value == 3
        public = f"SELECT SUM(size) FROM {visits} JOIN {towns} ON {visits}.city = {towns}.city"
        assert db.sql(public, spend=sulq.Epsilon(100)).value == 14
        assert [table.rows for table in db.facts.tables if table.public] == [2]
    server().do(f"INSERT INTO {towns} VALUES ('z', 5)")
    with sulq.connect(tables, **options, ledger=tmp_path / "l.ledger") as db:
        assert [table.rows for table in db.facts.tables if table.public] == [2]


@pytest.mark.parametrize(
    ("data", "more", "code"),
    [
        ("{0}", {}, "bad-declaration"),  # no table
        ("{0}&table=nothing_here", {"table": None}, "unreadable-data"),
        ("{0}", {"table": "t", "engine": "memory"}, "engine-not-available"),
        ("{0}", {"table": "t", "prepared": False}, "bad-declaration"),
        ("{0}&limit=never", {"table": "t"}, "bad-config"),
        ("{0}&colour=blue", {"table": "t"}, "bad-config"),
        ("mysql://host/base", {"table": "t"}, "engine-not-available"),
    ],
)
def test_what_is_refused(data: str, more: dict, code: str, tmp_path: Path) -> None:
    """With a code and a next step, before anything is spent."""
    with pytest.raises(SetupError, match=code):
        sulq.connect(
            data.format(address()), columns=COLUMNS, budget=sulq.Epsilon(1), ledger=tmp_path / "l.ledger", **more
        )


def test_the_same_rows_under_another_name_have_no_second_budget_T56():
    """The default ledger goes by the table inside the database, however it is called and written."""
    name = named()
    options = {"columns": COLUMNS, "unit": sulq.Unit("who", rows=1), "budget": sulq.Epsilon(10)}
    with sulq.connect(address(), table=name, **options) as db:
        db.count(spend=sulq.Epsilon(4))
    for url, other in ((address(table=name), "a"), (address(table=f"public.{name}"), "b"), (address(table=name), None)):
        with sulq.connect(url, table=other, **options) as db:
            assert db.remaining == sulq.Epsilon(6)
    with sulq.connect({"c": address(table=name)}, **options | {"columns": {"c": COLUMNS}}) as db:
        assert db.remaining == sulq.Epsilon(6)
    with sulq.connect(address(), table=named(), **options) as db:  # control: other rows have their own
        assert db.remaining == sulq.Epsilon(10)


@pytest.mark.parametrize("name", ["Ärger", "Upper", "x" * 52, "pg catalog.x", "odd.Name"])
def test_a_ledger_is_named_where_a_name_would_not_do(name: str) -> None:
    """A table whose name no schema of ours can have; in questions it may have another."""
    for url, table in ((address(), name), (address(table=name), "plain")):
        with pytest.raises(SetupError, match="ledger="):
            sulq.connect(url, table=table, columns=COLUMNS, budget=sulq.Epsilon(1))


@pytest.mark.filterwarnings("ignore::sulq.errors.SetupWarning")
def test_rows_may_be_chosen_for_a_table_in_postgresql() -> None:
    """Its copy is made anew for the number that was chosen, and found again afterwards."""
    name = named(pa.table({"who": [f"p{i % 300}" for i in range(3000)], "age": [30] * 3000, "city": ["x"] * 3000}))
    options = {"columns": COLUMNS, "unit": sulq.Unit("who", rows="auto"), "budget": sulq.Epsilon(100)}
    for _ in range(2):
        with sulq.connect(address(), table=name, **options) as db:
            k = db.facts.unit.rows
            assert 9 <= k <= 13
            assert db.facts.choice.rows == k
            assert len(db.transcript()) == 1
    with sulq.connect(address(), table=name, **options) as db:
        assert abs(float(db.count(spend=sulq.Epsilon(50)).value) - 300 * min(k, 10)) < 20
