"""Queries that are small to write and large to follow: refused before they are planned, or answered soon (T74)."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

import pytest

import sulq
from sulq import EpsilonDelta
from sulq.errors import SulqError
from sulq.sql.parse import tree as parsing
from sulq.sql.parse.text import parse
from sulq.sql.parse.tree import MAX_QUERY_BYTES
from tests.sql.bombs import BOMBS
from tests.sql.queries import opened, tables

SPEND = EpsilonDelta(1, 1e-5)
SOON = 2.0  # seconds of the processor's time; on an idle machine a refusal takes less than a tenth
LATER = 20.0  # what is answered is worked out cell by cell
CODES = {"too-large", "sql-syntax", "sql-unsupported", "bad-literal", "unbounded", "wrong-kind", "raw-rows"}
CODES |= {"unknown-column", "person-lost", "not-grouped", "join-fan-out", "bad-question", "unknown-category"}


@pytest.fixture(scope="module")
def db() -> Iterator[sulq.Database]:
    """The tables all bombs are about."""
    with opened(tables(random.Random(1), 5)) as found:
        found.explain("SELECT MEDIAN(age), CORR(age, income) FROM people GROUP BY sex", spend=SPEND)  # all is loaded
        yield found


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_or_answered_soon_T74(db: sulq.Database, name: str) -> None:
    """Bytes, words, depth, joins, groups, lists, unions, WITH queries, grouping sets, columns: none takes long.

    Bar: a refusal in less than 100 ms. Control: test_without_limits_they_go_on_to_be_planned_T74.
    """
    start = time.process_time()
    try:
        db.explain(BOMBS[name], spend=SPEND)
        found = "answered"
    except SulqError as error:
        found = error.code
    took = time.process_time() - start
    print(f"{name}: {found} in {1000 * took:.0f} ms")
    assert found == "answered" or found in CODES
    assert took < (LATER if found == "answered" else SOON)


def test_a_text_of_any_length_is_refused_at_once_T74() -> None:
    """A hundred megabytes cost no more than a look at their length."""
    text = "SELECT '" + "a" * 100_000_000 + "'"
    start = time.process_time()
    with pytest.raises(SulqError) as caught:
        parse(text)
    assert caught.value.code == "too-large"
    assert time.process_time() - start < SOON
    assert len(text) > MAX_QUERY_BYTES


def test_without_limits_they_go_on_to_be_planned_T74(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: it is the limits that stop them, not some slip of the parser's."""
    for name in ("items500 avg", "vars", "scalar sub differ", "plus chain 90", "joins 30", "case wide", "order"):
        with pytest.raises(SulqError) as caught:
            parse(BOMBS[name])
        assert caught.value.code == "too-large"
        with monkeypatch.context() as patch:
            for limit, value in {
                "MAX_TOKENS": 10**6,
                "MAX_DEPTH": 10**3,
                "MAX_OF_A_CONSTRUCT": (),
                "MAX_SIDE_BY_SIDE": (),
            }.items():
                patch.setattr(parsing, limit, value)
            assert parse(BOMBS[name]).query
