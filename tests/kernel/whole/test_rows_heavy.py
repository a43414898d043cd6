"""Persons of whom not all rows are kept: how far one person moves the two counts, and that engines agree."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow.parquet
import pytest

import sulq
from sulq import Epsilon, EpsilonDelta, Holistic, Int, Rho, Unit
from sulq.errors import QuestionError, SulqError
from sulq.kernel.whole import rows as annex
from sulq.language.relation import Table
from sulq.language.statistic import HeavyPersons
from sulq.sources.duckdb.kept_rows import HEAVY
from tests.sources.cases import open_engine

KEY = b"k" * 32
MOST = 2
IDS = [7, 7, 7, 8, 8, 9, None, None, None, 10, 10, 10, 10]
FRAME = pd.DataFrame({"id": pd.array(IDS, dtype="Int64"), "x": range(len(IDS))})
COLUMNS = {"x": Int(0, 99)}


def counted(rows: dict[str, int]) -> tuple[int, int]:
    """The two counts of a table in which each person has so many rows."""
    heavy = sum(count > MOST for count in rows.values())
    return heavy, sum(count > 0 for count in rows.values()) - heavy


def moved(a: dict[str, int], b: dict[str, int]) -> tuple[int, int]:
    apart = [x - y for x, y in zip(counted(a), counted(b), strict=True)]
    return sum(map(abs, apart)), sum(d * d for d in apart)


def test_one_person_moves_the_counts_no_farther_than_the_plan_says_SR5() -> None:
    """All tables of three persons with 0 to 4 rows, each with one person gone, and exchanged for any other."""
    gone, swapped = set(), set()
    for held in itertools.product(range(5), repeat=3):
        rows = dict(zip("abc", held, strict=True))
        gone.add(moved(rows, rows | {"a": 0}))
        swapped |= {moved(rows, rows | {"a": 0, "d": other}) for other in range(5)}
    found = annex.HeavyPersons().figure(MOST)
    assert max(gone) == (found.alone.l1, found.alone.l2_squared) == (1, 1)
    assert max(swapped) == (found.swapped.l1, found.swapped.l2_squared) == (2, 2)


@pytest.mark.parametrize("way", ["memory", "duckdb", "unprepared", "file", "csv", "postgres", "spark"])
def test_every_engine_counts_persons_before_rows_are_left_out(way: str, tmp_path: Path) -> None:
    """A row without a person is nobody's; a person of exactly so many rows as are kept is not heavy."""
    schema = sulq.language.domain.Schema("t", tuple(COLUMNS.items()))
    more: dict[str, object] = {"engine": "memory"} if way == "memory" else {}
    data: object = FRAME
    if way == "unprepared":
        more["prepared"] = False
    elif way == "file":
        data, more["prepared"] = tmp_path / "t.parquet", tmp_path / "t.prepared"
        pyarrow.parquet.write_table(pyarrow.Table.from_pandas(FRAME), data)
    elif way == "csv":
        data = tmp_path / "t.csv"
        FRAME.to_csv(data, index=False)
    elif way == "postgres":
        from tests.loaded import available, loaded

        if not available():
            pytest.skip("no PostgreSQL here")
        data = loaded(pyarrow.Table.from_pandas(FRAME))
    elif way == "spark":
        from tests import spark

        data = spark.frame(pyarrow.Table.from_pandas(FRAME))
    for k in (1, MOST, 5):
        more |= {"prepared": tmp_path / f"{k}.prepared"} if way == "file" else {}
        engine = open_engine(data, schema=schema, unit=Unit("id", rows=k), key=KEY, **more)
        try:
            expected = Counter(count > k for count in Counter(i for i in IDS if i is not None).values())
            assert engine.heavy("").open().tolist() == [expected[True], expected[False]]
        finally:
            engine.close()


def opened(**more: object) -> sulq.api.database.Database:
    return sulq.connect(
        more.pop("data", FRAME), columns=COLUMNS, unit=more.pop("unit", Unit("id", rows=MOST)),
        budget=more.pop("budget", EpsilonDelta(100, 1e-6)), **more,
    )  # fmt: skip


@pytest.mark.parametrize(("relation", "sensitivity"), [("add_remove", 1), ("replace_one", 2)])
def test_the_plan_prices_the_counts_and_refuses_what_it_cannot_count_SR5(relation: str, sensitivity: int) -> None:
    """The noise is that of one person's move; nothing is counted under a condition, or where every row is kept."""
    with opened(unit=Unit("id", rows=MOST, neighbors=relation)) as db:
        (part,) = db.foresee(Holistic(HeavyPersons()), spend=Epsilon(1)).parts
        assert part.sensitivity == (sensitivity,)
        assert part.laws[0].scale >= sensitivity
        for spend in (Epsilon(1), Rho(0.5), EpsilonDelta(1, 1e-7)):
            db.heavy_persons(spend=spend, fresh=True)
        where, space = Holistic(HeavyPersons(), sulq.col("x") > 3), Holistic(HeavyPersons(), space=sulq.Box())
        for asked in (where, space, Holistic(HeavyPersons(), over=Table("other"))):
            with pytest.raises(QuestionError):
                db.ask(asked, spend=Epsilon(1))
        assert len(db.transcript()) == 3
    with opened(unit=Unit()) as db, pytest.raises(QuestionError, match="Every row"):
        db.heavy_persons(spend=Epsilon(1))


def test_the_share_is_debited_once_and_shown_from_then_on_SR12(tmp_path: Path) -> None:
    """Debited before the rows are read, free again at that price, beside every later answer, also after a restart."""
    told = "of the kept rows (at most 2 a person)"
    path = tmp_path / "t.csv"
    FRAME.to_csv(path, index=False)
    with opened(data=path, budget=Epsilon(100)) as db:
        before = db.count(spend=Epsilon(1))
        assert told in before.notes
        bought = db.heavy_persons(spend=Epsilon(50))
        assert bought.columns == ("heavy", "others")
        assert list(bought.value) == [2, 2]  # but once in e^50
        assert str(bought.spent) == "epsilon 50"
        assert db.heavy_persons(spend=Epsilon(50)).reused
        assert str(db.remaining) == "epsilon 49"
        share = (
            f"{told}; about 50% +- {100 * (db.facts.heavy[0].high - 0.5):.2g}% of persons have more rows than are kept"
        )
    with opened(data=path, budget=Epsilon(100)) as db:
        query = "SELECT SUM(x) FROM t"
        answers = [db.count(spend=Epsilon(1)), db.sql(query, spend=Epsilon(1)), db.explain(query, spend=Epsilon(1))]
        assert all(answer.notes[0] == share for answer in answers)
        for shown in (repr(answers[0]), answers[0]._repr_html_(), repr(answers[1]), answers[1]._repr_html_()):
            assert share in shown
        assert share in str(answers[2])
        assert db.covariance(["x"], spend=Epsilon(1))._repr_html_().count(share) == 1
        analyst = db.asking(db._oracle.for_analyst("ann"))
        assert share in analyst.count(spend=Epsilon(1)).notes  # it is the owner's to show


def test_what_an_analyst_buys_is_shown_to_that_one_alone_T39() -> None:
    """Nobody learns from an answer what others asked."""
    with opened() as db:
        ann, bob = (db.asking(db._oracle.for_analyst(name)) for name in ("ann", "bob"))
        ann.heavy_persons(spend=Epsilon(1))
        assert len(ann.facts.heavy) == 1
        assert bob.facts.heavy == db.facts.heavy == ()
        assert "about" not in bob.count(spend=Epsilon(1)).notes[0]


@pytest.mark.parametrize("fault", ["debit", "read"])
def test_persons_are_counted_after_the_debit_T45(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No debit, no count; a count that fails is charged and says nothing."""
    with opened() as db:
        read: list[str] = []

        def failing(*_: object, **__: object) -> Callable[[], None]:
            read.append(fault)
            raise RuntimeError("a cell")

        target = db._ledger if fault == "debit" else db._engine
        monkeypatch.setattr(type(target), "debit" if fault == "debit" else "heavy", failing)
        with pytest.raises((SulqError, RuntimeError)) as raised:
            db.heavy_persons(spend=Epsilon(1))
        assert len(db.transcript()) == (fault == "read")
        assert fault == "debit" or ("a cell" not in str(raised.value) and raised.value.code == "engine-failed")


def test_the_copy_holds_counts_of_persons_and_no_person(tmp_path: Path) -> None:
    """Two numbers a table, in the prepared copy alone; a copy of an earlier format is built anew."""
    import duckdb

    path, copy = tmp_path / "t.csv", tmp_path / "t.prepared"
    FRAME.to_csv(path, index=False)
    with opened(data=path, prepared=copy) as db:
        db.prepare()
    with duckdb.connect(copy) as file:
        assert file.execute(f"SELECT * FROM {HEAVY}").fetchall() == [(0, 2, 2)]
        assert ("people",) not in file.execute("SELECT table_name FROM duckdb_tables()").fetchall()
        file.execute("UPDATE facts SET value = '4' WHERE name = 'format'")
        file.execute(f"DROP TABLE {HEAVY}")
    with opened(data=path, prepared=copy) as db:
        assert list(db.heavy_persons(spend=Epsilon(50)).value) == [2, 2]
