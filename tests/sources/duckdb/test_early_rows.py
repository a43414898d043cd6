"""Questions answered from the source before rows are kept: the same sums, certified; else they wait for the copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sulq.errors import SetupError
from sulq.kernel import keep
from sulq.kernel.facts import ANY_CELL, Column, Facts, Refused, Table
from sulq.kernel.layout import groups_of, joined, of_proposal, summed
from sulq.kernel.relations import Summand, certify
from sulq.kernel.request import Proposed
from sulq.kernel.values import reach
from sulq.language.domain import Bool, Category, Date, Int, Real, Schema, Text
from sulq.language.facts import TableFacts
from sulq.language.privacy import Unit
from sulq.language.relation import Table as Relation
from sulq.language.rowfn import Bins, Each, col, lit
from sulq.language.tally import Key, Tally
from sulq.sources import cell_reading
from sulq.sources.duckdb import early_rows
from sulq.sources.duckdb.early_rows import EarlyPlace
from sulq.sources.duckdb.engine import DuckEngine
from sulq.sources.origin import Origin
from sulq.sources.tables import Dataset, Given
from tests import generate, random_tallies
from tests.counts import count, generator
from tests.sources import cases
from tests.sources.cases import ASKED, KEY, ask, duck, parquet, plain_engine, table

UNITS = (Unit(), Unit(neighbors="replace_one"))
SCHEMA = Schema.of(
    "data",
    {
        "n": Int(-5, 99),
        "x": Real(-1.5, 1000),
        "f": Real(0, 9),
        "b": Bool(),
        "c": Category(("a", "b", "é")),
        "k": Category((1, 2, 3)),
        "d": Date("1990-01-01", "2020-12-31"),
        "t": Text(longest=3),
        "m": Int(0, 9, missing=False),
        "r": Real(0, 2**40),
    },
)
NAN, INF = float("nan"), float("inf")
CELLS = {
    "n": pa.array([None, -(2**63), 2**63 - 1, -6, -5, 98, 99, 100, 0, 0], pa.int64()),
    "x": pa.array([NAN, INF, -INF, None, -1.5, 5e-324, -0.0, 0.03125, 1e308, 1000.0000000001]),
    "f": pa.array([NAN, INF, -INF, None, 0.1, 9, 3.4e38, -0.0, 1e-45, 8.96875], pa.float32()),
    "b": pa.array([True, False, None, True, True, False, False, None, True, True]),
    "c": pa.array(["a", "b", None, "", "é", "é", "A", "a ", "a", "zz"]),
    "k": pa.array([1, 2, 3, 4, None, -(2**31), 2**31 - 1, 1, 1, 3], pa.int32()),
    "d": pa.array([None, 0, 2**31 - 1, -(2**31), 7304, 7305, 18627, 18628, 1, -1], pa.int32()).cast(pa.date32()),
    "t": pa.array(["abcd", "", None, "éèê", "a\nb", "b", "é", "abc", "x", "'\""]),
    "m": pa.array([None, 5, 9, 10, -1, 0, None, 1, 2, 3], pa.int16()),
    "r": pa.array([0.5, 1.5, 2.5, 2.0**52 + 1, 2.0**39, 2.0**40, NAN, None, 1e22, 0.49999999999999994]),
}
DATA = pa.table(CELLS)
TALLIES = (
    ask(schema=SCHEMA),
    ask(lit(1), *(col(name) for name in "nxfmr"), schema=SCHEMA),
    ask(lit(1), col("x"), by=(col("c"),), schema=SCHEMA),
    ask(lit(1), col("n"), by=(col("k"), col("c")), schema=SCHEMA),
    ask(lit(1), col("d") - 7000, where=col("x") > 0, schema=SCHEMA),
    ask(lit(1), where=(col("t") == "éèê") | col("t").is_missing(), schema=SCHEMA),
    ask(lit(1), by=(Bins(col("n"), (-5, 0, 50, 99)),), where=~(col("c") == "a"), schema=SCHEMA),
    ask(col("x") * col("x"), col("x") * col("n"), where=col("b"), schema=SCHEMA),
)


def early(data: object, schema: Schema = SCHEMA, unit: Unit | None = None, **more: object) -> DuckEngine:
    """An engine that answers before its rows are kept."""
    engine = duck(data, unit, schema, **more)
    assert engine.early()
    return engine


def run(engine: DuckEngine, tallies: Sequence[Tally]) -> list[list[list[int]]] | None:
    """The sums of tallies by the certified text over records; None where they wait for the copy."""
    sources = [source for source in engine.sources(tallies) if source is not None]
    if len(sources) != len(tallies) or not all(isinstance(source.place, EarlyPlace) for source in sources):
        return None
    assert engine.admits(sources)
    found = []
    for source in sources:
        of_proposal(source.proposal, engine.kernel_facts)  # by the facts that the kernel is given
        with source.place() as asking:
            found.append(joined(source.proposal, summed(source.proposal, asking))[source.tally].tolist())
    return found


def apart(source: Proposed) -> bool:
    """Whether it is run over records as they stand."""
    return isinstance(source.place, EarlyPlace)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.neighbors)
@pytest.mark.parametrize("filed", [True, False])
def test_sums_of_records_are_those_of_the_copy(unit: Unit, filed: bool, tmp_path: Path) -> None:  # noqa: FBT001
    """NULL, NaN, infinities, cells at and past the bounds, twice the same row, no row at all."""
    for data in (DATA, pa.concat_tables([DATA, DATA]), DATA.slice(0, 0)):
        source = parquet(tmp_path, data) if filed else data
        engine = early(source, unit=unit, prepared=tmp_path / "none" / "copy" if filed else None)
        found, alone = run(engine, TALLIES), [run(engine, [tally]) for tally in TALLIES]
        engine.close()
        copy, plain = duck(source, unit, SCHEMA), plain_engine(source, unit, SCHEMA)
        copy.ready()
        assert not copy.early()
        want = [copy.sums(tally).open().tolist() for tally in TALLIES]
        assert found == want == [plain.sums(tally).open().tolist() for tally in TALLIES]
        assert [one for each in alone for one in each or ()] == want
        copy.close()


def test_the_comparison_tells_one_cell_that_is_read_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: of records whose clamp is one grid step lower, some sum is another."""
    real = cell_reading._on_grid
    lower = Int(-5, 98)
    monkeypatch.setattr(cell_reading, "_on_grid", lambda item, column, *, exact: real(item, column, exact=exact))
    clamped = cell_reading._clamped
    monkeypatch.setattr(
        cell_reading, "_clamped", lambda item, low, high, *more: clamped(item, low, min(high, lower.high), *more)
    )
    engine = early(DATA)
    found = run(engine, TALLIES[1:2])
    engine.close()
    monkeypatch.undo()
    assert found is not None
    assert found != [duck(DATA, schema=SCHEMA).sums(TALLIES[1]).open().tolist()]


def test_text_that_was_written_before_the_copy_is_certified_after_it() -> None:
    """A question may come while the copy takes the records' place: it is certified and run, whichever it names.

    What was certified by the facts of before is told by them: they are other facts.
    """
    engine = early(DATA)
    before = engine.kernel_facts
    assert engine.kernel_facts is before
    sources = [source for source in engine.sources(TALLIES) if source is not None]
    engine.ready()
    assert (engine.early(), engine.kernel_facts is before) == (False, False)
    for tally, source in zip(TALLIES, sources, strict=True):
        assert apart(source)
        of_proposal(source.proposal, engine.kernel_facts)
        with source.place() as asking:
            found = joined(source.proposal, summed(source.proposal, asking))[source.tally].tolist()
        assert found == engine.sums(tally).open().tolist()
    assert not any(map(apart, filter(None, engine.sources(TALLIES))))
    engine.close()


def test_groups_found_in_the_data_are_those_of_the_copy() -> None:
    """Keys as they are released, their people and their sums."""
    schema = Schema.of("data", {"t": Text(), "n": Int(-5, 99), "x": Int(-9, 2**14)})
    data = pa.table({"t": ["u", "v", None, "u"], "n": [1, 200, None, 1], "x": [1.0, -0.0, NAN, 2.0**52]})
    for key in (col("t"), Each(col("n")), Each(col("x"))):
        tally = replace(ask(col("n"), schema=schema), by=(Key(key, ()),))
        engine, copy = early(data, schema), duck(data, schema=schema)
        copy.ready()
        both = []
        for each in (engine, copy):
            source = each.found(tally)
            assert source is not None
            assert apart(source) is (each is engine)
            with source.place() as asking:
                found = groups_of(source.proposal.statements[0], asking.groups(source.proposal.statements[0]))
            names, order = each.labelled(tally, found.keys)
            both.append((names, found.persons[order].tolist(), found.sums[order].tolist()))
            each.close()
        assert both[0] == both[1]


def test_random_questions_about_adversarial_tables_agree(tmp_path: Path) -> None:
    """Whatever is answered early is what the copy gives; and much is."""
    planned, done, seen, seed = count("sums of records against the copy's", short=80, long=4_000), 0, 0, 0
    while done < planned:
        rng, seed = generator(seed), seed + 1
        data = generate.table(rng, unit=UNITS[seed % 2])
        path = data.parquet(tmp_path / "data.parquet", group=3) if seed % 3 else data.arrow()
        asked = [random_tallies.tally(rng, data.schema, data.unit) for _ in range(4)]
        engine, copy = duck(path, data.unit, data.schema), duck(path, data.unit, data.schema)
        if engine.early():
            copy.ready()
            for tally in asked:
                found = run(engine, [tally])
                assert found in (None, [copy.sums(tally).open().tolist()]), f"seed {seed - 1}"
                seen += found is not None
                done += 1
        engine.close()
        copy.close()
    assert seen * 12 >= done


@pytest.mark.parametrize(
    ("data", "unit"),
    [
        ("csv", Unit()),
        ("parquet", Unit("who", rows=2)),
        ("parquet", Unit(neighbors="zero_out")),
        ("wild", Unit()),
    ],
)
def test_other_sources_and_units_wait_for_the_copy(data: str, unit: Unit, tmp_path: Path) -> None:
    """Whether a question may come early follows from declarations and the kind of file alone."""
    path = parquet(tmp_path, name="d[1].parquet" if data == "wild" else "d.parquet")
    if data == "csv":
        path = tmp_path / "d.csv"
        path.write_text("age,pay,city,note\n1,2,x,y\n")
    engine = duck(path, unit)
    assert not engine.early()
    engine.close()


def test_a_column_whose_reading_is_not_certified_waits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a clamp, with half of one, or one that may fail, a cell is refused; the other columns are not."""
    path = parquet(tmp_path)
    beyond = "WHEN {0} < 0 THEN 0 WHEN {0} > 120 THEN 120 END"
    forms = {
        f"CASE WHEN {{0}} >= 0 AND {{0}} <= 120 THEN TRY_CAST({{0}} AS BIGINT) {beyond}": True,
        "{0}": False,
        "CASE WHEN {0} >= 0 THEN {0} ELSE 0 END": False,
        "CASE WHEN {0} <= 120 THEN {0} END": False,
        "CASE WHEN {0} >= 0 OR {0} <= 120 THEN {0} END": False,
        "CASE WHEN {0} + 1 >= 0 AND {0} <= 120 THEN {0} END": False,
        "least(greatest({0}, 0), 121)": False,
        "CAST({0} * 2 AS TINYINT)": False,
        "CASE WHEN {0} >= 0 AND {0} <= 120 THEN CAST(120 // {0} AS BIGINT) END": False,
    }
    ages, pays = ask(col("age")), ask(col("pay"))
    for form, holds in forms.items():
        monkeypatch.setattr(cell_reading, "_clamped", lambda item, *_, form=form: form.format(item))
        engine = duck(path)
        assert engine.early()
        found = [apart(source) for tally in (ages, pays) for source in engine.sources([tally]) if source is not None]
        assert found == [holds, True], form
        engine.close()


def test_a_statement_over_records_is_certified_by_its_own_text() -> None:
    """The same sum clamped and not, by hand: what a cell's type alone leaves open is no bound."""
    columns = (("s0", ANY_CELL["BIGINT"]), ("s1", ANY_CELL["DOUBLE"]), ("s2", ANY_CELL["VARCHAR"]))
    columns += (("s3", ANY_CELL["DATE"]), ("s4", ANY_CELL["FLOAT"]))
    known = Facts((Table(("records",), columns, 1, owned=False, size=2**31, source=True),), "add_remove", True)
    days = "s3 - DATE '1970-01-01'"
    forms = {
        "CASE WHEN s0 >= 0 AND s0 <= 9 THEN s0 END": 9,
        "CASE WHEN s1 >= 0e0 AND s1 <= 9e0 THEN floor(s1) WHEN s1 <= CAST('inf' AS DOUBLE) THEN 7e0 END": 9,
        "list_position(['a', 'b', 'c'], s2)": 3,
        f"CASE WHEN {days} >= 0 THEN 1 ELSE 0 END": 1,
        "CASE WHEN s3 > DATE '0001-01-01' THEN 4 END": 4,
        "CASE WHEN CAST(s4 AS DOUBLE) > 0e0 THEN 2 END": 2,
    }
    for form, most in forms.items():
        (found,) = certify(f"SELECT sum({form}) AS s FROM records", known).outputs
        assert isinstance(found, Summand)
        assert reach(found.polynomial, certify(f"SELECT sum({form}) AS s FROM records", known).intervals)[1] == most
    refused = {
        "CASE WHEN s1 >= 0e0 THEN floor(s1) END": "infinity",
        "CASE WHEN s1 < 9e0 OR s1 > 0e0 THEN floor(s1) END": "NaN",
        "CASE WHEN s3 > DATE '2020-02-30' THEN 4 END": "a text that is no date fails where a row comes to it",
        "CASE WHEN s3 > CAST(s2 AS DATE) THEN 4 END": "a cell that is no date",
        "CASE WHEN s1 > CAST('x' AS DOUBLE) THEN 4 END": "a text that is no number",
        "CASE WHEN s3 > s0 THEN 4 END": "a day compared with a number",
        "list_position(['a', s2], s2)": "a list of cells",
        "list_position([1, 2], s0)": "numbers, which a cast may merge",
        "s3 - s3 - s3": "a day from a number",
        "s3 + 1": "a day past the calendar fails",
        "epoch_us(s3)": "a day as a moment",
        "CAST(s1 AS BIGINT)": "a double past the integers fails",
        "s4": "a float",
    }
    for form, why in refused.items():
        with pytest.raises(Refused):
            pytest.fail(f"{why}: {certify(f'SELECT sum({form}) AS s FROM records', known)}")
    merged = "SELECT sum(CASE WHEN s4 > 0 THEN 1 END) AS s FROM (SELECT DISTINCT s4 FROM records)"
    with pytest.raises(Refused):  # 0 and -0 are one, and which of them stays is any row's
        certify(merged, known)


@pytest.mark.parametrize(
    ("neighbors", "row_is_person"), [("add_remove", False), ("replace_one", False), ("zero_out", True)]
)
def test_records_are_not_asked_where_one_is_not_a_whole_person(neighbors: str, row_is_person: bool) -> None:  # noqa: FBT001
    """Of a person with several records, or a blanked one, the certificate would be too small: one record's."""
    records = Table(("records",), (("s0", ANY_CELL["BIGINT"]),), 1, owned=False, size=9, source=True)
    asked = "SELECT count(*) AS n FROM records"
    assert certify(asked, Facts((records,), "add_remove", row_is_person=True)).rows == 1
    with pytest.raises(Refused):
        certify(asked, Facts((records,), neighbors, row_is_person=row_is_person))


@pytest.mark.parametrize(
    "wrong",
    [
        {"columns": (("s0", Column("BIGINT", 0, 9)),)},
        {"columns": (("s0", ANY_CELL["INTEGER"]),)},
        {"columns": (("s1", ANY_CELL["BIGINT"]),)},
        {"columns": (("s0", ANY_CELL["BIGINT"]), ("s1", ANY_CELL["BIGINT"]))},
        {"size": 2},
        {"rows": 2},
        {"owned": True},
        {"unique": "s0"},
    ],
    ids=str,
)
def test_records_are_checked_against_their_facts(wrong: dict[str, object]) -> None:
    """Types, their order, how many there may be; and no fact of rows that somebody would have to look at."""
    with duckdb.connect() as cursor:
        cursor.execute("CREATE VIEW records AS SELECT CAST(range AS BIGINT) AS s0 FROM range(3)")
        right = Table(("records",), (("s0", ANY_CELL["BIGINT"]),), 1, owned=False, size=3, source=True)
        keep.check(cursor, Facts((right,), "add_remove", row_is_person=True))
        with pytest.raises(SetupError):
            keep.check(cursor, Facts((replace(right, **wrong),), "add_remove", row_is_person=True))


def test_a_text_that_duckdb_does_not_read_waits_for_the_copy(tmp_path: Path) -> None:
    """Known before anything is paid: the column is read to its end first; others are answered early."""
    schema = Schema.of("data", {"x": Int(0, 9), "note": Text()})
    note = pa.array([b"a", b"\xff", b"c"], pa.binary())
    note = pa.StringArray.from_buffers(len(note), *note.buffers()[1:])
    pq.write_table(pa.table({"x": [1, 2, 3], "note": note}), tmp_path / "d.parquet")
    engine = early(tmp_path / "d.parquet", schema)
    texts, numbers = ask(lit(1), where=~col("note").is_missing(), schema=schema), ask(col("x"), schema=schema)
    (source,) = engine.sources([texts])
    assert source is not None
    assert not engine.admits([source])
    assert run(engine, [numbers]) == [[[6]]]
    assert engine.sums(texts).open().tolist() == [[2]]  # by then it is of the copy
    assert not engine.early()
    engine.close()


def test_a_file_that_changes_while_it_is_read_gives_nothing(tmp_path: Path) -> None:
    """Before a question it stops the owner; meanwhile, what was summed is not told."""
    path = parquet(tmp_path)
    engine = early(path, cases.SCHEMA)
    (source,) = engine.sources([ASKED[1]])
    assert source is not None

    def changes() -> None:
        with source.place() as asking:
            assert asking.columns(source.proposal.statements)
            path.touch()

    with pytest.raises(SetupError) as stopped:
        changes()
    assert stopped.value.code == "source-changed"
    for asked in (engine.early, engine.ready):
        with pytest.raises(SetupError):
            asked()
    engine.close()


def test_a_label_that_reads_like_a_column_is_none(tmp_path: Path) -> None:
    """A category called as a column of the source that is not looked at, and cannot be, has nobody wait."""
    schema = Schema.of("data", {"x": Int(0, 9), "c": Category(("a", "s2", "s77")), "n": Int(0, 9)})
    data = pa.table({"x": [1, 2, 3], "c": ["a", "s2", "s77"], "n": pa.array([1, 2, 3], pa.uint8())})
    engine = early(parquet(tmp_path, data), schema)
    assert run(engine, [ask(col("x"), by=(col("c"),), schema=schema)]) == [[[1], [2], [3]]]
    engine.close()


def test_more_records_than_are_summed_anew_wait_for_the_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy holds more: the owner hears of nothing. As many as that are asked early."""
    rows, asked = DATA.num_rows, TALLIES[1:2]
    for data in (DATA, parquet(tmp_path, DATA)):
        for most in (rows - 1, rows):
            monkeypatch.setattr(early_rows, "MAX_ROWS_READ", most)
            engine = duck(data, schema=SCHEMA)
            assert engine.early() is (most == rows)
            assert engine.sums(asked[0]).open().tolist() == duck(DATA, schema=SCHEMA).sums(asked[0]).open().tolist()
            engine.close()


def test_public_tables_beside_private_ones_are_read_early() -> None:
    """Each table has records of its own, by its own name."""
    facts = TableFacts(cases.SCHEMA), TableFacts(replace(cases.SCHEMA, table="more"), public=True, rows=2)
    given = [Given(Origin.of(data), each) for data, each in zip((table(), table()[1:]), facts, strict=True)]
    engine = DuckEngine(Dataset(tuple(given), Unit(), KEY))
    assert engine.early()
    asked = [replace(ask(lit(1), col("age")), over=Relation(name)) for name in ("data", "more")]
    assert run(engine, asked) == [[[3, 81]], [[2, 41]]]
    engine.close()
