"""The harness itself: every way in which two runs can differ is reported, and nothing else is."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable

from sulq import Epsilon, Sums, Unit, col
from sulq.api.named_asks import NamedAsks
from sulq.errors import SetupError
from sulq.kernel.mechanisms import MECHANISMS, release
from sulq.kernel.private import Private
from sulq.language.rowfn import Lit
from sulq.testing import neighbours
from sulq.testing.replay import Run, differences, record
from tests.faults import Plain

COUNT = Sums((Lit(1),))
EMPTY = dict.fromkeys((name for name, _ in neighbours.COLUMNS), None)


def rows(n: int) -> list[neighbours.Row]:
    return [EMPTY | {"pid": f"p{i}", "age": 10} for i in range(n)]


def recorded(n: int, program: Callable[[NamedAsks], object], earlier: Run | None = None, engine: object = None) -> Run:
    return record(
        Plain(rows(n), neighbours.SCHEMA, Unit()) if engine is None else engine,
        [program],
        asks=NamedAsks,
        schema=neighbours.SCHEMA,
        unit=Unit(),
        budget=Epsilon(10),
        release=release,
        mechanisms=tuple(MECHANISMS),
        earlier=earlier,
    )


def count(asks: NamedAsks) -> object:
    return asks.ask(COUNT, spend=Epsilon(1))


def test_a_run_holds_calls_answers_entries_and_reads() -> None:
    """One ask leaves one call, one outcome, one entry with its answer, and one read that was paid for."""
    run = recorded(3, count)
    assert len(run.calls) == len(run.outcomes) == len(run.entries) == 1
    assert run.calls[0].given.tolist() == [[3]]
    assert run.entries[0].answer is not None
    assert run.events[0].epsilon == 1
    assert (run.reads, run.log, run.strays) == ([True], [], [])


def test_a_replay_gives_the_recorded_noise() -> None:
    """On the neighbour the same numbers come out while others go in, so that answers are equal byte for byte."""
    first = recorded(3, count)
    second = recorded(4, count, first)
    assert second.calls[0].given.tolist() == [[4]]
    assert second.calls[0].noisy.tobytes() == first.calls[0].noisy.tobytes()
    assert second.outcomes == first.outcomes
    assert differences(first, second) == []


def test_a_move_past_the_declared_sensitivity_is_reported() -> None:
    """Two people at once move a count by two where one was declared and paid for."""
    first = recorded(3, count)
    found = differences(first, recorded(5, count, first))
    assert found == ["ask 0: moved 2, declared 1 (l1)", "ask 0: a loss of 2, paid 1"]


def test_programs_that_look_at_the_data_are_reported() -> None:
    """Another question, another number of questions, a log line or a warning that follows the rows: all are seen."""
    seen = {}

    def curious(asks: NamedAsks, size: int, kind: str) -> object:
        if kind == "question" and size > 3:
            return asks.ask(Sums((col("age"),)), spend=Epsilon(1))
        if kind == "twice" and size > 3:
            asks.ask(COUNT, spend=Epsilon(1))
        if kind == "log":
            logging.getLogger("sulq.somewhere").debug("%d rows", size)
        if kind == "warning":
            warnings.warn(f"{size} rows", RuntimeWarning, stacklevel=1)
        if kind == "error" and size > 3:
            raise SetupError("closed", "too many rows")
        if kind == "stray" and size > 3:
            raise ValueError(size)
        return asks.ask(COUNT, spend=Epsilon(1))

    for kind in ("question", "twice", "log", "warning", "error", "stray"):
        first = recorded(3, lambda asks, kind=kind: curious(asks, 3, kind))
        second = recorded(4, lambda asks, kind=kind: curious(asks, 4, kind), first)
        seen[kind] = differences(first, second)
    assert all(seen.values())
    assert "the log lines differ" in seen["log"]
    assert "the log lines differ" in seen["warning"]
    assert "the ledgers differ" in seen["question"]
    assert "2 calls" in seen["twice"][0] or "against 2" in seen["twice"][0]
    assert any("stray" in line for line in seen["stray"])


def test_an_engine_that_fails_on_one_of_them_is_reported() -> None:
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


def test_reading_before_paying_is_reported_for_a_single_run() -> None:
    """Rows read without a debit are a fault whatever the neighbour."""
    run = Run(reads=[True, False])
    assert "rows were read before the debit" in differences(run, run)
