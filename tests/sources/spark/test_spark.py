"""Spark's frames: what is refused before a row is read, what is kept, and that nothing of a row gets out."""

from __future__ import annotations

import gc
import itertools
import logging
import os
import random
import shutil
import sys
import warnings
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import sulq
from sulq import Epsilon, EpsilonDelta
from sulq.answers import wire
from sulq.cli import app
from sulq.cli.config import read
from sulq.cli.serve import declaration
from sulq.compile.statements.emitter import Emitter
from sulq.compile.statements.tally_functions import Needed
from sulq.errors import CuratorError, SetupError, SulqError
from sulq.kernel.request import Scan
from sulq.language.domain import Int, Real, Schema, Text
from sulq.language.privacy import Unit
from sulq.language.relation import PerPerson, Select, Table, Where
from sulq.language.rowfn import col, lit, outer
from sulq.language.rowfn.keys import Choice
from sulq.language.rowfn.piece import Piece
from sulq.language.rowfn.texts import Like
from sulq.language.shape import shape
from sulq.language.tally import Key, sums_of
from sulq.sources.engines import Counting, open_dataset
from sulq.sources.origin import Origin
from sulq.sources.spark import chunks, frame, parts, prepared, work
from sulq.sources.spark.engine import SparkEngine
from sulq.sources.spark.parts import TablePart
from sulq.sources.tables import Dataset, Given
from tests import spark
from tests.certified import certified
from tests.sources import declared
from tests.sources.cases import ASKED, CANARY, KEY, SCHEMA, ask, open_engine, plain_engine, sums, table
from tests.sources.executor_modules import loaded_there
from tests.sources.test_tables import (
    DATA,
    LINES,
    LISTED,
    LIVING,
    NAMED,
    ORDERS,
    VISITED,
    dataset,
    ordered,
    total,
)

COLUMNS = {"age": sulq.Int(0, 120), "pay": sulq.Real(0, 1000), "city": sulq.Category(["x", "y"])}


def opened(data: object, unit: Unit | None = None, schema: Schema = SCHEMA, **more: object) -> SparkEngine:
    """A Spark engine over a frame."""
    return SparkEngine(Dataset.one(Origin.of(data), schema, unit or Unit(), KEY), **more)


def in_spark(given: Dataset) -> Dataset:
    """A dataset whose frames are Spark's."""
    tables = [Given(Origin.of(spark.frame(item.origin.data)), item.facts) for item in given.tables]
    return Dataset(tuple(tables), given.unit, given.key)


def refused(code: str, data: object, unit: Unit | None = None, schema: Schema = SCHEMA) -> str:
    """Open and prepare what must be refused; says how."""
    with pytest.raises(SetupError) as found:
        opened(data, unit, schema).ready()
    assert found.value.code == code, found.value
    assert CANARY not in str(found.value)
    return str(found.value)


# without a session


def test_a_session_that_is_open_is_named_setting_by_setting_T78() -> None:
    """Everything is open by default; on a cluster more is asked than in this process; what is shut passes."""
    cluster, here = "spark://host:7077", "local[2]"
    assert frame.open_doors(dict(frame.SETTINGS), cluster) == []
    assert frame.open_doors(dict(frame.HERE), here) == []
    assert frame.open_doors(dict(frame.HERE), "yarn") == [f"{a}={b}" for a, b in frame.CLUSTER.items()]
    assert "spark.ui.enabled=false" in frame.open_doors({}, here)
    for name in frame.SETTINGS.keys() & frame.UNSET.keys():
        loose = {**frame.SETTINGS, name: frame.UNSET[name]}
        told = [] if name == "spark.eventLog.enabled" else [f"{name}={frame.SETTINGS[name]}"]
        assert frame.open_doors(loose, cluster) == told
        without = {key: value for key, value in frame.SETTINGS.items() if key != name}
        assert frame.open_doors(without, cluster) == frame.open_doors(loose, cluster)
    assert frame.open_doors({**frame.SETTINGS, "spark.eventLog.enabled": "true"}, cluster)


def test_addresses_of_tables() -> None:
    """A master and a table, or a path; what is neither is refused."""
    named = frame.NamedTable("spark://host:7077/shop.visits")
    assert (named.master, named.table, named.fingerprint) == ("spark://host:7077", "shop.visits", "spark shop.visits")
    assert frame.NamedTable("spark://host:7077//data/x.parquet").table == "/data/x.parquet"
    assert frame.NamedTable("spark://local[2]/visits").master == "local[2]"
    for bad in ("spark://", "spark://host:7077", "spark://host:7077/"):
        with pytest.raises(SetupError, match="bad-declaration"):
            frame.NamedTable(bad)


def test_frames_of_other_kinds_are_told_what_to_do() -> None:
    """Spark Connect and pandas-on-Spark are recognised by name alone."""
    for kind in ("pyspark.sql.connect.dataframe", "pyspark.pandas.frame"):
        other = type("DataFrame", (), {"__module__": kind})()
        assert frame.is_frame(other)
        with pytest.raises(SetupError, match="bad-declaration"):
            frame.check_kind(other)


def test_a_missing_extra_names_the_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without pyspark the owner is told what to install."""
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(SetupError, match=r"pip install 'sulq\[spark\]'") as found:
        opened(type("DataFrame", (), {"__module__": "pyspark.sql.classic.dataframe"})())
    assert found.value.code == "missing-extra"


def test_rows_without_places_need_a_unit_without_places() -> None:
    """Under zero_out, and replace_one without a person, questions may speak of places, which Spark's rows have not."""
    data = type("DataFrame", (), {"__module__": "pyspark.sql.classic.dataframe"})()
    for unit in (Unit(neighbors="zero_out"), Unit(neighbors="replace_one"), Unit("who", 2, "zero_out")):
        with pytest.raises(SetupError, match="no places"):
            opened(data, unit)
    with pytest.raises(SetupError, match="asked there"):
        open_engine(data, schema=SCHEMA, unit=Unit(), key=KEY, engine="memory")
    with pytest.raises(SetupError, match="asked there"):
        open_engine(table(), schema=SCHEMA, unit=Unit(), key=KEY, engine="spark")


def test_chunks_hold_what_they_were_given() -> None:
    """Packed and unpacked: every width, missing cells, text; what was not asked for is not there."""
    schema = Schema.of(
        "data", {"a": Int(0, 9), "b": Int(0, 9000), "c": Real(0, 1e6), "d": Int(-(2**53), 2**53), "e": Text()}
    )
    kinds = {"c0": pa.int8(), "c1": pa.int16(), "c2": pa.int32(), "c3": pa.int64(), "c4": pa.string()}
    cells = {"c0": [1, None, 3], "c1": [4, 5, 6], "c2": [None, None, None], "c3": [2**53, -(2**53), 0]}
    rows = pa.table({n: pa.array([*(cells.get(n) or ["x", None, "\x00é"])], k) for n, k in kinds.items()})
    rows = rows.append_column("h", pa.array([7, 8, 9], pa.int64()))
    rows = rows.append_column("o", pa.array(["0" * 31 + digit for digit in "abc"]))
    packed = [chunks.packed(rows.slice(i, 2), schema, owned=True) for i in (0, 2)]
    found = pa.concat_tables(chunks.unpacked(packed))
    for name in (*kinds, "h"):
        assert found.column(name).to_pylist() == rows.column(name).to_pylist()
    assert [owner.decode()[-1] for owner in found.column("o").to_pylist()] == ["a", "b", "c"]
    (few, _) = chunks.unpacked([each.select(["n", "c0"]) for each in packed])
    assert few.column_names == ["c0"]
    assert list(chunks.unpacked([])) == []


def test_sums_of_parts_are_added_without_wrapping_T5() -> None:
    """However large the sums of parts are, and in any order; what leaves 62 bits is saturated."""
    far = 2**62
    found = [[np.array([[far, 1, -far]]), np.array([[3]])], [np.array([[far, 2, -far]]), np.array([[4]])]]
    less = [np.array([[-far, 0, far]]), np.array([[0]])]
    assert [each.tolist() for each in chunks.added(found)] == [[[far, 3, -far]], [[7]]]
    assert [each.tolist() for each in chunks.added([*found, less])] == [[[far, 3, -far]], [[7]]]
    assert [each.tolist() for each in chunks.added([less, *found])] == [[[far, 3, -far]], [[7]]]


def test_an_error_on_an_executor_says_its_kind_alone_T31() -> None:
    """Whatever fails there, its text, which Spark would log, stays there."""

    @work.silent
    def broken(rows):
        yield from rows
        raise ValueError(CANARY)

    with pytest.raises(work.FailedError) as found:
        list(broken([]))
    assert str(found.value) == "ValueError"
    assert found.value.__context__ is None


def test_a_job_without_executors_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once nobody is left to work for long enough; as long as somebody is, never. Before the debit that is free."""
    monkeypatch.setattr(frame, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(frame, "GRACE_SECONDS", 0.03)

    class Context:
        """A cluster of so many executors."""

        def __init__(self, executors: int) -> None:
            self.master, self.executors, self.cancelled = "spark://host:1", executors, []
            self._jsc = self

        def sc(self):
            return self

        getExecutorMemoryStatus = sc  # noqa: N815 - Spark's own name

        def size(self) -> int:
            return self.executors + 1

        def getLocalProperty(self, _):
            return None

        def setLocalProperty(self, *_):
            pass

        setLogLevel = getLocalProperty  # noqa: N815 - likewise

        def cancelJobGroup(self, name):
            self.cancelled.append(name)

    for executors in (0, 1):
        context = Context(executors)
        with frame.watched(context):
            frame.threading.Event().wait(0.5)
        assert bool(context.cancelled) == (executors == 0)
        assert frame.manned(context) == (executors > 0)


# with one


def test_frames_of_spark_give_the_sums_of_the_reference() -> None:
    """A frame connects by itself, prepared in memory, in a folder or not at all; one job for many tallies."""
    wanted = sums(plain_engine(table(), Unit("who", 2)))
    engine = open_engine(spark.frame(table(), 3), schema=SCHEMA, unit=Unit("who", 2), key=KEY)
    assert isinstance(engine, SparkEngine)
    assert engine.fingerprint() == "frame"
    tracker = spark.session().sparkContext.statusTracker()
    engine.ready()
    spark.session().sparkContext.setLocalProperty("spark.jobGroup.id", "mine")
    assert [found.open().tolist() for found in sums_of(engine, ASKED)] == wanted
    assert spark.session().sparkContext.getLocalProperty("spark.jobGroup.id") == "mine"
    assert list(tracker.getJobIdsForGroup("mine")) == []
    spark.session().sparkContext.setLocalProperty("spark.jobGroup.id", None)
    tally = ask(col("age"), col("pay"))
    assert sorted(engine.listed(tally, blanks=True).open().tolist()) == sorted(
        plain_engine(table(), Unit("who", 2)).listed(tally, blanks=True).open().tolist()
    )
    engine.close()
    with pytest.raises(SulqError, match="closed"):
        engine.ready()


def test_many_tallies_are_one_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked together of the same rows reads them once."""
    engine = opened(spark.frame(table()))
    engine.ready()
    first = 10**9
    monkeypatch.setattr(frame, "NUMBERS", itertools.count(first))
    engine.sums_of(ASKED[:3])
    tracker = spark.session().sparkContext.statusTracker()
    groups = [f"sulq-{os.getpid()}-{first + i}" for i in range(9)]
    assert sum(len(tracker.getJobIdsForGroup(group)) for group in groups) == 1
    engine.close()


def test_rows_are_summed_where_they_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    """Partitions with a chunk or more are tasks of their own; small ones are put together; the sums are the same."""
    most = parts.MAX_TASK_NUMBERS
    assert parts.tasks(100 * chunks.CHUNK_ROWS, 10, 2) == 100
    assert parts.tasks(100 * chunks.CHUNK_ROWS, most // 20, 2) == 20
    assert parts.tasks(100 * chunks.CHUNK_ROWS, most, 2) == parts.tasks(0, 0, 2) == parts.TASKS_PER_CORE * 2
    wanted, seen = sums(plain_engine(table(), Unit())), []
    monkeypatch.setattr(parts, "tasks", lambda *given: seen.append(given) or 7)
    for several in (7, 9):  # 9 of them are put together
        engine = opened(spark.frame(table(), several))
        engine.ready()
        kept = engine._copy.tables["data"]
        assert (kept.parts, kept.size) == (several, table().num_rows)
        assert kept.kept.storageLevel.deserialized
        assert kept.kept.storageLevel.useDisk
        made = TablePart(kept, "kept", Needed(["age"]), owned=False).rows(3)
        assert made.rdd.getNumPartitions() == 7
        assert "Coalesce" not in made._jdf.queryExecution().toString() or several > 7
        assert sums(engine) == wanted
    assert (table().num_rows, sum(tally.cells * tally.width for tally in ASKED[:1]), 2) in seen


def test_executors_do_not_look_through_what_is_loaded() -> None:
    """After our first task a Python of Spark's has its modules out of its garbage, which Spark has it look through."""

    def frozen(rows):
        import gc

        list(rows)
        found = gc.get_freeze_count()
        list(work.versions([]))
        yield pa.RecordBatch.from_pydict({"first": [found], "then": [gc.get_freeze_count()]})

    found = spark.session().range(0, 1, 1, 1).mapInArrow(frozen, "first long, then long").collect()
    assert found[0].then > 10_000
    assert found[0].first in (0, found[0].then)


def test_a_copy_in_a_folder_goes_with_the_engine(tmp_path: Path) -> None:
    """Rows prepared into a folder that is the owner's alone lie there until the engine is closed."""
    wanted = sums(plain_engine(table(), Unit("who", 2)))
    engine = opened(spark.frame(table()), Unit("who", 2), prepared=tmp_path / "copy")
    engine.ready()
    (folder,) = (tmp_path / "copy").iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert sums(engine) == wanted
    assert not any((tmp_path / "copy").iterdir())


def test_rows_that_are_not_prepared_once_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read anew for each question they may be others; in a folder of each node's own they would lie in clear."""
    whole = spark.frame(table())
    with pytest.raises(SetupError, match="Leave prepared= out"):
        opened(whole, prepared=False)
    engine = opened(whole, prepared=tmp_path / "copy")
    monkeypatch.setattr(frame, "local", lambda _: False)
    monkeypatch.setattr(frame, "CLUSTER", {})
    with pytest.raises(SetupError, match="every node"):
        engine.ready()
    assert not (tmp_path / "copy").exists()


def test_an_ask_reads_one_copy_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is prepared meanwhile: the tables an ask began with are those it ends with."""
    engine = opened(spark.frame(table()))
    engine.ready()
    first, send, seen = engine._copy, TablePart.send, []

    def swapped(part, *given):
        seen.append(part.table)
        engine._copy = None
        return send(part, *given)

    monkeypatch.setattr(TablePart, "send", swapped)
    tallies = [ask(lit(1)), ask(outer(["age", "pay"]))]  # a statement, and a program
    assert [found.open().tolist() for found in engine.sums_of(tallies)] == sums(plain_engine(table(), Unit()), *tallies)
    assert seen == [first.tables["data"]] * 2
    engine._copy = first
    engine.close()


def test_what_is_checked_is_what_is_kept_SR15(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table with a key is read once for its check and its copy, and is not kept twice after that."""
    engine = open_dataset(in_spark(dataset()))
    held, checked = [], []
    check, prepare = prepared.Prepared.check, prepared.Prepared.prepare
    monkeypatch.setattr(prepared.Prepared, "check", lambda t, *a: (checked.append(t._held), check(t, *a))[1])
    monkeypatch.setattr(prepared.Prepared, "prepare", lambda t, **a: (held.append(t._held), prepare(t, **a))[1])
    engine.ready()
    assert [rows is not None for rows in held] == [True, False, True]  # people, visits, regions
    assert [a is b for a, b in zip(checked, held, strict=True)] == [True, True, True]
    assert not any(rows.storageLevel.useMemory for rows in held if rows is not None)
    engine.close()


def test_a_chunk_holds_whole_persons_SR15() -> None:
    """Wherever batches are cut, all rows of a person are in one chunk; control: rows without a person."""
    schema = Schema.of("data", {"a": Int(0, 9)})
    owners = [f"{i:032}" for i, n in enumerate((3, 1, 5, 2, 4)) for _ in range(n)]
    rows = pa.table({"c0": pa.array([1] * 15, pa.int8()), "h": pa.array([1] * 15, pa.int64()), "o": owners})
    with pytest.MonkeyPatch.context() as patch:
        for size, cut in itertools.product((1, 2, 4, 100), (1, 3, 15)):
            patch.setattr(chunks, "CHUNK_ROWS", size)
            batches = [batch for i in range(0, 15, cut) for batch in rows.slice(i, cut).to_batches()]
            made = list(work.pack(wire.encode(schema), batches))
            seen = [set(page.column("o").to_pylist()) for page in chunks.unpacked(made)]
            assert sum(len(few) for few in seen) == len(set().union(*seen)) == 5
            assert sum(page.num_rows for page in chunks.unpacked(made)) == 15
        patch.setattr(chunks, "CHUNK_ROWS", 2)
        assert len(list(work.pack(wire.encode(schema), rows.drop_columns(["h", "o"]).to_batches()))) == 8


def test_rows_that_are_not_as_the_facts_say_are_found_out_SR2() -> None:
    """A cell outside its declaration, one that must not be missing; control: as declared, with its person's rows."""
    schema = Schema.of("data", {"a": Int(0, 9, missing=False, default=0)})
    owners = ["a" * 32, "b" * 32, "b" * 32]
    for cells, fails in (([0, 5, 9], False), ([0, 5, 10], True), ([0, -1, 9], True), ([0, None, 9], True)):
        rows = pa.table({"c0": pa.array(cells, pa.int8()), "h": pa.array([1, 2, 2], pa.int64()), "o": owners})
        told = work.holders(wire.encode(schema), [chunks.packed(rows, schema, owned=True)])
        if fails:
            with pytest.raises(work.FailedError, match=r"^ValueError$"):
                list(told)
        else:
            assert [sorted(batch.column("n").to_pylist()) for batch in told] == [[1, 2]]


def test_persons_in_several_chunks_stop_the_owner_SR2(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the certificate of a partition's sums rests on is looked at when rows are prepared; control: as they are."""
    engine = opened(spark.frame(table()), Unit("who", 2))
    engine.ready()
    kept = engine._copy.tables["data"]
    kept._whole()
    monkeypatch.setattr(kept, "_kept", kept.kept.union(kept.kept))
    with pytest.raises(SetupError, match="prepared-unusable"):
        kept._whole()
    engine.close()


def test_persons_that_were_not_read_are_not_there_SR15() -> None:
    """A statement that names them fails, whatever rows hold: were they NULL, all would be one. Control: with them."""
    schema = Schema("data", (("age", Int(0, 9)),))
    people = "SELECT sum(n * n) AS s FROM (SELECT o, count(*) AS n FROM kept GROUP BY o)"
    for owned in (True, False):
        columns = {"c0": pa.array([1, 2, 3], pa.int8())} | ({"o": pa.array([b"a", b"b", b"c"])} if owned else {})
        tables = {"kept": chunks.TablePages(schema, True, [pa.table(columns)])}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(chunks, "unpacked", lambda given: given)
            if owned:
                assert chunks.run([Scan(people)], tables)[0][0].to_pylist() == [{"s": 3}]
            else:
                with pytest.raises(duckdb.InvalidInputException, match="persons were not read"):
                    chunks.run([Scan(people)], tables)


def test_every_statement_is_certified_before_the_debit_SR5(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text that a person moves twice as far is refused, free; control: the genuine one is answered."""
    db = sulq.connect(
        spark.frame(table()), columns=COLUMNS, unit=Unit("who", 2), budget=Epsilon(3), ledger=tmp_path / "x.ledger"
    )
    assert db.facts.certified
    per = PerPerson(Table(), (), (("total", "sum", col("age")),))
    assert all(block is not None for tally in ASKED[:3] for block in certified(db._engine, [tally])[0])
    schema = shape(per, db._engine.tables).schema
    assert certified(db._engine, [replace(ask(col("total"), schema=schema), over=per)])[0][0].rows == 1
    assert certified(db._engine, [ask(outer(["age", "pay"]))])[0][0].rows == 2  # a program over the partitions
    db.sum("age", spend=Epsilon(1))
    monkeypatch.setattr(Emitter, "units", lambda *_: (Piece("(2 * c0)"), True))
    with pytest.raises(sulq.errors.QuestionError, match="uncertified"):
        db.sum("age", spend=Epsilon(0.5), fresh=True)  # at a price whose certificate is not remembered
    assert db.spent.epsilon == 1
    db.close()


def test_an_owners_function_sees_the_rows_that_duckdb_gives_it_S4_27(tmp_path: Path) -> None:
    """Exact numbers of a stated function and of a distance, and a choice, by certified listings; missing cells too."""
    told = {"columns": {"age": Int(0, 40)}, "unit": declared.UNIT, "budget": Epsilon(900), "synthetic": True}
    with sulq.connect(table(), **told, estimators=declared.OWN) as db:
        expected = declared.asked(db)
    with sulq.connect(spark.frame(table()), **told, estimators=declared.OWN, ledger=tmp_path / "x.ledger") as db:
        assert db.facts.certified
        assert declared.asked(db) == expected
    assert expected[0][1] > 0


def test_a_persons_groups_are_summed_where_they_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    """One row a person is worked out on the executors, chunk by chunk and in any number of partitions."""
    unit = Unit("who", 3)
    rows = table([(f"p{i % 7}", i % 90, float(i), "xy"[i % 2], "ab"[i % 2]) for i in range(60)])
    per = PerPerson(Table(), ("city",), (("total", "sum", col("age")), ("n", "count", None)))
    other, jobs_of = plain_engine(rows, unit), []
    send = TablePart.send
    monkeypatch.setattr(TablePart, "send", lambda part, *given: (jobs_of.append(part), send(part, *given))[1])
    for several in (1, 5):
        engine = opened(spark.frame(rows, several), unit)
        schema = shape(per, engine.tables).schema
        tally = replace(ask(lit(1), col("total"), where=col("n") > 1, by=(col("city"),), schema=schema), over=per)
        assert engine.sums(tally).open().tolist() == other.sums(tally).open().tolist()
        groups = replace(tally, by=(Key(col("total"), ()),))
        found, wanted = engine.groups(groups).open(), other.groups(groups).open()
        assert (found.keys, found.sums.tolist()) == (wanted.keys, wanted.sums.tolist())
        assert found.persons.tolist() == wanted.persons.tolist()
        engine.close()
    assert len(jobs_of) == 4


def test_no_text_of_an_analyst_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels of branches, names of derived columns, words and patterns stay here; the sums are the same."""
    texts, task = [], work.PartitionTask.of

    def noted(*given, **more):
        made = task(*given, **more)
        texts.append(f"{made}")
        return made

    monkeypatch.setattr(work.PartitionTask, "of", noted)
    engine, other = opened(spark.frame(table()), Unit("who", 2)), plain_engine(table(), Unit("who", 2))
    named = Select(Table(), (("secretname", col("age") + 1), ("town", col("city")), ("words", col("note"))))
    schema = shape(named, engine._facts).schema
    case = Choice(((col("age") > 30, 0),), ("secretold", "secretyoung"), 1)
    sent = (
        ask(lit(1), where=col("city") == "x", by=(case,)),
        replace(ask(col("secretname"), where=col("town") == "x", schema=schema), over=named),
    )
    kept = (
        ask(lit(1), where=col("note") == "secretnote"),
        ask(lit(1), where=Like(col("note"), "secret%")),
        replace(ask(col("secretname"), schema=schema), over=Where(named, col("words").isin(["a", "secret"]))),
    )
    for tally in (*sent, *kept):
        assert engine.sums(tally).open().tolist() == other.sums(tally).open().tolist()
        found, wanted = engine.groups(tally).open(), other.groups(tally).open()
        there = found.persons > 0  # without keys SQL has one row even of nothing
        assert (found.keys, found.sums[there].tolist()) == (wanted.keys, wanted.sums.tolist())
        assert found.persons[there].tolist() == wanted.persons.tolist()
    folded = (ask(outer(["age", "pay"]), where=col("city") == "x"), ask(outer(["age", "pay"]), by=(case,)))
    here = ask(outer(["age", "pay"]), where=Like(col("note"), "secret%"))  # its statement has a text
    for tally in (*folded, here):
        assert engine.sums(tally).open().tolist() == other.sums(tally).open().tolist()
    assert len(texts) == 2 * len(sent) + len(folded)
    with pytest.raises(ValueError, match="not sent"):
        task([Scan("SELECT 1", ("secret",))], [])
    assert not any("secret" in text for text in texts)
    engine.close()


def many(address: str, tmp_path: Path, **more: object):
    """People and a public table that is known by its address."""
    return sulq.connect(
        {"people": f"spark://local[2]/{tmp_path}/people.parquet", "regions": address},
        columns={"people": {"region": sulq.Int(0, 9)}, "regions": {"code": sulq.Int(0, 9)}},
        public=["regions"],
        unit=Unit("pid", 2),
        budget=EpsilonDelta(9, 1e-6),
        ledger=tmp_path / "x.ledger",
        **more,
    )


def test_a_public_table_is_counted_in_the_copy_that_is_read_SR15(tmp_path: Path) -> None:
    """Its number is the copy's; grown before or after, the owner hears of it before anything is spent."""
    place = f"{tmp_path}/regions.parquet"
    spark.frame(DATA["people"]).write.parquet(f"{tmp_path}/people.parquet")
    rows = spark.frame(pa.table({"code": [1, 1, 2]}))
    rows.write.parquet(place)
    db = many(f"spark://local[2]/{place}", tmp_path)
    assert isinstance(db._engine, Counting)
    assert [t.rows for t in db._engine.counted().facts.tables] == [None, 3]
    assert [t.rows for t in db.facts.tables if t.public] == [3]
    db.sql("SELECT COUNT(*) FROM people", spend=Epsilon(1))
    rows.write.mode("append").parquet(place)
    with pytest.raises(SetupError, match="source-changed"):
        db.sql("SELECT COUNT(*) FROM people WHERE region > 1", spend=Epsilon(1))
    assert db.spent.epsilon == 1
    db.close()


def test_a_copy_that_comes_back_with_more_rows_is_not_joined_SR15(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows lost with an executor and read again may be more than a join was bounded by: no answer."""
    engine = open_dataset(in_spark(dataset()))
    assert total(engine, LIVING, lit(1), col("age")) == [2, 3]
    monkeypatch.setattr(engine._copy.tables["regions"], "size", 1)
    assert total(engine, LIVING) == [2]  # what was read of a public table is not read again
    engine._copy.tables["regions"]._public.clear()
    with pytest.raises(CuratorError, match="engine-failed"):
        total(engine, LIVING)
    engine.close()


def test_rows_prepared_again_must_be_as_many_SR12(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a session died: other rows under the same name stop the owner, and are not kept."""
    engine = opened(spark.frame(table()))
    engine.ready()
    engine._counts = {"data": engine._counts["data"] + 1}
    told = iter([True, False])
    monkeypatch.setattr(frame, "stopped", lambda _: next(told))
    with pytest.raises(SetupError, match="source-changed"):
        engine.ready()
    assert engine._copy is None
    engine.close()


def test_a_table_by_its_address_is_renewed_by_its_owner_SR12(tmp_path: Path) -> None:
    """Other files under the same name are noticed, at once and at the next connect; renew takes them, as a version."""
    place = f"{tmp_path}/visits.parquet"
    given = {"columns": COLUMNS, "budget": Epsilon(3), "unit": Unit("who", 2), "ledger": tmp_path / "visits.ledger"}
    spark.frame(table()).write.parquet(place)
    address = f"spark://local[2]/{place}"
    db = sulq.connect(address, **given)
    version = db._ledger.version
    assert db.count(spend=Epsilon(1)).value is not None
    spark.frame(table()).write.mode("overwrite").parquet(place)
    with pytest.raises(SetupError, match="source-changed"):
        db.count(spend=Epsilon(1), fresh=True)
    assert db.spent.epsilon == 1
    db.close()
    with pytest.raises(SetupError, match="source-changed"):
        sulq.connect(address, **given)
    for more in (1, 2):  # even where nothing can be seen to differ
        with sulq.connect(address, renew=True, **given) as db:
            assert db._ledger.version == version + more
    with sulq.connect(address, **given) as db:
        assert db._ledger.version == version + 2


def test_every_type_of_spark_is_read_or_refused() -> None:
    """Decimals, dates, moments with and without a zone are read; what has no meaning here is the owner's to mend."""
    spark.needed()
    from pyspark.sql import functions as f

    made = spark.frame(pa.table({"n": [1]})).select(
        f.lit(Decimal("2.50")).alias("pay"),
        f.expr("DATE'2020-02-03'").alias("day"),
        f.expr("TIMESTAMP'2020-02-03 10:00:00'").alias("moment"),
        f.expr("TIMESTAMP_NTZ'2020-02-03 10:00:00'").alias("local"),
        f.expr("CAST(3 AS TINYINT)").alias("small"),
        f.lit(None).alias("void"),
    )
    days = sulq.Date("2020-01-01", "2020-12-31")
    schema = Schema.of(
        "data",
        {"pay": Real(0, 8, 0.25), "day": days, "moment": days, "local": days, "small": Int(0, 9), "void": Text()},
    )
    tally = ask(lit(1), col("pay"), col("small"), where=col("day") == col("local"), schema=schema)
    engine = opened(made, schema=schema)
    assert engine.sums(tally).open().tolist()[0] == [1, 10, 3]
    engine.close()
    for expression in ("array(1)", "CAST('a' AS BINARY)", "struct(1 AS a)", "map('a', 1)", "INTERVAL '1' DAY"):
        bad = made.withColumn("pay", f.expr(expression))
        refused("bad-declaration", bad, schema=Schema.of("data", {"pay": Real(0, 1)}))
    refused("missing-column", made)
    refused("bad-declaration", made, schema=Schema.of("data", {"day": Int(0, 1)}))


def test_rows_drawn_by_chance_are_refused() -> None:
    """Sampled, numbered as they come, cut short: read again, they would be other rows. Control: a filter is not."""
    spark.needed()
    from pyspark.sql import functions as f

    whole = spark.frame(table())
    chance = {
        "sample": whole.sample(0.5, seed=1),
        "limit": whole.limit(2).where("age > 0"),
        "rand": whole.where(f.rand() > 0.5).select("*"),
        "uuid": whole.withColumn("x", f.expr("uuid()")).drop("x").withColumn("note", f.expr("uuid()")),
        "numbered": whole.withColumn("note", f.monotonically_increasing_id()),
        "some columns": whole.dropDuplicates(["city"]),
        "inside": whole.where("age < (SELECT 40 + rand())"),
        "joined": whole.join(whole.sample(0.5, seed=1).select("who"), "who"),
    }
    for name, drawn in chance.items():
        assert "by chance" in refused("bad-declaration", drawn), name
    frame.check(whole.where("age > 1").distinct().withColumn("pay", f.col("pay") + 1))


def test_rows_that_may_be_others_when_read_again_are_refused_T105() -> None:
    """Functions nobody can look into, RDDs, orders with ties and the time of day; control: what Spark hands over."""
    spark.needed()
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    whole = spark.frame(table())
    session = spark.session()
    coin = f.udf(lambda age: age if random.random() < 0.5 else None, "int")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # pyspark leaves the socket it hands rows over by
        rows = session.sparkContext.parallelize([(1, 2.0)]).map(lambda row: (row[0], random.random()))
        gc.collect()
    ordered = Window.partitionBy("city").orderBy("age")
    whole.createOrReplaceTempView("whole_t105")
    drawn = {
        "Python function": whole.withColumn("age", coin("age")),
        "Python function over batches": whole.mapInArrow(lambda batches: batches, whole.schema),
        "Python function in a join": whole.join(whole.select(coin("age").alias("age")), "age"),
        "RDD": session.createDataFrame(rows, "age int, pay double"),
        "row_number over ties": whole.withColumn("n", f.row_number().over(ordered)).where("n = 1").drop("n"),
        "first": whole.groupBy("who").agg(f.first("age").alias("age"), f.max("pay").alias("pay")),
        "collect_list": whole.groupBy("who").agg((f.size(f.collect_list("age")) + 0).alias("age")),
        "current_timestamp": whole.where(f.current_timestamp() > f.lit("2020-01-01")),
        "current_date": whole.withColumn("age", f.year(f.current_date()) - f.col("age")),
        "now in SQL": session.sql("SELECT * FROM whole_t105 WHERE age < (SELECT year(now()) FROM whole_t105 LIMIT 1)"),
    }
    for name, made in drawn.items():
        with pytest.raises(SetupError, match="by chance") as refusal:
            frame.check(made)
        assert refusal.value.code == "bad-declaration", name
    for sound in (whole.localCheckpoint(), whole.groupBy("who").agg(f.max("age").alias("age")), whole.orderBy("age")):
        frame.check(sound)


def test_cells_that_cannot_be_read_stop_the_owner_and_are_not_shown_T31(caplog: pytest.LogCaptureFixture) -> None:
    """A frame that fails on a row fails before any question; neither error nor log names the row."""
    spark.needed()
    from pyspark.sql import functions as f

    caplog.set_level(logging.DEBUG, "sulq")
    session = spark.session()
    session.conf.set("spark.sql.ansi.enabled", "true")
    session.sparkContext.setLogLevel("WARN")
    made = spark.frame(table([("ann", 1, 1.0, "x", CANARY)])).withColumn("age", f.col("note").cast("int"))
    refused("unreadable-data", made)
    assert CANARY not in caplog.text
    logs = session.sparkContext._jvm.org.apache.logging.log4j.LogManager
    assert logs.getRootLogger().getLevel().toString() == "OFF"  # Spark's own would have shown it


def test_what_fails_after_the_debit_is_one_outcome(caplog: pytest.LogCaptureFixture, monkeypatch) -> None:
    """An engine that fails in a question says so in a constant, is charged for, and answers the next."""
    db = sulq.connect(spark.frame(table()), columns=COLUMNS, budget=EpsilonDelta(5, 1e-6))
    assert db.count(spend=Epsilon(1)).value is not None

    def broken(*_: object, **__: object):
        raise RuntimeError(CANARY)

    with monkeypatch.context() as patch:
        patch.setattr(TablePart, "send", broken)
        with pytest.raises(CuratorError) as failed:
            db.count(spend=Epsilon(1), fresh=True)
    assert failed.value.code == "engine-failed"
    assert CANARY not in str(failed.value) + caplog.text
    assert db.spent.epsilon == 2
    assert db.count(spend=Epsilon(1), fresh=True).value is not None
    found = db.sql("SELECT city, COUNT(*), SUM(pay) FROM data GROUP BY city", spend=Epsilon(1))
    assert len(found.to_pandas()) == 3  # x, y and what is neither
    db.close()


def test_the_executors_must_have_this_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another sulq, or none, would read cells by other rules: the owner is told before a row is read."""
    assert all(name in work.VERSIONS for name in ("sulq", "duckdb", "numpy", "pyarrow"))
    monkeypatch.setattr(work, "VERSIONS", "sulq 0.0.0")
    assert "The executors have sulq" in refused("engine-not-available", spark.frame(table()))


def test_an_open_session_is_refused_before_a_row_is_read_T78(monkeypatch: pytest.MonkeyPatch) -> None:
    """One setting amiss is enough; control: the same frame in the session as it is."""
    whole = spark.frame(table())

    def ran() -> int:
        return int(spark.session()._jsc.sc().dagScheduler().nextJobId())

    before = ran()
    monkeypatch.setattr(frame, "HERE", {**frame.HERE, "spark.ui.enabled": "never"})
    assert "spark.ui.enabled=never" in refused("bad-config", whole)
    assert ran() == before
    monkeypatch.undo()
    engine = opened(whole)
    engine.ready()
    assert ran() > before
    engine.close()


def test_persons_are_the_same_in_all_tables_of_spark() -> None:
    """As of files: spelled differently, in columns of other names; joins and groups over them."""
    engine = open_dataset(in_spark(dataset()))
    assert total(engine, Table("people"), lit(1), col("age")) == [3, 6]
    assert total(engine, Table("visits")) == [4]
    assert total(engine, Table("regions")) == [2]
    assert total(engine, VISITED, lit(1), col("cost")) == [3, 7]
    assert total(engine, LIVING, lit(1), col("age")) == [2, 3]
    engine.close()


def test_keys_and_references_are_checked_over_all_rows_of_spark() -> None:
    """A key that repeats, and a row that leads to another person's, stop the owner; missing keys do not."""
    for bad in (
        {"people": pa.table({"pid": ["a", " A"], "age": [1, 2], "region": [1, 1]})},
        {"regions": pa.table({"code": [9, 12, 3], "name": ["n", "s", CANARY]})},
    ):
        with pytest.raises(SetupError, match="key-not-unique"):
            open_dataset(in_spark(dataset(**bad))).ready()
    named = {"buyer": ["a"], "order": [3]}
    with pytest.raises(SetupError, match="reference-not-own"):
        open_dataset(in_spark(ordered(LISTED, named))).ready()
    open_dataset(in_spark(ordered(LISTED, NAMED, ORDERS, LINES))).ready()


def test_a_table_by_its_address(tmp_path: Path) -> None:
    """Connected by name, with a ledger; other columns or no table are an owner-side stop before anything is spent."""
    address = f"spark://local[2]/{tmp_path}/visits.parquet"
    given = {"columns": COLUMNS, "budget": Epsilon(3), "unit": Unit("who", 2)}
    spark.frame(table()).write.parquet(f"{tmp_path}/visits.parquet")
    with pytest.raises(SetupError, match="ledger"):
        sulq.connect(address, **given)
    db = sulq.connect(address, ledger=tmp_path / "visits.ledger", **given)
    assert db.facts.table == "visits"
    assert db.count(spend=Epsilon(1)).value is not None
    spark.frame(table()).drop("pay").write.mode("overwrite").parquet(f"{tmp_path}/visits.parquet")
    with pytest.raises(SetupError, match="source-changed"):
        db.count(spend=Epsilon(1), fresh=True)
    shutil.rmtree(tmp_path / "visits.parquet")
    with pytest.raises(SetupError, match="missing-file"):
        db.count(spend=Epsilon(1), fresh=True)
    assert db.spent.epsilon == 1
    db.close()


def test_the_command_line_asks_a_table_of_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`sulq query` on a dataset of sulq.toml that is a table of Spark; without a ledger, and for a server, refused."""
    spark.frame(table()).write.parquet(f"{tmp_path}/visits.parquet")
    monkeypatch.chdir(tmp_path)
    config = f"""
[dataset.visits]
data = "spark://local[2]/{tmp_path}/visits.parquet"
ledger = "visits.ledger"
unit = {{ column = "who", rows = 2 }}
budget = {{ epsilon = 2.0 }}
columns = {{ age = {{ int = [0, 120] }} }}
"""
    Path("sulq.toml").write_text(config, encoding="utf-8")
    done = CliRunner().invoke(app, ["query", "visits", "SELECT COUNT(*) FROM visits", "--epsilon", "1"])
    assert done.exit_code == 0, done.output
    assert Path("visits.ledger").exists()
    done = CliRunner().invoke(app, ["prepare", "visits"])
    assert getattr(done.exception, "code", None) == "bad-config"
    assert "db.prepare()" in str(done.exception)
    with pytest.raises(SetupError, match="which a server does not hold"):
        declaration(read(Path("sulq.toml")).datasets["visits"])
    Path("sulq.toml").write_text(config.replace('ledger = "visits.ledger"\n', ""), encoding="utf-8")
    failed = CliRunner().invoke(app, ["query", "visits", "SELECT COUNT(*) FROM visits", "--epsilon", "1"])
    assert getattr(failed.exception, "code", None) == "bad-config"


def test_nothing_is_drawn_on_executors_T67() -> None:
    """Where their functions run no source of noise is loaded, so a forked Python has none to copy; here it is."""
    engine = opened(spark.frame(table()), Unit("who", 2))
    assert len(sums_of(engine, ASKED)) == len(ASKED)
    wide = 4
    rows = spark.session().range(0, wide, 1, wide).mapInArrow(loaded_there, "name string").collect()
    found = {row.name for row in rows}
    assert "sulq.sources.spark.work" in found  # control: it is where our functions run
    drawn = {name for name in found if "entropy" in name or "mechanisms" in name or name.split(".")[0] == "secrets"}
    assert not {name for name in drawn if name.startswith("sulq.")}
    assert any("mechanisms" in name for name in sys.modules)
    engine.close()
