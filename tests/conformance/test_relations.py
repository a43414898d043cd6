"""Derived tables: every engine gives the integers of plain Python, and one person alters no more rows than was said."""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from sulq.answers.relation_oracle import with_sources
from sulq.language.domain import Int, Schema
from sulq.language.facts import TableFacts, Tables
from sulq.language.privacy import Unit
from sulq.language.relation import RELATIONS, Distinct, Join, Relation, Select, Table, Where
from sulq.language.rowfn import Bucket, Col, RowFn
from sulq.language.shape import shape
from sulq.language.tally import Groups
from sulq.sources.duckdb.engine import DuckEngine, MemoryEngine
from sulq.sources.spark.engine import SparkEngine
from tests import counts, relations, spark
from tests.counts import count
from tests.loaded import Unholdable, available, loaded
from tests.sources import oracle

HOWS = ("inner", "left")
PARTS = 4
PER_WORLD = 6


def opened(world: relations.World, folder: Path, rng: random.Random) -> dict[str, object]:
    """The same dataset in several of the ways an engine can hold it."""

    def written(name: str, table: object) -> Path:
        path = folder / f"{rng.random()}-{name}.parquet"
        pq.write_table(table, path)
        return path

    batch, threads = rng.choice((1, 7, 65_536)), rng.choice((1, 2))
    engines: dict[str, object] = {"memory": MemoryEngine(world.dataset(), batch=batch)}
    engines["duckdb"] = DuckEngine(world.dataset(), batch=batch, threads=threads)
    if rng.random() < 0.3 and available():
        from sulq.sources.postgres.engine import PostgresEngine

        with contextlib.suppress(Unholdable):
            engines["postgres"] = PostgresEngine(world.dataset(lambda _, table: loaded(table)), batch=batch)
    if rng.random() < 0.3:
        copy = folder / f"{rng.random()}.prepared"
        engines["duckdb, prepared file"] = DuckEngine(world.dataset(written), prepared=copy, threads=threads)
    if rng.random() < 0.2:
        engines["duckdb, unprepared"] = DuckEngine(world.dataset(), prepared=False, batch=batch)
    if rng.random() < 0.2:
        engines["duckdb, straight from Parquet"] = DuckEngine(world.dataset(written), prepared=False)
    return engines


def kinds(relation: object) -> set[type]:
    """Every kind of relation in one."""
    return {type(relation)}.union(*(kinds(source) for source in relation.sources()))


def shown(found: Groups) -> list[tuple[tuple[object, ...], list[int], int]]:
    """Groups as plain values; without keys SQL has one row even of nothing, which no question asks for."""
    labels = list(zip(*found.keys, strict=True)) if found.keys else [()] * len(found.persons)
    rows = zip(labels, found.sums.tolist(), found.persons.tolist(), strict=True)
    return [row for row in rows if found.keys or row[2]]


@pytest.mark.parametrize("part", range(PARTS))
def test_every_engine_derives_the_rows_of_the_oracle_T15(part: int, tmp_path: Path) -> None:
    """No mismatch in sums over random relations, nor in groups that are not listed in advance."""
    planned = count(f"sums over derived tables, part {part + 1} of {PARTS}", short=60, long=1_000)
    done, seen, seed = 0, set(), part * 10**6
    while done < planned or (set(RELATIONS) - seen and done < 10 * planned):
        rng = counts.generator(f"relations {seed}")
        world = relations.world(rng)
        draw = relations.Relations(rng, world.facts)
        engines = opened(world, tmp_path, rng)
        for _ in range(PER_WORLD):
            relation = draw.relation(rng.randint(0, 4))
            seen |= kinds(relation)
            schema = shape(relation, world.facts).schema
            rows = relations.rows_of(relation, world.facts, world.rows)
            tally, grouped = draw.tally(relation), draw.open_tally(relation)
            want = oracle.sums(tally, schema, [row.codes for row in rows])
            groups = relations.groups_of(grouped, schema, rows)
            for name, engine in engines.items():
                assert engine.sums(tally).open().tolist() == want, f"seed {seed}, {name}"
                assert shown(engine.groups(grouped).open()) == groups, f"seed {seed}, {name}"
                done += 1
        for engine in engines.values():
            engine.close()
        for path in tmp_path.iterdir():
            path.unlink()
        seed += 1
    assert set(RELATIONS) - seen == set()


def test_spark_derives_the_rows_of_the_oracle_T15() -> None:
    """The same on Spark: rows made one by one are worked out there, the rest from what it hands over."""
    planned = count("sums over derived tables on Spark", short=12, long=120)
    done, seen, seed = 0, set(), 9 * 10**6
    while done < planned:
        rng = counts.generator(f"relations {seed}")
        world = relations.world(rng)
        draw = relations.Relations(rng, world.facts)
        parts = rng.choice((1, 3))
        engine = SparkEngine(world.dataset(lambda _, table, parts=parts: spark.frame(table, parts)))
        for _ in range(PER_WORLD):
            relation = draw.relation(rng.randint(0, 3))
            seen |= kinds(relation)
            schema = shape(relation, world.facts).schema
            rows = relations.rows_of(relation, world.facts, world.rows)
            tally, grouped = draw.tally(relation), draw.open_tally(relation)
            want = oracle.sums(tally, schema, [row.codes for row in rows])
            assert engine.sums(tally).open().tolist() == want, f"seed {seed}"
            assert shown(engine.groups(grouped).open()) == relations.groups_of(grouped, schema, rows), f"seed {seed}"
            done += 1
        engine.close()
        seed += 1
    assert {Table, Select} <= seen


def parted(relation: Relation, facts: Tables, part: RowFn) -> Relation:
    """The relation of a part of the people: of each private table their rows."""
    if isinstance(relation, Table):
        return relation if facts.table_of(relation.name).public else Where(relation, part)
    return with_sources(relation, [parted(source, facts, part) for source in relation.sources()])


def test_parts_of_the_people_are_alike_on_every_engine_and_add_up_SR11(tmp_path: Path) -> None:
    """A part of the people within a relation: the same integers everywhere, and both parts' rows are all rows.

    Of rows that are told apart and merged (`Distinct`) both parts can hold one, so that these are only compared.
    """
    planned = count("sums over parts of the people", short=40, long=2_000)
    done, seed, divided = 0, 5 * 10**6, 0
    while done < planned:
        rng = counts.generator(f"relations {seed}")
        world = relations.world(rng)
        draw = relations.Relations(rng, world.facts)
        engines = opened(world, tmp_path, rng)
        if done < planned / 20:
            frames = world.dataset(lambda _, table: spark.frame(table, 2))
            engines["spark"] = SparkEngine(frames)
        for _ in range(3):
            relation = draw.relation(rng.randint(0, 3))
            part = Bucket(3, rng.randint(0, 9)).isin([0])
            tally = draw.tally(relation)
            several = [replace(tally, over=parted(relation, world.facts, each)) for each in (part, ~part)]
            want = [engines["memory"].sums(one).open().tolist() for one in (*several, tally)]
            rows = [np.array(found)[:, 0] for found in want]
            if Distinct not in kinds(relation) and not shape(relation, world.facts).public:
                assert (rows[0] + rows[1] == rows[2]).all(), f"seed {seed}"
                divided += bool(rows[0].any() and rows[1].any())
            for name, engine in engines.items():
                assert [engine.sums(one).open().tolist() for one in several] == want[:2], f"seed {seed}, {name}"
                done += 1
        for engine in engines.values():
            engine.close()
        for path in tmp_path.iterdir():
            path.unlink()
        seed += 1
    assert divided  # people of both parts are often there


def altered(before: list[relations.Row], after: list[relations.Row]) -> int:
    """How many rows went or came."""
    a, b = (Counter(tuple(row.codes.values()) for row in rows) for rows in (before, after))
    return ((a - b) + (b - a)).total()


def test_a_person_alters_no_more_rows_than_the_shape_says_T15() -> None:
    """Somebody leaves: of any relation at most `rows` rows go, whatever tables and joins it is made of (SR1, SR15)."""
    most: Counter[int] = Counter()
    for seed in range(count("persons removed from under derived tables", short=150, long=4_000)):
        rng = counts.generator(f"neighbours {seed}")
        world = relations.world(rng)
        people = world.people()
        if not people:
            continue
        fewer = world.without(rng.choice(people))
        relation = relations.Relations(rng, world.facts).relation(rng.randint(0, 4))
        bound = shape(relation, world.facts).rows
        before, after = (relations.rows_of(relation, world.facts, which.rows) for which in (world, fewer))
        assert altered(before, after) <= bound, f"seed {seed}"
        most[altered(before, after) if bound else 0] += 1
    assert most.total() - most[0] > most.total() // 5  # a person often is in it


def test_a_key_that_is_not_unique_is_noticed_T15() -> None:
    """Control: one row for each left row is promised by a key, and a key that repeats makes more of them."""
    schema = Schema("visits", (("k", Int(0, 9)),))
    facts = Tables(Unit("who", 3), (TableFacts(schema, key="k"),))
    twin = Select(Table("visits"), (("other", Col("k")),))
    joins = [Join(Table("visits"), twin, on, how, person=True) for on in ((("k", "other"),), ()) for how in HOWS]
    once, twice = ([relations.Row({"k": k}, "ann") for k in keys] for keys in ((1, 2, 3), (1, 1, 1)))
    for join, most in zip(joins, (3, 3, 9, 9), strict=True):
        assert shape(join, facts).rows == most
        assert altered(relations.rows_of(join, facts, lambda _: once), []) == most
    assert altered(relations.rows_of(joins[0], facts, lambda _: twice), []) > 3


def test_a_join_that_loses_the_person_is_noticed_T15() -> None:
    """Control: rows of different people joined, and one person alters more rows than any bound of the unit."""

    def lost(seed: int) -> bool:
        rng = counts.generator(f"lost {seed}")
        world = relations.world(rng)
        left, right = (Select(Table(name), ((f"{name}.age", Col("age")),)) for name in ("people", "visits"))
        join = Join(left, right, (("people.age", "visits.age"),), person=True)
        bound = shape(join, world.facts).rows
        whole = relations.rows_of(join, world.facts, world.rows, lose=True)
        return any(
            altered(whole, relations.rows_of(join, world.facts, world.without(person).rows, lose=True)) > bound
            for person in world.people()
        )

    assert any(map(lost, range(200)))
