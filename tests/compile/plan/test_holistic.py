"""Plans of statistics of the whole: sensitivities for each unit, laws for each spend, all from public facts."""

from __future__ import annotations

from fractions import Fraction

import pytest

from sulq.compile.plan import draw
from sulq.compile.plan.holistic import MOST_EDGES, MOST_NUMBERS
from sulq.errors import QuestionError
from sulq.kernel.mechanisms import cost_of
from sulq.language.domain import Category, Int, Real, Schema
from sulq.language.estimator import Certificate, Estimator, Stated
from sulq.language.facts import Facts, TableFacts
from sulq.language.law import BitLaw, ExponentialLaw, GaussianLaw, LaplaceLaw, MetricLaw
from sulq.language.privacy import Epsilon, EpsilonDelta, Queries, Rho, SubLinear, Unit
from sulq.language.question import Holistic, Sums
from sulq.language.rowfn import Lit
from sulq.language.space import Box, Cube, Points
from sulq.language.statistic import (
    Aggregated,
    Certified,
    Degrees,
    Edges,
    Graph,
    MinCut,
    Occurring,
    SpanningTree,
    Statistic,
    ToConnected,
    ToUnique,
    Triangles,
)

ENDS = Category(tuple(range(10)))
SCHEMA = Schema.of("t", {"u": ENDS, "v": ENDS, "w": Real(0, 1), "a": Int(0, 9)})
GRAPH = Graph("u", "v", "w")
BUDGET = EpsilonDelta(900, 1e-6)


def facts(unit: Unit, budget: object = BUDGET) -> Facts:
    return Facts(SCHEMA, unit, budget, budget, budget)


ADD, OWNED = Unit(), Unit("pid", 4)
SWAP, SWAPPED = Unit(None, 1, "replace_one"), Unit("pid", 4, "replace_one")
BLANK = Unit("pid", 4, "zero_out")


@pytest.mark.parametrize(
    ("statistic", "expected"),
    [
        (MinCut(GRAPH), (1, 4, 1, 4, 4)),
        (SpanningTree(GRAPH), (1, 4, 2, 8, 4)),
        (Triangles(GRAPH), (8, 32, 8, 32, 32)),
        (Triangles(GRAPH, 2), (3, 12, 4, 16, 12)),
        (Degrees(GRAPH, 3), (2, 8, 4, 16, 8)),
        (Edges(GRAPH), (1, 4, 2, 8, 4)),
        (ToUnique(("a",)), (1, 4, 1, 4, 4)),
        (Occurring(("a",)), (1, 4, 2, 8, 4)),
    ],
    ids=lambda x: type(x).__name__,
)
def test_sensitivities_by_unit_SR1(statistic: Statistic, expected: tuple[int, ...]) -> None:
    """Rows k multiply, an exchange doubles what rows move both ways; priced exactly by the law that is drawn."""
    for unit, sensitivity in zip((ADD, OWNED, SWAP, SWAPPED, BLANK), expected, strict=True):
        plan = draw(Holistic(statistic), facts(unit), Epsilon(0.5))
        (part,), (call,) = plan.parts, plan.event.draws
        assert part.sensitivity == (Fraction(sensitivity),)
        assert isinstance(part.laws[0], LaplaceLaw)
        assert part.laws[0].scale * part.whole.step == pytest.approx(sensitivity / 0.5)
        assert cost_of(call).epsilon <= Fraction(1, 2) == plan.event.epsilon


def test_blocks_cost_one_person_whatever_rows_it_has_SR11() -> None:
    """The range of an estimate over the number of blocks; under replace_one twice; buckets need persons or places."""
    asked = Holistic(Aggregated("mean", ("a",), 50, 0, 10))
    for unit, moved in ((OWNED, 10), (SWAPPED, 20), (SWAP, 20), (BLANK, 10)):
        plan = draw(asked, facts(unit), Epsilon(1))
        assert float(plan.parts[0].sensitivity[0]) == pytest.approx(moved / 50)
    with pytest.raises(QuestionError) as refused:
        draw(asked, facts(ADD), Epsilon(1))
    assert refused.value.code == "needs-position"


def test_an_estimator_reckons_with_numbers_and_not_with_the_codes_of_labels() -> None:
    """A Category is refused as db.mean refuses it, of blocks and by certificate; control: the same of an Int."""
    places = Unit(None, 1, "zero_out")

    def asked(kind: object) -> list[tuple[Holistic, Facts]]:
        own = Estimator("f", "package:f", Certificate(0.1, 1, 0.9, 0, 9, ("a",)))
        schema = Schema.of("t", {"a": kind, "b": Int(0, 9)})
        told = Facts(schema, places, BUDGET, BUDGET, BUDGET, tables=(TableFacts(schema, estimators=(own,)),))
        both = (Aggregated("mean", ("a",), 5, 0, 9), Aggregated("slope", ("b", "a"), 5, 0, 9), Certified("f", ("a",)))
        return [(Holistic(statistic), told) for statistic in both]

    for question, told in asked(Int(0, 9)):
        assert draw(question, told, Epsilon(1)).parts
    for question, told in asked(Category(tuple(range(10)))):
        with pytest.raises(QuestionError, match="declare the column Int or Real") as refused:
            draw(question, told, Epsilon(1))
        assert refused.value.code == "wrong-kind"


def test_a_declared_function_estimates_blocks_of_its_own_columns_and_by_one_number_S4_27() -> None:
    """What the facts say it is of holds there, too. Control: of these, and of any where nothing is declared."""
    schema = Schema.of("t", {"a": Int(0, 9), "b": Int(0, 9)})
    words = {"sure": Certificate(0.1, 1, 0.9, 0, 9, ("a",)), "told": Stated(1, 0, 9, ("a",)), "free": None}
    words["two"] = Stated(1, 0, 9, ("a",), 2)
    own = tuple(Estimator(name, "package:f", told) for name, told in words.items())
    known = Facts(schema, OWNED, BUDGET, BUDGET, BUDGET, tables=(TableFacts(schema, estimators=own),))

    def asked(name: str, *columns: str) -> object:
        return draw(Holistic(Aggregated(name, columns, 5, 0, 9)), known, Epsilon(1)).parts

    assert asked("sure", "a")
    assert asked("told", "a")
    assert asked("free", "b", "a")
    for name, columns in (("sure", ("b",)), ("told", ("b",)), ("told", ("a", "b"))):
        with pytest.raises(QuestionError, match="declared for a alone") as refused:
            asked(name, *columns)
        assert refused.value.code == "not-certified"
    with pytest.raises(QuestionError, match="gives 2 numbers") as refused:
        asked("two", "a")
    assert refused.value.code == "wrong-kind"


def test_a_table_too_large_to_be_listed_is_refused_where_its_size_is_public_T32() -> None:
    """By the declared size times the columns read, and by edges; control: no size declared, or half of it."""
    wide = Graph("u", "v").numbered(Schema.of("t", {"u": Int(0, 2**20 - 1), "v": Int(0, 2**20 - 1)}))
    for statistic, most in ((ToUnique(("u", "v")), MOST_NUMBERS // 2), (ToConnected(Graph("u", "v")), MOST_EDGES)):
        for size in (None, most):
            assert draw(Holistic(statistic), Facts(wide, ADD, BUDGET, BUDGET, BUDGET, size), Epsilon(1)).parts
        with pytest.raises(QuestionError, match="declared rows") as refused:
            draw(Holistic(statistic), Facts(wide, ADD, BUDGET, BUDGET, BUDGET, most + 1), Epsilon(1))
        assert refused.value.code == "too-large"
    few = Facts(SCHEMA, ADD, BUDGET, BUDGET, BUDGET, 2**25)  # 10 vertices have 45 pairs, whatever rows there are
    assert draw(Holistic(ToConnected(GRAPH)), few, Epsilon(1)).parts


def test_a_missing_spend_is_told_without_an_accuracy_to_pay_by() -> None:
    """A statistic of the whole has no within=; control: a sum has, and is told so."""
    with pytest.raises(QuestionError) as refused:
        draw(Holistic(MinCut(GRAPH)), facts(ADD), None)
    assert (refused.value.code, "within" in str(refused.value)) == ("spend-missing", False)
    with pytest.raises(QuestionError, match="within="):
        draw(Sums((Lit(1),)), facts(ADD), None)


@pytest.mark.parametrize("spend", [Epsilon(0.5), Rho(0.02), EpsilonDelta(0.5, 1e-6)], ids=str)
def test_the_spend_chooses_the_law_and_is_not_passed(spend: object) -> None:
    """Pure: Laplace, a near point, flips. Otherwise: Gaussian, the exponential choice, wider flips."""
    pure = isinstance(spend, Epsilon)
    kinds = [
        (Holistic(ToUnique(("a",))), LaplaceLaw if pure else GaussianLaw),
        (Holistic(ToUnique(("a",)), space=Box()), LaplaceLaw if pure else GaussianLaw),
        (Holistic(ToUnique(("a",)), space=Box(0, 50)), MetricLaw if pure else ExponentialLaw),
        (Holistic(Occurring(("a",)), space=Cube()), BitLaw),
        (Holistic(Degrees(GRAPH, 1), space=Points(((0,), (5,)), "linf")), MetricLaw if pure else ExponentialLaw),
    ]
    for question, law in kinds:
        plan = draw(question, facts(ADD), spend)
        assert type(plan.parts[0].laws[0]) is law
        cost = cost_of(plan.event.draws[0])
        paid = spend.exact if not isinstance(spend, EpsilonDelta) else spend.rho
        found = cost.epsilon if pure else cost.rho
        assert 0.99 * paid < found <= paid


def test_the_factor_two_falls_away_only_on_a_whole_circle_S4_15() -> None:
    """Every place of the circle a point: once the sensitivity; every second one, or a line: twice."""
    spans = {}
    for space in (Box(0, 23, distance="circle"), Box(0, 22, 2, "circle"), Box(0, 23)):
        plan = draw(Holistic(ToUnique(("a",)), space=space), facts(ADD), Epsilon(1))
        spans[space] = plan.event.draws[0].sensitivity
    assert list(spans.values()) == [1, 2, 2]


def test_accuracy_is_in_the_answers_own_measure() -> None:
    """A cut's in weight, a point's in distance, of counted coordinates in coordinates."""
    cut = draw(Holistic(MinCut(GRAPH)), facts(ADD), Epsilon(1)).parts[0]
    assert float(cut.accuracy(0.05)[0]) == pytest.approx(3.0, abs=0.01)
    near = draw(Holistic(MinCut(GRAPH), space=Box(0, 10, 0.5)), facts(ADD), Epsilon(1)).parts[0]
    assert 2 < float(near.accuracy(0.05)[0]) < 15
    assert near.told
    assert "one of 21 points" in str(draw(Holistic(MinCut(GRAPH), space=Box(0, 10, 0.5)), facts(ADD), Epsilon(1)))
    off = draw(Holistic(Triangles(GRAPH), space=Points(((0,), (9,)), "discrete")), facts(ADD), Epsilon(1)).parts[0]
    assert off.accuracy(0.05)[0].denominator == 1


def test_what_is_no_noisy_sum_is_refused_under_sublinear() -> None:
    """SR8: a SubLinear budget answers sums alone; and queries are no spend of another budget."""
    budget = SubLinear(1, 1e-6, 100)
    with pytest.raises(QuestionError) as refused:
        draw(Holistic(ToUnique(("a",))), facts(ADD, budget), None)
    assert refused.value.code == "not-a-noisy-sum"
    with pytest.raises(QuestionError) as refused:
        draw(Holistic(ToUnique(("a",))), facts(ADD), Queries(1))
    assert refused.value.code == "spend-kind"


def test_a_public_table_gets_noise_like_any_other() -> None:
    """Rows that are nobody's are hidden as one row's would be."""
    tables = (TableFacts(SCHEMA), TableFacts(Schema.of("p", {"a": Int(0, 3)}), public=True, rows=7))
    several = Facts(SCHEMA, OWNED, BUDGET, BUDGET, BUDGET, tables=tables)
    plan = draw(Holistic(ToUnique(("a",)), over=type(Holistic(ToUnique(("a",))).over)("p")), several, Epsilon(1))
    assert plan.parts[0].sensitivity[0] >= 1
