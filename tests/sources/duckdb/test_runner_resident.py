"""Columns in memory: the same integers as streamed ones, within their limit, shared, and let go of."""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sulq
from sulq.errors import SetupError
from sulq.kernel.programs import Program, Stack, Step
from sulq.kernel.programs import Unit as Coordinate
from sulq.language.domain import Int, Real, Schema
from sulq.language.privacy import Unit
from sulq.language.relation import Table
from sulq.language.rowfn import Dot, Lit, bucket, col, lit, nearest, outer, position, vector, within_ball
from sulq.language.rowfn.scalar import First
from sulq.language.tally import Tally
from sulq.sources.duckdb import runner as module
from sulq.sources.duckdb.connection import memory as machine
from sulq.sources.duckdb.engine import DuckEngine
from sulq.sources.duckdb.runner import MAX_RESIDENT_BYTES, Resident, limit, named
from sulq.testing import exact
from tests.sources.cases import ask, duck, parquet, plain_engine, table

ROOT = Path(__file__).resolve().parents[3]
SIZE = 3_000
SCHEMA = Schema.of("data", {"h": Int(-3, 9), "wide": Int(-(2**53), 2**53), "x": Real(-1, 1), "y": Real(-1, 1)})


def numbers(size: int = SIZE, seed: int = 0) -> pa.Table:
    """Numbers, some of them missing; one column is named as the engine names the persons' hashes."""
    rng = np.random.default_rng(seed)
    cells = {
        "h": rng.integers(-9, 12, size),
        "wide": rng.integers(-(2**60), 2**60, size),
        "x": rng.uniform(-1.2, 1.2, size),
        "y": rng.uniform(-1.2, 1.2, size),
    }
    return pa.table({name: pa.array(given, mask=rng.random(size) < 0.05) for name, given in cells.items()})


PAIR = vector(["x", "y"])


def asked(unit: Unit) -> list[Tally]:
    """Tallies that batches sum, over overlapping columns, persons and places."""
    by = nearest(PAIR, [[0, 0.5], [-0.5, 0]])
    found = [
        ask(lit(1), PAIR, outer(within_ball(PAIR, 0.7)), by=(by,), schema=SCHEMA),
        ask(vector(["h", "y"]), where=col("x") > 0, schema=SCHEMA),
        ask(outer(["wide", "h"]), schema=SCHEMA),
    ]
    if unit.positions_are_public:
        found.append(ask(vector([(position() / 64).clip(0, 50), "h"]), by=(bucket(3),), schema=SCHEMA))
    return found


def found(engine: object, tallies: list[Tally]) -> list[list[list[int]]]:
    return [engine.sums(tally).open().tolist() for tally in tallies]


def held(engine: DuckEngine) -> set[str]:
    """The names of the columns in memory."""
    return {name for _, name in engine._resident._held if name[0] == "c"}


def vectors(engine: DuckEngine) -> int:
    """How many vectors are in memory."""
    return sum(name.startswith("vector ") for _, name in engine._resident._held)


@pytest.mark.parametrize("unit", [Unit(), Unit(neighbors="replace_one"), Unit(neighbors="zero_out")], ids=str)
@pytest.mark.parametrize("most", [None, 0, 40_000, 60_000])
def test_kept_or_streamed_the_sums_are_the_same_SR16(unit: Unit, most: int | None, tmp_path: Path) -> None:
    """All, none or some of the columns in memory, from a frame or a prepared file, twice: the reference's sums."""
    data = numbers()
    tallies = asked(unit)
    want = found(plain_engine(data, unit, SCHEMA), tallies)
    for source, prepared in ((data, None), (parquet(tmp_path, data), tmp_path / "prepared")):
        engine = duck(source, unit, SCHEMA, prepared=prepared, resident=most)
        assert found(engine, tallies) == want
        assert found(engine, tallies[::-1]) == want[::-1]
        assert sum(module._bytes(item) for item in engine._resident._held.values()) <= (
            limit() if most is None else most
        )
        engine.close()


def test_columns_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second fold over the same columns reads nothing; one more column is read alone; the control: none is kept."""
    read: list[str] = []
    streamed = module.streamed

    def noted(cursor: object, statement: str, *rest: object) -> object:
        read.append(statement)
        return streamed(cursor, statement, *rest)

    monkeypatch.setattr(module, "streamed", noted)
    engine = duck(numbers(), schema=SCHEMA)
    pair, more = ask(outer(["x", "y"]), schema=SCHEMA), ask(outer(["x", "y", "h"]), schema=SCHEMA)
    for tally in (pair, pair, more, more):
        engine.sums(tally)
    assert read == ["SELECT rowid, c2, c3 FROM kept", "SELECT rowid, c0 FROM kept"]
    engine.close()
    read.clear()
    none = duck(numbers(), schema=SCHEMA, resident=0)
    for tally in (pair, pair):
        none.sums(tally)
    assert read == ["SELECT c2, c3 FROM kept"] * 2
    none.close()


def test_rows_keep_their_order_however_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns read at different times, each in another order of batches and rows, still meet row by row."""
    data = numbers()
    tally = ask(outer(["x", "y", "h"]), schema=SCHEMA)
    want = found(plain_engine(data, schema=SCHEMA), [tally])
    streamed = module.streamed
    rng = random.Random(1)

    def shuffled(cursor: object, statement: str, parameters: dict[str, object], _: int) -> object:
        batches = list(streamed(cursor, statement, parameters, 100))
        rng.shuffle(batches)
        for columns, count in batches:
            order = np.array(rng.sample(range(count), count))
            yield [(v[order], None if m is None else m[order]) for v, m in columns], count

    monkeypatch.setattr(module, "streamed", shuffled)
    engine = duck(data, schema=SCHEMA)
    engine.sums(ask(outer(["y"]), schema=SCHEMA))
    assert found(engine, [tally]) == want
    engine.close()


def test_old_columns_make_room() -> None:
    """Within the limit the columns used last stay; a fold that needs more than all of it is streamed."""
    engine = duck(numbers(), schema=SCHEMA, resident=11 * SIZE)  # two columns of five bytes a cell, and no vector
    engine.sums(ask(outer(["x", "y"]), schema=SCHEMA))
    assert held(engine) == {"c2", "c3"}
    engine.sums(ask(outer(["h"]), schema=SCHEMA))
    assert held(engine) == {"c3", "c0"}
    engine.sums(ask(outer(["x", "y", "h"]), schema=SCHEMA))
    assert held(engine) == {"c3", "c0"}
    engine.close()


@pytest.mark.by_hand
def test_vectors_that_come_again_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Made the second time, they serve the next fold, which needs no column; what fails meanwhile is not kept."""
    data = numbers()
    data = data.set_column(2, "x", data["x"].fill_null(0.5)).set_column(3, "y", data["y"].fill_null(0.1))
    schema = Schema.of("data", {"h": Int(-3, 9), **{name: Real(-1, 1, missing=False) for name in ("x", "y")}})
    engine = duck(data, schema=schema)
    ball = within_ball(PAIR, 0.7)
    rounds = [
        ask(lit(1), ball, by=(nearest(ball, [[0, 0.5], centre]),), schema=schema) for centre in ([-0.5, 0], [0.2, 0.1])
    ]
    want = found(plain_engine(data, schema=schema), rounds)
    for kept in (0, 1):
        assert found(engine, rounds[:1]) == want[:1]
        assert vectors(engine) == kept
    with engine._resident._lock:
        for key in [key for key in engine._resident._held if key[1][0] == "c"]:
            del engine._resident._held[key]
    assert found(engine, rounds) == want
    assert held(engine) == set()
    failed: list[object] = []

    def fails(*given: object) -> None:
        failed.append(given)
        raise MemoryError

    pair = ask(PAIR, schema=schema)
    engine.sums(pair)
    with monkeypatch.context() as patch:
        patch.setattr(module, "vectors", fails)
        assert found(engine, [pair]) == found(plain_engine(data, schema=schema), [pair])
    assert (len(failed), vectors(engine)) == (1, 0)
    engine.sums(pair)
    assert vectors(engine) == 1  # the control
    engine.close()


def test_where_a_vector_is_missing_is_read_of_its_columns() -> None:
    """A vector says where it is, not where it is not: what a key needs of that is read again."""
    data, ball = numbers(), within_ball(PAIR, 0.7)
    engine = duck(data, schema=SCHEMA)
    tally = ask(lit(1), ball, by=(nearest(ball, [[0, 0.5], [0.2, 0.1]]),), schema=SCHEMA)
    want = found(plain_engine(data, schema=SCHEMA), [tally])
    for kept in (0, 1, 1):
        assert found(engine, [tally]) == want
        assert (held(engine), vectors(engine)) == ({"c2", "c3"}, kept)
    engine.close()


def test_a_vector_that_no_sum_looks_at_is_not_made(caplog: pytest.LogCaptureFixture) -> None:
    """Its columns are not read, so making it failed, and said so in the log, where there was a row (T31)."""
    unseen = Dot(PAIR, (1.0, 2.0)).clip(0, 1)
    tally = ask(First((Lit(1), unseen)), vector(["h", "y"]), schema=SCHEMA)
    for size in (0, SIZE):
        data = numbers(size)
        engine = duck(data, schema=SCHEMA)
        assert found(engine, [tally]) == found(plain_engine(data, schema=SCHEMA), [tally])
        assert held(engine) == {"c0", "c3"}
        engine.close()
    assert caplog.records == []


def test_other_steps_have_other_names() -> None:
    """Every change of a field of a step or of what it is worked out of is another vector."""
    columns = (Step("column", given=(0,)), Step("column", given=(1,)), Step("missing", given=(1,)))
    stack = Stack((Coordinate(0, -9, 9), Coordinate(1, -9, 9)), 2)
    program = Program(("c0", "c1"), (*columns, stack), ())
    changed = [
        replace(stack, ball=5),
        replace(stack, l1=5),
        replace(stack, ball=5, shorten=True),
        replace(stack, missing=None),
        replace(stack, units=stack.units[::-1]),
        replace(stack, units=(replace(stack.units[0], scale=0.5), stack.units[1])),
        replace(stack, units=(replace(stack.units[0], low=-8), stack.units[1])),
    ]
    names = {named(replace(program, steps=(*columns, step)))[3] for step in (stack, *changed)}
    names.add(named(replace(program, columns=("c1", "c0")))[3])
    assert len(names) == len(changed) + 2
    one, true = (named(Program((), (Step("constant", given=(value,)),), ()))[0] for value in (1, True))
    assert one != true


def test_text_is_streamed() -> None:
    """Texts are not kept: how long they are nobody declared."""
    engine = duck(table())
    engine.sums(ask(outer(["age"]), where=col("note") == "a"))
    assert held(engine) == set()
    engine.sums(ask(outer(["age"]), where=col("age") > 3))
    assert held(engine) == {"c0"}
    engine.close()


def test_columns_are_let_go_of(tmp_path: Path) -> None:
    """At close, and where the source changed underneath; without a prepared copy nothing is kept at all."""
    tally = ask(outer(["x"]), schema=SCHEMA)
    engine = duck(numbers(), schema=SCHEMA)
    engine.sums(tally)
    engine.sums(tally)
    assert (held(engine), vectors(engine)) == ({"c2"}, 1)
    engine.close()
    assert (held(engine), vectors(engine)) == (set(), 0)
    path = parquet(tmp_path, numbers())
    engine = duck(path, schema=SCHEMA)
    engine.sums(tally)
    assert held(engine) == {"c2"}
    parquet(tmp_path, numbers(SIZE + 1))
    with pytest.raises(SetupError) as changed:
        engine.sums(tally)
    assert changed.value.code == "source-changed"
    assert (held(engine), vectors(engine)) == (set(), 0)
    engine.close()
    engine = duck(path, schema=SCHEMA, prepared=False)
    assert engine._resident is None
    engine.sums(tally)
    engine.close()


@pytest.mark.by_hand
@pytest.mark.parametrize("broken", ["vectors", "read"])
def test_what_fails_in_memory_is_streamed_T30(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory that runs out depends on the rows, so it is no outcome: the same sums come from batches."""
    tallies = asked(Unit())
    expected = found(plain_engine(numbers(), schema=SCHEMA), tallies)
    engine = duck(numbers(), schema=SCHEMA)

    def fails(*_: object, **__: object) -> None:
        raise MemoryError("SECRET")

    monkeypatch.setattr(module, broken, fails)
    for _ in range(2):
        assert found(engine, tallies) == expected
    assert (held(engine), vectors(engine)) == (set(), 0)
    engine.close()


def test_what_is_made_while_all_is_let_go_of_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fold that is under way as the engine closes, or as its source turns out changed, leaves no row behind."""
    tally = ask(outer(["x"]), schema=SCHEMA)
    made = module.vectors
    for for_good in (True, False):
        engine = duck(numbers(), schema=SCHEMA)
        engine.sums(tally)

        def slow(*given: object, engine: DuckEngine = engine, for_good: bool = for_good) -> object:
            engine._resident.clear(for_good=for_good)  # as another thread would
            return made(*given)

        with monkeypatch.context() as patch:
            patch.setattr(module, "vectors", slow)
            expected = engine.sums(tally).open().tolist()
        assert (held(engine), vectors(engine)) == (set(), 0)
        assert engine.sums(tally).open().tolist() == expected
        assert vectors(engine) == (0 if for_good else 1)  # control: what comes after is kept, unless it was for good
        engine.close()


def test_asks_at_once_stay_within_the_limit_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Room is taken before anything is made: what is held and what is being made never pass the limit."""
    most = 90_000
    engine = duck(numbers(), schema=SCHEMA, resident=most)
    resident = engine._resident
    seen: list[int] = []
    taking = resident._take

    def watched(*given: object) -> bool:
        fits = taking(*given)
        with resident._lock:
            seen.append(resident._taken + sum(module._bytes(item) for item in resident._held.values()))
        return fits

    monkeypatch.setattr(resident, "_take", watched)
    tallies = [ask(outer(list(names)), schema=SCHEMA) for names in itertools.permutations(["h", "x", "y", "wide"], 2)]
    expected = found(plain_engine(numbers(), schema=SCHEMA), tallies)
    results: list[object] = [None] * 4
    threads = [threading.Thread(target=lambda i=i: results.__setitem__(i, found(engine, tallies))) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 4
    assert max(seen) <= most
    assert max(seen) > most // 2  # control: the limit was in the way
    assert (resident._taken, +resident._used) == (0, Counter())
    engine.close()


def test_tables_of_one_dataset_are_not_taken_for_each_other() -> None:
    """Equal names and equal vectors over two tables: each has its own rows."""
    columns = {"x": sulq.Real(-1, 1), "y": sulq.Real(-1, 1)}
    frames = {
        name: numbers(seed=i).select(["x", "y"]).to_pandas().assign(pid=range(SIZE)) for i, name in enumerate("ab")
    }
    with sulq.connect(
        frames,
        columns=dict.fromkeys(frames, columns),
        unit=sulq.Unit("pid", rows=1),
        budget=sulq.Epsilon(100),
        synthetic=True,
    ) as db:
        sums = [
            exact(db).ask(sulq.Sums([outer(["x", "y"])], over=Table(name)), spend=sulq.Epsilon(1)).value.tolist()
            for name in ("a", "b", "a")
        ]
    assert sums[0] == sums[2] != sums[1]


def test_threads_share_the_columns() -> None:
    """Eight threads that ask for overlapping columns at once get the reference's sums."""
    data = numbers()
    tallies = asked(Unit())
    want = found(plain_engine(data, schema=SCHEMA), tallies)
    engine = duck(data, schema=SCHEMA, resident=60_000)
    got: list[object] = []
    threads = [threading.Thread(target=lambda i=i: got.append((i, found(engine, tallies[i % 3 :])))) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 8
    assert all(sums == want[i % 3 :] for i, sums in got)
    engine.close()


def test_no_rows_are_kept_as_none() -> None:
    """An empty table has empty columns."""
    engine = duck(numbers(0), schema=SCHEMA)
    assert found(engine, [ask(outer(["x"]), schema=SCHEMA)] * 2) == [[[0]], [[0]]]
    engine.close()


def test_the_limit_is_public() -> None:
    """It follows from the machine's memory alone, and a million rows of fifty numbers fit."""
    assert limit() == min(MAX_RESIDENT_BYTES, machine() * 2**20 // 4)
    assert MAX_RESIDENT_BYTES > 10**6 * 50 * 5


def test_a_stored_table_that_lost_rows_is_noticed() -> None:
    """Numbers of rows that do not run from 0 to the last are no order to rely on."""
    engine = duck(numbers(), schema=SCHEMA)
    engine.ready()
    resident, cursor = Resident(2**20), engine._connection.cursor()
    resident._numbers["kept"] = SIZE + 1
    fold = engine.propose(ask(outer(["x"]), schema=SCHEMA)).fold
    with pytest.raises(LookupError), resident.read(cursor, SCHEMA, engine._kept("data"), fold, 10):
        pass
    engine.close()


def test_memory_does_not_grow_with_the_rows_beyond_the_limit(tmp_path: Path) -> None:
    """Three times the rows: streamed, the peak is the same within 15 MiB; the control: all kept, it grows by 40.

    49 MiB of columns more, prepared and asked about twice, in a process of its own each time.
    """
    peaks: dict[int, list[float]] = {0: [], MAX_RESIDENT_BYTES: []}
    steady = os.environ | {"MALLOC_ARENA_MAX": "1"}  # or what threads leave behind adds some MiB by chance
    for size in (800_000, 2_400_000):
        rng = np.random.default_rng(0)
        columns = {f"x{i}": rng.integers(-(2**53), 2**53, size) for i in range(4)}
        file = tmp_path / f"{size}.parquet"
        pq.write_table(pa.table(columns), file, row_group_size=50_000, use_dictionary=False)
        for kept, found in peaks.items():
            command = [sys.executable, "-m", "tests.sources.peak", str(file), str(kept)]
            done = subprocess.run(
                command, capture_output=True, text=True, check=True, cwd=ROOT, env=steady, timeout=300
            )
            found.append(int(done.stdout) / 1024)
    assert peaks[0][1] - peaks[0][0] < 15
    assert peaks[MAX_RESIDENT_BYTES][1] - peaks[MAX_RESIDENT_BYTES][0] > 40
