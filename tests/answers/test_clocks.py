"""Keys that are dates or moments are shown as such, by public facts alone, on every way an answer takes."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest

import sulq
from sulq import Epsilon, Unit, col
from sulq.answers import wire
from sulq.answers.clocks import clock_of
from sulq.language.domain import Category, Date, Int, Schema, Timestamp
from sulq.language.rowfn import Col, DatePart, Each, Lit, OrMissing, bins

SCHEMA = Schema(
    "t",
    (
        ("day", Date("2020-01-01", "2020-01-31")),
        ("at", Timestamp("2020-01-01T00:00:00", "2020-01-02T00:00:00")),
        ("year", Int(1984, 1989)),
        ("city", Category(("Lod",))),
    ),
)
DAY = datetime.date(2020, 1, 1)


@pytest.mark.parametrize(
    ("fn", "clock"),
    [
        (Col("day"), "date"),
        (Each(Col("day")), "date"),
        (OrMissing(Each(Col("day"))), "date"),
        (bins(Col("day"), ["2020-01-01", "2020-01-15", "2020-01-31"]), "date"),
        (bins(Col("at"), ["2020-01-01T00:00:00", "2020-01-02T00:00:00"]), "timestamp"),
        (Each(Col("year")), None),
        (OrMissing(Col("city")), None),
        (Each(DatePart("month", Col("day"))), None),
    ],
)
def test_a_key_of_days_is_told_by_its_kind(fn: object, clock: str | None) -> None:
    """A column, its values, bins of them; parts of a date, such as its month, are numbers."""
    assert clock_of(fn, SCHEMA) == clock  # type: ignore[arg-type]


def database() -> sulq.Database:
    days = [DAY + datetime.timedelta(days=i % 3) for i in range(30)]
    table = pa.table({"day": days, "at": [datetime.datetime(2020, 1, 1, i % 3) for i in range(30)]})  # noqa: DTZ001
    columns = {"day": Date("2020-01-01", "2020-01-03"), "at": Timestamp("2020-01-01", "2020-01-02")}
    return sulq.connect(table, table="t", columns=columns, unit=Unit(), budget=Epsilon(1000))


def test_dates_are_dates_in_values_frames_texts_and_after_the_wire() -> None:
    """Labels of the mapping, the frame's type, the printed line, the mean of a moment; the same at the other end."""
    spend = Epsilon(100)
    with database() as db:
        found = db.count(by="day", spend=spend)
        assert found.value == {DAY + datetime.timedelta(days=i): 10 for i in range(3)} | {None: 0}
        assert str(found.to_pandas()["day"].dtype) == "datetime64[s]"
        assert str(found.to_arrow()["day"].type) == "date32[day]"
        assert repr(found).splitlines()[0].split()[0] == "2020-01-01"
        assert repr(wire.decode(wire.encode(found))) == repr(found)
        binned = db.histogram("day", bins=["2020-01-01", "2020-01-03"], spend=spend)
        assert binned.to_dict()["day"] == ["[2020-01-01, 2020-01-03]"]
        mean = db.mean("at", spend=spend)
        assert isinstance(mean.to_dict()["value"][0], datetime.datetime)
        assert repr(mean).startswith("2020-01-01 0")
        assert str(mean.to_pandas(0.95)["low"].dtype) == "datetime64[us]"
        asked = db.ask(sulq.Sums((Lit(1),), None, (col("day"),)), spend=spend)
        assert list(asked.value) == list(found.value)[:3]


def test_other_keys_say_nothing_of_time() -> None:
    """Control: an answer by city has no clocks, and its text on the wire is as it was."""
    table = pa.table({"city": ["Lod", "Yafo"]})
    with sulq.connect(table, table="t", columns={"city": ["Lod", "Yafo"]}, unit=Unit(), budget=Epsilon(9)) as db:
        found = db.count(by="city", spend=Epsilon(1))
        assert (found.clocks, found.clock) == ((), None)
        assert "clock" not in wire.encode(found)
