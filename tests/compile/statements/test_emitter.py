"""The SQL we write: only listed functions, generated names, bound texts, one statement (T18, T70, T71)."""

from __future__ import annotations

import json
import re

import duckdb
import pytest

from sulq.compile.statements import kept_table
from sulq.compile.statements.emitter import Emitter
from sulq.language.domain import Int, Real, Schema
from sulq.language.rowfn import Arith, Col, Fill, IsIn, Lit, RowFn, col
from sulq.language.rowfn.writer import KeptRows
from sulq.sources import stored_engine
from sulq.sources.duckdb import kept_rows
from tests import counts, generate, random_tallies
from tests.counts import count
from tests.sources.cases import CANARY, SCHEMA, ask, duck, plain_engine, sums, table
from tests.sources.reread import FUNCTIONS

NAME = re.compile(
    r"(?:[abcdfstk][0-9]+|[ahopuw]|one|people|person|place|kept|source|data|categories[0-9]+|text[0-9]+|key|who|item[0-9]*|code)"
)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every statement questions send, as they are sent."""
    statements: list[str] = []

    class Watched(stored_engine.CursorRunner):
        def __init__(self, *given, **more):
            super().__init__(*given, **more)
            self.statements = statements

    monkeypatch.setattr(stored_engine, "CursorRunner", Watched)
    return statements


def parsed(statement: str) -> dict[str, object]:
    """A statement as DuckDB's own parser reads it."""
    tree = json.loads(duckdb.execute("SELECT json_serialize_sql($1)", [statement]).fetchone()[0])
    assert not tree["error"], tree
    assert len(tree["statements"]) == 1
    return tree


def nodes(tree: object):
    """Every node of a parsed statement."""
    if isinstance(tree, dict):
        yield tree
        for part in tree.values():
            yield from nodes(part)
    elif isinstance(tree, list):
        for part in tree:
            yield from nodes(part)


def functions(statement: str) -> set[str]:
    """The functions a statement calls."""
    return {str(node["function_name"]) for node in nodes(parsed(statement)) if node.get("function_name")}


def test_only_listed_functions_and_generated_names_T18_T70_T71(written: list[str]) -> None:
    """Over a generated corpus each statement is one SELECT of listed functions and names of our own making."""
    for seed in range(count("tables whose SQL is read again", short=12, long=2_000)):
        rng = counts.generator(seed)
        data = generate.table(rng, size=3)
        for prepared in (None, False):
            engine = duck(data.arrow(), data.unit, data.schema, prepared=prepared)
            for _ in range(4):
                engine.sums(random_tallies.tally(rng, data.schema, data.unit))
            written.append(f"SELECT * FROM {kept_rows.select(engine._tables[0], stored=True).relation}")
            engine.close()
    used: set[str] = set()
    for statement in written:
        used |= functions(statement)
        for node in nodes(parsed(statement)):
            for name in node.get("column_names") or ():
                assert NAME.fullmatch(name), name
    assert used <= FUNCTIONS, used - FUNCTIONS
    assert len(used) >= 25  # the corpus reaches most of the list


@pytest.mark.parametrize("text", ["SELECT pg_sleep(1)", "SELECT md5('a')", "SELECT random()", "SELECT error('x')"])
def test_what_is_not_listed_is_noticed_T18(text: str) -> None:
    """Control: a function that may not stand in SQL is found by the reading above."""
    assert functions(text) - FUNCTIONS


def test_no_text_of_a_question_becomes_sql_T71(written: list[str]) -> None:
    """A literal is bound and a column's name is replaced, whatever they hold; the answer is still right."""
    hostile = f"'; COPY kept TO '/tmp/{CANARY}'; --"
    schema = Schema("data", ((f'"; DROP TABLE kept; -- {CANARY}', SCHEMA.find("note")), ("age", Int(0, 120))))
    name = schema.names[0]
    data = table([("ann", 40, 1.0, "x", hostile), ("bob", 41, 1.0, "x", "b")]).rename_columns(
        ["who", "age", "pay", "city", name]
    )
    asked = ask(Lit(1), where=(col(name) == hostile) | IsIn(Col(name), (hostile, CANARY)), schema=schema)
    assert sums(duck(data, schema=schema), asked) == sums(plain_engine(data, schema=schema), asked) == [[[1]]]
    assert written
    assert not any(CANARY in statement for statement in written)


def test_an_operand_is_written_once(written: list[str]) -> None:
    """A tower of quotients, each of which looks twice at its operand, stays as long as it is high."""
    tower: RowFn = col("pay")
    for _ in range(24):
        tower = Arith("/", Lit(1), Arith("+", tower, Lit(1e-3)))
    asked = ask(tower.clip(-5, 5))
    assert sums(duck(table()), asked) == sums(plain_engine(table()), asked)
    assert len(written[0]) < 10_000


@pytest.mark.parametrize("value", [True, False, 0, 1])
def test_a_condition_is_filled_with_a_truth(value: object) -> None:
    """0 and 1 fill a condition as false and true do."""
    asked = ask(Lit(1), where=Fill(col("pay") > 15, value))
    assert sums(duck(table()), asked) == sums(plain_engine(table()), asked) == [[[1 + bool(value)]]]


def test_a_column_meets_a_constant_in_integers_SR16() -> None:
    """Between two grid points no double decides: thresholds a last bit apart fall on the right sides."""
    schema = Schema("data", (("x", Real(0, 8, 0.125)),))
    rows = KeptRows("kept", {}, kept_table.names(schema), frozenset(), {}, 10)
    for op, constant, want in (
        (">", 0.125, "(c0 >= 2)"),
        (">=", 0.125, "(c0 >= 1)"),
        (">=", 0.12500000000000003, "(c0 >= 2)"),
        ("<", 0.12499999999999999, "(c0 <= 0)"),
        ("<", 1e60, "(c0 <= 64)"),
        (">", -1e60, "(c0 >= 0)"),
        ("==", 0.1, "CASE WHEN c0 IS NOT NULL THEN FALSE END"),
    ):
        compare = {
            ">": Col("x") > constant,
            ">=": Col("x") >= constant,
            "<": Col("x") < constant,
            "==": Col("x") == constant,
        }
        assert Emitter(schema, rows).truth(compare[op]).sql == want
