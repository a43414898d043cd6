"""Tests of sulq.sql.rows.boxes: WHERE leaves out the labels that no row can have, and no others that one can."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

import sulq
import sulq.testing
from sulq.language.domain import Schema, microseconds
from sulq.language.kinds import Cells, Code
from sulq.language.rowfn import Col, Like, RowFn
from sulq.language.rowfn.base import evaluate
from sulq.sql.rows import boxes
from tests import counts
from tests.sql.asking import groups, table

HOUR = 3_600_000_000
PERIODS = ("year", "quarter", "month", "week", "day", "hour")
PARTS = ("year", "quarter", "month", "week", "day", "dow", "isodow", "doy", "hour", "minute")


def labels(key: str, where: str) -> tuple[object, ...]:
    """The labels of a grouped expression under a condition."""
    (found,) = groups(f"SELECT {key}, COUNT(*) FROM people{f' WHERE {where}' if where else ''} GROUP BY 1").keys
    kind = found.kind(table().schema)
    assert isinstance(kind, Code)
    return kind.labels


def hours(first: str, count: int) -> list[str]:
    """The beginnings of hours, one after another."""
    start = np.datetime64(first)
    return [str(start + np.timedelta64(i, "h")) + ":00:00" for i in range(count)]


SEVERAL = hours("2020-03-04T00", 24) + hours("2020-03-09T00", 24)


@pytest.mark.parametrize(
    ("key", "where", "expected"),
    [
        ("date_trunc('hour', seen)", "seen >= '2020-03-04' AND seen < '2020-03-06'", hours("2020-03-04T00", 48)),
        ("date_trunc('hour', seen)", "seen BETWEEN '2020-03-04' AND '2020-03-04 05:00'", hours("2020-03-04T00", 6)),
        ("date_trunc('hour', seen)", "CAST(seen AS DATE) = '2020-03-04'", hours("2020-03-04T00", 24)),
        ("date_trunc('hour', seen)", "CAST(seen AS DATE) IN ('2020-03-04', '2020-03-09')", SEVERAL),
        ("date_trunc('hour', seen)", "date_trunc('day', seen) = '2020-03-04'", hours("2020-03-04T00", 24)),
        ("date_trunc('minute', seen)", "seen = '2020-03-04 05:06:07'", ["2020-03-04T05:06:00"]),
        ("date_trunc('month', seen)", "NOT (seen < '2020-03-04' OR seen >= '2020-04-01')", ["2020-03-01T00:00:00"]),
        ("date_trunc('month', seen)", "EXTRACT(MONTH FROM seen) = 3", ["2020-03-01T00:00:00"]),
        ("EXTRACT(HOUR FROM seen)", "seen BETWEEN '2020-03-04 10:00' AND '2020-03-04 13:30'", [10, 11, 12, 13]),
        ("EXTRACT(HOUR FROM seen)", "EXTRACT(HOUR FROM seen) BETWEEN 8 AND 10", [8, 9, 10]),
        ("EXTRACT(MINUTE FROM seen)", "EXTRACT(MINUTE FROM seen) < 3 AND married", [0, 1, 2]),
        ("EXTRACT(DOW FROM seen)", "seen >= '2020-03-04' AND seen < '2020-03-06'", [3, 4]),
        ("FLOOR(EXTRACT(HOUR FROM seen) / 6)", "EXTRACT(HOUR FROM seen) > 17", [3]),
        ("date_trunc('day', seen + INTERVAL '1' DAY)", "CAST(seen AS DATE) = '2020-03-04'", ["2020-03-05T00:00:00"]),
        ("FLOOR(income / 100)", "income >= 250 AND income < 500", [2, 3, 4]),
        ("FLOOR(income / 100)", "income * 2 - 100 > 1800", [9, 10]),
        ("FLOOR(income / 100)", "income = 200 OR income = 900", [2, 9]),
        ("FLOOR(income / 100)", "income IN (200, 900)", [2, 9]),
        (
            "CASE WHEN income < 10 THEN 'low' WHEN income < 100 THEN 'mid' ELSE 'high' END",
            "income < 50",
            ["low", "mid"],
        ),
        ("CASE WHEN seen < '2020-06-01' THEN 1 ELSE 2 END", "seen > '2020-07-01'", [2]),
        ("CASE WHEN seen < '2020-06-01' AND income > 9 THEN 1 ELSE 2 END", "income < 5", [2]),
        ("income > 100", "income > 200", [True]),
        ("EXTRACT(HOUR FROM seen) + region", "region = 3 AND EXTRACT(HOUR FROM seen) < 2", [3, 4]),
        ("FLOOR(income / 100) % 3", "income BETWEEN 100 AND 199", [1]),
        ("ROUND(income / 100)", "ABS(income) < 40", [0]),
        ("FLOOR(income / 512)", "income < 3 OR married", [0, 1, 2, None]),
        ("FLOOR(income / 512)", "income < 3 OR income IS NULL", [0, None]),
        ("FLOOR(income / 512)", "COALESCE(income, 0) < 3", [0, None]),
        ("FLOOR(income / 512)", "income <> 3", [0, 1, 2]),
        ("age", "age = 3 OR (age = 7 AND married)", [3, 7]),
    ],
)
def test_where_leaves_the_labels_that_can_occur(key: str, where: str, expected: list[object]) -> None:
    """Through periods, parts, steps, cases and arithmetic; a missing key only where the condition allows it."""
    assert list(labels(key, where)) == expected


class Sample:
    """Random people, many of them right at what a condition compares with."""

    def __init__(self, schema: Schema, rng: random.Random, size: int) -> None:
        self.schema, self.size = schema, size
        self.seen: dict[int, Cells] = {}
        self._cells: dict[str, Cells] = {}
        for name, column in schema.columns:
            low, high = getattr(column, "low", 0), getattr(column, "high", 0)
            near = [low, high] + [rng.randrange(low, high + 1) for _ in range(4)]
            if name == "seen":
                near += [moment + shift for moment in MOMENTS for shift in (-1, 0, 1, HOUR - 1, HOUR)]
            codes = [rng.choice(near) if rng.random() < 0.7 else rng.randrange(low, high + 1) for _ in range(size)]
            missing = np.array([rng.random() < 0.1 for _ in range(size)])
            self._cells[name] = Cells(np.clip(np.array(codes, dtype=np.int64), low, high), missing)

    def codes(self, name: str) -> Cells:
        return self._cells[name]

    def shown(self, key: RowFn) -> list[object]:
        """The label of each row."""
        kind, cells = key.kind(self.schema), evaluate(key, self)
        assert isinstance(kind, Code)
        gone = np.zeros(self.size, dtype=bool) if cells.missing is None else cells.missing
        return [None if none else kind.labels[int(i)] for i, none in zip(cells.values, gone, strict=True)]


TEXTS = ("2020-02-29 00:00:00", "2020-03-04 10:30:00", "2020-12-31 23:00:00", "2020-07-05 12:00:00")
MOMENTS = [microseconds(text) for text in TEXTS]


def a_key(rng: random.Random) -> str:
    """A grouped expression."""
    least = rng.choice((3, 100, 250))
    return rng.choice(
        (
            f"date_trunc('{rng.choice(PERIODS)}', seen)",
            f"EXTRACT({rng.choice(PARTS)} FROM seen)",
            "CAST(seen AS DATE)",
            f"FLOOR(income / {least})",
            f"ROUND(income / {least}) * 2 - 1",
            f"FLOOR(income / {least}) % 3",
            f"CASE WHEN seen < '{rng.choice(TEXTS)}' THEN 'a' WHEN income > {least} THEN 'b' END",
            f"CASE WHEN income < {least} THEN 1 WHEN income < {least * 2} THEN 2 ELSE 5 END",
            f"EXTRACT({rng.choice(PARTS[1:])} FROM seen) + region",
            f"income > {least}",
            "-FLOOR(income / 128)",
            "region % 4",
            f"COALESCE(FLOOR(income / {least}), -1)",
        )
    )


def a_condition(rng: random.Random, depth: int = 2) -> str:
    """A condition on what is grouped by, and on other columns."""
    if depth and rng.random() < 0.6:
        parts = [a_condition(rng, depth - 1) for _ in range(2)]
        word = rng.choice((" AND ", " AND ", " OR "))
        return f"({word.join(parts)})" if rng.random() < 0.7 else f"NOT ({word.join(parts)})"
    op, least, text = rng.choice(("<", "<=", "=", "<>", ">", ">=")), rng.choice((3, 99.75, 100, 250)), rng.choice(TEXTS)
    return rng.choice(
        (
            f"seen {op} '{text}'",
            f"seen BETWEEN '{text}' AND '{rng.choice(TEXTS)}'",
            f"date_trunc('{rng.choice(PERIODS)}', seen) {op} date_trunc('{rng.choice(PERIODS)}', TIMESTAMP '{text}')",
            f"EXTRACT({rng.choice(PARTS[1:])} FROM seen) {op} {rng.randint(0, 12)}",
            f"CAST(seen AS DATE) IN ('{text[:10]}', '{rng.choice(TEXTS)[:10]}')",
            f"income {op} {least}",
            f"income * -2 + 7 {op} {-2 * least}",
            f"FLOOR(income / 100) {op} {rng.randint(0, 10)}",
            f"income % 7 {op} {rng.randint(0, 6)}",
            f"ABS(income - 100) {op} 3",
            f"region {op} {rng.randint(0, 9)}",
            f"region IN ({rng.randint(0, 9)}, {rng.randint(0, 9)})",
            f"CASE WHEN income < {least} THEN 1 ELSE 0 END = 1",
            rng.choice(("income", "seen", "region")) + rng.choice((" IS NULL", " IS NOT NULL")),
            "COALESCE(income, 1) < 2",
            "sex = 'f'",
            "married",
        )
    )


def lost(rng: random.Random, size: int = 400) -> list[str]:
    """Rows that count and whose label was left out, or is another than without the condition."""
    key, where = a_key(rng), a_condition(rng)
    schema = table().schema
    (before,) = groups(f"SELECT {key}, COUNT(*) FROM people GROUP BY 1").keys
    found = groups(f"SELECT {key}, COUNT(*) FROM people WHERE {where} GROUP BY 1")
    (after,) = found.keys
    sample = Sample(schema, rng, size)
    assert found.where is not None
    holds = evaluate(found.where, sample)
    counts_ = holds.values & (True if holds.missing is None else ~holds.missing)
    kind = after.kind(schema)
    assert isinstance(kind, Code)
    wrong = []
    for old, new, here in zip(sample.shown(before), sample.shown(after), counts_, strict=True):
        if here and (old != new or new not in kind.labels):
            wrong.append(f"{key} WHERE {where}: {old} became {new}")
    return wrong


def test_a_label_that_is_left_out_has_no_rows() -> None:
    """Bar: 0 rows lose their label. Control: below."""
    for number in range(counts.count("keys left out by WHERE", short=150, long=20_000)):
        assert lost(counts.generator(f"boxes {number}")) == [], number


def _shrunk(visit: boxes._Visit, fn: RowFn) -> boxes.ValueRange:
    found = boxes._Visit.column(visit, fn)
    return boxes.ValueRange(found.low, np.maximum(found.high - 1, found.low), found.here, found.gone, found.tight)


def _present(visit: boxes._Visit, fn: RowFn) -> boxes.ValueRange:
    found = boxes._Visit.column(visit, fn)
    return boxes.ValueRange(found.low, found.high, found.here, ~found.here & ~found.gone, found.tight)


OVEREAGER = {"the end of a box is left out": _shrunk, "a missing column is never there": _present}


@pytest.mark.parametrize("fault", OVEREAGER)
def test_a_label_that_is_left_out_too_many_is_noticed(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: two ways to leave out more than can be left out."""
    monkeypatch.setitem(boxes._RULES, Col, OVEREAGER[fault])
    assert any(lost(random.Random(number)) for number in range(400))


def test_what_is_left_out_was_zero_before() -> None:
    """Without noise: every group that WHERE drops from the answer counts 0 rows that meet it; the others agree."""
    rng = random.Random(18)
    sample = Sample(table().schema, rng, 300)
    columns = {name: column for name, column in table().schema.columns if name in ("seen", "income", "region")}
    rows: dict[str, list[object]] = {}
    for name, column in columns.items():
        cells = sample.codes(name)
        scale = [int(code) if name != "income" else float(code * column.step) for code in cells.values]
        values = [np.datetime64(x, "us") if name == "seen" else x for x in scale]
        rows[name] = [None if gone else value for value, gone in zip(values, cells.missing, strict=True)]
    with sulq.connect(rows_of(rows), table="people", columns=columns, budget=sulq.Epsilon(9), synthetic=True) as db:
        exact = sulq.testing.exact(db)
        for key in ("date_trunc('month', seen)", "EXTRACT(HOUR FROM seen)", "FLOOR(income / 100)"):
            for where in (f"seen >= '{TEXTS[1]}'", "income < 250", "EXTRACT(DOW FROM seen) = 3 OR income IS NULL"):
                whole = exact.sql(
                    f"SELECT {key} AS k, COUNT(*) FILTER (WHERE {where}) AS n FROM people GROUP BY 1",
                    spend=sulq.Epsilon(1),
                )
                part = exact.sql(
                    f"SELECT {key} AS k, COUNT(*) AS n FROM people WHERE {where} GROUP BY 1", spend=sulq.Epsilon(1)
                )
                before, after = (
                    dict(zip(*found.to_arrow().to_pydict().values(), strict=True)) for found in (whole, part)
                )
                assert {k: n for k, n in before.items() if k in after or n} == after
                assert set(after) <= set(before)


def rows_of(rows: dict[str, list[object]]) -> object:
    """Columns as a table."""
    return pa.table({name: pa.array(values) for name, values in rows.items()})


def test_what_is_not_understood_bounds_nothing() -> None:
    """A function with no rule here leaves every label."""
    assert not boxes.understood(Like(Col("name"), "a%"))
    assert list(labels("FLOOR(income / 512)", "SQRT(income) < 2")) == [0, 1, 2]


def test_too_many_boxes_are_kept_as_they_are() -> None:
    """A condition that holds here and there, everywhere: the answer has every label, and takes no longer."""
    found = labels("date_trunc('day', seen)", "EXTRACT(SECOND FROM seen) < 1")
    assert len(found) == 367
