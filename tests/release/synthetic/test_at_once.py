"""All marginals at once: one question where that is near enough, choices where it is not; noise and a size decide."""

from __future__ import annotations

import functools
from fractions import Fraction

import numpy as np
import pytest

from sulq import Epsilon, EpsilonDelta
from sulq.answers import wire
from sulq.language.question import Choose
from sulq.release.mwem import mwem
from sulq.release.synthetic.at_once import NEAR_ROWS_PART
from sulq.release.synthetic.data import SyntheticData
from tests.learn.cases import exact, opened
from tests.release.recorded import Answers, Spy, Tape, Told
from tests.release.synthetic.cases import BINS, COLUMNS, NAMES, PAIRS, distance, made, rows, truth

SPEND = EpsilonDelta(1, 1e-6)
BUDGET = EpsilonDelta(3, 1e-5)


@functools.cache
def of_many_rows() -> tuple[SyntheticData, tuple[object, ...], tuple[tuple[str, object], ...]]:
    """A release of 20,000 rows that several tests look at, what was asked for it, and the answers."""
    asked: list[object] = []
    answers: Answers = []
    found = mwem(Spy(Tape(made(20_000, BUDGET), answers), asked), NAMES, bins=BINS, spend=SPEND)
    return found, tuple(asked), tuple(answers)


def test_many_rows_are_asked_at_once_and_few_by_choices() -> None:
    """20,000 rows: the size and one question, the whole spend. 20 rows: the same first question, and then choices."""
    large, at_once, _ = of_many_rows()
    by_choices: list[object] = []
    small = mwem(Spy(made(20, BUDGET), by_choices), NAMES, bins=BINS, spend=SPEND)
    for found in (large, small):
        assert 0 <= made(20, BUDGET).facts.counted(SPEND).rho - found.paid.spent.amount < Fraction(1, 10**13)
    assert wire.encode(at_once[0]) == wire.encode(by_choices[0])
    assert len(at_once) == 2
    assert not any(isinstance(question, Choose) for question in at_once)
    assert any(isinstance(question, Choose) for question in by_choices)


def test_without_noise_it_has_the_true_marginals() -> None:
    """Every 2-way marginal within a hundredth of the rows; columns alone would be far off."""
    data = rows(20_000)
    found = mwem(exact(made(20_000)), NAMES, bins=BINS, spend=Epsilon(1))
    assert max(distance(found, pair, data) for pair in PAIRS) < 0.01
    product = truth(["city"], data)[:, None] * truth(["rooms"], data)[None, :] / 20_000
    assert np.abs(product - truth(["city", "rooms"], data)).sum() / 20_000 > 0.3  # the control


def test_the_error_bars_hold_what_was_told() -> None:
    """The told marginals are off by their standard error: the mean square, of some 31 numbers, is near one."""
    data = rows(20_000)
    found, _, _ = of_many_rows()
    gaps = [((each.values - truth(list(each.names), data)) / each.standard_error).ravel() for each in found.measured]
    square = float(np.mean(np.concatenate(gaps) ** 2))
    assert 0.2 < square < 3.5
    assert square / 16 < 0.2  # the control: bars four times as wide


def test_a_declared_size_is_not_asked() -> None:
    """Where the owner declared how many rows there are, the one question is all; else there are two."""
    asked: list[object] = []
    mwem(Spy(opened(COLUMNS, rows(20_000), budget=BUDGET, size=20_000), asked), NAMES, bins=BINS, spend=SPEND)
    assert len(asked) == 1
    assert len(of_many_rows()[1]) == 2


def test_trap_6_given_the_answers_alone_it_asks_and_tells_the_same() -> None:
    """Replayed without data: the same questions, the same told marginals."""
    first, _, told = of_many_rows()
    answers: Answers = list(told)
    empty = opened(COLUMNS, {name: column[:0] for name, column in rows(1).items()}, budget=BUDGET)
    again = mwem(Told(empty, answers), NAMES, bins=BINS, spend=SPEND)
    assert answers == []
    for one, other in zip(first.measured, again.measured, strict=True):
        assert np.array_equal(one.values, other.values)


@pytest.mark.parametrize("spend", [SPEND, Epsilon(0.5)])
def test_it_is_as_near_as_was_foreseen(spend: object) -> None:
    """The published rows' marginals are within a twentieth, far below the part of the rows that decides."""
    data = rows(20_000)
    found = of_many_rows()[0] if spend is SPEND else mwem(made(20_000, BUDGET), NAMES, bins=BINS, spend=spend)
    assert len(found.paid.receipts) == 2
    assert np.mean([distance(found, pair, data) for pair in PAIRS]) < 0.05 < NEAR_ROWS_PART


def test_no_rows_at_all_SR6() -> None:
    """Empty data get the first question of any data, and a release."""
    db = opened(COLUMNS, {name: column[:0] for name, column in rows(1).items()}, budget=BUDGET)
    assert len(mwem(db, NAMES, bins=BINS, rows=7, spend=SPEND)) == 7
