"""A person's text: the same in SQL and in Python for every form of id, and one for each value (SR25)."""

from __future__ import annotations

import math

import duckdb
import pyarrow as pa
import pytest

from sulq.sources import tables
from sulq.sources.decode import frames, person
from tests import counts
from tests.counts import count
from tests.sources import plain_reading as reading

SPECIAL = {
    "truth": ([True, False, None], "BOOLEAN"),
    "whole": ([0, -1, 2**53 + 1, 2**63 - 1, -(2**63), None], "BIGINT"),
    "number": (["7", "-0.5", None], "VARCHAR"),
    "double": ([0.0, -0.0, 7.0, -7.0, 2.0**53 - 1, 2.0**53, 0.5, math.nan, math.inf, -math.inf, 1e300, None], "DOUBLE"),
    "single": ([2.0**24 - 1, 2.0**24, None], "DOUBLE"),
    "half": ([2.0**11 - 1, 2.0**11, None], "DOUBLE"),
    "text": (["7", " A ", "e\u0301", "", "\u212a", "7.00", None], "VARCHAR"),
    "uuid": (["0a" * 16, None], "VARCHAR"),
    "time": (["2020-01-01 00:00:00.000000001", "2020-01-01 00:00:00", "2020-01-01 10:00:00.5", None], "VARCHAR"),
    "nothing": ([None], "VARCHAR"),
    "date": (["2020-01-10", None], "VARCHAR"),
    "figures": (
        ["7", "007", "+7.", "-7.50", ".5", "-0", "-0.00", "0", "1e5", "", " 8 ", "8 8", "٣", ".", "+", "1.2.3", None],
        "VARCHAR",
    ),
}  # fmt: skip


def both(form: person.Form, cells: list[object], kind: str, fold: str | None) -> tuple[list[object], list[object]]:
    """The texts of some cells in SQL and in Python, and whether any cell is unfit in both."""
    table = duckdb.connect()
    table.execute(f"CREATE TABLE t (i INTEGER, a {kind})")
    table.executemany("INSERT INTO t VALUES (?, ?)", list(enumerate(cells)))
    found = table.execute(f"SELECT nullif({person.sql(form, 'a', fold)}, '') FROM t ORDER BY i").fetchall()
    stored = {"DOUBLE": pa.float64(), "BIGINT": pa.int64(), "BOOLEAN": pa.bool_()}.get(kind, pa.large_string())
    values = pa.chunked_array([pa.array(cells, stored)])
    if form in tables.UNSURE:
        for i, cell in enumerate(cells):
            (unfit,) = table.execute(f"SELECT {tables.unfit_sql(form, 'a')} FROM t WHERE i = {i}").fetchone()
            assert bool(unfit) == reading.unfit(form, values[i : i + 1]), (form, cell)
    return [text for (text,) in found], reading.texts(form, values, fold).tolist()


def named(cells: list[int | None], kind: pa.DataType) -> list[str | None]:
    """The texts of days or moments in a frame's column, the same in SQL and in Python."""
    stored = pa.array(cells, pa.int64())
    column = pa.chunked_array([(stored.cast(pa.int32()) if kind == pa.date32() else stored).cast(kind)])
    found = frames.records(pa.table({"id": column}), {}, ("id", 0), None)
    form, cell = found.named
    with duckdb.connect() as made:
        made.register("t", found.table)
        told = made.execute(f"SELECT {person.sql(form, 'a', None)} FROM (SELECT {cell} AS a FROM t)").fetchall()
    assert [text for (text,) in told] == reading.texts(form, found.table.column(0), None).tolist()
    return [text for (text,) in told]


@pytest.mark.parametrize("fold", [None, "case", "spelling"])
@pytest.mark.parametrize("form", SPECIAL)
def test_sql_and_python_name_the_same_people_T97(form: person.Form, fold: str | None) -> None:
    """Special cells of every form; which of them cannot be told exactly, too."""
    told, written = both(form, *SPECIAL[form], fold)
    assert told == written


def test_generated_ids_are_named_alike_and_apart_T97() -> None:
    """Instants by the nanosecond and digits with needless zeros: equal values have one text, others another."""
    rng = counts.generator("reading")
    size = count("ids in SQL and in Python", short=300, long=20_000)
    instants = [rng.choice((0, 10**18, -(10**18), 10**12)) + rng.randint(-5000, 5000) for _ in range(size)]
    assert len(set(named(instants, pa.timestamp("ns")))) == len(set(instants))
    moments = [
        rng.randint(-62_135_596_800, 253_402_300_799) * 10**6 + rng.randint(0, 10) * 100_000 for _ in range(size)
    ]
    assert len(set(named(moments, pa.timestamp("us", "UTC")))) == len(set(moments))
    days = [rng.randint(-719_162, 2_932_896) for _ in range(size)]
    assert len(set(named(days, pa.date32()))) == len(set(days))
    digits = [
        f"{rng.choice('+-')}{'0' * rng.randint(0, 2)}{rng.choice('0157')}.{rng.choice('05')}0" for _ in range(size)
    ]
    told, written = both("figures", digits, "VARCHAR", None)
    assert told == written
    assert len(set(told)) == len({float(text) for text in digits})


def test_days_and_moments_of_the_years_1_to_9999_have_texts_T97() -> None:
    """In ISO form without needless zeros, as fine as they are stored; what is past these years names nobody."""
    assert named([0, -719_162, 2_932_896, 2_932_897, -719_163, None], pa.date32()) == [
        "1970-01-01", "0001-01-01", "9999-12-31", None, None, None,
    ]  # fmt: skip
    assert named([0, -1, 10**15 + 1, 500_000, 2**62, -(2**62), None], pa.timestamp("us")) == [
        "1970-01-01 00:00:00", "1969-12-31 23:59:59.999999", "2001-09-09 01:46:40.000001", "1970-01-01 00:00:00.5",
        None, None, None,
    ]  # fmt: skip
    assert named([0, -62_135_596_800, 253_402_300_799, 253_402_300_800, 2**62], pa.timestamp("s")) == [
        "1970-01-01 00:00:00", "0001-01-01 00:00:00", "9999-12-31 23:59:59", None, None,
    ]  # fmt: skip
    assert named([0, -1, -1000, 999, 10**18 + 120, 2**63 - 1, -(2**63) + 1], pa.timestamp("ns", "UTC")) == [
        "1970-01-01 00:00:00", "1969-12-31 23:59:59.999999999", "1969-12-31 23:59:59.999999",
        "1970-01-01 00:00:00.000000999", "2001-09-09 01:46:40.00000012", None, None,
    ]  # fmt: skip
