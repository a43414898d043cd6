"""The service under kill -9 of each kind of process, at random and under load (T43, T45, T52, T60)."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tests.counts import count, generator
from tests.service.kills import PRICE, Seen, killed, violations


def test_whatever_is_killed_no_answer_is_unpaid_and_no_receipt_runs_twice_T43_T52_T60() -> None:
    """Web, clerk and workers are killed in turn at random moments; the service is back by itself every time."""
    seen = killed(count("kills of the service's processes", short=9, long=200), generator("service kills"))
    assert violations(seen) == []
    assert seen.answers
    assert any(code for code in seen.refusals), "no kill ever met a question: the test shows nothing"


@pytest.mark.parametrize(
    "change",
    [
        {"answers": [5, 9]}, {"answers": [5, 5]}, {"runs": [5, 5]}, {"runs": [7]}, {"spent": Fraction(0)},
        {"verified": 2}, {"repeated": [("k", 1.0), ("k", 2.0)]},
    ],
)  # fmt: skip
def test_the_check_sees_what_must_not_be_T43(change: dict) -> None:
    """Control: an unpaid or second answer, a second run, a run of nothing, a wrong sum, a lost debit, two values."""
    good = {
        "answers": [5], "runs": [5], "debits": {5: None}, "spent": Fraction(str(PRICE)), "verified": 1,
        "repeated": [("k", 1.0), ("k", 1.0)],
    }  # fmt: skip
    assert violations(Seen(**good)) == []
    assert violations(Seen(**{**good, **change}))
