"""The rows that a statistic reads: listed by certified text alone; a deceiver for each rule."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from sulq.kernel.facts import Column, Facts, Refused, Table
from sulq.kernel.matrix import text
from sulq.kernel.whole.asked import Asked
from sulq.kernel.whole.functions import Aggregated, Declared, Owned, Range, Word
from sulq.kernel.whole.graphs import Graph, Triangles
from sulq.kernel.whole.listing import altered
from sulq.kernel.whole.rows import ToSorted, ToUnique

NUMBER = Column("SMALLINT", 0, 99)
HASHES, PLACES = Column("BIGINT", 0, 2**60 - 1, missing=False), Column("BIGINT", 0, 2**40, missing=False)
COLUMNS = (("c0", NUMBER), ("c1", NUMBER), ("c2", Column("VARCHAR")), ("h", HASHES), ("p", PLACES))
ROWS = 3
FACTS = Facts(
    (
        Table(("data", "rows"), COLUMNS, ROWS, owned=True),
        Table(("data", "open"), COLUMNS, 0, owned=False, size=9),
        Table(("data", "one"), COLUMNS, 1, owned=False),
    ),
    "zero_out",
    row_is_person=False,
)
ONE = Fraction(1)
WORD = Word((ONE, ONE), Range(ONE, 0, 9), Fraction(2), placed=True)
OWNERS = {"own": Owned(WORD, ("data", "one"), ("c1", "c0"))}
UNIQUE = Asked(ToUnique(2))
BLOCKS = Asked(Aggregated("own", (ONE,), 4, (1, 1, 1), Range(ONE, 0, 9)))
OWN = Asked(Declared("own", WORD))
PLAIN = "SELECT c0, c1 FROM data.rows"


def test_rows_of_a_kept_table_are_as_many_as_a_person_has() -> None:
    """With a condition or without; of two parts of them twice as many; public rows get noise like any other."""
    assert altered(UNIQUE, PLAIN, FACTS, {}) == ROWS
    assert altered(UNIQUE, f"{PLAIN} WHERE c1 > 3 AND c0 IS NOT NULL", FACTS, {}) == ROWS
    assert altered(Asked(Triangles(Graph(100))), PLAIN, FACTS, {}) == ROWS
    assert altered(Asked(ToSorted()), "SELECT p, c0 FROM data.rows", FACTS, {}) == ROWS
    assert altered(UNIQUE, f"{PLAIN} UNION ALL {PLAIN}", FACTS, {}) == 2 * ROWS
    assert altered(UNIQUE, "SELECT c0, c1 FROM data.open", FACTS, {}) == 1


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT c0 FROM data.rows",
        "SELECT c0, c1, p FROM data.rows",
        "SELECT c0, c2 FROM data.rows",
        "SELECT c0, CAST(c1 AS DOUBLE) AS x FROM data.rows",
        "SELECT c0, o FROM data.rows",
        "SELECT c0, count(*) FROM data.rows GROUP BY c0",
        "SELECT c0, row_number() OVER () AS n FROM data.rows",
        "SELECT l.c0, r.c1 FROM data.rows AS l JOIN data.rows AS r ON l.c0 = r.c0",
        "SELECT c0, (SELECT max(c1) FROM data.rows) AS x FROM data.rows",
        "SELECT c0, c1 FROM data.other",
        "SELECT c0, c1 FROM data.rows ORDER BY c1 LIMIT 2",
        "SELECT c0, rowid FROM data.rows",
        "nothing that DuckDB reads",
    ],
)
def test_other_rows_than_a_statistic_reads_are_refused(sql: str) -> None:
    """Other columns, texts, fractions, sums, whatever looks at several rows, and what is no table of these."""
    with pytest.raises(Refused):
        altered(UNIQUE, sql, FACTS, {})


@pytest.mark.parametrize(
    ("sql", "certain"),
    [
        ("SELECT h, c0 FROM data.rows", True),
        ("SELECT h, c0 FROM data.rows WHERE c1 > 3", True),
        ("SELECT h, c0 FROM (SELECT *, c1 + 1 AS t0 FROM data.rows) WHERE t0 > 3", True),
        ("SELECT c1, c0 FROM data.rows", False),  # a person's rows would be in several blocks
        ("SELECT p, c0 FROM data.rows", False),
        ("SELECT c1 AS h, c0 FROM data.rows", False),
        ("SELECT h + c1 AS h, c0 FROM data.rows", False),
        ("SELECT h, c0 FROM (SELECT c1 AS h, c0 FROM data.rows)", False),
        ("SELECT h, c0 FROM (SELECT h, c0 FROM data.rows UNION ALL SELECT c1 AS h, c0 FROM data.rows)", False),
        ("SELECT h, c0 FROM data.rows UNION ALL SELECT h, c0 FROM data.rows", False),
        ("SELECT l.h, r.c0 FROM data.rows AS l JOIN data.rows AS r ON l.o = r.o", False),
        ("SELECT h, c0 FROM (SELECT *, c1 AS h FROM data.rows)", False),
        ("SELECT h, c0 FROM (SELECT c1 AS h, * FROM data.rows)", False),
    ],
)
def test_a_block_is_told_by_the_hash_that_is_kept_SR11(sql: str, certain: bool) -> None:  # noqa: FBT001
    """By reference alone, through layers of named operands; whatever else is called by that name is refused."""
    if certain:
        assert altered(BLOCKS, sql, FACTS, {}) == ROWS
    else:
        with pytest.raises(Refused):
            altered(BLOCKS, sql, FACTS, {})


def test_a_declared_function_sees_the_rows_it_is_declared_for_S4_13() -> None:
    """All of them, its own columns in their order, each in its place. Control: exactly that is certified."""
    listed = text(("data", "one"), ("p", "c1", "c0"))
    assert altered(OWN, listed, FACTS, OWNERS) == 1
    for sql in (
        f"{listed} WHERE c0 > 1",  # how many rows there are would depend on them
        "SELECT p, c0, c1 FROM data.one",
        "SELECT h, c1, c0 FROM data.one",
        "SELECT p, c1, c0 FROM data.open",
        "SELECT p, c1, 0 * c0 AS c0 FROM data.one",
    ):
        with pytest.raises(Refused):
            altered(OWN, sql, FACTS, OWNERS)
    whose = {"own": OWNERS["own"]._replace(table=("data", "rows"))}  # of whom rows may be left out
    with pytest.raises(Refused):
        altered(OWN, text(("data", "rows"), ("p", "c1", "c0")), FACTS, whose)


def test_a_wrong_certificate_is_refused_SR5() -> None:
    """Of another function, of less than the owner declares, or of a function that no owner has declared."""
    listed = text(("data", "one"), ("p", "c1", "c0"))
    less = replace(WORD, sensitivity=ONE)
    for asked, owners in (
        (Asked(Declared("own", less)), OWNERS),
        (Asked(Declared("other", WORD)), OWNERS),
        (OWN, {}),
    ):
        with pytest.raises(Refused):
            altered(asked, listed, FACTS, owners)


def test_a_function_of_rows_without_places_sees_all_of_a_table_S4_27() -> None:
    """Its own columns in their order, of persons with several rows too. Control: exactly that is certified."""
    word = replace(WORD, placed=False)
    own, listed = Asked(Declared("own", word)), text(("data", "rows"), ("c1", "c0"))
    owners = {"own": Owned(word, ("data", "rows"), ("c1", "c0"))}
    assert altered(own, listed, FACTS, owners) == ROWS
    for sql in (
        f"{listed} WHERE c0 > 1",  # the owner's word is about whole tables
        "SELECT c0, c1 FROM data.rows",
        "SELECT h, c0 FROM data.rows",
        "SELECT c1, c0 FROM data.one",
        f"{listed} UNION ALL {listed}",
    ):
        with pytest.raises(Refused):
            altered(own, sql, FACTS, owners)
    with pytest.raises(Refused):  # of a function that is declared of rows in their places
        altered(own, text(("data", "one"), ("c1", "c0")), FACTS, OWNERS)
