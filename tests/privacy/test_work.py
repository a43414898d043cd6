"""Neighbours near the time limit: what one person's rows add is a tenth of it at most, on every engine (T100)."""

from __future__ import annotations

import time

import pytest

import sulq
from benchmarks import work as worst
from sulq.api.database import Database
from sulq.compile import plan
from sulq.errors import QuestionError
from sulq.language.rowfn import Col, Like, Lowered
from tests import loaded, spark
from tests.counts import auditing, count

LIMIT = 3.0  # seconds, so that the cap is .3
FAMILIES = list(worst.FAMILIES)[: count("T100 kinds of work on every engine", short=2, long=len(worst.FAMILIES))]
ENGINES = ["duckdb", "memory", "postgres", *(["spark"] if auditing() else [])]


def opened(engine: str, family: str, *, person: bool) -> Database:
    data = worst.table(family, person=person)
    if engine == "postgres":
        found = worst.opened(loaded.loaded(data), family)
    elif engine == "spark":
        found = worst.opened(spark.frame(data), family)
    else:
        found = worst.opened(data, family, engine=engine)
    found._oracle.curator.limit = LIMIT
    return found


def longer(beside: Database, without: Database, asked: sulq.Sums, engine: str, times: int = 3) -> float:
    """Seconds that the person adds: of the processors where the engine is in this process, else of the clock."""
    clock = time.process_time if engine in ("duckdb", "memory") else time.perf_counter
    return worst.seconds(beside, asked, clock, times) - worst.seconds(without, asked, clock, times)


@pytest.mark.parametrize("engine", ENGINES)
def test_one_person_takes_at_most_a_tenth_of_the_limit_T100(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many conditions as are accepted, over rows that are as slow as may be: with the person and without.

    One more of each is refused with and without the person, and nothing is spent.

    Control: were twenty times as many let through, DuckDB would take longer than that.
    """
    if engine == "spark":
        spark.needed()
    for family in FAMILIES[:1] if engine == "spark" else FAMILIES:
        with opened(engine, family, person=True) as beside, opened(engine, family, person=False) as without:
            number = worst.most(family, without.facts, LIMIT)
            assert 1 <= number < worst.MOST, family
            assert longer(beside, without, worst.asked(family, number), engine) < LIMIT / 10, family
            before = len(beside.transcript()), len(without.transcript())
            for database in (beside, without):
                with pytest.raises(QuestionError, match="too-much-work"):
                    database.ask(worst.asked(family, number + 1), spend=sulq.Epsilon(0.01))
            assert (len(beside.transcript()), len(without.transcript())) == before
            if engine == "duckdb" and family == FAMILIES[0]:
                monkeypatch.setattr(plan, "check_work", lambda *_: None)
                assert longer(beside, without, worst.asked(family, 20 * number), engine, times=1) > LIMIT / 10
                monkeypatch.undo()


def test_the_work_of_a_question_needs_no_rows_T100_T74() -> None:
    """Whatever the rows, even none, the same questions are refused: it is the declarations that decide."""
    import pyarrow as pa

    outcomes = set()
    for rows in ([], ["e"] * 3, ["e" * 9_000] * 60):
        data = pa.table({"pid": pa.array(["p"] * len(rows), pa.string()), "note": pa.array(rows, pa.string())})
        with sulq.connect(
            data, columns={"note": sulq.Text()}, unit=sulq.Unit("pid", rows=50), budget=sulq.Epsilon(1), engine="memory"
        ) as db:
            refused = []
            for number in (1, 5, 30, 200):
                condition = Like(Lowered(Col("note")), "%e_" + "x" * 30 + "%")
                asked = sulq.Together((sulq.Sums((sulq.lit(1),), condition),) * number)
                try:
                    db.foresee(asked, spend=sulq.Epsilon(0.1))
                except QuestionError as error:
                    refused.append((number, error.code, error.message))
        outcomes.add(tuple(refused))
    (found,) = outcomes
    assert [number for number, _, _ in found] == [30, 200]
