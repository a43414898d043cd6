"""Record and replay of choices by every score of the closed list, of selections and of published workloads (RP)."""

from __future__ import annotations

import functools
import itertools
import json
import sys
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from sulq import Choose, Sums, col
from sulq.answers.answer import Answers
from sulq.compile.plan import calibration, draw
from sulq.errors import QuestionError, SulqError
from sulq.kernel import run as kernel_run
from sulq.kernel.scores import Span, scores, span
from sulq.language.privacy import Epsilon, EpsilonDelta, Rho, Unit
from sulq.language.rowfn import Col, Lit
from sulq.language.score import (
    SCORES,
    Contrast,
    Diagonal,
    Distance,
    Linear,
    NegAbs,
    NegL1,
    NegMaxAbs,
    Rank,
    Score,
    form,
)
from sulq.release import Release, blr, contingency, halfspaces, infer, publish
from sulq.release import directions as asked_planes
from sulq.release.base import ReleaseFiles
from sulq.select import agnostic, choose, price
from sulq.testing import neighbours
from sulq.testing.questions import Drawer
from sulq.testing.replay import differences
from tests import counts
from tests.privacy.cases import ENGINES, Program, asking, engine, facts_of, people, replayed, run, seeded

UNITS = [
    Unit(),
    Unit("pid", 2),
    Unit(None, 1, "replace_one"),
    Unit("pid", 2, "replace_one"),
    Unit("pid", 2, "zero_out"),
]
BUDGET = EpsilonDelta(1000, 1e-6)
SPENDS = (Epsilon(0.5), Rho(0.02), EpsilonDelta(0.5, 1e-6))


def choices(rng: np.random.Generator, unit: Unit, count: int) -> list[tuple[Choose, object]]:
    """Choices that can be planned."""
    found: list[tuple[Choose, object]] = []
    while len(found) < count:
        question, spend = Drawer(rng).choose(), SPENDS[int(rng.integers(3))]
        try:
            draw(question, facts_of(unit, BUDGET), spend)
        except SulqError:
            continue
        found.append((question, spend))
    return found


@pytest.mark.audit
@pytest.mark.parametrize("kind", ENGINES)
def test_choices_are_told_apart_by_noise_alone_SR5(kind: str) -> None:
    """Scores of neighbouring tables span no more than was planned, whichever of the list they are (RP, SR4, SR5).

    Bar: 0 violations in 2e4 (choice, neighbour) pairs on each engine. Control: below.
    """
    planned = counts.count(f"choices replayed on {kind}", short=80, long=20_000)
    rng = seeded(f"choices on {kind}")
    done, number, seen = 0, 0, set()
    while done < planned or (seen != set(SCORES) and done < 10 * planned):
        unit = UNITS[number % len(UNITS)]
        asked = choices(rng, unit, 12)
        seen |= {type(question.score) for question, _ in asked}
        programs = [asking(*one) for one in asked]
        rows = neighbours.table(rng, unit, int(rng.integers(0, 9)))
        with engine(kind, rows, unit) as source:
            first = run(source, programs, unit, BUDGET)
        pairs = list(neighbours.pairs(rng, unit, rows))
        for i in rng.permutation(len(pairs))[:5]:
            with engine(kind, pairs[i].second, unit) as source:
                second = run(source, programs, unit, BUDGET, earlier=first)
            assert differences(first, second) == [], (unit, pairs[i].what, asked)
            done += len(programs)
        number += 1
    assert seen == set(SCORES)


def test_ranks_that_are_replayed_are_shifted() -> None:
    """By less than a row, by some, and past the last of the few rows of a table, to either side."""
    rng = np.random.default_rng(23)
    drawn = [score for score in (Drawer(rng).choose().score for _ in range(1_000)) if isinstance(score, Rank)]
    rows = {score.shift / score.denominator for score in drawn}
    assert min(rows) < -8
    assert max(rows) > 8
    assert any(0 < abs(own) < 1 for own in rows)
    assert 0 in rows


BY_CITY = Sums((Lit(1),), None, (Col("city"),))
TIGHT: dict[type, Score] = {  # of each kind one that some row moves by more than half of what is planned
    Rank: Rank(1, 2),
    Linear: Linear(((1, 0, 0), (0, -1, 0), (2, 1, -1))),
    NegAbs: NegAbs(((1, -1, 0), (0, 1, -1))),
    Diagonal: Diagonal((1, 2, 3)),
    Contrast: Contrast((((1, -1, 0), (0, 1, -1)),)),
    NegMaxAbs: NegMaxAbs(((1, 1, 0), (0, 1, 1)), ((3, 2), (9, 1), (0, 0))),
    NegL1: NegL1(((1, 1, 0), (0, 1, 1)), ((3, 2), (9, 1), (0, 0))),
    Distance: Distance(((3,), (2,), (9,)), (2, 2, 2), (0, -5, 7)),
}


@functools.cache
def all_scored(score: Score) -> dict[tuple[int, ...], np.ndarray]:
    """The scores of all tables of up to five rows a city."""
    tables = itertools.product(range(6), repeat=3)
    return {table: scores(form(score), np.array(table).reshape(1, 3, 1))[0] for table in tables}


@functools.cache
def farthest(score: Score, *, exchanged: bool) -> tuple[str, str]:
    """The neighbouring tables, as the letters of their cities, whose scores are farthest apart."""
    scored = all_scored(score)

    def apart(pair: tuple[tuple[int, ...], tuple[int, ...]]) -> int:
        moves = scored[pair[1]] - scored[pair[0]]
        return int(max(0, moves.max()) - min(0, moves.min()))

    steps = [(1, 0, 0), (0, 1, 0), (0, 0, 1)]
    if exchanged:
        steps = [step for step in itertools.product((-1, 0, 1), repeat=3) if sorted(step) == [-1, 0, 1]]
    pairs = [(table, tuple(n + m for n, m in zip(table, step, strict=True))) for table in scored for step in steps]
    before, after = max((pair for pair in pairs if pair[1] in scored), key=apart)
    first = "".join(letter * n for letter, n in zip("HLY", before, strict=True))
    if not exchanged:
        return first, first + next(letter for letter, n, m in zip("HLY", before, after, strict=True) if n < m)
    ways = ((before, after), (after, before))
    gone, come = (next(x for x, n, m in zip("HLY", *way, strict=True) if n > m) for way in ways)
    return first, first.replace(gone, come, 1)


@pytest.mark.parametrize("unit", [Unit(), Unit(None, 1, "replace_one")], ids=str)
@pytest.mark.parametrize("spend", [Epsilon(0.5), Rho(0.02)], ids=str)
@pytest.mark.parametrize("score", SCORES, ids=lambda score: score.__name__)
def test_a_span_of_half_is_caught_SR5(score: type, spend: object, unit: Unit, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replay of the two tables whose scores are farthest apart: rise plus fall is what was planned, and not half of it.

    Control: were the plan to think that a row moves scores by half of what it does, replay would tell, of each kind.
    """
    tables = [people(letters) for letters in farthest(TIGHT[score], exchanged=unit.neighbors == "replace_one")]
    program = asking(Choose(BY_CITY, TIGHT[score]), spend)
    assert replayed("memory", *tables, [program], unit, budget=BUDGET) == []

    def small(*args: object) -> Span:
        found = span(*args)
        return Span(found.single // 2, found.pair // 2)

    monkeypatch.setattr(calibration, "span", small)
    assert any("moved" in line for line in replayed("memory", *tables, [program], unit, budget=BUDGET))


QUERIES = [
    "SELECT city, COUNT(*), AVG(gain) FROM data GROUP BY city",
    "SELECT MEDIAN(age), MAX(day) FROM data WHERE flag",
    "SELECT note, COUNT(*) FROM data GROUP BY note",
]


def programs(texts: list[str]) -> list[Program]:
    """Selections and publications; what they write down is kept beside what they answer."""
    rules = {"old": col("age") > 50, "rich": col("gain") >= 10, "Lod": col("city") == "Lod"}

    def published(asks: object) -> Answers:
        made = publish(asks, QUERIES, spend=EpsilonDelta(1, 1e-7))
        told = ReleaseFiles.of(made).description()
        told["paid"] = told["facts"]["database"] = None  # random keys of the ledger
        told["facts"]["answers"] = None  # told by what is returned
        texts.append(json.dumps([told, [repr(found) for found in made]], default=str))
        return Answers(tuple(answer for answers in made.answers for answer in answers))

    def selected(made: object) -> object:
        texts.append(f"{made.candidate} {made.place} {made.within()} {made.spent}")
        raise SulqError("not-published", "only its text is compared")

    def released(make: Callable[..., Release], *args: object, **options: object) -> Program:
        def act(asks: object) -> object:
            try:
                made = make(asks, *args, **options)
            except QuestionError as refusal:  # some units have no subsets of people
                texts.append(f"{make.__name__} {refusal.code}")
                raise
            told = ReleaseFiles.of(made).description() | {"paid": None}
            tables = {name: table.to_pylist() for name, table in made.tables().items()}
            texts.append(json.dumps([told, tables, [str(chart) for chart in made.charts()]], default=str))
            raise SulqError("not-published", "only its text is compared")

        act.__name__ = make.__name__
        return act

    both = ["city", "flag"]
    return [
        published,
        lambda asks: selected(choose(asks, "city", spend=Epsilon(0.5))),
        lambda asks: selected(choose(asks, "age", bins=5, spend=Epsilon(0.5))),
        lambda asks: selected(choose(asks, {"gain": col("gain"), "debt": col("debt")}, "zero", spend=Rho(0.02))),
        lambda asks: selected(price(asks, "gain", [1.0, 10, 99.9, 200], spend=Epsilon(0.5))),
        lambda asks: selected(agnostic(asks, rules, "flag", spend=Epsilon(0.5))),
        released(contingency, both, [["city"], both], "fourier", spend=Epsilon(0.5)),
        released(contingency, both, [["city"], ["flag"]], "fourier-shift", spend=Rho(0.02)),
        released(infer, both, subsets=4, spend=Epsilon(0.5)),
        released(infer, both, subsets=3, design="halves", spend=Rho(0.02)),
        released(halfspaces, ["age", "gain", "flag"], g=0.6, spend=Epsilon(0.5)),
        released(blr, both, rows=3, spend=Epsilon(0.5)),
    ]


def replays(
    unit: Unit, name: str, planned: int, made: Callable[[list[str]], list[Program]] = programs
) -> Iterator[tuple[list[str], list[list[str]], str]]:
    """Runs of programs on neighbouring tables: what tells them apart, their texts, in what the tables differ."""
    rng = seeded(f"{name}, {unit}")
    done = 0
    while done < planned:
        rows = neighbours.table(rng, unit, 7)
        texts: list[list[str]] = [[], []]
        with engine("duckdb", rows, unit) as source:
            several = made(texts[0])
            first = run(source, several, unit, BUDGET)
        assert len(texts[0]) == len(several), first.outcomes
        pairs = list(neighbours.pairs(rng, unit, rows))
        for pair in (pairs[i] for i in rng.permutation(len(pairs))[:3]):
            texts[1].clear()
            with engine("duckdb", pair.second, unit) as source:
                second = run(source, made(texts[1]), unit, BUDGET, earlier=first)
            yield differences(first, second), texts, pair.what
            done += len(several)
            if done >= planned:
                break


@pytest.mark.parametrize("unit", [*UNITS, Unit("pid")], ids=str)
def test_trap_6_what_is_published_depends_on_rows_through_noise_alone(unit: Unit) -> None:
    """Given the same noisy answers neighbouring tables publish the same texts, for the same debits (trap 6, S3.1).

    Of every release that is made from one question alone; what is drawn anew from each answer has its own tests.
    """
    planned = counts.count(f"publications replayed, {unit}", short=24, long=500)
    for found, texts, what in replays(unit, "published", planned):
        assert found == [], what
        assert texts[0] == texts[1], what
        refused = [text for text in texts[0] if text.startswith("infer ")]
        assert not refused or unit.rows > 1 or unit == Unit()  # who has several rows, or no name, is in no subset


def test_trap_6_a_note_made_from_the_rows_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: did a release write down what its engine counted, not what was answered, the texts would differ."""
    seen: list[str] = []
    honest, told = kernel_run._numbers, asked_planes.told

    def peeking(source: object, exact: np.ndarray) -> np.ndarray:
        seen.append(str(exact.tolist()))
        return honest(source, exact)

    monkeypatch.setattr(kernel_run, "_numbers", peeking)
    monkeypatch.setattr(sys.modules["sulq.release.halfspaces"], "told", lambda *args: f"{told(*args)} {seen[-1]}")
    runs = replays(
        UNITS[0], "peeked", 24, lambda texts: [one for one in programs(texts) if one.__name__ == "halfspaces"]
    )
    for apart, texts, _ in runs:
        assert apart == []  # the answers themselves are as they were
        if texts[0] != texts[1]:
            return
    pytest.fail("no text differs")
