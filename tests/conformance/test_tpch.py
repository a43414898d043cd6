"""The 22 queries of TPC-H with customers as the people: answered as DuckDB would, or refused for a true reason."""

from __future__ import annotations

import functools
import json

import pytest

import sulq
import sulq.testing
from sulq.errors import QuestionError
from tests import counts
from tests.data import need
from tests.sql import tpch
from tests.sql.against import disagreements, plain, told
from tests.sql.real import typed

# Why each of these is refused; all others are answered.
REFUSED = {
    2: "sql-unsupported",  # a subquery's value decides about rows: it would have to be released first
    10: "raw-rows",  # one line for each customer
    15: "sql-unsupported",  # a released table in a join
    16: "open-keys",  # different suppliers in more groups than are listed
    17: "sql-unsupported",  # as 2
    18: "sql-unsupported",  # as 2
    20: "sql-unsupported",  # as 2
    21: "sql-unsupported",  # a correlated subquery with an inequality
    22: "sql-unsupported",  # as 2
}


@functools.cache
def opened() -> tuple[dict[str, object], sulq.Database, sulq.Database]:
    """Tables and database, once, and the same database without anybody's rows."""
    data = tpch.tables(counts.generator("tpch"))
    nobody = {name: frame if name in tpch.PUBLIC else typed(frame.head(0)) for name, frame in data.items()}
    return data, tpch.opened(data), tpch.opened(nobody)


@pytest.mark.parametrize("number", range(1, 23))
def test_the_queries_of_tpch(number: int) -> None:
    """Equal to DuckDB's answer up to the grid of a product, or refused with the code listed above."""
    sql = json.loads(need("sql/tpch-22.json").read_text())["queries"][number - 1]["sql"]
    sql = sql.replace("'AIR REG'", "'REG AIR'")  # a mode that the benchmark's own generator has
    data, database, empty = opened()
    exact = sulq.testing.exact(database)
    if number in REFUSED:
        with pytest.raises(QuestionError) as refused:
            exact.sql(sql, spend=sulq.EpsilonDelta(1, 1e-6))
        assert refused.value.code == REFUSED[number]
        return
    found = exact.sql(sql, spend=sulq.EpsilonDelta(1, 1e-6)).to_pandas()
    wanted = plain(sql, data)
    nothing = sulq.testing.exact(empty).sql(sql, spend=sulq.EpsilonDelta(1, 1e-6)).to_pandas()
    assert disagreements(found, told(wanted, nothing), empties=nothing, away=2e-3) == []
