"""Datasets of several tables: whose rows, how many, which keys; one prepared copy for all of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sulq.errors import SetupError
from sulq.language.domain import Category, Int, Schema
from sulq.language.facts import TableFacts
from sulq.language.privacy import Unit
from sulq.language.relation import Join, Relation, Table
from sulq.language.rowfn import col, lit
from sulq.language.shape import shape
from sulq.language.tally import Tally
from sulq.sources.duckdb import prepare
from sulq.sources.duckdb.connection import Connection
from sulq.sources.engines import ENGINES, open_dataset
from sulq.sources.origin import Origin
from sulq.sources.tables import Dataset, Given, rows_at_most
from tests import random_tallies
from tests.loaded import loaded
from tests.sources.cases import CANARY, KEY

READERS = tuple(name for name in ENGINES if name != "spark")  # test_spark.py asks the same of Spark's frames
UNIT = Unit("pid", 2, fold="spelling")
PEOPLE = TableFacts(Schema("people", (("age", Int(0, 99)), ("region", Int(0, 9)))), key="pid")
VISITS = TableFacts(Schema("visits", (("cost", Int(0, 9)),)), person="patient")
REGIONS = TableFacts(
    Schema("regions", (("code", Int(0, 9)), ("name", Category(("n", "s"))))), key="code", public=True, rows=2
)
DATA = {
    "people": pa.table({"pid": ["a", "b", "c", None, None], "age": [1, 2, 3, 4, 4], "region": [1, 2, 7, 1, 1]}),
    "visits": pa.table({"patient": ["A ", "a", "a", "b", "z", None], "cost": [1, 1, 1, 5, 7, 9]}),
    "regions": pa.table({"code": [1, 2], "name": ["n", "s"]}),
}


def dataset(*tables: TableFacts, unit: Unit = UNIT, **data: object) -> Dataset:
    """A dataset of frames, or of what is given in their place."""
    chosen = tables or (PEOPLE, VISITS, REGIONS)
    found = DATA | data
    given = [Given(Origin.of(found[t.schema.table]), t) for t in chosen]
    return Dataset(tuple(given), unit, KEY)


def opened_by(name: str, given: Dataset, prepared: object = None):
    """A dataset of frames, opened by an engine; for one that reads a database its frames are loaded there."""
    if name == "postgres":
        moved = [replace(each, origin=Origin.of(loaded(each.origin.data))) for each in given.tables]
        return open_dataset(replace(given, tables=tuple(moved)), engine=name)
    return open_dataset(given, prepared=prepared, engine=name)


def total(engine, relation: Relation, *values) -> list[int]:
    """Sums over a relation of the three tables."""
    made = random_tallies.question(values or (lit(1),), shape(relation, dataset().facts).schema)
    return engine.sums(Tally(relation, made.blocks, None, (), 1)).open().tolist()[0]


VISITED = Join(Table("people"), Table("visits"), (), person=True)
LIVING = Join(Table("people"), Table("regions"), (("region", "code"),))


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("prepared", [None, False])
def test_persons_are_the_same_in_all_tables(name: str, prepared: object) -> None:
    """Spelled differently, in columns of different names: two kept visits of a, one of b, and nobody's row nowhere."""
    engine = opened_by(name, dataset(), prepared)
    assert total(engine, Table("people"), lit(1), col("age")) == [3, 6]
    assert total(engine, Table("visits")) == [4]
    assert total(engine, Table("regions")) == [2]
    assert total(engine, VISITED, lit(1), col("cost")) == [3, 7]
    assert total(engine, LIVING, lit(1), col("age")) == [2, 3]
    engine.close()


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("prepared", [None, False])
@pytest.mark.parametrize(
    "bad",
    [
        {"people": pa.table({"pid": ["a", " A"], "age": [1, 2], "region": [1, 1]})},
        {"regions": pa.table({"code": [9, 12, 3], "name": ["n", "s", CANARY]})},  # both are clamped to 9
    ],
)
def test_a_key_that_is_not_unique_stops_the_owner_T15(name: str, prepared: object, bad: dict) -> None:
    """All rows are looked at, by what they are joined by; the message shows no value."""
    engine = opened_by(name, dataset(**bad), prepared)
    with pytest.raises(SetupError, match="key-not-unique") as refused:
        engine.ready()
    assert CANARY not in str(refused.value)


ORDERS = TableFacts(Schema("orders", (("number", Int(0, 9)),)), key="number")
LINES = TableFacts(Schema("lines", (("order", Int(0, 99)),)), person="buyer", references=(("order", "orders"),))
LISTED = {"pid": ["a", "b", "b", None, "c"], "number": [1, 2, 3, 4, None]}
NAMED = {"buyer": ["A ", "a", "b", "b", "c", None, "z", "c"], "order": [1, 1, 2, 3, None, 1, 8, None]}


def ordered(listed: dict[str, list], named: dict[str, list], *tables: TableFacts) -> Dataset:
    """Orders, and lines that refer to them."""
    return dataset(*(tables or (ORDERS, LINES)), orders=pa.table(listed), lines=pa.table(named))


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("prepared", [None, False])
def test_a_reference_to_another_persons_row_stops_the_owner_SR15(name: str, prepared: object) -> None:
    """All rows are looked at, by what is joined; nobody's rows, missing values and orders nobody has say nothing.

    Control: each of the bad ones alone is caught, and without the declaration none is.
    """
    opened_by(name, ordered(LISTED, NAMED), prepared).ready()
    bad = [
        {"buyer": ["b"], "order": [1]},
        {"buyer": ["a", "a", "a", "c"], "order": [1, 1, 1, 1]},
        {"buyer": ["a"], "order": [3]},
    ]
    for named in bad:
        engine = opened_by(name, ordered(LISTED, named), prepared)
        with pytest.raises(SetupError, match="reference-not-own"):
            engine.ready()
        loose = replace(LINES, references=())
        opened_by(name, ordered(LISTED, named, ORDERS, loose), prepared).ready()
    clamped = ordered({"pid": ["a", "b"], "number": [1, 12]}, {"buyer": ["a"], "order": [9]})  # 12 is held as 9
    with pytest.raises(SetupError, match="reference-not-own"):
        opened_by(name, clamped, prepared).ready()


def test_a_new_reference_is_checked_against_an_old_copy(tmp_path: Path) -> None:
    """The prepared copy records what was declared; a reference declared later is looked at then."""
    pq.write_table(pa.table(LISTED), tmp_path / "orders.parquet")
    pq.write_table(pa.table({"buyer": ["b"], "order": [1]}), tmp_path / "lines.parquet")
    files = {name: tmp_path / f"{name}.parquet" for name in ("orders", "lines")}
    copy = tmp_path / "all.prepared"
    open_dataset(dataset(ORDERS, replace(LINES, references=()), **files), prepared=copy).ready()
    with pytest.raises(SetupError, match="reference-not-own"):
        open_dataset(dataset(ORDERS, LINES, **files), prepared=copy).ready()


@pytest.mark.parametrize("name", READERS)
def test_missing_keys_are_no_duplicates(name: str) -> None:
    """A missing key joins nothing, so any number of rows may have one."""
    tables = (PEOPLE, VISITS, replace(REGIONS, rows=3))
    engine = opened_by(name, dataset(*tables, regions=pa.table({"code": [1, None, None], "name": ["n", "s", "s"]})))
    assert total(engine, LIVING) == [1]
    engine.close()


@pytest.mark.parametrize("name", READERS)
def test_defaults_in_a_key_are_duplicates_T15(name: str) -> None:
    """A key that is never missing is compared with its defaults in it: two cells that take one make it no key."""
    schema = Schema("regions", tuple((n, replace(c, missing=False)) for n, c in REGIONS.schema.columns))
    tables = (PEOPLE, VISITS, replace(REGIONS, schema=schema))
    engine = opened_by(name, dataset(*tables, regions=pa.table({"code": [1, None, None], "name": ["n", "s", "s"]})))
    with pytest.raises(SetupError, match="key-not-unique"):
        engine.ready()


def test_under_zero_out_every_column_may_be_missing_SR1() -> None:
    """A row is blanked there: with defaults in its cells it would move sums by more than they are charged for."""
    facts = TableFacts(Schema("data", (("x", Int(-50, 200, missing=False)),)))
    with pytest.raises(SetupError, match="zero_out"):
        Dataset((Given(Origin(None), facts),), Unit(neighbors="zero_out"), b"k" * 32)
    Dataset((Given(Origin(None), facts),), Unit(neighbors="replace_one"), b"k" * 32)


def test_whose_rows_a_table_holds() -> None:
    """One row a person where the person is the key; all rows of a public table, with places where these are public."""
    people, visits, regions = (Given(Origin(None), facts) for facts in (PEOPLE, VISITS, REGIONS))
    assert people.unit(UNIT) == Unit("pid", 1, fold="spelling")
    assert visits.unit(UNIT) == Unit("patient", 2, fold="spelling")
    assert regions.unit(UNIT) == Unit()
    assert regions.unit(Unit(neighbors="zero_out")).positions_are_public
    assert visits.unit(Unit("pid", 5, "replace_one")) == Unit("patient", 5, "replace_one")


def written(folder: Path) -> dict[str, object]:
    """The tables as files of three kinds; two of them in one DuckDB file."""
    pq.write_table(DATA["people"], folder / "people.parquet")
    with duckdb.connect(str(folder / "rest.duckdb")) as connection:
        for name in ("visits", "regions"):
            connection.register("frame", DATA[name])
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM frame")
    return {"people": folder / "people.parquet", "visits": folder / "rest.duckdb", "regions": folder / "rest.duckdb"}


@pytest.mark.parametrize("prepared", [True, False])
def test_one_prepared_copy_holds_all_tables(tmp_path: Path, prepared: object) -> None:
    """Built once, used again, rebuilt for other declarations; a source that changed stops the owner (SR12)."""
    files = written(tmp_path)
    copy = tmp_path / "all.prepared" if prepared else False
    told: list[float] = []

    def opened(*facts: TableFacts, **more: object):
        given = [
            Given(Origin.of(files[t.schema.table]), t, t.schema.table if t is not PEOPLE else None)
            for t in facts or (PEOPLE, VISITS, REGIONS)
        ]
        return open_dataset(Dataset(tuple(given), UNIT, KEY), prepared=copy, progress=told.append, **more)

    engine = opened()
    assert total(engine, VISITED, lit(1), col("cost")) == [3, 7]
    assert total(engine, LIVING) == [2]
    engine.close()
    if not prepared:
        return
    assert (told[0], told[-1], told == sorted(told)) == (0.0, 1.0, True)
    made = copy.stat().st_ino
    opened().ready()
    assert copy.stat().st_ino == made
    found = prepare.read(Connection(threads=1), copy)
    assert found is not None
    assert KEY.hex() not in str(found)
    opened(PEOPLE, REGIONS).ready()  # fewer tables are other declarations, not a changed source
    assert copy.stat().st_ino != made
    opened().ready()
    pq.write_table(DATA["people"].slice(1), files["people"])
    with pytest.raises(SetupError, match="source-changed"):
        opened().ready()
    engine = opened(renew=True)
    assert total(engine, Table("people")) == [2]
    engine.close()


def test_how_many_rows_a_public_table_has(tmp_path: Path) -> None:
    """Of a frame, Parquet and DuckDB exactly; of CSV the records."""
    schema, frame = REGIONS.schema, DATA["regions"]
    files = written(tmp_path)
    pq.write_table(frame, tmp_path / "r.parquet")
    (tmp_path / "r.csv").write_text("code,name\n1,n\n2,s\n", encoding="utf-8")
    for data in (frame, tmp_path / "r.parquet", tmp_path / "r.csv"):
        assert rows_at_most(Origin.of(data), schema, None) == 2
    assert rows_at_most(Origin.of(files["regions"]), schema, "regions") == 2
