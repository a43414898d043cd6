"""The wire: every value of the vocabulary goes and comes back; every other text is refused."""

from __future__ import annotations

import dataclasses
import json
import time
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sulq
from sulq.answers import wire
from sulq.answers.answer import Answer, Answers, Receipt
from sulq.answers.budget import BudgetLeft
from sulq.answers.plan import Part, Plan, Whole
from sulq.answers.readings.estimators import CentredMean, Chosen, Covariance, FirstAbove, Mean, Placed, Plain, Spread
from sulq.answers.readings.joint import Correlation, SpreadMean, WeightedSum
from sulq.answers.readings.quantiles import HOW, Bed, Picked, Quantile, Quantiles
from sulq.answers.readings.rank_choice import ChosenExtreme, ChosenQuantile, CountedFirst, SeveralQuantiles
from sulq.answers.readings.sampling import RowSum, SampledSpread, SampledTotal
from sulq.answers.readings.sized import Average, SizedSpread
from sulq.answers.released import Noise, Released
from sulq.answers.reuse import name_of
from sulq.answers.signed_receipt import SignedReceipt
from sulq.compile.plan import draw
from sulq.errors import QuestionError, SulqError
from sulq.kernel.private import Private
from sulq.language.domain import Bool, Category, Date, Int, Real, Schema, Text, Timestamp, Vertices
from sulq.language.estimator import Certificate, Estimator, Property, Stated, Utility
from sulq.language.facts import Facts, Heavy, TableFacts
from sulq.language.law import (
    AboveLaw,
    BinomialLaw,
    BitLaw,
    ExponentialLaw,
    FlipLaw,
    GaussianLaw,
    LaplaceLaw,
    MetricLaw,
    PassedGaussianLaw,
    PassedLaplaceLaw,
    PassedLaw,
)
from sulq.language.privacy import Draw, Epsilon, EpsilonDelta, EpsilonKeys, Event, Queries, Rho, Split, SubLinear, Unit
from sulq.language.question import Above, Choose, Holistic, OpenSums, Sums, Together
from sulq.language.relation import Distinct, Join, PerPerson, Select, Table, Union, Where
from sulq.language.rowfn import ROW_FUNCTIONS, Bucket, Col, Each, Lit, Lookup, Route
from sulq.language.rows_choice import AutoUnit, RowsChoice
from sulq.language.score import Contrast, Diagonal, Distance, Linear, NegAbs, NegL1, NegMaxAbs, Rank
from sulq.language.shape import DerivedTable, Shape
from sulq.language.space import Box, Candidates, Cube, Points
from sulq.language.statistic import (
    Aggregated,
    Certified,
    Degrees,
    Edges,
    Graph,
    HeavyPersons,
    MinCut,
    Occurring,
    SpanningTree,
    ToBoundedDegree,
    ToConnected,
    ToProperty,
    ToSorted,
    ToUnique,
    Triangles,
)
from sulq.language.tally import Block, Key, Tally
from tests import expressions
from tests.counts import count
from tests.expressions import EXAMPLES, SCHEMA

CASES = count("wire fuzz", short=300, long=20_000)

fractions = st.fractions(-(10**20), 10**20)
positive = st.fractions(Fraction(1, 10**9), 900)
texts = st.text(max_size=8)
scales = st.fractions(1, 2**40)
units = st.builds(Unit, st.just("who"), st.integers(1, 99), st.sampled_from(["add_remove", "replace_one", "zero_out"]))
losses = st.one_of(
    st.builds(Epsilon, positive | st.floats(1e-9, 900) | st.integers(1, 900)),
    st.builds(Rho, positive | st.decimals(Decimal("0.001"), 900, places=5)),
    st.builds(EpsilonDelta, positive, st.floats(1e-300, 0.9)),
)
passed = st.builds(PassedLaw, scales, st.integers(1, 2**50))
laws = st.one_of(
    scales.map(LaplaceLaw),
    scales.map(GaussianLaw),
    st.integers(1, 999).map(lambda n: BinomialLaw(2 * n)),
    passed,
    st.builds(FlipLaw, scales, st.integers(1, 99)),
    st.builds(ExponentialLaw, scales, st.integers(1, 99)),
    st.builds(AboveLaw, scales, scales | st.just(Fraction(0)), st.integers(1, 99)),
)
ranks = st.builds(Rank, st.integers(0, 9), st.integers(9, 99), st.integers(-99, 99))
matrices = st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=1, max_size=3).map(tuple)
draws = st.builds(Draw, texts, st.just("add_remove"), st.just("l1"), fractions, fractions, fractions, st.integers(1, 9))
events = st.builds(Event, st.none() | fractions, fractions, fractions, st.integers(0, 9), st.lists(draws).map(tuple))
receipts = st.builds(Receipt, st.integers(0, 2**70), texts, texts, texts)
signed_receipts = st.builds(
    SignedReceipt, texts, st.integers(0, 2**70), texts, texts, texts, st.none() | fractions, fractions, fractions,
    st.integers(0, 9), texts, texts, texts, texts,
)  # fmt: skip
noises = st.builds(Noise, laws, fractions, st.integers(1, 3))
released = st.builds(
    Released,
    st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=2), min_size=1, max_size=4).map(
        lambda cells: np.array(cells, dtype=np.int64)
    ),
    st.lists(noises, max_size=2).map(tuple),
    st.none()
    | st.lists(st.tuples(texts | st.none(), st.booleans() | st.integers() | st.floats(0, 1)), min_size=1).map(
        lambda rows: tuple(zip(*rows, strict=True))
    ),
)
readings = st.one_of(
    st.just(Plain()),
    st.builds(Average, st.integers(1, 9), fractions, fractions),
    st.builds(Mean, fractions, fractions, fractions),
    st.builds(CentredMean, fractions, fractions, fractions),
    st.builds(Spread, fractions, st.booleans(), st.sampled_from([0, 1])),
    st.builds(Covariance, st.lists(fractions).map(tuple), st.none() | st.integers(1, 9)),
    st.builds(FirstAbove, fractions),
)
beds = st.builds(Bed, fractions, fractions, fractions, fractions, st.integers(1, 9))
trees = st.builds(
    Quantile, beds, st.integers(2, 9), st.lists(st.integers(1, 9)).map(tuple), st.sampled_from(HOW), fractions
)
labels = st.tuples(st.booleans() | st.integers() | texts | st.tuples(st.floats(0, 1), st.integers()))
answers = st.builds(
    Answer,
    released,
    readings,
    st.lists(st.tuples(texts, labels)).map(tuple),
    st.lists(texts).map(tuple),
    losses,
    losses,
    units,
    texts,
    events,
    receipts,
    st.booleans(),
    st.lists(texts).map(tuple),
    st.booleans(),
)
FACTS = Facts(SCHEMA, Unit("who", 3, "zero_out"), Epsilon(9), Epsilon.total(Fraction(0)), Epsilon(9), size=100)
questions = st.builds(
    lambda fns, where, by: Sums(tuple(fns), where, tuple(by)),
    st.lists(st.sampled_from([Lit(1), Col("few"), Col("part").clip(0, 1)]), min_size=1, max_size=3),
    st.none() | expressions.conditions(1),
    st.lists(st.sampled_from([Col("city"), Each(Col("flag")), Bucket(3)]), max_size=2),
)
relations = st.recursive(
    st.builds(Table, texts),
    lambda inner: st.builds(Where, inner, expressions.conditions(0)) | st.builds(Distinct, inner),
    max_leaves=3,
)
plans = questions.map(lambda question: draw(question, FACTS, Epsilon(1)))
BY_CITY = Sums((Lit(1),), None, (Each(Col("flag")), Col("city")))
levels = st.integers(-99, 99) | st.floats(-9, 9)
thresholds = levels.map(lambda level: draw(Above(BY_CITY, level), FACTS, Epsilon(1)))
choices = ranks.map(lambda rank: draw(Choose(BY_CITY, rank), FACTS, Epsilon(1)))

GRAPH = Graph("u", "v", "w")
numbers = st.integers(-99, 99) | st.floats(-9, 9)
spaces = (
    st.just(Cube())
    | st.builds(lambda a, b: Box(a, a + b, 1, "circle"), st.integers(-9, 9), st.integers(1, 9))
    | st.lists(st.tuples(numbers), min_size=1, max_size=3, unique=True).map(lambda found: Points(tuple(found), "linf"))
)
certificates = st.builds(
    Certificate,
    *(st.floats(0, 0.5), st.floats(0.1, 9), st.floats(0.8, 1), st.just(0), st.just(1)),
    st.sampled_from([("few",), ("few", "city")]),
)
stated = st.builds(Stated, st.floats(0.1, 9), st.just(0), st.just(1), st.just(("few",)), st.integers(1, 9))
utilities = st.builds(
    lambda trees, moved, weighted: Utility(trees, moved, 0, 1, ("few",), (3,) * len(trees) if weighted else ()),
    st.lists(st.recursive(st.text(max_size=3), st.tuples, max_leaves=3), min_size=1, unique=True).map(tuple),
    st.integers(1, 9), st.booleans(),
)  # fmt: skip
properties = st.sampled_from([Property(), Property(("few",), 3)])
shapes = st.builds(
    Shape,
    st.just(SCHEMA),
    st.integers(0, 99),
    owned=st.booleans(),
    fixed=st.booleans(),
    public=st.booleans(),
    most=st.integers(0, 99),
)
estimators = st.builds(
    Estimator,
    st.just("own"),
    st.just("package.part:function"),
    st.none() | certificates | stated | utilities | properties,
)
STATISTICS_TRIED: dict[type, st.SearchStrategy[object]] = {
    MinCut: st.just(MinCut(GRAPH)),
    SpanningTree: st.booleans().map(lambda complete: SpanningTree(GRAPH, complete)),
    Triangles: (st.none() | st.integers(1, 99)).map(lambda degree: Triangles(GRAPH, degree)),
    Degrees: st.integers(1, 99).map(lambda most: Degrees(Graph("u", "v"), most)),
    Edges: st.just(Edges(GRAPH)),
    ToConnected: st.just(ToConnected(GRAPH)),
    ToBoundedDegree: st.integers(0, 99).map(lambda degree: ToBoundedDegree(GRAPH, degree)),
    ToUnique: st.just(ToUnique(("few", "city"))),
    ToSorted: st.just(ToSorted("few")),
    Occurring: st.just(Occurring(("city",))),
    HeavyPersons: st.just(HeavyPersons()),
    Aggregated: st.builds(
        lambda low, wide, salt: Aggregated("mean", ("few",), 7, low, low + wide, salt),
        st.floats(-9, 9), st.integers(1, 9), st.integers(-9, 9),
    ),
    Certified: st.booleans().map(lambda placed: Certified("own", ("few",), placed)),
    ToProperty: st.just(ToProperty("own", ("few", "city"))),
}  # fmt: skip
wholes = st.sampled_from(
    [
        Holistic(ToUnique(("few",))),
        Holistic(ToUnique(("few",)), space=Box(0, 3)),
        Holistic(Occurring(("flag",)), space=Cube()),
    ]
).map(lambda asked: draw(asked, FACTS, Epsilon(1)))

VALUES: dict[type, st.SearchStrategy[object]] = {
    **STATISTICS_TRIED,
    Graph: st.just(GRAPH),
    Cube: st.just(Cube()),
    Box: spaces.filter(lambda space: isinstance(space, Box)),
    Points: spaces.filter(lambda space: isinstance(space, Points)),
    Candidates: st.just(Candidates()),
    Certificate: certificates,
    Stated: stated,
    Utility: utilities,
    Property: properties,
    Estimator: estimators,
    Whole: wholes.map(lambda plan: plan.parts[0].whole),
    Holistic: st.builds(Holistic, st.one_of(*STATISTICS_TRIED.values()), st.none() | expressions.conditions(1), spaces),
    Placed: st.builds(Placed, st.just(Box(0, 9)) | st.just(Points(((1, 2),))), fractions),
    MetricLaw: st.builds(MetricLaw, scales, st.integers(1, 99)),
    BitLaw: scales.map(BitLaw),
    Epsilon: st.builds(Epsilon, positive),
    EpsilonDelta: st.builds(EpsilonDelta, positive, st.floats(1e-300, 0.9)),
    EpsilonKeys: st.builds(EpsilonKeys, positive, st.floats(1e-300, 0.9)),
    Queries: st.builds(Queries, st.integers(0, 10**30)),
    Rho: st.builds(Rho, positive),
    SubLinear: st.builds(SubLinear, positive, st.floats(1e-300, 0.9), st.integers(1, 10**9)),
    Draw: draws,
    Event: events,
    Receipt: receipts,
    SignedReceipt: signed_receipts,
    Split: st.builds(Split, fractions, fractions, fractions, fractions),
    Unit: units,
    AutoUnit: st.builds(AutoUnit.of, texts.filter(bool), most=st.integers(2, 10**6), share=st.floats(1e-6, 0.5)),
    RowsChoice: st.builds(
        RowsChoice,
        texts,
        st.integers(1, 99),
        st.just((1, 2, 3)),
        st.tuples(*[st.floats(-9, 9)] * 3),
        *[st.floats(0, 9)] * 4,
        st.builds(Epsilon, positive) | st.builds(Rho, positive),
        st.integers(1, 3),
    ),
    BinomialLaw: st.integers(1, 999).map(lambda n: BinomialLaw(2 * n)),
    GaussianLaw: scales.map(GaussianLaw),
    LaplaceLaw: scales.map(LaplaceLaw),
    ExponentialLaw: st.builds(ExponentialLaw, scales, st.integers(1, 99)),
    FlipLaw: st.builds(FlipLaw, scales, st.integers(1, 99)),
    PassedLaw: passed,
    PassedGaussianLaw: st.builds(PassedGaussianLaw, scales, st.integers(2**40, 2**50)),
    PassedLaplaceLaw: st.builds(PassedLaplaceLaw, scales, st.integers(2**40, 2**50)),
    AboveLaw: st.builds(AboveLaw, scales, scales | st.just(Fraction(0)), st.integers(1, 99)),
    Rank: ranks,
    Linear: matrices.map(Linear),
    NegAbs: matrices.map(NegAbs),
    Diagonal: matrices.map(lambda matrix: Diagonal(matrix[0], len(matrix) > 1)),
    Contrast: matrices.map(lambda matrix: Contrast((matrix, matrix))),
    NegMaxAbs: matrices.map(lambda matrix: NegMaxAbs(matrix, ((2**40,) * len(matrix),) * 2)),
    NegL1: matrices.map(lambda matrix: NegL1(matrix, ((-3,) * len(matrix),), matrix[0])),
    Distance: matrices.map(lambda matrix: Distance(matrix, (5,) * len(matrix), (-(2**60),) * len(matrix))),
    Block: plans.map(lambda plan: plan.parts[0].tally.blocks[0]),
    Facts: st.just(FACTS),
    Key: st.builds(Key, st.just(Each(Col("flag"))), st.just((False, True))),
    Part: (plans | choices | thresholds | wholes).map(lambda plan: plan.parts[0]),
    Plan: plans | choices | thresholds | wholes,
    Schema: st.just(SCHEMA),
    Heavy: st.builds(Heavy, st.just("data"), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)),
    TableFacts: st.builds(
        TableFacts,
        st.just(SCHEMA),
        st.none() | texts,
        st.booleans(),
        st.none() | st.integers(0, 99),
        st.none(),
        st.just(()),
        st.none() | st.just(GRAPH),
        st.lists(estimators, max_size=2).map(tuple),
    ),
    Shape: shapes,
    DerivedTable: st.builds(
        DerivedTable, st.just(SCHEMA), public=st.booleans(), found=shapes, bound=st.none() | st.integers(1, 9)
    ),
    Table: st.builds(Table, texts),
    Where: st.builds(Where, relations, expressions.conditions(1)),
    Select: st.builds(Select, relations, st.just((("x", Col("few")), ("y", Lit(1))))),
    Join: st.builds(
        Join, relations, relations, st.just((("a", "b"),)), st.sampled_from(["inner", "left"]), st.booleans()
    ),
    PerPerson: st.builds(
        PerPerson, relations, st.just(("k",)), st.just((("n", "count", None), ("s", "sum", Col("few"))))
    ),
    Distinct: st.builds(Distinct, relations),
    Union: st.builds(Union, st.tuples(relations, relations)),
    Tally: plans.map(lambda plan: plan.parts[0].tally),
    Answer: answers,
    Answers: st.lists(answers, min_size=1, max_size=2).map(lambda found: Answers(tuple(found))),
    Average: st.builds(Average, st.integers(1, 9), fractions, fractions),
    CentredMean: st.builds(CentredMean, fractions, fractions, fractions),
    Covariance: st.builds(Covariance, st.lists(fractions).map(tuple), st.none() | st.integers(1, 9)),
    Mean: st.builds(Mean, fractions, fractions),
    Noise: noises,
    Plain: st.just(Plain()),
    RowSum: st.builds(RowSum, fractions, fractions, st.none() | st.integers(1, 9), st.booleans()),
    WeightedSum: st.builds(WeightedSum, st.tuples(fractions), st.tuples(fractions)),
    SampledTotal: st.builds(SampledTotal, st.builds(WeightedSum, st.tuples(fractions), st.tuples(fractions))),
    Correlation: st.builds(Correlation, st.tuples(fractions, fractions), fractions),
    SpreadMean: st.builds(SpreadMean, fractions, fractions, fractions),
    SampledSpread: st.builds(SampledSpread, fractions, st.booleans()),
    Bed: beds,
    BudgetLeft: st.builds(BudgetLeft, st.builds(Epsilon, st.fractions(1, 2)), st.none() | st.fractions(0, 1)),
    Quantile: trees,
    Quantiles: st.lists(trees, min_size=1, max_size=2).map(lambda found: Quantiles(tuple(found))),
    Picked: st.builds(Picked, trees),
    ChosenQuantile: st.builds(ChosenQuantile, beds, st.integers(1, 9), st.none() | st.integers(1, 99)),
    ChosenExtreme: st.builds(ChosenExtreme, beds, st.booleans(), st.none() | st.integers(1, 99)),
    CountedFirst: st.builds(CountedFirst, trees),
    SeveralQuantiles: st.builds(SeveralQuantiles, st.tuples(trees, st.builds(CountedFirst, trees)), st.just((1, 2))),
    Chosen: st.sampled_from([Chosen(), Chosen((1, 4))]),
    FirstAbove: st.builds(FirstAbove, fractions),
    Released: released,
    SizedSpread: st.builds(SizedSpread, st.integers(1, 9), fractions, st.booleans()),
    Spread: st.builds(Spread, fractions, st.booleans()),
    Int: st.builds(lambda a, b: Int(min(a, b), max(a, b)), st.integers(-9, 9), st.integers(-9, 9)),
    Vertices: st.builds(lambda a, b: Vertices(a, a + b), st.integers(-9, 9), st.integers(0, 9)),
    Real: st.builds(lambda a, b: Real(a, a + b, 0.1), st.floats(-9, 9), st.floats(0, 9)),
    Bool: st.just(Bool()),
    Category: st.builds(Category, st.lists(texts, min_size=1, unique=True).map(tuple)),
    Date: st.builds(lambda day: Date(day, day), st.dates().map(str)),
    Timestamp: st.just(Timestamp("2020-01-01", "2020-01-01T00:00:00.000001")),
    Text: st.builds(Text, st.integers(1, 10_000)),
    Sums: questions,
    OpenSums: questions.map(lambda asked: OpenSums(asked.values, asked.where, (Col("city"),))),
    Choose: ranks.map(lambda rank: Choose(BY_CITY, rank, exponential=rank.shift > 0)),
    Above: st.builds(Above, st.just(BY_CITY), levels | st.lists(levels, min_size=1, max_size=4).map(tuple)),
    Together: st.lists(questions, min_size=1, max_size=2).map(
        lambda found: Together(tuple(found), (Fraction(1),) * len(found))
    ),
    **{node: st.just(EXAMPLES[node]) for node in ROW_FUNCTIONS},
}


def test_every_kind_of_the_vocabulary_is_tried():
    """The round trip below covers the whole table the wire reads and writes by."""
    assert set(VALUES) == set(wire.KINDS.values())
    assert all(cls.__name__ == name for name, cls in wire.KINDS.items())


@pytest.mark.parametrize("cls", VALUES, ids=lambda cls: cls.__name__)
@settings(max_examples=8)
@given(data=st.data())
def test_every_value_goes_and_comes_back(cls, data):
    """Decoding what was encoded gives a value of the same kind, fields and bytes."""
    value = data.draw(VALUES[cls])
    text = wire.encode(value)
    back = wire.decode(text)
    assert type(back) is type(value)
    assert wire.encode(back) == text
    assert wire.decode(text.encode()) is not None
    assert wire.digest(back) == wire.digest(value)
    assert same(value, back)
    assert text == by_tree(value)


def by_tree(value: object) -> str:
    """The canonical text by its definition: the tree, its keys sorted, without blanks."""
    return json.dumps(wire.to_json(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def same(value: object, back: object) -> bool:
    """Whether two values agree field by field (row functions have no equality of their own)."""
    if isinstance(value, np.ndarray):
        return np.array_equal(value, back) and value.dtype == back.dtype
    if isinstance(value, (tuple, list)):
        return len(value) == len(back) and all(map(same, value, back))
    if dataclasses.is_dataclass(value):
        fields = [f.name for f in dataclasses.fields(value) if f.metadata.get("wire", True)]
        return type(value) is type(back) and all(same(getattr(value, n), getattr(back, n)) for n in fields)
    return value == back and (type(value) is type(back) or isinstance(value, Decimal))


@settings(max_examples=60)
@given(st.one_of(expressions.numbers(), expressions.conditions(), expressions.keys(), expressions.vectors()))
def test_every_expression_goes_and_comes_back(fn):
    """Whatever is built of row functions is the same after the wire."""
    assert same(fn, wire.decode(wire.encode(fn)))


def test_the_text_is_canonical():
    """Sorted keys, no blanks, ASCII: one value has one text."""
    text = wire.encode(Sums((Col("\u05d0") + 1,)))
    assert text == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))
    assert text.isascii()
    loose = json.dumps(json.loads(text), indent=3, sort_keys=False)
    assert wire.encode(wire.decode(loose)) == text


def shared() -> Together:
    """A question in which a tree, its keys and a table stand again and again."""
    keys = (Col("a"), Each(Col("b") > 0))
    leaf = Route(keys, ((0, 1, -1), (1, -2, None)))
    table = Lookup(keys, tuple((i, -i, 0.5 * i) for i in range(4)))
    return Together(
        (
            Sums((Lit(1), table), Col("a") == "x", (leaf,)),
            Sums((Lookup(keys, table.table),), by=(leaf, keys[1])),
            Choose(Sums((Lit(1),), by=(keys[1],)), Linear(((1, -2), (3, 4)))),
        ),
        (1, 2, 1),
    )


def test_what_is_shared_is_written_as_if_it_were_not():
    """The text of a question whose parts are shared, its name in ledgers, and its text after it was read back.

    The digests are those of earlier versions: stored answers and chained entries are found by them.
    """
    asked = shared()
    text = wire.encode(asked)
    assert text == by_tree(asked) == wire.encode(wire.decode(text))
    assert wire.digest(asked) == "3c02501fd171c26303586fb78e56784e5c333a4dfd76f191016aff0c2fcab358"
    assert name_of(asked, "here") == "75f586bffbf65ed72d1bddf78055533492c03f5215aa1da9d8aa36d5dd2337f7"
    assert name_of(wire.decode(text), "here") == name_of(asked, "here")


def test_a_writer_knows_a_part_by_its_identity():
    """One writer gives each value its own text, also of parts that are equal; a part that is shared it writes once."""
    writer = wire.Writer()
    equal = [((1, 0), (0, 1)), ((1.0, 0), (0, 1)), ((True, 0), (0, 1)), [[1, 0], [0, 1]], Fraction(1), 1, True, 1.0]
    assert [writer.text(value) for value in equal] == [by_tree(value) for value in equal]
    asked = shared()
    assert writer.text((asked, asked)) == f"[{writer.text(asked)},{writer.text(asked)}]"
    assert writer.text(asked.questions[0].by) == f"[{writer.text(asked.questions[1].by[0])}]"
    assert writer.text(asked) is writer.text(asked)
    assert wire.Writer().text(asked) is not writer.text(asked)  # control


@pytest.mark.parametrize("row", [(1, float("nan")), (float("inf"),), (1, {}), (np.int64(1),), (b"",), (Private(1),)])
def test_what_has_no_text_has_none_in_a_row_either(row):
    """Rows of constants are written all at once, but nothing that alone would be refused."""
    for value in (row, (row, row), ((1,), row), [list(row)], Sums((Lit(1),)), row[-1]):
        if isinstance(value, Sums):
            object.__setattr__(value, "by", row)
        with pytest.raises(QuestionError, match="Not a sulq value"):
            wire.encode(value)


LABELS = [
    ((), "[]"),
    ((("a", "b"),), '[["a"],["b"]]'),
    ((("a", None, "\u00e9"), (1, True, (0, 5))), '[["a",1],[null,true],["\\u00e9",[0,5]]]'),
]


@pytest.mark.parametrize(("labels", "rows"), LABELS)
def test_labels_are_written_row_by_row(labels: tuple[tuple[object, ...], ...], rows: str) -> None:
    """As texts of earlier versions have them. Control: the columns themselves are another text."""
    units = np.zeros((len(labels[0]) if labels else 0, 1), dtype=np.int64)
    text = wire.encode(Released(units, (), labels))
    assert f'"labels":{rows},' in text
    assert json.loads(text) == wire.to_json(Released(units, (), labels))
    back = wire.decode(text)
    assert isinstance(back, Released)
    assert back.labels == labels
    assert wire.encode(back) == text
    assert not labels or wire.encode(labels) != rows


@pytest.mark.parametrize("rows", ['[["a"],["b",1]]', "[[]]", "[[],[]]", '["ab","cd"]', '"ab"', "[1]", '[["a"],"b"]'])
def test_labels_that_are_no_table_are_refused_T51(rows: str) -> None:
    """Rows of other lengths, of nothing, and what is no row. Control: the text of a table is read."""
    text = wire.encode(Released(np.zeros((1, 1), dtype=np.int64), (), (("a",),)))
    assert wire.decode(text).labels == (("a",),)  # type: ignore[attr-defined]
    with pytest.raises(QuestionError) as refusal:
        wire.decode(text.replace('[["a"]]', rows))
    assert refusal.value.code == "wire-format"


def answered(number: int) -> Answers:
    """Answers to so many questions asked together."""
    frame = pa.table({"x": [1, 2]})
    with sulq.connect(frame, columns={"x": Int(0, 9)}, budget=Epsilon(9)) as db:
        return db.ask(Together((Sums((Col("x"),)),) * number), spend=Epsilon(1))


def test_answers_together_say_once_what_they_cost():
    """Twice the questions, twice the text; read back, every answer has the event. Control: an answer alone says it."""
    sizes = [len(wire.encode(answered(number))) for number in (10, 20, 40)]
    assert sizes[2] - sizes[1] < 2.1 * (sizes[1] - sizes[0])
    found = answered(4)
    back = wire.decode(wire.encode(found))
    assert [answer.event for answer in back] == [found[0].event] * 4
    tree = wire.to_json(found)
    assert ["event" in answer for answer in tree["answers"]] == [True, False, False, False]
    assert "event" in wire.to_json(found[3])


def test_answers_that_cost_something_else_each_say_so():
    """An event of its own is written and read back; a text that repeats the first one's means the same as without."""
    found = answered(3)
    other = dataclasses.replace(found[1], event=dataclasses.replace(found[1].event, queries=7))
    mixed = Answers((found[0], other, found[2]))
    assert [answer.event.queries for answer in wire.decode(wire.encode(mixed))] == [0, 7, 0]
    tree = wire.to_json(found)
    tree["answers"] = [wire.to_json(answer) for answer in found]
    assert wire.encode(wire.from_json(tree)) == wire.encode(found)
    for broken in ([1], [tree["answers"][0], {"kind": "Answer"}], [{"kind": "Answer"}], {}, [wire.to_json(Plain())]):
        with pytest.raises(QuestionError):
            wire.encode(wire.from_json({"kind": "Answers", "answers": broken}).answers[0])


REFUSED = {
    "not json": "{",
    "empty": "",
    "duplicate keys": '{"kind":"Lit","value":1,"value":2}',
    "duplicate kinds": '{"kind":"Lit","kind":"Col","value":1}',
    "nan": '{"kind":"Lit","value":NaN}',
    "infinity": '{"kind":"Lit","value":-Infinity}',
    "overflow": '{"kind":"Lit","value":1e999}',
    "vast integer": '{"kind":"Lit","value":' + "9" * 5000 + "}",
    "unknown kind": '{"kind":"Private","value":1}',
    "python kind": '{"kind":"os.system","value":"ls"}',
    "dunder kind": '{"kind":"__class__"}',
    "no kind": '{"value":1}',
    "kind of a kind": '{"kind":{"kind":"Lit","value":1}}',
    "unknown field": '{"kind":"Lit","value":1,"more":2}',
    "missing field": '{"kind":"Lit"}',
    "wrong field": '{"kind":"Col","name":3}',
    "truth for a number": '{"kind":"Epsilon","epsilon":true}',
    "text for a number": '{"kind":"Epsilon","epsilon":"0.1"}',
    "other digits": '{"kind":"Epsilon","epsilon":"\u0661"}',
    "null for a number": '{"kind":"Rho","rho":null}',
    "list for a text": '{"kind":"Col","name":["a"]}',
    "a row function for a literal": '{"kind":"Unit","neighbors":{"kind":"Col","name":"a"}}',
    "an array for a literal": '{"kind":"Unit","neighbors":{"kind":"array","shape":[1],"type":"i","values":[1]}}',
    "a loss for a row function": '{"kind":"Not","item":{"kind":"Epsilon","epsilon":1}}',
    "a column for a row function": '{"kind":"Sums","values":[{"kind":"Bool"}]}',
    "constant field": '{"kind":"Bool","low":5}',
    "hidden field": '{"kind":"Receipt","seq":1,"entry":"","plan":"","mac":"","stored":"x"}',
    "fraction by zero": '{"kind":"fraction","value":"1/0"}',
    "fraction with blanks": '{"kind":"fraction","value":" 1/2"}',
    "fraction as decimal": '{"kind":"fraction","value":"0.5"}',
    "fraction in other digits": '{"kind":"fraction","value":"\u0661/2"}',
    "fraction and more": '{"kind":"fraction","value":"1/2","more":1}',
    "endless fraction": '{"kind":"fraction","value":"1/' + "1" * 401 + '"}',
    "ragged array": '{"kind":"array","shape":[2],"type":"i","values":[1]}',
    "array and more": '{"kind":"array","shape":[1],"type":"i","values":[1],"more":1}',
    "array of text": '{"kind":"array","shape":[1],"type":"i","values":["1"]}',
    "array of truths": '{"kind":"array","shape":[1],"type":"i","values":[true]}',
    "array past 64 bits": '{"kind":"array","shape":[1],"type":"i","values":[9223372036854775808]}',
    "array of vast floats": '{"kind":"array","shape":[1],"type":"f","values":[' + "9" * 400 + "]}",
    "array of objects": '{"kind":"array","shape":[1],"type":"O","values":[1]}',
    "array of a strange type": '{"kind":"array","shape":[1],"type":["i"],"values":[1]}',
    "negative shape": '{"kind":"array","shape":[-1],"type":"i","values":[1]}',
    "endless shape": '{"kind":"array","shape":[' + "9" * 40 + ',0],"type":"i","values":[]}',
    "many dimensions": '{"kind":"array","shape":[' + "1," * 99 + '1],"type":"i","values":[1]}',
    "float units": '{"kind":"Released","units":{"kind":"array","shape":[1,1],"type":"f","values":[1.5]},"noise":[]}',
    "deep list": "[" * 100_000,
    "deep and closed": "[" * 5000 + "]" * 5000,
    "deep expression": '{"kind":"Not","item":' * 400 + '{"kind":"Col","name":"a"}' + "}" * 400,
    "bytes in utf-16": '{"kind":"Col","name":"a"}'.encode("utf-16"),
    "bytes in utf-32": '{"kind":"Col","name":"a"}'.encode("utf-32"),
    "bytes of nothing": b"\xff\xfe\x00",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_one_meaning_is_refused_T51(name):
    """Duplicate keys, NaN, infinities, wrong kinds, unknown kinds and bottomless nesting: wire-format (T51, T85)."""
    start = time.process_time()
    with pytest.raises(QuestionError) as refusal:
        wire.decode(REFUSED[name])
    assert refusal.value.code == "wire-format"
    assert time.process_time() - start < 0.5


@pytest.mark.parametrize(
    "value", [object(), Private(np.ones(2)), len, {"a": 1}, {1}, b"x", 1j, float("nan"), float("inf")]
)
def test_what_has_no_place_on_the_wire_is_refused_SR21(value):
    """Private values, callables, mappings and numbers without a text do not leave the process (SR21, T86)."""
    for wrapped in (value, (value,), [1, (value,)]):
        with pytest.raises(SulqError) as refusal:
            wire.encode(wrapped)
        assert refusal.value.code == "wire-format"


@pytest.mark.parametrize("array", [np.array([np.nan]), np.array([True]), np.array(["a"]), np.array([1], np.uint8)])
def test_arrays_that_would_not_come_back_do_not_go(array):
    """Only finite floats and signed integers are sent."""
    with pytest.raises(QuestionError) as refusal:
        wire.encode(array)
    assert refusal.value.code == "wire-format"


def test_an_impostor_with_a_known_name_is_refused():
    """A class is known by itself, not by its name."""

    @dataclasses.dataclass
    class Lit:
        value: int

    with pytest.raises(QuestionError) as refusal:
        wire.encode(Lit(1))
    assert refusal.value.code == "wire-format"


def mangled(text: str, chance) -> str:
    """A canonical text with a few characters or values exchanged."""
    pieces = ['"', "{", "}", "[", "]", ":", ",", "1", "-", "null", "true", "1e400", '"kind"', '"Lit"', "NaN", "\\ud800"]
    for _ in range(chance.randint(1, 3)):
        i = chance.randint(0, len(text))
        text = text[:i] + chance.choice(["", *pieces]) + text[i + chance.choice([0, 1, 1, 5]) :]
    return text


@settings(max_examples=CASES)
@given(st.sampled_from(list(VALUES)).flatmap(VALUES.__getitem__), st.randoms(use_true_random=False))
def test_fuzz_a_mangled_text_is_refused_with_a_code_or_has_one_meaning_T51(value, chance):
    """Whatever is sent, decoding gives a value with a canonical text or a SulqError; nothing else happens (T51)."""
    text = mangled(wire.encode(value), chance)
    try:
        back = wire.decode(text)
    except SulqError:
        return
    again = wire.encode(back)
    assert wire.encode(wire.decode(again)) == again


FIELDS = st.sampled_from(["kind", "value", "name", "shape", "type", "values", "item"])
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
TREES = st.recursive(
    LEAVES | st.sampled_from(list(wire.KINDS)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS | st.text(max_size=3), inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=CASES)
@given(TREES)
def test_fuzz_any_json_is_refused_or_has_one_meaning_T51(tree):
    """Arbitrary JSON never raises anything but a SulqError, and what is read can be written again (T51)."""
    try:
        back = wire.decode(json.dumps(tree))
    except SulqError:
        return
    assert wire.encode(wire.decode(wire.encode(back))) == wire.encode(back)
