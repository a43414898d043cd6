"""AIM: the true marginals without noise, parts that sum to the spend, a model that stays small."""

from __future__ import annotations

import sys
import time
from fractions import Fraction

import numpy as np
import pytest

import sulq
from sulq import Epsilon, EpsilonDelta, Rho, SubLinear
from sulq.answers import wire
from sulq.release.aim import aim
from sulq.release.space import CellSpace
from sulq.release.synthetic.models import GraphModel, MeasuredMarginal
from tests.learn.cases import exact, opened, refused
from tests.release.recorded import Answers, Spy, Tape, Told
from tests.release.synthetic.cases import BINS, COLUMNS, NAMES, PAIRS, distance, made, rows, truth
from tests.release.test_mwem import halves


def test_without_noise_it_has_the_true_marginals() -> None:
    """Small domain, all 2-way marginals within a fiftieth; columns alone, as at its start, are far off."""
    data = rows(2000)
    found = aim(exact(made(2000)), NAMES, bins=BINS, rounds=8, spend=Epsilon(8))
    assert len(found) == 2000
    assert max(distance(found, pair, data) for pair in PAIRS) < 0.02
    product = truth(["city"], data)[:, None] * truth(["rooms"], data)[None, :] / 2000
    assert np.abs(product - truth(["city", "rooms"], data)).sum() / 2000 > 0.3  # the control
    assert {each.names for each in found.measured} >= {("city",), ("rooms",), ("smoker",), ("income",)}


@pytest.mark.parametrize(
    ("spend", "budget"), [(Epsilon(0.7), Epsilon(2)), (EpsilonDelta(1, 1e-7), EpsilonDelta(3, 1e-6))]
)
def test_it_costs_its_spend_and_the_ledger_agrees(spend: object, budget: object) -> None:
    """However many rounds the annealing makes, their parts sum to the whole, but for the last place."""
    db = made(300, budget)
    found = aim(db, NAMES[:3], rounds=6, spend=spend)
    whole = db.facts.counted(spend).rho if isinstance(spend, EpsilonDelta) else spend.exact
    assert 0 <= whole - found.paid.spent.amount < Fraction(1, 10**14)
    if isinstance(budget, Epsilon):
        assert found.paid.spent == db.spent


def test_empty_data_are_answered_like_any_other_SR6() -> None:
    """No rows: the first asks are those of any data, the spend is spent, a release comes out."""
    first = []
    for n in (0, 100):
        asked: list[object] = []
        db = opened(COLUMNS, {name: column[:n] for name, column in rows(100).items()}, budget=Epsilon(2))
        found = aim(Spy(db, asked), NAMES[:3], rounds=5, rows=7, spend=Epsilon(1))
        assert len(found) == 7
        assert 0 <= 1 - db.spent.amount < Fraction(1, 10**14)
        first.append(wire.encode(asked[0]))
    assert first[0] == first[1]


def test_trap_6_what_is_asked_next_depends_on_answers_alone() -> None:
    """Given the answers and no data, the run asks the same questions to its end and measures the same."""
    answers: Answers = []
    db = made(300)
    first = aim(Tape(db, answers), NAMES[:3], rounds=5, rows=100, spend=Epsilon(1))
    empty = opened(COLUMNS, {name: column[:0] for name, column in rows(1).items()})
    again = aim(Told(empty, answers), NAMES[:3], rounds=5, rows=100, spend=Epsilon(1))
    assert answers == []
    assert [each.names for each in first.measured] == [each.names for each in again.measured]


def test_marginals_that_would_make_the_model_too_large_are_not_chosen() -> None:
    """With room for hardly more than the columns themselves, no two columns are measured together."""
    cells = 8 / 2**20  # megabytes
    found = aim(made(300), NAMES[:3], rounds=5, max_model_size=9 * cells, spend=Epsilon(5))
    assert all(len(each.names) == 1 for each in found.measured)
    more = aim(made(300), NAMES[:3], rounds=5, max_model_size=100 * cells, spend=Epsilon(5))
    assert any(len(each.names) == 2 for each in more.measured)


def test_the_model_explains_what_was_measured() -> None:
    """Fitted to exact marginals of a chain it has them; so do its rows."""
    data = rows(200_000)
    space = CellSpace.of(NAMES, made(5).facts.schema, BINS)
    measured = [
        MeasuredMarginal(places, truth([NAMES[place] for place in places], data), 5.0)
        for places in ((0, 1), (1, 2), (0, 3))
    ]
    model = GraphModel(space.sizes)
    model.fit([*measured, MeasuredMarginal((0, 1), measured[0].values, 5.0)], 200_000.0, 20)
    model.fit([*measured, MeasuredMarginal((0, 1), measured[0].values, 5.0)], 200_000.0, 1000)
    cells = model.draw(200_000, np.random.default_rng(1))
    for each in measured:
        assert np.abs(model.marginal(each.places) - each.values).sum() < 400
        found = np.zeros(space.shape(each.places))
        np.add.at(found, tuple(cells[:, place] for place in each.places), 1)
        assert np.abs(found - each.values).sum() < 500
    implied = np.abs(model.marginal((0, 2)) - truth(["city", "smoker"], data)).sum()
    assert implied < 2000  # not measured: city and smoker are independent given rooms
    assert model.megabytes() == pytest.approx((9 + 6 + 12) * 8 / 2**20)


def test_it_needs_no_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether all is asked at once or there are rounds, neither mbi nor jax is imported."""
    for name in ("mbi", "jax"):
        monkeypatch.setitem(sys.modules, name, None)
    db = made(2000, Epsilon(20), size=2000)
    assert len(aim(db, NAMES, bins=BINS, spend=Epsilon(1)).paid.receipts) == 1
    assert len(aim(db, NAMES[:3], bins=BINS, rounds=2, spend=Epsilon(1)).paid.receipts) > 1


def test_a_spend_too_little_for_its_rounds_is_refused_before_the_first_ask() -> None:
    """The smallest choice and measurement are foreseen: nothing is asked; of fewer rounds the same spend is enough."""
    for options in ({"rounds": 2000}, {"rounds": 10_000}):
        db, asked = made(100, Rho(1)), []
        with pytest.raises(sulq.errors.QuestionError, match="fewer rounds") as refusal:
            aim(Spy(db, asked), NAMES[:3], spend=Rho(1e-11), **options)
        assert refusal.value.code == "bad-loss"
        assert (asked, db.spent) == ([], Rho.total(0))
    assert len(aim(made(100, Rho(1)), NAMES[:3], rounds=2, rows=5, spend=Rho(1e-11))) == 5  # the control


def test_the_rounds_of_a_run_are_not_smaller_than_the_rehearsed() -> None:
    """Every choice and measurement costs at least what was foreseen for it, whatever the first part leaves."""
    for rounds in (1, 2, 7):
        db = made(50, Epsilon(2))
        foreseen: list[tuple[int, Fraction]] = []
        paid: list[Fraction] = []

        class Noted(Spy):
            def foresee(self, question: object, *, spend: object = None) -> object:
                foreseen.append((len(paid), spend.exact))  # noqa: B023 - used within this turn
                return self.oracle.foresee(question, spend=spend)

            def ask(self, question: object, *, spend: object = None) -> object:
                paid.append(spend.exact)  # noqa: B023 - likewise
                return self.oracle.ask(question, spend=spend)

        aim(Noted(db, []), NAMES[:2], rounds=rounds, rows=5, spend=Epsilon(1))
        first, measuring, *_more, choosing = [spend for done, spend in foreseen if not done]
        assert paid[0] == first
        assert min(paid[1::2]) >= choosing
        assert min(paid[2::2]) >= measuring
        assert len(paid) % 2 == 1


@pytest.mark.parametrize(("count", "options"), [(30, {"ways": 30}), (30, {"ways": 4}), (40, {"ways": 20})])
def test_too_many_marginals_are_refused_before_they_are_written_down(count: int, options: dict[str, int]) -> None:
    """2^30 within one of 30 columns; C(40, 20) of 20: counted, refused at once, with what to do; nothing is spent."""
    db, names = halves(count)
    for wanted in (options, {"marginals": [names]}):
        started = time.perf_counter()
        with pytest.raises(sulq.errors.QuestionError, match="fewer ways or columns") as refusal:
            aim(db, names, spend=Epsilon(1), **wanted)
        assert refusal.value.code == "too-large"
        assert time.perf_counter() - started < 2
    assert db.spent == Epsilon.total(0)


def test_bad_input_is_refused_and_nothing_is_spent() -> None:
    """Columns, marginals, sizes, spends."""
    db = opened({**COLUMNS, "x": sulq.Int(0, 10**6)}, {**rows(9), "x": np.arange(9)}, budget=Epsilon(2))
    refused("unknown-column", aim, db, ["city", "height"], spend=Epsilon(1))
    wrong = [
        {"rounds": -1},
        {"rows": -1},
        {"ways": 0},
        {"max_model_size": 0},
        {"max_model_size": "1"},
        {"max_model_size": True},
    ]
    for options in [*wrong, {"marginals": [["height"]]}, {"bins": 0}]:
        refused("bad-parameter", aim, db, NAMES, spend=Epsilon(1), **options)
    refused("too-large", aim, db, ["x", "income"], bins=1000, spend=Epsilon(1))
    refused("spend-missing", aim, db, NAMES)
    refused("spend-kind", aim, db, NAMES, spend=Rho(0.1))
    refused("budget-exceeded", aim, db, NAMES, spend=Epsilon(3))
    assert db.spent == Epsilon.total(0)
    refused("not-a-noisy-sum", aim, made(9, SubLinear(1, 1e-6, 10)), NAMES)
