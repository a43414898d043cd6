"""What inference asks: one question whose sensitivity is the table's, by brute force over neighbours."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import sulq
from sulq import Epsilon, Rho, Unit
from sulq.compile.plan import draw
from sulq.errors import QuestionError
from sulq.language.attribute import Attribute
from sulq.language.domain import Schema
from sulq.language.rowfn.keys import HALF, PRIME, mixing
from sulq.release.subsets import Design, SubsetQuestion
from tests.frames import Frame, sums
from tests.stub import facts

SCHEMA = Schema("data", (("a", sulq.Bool()), ("b", sulq.Bool()), ("c", sulq.Bool())))
ITEMS = tuple(Attribute(name, domain, 4) for name, domain in SCHEMA.columns)
KINDS = list(itertools.product((0, 1, None), (0, 1), (0, 1)))
ROWS = [
    {"a": a, "b": b, "c": c, "person": person, "position": i}
    for i, ((a, b, c), person) in enumerate(
        zip(KINDS * 3, np.random.default_rng(1).integers(0, 2**60, 3 * len(KINDS)).tolist(), strict=True)
    )
]


def moved(asked: SubsetQuestion, unit: Unit) -> tuple[float, float]:
    """By how much one person's coming, going or changing moves all counts together, in L1 and squared L2."""
    plan = draw(asked.question, facts(SCHEMA, unit), Epsilon(1))

    def found(rows: list[dict[str, object]]) -> np.ndarray:
        frame = Frame(SCHEMA, rows)
        return np.concatenate([sums(part.tally, frame).ravel() for part in plan.parts])

    base, first, second = found(ROWS), 0.0, 0.0
    for i in range(len(ROWS)):
        rest = [row for j, row in enumerate(ROWS) if j != i]
        if unit.neighbors == "add_remove":
            others = [found(rest)]
        else:
            changed = [{**ROWS[i], "a": a, "b": b, "c": c} for a, b, c in KINDS]
            others = [found([*rest, change]) for change in changed]
        for other in others:
            first = max(first, float(np.abs(base - other).sum()))
            second = max(second, float(((base - other) ** 2).sum()))
    return first, second


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize("l", [1, 2])
@pytest.mark.parametrize(("design", "subsets"), [("halves", 3), ("groups", 5)])
def test_the_sensitivity_is_brute_force_X1(design: Design, subsets: int, l: int, neighbors: str) -> None:  # noqa: E741
    """(t + 1) C(k, l) histograms for halves, 2 C(k, l) for groups; twice that in L1 where a person changes (X1)."""
    asked = SubsetQuestion(ITEMS, l, design, subsets, salt=2)
    unit = Unit("pid", neighbors=neighbors)
    number = math.comb(3, l) * (subsets + 1 if design == "halves" else 2)
    times = 1 if neighbors == "add_remove" else 2
    first, second = moved(asked, unit)
    assert (first, second) == (number * times, number * times)
    plan = draw(asked.question, facts(SCHEMA, unit), Epsilon(1))
    assert sum(float(part.sensitivity[0]) for part in plan.parts) == number * times
    assert len(plan.parts) == number
    if design == "halves":  # one scale for all of them: Laplace of their number over epsilon
        scales = [float(part.laws[0].scale) for part in plan.parts]
        assert scales == pytest.approx([number * times] * number, rel=1e-6)
        rho = draw(asked.question, facts(SCHEMA, unit, Rho(1)), Rho(0.5))
        scales = [float(part.laws[0].scale) for part in rho.parts]
        assert scales == pytest.approx([math.sqrt(number * times)] * number, rel=1e-3)  # sigma^2 = S^2/(2 rho)


def test_subsets_by_the_public_hash_are_as_good_as_random_ones_SR11() -> None:
    """Products over halves by the hash spread as the standard error says; places that nobody hashed first would not."""
    rng = np.random.default_rng(0)
    a = rng.random(2000) < 0.3
    b = rng.random(2000) < np.where(a, 0.6, 0.2)
    both = (a & b).mean()
    said = math.sqrt((a.mean() * b.mean() + both**2) / 50)

    def spread(people: np.ndarray) -> float:
        away = []
        for run in range(80):
            products = []
            for salt in range(50 * run, 50 * run + 50):
                x, y, z = mixing(salt)
                half = (x * (people // HALF) + y * (people % HALF) + z) % PRIME % 2 == 0
                products.append((a[half].sum() - a.sum() / 2) * (b[half].sum() - b.sum() / 2))
            away.append((4 / 2000 * np.mean(products) - both) / said)
        return float(np.mean(np.square(away)))

    assert 0.5 < spread(rng.integers(0, 2**60, 2000)) < 1.8
    assert spread(np.arange(2000)) > 3


def test_too_much_is_refused() -> None:
    """More histograms or cells than fit one question: refused before anything is asked."""
    SubsetQuestion(ITEMS, 1, "halves", 1000, 0)
    for design, subsets in (("halves", 2000), ("groups", 2**21)):
        with pytest.raises(QuestionError, match="histograms with"):
            SubsetQuestion(ITEMS, 1, design, subsets, 0)
