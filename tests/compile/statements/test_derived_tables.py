"""Relations as SQL: listed functions, generated names, and what has no SQL derived by hand."""

from __future__ import annotations

import pytest

from sulq.compile.statements import derived_tables
from sulq.compile.statements.kept_table import names
from sulq.kernel.layout import of_proposal
from sulq.language.domain import Int, Schema, Text
from sulq.language.facts import TableFacts, Tables
from sulq.language.privacy import Unit
from sulq.language.relation import Distinct, Join, PerPerson, Relation, Select, Table, Union, Where
from sulq.language.rowfn import Bucket, Col, Dot, Lit, Vector, col
from sulq.language.rowfn.piece import NotInSql
from sulq.language.rowfn.writer import KeptRows
from sulq.language.shape import MAX_STORED_ROWS, shape
from sulq.language.tally import Tally
from tests import counts, random_tallies, relations
from tests.compile.statements.test_emitter import functions
from tests.counts import count
from tests.sources.cases import CANARY, SCHEMA, duck, plain_engine, table
from tests.sources.reread import FUNCTIONS, faults

UNIT = Unit("who", 2)


def stored(facts: Tables):
    """Kept rows as a prepared copy has them."""
    return lambda name: KeptRows("kept", {}, names(facts.table_of(name).schema), frozenset(), {}, 100)


def over(relation: Relation, *values, schema: Schema = SCHEMA) -> Tally:
    """A tally over a relation."""
    derived = shape(relation, Tables(UNIT, (TableFacts(schema),))).schema
    made = random_tallies.question(values or (Lit(1),), derived)
    return Tally(relation, made.blocks, None, (), 1)


def test_only_listed_functions_and_generated_names_T18_T70_T71() -> None:
    """Over random relations each statement is one SELECT of listed functions and names of our own making."""
    used: set[str] = set()
    for seed in range(count("relations whose SQL is read again", short=100, long=3_000)):
        rng = counts.generator(f"derive {seed}")
        world = relations.world(rng)
        draw = relations.Relations(rng, world.facts)
        try:
            _, rows = derived_tables.derive(draw.relation(rng.randint(1, 4)), world.facts, stored(world.facts))
        except NotInSql:
            continue
        statement = f"SELECT * FROM {rows.relation}"
        used |= functions(statement)
        assert faults(statement, frozenset(map(str, rows.parameters.values()))) == [], statement
        assert all(name.startswith("text") for name in rows.parameters)
    assert used <= FUNCTIONS, used - FUNCTIONS
    assert {"count", "sum", "min", "max", "floor"} <= used


def test_no_text_of_a_relation_becomes_sql_T71() -> None:
    """Names of derived columns and literals on both sides of a join stay out of the SQL, and keep apart."""
    hostile = f"'; COPY kept TO '/tmp/{CANARY}'; --"
    sides = []
    for i, text in enumerate((hostile, CANARY)):
        rows = Where(Table(), (col("note") == text) | (col("age") > 40))
        sides.append(Select(rows, ((f'"{hostile}{i}', Col("note")), (f"age{i}", Col("age")))))
    join = Join(sides[0], sides[1], (), person=True)
    facts = Tables(UNIT, (TableFacts(SCHEMA),))
    _, rows = derived_tables.derive(join, facts, stored(facts))
    assert CANARY not in rows.relation
    assert sorted(map(str, rows.parameters.values())) == sorted((hostile, CANARY))
    data = table([("ann", 40, 1.0, "x", hostile), ("ann", 1, 1.0, "x", CANARY), ("bob", 41, 1.0, "x", "b")])
    for engine in (duck(data, UNIT), plain_engine(data, UNIT)):
        assert engine.sums(over(join)).open().tolist() == [[2]]
        engine.close()


def test_a_part_of_the_people_is_one_certified_statement_SR11() -> None:
    """A condition on the hash of a table's own persons, below a join."""
    data, part = table(), Bucket(2, 1).isin([0])
    engine = duck(data, UNIT)
    engine.ready()
    found = []
    for each in (part, ~part, Lit(1) == 1):
        rows = Where(Table(), each & (col("age") > 0))
        twin = Select(rows, (("other", Col("age")),))
        tally = over(Join(rows, twin, (), person=True))
        assert of_proposal(engine.propose(tally), engine.kernel_facts).blocks[0][0].moves.single.l1 == 4
        found.append(engine.sums(tally).open().item())
    assert found[0] + found[1] == found[2] > 0
    engine.close()


@pytest.mark.parametrize("prepared", [None, False])
def test_what_has_no_sql_is_derived_by_hand(prepared) -> None:
    """A condition on a dot product, inside and around relations that SQL could say."""
    dot = Dot(Vector((col("age"), col("pay"))), (1, 1))
    relation = PerPerson(Where(Table(), dot > 45), (), (("n", "count", None), ("d", "max", dot)))
    tally = over(relation, col("n"), col("d"))
    data = table()
    both = [duck(data, UNIT, prepared=prepared), plain_engine(data, UNIT)]
    found = [engine.sums(tally).open().tolist() for engine in both]
    assert found[0] == found[1]
    assert found[0][0][0] == 2
    for engine in both:
        engine.close()


def test_a_plain_table_is_read_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """No relation, no layer around the kept rows, no owner."""
    monkeypatch.setattr(derived_tables, "derive", None)
    engine = duck(table(), UNIT)
    engine.ready()
    schema, rows = engine._over(Table())
    assert (schema, rows.relation) == (SCHEMA, "kept")
    assert engine.sums(over(Table())).open().tolist() == [[3]]
    engine.close()


def test_how_many_rows_there_can_be() -> None:
    """The bound by which sums are known to be exact: of public facts, whatever the rows that are read say of theirs."""
    facts = Tables(
        UNIT,
        (
            TableFacts(Schema("t", (("a", Int(0, 9)), ("b", Text())))),
            TableFacts(Schema("p", (("k", Int(0, 9)),)), key="k", public=True, rows=7),
        ),
    )
    most = MAX_STORED_ROWS
    renamed = Select(Table("t"), (("c", Col("a")),))
    once = PerPerson(Table("t"), (), (("n", "count", None),))
    cases = {
        Distinct(Table("t")): most,
        Union((renamed, renamed)): 2 * most,
        Join(Table("t"), renamed, (), person=True): 2 * most,
        Join(once, renamed, (), person=True): most,  # of one row a person two pairs can come, and each has a right row
        Join(once, renamed, (), "left", person=True): 2 * most,
        Join(Table("t"), Table("p"), (("a", "k"),)): most,
        Join(Table("p"), Table("t"), ()): 7 * most,
        Join(Table("p"), Select(Table("p"), (("j", Col("k")),)), ()): 49,
    }
    for relation, bound in cases.items():
        assert derived_tables.derive(relation, facts, stored(facts))[1].most == bound, relation
