"""Plain words, and true ones."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from sulq import Epsilon, EpsilonDelta, Rho, SubLinear, Unit
from sulq.answers import wire
from sulq.language.privacy import Queries
from sulq.service.console.views import words


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1234567, "1,234,567"), (-5, "−5"), (203.97, "204"), (117.71, "117.7"), (0.00123, "0.00123"), (None, "unknown"),
        (math.inf, "anything"), (12345.6, "12,346"), (True, "True"), ("Lod", "Lod"), (2.0, "2"),
    ],
)  # fmt: skip
def test_a_number_is_read_easily(value: object, text: str) -> None:
    """Thousands apart, a true minus, four digits where there are more."""
    assert words.number(value) == text


@pytest.mark.parametrize("loss", [Epsilon(0.25), EpsilonDelta(1, 1e-6), Rho(0.01), Queries(3), SubLinear(1, 1e-6, 9)])
def test_a_loss_is_read_from_the_wire(loss: object) -> None:
    """The canonical form reads back; the short forms do too; anything else is none."""
    assert words.loss(wire.to_json(loss)) == loss
    assert words.price(words.loss(wire.to_json(loss)))
    assert words.loss({"epsilon": 0.5}) == Epsilon(0.5)
    assert words.loss({"epsilon": 0.5, "delta": 1e-6}) == EpsilonDelta(0.5, 1e-6)
    assert words.loss({"kind": "Int", "lo": 0, "hi": 1}) is None
    assert words.loss({"kind": "<b>"}) is None
    assert words.loss("x") is None


def test_the_odds_are_those_of_the_unit() -> None:
    """The factor is e to the epsilon, of what the unit compares; a budget without epsilon makes no such claim."""
    assert "at most 2.72" in words.odds(Epsilon(1), Unit("who"))
    assert "Whether a person is in the data" in words.odds(Epsilon(1), Unit("who"))
    assert "another row in one's place" in words.odds(Epsilon(1), Unit(neighbors="replace_one"))
    assert "more than a million" in words.odds(Epsilon(40), Unit())
    assert words.odds(Rho(1), Unit()) == ""


def test_the_promise_names_the_unit_the_loss_and_the_chance_of_failure_T93() -> None:
    """Whom it hides, what nobody can tell, how much, and except with which probability."""
    told = " ".join(words.guarantee(Unit("who", rows=4), EpsilonDelta(1, 1e-6)))
    for word in ("all of their rows (up to 4)", "in the data at all", "2.72", "1e-06"):
        assert word in told
    told = " ".join(words.guarantee(Unit(), Rho(0.1)))
    assert "whether a row is in the data at all" in told
    assert "at most 61.2% of cases" in told
    assert "9 noisy sums" in " ".join(words.guarantee(Unit(), SubLinear(1, 1e-6, 9)))


@pytest.mark.parametrize("budget", [Epsilon(1000), EpsilonDelta(40, 1e-6), Rho(200), Epsilon(0.5), Rho(0.01)], ids=str)
@pytest.mark.parametrize("unit", [Unit(), Unit("who", rows=3), Unit(neighbors="zero_out")], ids=str)
def test_no_promise_contradicts_its_own_number_T93(budget: Epsilon, unit: Unit) -> None:
    """Nothing is said to be hidden for certain; a budget that protects next to nothing says so; a row is no person."""
    told = " ".join(words.guarantee(unit, budget))
    assert not re.search(r"(?i)nobody can|just enough|cannot tell|\bhides?\b", told)
    assert ("next to nothing" in told) == (budget.amount > 30)
    assert ("person" in told) == (unit.column is not None)


def test_pages_speak_of_persons_only_where_they_know_the_unit() -> None:
    """The frame and the sign-in page stand around datasets of any unit, and promise none of them what it lacks."""
    folder = Path(words.__file__).parents[1] / "templates"
    for name in ("base.html", "sign_in.html", "frame.html"):
        text = (folder / name).read_text(encoding="utf-8")
        assert not re.search(r"any one person|just enough noise|\bhides?\b", text), name
    assert re.search(r"any one person", "every answer hides any one person")  # control: what the frame once said


def test_what_is_left_is_a_part() -> None:
    """Between nothing and all, also where there is nothing to divide by."""
    assert words.left(Epsilon(0.5), Epsilon(2)) == 0.25
    assert words.left(None, Epsilon(2)) == 0.0
    assert words.left(Epsilon(3), Epsilon(2)) == 1.0
    assert words.left(Epsilon(3), None) == 0.0


def test_a_moment_is_in_utc() -> None:
    """Unix seconds and ISO texts alike; what is none is shown as it is."""
    assert words.moment(0) == "1970-01-01 00:00"
    assert words.moment("2026-01-01T02:00:00+02:00") == "2026-01-01 00:00"
    assert words.moment("never") == "never"
