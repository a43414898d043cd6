"""Plans of statistics of the whole table: what a mistake of the planner's would release is refused before the debit."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import sulq
from sulq import (
    Aggregated,
    Box,
    Certificate,
    Certified,
    Cube,
    Degrees,
    Edges,
    Epsilon,
    Graph,
    Holistic,
    MinCut,
    Occurring,
    Rho,
    SpanningTree,
    ToConnected,
    ToUnique,
    Triangles,
    Unit,
    col,
)
from sulq.answers.plan import Plan
from sulq.compile.statements.proposer import Proposer
from sulq.curator import run
from sulq.errors import QuestionError
from sulq.kernel.request import Scan
from sulq.kernel.whole.figure import Move
from sulq.language import shape
from sulq.language.rowfn import Bucket, Dot, vector
from sulq.language.statistic import HeavyPersons, Statistic
from sulq.sources.stored_engine import StoredEngine

SIZE = 60
RNG = np.random.default_rng(1)
ROWS = pa.table(
    {
        "pid": [i // 3 for i in range(SIZE)],
        "u": RNG.integers(0, 6, SIZE),
        "v": RNG.integers(0, 6, SIZE),
        "x": [i % 7 for i in range(SIZE)],
        "y": [i / SIZE for i in range(SIZE)],
    }
)
COLUMNS = {"u": list(range(6)), "v": list(range(6)), "x": sulq.Int(0, 6), "y": sulq.Real(0, 1)}
GRAPH = Graph("u", "v")
PERSONS = Unit("pid", rows=2)
PLACED = Unit(neighbors="replace_one")
OWNERS = {
    "largest": "tests.curator.test_certificates_whole:largest",
    "turns": ("tests.curator.test_certificates_whole:turns", Certificate(0.2, 0.5, 0.9, -8, 8, ("x",))),
}
ASKED = {
    "cut": Holistic(MinCut(GRAPH)),
    "triangles": Holistic(Triangles(GRAPH), col("x") > 2),
    "degrees": Holistic(Degrees(GRAPH, 3)),
    "bits": Holistic(Edges(GRAPH), space=Cube()),
    "point": Holistic(ToUnique(("x",)), space=Box(0, 40)),
    "unique": Holistic(ToUnique(("x", "y")), col("y") / (col("x") + 1) > 0.1),
    "blocks": Holistic(Aggregated("median", ("x",), 4, 0, 6)),
    "own blocks": Holistic(Aggregated("largest", ("x", "y"), 3, 0, 6, salt=4), col("y").clip(0.2, 0.8) > 0.3),
    "heavy": Holistic(HeavyPersons()),
}


def largest(rows: np.ndarray) -> float:
    """An owner's estimator."""
    return float(rows[:, 0].max())


def turns(rows: np.ndarray) -> float:
    """An owner's function of rows in their places, which a row moves by one."""
    past = (rows[:, 0] > 3).astype(float)
    return float(past[::2].sum() - past[1::2].sum())


def opened(unit: Unit = PERSONS, **more: object) -> sulq.Database:
    given = {"columns": COLUMNS, "unit": unit, "budget": Epsilon(1000), "estimators": OWNERS, "synthetic": True} | more
    return sulq.connect(ROWS, **given)


def refused(db: sulq.Database, made: Plan) -> None:
    """A plan that the part that sees rows does not certify."""
    with pytest.raises(QuestionError) as stopped:
        run.Rows(db._engine, lambda *_: True).check(made)
    assert stopped.value.code == "uncertified"


def lessened(made: Plan, by: Fraction = Fraction(1, 2)) -> Plan:
    """A plan whose draws record less than is moved, for less."""
    draws = tuple(replace(draw, sensitivity=draw.sensitivity * by) for draw in made.event.draws)
    epsilon = None if made.event.epsilon is None else made.event.epsilon * by
    return replace(made, event=replace(made.event, draws=draws, epsilon=epsilon, rho=made.event.rho * by**2))


def with_whole(made: Plan, **changes: object) -> Plan:
    part = made.parts[0]
    return replace(made, parts=(replace(part, whole=replace(part.whole, **changes)),))


def of_statistic(made: Plan, statistic: Statistic) -> Plan:
    return with_whole(made, statistic=statistic)


@pytest.fixture(scope="module")
def opened_once() -> Iterator[Callable[[str, object], sulq.Database]]:
    """The same rows in each relation and under each budget, opened once for all questions."""
    with ExitStack() as stack:
        yield functools.cache(
            lambda neighbors, budget: stack.enter_context(opened(replace(PERSONS, neighbors=neighbors), budget=budget))
        )


@pytest.mark.parametrize("spend", [Epsilon(1), Rho(0.1)], ids=str)
@pytest.mark.parametrize("name", ASKED)
def test_a_draw_that_records_less_than_a_statistic_moves_is_refused_SR5(
    name: str, spend: object, opened_once: Callable[[str, object], sulq.Database]
) -> None:
    """However its loss is reckoned, in every relation. Control: as it is planned it is certified and answered."""
    for neighbors in ("add_remove", "replace_one", "zero_out"):
        budget = Epsilon(1000) if isinstance(spend, Epsilon) else sulq.EpsilonDelta(1000, 1e-6)
        db = opened_once(neighbors, budget)
        made = db.foresee(ASKED[name], spend=spend)
        run.Rows(db._engine, lambda *_: True).check(made)
        refused(db, lessened(made))
        less = replace(made.event, rho=made.event.rho / 10, epsilon=None)
        refused(db, replace(made, event=less))  # the draw as it is, for less than it costs
        db.ask(ASKED[name], spend=spend)


def test_a_planner_that_halves_a_sensitivity_is_refused_SR5(monkeypatch: pytest.MonkeyPatch) -> None:
    """The noise itself is halved then, and the debit is as it should be; nothing is spent."""
    planning = importlib.import_module("sulq.compile.plan.holistic")
    real = planning.sensitivity

    def halved(*given: object) -> Move:
        move = real(*given)
        return Move(move.l1 // 2, move.l2_squared // 4, move.most // 2, move.bits // 2)

    monkeypatch.setattr(planning, "sensitivity", halved)
    with opened() as db:
        for name in ("cut", "triangles", "degrees", "bits", "point", "blocks"):
            before = db.facts.spent
            with pytest.raises(QuestionError) as stopped:
                db.ask(ASKED[name], spend=Epsilon(1))
            assert stopped.value.code == "uncertified"
            assert db.facts.spent == before


def test_a_planner_that_forgets_a_persons_rows_is_refused_SR1(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person's two rows counted as one: the kernel's own facts say two. Blocks do not care."""
    real = shape._table
    monkeypatch.setattr(shape, "_table", lambda table, facts: replace(real(table, facts), rows=1))
    with opened() as db:
        db.ask(ASKED["blocks"], spend=Epsilon(1))
        for name in ("cut", "triangles", "degrees", "bits", "point", "unique"):
            with pytest.raises(QuestionError) as stopped:
                db.ask(ASKED[name], spend=Epsilon(1))
            assert stopped.value.code == "uncertified"


def test_another_statistic_than_planned_is_refused_SR5() -> None:
    """One that moves farther, one of other columns, one of other numbers. Control: one that moves as far."""
    with opened() as db:
        made = db.foresee(Holistic(MinCut(GRAPH)), spend=Epsilon(1))
        rows = run.Rows(db._engine, lambda *_: True)
        rows.check(of_statistic(made, ToConnected(GRAPH)))
        rows.check(of_statistic(made, SpanningTree(GRAPH)))
        others = (Triangles(GRAPH), Degrees(GRAPH, 1), Edges(GRAPH), Occurring(("u", "v")))
        for other in (*others, Aggregated("median", ("v",), 4, 0, 6)):
            refused(db, of_statistic(made, other))
    with opened(replace(PERSONS, neighbors="replace_one")) as db:  # where a tree moves twice as far as a cut
        refused(db, of_statistic(db.foresee(Holistic(MinCut(GRAPH)), spend=Epsilon(1)), SpanningTree(GRAPH)))


def test_other_noise_than_a_statistic_is_hidden_by_is_refused_SR5() -> None:
    """A space that the plan did not draw its law for, and the plain noise of a point."""
    with opened() as db:
        plain = db.foresee(Holistic(Edges(GRAPH)), spend=Epsilon(1))
        bits = db.foresee(ASKED["bits"], spend=Epsilon(1))
        refused(db, with_whole(plain, space=Cube()))
        refused(db, with_whole(bits, space=None))
        point = db.foresee(ASKED["point"], spend=Epsilon(1))
        refused(db, with_whole(point, space=None))
        refused(db, with_whole(point, width=2))


def test_a_certificate_that_is_not_the_owners_is_refused_S4_13() -> None:
    """Of half of what the owner declares, of another range, or of a function declared without one.

    Control: the owner's own is answered.
    """
    asked = Holistic(Certified("turns", ("x",)))
    with opened(PLACED) as db:
        made = db.foresee(asked, spend=Epsilon(1))
        rows = run.Rows(db._engine, lambda *_: True)
        rows.check(made)
        mine = made.parts[0].whole.certificate
        for change in ({"within": 0.25}, {"low": -4}, {"high": 4}):
            refused(db, with_whole(made, certificate=replace(mine, **change)))
        refused(db, with_whole(made, statistic=Certified("largest", ("x",))))
        part = made.parts[0]
        refused(db, replace(made, parts=(replace(part, tally=replace(part.tally, where=col("x") > 1)),)))
        first, other = part.tally.blocks
        wrong = replace(part.tally, blocks=(first, replace(other, fn=col("u"))))
        refused(db, replace(made, parts=(replace(part, tally=wrong),)))
        db.ask(asked, spend=Epsilon(1))


@pytest.mark.parametrize("unit", [PERSONS, PLACED], ids=str)
def test_blocks_by_other_than_the_person_are_refused_SR11(unit: Unit, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that tells blocks by a column would put one person into all of them. Control: the person's hash."""
    with opened(unit) as db:
        db.ask(ASKED["blocks"], spend=Epsilon(1))
    real = Proposer._beside
    monkeypatch.setattr(Proposer, "_beside", lambda self, fn: "c0" if isinstance(fn, Bucket) else real(self, fn))
    with opened(unit) as db, pytest.raises(QuestionError) as stopped:
        db.ask(ASKED["blocks"], spend=Epsilon(1))
    assert stopped.value.code == "uncertified"


def twice(scan: Scan) -> Scan:
    return Scan(f"{scan.sql} UNION ALL {scan.sql}", scan.texts)


def met(scan: Scan) -> Scan:
    return Scan(scan.sql.replace("c0", "max(c0) OVER () AS c0", 1), scan.texts)


@pytest.mark.parametrize("change", [twice, met])
def test_a_listing_in_which_rows_are_twice_or_meet_is_refused(
    change: Callable[[Scan], Scan], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that a writer lists a second time, or that look at others. Control: listed once they are answered."""
    real = Proposer.listing
    with opened() as db:
        db.ask(ASKED["cut"], spend=Epsilon(1))
    monkeypatch.setattr(Proposer, "listing", lambda self, tally: change(real(self, tally)))
    with opened() as db, pytest.raises(QuestionError) as stopped:
        db.ask(ASKED["cut"], spend=Epsilon(1))
    assert stopped.value.code == "uncertified"


def test_what_is_listed_is_what_was_certified(monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that writes another statement the second time is not asked a second time."""
    real, written = Proposer.listing, []

    def counted(self: Proposer, tally: object) -> Scan:
        written.append(real(self, tally))
        return written[-1]

    monkeypatch.setattr(Proposer, "listing", counted)
    with opened() as db:
        db.ask(ASKED["triangles"], spend=Epsilon(1))
    assert len(written) == 1


BY_HAND = Holistic(ToUnique(("x",)), Dot(vector(["x", "y"]), (1, 2)) > 1)


@pytest.mark.parametrize("prepared", [None, False])
def test_what_no_statement_lists_is_priced_too_SR5(prepared: object) -> None:
    """Rows read by hand, as SQL does not say the condition, or without a copy: by the rules of plans, anew."""
    with opened(prepared=prepared) as db:
        made = db.foresee(BY_HAND, spend=Epsilon(1))
        assert isinstance(db._engine, StoredEngine)
        assert db._engine.listing(made.parts[0].tally) is None
        refused(db, lessened(made))
        refused(db, of_statistic(made, Aggregated("median", ("x",), 4, 0, 6)))
        db.ask(BY_HAND, spend=Epsilon(1))
    with opened(PLACED, prepared=prepared) as db:
        made = db.foresee(Holistic(Certified("turns", ("x",))), spend=Epsilon(1))
        part = made.parts[0]
        condition = replace(part.tally, where=BY_HAND.where)
        refused(db, replace(made, parts=(replace(part, tally=condition),)))
        refused(db, with_whole(made, certificate=replace(part.whole.certificate, within=0.25)))
