"""The work foreseen of a question: from declarations alone, for all row functions, and refused above a public cap."""

from __future__ import annotations

import pytest

import sulq
from sulq.compile.plan import draw, work
from sulq.errors import QuestionError
from sulq.language.domain import Category, Int, Real, Schema, Text
from sulq.language.facts import Facts, TableFacts
from sulq.language.privacy import Epsilon, EpsilonDelta, Unit
from sulq.language.question import Choose, OpenSums, Sums, Together
from sulq.language.relation import Distinct, Join, PerPerson, Relation, Select, Table, Union, Where
from sulq.language.rowfn import Col, Concat, Like, Lit, Logic, Lowered, RowFn, Substring, nearest, outer, vector
from sulq.language.score import Rank

ONE = Lit(1)
BUDGET = EpsilonDelta(900, 1e-6)
WILD = "%e" + "_" * 90 + "z%"


def facts(longest: int = 10_000, rows: int = 50, size: int | None = None) -> Facts:
    columns = {
        "note": Text(longest),
        "name": Text(longest),
        "age": Int(0, 120),
        "x": Real(0, 1),
        "c": Category(("a", "b")),
    }
    first = Schema.of("t", columns)
    other = Schema.of("u", {f"u_{name}": column for name, column in columns.items()})
    tables = (TableFacts(first), TableFacts(other))
    return Facts(first, Unit("pid", rows), BUDGET, BUDGET, BUDGET, size, tables=tables)


def patterns(number: int, pattern: str = WILD) -> RowFn:
    return Logic("or", tuple(Like(Col("note"), f"{pattern}{i}") for i in range(number)))


def foreseen(question: object, known: Facts | None = None) -> float:
    """Seconds of one person."""
    return work.alone(question.questions if isinstance(question, Together) else (question,), known or facts())


def refused(question: object, known: Facts, limit: float | None = None) -> bool:
    try:
        draw(question, known, EpsilonDelta(1, 1e-9), limit=limit)
    except QuestionError as error:
        if error.code != "too-much-work":
            raise
        return True
    return False


def test_what_one_person_could_make_too_slow_is_refused_from_public_facts_T100() -> None:
    """Hundreds of patterns over fifty notes; with few, shorter texts or fewer rows they are planned.

    Control: without the bound they are planned, and one person alone is foreseen to take more than the whole limit.
    """
    many = Sums((ONE,), (Col("name") == "x") & patterns(300))
    assert refused(many, facts())
    assert foreseen(many) > work.LIMIT
    assert not refused(Sums((ONE,), patterns(300)), facts(longest=10, rows=5))
    assert not refused(Sums((ONE,), patterns(300, "%word%")), facts(longest=500))
    assert not refused(Sums((ONE,), patterns(1)), facts(rows=20))
    assert refused(Sums((ONE,), patterns(1)), facts(rows=20), limit=5.0)


def test_all_that_is_asked_at_one_debit_counts_together_T100() -> None:
    """Parts, choices, keys, filters, joins and derived columns: whatever way a pattern comes in."""
    one = Sums((ONE,), patterns(1))
    assert foreseen(Together((one,) * 5)) == pytest.approx(5 * foreseen(one))
    alone = foreseen(one)
    again: list[object] = [
        Sums((Lit(1),), over=Where(Table(), patterns(1))),
        Sums((ONE,), Col("m"), over=Select(Table(), (("m", patterns(1)),))),
        Sums((ONE,), Col("m"), over=Select(Where(Table(), patterns(1)), (("m", Col("age") > 3),))),
        Sums((Col("n"),), over=PerPerson(Table(), (), (("n", "sum", patterns(1)),))),
        OpenSums((), None, (patterns(1),)),
        OpenSums((patterns(1),), None, (Col("name"),)),
        Choose(Sums((ONE,), patterns(1), (Col("c"),)), Rank(1, 2)),
    ]
    for question in again:
        assert foreseen(question) >= 0.99 * alone


@pytest.mark.parametrize(
    ("over", "times"),
    [
        (Table(), 1),
        (Distinct(Table()), 1),
        (Union((Table(), Table())), 2),
        (Join(Table(), Table("u"), (), person=True), 50),
    ],
)
def test_the_rows_of_a_person_are_those_of_the_relation_T100(over: Relation, times: int) -> None:
    """A join of fifty and fifty rows has 2,500 of them, and a union twice as many."""
    plain, asked = foreseen(Sums((ONE,), over=over)), foreseen(Sums((ONE,), patterns(4), over=over))
    base = foreseen(Sums((ONE,), patterns(4))) - foreseen(Sums((ONE,)))
    assert (asked - plain) / base == pytest.approx(times, rel=0.01)


def test_the_work_grows_with_what_is_declared_and_asked() -> None:
    """Twice the text, the rows or the pattern is about twice the work; texts put together are as long as they are."""
    base = foreseen(Sums((ONE,), patterns(4)), facts(1000))
    assert foreseen(Sums((ONE,), patterns(4)), facts(2000)) == pytest.approx(2 * base, rel=0.1)
    assert foreseen(Sums((ONE,), patterns(4)), facts(1000, rows=100)) == pytest.approx(2 * base)
    short, long = ("%e" + "_" * n + "%" for n in (40, 80))
    assert foreseen(Sums((ONE,), patterns(1, long))) > 1.7 * foreseen(Sums((ONE,), patterns(1, short)))

    def like(item: RowFn) -> float:
        return foreseen(Sums((ONE,), Like(item, WILD)), facts(100))

    note = Col("note")
    assert like(Concat((note,) * 8)) > 7 * like(note)
    assert like(Substring(note, 1, 10)) < like(note) / 2
    assert like(Lowered(note)) > like(note)
    assert foreseen(Sums((outer(vector(["x", "age"] * 50)),))) > 10 * foreseen(Sums((outer(vector(["x", "age"])),)))
    keys = [Sums((ONE,), by=(nearest(["x", "age"], [[i, i] for i in range(n)]),)) for n in (10, 1000)]
    assert foreseen(keys[1]) > 10 * foreseen(keys[0])


def test_the_whole_is_foreseen_where_asks_are_stopped_T32() -> None:
    """By the declared size, or a hundred thousand rows; never where nothing is stopped: then no outcome tells."""
    asked = Sums((ONE,), patterns(40))
    assert not refused(asked, facts(100, rows=1))
    assert refused(asked, facts(100, rows=1, size=10**8), limit=30.0)
    assert not refused(asked, facts(100, rows=1, size=10**8))
    assert not refused(asked, facts(100, rows=1, size=10**4), limit=30.0)
    assert refused(Sums((ONE,), patterns(400)), facts(300, rows=1), limit=30.0)
    assert not refused(Sums((ONE,), patterns(400)), facts(300, rows=1, size=1000), limit=30.0)


@pytest.mark.parametrize("limit", [None, 30.0])
def test_everyday_questions_are_not_refused(limit: float | None) -> None:
    """Of a large table, with some patterns over texts as long as may be, and means, groups and clusters."""
    known = facts(size=10**7)
    everyday: list[object] = [
        Sums((ONE,)),
        Sums((Col("x"), Col("age"), ONE), Like(Lowered(Col("note")), "%chest pain%"), (Col("c"),)),
        Sums((ONE,), Logic("or", tuple(Like(Col("note"), f"%{w}%") for w in ("fever", "cough", "a_b", "x y z")))),
        Together(tuple(Sums((Col("x") * i,), Col("age") > i) for i in range(100))),
        Sums((outer(vector(["x", "age"] * 10)),)),
        Sums((ONE,), by=(nearest(["x", "age"] * 5, [[float(i)] * 10 for i in range(100)]),)),
        OpenSums((), None, (Col("name"),)),
    ]
    for question in everyday:
        assert not refused(question, known, limit)
    assert not refused(Sums((ONE,), Col("age") > 3, (Col("c"),)), facts(size=10**9), limit)


def test_every_row_function_has_its_work() -> None:
    """Those that are neither of texts nor vectors nor slow are of a few numbers each; a new one must be thought of."""
    names = {fn.__name__ for fn in work.PLAIN}
    assert names == {
        "Arith", "Bucket", "Case", "Clip", "Each", "Fill", "Greatest", "IsMissing", "Least", "Logic",
        "Modulo", "Not", "OrMissing", "Position",
    }  # fmt: skip


def test_explain_and_ask_refuse_alike_and_nothing_is_spent_T100() -> None:
    """In SQL, in EXPLAIN, in Python and by foresight, before any debit."""
    import pyarrow as pa

    data = pa.table({"pid": ["a"], "note": ["e"]})
    db = sulq.connect(
        data, table="t", columns={"note": Text()}, unit=Unit("pid", rows=50), budget=Epsilon(1), engine="memory"
    )
    query = "SELECT COUNT(*) FROM t WHERE " + " OR ".join(f"note LIKE '{WILD}{i}'" for i in range(40))
    for ask in (
        lambda: db.sql(query, spend=Epsilon(1e-6)),
        lambda: db.sql(f"EXPLAIN {query}", spend=Epsilon(1e-6)),
        lambda: db.explain(query, spend=Epsilon(1e-6)),
        lambda: db.count(patterns(40), spend=Epsilon(1e-6)),
        lambda: db.foresee(Sums((ONE,), patterns(40)), spend=Epsilon(1e-6)),
    ):
        with pytest.raises(QuestionError) as error:
            ask()
        assert error.value.code == "too-much-work"
    assert db.remaining == Epsilon(1)
    assert db.transcript() == []
