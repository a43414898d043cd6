"""Record and replay of random SQL over linked tables: neighbours are told apart by noise alone (RP, T11, T15, T27)."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pandas as pd
import pytest

from sulq.curator.curator import Curator
from sulq.curator.engines import open_dataset
from sulq.curator.engines.source import Origin
from sulq.curator.engines.tables import Dataset, Given
from sulq.desk import Desk
from sulq.mechanisms import MECHANISMS, release
from sulq.terms.domain import Schema
from sulq.terms.engine import Engine
from sulq.terms.facts import TableFacts
from sulq.terms.privacy import Epsilon, EpsilonDelta, Loss, Rho, Unit
from sulq.testing.replay import Run, differences, record
from tests import counts
from tests.privacy.cases import ENGINES, KEY
from tests.sql.queries import COLUMNS, ROWS, Grammar, tables

BUDGET = EpsilonDelta(900, 1e-2)
SPENDS = (Epsilon(1), Rho(0.5), EpsilonDelta(1, 1e-6))
Frames = dict[str, pd.DataFrame]


def facts_of() -> tuple[TableFacts, ...]:
    """Public facts of the three tables."""
    people, visits, regions = (Schema.of(name, columns) for name, columns in COLUMNS.items())
    return (
        TableFacts(people, key="pid"),
        TableFacts(visits),
        TableFacts(regions, key="code", public=True, rows=5),
    )


@contextmanager
def opened(kind: str, frames: Frames, unit: Unit) -> Iterator[Engine]:
    """An engine over the three tables."""
    given = tuple(Given(Origin.of(frames[facts.schema.table]), facts, None) for facts in facts_of())
    engine = open_dataset(Dataset(given, unit, KEY, "test"), engine=kind)
    try:
        yield engine
    finally:
        engine.close()


def asked(
    kind: str, frames: Frames, unit: Unit, queries: list[tuple[str, Loss]], earlier: Run | None
) -> tuple[Run, list[str]]:
    """One run of queries, and the text of every answer with its intervals."""
    shown: list[str] = []

    def program(sql: str, spend: Loss) -> Callable[[Desk], object]:
        def ask(desk: Desk) -> object:
            found = desk.sql(sql, spend=spend)
            shown.append(repr(found) + str(found.to_dict(0.95)))
            return found.answers

        return ask

    with opened(kind, frames, unit) as engine:
        run = record(
            engine, [program(*query) for query in queries], desk=Desk, schema=facts_of()[0].schema, unit=unit,
            budget=BUDGET, release=release, mechanisms=tuple(MECHANISMS), earlier=earlier,
            curator=functools.partial(Curator, tables=facts_of()),
        )  # fmt: skip
    return run, shown


def heavy(rng: random.Random) -> Frames:
    """Tables with people of more visits than are kept, one with all the visits of a kind, and visits of nobody."""
    found = tables(rng, people=8)
    visits = found["visits"]
    more = [visits, *(visits.assign(pid=pd.array([pid] * len(visits), dtype="Int64")) for pid in (0, 5))]
    more.append(visits.head(4).assign(pid=pd.array([None] * len(visits.head(4)), dtype="Int64")))
    joined = pd.concat(more, ignore_index=True).iloc[rng.sample(range(sum(map(len, more))), sum(map(len, more)))]
    joined.loc[joined["pid"] == 5, "kind"] = "skin"  # the sole member of a group
    return found | {"visits": joined.reset_index(drop=True)}


def without(frames: Frames, person: int) -> Frames:
    """The same tables, the rows of one person removed from all of them."""
    return {
        name: frame[~(frame["pid"] == person).fillna(value=False)].reset_index(drop=True) if "pid" in frame else frame
        for name, frame in frames.items()
    }


@pytest.mark.audit
@pytest.mark.parametrize("kind", ENGINES)
def test_RP_T15_T27_random_sql_tells_neighbours_apart_by_noise_alone(kind: str) -> None:
    """Calls, bytes, errors and ledger are equal, and inputs move by no more than was paid for. Control: below."""
    planned = counts.count(f"random SQL replayed on {kind}", short=90, long=10_000)
    done = number = 0
    while done < planned:
        rng = counts.generator(f"replayed {kind} {number}")
        number += 1
        unit = Unit("pid", rng.choice((1, 2, ROWS)))
        frames = heavy(rng)
        grammar = Grammar(rng)
        queries = [(grammar.query(), rng.choice(SPENDS)) for _ in range(10)]
        first, shown = asked(kind, frames, unit, queries, None)
        assert not [outcome for outcome in first.outcomes if outcome.startswith("CuratorError")]
        for person in rng.sample((0, 5, *range(8, 11), 1, 2), 3):
            second, again = asked(kind, without(frames, person), unit, queries, first)
            assert differences(first, second) == [], (unit, person, queries)
            assert shown == again
            done += len(queries)


def test_RP_T15_a_person_that_is_more_than_declared_is_noticed() -> None:
    """Control: two people taken away at once move some sum farther than one may, and the replay says so."""
    rng = counts.generator("control")
    frames = heavy(rng)
    sql = "SELECT COUNT(*) AS v0 FROM people p JOIN visits v ON p.pid = v.pid"
    unit = Unit("pid", ROWS)
    first, _ = asked("duckdb", frames, unit, [(sql, Epsilon(1))], None)
    second, _ = asked("duckdb", without(without(frames, 0), 5), unit, [(sql, Epsilon(1))], first)
    assert differences(first, second) != []
