"""Selection by scores of the closed list: the best is likeliest, the bound holds, bad input costs nothing."""

from __future__ import annotations

import itertools
import math
import time
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

import sulq
from sulq import (
    Choose,
    Diagonal,
    Distance,
    Epsilon,
    EpsilonDelta,
    Int,
    Linear,
    NegMaxAbs,
    Real,
    Rho,
    SubLinear,
    Sums,
    Unit,
    col,
)
from sulq.answers import wire
from sulq.errors import QuestionError
from sulq.kernel.mechanisms import release
from sulq.kernel.private import Private
from sulq.language.law import ExponentialLaw, FlipLaw
from sulq.language.question import Together
from sulq.language.rowfn import Each, Lit
from sulq.select import Selected, choose
from tests.figures import figure
from tests.learn.cases import COLUMNS, DATA, exact, opened, refused
from tests.select.laws import by_orders, exponential, flip, law_of

ALARM = 1e-8
DAGGER = (0, -1, -5, -20)


def test_the_exponential_choice_of_the_paper_S3_9() -> None:
    """U = (0, -1, -5, -20), epsilon 1: p = (.592, .359, .049, 0), and its mode is the argmax (dagger numbers)."""
    found = exponential(np.array(DAGGER, dtype=float), 2.0)  # exp(epsilon u / (2 Du)), Du = 1
    assert found == pytest.approx([0.592, 0.359, 0.049, 0], abs=1e-3)
    assert found.argmax() == 0
    figure(
        "S3.9",
        "chance of the best of u = (0, -1, -5, -20), epsilon 1",
        found[0],
        1 / sum(math.exp(u / 2) for u in DAGGER),
    )
    law = ExponentialLaw(Fraction(2), 4)
    draws = release(law, Private(np.tile(np.array(DAGGER, dtype=np.int64), (40_000, 1))))
    for place, p in enumerate(found):
        seen = int((draws == place).sum())
        assert binom.cdf(seen, 40_000, p) > ALARM
        assert binom.sf(seen - 1, 40_000, p) > ALARM


def test_the_printed_sign_picks_the_worst_E29() -> None:
    """exp(-epsilon u/2) of a *utility* draws the worst output with probability .9993 (E29)."""
    printed = exponential(-np.array(DAGGER, dtype=float), 2.0)
    assert printed[3] == pytest.approx(0.9993, abs=1e-3)
    assert printed[0] < 1e-4
    assert printed.argmax() != int(np.argmax(DAGGER))


def test_permute_and_flip_is_never_worse_S3_9() -> None:
    """At the same scale the expected score of permute-and-flip is at least the exponential choice's (SR4)."""
    rng = np.random.default_rng(5)
    for _ in range(50):
        scores = tuple(int(n) for n in -rng.integers(0, 9, 4))
        ours = flip(np.array(scores, dtype=float), 2.0)
        assert ours == pytest.approx(by_orders(scores, 2.0), abs=1e-12)
        assert ours @ scores >= exponential(np.array(scores, dtype=float), 2.0) @ scores - 1e-12


CITIES = {"city": ["Haifa", "Lod", "Yafo"], "x": Int(-3, 3)}


def people(counts: dict[str, int]) -> dict[str, object]:
    """A table with so many rows of each city."""
    return {"city": [city for city, n in counts.items() for _ in range(n)], "x": [0] * sum(counts.values())}


@pytest.mark.parametrize(("neighbors", "span"), [("add_remove", 1), ("replace_one", 2), ("zero_out", 1)])
def test_exact_enumeration_over_all_small_tables_S3_9(neighbors: str, span: int) -> None:
    """The planned law on every table of at most three rows: no neighbour changes any odds by more than e^epsilon.

    Control: at half the planned noise one does.
    """
    epsilon = 0.5
    db = opened(
        CITIES, people({"Lod": 2}), unit=Unit(None, 1, neighbors), size=2 if neighbors == "replace_one" else None
    )
    law = choose(db, "city", spend=Epsilon(epsilon)).law
    assert law == FlipLaw(Fraction(2 * span), 3)
    tables = [t for t in itertools.product(range(4), repeat=3) if sum(t) <= 3]

    def worst(scale: float) -> float:
        pmf = {t: flip(np.array(t, dtype=float), scale) for t in tables}
        return max(
            float(np.log(pmf[a] / pmf[b]).max())
            for a, b in itertools.product(tables, repeat=2)
            if _neighbours(a, b, neighbors)
        )

    assert worst(float(law.scale)) <= epsilon + 1e-12
    assert worst(float(law.scale) / 2) > epsilon


def _neighbours(a: tuple[int, ...], b: tuple[int, ...], relation: str) -> bool:
    moves = sorted(x - y for x, y in zip(a, b, strict=True))
    return moves == [-1, 0, 1] if relation == "replace_one" else moves in ([0, 0, 1], [-1, 0, 0])


def test_the_most_common_value_of_a_column() -> None:
    """Without noise the argmax; with it, at the planned odds, and the utility bound holds."""
    counts = {"Haifa": 30, "Lod": 34, "Yafo": 10}
    db = opened(CITIES, people(counts), Epsilon(900))
    assert choose(exact(db), "city", spend=Epsilon(1)).candidate == "Lod"
    assert choose(exact(db), "city", "least", spend=Epsilon(1)).candidate == "Yafo"
    found = [choose(db, "city", spend=Epsilon(0.2)) for _ in range(400)]
    odds = law_of(found[0].law, list(counts.values()))
    for place, p in enumerate(odds):
        seen = sum(one.place == place for one in found)
        assert binom.cdf(seen, 400, p) > ALARM
        assert binom.sf(seen - 1, 400, p) > ALARM
    one = found[0]
    assert isinstance(one, Selected)
    assert (one.spent, one.unit, one.guarantee) == (Epsilon(0.2), Unit(), "dp")
    below = max(counts.values()) - np.array(list(counts.values()))
    for beta in (0.5, 0.05, 0.001):
        assert odds[below > one.within(beta)].sum() <= beta
    assert one.within(0.05) <= 5 * (math.log(3) + math.log(20))
    assert "of the best" in repr(one)
    assert (
        one.to_json()["spent"] == {"kind": "Epsilon", "epsilon": {"kind": "fraction", "value": "1/5"}} or one.to_json()
    )


def test_candidates_by_row_functions_on_different_grids() -> None:
    """Sums are compared in one unit, whatever grid each has; all conditions rise together, at half the price."""
    columns = {"a": Real(0, 1), "b": Int(0, 1000), "c": sulq.Bool()}
    data = {"a": [0.75] * 40, "b": [0] * 39 + [29], "c": [True] * 29 + [False] * 11}
    db = opened(columns, data)
    sums = {"a": col("a"), "b": col("b"), "c": col("c")}
    told = exact(db)
    assert choose(told, sums, spend=Epsilon(1)).candidate == "a"
    assert choose(told, sums, "least", spend=Epsilon(1)).candidate in {"b", "c"}
    assert choose(told, {"a - 1": col("a") - 1, "b": col("b")}, "zero", spend=Epsilon(1)).candidate == "a - 1"
    assert choose(told, {"c": "c", "not c": "NOT c"}, spend=Epsilon(1)).candidate == "c"
    flags = {f"b > {n}": col("b") > n for n in range(20)}
    assert choose(db, flags, spend=Epsilon(1)).law == FlipLaw(Fraction(1), 20)


@pytest.mark.parametrize("spend", [Rho(0.1), EpsilonDelta(1, 1e-6)], ids=str)
def test_a_concentrated_spend_draws_exponentially_SR4(spend: object) -> None:
    """The mechanism follows the spend."""
    db = opened(CITIES, people({"Lod": 9}), EpsilonDelta(9, 1e-5))
    assert isinstance(choose(db, "city", spend=spend).law, ExponentialLaw)


def test_any_score_of_the_closed_list() -> None:
    """A question with its own score: candidates are what the analyst calls them (SR5)."""
    db = opened(CITIES, people({"Haifa": 3, "Lod": 9, "Yafo": 1}))
    counts = Sums((Lit(1),), None, (col("city"),))
    near = NegMaxAbs(((1, 0, 0), (0, 1, 0)), ((0, 0), (3, 8), (9, 9)))
    assert choose(exact(db), ["none", "ours", "many"], Choose(counts, near), spend=Epsilon(1)).candidate == "ours"
    far = Distance(((3,), (1,), (1,)), (1, 1, 1), (0, 0, 0))
    assert choose(exact(db), list("HLY"), Choose(counts, far), spend=Epsilon(1)).candidate == "L"


def test_a_column_of_numbers_has_bins_or_is_refused() -> None:
    """Intervals only where somebody asks for them; a refusal says how. Whole numbers are candidates themselves."""
    columns = {
        "bid": Real(0, 1),
        "n": Int(0, 5000),
        "few": Int(0, 9),
        "city": ["Lod", "Yafo"],
        "day": sulq.Date("2020-01-01", "2020-12-31"),
    }
    data = {
        "bid": [0.31, 0.32, 0.9], "n": [4000, 4100, 7], "few": [3, 3, 4], "city": ["Lod"] * 3,
        "day": np.array(["2020-05-01", "2020-05-02", "2020-12-31"], dtype="datetime64[D]"),
    }  # fmt: skip
    db = opened(columns, data, Epsilon(9))
    told = exact(db)
    assert choose(told, "bid", bins=4, spend=Epsilon(1)).candidate == (0.25, 0.5)
    assert choose(told, "n", bins=np.int64(5), spend=Epsilon(1)).candidate == (4000.0, 5000.0)
    assert choose(told, "few", spend=Epsilon(1)).candidate == 3
    assert choose(told, "few", bins=100, spend=Epsilon(1)).candidate == 3
    assert choose(told, "day", bins=12, spend=Epsilon(1)).candidates == 12
    for name in ("bid", "n"):
        with pytest.raises(QuestionError) as refusal:
            choose(db, name, spend=Epsilon(1))
        assert refusal.value.code == "too-large"
        assert "bins=20" in str(refusal.value.remedy)
    for candidates, wrong in (("city", 3), ("bid", 0), ("bid", 1025), ("bid", 2.5), ({"a": col("few")}, 3)):
        refused("bad-parameter", choose, db, candidates, bins=wrong, spend=Epsilon(1))
    assert db.spent == Epsilon.total(Fraction(0))


def test_a_thousand_candidates_take_no_thousand_squared_numbers() -> None:
    """The score of 1,024 values is 1,024 factors: its question is short, and the price is that of a matrix."""
    db = opened({"n": Int(0, 1023)}, {"n": [7] * 9 + [8] * 5})
    question = Choose(Sums((Lit(1),), None, (Each(col("n")),)), Diagonal((1,) * 1024))
    assert len(wire.encode(question)) < 10_000
    started = time.process_time()
    found = choose(exact(db), "n", spend=Epsilon(1))
    assert time.process_time() - started < 2  # a matrix of them took ten
    assert (found.candidate, found.law) == (7, FlipLaw(Fraction(1), 1024))
    few = opened({"n": Int(0, 4)}, {"n": [3] * 9})
    counts = Sums((Lit(1),), None, (Each(col("n")),))
    matrix = tuple(tuple(int(i == j) for j in range(5)) for i in range(5))
    for spend in (Epsilon(1), Epsilon(0.3)):
        assert (
            choose(few, "n", spend=spend).law
            == choose(few, list(range(5)), Choose(counts, Linear(matrix)), spend=spend).law
        )


def test_bad_input_is_refused_and_nothing_is_spent() -> None:
    """Before the debit, each with its code."""
    db = opened(COLUMNS, DATA, Epsilon(1))
    counts = Sums((Lit(1),), None, (col("city"),))
    most = Choose(counts, Linear(((1, 0, 0), (0, 1, 0), (0, 0, 1))))
    two = Choose(Sums((Lit(1),), None, (Each(col("smoker")), col("city"))), most.score)
    for code, candidates, score in (
        ("unknown-column", "height", "most"),
        ("wrong-kind", "name", "most"),
        ("bad-parameter", "city", "best"),
        ("bad-parameter", ["Lod"], "most"),
        ("bad-parameter", {"a": 3}, "most"),
        ("too-large", {}, "most"),
        ("too-large", {str(i): col("age") > 3 for i in range(1025)}, "most"),
        ("unknown-column", {"a": col("height")}, "most"),
        ("wrong-kind", {"a": col("city")}, "most"),
        ("bad-parameter", ["a", "b"], most),
        ("bad-parameter", [], most),
        ("bad-parameter", "city", most),
        ("bad-parameter", ["a", "b", "c"], two),
        ("bad-parameter", "city", Together((counts,))),
    ):
        refused(code, choose, db, candidates, score, spend=Epsilon(0.5))
    refused("spend-missing", choose, db, "city")
    refused("budget-exceeded", choose, db, "city", spend=Epsilon(2))
    refused("bad-literal", choose(db, "city", spend=Epsilon(0.5)).within, 1.5)
    assert db.spent == Epsilon(0.5)
    few = opened(COLUMNS, DATA, SubLinear(epsilon=1, delta=1e-6, queries=100))
    refused("not-a-noisy-sum", choose, few, "city")
    assert few.spent.queries == 0


def test_empty_data_is_chosen_from_like_any_other() -> None:
    """No rows: every candidate is as good (SR6)."""
    db = opened(CITIES, {"city": np.array([], dtype=str), "x": np.array([], dtype=int)})
    assert choose(db, "city", spend=Epsilon(1)).candidate in {"Haifa", "Lod", "Yafo"}
