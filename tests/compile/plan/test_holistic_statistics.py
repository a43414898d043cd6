"""From questions to the annex: complete, total, the same in any order of rows, within limits by public numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sulq.answers.plan import Whole
from sulq.compile.plan import estimators, holistic
from sulq.errors import QuestionError
from sulq.kernel.whole import asked as annex
from sulq.kernel.whole import functions
from sulq.language import statistic as terms
from sulq.language import tally
from sulq.language.domain import Int, Real, Schema, Text
from sulq.language.estimator import Certificate, Estimator, Property, Stated, Utility
from sulq.language.facts import TableFacts, Tables
from sulq.language.privacy import Unit
from sulq.language.rowfn import Col
from sulq.language.rowfn.keys import Bucket, mixing
from sulq.language.space import Box, Cube, Points
from sulq.language.tally import Block

GRAPH = terms.Graph("u", "v", "w")
CERTIFICATE = Certificate(reads=0.1, within=0.05, probability=0.9, low=0, high=1, columns=("u",))
ASKED = {
    terms.MinCut: terms.MinCut(GRAPH),
    terms.SpanningTree: terms.SpanningTree(GRAPH),
    terms.Triangles: terms.Triangles(GRAPH, 3),
    terms.Degrees: terms.Degrees(GRAPH, 4),
    terms.Edges: terms.Edges(GRAPH),
    terms.ToConnected: terms.ToConnected(GRAPH),
    terms.ToBoundedDegree: terms.ToBoundedDegree(GRAPH, 1),
    terms.ToUnique: terms.ToUnique(("u", "v", "w")),
    terms.ToSorted: terms.ToSorted("u"),
    terms.Occurring: terms.Occurring(("u", "v", "w")),
    terms.HeavyPersons: terms.HeavyPersons(),
    terms.Aggregated: terms.Aggregated("median", ("u",), 3, 0, 5),
    terms.Certified: terms.Certified("own", ("u",)),
    terms.ToProperty: terms.ToProperty("near", ("u", "v", "w")),
}
OWN = {
    "own": lambda rows: np.nan_to_num(rows).sum() / 100,
    "near": np.eye(6 * 6 * 5, dtype=np.int64),  # tables of one row
}
PLACED = (terms.ToSorted, terms.Aggregated, terms.Certified)  # a place, or the person's hash, is read beside a column


def exact(bound: Whole, blocks: tuple[Block, ...], table: np.ndarray, own: dict[str, object]) -> np.ndarray:
    """The annex's value of what is asked of it."""
    return annex.exact(holistic.requested(bound, blocks), np.atleast_2d(table), estimators.functions_of(own))


def blocks(vertices: int, one: int | None = None, low: int = 0) -> tuple[Block, ...]:
    """The blocks of a graph: both ends and, with `one` units to a weight of 1, the weight."""
    ends = [Block(Col(name), Fraction(1), (low,), (low + vertices - 1,), vector=False) for name in "uv"]
    weight = [] if one is None else [Block(Col("w"), Fraction(1, one), (0,), (one,), vector=False)]
    return (*ends, *weight)


def whole(kind: type, space: object = None) -> tuple[Whole, tuple[Block, ...]]:
    own = blocks(6, 4)
    if kind in PLACED:
        own = (Block(Col("place"), Fraction(1), (0,), (2**40,), vector=False), own[0])
    own = () if kind is terms.HeavyPersons else own
    told = {terms.Certified: CERTIFICATE, terms.ToProperty: Property(("u", "v", "w"), 3)}
    certificate = told.get(kind)
    unit = holistic.unit_of(ASKED[kind], own, certificate)
    width = holistic.measured(ASKED[kind], own, certificate).figure(1).width if kind is not terms.ToProperty else 1
    return Whole(ASKED[kind], unit, width, space, certificate=certificate), own


def rows(kind: type, rng: np.random.Generator, size: int) -> np.ndarray:
    if kind is terms.HeavyPersons:
        return rng.integers(0, 9, 2)
    if kind in PLACED:
        return np.column_stack([rng.permutation(size), rng.integers(0, 6, size)])
    return np.column_stack([rng.integers(0, 6, (size, 2)), rng.integers(0, 5, size)])


def test_every_statistic_of_the_language_is_the_annexs_and_nothing_else_is() -> None:
    """Each leads to one of the kernel's list, all of it."""
    assert set(ASKED) == set(terms.STATISTICS)
    found = {type(holistic.requested(*whole(kind)).statistic) for kind in ASKED}
    assert found == set(annex.STATISTICS)


@pytest.mark.parametrize("kind", ASKED, ids=lambda kind: kind.__name__)
def test_a_statistic_is_total_and_has_no_order(kind: type) -> None:
    """No rows, one, many: defined, of the stated width, the same in any order; within its move as a row comes."""
    rng = np.random.default_rng(9)
    bound, own = whole(kind)
    figure = holistic.requested(bound, own).statistic.figure(1)
    assert (kind is terms.ToProperty) == (holistic.requested(bound, own).width != figure.width)
    for size in (0, 1, 2, 30):
        table = rows(kind, rng, size)
        found = exact(bound, own, table, OWN)
        assert found.shape == (1, bound.width)
        assert found.dtype == np.int64
        if kind is not terms.HeavyPersons:
            assert (found == exact(bound, own, table[rng.permutation(size)], OWN)).all()
        if size and kind not in (terms.HeavyPersons, terms.Certified):
            assert np.abs(found - exact(bound, own, table[1:], OWN)).sum() <= figure.alone.l1


def test_a_space_gives_distances_and_the_cube_gives_bits() -> None:
    """Minus the distance of each point; bits as they are."""
    bound, own = whole(terms.ToConnected, Box(0, 7))
    table = np.array([(0, 1, 4)])
    assert exact(bound, own, table, {}).tolist() == [[-4, -3, -2, -1, 0, -1, -2, -3]]
    bound, own = whole(terms.Edges, Cube())
    assert set(exact(bound, own, table, {}).ravel().tolist()) == {0, 1}
    bound, own = whole(terms.ToConnected, Box())
    assert exact(bound, own, table, {}).tolist() == [[4]]
    bound, own = whole(terms.ToConnected, Points(((1,), (9,)), "linf"))
    assert exact(bound, own, table, {}).tolist() == [[-3, -5]]
    circle = Whole(terms.ToConnected(GRAPH), Fraction(1), 1, Box(0, 4, 2, distance="circle"), 2)
    assert holistic.requested(circle, own).space.around == 6


def test_units_are_those_of_the_answers_own_measure() -> None:
    """Of weights, of a bound on degrees, of an average over blocks; elsewhere whole numbers."""
    for kind, unit in ((terms.MinCut, Fraction(1, 4)), (terms.Triangles, Fraction(1, 3)), (terms.Edges, Fraction(1))):
        assert whole(kind)[0].step == unit
    bound, own = whole(terms.Aggregated)
    assert bound.step * 3 == holistic.requested(bound, own).statistic.range.unit
    assert holistic.requested(bound, own).statistic.mixing == mixing(0)
    assert functions.BLANK == tally.BLANK


def test_a_block_is_the_bucket_that_the_language_means() -> None:
    """The annex tells blocks as `Bucket` does, of the same hash."""
    hashes = np.random.default_rng(2).integers(0, 2**60, 300)

    class Rows:
        def person(self) -> np.ndarray:
            return hashes

    told = Bucket(5, 77).cells(Rows()).values
    asked = terms.Aggregated("own", ("u",), 5, 0, 300, 77)
    seen: list[int] = []
    count = {"own": lambda rows: seen.append(len(rows)) or 0.0}
    own = whole(terms.Aggregated)[1]
    exact(Whole(asked, Fraction(1), 1), own, np.column_stack([hashes, hashes % 6]), count)
    assert seen == np.bincount(told, minlength=5).tolist()


def test_a_certified_function_without_its_certificate_is_an_error() -> None:
    """There is nothing to tell how far it moves."""
    with pytest.raises(LookupError):
        holistic.requested(Whole(terms.Certified("f", ("a",)), Fraction(1), 1), blocks(2))


def test_what_an_owner_declares_is_known_by_columns_and_their_units() -> None:
    """Of functions with a certificate; one of free text, which has no numbers, or of no column is declared in vain."""
    schema = Schema("t", (("u", Int(0, 9)), ("w", Real(0, 1, grid=0.25)), ("note", Text())))
    named = {
        "own": CERTIFICATE,
        "both": Certificate(0.1, 0.05, 0.9, 0, 1, ("w", "u")),
        "texts": Certificate(0.1, 0.05, 0.9, 0, 1, ("note",)),
        "gone": Certificate(0.1, 0.05, 0.9, 0, 1, ("gone",)),
        "plain": None,
    }
    table = TableFacts(schema, estimators=tuple(Estimator(name, "numpy:max", it) for name, it in named.items()))
    found = estimators.owned(table, Tables(Unit(neighbors="zero_out"), (table,)))
    assert set(found) == {"own", "both"}
    assert found["both"].columns == ("w", "u")
    assert found["both"].word.steps == (Fraction(1, 4), Fraction(1))
    assert found["own"].word == holistic.requested(*whole(terms.Certified)).statistic.word
    assert found["own"].word.sensitivity == 2 * Fraction(0.05)


def test_what_an_owner_states_is_about_persons_in_any_relation_S4_27() -> None:
    """Rows have places only where they are public and each is a person; a property says nothing that is believed."""
    schema = Schema("t", (("u", Int(0, 9)), ("w", Real(0, 1, grid=0.25))))
    named = {
        "stated": Stated(0.75, -1, 3, ("w", "u"), 2),
        "scored": Utility(("x", "y", "z"), 2, 0, 9, ("u",), (1, 2, 3)),
        "summed": Utility({"x": Col("u") > 3}),
        "near": Property(("u",), 2),
    }
    own = tuple(Estimator(name, "" if name == "summed" else "numpy:max", told) for name, told in named.items())
    table = TableFacts(schema, estimators=own)
    units = [(Unit("p", 3), False), (Unit(), False), (Unit(neighbors="replace_one"), True)]
    units += [
        (Unit("p", 3, "replace_one"), False),
        (Unit("p", 3, "zero_out"), False),
        (Unit(neighbors="zero_out"), True),
    ]
    for unit, placed in units:
        found = estimators.owned(table, Tables(unit, (table,)))
        assert set(found) == {"stated", "scored"}
        assert found["stated"].word == functions.Word(
            (Fraction(1, 4), Fraction(1)), found["stated"].word.range, Fraction(3, 4), 2, placed=placed
        )
        ends = found["stated"].word.range
        assert (ends.low * ends.unit, ends.high * ends.unit) == (-1, 3)
        scored = found["scored"].word
        assert (scored.sensitivity, scored.width, scored.each, scored.placed) == (2, 3, True, placed)


def test_a_limit_names_what_and_how_many() -> None:
    """At the limit nothing is refused, past it with both numbers."""
    holistic.limit(10, 10, "A cut of vertices")
    with pytest.raises(QuestionError, match="at most 10; here there are 11") as refused:
        holistic.limit(11, 10, "A cut of vertices")
    assert refused.value.code == "too-large"


@pytest.mark.parametrize("kind", holistic.VERTICES, ids=lambda kind: kind.__name__)
def test_too_many_vertices_are_refused_by_public_numbers(kind: type) -> None:
    """Before any row is read; control: at the limit they are not."""
    most = holistic.VERTICES[kind].most
    with pytest.raises(QuestionError, match=f"at most {most:,}") as refused:
        holistic.small(ASKED[kind], blocks(most + 1, 2))
    assert refused.value.code == "too-large"
    assert ("Ask for degrees" in str(refused.value)) == (kind is terms.ToBoundedDegree)
    holistic.small(ASKED[kind], blocks(most, 2))


def test_too_many_pairs_combinations_and_units_are_refused() -> None:
    """By their declared number; a unit of weight must go into 1, and pair and weight into one whole number."""
    wide = tuple(Block(Col(name), Fraction(1), (0,), (2**11,), vector=False) for name in "ab")
    coarse = Block(Col("w"), Fraction(2), (0,), (10,), vector=False)
    for kind, given, code in (
        (terms.Edges, blocks(5000), "too-large"),
        (terms.Occurring, wide, "too-large"),
        (terms.MinCut, blocks(5000, 2**31), "too-large"),
        (terms.SpanningTree, blocks(4, 2**54), "too-large"),
        (terms.Degrees, (*blocks(3), coarse), "wrong-kind"),
        (terms.Degrees, blocks(2**20, 2**31), "too-large"),
    ):
        with pytest.raises(QuestionError) as refused:
            holistic.small(ASKED[kind], given)
        assert refused.value.code == code
    holistic.small(ASKED[terms.MinCut], blocks(5000, 2**22))
