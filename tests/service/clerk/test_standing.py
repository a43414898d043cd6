"""What monitoring is told of a dataset: its budget in its own unit, to the digit that the owner's budget shows."""

from __future__ import annotations

import pytest

import sulq
from sulq.curator.ledger.shares import Share
from sulq.errors import SetupError
from sulq.service.clerk.standing import amounts, standing_of
from sulq.service.clerk.worker_pool import OpenDataset
from tests.service.office import survey


@pytest.mark.parametrize(
    ("budget", "spend", "limit", "spent"),
    [
        (sulq.Epsilon(2), sulq.Epsilon(0.5), {"epsilon": 2.0}, {"epsilon": 0.5}),
        (sulq.EpsilonDelta(2, 1e-6), sulq.Epsilon(0.5), {"epsilon": 2.0, "delta": 1e-6}, {"epsilon": 0.5}),
        (sulq.Rho(1), sulq.Rho(0.25), {"rho": 1.0}, {"rho": 0.25}),
    ],
)
def test_a_budget_is_told_in_its_own_unit(budget: object, spend: object, limit: object, spent: object) -> None:
    """What there is, is spent and is left, and of each analyst; nothing of a dataset whose ledger is not open."""
    with survey(budget) as database:
        database.count(spend=spend)
        database._ledger.share("alice", Share.of(0.5, 0.0))
        told = standing_of(OpenDataset("survey", ledger=database._ledger, curator=database._oracle), ())
        assert told["budget"]["limit"] == limit
        assert told["budget"]["spent"] == spent
        assert told["budget"]["remaining"] == {name: limit[name] - value for name, value in spent.items()}
        assert {account["analyst"]: account["spent"] for account in told["shares"]} == {
            "": spent, "alice": dict.fromkeys(spent, 0.0),
        }  # fmt: skip
        assert database._ledger.standings(fresh=False) == database._ledger.standings()
    assert (told["ready"], told["problem"], told["asks"]) == (True, None, 0)
    faulty = standing_of(OpenDataset("survey", fault=SetupError("ledger-damaged", "x")), ())
    assert (faulty["ready"], faulty["problem"]) == (False, "ledger-damaged")
    assert "budget" not in faulty


def test_a_budget_of_queries_is_told_with_all_its_parts() -> None:
    """An epsilon and a delta for so many questions."""
    assert amounts(sulq.SubLinear(1, 1e-6, 100)) == {"epsilon": 1.0, "delta": 1e-6, "queries": 100.0}


def test_workers_are_counted_for_their_own_dataset() -> None:
    """Those of another one are not."""
    workers = [{"dataset": "survey"}, {"dataset": "survey"}, {"dataset": "visits"}]
    assert standing_of(OpenDataset("survey"), workers)["workers"] == 2
