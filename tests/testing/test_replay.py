"""The harness itself: every way in which two runs can differ is reported, and nothing else is."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from sulq import Epsilon, Sums, Unit, col
from sulq.api.named_asks import NamedAsks
from sulq.errors import SetupError
from sulq.kernel.mechanisms import MECHANISMS, release
from sulq.kernel.private import Private
from sulq.language.law import AboveLaw, BinomialLaw, GaussianLaw, LaplaceLaw
from sulq.language.privacy import Draw, Event
from sulq.language.rowfn import Lit
from sulq.testing import neighbours
from sulq.testing.bad import Plain
from sulq.testing.replay import Call, Entry, Run, cost, differences, overruns, record

COUNT = Sums((Lit(1),))
EMPTY = dict.fromkeys((name for name, _ in neighbours.COLUMNS), None)


def rows(n: int) -> list[neighbours.Row]:
    return [EMPTY | {"pid": f"p{i}", "age": 10} for i in range(n)]


def recorded(n: int, program: Callable[[NamedAsks], object], earlier: Run | None = None, engine: object = None) -> Run:
    return record(
        Plain(rows(n), neighbours.SCHEMA, Unit()) if engine is None else engine,
        [program],
        desk=NamedAsks,
        schema=neighbours.SCHEMA,
        unit=Unit(),
        budget=Epsilon(10),
        release=release,
        mechanisms=tuple(MECHANISMS),
        earlier=earlier,
    )


def count(desk: NamedAsks) -> object:
    return desk.ask(COUNT, spend=Epsilon(1))


def test_RP_a_run_holds_calls_answers_entries_and_reads() -> None:
    """One ask leaves one call, one outcome, one entry with its answer, and one read that was paid for."""
    run = recorded(3, count)
    assert len(run.calls) == len(run.outcomes) == len(run.entries) == 1
    assert run.calls[0].given.tolist() == [[3]]
    assert run.entries[0].answer is not None
    assert run.events[0].epsilon == 1
    assert (run.reads, run.log, run.strays) == ([True], [], [])


def test_RP_a_replay_gives_the_recorded_noise() -> None:
    """On the neighbour the same numbers come out while others go in, so that answers are equal byte for byte."""
    first = recorded(3, count)
    second = recorded(4, count, first)
    assert second.calls[0].given.tolist() == [[4]]
    assert second.calls[0].noisy.tobytes() == first.calls[0].noisy.tobytes()
    assert second.outcomes == first.outcomes
    assert differences(first, second) == []


def test_RP_a_move_past_the_declared_sensitivity_is_reported() -> None:
    """Two people at once move a count by two where one was declared and paid for."""
    first = recorded(3, count)
    found = differences(first, recorded(5, count, first))
    assert found == ["ask 0: moved 2, declared 1 (l1)", "ask 0: a loss of 2, paid 1"]


def test_RP_programs_that_look_at_the_data_are_reported() -> None:
    """Another question, another number of questions, a log line or a warning that follows the rows: all are seen."""
    seen = {}

    def curious(desk: NamedAsks, size: int, kind: str) -> object:
        if kind == "question" and size > 3:
            return desk.ask(Sums((col("age"),)), spend=Epsilon(1))
        if kind == "twice" and size > 3:
            desk.ask(COUNT, spend=Epsilon(1))
        if kind == "log":
            logging.getLogger("sulq.somewhere").debug("%d rows", size)
        if kind == "warning":
            warnings.warn(f"{size} rows", RuntimeWarning, stacklevel=1)
        if kind == "error" and size > 3:
            raise SetupError("closed", "too many rows")
        if kind == "stray" and size > 3:
            raise ValueError(size)
        return desk.ask(COUNT, spend=Epsilon(1))

    for kind in ("question", "twice", "log", "warning", "error", "stray"):
        first = recorded(3, lambda desk, kind=kind: curious(desk, 3, kind))
        second = recorded(4, lambda desk, kind=kind: curious(desk, 4, kind), first)
        seen[kind] = differences(first, second)
    assert all(seen.values())
    assert "the log lines differ" in seen["log"]
    assert "the log lines differ" in seen["warning"]
    assert "the ledgers differ" in seen["question"]
    assert "2 calls" in seen["twice"][0] or "against 2" in seen["twice"][0]
    assert any("stray" in line for line in seen["stray"])


def test_RP_an_engine_that_fails_on_one_of_them_is_reported() -> None:
    """An error on one data set only shows in outcomes and calls; on both alike it does not."""

    class Failing(Plain):
        def sums(self, tally: object) -> Private:
            raise ValueError("a cell")

    failing = Failing(rows(3), neighbours.SCHEMA, Unit())
    first = recorded(3, count)
    assert differences(first, recorded(3, count, first, failing))
    alike = recorded(3, count, None, failing)
    assert differences(alike, recorded(3, count, alike, failing)) == []
    assert alike.log
    assert "cell" not in "".join(alike.log + alike.outcomes)


def one(law: object, given: list[list[int]], norm: str, sensitivity: int, event: Event) -> Run:
    draw = Draw(law.kind, "add_remove", norm, Fraction(sensitivity), Fraction(1), Fraction(1), np.size(given))
    array = np.array(given)
    return Run([Call(0, law, array, array)], ["same"], [Entry("q", replace(event, draws=(draw,)), None)])


@pytest.mark.parametrize(
    ("law", "norm", "event", "moved", "broken"),
    [
        (LaplaceLaw(Fraction(2)), ("l1", 2), Event(Fraction(1), Fraction(1, 2)), [[1, 1]], False),
        (LaplaceLaw(Fraction(2)), ("l1", 2), Event(Fraction(1), Fraction(1, 2)), [[3, 0]], True),
        (LaplaceLaw(Fraction(1)), ("l1", 2), Event(Fraction(1), Fraction(1, 2)), [[1, 1]], True),
        (GaussianLaw(Fraction(2)), ("l2", 4), Event(None, Fraction(1, 2)), [[2, 0]], False),
        (GaussianLaw(Fraction(2)), ("l2", 4), Event(None, Fraction(1, 2)), [[2, 1]], True),
        (GaussianLaw(Fraction(1)), ("l2", 4), Event(None, Fraction(1, 2)), [[2, 0]], True),
        (GaussianLaw(Fraction(9)), ("l2", 4), Event(None, Fraction(0), queries=2), [[2, 2]], False),
        (GaussianLaw(Fraction(9)), ("l2", 4), Event(None, Fraction(0), queries=2), [[3, 0]], True),
        (BinomialLaw(100), ("l1", 1), Event(None, Fraction(0), queries=1), [[1]], False),
        (BinomialLaw(100), ("l1", 1), Event(None, Fraction(0), queries=1), [[2]], True),
        (AboveLaw(Fraction(2), Fraction(2), 3), ("l1", 2), Event(Fraction(1), Fraction(1, 2)), [[1, 1, 1]], False),
        (AboveLaw(Fraction(2), Fraction(2), 3), ("l1", 2), Event(Fraction(1), Fraction(1, 2)), [[1, -1, 0]], True),
        (AboveLaw(Fraction(2), Fraction(0), 3), ("l1", 2), Event(Fraction(1), Fraction(1, 2)), [[1, 1, 0]], False),
        (AboveLaw(Fraction(2), Fraction(0), 3), ("l1", 2), Event(Fraction(1), Fraction(1, 2)), [[1, 1, 1]], True),
        (AboveLaw(Fraction(2), Fraction(2), 3), ("l1", 2), Event(None, Fraction(1, 2)), [[0, 1, 1]], False),
        (AboveLaw(Fraction(2), Fraction(2), 3), ("l1", 2), Event(None, Fraction(1, 3)), [[0, 1, 1]], True),
    ],
)
def test_RP_moves_are_measured_in_the_declared_norm(law, norm, event, moved, broken) -> None:
    """L1 for Laplace, L2 squared for Gaussian, the farthest sum for queries; cost against what was paid, exactly."""
    zero = [[0] * len(moved[0])]
    found = overruns(one(law, zero, *norm, event), one(law, moved, *norm, event))
    assert bool(found) is broken


@pytest.mark.parametrize(
    ("moved", "told"), [([1, 1, 2], ""), ([2, 0, 0], "moved 2, declared 1"), ([0, 2, 2], "moved 4, declared 3")]
)
def test_RP_sums_drawn_in_one_call_are_measured_draw_by_draw(moved: list[int], told: str) -> None:
    """A call for a block of one sum and a block of two: each against what was declared for it, not their total."""
    law = LaplaceLaw(Fraction(2))
    draws = tuple(
        Draw("laplace", "add_remove", "l1", Fraction(most), Fraction(2), Fraction(1), cells)
        for most, cells in ((1, 1), (3, 2))
    )
    event = Event(Fraction(2), Fraction(2), draws=draws)

    def run(given: list[int]) -> Run:
        array = np.array([given])
        return Run([Call(0, law, array, array)], ["same"], [Entry("q", event, None)])

    found = overruns(run([0, 0, 0]), run(moved))
    assert bool(found) is bool(told)
    assert told in "".join(found)
    assert overruns(run([0] * 4), run([0] * 4)) == ["ask 0: more was drawn than was paid for"]


def test_RP_moves_of_64_bits_do_not_wrap() -> None:
    """The difference of sums at both ends of the range is taken in big integers."""
    law, event = LaplaceLaw(Fraction(1)), Event(Fraction(1), Fraction(1, 2))
    low, high = (one(law, [[value]], "l1", 1, event) for value in (-(2**62), 2**62))
    assert f"moved {2**63}" in overruns(low, high)[0]


def test_cost_knows_every_law() -> None:
    """The loss of one draw by its law; a law nobody knows is no law."""
    assert cost(LaplaceLaw(Fraction(4)), Fraction(2)) == Fraction(1, 2)
    assert cost(GaussianLaw(Fraction(2)), Fraction(4)) == Fraction(1, 2)
    assert cost(BinomialLaw(10), Fraction(5)) == 0
    assert cost(AboveLaw(Fraction(4), Fraction(4), 1), Fraction(2)) == Fraction(1, 2)
    with pytest.raises(TypeError):
        cost(None, Fraction(1))


def test_RP_reading_before_paying_is_reported_for_a_single_run() -> None:
    """Rows read without a debit are a fault whatever the neighbour."""
    run = Run(reads=[True, False])
    assert "rows were read before the debit" in differences(run, run)
