"""A cell means the same in SQL, in NumPy and in the oracle, whatever it holds (T6, T26, T30)."""

from __future__ import annotations

import itertools
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from sulq.language.domain import Bool, Category, Date, Int, Real, Schema, Text, Timestamp
from sulq.language.privacy import Unit
from sulq.language.rowfn import Each, col, lit
from sulq.sources import cell_reading
from sulq.sources.duckdb import kept_rows
from tests import counts, generate
from tests.counts import count
from tests.sources import oracle
from tests.sources import plain_reading as reading
from tests.sources.cases import ask, duck, memory, parquet, plain_engine, sums

DOMAINS = (
    Int(0, 120), Int(-(2**53), 2**53), Int(7, 7), Real(-1, 1), Real(0, 200_000), Real(-3.5, 10, 0.25),
    Real(-1e30, 1e30), Bool(), Category(("1", "x", "true", "2020-01-01")), Category((0, 1, 2, -7)),
    Category(tuple(range(3))),
    Category(tuple(range(-50, 50))), Category(tuple(f"v{i}" for i in range(99))),
    Date("1969-12-31", "2020-06-30"), Timestamp("1969-12-31T23:59:59", "2020-06-01T12:00:00"), Text(),
)  # fmt: skip


@pytest.mark.parametrize("column", DOMAINS, ids=lambda column: str(column)[:40])
def test_every_cell_is_read_alike_T6_T26(column: object) -> None:
    """SQL and NumPy give the oracle's code for adversarial cells of every type a source may have; none raises."""
    rng = counts.generator(str(column))
    schema = Schema("data", (("c", column),))
    for _ in range(6):
        size = count("cells read alike, of one column", short=300, long=3_000)
        made = generate._made(rng, column, size, text=rng.random() < 0.3)
        want = [oracle.read(column, made.kind, cell) for cell in made.cells]
        table = pa.table({"c": made.arrow()})
        engines = [plain_engine(table, schema=schema), memory(table, schema=schema), duck(table, schema=schema)]
        for engine in engines:
            engine.ready()
        values, missing = engines[0]._rows["data"]._columns["c"]
        got = [None if missing is not None and missing[i] else values[i] for i in range(size)]
        assert got == want, made.kind
        for engine in engines[1:]:
            assert [code for (code,) in engine._connection.root.execute("SELECT c0 FROM kept").fetchall()] == want
        for engine in engines:
            engine.close()


def test_a_person_is_read_alike_T16() -> None:
    """Both engines give the oracle's hash of a person, for spellings in any type and form of Unicode."""
    rng = counts.generator(16)
    words = [
        *generate.PERSON_TEXTS,
        *("".join(rng.choice("aÀ\u0301 각ᆨ\u11a7K1.0-") for _ in range(4)) for _ in range(2_000)),
    ]
    table = pa.table({"who": words, "c": [1] * len(words)})
    schema = Schema("data", (("c", Int(0, 1)),))
    for fold, opened in itertools.product((None, "case", "spelling"), (plain_engine, memory, duck)):
        want = sorted(oracle.hashed(who) for who in (oracle.canonical(pa.string(), w, fold) for w in words) if who)
        engine = opened(table, Unit("who", 10**6, fold=fold), schema)
        engine.ready()
        if hasattr(engine, "_connection"):
            got = [h for (h,) in engine._connection.root.execute("SELECT h FROM kept").fetchall()]
        else:
            got = engine._rows["data"].person().tolist()
        assert sorted(got) == want
        engine.close()


def test_kinds_that_are_not_read_are_named() -> None:
    """A list, a blob or a time of day is refused with the column's name."""
    with pytest.raises(Exception, match=r"'c'.*BLOB") as refused:
        cell_reading.plain("BLOB", "s0", "c")
    assert refused.value.code == "bad-declaration"


def test_a_control_of_rounding_differs() -> None:
    """Control: rounding half to even, as a cast does, is not the rounding of the rule."""
    values, missing = reading.codes(Int(0, 9), "number", pa.array([0.5, 1.5, 2.5]).to_numpy(), None)
    assert values.tolist() == [1, 2, 3] != [round(x) for x in (0.5, 1.5, 2.5)]
    assert not missing.any()


def test_codes_of_consecutive_numbers_in_a_narrow_column_T30(tmp_path: Path) -> None:
    """Read for one question, codes are counted from the lowest number, farther than the column's own type reaches."""
    schema = Schema.of("data", {"code": Category(tuple(range(-100, 100)))})
    path = parquet(tmp_path, pa.table({"code": pa.array([-100, 0, 50, 99, None, 127], pa.int8())}))
    engine = duck(path, schema=schema, prepared=False)
    tallies = [ask(lit(1), by=(col("code"),), schema=schema), ask(lit(1), where=col("code") == 99, schema=schema)]
    assert [sum(map(sum, found)) for found in sums(engine, *tallies)] == [4, 1]


def test_a_number_is_clamped_and_a_category_has_its_declared_place_T6() -> None:
    """By the expressions themselves, before the kernel checks the rows that they give."""
    number = cell_reading.code(Int(0, 120), "number", "x", 0)
    place = cell_reading.code(Category(["b", "a"]), "text", "x", 0)
    with duckdb.connect() as db:
        assert db.execute(f"SELECT {number} FROM (VALUES (-5e0), (7e0), (1e9)) AS t(x)").fetchall() == [
            (0,),
            (7,),
            (120,),
        ]
        found = db.execute(f"SELECT {place} FROM (VALUES ('a'), ('b'), ('c')) AS t(x)", {"categories0": ["b", "a"]})
        assert found.fetchall() == [(1,), (0,), (None,)]


LONG = cell_reading.MAX_LISTED_CATEGORIES + 6


@pytest.mark.parametrize("kind", ["texts", "numbers"])
def test_long_lists_of_categories_are_looked_up_as_short_ones_are(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every value its own code, what is not listed missing, in every kind of cell, however many rows are equal.

    A row whose cell is not listed counts all the same. Control: a list in which two codes changed places is noticed.
    """
    whole = kind == "numbers"
    values = tuple(range(3, 3 * LONG, 3)) if whole else tuple(f"v{i}" for i in range(LONG))
    cells = [*values, *values[:5], 4, -3, None] if whole else [*values, *values[:5], "v", "V1", " v1", "", None]
    schema = Schema.of("data", {"c": Category(values), "n": Int(0, 9)})
    kinds = (pa.int64(), pa.float64(), pa.string()) if whole else (pa.string(),)
    other = ask(lit(1), col("n"), where=col("c").is_missing() | (col("n") >= 0), schema=schema)
    tally = ask(lit(1), col("n"), by=(col("c"),), schema=schema)
    for stored in kinds:
        column = pa.array([None if cell is None else str(cell) for cell in cells]).cast(stored)
        data = pa.table({"c": column, "n": pa.array([i % 7 for i in range(len(cells))])})
        want = sums(plain_engine(data, None, schema), tally, other)
        assert want[1] == [[len(cells), sum(i % 7 for i in range(len(cells)))]]
        assert sums(duck(data, None, schema), tally, other) == want
        assert sums(duck(data, None, schema, prepared=False), tally, other) == want
    real = kept_rows.lists
    swapped = lambda item: [(name, [found[1], found[0], *found[2:]]) for name, found in real(item)]  # noqa: E731
    monkeypatch.setattr(kept_rows, "lists", swapped)
    assert sums(duck(data, None, schema), tally, other) != want


def test_usual_texts_are_read_as_the_whole_grammar_says() -> None:
    """Days and times to the second are read by a shorter way, to the same moment or none."""
    days = [
        "2024-02-29",
        "2023-02-29",
        "0000-01-01",
        "9999-12-31",
        "2024-13-01",
        "2024-1-01",
        " 2024-01-01",
        "2024-01-011",
    ]
    times = [
        "T00:00:00",
        " 23:59:59",
        "T24:00:00",
        "T23:60:00",
        "T12:30",
        "T12:30:15Z",
        " 12:30:15.5",
        "T01:02:03+02:00",
    ]
    texts = [*days, *(day + time for day in days for time in times), "", "-", "2024-01-01T"]
    schema = Schema.of("data", {"t": Timestamp("1700-01-01", "2200-12-31"), "i": Int(0, len(texts))})
    data = pa.table({"t": texts, "i": range(len(texts))})
    at = ("2023-12-31", "2024-02-28T23:59:59", "2024-02-29T00:00:00", "2024-02-29T12:30:15", "2024-02-29T23:59:59")
    tallies = [ask(lit(1), where=col("t") <= each, by=(Each(col("i")),), schema=schema) for each in at]
    assert sums(duck(data, None, schema), *tallies) == sums(plain_engine(data, None, schema), *tallies)
