"""Questions that differ in the constants of a condition are one statement, whose certificate is worked out once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sulq.compile.statements.proposer import Proposer
from sulq.kernel import relations
from sulq.kernel.layout import joined, of_proposal, summed
from sulq.kernel.remembered import asked_by
from sulq.language.relation import Table
from sulq.language.rowfn import RowFn, case, col, lit
from sulq.language.tally import Tally
from sulq.sources.duckdb.runner import CursorRunner
from sulq.sources.fold import fold
from tests.compile.statements.test_proposer_texts import SCHEMA, rows
from tests.sources.cases import ask, duck

CONDITIONS = [
    lambda n: col("age") > n,
    lambda n: (col("pay") <= n / 2) & ~(col("age") == abs(n) % 120),
    lambda n: (lit(n) < col("wide")) | (col("city") != "xy"[n % 2]),
]


def texts(engine: object, tally: Tally) -> list[tuple[str, tuple[str, ...]]]:
    """The statements of a tally and what is bound in them."""
    return [(each.scan.sql, each.scan.texts) for each in engine.propose(tally).statements]  # type: ignore[attr-defined]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_other_constants_are_the_same_statement_with_the_right_sums(condition: object) -> None:
    """And the sums are those of the batch path. Control: a column that is compared otherwise is another statement."""
    engine, sqls, bound = duck(rows(300), schema=SCHEMA), set(), set()
    engine.ready()
    for n in (-4, 0, 3, 29, 130, 10**6):
        tally = ask(lit(1), col("pay"), where=condition(n), schema=SCHEMA)
        proposal = engine.propose(tally)
        ((sql, told),) = texts(engine, tally)
        sqls.add(sql)
        bound.add(told)
        asking = CursorRunner(engine._cursor(engine._connection), *engine._over(Table()))
        (found,) = joined(proposal, summed(proposal, asking))
        assert found.tolist() == fold(tally, engine._derived(tally)).tolist()
    assert len(sqls) == 1
    assert len(bound) > 2
    assert {sql for sql, _ in texts(engine, ask(lit(1), col("pay"), where=col("age") < 3, schema=SCHEMA))}.isdisjoint(
        sqls
    )


@pytest.mark.parametrize("condition", CONDITIONS)
def test_statements_that_are_sent_elsewhere_bind_no_number(condition: object) -> None:
    """On Spark one with a bound text has all rows come to the driver. Control: others bind theirs."""
    engine = duck(rows(3), schema=SCHEMA)
    tally = ask(lit(1), col("pay"), where=condition(29), schema=SCHEMA)
    schema, kept = engine._over(Table())
    for sent in (True, False):
        proposal = Proposer(schema, replace(kept, sent=sent)).propose([tally])
        assert any(each.scan.texts for each in proposal.statements) is not sent
        of_proposal(proposal, engine.kernel_facts)


def test_one_certificate_serves_one_asker(monkeypatch: pytest.MonkeyPatch) -> None:
    """The statement is parsed once for each asker, whatever constants are asked about: not once for all (T39)."""
    engine, parsed = duck(rows(3), schema=SCHEMA), []
    real = relations.parse
    monkeypatch.setattr(relations, "parse", lambda sql: parsed.append(sql) or real(sql))
    for asker in ("constants-a", "constants-b"):
        for n in range(5):
            with asked_by(asker):
                of_proposal(engine.propose(ask(where=col("age") > n, schema=SCHEMA)), engine.kernel_facts)
    assert len(parsed) == 2


@pytest.mark.parametrize(
    ("value", "where"),
    [
        (case((col("age") <= 30, col("age")), otherwise=0), None),
        (case((col("age") <= 30, col("age")), otherwise=0), col("age") <= 30),
        (lit(1), (col("age") + 1) > 30),
    ],
)
def test_a_constant_that_says_how_large_a_value_is_stays_in_the_text(value: RowFn, where: RowFn | None) -> None:
    """A CASE is certified by its constants, and what is computed may stand elsewhere too."""
    engine = duck(rows(3), schema=SCHEMA)
    statements = texts(engine, ask(value, where=where, schema=SCHEMA))
    assert any("30" in sql for sql, _ in statements)
