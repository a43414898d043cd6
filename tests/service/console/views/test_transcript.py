"""The transcript in words, and what its asks took of the budget."""

from __future__ import annotations

from fractions import Fraction

import pytest

from sulq import Epsilon, EpsilonDelta, Rho, SubLinear, col
from sulq.answers import wire
from sulq.language.privacy import Event, divided
from sulq.language.question import Sums
from sulq.language.rowfn import Lit
from sulq.service.console.views.transcript import _ask, part_of, running

PURE = Event(Fraction(1, 10), Fraction(1, 200))
GAUSS = Event(None, Fraction(1, 100))
COUNT = Sums((Lit(1),), col("age") > 3, (col("city"),))


def test_a_line_of_the_api_is_read() -> None:
    """Question and event come as canonical JSON; what cannot be read is shown as little as it says."""
    tree = {"seq": 4, "time": "2026-01-01T00:00:00", "analyst": "ada", "question": wire.encode(COUNT)}
    line = _ask(tree | {"event": wire.to_json(PURE), "answer": "x"})
    assert (line.seq, line.analyst, line.price, line.answered) == (4, "ada", "ε 0.1", True)
    assert _ask(tree | {"event": wire.to_json(GAUSS), "answer": None}).price == "ρ 0.01"
    odd = _ask(tree | {"question": "{", "event": {"kind": "?"}, "answer": None})
    assert (odd.asked, odd.price, odd.answered) == ("a question", "", False)


def test_parts_of_a_budget_are_counted_as_the_ledger_does() -> None:
    """Epsilon against epsilon, rho against rho, the Renyi loss at the fixed order against its room."""
    assert part_of(PURE, Epsilon(1)) == pytest.approx(0.1)
    assert part_of(PURE, Rho(1)) == pytest.approx(0.005)
    assert part_of(Event(None, Fraction(0), queries=3), SubLinear(1, 1e-6, 30)) == pytest.approx(0.1)
    assert 0 < part_of(GAUSS, EpsilonDelta(1, 1e-6)) < part_of(Event(None, Fraction(1, 10)), EpsilonDelta(1, 1e-6))
    assert part_of(None, Epsilon(1)) == 0.0
    budget = EpsilonDelta(1, 1e-6)
    least, most = (divided(budget, open_keys=False, basic=Fraction(part, 10)) for part in (0, 9))
    assert part_of(GAUSS, budget, least) < part_of(GAUSS, budget) < part_of(GAUSS, budget, most)


def test_spending_adds_up() -> None:
    """Each line adds its part; one without a time is counted and not drawn."""
    tree = {"seq": 4, "analyst": "", "event": wire.to_json(PURE), "question": wire.encode(COUNT), "answer": None}
    lines = [_ask(tree | {"time": time}) for time in ("2026-01-01T00:00:00", "?", "2026-01-02T00:00:00")]
    assert [round(total, 6) for _, total in running(lines, Epsilon(1))] == [0.1, 0.3]
