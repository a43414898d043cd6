"""MWEM: the true marginals without noise, error bars with noise, one spend."""

from __future__ import annotations

import time
from fractions import Fraction

import numpy as np
import pytest

import sulq
from sulq import Epsilon, EpsilonDelta, Rho, SubLinear
from sulq.answers import wire
from sulq.api.database import Database
from sulq.release.mwem import mwem
from tests.learn.cases import exact, opened, refused
from tests.release.recorded import Answers, Spy, Tape, Told
from tests.release.synthetic.cases import BINS, COLUMNS, NAMES, PAIRS, distance, made, rows


def test_without_noise_it_has_the_true_marginals() -> None:
    """All 2-way marginals within a hundredth, rounding to whole rows included; after one round it has not."""
    data, db = rows(2000), made(2000)
    found = mwem(exact(db), NAMES, bins=BINS, rounds=8, spend=Epsilon(1))
    assert len(found) == 2000
    assert max(distance(found, pair, data) for pair in PAIRS) < 0.02
    early = mwem(exact(db), NAMES, bins=BINS, rounds=1, spend=Epsilon(1))
    assert max(distance(early, pair, data) for pair in PAIRS) > 0.1


def test_the_workload_says_what_is_measured() -> None:
    """Named marginals alone are chosen from; the release says which were, with the noise's standard error."""
    db = made(500)
    found = mwem(db, NAMES, [["city", "rooms"], ["smoker"]], bins=BINS, rounds=4, spend=Epsilon(1))
    assert {each.names for each in found.measured} <= {("city", "rooms"), *((name,) for name in NAMES)}
    assert len(found.measured) == 8
    scale = 4 * 2 / 0.9
    assert found.measured[-1].standard_error.flat[0] == pytest.approx(scale * 2**0.5, rel=1e-3)


@pytest.mark.parametrize(
    ("spend", "budget"),
    [(Epsilon(0.7), Epsilon(2)), (Rho(0.03), Rho(1)), (EpsilonDelta(1, 1e-7), EpsilonDelta(3, 1e-6))],
)
def test_it_costs_its_spend_and_the_ledger_agrees(spend: object, budget: object) -> None:
    """The parts sum to the whole, but for what is rounded down in the last place, and each is a debit."""
    db = made(300, budget)
    before = db.transcript()
    found = mwem(db, NAMES[:3], rounds=3, spend=spend)
    whole = db.facts.counted(spend).rho if isinstance(spend, EpsilonDelta) else spend.exact
    assert 0 <= whole - found.paid.spent.amount < Fraction(1, 10**14)
    assert len(found.paid.receipts) == 7
    if not isinstance(budget, EpsilonDelta):
        assert found.paid.spent == db.spent
    assert len(db.transcript()) - len(before) == 7


def test_empty_data_are_answered_like_any_other_SR6() -> None:
    """No rows: the same kinds of asks at the same prices, and a release; the first question does not know the data."""
    asked: list[list[object]] = [[], []]
    for i, n in enumerate((0, 200)):
        db = opened(COLUMNS, {name: column[:n] for name, column in rows(200).items()}, budget=Epsilon(2))
        found = mwem(Spy(db, asked[i]), NAMES, bins=BINS, rounds=2, rows=7, spend=Epsilon(1))
        assert len(found) == 7
        assert db.spent == Epsilon(1)
    assert [type(question) for question in asked[0]] == [type(question) for question in asked[1]]
    assert wire.encode(asked[0][0]) == wire.encode(asked[1][0])
    empty = opened(COLUMNS, {name: column[:0] for name, column in rows(1).items()})
    assert len(mwem(exact(empty), NAMES, bins=BINS, rounds=2, spend=Epsilon(1))) == 0


def test_trap_6_everything_published_is_made_of_answers() -> None:
    """Given the answers alone, without a database, the run asks the same and publishes the same marginals."""
    answers: Answers = []
    db = made(400)
    first = mwem(Tape(db, answers), NAMES, bins=BINS, rounds=3, rows=500, spend=Epsilon(1))
    empty = opened(COLUMNS, {name: column[:0] for name, column in rows(1).items()})
    again = mwem(Told(empty, answers), NAMES, bins=BINS, rounds=3, rows=500, spend=Epsilon(1))
    assert answers == []
    for one, other in zip(first.measured, again.measured, strict=True):
        assert np.array_equal(one.values, other.values)
    for pair in PAIRS:  # rows are drawn anew, each cell up to one row; 72 cells in a pair's at most
        apart = np.abs(first.marginal(pair).values - again.marginal(pair).values).sum()
        assert apart <= 72 * first.total / 500


def test_few_rows_have_wide_error_bars() -> None:
    """20 rows of 20,000 cannot tell 271 of them: the bars hold the truth; the noise's own would not (the control)."""
    rare = np.arange(20_000) < 271
    db = opened({"rare": sulq.Bool(), "other": sulq.Bool()}, {"rare": rare, "other": ~rare})
    for count, widest in ((20, 1000), (20_000, 60)):
        found = mwem(db, ["rare", "other"], rounds=2, rows=count, spend=Epsilon(4))
        counts = found.marginal(["rare"])
        far = np.abs(counts.values - [19_729, 271])
        noise = min(each.standard_error.max() for each in found.measured)
        assert (far <= 20 * noise + counts.standard_error).all()  # noise passes 20 of its deviations once in 1e12
        assert noise < counts.standard_error.max() < widest
        if count == 20:
            assert far.min() > 40 * noise


def halves(count: int) -> tuple[Database, list[str]]:
    """A database of so many truth values, and their names."""
    columns = {f"b{i}": sulq.Bool() for i in range(count)}
    return opened(columns, {name: np.zeros(2, dtype=bool) for name in columns}, budget=Epsilon(2)), list(columns)


def test_too_many_marginals_are_refused_before_they_are_written_down() -> None:
    """C(40, 20) is counted, not built: refused at once, with what to do; nothing is spent."""
    db, names = halves(40)
    started = time.perf_counter()
    with pytest.raises(sulq.errors.QuestionError, match="137,846,528,820 marginals of 20") as refusal:
        mwem(db, names, ways=20, spend=Epsilon(1))
    assert refusal.value.code == "too-large"
    refused("too-large", mwem, db, names, [names], spend=Epsilon(1))
    assert time.perf_counter() - started < 2
    assert db.spent == Epsilon.total(0)


def test_one_wide_marginal_of_constant_columns_is_not_taken_apart() -> None:
    """20 columns of one cell each make one cell, though 2^20 marginals lie within: it is answered by rounds.

    Of 40 columns it would be no question, which only the first round would find out: refused, nothing is spent.
    """
    columns = {f"c{i}": ["x"] for i in range(40)}
    db = opened(columns, {name: np.array(["x", "x"]) for name in columns}, budget=Epsilon(2))
    refused("too-large", mwem, db, list(columns), ways=40, spend=Epsilon(1))
    refused("too-large", mwem, db, list(columns), [list(columns)], spend=Epsilon(1))
    assert db.spent == Epsilon.total(0)
    assert len(mwem(db, list(columns)[:20], ways=20, rows=3, spend=Epsilon(1))) == 3


def test_the_smallest_parts_are_foreseen_before_the_first_ask() -> None:
    """The least spend there is, divided by the most rounds: foreseen at parts no larger than any that is asked."""
    foreseen: list[Fraction] = []

    class Stopped(Exception):
        pass

    class Watched(Spy):
        def foresee(self, question: object, *, spend: object = None) -> object:
            foreseen.append(spend.exact)
            return self.oracle.foresee(question, spend=spend)

        def ask(self, question: object, *, spend: object = None) -> object:
            raise Stopped

    with pytest.raises(Stopped):
        mwem(Watched(made(9, Rho(1)), []), NAMES[:3], rounds=1000, spend=Rho(1e-11))
    assert min(foreseen) <= Fraction(1, 10**11) * Fraction(9, 10) / 2000


def test_bad_input_is_refused_and_nothing_is_spent() -> None:
    """Columns, marginals, rounds, rows, spends; a domain too large says what fits instead."""
    db = opened(
        {**COLUMNS, "name": sulq.Text(), "x": sulq.Int(0, 10**6), "y": sulq.Int(0, 10**6)},
        {**rows(9), "name": ["a"] * 9, "x": np.arange(9), "y": np.arange(9)},
        budget=Epsilon(2),
    )
    refused("unknown-column", mwem, db, ["city", "height"], spend=Epsilon(1))
    refused("wrong-kind", mwem, db, ["city", "name"], spend=Epsilon(1))
    for wrong in ({"rounds": -1}, {"rows": -1}, {"ways": 0}, {"bins": 0}, {"marginals": [["height"]]}, {"rounds": 1.5}):
        refused("bad-parameter", mwem, db, NAMES, spend=Epsilon(1), **wrong)
    with pytest.raises(sulq.errors.QuestionError, match="aim needs none"):
        mwem(db, [*NAMES, "x", "y"], bins=1000, spend=Epsilon(1))
    refused("too-large", mwem, db, ["x", "y"], bins=512, spend=Epsilon(1))
    refused("spend-missing", mwem, db, NAMES)
    refused("budget-exceeded", mwem, db, NAMES, spend=Epsilon(3))
    assert db.spent == Epsilon.total(0)
    refused("not-a-noisy-sum", mwem, made(9, SubLinear(1, 1e-6, 10)), NAMES)


def test_progress_is_told() -> None:
    """The columns, then a choice and a measurement a round."""
    told: list[tuple[int, int]] = []
    mwem(made(50), NAMES[:2], rounds=2, spend=Epsilon(1), progress=lambda done, of: told.append((done, of)))
    assert told == [(done, 5) for done in range(6)]
