"""Record and replay of bounds="auto": clip, second question and notes follow from noise alone (RP, SR28)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sulq import Epsilon, EpsilonDelta, Rho, Unit, col
from sulq.api.named_asks import NamedAsks
from sulq.language.privacy import Loss
from sulq.testing import neighbours
from sulq.testing.replay import differences
from tests import counts
from tests.privacy.cases import Program, engine, people, replayed, run, seeded
from tests.privacy.test_replay import UNITS

VALUES = (col("age"), col("gain"), col("debt"), col("score"), col("age") * col("gain"), col("gain").fill(0) ** 2)
BUDGETS = [
    (Epsilon(1000), (Epsilon(30), Epsilon(3), Epsilon(0.1))),
    (Rho(500), (Rho(20), Rho(0.1), Epsilon(3))),
    (EpsilonDelta(1000, 1e-2), (EpsilonDelta(20, 1e-5), EpsilonDelta(0.5, 1e-6), Rho(1))),
]
QUERIES = (
    "SELECT AVG(gain) AS m, SUM(age) AS s, COUNT(*) AS n FROM data",
    "SELECT city, SUM(gain * age) AS s FROM data GROUP BY city",
    "SELECT STDDEV(score) AS d, AVG(age) FILTER (WHERE flag) AS m FROM data WHERE gain > 3",
)


def drawn(rng: np.random.Generator, spend: Loss) -> Program:
    """One ask of a sum, a mean or a query, within bounds that are searched for."""
    value = VALUES[int(rng.integers(len(VALUES)))]
    where = (None, col("flag"), col("age") > 30)[int(rng.integers(3))]
    by = (None, "city", ["city", "flag"])[int(rng.integers(3))]
    kind = int(rng.integers(3))
    query = QUERIES[int(rng.integers(len(QUERIES)))]

    def ask(asks: NamedAsks) -> object:
        if kind == 2:
            found = asks.sql(query, spend=spend, bounds="auto", fresh=True)
            return found.answers
        way = asks.mean if kind else asks.sum
        return way(value, where=where, by=by, spend=spend, bounds="auto", fresh=True)

    return ask


@pytest.mark.audit
@pytest.mark.parametrize("kind", ["duckdb", "memory"])
def test_neighbours_within_searched_bounds_are_told_apart_by_noise_alone_SR28(kind: str) -> None:
    """With the first answer's noise fixed, both questions, the clip, the notes and the ledger are equal.

    Inputs are within what was paid for, and both debits together within the spend. Bar: 0 violations in 2e4 pairs.
    """
    planned = counts.count(f"replay pairs of searched bounds on {kind}", short=10, long=20_000)
    rng, done, number, searches = seeded(f"bounds on {kind}"), 0, 0, 0
    while done < planned:
        unit = UNITS[number % len(UNITS)]
        budget, spends = BUDGETS[number % len(BUDGETS)]
        chosen = [spends[int(rng.integers(len(spends)))] for _ in range(5)]
        programs = [drawn(rng, spend) for spend in chosen]
        rows = neighbours.table(rng, unit, int(rng.integers(0, 12)))
        with engine(kind, rows, unit) as source:
            first = run(source, programs, unit, budget)
        searches += len(first.events) - len(programs)
        if isinstance(budget, Epsilon):
            assert sum((event.epsilon or Fraction(0)) for event in first.events) <= sum(s.exact for s in chosen)
        pairs = list(neighbours.pairs(rng, unit, rows))
        for i in rng.permutation(len(pairs))[:2]:
            with engine(kind, pairs[i].second, unit) as source:
                second = run(source, programs, unit, budget, earlier=first)
            assert differences(first, second) == [], (unit, budget, pairs[i].what)
            done += len(programs)
        number += 1
    assert searches > number  # most asks were two


@pytest.mark.parametrize("how", ["mean", "sum"])
def test_a_clip_taken_from_the_rows_is_noticed(how: str) -> None:
    """Control: where the clip is the largest value itself, one person changes the second question and its noise."""
    first = people("HHLY", gain=3.0)
    second = [*first, *people("H", gain=150.0, pid="q")]

    def asking(rows: list[neighbours.Row]) -> Program:
        largest = max(float(row["gain"]) for row in rows)  # what no program may know
        return lambda asks: getattr(asks, how)(col("gain").clip(0, largest), spend=Epsilon(1), fresh=True)

    unit = Unit("pid", 1)
    with engine("memory", first, unit) as source:
        recorded = run(source, [asking(first)], unit, Epsilon(10))
    with engine("memory", second, unit) as source:
        other = run(source, [asking(second)], unit, Epsilon(10), earlier=recorded)
    assert differences(recorded, other)
    honest = [lambda asks: getattr(asks, how)("gain", spend=Epsilon(1), fresh=True, bounds="auto")]
    assert replayed("memory", first, second, honest, unit, budget=Epsilon(10)) == []
