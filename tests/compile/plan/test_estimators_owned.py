"""Functions of the owner's: found or refused at once, and steady (SR5, SR11)."""

from __future__ import annotations

import importlib
import itertools
import sys
import traceback
from fractions import Fraction
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from sulq.compile.plan import estimators
from sulq.errors import SetupError
from sulq.kernel.whole import functions
from sulq.kernel.whole.functions import Function
from sulq.language.domain import Schema
from sulq.language.estimator import Certificate, Estimator, Stated, Utility
from sulq.language.facts import TableFacts
from sulq.language.privacy import Unit

ROWS = np.ones((3, 1))


def load(own: list[Estimator]) -> dict:
    """The functions of a table's owner."""
    return estimators.load([TableFacts(Schema.of("data", {"a": (0, 9)}), estimators=tuple(own))], Unit())


def counting() -> Function:
    """A function that counts its calls."""
    calls = itertools.count()
    return lambda _rows: next(calls)


def remembering() -> Function:
    """A function that gives the largest value it has ever seen: a person of one block moves all later ones."""
    seen: list[float] = [0.0]

    def largest(rows: np.ndarray) -> float:
        seen.append(float(rows.max(initial=0)))
        return max(seen)

    return largest


def previous() -> Function:
    """A function that gives the mean of the rows it was called with before."""
    before = [0.0]

    def mean(rows: np.ndarray) -> float:
        found, before[0] = before[0], float(rows.sum())
        return found

    return mean


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A package of an owner's, to which a test gives functions."""
    module = ModuleType("owners_package")
    monkeypatch.setitem(sys.modules, "owners_package", module)
    return module


def test_the_owners_functions_are_found_or_refused_at_once() -> None:
    """Named package:function; what is not there, or is named as one of sulq's own, is refused."""
    found = load([Estimator("smallest", "numpy:min")])
    assert found["smallest"] is np.min
    for name, place in (
        ("x", "numpy:nothing"),
        ("x", "no_such_package_here:f"),
        ("mean", "numpy:mean"),
        ("x", "math:pi"),
    ):
        with pytest.raises(SetupError) as refused:
            load([Estimator(name, place)])
        assert refused.value.code == "bad-declaration"
        assert ("PYTHONPATH" in str(refused.value)) == (name == "x")


@pytest.mark.parametrize(
    "source",
    ["def f(rows:  # canary", "1 / 0  # canary", "raise ValueError('canary')", "from math import canary"],
    ids=["syntax", "error", "told", "import"],
)
def test_a_package_that_cannot_be_imported_is_the_owners_to_hear_of(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it raises is one refusal with a next step, and without a line of its source; control: mended."""
    monkeypatch.syspath_prepend(tmp_path)
    place = tmp_path / f"package_{abs(hash(source))}.py"
    place.write_text(f"def f(rows): return 1.0\n{source}\n", encoding="utf-8")
    own = [Estimator("own", f"{place.stem}:f")]
    with pytest.raises(SetupError, match="Import it in the Python that runs sulq") as refused:
        load(own)
    assert refused.value.code == "bad-declaration"
    told = "".join(traceback.format_exception(refused.value))
    assert "canary" not in told
    place.write_text("def f(rows): return 1.0  # canary\n", encoding="utf-8")
    importlib.invalidate_caches()
    assert load(own)["own"](ROWS) == 1.0


@pytest.mark.parametrize("make", [counting, remembering, previous])
def test_a_function_that_remembers_is_refused_as_it_is_named_SR11(named: ModuleType, make: object) -> None:
    """It would move every block after a person's own; control: what it does to a sum of blocks, without the refusal.

    The control calls it on five blocks, of which only the first differs: more than one estimate moves.
    """
    named.f = make()
    with pytest.raises(SetupError, match="a function of its argument alone") as refused:
        load([Estimator("own", "owners_package:f")])
    assert refused.value.code == "bad-declaration"
    blocks = [np.full((2, 1), float(i)) for i in range(5)]
    one, other = (make(), make())
    first = [one(block) for block in blocks]
    other(blocks[4])  # a person more in a block before
    second = [other(block) for block in [blocks[4] * 9, *blocks[1:]]]
    assert sum(a != b for a, b in zip(first, second, strict=True)) > 1


def test_a_function_by_chance_is_refused_and_a_steady_one_is_not_SR11(named: ModuleType) -> None:
    """Chance gives two values for the same rows; an error, or no number, for some is as steady as a number."""
    rng = np.random.default_rng()
    named.chance = lambda _rows: rng.random()
    with pytest.raises(SetupError):
        load([Estimator("own", "owners_package:chance")])
    named.fails = lambda rows: rows[0, 2]
    named.nan = lambda rows: np.nan if len(rows) else 0.0
    named.wide = lambda rows: (rows[:, 0] @ rows[:, 1]) / len(rows)
    names = ("fails", "nan", "wide")
    assert set(load([Estimator(name, f"owners_package:{name}") for name in names])) == set(names)


def test_a_certified_function_is_tried_on_as_many_columns_as_it_is_certified_for(named: ModuleType) -> None:
    """It is called with no other width."""
    widths = set()
    named.f = lambda rows: widths.add(rows.shape[1]) or 0.0
    load([Estimator("own", "owners_package:f", Certificate(0.1, 1, 0.9, 0, 9, ("a", "b", "c", "d")))])
    assert widths == {4}


def test_a_function_of_several_numbers_is_tried_for_all_of_them_S4_27(named: ModuleType) -> None:
    """One whose second number alone depends on chance is refused; one that gives too few of some is as steady."""
    rng = np.random.default_rng()
    named.chance = lambda _rows: (0.0, rng.random())
    named.few = lambda rows: (0.0,) * min(len(rows), 2)
    for told in (Stated(1, 0, 9, ("a",), 2), Utility(("x", "y"), 1, 0, 9, ("a",))):
        with pytest.raises(SetupError, match="a function of its argument alone"):
            load([Estimator("own", "owners_package:chance", told)])
        assert set(load([Estimator("own", "owners_package:few", told)])) == {"own"}


NOTHING: dict[str, tuple[Function, str]] = {
    "error": (lambda rows: 1 / 0 * len(rows), "raises ZeroDivisionError"),
    "leaves": (lambda _rows: sys.exit(1), "ends the process"),
    "nan": (lambda _rows: np.nan, "gives none"),
    "None": (lambda _rows: None, "gives none"),
    "text": (lambda _rows: "much", "raises ValueError"),
    "three": (lambda _rows: [1.0, 2.0, 3.0], "gives 3"),
}
WORDS = (None, Stated(1, 0, 9, ("a",)), Certificate(0.1, 1, 0.9, 0, 9, ("a",)), Stated(1, 0, 9, ("a",), 2),
         Utility(("x", "y"), 1, 0, 9, ("a",)))  # fmt: skip


@pytest.mark.parametrize("kind", NOTHING)
def test_a_function_that_never_gives_its_numbers_is_refused_as_it_is_named_S4_27(named: ModuleType, kind: str) -> None:
    """Its answers would be the middle of its bounds, within a narrow bar. Control: one that gives them for no rows."""
    nothing, outcome = NOTHING[kind]
    for told in WORDS:
        width = estimators.numbers(told)
        named.f = nothing
        with pytest.raises(SetupError, match=outcome) as refused:
            load([Estimator("own", "owners_package:f", told)])
        assert refused.value.code == "bad-declaration"
        assert "Call owners_package:f" in str(refused.value)
        named.f = lambda rows, width=width: nothing(rows) if len(rows) else [0.0] * width
        assert set(load([Estimator("own", "owners_package:f", told)])) == {"own"}


def test_a_function_of_rows_within_its_columns_bounds_or_of_many_columns_may_be_named(named: ModuleType) -> None:
    """Made-up rows are of the declared columns, too; an estimator's are any of the table's, as many as there are."""
    schema = Schema.of("data", {"a": (0, 9), **{f"b{i}": (0, 1) for i in range(6)}, "year": (1990, 2030)})

    def years(rows: np.ndarray) -> float:
        if not len(rows) or rows[:, 0].min() < 1990 or rows[:, 0].max() > 2030:
            raise ValueError("no years")
        return float(rows[:, 0].mean())

    named.years, named.wide = years, lambda rows: rows[:, 6].sum()
    own = (
        Estimator("told", "owners_package:years", Stated(1, 1990, 2030, ("year",))),
        Estimator("years", "owners_package:years"),
        Estimator("seventh", "owners_package:wide"),
    )
    assert len(estimators.load([TableFacts(schema, estimators=own)], Unit())) == 3
    with pytest.raises(SetupError, match="raises ValueError"):
        load([own[1]])  # a table without years
    with pytest.raises(SetupError, match="raises IndexError"):
        load([own[2]])  # a table of one column


@pytest.mark.parametrize(
    ("told", "most"),
    [
        (Stated(1, 0, 10**8, ("a",)), 1.001),  # of 22 bits a unit would be 23: noise for as much
        (Stated(0.01, 0, 1, ("a",), 4096), 1.001),
        (Stated(1, -(10**9), 10**9, ("a",), 3), 1.02),
        (Utility(("x", "y"), 0.25, 0, 10**6, ("a",)), 1.001),
        (Certificate(0.1, 0.005, 0.9, 0, 10**6, ("a",)), 1.001),
        (Stated(10**-6, 0, 10**9, ("a",)), 10**4),  # the most units that there are
    ],
)
def test_a_small_sensitivity_within_wide_bounds_is_hardly_rounded_up_S4_27(told: object, most: float) -> None:
    """The unit follows from the sensitivity, too: what must be hidden is at most a thousandth more than was stated."""
    word = estimators.word(told, ())
    move = functions.Declared("own", word).figure(1).alone
    moved = (move.most if isinstance(told, Utility) else move.l1) * word.range.unit
    stated = Fraction(told.sensitivity)
    assert stated <= moved <= stated * Fraction(most)
    assert word.range.low * word.range.unit <= told.low < told.high <= word.range.high * word.range.unit
