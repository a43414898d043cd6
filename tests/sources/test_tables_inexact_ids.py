"""Ids of which no exact number can be told are found in SQL (SR25); test_persons.py compares them with Python."""

from __future__ import annotations

import duckdb
import pytest

from sulq.sources import tables
from sulq.sources.decode.person import Form


@pytest.mark.parametrize(
    ("form", "cells", "unfit"),
    [
        ("double", "(7.0), (-0.0), ('nan'), ('inf'), (NULL)", []),
        ("double", "(7.0), (0.5), (9007199254740992.0)", [0.5, 2.0**53]),
        ("figures", "('7'), (' 007 '), (''), (NULL)", []),
        ("figures", "('7'), ('1e5'), ('8 8')", ["1e5", "8 8"]),
    ],
)
def test_ids_that_are_not_exact_are_found_SR25(form: Form, cells: str, unfit: list[object]) -> None:
    """Fractions, numbers past what the type holds exactly, and texts that are no digits; blanks are missing."""
    kind = "DOUBLE" if form == "double" else "VARCHAR"
    with duckdb.connect() as made:
        made.execute(f"CREATE TABLE t (a {kind})")
        made.execute(f"INSERT INTO t VALUES {cells}")
        found = made.execute(f"SELECT a FROM t WHERE {tables.unfit_sql(form, 'a')} ORDER BY a").fetchall()
    assert [cell for (cell,) in found] == unfit


def test_the_owner_hears_of_the_column_and_of_no_id_SR25() -> None:
    """The message names the table and the column."""
    assert tables.inexact("visits", "pid", "figures").code == "person-type"
    assert "'pid' of 'visits'" in str(tables.inexact("visits", "pid", "double"))
