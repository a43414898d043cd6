"""No code or integer at the end of its type can make an expression fail: rows decide nothing but sums (T30)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import sulq
from sulq.language.domain import Category, Int, Schema, Text
from sulq.language.privacy import Unit
from sulq.language.relation import Relation, Select, Table
from sulq.language.rowfn import Bins, Choice, Col, Concat, Each, Length, Like, Lit, OrMissing, Relabel, RowFn, Value
from sulq.language.shape import column_of
from sulq.language.tally import Tally
from tests import loaded, random_tallies
from tests.counts import count
from tests.sources.cases import KEY, open_engine, parquet

SIZES = (127, 128, 129, 255, 256, 257)
WAYS = {"in memory": None, "unprepared": False, "in a file": True}
# Around the largest type's end each size costs ten seconds; a file's columns are stored as those in memory.
ENDS = [(32_768, way) for way in WAYS] + [
    (size, way) for size in (32_769, 32_767) for way in ("in memory", "unprepared")
]
CASES = [
    *((size, way) for size in SIZES for way in WAYS),
    *ENDS[: count("sizes beside the end of the largest narrow type", short=1, long=7)],
]


def asked(size: int) -> list[tuple[Relation, RowFn]]:
    """Every way in which a code is counted with: as another label, a number, a bin, a column of a derived table."""
    code = Col("code")
    labels = tuple(range(0, 2 * size, 2))
    chosen = Choice(((code == labels[-1], 1),), ("no", "yes"), 0)
    return [
        (Table(), Relabel(code, tuple(x // 4 for x in labels))),
        (Table(), OrMissing(Relabel(code, (*labels[1:], None)))),
        (Table(), Bins(Value(code), (0, 5, 2 * size))),
        (Table(), Each(Col("small"))),
        (Table(), Bins(Col("small"), (-128, 0, 100, 127))),
        (Table(), chosen),
        (Select(Table(), (("again", code),)), Relabel(Col("again"), tuple(x // 4 for x in labels))),
        (Select(Table(), (("again", chosen),)), Relabel(Col("again"), ("a", "b"))),
    ]


@pytest.mark.parametrize(("size", "way"), CASES)
def test_the_last_code_of_a_narrow_type_is_like_any_other_T30(size: int, way: str, tmp_path: Path) -> None:
    """DuckDB adds small integers in their own type and raises where that is too narrow; what we write does not."""
    prepared = WAYS[way]
    labels = tuple(range(0, 2 * size, 2))
    schema = Schema.of("data", {"code": Category(labels), "small": Int(-128, 127)})
    kinds = {"code": pa.int32(), "small": pa.int8()}
    rows = {"code": [0, labels[-2], labels[-1], None], "small": [-128, 0, 127, None]}
    data = pa.table({name: pa.array(cells, kinds[name]) for name, cells in rows.items()})
    path = parquet(tmp_path, data)
    copy = tmp_path / "p.prepared" if prepared else prepared
    engines = [
        open_engine(path, schema=schema, unit=Unit(), key=KEY, prepared=copy),
        open_engine(path, schema=schema, unit=Unit(), key=KEY, engine="memory"),
    ]
    for over, key in asked(size):
        derived = () if isinstance(over, Table) else over.columns
        own = Schema("", tuple((name, column_of(fn, schema)) for name, fn in derived)) if derived else schema
        made = random_tallies.question((Lit(1),), own, by=(key,))
        tally = Tally(over, made.blocks, made.where, made.by, made.cells)
        ours, reference = (engine.sums(tally).open().tolist() for engine in engines)
        assert ours == reference
        assert sum(map(sum, ours)) >= 2
    for engine in engines:
        engine.close()


@pytest.mark.parametrize("engine", ["duckdb", "memory"])
def test_texts_put_together_stay_short_T30_T74(engine: str) -> None:
    """Put together again and again a text is cut, so none fills the memory and tells by failing that it is there."""
    schema = Schema.of("data", {"note": Text()})
    data = pa.table({"note": ["ab", "\u00e9" * 9_000, None]})
    opened = open_engine(data, schema=schema, unit=Unit(), key=KEY, engine=engine)
    over: Relation = Table()
    for _ in range(6):
        over = Select(over, (("note", Concat((Col("note"),) * 100)),))
    made = random_tallies.question((Length(Col("note")),), Schema("", (("note", Text()),)))
    total = opened.sums(Tally(over, made.blocks, None, (), 1)).open().sum()
    opened.close()
    assert total * made.blocks[0].step == 20_000


@pytest.mark.parametrize("sign", ["a", "\u00e9", "\U0001f600"])
def test_a_stored_text_is_its_first_ten_thousand_characters_T30_T74(sign: str) -> None:
    """Alike on every engine, prepared or not: of two that differ later only, neither can be told from the other."""
    schema = Schema.of("data", {"note": Text()})
    edge = sign * 9_999
    cells = [edge + "b", edge + "bc", edge + "b" + sign * 200_000, edge, "", None, 7 * sign]
    data = pa.table({"note": cells})
    asked = [
        random_tallies.question((Lit(1),), schema, where=Col("note") == edge + "b"),
        random_tallies.question((Lit(1),), schema, where=Col("note") == edge),
        random_tallies.question((Length(Col("note")),), schema),
        random_tallies.question((Lit(1),), schema, where=Like(Col("note"), "%c%")),
    ]
    found = []
    for kind, prepared in (("duckdb", None), ("duckdb", False), ("memory", None)):
        opened = open_engine(data, schema=schema, unit=Unit(), key=KEY, engine=kind, prepared=prepared)
        found.append([int(opened.sums(tally).open().sum() * tally.blocks[0].step) for tally in asked])
        opened.close()
    assert found == [[3, 1, 3 * 10_000 + 9_999 + 7, 0]] * 3


def test_texts_are_cut_alike_on_every_engine_T100() -> None:
    """At the declared number of characters, whatever their bytes, with a prepared copy and without one.

    A cell that is a number is a text of its digits, and is cut like any other. Control: what is cut off is not found.
    """
    notes = ["abcdefgh", "\U0001f600\u00e9\u4e2dxyz", "abcX", "", None, "ABC", "abcd"]
    data = pa.table({"pid": [str(i) for i in range(7)], "note": notes, "code": [1234567, 12, 123, 1, None, 1234, 9]})
    columns = {"note": sulq.Text(longest=4), "code": sulq.Text(longest=3)}
    conditions = {
        "note = 'abcd'": 2,
        "note LIKE '%e%'": 0,
        "note = '\U0001f600\u00e9\u4e2dx'": 1,
        "note LIKE '___'": 1,
        "code = '123'": 3,
        "code LIKE '1234%'": 0,
        "LENGTH(note) <= 4": 6,
    }
    sources: list[tuple[object, dict[str, object]]] = [
        (data, {"engine": "memory"}),
        (data, {"engine": "duckdb"}),
        (data, {"engine": "duckdb", "prepared": False}),
    ]
    if loaded.available():
        sources.append((loaded.loaded(data), {}))
    for source, options in sources:
        with sulq.connect(
            source,
            table="t",
            columns=columns,
            unit=sulq.Unit("pid"),
            budget=sulq.Epsilon(1000),
            synthetic=True,
            **options,
        ) as db:
            exact = sulq.testing.exact(db)
            assert "Text(longest=4)" in str(db.facts)
            for condition, number in conditions.items():
                found = exact.sql(f"SELECT COUNT(*) AS n FROM t WHERE {condition}")
                assert found.to_pandas()["n"].tolist() == [number], (options, condition)
