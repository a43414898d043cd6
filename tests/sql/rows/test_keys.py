"""Tests of sulq.sql.rows.keys."""

from __future__ import annotations

import pytest

from sulq.language.kinds import Code, Scalar, Words
from sulq.language.rowfn import Each, OrMissing
from tests.sql.asking import groups, same, table


def labels(sql: str) -> tuple[object, ...] | None:
    """The labels of a query's one key; None where the key is open."""
    found = groups(sql)
    (key,) = found.keys
    kind = key.kind(table().schema)
    return kind.labels if isinstance(kind, Code) else None


@pytest.mark.parametrize(
    ("key", "where", "expected"),
    [
        ("sex", "", ("f", "m", None)),
        ("sex", "sex IS NOT NULL", ("f", "m")),
        ("sex", "sex = 'm'", ("m",)),
        ("married", "", (False, True, None)),
        ("code", "code > 1", (3, 7)),
        ("age", "age BETWEEN 18 AND 20", (18, 19, 20)),
        ("age", "age IN (5, 3) AND income > 2", (3, 5)),
        ("age / 50", "", (0, 1, 2, None)),
        ("age % 2 = 0", "age > 3", (False, True)),
        ("CASE WHEN age < 50 THEN 50 ELSE 1 END", "", (1, 50)),
        ("CASE WHEN age < 50 AND married THEN 50 ELSE 1 END", "", (1, 50)),
        ("CASE WHEN age < 50 AND married THEN 'a' END", "", ("a", None)),
        ("UPPER(educ)", "educ LIKE 's%'", ("SECONDARY",)),
        ("COALESCE(sex, 'x')", "", ("f", "m", "x")),
        ("FLOOR(income / 512)", "", (0, 1, 2, None)),
        ("FLOOR(income / 512)", "income > 3", (0, 1, 2)),
        ("EXTRACT(YEAR FROM born)", "", (1990, 1991, None)),
        ("EXTRACT(YEAR FROM seen)", "", (2020, 2021, None)),
        ("date_trunc('year', born)", "", ("1990-01-01", "1991-01-01", None)),
        ("date_trunc('year', seen)", "", ("2020-01-01T00:00:00", "2021-01-01T00:00:00", None)),
        ("region + code", "", (*range(1, 17), None)),
        ("income > 3", "", (False, True, None)),
        ("name", "", None),
        ("income", "", None),
    ],
)
def test_labels_are_those_that_can_occur(key: str, where: str, expected: tuple[object, ...] | None) -> None:
    """Every label a row can have and none that WHERE excludes; a missing key only where there can be one."""
    condition = f" WHERE {where}" if where else ""
    assert labels(f"SELECT {key}, COUNT(*) FROM people{condition} GROUP BY 1") == expected


def test_a_plain_column_stays_what_it_is() -> None:
    """No relabelling where nothing changes: the engines know a column's own codes."""
    (key,) = groups("SELECT age, COUNT(*) FROM people GROUP BY age").keys
    from_scratch = OrMissing(Each(table().express().cell(_place("age")).fn))
    assert same(key, from_scratch)


def _place(name: str) -> object:
    rows = table()
    return next(node for node, item in zip(rows.bound, rows.items, strict=True) if item.name == name)


def test_open_keys_are_left_as_they_are() -> None:
    """Free text and numbers of very many values are found in the data, above a threshold (SR14)."""
    schema = table().schema
    (text,) = groups("SELECT name, COUNT(*) FROM people GROUP BY name").keys
    assert isinstance(text.kind(schema), Words)
    (number,) = groups("SELECT income * age, COUNT(*) FROM people GROUP BY 1").keys
    assert isinstance(number.kind(schema), Scalar)


def test_a_condition_no_row_meets_leaves_the_labels() -> None:
    """An impossible WHERE does not make an impossible key."""
    assert labels("SELECT sex, COUNT(*) FROM people WHERE sex = 'f' AND sex = 'm' GROUP BY 1") == ("f", "m")
