"""Statistics of the whole table, end to end: neighbours told apart by noise alone, exact laws, free refusals."""

from __future__ import annotations

import datetime
import functools
import logging
import secrets
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sulq
from sulq import (
    Aggregated,
    Box,
    Candidates,
    Certificate,
    Certified,
    Cube,
    Degrees,
    Edges,
    Epsilon,
    EpsilonDelta,
    Graph,
    Holistic,
    MinCut,
    Occurring,
    Points,
    Rho,
    SpanningTree,
    ToBoundedDegree,
    ToConnected,
    Together,
    ToProperty,
    ToSorted,
    ToUnique,
    Triangles,
    Unit,
    col,
)
from sulq.answers import wire
from sulq.compile.plan import draw
from sulq.compile.plan.estimators import load
from sulq.curator.certificates import certifying
from sulq.curator.ledger.ledger import Ledger
from sulq.curator.run import Rows
from sulq.errors import QuestionError, SetupError, SulqError
from sulq.kernel.whole import graphs
from sulq.kernel.whole.figure import Figure, monotone
from sulq.language.domain import Bool, Category, Int, Real, Schema
from sulq.language.estimator import Estimator, Property, Stated, Utility
from sulq.language.facts import Facts, TableFacts, Tables
from sulq.language.law import LaplaceLaw
from sulq.language.statistic import HeavyPersons
from sulq.language.tally import Engine
from sulq.sources import fold as listing
from sulq.sources import stored_engine
from sulq.sources.fold import RowBatch, listed
from sulq.sql.explain import Explanation
from sulq.testing import neighbours
from sulq.testing.neighbours import Row
from sulq.testing.replay import Run, differences
from tests import counts
from tests.privacy.cases import ENGINES, KEY, asking, run, seeded, written
from tests.sources.cases import open_engine

UNITS = [
    Unit(),
    Unit("pid", 1),
    Unit("pid", 3),
    Unit(None, 1, "replace_one"),
    Unit("pid", 2, "replace_one"),
    Unit(None, 1, "zero_out"),
    Unit("pid", 2, "zero_out"),
]
ENDS = Category((0, 1, 2, 5, 100))  # most ages lie at the ends of their bounds, most codes are 1, 2 or 5
SCHEMA = Schema(
    "data",
    (("age", ENDS), ("code", ENDS), ("gain", Real(0, 1)), ("score", Real(10, 21, grid=0.25)), ("flag", Bool()),
     ("city", Category(("Haifa", "Lod", "Yafo")))),
)  # fmt: skip
WEIGHED, GRAPH = Graph("age", "code", "gain"), Graph("age", "code")
WHERE = (None, col("flag"), col("city") != "Lod")
QUESTIONS = [
    *(
        Holistic(kind, where)
        for kind in (MinCut(WEIGHED), SpanningTree(WEIGHED), ToConnected(GRAPH))
        for where in WHERE
    ),
    Holistic(MinCut(GRAPH)),
    Holistic(SpanningTree(WEIGHED, complete=True)),
    Holistic(Triangles(GRAPH)),
    Holistic(Triangles(GRAPH, 2)),
    Holistic(Degrees(GRAPH, 3)),
    Holistic(Edges(GRAPH)),
    Holistic(Edges(WEIGHED), space=Cube()),
    Holistic(ToBoundedDegree(GRAPH, 1)),
    Holistic(ToUnique(("age",))),
    Holistic(ToUnique(("city", "score")), col("flag")),
    Holistic(ToSorted("score")),
    Holistic(Occurring(("city", "flag"))),
    Holistic(Occurring(("city", "flag")), space=Cube()),
    Holistic(ToUnique(("city",)), space=Box(0, 12)),
    Holistic(ToUnique(("city",)), space=Box(0, 12, 3, "circle")),
    Holistic(ToUnique(("city",)), space=Box(0, 4, distance="circle")),
    Holistic(ToUnique(("city",)), space=Box()),
    Holistic(Degrees(GRAPH, 2), space=Points(((0, 0), (2, 0), (2, 2), (5, 1)), "linf")),
    Holistic(Degrees(GRAPH, 2), space=Points(((0, 0), (2, 0), (2, 2), (5, 1)), "hamming")),
    Holistic(Triangles(GRAPH), space=Points(((0,), (1,), (4,)), "discrete")),
    Holistic(Aggregated("median", ("score",), 4, 10, 21)),
    Holistic(Aggregated("correlation", ("score", "gain"), 3, -1, 1, salt=5), col("flag")),
    Holistic(Aggregated("slope", ("score", "gain"), 2, -1, 1)),
    Holistic(Aggregated("spread", ("score",), 3, 0, 11)),
    Holistic(Aggregated("spread", ("gain",), 2, 0, 1), col("flag"), Box(0, 1, 0.25)),
    Holistic(HeavyPersons()),
    Holistic(HeavyPersons(), space=Points(((0, 0), (2, 0), (2, 2), (5, 1)), "linf")),
    Holistic(Certified("turns", ("score",))),
    Holistic(Certified("turns", ("score",)), space=Box(-8, 8)),
    *(
        Holistic(Certified(name, ("score",), placed), space=space)
        for placed in (False, True)
        for name, space in (
            ("past", None),
            ("past", Box(0, 8)),
            ("sides", None),
            ("plan", Candidates()),
            ("prior", Candidates()),
        )
    ),
    Holistic(ToProperty("even", ("flag", "city"))),
    Holistic(ToProperty("even", ("flag", "city")), col("score") > 11),
    Holistic(ToProperty("path", ("age", "code"))),
    Together((Holistic(ToConnected(GRAPH)), sulq.Sums((sulq.lit(1),)), Holistic(MinCut(GRAPH)))),
]
SPENDS = (Epsilon(0.5), Rho(0.02), EpsilonDelta(0.5, 1e-6))
BUDGET = EpsilonDelta(1000, 1e-6)
OWN = (
    Estimator("spread", "tests.privacy.test_holistic:spread"),
    Estimator("turns", "tests.privacy.test_holistic:turns", Certificate(0.2, 0.5, 0.9, -8, 8, ("score",))),
    Estimator("back", "tests.privacy.test_holistic:back", Certificate(0.2, 0.5, 0.9, -8, 8, ("score",))),
    Estimator("past", "tests.privacy.test_holistic:past", Stated(3, 0, 8, ("score",))),  # persons have 3 rows at most
    Estimator("sides", "tests.privacy.test_holistic:sides", Stated(4, 0, 8, ("score",), 2)),
    Estimator("plan", "tests.privacy.test_holistic:sides", Utility(("high", "low"), 3, 0, 8, ("score",))),
    Estimator("prior", "tests.privacy.test_holistic:sides", Utility(("high", "low"), 3, 0, 8, ("score",), (1, 4))),
    Estimator("even", "tests.privacy.test_holistic:even", Property(("flag", "city"), 2)),
    Estimator("path", "tests.privacy.test_holistic:path", Property()),
)
TABLES = (TableFacts(SCHEMA, graph=GRAPH, estimators=OWN),)


def spread(rows: np.ndarray) -> float:
    """An owner's estimator: how far the values of a block go; of an empty one an error."""
    return float(rows[:, 0].max() - rows[:, 0].min())


def turns(rows: np.ndarray) -> float:
    """A function of rows in their places, certified to move by one: those past 15, every second one counted off.

    A missing cell is past nothing. Were a row left out, all rows behind it would change sides.
    """
    past = (rows[:, 0] > 15).astype(float)
    return float(past[::2].sum() - past[1::2].sum())


def back(rows: np.ndarray) -> float:
    """The same from the last row on: were the last one left out, all rows before it would change sides."""
    return turns(rows[::-1])


def past(rows: np.ndarray) -> float:
    """A function of rows in no order, stated to move by a row each: how many are past 15."""
    return float((rows[:, 0] > 15).sum())


def sides(rows: np.ndarray) -> tuple[float, float]:
    """Two numbers that no row moves both: how many are past 15, and how many are not."""
    return past(rows), float((rows[:, 0] <= 15).sum())


def even(rows: np.ndarray) -> bool:
    """A property of small tables: as many flags as not."""
    return bool((rows[:, 0] == 1).sum() * 2 == len(rows))


def path(joined: np.ndarray) -> bool:
    """A property of graphs: no vertex has more than two neighbours."""
    return bool(joined.sum(axis=1).max() <= 2)


@functools.cache
def functions(unit: Unit) -> dict[str, object]:
    """The owner's, as they are loaded when the data is opened."""
    return load(TABLES, unit)


def declared(source: Engine, programs: list[object], unit: Unit, **options: object) -> Run:
    """A run with the owner's declarations."""

    def rows(engine: Engine, ledger: Ledger) -> Rows:
        return Rows(engine, ledger.redeem, functions(unit))

    return run(source, programs, unit, BUDGET, schema=SCHEMA, tables=TABLES, rows=rows, **options)


@contextmanager
def opened(
    kind: str, rows: tuple[Row, ...] | list[Row], unit: Unit, schema: Schema = SCHEMA, **options: object
) -> Iterator[Engine]:
    given = {"data": neighbours.arrow(rows), "schema": schema, "unit": unit, "key": KEY, "space": "test"} | options
    source = open_engine(**given, engine=kind)
    if certifying(source) is not None and schema is SCHEMA:
        source._facts = Tables(unit, TABLES)  # as `connect` gives them, with what the owner declares of functions
    try:
        yield source
    finally:
        source.close()


def answerable(unit: Unit) -> list[Holistic | Together]:
    """Those that the unit allows; the others are refused, from public facts alone."""
    facts, found = Facts(SCHEMA, unit, BUDGET, BUDGET, BUDGET, tables=TABLES), []
    for question in QUESTIONS:
        try:
            draw(question, facts, Epsilon(1))
        except SulqError:
            continue
        found.append(question)
    return found


@pytest.mark.audit
@pytest.mark.parametrize("kind", ENGINES)
def test_statistics_of_the_whole_are_told_apart_by_noise_alone(kind: str) -> None:
    """Calls, bytes, errors, ledger and log are equal, inputs within the sensitivity, for every statistic (RP, SR10).

    Bar: 0 violations. Control: a halved sensitivity, below.
    """
    planned = counts.count(f"holistic replay pairs on {kind}", short=len(UNITS) * 3 * 10, long=40_000)
    rng = seeded(f"holistic replay on {kind}")
    done, number = 0, 0
    while done < planned:
        unit = UNITS[number % len(UNITS)]
        questions = answerable(unit)
        assert len(questions) >= 20
        programs = [asking(question, SPENDS[int(rng.integers(3))]) for question in questions]
        rows = neighbours.table(rng, unit, int(rng.integers(0, 9)))
        with opened(kind, rows, unit) as source:
            first = declared(source, programs, unit)
        assert not any("Error" in outcome.split()[0] for outcome in first.outcomes)
        pairs = list(neighbours.pairs(rng, unit, rows))
        for i in rng.permutation(len(pairs))[:3]:
            with opened(kind, pairs[i].second, unit) as source:
                second = declared(source, programs, unit, earlier=first)
            assert differences(first, second) == [], (unit, pairs[i].what)
            done += len(programs)
        number += 1


def test_the_owners_functions_are_among_what_is_replayed() -> None:
    """Where persons or places are public an owner's estimator is answered; a certified one where rows are people.

    What is stated of persons, utilities and properties are answered in every relation [S4.27, S3.31, S4.28].
    """
    asked = {unit: [q.statistic for q in answerable(unit) if isinstance(q, Holistic)] for unit in UNITS}
    kinds = {unit: [type(statistic).__name__ for statistic in asked[unit]] for unit in UNITS}
    names = {unit: [statistic.name for statistic in asked[unit] if hasattr(statistic, "name")] for unit in UNITS}
    assert [unit for unit in UNITS if "turns" in names[unit]] == [u for u in UNITS if not u.column][1:]
    assert [unit for unit in UNITS if "Aggregated" not in kinds[unit]] == [Unit()]
    for unit in UNITS:
        own = {"past": 2, "sides": 1, "plan": 1, "prior": 1, "even": 2, "path": 1}
        assert {name: names[unit].count(name) for name in own} == own
    facts = Facts(SCHEMA, Unit(), BUDGET, BUDGET, BUDGET, tables=TABLES)
    for space in (Box(0, 9), Cube(), Points(((0,), (3,))), Candidates()):
        with pytest.raises(QuestionError):
            draw(Holistic(ToProperty("path", ("age", "code")), space=space), facts, Epsilon(1))


@pytest.mark.parametrize("name", ["past", "sides", "plan", "prior"])
@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_a_false_sensitivity_is_found_by_replay_S4_27(name: str, unit: Unit, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person with all their rows past 15, who comes, goes or is exchanged, moves a function by more than a tenth.

    Control: by no more than was truly stated.
    """
    many = unit.rows
    blank = dict.fromkeys([each for each, _ in neighbours.COLUMNS] + ["pid"])
    table = [blank | {"score": 20.0 if i < many else 11.0, "pid": "a" if i < many else f"p{i}"} for i in range(6)]
    other = {
        "add_remove": table[many:],
        "zero_out": [dict.fromkeys(row) if i < many else row for i, row in enumerate(table)],
        "replace_one": [row | {"score": 11.0} if i < many else row for i, row in enumerate(table)],
    }[unit.neighbors]
    placed = unit.positions_are_public and unit.column is None
    space = Candidates() if name in ("plan", "prior") else None
    programs = [asking(Holistic(Certified(name, ("score",), placed), space=space), Epsilon(1))]

    def told() -> list[str]:
        with opened("memory", table, unit) as source:
            first = declared(source, programs, unit)
        with opened("memory", other, unit) as source:
            return differences(first, declared(source, programs, unit, earlier=first))

    assert told() == []
    own = tuple(
        replace(item, certificate=replace(item.certificate, sensitivity=0.1)) if item.name == name else item
        for item in OWN
    )
    monkeypatch.setattr(sys.modules[__name__], "TABLES", (replace(TABLES[0], estimators=own),))
    assert any("moved" in line for line in told())


def test_what_an_owner_states_is_answered_and_shown_as_declared_S4_27(tmp_path: Path) -> None:
    """The value is the function's, of kept rows, missing cells as NaN; the answer, facts and the ledger say whose word.

    What a smaller sensitivity found elsewhere would allow is never used: the plan's is the stated one.
    """
    place = tmp_path / "own.ledger"
    table = pa.table({"pid": [1, 1, 1, 2, 3], "score": [20.0, 20.0, 20.0, None, 11.0]})
    told = {"columns": {"score": Real(10, 21, grid=0.25)}, "unit": Unit("pid", 2), "budget": Epsilon(900)}
    own = {
        "past": ("tests.privacy.test_holistic:past", Stated(7, 0, 8, ("score",))),
        "plan": ("tests.privacy.test_holistic:sides", Utility(("high", ("if", "low")), 7, 0, 8, ("score",))),
    }
    with sulq.connect(table, **told, estimators=own, ledger=place) as db:
        plan = str(db.foresee(Holistic(Certified("past", ("score",), placed=False)), spend=Epsilon(1)))
        assert "l1 sensitivity 7 (declared by the owner)" in plan
        answer = db.statistic("past", spend=Epsilon(400))
        assert answer.value == pytest.approx(2, abs=0.5)  # two of three rows are kept
        assert "rests on the sensitivity (declared by the owner)" in answer.notes
        chosen = sulq.select.choose(db, "plan", spend=Epsilon(100))
        assert chosen.candidate in ("high", ("if", "low"))
        assert "utility plan (declared by the owner)" in repr(chosen)
        assert "past: tests.privacy.test_holistic:past of score, moved by a person 7 at most" in str(db.facts)
        for wrong in (
            Certified("past", ("score",)),
            Certified("plan", ("score",), placed=False),
            Certified("past", ("other",), placed=False),
        ):
            with pytest.raises(QuestionError):
                db.ask(Holistic(wrong), spend=Epsilon(1))
        with pytest.raises(QuestionError, match="leave the condition out"):
            db.ask(Holistic(Certified("past", ("score",), placed=False), col("score") > 11), spend=Epsilon(1))
        with pytest.raises(QuestionError, match="No column or utility 'past'"):
            sulq.select.choose(db, "past", spend=Epsilon(1))
        assert db.spent == Epsilon(500)
    with sulq.connect(table, **told, estimators=own, ledger=place) as db:
        assert [item.name for _, item in db._ledger.declared_estimators] == ["past", "plan"]
        version = db.facts.version
    own["past"] = ("tests.privacy.test_holistic:past", Stated(6, 0, 8, ("score",)))
    with sulq.connect(table, **told, estimators=own, ledger=place) as db:
        assert db.facts.version == version + 1


FEW = [{"score": score, "flag": True} for score in (20.0, 11.0, 20.0, 11.0, 20.0, 11.0, 20.0)]


def few(changed: object) -> list[Row]:
    """Seven rows, the second of them with another cell."""
    blank = dict.fromkeys([name for name, _ in neighbours.COLUMNS] + ["pid"])
    return [blank | row | ({"score": changed} if i == 1 else {}) for i, row in enumerate(FEW)]


@pytest.mark.parametrize("neighbors", ["zero_out", "replace_one"])
def test_a_missing_cell_stands_in_its_place_S4_13(neighbors: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that lacks its value moves a certified function by what is certified, and moves no other row.

    Control: where rows that lack a value are left out, as other statistics have it, all behind them change
    sides and the function moves by more than its certificate says.
    """
    unit = Unit(None, 1, neighbors)
    programs = [asking(Holistic(Certified("turns", ("score",))), Epsilon(1))]

    def told() -> list[str]:
        with opened("memory", few(11.0), unit) as source:
            first = declared(source, programs, unit)
        with opened("memory", few(None), unit) as source:
            return differences(first, declared(source, programs, unit, earlier=first))

    assert told() == []
    monkeypatch.setattr(stored_engine, "listed", lambda tally, rows, **_: listed(tally, rows))
    assert any("moved" in line for line in told())


SCORES = (-0.0, 1e308, None, -0.0)  # past a bound or missing
READ = ["memory", "duckdb", "duckdb unprepared", "duckdb .parquet", "duckdb .csv", "duckdb .duckdb"]


def blanked(read: str, folder: Path) -> list[list[str]]:
    """What tells a table of few scores from those of which the first or the last row is blanked."""
    unit, (kind, _, how) = Unit(None, 1, "zero_out"), read.partition(" ")
    programs = [asking(Holistic(Certified(name, ("score",))), Epsilon(1)) for name in ("turns", "back")]

    def ran(gone: int | None, **options: object) -> Run:
        scores = [None if i == gone else score for i, score in enumerate(SCORES)]
        rows = [dict.fromkeys([name for name, _ in neighbours.COLUMNS] + ["pid"]) | {"score": one} for one in scores]
        given: dict[str, object] = {"prepared": False} if how == "unprepared" else {}
        if how.startswith("."):
            path = folder / f"{secrets.token_hex(4)}{how}"
            given = {"data": written(neighbours.arrow(rows), path), "prepared": path.with_suffix(".prepared")}
        with opened(kind, rows, unit, **given) as source:
            return declared(source, programs, unit, **options)

    first = ran(None)
    return [differences(first, ran(gone, earlier=first)) for gone in (0, len(SCORES) - 1)]


@pytest.mark.parametrize("read", READ)
def test_a_blanked_row_stands_in_its_place_S4_13(read: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row blanked whole, first or last, moves a certified function by what is certified, and moves no other row.

    Control: where blanked rows are left out, all behind the first (of those counted from the last: before it) change
    sides, and a function moves by more than its certificate says.
    """
    assert blanked(read, tmp_path) == [[], []]
    monkeypatch.setattr(RowBatch, "placed", lambda rows, _size: rows)
    monkeypatch.setattr(listing, "placed", lambda table, _size: table)
    assert all(any("moved" in line for line in told) for told in blanked(read, tmp_path))


def test_a_false_certificate_is_found_S4_13(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: a certificate of half of what a row does is found by the same harness; an owner can try it so."""
    unit = Unit(None, 1, "replace_one")
    false = replace(OWN[1], certificate=replace(OWN[1].certificate, within=0.2))
    monkeypatch.setattr(sys.modules[__name__], "TABLES", (TableFacts(SCHEMA, estimators=(OWN[0], false)),))
    programs = [asking(Holistic(Certified("turns", ("score",))), Epsilon(1))]
    with opened("memory", few(11.0), unit) as source:
        first = declared(source, programs, unit)
    with opened("memory", few(20.0), unit) as source:
        assert any("moved" in line for line in differences(first, declared(source, programs, unit, earlier=first)))


def test_control_a_halved_sensitivity_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: a cut that claims to move by half of what it does is found by the same harness."""
    right = graphs.MinCut.figure

    def halved(asked: graphs.MinCut, rows: int) -> Figure:
        return monotone(right(asked, rows).alone.l1 // 2)

    two = Category((1, 2))
    schema = replace(SCHEMA, columns=(("age", two), ("code", two), *SCHEMA.columns[2:]))
    edge: Row = dict.fromkeys([name for name, _ in neighbours.COLUMNS] + ["pid"], None) | {
        "age": 1,
        "code": 2,
        "gain": 1.0,
    }
    programs = [asking(Holistic(MinCut(WEIGHED)), Epsilon(1))]

    def told() -> list[str]:
        with opened("memory", [edge], Unit(), schema) as source:
            first = run(source, programs, Unit(), BUDGET, schema=schema)
        with opened("memory", [], Unit(), schema) as source:
            return differences(first, run(source, programs, Unit(), BUDGET, schema=schema, earlier=first))

    assert told() == []
    monkeypatch.setattr(graphs.MinCut, "figure", halved)
    assert any("moved" in line for line in told())


def edges(size: int = 12, rows: int = 40, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    u, v = rng.integers(0, size, (2, rows))
    return pa.table({"u": u, "v": v, "w": rng.random(rows), "pid": rng.integers(0, 9, rows)})


def graph(size: int = 12, **options: object) -> object:
    given = {"columns": {"u": range(size), "v": range(size), "w": Real(0, 1)}, "graph": ("u", "v", "w")}
    given |= {"budget": EpsilonDelta(900, 1e-6), "synthetic": True}
    return sulq.connect(options.pop("data", edges(size)), **(given | options))


@pytest.mark.parametrize(("spend", "rows"), [(Epsilon(0.5), 1), (Rho(0.02), 1), (Epsilon(1), 3)])
def test_the_deviation_of_a_release_is_that_of_the_exact_law(spend: object, rows: int) -> None:
    """One vector release of 105,570 numbers: standard deviation within 2% of the exact discrete law, mean near 0.

    Control: a law 5% wider is not within 2%.
    """
    size = 460
    unit = Unit("pid", rows) if rows > 1 else Unit()
    with graph(size, data=edges(size, 2000), unit=unit) as db:
        question = Holistic(Edges(Graph("u", "v")))
        noisy = db.ask(question, spend=spend)
        exact = sulq.testing.exact(db).ask(question)
        off = (noisy.released.values() - exact.released.values()).ravel()
        law = noisy.released.noise[0].law
        deviation = law.variance() ** 0.5
        assert len(off) == 105_570
        assert abs(off.std() / deviation - 1) < 0.02
        assert abs(off.mean()) < 5.5 * deviation / len(off) ** 0.5
        assert abs(off.std() / (1.05 * deviation) - 1) > 0.02
        if isinstance(spend, Epsilon):
            assert isinstance(law, LaplaceLaw)
            assert float(law.scale) == pytest.approx(rows / spend.epsilon)


def test_the_flips_of_a_release_are_those_of_the_exact_law() -> None:
    """S4.16: of 105,570 pairs the flipped ones are as many as the law says, to 5.5 standard errors; k rows flip more.

    Control: the flips for one row are not those for three.
    """
    size, shares = 460, {}
    for rows in (1, 3):
        unit = Unit("pid", rows) if rows > 1 else Unit()
        with graph(size, data=edges(size, 2000), unit=unit) as db:
            noisy = db.graph.edges(spend=Epsilon(1))
            exact = sulq.testing.exact(db).graph.edges()
            law = noisy.released.noise[0].law
            assert law.flipped == pytest.approx(1 / (1 + np.exp(1 / rows)), abs=1e-12)
            shares[rows] = np.mean(noisy.released.units != exact.released.units)
            assert abs(shares[rows] - law.flipped) < 5.5 * (law.flipped * (1 - law.flipped) / 105_570) ** 0.5
            assert set(noisy.value.values()) == {0, 1}
    assert shares[3] - shares[1] > 0.1


BAD = {
    "an unknown end": (lambda: Holistic(MinCut(Graph("u", "nobody"))), "unknown-column"),
    "ends declared differently": (lambda: Holistic(MinCut(Graph("u", "age"))), "wrong-kind"),
    "a weight that is no number": (lambda: Holistic(MinCut(Graph("u", "v", "city"))), "wrong-kind"),
    "one column twice": (lambda: Holistic(MinCut(Graph("u", "u"))), "bad-question"),
    "no statistic": (lambda: Holistic("min_cut"), "bad-question"),
    "no space": (lambda: Holistic(ToUnique(("u",)), space="cube"), "bad-question"),
    "a cube for a number": (lambda: Holistic(ToUnique(("u",)), space=Cube()), "wrong-kind"),
    "points of another width": (lambda: Holistic(ToUnique(("u",)), space=Points(((1, 2),))), "bad-question"),
    "points between units": (lambda: Holistic(ToUnique(("u",)), space=Points(((0.5,),))), "bad-literal"),
    "a space without ends": (lambda: Holistic(ToUnique(("u",)), space=Box(distance="discrete")), "not-normalisable"),
    "order without places": (lambda: Holistic(ToSorted("u")), "needs-position"),
    "blocks without persons": (lambda: Holistic(Aggregated("mean", ("w",), 3, 0, 1)), "needs-position"),
    "an estimator nobody named": (lambda: Holistic(Aggregated("secret", ("w",), 3, 0, 1)), "not-certified"),
    "an uncertified function": (lambda: Holistic(Certified("f", ("w",))), "not-certified"),
    "whole numbers as vertices": (lambda: Holistic(MinCut(Graph("age", "year"))), "wrong-kind"),
    "too many pairs": (lambda: Holistic(Edges(Graph("x", "y"))), "too-large"),
    "too many vertices": (lambda: Holistic(ToBoundedDegree(Graph("x", "y"), 2)), "too-large"),
    "free text": (lambda: Holistic(ToUnique(("note",))), "wrong-kind"),
    "a condition that is none": (lambda: Holistic(ToUnique(("u",)), where=3), "bad-question"),
    "a number as a condition": (lambda: Holistic(ToUnique(("u",)), where=col("u")), "wrong-kind"),
    "a derived table": (lambda: Holistic(ToUnique(("u",)), over=None), "bad-question"),
    "a negative bound": (lambda: Holistic(Triangles(Graph("u", "v"), 0)), "bad-literal"),
    "no spend": (lambda: Holistic(ToUnique(("u",))), "spend-missing"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_questions_have_a_code_and_cost_nothing(what: str) -> None:
    """Each is refused before the debit, with a code and what to do next."""
    make, code = BAD[what]
    columns = {
        "u": list(range(4)),
        "v": list(range(4)),
        "w": Real(0, 1),
        "age": Int(0, 9),
        "city": ["a"],
        "note": sulq.Text(),
    }
    columns |= {"year": Int(0, 9)}
    columns |= {"x": list(range(2000)), "y": list(range(2000))}
    data = pa.table({name: pa.array([], pa.string() if name in ("city", "note") else pa.int64()) for name in columns})
    with sulq.connect(data, columns=columns, budget=Epsilon(1)) as db:
        with pytest.raises(SulqError) as refused:
            db.ask(make(), spend=None if what == "no spend" else Epsilon(0.1))
        assert refused.value.code == code
        assert refused.value.remedy
        assert db.spent == Epsilon.total(0)


@pytest.mark.parametrize("unit", [Unit("u"), Unit("v", 3)], ids=str)
def test_a_unit_that_is_a_vertex_is_refused_SR10(unit: Unit) -> None:
    """As the graph is declared, and where it is not, as it is asked about."""
    with pytest.raises(SetupError) as refused:
        graph(unit=unit)
    assert refused.value.code == "node-unit"
    with graph(unit=unit, graph=None) as db:
        with pytest.raises(SulqError) as refused:
            db.ask(Holistic(MinCut(Graph("u", "v"))), spend=Epsilon(1))
        assert refused.value.code == "node-unit"
        assert db.spent.epsilon == 0


def test_without_the_library_the_error_names_the_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing extra is told before the debit."""
    monkeypatch.setitem(sys.modules, "rustworkx", None)
    with graph() as db:
        with pytest.raises(SetupError) as refused:
            db.graph.min_cut(spend=Epsilon(1))
        assert refused.value.code == "missing-extra"
        assert "pip install 'sulq[graph]'" in str(refused.value)
        assert db.spent.epsilon == 0


@pytest.mark.parametrize("name", ["leaky", "leaving", "loud"])
def test_what_an_owners_function_raises_or_says_is_in_no_answer_stream_or_log_T31(
    name: str, capfd: pytest.CaptureFixture, caplog: pytest.LogCaptureFixture, recwarn: pytest.WarningsRecorder
) -> None:
    """SR5: an exception that names a cell, one that leaves the interpreter, and cells printed, warned of and logged.

    Each counts as the middle, and is shown to analysts as declared. Control: called directly the function tells.
    """
    caplog.set_level(logging.DEBUG)
    place = f"tests.privacy.test_holistic:{name}"
    with graph(unit=Unit("pid", 50), estimators={name: place}) as db:
        found = sulq.testing.exact(db).sample_and_aggregate(name, "w", blocks=4, low=0, high=1)
        assert found.value == pytest.approx(0.5, abs=1e-6)
        assert f"{name}: {place} (declared by the owner)" in str(db.facts)
        noisy = db.sample_and_aggregate(name, "w", blocks=4, low=0, high=1, spend=Epsilon(1))
        assert db.verify()
    certificate = sulq.Certificate(0.2, 0.02, 0.9, 0, 1, ("w",))
    with graph(unit=Unit(None, 1, "zero_out"), estimators={name: (place, certificate)}) as db:
        certified = sulq.testing.exact(db).ask(Holistic(Certified(name, ("w",))))
        assert certified.value == pytest.approx(0.5, abs=1e-6)
    heard = capfd.readouterr()
    said = [heard.out, heard.err, caplog.text, repr(noisy), repr(certified), *(str(w.message) for w in recwarn.list)]
    assert not any("canary" in text for text in said)
    with pytest.raises((ValueError, SystemExit), match="canary"):
        globals()[name](np.array([[0.25]]))
    heard = capfd.readouterr()
    assert name != "loud" or (heard.out.count("canary"), heard.err.count("canary"), len(recwarn.list)) == (1, 1, 1)
    assert name != "loud" or "canary" in caplog.text


def leaky(rows: np.ndarray) -> float:
    """An estimator that tells a cell; of no rows it gives a number, so that it may be named."""
    if not len(rows):
        return 0.5
    raise ValueError(f"canary {rows[0, 0]}")


def leaving(rows: np.ndarray) -> float:
    """An estimator that ends the process with a cell."""
    if not len(rows):
        return 0.5
    sys.exit(f"canary {rows[0, 0]}")


def loud(rows: np.ndarray) -> float:
    """An estimator that tells a cell in every way."""
    if not len(rows):
        return 0.5
    print(f"canary {rows[0, 0]}")
    print(f"canary {rows[0, 0]}", file=sys.stderr)
    logging.getLogger("owners").error("canary %s", rows[0, 0])
    warnings.warn(f"canary {rows[0, 0]}", stacklevel=1)
    raise ValueError(f"canary {rows[0, 0]}")


def halved(rows: np.ndarray) -> float:
    """A certified function: half the mean of what is there."""
    return float(np.nanmean(rows[:, 0]) / 2)


NAMED = {"halved": ("tests.privacy.test_holistic:halved", sulq.Certificate(0.2, 0.02, 0.9, 0, 1, ("w",)))}


def test_a_certified_function_is_answered_by_its_certificate_S4_13() -> None:
    """Where the row is the person and has its place; noise as the certificate says."""
    question = Holistic(Certified("halved", ("w",)))
    for neighbors in ("replace_one", "zero_out"):
        with graph(unit=Unit(None, 1, neighbors), estimators=NAMED) as db:
            exact = sulq.testing.exact(db).ask(question).value
            assert exact == pytest.approx(edges()["w"].to_numpy().mean() / 2, abs=1e-5)
            plan = db.foresee(question, spend=Epsilon(1))
            assert float(plan.parts[0].sensitivity[0]) == pytest.approx(0.04, abs=1e-5)
            assert abs(db.ask(question, spend=Epsilon(10)).value - exact) < 0.2  # 50 scales


UNFIT = {
    "another name": (Unit(None, 1, "zero_out"), Certified("nobody", ("w",)), None, "not-certified"),
    "another column": (Unit(None, 1, "zero_out"), Certified("halved", ("v",)), None, "not-certified"),
    "a column more": (Unit(None, 1, "zero_out"), Certified("halved", ("w", "v")), None, "not-certified"),
    "a condition": (Unit(None, 1, "zero_out"), Certified("halved", ("w",)), col("u") == 3, "not-certified"),
    "without a certificate": (Unit(None, 1, "zero_out"), Certified("plain", ("w",)), None, "not-certified"),
    "rows that come and go": (Unit(), Certified("halved", ("w",)), None, "needs-position"),
    "rows of a person": (Unit("pid", 3, "zero_out"), Certified("halved", ("w",)), None, "needs-position"),
    "a row of a person": (Unit("pid", 1, "replace_one"), Certified("halved", ("w",)), None, "needs-position"),
}


@pytest.mark.parametrize("what", UNFIT)
def test_what_is_not_certified_is_refused_and_costs_nothing_SR5(what: str) -> None:
    """A certificate is for its name, its columns, the whole table, and rows that are people; control: that is paid."""
    unit, statistic, where, code = UNFIT[what]
    named = NAMED | {"plain": "tests.privacy.test_holistic:halved"}
    with graph(unit=unit, estimators=named) as db:
        with pytest.raises(SulqError) as refused:
            db.ask(Holistic(statistic, where), spend=Epsilon(1))
        assert refused.value.code == code
        assert refused.value.remedy
        assert db.spent.epsilon == 0
        if unit == Unit(None, 1, "zero_out"):
            db.ask(Holistic(Certified("halved", ("w",))), spend=Epsilon(1))
            assert db.spent.epsilon > 0


@pytest.mark.parametrize("columns", [("nobody",), ("w", "nobody")])
def test_a_certificate_is_about_declared_columns_SR5(columns: tuple[str, ...]) -> None:
    """Else it is refused as the data is opened."""
    named = {"halved": (NAMED["halved"][0], sulq.Certificate(0.2, 0.02, 0.9, 0, 1, columns))}
    with pytest.raises(SetupError) as refused:
        graph(unit=Unit(None, 1, "zero_out"), estimators=named)
    assert refused.value.code == "bad-certificate"


def test_what_the_owner_declares_is_shown_as_declared_SR5() -> None:
    """In the plan, the explanation and the answer: a certificate's sensitivity, and an owner's estimator.

    Control: of a statistic whose sensitivity is proved nothing is said to be declared.
    """
    said = "(declared by the owner)"
    with graph(unit=Unit(None, 1, "zero_out"), estimators=NAMED | {"mine": NAMED["halved"][0]}) as db:
        certified = Holistic(Certified("halved", ("w",)))
        assert f"l1 sensitivity 0.0400002 {said}  LaplaceLaw" in str(db.foresee(certified, spend=Epsilon(1)))
        assert f"sensitivity by certificate {said}" in repr(db.ask(certified, spend=Epsilon(1)))
        assert said in repr(db.ask(replace(certified, space=Box(0, 1, 0.25)), spend=Epsilon(1)))
        explained = Explanation("", db.foresee(certified, spend=Epsilon(1)), db.facts, ())
        assert f"l1 sensitivity 0.0400002 {said}" in str(explained)
        own = Holistic(Aggregated("mine", ("w",), 4, 0, 1))
        assert f"estimator mine {said}" in str(db.foresee(own, spend=Epsilon(1)))
        assert f"estimator mine {said}" in repr(db.ask(own, spend=Epsilon(1)))
        brought = Holistic(Aggregated("mean", ("w",), 4, 0, 1))
        assert said not in str(db.foresee(brought, spend=Epsilon(1))) + repr(db.ask(brought, spend=Epsilon(1)))


def test_the_ledger_holds_the_declaration_of_a_function(tmp_path: object) -> None:
    """SR5: another function under the same name is another registration, and advances the public version."""
    path = tmp_path / "g.ledger"
    versions = []
    for place in ("tests.privacy.test_holistic:halved", "tests.privacy.test_holistic:leaky"):
        with graph(unit=Unit("pid", 50), ledger=path, estimators={"own": place}) as db:
            versions.append(db.facts.version)
    assert versions[1] == versions[0] + 1


def test_answers_are_stored_priced_and_shown_like_any_other() -> None:
    """Receipt, spend, re-answer, foresight, explanation and together: as for sums."""
    with graph() as db:
        first = db.graph.min_cut(spend=Epsilon(0.5))
        again = db.graph.min_cut(spend=Epsilon(0.25))
        assert again.value == first.value
        assert again.spent.epsilon == 0
        assert db.graph.min_cut(spend=Epsilon(0.5), fresh=True).receipt.seq != first.receipt.seq
        assert "MinCut  a number  l1 sensitivity 1  LaplaceLaw" in str(
            db.foresee(Holistic(MinCut(db.graph.graph)), spend=Epsilon(1))
        )
        both = db.ask(
            Together((Holistic(MinCut(db.graph.graph)), Holistic(Degrees(db.graph.graph, 3)))), spend=Rho(0.1)
        )
        assert len(both) == 2
        assert both[1].value.shape == (3,)
        assert first.accuracy(0.05) == pytest.approx(np.log(20) / 0.5, rel=1e-3)
        assert db.verify()


def test_an_edge_to_no_vertex_is_no_edge_SR10() -> None:
    """Vertices by number, as Int: what lies outside is missing, and no edge is made to the first or last of them.

    One row is one edge at most all the same. Control: the same graph with the vertices listed.
    """
    data = pa.table({"u": [0, 1, 2, 9, -5, None], "v": [1, 2, 9, 2, 1, 2]})
    for vertices in (Int(0, 2), range(3), [0, 1, 2]):
        columns = {"u": vertices, "v": vertices}
        for engine in ("memory", "duckdb"):
            with sulq.connect(
                data, columns=columns, graph=("u", "v"), budget=Epsilon(9), synthetic=True, engine=engine
            ) as db:
                exact = sulq.testing.exact(db).graph
                assert exact.degrees(2).value.tolist() == [3, 1]
                assert exact.edges().value == {(0, 1): 1, (0, 2): 0, (1, 2): 1}
                plan = db.foresee(Holistic(Edges(db.graph.graph)), spend=Epsilon(1))
                assert plan.parts[0].sensitivity == (1,)
                counted = sulq.testing.exact(db).sql("SELECT u, COUNT(*) AS n FROM data GROUP BY u").to_dict()
                assert counted["n"][:3] == [1, 1, 1]  # in SQL too, what is no vertex is missing
                assert ("Vertices(0, 2)" in str(db.facts)) == isinstance(vertices, (Int, range))


def test_bits_say_which_pair_or_combination_they_are_about() -> None:
    """A mapping from pairs of vertices, or from labels; columns of their own in a table; with noise and as bits."""
    columns = {"u": ["a", "b", "c"], "v": ["a", "b", "c"], "city": ["Haifa", "Lod"], "flag": sulq.Bool()}
    data = pa.table({"u": ["a", "c"], "v": ["b", "b"], "city": ["Lod", "Lod"], "flag": [True, False]})
    with sulq.connect(data, columns=columns, graph=("u", "v"), budget=Epsilon(99), synthetic=True) as db:
        exact = sulq.testing.exact(db)
        found = exact.graph.edges()
        assert found.value == {("a", "b"): 1, ("a", "c"): 0, ("b", "c"): 1}
        assert found.to_arrow().to_pydict() == {"u": ["a", "a", "b"], "v": ["b", "c", "c"], "value": [1, 0, 1]}
        assert exact.occurring("city").value == {"Haifa": 0, "Lod": 1}
        both = exact.occurring(["city", "flag"])
        assert both.value == {("Haifa", False): 0, ("Haifa", True): 0, ("Lod", False): 1, ("Lod", True): 1}
        noisy = db.ask(Holistic(Edges(db.graph.graph)), spend=Epsilon(1))
        assert list(noisy.value) == list(found.value) == list(noisy.accuracy())
        assert wire.decode(wire.encode(noisy)).value == noisy.value
        assert "a / b" in repr(noisy)
        assert db.graph.edges(spend=Epsilon(1)).value == db.graph.edges(spend=Epsilon(1)).value  # stored, and read so
        assert exact.graph.degrees(2).columns == ("at_least_1", "at_least_2")
    alone = pa.table({"u": ["a"], "v": ["a"]})
    with sulq.connect(
        alone, columns={"u": ["a"], "v": ["a"]}, graph=("u", "v"), budget=Epsilon(9), synthetic=True
    ) as db:
        assert sulq.testing.exact(db).graph.edges().value == 0  # one vertex, no pair


def test_labels_of_what_occurs_are_in_the_columns_own_words() -> None:
    """Whole numbers, numbers on a grid and days."""
    columns = {"n": Int(2, 4), "x": Real(0, 1, grid=0.5), "day": sulq.Date("2024-02-28", "2024-03-01")}
    day = [datetime.date(2024, 2, 29)]
    data = pa.table({"n": [3], "x": [0.5], "day": pa.array(day, pa.date32())})
    with sulq.connect(data, columns=columns, budget=Epsilon(9), synthetic=True) as db:
        exact = sulq.testing.exact(db)
        assert exact.occurring("n").value == {2: 0, 3: 1, 4: 0}
        assert exact.occurring("x").value == {0.0: 0, 0.5: 1, 1.0: 0}
        assert exact.occurring("day").value == {"2024-02-28": 0, "2024-02-29": 1, "2024-03-01": 0}
