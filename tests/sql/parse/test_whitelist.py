"""Tests of sulq.sql.parse.whitelist."""

from __future__ import annotations

from sulq.sql.parse.expressions import READERS
from sulq.sql.parse.whitelist import AGGREGATES, CALLS, PARTS


def test_a_node_class_is_read_in_one_way():
    """No class stands in two tables, so what reads it does not hang on the order they are looked into."""
    tables = [set(READERS), set(CALLS), set(AGGREGATES), set(PARTS)]
    assert sum(map(len, tables)) == len(set().union(*tables))


def test_the_parts_that_are_read_exist():
    """Every part named in a table is one the parser sets, or nothing would ever be read of it."""
    for kind, (_, parts) in CALLS.items():
        assert {"expressions" if part == "*" else part for part in parts} <= set(kind.arg_types), kind
    for kind, (parts, _) in READERS.items():
        assert set(parts) - {"negate", "safe"} <= set(kind.arg_types), kind
