"""A person's text: the same in SQL and in Python for every form of id, and one for each value (SR25)."""

from __future__ import annotations

import math

import duckdb
import numpy as np
import pytest

from sulq.curator.engines import person
from sulq.errors import SetupError
from sulq.terms.domain import Category, Int, Real
from tests import counts
from tests.counts import count

SPECIAL = {
    "truth": ([True, False, None], "BOOLEAN"),
    "whole": ([0, -1, 2**53 + 1, 2**63 - 1, -(2**63), None], "BIGINT"),
    "number": (["7", "-0.5", None], "VARCHAR"),
    "double": ([0.0, -0.0, 7.0, -7.0, 2.0**53 - 1, 2.0**53, 0.5, math.nan, math.inf, -math.inf, 1e300, None], "DOUBLE"),
    "single": ([2.0**24 - 1, 2.0**24, None], "DOUBLE"),
    "half": ([2.0**11 - 1, 2.0**11, None], "DOUBLE"),
    "text": (["7", " A ", "e\u0301", "", "\u212a", "7.00", None], "VARCHAR"),
    "uuid": (["0a" * 16, None], "VARCHAR"),
    "time": (["2020-01-01 00:00:00.000000001", None], "VARCHAR"),
    "nothing": ([None], "VARCHAR"),
    "date": ([0, -719_162, 2_932_896, 2_932_897, 2**62, None], "BIGINT"),
    "moment": ([0, -1, 10**15 + 1, 500_000, 2**62, None], "BIGINT"),
    "instant": ([0, -1, -1000, 999, 10**18 + 1, 10**18 + 120, -(10**18) - 1, None], "BIGINT"),
    "figures": (
        ["7", "007", "+7.", "-7.50", ".5", "-0", "-0.00", "0", "1e5", "", " 8 ", "8 8", "٣", ".", "+", "1.2.3", None],
        "VARCHAR",
    ),
}  # fmt: skip


def both(form: person.Form, cells: list[object], kind: str, fold: str | None) -> tuple[list[object], list[object]]:
    """The texts of some cells in SQL and in Python, and whether any cell is unfit in both."""
    table = duckdb.connect()
    table.execute(f"CREATE TABLE t (i INTEGER, a {kind})")
    table.executemany("INSERT INTO t VALUES (?, ?)", list(enumerate(cells)))
    found = table.execute(f"SELECT nullif({person.sql(form, 'a', fold)}, '') FROM t ORDER BY i").fetchall()
    missing = np.array([cell is None for cell in cells], dtype=np.bool_)
    stored = {"DOUBLE": np.float64, "BIGINT": np.int64, "BOOLEAN": np.bool_}.get(kind, object)
    values = np.array([0 if cell is None and stored is not object else cell for cell in cells], dtype=stored)
    if form in person.UNSURE:
        for i, cell in enumerate(cells):
            (unfit,) = table.execute(f"SELECT {person.unfit_sql(form, 'a')} FROM t WHERE i = {i}").fetchone()
            assert bool(unfit) == person.unfit(form, values[i : i + 1], missing[i : i + 1]), (form, cell)
    return [text for (text,) in found], person.texts(form, values, missing, fold).tolist()


@pytest.mark.parametrize("fold", [None, "case", "spelling"])
@pytest.mark.parametrize("form", SPECIAL)
def test_T97_sql_and_python_name_the_same_people(form: person.Form, fold: str | None) -> None:
    """Special cells of every form; which of them cannot be told exactly, too."""
    told, written = both(form, *SPECIAL[form], fold)
    assert told == written


def test_T97_generated_ids_are_named_alike_and_apart() -> None:
    """Instants by the nanosecond and digits with needless zeros: equal values have one text, others another."""
    rng = counts.generator("persons")
    size = count("ids in SQL and in Python", short=300, long=20_000)
    instants = [rng.choice((0, 10**18, -(10**18), 10**12)) + rng.randint(-5000, 5000) for _ in range(size)]
    told, written = both("instant", instants, "BIGINT", None)
    assert told == written
    assert len(set(told)) == len(set(instants))
    digits = [
        f"{rng.choice('+-')}{'0' * rng.randint(0, 2)}{rng.choice('0157')}.{rng.choice('05')}0" for _ in range(size)
    ]
    told, written = both("figures", digits, "VARCHAR", None)
    assert told == written
    assert len(set(told)) == len({float(text) for text in digits})


def test_a_declared_number_is_read_as_one() -> None:
    """Only texts, only where they are declared numbers, and never where spelling decides."""
    assert person.declared("text", Int(0, 9), None) == person.declared("text", Real(0, 9), "case") == "figures"
    assert person.declared("text", Int(0, 9), "spelling") == person.declared("text", None, None) == "text"
    assert person.declared("text", Category(("a",)), None) == "text"
    assert person.declared("whole", Int(0, 9), None) == "whole"


def test_kinds_that_may_stand_side_by_side() -> None:
    """Numbers of any type; UUIDs beside texts where case is folded; a column that is all missing beside anything."""
    person.agree([("a", "p", "whole"), ("b", "p", "double"), ("c", "p", "number"), ("d", "p", "nothing")], None)
    person.agree([("a", "p", "uuid"), ("b", "p", "text")], "case")
    person.agree([("a", "p", "text"), ("b", "p", "whole"), ("c", "p", "date")], "spelling")
    with pytest.raises(SetupError, match=r"UUIDs in a\.p and texts in b\.p") as refused:
        person.agree([("a", "p", "uuid"), ("b", "p", "text")], None)
    assert refused.value.code == "person-type"
