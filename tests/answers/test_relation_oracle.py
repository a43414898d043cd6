"""Oracles of some of the rows: what is asked behind, what is public of them, and which rows are the same."""

from __future__ import annotations

import pandas as pd
import pytest

import sulq
from sulq import Epsilon, Sums, Unit, bucket, col, lit
from sulq.answers import wire
from sulq.answers.oracle import ColumnChoice
from sulq.answers.relation_oracle import SALT, PeopleOracle, RelationOracle, base_of, divided, same_rows
from sulq.api.database import Database
from sulq.errors import QuestionError
from sulq.language.question import Above, Choose, Holistic, Together
from sulq.language.relation import Distinct, Join, PerPerson, Select, Table, Union, Where
from sulq.language.score import Rank
from sulq.language.shape import shape
from sulq.language.statistic import ToUnique

OLD = col("age") > 40
MANY = PerPerson(Table("visits"), (), (("n", "count", None),))


@pytest.fixture
def db():
    """People, their visits, and public regions."""
    people = pd.DataFrame({"pid": range(6), "age": [20, 30, 40, 50, 60, 70], "region": [1, 1, 2, 2, 1, 9]})
    visits = pd.DataFrame({"pid": [0, 0, 1, 2, 2, 2, 9], "cost": [1, 2, 3, 4, 5, 6, 7]})
    regions = pd.DataFrame({"code": [1, 2], "zone": ["n", "s"]})
    with sulq.connect(
        {"people": people, "visits": visits, "regions": regions},
        columns={
            "people": {"age": (0, 99), "region": (1, 9)},
            "visits": {"cost": (0, 9)},
            "regions": {"code": (1, 9), "zone": ["n", "s"]},
        },
        unit=Unit("pid", rows=3), keys={"people": "pid", "regions": "code"}, public=["regions"],
        budget=Epsilon(900), synthetic=True, size={"people": 6},
    ) as opened:  # fmt: skip
        yield opened


def over(db: Database, relation, where=None) -> RelationOracle:
    """An Oracle of a relation's rows."""
    return RelationOracle(db._oracle, relation, "view", where)


def test_every_kind_of_question_is_asked_of_the_relation(db) -> None:
    """Sums, choices, thresholds, several together: the first table's place is the relation's, the condition beside."""
    oracle = over(db, MANY, col("n") > 1)
    counts = Sums((lit(1),), col("n") < 3, (col("n") < 2,))
    score = Rank(1, 2)
    for asked in (
        counts,
        Choose(counts, score),
        Above(Sums((lit(1),), col("n") < 3), 2),
        Together((counts, Choose(counts, score)), (1, 2)),
    ):
        found = oracle.translated(asked)
        for one in found.questions if isinstance(found, Together) else (found,):
            inner = getattr(one, "counts", one)
            assert inner.over is MANY
            assert wire.encode(inner.where) == wire.encode((col("n") < 3) & (col("n") > 1))
    assert oracle.translated(Together((counts,), (2,))).shares == (2,)


def test_a_relation_of_the_first_table_is_one_of_the_relations_rows(db) -> None:
    """Whatever is derived from them: conditions stand below, once in each place the rows are read."""
    rows = Table("visits")
    oracle = RelationOracle(db._oracle, rows, "visits", col("cost") > 2)
    kept = Where(rows, col("cost") > 2)
    first = Select(Table(), (("x", col("cost")),))
    for asked, expected in (
        (Distinct(Table()), Distinct(kept)),
        (Where(Table(), col("cost") < 5), Where(rows, (col("cost") > 2) & (col("cost") < 5))),
        (Union((Table("visits"), Table())), Union((kept, kept))),
        (Join(first, Table(), (), "inner", True), Join(Select(kept, first.columns), kept, (), "inner", True)),
        (PerPerson(Table(), (), MANY.values), PerPerson(kept, (), MANY.values)),
    ):
        assert wire.encode(oracle.translated(Sums((lit(1),), over=asked)).over) == wire.encode(expected)


def test_no_other_table_is_here(db) -> None:
    """A question of another table is refused; a statistic of the whole table is of a table alone."""
    with pytest.raises(QuestionError, match="visits is the only one") as refused:
        RelationOracle(db._oracle, Table("visits"), "visits").foresee(Sums((lit(1),), over=Table("people")))
    assert refused.value.code == "unknown-table"
    with pytest.raises(QuestionError, match="not of a derived one"):
        over(db, MANY).foresee(Holistic(ToUnique(("n",))), spend=Epsilon(1))


def test_a_declared_size_is_of_all_rows_of_its_own_table_SR6(db) -> None:
    """Not of another table, of a derived one, of rows under a condition or of a part of the people. Control: itself."""
    assert RelationOracle(db._oracle, Table("people"), "people").facts.size == 6
    for oracle in (
        RelationOracle(db._oracle, Table("visits"), "visits"),
        RelationOracle(db._oracle, Table("regions"), "regions"),
        RelationOracle(db._oracle, Table(), "people", OLD),
        over(db, Select(Table("people"), (("a", col("age")),))),
        PeopleOracle.of(db._oracle, bucket(2) == 0),
    ):
        assert oracle.facts.size is None
        assert oracle.facts.fixed_size is None


def test_facts_are_those_of_the_derived_rows(db) -> None:
    """Columns, rows a person, and the person, as the plan works them out; the plan speaks of them by their name."""
    twice = Join(
        Select(Table("visits"), (("a", col("cost")),)),
        Select(Table("visits"), (("b", col("cost")),)),
        (),
        "inner",
        True,
    )
    oracle = over(db, twice)
    facts = oracle.facts
    assert (facts.table, tuple(facts.schema.names)) == ("view", ("a", "b"))
    assert shape(Table(), facts).rows == shape(twice, db.facts).rows == 9
    assert facts.rows_of(facts.every[0]) == 9
    assert "at most 9 rows a person" in str(facts)
    plan = oracle.foresee(Sums((lit(1),)), spend=Epsilon(1))
    assert plan.parts[0].sensitivity == (9,)
    assert plan.question.over == plan.parts[0].tally.over == Table()
    distinct = over(db, Distinct(Table("visits"))).facts
    assert distinct.person_of(distinct.every[0]) is None
    public = RelationOracle(db._oracle, Table("regions"), "regions").facts
    assert shape(Table("regions"), public).public


def test_a_part_of_the_people_is_taken_of_every_private_table_SR11(db) -> None:
    """In sums a condition, in relations one below; of public tables nothing. Control: they are other questions."""
    part = bucket(5, 3) == 0
    oracle = PeopleOracle.of(db._oracle, part)
    assert wire.encode(oracle.translated(Sums((lit(1),), OLD)).where) == wire.encode(OLD & part)
    assert oracle.translated(Sums((lit(1),), over=Table("regions"))).where is None
    regions = Select(Table("regions"), (("c", col("code")),))
    joined = Join(Where(Table("people"), OLD), regions, (("region", "c"),))
    found = oracle.translated(Sums((lit(1),), over=joined)).over
    assert wire.encode(found.left) == wire.encode(Where(Table("people"), part & OLD))
    assert found.right is regions or wire.encode(found.right) == wire.encode(regions)
    both = PeopleOracle.of(oracle, bucket(2, 9) == 1)
    assert both.foresee(Sums((lit(1),), over=Distinct(Table("visits"))), spend=Epsilon(1)).parts[0].sensitivity == (3,)


def test_a_part_is_of_people_and_not_of_derived_rows_SR11(db) -> None:
    """A condition on a table's own rows knows their person; above it, and in public rows, nothing does."""
    part = bucket(2) == 0
    db.foresee(Sums((lit(1),), over=Distinct(Where(Table("visits"), part))), spend=Epsilon(1))
    for over, where in (
        (Where(Distinct(Table("visits")), part), None),
        (Select(Table("visits"), (("x", bucket(2)),)), None),
        (Distinct(Table("visits")), part),
        (Where(Table("regions"), part), None),
        (Where(Where(Table("visits"), col("cost") > 1), part), None),
    ):
        with pytest.raises(QuestionError) as refused:
            db.foresee(Sums((lit(1),), where, over=over), spend=Epsilon(1))
        assert refused.value.code == "needs-position"


def test_parts_of_a_part_are_by_another_hash_SR11(db) -> None:
    """A division of the people that are left would else be all or nothing."""
    train, test = divided(db._oracle, (5, 1), 0)
    again, _ = divided(train, (5, 1), 0)
    salts = [
        oracle.part.item.item.salt if oracle is not test else oracle.part.item.salt for oracle in (train, test, again)
    ]
    assert salts == [SALT, SALT, 2 * SALT]
    table, _ = divided(over(db, MANY), (5, 1), 0)
    assert isinstance(table, RelationOracle)
    assert isinstance(table.oracle, PeopleOracle)
    assert base_of(table) is db._oracle


def test_rows_are_the_same_however_they_are_asked_for(db) -> None:
    """Equal relations, conditions and parts; not other ones, nor those of another database."""

    def choice(*oracles: object) -> list[ColumnChoice]:
        return [ColumnChoice(("n",), oracle) for oracle in oracles]

    again = PerPerson(Table("visits"), (), (("n", "count", None),))
    assert same_rows(*(one.oracle for one in choice(over(db, MANY), over(db, again))))
    a, b = col("n") > 1, col("n") < 3
    assert same_rows(*(one.oracle for one in choice(over(db, MANY, a & b), over(db, MANY, b & a))))
    assert not same_rows(*(one.oracle for one in choice(over(db, MANY), over(db, MANY, a))))
    train, test = divided(over(db, MANY), (5, 1), 0)
    assert not same_rows(*(one.oracle for one in choice(train, test)))
    assert same_rows(*(one.oracle for one in choice(train, divided(over(db, again), (5, 1), 0)[0])))
    assert not same_rows(*(one.oracle for one in choice(train, divided(over(db, MANY), (5, 1), 1)[0])))
