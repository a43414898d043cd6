"""Record and replay of random SQL over linked tables: neighbours are told apart by noise alone (RP, T11, T15, T27)."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pandas as pd
import pytest

from sulq.answers import wire
from sulq.api.named_asks import NamedAsks
from sulq.kernel.mechanisms import MECHANISMS, release
from sulq.language import domain
from sulq.language.domain import Schema
from sulq.language.facts import TableFacts
from sulq.language.privacy import Epsilon, EpsilonDelta, Loss, Rho, Unit
from sulq.language.tally import Engine
from sulq.sources.engines import open_dataset
from sulq.sources.origin import Origin
from sulq.sources.tables import Dataset, Given
from sulq.testing.replay import Run, differences, record
from tests import counts
from tests.privacy.cases import ENGINES, KEY
from tests.sql.queries import COLUMNS, KEYS, PUBLIC, ROWS, Grammar, tables

BUDGET = EpsilonDelta(900, 1e-2)
SPENDS = (Epsilon(1), Rho(0.5), EpsilonDelta(1, 1e-6))
SIZES = {"regions": 5, "zones": 2}
Frames = dict[str, pd.DataFrame]


def facts_of() -> tuple[TableFacts, ...]:
    """Public facts of the tables."""
    return tuple(
        TableFacts(Schema.of(name, columns), KEYS.get(name), name in PUBLIC, SIZES.get(name))
        for name, columns in COLUMNS.items()
    )


@contextmanager
def opened(kind: str, frames: Frames, unit: Unit) -> Iterator[Engine]:
    """An engine over the tables."""
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

    def program(sql: str, spend: Loss) -> Callable[[NamedAsks], object]:
        def ask(asks: NamedAsks) -> object:
            found = asks.sql(sql, spend=spend)
            shown.append(repr(found) + str(found.to_dict(0.95)))
            return found.answers

        return ask

    with opened(kind, frames, unit) as engine:
        run = record(
            engine, [program(*query) for query in queries], asks=NamedAsks, schema=facts_of()[0].schema, unit=unit,
            budget=BUDGET, release=release, mechanisms=tuple(MECHANISMS), earlier=earlier,
            tables=facts_of(),
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


def replaced(frames: Frames, person: int, others: Frames) -> Frames:
    """One person's rows exchanged for those of somebody else, whom nobody knew."""
    found = without(frames, person)
    for name in ("people", "visits"):
        other = others[name]
        mine = other[(other["pid"] == 0).fillna(value=False)].assign(pid=pd.array([77], dtype="Int64")[0])
        found[name] = pd.concat([found[name], mine.astype(found[name].dtypes)], ignore_index=True)
    return found


def blanked(frames: Frames, person: int) -> Frames:
    """One person's rows left in their places with nothing in them."""
    found = dict(frames)
    for name in ("people", "visits"):
        frame = frames[name].copy()
        frame.loc[(frame["pid"] == person).fillna(value=False), [c for c in frame if c != "pid"]] = None
        found[name] = frame.astype(frames[name].dtypes)
    return found


def neighbour(frames: Frames, person: int, unit: Unit, rng: random.Random) -> Frames:
    """Tables that must look the same, in which one person is another."""
    if unit.neighbors == "replace_one":
        return replaced(frames, person, heavy(rng))
    return blanked(frames, person) if unit.neighbors == "zero_out" else without(frames, person)


@pytest.mark.audit
@pytest.mark.parametrize("kind", ENGINES)
def test_random_sql_tells_neighbours_apart_by_noise_alone_T15_T27(kind: str) -> None:
    """Calls, bytes, errors and ledger are equal, and inputs move by no more than was paid for. Control: below."""
    planned = counts.count(f"random SQL replayed on {kind}", short=50, long=10_000)
    done = number = 0
    while done < planned:
        rng = counts.generator(f"replayed {kind} {number}")
        number += 1
        unit = Unit("pid", rng.choice((1, 2, ROWS)), ("add_remove", "replace_one", "zero_out")[number % 3])
        frames = heavy(rng)
        grammar = Grammar(rng)
        queries = [(grammar.asked().text, rng.choice(SPENDS)) for _ in range(10)]
        first, shown = asked(kind, frames, unit, queries, None)
        assert not [outcome for outcome in first.outcomes if outcome.startswith("CuratorError")]
        for person in rng.sample((0, 5, *range(8, 11), 1, 2), 3):
            second, again = asked(kind, neighbour(frames, person, unit, rng), unit, queries, first)
            assert differences(first, second) == [], (unit, person, queries)
            assert shown == again
            done += len(queries)


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one", "zero_out"])
def test_a_person_that_is_more_than_declared_is_noticed_T15(neighbors: str) -> None:
    """Control: two people changed at once move some sum farther than one may, and the replay says so."""
    rng = counts.generator("control")
    frames = heavy(rng)
    sql = "SELECT COUNT(*) AS v0 FROM people p JOIN visits v ON p.pid = v.pid"
    unit = Unit("pid", ROWS, neighbors)
    first, _ = asked("duckdb", frames, unit, [(sql, Epsilon(1))], None)
    other = {
        "add_remove": without(without(frames, 0), 5),
        "replace_one": without(without(without(frames, 0), 5), 1),
        "zero_out": blanked(blanked(frames, 0), 5),
    }[neighbors]
    second, _ = asked("duckdb", other, unit, [(sql, Epsilon(1))], first)
    assert differences(first, second) != []
    one, _ = asked("duckdb", neighbour(frames, 0, unit, rng), unit, [(sql, Epsilon(1))], first)
    assert differences(first, one) == []


NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?")


def masked(table: dict[str, list[object]]) -> dict[str, list[object]]:
    """A table with a sign for each released value (NULL where the digits divide by zero); keys and names stay."""
    return {name: cells if name.startswith("k") else ["#"] * len(cells) for name, cells in table.items()}


def bodies(kind: str, frames: Frames, unit: Unit, queries: list[tuple[str, Loss]]) -> list[object]:
    """All that is sent of each answer, with fresh noise: its canonical JSON and its table, without released digits."""
    found: list[object] = []

    def program(sql: str, spend: Loss) -> Callable[[NamedAsks], object]:
        def ask(asks: NamedAsks) -> object:
            answer = asks.sql(sql, spend=spend)
            sent = tuple((a.released, a.keys, a.columns, a.spent, a.guarantee, a.notes) for a in answer.answers)
            found.append((NUMBER.sub("#", wire.encode(sent)), masked(answer.to_dict(0.95)), answer.to_pandas().shape))
            return answer.answers

        return ask

    with opened(kind, frames, unit) as engine:
        record(
            engine, [program(*query) for query in queries], asks=NamedAsks, schema=facts_of()[0].schema, unit=unit,
            budget=BUDGET, release=release, mechanisms=tuple(MECHANISMS),
            tables=facts_of(),
        )  # fmt: skip
    return found


@pytest.mark.audit
@pytest.mark.parametrize("kind", ENGINES)
def test_a_response_is_as_long_as_its_released_digits_T27(kind: str) -> None:
    """Drawn anew on neighbours, JSON and table are the same but for the digits of released numbers.

    Bar: 0 other variation in 1e4 answers on each engine. Control: test_a_row_more_or_less_is_noticed_T27.
    """
    planned = counts.count(f"bodies of answers compared on {kind}", short=30, long=10_000)
    done = number = 0
    while done < planned:
        rng = counts.generator(f"bodies {kind} {number}")
        number += 1
        unit = Unit("pid", rng.choice((1, ROWS)))
        frames = heavy(rng)
        grammar = Grammar(rng)
        queries = [(grammar.query(), rng.choice(SPENDS)) for _ in range(10)]
        first = bodies(kind, frames, unit, queries)
        for person in rng.sample((0, 5, 8, 1), 2):
            assert bodies(kind, without(frames, person), unit, queries) == first, (unit, person, queries)
            done += len(queries)


def test_a_row_more_or_less_is_noticed_T27() -> None:
    """Control: more digits are the same, a group fewer or a text of a row's is not."""
    table = {"k0": ["f", "m"], "v0": [12.0, 8.0]}
    assert masked(table) == masked({"k0": ["f", "m"], "v0": [-1050.5, 8e9]})
    assert masked(table) != masked({"k0": ["f"], "v0": [12.0]})
    assert masked(table) != masked({"k0": ["f", "mm"], "v0": [12.0, 8.0]})
    assert NUMBER.sub("#", '"values":[12,-8]') == NUMBER.sub("#", '"values":[1,1e9]') != NUMBER.sub("#", '"values":[1]')


OWN = (
    "SELECT AVG(n) AS v0, SUM(n) AS v1 FROM (SELECT pid, COUNT(*) AS n FROM visits GROUP BY pid) AS t",
    "SELECT COUNT(*) AS v0 FROM (SELECT DISTINCT pid FROM visits) AS t",
    "SELECT SUM(m) AS v0 FROM (SELECT pid, MAX(x) AS m FROM visits GROUP BY pid HAVING pid > 2) AS t",
    (
        "SELECT COUNT(*) AS v0 FROM (SELECT pid, COUNT(*) AS n FROM visits GROUP BY pid) AS t "
        "JOIN (SELECT DISTINCT pid FROM visits) AS u ON t.pid = u.pid"
    ),
)


@pytest.mark.parametrize("kind", ENGINES)
def test_a_declared_persons_own_table_is_one_row_a_person_T15(kind: str) -> None:
    """Ids clamped to one value, and as many rows as are kept: a person still moves one row. Control: two of them."""
    schema = Schema.of("visits", {"pid": domain.Int(1, 4), "x": domain.Int(0, 9)})
    facts = (TableFacts(schema),)
    rows = [(pid, i) for pid in (-5, 1, 2, 3, 4, 5, 6, 70) for i in range(9)]

    def run(left_out: tuple[int, ...], earlier: Run | None) -> Run:
        frame = pd.DataFrame([row for row in rows if row[0] not in left_out], columns=["pid", "x"])
        unit = Unit("pid", ROWS)
        engine = open_dataset(Dataset((Given(Origin.of(frame), facts[0], None),), unit, KEY, "test"), engine=kind)
        programs = [lambda asks, sql=sql: asks.sql(sql, spend=Epsilon(1)).answers for sql in OWN]
        try:
            return record(
                engine, programs, asks=NamedAsks, schema=schema, unit=unit, budget=BUDGET, release=release,
                mechanisms=tuple(MECHANISMS), earlier=earlier, tables=facts,
            )  # fmt: skip
        finally:
            engine.close()

    first = run((), None)
    assert not [outcome for outcome in first.outcomes if "Error" in outcome]
    for person in (-5, 1, 3, 70):
        assert differences(first, run((person,), first)) == [], person
    assert differences(first, run((-5, 70), first)) != []
