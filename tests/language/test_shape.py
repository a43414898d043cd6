"""Whose the rows of a derived table are, how many one person can alter, and what its columns hold (SR15)."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from sulq.errors import QuestionError
from sulq.language.domain import Bool, Category, Date, Int, Real, Schema, Text, Timestamp
from sulq.language.facts import Facts, TableFacts
from sulq.language.privacy import Epsilon, Unit
from sulq.language.relation import Distinct, Join, PerPerson, Relation, Select, Table, Union, Where
from sulq.language.rowfn import Bins, Col, Concat, DateTrunc, Lit, Substring
from sulq.language.shape import Shape, shape

PEOPLE = Schema.of("people", {"sex": ["f", "m"], "age": Int(0, 120), "code": Int(0, 9)})
VISITS = Schema.of(
    "visits",
    {
        "cost": Real(0, 100),
        "kind": ["a", "b"],
        "place": Int(0, 9),
        "day": Date("2020-01-01", "2020-12-31"),
        "at": Timestamp("2020-01-01", "2020-12-31"),
        "note": Text(),
        "ok": Bool(),
    },
)
REGIONS = Schema.of("regions", {"number": Int(0, 9), "name": ["n", "s"]})
TABLES = (
    TableFacts(PEOPLE, key="pid"),
    TableFacts(VISITS),
    TableFacts(REGIONS, key="number", public=True, rows=10),
)
FACTS = Facts(PEOPLE, Unit("pid", 5), Epsilon(9), Epsilon(1), Epsilon(8), tables=TABLES)
PERSON, VISIT, REGION = Table("people"), Table("visits"), Table("regions")


def of(relation: Relation) -> Shape:
    """Its shape among these tables."""
    return shape(relation, FACTS)


def own(**values: tuple[str, object]) -> PerPerson:
    """A person's visits put together."""
    return PerPerson(VISIT, (), tuple((name, how, fn) for name, (how, fn) in values.items()))


@pytest.mark.parametrize(
    ("relation", "rows", "owned"),
    [
        (PERSON, 1, True),
        (VISIT, 5, True),
        (REGION, 0, False),
        (Where(VISIT, Col("cost") > 3), 5, True),
        (Select(VISIT, (("x", Col("cost") * 2),)), 5, True),
        (Join(PERSON, VISIT, (), person=True), 5, True),
        (Join(VISIT, Select(VISIT, (("x", Col("cost")),)), (), person=True), 25, True),
        (Join(VISIT, PERSON, (), "left", person=True), 5, True),
        (Join(VISIT, REGION, (("place", "number"),)), 5, True),
        (Join(REGION, VISIT, (("number", "place"),)), 5, True),
        (Join(VISIT, REGION, (("place", "number"),), "left"), 5, True),
        (Join(VISIT, REGION, ()), 50, True),
        (Join(VISIT, Where(REGION, Col("name") == "n"), (("place", "number"),)), 5, True),
        (Join(REGION, Select(REGION, (("other", Col("number")),)), (("number", "other"),)), 0, False),
        (Join(VISIT, Join(REGION, Select(REGION, (("x", Col("name")),)), ()), (("place", "number"),)), 50, True),
        (PerPerson(VISIT, (), (("n", "count", None),)), 1, True),
        (PerPerson(VISIT, ("kind",), (("n", "count", None),)), 5, True),
        (Distinct(Select(VISIT, (("x", Col("kind")),))), 5, False),
        (Join(Distinct(VISIT), REGION, (("place", "number"),)), 5, False),
        (Union((VISIT, Where(VISIT, Col("ok")))), 10, True),
        (Union((Select(PERSON, (("x", Col("code")),)), Select(REGION, (("x", Col("number")),)))), 1, False),
    ],
)
def test_how_many_rows_one_person_can_alter_SR15(relation: Relation, rows: int, *, owned: bool) -> None:
    """k1 k2 for a join, k1 + k2 for a union, one for a person's own row; none where all is public."""
    found = of(relation)
    assert (found.rows, found.owned, found.public) == (rows, owned, rows == 0)


def test_rows_that_cannot_be_there_are_private_still_SR15() -> None:
    """A join with a public table of no rows has none of anybody's: it is no public relation for that."""
    facts = replace(FACTS, tables=(*TABLES[:-1], replace(TABLES[-1], rows=0)))
    found = shape(Join(VISIT, REGION, ()), facts)
    assert (found.rows, found.public, found.most) == (0, False, 0)
    assert shape(REGION, facts).public


@pytest.mark.parametrize(
    ("relation", "code"),
    [
        (Join(PERSON, VISIT, ()), "person-lost"),
        (Join(PERSON, VISIT, (("code", "place"),)), "person-lost"),
        (Join(REGION, VISIT, (("number", "place"),), "left"), "person-lost"),
        (Join(PERSON, Distinct(VISIT), (), person=True), "person-lost"),
        (Join(VISIT, REGION, (), person=True), "person-lost"),
        (PerPerson(Distinct(VISIT), (), (("n", "count", None),)), "person-lost"),
        (PerPerson(REGION, (), (("n", "count", None),)), "person-lost"),
        (Join(VISIT, Union((REGION, REGION)), (("place", "number"),)), "join-fan-out"),
        (Join(VISIT, VISIT, (), person=True), "bad-question"),
        (Join(VISIT, REGION, (("place", "nothing"),)), "unknown-column"),
        (Join(VISIT, REGION, (("kind", "name"),)), "wrong-kind"),
        (Join(VISIT, REGION, (("cost", "number"),)), "wrong-kind"),
        (PerPerson(VISIT, ("nothing",), ()), "unknown-column"),
        (Where(VISIT, Col("cost")), "wrong-kind"),
        (Select(VISIT, (("x", Col("cost") / Col("place")),)), "unbounded"),
        (Select(VISIT, (("x", Bins(Col("cost"), (0, 1, 2))),)), "wrong-kind"),
        (Union((PERSON, VISIT)), "bad-question"),
        (Union((Select(PERSON, (("x", Col("code")),)), Select(PERSON, (("x", Col("age")),)))), "wrong-kind"),
        (Table("nowhere"), "unknown-table"),
        (own(n=("sum", Col("note"))), "wrong-kind"),
    ],
)
def test_where_the_person_is_lost_it_is_said_SR15(relation: Relation, code: str) -> None:
    """Rows of no one person cannot be joined or grouped by person; private tables meet on the person alone."""
    with pytest.raises(QuestionError) as refused:
        of(relation)
    assert refused.value.code == code


def test_what_the_columns_of_a_derived_table_hold() -> None:
    """Each computed column has the domain its interval says; a sum over a person's rows is k times as wide."""
    made = own(
        n=("count", None), c=("count", Col("cost")), s=("sum", Col("cost") - 60), m=("mean", Col("cost")),
        lo=("min", Col("day")), hi=("max", Col("at")), d=("distinct", Col("kind")), t=("sum", Col("place")),
    )  # fmt: skip
    columns = dict(of(made).schema.columns)
    assert columns["n"] == columns["c"] == columns["d"] == Int(0, 5)
    assert (columns["s"].low * columns["s"].step, columns["s"].high * columns["s"].step) == (-300, 200)
    assert (columns["m"].low, columns["m"].high * columns["m"].step) == (0, 100)
    assert columns["lo"] == Date("2020-01-01", "2020-12-31")
    assert columns["hi"] == Timestamp("2020-01-01", "2020-12-31")
    assert columns["t"] == Int(0, 45)
    chosen = Select(
        VISIT,
        (("a", Col("cost") / 3), ("b", Col("kind")), ("c", Col("ok") & True), ("d", Col("note")), ("e", Lit(7))),
    )
    kinds = [type(column) for _, column in of(chosen).schema.columns]
    assert kinds == [Real, Category, Bool, Text, Int]
    assert dict(of(chosen).schema.columns)["a"].step <= Fraction(1, 2**15)


def test_a_text_of_a_derived_table_is_as_long_as_it_can_be_T100() -> None:
    """Cut texts are short, texts of a union as long as the longest of them."""
    note = Col("note")
    short, long = (
        Select(VISIT, (("x", fn),)) for fn in (Substring(note, 1, 7), Concat((Substring(note, 1, 9), Lit("ab"))))
    )
    assert [dict(of(made).schema.columns)["x"] for made in (short, long)] == [Text(7), Text(11)]
    assert dict(of(Union((short, long))).schema.columns)["x"] == Text(11)
    assert dict(of(Select(VISIT, (("x", Substring(note, 10**5)),))).schema.columns)["x"] == Text(1)


def test_rows_that_are_people_are_nobody_elses() -> None:
    """Without a person column a table's rows are one each, and cannot be put together by person."""
    facts = replace(FACTS, unit=Unit())
    assert shape(VISIT, facts).rows == 1
    assert not shape(VISIT, facts).owned
    assert shape(Union((VISIT, VISIT)), facts).rows == 2
    with pytest.raises(QuestionError) as refused:
        shape(Join(PERSON, VISIT, (), person=True), facts)
    assert refused.value.code == "person-lost"


def test_too_many_rows_of_one_person_are_refused() -> None:
    """A tower of joins that nobody could hide is refused and not multiplied on."""
    facts = replace(FACTS, unit=Unit("pid", 1001))
    with pytest.raises(QuestionError) as refused:
        shape(Join(VISIT, Select(VISIT, (("x", Col("cost")),)), (), person=True), facts)
    assert refused.value.code == "too-large"


def test_only_a_table_as_it_stands_has_all_its_rows() -> None:
    """What is filtered, matched, grouped or united may lack a row; computing columns drops none."""
    assert of(VISIT).fixed
    assert of(Select(VISIT, (("x", Col("cost")),))).fixed
    assert of(Join(VISIT, REGION, (("place", "number"),), "left")).fixed
    for relation in (Where(VISIT, Col("ok")), Join(VISIT, REGION, (("place", "number"),)), Distinct(VISIT), own()):
        assert not of(relation).fixed


def test_a_finely_graded_key_stays_one_to_one_T15() -> None:
    """A column by itself keeps its own grid in a derived table: rounded, several public keys would become one."""
    fine = Schema.of("fine", {"k": Real(0, 1, grid=2**-30)})
    own = Schema.of("own", {"k": Real(0, 1, grid=2**-30)})
    facts = replace(FACTS, tables=(TableFacts(own), TableFacts(fine, key="k", public=True, rows=100)))
    chosen = Select(Table("fine"), (("kk", Col("k")), ("half", Col("k") / 2)))
    assert dict(shape(chosen, facts).schema.columns)["kk"] == Real(0, 1, grid=2**-30)
    mine = Select(Table("own"), (("x", Col("k")), ("y", Col("k") / 2)))
    assert shape(Join(mine, chosen, (("x", "kk"),)), facts).rows == 5
    assert shape(Join(mine, chosen, (("y", "half"),)), facts).rows == 500  # computed, it is no key any more


def test_the_period_of_the_first_moments_begins_at_the_first_of_all_T30() -> None:
    """Truncated, the earliest moments lie before every moment there can be: a column of them is bounded still."""
    ends = ("1684-07-28T00:12:30", "2255-06-05T23:47:34")
    schema = Schema.of("t", {"at": Timestamp(*ends)})
    facts = replace(FACTS, tables=(TableFacts(schema),))
    for period in ("year", "quarter", "month", "week", "day", "hour"):
        made = shape(Select(Table("t"), (("began", DateTrunc(period, Col("at"))),)), facts)
        column = dict(made.schema.columns)["began"]
        assert isinstance(column, Timestamp)
        assert Timestamp(*ends).low - 366 * 86_400_000_000 <= column.low <= Timestamp(*ends).low
        PerPerson(Table("t"), (), (("last", "max", DateTrunc(period, Col("at"))),))


def test_columns_of_rows_without_a_match_may_be_missing_SR1() -> None:
    """A column that is never missing in its table is so in what keeps its rows, and not beside unmatched left rows."""
    never = Schema.of("regions", {"number": Int(0, 9, missing=False), "name": Category(["n", "s"], missing=False)})
    tables = (*TABLES[:2], TableFacts(never, key="number", public=True, rows=10))
    facts = Facts(PEOPLE, Unit("pid", 5), Epsilon(9), Epsilon(1), Epsilon(8), tables=tables)

    def missing(relation: Relation) -> list[bool]:
        return [c.missing for name, c in shape(relation, facts).schema.columns if name in ("number", "name")]

    assert missing(Where(REGION, Col("number") > 3)) == [False, False]
    assert missing(Join(VISIT, REGION, (("place", "number"),))) == [False, False]
    assert missing(Join(VISIT, REGION, (("place", "number"),), how="left")) == [True, True]
    assert missing(Union((Join(VISIT, REGION, (("place", "number"),)),
                          Join(VISIT, REGION, (("place", "number"),), how="left")))) == [True, True]  # fmt: skip
