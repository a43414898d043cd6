"""Record and replay of one table, views, conditions and parts of the people: neighbours differ by noise alone (RP)."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from sulq import col
from sulq.api.named_asks import NamedAsks
from sulq.kernel.mechanisms import MECHANISMS, release
from sulq.language.kinds import Cells
from sulq.language.privacy import Loss, Unit
from sulq.language.rowfn import Bucket
from sulq.learn import KMeans, LinearRegression, NaiveBayes
from sulq.release import contingency
from sulq.testing import neighbours
from sulq.testing.replay import Run, differences, record
from tests import counts
from tests.privacy.cases import ENGINES, engine, run, seeded
from tests.privacy.test_sql import BUDGET, SPENDS, Frames, blanked, facts_of, heavy, neighbour, opened, without
from tests.sql.queries import ROWS

Program = Callable[[NamedAsks], object]
VIEWS = (
    "SELECT v.cost, v.minutes, v.kind, v.paid, p.age, p.married FROM people p JOIN visits v ON p.pid = v.pid",
    "SELECT a.cost, b.minutes, a.kind, b.paid FROM visits a JOIN visits b ON a.pid = b.pid AND a.minutes <= b.minutes",
    """SELECT v.cost, v.minutes, v.kind, v.paid, r.zone FROM visits v LEFT JOIN people p ON v.pid = p.pid
    LEFT JOIN regions r ON p.region = r.code""",
    """SELECT SUM(cost) AS cost, MAX(minutes) AS minutes, MIN(kind) AS kind, COUNT(*) > 1 AS paid
    FROM visits GROUP BY pid""",
    "SELECT cost, minutes, kind, paid FROM visits UNION ALL SELECT cost / 2, minutes, kind, NOT paid FROM visits",
    "SELECT DISTINCT cost, minutes, kind, paid FROM visits",
    "SELECT cost, minutes, kind, paid FROM visits WHERE paid",
)


# New noise each time: at which entry of the ledger a stored answer lies follows from when it was written.


def rows(rng: random.Random, db: NamedAsks) -> NamedAsks:
    """Some of the rows that have a cost, minutes, a kind and whether they are paid."""
    for _ in range(rng.randrange(2)):
        db = db.split(test=rng.choice((0.5, 0.2)), salt=rng.randrange(3))[rng.randrange(2)]
    found = db.table("visits") if rng.random() < 0.3 else db.view(rng.choice(VIEWS))
    if rng.random() < 0.3:
        found = found.where(rng.choice((col("paid"), col("minutes") > 20, ~col("kind").is_missing())))
    if rng.random() < 0.3:
        found = found.split(test=0.5, salt=4)[rng.randrange(2)]
    return found


def program(rng: random.Random) -> Program:
    """Something that is asked, learned or released of them; the same for every run."""
    spend, seed, kind = rng.choice(SPENDS), rng.random(), rng.randrange(9)
    by = rng.choice((None, "kind", ["kind", "paid"]))

    def ask(db: NamedAsks) -> object:
        return _asked(kind, rows(random.Random(seed), db), by, spend)

    return ask


def _asked(kind: int, some: NamedAsks, by: object, spend: Loss) -> object:
    match kind:
        case 0:
            return some.count(by=by, spend=spend, fresh=True)
        case 1:
            return some.mean("cost", by=by, spend=spend, fresh=True)
        case 2:
            return some.variance("minutes", by=by, spend=spend, fresh=True)
        case 3:
            return some.median("cost", spend=spend, fresh=True)
        case 4:
            return some.count_distinct("kind", spend=spend, fresh=True)
        case 5:
            return some.sql(
                f"SELECT kind, AVG(cost) AS a FROM {some.facts.table} GROUP BY kind", spend=spend, fresh=True
            ).answers
        case 6:
            return str(LinearRegression().fit(some[["minutes", "paid"]], some["cost"], spend=spend).to_json())
        case 7:
            return str(KMeans(2, max_iter=2).fit(some[["minutes", "cost"]], spend=spend).to_json())
    return str(contingency(some, ["kind", "paid"], [["kind"]], spend=spend).marginal(["kind"]).values.tolist())


def asked(kind: str, frames: Frames, unit: Unit, programs: list[Program], earlier: Run | None) -> tuple[Run, list[str]]:
    """One run, and the text of all that was answered."""
    shown: list[str] = []

    def noted(ask: Program) -> Program:
        def asking(db: NamedAsks) -> object:
            found = ask(db)
            shown.append(repr(found))
            # What is learned is noted as text; the run keeps an answer.
            return db.count(spend=SPENDS[0], fresh=True) if isinstance(found, str) else found

        return asking

    with opened(kind, frames, unit) as engine:
        made = record(
            engine, [noted(ask) for ask in programs], asks=NamedAsks, schema=facts_of()[0].schema, unit=unit,
            budget=BUDGET, release=release, mechanisms=tuple(MECHANISMS), earlier=earlier, tables=facts_of(),
        )  # fmt: skip
    return made, shown


@pytest.mark.audit
@pytest.mark.parametrize("kind", ENGINES)
def test_some_of_the_rows_tell_neighbours_apart_by_noise_alone_SR11_SR15(kind: str) -> None:
    """Asks, learners and releases on tables, views, conditions and parts. Controls: below."""
    planned = counts.count(f"questions of some of the rows replayed on {kind}", short=18, long=5_000)
    done = number = answered = 0
    while done < planned:
        rng = counts.generator(f"rows {kind} {number}")
        number += 1
        unit = Unit("pid", rng.choice((1, 2, ROWS)), ("add_remove", "replace_one", "zero_out")[number % 3])
        frames = heavy(rng)
        programs = [program(rng) for _ in range(3)]
        first, shown = asked(kind, frames, unit, programs, None)
        assert not [outcome for outcome in first.outcomes if outcome.startswith("CuratorError")]
        for person in rng.sample((0, 5, *range(8, 11), 1, 2), 2):
            second, again = asked(kind, neighbour(frames, person, unit, rng), unit, programs, first)
            assert differences(first, second) == [], (unit, person)
            assert shown == again
            done += len(programs)
            answered += len(shown)
    assert answered > done / 2, "most are answered"


def of_one_table(rng: np.random.Generator) -> Callable[[NamedAsks], object]:
    """Something asked of some of the rows of one table, whose rows are people or have a person each."""
    spend = SPENDS[int(rng.integers(3))]
    where = (col("flag"), col("gain") > 5, ~col("city").is_missing())[int(rng.integers(3))]
    salt, part, by = int(rng.integers(4)), int(rng.integers(2)), ("city", None)[int(rng.integers(2))]
    union = "SELECT age, city FROM data UNION ALL SELECT age, city FROM data"
    text = ("SELECT age * 2 AS age, city FROM data WHERE flag", union)[int(rng.integers(2))]
    asks: tuple[Callable[[NamedAsks], object], ...] = (
        lambda db: db.split(test=0.5, salt=salt)[part].mean("age", by=by, spend=spend, fresh=True),
        lambda db: db.where(where).split(test=0.5, salt=salt)[part].variance("gain", by=by, spend=spend, fresh=True),
        lambda db: db.view(text).split(test=0.3, salt=salt)[part].mean("age", by=by, spend=spend, fresh=True),
        lambda db: (
            db.view(text).split(test=0.3, salt=salt)[part].split(test=0.5)[0].count(by=by, spend=spend, fresh=True)
        ),
        lambda db: db.where(where).count(by=by, spend=spend, fresh=True),
    )
    return asks[int(rng.integers(len(asks)))]


@pytest.mark.audit
@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize(
    "unit", [Unit(None, 1, "replace_one"), Unit(None, 1, "zero_out"), Unit("pid", 2, "replace_one")], ids=str
)
def test_parts_by_public_places_tell_neighbours_apart_by_noise_alone_SR11(kind: str, unit: Unit) -> None:
    """Rows that are people are divided by their places, where no neighbour moves them. Control: test_replay's SR11."""
    planned = counts.count(f"parts of one table replayed on {kind}, {unit}", short=6, long=1_000)
    rng = seeded(f"parts on {kind}")
    done = 0
    while done < planned:
        data = neighbours.table(rng, unit, 7)
        programs = [of_one_table(rng) for _ in range(6)]
        pairs = list(neighbours.pairs(rng, unit, data))
        with engine(kind, data, unit) as source:
            first = run(source, programs, unit, BUDGET)
        assert not any("Error" in outcome.split()[0] for outcome in first.outcomes), first.outcomes
        for i in rng.permutation(len(pairs))[:3]:
            with engine(kind, pairs[i].second, unit) as source:
                assert differences(first, run(source, programs, unit, BUDGET, earlier=first)) == [], pairs[i].what
            done += len(programs)


def fit(db: NamedAsks) -> object:
    """A learner on a view."""
    view = db.view(VIEWS[0])
    return str(NaiveBayes().fit(view[["minutes", "cost"]], view["married"], spend=SPENDS[0]).to_json())


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one", "zero_out"])
def test_two_people_more_are_noticed_by_a_learner_on_a_view(neighbors: str) -> None:
    """Control: what one person does to a fit on a join is within its price, what several do is not."""
    rng = counts.generator("rows, control")
    frames, unit = heavy(rng), Unit("pid", ROWS, neighbors)
    first, _ = asked("duckdb", frames, unit, [fit], None)
    one, _ = asked("duckdb", neighbour(frames, 0, unit, rng), unit, [fit], first)
    assert differences(first, one) == []
    several = frames
    for person in (0, 5, 1, 2, 3):
        several = blanked(several, person) if neighbors == "zero_out" else without(several, person)
    other, _ = asked("duckdb", several, unit, [fit], first)
    assert differences(first, other) != []


def test_a_part_is_told_by_the_person_and_not_by_the_place_SR11(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that one person moves is the person's own. Control: told by how many rows there are, all move."""
    rng = counts.generator("rows, places")
    frames, unit = heavy(rng), Unit("pid", 1)

    def ask(db: NamedAsks) -> object:
        return db.view(VIEWS[6]).split(test=0.5)[0].count(by="kind", spend=SPENDS[0], fresh=True)

    def told(first: Run) -> bool:
        """Whether any of several neighbours is told apart."""
        found = (asked("memory", without(frames, person), unit, [ask], first)[0] for person in range(2))
        return any(differences(first, other) for other in found)

    first, _ = asked("memory", frames, unit, [ask], None)
    assert not told(first)
    with monkeypatch.context() as patch:
        patch.setattr(Bucket, "cells", lambda self, frame: Cells(np.full(frame.size, frame.size % self.count), None))
        assert told(asked("memory", frames, unit, [ask], None)[0])
