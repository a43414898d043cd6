"""The kernel's certificates against plans: what a mistake in a proposer would release is refused before the debit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import pandas as pd
import pyarrow as pa
import pytest

import sulq
from sulq import Epsilon, EpsilonDelta, Rho, Unit
from sulq.answers import wire
from sulq.answers.answer import Receipt
from sulq.answers.plan import Part, Plan
from sulq.compile import plan
from sulq.compile.plan import calibration, extent
from sulq.compile.plan.draft import PlanDraft
from sulq.compile.statements import aggregate, derived_tables, emitter, kept_table
from sulq.compile.statements.emitter import Emitter
from sulq.curator import run
from sulq.errors import CuratorError, QuestionError
from sulq.kernel.scores import Span
from sulq.language import rowfn, shape
from sulq.language.domain import Bool, Category, Schema, Text
from sulq.language.law import BinomialLaw, LaplaceLaw, Law, PassedLaw
from sulq.language.privacy import Draw, Event
from sulq.language.question import Above, Choose, OpenSums, Sums
from sulq.language.relation import Table, Where
from sulq.language.rowfn import Dot, Vector, col, lit, scalar, vector
from sulq.language.rowfn.piece import Piece
from sulq.language.score import Linear, Rank
from sulq.language.tally import Block, Tally
from tests import expressions
from tests.sources.cases import ask, duck

ROWS = pa.table(
    {
        "pid": [i // 3 for i in range(60)],
        "x": [i % 7 for i in range(60)],
        "y": [i / 60 for i in range(60)],
        "g": ["abc"[i % 3] for i in range(60)],
        "note": [f"n{i % 4}" for i in range(60)],
    }
)
VISITS = pa.table({"pid": [i // 4 for i in range(60)], "z": [i % 5 for i in range(60)]})


def opened(unit: Unit | None = None, budget: object = Epsilon(1000)) -> sulq.Database:
    """Two tables of people with several rows."""
    return sulq.connect(
        {"rows": ROWS, "visits": VISITS},
        columns={
            "rows": {
                "x": sulq.Int(0, 6),
                "y": sulq.Real(0, 1),
                "g": sulq.Category(tuple("abc")),
                "note": sulq.Text(),
            },
            "visits": {"z": sulq.Int(0, 4)},
        },
        unit=unit or Unit("pid", rows=3),
        budget=budget,
        synthetic=True,
    )


RECEIPT = Receipt(1, "entry", "plan", "mac")
JOIN = "SELECT COUNT(*), SUM(x) FROM rows JOIN visits ON rows.pid = visits.pid"
PER_PERSON = "SELECT SUM(n) FROM (SELECT pid, COUNT(*) AS n FROM rows GROUP BY pid)"
ASKED: dict[str, Callable[[sulq.Database], object]] = {
    "count": lambda db: db.count(spend=Epsilon(1), fresh=True),
    "sums": lambda db: db.sql("SELECT g, SUM(x), AVG(y) FROM rows GROUP BY g", spend=Epsilon(1), fresh=True),
    "join": lambda db: db.sql(JOIN, spend=Epsilon(1), fresh=True),
    "per person": lambda db: db.sql(PER_PERSON, spend=Epsilon(1), fresh=True),
    "median": lambda db: db.sql("SELECT MEDIAN(x) FROM rows", spend=Epsilon(1), fresh=True),
}


def spent(db: sulq.Database) -> object:
    return db.facts.spent


def refused(db: sulq.Database, ask: Callable[[sulq.Database], object]) -> None:
    """An ask that is refused, for nothing."""
    before = spent(db)
    with pytest.raises(QuestionError) as stopped:
        ask(db)
    assert stopped.value.code == "uncertified"
    assert spent(db) == before


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one", "zero_out"])
@pytest.mark.parametrize("name", ASKED)
def test_what_is_planned_is_certified(name: str, neighbors: str) -> None:
    """Control of all below: without a mistake every one of them is answered."""
    with opened(Unit("pid", rows=3, neighbors=neighbors)) as db:
        ASKED[name](db)


@pytest.mark.parametrize("spend", [Rho(0.1), EpsilonDelta(1, 1e-6)])
def test_gaussian_noise_and_open_keys_are_certified(spend: object) -> None:
    """Sums by listed keys, and by keys found in the data."""
    with opened(budget=EpsilonDelta(1000, 1e-3)) as db:
        db.sql("SELECT g, SUM(x) FROM rows GROUP BY g", spend=spend, fresh=True)
        if isinstance(spend, EpsilonDelta):
            db.sql("SELECT note, COUNT(*), SUM(x) FROM rows GROUP BY note", spend=spend, fresh=True)


# Mistakes in what proposes: each one word or sign, each of which would have released more than was paid for.


def test_a_shape_that_forgets_a_persons_rows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table's rows of a person counted as one: the loss would be three times the debit."""
    real = shape._table
    monkeypatch.setattr(shape, "_table", lambda table, facts: replace(real(table, facts), rows=1))
    with opened() as db:
        refused(db, ASKED["sums"])


def test_a_join_that_forgets_its_pairs_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine pairs of a person counted as three."""
    monkeypatch.setattr(shape, "_pairs", lambda _join, left, *_: (left.rows, left.most))
    with opened() as db:
        refused(db, ASKED["join"])


def test_a_fan_out_of_one_too_few_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that agree said to be one."""
    monkeypatch.setattr(shape, "fan_out", lambda *_: 1)
    with opened() as db:
        refused(db, ASKED["join"])


def test_an_emitter_that_does_not_clamp_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum of what is on its grid and not within its bounds; where no cell can pass them it is harmless."""
    for module in (emitter, scalar):
        monkeypatch.setattr(module, "clamped", lambda item, *_: item)
    with opened() as db:
        db.sum(col("x") * col("x") - 30, spend=Epsilon(1), fresh=True)
        refused(db, lambda db: db.sum(col("x").clip(0, 2), spend=Epsilon(1), fresh=True))


def test_an_emitter_of_a_finer_grid_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds in units of another step."""
    real = Emitter.on_grid

    def finer(self: Emitter, item: Piece, step: Fraction, low: int, high: int) -> Piece:
        return real(self, item, step / 8, low * 8, high * 8)

    monkeypatch.setattr(Emitter, "on_grid", finer)
    with opened() as db:
        refused(db, lambda db: db.sum(col("x") * col("y"), spend=Epsilon(1), fresh=True))


def test_weights_that_count_twice_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block whose coordinate is twice its aggregate."""
    monkeypatch.setattr(aggregate, "add", _doubled(aggregate.add))
    with opened() as db:
        refused(db, lambda db: db.sum("x", spend=Epsilon(1), fresh=True))


def _doubled(add: Callable[..., None]) -> Callable[..., None]:
    def twice(query: aggregate.Query, place: int, block: object) -> None:
        add(query, place, block)
        at, weights = query.blocks[-1]
        query.blocks[-1] = (at, [{key: 2 * weight for key, weight in each.items()} for each in weights])

    return twice


def test_a_union_written_twice_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person's groups that are put into the relation a second time."""
    real = derived_tables._Writer._made

    def twice(self: derived_tables._Writer, query: str, relation: object, *sources: object, **more: object) -> object:
        made = real(self, query, relation, *sources, **more)
        return replace(made, relation=f"(SELECT * FROM {made.relation} UNION ALL SELECT * FROM {made.relation})")

    monkeypatch.setattr(derived_tables._Writer, "_made", twice)
    with opened() as db:
        refused(db, ASKED["per person"])


def test_a_person_lost_on_the_way_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A join of two private tables that is not by the person."""
    monkeypatch.setattr(derived_tables, "OWNER", "c0")
    with opened() as db:
        refused(db, ASKED["join"])


def planned_with(monkeypatch: pytest.MonkeyPatch, **mistake: object) -> None:
    """Plans whose step of contributions makes a mistake; their own checks compare with their own numbers."""

    def wrong(draft: PlanDraft) -> PlanDraft:
        return replace(calibration.contribution(draft), **mistake)

    monkeypatch.setattr(
        plan, "STEPS", tuple(wrong if step is calibration.contribution else step for step in plan.STEPS)
    )


def test_a_calibration_with_too_little_noise_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A draw that records less than a person moves, and a scale for it."""
    planned_with(monkeypatch, rows=1)
    with opened() as db:
        refused(db, ASKED["count"])


def test_a_way_that_is_left_out_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under replace_one, rows that appear and vanish are not planned for."""
    planned_with(monkeypatch, ways=("pair",))
    with opened(Unit("pid", rows=3, neighbors="replace_one")) as db:
        refused(db, lambda db: db.count(spend=Epsilon(1), fresh=True))


CHOICES: dict[str, Callable[[sulq.Database], object]] = {
    "median": lambda db: db.ask(Choose(MOST.counts, Rank(1, 2)), spend=Epsilon(1)),
    "most frequent": lambda db: db.ask(MOST, spend=Rho(1)),
    "first above": lambda db: db.ask(FIRST, spend=Epsilon(1)),
}
MOST = Choose(Sums((lit(1),), by=(col("g"),), over=Table("rows")), Linear(((1, 0, 0), (0, 1, 0), (0, 0, 1))))
FIRST = Above(Sums((col("x"),), by=(col("g"),), over=Table("rows")), 40)


@pytest.mark.parametrize("name", CHOICES)
def test_a_choice_with_too_narrow_a_span_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores, or sums at a threshold, that move farther than their noise was made for. Control: as planned."""
    with opened(budget=EpsilonDelta(1000, 1e-3)) as db:
        CHOICES[name](db)
    real = calibration.span
    monkeypatch.setattr(calibration, "span", lambda *asked: Span(real(*asked).single // 2, real(*asked).pair))
    extents = calibration.extent
    monkeypatch.setattr(
        calibration, "extent", lambda *asked, **how: replace(extents(*asked, **how), single_l1=1, single_coordinate=1)
    )
    with opened(budget=EpsilonDelta(1000, 1e-3)) as db:
        refused(db, CHOICES[name])


def test_columns_that_reach_farther_than_planned_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Facts of a column that may be twice as large."""
    real = kept_table._table

    def wider(*asked: object) -> object:
        found = real(*asked)
        columns = [(name, replace(c, high=None if c.high is None else 2 * c.high)) for name, c in found.columns]
        return replace(found, columns=tuple(columns))

    monkeypatch.setattr(kept_table, "_table", wider)
    with opened() as db:
        refused(db, lambda db: db.sum("x", spend=Epsilon(1), fresh=True))


def test_where_rows_are_read_it_is_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check before the debit that was left out changes nothing: no row is read, though the debit stands."""
    monkeypatch.setattr(run.Rows, "check", lambda *_: wire.Writer())
    real = shape._table
    monkeypatch.setattr(shape, "_table", lambda table, facts: replace(real(table, facts), rows=1))
    with opened() as db, pytest.raises(CuratorError) as stopped:
        ASKED["sums"](db)
    assert stopped.value.code == "uncertified"


def test_the_same_sums_for_another_debit_are_checked_again() -> None:
    """What was certified is remembered with its debit. Control: with that debit they are not checked twice."""
    with opened() as db:
        made = db.foresee(Sums((lit(1),), over=Table("rows")), spend=Epsilon(1))
        rows = run.Rows(db._engine, lambda *_: True)
        rows.check(made)
        rows.run(made, RECEIPT)
        with pytest.raises(CuratorError) as stopped:
            rows.run(replace(made, event=replace(made.event, epsilon=Fraction(1, 2))), RECEIPT)
    assert stopped.value.code == "uncertified"


def test_what_is_remembered_of_a_plan_holds_for_the_facts_it_was_certified_by(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: by the same facts a plan is certified once, however often it is asked."""
    with opened() as db:
        db.prepare()  # from here on facts are the same
        made = db.foresee(Sums((lit(1),), over=Table("rows")), spend=Epsilon(1))
        assert db.foresee(Sums((lit(1),), over=Table("rows")), spend=Epsilon(1)) is made
        rows, checks = run.Rows(db._engine, lambda *_: True), []
        real = rows._kernel.check
        monkeypatch.setattr(rows._kernel, "check", lambda *asked: (checks.append(asked), real(*asked))[1])
        for _ in range(2):
            rows.check(made)
            rows.run(made, RECEIPT)
        assert len(checks) == 1
        db._engine._known_facts = None  # they are made anew
        rows.run(made, RECEIPT)
        assert len(checks) == 2


def test_what_is_remembered_does_not_grow_with_each_ask() -> None:
    """The texts that an ask writes beside those of its plan are forgotten; the control: another question is kept."""
    with opened() as db:
        rows, sizes = db._oracle.curator._rows, []
        for spend in (1, 1, 1, 0.5):
            db.count(spend=Epsilon(spend), fresh=True)
            kept = rows._plans._found.values()
            sizes.append(sum(len(text) for found, _ in kept for _, text in found.writer._known.values()))
    assert sizes[0] == sizes[1] == sizes[2] < sizes[3]


def test_every_row_function_is_certified_as_planned_where_no_cell_is_missing() -> None:
    """One row a person, exchanged: a function whose SQL is guarded by CASE counts as missing in the plan too.

    Control: one that is taken for total by the plan alone is refused.
    """
    columns = {name: replace(column, missing=False) for name, column in expressions.SCHEMA.columns}
    cells = {Bool: True, Text: "x", Category: "Lod"}
    frame = {name: [cells.get(type(c), getattr(c, "lo", None))] for name, c in columns.items()} | {"grade": [3]}
    found, keys = [], set()
    with sulq.connect(
        pd.DataFrame(frame), columns=columns, unit=Unit(None, 1, "replace_one"), budget=Epsilon(1), synthetic=True
    ) as db:
        rows = db._oracle.curator._rows
        for node, fn in expressions.EXAMPLES.items():
            try:
                made = db.foresee(Sums((fn,)), spend=Epsilon(0.1))
            except QuestionError as error:
                keys.add(error.code)
                continue
            rows.check(made)
            found.append(node)
        assert keys == {"unbounded", "wrong-kind"}
        assert len(found) > 30
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(extent, "_partial", lambda *_, **__: False)
            made = db.foresee(Sums((rowfn.Maths("sqrt", col("above")),)), spend=Epsilon(0.1))
            with pytest.raises(QuestionError) as stopped:
                rows.check(made)
    assert stopped.value.code == "uncertified"


def tampered(change: Callable[[Plan], Plan]) -> str:
    """What the kernel says of a plan that somebody changed on its way to the rows; "" where it is certified."""
    with opened(budget=EpsilonDelta(1000, 1e-3)) as db:
        asked = Sums((lit(1), col("x")), by=(col("g"),), over=Table("rows"))
        groups = OpenSums((col("x"),), by=(col("note"),), over=Table("rows"))
        plans = [db.foresee(asked, spend=Epsilon(1)), db.foresee(asked, spend=Rho(1))]
        plans.append(db.foresee(groups, spend=EpsilonDelta(1, 1e-6)))
        plans += [db.foresee(MOST, spend=spend) for spend in (Epsilon(1), Rho(1))]
        plans += [db.foresee(FIRST, spend=spend) for spend in (Epsilon(1), Rho(1))]
        found = []
        for made in map(change, plans):
            try:
                run.Rows(db._engine, lambda *_: True).check(made)
            except QuestionError as refused:
                found.append(str(refused))
        return "; ".join(found)


def with_draws(made: Plan, **change: Callable[[Draw], object]) -> Plan:
    """A plan whose draws record something else."""
    draws = tuple(replace(d, **{name: new(d) for name, new in change.items()}) for d in made.event.draws)
    return replace(made, event=replace(made.event, draws=draws))


def with_law(made: Plan, law: Callable[[Law], Law]) -> Plan:
    """A plan with other noise on the last block."""
    return replace(made, parts=tuple(replace(p, laws=(*p.laws[:-1], law(p.laws[-1]))) for p in made.parts))


def cheaper(made: Plan) -> Plan:
    """A plan for half the price."""
    event = made.event
    epsilon = None if event.epsilon is None else event.epsilon / 2
    return replace(made, event=replace(event, epsilon=epsilon, rho=event.rho / 4))


TAMPERED: dict[str, tuple[Callable[[Plan], Plan], int]] = {  # and how many of seven plans are refused
    "less noise": (lambda p: with_law(p, lambda law: replace(law, scale=Fraction(1, 8))), 7),
    "another law": (lambda p: with_law(p, lambda _: BinomialLaw(4)), 7),
    "a draw less": (lambda p: replace(p, event=replace(p.event, draws=p.event.draws[1:])), 7),
    "a smaller debit": (cheaper, 7),
    "a pure debit for Gaussian noise": (lambda p: replace(p, event=replace(p.event, epsilon=Fraction(1))), 4),
    "a sensitivity too small": (lambda p: with_draws(p, sensitivity=lambda d: d.sensitivity / 9), 7),
    "fewer groups alone": (lambda p: with_draws(p, alone=lambda d: min(d.alone, 1)), 1),
    "no key delta": (lambda p: replace(p, event=replace(p.event, key_delta=Fraction(0))), 1),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_a_plan_that_was_changed_on_its_way_is_refused(name: str) -> None:
    """Noise, draws and price must agree with each other and with the certificate. Control: unchanged they do."""
    change, refusals = TAMPERED[name]
    assert tampered(lambda made: made) == ""
    assert len(tampered(change).split("; ")) == refusals
    assert tampered(change)


def with_tally(made: Plan, **change: Callable[[Tally], object]) -> Plan:
    """A plan of other sums."""
    parts = [replace(p, tally=replace(p.tally, **{n: new(p.tally) for n, new in change.items()})) for p in made.parts]
    return replace(made, parts=tuple(parts))


def narrow(tally: Tally) -> tuple[Block, ...]:
    return tuple(replace(b, high=tuple(0 for _ in b.high), low=tuple(0 for _ in b.low)) for b in tally.blocks)


UNFORMED: dict[str, Callable[[Plan], Plan]] = {
    "cells that the keys do not have": lambda p: with_tally(p, cells=lambda t: t.cells + 1),
    "no sums": lambda p: with_tally(p, blocks=lambda _: ()),
    "a key of fewer labels": lambda p: with_tally(
        p, by=lambda t: (replace(t.by[0], labels=t.by[0].labels[1:]),), cells=lambda _: 2
    ),
    "a number as a condition": lambda p: with_tally(p, where=lambda _: col("x")),
    "a vector of narrower bounds": lambda p: with_tally(p, blocks=narrow),
    "no grid": lambda p: replace(p, parts=tuple(replace(part, refine=()) for part in p.parts)),
    "a grid finer than any": lambda p: replace(p, parts=tuple(replace(part, refine=(-1,)) for part in p.parts)),
}


@pytest.mark.parametrize("name", UNFORMED)
def test_a_plan_that_cannot_be_run_is_refused_before_the_debit(name: str) -> None:
    """What would fail where rows are read, charged, is refused for nothing. Control: unchanged it is certified."""
    with opened() as db:
        asked = Sums((Vector((col("x") > 1, col("x") > 2), 1),), by=(col("g"),), over=Table("rows"))
        made = db.foresee(asked, spend=Epsilon(1))
        rows = run.Rows(db._engine, lambda *_: True)
        rows.check(made)
        with pytest.raises(QuestionError) as stopped:
            rows.check(UNFORMED[name](made))
    assert stopped.value.code == "uncertified"


def test_a_threshold_over_a_folded_vector_is_priced_by_its_span() -> None:
    """Vectors that are folded say what one row adds to each coordinate: two such thresholds cost twice as much.

    Control: one of them, for the whole debit. Without the coordinates' bounds the span was taken to be 0.
    """
    with opened() as db:
        flags = Vector((col("x") > 0, col("x") > 1, col("x") > 2), 1)
        made = db.foresee(Above(Sums((flags,), over=Table("rows")), (1, 2, 3)), spend=Epsilon(1))
        rows = run.Rows(db._engine, lambda *_: True)
        rows.check(made)
        twice = replace(made, parts=made.parts * 2, event=replace(made.event, draws=made.event.draws * 2))
        with pytest.raises(QuestionError, match="the certified loss is more than the debit"):
            rows.check(twice)


def test_a_threshold_of_people_is_for_people_alone() -> None:
    """Of groups that are found in the data, sums have noise and no threshold. Control: the plan as it was drawn."""
    with opened(budget=EpsilonDelta(1000, 1e-3)) as db:
        groups = OpenSums((col("x"),), by=(col("note"),), over=Table("rows"))
        made = db.foresee(groups, spend=EpsilonDelta(1, 1e-6))
        rows = run.Rows(db._engine, lambda *_: True)
        rows.check(made)
        passed = with_law(made, lambda law: PassedLaw(law.scale, 3))
        draws = (made.event.draws[0], replace(made.event.draws[1], mechanism="passed", threshold=3))
        with pytest.raises(QuestionError, match="a threshold of people for sums"):
            rows.check(replace(passed, event=replace(passed.event, draws=draws)))


def test_what_has_no_certificate_is_priced_by_the_rules_of_plans() -> None:
    """Rows that are read without a copy: no sensitivity that a request states is believed (SR5).

    Control: the plan as it was drawn is answered.
    """
    columns = {"x": sulq.Int(0, 6), "g": sulq.Category(tuple("abc"))}
    unit = Unit("pid", rows=3)
    with sulq.connect(ROWS, columns=columns, unit=unit, budget=Epsilon(9), prepared=False, synthetic=True) as db:
        made = db.foresee(Sums((col("x"),), by=(col("g"),)), spend=Epsilon(1))
        rows = run.Rows(db._engine, lambda *_: True)
        rows.check(made)
        for change in (cheaper, lambda p: with_draws(p, sensitivity=lambda d: d.sensitivity / 9)):
            with pytest.raises(QuestionError) as stopped:
                rows.check(change(made))
            assert stopped.value.code == "uncertified"


@pytest.mark.parametrize("prepared", [None, False])
def test_rows_that_may_drop_out_of_what_is_summed_by_hand_cost_what_they_move_SR1(prepared: object) -> None:
    """Where SQL does not say a relation, or there is no copy, a debit of nothing buys nothing.

    Control: for what a row moves it is answered.
    """
    schema, unit, law = (
        Schema("data", (("x", sulq.Real(0, 1)),)),
        Unit(neighbors="replace_one"),
        LaplaceLaw(Fraction(1)),
    )
    engine = duck(pa.table({"x": [0.1, 0.9]}), unit, schema, prepared=prepared)
    over = Where(Table("data"), Dot(vector(["x"]), (1,)) > 0.3)
    part = Part(replace(ask(lit(1), schema=schema), over=over), (law,), (0,), (Fraction(1),), "l1")
    rows, question = run.Rows(engine, lambda *_: True), Sums((lit(1),), over=over)
    for epsilon, certain in ((0, False), (1, True)):
        draw = Draw("laplace", "replace_one", "l1", Fraction(epsilon), law.scale, Fraction(1), 1)
        event = Event(Fraction(epsilon), Fraction(epsilon, 2), draws=(draw,))
        if certain:
            rows.check(Plan(question, (part,), event, Epsilon(1), unit, "dp"))
        else:
            with pytest.raises(QuestionError, match="does not certify"):
                rows.check(Plan(question, (part,), event, Epsilon(1), unit, "dp"))
    engine.close()


def test_facts_that_cannot_be_worked_out_certify_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine whose facts fail is not taken for one outside the promise. Control: with its facts it is answered."""

    def failing(*_: object) -> object:
        raise AttributeError("no such fact")

    with opened() as db:
        db.prepare()
        ASKED["count"](db)
        db._engine._kernel_facts = db._engine._known_facts = None
        monkeypatch.setattr(kept_table, "stored_facts", failing)
        refused(db, ASKED["count"])
