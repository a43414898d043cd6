"""Erased persons are known by a keyed digest, and their records left out one by one."""

from __future__ import annotations

import duckdb
import pytest

from sulq.sources.decode.person import Person
from sulq.sources.erasure import TABLE, digest_of, digest_sql, without_erased
from sulq.sources.source import TableSource

KEY = bytes(range(32))


@pytest.mark.parametrize("text", ["a", 'o\'clock "q"', "é", "7", "x" * 300])
def test_a_digest_is_the_same_in_python_and_in_sql(text: str) -> None:
    """By the key: another one makes another digest, and no text stands in it."""
    asked = f"SELECT {digest_sql(KEY, '$t')}"
    assert duckdb.execute(asked, {"t": text}).fetchone() == (digest_of(KEY, text),)
    assert digest_of(KEY, text) != digest_of(KEY[::-1], text)
    assert len(digest_of(KEY, text)) == 64


def test_records_of_erased_persons_are_left_out_and_no_other_SR25() -> None:
    """A record that names nobody stays, for its own rule to drop it; without persons the source is as it was."""
    with duckdb.connect() as db:
        db.execute("CREATE TABLE t AS SELECT * FROM (VALUES ('a', 1), ('b', 2), (NULL, 3), ('a', 4)) AS v(s0, s1)")
        db.execute(f"CREATE TABLE {TABLE} AS SELECT ? AS item", [digest_of(KEY, "a")])
        source = TableSource("t", {}, 4, person=Person("text", "s0", "a"), plain="t")
        found = without_erased(source, KEY)
        for relation in (found.relation, found.plain):
            assert db.execute(f"SELECT * FROM {relation} ORDER BY s1").fetchall() == [("b", 2), (None, 3)]
        assert found.whole == "t"
    plain = TableSource("t", {}, 4)
    assert without_erased(plain, KEY) is plain
