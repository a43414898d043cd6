"""Which queries show plain counts, and how they are said to be asked with others."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import NoReturn, cast

import pytest

from sulq.errors import QuestionError
from sulq.language.privacy import Rho
from sulq.sql.forecast import ErrorForecast
from sulq.sql.joint import JointAsk, JointDesign, counts_of, told
from sulq.sql.session import Sql
from tests.api.test_named_asks import PEOPLE, SCHEMA
from tests.stub import Stub


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("SELECT COUNT(*) AS n FROM people", True),
        ("SELECT city, COUNT(*) AS n, 1 AS one FROM people WHERE age > 40 GROUP BY city ORDER BY n LIMIT 1", True),
        ("SELECT COUNT(*) + 1 AS n FROM people", False),
        ("SELECT city, COUNT(*) AS n FROM people GROUP BY city HAVING COUNT(*) > 3", False),
        ("SELECT COUNT(*) AS n, SUM(age) AS s FROM people", False),
        ("SELECT COUNT(age) AS n FROM people", False),
        ("SELECT SUM(n) FROM (SELECT city, COUNT(*) AS n FROM people GROUP BY city) AS c", False),
    ],
)
def test_counts_that_nothing_is_computed_from_are_plain(text: str, *, plain: bool) -> None:
    """Cells of a design share noise: what is computed from them would have wrong error bars."""
    stub = Stub(SCHEMA, PEOPLE, budget=Rho(1))
    assert (counts_of(Sql(stub)._forecast(text, stub.facts, spend=Rho(0.1)), Rho(0.1)) is not None) == plain


def test_queries_are_named_from_one() -> None:
    """As a reader counts them; its own is left out."""
    assert told((0, 2), 2) == "planned together with query 1: one release"
    assert told((0, 2, 3), 2) == "planned together with queries 1, 4: one release"


@pytest.mark.parametrize("code", ["body-too-large", "too-large", "too-much-work"])
def test_a_design_that_is_too_much_at_once_is_asked_apart(code: str) -> None:
    """Also where it is too long to be sent to a server. Control: any other refusal is the plan's."""

    def refused(why: str) -> ErrorForecast:
        def foresee(*_: object) -> NoReturn:
            raise QuestionError(why, "No.")

        return cast("ErrorForecast", SimpleNamespace(foresee=foresee))

    design = cast("JointDesign", SimpleNamespace(question=None))
    assert JointAsk.of((0, 1), design, Fraction(1), refused(code), Rho(1)) is None
    with pytest.raises(QuestionError):
        JointAsk.of((0, 1), design, Fraction(1), refused("bad-question"), Rho(1))
