"""Neighbours near the time limit: what one person's rows add is a tenth of it at most, on every engine (T100)."""

from __future__ import annotations

import time

import pytest

import sulq
from benchmarks import work as worst
from sulq.curator import plan
from sulq.database import Database
from sulq.errors import QuestionError
from sulq.terms.rowfn import Col, Like, Lowered
from tests import loaded, spark
from tests.counts import count

LIMIT = 3.0  # seconds, so that the cap is .3
FAMILIES = list(worst.FAMILIES)[: count("T100 kinds of work on every engine", short=2, long=len(worst.FAMILIES))]
MOST = 40  # conditions: planning more of them is all that takes time here


def opened(engine: str, person: str | None) -> Database:
    data = worst.table(person)
    if engine == "postgres":
        found = worst.opened(loaded.loaded(data))
    elif engine == "spark":
        found = worst.opened(spark.frame(data))
    else:
        found = worst.opened(data, engine=engine)
    found._oracle._limit = LIMIT
    return found


@pytest.mark.parametrize("engine", ["duckdb", "memory", "postgres", "spark"])
def test_T100_one_person_takes_at_most_a_tenth_of_the_limit(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many conditions as are accepted, over rows that are as slow as may be: with the person and without.

    One more of each is refused with and without the person, and nothing is spent.

    Control: were ten times as many let through, DuckDB would take longer than that.
    """
    if engine == "spark":
        spark.needed()
    clock = time.process_time if engine in ("duckdb", "memory") else time.perf_counter
    with opened(engine, None) as without:
        for family in FAMILIES[:1] if engine == "spark" else FAMILIES:
            number = worst.most(family, without.facts, LIMIT)
            asked, more = worst.asked(family, min(number, MOST)), worst.asked(family, number + 1)
            with opened(engine, worst.FAMILIES[family][0]) as beside:
                assert worst.seconds(beside, asked, clock) - worst.seconds(without, asked, clock) < LIMIT / 10
                before = len(beside.transcript()), len(without.transcript())
                for database in (beside, without) if number < worst.MOST else ():
                    with pytest.raises(QuestionError, match="too-much-work"):
                        database.ask(more, spend=sulq.Epsilon(0.01))
                assert (len(beside.transcript()), len(without.transcript())) == before
                if engine == "duckdb" and family == FAMILIES[0]:
                    monkeypatch.setattr(plan, "check_work", lambda *_: None)
                    many = worst.asked(family, 10 * number)
                    assert worst.seconds(beside, many, clock) - worst.seconds(without, many, clock) > LIMIT / 10
                    monkeypatch.undo()


def test_T100_T74_the_work_of_a_question_needs_no_rows() -> None:
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
