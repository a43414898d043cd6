"""Random queries against DuckDB: without noise, every answer is what plain SQL gives over the same bounded rows."""

from __future__ import annotations

import sulq.testing
from tests import counts
from tests.sql.against import disagreements, plain
from tests.sql.queries import Grammar, opened, tables

BATCH = 25  # queries asked of one database


def test_random_queries_are_answered_as_duckdb_would() -> None:
    """Bar: 0 differences (20,000 queries in the audit). Control: the next test."""
    planned = counts.count("random SQL against DuckDB", short=500, long=20_000)
    for number in range(-(-planned // BATCH)):
        rng = counts.generator(f"sql {number}")
        data = tables(rng)
        grammar = Grammar(rng)
        with opened(data) as db:
            exact = sulq.testing.exact(db)
            for _ in range(BATCH):
                sql = grammar.query()
                found = exact.sql(sql, spend=sulq.Epsilon(1)).to_pandas()
                wanted = plain(sql, data)
                assert list(found.columns) == list(wanted.columns), sql
                keys = tuple(name for name in found.columns if name.startswith("k"))
                assert disagreements(found, wanted, keys=keys, whole=not keys) == [], sql


def test_a_wrong_answer_is_noticed() -> None:
    """Control: the comparison sees another filter, another value and another key."""
    rng = counts.generator("control")
    data = tables(rng)
    right = plain("SELECT sex AS k0, COUNT(*) AS v0, AVG(age) AS v1 FROM people GROUP BY sex", data)
    for wrong in (
        "SELECT sex AS k0, COUNT(*) AS v0, AVG(age) AS v1 FROM people WHERE age > 0 GROUP BY sex",
        "SELECT sex AS k0, COUNT(age) AS v0, AVG(age) AS v1 FROM people GROUP BY sex",
        "SELECT UPPER(sex) AS k0, COUNT(*) AS v0, AVG(age) AS v1 FROM people GROUP BY sex",
        "SELECT sex AS k0, COUNT(*) AS v0, AVG(age) + 0.001 AS v1 FROM people GROUP BY sex",
    ):
        assert disagreements(plain(wrong, data), right, keys=("k0",)) != []
    assert disagreements(right, right, keys=("k0",), whole=True) == []
