"""Statements whose sums over parts of whole persons add up, as the certificate says: run on such parts, and on all."""

from __future__ import annotations

from collections import Counter
from contextlib import closing

import duckdb
import pytest

from sulq.kernel.facts import Facts
from sulq.kernel.relations import certify
from sulq.sources.engines import open_dataset
from tests.sources.test_tables import dataset

ROWS = {
    "kept0": [(o, o * 3 % 50, o % 4) for o in range(40)],  # o, c0, c1
    "kept1": [(i * 7 % 45, i % 10) for i in range(120)],  # o, c0
    "kept2": [(code, code % 2) for code in range(3)],  # c0, c1: public
}
COLUMNS = {
    "kept0": "o BIGINT, c0 TINYINT, c1 TINYINT",
    "kept1": "o BIGINT, c0 TINYINT",
    "kept2": "c0 TINYINT, c1 TINYINT",
}
PAIRS = "(SELECT l.c0 AS a, r.c0 AS b, l.o FROM {0} AS l {1} {2} AS r ON {3})"
OWN = PAIRS.format("(SELECT * FROM kept0)", "JOIN", "(SELECT * FROM kept1)", "l.o = r.o")
LEFT = PAIRS.format("(SELECT * FROM kept0)", "LEFT JOIN", "(SELECT * FROM kept1)", "l.o = r.o")
PUBLIC = PAIRS.format("(SELECT * FROM kept0)", "JOIN", "(SELECT * FROM kept2)", "l.c1 = r.c0")
NUMBERS = "(SELECT c0 FROM kept0 UNION ALL SELECT c0 FROM {0})"
APART = {
    "two tables": f"SELECT count(*) AS n, sum(b) AS s FROM {OWN}",
    "left": f"SELECT count(*) AS n, count(b) AS m FROM {LEFT}",
    "public": f"SELECT count(*) AS n, sum(b) AS s FROM {PUBLIC}",
    "keys": f"SELECT a AS k, count(DISTINCT o) AS n FROM {OWN} GROUP BY k",
    "per person": f"SELECT sum(n) AS s, count(*) AS m FROM (SELECT o, count(*) AS n FROM {OWN} GROUP BY o) WHERE n > 2",
    "union": f"SELECT count(*) AS n, sum(c0) AS s FROM {NUMBERS.format('kept1')}",
}
TOGETHER = {
    "different rows": f"SELECT count(*) AS n FROM (SELECT DISTINCT b FROM {OWN})",
    "public rows added": f"SELECT count(*) AS n FROM {NUMBERS.format('kept2')}",
    "public rows alone": "SELECT count(*) AS n FROM (SELECT c0 FROM kept2 UNION ALL SELECT c0 FROM kept2)",
}


@pytest.fixture(scope="module", name="known")
def fixture_known() -> Facts:
    """The facts of two tables of the same persons and a public one."""
    with closing(open_dataset(dataset())) as engine:
        return engine.kernel_facts


def asked(sql: str, parts: int) -> Counter[object]:
    """A statement's sums by its key, added over so many parts of whole persons, each with all public rows."""
    found: Counter[object] = Counter()
    for part in range(parts):
        with closing(duckdb.connect()) as db:
            for name, rows in ROWS.items():
                db.execute(f"CREATE TABLE {name} ({COLUMNS[name]})")
                here = [row for row in rows if name == "kept2" or row[0] % parts == part]
                if here:
                    db.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(here[0]))})", here)
            cursor = db.execute(sql)
            names = [item[0] for item in cursor.description]
            for row in cursor.fetchall():
                key = row[0] if names[0] == "k" else None
                for name, cell in zip(names, row, strict=True):
                    found[(key, name)] += 0 if name == "k" or cell is None else cell
    return +found


@pytest.mark.parametrize("name", APART)
def test_sums_over_parts_of_whole_persons_add_up_SR15(known: Facts, name: str) -> None:
    """Joins by the person and with public tables, and what is made of them; in one part and in many."""
    assert certify(APART[name], known).apart
    whole = asked(APART[name], 1)
    assert sum(whole.values()) > 0
    for parts in (2, 9):
        assert asked(APART[name], parts) == whole


@pytest.mark.parametrize("name", TOGETHER)
def test_what_does_not_add_up_is_not_apart_SR15(known: Facts, name: str) -> None:
    """Different rows of several persons, and public rows that each part would add anew: parts give more."""
    assert not certify(TOGETHER[name], known).apart
    assert asked(TOGETHER[name], 7) != asked(TOGETHER[name], 1)
