"""Row functions to programs: the same sums as the oracle's, and no mistake here moves more than was planned."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import sulq
from sulq.compile.plan.extent import extent
from sulq.compile.statements.programs.compiler import ProgramCompiler
from sulq.errors import QuestionError
from sulq.kernel.facts import Refused
from sulq.kernel.programs import Fold, Stack, Step, Sum
from sulq.language.domain import Category, Int, Real, Schema
from sulq.language.privacy import Unit
from sulq.language.question import Sums
from sulq.language.rowfn import (
    Bernstein,
    Dot,
    Power,
    Scaled,
    Vector,
    bins,
    case,
    col,
    lit,
    lookup,
    nearest,
    outer,
    vector,
    within_ball,
)
from sulq.language.rowfn.keys import Each, OrMissing
from sulq.language.rowfn.trees import Route
from sulq.language.tally import Tally
from sulq.sources.duckdb.engine import DuckEngine
from sulq.sources.origin import Origin
from sulq.sources.tables import Dataset
from tests import generate, random_tallies
from tests.certified import certified, within
from tests.counts import count, generator
from tests.sources import oracle
from tests.sources.cases import ask, duck, plain_engine

KEY = b"k" * 32
SCHEMA = Schema.of("data", {"x": Real(-1, 1), "y": Real(0.5, 1), "n": Int(-3, 9), "g": Category(("a", "b", "c"))})
PAIR = vector(["x", "y"])
BALL = within_ball(vector(["x", "y", "n"]), 1.5)
SIGN = case((Dot(PAIR, (1, -1)) > 0, 1), otherwise=-1)
TALLIES: dict[str, Tally] = {
    "products": ask(outer(BALL), schema=SCHEMA),
    "ball": ask(BALL, where=col("n") > -2, schema=SCHEMA),
    "centres": ask(lit(1), PAIR, by=(nearest(PAIR, [[0, 0.5], [-0.5, 0.7]]), col("g")), schema=SCHEMA),
    "signs": ask(Scaled(BALL, SIGN), lit(1), where=Dot(BALL, (1, 1, -1)) * SIGN <= 0, schema=SCHEMA),
    "table": ask(lookup([bins(Dot(PAIR, (1, 1)), [-1, 0, 1, 2])], [[1, 2], [3, 4], [5, -6]]), schema=SCHEMA),
    "terms": ask(Bernstein(Dot(PAIR, (1, 1)).clip(-1, 1), 2), schema=SCHEMA),
}


def people(rows: int = 60) -> pa.Table:
    """Rows of persons of two each, some cells missing."""
    rng = np.random.default_rng(5)
    cells = {
        "x": rng.uniform(-1, 1, rows),
        "y": rng.uniform(0.5, 1, rows),
        "n": rng.integers(-3, 10, rows).astype(float),
    }
    found = {name: pa.array(values, mask=rng.random(rows) < 0.1) for name, values in cells.items()}
    return pa.table(found | {"g": rng.choice(list("abc"), rows), "who": [f"p{i // 2}" for i in range(rows)]})


def test_programs_give_the_integers_of_the_oracle_SR16() -> None:
    """Generated tallies of all row functions that are folded: none has another sum or bound than planned."""
    planned = count("programs of folds against big integers", short=24, long=4_000)
    done, seed = 0, 0
    while done < planned:
        rng = generator(f"programs {seed}")
        seed += 1
        data = generate.table(rng)
        engine = DuckEngine(
            Dataset.one(Origin.of(data.arrow()), data.schema, data.unit, KEY),
            batch=rng.choice((1, 7, 65_536)),
            resident=rng.choice((None, 0, 200)),
        )
        rows = oracle.kept(data, KEY)
        for tally in [random_tallies.tally(rng, data.schema, data.unit) for _ in range(12)]:
            if engine.propose(tally).fold is None:
                continue
            assert within_plan(engine, tally), f"seed {seed - 1}"
            assert engine.sums(tally).open().tolist() == oracle.sums(tally, data.schema, rows), f"seed {seed - 1}"
            done += 1
        engine.close()


def centred(names: list[str], middles: list[float], half: float) -> Vector:
    """Coordinates about a centre, as learners of a mean and of products write them."""
    return Vector(tuple((col(name) - middle) / half for name, middle in zip(names, middles, strict=True)))


@pytest.mark.parametrize("grid", [2.0**-60, 2.0**-40, 2.0**-22, 1.0, 2.0**20, 2.0**60])
@pytest.mark.parametrize("middle", [0.0, 0.3, -1e-20, 1e18])
def test_a_step_that_is_multiplied_with_last_changes_no_bit_SR16(grid: float, middle: float) -> None:
    """Columns of fine and coarse grids about near and far centres, and their squares: the oracle's sums."""
    rng = np.random.default_rng(7)
    wide = 1000 * grid
    schema = Schema.of("data", {name: Real(-wide, wide, grid=grid) for name in ("x", "y")})
    cells = {name: pa.array(rng.uniform(-wide, wide, 200), mask=rng.random(200) < 0.1) for name in ("x", "y")}
    data = pa.table(cells)
    engine = duck(data, schema=schema)
    for half in (1.0, 0.37 * wide, 3.0):
        found = centred(["x", "y"], [middle * wide, middle], half)
        squares = Vector(tuple(Power(item, 2) for item in found.items))
        tallies = [ask(fn, schema=schema) for fn in (found, outer(found), squares, Dot(squares, (1, 1)))]
        for tally in tallies:
            assert engine.propose(tally).fold is not None
            assert engine.sums(tally).open().tolist() == plain_engine(data, schema=schema).sums(tally).open().tolist()
    engine.close()


def test_a_step_is_multiplied_with_last_where_that_is_exact() -> None:
    """Control of the test above: no pass for the step of an ordinary column, one where constants are far off."""
    schema = Schema.of("data", {"x": Real(0, 1), "y": Real(0, 1)})
    engine = duck(pa.table({"x": [0.5], "y": [0.25]}), schema=schema)
    for middle, passes in ((0.3, 0), (1e-20, 2)):
        program = engine.propose(ask(centred(["x", "y"], [middle, middle], 2.0), schema=schema)).fold.program
        assert [step.name for step in program.steps if isinstance(step, Step)].count("multiply") == passes
    engine.close()


def test_a_coordinate_is_clamped_once_SR16() -> None:
    """By its grid where that has the same ends; sums are plain Python's, of numbers far beyond the ends too."""
    rng = np.random.default_rng(6)
    for missing in (False, True):
        schema = Schema.of("data", {"x": Real(-8, 8, missing=missing)})
        data = pa.table({"x": pa.array(rng.uniform(-8, 8, 200), mask=rng.random(200) < 0.1 * missing)})
        engine, plain = duck(data, schema=schema), plain_engine(data, schema=schema)
        for high, once in ((1, not missing), (0.9, False)):  # control: an end between two units
            item = ((col("x") - 1) / 3).clip(-1, high).fill(0)
            asked = ask(vector([item]), outer(vector([item])), schema=schema)
            steps = [step.name for step in engine.propose(asked).fold.program.steps if isinstance(step, Step)]
            assert ("maximum" not in steps) == once, (missing, high)
            assert engine.sums(asked).open().tolist() == plain.sums(asked).open().tolist()
        engine.close()


def within_plan(engine: DuckEngine, tally: Tally) -> bool:
    """Whether every block is certified, and within what is planned for it."""
    rows = engine.tables.unit.rows
    blocks = zip(certified(engine, [tally])[0], tally.blocks, strict=True)
    return all(
        found is not None and within(found, extent(b, engine.tables.tables[0].schema), rows) for found, b in blocks
    )


def opened(data: pa.Table) -> DuckEngine:
    return duck(data, Unit("who", 2), SCHEMA)


@pytest.mark.parametrize("name", TALLIES)
def test_what_is_folded_is_certified_as_planned(name: str) -> None:
    """Control of the mistakes below, and equal to the plan in the norms that noise is priced by."""
    engine, tally = opened(people()), TALLIES[name]
    assert engine.propose(tally).fold is not None
    assert within_plan(engine, tally)
    for found, block in zip(certified(engine, [tally])[0], tally.blocks, strict=True):
        plan = extent(block, SCHEMA)
        assert found.moves.single.l2_squared == 4 * plan.single_l2_squared
    engine.close()


# Mistakes in compiling, each a word or a sign.


def on_stacks(change: Callable[[Stack], Stack]) -> Callable[[pytest.MonkeyPatch], None]:
    def plant(monkeypatch: pytest.MonkeyPatch) -> None:
        put = ProgramCompiler.put
        monkeypatch.setattr(
            ProgramCompiler, "put", lambda self, step: put(self, change(step) if isinstance(step, Stack) else step)
        )

    return plant


def on_sums(change: Callable[[Sum], Sum]) -> Callable[[pytest.MonkeyPatch], None]:
    def plant(monkeypatch: pytest.MonkeyPatch) -> None:
        made = ProgramCompiler._sum
        monkeypatch.setattr(ProgramCompiler, "_sum", lambda self, *given, **more: change(made(self, *given, **more)))

    return plant


def on_folds(change: Callable[[Fold], Fold]) -> Callable[[pytest.MonkeyPatch], None]:
    def plant(monkeypatch: pytest.MonkeyPatch) -> None:
        made = ProgramCompiler.fold
        monkeypatch.setattr(ProgramCompiler, "fold", lambda self, *given: change(made(self, *given)))

    return plant


def doubled(fold: Fold) -> Fold:
    return replace(fold, sql=f"SELECT * FROM (({fold.sql}) UNION ALL ({fold.sql}))", table=None)


def unit(**change: Callable[[object], object]) -> Callable[[Stack], Stack]:
    def changed(step: Stack) -> Stack:
        units = (replace(each, **{k: f(getattr(each, k)) for k, f in change.items()}) for each in step.units)
        return replace(step, units=tuple(units))

    return changed


def twice(term: int) -> int:
    return 2 * term


MISTAKES: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "wider bounds": on_stacks(unit(high=lambda high: high * 3 + 1)),
    "lower bounds": on_stacks(unit(low=lambda low: low * 3 - 1)),
    "a finer grid": on_stacks(unit(scale=lambda scale: scale * 64)),
    "another sign": on_stacks(unit(scale=lambda scale: -scale)),
    "another column": on_stacks(lambda step: replace(step, units=tuple(replace(u, of=0) for u in step.units))),
    "no ball": on_stacks(lambda step: replace(step, ball=None, shorten=False)),
    "a larger ball": on_stacks(lambda step: replace(step, ball=None if step.ball is None else step.ball * 2)),
    "not shortened": on_stacks(lambda step: replace(step, shorten=False)),
    "no length": on_stacks(lambda step: replace(step, l1=None)),
    "missing forgotten": on_stacks(lambda step: replace(step, missing=None)),
    "condition forgotten": on_sums(lambda each: replace(each, keys=tuple(key for key in each.keys if key.size > 1))),
    "factor forgotten": on_sums(lambda each: replace(each, factor=None)),
    "counted twice": on_stacks(lambda step: unit(low=twice, high=twice)(step) if step.units[0].low > 0 else step),
    "a table of other numbers": on_sums(lambda each: replace(each, units=bytes(x * 2 % 256 for x in each.units))),
    "a key that is missing": lambda patch: patch.setattr(ProgramCompiler, "filled", lambda _, cells, __: cells.values),
    "rows twice": on_folds(doubled),
    "a running sum": on_folds(
        lambda fold: replace(fold, sql=f"SELECT *, sum(1) OVER () AS s FROM ({fold.sql})", table=None)
    ),
    "weights without a grid": lambda patch: patch.setattr(Dot, "units", lambda self: ((2**60,) * len(self.weights), 1)),
}


@pytest.mark.by_hand
@pytest.mark.parametrize("mistake", MISTAKES)
def test_no_mistake_in_compiling_moves_more_than_planned(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused, or other sums that one person still moves within the plan; each mistake is noticed in some tally."""
    engines, noticed = several(), 0
    right = {name: engines[0].sums(tally).open().tolist() for name, tally in TALLIES.items()}
    planned = {name: [extent(block, SCHEMA) for block in tally.blocks] for name, tally in TALLIES.items()}
    MISTAKES[mistake](monkeypatch)
    for name, known in TALLIES.items():
        tally = replace(known)  # what was proposed for the very same would be run again
        try:
            if not within_plan(engines[0], tally):
                raise Refused("farther than planned")
        except (Refused, QuestionError):
            noticed += 1
            continue
        whole, *others = (engine.sums(tally).open() for engine in engines)
        noticed += whole.tolist() != right[name]
        for less in others:
            at = 0
            for block, plan in zip(tally.blocks, planned[name], strict=True):
                moved = np.abs((whole - less)[:, at : at + block.width].astype(object))
                at += block.width
                assert int(moved.sum()) <= 2 * plan.single_l1, name
                assert int((moved * moved).sum()) <= 4 * plan.single_l2_squared, name
    assert noticed


@functools.cache
def several() -> list[DuckEngine]:
    """A table, and the same without one person each."""
    data = people()
    kept = [[i // 2 != person for i in range(60)] for person in (None, 0, 7, 20)]
    return [opened(data.filter(pa.array(each))) for each in kept]


@pytest.mark.parametrize("mistake", ["wider bounds", "no ball", "rows twice", "counted twice"])
def test_a_mistake_that_would_release_more_is_refused_for_nothing(
    mistake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the debit; the control: without it the same question is answered and paid for."""
    columns = {"x": sulq.Real(-1, 1), "y": sulq.Real(0.5, 1), "n": sulq.Int(-3, 9)}
    question = Sums((lit(1), PAIR, outer(BALL)), by=(nearest(PAIR, [[0, 0.5], [-0.5, 0.7]]),))
    with sulq.connect(
        people(), columns=columns, unit=Unit("who", rows=2), budget=sulq.Epsilon(10), synthetic=True
    ) as db:
        db.ask(question, spend=sulq.Epsilon(1))
        before = db.facts.spent
        MISTAKES[mistake](monkeypatch)
        with pytest.raises(QuestionError) as stopped:  # at another price: what was certified before is remembered
            db.ask(question, spend=sulq.Epsilon(2))
        assert stopped.value.code == "uncertified"
        assert db.facts.spent == before


@pytest.mark.parametrize("high", [127, 32_767])
def test_a_missing_code_past_a_narrow_column_has_its_own_cell(high: int) -> None:
    """The column's type does not hold it. Control: SQL, which counts the same rows."""
    schema = Schema.of("data", {"x": Real(-1, 1), "a": Int(0, high)})
    rows = pa.table({"x": [0.5] * 6, "a": [1, 2, None, None, None, high]})
    engine = DuckEngine(Dataset.one(Origin.of(rows), schema, Unit(), b"k" * 32))
    key = (OrMissing(Each(col("a"))),)
    folded, counted = (ask(block, by=key, schema=schema) for block in (outer(vector(["x", "x"])), lit(1)))
    assert engine.propose(folded).fold is not None
    assert engine.propose(counted).fold is None
    found = engine.sums(folded).open()[:, 0]
    assert (found > 0).tolist() == (engine.sums(counted).open()[:, 0] > 0).tolist()
    assert found[-1] == 3 * found[1] > 0
    engine.close()


def test_a_tree_whose_keys_fill_several_words_sends_rows_where_the_oracle_does() -> None:
    """Fourteen keys of five bits, of which a word holds twelve, asked in any order; every leaf has a row."""
    rng = np.random.default_rng(3)
    labels, names = [str(i) for i in range(20)], [f"k{i}" for i in range(14)]
    schema = Schema.of("data", {name: Category(tuple(labels)) for name in names})
    data = pa.table({name: pa.array(rng.choice(labels, 3000), mask=rng.random(3000) < 0.02) for name in names})
    asked = rng.permutation(14).tolist()
    ends = [i + 1 if i < 13 else -15 for i in range(14)]  # the next node, or the last leaf
    tree = tuple((key, *(-1 - i if code in (0, 19) else ends[i] for code in range(20))) for i, key in enumerate(asked))
    tally = ask(lit(1), by=(Route(tuple(col(name) for name in names), tree),), schema=schema)
    engine, reference = duck(data, schema=schema), plain_engine(data, schema=schema)
    assert engine.propose(tally).fold is not None
    found = engine.sums(tally).open().tolist()
    assert found == reference.sums(tally).open().tolist()
    assert min(found)[0] > 0
    engine.close()
    reference.close()
