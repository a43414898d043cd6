"""Parts and periods of dates as SQL: DuckDB's calendar and NumPy's are one."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest

from sulq.compile.statements import kept_table
from sulq.compile.statements.emitter import Emitter
from sulq.language.domain import Date, Schema, Timestamp
from sulq.language.kinds import Cells
from sulq.language.rowfn import Arith, Col, Compare, DatePart, DateTrunc, Lit, Moment, RowFn, ToDate, ToTimestamp
from sulq.language.rowfn.base import evaluate
from sulq.language.rowfn.dates import FIRST_DAY, LAST_DAY, LAST_MOMENT, PARTS, PERIODS
from sulq.language.rowfn.writer import KeptRows
from tests.counts import count
from tests.sources.rowwise import filled, in_numpy, in_sql

EVER = Schema(
    "data",
    (("day", Date("0001-01-01", "9999-12-31")), ("moment", Timestamp("1685-01-01", "2255-01-01T00:00:00.000001"))),
)


class Columns:
    """Long columns of whole numbers, as a batch."""

    schema = EVER

    def __init__(self, columns: dict[str, np.ndarray]) -> None:
        self.columns = columns
        self.size = len(next(iter(columns.values())))
        self.seen: dict[int, Cells] = {}

    def codes(self, name: str) -> Cells:
        return Cells(self.columns[name], None)


def agree(fns: list[RowFn], name: str, units: np.ndarray) -> None:
    """Compare long columns of numbers without making Python objects of them."""
    names = kept_table.names(EVER)
    emitter = Emitter(EVER, KeptRows("kept", {}, names, frozenset(), {}, len(units)))
    columns = [f"{emitter.number(fn).sql} AS f{i}" for i, fn in enumerate(fns)]
    kept_rows = {names[name]: units, "p": np.arange(len(units))}  # noqa: F841 - DuckDB reads it by name
    with duckdb.connect() as connection:
        connection.execute("CREATE VIEW kept AS SELECT * FROM kept_rows")
        statement = f"SELECT {', '.join(columns)} FROM {emitter.relation()} ORDER BY p"
        found = connection.execute(statement).fetchnumpy()
    for i, fn in enumerate(fns):
        cells = evaluate(fn, Columns({name: units}))
        theirs = np.ma.filled(found[f"f{i}"].astype(np.float64), np.nan)
        ours = cells.values if cells.missing is None else np.where(cells.missing, np.nan, cells.values)
        assert np.array_equal(ours, theirs, equal_nan=True), fn


@pytest.mark.parametrize("start", range(4))
def test_every_day_of_the_calendar_has_the_same_parts(start):
    """Every day from year 1 to 9999 in a long run; here one in some hundred, of all weekdays and months."""
    apart = LAST_DAY // count("days of the calendar", short=25_000, long=LAST_DAY)
    units = np.arange(FIRST_DAY + start * max(apart // 4, 0), LAST_DAY + 1, max(apart, 1), dtype=np.int64)
    units = np.concatenate([units, [FIRST_DAY, LAST_DAY, -1, 0]])
    fns: list[RowFn] = [DatePart(part, Col("day")) for part in PARTS]
    fns += [DateTrunc(part, Col("day")) for part in PERIODS]
    agree([*fns, ToDate(Col("day")), ToTimestamp(Col("day"))], "day", units)


def test_moments_have_the_same_parts_to_the_microsecond():
    """The last and first microseconds of days, hours, minutes and seconds, before and after 1970."""
    column = EVER.find("moment")
    rng = np.random.default_rng(1)
    size = count("moments of the calendar", short=20_000, long=2_000_000)
    units = rng.integers(column.low, column.high, size, endpoint=True)
    spans = rng.choice([10**6, 60 * 10**6, 3600 * 10**6, 86_400 * 10**6], size)
    units = np.concatenate([units, units // spans * spans, units // spans * spans - 1, [column.low, column.high]])
    units = np.clip(units, column.low, column.high)
    fns: list[RowFn] = [DatePart(part, Col("moment")) for part in PARTS]
    agree([*fns, *(DateTrunc(part, Col("moment")) for part in PERIODS), ToDate(Col("moment"))], "moment", units)


@pytest.mark.parametrize("shift", [-(10**9), -1, 1, 10**9, 2**53])
@pytest.mark.parametrize("part", [*PARTS, *PERIODS])
def test_what_leaves_the_calendar_is_missing_T30(part, shift):
    """Days before year 1 and after 9999 have no parts; nothing raises."""
    rows = filled(
        {"day": [FIRST_DAY, LAST_DAY, 0, None], "moment": [-LAST_MOMENT // 2, LAST_MOMENT // 2, 0, None]}, EVER
    )
    for name in ("day", "moment"):
        item = Arith("+", Col(name), Lit(shift))
        for fn in (DatePart(part, item), DateTrunc(part, item) if part in PERIODS else ToDate(item), ToTimestamp(item)):
            assert in_sql(fn, rows, EVER) == in_numpy(fn, rows, EVER)
    item = Arith("+", Col("day"), Lit(shift))
    assert None in in_sql(DatePart("year", item), rows, EVER)[:2]


@pytest.mark.parametrize("op", ["==", "!=", "<", "<=", ">", ">="])
def test_a_date_meets_a_constant_in_integers(op):
    """A column against a constant moment is a comparison of stored integers."""
    fn = Compare(op, Col("day"), Moment("2020-02-29"))
    rows = filled({"day": [18320, 18321, 18322, None]}, EVER)
    assert in_sql(fn, rows, EVER) == in_numpy(fn, rows, EVER)
    emitter = Emitter(EVER, KeptRows("kept", {}, kept_table.names(EVER), frozenset(), {}, 4))
    assert "DOUBLE" not in emitter.truth(fn).sql
