"""The stand-ins of the controls: honest without a fault, wrong in one way with it."""

from __future__ import annotations

import numpy as np
import pytest

from sulq import Epsilon, Sums, Unit, col
from sulq.compile.plan import draw
from sulq.language.facts import Facts
from sulq.language.rowfn import Lit
from sulq.language.tally import Tally
from sulq.testing import neighbours
from sulq.testing.questions import Drawer
from tests import counts
from tests.faults import FAULTS, Plain
from tests.privacy.cases import ENGINES, answerable, engine, facts_of, seeded


def tallies(question: object, unit: Unit) -> list[Tally]:
    budget = Epsilon(1)
    return [part.tally for part in draw(question, Facts(neighbours.SCHEMA, unit, budget, budget, budget), budget).parts]


@pytest.mark.audit
@pytest.mark.parametrize("unit", [Unit(), Unit(None, 1, "zero_out")], ids=str)
def test_the_plain_engine_agrees_with_every_other(unit: Unit) -> None:
    """Without a fault the stand-in gives the same integers as DuckDB and memory on generated questions (T4, T6).

    Where rows are people, that is: which rows of a heavy person count is decided by each engine's own key.
    """
    planned = counts.count(f"questions on three engines, {unit.neighbors}", short=40, long=3_000)
    rng = seeded("three engines")
    while planned > 0:
        rows = neighbours.table(rng, unit, 12)
        asked = answerable(Drawer(rng), facts_of(unit, Epsilon(1)), [Epsilon(1)], min(planned, 40))
        with (
            engine("plain", rows, unit) as plain,
            engine("duckdb", rows, unit) as duck,
            engine("memory", rows, unit) as memory,
        ):
            for question, _ in asked:
                for tally in tallies(question, unit):
                    if "Bucket" in repr(tally):  # by each engine's own hash of a place
                        assert np.array_equal(duck.sums(tally).open(), memory.sums(tally).open())
                        continue
                    found = [source.sums(tally).open() for source in (plain, duck, memory)]
                    assert np.array_equal(found[0], found[1]), tally
                    assert np.array_equal(found[0], found[2]), tally
        planned -= len(asked)


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_changes_something(fault: str) -> None:
    """A named fault differs from the honest engine on rows that show it; an unknown one is refused."""
    whole = dict.fromkeys((name for name, _ in neighbours.COLUMNS), None) | {"city": "Lod"}
    rows = [whole | {"pid": f"p{i // 4}", "gain": float(37 * i % 200)} for i in range(200)]
    rows += [whole | {"pid": f"x{value}", "gain": value} for value in (float("nan"), 1e9)]
    rows += [whole | {"pid": "y", "city": "Jaffa"}]
    unit = Unit("pid", 1)
    (tally,) = tallies(Sums((Lit(1), col("gain")), None, (col("city"),)), unit)
    honest = Plain(rows, neighbours.SCHEMA, unit).sums(tally).open()
    try:
        found = Plain(rows, neighbours.SCHEMA, unit, fault).sums(tally).open()
    except ValueError:
        assert fault == "raise"
        return
    assert not np.array_equal(honest, found)


def test_an_unknown_fault_is_refused() -> None:
    """A control that names no fault would pass for a test."""
    with pytest.raises(ValueError, match="no such"):
        Plain([], neighbours.SCHEMA, Unit(), "no such")


def test_both_engines_are_controlled() -> None:
    """The controls run beside every engine of this version."""
    assert set(ENGINES) == {"duckdb", "memory"}
