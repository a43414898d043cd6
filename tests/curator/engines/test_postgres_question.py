"""Which questions are summed in the database, and that what is not comes out the same over pages."""

from __future__ import annotations

import logging

import pyarrow as pa
import pytest

from sulq.curator.engines.postgres_emit import PostgresEmitter
from sulq.curator.engines.postgres_question import PostgresQuestion
from sulq.curator.engines.proposal import Scan
from sulq.terms.domain import Bool, Category, Date, Int, Real, Schema, Text
from sulq.terms.engine import Key, Tally, sums_of
from sulq.terms.privacy import Unit
from sulq.terms.rowfn import (
    Bernstein,
    Bins,
    Case,
    DatePart,
    Each,
    Fill,
    Lookup,
    Maths,
    Power,
    bucket,
    col,
    each,
    lit,
    outer,
    vector,
)
from tests.curator.engines.cases import ask, memory
from tests.curator.engines.postgres_cases import at, engine, filled

SCHEMA = Schema.of(
    "data",
    {
        "n": Int(0, 120),
        "r": Real(-5, 1000),
        "w": Int(-(2**53), 2**53),
        "c": Category(["x", "y", "z"]),
        "b": Bool(),
        "d": Date("2000-01-01", "2030-12-31"),
        "t": Text(),
    },
)


@pytest.mark.parametrize(("keys", "selects"), [(31, 1), (32, 2), (64, 3)])
def test_as_many_keys_as_postgresql_takes_are_summed_at_once(
    keys: int, selects: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its GROUPING tells of 31; control: at one more a statement of them all fails, and each is asked alone."""
    tallies = [ask(lit(1), by=(each(col("n") > i),), schema=SCHEMA) for i in range(keys)]
    opened, genuine = engine(at(filled(data())), schema=SCHEMA), PostgresQuestion.few
    statements: list[str] = []

    def few(self: PostgresQuestion, scan: Scan) -> list[tuple[object, ...]]:
        statements.append(scan.sql)
        return genuine(self, scan)

    monkeypatch.setattr(PostgresQuestion, "few", few)
    wanted = [found.open().tolist() for found in sums_of(memory(data(), schema=SCHEMA), tallies)]
    with caplog.at_level(logging.DEBUG):
        assert [found.open().tolist() for found in sums_of(opened, tallies)] == wanted
        assert (len(statements), "asked again" in caplog.text) == (selects, False)
        monkeypatch.setattr(PostgresEmitter, "grouped_keys", 32)
        assert [found.open().tolist() for found in sums_of(opened, tallies)] == wanted
    assert ("asked again" in caplog.text) is (keys > 31)


def data() -> pa.Table:
    """Rows with every kind of column, some missing."""
    size = 200
    return pa.table(
        {
            "who": [f"p{i % 90}" for i in range(size)],
            "n": [None if i % 11 == 0 else i % 130 for i in range(size)],
            "r": [i * 7.3 - 20 for i in range(size)],
            "w": [(2**53, -(2**53), i)[i % 3] for i in range(size)],
            "c": ["xyz?"[i % 4] for i in range(size)],
            "b": [i % 3 == 0 for i in range(size)],
            "d": pa.array([11_000 + 17 * i for i in range(size)], pa.int32()).cast(pa.date32()),
            "t": ["ab" * (i % 4) for i in range(size)],
        }
    )


def tally(*values: object, **more: object) -> Tally:
    return ask(*values, schema=SCHEMA, **more)


IN_SQL = {
    "count": tally(lit(1)),
    "sums": tally(col("n"), col("r"), col("w")),
    "mean": tally(Bernstein(col("n"), 1), Bernstein(col("r"), 1)),
    "variance": tally(Bernstein(col("n"), 2), Bernstein(col("r"), 2), Bernstein(col("w"), 2)),
    "condition": tally(lit(1), col("r") > 3, where=(col("n") >= 18) & ~(col("c") == "x") | col("b")),
    "keys": tally(lit(1), col("r"), by=(col("c"), Each(col("b")))),
    "whole keys": tally(lit(1), by=(Each(col("n")),)),
    "bins": tally(lit(1), by=(Bins(col("r"), tuple(range(-5, 1000, 10))),)),
    "uneven bins": tally(lit(1), by=(Bins(col("n") * 0.5, (0.0, 1.5, 20.25, 60.0)),)),
    "arithmetic": tally((col("n") * col("r") - 3) / 7, (col("n") / col("r")).clip(-9, 9), Power(col("r"), 2)),
    "case": tally(Case(((col("n") > 40, col("r")),), lit(0)), Fill(col("n"), 5), col("n").isin([1, 2, 3])),
    "text": tally(lit(1), where=(col("t") == "ab") | col("t").isin(["abab", "'"])),
    "dates": tally(lit(1), by=(Each(DatePart("month", col("d"))),), where=col("d") >= "2001-05-06"),
    "persons": tally(lit(1), by=(bucket(4),)),
    "table": tally(Lookup((col("c"), Each(col("b"))), tuple((float(i), 1.0) for i in range(6)))),
}
OVER_PAGES = {
    "vector": tally(vector([col("n"), col("r")]), where=col("c") == "x"),
    "outer": tally(outer(vector([col("n"), col("r"), col("w")]))),
    "logarithm": tally(lit(1), where=Maths("ln", col("r") + 6) > 1),
}


@pytest.fixture(scope="module")
def engines():
    """The table in PostgreSQL and in memory."""
    found = engine(at(filled(data())), Unit("who", 2), SCHEMA, batch=64), memory(data(), Unit("who", 2), SCHEMA)
    yield found
    for item in found:
        item.close()


@pytest.mark.parametrize("name", [*IN_SQL, *OVER_PAGES])
def test_what_is_summed_in_the_database(engines, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The usual questions read no page; whichever way, the integers are those of memory."""
    folded: list[object] = []
    genuine = PostgresQuestion.fold

    def fold(self, fetch, tallies):
        folded.extend(tallies)
        return genuine(self, fetch, tallies)

    monkeypatch.setattr(PostgresQuestion, "fold", fold)
    asked = (IN_SQL | OVER_PAGES)[name]
    found, wanted = (item.sums(asked).open().tolist() for item in engines)
    assert found == wanted
    assert bool(folded) == (name in OVER_PAGES)


def test_tallies_of_the_same_rows_take_one_pass(engines, monkeypatch: pytest.MonkeyPatch) -> None:
    """What SQL does not sum of any of them is folded together; each is what it is alone."""
    passes: list[int] = []
    genuine = PostgresQuestion.fold

    def fold(self, fetch, tallies):
        passes.append(len(tallies))
        return genuine(self, fetch, tallies)

    monkeypatch.setattr(PostgresQuestion, "fold", fold)
    asked = [*IN_SQL.values(), *OVER_PAGES.values()]
    together = [found.open().tolist() for found in sums_of(engines[0], asked)]
    assert together == [engines[1].sums(item).open().tolist() for item in asked]
    assert passes == [len(OVER_PAGES)]


@pytest.mark.parametrize(
    "key", [col("t"), col("n"), col("c"), col("b"), col("d"), col("n") * 0.5, Maths("ln", col("r") + 6)]
)
def test_groups_that_occur(engines, key) -> None:
    """Keys of every kind, a missing one among them; their sums and people, in SQL or by hand."""
    made = tally(lit(1), col("n"))
    asked = Tally(made.over, made.blocks, None, (Key(key, ()),), 1)
    found, wanted = (item.groups(asked).open() for item in engines)
    assert found.keys == wanted.keys
    assert found.sums.tolist() == wanted.sums.tolist()
    assert found.persons.tolist() == wanted.persons.tolist()
