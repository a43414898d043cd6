"""Analyst's text is never executed: what questions and SQL become is read again by DuckDB's own parser (T18, T70)."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from sulq.answers.plan import Plan
from sulq.compile.plan import draw
from sulq.errors import SulqError
from sulq.language.facts import Facts
from sulq.language.privacy import EpsilonDelta, Unit
from sulq.language.tally import Engine
from sulq.sql.compile import compile as compiled
from sulq.sql.released.render import prepare
from sulq.testing import neighbours
from sulq.testing.questions import Drawer
from tests import counts
from tests.privacy.cases import engine, facts_of
from tests.privacy.test_sql import facts_of as tables_of
from tests.privacy.test_sql import opened
from tests.sources.reread import faults, listen, nodes, parsed
from tests.sql.queries import ROWS, Grammar, tables

SPEND = EpsilonDelta(1, 1e-6)
BUDGET = EpsilonDelta(900, 1e-2)
SQL_SHARE = 5  # one in so many statements comes of SQL text
BATCH = 200


def drawn(rng: np.random.Generator, facts: Facts) -> Plan | None:
    """The plan of one question from Python, if it can be asked."""
    drawer = Drawer(rng)
    pick = rng.random()
    question = drawer.question() if pick < 0.6 else drawer.open_sums() if pick < 0.8 else drawer.choose()
    try:
        return draw(question, facts, SPEND, ())
    except SulqError:
        return None


def from_sql(grammar: Grammar, facts: Facts) -> Plan | None:
    """The plan of one SELECT."""
    question = prepare(compiled(grammar.query(), facts).program, facts, SPEND).question
    return None if question is None else draw(question, facts, SPEND, ())


def ran(source: Engine, plan: Plan) -> None:
    """Every tally of a plan, asked of an engine."""
    for part in plan.parts:
        (source.sums if part.people is None else source.groups)(part.tally)


@pytest.mark.audit
def test_what_we_write_is_read_as_we_meant_it_T18_T70_T71(monkeypatch: pytest.MonkeyPatch) -> None:
    """One SELECT of listed functions and generated names; its numbers, texts and parameters are those we wrote.

    Bar: 0 mismatches in 1e5 generated questions. Control: test_what_we_do_not_write_is_noticed_T70.
    """
    planned = counts.count("generated questions read again by the engine's parser", short=320, long=100_000)
    written = listen(monkeypatch)
    used: Counter[str] = Counter()
    done = number = 0
    while done < planned:
        seed = counts.generator(f"rendered {number}")
        rng = np.random.default_rng(seed.randrange(2**32))
        number += 1
        size = min(BATCH, planned - done)
        unit = Unit("pid", int(rng.integers(1, 4)))
        facts = facts_of(unit, BUDGET, None)
        with engine("duckdb", neighbours.table(rng, unit, 3), unit) as source:
            asked = 0
            while asked < size - size // SQL_SHARE:
                plan = drawn(rng, facts)
                if plan is not None:
                    asked += 1
                    ran(source, plan)
        unit = Unit("pid", ROWS)
        facts = Facts(tables_of()[0].schema, unit, BUDGET, BUDGET, BUDGET, tables=tables_of())
        with opened("duckdb", tables(seed, 3), unit) as source:
            grammar = Grammar(seed)
            for _ in range(size // SQL_SHARE):
                plan = from_sql(grammar, facts)
                if plan is not None:
                    ran(source, plan)
        done += size
        for statement in written:
            assert faults(statement) == [], statement
            used.update(str(node.get("function_name")) for node in nodes(parsed(statement)) if number == 1)
        written.clear()
    assert len(used) >= 30  # the corpus reaches much of the list


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1 AS s0; SELECT 2 AS s1",
        "SELECT c0 FROM kept -- c1",
        "SELECT c0 /* c1 */ FROM kept",
        "SELECT 'Lod' AS s0 FROM kept",
        "SELECT name FROM kept",
        'SELECT "c0; DROP TABLE kept" FROM kept',
        "SELECT getenv('HOME') AS s0 FROM kept",
        "SELECT c0 FROM read_text('x')",
        "SELECT c0 FROM 'x.csv'",
        "SELECT c0 FROM pg_catalog.kept",
        "SELECT c0 AS city FROM kept",
        "SELECT $note AS s0 FROM kept",
        "SELECT CAST(c0 AS BLOB) AS s0 FROM kept",
        "SELECT row_number() OVER () AS s0 FROM kept",
        "SELECT c0 FROM kept USING SAMPLE 3",
        "WITH k AS (SELECT c0 FROM kept) SELECT c0 FROM k",
        "SELECT c0 FROM kept QUALIFY c0 > 1",
        "SELECT c0 FROM kept LIMIT 1",
        "SELECT c0 FROM kept WHERE c0 IN (SELECT c0 FROM kept)",
        "DELETE FROM kept",
        "SELECT c0 FROM kept WHERE c1 = 'it''s'",
        "SELECT 0x10 AS s0 FROM kept",
        "SELECT 1_000 AS s0 FROM kept",
        "SELECT E'\\n' AS s0 FROM kept",
        "SELECT $$a$$ AS s0 FROM kept",
        "SELECT {'a': 1} AS s0 FROM kept",
        "SELECT c0 FROM kept ASOF JOIN kept AS k USING (c0)",
    ],
)
def test_what_we_do_not_write_is_noticed_T70(statement: str) -> None:
    """Control: other names, functions, texts, clauses, comments and statements are faults."""
    assert faults(statement) != []


def test_a_text_of_the_question_is_noticed_T71() -> None:
    """Control: a text that stands in a statement is found, however harmless it looks there."""
    assert faults("SELECT c0 AS s0 FROM kept", frozenset({"kept"})) != []
