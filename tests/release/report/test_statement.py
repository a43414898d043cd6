"""The promise in words: whom it names and by what factor follows from the unit and the price, whatever these are."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

import sulq
from sulq import Epsilon, EpsilonDelta, Queries, Rho, Unit
from sulq.language.domain import Schema
from sulq.language.facts import TableFacts
from sulq.language.privacy import Loss, epsilon_of
from sulq.release.base import Paid
from sulq.release.report.statement import RHO_DELTA, method, promise

TABLE = TableFacts(Schema("people", (("age", sulq.Int(0, 100)),)))
UNITS = [
    (Unit(), "Every single row", "Whether any one row is in the data or not"),
    (Unit("id", rows=1), "One row of each counts", "Whether any one person is in the data or not"),
    (Unit("id", rows=7), "At most 7 rows of each count", "Whether any one person"),
    (Unit("id", rows=7, neighbors="replace_one"), "At most 7 rows", "Putting another person in any one's place"),
    (Unit("id", rows=1, neighbors="zero_out"), "One row of each", "Blanking what any one person says"),
]


def said(unit: Unit, *spent: Loss, tables: tuple[TableFacts, ...] = (TABLE,)) -> dict[str, str]:
    """The promise by its headings."""
    parts = [Paid(loss, unit, "dp") for loss in spent]
    return {one.heading: " ".join(one.paragraphs) for one in promise(parts, tables)}


@pytest.mark.parametrize(("unit", "who", "change"), UNITS, ids=str)
def test_the_promise_names_whom_it_protects(unit: Unit, who: str, change: str) -> None:
    """A row is not called a person, and what is compared is the unit's own relation."""
    told = said(unit, Epsilon(1))
    assert who in told["Who is protected"]
    assert told["How much"].startswith(change)
    assert ("person" in told["How much"]) is (unit.column is not None)
    assert ("How many" in told["What is not protected"]) is (unit.neighbors != "add_remove")


@pytest.mark.parametrize(
    ("spent", "factor", "delta"),
    [
        ((Epsilon(1),), math.e, 0.0),
        ((Epsilon(1), Epsilon(0.5)), math.exp(1.5), 0.0),
        ((EpsilonDelta(1, 1e-6), EpsilonDelta(1, 1e-6)), math.exp(2), 2e-6),
        ((Rho(0.05),), math.exp(float(epsilon_of(Rho(0.05).exact, RHO_DELTA))), 1e-6),
    ],
    ids=str,
)
def test_the_factor_is_that_of_all_parts_together(spent: tuple[Loss, ...], factor: float, delta: float) -> None:
    """Tables and synthetic rows add up."""
    told = said(Unit("id"), *spent)["How much"]
    assert f"by a factor of at most {factor:,.3g}." in told
    assert (f"except with probability {delta:.2g}" in told) is bool(delta)


def test_a_weak_promise_is_called_weak() -> None:
    """Nobody reads that nothing can be told of a person above a factor of more than a million."""
    assert "weak" not in said(Unit("id"), Epsilon(1))["How much"]
    told = said(Unit("id"), Epsilon(20))["How much"]
    assert "more than a million" in told
    assert "weak" in told


def test_public_tables_and_a_sublinear_price_are_said() -> None:
    """What needs no protection is named; where noise follows the papers' policy no factor is claimed."""
    public = replace(TABLE, schema=Schema("places", TABLE.schema.columns), public=True)
    assert (
        "Rows of places are declared public" in said(Unit("id"), Epsilon(1), tables=(TABLE, public))["Who is protected"]
    )
    assert "factor" not in said(Unit("id"), Queries(3))["How much"]


def test_the_notes_name_bounds_entries_and_kept_rows() -> None:
    """A statistician reads what the intervals count, what was declared and where the debit is."""
    notes = " ".join(method([Paid(Epsilon(1), Unit("id", rows=3), "dp")], [TABLE], 0.9))
    assert "at most 3" in notes
    assert "Int(0, 100)" in notes
    assert "90%" in notes
    assert "ledger: none" in notes
