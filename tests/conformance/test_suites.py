"""Other projects' queries over rows: what they accept is answered as plain DuckDB would, what they refuse is refused.

The suites are SmartNoise SQL's, Qrlew's and Uber's elastic sensitivity's, in tests/sql/suites.py.
"""

from __future__ import annotations

import functools
import re

import pytest

import sulq
import sulq.testing
from sulq.errors import QuestionError
from tests.sql import suites
from tests.sql.against import disagreements, plain
from tests.sql.real import Dataset, dataset, judged

BAR = 0.97
# A join of private tables on something else than the person: a person's row could meet everybody's (SR15).
LOST = {
    "uber-elastic-sensitivity-0028", "uber-elastic-sensitivity-0029", "uber-elastic-sensitivity-0030",
    "uber-elastic-sensitivity-0038",
}  # fmt: skip


@functools.cache
def opened(name: str) -> Dataset:
    """Each dataset once."""
    return dataset(name)


def asked(case: suites.Case) -> Dataset:
    """The dataset a query is put to."""
    table = case.facts.tables[0].schema
    unbounded = table.table == "PUMS" and isinstance(table.find("income"), sulq.Text)
    return opened("PUMS without bounds" if unbounded else table.table)


def verdict(case: suites.Case) -> list[str]:
    """What is wrong with the answer to an accepted query."""
    data = asked(case)
    exact = sulq.testing.exact(data.database)
    found = exact.sql(case.sql, spend=sulq.EpsilonDelta(1, 1e-6)).to_pandas()
    sql = judged(case.sql)
    cut = re.search(r"\bLIMIT\b", sql)
    wanted = plain(re.sub(r"\bLIMIT \d+( OFFSET \d+)?", "", sql), data.frames)
    if len(found.columns) != len(wanted.columns):
        return [f"{len(found.columns)} columns"]
    for column in [i for i, name in enumerate(wanted.columns) if "random" in str(name)]:
        found.isetitem(column, 0.0)
        wanted.isetitem(column, 0.0)
    if cut:  # which rows are shown is a matter of their noisy values; each must be a true one, or a group without rows
        rows = found.set_axis(wanted.columns, axis=1)
        empty = (rows.iloc[:, 1:].fillna(0) == 0).all(axis=1) if len(rows.columns) > 1 else rows.index < 0
        return disagreements(wanted, rows[~empty], away=1e-5)
    return disagreements(found.set_axis(wanted.columns, axis=1), wanted, away=1e-5, whole="GROUP BY" not in sql)


def test_what_others_answer_is_answered_and_right() -> None:
    """At least 97% of the accepted queries; the rest lose the person and are refused for that."""
    wrong: dict[str, str] = {}
    accepted = [case for case in suites.cases() if case.accept]
    for case in accepted:
        try:
            found = verdict(case)
        except QuestionError as refused:
            found = [refused.code]
        if found:
            wrong[case.id] = found[0]
    assert len(wrong) <= (1 - BAR) * len(accepted), wrong
    assert set(wrong) <= LOST, wrong
    assert {wrong[name] for name in wrong} <= {"person-lost"}


@pytest.mark.parametrize("reason", ["privacy", "parameter"])
def test_what_others_refuse_for_privacy_is_refused(reason: str) -> None:
    """Every one of them, before anything is spent."""
    refused = [case for case in suites.cases() if not case.accept and case.reason == reason]
    assert refused
    for case in refused:
        database = asked(case).database
        before = database.spent
        with pytest.raises(QuestionError):
            database.sql(case.sql, spend=sulq.EpsilonDelta(1, 1e-6))
        assert database.spent == before
