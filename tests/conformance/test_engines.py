"""Every engine gives the integers of an independent oracle in plain Python, to the bit (T4, T6, T11, T18).

Tables are adversarial: NULL, NaN, infinities, denormals, the ends of 2^53 and of
64 bits, texts that are almost numbers, persons with many spellings and too many
rows, no rows at all. Tallies use every row function.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from sulq.language.domain import Schema, may_be_missing
from sulq.language.privacy import Unit
from sulq.language.rowfn import ROW_FUNCTIONS, Col, IsMissing
from sulq.language.tally import Block, Tally, sums_of
from sulq.sources.duckdb.engine import DuckEngine, MemoryEngine
from sulq.sources.engines import ENGINES, open_dataset
from sulq.sources.origin import Origin
from sulq.sources.spark.engine import SparkEngine
from sulq.sources.tables import Dataset
from tests import counts, generate, random_tallies, spark
from tests.counts import count
from tests.loaded import Unholdable, available, loaded
from tests.sources import oracle
from tests.sources.plain_engine import PlainEngine

KEY = b"k" * 32
PARTS = 4  # so that several processes share the work
PER_TABLE = 12
BATCHES = (1, 2, 7, 65_536)
KEPT = (None, 0, 200)  # bytes of columns in memory: all that this suite asks for, none, or a few at a time


def opened(data: generate.Data, folder: Path, rng: random.Random) -> dict[str, object]:
    """The same table in several of the ways an engine can hold it; what is slow to plan is drawn less often."""
    facts = (data.schema, data.unit, KEY)
    frame = Dataset.one(Origin.of(data.arrow()), *facts)
    path = data.parquet(folder / f"{rng.random()}.parquet", group=rng.choice((1, 3, 100)))
    file = Dataset.one(Origin.of(path), *facts)
    ways: dict[str, Callable[[], object]] = {
        "memory": lambda: MemoryEngine(frame, batch=rng.choice(BATCHES)),
        "memory, Parquet": lambda: MemoryEngine(file, batch=rng.choice(BATCHES)),
        "plain": lambda: PlainEngine(frame, batch=rng.choice(BATCHES)),
        "plain, Parquet": lambda: PlainEngine(file, batch=rng.choice(BATCHES)),
        "duckdb": lambda: DuckEngine(
            frame, batch=rng.choice(BATCHES), threads=rng.choice((1, 2)), resident=rng.choice(KEPT)
        ),
        "duckdb, prepared file": lambda: DuckEngine(
            file,
            prepared=path.with_suffix(".prepared"),
            batch=rng.choice(BATCHES),
            threads=rng.choice((1, 2)),
            resident=rng.choice(KEPT),
        ),
        "duckdb, unprepared": lambda: DuckEngine(frame, prepared=False, batch=rng.choice(BATCHES)),
        "duckdb, straight from Parquet": lambda: DuckEngine(file, prepared=False, threads=rng.choice((1, 2))),
    }
    if data.text:
        written = Dataset.one(Origin.of(data.csv(folder / f"{rng.random()}.csv")), *facts)
        ways["memory, CSV"] = lambda: MemoryEngine(written)
        ways["plain, CSV"] = lambda: PlainEngine(written)
        ways["duckdb, CSV"] = lambda: DuckEngine(written)
        ways["duckdb, straight from CSV"] = lambda: DuckEngine(written, prepared=False)
    if available() and not data.unit.positions_are_public and (data.size < 2 or rng.random() < 0.5):
        from sulq.sources.postgres.engine import PostgresEngine

        with contextlib.suppress(Unholdable):  # a NUL in a text, a day past PostgreSQL's calendar
            kept = Dataset.one(Origin.of(loaded(data.arrow())), *facts)
            ways["postgres"] = lambda: PostgresEngine(kept, batch=rng.choice(BATCHES))
    rare = {name for name in ways if "straight" in name or "unprepared" in name}
    taken = [name for name in ways if name not in rare] + [name for name in sorted(rare) if rng.random() < 0.2]
    return {name: ways[name]() for name in taken}


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_spark_gives_the_integers_of_the_oracle_T4_T6_T11(ansi: str) -> None:
    """No mismatch on tables of the kinds that Spark has, in 1, 3 or 7 partitions, whatever ANSI is set to."""
    planned = count(f"sums on Spark against big integers, ANSI {ansi}", short=24, long=3_000)
    session = spark.session()
    session.conf.set("spark.sql.ansi.enabled", ansi)
    done, seen, seed = 0, set(), 7 * 10**6 + (ansi == "true") * 10**5
    while done < planned:
        rng = counts.generator(seed)
        seed += 1
        data = generate.table(rng, text=rng.random() < 0.25)
        if data.unit.positions_are_public or not spark.fits(data.arrow()):
            continue
        frame = spark.frame(data.arrow(), rng.choice((1, 3, 7)))
        engine = SparkEngine(Dataset.one(Origin.of(frame), data.schema, data.unit, KEY))
        rows = oracle.kept(data, KEY)
        asked = [random_tallies.tally(rng, data.schema, data.unit) for _ in range(PER_TABLE)]
        seen |= {type(fn) for tally in asked for fn in random_tallies.walk(tally)}
        wanted = [oracle.sums(tally, data.schema, rows) for tally in asked]
        assert [found.open().tolist() for found in sums_of(engine, asked)] == wanted, f"seed {seed - 1}"
        assert engine.sums(asked[0]).open().tolist() == wanted[0], f"seed {seed - 1}, alone"
        engine.close()
        done += len(asked)
    assert len(seen) > len(ROW_FUNCTIONS) // 2


@pytest.mark.parametrize("part", range(PARTS))
def test_every_engine_gives_the_integers_of_the_oracle_T4_T6_T11(part: int, tmp_path: Path) -> None:
    """No mismatch in generated cases: all row functions, threads 1 and 2, batches from one row on.

    Which tallies a seed gives depends on the engines at hand, so a part goes on
    until it has asked for every row function.
    """
    planned = count(f"sums against big integers, part {part + 1} of {PARTS}", short=160, long=25_000)
    done, seen, seed = 0, set(), part * 10**6
    while done < planned or (set(ROW_FUNCTIONS) - seen and done < max(4 * planned, 4_000)):
        rng = counts.generator(seed)
        data = generate.table(rng, text=rng.random() < 0.25)
        engines = opened(data, tmp_path, rng)
        rows = oracle.kept(data, KEY)
        asked, wanted = [], []
        for _ in range(PER_TABLE):
            tally = random_tallies.tally(rng, data.schema, data.unit)
            seen |= {type(fn) for fn in random_tallies.walk(tally)}
            want = oracle.sums(tally, data.schema, rows)
            for name, engine in engines.items():
                assert engine.sums(tally).open().tolist() == want, f"seed {seed}, {name}"
                done += 1
            asked.append(tally)
            wanted.append(want)
        for name, engine in engines.items():
            together = [found.open().tolist() for found in sums_of(engine, asked)]
            assert together == wanted, f"seed {seed}, {name}, together"
        for engine in engines.values():
            engine.close()
        for path in tmp_path.iterdir():
            path.unlink()
        seed += 1
    assert set(ROW_FUNCTIONS) - seen == set()


@pytest.mark.spark
def test_a_missing_cell_takes_its_default_on_every_engine(tmp_path: Path) -> None:
    """Columns that say they are never missing, over cells that are: each counts as the default, whatever reads it.

    Control: the same cells, declared as they may be, are missing in every table.
    """
    for seed in range(4):
        rng = counts.generator(90 + seed)
        data = generate.table(rng, unit=Unit("who", 2) if seed % 2 else Unit(), size=20, never=1.0)
        usual = replace(data, schema=Schema("", tuple((n, may_be_missing(c)) for n, c in data.schema.columns)))
        assert any(code is None for row in oracle.kept(usual, KEY) for code in row.values())
        rows = oracle.kept(data, KEY)
        gaps = [Block(IsMissing(Col(name)), Fraction(1), (0,), (1,), vector=False) for name in data.schema.names]
        asked = [random_tallies.tally(rng, data.schema, data.unit) for _ in range(3)]
        asked.append(Tally(asked[0].over, tuple(gaps), None, (), 1))
        wanted = [oracle.sums(tally, data.schema, rows) for tally in asked]
        assert wanted[-1] == [[0] * len(gaps)]
        engines = opened(data, tmp_path, rng)
        if seed < 2 and spark.fits(data.arrow()):
            facts = (data.schema, data.unit, KEY)
            engines["spark"] = SparkEngine(Dataset.one(Origin.of(spark.frame(data.arrow())), *facts))
        for name, engine in engines.items():
            assert [engine.sums(tally).open().tolist() for tally in asked] == wanted, f"seed {seed}, {name}"
            engine.close()
        for path in tmp_path.iterdir():
            path.unlink()


def test_the_oracle_notices_a_wrong_sum() -> None:
    """Control: one unit more in one cell is a mismatch."""
    rng = counts.generator(3)
    data = generate.table(rng)
    engine = PlainEngine(Dataset.one(Origin.of(data.arrow()), data.schema, data.unit, KEY))
    tally = random_tallies.tally(rng, data.schema, data.unit)
    got = engine.sums(tally).open().tolist()
    assert got == oracle.sums(tally, data.schema, oracle.kept(data, KEY))
    got[0][0] += 1
    assert got != oracle.sums(tally, data.schema, oracle.kept(data, KEY))


def test_every_engine_of_the_table_is_under_test() -> None:
    """A new engine joins this suite by its name in ENGINES."""
    assert set(ENGINES) == {"duckdb", "memory", "postgres", "spark"}


def measured(kind: str, data: generate.Data, rows: list[int] | None, tallies: list[object]) -> list[list[list[int]]]:
    """Exact sums of some rows, in the order given."""
    table = data.arrow(rows)
    held = {"postgres": loaded, "spark": spark.frame}.get(kind, lambda rows: rows)(table)
    engine = open_dataset(Dataset.one(Origin.of(held), data.schema, data.unit, KEY), engine=kind)
    found = [sums.open().tolist() for sums in sums_of(engine, tallies)]
    engine.close()
    return found


def holdable(data: generate.Data) -> bool:
    """Whether PostgreSQL has all of these cells."""
    try:
        return bool(loaded(data.arrow()))
    except Unholdable:
        return False


def plus(first: list[list[int]], second: list[list[int]]) -> list[list[int]]:
    """Two tables of sums, added."""
    return [[a + b for a, b in zip(x, y, strict=True)] for x, y in zip(first, second, strict=True)]


@pytest.mark.parametrize("kind", ENGINES)
def test_order_splitting_and_dropping_change_no_other_rows_integer_T18(kind: str) -> None:
    """Shuffled rows sum to the same, parts to the whole; a dropped or doubled row takes or adds its own and no more."""
    where, tables = (" on Spark", (1, 50)) if kind == "spark" else ("", (3, 500))
    for seed in range(count(f"tables shuffled, split and dropped from{where}", short=tables[0], long=tables[1])):
        rng = counts.generator(1_000 + seed)
        data = generate.table(rng, size=24, unit=Unit())
        while (kind == "postgres" and not holdable(data)) or (kind == "spark" and not spark.fits(data.arrow())):
            data = generate.table(rng, size=24, unit=Unit())
        tallies = [random_tallies.tally(rng, data.schema, data.unit) for _ in range(4)]
        every = list(range(data.size))
        shuffled = rng.sample(every, len(every))
        cut, one = rng.randrange(len(every)), rng.randrange(len(every))
        parts = {
            "whole": None,
            "shuffled": shuffled,
            "first": shuffled[:cut],
            "second": shuffled[cut:],
            "one": [one],
            "without": [i for i in shuffled if i != one],
            "doubled": [*shuffled, one],
        }
        found = {name: measured(kind, data, rows, tallies) for name, rows in parts.items()}
        for i in range(len(tallies)):
            whole = found["whole"][i]
            assert found["shuffled"][i] == whole
            assert plus(found["first"][i], found["second"][i]) == whole
            assert plus(found["without"][i], found["one"][i]) == whole
            assert plus(whole, found["one"][i]) == found["doubled"][i]
