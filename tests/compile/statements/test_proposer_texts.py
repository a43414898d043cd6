"""What is proposed follows from public facts alone, is plain values, and assembles to the exact sums."""

from __future__ import annotations

import dataclasses
import operator
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sulq.compile.statements.aggregate import Query
from sulq.errors import SetupError
from sulq.kernel import layout, programs
from sulq.kernel.layout import joined, summed
from sulq.kernel.request import Combined, Key, Looked, Part, Proposal, Scan, Statement
from sulq.language import shape as shape_module
from sulq.language.domain import Category, Int, Real, Schema
from sulq.language.facts import TableFacts, Tables
from sulq.language.privacy import Unit
from sulq.language.relation import Join, Select, Table
from sulq.language.rowfn import Bernstein, Col, bins, col, each, lit, lookup, outer
from sulq.language.rowfn.piece import NotInSql
from sulq.language.shape import MAX_STORED_ROWS, Shape, shape
from sulq.language.tally import Tally
from sulq.sources.duckdb import engine as engine_module
from sulq.sources.duckdb import prepare
from sulq.sources.duckdb.engine import DuckEngine
from sulq.sources.duckdb.runner import CursorRunner
from tests import counts, relations
from tests.counts import count
from tests.sources.cases import ask, duck, plain_engine

BOUND = re.compile(r"\$text\d+\b")
SCHEMA = Schema.of(
    "data", {"age": Int(0, 120), "pay": Real(0, 1000), "city": Category(("x", "y")), "wide": Int(0, 2**44)}
)
UNIT = Unit("who", 3)


def rows(size: int, seed: int = 0) -> pa.Table:
    """Rows of a third as many persons."""
    rng = np.random.default_rng(seed)
    return pa.table({
        "who": [f"p{i // 3}" for i in range(size)],
        "age": rng.integers(-5, 130, size),
        "pay": rng.uniform(-10, 1100, size),
        "city": rng.choice(["x", "y", "z"], size).tolist(),
        "wide": rng.integers(0, 2**45, size),
    })  # fmt: skip


def asked() -> list[Tally]:
    """Tallies of every way in which a block is summed, over one relation."""
    city, ages = col("city"), bins("age", [0, 18, 65, 100])
    return [
        ask(lit(1), col("pay"), col("pay") * 3 + col("age"), where=col("age") > 30, schema=SCHEMA),
        ask(lit(1), col("wide"), col("wide") / 3, by=(city,), schema=SCHEMA),
        ask(Bernstein(Col("pay"), 2), Bernstein(Col("pay")), col("pay") > 500, by=(ages, city), schema=SCHEMA),
        ask(lookup([city, each("age")], [[i, -i] for i in range(242)]), lookup([city], [[1], [2]]), schema=SCHEMA),
        ask(lookup([city, each("age")], [[i, -i] for i in range(242)]), lit(1), where=col("pay") > 5, schema=SCHEMA),
        ask(outer(["age", "pay"]), lit(1), where=col("pay") > 5, by=(each("age"),), schema=SCHEMA),
    ]


def proposed(engine: DuckEngine, tallies: list[Tally]) -> list[Proposal]:
    """What is proposed for each tally, and for all at once."""
    return [*(engine.propose(tally) for tally in tallies), engine.propose(*tallies)]


@pytest.mark.parametrize("unit", [Unit(), UNIT, Unit(neighbors="replace_one")])
@pytest.mark.parametrize("way", ["memory", "file", "unprepared"])
def test_the_rows_choose_no_word(unit: Unit, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of 3 and 3,000 rows, and one row apart, are asked the same, byte by byte, before any is opened.

    Control: were the number of rows what totals are bounded by, an expression would be summed another way.
    """

    def found(size: int) -> list[Proposal]:
        data: object = rows(size)
        if way != "memory":
            path = tmp_path / f"{size}.parquet"
            if not path.exists():
                pq.write_table(data, path)
            data = path
        prepared = {"memory": None, "file": tmp_path / f"{size}.prepared", "unprepared": False}[way]
        engine = duck(data, unit, SCHEMA, prepared=prepared)
        made = proposed(engine, tallies)
        assert engine._connection is None
        engine.ready()
        assert proposed(engine, tallies) == made  # nor does a row that was read
        engine.close()
        return made

    # Doubles whose sum over 3,000 rows is within 2^53, and past that over as many rows as there can be.
    long = ask(col("wide") / 2**14, schema=SCHEMA)
    fine = dataclasses.replace(long.blocks[0], step=Fraction(1), high=(2**30,))
    tallies = [*asked(), dataclasses.replace(long, blocks=(fine,))]
    few = found(3)
    assert found(3_000) == few == found(3_001)
    for size in (3, 3_000):
        monkeypatch.setattr(engine_module, "shape", lambda over, facts, most=size: _exact(over, facts, most))
        assert (found(size) == few) is False
    monkeypatch.undo()


def _exact(over: object, facts: object, most: int) -> Shape:
    return dataclasses.replace(shape(over, facts), most=most)


def test_neighbours_are_asked_the_same() -> None:
    """Over random relations: whoever is taken away, however many rows there are, the proposal is the same."""
    done = 0
    for seed in range(count("worlds with and without a person", short=25, long=1_000)):
        rng = counts.generator(f"proposed {seed}")
        world = relations.world(rng)
        draw = relations.Relations(rng, world.facts)
        people = world.people()
        without = world.without(rng.choice(people)) if people else world
        for prepared in (None, False):
            engines = [DuckEngine(each.dataset(), prepared=prepared) for each in (world, without)]
            for _ in range(4):
                tally = draw.tally(draw.relation(rng.randint(0, 3)))
                try:
                    found = [engine.propose(tally) for engine in engines]
                except NotInSql:
                    continue
                assert found[0] == found[1], f"seed {seed}"
                done += 1
    assert done > 50


def test_no_reading_is_written_into_a_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With and without a copy the kept rows are a name; for as many rows of persons the whole text is the same."""
    monkeypatch.setattr(engine_module, "MAX_ROWS_READ", MAX_STORED_ROWS)
    pq.write_table(rows(30), tmp_path / "data.parquet")
    for unit in (Unit(), UNIT):
        stored, straight = (duck(tmp_path / "data.parquet", unit, SCHEMA, prepared=way) for way in (None, False))
        joined = Join(Table(), Select(Table(), (("again", Col("age")),)), (), person=True)
        tallies = asked() + [dataclasses.replace(asked()[0], over=joined)] * (unit is UNIT)
        for tally in tallies:
            found = [engine.propose(tally) for engine in (stored, straight)]
            for scan in scans(found[1]):
                assert not any(word in scan.sql for word in ("source", "parquet", "'", "regexp", "sha256", "QUALIFY"))
            if unit is UNIT:
                assert found[0] == found[1]
                assert not any(word in scan.sql for scan in scans(found[0]) for word in ("source", "'", "QUALIFY"))


def scans(found: Proposal) -> list[Scan]:
    """Every statement of a proposal."""
    folded = [] if found.fold is None else [Scan(found.fold.sql, found.fold.texts)]
    return [*(statement.scan for statement in found.statements), *folded]


@pytest.mark.parametrize("prepared", [None, False])
def test_every_bound_holds_for_as_many_rows_as_there_can_be(prepared: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """No aggregate of rows at the ends of their columns is past its part of the bound; none past what sums it exactly.

    A sum of doubles is exact up to 2^53; what is cast to 64 bits fits them. Control: at half the bound some are past.
    """
    extremes = [{"age": 120, "pay": 1000.0, "city": "y", "wide": 2**44}, {"age": 0, "pay": 0.0, "city": "x", "wide": 0}]
    engine = duck(pa.Table.from_pylist(extremes), Unit(), SCHEMA, prepared=prepared)
    most, reached = (MAX_STORED_ROWS if prepared is None else engine_module.MAX_ROWS_READ), []
    written: dict[str, list[int]] = {}  # of each text the bounds that it was written with
    real = Query.sql

    def sql(query: Query, *more: object) -> str:
        return written.setdefault(real(query, *more), query.bounds) and real(query, *more)

    monkeypatch.setattr(Query, "sql", sql)
    for tally in asked():
        made = engine.propose(tally)
        engine.ready()
        asking = CursorRunner(engine._cursor(engine._connection), *engine._over(Table()))
        for statement in made.statements:
            sql = BOUND.sub("$text", statement.scan.sql)  # texts are numbered anew
            bounds = next(each for text, each in written.items() if sql.endswith(BOUND.sub("$text", text)))
            columns = asking.columns([statement])[0][statement.first :]
            if prepared is None:  # what is certified is no more
                totals = layout.of_proposal(made, engine.kernel_facts).totals[made.statements.index(statement)]
                assert all(map(operator.le, totals, bounds))
            for i, ((values, _), bound) in enumerate(zip(columns, bounds, strict=True)):
                assert max(abs(int(value)) for value in values) * most <= bound * 2
                reached += [max(abs(int(value)) for value in values) * most > bound / 2]
                sql = _aggregate(statement.scan.sql, i)
                assert bound < 2**63 or not sql.startswith("TRY_CAST(sum")
                assert bound <= 2**53 or "sum(CASE" not in sql
    assert any(reached)
    engine.close()


def _aggregate(sql: str, place: int) -> str:
    """The text of one aggregate."""
    end = sql.index(f" AS s{place}")
    start = sql.rindex(f" AS {'s' if place else 'k'}", 0, end) if place or " AS k" in sql[:end] else len("SELECT")
    return sql[start:end].split(",", 1)[-1].strip() if start != len("SELECT") else sql[start:end].strip()


def test_as_many_rows_as_a_relation_can_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over random relations no more rows come about than the bound says, from what the largest table holds."""
    for seed in range(count("relations whose rows are counted", short=150, long=5_000)):
        rng = counts.generator(f"most {seed}")
        world = relations.world(rng)
        relation = relations.Relations(rng, world.facts).relation(rng.randint(1, 4))
        largest = max(len(world.rows(facts.schema.table)) for _, facts in world.tables if not facts.public)
        monkeypatch.setattr(shape_module, "MAX_STORED_ROWS", largest)
        found = relations.rows_of(relation, world.facts, world.rows)
        assert len(found) <= shape(relation, world.facts).most, f"seed {seed}"


def test_a_row_may_meet_more_than_a_persons_rows_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person's one order with three items: 3 pairs of 1 left row, though no person has more pairs than left rows.

    Control: by the left rows times pairs a left row, as persons have them at most, there would be one.
    """
    orders = Schema.of("orders", {"id": Int(0, 9)})
    facts = Tables(UNIT, (TableFacts(orders, key="id"), TableFacts(Schema.of("items", {"of": Int(0, 9)}))))
    join = Join(Table("orders"), Table("items"), (("id", "of"),), person=True)
    monkeypatch.setattr(shape_module, "MAX_STORED_ROWS", 3)
    found = shape(join, facts)
    rows = {"orders": [relations.Row({"id": 1}, "ann")], "items": [relations.Row({"of": 1}, "ann")] * 3}
    assert len(relations.rows_of(join, facts, rows.__getitem__)) == found.most == 3
    assert len(rows["orders"]) * -(-found.rows // shape(Table("orders"), facts).rows) == 1


def plain(value: object) -> Iterator[object]:
    """What a value is made of, down to what is not made of anything."""
    if isinstance(value, dict):
        for item in value.values():
            yield from plain(item)
    elif isinstance(value, tuple):
        for item in value:
            yield from plain(item)
    else:
        yield value


def rebuilt(values: dict[str, object]) -> Proposal:
    """A proposal from plain values."""

    def part(given: dict[str, object]) -> Part:
        keys = tuple(Key(**key) for key in given["keys"])
        blocks = tuple(Combined(**each) for each in given["combined"])
        return Part(keys, given["own"], given["mark"], blocks, tuple(Looked(**each) for each in given["looked"]))

    statements = tuple(
        Statement(Scan(**each["scan"]), each["keys"], tuple(map(part, each["parts"]))) for each in values["statements"]
    )
    fold = values["fold"] and eval(values["fold"], dict(vars(programs)))
    return Proposal(values["tallies"], statements, fold)


def test_a_proposal_is_plain_values_and_assembles_the_same() -> None:
    """Numbers, texts and bytes: taken apart and put together again it is the same, and gives the same sums."""
    data = rows(300)
    engine, reference = duck(data, UNIT, SCHEMA), plain_engine(data, UNIT, SCHEMA)
    engine.ready()
    tallies = asked()
    made = engine.propose(*tallies)
    values = dataclasses.asdict(made) | {"fold": repr(made.fold)}
    assert {type(item) for item in plain(values)} <= {int, str, bytes, bool, type(None)}
    assert rebuilt(values) == made
    asking = CursorRunner(engine._cursor(engine._connection), *engine._over(Table()))
    found = [sums.tolist() for sums in joined(made, summed(rebuilt(values), asking))]
    assert found == [reference.sums(tally).open().tolist() for tally in tallies]
    kinds = {type(block) for each in made.statements for p in each.parts for block in (*p.combined, *p.looked)}
    assert kinds == {Combined, Looked}
    assert made.fold is not None
    engine.close()


@pytest.mark.parametrize("prepared", [None, False, "file"])
def test_more_rows_than_statements_are_written_for_stop_the_owner_SR17(
    prepared: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looked at once, when rows are kept: at the bound they are fine, past it the owner is told."""
    way = tmp_path / "data.prepared" if prepared == "file" else prepared
    pq.write_table(rows(9), tmp_path / "data.parquet")
    for most, fine in ((8, False), (9, True)):
        monkeypatch.setattr(prepare, "MAX_STORED_ROWS", most)
        monkeypatch.setattr(engine_module, "MAX_ROWS_READ", most)
        engine = duck(tmp_path / "data.parquet", Unit(), SCHEMA, prepared=way)
        if fine:
            engine.ready()
        else:
            with pytest.raises(SetupError, match="more than") as refused:
                engine.ready()
            assert refused.value.code == "unreadable-data"
        engine.close()
