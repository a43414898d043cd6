"""Tables of the same persons on Spark: what joins them is summed beside the rows, the same integers as DuckDB's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from sulq.compile.statements.tally_functions import Needed
from sulq.errors import SetupError
from sulq.language.domain import Int, Schema, Text
from sulq.language.facts import TableFacts
from sulq.language.privacy import Unit
from sulq.language.relation import Distinct, Join, PerPerson, Relation, Select, Table, Union, Where
from sulq.language.rowfn import col, lit, outer
from sulq.language.shape import shape
from sulq.language.tally import Key, Tally
from sulq.sources.engines import open_dataset
from sulq.sources.origin import Origin
from sulq.sources.spark import chunks, parts, prepared
from sulq.sources.spark.engine import SparkEngine
from sulq.sources.tables import Dataset, Given
from tests import spark
from tests.sources.cases import KEY, ask

PEOPLE = TableFacts(Schema("people", (("age", Int(0, 99)), ("region", Int(0, 9)))), key="pid")
VISITS = TableFacts(Schema("visits", (("cost", Int(0, 99)), ("note", Text(8)))), person="patient")
STAYS = TableFacts(Schema("stays", (("nights", Int(0, 99)),)), person="patient")
REGIONS = TableFacts(Schema("regions", (("code", Int(0, 9)), ("size", Int(0, 9)))), key="code", public=True, rows=4)
PERSONS = [f"p{i}" for i in range(90)]
DATA = {
    "people": pa.table({"pid": PERSONS, "age": [i % 100 for i in range(90)], "region": [i % 7 for i in range(90)]}),
    "visits": pa.table(
        {
            "patient": [PERSONS[i * 7 % 80] for i in range(300)],
            "cost": [i * 13 % 100 for i in range(300)],
            "note": ["secret" if i % 3 else "open" for i in range(300)],
        }
    ),
    "stays": pa.table({"patient": [f"p{i * 11 % 120}" for i in range(150)], "nights": [i % 31 for i in range(150)]}),
    "regions": pa.table({"code": [1, 2, 3, 4], "size": [2, 3, 4, 1]}),
}
VISITED = Join(Table("people"), Table("visits"), (), person=True)
NUMBERS = {
    name: Select(Table(name), (("x", col(column)),)) for name, column in (("visits", "cost"), ("stays", "nights"))
}
BEFORE = Select(Table("regions"), (("before", col("size")), ("at", col("code"))))
RELATIONS: dict[str, tuple[Relation, tuple[str, ...]]] = {
    "join": (VISITED, ("age", "cost")),
    "left join": (Join(Table("people"), Table("stays"), (), how="left", person=True), ("age", "nights")),
    "three tables": (Join(VISITED, Table("stays"), (), person=True), ("cost", "nights")),
    "with a public table": (Join(Table("people"), Table("regions"), (("region", "code"),)), ("age", "size")),
    "both": (Join(VISITED, Table("regions"), (("region", "code"),)), ("cost", "size")),
    "union": (Union((NUMBERS["visits"], NUMBERS["stays"])), ("x",)),
    "per person": (PerPerson(VISITED, ("region",), (("all", "sum", col("cost")), ("n", "count", None))), ("all", "n")),
    "joined per person": (
        Join(PerPerson(Table("visits"), (), (("total", "sum", col("cost")),)), Table("stays"), (), person=True),
        ("total", "nights"),
    ),
    "a public table with itself": (
        Join(Table("regions"), BEFORE, (("code", "before"),)),
        ("size", "at"),
    ),
    "a word": (Where(VISITED, col("note") == "secret"), ("age", "cost")),
}  # fmt: skip


def dataset(*, spark_frames: bool = False) -> Dataset:
    """All tables, as frames of one kind or the other."""
    facts = (PEOPLE, VISITS, STAYS, REGIONS)
    rows = {name: spark.frame(table, 3) if spark_frames else table for name, table in DATA.items()}
    given = tuple(Given(Origin.of(rows[each.schema.table]), each) for each in facts)
    return Dataset(given, Unit("pid", 4), KEY)


def tallies(relation: Relation, names: tuple[str, ...], engine: object) -> list[Tally]:
    """Sums, sums by a declared key, and products of vectors, over a relation."""
    schema = shape(relation, engine.tables).schema
    asks = [ask(lit(1), *map(col, names), schema=schema), ask(outer(list(names)), schema=schema)]
    return [replace(each, over=relation) for each in asks]


def grouped(relation: Relation, names: tuple[str, ...], engine: object) -> Tally:
    """Groups that nobody listed."""
    schema = shape(relation, engine.tables).schema
    return replace(ask(lit(1), schema=schema), over=relation, by=(Key(col(names[0]), ()),))


@pytest.fixture(scope="module", name="engine")
def fixture_engine() -> Iterator[SparkEngine]:
    """Spark's engine over all tables, prepared once: that takes longer than all its questions."""
    with closing(SparkEngine(dataset(spark_frames=True))) as engine:
        engine.ready()
        yield engine


@pytest.fixture(scope="module", name="here")
def fixture_here() -> Iterator[object]:
    """DuckDB's, over the same rows."""
    with closing(open_dataset(dataset())) as here:
        yield here


def agrees(engine: SparkEngine, here: object, name: str) -> None:
    """The same integers as DuckDB's."""
    relation, names = RELATIONS[name]
    for tally in tallies(relation, names, here):
        assert engine.sums(tally).open().tolist() == here.sums(tally).open().tolist(), name
    if shape(relation, here.tables).owned:
        found, wanted = (each.groups(grouped(relation, names, here)).open() for each in (engine, here))
        assert (found.keys, found.sums.tolist()) == (wanted.keys, wanted.sums.tolist()), name
        assert found.persons.tolist() == wanted.persons.tolist(), name


def test_what_joins_tables_is_summed_beside_the_rows(
    engine: SparkEngine, here: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No row of a private table comes here, one job an ask, and the sums are DuckDB's; but where a text is bound.

    Control: different rows of several persons are one, so those do come here.
    """
    read, jobs = [], []
    whole, send = prepared.Prepared.whole, parts.Part.send
    monkeypatch.setattr(prepared.Prepared, "whole", lambda t, *a: (read.append(t.facts.schema.table), whole(t, *a))[1])
    monkeypatch.setattr(parts.Part, "send", lambda part, *a: (jobs.append(part), send(part, *a))[1])
    monkeypatch.setattr(chunks, "PAGE_ROWS", 20)  # here; on executors a page is larger
    for name in RELATIONS:
        jobs.clear()
        agrees(engine, here, name)
        assert bool(jobs) == (name not in ("a word", "a public table with itself")), name
    assert set(read) == {"regions"}
    read.clear()
    apart = Distinct(Select(VISITED, (("cost", col("cost")),)))
    tally = tallies(apart, ("cost",), here)[0]
    assert engine.sums(tally).open().tolist() == here.sums(tally).open().tolist()
    assert set(read) == {"people", "visits"}


def test_only_what_is_asked_travels(engine: SparkEngine) -> None:
    """Of tables side by side, the columns that a question looks at, and whose the rows are."""
    tally = replace(ask(col("cost"), schema=shape(VISITED, engine.tables).schema), over=VISITED)
    with engine._runner([tally]) as running:
        part = running._part()
    assert isinstance(part, parts.SharedPart)
    assert part.source().columns == ["b", "t", "n", "t0_o", "t1_c0", "t1_o"]
    assert {name: need.columns for name, (_, need) in part.named.items()} == {"kept0": set(), "kept1": {"cost"}}


def test_tables_in_a_folder_meet_for_each_question(tmp_path: Path, here: object) -> None:
    """Where they are written down they lie apart; the sums are the same, and nothing is left."""
    with closing(SparkEngine(dataset(spark_frames=True), prepared=tmp_path / "copy")) as engine:
        for name in ("both", "a word"):
            agrees(engine, here, name)
    assert not any((tmp_path / "copy").iterdir())


def test_rows_that_do_not_lie_together_stop_the_owner_SR2(engine: SparkEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bucket in two partitions, and a person in two buckets, are found out. Control: as they are prepared."""
    shared = engine._copy.shared
    shared.check()
    first = shared.tables[0]
    moved = first.holders().selectExpr("o", "n", "b + 1 AS b")
    for where, name, amiss in ((shared, "_held", shared._held.repartition(3)), (first, "holders", lambda: moved)):
        with monkeypatch.context() as patch:
            patch.setattr(where, name, amiss)
            with pytest.raises(SetupError, match="prepared-unusable"):
                shared.check()


def test_a_public_table_that_is_too_large_to_send_stays_here(
    engine: SparkEngine, here: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The private rows then come here, a page at a time; the sums are the same. Control: it is small enough."""
    table, wanted = engine._copy.tables["regions"], Needed(["code"])
    assert table.public(wanted) is not None
    table._public.clear()
    monkeypatch.setattr(prepared, "MAX_SENT_BYTES", 1)
    monkeypatch.setattr(chunks, "PAGE_ROWS", 20)
    assert table.public(wanted) is None
    agrees(engine, here, "both")
    table._public.clear()


def test_pages_hold_whole_buckets() -> None:
    """However small a page, all chunks of a bucket are in one; without buckets each chunk stands by itself."""
    sizes, buckets = [3, 4, 1, 5, 2, 2], [0, 0, 1, 2, 2, 2]
    rows = pa.RecordBatch.from_pydict({"b": pa.array(buckets, pa.int32()), "n": pa.array(sizes, pa.int32())})
    cut = [rows.slice(0, 4), rows.slice(4, 2)]
    for most, wanted in ((1, [[0, 0], [1], [2, 2, 2]]), (8, [[0, 0, 1], [2, 2, 2]]), (99, [buckets])):
        found = [[chunk.column("b")[0].as_py() for chunk in page] for page in chunks.paged(cut, most)]
        assert found == wanted
    plain = [[chunk.column("n")[0].as_py() for chunk in page] for page in chunks.paged([rows.select(["n"])], 5)]
    assert plain == [[3, 4], [1, 5], [2, 2]]
    assert list(chunks.paged([], 5)) == []


def test_a_question_leaves_nothing_in_the_DuckDB_of_its_process_T38() -> None:
    """The next finds no table of the one before. Control: while it is asked they are there."""
    schema = Schema("data", (("age", Int(0, 9)),))
    given = {
        "kept": chunks.TablePages(
            schema, False, [chunks.packed(pa.table({"c0": pa.array([1], pa.int8())}), schema, owned=False)]
        )
    }
    told = "SELECT count(*) FROM duckdb_views() WHERE NOT internal"
    with chunks.opened(given) as (cursor, rows):
        assert rows == 1
        assert cursor.execute(told).fetchone()[0] > 0
    with chunks.opened({}) as (cursor, _):
        assert cursor.execute(told).fetchone()[0] == 0
        assert cursor.execute("SELECT current_setting('lock_configuration')").fetchone()[0]
