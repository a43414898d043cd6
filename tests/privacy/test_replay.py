"""Record and replay over generated questions and persons, on every engine; and the faults it must catch (RP)."""

from __future__ import annotations

import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from sulq import (
    Aggregated,
    Box,
    Cube,
    Holistic,
    Occurring,
    Sums,
    Together,
    ToSorted,
    ToUnique,
    col,
    position,
)
from sulq.compile.plan import draw
from sulq.curator.run import Rows
from sulq.errors import SulqError
from sulq.kernel import layout
from sulq.kernel.moves import Norms
from sulq.language.privacy import CALIBRATIONS, Epsilon, EpsilonDelta, Loss, Rho, SubLinear, Unit
from sulq.language.rowfn import Bins, Lit, RowFn
from sulq.language.sublinear import COINS
from sulq.testing import neighbours
from sulq.testing.exact import Late, silent
from sulq.testing.questions import Drawer
from sulq.testing.replay import Run, differences
from tests import counts
from tests.faults import nosy
from tests.privacy.cases import (
    ENGINES,
    REPLAYED,
    Program,
    answerable,
    asking,
    beyond,
    engine,
    facts_of,
    people,
    replayed,
    run,
    seeded,
)

UNITS = [
    Unit(),
    Unit("pid", 1),
    Unit("pid", 3, fold="spelling"),
    Unit(None, 1, "replace_one"),
    Unit("pid", 1, "replace_one"),
    Unit("pid", 2, "replace_one"),
    Unit(None, 1, "zero_out"),
    Unit("pid", 2, "zero_out", fold="case"),
]
BUDGETS = [
    (Epsilon(1000), (Epsilon(0.5), Epsilon(0.01))),
    (EpsilonDelta(1000, 1e-6), (Epsilon(0.5), Rho(0.02), EpsilonDelta(0.5, 1e-6))),
    (Rho(500), (Rho(0.1), Epsilon(0.3))),
    (SubLinear(1, 1e-6, 1_000_000), (None,)),
    (SubLinear(1, 1e-6, 1_000_000, "laplace"), (None,)),
]


PAIRS = {  # in a short run and in a long one, how many questions of one table, and how many of its neighbours
    "duckdb": (120, 100_000, 10, 3),
    "memory": (120, 100_000, 10, 3),
    "postgres": (60, 20_000, 10, 3),
    "spark": (20, 5_000, 60, 8),  # rows take seconds to open there
}


@pytest.mark.audit
@pytest.mark.parametrize("kind", PAIRS)
def test_neighbours_are_told_apart_by_noise_alone(kind: str) -> None:
    """Calls, bytes, errors, ledger and log are equal, inputs within the certificate (trap 7, T6, T11, T13, T14, T17).

    Bar: 0 violations, and nothing refused, in 1e5 (question, neighbour) pairs on DuckDB and in memory, 2e4 in
    PostgreSQL, 5e3 on Spark. Control: the faults below.
    """
    short, long, several, others = PAIRS[kind]
    planned = counts.count(f"replay pairs on {kind}", short=short, long=long)
    several = min(several, planned)
    rng = seeded(f"replay on {kind}")
    done, number, compared = 0, 0, 0
    placeless = kind in ("postgres", "spark")  # which refuse units whose rows have places
    units = [unit for unit in UNITS if not (placeless and unit.positions_are_public)]
    while done < planned:
        unit = units[number % len(units)]
        budget, spends = BUDGETS[(number + number // len(units)) % len(BUDGETS)]
        size = None if rng.random() < 0.5 else 20
        asked = answerable(Drawer(rng), facts_of(unit, budget, size), spends, several)
        programs = [asking(*one) for one in asked]
        rows = neighbours.table(rng, unit, int(rng.integers(0, 9)))
        way = f"{kind}:unprepared" if kind == "duckdb" and number % 4 == 3 else kind
        if kind == "duckdb" and unit.column is None and unit.neighbors != "zero_out":
            way = (kind, f"{kind}:early")[number // len(units) % 2 == 0]
        with engine(way, rows, unit) as source:
            first = run(source, programs, unit, budget, size=size)
        refused = [each for each in first.outcomes if each.startswith("CuratorError") or "uncertified" in each]
        assert refused == [], (unit, budget, asked)
        pairs = list(neighbours.pairs(rng, unit, rows))
        for i in rng.permutation(len(pairs))[: min(others, planned // several)]:
            with engine(way, pairs[i].second, unit) as source:
                second = run(source, programs, unit, budget, size=size, earlier=first)
            assert differences(first, second) == [], (unit, budget, pairs[i].what, asked)
            blocks, farther = beyond(first, second, unit)
            assert farther == [], (unit, budget, pairs[i].what, asked)
            compared += blocks
            done += len(programs)
        number += 1
    assert compared >= (0 if kind == "memory" else done // 2)


@pytest.mark.parametrize("unit", [Unit(), Unit(neighbors="replace_one")], ids=str)
def test_neighbours_are_told_apart_by_noise_alone_before_rows_are_kept(unit: Unit) -> None:
    """Sums that are read from the source itself move as they are certified to, by a row past every bound."""
    first, other = people("HLY"), people("H", gain=1e300)
    second, budget = first[: 2 if unit.neighbors == "replace_one" else 3] + other, EpsilonDelta(100, 1e-6)
    asked = [Sums((col("gain"), Lit(1))), Sums((col("gain") * col("gain"),), where=col("gain") > 0)]
    programs, runs = [asking(question, Epsilon(1)) for question in asked], list[Run]()
    for rows in (first, second):
        with engine("duckdb:early", rows, unit) as source:
            runs.append(run(source, programs, unit, budget, **({"earlier": runs[0]} if runs else {})))
            assert source._connection is None  # no row was kept meanwhile
    assert [each for each in runs[0].outcomes if "Error" in each] == differences(*runs) == []
    assert beyond(*runs, unit) == (3, [])


@pytest.mark.parametrize("spend", [Epsilon(1), Rho(0.5)])
@pytest.mark.parametrize("norm", Norms.__slots__)
def test_a_certificate_that_is_too_small_is_caught(norm: str, spend: object) -> None:
    """Control: were a block certified for one unit less than a person moves it, the replay would say so."""
    first, second = people("HLY"), people("HLY") + people("H", gain=200.0)
    program, budget, runs = asking(Sums((col("gain"),)), spend), EpsilonDelta(100, 1e-6), []
    for rows in (first, second):
        with engine("duckdb", rows, Unit()) as source:
            runs.append(run(source, [program], Unit(), budget, **({"earlier": runs[0]} if runs else {})))
    assert beyond(*runs, Unit()) == (1, [])
    checked = runs[0].checked[0]
    ((block,),) = known = next(iter(checked.layouts.values())).blocks
    single = block.moves.single
    known[0] = (
        replace(block, moves=replace(block.moves, single=replace(single, **{norm: getattr(single, norm) - 1}))),
    )
    assert beyond(*runs, Unit())[1]


@pytest.mark.audit
@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize("unit", [Unit(), Unit("pid", 2, "replace_one"), Unit("pid", 1, "zero_out")], ids=str)
def test_named_asks_are_told_apart_by_noise_alone(kind: str, unit: Unit) -> None:
    """Means, deviations, covariances and histograms, filtered and by keys, with every kind of spend (RP, T17, SR18)."""
    planned = counts.count(f"named asks replayed on {kind}, {unit}", short=12, long=1_000)
    rng = seeded(f"named asks on {kind}")
    budget = EpsilonDelta(1000, 1e-6)
    done = 0
    while done < planned:
        rows = neighbours.table(rng, unit, 7)
        programs = [named_ask(rng) for _ in range(8)]
        pairs = list(neighbours.pairs(rng, unit, rows))
        with engine(kind, rows, unit) as source:
            first = run(source, programs, unit, budget)
        assert not any("Error" in outcome.split()[0] for outcome in first.outcomes)
        for i in rng.permutation(len(pairs))[:3]:
            with engine(kind, pairs[i].second, unit) as source:
                assert differences(first, run(source, programs, unit, budget, earlier=first)) == [], pairs[i].what
            done += len(programs)


def named_ask(rng: np.random.Generator) -> Program:
    """Something an analyst types."""
    spend = (Epsilon(0.5), Rho(0.02), EpsilonDelta(0.5, 1e-6))[int(rng.integers(3))]
    where = (None, col("flag"), col("gain") > 5, ~col("city").is_missing())[int(rng.integers(4))]
    by = (None, "city", ["code", "flag"], Bins(col("age"), (0, 30, 101)))[int(rng.integers(4))]
    value = ("age", "gain", "debt", col("gain") * col("flag"), col("debt") / col("score"))[int(rng.integers(5))]
    asks: tuple[Program, ...] = (
        lambda db: db.count(where, by=by, spend=spend),
        lambda db: db.sum(value, where=where, by=by, spend=spend),
        lambda db: db.mean(value, where=where, by=by, spend=spend),
        lambda db: db.variance(value, where=where, by=by, ddof=1, spend=spend),
        lambda db: db.std(value, where=where, by=by, spend=spend),
        lambda db: db.covariance(["age", value, "score"], where=where, by=by, spend=spend),
        lambda db: db.histogram(value, 5, where=where, spend=spend),
        *inference(spend if rng.random() < 0.5 else Epsilon(60), where),  # so much that later questions are asked too
    )
    return asks[int(rng.integers(len(asks)))]


def inference(spend: Loss, where: RowFn | None) -> tuple[Program, ...]:
    """Regressions and tests; the later questions of a regression follow from its first answer."""
    return (
        lambda db: db.ols("gain", ["age", "flag"], where=where, spend=spend),
        lambda db: db.logit("flag", ["age"], where=where, spend=spend),
        lambda db: db.ttest("gain", "flag", where=where, spend=spend),
        lambda db: db.proportions("flag", "city", where=where, spend=spend),
        lambda db: db.chi2(["flag", "city"], where=where, spend=spend),
    )


@pytest.mark.audit
@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_every_calibration_hides_each_persons_part_SR8(kind: str, calibration: str) -> None:
    """Under each SubLinear calibration a person moves every scalar sum by no more than it is scaled for (SR8, S0.5)."""
    rng = seeded(f"{calibration} on {kind}")
    unit, budget = Unit("pid", 2, "replace_one"), SubLinear(1, 1e-3, 200, calibration)
    values = (Lit(1), col("flag") & (col("age") > 20)) if calibration in COINS else (Lit(1), col("gain"), col("debt"))
    programs = [asking(Sums(values, None, (col("city"),)), None), asking(Sums(values, col("flag")), None)]
    rows = neighbours.table(rng, unit, 6)
    with engine(kind, rows, unit) as source:
        first = run(source, programs, unit, budget, size=100)
    assert not any("Error" in outcome.split()[0] for outcome in first.outcomes), first.outcomes
    pairs = list(neighbours.pairs(rng, unit, rows))
    some = counts.count(f"neighbours under {calibration} on {kind}", short=4, long=len(pairs))
    for pair in (pairs[i] for i in rng.permutation(len(pairs))[:some]):
        with engine(kind, pair.second, unit) as source:
            assert differences(first, run(source, programs, unit, budget, size=100, earlier=first)) == [], pair.what


@pytest.mark.audit
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("kind", [*ENGINES, "duckdb:unprepared"])
def test_files_are_read_row_by_row(kind: str, suffix: str, tmp_path: Path) -> None:
    """Neighbouring files, one written with and one without a person, are told apart by noise alone (RP, T18, T26)."""
    planned = counts.count(f"replay pairs from {suffix} on {kind}", short=9, long=1_000)
    rng = seeded(f"replay from {suffix} on {kind}")
    done, number = 0, int(rng.integers(len(UNITS)))
    while done < planned:
        unit = UNITS[number % len(UNITS)]
        budget, spends = BUDGETS[number % 2]
        programs = [asking(*one) for one in answerable(Drawer(rng), facts_of(unit, budget), spends, 6)]
        rows = neighbours.table(rng, unit, 6)
        pairs = list(neighbours.pairs(rng, unit, rows))
        with engine(kind, rows, unit, folder=tmp_path, suffix=suffix) as source:
            first = run(source, programs, unit, budget)
        assert not any(outcome.startswith("CuratorError") for outcome in first.outcomes)
        for i in rng.permutation(len(pairs))[:3]:
            with engine(kind, pairs[i].second, unit, folder=tmp_path, suffix=suffix) as source:
                second = run(source, programs, unit, budget, earlier=first)
            assert differences(first, second) == [], (unit, budget, pairs[i].what)
            done += len(programs)
        number += 1


HOLISTIC = (
    Holistic(ToUnique(("age", "code"))),
    Holistic(ToSorted("score"), col("flag")),
    Holistic(Occurring(("city", "flag")), space=Cube()),
    Holistic(Occurring(("code",))),
    Holistic(ToUnique(("city",)), space=Box(0, 12, 3)),
    Holistic(Aggregated("median", ("score",), 4, 10, 21)),
)


@pytest.mark.audit
@pytest.mark.parametrize("kind", ENGINES)
def test_questions_of_every_kind_at_one_debit_are_told_apart_by_noise_alone(kind: str) -> None:
    """Sums, choices, thresholds, open keys and statistics of the whole, asked together, share one spend (RP, S3.6)."""
    planned = counts.count(f"questions of every kind replayed on {kind}", short=12, long=5_000)
    rng, budget = seeded(f"every kind on {kind}"), EpsilonDelta(1000, 1e-3)
    done, number = 0, 0
    answered, every = set(), {"Sums", "Choose", "Above", "OpenSums", "Holistic"}
    while done < planned or (answered != every and done < 20 * planned):
        unit, drawer = UNITS[number % len(UNITS)], Drawer(rng)
        programs, kinds = [], []
        while len(programs) < 4:
            several = (drawer.sums(), drawer.choose(), drawer.above(), drawer.open_sums())
            parts = (*several, HOLISTIC[int(rng.integers(len(HOLISTIC)))])
            chosen = tuple(parts[i] for i in rng.permutation(len(parts))[: int(rng.integers(2, 6))])
            try:
                draw(Together(chosen), facts_of(unit, budget), EpsilonDelta(0.5, 1e-6))
            except SulqError:
                continue
            programs.append(asking(Together(chosen), EpsilonDelta(0.5, 1e-6)))
            kinds += [type(part).__name__ for part in chosen]
        rows = neighbours.table(rng, unit, int(rng.integers(0, 9)))
        with engine(kind, rows, unit) as source:
            first = run(source, programs, unit, budget)
        assert not any("Error" in outcome.split()[0] for outcome in first.outcomes), first.outcomes
        answered |= set(kinds)
        pairs = list(neighbours.pairs(rng, unit, rows))
        for i in rng.permutation(len(pairs))[:3]:
            with engine(kind, pairs[i].second, unit) as source:
                second = run(source, programs, unit, budget, earlier=first)
            assert differences(first, second) == [], (unit, pairs[i].what)
            done += len(programs)
        number += 1
    assert answered == every


COUNT = asking(Sums((Lit(1),)), Epsilon(1))
GAIN = asking(Sums((col("gain"),)), Epsilon(1))
GAINS = asking(Sums((Lit(1),), None, (Bins(col("gain"), tuple(range(-50, 201, 10))),)), Epsilon(1))
CITIES = asking(Sums((Lit(1),), None, (col("city"),)), Epsilon(1))


@pytest.mark.parametrize(
    ("fault", "program", "unit", "newcomer"),
    [
        ("nan", GAIN, Unit(), people("H", gain=float("nan"))),
        ("unclipped", GAIN, Unit(), people("H", gain=1e6)),
        ("doubled", COUNT, Unit(), people("H")),
        ("raise", COUNT, Unit(), people("?")),
        ("shape", CITIES, Unit(), people("Y")),
        ("all rows", COUNT, Unit("pid", 2), people("HHHHH", pid="heavy")),
        ("row number", GAINS, Unit("pid", 1), people("H", pid="first")),
    ],
)
def test_catches_bad_engines(fault: str, program: object, unit: Unit, newcomer: list[neighbours.Row]) -> None:
    """Control: each faulty engine is caught on a neighbour that shows it, and the same engine without fault is not."""
    many = [one | {"gain": float(i * 37 % 200), "pid": f"p{i // 3}"} for i, one in enumerate(people("HLHLHL" * 20))]
    assert replayed("plain", many, newcomer + many, [program], unit) == []
    assert replayed(f"plain:{fault}", many, newcomer + many, [program], unit) != []


@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize("bad", [silent, nosy])
def test_catches_missing_and_nosy_noise(kind: str, bad: object) -> None:
    """Control: a count without noise, and noise whose width follows the rows, are caught on both engines."""
    options = {"noise": bad}
    first, second = people("HLY"), people("HLYY")
    assert replayed(kind, first, second, [COUNT], Unit()) == []
    assert replayed(kind, first, second, [COUNT], Unit(), **options) != []


@pytest.mark.parametrize("kind", REPLAYED)
def test_catches_a_debit_after_the_sums_T43(kind: str) -> None:
    """Control: a curator that computes first and debits afterwards is caught, whatever the rows are (T43)."""
    options = {"curator": Late, "rows": lambda source, _ledger: Rows(source, lambda *_: True)}
    assert "rows were read before the debit" in replayed(kind, people("HL"), people("HL"), [COUNT], Unit(), **options)


@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize("spend", [Epsilon(1), Rho(0.5)])
def test_catches_a_halved_sensitivity(kind: str, spend: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: half the true extent of a row in the plan is caught; where the kernel certifies, it must err as well."""
    module = sys.modules["sulq.compile.plan.calibration"]
    honest = module.extent

    def halved(block: object, schema: object, *, pairs: bool) -> object:
        found = honest(block, schema, pairs=pairs)
        half = {name: getattr(found, name) // 2 for name in ("single_l1", "single_l2_squared")}
        return replace(found, **half)

    first, second = people("HLY"), people("HLY") + people("H", gain=200.0)
    program = asking(Sums((col("gain"),)), spend)
    budget = EpsilonDelta(100, 1e-6)
    assert replayed(kind, first, second, [program], Unit(), budget=budget) == []
    monkeypatch.setattr(module, "extent", halved)
    if kind == "duckdb":
        with engine(kind, first, Unit()) as source:
            assert "uncertified" in run(source, [program], Unit(), budget).outcomes[0]
        certified, half = layout.moves, lambda norms: Norms(norms.l1 // 2, norms.l2_squared // 2, norms.coordinate // 2)
        forged = lambda *given: replace(found := certified(*given), single=half(found.single))  # noqa: E731
        monkeypatch.setattr(layout, "moves", forged)
    assert any("moved" in found for found in replayed(kind, first, second, [program], Unit(), budget=budget))


@pytest.mark.parametrize("kind", REPLAYED)
def test_a_person_everywhere_moves_all_cells_by_no_more_than_the_kept_rows_T14(kind: str) -> None:
    """One person in all cells with 60 rows, 3 kept: L0, Linf, L1 and L2 of the difference are within 3 (T14, SR1).

    Control: an engine that keeps all rows.
    """
    unit = Unit("pid", 3)
    others = people("HLYHLY")
    heavy = people("HLY" * 20, pid="heavy")
    inputs = {}
    for source in (kind, "plain:all rows"):
        with engine(source, others, unit) as first, engine(source, others + heavy, unit) as second:
            a, b = (run(x, [CITIES], unit, Epsilon(10)) for x in (first, second))
        gap = abs(a.calls[0].given - b.calls[0].given).ravel()
        inputs[source] = ((gap > 0).sum(), gap.max(), gap.sum(), (gap**2).sum())
    assert inputs[kind][2] == 3
    assert inputs[kind][3] <= 9
    assert inputs["plain:all rows"][2] == 60


@pytest.mark.parametrize("kind", REPLAYED)
def test_taking_out_one_person_changes_nobody_elses_kept_rows_SR2(kind: str) -> None:
    """With more rows than are kept for everyone, dropping the first person moves one person's share and no more (SR2).

    Control: kept rows by row number.
    """
    unit = Unit("pid", 1)
    rows = [one | {"gain": float(i * 37 % 200), "pid": f"p{i // 4}"} for i, one in enumerate(people("H" * 120))]
    assert replayed(kind, rows, rows[4:], [GAIN, GAINS], unit) == []
    assert replayed("plain:row number", rows, rows[4:], [GAINS], unit) != []


def test_a_row_has_a_place_only_where_no_neighbour_shifts_it_SR11() -> None:
    """Subsets by place are refused where exchanging a person's rows moves everyone behind (SR11, S0.7).

    Control: without the refusal the replay shows the shift.
    """
    early = asking(Sums((col("age"),), position() < 3), Epsilon(1))
    heavy = people("HHH", pid="heavy", age=0)
    others = [one | {"pid": f"q{i}"} for i, one in enumerate(people("LLLLL", age=100))]
    for unit in (Unit(), Unit("pid", 1), Unit("pid", 1, "replace_one"), Unit("pid", 2, "replace_one")):
        with engine("memory", others, unit) as source:
            assert "needs-position" in run(source, [early], unit, Epsilon(10)).outcomes[0]
    for unit in (Unit(None, 1, "replace_one"), Unit("pid", 2, "zero_out")):
        with engine("memory", others, unit) as source:
            assert "needs-position" not in run(source, [early], unit, Epsilon(10)).outcomes[0]
    unit = Unit("pid", 1, "replace_one")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules["sulq.compile.plan.draft"], "allowed", lambda *_: None)
        assert replayed("plain", heavy + others, heavy[:1] + others, [early], unit) != []


@pytest.mark.parametrize("kind", REPLAYED)
def test_shares_of_one_debit_cover_all_questions_together_S3_3(kind: str) -> None:
    """Several questions on the same person cost the sum of their shares, not the largest of them (S3.6, SR13)."""
    asked = Together((Sums((Lit(1),)), Sums((Lit(1),)), Sums((col("gain"),))), (Fraction(1), Fraction(2), Fraction(3)))
    first, second = people("HLY"), people("HLY") + people("H", gain=200.0)
    assert replayed(kind, first, second, [asking(asked, Epsilon(1))], Unit()) == []
    with engine(kind, first, Unit()) as one, engine(kind, second, Unit()) as other:
        a, b = (run(x, [asking(asked, Epsilon(1))], Unit(), Epsilon(10)) for x in (one, other))
    spent = sum(
        Fraction(int(abs(x.given - y.given).sum())) / x.law.scale for x, y in zip(a.calls, b.calls, strict=True)
    )
    assert Fraction(999, 1000) < spent <= 1
