"""The clerk as an Oracle: values there and back, errors as they were raised."""

from __future__ import annotations

from pathlib import Path

import pytest

import sulq
from sulq.answers import wire
from sulq.api.named_asks import NamedAsks
from sulq.errors import AccessDenied, BudgetExceeded, QuestionError
from sulq.service.web.requests import ClerkClient, ClerkOracle, facts_of
from tests.service.office import Office, survey


@pytest.fixture
def office(tmp_path: Path):
    made = Office(tmp_path, survey=survey(budget=sulq.Epsilon(1)))
    yield made
    made.close()


def test_a_desk_before_the_clerk_is_a_desk(office: Office) -> None:
    """Facts, plans and answers are the curator's own, value for value."""
    oracle = ClerkOracle(ClerkClient(office.call, office.tokens["owner"]), "survey")
    database = office.databases["survey"]
    question = sulq.Sums((sulq.lit(1),))
    assert wire.encode(oracle.facts.schema) == wire.encode(database.facts.schema)
    assert wire.encode(oracle.foresee(question, spend=sulq.Epsilon(0.1))) == wire.encode(
        database.foresee(question, spend=sulq.Epsilon(0.1))
    )
    answer = NamedAsks(oracle).count(spend=sulq.Epsilon(0.5))
    assert abs(answer.value - 300) < 100
    assert database.spent == sulq.Epsilon(0.5)


def test_refusals_come_through_as_they_are(office: Office) -> None:
    """Class, code and remedy of the curator's own error."""
    question = sulq.Sums((sulq.lit(1),))
    good = ClerkOracle(ClerkClient(office.call, office.tokens["owner"]), "survey")
    with pytest.raises(BudgetExceeded) as budget:
        good.ask(question, spend=sulq.Epsilon(2))
    assert budget.value.code == "budget-exceeded"
    with pytest.raises(QuestionError) as column:
        good.ask(sulq.Sums((sulq.col("nothing"),)), spend=sulq.Epsilon(0.1))
    assert column.value.code == "unknown-column"
    with pytest.raises(AccessDenied) as access:
        ClerkOracle(ClerkClient(office.call, "0" * 64), "survey").ask(question, spend=sulq.Epsilon(0.1))
    assert access.value.code == "unauthorized"


def test_facts_read_once_are_still_the_facts_of_now(office: Office) -> None:
    """What is spent and left is read at every look; another declaration is another fact."""
    oracle = ClerkOracle(ClerkClient(office.call, office.tokens["owner"]), "survey")
    database = office.databases["survey"]
    for _ in range(3):
        assert wire.encode(oracle.facts) == wire.encode(database.facts)
        database.count(spend=sulq.Epsilon(0.1), fresh=True)
    with survey(budget=sulq.Rho(1), size=300) as other:
        tree = wire.to_json(other.facts)
        assert wire.encode(facts_of(tree)) == wire.encode(other.facts)
        assert wire.encode(facts_of(tree)) != wire.encode(oracle.facts)
