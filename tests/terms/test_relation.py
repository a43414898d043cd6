"""Relations: one table, so far."""

from __future__ import annotations

from sulq.terms.relation import Table


def test_the_only_table_needs_no_name():
    """An empty name stands for the one table there is."""
    assert Table() == Table("")
    assert Table("people") != Table()
